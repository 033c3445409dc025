//! Mechanical changes of a PTX text: at every site, one at a time, a barrier, fence, wait, commit or arrival is dropped, a
//! parity flipped, a count changed by one step, an order or a scope weakened. A virtual GPU that knows the rules finds them.

use std::collections::BTreeMap;

use tilewright::vgpu::launch_file::LaunchFile;
use tilewright::vgpu::{Module, Options, RunError, run};

/// A changed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// What kind of change it is.
    pub operator: &'static str,
    /// 1-based line.
    pub line: usize,
    /// The instruction as it was.
    pub instruction: String,
    /// The whole text with the change.
    pub text: String,
}

/// How a mutant ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A fault of this kind, or an error before it started.
    Fault(&'static str),
    /// All ran, and a result was wrong.
    Wrong,
    /// Nothing was found in any schedule.
    Survived,
}

/// Instructions that are dropped.
const DROPPED: [(&str, &str); 23] = [
    ("bar.sync", "drop barrier"),
    ("barrier.sync", "drop barrier"),
    ("bar.warp.sync", "drop warp barrier"),
    ("fence", "drop fence"),
    ("membar", "drop fence"),
    ("cp.async.wait_", "drop wait"),
    ("cp.async.bulk.wait_group", "drop wait"),
    ("cp.async.commit_group", "drop commit"),
    ("cp.async.bulk.commit_group", "drop commit"),
    ("mbarrier.arrive", "drop arrival"),
    ("cp.async.mbarrier.arrive", "drop arrival"),
    ("mbarrier.init", "drop init"),
    ("barrier.cluster.arrive", "drop barrier"),
    ("barrier.cluster.wait", "drop barrier"),
    ("tcgen05.fence", "drop fence"),
    ("tcgen05.wait", "drop wait"),
    ("tcgen05.commit", "drop commit"),
    ("tcgen05.alloc", "drop allocation"),
    ("tcgen05.dealloc", "drop deallocation"),
    ("wgmma.fence", "drop fence"),
    ("wgmma.commit_group", "drop commit"),
    ("wgmma.wait_group", "drop wait"),
    ("griddepcontrol.wait", "drop wait"),
];

/// Fields of the descriptor of a matrix, by the lowest bit of a step: start address, stride offset and swizzle.
const MATRIX_FIELDS: [(u32, &str); 3] =
    [(0, "change start address"), (32, "change stride offset"), (62, "change swizzle")];

/// Fields of the instruction descriptor of `tcgen05.mma`: types of D, A and B, directions of A and B, N and M.
const INSTRUCTION_FIELDS: [(u32, &str); 7] = [
    (4, "change type"),
    (7, "change type"),
    (10, "change type"),
    (15, "change direction"),
    (16, "change direction"),
    (17, "change shape"),
    (24, "change shape"),
];

/// Words of an opcode that are weakened.
const WEAKENED: [(&str, &str, &str); 5] = [
    (".acquire", ".relaxed", "weaken order"),
    (".release", ".relaxed", "weaken order"),
    (".acq_rel.gpu.", ".relaxed.gpu.", "weaken order"),
    (".gpu", ".cta", "narrow scope"),
    (".sys", ".cta", "narrow scope"),
];

/// All changes of a text, by line. Only lines that hold one instruction are changed.
pub fn mutants(ptx: &str) -> Vec<Mutant> {
    let lines: Vec<&str> = ptx.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let instruction = line.trim();
        if instruction.matches(';').count() != 1 || !instruction.ends_with(';') {
            continue;
        }
        for (operator, new) in changes(instruction) {
            let mut changed = lines.clone();
            changed[at] = &new;
            let text = changed.join("\n") + "\n";
            found.push(Mutant { operator, line: at + 1, instruction: instruction.to_string(), text });
        }
    }
    found
}

