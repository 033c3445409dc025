//! Small hand-written kernels: results, faults with their PTX lines, and access counts.

#[path = "kernels/barriers.rs"]
mod barriers;
#[path = "kernels/notes.rs"]
mod notes;
#[path = "kernels/refused.rs"]
mod refused;
#[path = "kernels/undefined.rs"]
mod undefined;

use std::num::NonZero;

use tilewright_vgpu::{
    AccessCount, Arg, BufferId, Fault, FaultKind, Launch, Memory, Module, Options, Progress, Report, RunError, Space,
    run, run_watched,
};

/// Registers that every body may use; with the lines before it, a body starts at line 12.
const HEADER: &str = ".version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
{
.reg .pred %p<8>;
.reg .b16 %h<8>;
.reg .b32 %r<32>;
.reg .b64 %rd<16>;
.shared .align 16 .b8 tile[4096];
.reg .f32 %f<8>;
";

struct Outcome {
    memory: Memory,
    a: BufferId,
    b: BufferId,
    result: Result<Report, RunError>,
}

/// Runs `body` with `a` holding the words 0, 1, 2, ... and `b` poisoned, both of 1024 bytes.
fn execute(body: &str, ctas: u32, threads: u32) -> Outcome {
    let options = Options { max_instructions_per_thread: 100_000, ..Options::default() };
    execute_watched(body, ctas, threads, &options, &mut |_| ())
}

fn execute_watched(body: &str, ctas: u32, threads: u32, options: &Options, watch: &mut dyn FnMut(Progress)) -> Outcome {
    let text = format!("{HEADER}{body}\n}}\n");
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let mut memory = Memory::new();
    let words: Vec<u8> = (0..256u32).flat_map(u32::to_le_bytes).collect();
    let a = memory.allocate("a", words);
    let b = memory.allocate_poison("b", 1024);
    let launch = Launch {
        kernel: "k".to_string(),
        grid: [ctas, 1, 1],
        block: [threads, 1, 1],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: 0,
        args: vec![Arg::Buffer { buffer: a, byte_offset: 0 }, Arg::Buffer { buffer: b, byte_offset: 0 }],
    };
    let result = run_watched(&module, &launch, &mut memory, options, watch);
    Outcome { memory, a, b, result }
}

fn report(outcome: &Outcome) -> &Report {
    match &outcome.result {
        Ok(report) => report,
        Err(error) => panic!("{error}"),
    }
}

fn fault(body: &str, threads: u32) -> Fault {
    match execute(body, 1, threads).result {
        Err(RunError::Fault(fault)) => *fault,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the kernel ran to its end"),
    }
}

fn words(outcome: &Outcome, id: BufferId) -> Vec<u32> {
    let bytes = outcome.memory.bytes(id);
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

fn count(report: &Report, line: u32) -> &AccessCount {
    let found = report.accesses.iter().find(|access| access.ptx_line == line);
    found.unwrap_or_else(|| panic!("no access at line {line}: {:?}", report.accesses))
}

/// `%rd3 = a + 4 * tid`, `%rd4 = b + 4 * tid`, `%r4 = tile + 4 * tid`: 9 lines, so what follows starts at line 21.
const ADDRESSES: &str = "mov.u32 %r1, %tid.x;
mul.wide.u32 %rd5, %r1, 4;
ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [b];
add.s64 %rd3, %rd1, %rd5;
add.s64 %rd4, %rd2, %rd5;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, tile;
add.s32 %r4, %r3, %r2;
";

fn with_addresses(rest: &str) -> String {
    format!("{ADDRESSES}{rest}")
}

#[test]
fn words_are_doubled() {
    let outcome = execute(
        &with_addresses("ld.global.u32 %r5, [%rd3];\nadd.s32 %r6, %r5, %r5;\nst.global.u32 [%rd4], %r6;\nret;"),
        1,
        256,
    );
    let report = report(&outcome);
    let want: Vec<u32> = (0..256).map(|word| word * 2).collect();
    assert_eq!(words(&outcome, outcome.b), want);
    assert_eq!(report.thread_instructions, 13 * 256);
    let load = count(report, 21);
    assert_eq!((load.executions, load.sectors, load.ideal_sectors, load.bytes), (8, 32, 32, 1024));
    let writer = outcome.memory.last_writer(outcome.b, 4 * 40);
    assert_eq!(writer.map(|writer| (writer.thread, writer.ptx_line)), Some((Some(40), 23)));
    assert_eq!(outcome.memory.last_writer(outcome.a, 0), None);
}

#[test]
fn divergent_lanes_join_again() {
    let outcome = execute(
        &with_addresses(
            "setp.lt.u32 %p1, %r1, 10;\n@%p1 bra L1;\nmov.u32 %r7, 5;\nbra.uni L2;\nL1:\nmov.u32 %r7, 9;\nL2:\n\
             vote.sync.ballot.b32 %r8, %p1, -1;\nadd.u32 %r9, %r8, %r7;\nst.global.u32 [%rd4], %r9;\nret;",
        ),
        1,
        32,
    );
    report(&outcome);
    let found = words(&outcome, outcome.b);
    assert_eq!((found[0], found[31]), (1023 + 9, 1023 + 5));
}

#[test]
fn a_spinning_lane_does_not_starve_the_others() {
    // Lane 0 waits for a flag that lane 1 sets.
    let outcome = execute(
        &with_addresses(
            "setp.eq.u32 %p1, %r1, 0;\nst.volatile.shared.u32 [%r4], 0;\nbar.warp.sync -1;\n@!%p1 bra SET;\nSPIN:\n\
             ld.volatile.shared.u32 %r5, [tile+4];\nsetp.eq.u32 %p2, %r5, 0;\n@%p2 bra SPIN;\n\
             st.global.u32 [%rd4], %r5;\nret;\nSET:\nsetp.eq.u32 %p3, %r1, 1;\n@%p3 st.volatile.shared.u32 [%r4], 7;\nret;",
        ),
        1,
        32,
    );
    report(&outcome);
    assert_eq!(words(&outcome, outcome.b)[0], 7);
}

#[test]
fn shuffles_sum_a_warp() {
    let mut body = "ld.global.u32 %r5, [%rd3];\n".to_string();
    for offset in [16, 8, 4, 2, 1] {
        body += &format!("shfl.sync.bfly.b32 %r6|%p1, %r5, {offset}, 31, -1;\nadd.s32 %r5, %r5, %r6;\n");
    }
    body += "st.global.u32 [%rd4], %r5;\nret;";
    let outcome = execute(&with_addresses(&body), 1, 32);
    report(&outcome);
    assert_eq!(words(&outcome, outcome.b)[..32], [496; 32]);
}

#[test]
fn functions_are_called() {
    let text = ".version 8.0\n.target sm_90a\n.address_size 64\n\
        .func (.param .b32 out) twice(.param .b32 in)\n;\n\
        .entry k(.param .u64 p)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [p];\n\
        {\n.param .b32 param0;\nst.param.b32 [param0+0], 21;\n.param .b32 retval0;\n\
        call.uni (retval0), twice, (param0);\nld.param.b32 %r1, [retval0+0];\n}\n\
        st.global.b32 [%rd1], %r1;\nret;\n}\n\
        .func (.param .b32 out) twice(.param .b32 in)\n{\n.reg .b32 %r<4>;\nld.param.u32 %r1, [in];\n\
        add.s32 %r2, %r1, %r1;\nst.param.b32 [out+0], %r2;\nret;\n}\n";
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let mut memory = Memory::new();
    let buffer = memory.allocate_poison("p", 4);
    let launch = Launch {
        kernel: "k".to_string(),
        grid: [1, 1, 1],
        block: [32, 1, 1],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: 0,
        args: vec![Arg::Buffer { buffer, byte_offset: 0 }],
    };
    let result = run(&module, &launch, &mut memory, &Options::default());
    assert!(result.is_ok(), "{:?}", result.err());
    assert_eq!(*memory.bytes(buffer), [42, 0, 0, 0]);
}

#[test]
fn atomics_of_all_ctas_add_up() {
    let outcome = execute(&with_addresses("red.global.add.u32 [%rd1], 1;\nret;"), 4, 64);
    report(&outcome);
    assert_eq!(words(&outcome, outcome.a)[0], 256);
}

#[test]
fn an_access_past_the_end_names_the_buffer() {
    // Lane 0 reads the last word; with lane 1 the access leaves the buffer.
    let fault = fault(&with_addresses("ld.global.u32 %r5, [%rd4+1020];\nret;"), 32);
    assert_eq!((fault.kind, fault.at.ptx_line, fault.lanes), (FaultKind::OutOfBounds, 21, 2));
    let fault = self::fault(&with_addresses("st.global.u32 [%rd4+1024], %r1;\nret;"), 32);
    assert_eq!((fault.kind, fault.at.ptx_line), (FaultKind::OutOfBounds, 21));
    assert_eq!(fault.message, "the access at `b` + 1024 extends 4 B past the end (size 1024 B)");
}

#[test]
fn a_misaligned_access_faults() {
    let fault = fault(&with_addresses("ld.global.v2.u32 {%r5, %r6}, [%rd1+4];\nret;"), 32);
    assert_eq!((fault.kind, fault.at.ptx_line), (FaultKind::Misaligned, 21));
}

#[test]
fn elements_of_a_vector_store_that_are_left_out_keep_their_value() {
    let store = "setp.ne.u32 %p1, %r1, 0;\n@%p1 ret;\nst.global.v4.u32 [%rd2+1008], {%r1, %r1, %r1, %r1};\n";
    let body = format!("{store}mov.u32 %r5, 7;\nst.global.v4.u32 [%rd2+1008], {{_, %r5, _, %r5}};\nret;");
    let outcome = execute(&with_addresses(&body), 1, 32);
    report(&outcome);
    assert_eq!(words(&outcome, outcome.b)[252..], [0, 7, 0, 7]);
    // What is left out may lie outside of the buffer.
    let outcome =
        execute(&with_addresses("st.global.v8.u32 [%rd2+992], {%r1, %r1, %r1, %r1, %r1, %r1, %r1, _};\nret;"), 1, 1);
    report(&outcome);
}

#[test]
fn lanes_that_store_different_values_to_one_word_race() {
    let read = "bar.sync 0;\nld.shared.u32 %r5, [tile];\nst.global.u32 [%rd4], %r5;\nret;";
    let fault = fault(&with_addresses(&format!("st.shared.u32 [tile], %r1;\n{read}")), 32);
    assert_eq!((fault.kind, fault.at.ptx_line), (FaultKind::Race, 21));
}

#[test]
fn a_read_races_with_a_write_that_comes_later() {
    let body = "st.shared.u32 [%r4], 0;\nbar.sync 0;\nxor.b32 %r5, %r2, 4;\nadd.s32 %r5, %r5, %r3;\n\
                ld.shared.u32 %r6, [%r5];\nst.shared.u32 [%r4], 7;\nst.global.u32 [%rd4], %r6;\nret;";
    let fault = fault(&with_addresses(body), 32);
    assert_eq!((fault.kind, fault.at.ptx_line), (FaultKind::Race, 25));
    assert_eq!(fault.related.map(|place| place.ptx_line), Some(26));
    assert!(fault.message.ends_with("the undefined bits are stored to `b` + 0 at PTX line 27"), "{}", fault.message);
}

#[test]
fn equal_values_stored_by_many_are_noted() {
    let outcome = execute(&with_addresses("st.shared.u32 [tile], 7;\nret;"), 1, 64);
    let notes = &report(&outcome).notes;
    assert_eq!(notes.iter().map(|note| (note.name, note.ptx_line)).collect::<Vec<_>>(), [("benign_race", 21)]);
}

#[test]
fn ctas_are_never_ordered() {
    let body = with_addresses("ld.global.u32 %r5, [%rd3];\nadd.s32 %r5, %r5, 1;\nst.global.u32 [%rd3], %r5;\nret;");
    let Err(RunError::Fault(fault)) = execute(&body, 2, 32).result else { panic!("a fault is expected") };
    assert_eq!((fault.kind, fault.cta), (FaultKind::Race, [1, 0, 0]));
}

#[test]
fn threads_that_never_meet_deadlock() {
    let body = "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra ONE;\nbar.sync 2;\nret;\nONE:\nbar.sync 1;\nret;";
    let fault = fault(&with_addresses(body), 64);
    assert_eq!(fault.kind, FaultKind::Deadlock);
    let waits: Vec<(u32, u32, &str)> =
        fault.waiting.iter().map(|wait| (wait.warp, wait.at.ptx_line, wait.what.as_str())).collect();
    assert_eq!(
        waits,
        [
            (0, 26, "barrier 1, at which 32 of 64 threads have arrived"),
            (1, 23, "barrier 2, at which 32 of 64 threads have arrived")
        ]
    );
}

#[test]
fn lanes_that_only_leave_are_not_missed() {
    let body = "setp.ge.u32 %p1, %r1, 16;\n@%p1 bra OUT;\nbar.sync 0;\nOUT:\nret;";
    report(&execute(&with_addresses(body), 1, 32));
}

#[test]
fn traps_and_endless_loops_end() {
    let trap = fault(&with_addresses("trap;"), 32);
    assert_eq!((trap.kind, trap.at.ptx_line), (FaultKind::Trap, 21));
    let endless = fault(&with_addresses("AGAIN:\nbra AGAIN;"), 32);
    assert_eq!(endless.kind, FaultKind::Deadlock);
}

/// The first two CTAs end, the third never does.
const LAST_CTA_IS_ENDLESS: &str =
    "mov.u32 %r1, %ctaid.x;\nsetp.lt.u32 %p1, %r1, 2;\n@%p1 bra OUT;\nAGAIN:\nbra AGAIN;\nOUT:\nret;";

#[test]
fn a_cta_may_execute_in_proportion_to_its_threads_and_what_it_did_is_told() {
    let options = Options { max_instructions_per_thread: 50, ..Options::default() };
    for (threads, executed) in [(32, 1_600), (256, 12_800)] {
        let outcome = execute_watched(LAST_CTA_IS_ENDLESS, 3, threads, &options, &mut |_| ());
        let Err(RunError::Fault(fault)) = outcome.result else { panic!("a fault is expected") };
        assert_eq!((fault.kind, fault.at.ptx_line, fault.cta), (FaultKind::StepLimit, 16, [2, 0, 0]));
        let told = format!(
            "the CTA has not ended after {executed} thread instructions (block size {threads}, limit 50 per thread); \
             2 of 3 CTAs ended before it"
        );
        assert_eq!(fault.message, told);
    }
}

#[test]
fn a_cta_that_executes_just_what_it_may_ends() {
    let options = Options { max_instructions_per_thread: 3, ..Options::default() };
    let body = "mov.u32 %r1, 1;\nmov.u32 %r2, 2;\nret;";
    report(&execute_watched(body, 2, 64, &options, &mut |_| ()));
}

/// Two CTAs of about 8 million instructions each.
#[test]
fn a_long_launch_tells_how_far_it_is_and_the_same_every_time() {
    let body = "mov.u32 %r1, 10000;\nAGAIN:\nsub.u32 %r1, %r1, 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra AGAIN;\nret;";
    let watched = || {
        let mut told = Vec::new();
        let options = Options { host_threads: NonZero::new(1), ..Options::default() };
        let outcome = execute_watched(body, 2, 256, &options, &mut |progress| told.push(progress));
        (told, report(&outcome).thread_instructions)
    };
    let (told, instructions) = watched();
    let seen = |progress: &Progress| (progress.ended, progress.ctas, progress.thread_instructions / 1_000_000);
    assert_eq!(told.iter().map(seen).collect::<Vec<_>>(), [(1, 2, 10)]);
    // The last branch of each thread is not taken, and so not counted.
    assert_eq!(instructions, 2 * 256 * 30_001);
    assert_eq!((told, instructions), watched());
    assert_eq!(report(&execute(body, 2, 256)).thread_instructions, instructions);
}

#[test]
fn wavefronts_of_known_strides() {
    // Strides of 4, 8 and 128 bytes; the last wraps inside the tile.
    let body = "st.shared.u32 [%r4], 1;\nshl.b32 %r5, %r1, 3;\nadd.s32 %r5, %r5, %r3;\nst.shared.u32 [%r5], 1;\n\
                shl.b32 %r6, %r1, 7;\nadd.s32 %r6, %r6, %r3;\nst.shared.u32 [%r6], 1;\nshl.b32 %r7, %r1, 4;\n\
                add.s32 %r7, %r7, %r3;\nst.shared.v4.u32 [%r7], {1, 1, 1, 1};\nret;";
    let outcome = execute(&with_addresses(body), 1, 32);
    let report = report(&outcome);
    let waves = |line: u32| (count(report, line).wavefronts, count(report, line).ideal_wavefronts);
    assert_eq!([waves(21), waves(24), waves(27), waves(30)], [(1, 1), (2, 1), (32, 1), (4, 4)]);
}

#[test]
fn unsupported_instructions_are_all_named_before_anything_runs() {
    let body = with_addresses("st.global.u32 [%rd4], 1;\nfoo.bar %r1;\nadd.unknown.u32 %r1, %r1, 1;\nret;");
    let outcome = execute(&body, 1, 32);
    let Err(RunError::Unsupported(list)) = &outcome.result else { panic!("{:?}", outcome.result) };
    assert_eq!(list.iter().map(|item| item.line).collect::<Vec<_>>(), [22, 23]);
    assert!(!outcome.memory.is_written(outcome.b, 0));
}

#[test]
fn arguments_are_checked() {
    let module = Module::parse(&format!("{HEADER}ret;\n}}\n")).unwrap_or_else(|error| panic!("{error}"));
    let launch = Launch {
        kernel: "k".to_string(),
        grid: [1, 1, 1],
        block: [32, 1, 1],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: 0,
        args: vec![Arg::Bytes(vec![0; 4]), Arg::Bytes(vec![0; 8])],
    };
    let result = run(&module, &launch, &mut Memory::new(), &Options::default());
    let Err(RunError::BadLaunch(message)) = result else { panic!("{result:?}") };
    assert_eq!(message, "argument `a`: expected 8 B, got 4 B");
}

#[test]
fn a_store_after_the_last_variable_is_out_of_bounds() {
    let text = |words: u32| {
        format!(
            ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k()\n{{\n.reg .b32 %r<4>;\n\
             .shared .align 4 .b8 part[{}];\nmov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 2;\nmov.u32 %r3, part;\n\
             add.u32 %r2, %r2, %r3;\nst.shared.u32 [%r2], %r1;\nret;\n}}\n",
            words * 4
        )
    };
    let run_of = |words: u32| {
        let module = Module::parse(&text(words)).expect("it is PTX");
        let launch = Launch {
            kernel: "k".to_string(),
            grid: [1, 1, 1],
            block: [6, 1, 1],
            cluster: [1; 3],
            overlaps_previous: false,
            dynamic_shared_bytes: 0,
            args: Vec::new(),
        };
        run(&module, &launch, &mut Memory::new(), &Options::default())
    };
    assert!(run_of(6).is_ok());
    let Err(RunError::Fault(fault)) = run_of(5) else { panic!("the kernel ran to its end") };
    assert_eq!((fault.kind, fault.lanes), (FaultKind::OutOfBounds, 1 << 5));
    assert!(
        fault.message.contains("the access at `part` + 20 extends 4 B past the end (size 20 B)"),
        "{}",
        fault.message
    );
}

#[test]
fn a_plain_store_races_with_atomics_of_other_lanes() {
    let body = "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [tile], 0;\natom.shared.add.u32 %r5, [tile], 1;\n\
                bar.warp.sync -1;\nret;";
    let fault = fault(&with_addresses(body), 32);
    assert_eq!((fault.kind, fault.at.ptx_line), (FaultKind::Race, 23));
    assert_eq!(fault.related.map(|place| place.ptx_line), Some(22));
    assert!(fault.message.contains("are not ordered by a barrier or by a flag"), "{}", fault.message);
}

#[test]
fn a_plain_load_races_with_atomics_of_other_lanes() {
    let start = "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [tile], 0;\nbar.warp.sync -1;\n\
                 atom.shared.add.u32 %r5, [tile], 1;\n";
    let race =
        fault(&with_addresses(&format!("{start}ld.shared.u32 %r6, [tile];\nst.global.u32 [%rd4], %r6;\nret;")), 32);
    assert_eq!((race.kind, race.at.ptx_line), (FaultKind::Race, 25));
    assert_eq!(race.related.map(|place| place.ptx_line), Some(24));
    let end = "bar.warp.sync -1;\nld.shared.u32 %r6, [tile];\nst.global.u32 [%rd4], %r6;\nret;";
    let outcome = execute(&with_addresses(&format!("{start}{end}")), 1, 32);
    report(&outcome);
    assert_eq!(words(&outcome, outcome.b)[..32], [32; 32]);
}

#[test]
fn the_active_mask_has_the_lanes_that_execute_it() {
    let body = "setp.lt.u32 %p1, %r1, 10;\nmov.u32 %r5, 0;\n@%p1 activemask.b32 %r5;\nst.global.u32 [%rd4], %r5;\nret;";
    let outcome = execute(&with_addresses(body), 1, 32);
    report(&outcome);
    let found = words(&outcome, outcome.b);
    assert_eq!((found[0], found[31]), (1023, 0));
}

#[test]
fn an_address_far_from_every_buffer_has_no_location() {
    let fault = fault(&with_addresses("mov.u64 %rd6, 64;\nst.global.u32 [%rd6], %r1;\nret;"), 32);
    assert_eq!((fault.kind, fault.address, fault.location), (FaultKind::OutOfBounds, Some(64), None));
}

/// The error of launching the kernel `k` of `text`, which has no parameters.
fn refusal(text: &str) -> RunError {
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let launch = Launch {
        kernel: "k".to_string(),
        grid: [1; 3],
        block: [32, 1, 1],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: 0,
        args: Vec::new(),
    };
    match run(&module, &launch, &mut Memory::new(), &Options::default()) {
        Ok(_) => panic!("the kernel ran to its end"),
        Err(error) => error,
    }
}

fn unsupported_lines(text: &str) -> Vec<u32> {
    match refusal(text) {
        RunError::Unsupported(list) => list.iter().map(|item| item.line).collect(),
        error => panic!("{error}"),
    }
}

#[test]
fn a_kernel_may_require_a_cluster() {
    let text = ".entry k()\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n.maxclusterrank 8\n{\nret;\n}\n";
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let of = |cluster: [u32; 3]| {
        let (kernel, grid, block) = ("k".to_string(), [2, 1, 1], [32, 1, 1]);
        let launch = Launch {
            kernel,
            grid,
            block,
            cluster,
            overlaps_previous: false,
            dynamic_shared_bytes: 0,
            args: Vec::new(),
        };
        run(&module, &launch, &mut Memory::new(), &Options::default()).map(|_| ())
    };
    assert!(of([2, 1, 1]).is_ok());
    let refused = of([1, 1, 1]).unwrap_err().to_string();
    assert!(
        refused.ends_with("the cluster is [1, 1, 1], but the kernel has .reqnctapercluster [2, 1, 1]"),
        "{refused}"
    );
}

#[test]
fn targets_and_wide_registers_must_be_declared() {
    assert_eq!(unsupported_lines(".entry k()\n{\n.reg .b32 L1;\nbra L1;\nret;\n}\n"), [4]);
    let narrow = ".entry k()\n{\n.reg .b64 %rd<2>;\n.shared .align 16 .b8 s[16];\n\
                  ld.shared.b128 %rd1, [s];\nst.shared.b128 [s], %rd1;\nret;\n}\n";
    assert_eq!(unsupported_lines(narrow), [5, 6]);
}

#[test]
fn huge_memories_are_bad_launches() {
    let bodies = [
        ".shared .b8 s[2147483648];\n.shared .b8 t[2147483647];\n.shared .align 1024 .b8 u[64];\n\
         .reg .b32 %r<2>;\nmov.u32 %r1, u;\nret;",
        ".local .b8 s[2147483648];\n.local .b8 t[2147483648];\nret;",
        ".local .b8 s[524289];\nret;",
    ];
    for body in bodies {
        let error = refusal(&format!(".entry k()\n{{\n{body}\n}}\n"));
        assert!(matches!(error, RunError::BadLaunch(_)), "{error}");
    }
    let text = ".entry k(.param .align 8 .b8 p[2147483648], .param .align 8 .b8 q[2147483648])\n{\nret;\n}\n";
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let args = vec![Arg::Bytes(vec![0; 4]), Arg::Bytes(vec![0; 4])];
    let launch = Launch {
        kernel: "k".to_string(),
        grid: [1; 3],
        block: [32, 1, 1],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: 0,
        args,
    };
    let result = run(&module, &launch, &mut Memory::new(), &Options::default());
    assert!(matches!(result, Err(RunError::BadLaunch(_))), "{result:?}");
}

#[test]
fn packed_integers_and_finite_conversions() {
    let body = "mov.b32 %r5, 0x0001ffff;\nmov.b32 %r6, 0x00010001;\nadd.u16x2 %r7, %r5, %r6;\n\
                max.s16x2 %r8, %r5, %r6;\nmov.f32 %f1, 0f7F800000;\ncvt.rn.satfinite.f16.f32 %h1, %f1;\n\
                cvt.u32.u16 %r9, %h1;\nst.global.v2.u32 [%rd2], {%r7, %r8};\nst.global.u32 [%rd2+8], %r9;\nret;";
    let outcome = execute(&with_addresses(body), 1, 1);
    report(&outcome);
    assert_eq!(words(&outcome, outcome.b)[..3], [0x0002_0000, 0x0001_0001, 0x7bff]);
}
