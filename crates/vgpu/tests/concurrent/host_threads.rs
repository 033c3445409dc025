//! Launches whose CTAs run on several threads of the host: the result does not depend on their number.

use std::num::NonZero;

use tilewright_vgpu::{BufferId, FaultKind, Launch, Memory, Options, RunError, Writer, run};

use crate::harness::{fault_of, launch, module, words_of};

const THREADS: usize = 64;
const CTAS: usize = 7;
/// Bytes of the buffer that all access.
const BYTES: usize = 4096;

/// Each thread reads `width` bytes of one buffer, stores them in its own word of another, and then writes its number.
/// The bytes are at `first + cta * by_cta + thread * by_thread`.
#[derive(Clone, Copy, Debug)]
struct Case {
    width: usize,
    read: [usize; 3],
    write: [usize; 3],
}

impl Case {
    fn text(&self) -> String {
        let Case { width, read, write } = self;
        let address = |d: &str, [first, by_cta, by_thread]: [usize; 3]| {
            format!(
                "mul.lo.u32 %r3, %r2, {by_cta};\nmad.lo.u32 %r3, %r1, {by_thread}, %r3;\nadd.u32 %r3, %r3, {first};\n\
                 cvt.u64.u32 {d}, %r3;\nadd.u64 {d}, {d}, %rd1;\n"
            )
        };
        let bits = width * 8;
        let (from, to) = (address("%rd3", *read), address("%rd4", *write));
        format!(
            ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{{\n\
             .reg .b32 %r<8>;\n.reg .b64 %rd<8>;\nld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\n\
             mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmad.lo.u32 %r4, %r2, {THREADS}, %r1;\n\
             mul.wide.u32 %rd5, %r4, 4;\nadd.u64 %rd5, %rd5, %rd2;\n{from}{to}ld.global.u{bits} %r5, [%rd3];\n\
             st.global.u32 [%rd5], %r5;\nst.global.u{bits} [%rd4], %r4;\nret;\n}}\n"
        )
    }

    /// The first byte that a thread accesses.
    fn at([first, by_cta, by_thread]: [usize; 3], thread: usize) -> usize {
        first + thread / THREADS * by_cta + thread % THREADS * by_thread
    }

    /// The two buffers at the end, or nothing if there is a race, by comparison of all accesses.
    fn expected(&self) -> Option<(Vec<u8>, Vec<u32>)> {
        let mut writers: Vec<Vec<usize>> = vec![Vec::new(); BYTES];
        for thread in 0..CTAS * THREADS {
            (0..self.width).for_each(|byte| writers[Case::at(self.write, thread) + byte].push(thread));
        }
        let value = |thread: usize, at: usize| (thread as u32).to_le_bytes()[at - Case::at(self.write, thread)];
        let mut bytes = initial();
        for (at, writers) in writers.iter().enumerate() {
            let values: Vec<u8> = writers.iter().map(|thread| value(*thread, at)).collect();
            if values.windows(2).any(|pair| pair[0] != pair[1]) {
                return None;
            }
            bytes[at] = values.first().copied().unwrap_or(bytes[at]);
        }
        let mut read = Vec::new();
        for thread in 0..CTAS * THREADS {
            let from = Case::at(self.read, thread);
            if writers[from..from + self.width].iter().flatten().any(|writer| *writer != thread) {
                return None;
            }
            let mut word = [0; 4];
            word[..self.width].copy_from_slice(&initial()[from..from + self.width]);
            read.push(u32::from_le_bytes(word));
        }
        Some((bytes, read))
    }

    fn run(&self, host_threads: usize, seed: u64) -> Found {
        let mut memory = Memory::new();
        let a = memory.allocate("a", initial());
        let b = memory.allocate_poison("b", 4 * CTAS * THREADS);
        let launch = Launch { grid: [CTAS as u32, 1, 1], ..launch(THREADS as u32, &[a, b]) };
        let options = Options { host_threads: NonZero::new(host_threads), seed, ..Options::default() };
        match run(&module(&self.text()), &launch, &mut memory, &options) {
            Ok(report) => Ok(After {
                bytes: memory.bytes(a).to_vec(),
                read: words_of(&memory, b),
                writers: writers(&memory, a, BYTES).chain(writers(&memory, b, 4 * CTAS * THREADS)).collect(),
                report: format!("{report:?}"),
            }),
            Err(RunError::Fault(fault)) => Err((fault.kind, fault.to_string())),
            Err(other) => panic!("{other}"),
        }
    }
}

type Found = Result<After, (FaultKind, String)>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct After {
    bytes: Vec<u8>,
    read: Vec<u32>,
    writers: Vec<Option<Writer>>,
    report: String,
}

fn initial() -> Vec<u8> {
    (0..BYTES).map(|at| (at * 7 % 251) as u8).collect()
}

fn writers(memory: &Memory, of: BufferId, bytes: usize) -> impl Iterator<Item = Option<Writer>> {
    (0..bytes).map(move |at| memory.last_writer(of, at))
}

