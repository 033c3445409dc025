//! Every kind of fault is detected in mutated kernels: a line of correct PTX is changed, and the kind and the line of
//! the fault are checked.

use tilewright::compile::Artifact;
use tilewright::prelude::Target;
use tilewright::runtime::{Built, CudaText};
use tilewright::vgpu::{Arg, Fault, FaultKind, Launch, Memory, Module, Options, RunError, run};
use tilewright_tests::cases::{Case, MUTATED, all};
use tilewright_tests::toolchain::toolchain;

struct Subject {
    case: Case,
    artifact: Artifact,
    built: Built,
}

fn subjects() -> Vec<Subject> {
    let toolchain = toolchain();
    let mut all = all();
    MUTATED
        .iter()
        .map(|name| {
            let at = all.iter().position(|case| case.name == *name).expect("a case of this name");
            let case = all.swap_remove(at);
            let artifact = case.compile(Target::Sm100a).expect("the case compiles");
            // Their PTX is committed, so this needs no NVRTC.
            let built = toolchain.build(&artifact, &CudaText::Generated).expect("NVRTC, or committed PTX");
            Subject { case, artifact, built }
        })
        .collect()
}

/// Runs modified PTX with a subject's inputs.
fn run_ptx(subject: &Subject, ptx: &str) -> Option<Fault> {
    let module = Module::parse(ptx).unwrap_or_else(|e| panic!("{}: {e}\n{ptx}", subject.case.name));
    let mut memory = Memory::new();
    let mut inputs = subject.case.inputs.iter();
    let args = subject.artifact.parameters().iter().map(|parameter| {
        let buffer = if parameter.is_output() {
            memory.allocate_poison(&parameter.name, (parameter.memory_elements() * parameter.dtype.bytes()) as usize)
        } else {
            memory.allocate_read_only(&parameter.name, inputs.next().expect("an input").bytes().to_vec())
        };
        Arg::Buffer { buffer, byte_offset: 0 }
    });
    let launch = Launch {
        kernel: subject.artifact.entry().to_string(),
        grid: subject.artifact.grid().map(|n| n as u32),
        block: [subject.artifact.threads() as u32, 1, 1],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: subject.artifact.dynamic_shared_bytes() as u32,
        args: args.collect(),
    };
    match run(&module, &launch, &mut memory, &Options::default()) {
        Ok(_) => None,
        Err(RunError::Fault(fault)) => Some(*fault),
        Err(other) => panic!("{}: {other}", subject.case.name),
    }
}

/// A line of PTX, from 1, and its text.
type Line<'a> = (u32, &'a str);

fn lines<'a>(ptx: &'a str, wanted: impl Fn(&str) -> bool) -> Vec<Line<'a>> {
    (1..).zip(ptx.lines()).filter(|(_, line)| wanted(line.trim())).collect()
}

fn is_barrier(line: &str) -> bool {
    line.starts_with("bar.")
}

/// The text with one line replaced; line numbers stay.
fn with_line(ptx: &str, number: u32, text: &str) -> String {
    let all: Vec<&str> = ptx.lines().collect();
    let changed = all.iter().enumerate().map(|(at, line)| if at as u32 + 1 == number { text } else { line });
    changed.collect::<Vec<_>>().join("\n") + "\n"
}

/// A memory operand `[%r1]` or `[%r1+8]`, moved by `bytes`.
fn moved(line: &str, bytes: i64) -> String {
    let (open, close) = (line.find('[').expect("an address"), line.find(']').expect("an address"));
    let inside = &line[open + 1..close];
    let (base, offset) = match inside.split_once('+') {
        Some((base, offset)) => (base, offset.parse::<i64>().expect("a number")),
        None => (inside, 0),
    };
    format!("{}[{base}+{}]{}", &line[..open], offset + bytes, &line[close + 1..])
}

/// Runs every subject with PTX changed by `mutate`, which also returns the line at which the fault must occur.
fn assert_fires(kind: FaultKind, mutate: impl Fn(&str) -> Option<(String, Option<u32>)>) {
    let mut fired = 0;
    for subject in subjects() {
        assert!(run_ptx(&subject, &subject.built.ptx).is_none(), "{} is correct without a change", subject.case.name);
        let Some((mutated, line)) = mutate(&subject.built.ptx) else { continue };
        let fault = run_ptx(&subject, &mutated).unwrap_or_else(|| panic!("{}: no fault", subject.case.name));
        assert_eq!(fault.kind, kind, "{}: {fault}", subject.case.name);
        if let Some(line) = line {
            assert_eq!(fault.at.ptx_line, line, "{}: {fault}", subject.case.name);
        }
        assert!(fault.at.cuda.is_some(), "{}: the fault has a CUDA line", subject.case.name);
        fired += 1;
    }
    assert!(fired >= 3, "{} fired on only {fired} kernels", kind.as_str());
}