/// The guard and the rest of an instruction.
fn split_guard(instruction: &str) -> (&str, &str) {
    match instruction.starts_with('@').then(|| instruction.split_once(char::is_whitespace)).flatten() {
        Some((guard, rest)) => (guard, rest.trim_start()),
        None => ("", instruction),
    }
}

fn changes(instruction: &str) -> Vec<(&'static str, String)> {
    let (guard, rest) = split_guard(instruction);
    let (opcode, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest.trim_end_matches(';'), ""));
    let operands = operands.trim().trim_end_matches(';');
    let mut found = Vec::new();
    if let Some((_, operator)) = DROPPED.iter().find(|(prefix, _)| opcode.starts_with(prefix)) {
        found.push((*operator, String::new()));
    }
    let parts: Vec<&str> = operands.split(',').map(str::trim).collect();
    let with = |parts: &[String]| format!("{guard} {opcode} {};", parts.join(", "));
    let replaced = |at: usize, new: String| {
        let mut all: Vec<String> = parts.iter().map(|part| part.to_string()).collect();
        all[at] = new;
        all
    };
    // A number is changed in place, a register by an addition before the instruction.
    let added = |at: usize, step: i64| match parts[at].parse::<i64>() {
        Ok(value) => with(&replaced(at, (value + step).to_string())),
        Err(_) => {
            let changed = with(&replaced(at, "%mutated".to_string()));
            format!("{{ .reg .b32 %mutated; add.s32 %mutated, {}, {step}; {changed} }}", parts[at])
        }
    };
    if opcode.starts_with("mbarrier.try_wait") || opcode.starts_with("mbarrier.test_wait") {
        found.push(("drop wait", format!("{guard} setp.eq.u32 {}, 0, 0;", parts[0])));
        if opcode.contains(".parity") {
            let changed = with(&replaced(2, "%mutated".to_string()));
            let flipped = format!("{{ .reg .b32 %mutated; xor.b32 %mutated, {}, 1; {changed} }}", parts[2]);
            found.push(("flip parity", flipped));
        }
    }
    let exclusive = |at: usize, bits: u32, field: u32| {
        let changed = with(&replaced(at, "%mutated".to_string()));
        let (register, step) = (format!(".b{bits} %mutated"), 1u64 << field);
        format!("{{ .reg {register}; xor.b{bits} %mutated, {}, {step}; {changed} }}", parts[at])
    };
    if opcode.starts_with("tcgen05.mma") || opcode.starts_with("wgmma.mma_async") {
        for at in (0..parts.len()).filter(|at| parts[*at].starts_with("%rd")) {
            found.extend(MATRIX_FIELDS.map(|(field, operator)| (operator, exclusive(at, 64, field))));
        }
    }
    if opcode.starts_with("tcgen05.mma") {
        found.extend(INSTRUCTION_FIELDS.map(|(field, operator)| (operator, exclusive(3, 32, field))));
    }
    if opcode.starts_with("tcgen05.dealloc") {
        found.push(("fewer columns", added(1, -32)));
    }
    let waits = ["cp.async.wait_group", "cp.async.bulk.wait_group", "wgmma.wait_group"];
    if waits.iter().any(|wait| opcode.starts_with(wait)) {
        found.push(("wait for one group less", added(0, 1)));
    }
    if opcode.starts_with("mbarrier.init") {
        found.push(("one arrival more", added(1, 1)));
        if parts[1] != "1" {
            found.push(("one arrival less", added(1, -1)));
        }
    }
    if opcode.contains("expect_tx") {
        let last = parts.len() - 1;
        found.push(("more bytes", added(last, 16)));
        found.push(("fewer bytes", added(last, -16)));
    }
    for (from, to, operator) in WEAKENED {
        let synchronizes =
            ["ld.", "st.", "atom.", "red.", "fence.", "mbarrier."].iter().any(|start| opcode.starts_with(start));
        if synchronizes && opcode.contains(from) && !opcode.contains("mbarrier_init") {
            let weakened = opcode.replacen(from, to, 1);
            // A fence cannot be relaxed.
            if !(opcode.starts_with("fence") && to == ".relaxed") {
                found.push((operator, format!("{guard} {weakened} {operands};")));
            }
        }
    }
    found
}