/// Cases in which CTAs meet and others in which they do not, with elements of one to four bytes.
fn cases() -> Vec<Case> {
    let mut state = 12345u64;
    let mut below = move |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let mut cases = Vec::new();
    for _ in 0..120 {
        let width = [1, 2, 4][below(3)];
        // By rows or by columns, sometimes by too little.
        let mut side = |first: usize| {
            let shrink = if below(4) == 0 { width } else { 0 };
            match below(3) {
                0 => [first, width * THREADS - shrink, width],
                1 => [first, width, width * CTAS - shrink],
                _ => [first, 0, width],
            }
        };
        let (read, write) = (side(0), side(0));
        let half = BYTES / 2;
        let apart = below(3);
        cases.push(Case {
            width,
            read: [apart % 2 * half, read[1], read[2]],
            write: [apart / 2 * half, write[1], write[2]],
        });
    }
    cases
}

#[test]
fn the_number_of_host_threads_has_no_influence() {
    let (mut right, mut races) = (0, 0);
    for (seed, case) in (0..).zip(cases()) {
        let all: Vec<Found> = [1, 2, 3, 8].map(|threads| case.run(threads, seed % 3)).into();
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{case:?}: {all:?}");
        match (&all[0], case.expected()) {
            (Ok(after), Some((bytes, read))) => {
                assert_eq!((&after.bytes, &after.read), (&bytes, &read), "{case:?}");
                right += 1;
            }
            (Err((FaultKind::Race, _)), None) => races += 1,
            (found, expected) => panic!("{case:?}: {found:?}, expected {expected:?}"),
        }
    }
    assert!(right >= 20 && races >= 20, "{right} right, {races} races");
}

#[test]
fn what_ctas_on_other_host_threads_read_is_known_to_the_next_launch() {
    let kernel = |body: &str| {
        format!(
            ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{{\n\
             .reg .b32 %r<4>;\n.reg .b64 %rd<5>;\nld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\n\
             mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd3, %r1, 4;\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd2, %rd2, %rd3;\n\
             {body}\nret;\n}}\n"
        )
    };
    let reads = module(&kernel("ld.global.u32 %r2, [%rd4];\nst.global.u32 [%rd2], %r2;"));
    for word in 0..8u32 {
        let mut memory = Memory::new();
        let (a, b) = (memory.allocate("a", vec![1; 32]), memory.allocate_poison("b", 32));
        let options = Options { host_threads: NonZero::new(4), ..Options::default() };
        let first = Launch { grid: [8, 1, 1], ..launch(1, &[a, b]) };
        run(&reads, &first, &mut memory, &options).expect("it is right");
        let writes = module(&kernel(&format!("st.global.u32 [%rd1+{}], 7;", 4 * word)));
        let second = Launch { overlaps_previous: true, ..launch(1, &[a, b]) };
        match run(&writes, &second, &mut memory, &options) {
            Err(RunError::Fault(fault)) => assert_eq!(fault.kind, FaultKind::Race, "{fault}"),
            other => panic!("{other:?}"),
        }
    }
}

/// Runs `body` by clusters of two CTAs of 32 threads on `b`, which is written at first if `filled`; if not, nothing is observed. `%r1` is
/// the thread, `%r2` the CTA, `%p1` true for thread 0, and `%rd3` the CTA's word of `a`.
fn in_clusters(
    body: &str,
    ctas: u32,
    filled: bool,
    (host_threads, seed): (usize, u64),
) -> Result<(Memory, BufferId), FaultKind> {
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{{\n\
         .reg .pred %p<6>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<5>;\nld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\n\
         mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\nmul.wide.u32 %rd3, %r2, 4;\n\
         add.u64 %rd3, %rd3, %rd1;\n{body}\nret;\n}}\n"
    );
    let mut memory = Memory::new();
    let a = memory.allocate("a", vec![0; 4 * ctas as usize]);
    let b = if filled { memory.allocate("b", vec![1; 64]) } else { memory.allocate_poison("b", 64) };
    let observed = (!filled).then(|| [].into());
    let options = Options { host_threads: NonZero::new(host_threads), seed, observed, ..Options::default() };
    let launch = Launch { grid: [ctas, 1, 1], cluster: [2, 1, 1], ..launch(32, &[a, b]) };
    match run(&module(&text), &launch, &mut memory, &options) {
        Ok(_) => Ok((memory, a)),
        Err(RunError::Fault(fault)) => Err(fault.kind),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_read_by_one_cluster_is_kept_while_ctas_of_another_one_read() {
    // CTAs 0, 2 and 3 read, and then CTA 2 writes, after a barrier of its cluster.
    let body = "mov.u32 %r4, 2000;\nDELAY:\nsub.u32 %r4, %r4, 1;\nsetp.ne.u32 %p3, %r4, 0;\n@%p3 bra DELAY;\n\
                @!%p1 bra MEET;\nsetp.eq.u32 %p2, %r2, 1;\n@%p2 bra MEET;\nld.global.u32 %r3, [%rd2];\n\
                st.global.u32 [%rd3], %r3;\nMEET:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n\
                setp.eq.and.u32 %p2, %r2, 2, %p1;\n@%p2 st.global.u32 [%rd2], 5;";
    for seed in 0..8 {
        for host_threads in [1, 2] {
            let found = in_clusters(body, 4, true, (host_threads, seed)).map(|_| ());
            assert_eq!(found, Err(FaultKind::Race), "{host_threads} threads, seed {seed}");
        }
    }
}

#[test]
fn undefined_bits_stay_undefined_on_every_host_thread() {
    let body =
        "mov.u32 %r3, 9;\nsetp.eq.u32 %p2, %r2, 7;\n@%p2 ld.global.u32 %r3, [%rd2];\n@%p1 st.global.u32 [%rd3], %r3;";
    for host_threads in [1, 2, 4, 4, 4, 1 << 32, usize::MAX] {
        let (memory, a) = in_clusters(body, 8, false, (host_threads, 0)).expect("nothing is observed");
        let written: Vec<bool> = (0..32).map(|at| memory.is_written(a, at)).collect();
        assert!(written[..28].iter().all(|is| *is) && !written[28..].iter().any(|is| *is), "{written:?}");
    }
}

#[test]
fn clusters_that_wait_for_each_other_run_together() {
    // CTA 0 waits for a flag that the last one sets.
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a)\n{{\n.reg .pred %p<3>;\n\
         .reg .b32 %r<4>;\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [a];\nmov.u32 %r1, %ctaid.x;\n\
         setp.eq.u32 %p1, %r1, {last};\n@%p1 st.release.gpu.global.u32 [%rd1], 1;\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 ret;\n\
         AGAIN:\nld.acquire.gpu.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra AGAIN;\n\
         st.global.u32 [%rd1+4], %r2;\nret;\n}}\n",
        last = CTAS - 1
    );
    for host_threads in [1, 2, 4] {
        let mut memory = Memory::new();
        let a = memory.allocate("a", vec![0; 8]);
        let options = Options { host_threads: NonZero::new(host_threads), ..Options::default() };
        let launch = Launch { grid: [CTAS as u32, 1, 1], ..launch(1, &[a]) };
        run(&module(&text), &launch, &mut memory, &options).expect("it is right");
        assert_eq!(words_of(&memory, a), [1, 1]);
    }
}

