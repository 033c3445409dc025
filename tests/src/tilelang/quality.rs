//! Compares our layouts with those of the reference and of a witness: register slots, copies, and vector widths of
//! memory accesses.

use std::collections::BTreeMap;
use std::fmt;

use tilewright::infer::Inferred;
use tilewright::ir::plan::OpPlan;
use tilewright::layout::access::AccessKind;

use super::assignment::{Assignment, Placement};
use super::case::{Case, Class};
use super::program::{Program, Scope};

/// Our layouts compared with the reference's, if both accept and the reference is correct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Register slots of a thread over all fragments, without views: ours and the reference's.
    pub slots: (i64, i64),
    /// Vector widths for tensors and tiles in memory that both read, or both write.
    pub widths: Vec<Width>,
}

/// The width of the narrowest access to a buffer in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Width {
    /// The buffer.
    pub buffer: String,
    /// Whether it is written.
    pub writes: bool,
    /// The number of elements that a thread moves at once with our layouts.
    pub ours: i64,
    /// The number of elements that a thread moves at once with the reference's.
    pub theirs: i64,
}

/// The width of the narrowest access, by buffer and whether it writes.
type Narrowest<'a> = BTreeMap<(&'a str, bool), i64>;

impl Comparison {
    /// Returns no comparison if the reference refuses, or if its answer is wrong.
    pub(crate) fn of(case: &Case, answer: &Assignment, inferred: &Inferred, plans: &[OpPlan]) -> Option<Comparison> {
        let is_right = case.verdict.class == Class::AcceptsSound && case.expected.accepted;
        let theirs = case.expected.register_slots.filter(|_| is_right)?;
        let ours = narrowest(&case.program, inferred, plans);
        let mut widths = Vec::new();
        for ((buffer, writes), theirs) in narrowest_expected(case) {
            if let Some(ours) = ours.get(&(buffer, writes)) {
                widths.push(Width { buffer: buffer.to_string(), writes, ours: *ours, theirs });
            }
        }
        Some(Comparison { slots: (all_slots(&case.program, answer), theirs), widths })
    }

    /// Whether our layouts need no more registers, and no access moves fewer elements.
    pub fn is_no_worse(&self) -> bool {
        self.slots.0 <= self.slots.1 && self.widths.iter().all(Width::is_no_worse)
    }
}

impl Width {
    fn is_no_worse(&self) -> bool {
        self.ours >= self.theirs
    }
}

/// Lists what is worse.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ours, theirs) = self.slots;
        let mut worse = Vec::new();
        if ours > theirs {
            worse.push(format!("{ours} register slots, the reference {theirs}"));
        }
        for Width { buffer, writes, ours, theirs } in self.widths.iter().filter(|width| !width.is_no_worse()) {
            let verb = if *writes { "writes" } else { "reads" };
            worse.push(format!("{verb} {ours} of `{buffer}` at once, the reference {theirs}"));
        }
        write!(f, "{}", worse.join("; "))
    }
}

/// From inference for loops and for ops on fragments, from plans for ops on memory, which choose threads and vectors themselves.
fn narrowest<'a>(program: &'a Program, inferred: &Inferred, plans: &[OpPlan]) -> Narrowest<'a> {
    let mut narrowest = Narrowest::new();
    let mut add = |buffer: &'a str, writes: bool, width: i64| {
        let least = narrowest.entry((buffer, writes)).or_insert(i64::MAX);
        *least = (*least).min(width);
    };
    // Kernels declare the buffers in the order of the program.
    let buffers = || program.params.iter().chain(&program.buffers);
    for access in &inferred.accesses {
        if let Some(told) = buffers().nth(access.buffer.index()) {
            add(told.name.as_str(), access.writes, access.widths.0 as i64);
        }
    }
    let of_ops = plans.iter().filter(|plan| plan.parallel.is_none()).filter_map(OpPlan::facts);
    for access in of_ops.flat_map(|facts| &facts.accesses) {
        let told = buffers().find(|buffer| buffer.name == access.operand);
        if let Some((told, bits)) = told.and_then(|buffer| Some((buffer, buffer.bits()?))) {
            add(told.name.as_str(), access.kind == AccessKind::Store, access.width * 8 / bits);
        }
    }
    narrowest
}

fn narrowest_expected(case: &Case) -> Narrowest<'_> {
    let mut narrowest = Narrowest::new();
    for access in &case.expected.accesses {
        let Some(lanes) = access.lanes else { continue };
        let least = narrowest.entry((access.buffer.as_str(), access.kind == "store")).or_insert(i64::MAX);
        *least = (*least).min(lanes);
    }
    narrowest
}

/// The fragments of a program that are not views.
fn fragments(program: &Program) -> impl Iterator<Item = &str> {
    let owners = program.buffers.iter().filter(|buffer| buffer.scope == Scope::Fragment && buffer.alias_of.is_none());
    owners.map(|buffer| buffer.name.as_str())
}