/// A run with a seed: whether the results are right, or what went wrong.
pub type Attempt<'a> = &'a dyn Fn(&Module, u64) -> Result<bool, RunError>;

/// Runs a mutant in several schedules, up to the first that finds it.
pub fn ending(mutant: &Mutant, schedules: u64, attempt: Attempt<'_>) -> Ending {
    let Ok(module) = Module::parse(&mutant.text) else { return Ending::Fault("syntax") };
    for seed in 0..schedules {
        match attempt(&module, seed) {
            Ok(true) => {}
            Ok(false) => return Ending::Wrong,
            Err(RunError::Fault(fault)) => return Ending::Fault(fault.kind.as_str()),
            Err(RunError::Unsupported(_)) => return Ending::Fault("unsupported"),
            Err(RunError::BadLaunch(_)) => return Ending::Fault("bad launch"),
        }
    }
    Ending::Survived
}

/// Runs the launches of a file. A byte that is expected and was never written is a wrong result.
///
/// # Errors
/// The first fault.
pub fn run_launches(module: &Module, file: &LaunchFile, options: &Options) -> Result<bool, RunError> {
    let mut memory = file.memory.clone();
    let options = file.options(options.clone());
    file.launches.iter().try_for_each(|launch| run(module, launch, &mut memory, &options).map(|_| ()))?;
    Ok(file.unwritten(&memory).is_none() && file.difference(&memory).is_none())
}

/// How the mutants of each operator ended.
#[derive(Clone, Debug, Default)]
pub struct MutationReport {
    /// The number of mutants by operator, and by fault kind, `wrong result` or `survived`.
    pub endings: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    /// The mutants that nothing found: operator, line and instruction.
    pub survivors: Vec<(&'static str, usize, String)>,
}

impl MutationReport {
    /// Counts a mutant.
    pub fn add(&mut self, mutant: &Mutant, ending: &Ending) {
        let name = match ending {
            Ending::Fault(kind) => kind,
            Ending::Wrong => "wrong result",
            Ending::Survived => "survived",
        };
        *self.endings.entry(mutant.operator).or_default().entry(name).or_default() += 1;
        if *ending == Ending::Survived {
            self.survivors.push((mutant.operator, mutant.line, mutant.instruction.clone()));
        }
    }

    /// Number of mutants.
    pub fn mutants(&self) -> u64 {
        self.endings.values().flat_map(BTreeMap::values).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operators(instruction: &str) -> Vec<(&'static str, String)> {
        let text = format!(".version 8.0\n\t{instruction}\n");
        let line = |mutant: &Mutant| mutant.text.lines().nth(1).unwrap_or_default().trim().to_string();
        mutants(&text).iter().map(|mutant| (mutant.operator, line(mutant))).collect()
    }

    #[test]
    fn each_instruction_has_its_changes() {
        assert_eq!(operators("bar.sync 0;"), [("drop barrier", String::new())]);
        assert_eq!(
            operators("cp.async.wait_group 1;"),
            [("drop wait", String::new()), ("wait for one group less", "cp.async.wait_group 2;".to_string())]
        );
        let waits = operators("mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;");
        assert_eq!(waits[0], ("drop wait", "setp.eq.u32 %p1, 0, 0;".to_string()));
        assert_eq!(
            waits[1].1,
            "{ .reg .b32 %mutated; xor.b32 %mutated, %r2, 1;  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %mutated; }"
        );
        let expects = operators("@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 1024;");
        assert_eq!(
            expects[1],
            ("more bytes", "@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 1040;".to_string())
        );
        assert_eq!(operators("st.release.gpu.global.u32 [%rd1], 1;").len(), 2);
        assert!(operators("add.s32 %r1, %r1, 1;").is_empty());
    }
}