/// Of lanes that store to the same bytes, the last one is the last writer, whatever was stored in the CTA before.
#[test]
fn the_last_writer_is_the_last_lane() {
    let text = ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k(.param .u64 b)\n{\n.reg .pred %p<2>;\n\
                .reg .b32 %r<8>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [b];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n\
                sub.u32 %r3, 31, %r1;\nshl.b32 %r3, %r3, 2;\nand.b32 %r4, %r2, 1;\nsetp.eq.u32 %p1, %r4, 0;\n\
                selp.b32 %r3, 0, %r3, %p1;\nmad.lo.u32 %r3, %r2, 128, %r3;\ncvt.u64.u32 %rd2, %r3;\n\
                add.u64 %rd2, %rd1, %rd2;\nst.global.b32 [%rd2], %r2;\nret;\n}\n";
    for host_threads in [1, 2, 3] {
        let mut memory = Memory::new();
        let b = memory.allocate_poison("b", 16 * 128);
        let launch = Launch { grid: [16, 1, 1], ..launch(32, &[b]) };
        let options = Options { host_threads: NonZero::new(host_threads), ..Options::default() };
        run(&module(text), &launch, &mut memory, &options).expect("it ends");
        let lane =
            |cta: usize| memory.last_writer(b, cta * 128).and_then(|writer| writer.thread).map(|thread| thread % 32);
        assert!((0..16).step_by(2).all(|cta| lane(cta) == Some(31)), "{host_threads} threads");
    }
}

/// A read by a launch before that nobody has waited for is kept, also where many read beside it.
#[test]
fn reads_of_earlier_launches_are_kept() {
    let reads = "ld.param.u64 %rd1, [b];\nld.global.u32 %r1, [%rd1];\nadd.u32 %r1, %r1, %r1;\nret;\n}\n";
    let writes = "ld.param.u64 %rd1, [b];\nst.global.u32 [%rd1], 7;\nret;\n}\n";
    let entry = |name: &str| format!(".entry {name}(.param .u64 b)\n{{\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n");
    let text = format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n{}{reads}{}{reads}{}{writes}",
        entry("first"),
        entry("second"),
        entry("third")
    );
    let message = |host_threads| {
        let (module, mut memory) = (module(&text), Memory::new());
        let b = memory.allocate("b", vec![0; 4]);
        let options = Options { host_threads: NonZero::new(host_threads), ..Options::default() };
        let mut ended = |kernel: &str, ctas: u32, overlaps_previous: bool| {
            let launch =
                Launch { kernel: kernel.to_string(), grid: [ctas, 1, 1], overlaps_previous, ..launch(32, &[b]) };
            run(&module, &launch, &mut memory, &options).map(|_| ())
        };
        ended("first", 1, false).and_then(|()| ended("second", 200, true)).expect("both read only");
        fault_of((ended("third", 1, true), Vec::<u32>::new())).message
    };
    assert!(message(1).contains("the read at PTX line 9 "), "{}", message(1));
    assert_eq!([2, 3].map(message), [message(1), message(1)]);
}