fn all_slots(program: &Program, answer: &Assignment) -> i64 {
    fragments(program).filter_map(|name| answer.buffers.get(name)).map(slots).sum()
}

/// The number of slots of a thread: one more than the greatest, as the reference counts them.
fn slots(placement: &Placement) -> i64 {
    placement.owners.iter().flatten().map(|(_, slot)| slot + 1).max().unwrap_or(0)
}

/// The least number of threads that hold an element.
fn least_copies(placement: &Placement) -> usize {
    let copies = |owners: &Vec<(i64, i64)>| {
        let mut threads: Vec<i64> = owners.iter().map(|(thread, _)| *thread).collect();
        threads.dedup();
        threads.len()
    };
    placement.owners.iter().map(copies).min().unwrap_or(0)
}

/// Whether every thread of the block holds every element of a fragment with several elements.
fn is_everywhere(placement: &Placement, threads: i64) -> bool {
    threads > 1 && placement.owners.len() > 1 && least_copies(placement) as i64 == threads
}

/// Returns an error if the answer is worse than the witness of a case: more register slots, or a fragment that is fully
/// replicated only in the answer.
///
/// A fragment is fully replicated if every thread holds every element, which costs each thread a register per element.
/// A single element costs one register in any case, so a fragment of one element need only be on one thread if the
/// witness has it on one.
pub(crate) fn worse_than_witness(case: &Case, answer: &Assignment) -> Result<(), String> {
    let Some(witness) = &case.witness else { return Ok(()) };
    let witness = Assignment::of_layouts(witness).map_err(|why| format!("the witness: {why}"))?;
    let threads = case.program.threads;
    let (mut ours, mut theirs) = (0, 0);
    for name in fragments(&case.program) {
        let (Some(here), Some(there)) = (answer.buffers.get(name), witness.buffers.get(name)) else { continue };
        ours += slots(here);
        theirs += slots(there);
        let is_alone = here.owners.len() == 1 && least_copies(there) == 1;
        let is_whole = is_alone && threads > 1 && least_copies(here) as i64 == threads;
        if is_whole || (is_everywhere(here, threads) && !is_everywhere(there, threads)) {
            return Err(format!("every thread has all of `{name}`, unlike in the witness"));
        }
    }
    if ours > theirs { Err(format!("{ours} register slots, but the witness has {theirs}")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::read_case;
    use super::*;

    fn case(name: &str) -> Case {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/tilelang"));
        read_case(&std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap()).unwrap()
    }

    fn placement(owners: Vec<Vec<(i64, i64)>>) -> Placement {
        Placement { shape: vec![owners.len() as i64], owners }
    }

    #[test]
    fn slots_are_counted_as_the_reference_does() {
        for name in ["red_row_8x32_t64", "maint_reduce_broadcast_128x256_t256_io_aware", "al_view_f32_as_f16"] {
            let case = case(name);
            let answer = Assignment::of_expected(&case.program, &case.expected).unwrap();
            assert_eq!(Some(all_slots(&case.program, &answer)), case.expected.register_slots, "{name}");
        }
    }

    #[test]
    fn a_fragment_on_every_thread_is_replicated() {
        let pairs = |threads: i64| placement((0..2).map(|slot| (0..threads).map(|t| (t, slot)).collect()).collect());
        assert!(is_everywhere(&pairs(32), 32) && !is_everywhere(&pairs(31), 32));
        assert!(!is_everywhere(&placement(vec![(0..32).map(|t| (t, 0)).collect()]), 32));
        assert!(!is_everywhere(&pairs(1), 1));
    }

    #[test]
    fn a_witness_is_no_worse_than_itself_and_everything_everywhere_is() {
        let case = case("rej_write_shifted");
        let mut answer = Assignment::of_layouts(case.witness.as_ref().unwrap()).unwrap();
        assert_eq!(worse_than_witness(&case, &answer), Ok(()));
        let shape = answer.buffers["a"].shape.clone();
        let owners = (0..64).map(|element| (0..case.program.threads).map(|t| (t, element)).collect()).collect();
        answer.buffers.insert("a".to_string(), Placement { shape, owners });
        let why = worse_than_witness(&case, &answer).unwrap_err();
        assert_eq!(why, "every thread has all of `a`, unlike in the witness");
    }

    #[test]
    fn what_is_worse_is_said() {
        let width = |buffer: &str, ours| Width { buffer: buffer.to_string(), writes: false, ours, theirs: 4 };
        let comparison = Comparison { slots: (9, 8), widths: vec![width("A", 4), width("S", 1)] };
        assert!(!comparison.is_no_worse());
        let text = comparison.to_string();
        assert_eq!(text, "9 register slots, the reference 8; reads 1 of `S` at once, the reference 4");
        assert!(Comparison { slots: (8, 8), widths: vec![width("A", 8)] }.is_no_worse());
    }
}