#[test]
fn out_of_bounds() {
    assert_fires(FaultKind::OutOfBounds, |ptx| {
        let (number, line) = *lines(ptx, |l| l.starts_with("st.global")).last()?;
        Some((with_line(ptx, number, &moved(line, 1 << 20)), Some(number)))
    });
}

#[test]
fn misaligned() {
    assert_fires(FaultKind::Misaligned, |ptx| {
        let (number, line) = *lines(ptx, |l| l.starts_with("st.shared")).first()?;
        Some((with_line(ptx, number, &moved(line, 2)), Some(number)))
    });
}

#[test]
fn uninitialized_read() {
    assert_fires(FaultKind::UninitializedRead, |ptx| {
        let stores = lines(ptx, |l| l.starts_with("st.shared"));
        let mutated = stores.iter().fold(ptx.to_string(), |text, (number, _)| with_line(&text, *number, ""));
        // The load whose bits reach the output may be the first one or a later one.
        Some((mutated, None))
    });
}

/// Without the warp barriers, or the last CTA barrier, an access to another thread's data is a race; the fault names
/// both instructions.
#[test]
fn race() {
    let unordered = |ptx: &str| {
        let of_cta = lines(ptx, |line| line.starts_with("bar.sync"));
        let removed = if of_cta.is_empty() { lines(ptx, is_barrier) } else { vec![*of_cta.last()?] };
        Some((removed.iter().fold(ptx.to_string(), |text, (number, _)| with_line(&text, *number, "")), None))
    };
    assert_fires(FaultKind::Race, unordered);
    for subject in subjects() {
        let ptx = &subject.built.ptx;
        let (mutated, _) = unordered(ptx).expect("a barrier");
        let fault = run_ptx(&subject, &mutated).expect("a race");
        let other = fault.related.expect("the other access");
        let shared = |line: u32| ptx.lines().nth(line as usize - 1).is_some_and(|text| text.contains(".shared"));
        assert!(shared(fault.at.ptx_line) && shared(other.ptx_line), "{}", subject.case.name);
        assert!(other.cuda.is_some(), "{}: both accesses have a CUDA line", subject.case.name);
    }
}

/// A memory operand with its brackets.
fn address(line: &str) -> &str {
    let (open, close) = (line.find('[').expect("an address"), line.find(']').expect("an address"));
    &line[open..=close]
}

/// A store to the address from which the input was loaded.
#[test]
fn read_only() {
    assert_fires(FaultKind::ReadOnly, |ptx| {
        let (_, load) = *lines(ptx, |l| l.starts_with("ld.global")).first()?;
        let (number, store) = *lines(ptx, |l| l.starts_with("st.global")).first()?;
        Some((with_line(ptx, number, &store.replace(address(store), address(load))), Some(number)))
    });
}

/// Lane 0 waits for lane 1, which waits for the whole warp at another barrier.
#[test]
fn deadlock() {
    let crossed = "{ .reg .pred %alone; .reg .b32 %who; mov.u32 %who, %tid.x; setp.eq.u32 %alone, %who, 0; \
                   @%alone bar.warp.sync 3; @!%alone bar.warp.sync -1; }";
    let mutate = |ptx: &str| {
        let (number, _) = *lines(ptx, is_barrier).first()?;
        Some((with_line(ptx, number, crossed), None))
    };
    assert_fires(FaultKind::Deadlock, mutate);
    for subject in subjects() {
        let ptx = &subject.built.ptx;
        let (number, _) = lines(ptx, is_barrier)[0];
        let fault = run_ptx(&subject, &with_line(ptx, number, crossed)).expect("a deadlock");
        assert!(fault.waiting.iter().any(|w| w.at.ptx_line == number), "{}: {fault}", subject.case.name);
    }
}

/// Lane 0 alone executes an aligned barrier.
#[test]
fn divergent_aligned() {
    assert_fires(FaultKind::DivergentAligned, |ptx| {
        let (number, _) = *lines(ptx, is_barrier).first()?;
        let alone = "{ .reg .pred %alone; .reg .b32 %who; mov.u32 %who, %tid.x; setp.eq.u32 %alone, %who, 0; @%alone bar.sync 0; }";
        Some((with_line(ptx, number, alone), Some(number)))
    });
}
