//! Conversion of register fragments: the cheapest plan that turns the registers of one fragment of a tile into those of
//! another.
//!
//! There are four kinds of plan. *Nothing*: every register already holds the right element. *Renaming*: every element
//! stays on its thread. *Shuffles*: every element stays in its warp, and moves by `shfl.sync`, one 32-bit word per lane
//! in each step (PTX ISA, "Data Movement and Conversion Instructions: shfl.sync"). *Staging*: through shared memory. A
//! plan is data: [`Conversion::execute`] runs it on a table, a viewer steps through it, and lowering can emit it.
//!
//! Words: a fragment's register index counts elements. Elements of 1 to 16 bits share 32-bit words: `32 / bits`
//! consecutive register indices, aligned, are one word, and its elements travel together. Byte permutes put whole bytes
//! into words; elements of 1, 2 or 4 bits that leave their byte, or change places in it, take shifts and masks. An
//! element of 64 or 128 bits takes two or four shuffles and selects where one of 32 bits takes one.
//!
//! Shuffles are planned in one hop: each lane gets every element straight from a lane that has it. Three schedules are
//! tried and the cheapest is used: one XOR mask in each step; the fewest steps, by edge colouring; and one word of `a`
//! for one word of `b` in each step, which needs no selects. Elements that stay on their thread need no step.

mod colouring;
mod cost;
mod display;
mod execute;
mod job;
mod json;
mod needs;
mod placement;
mod renaming;
mod schedule;
mod shuffle;
mod staging;
mod table;
mod vectors;

pub use cost::{Barrier, Cost};
pub use renaming::Picks;
pub use shuffle::{ShuffleMode, ShuffleStep, Shuffles, WarpStep};
pub use staging::{SharedAccess, SharedSide, Staging};
pub use table::FragmentTable;

use crate::error::LayoutError;
use crate::tile::TileLayout;
use job::Job;

/// How the registers of one fragment become those of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversionKind {
    /// Every register of `b` already holds its element.
    Nothing,
    /// Every element stays on its thread; the picks say in which register of `a` it is.
    Renaming(Picks),
    /// Every element stays in its warp.
    Shuffles(Shuffles),
    /// Through shared memory.
    Staging(Staging),
}

/// A plan that turns the registers of fragment `a` into those of fragment `b`, with its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// What the plan does.
    pub kind: ConversionKind,
    /// The cost for one warp, the costliest one.
    pub cost: Cost,
    /// Threads that take part: whole warps.
    pub threads: usize,
    /// Bits of an element.
    pub bits: usize,
    /// Registers of a thread in `b`, in elements.
    pub registers: usize,
}

impl ConversionKind {
    /// Its name in text: `nothing`, `renaming`, `shuffles` or `staging`.
    pub fn name(&self) -> &'static str {
        match self {
            ConversionKind::Nothing => "nothing",
            ConversionKind::Renaming(_) => "renaming",
            ConversionKind::Shuffles(_) => "shuffles",
            ConversionKind::Staging(_) => "staging",
        }
    }
}

impl Conversion {
    fn new(job: &Job, kind: ConversionKind, cost: Cost) -> Conversion {
        Conversion { kind, cost, threads: job.a.threads(), bits: job.bits, registers: job.b.registers() }
    }

    /// Elements in a 32-bit word; 1 where an element takes one word or more.
    pub fn elements_per_word(&self) -> usize {
        (32 / self.bits.max(1)).max(1)
    }
}

/// The cheapest plan that turns the registers of `a` into those of `b`, for elements of `bits` bits. Among equals, the
/// kind listed first in [`ConversionKind`].
///
/// Errors: sizes that differ (L0105); elements whose bits are not a power of two from 1 to 128, an axis that is neither
/// a thread axis of a CTA nor `reg` or `m`, a negative position, more than 1024 threads, two elements in one register,
/// or a tile that must go through shared memory and does not fit it (L0113); more places than may be enumerated
/// (L0111).
pub fn find_conversion(a: &TileLayout, b: &TileLayout, bits: i64) -> Result<Conversion, LayoutError> {
    let job = Job::new(a, b, bits)?;
    let simple = renaming::in_place(&job).or_else(|| renaming::plan(&job).filter(|plan| plan.cost.total() == 0));
    match simple {
        Some(plan) => Ok(plan),
        None => plans(&job)?.into_iter().min_by_key(|plan| plan.cost.total()).ok_or_else(|| does_not_fit(&job)),
    }
}

/// The cheapest plan of every kind that is possible, cheapest first; at least one. Errors: as [`find_conversion`].
pub fn find_conversions(a: &TileLayout, b: &TileLayout, bits: i64) -> Result<Vec<Conversion>, LayoutError> {
    cheapest_first(&Job::new(a, b, bits)?)
}

/// As [`find_conversions`], from one table to another, for a tile of `elements` elements.
pub fn convert_tables(
    a: FragmentTable,
    b: FragmentTable,
    elements: usize,
    bits: usize,
) -> Result<Vec<Conversion>, LayoutError> {
    let threads = a.threads().max(b.threads());
    cheapest_first(&Job::of_tables(a.with_threads(threads), b.with_threads(threads), elements, bits))
}

fn cheapest_first(job: &Job) -> Result<Vec<Conversion>, LayoutError> {
    let mut found = plans(job)?;
    found.sort_by_key(|plan| plan.cost.total());
    if found.is_empty() { Err(does_not_fit(job)) } else { Ok(found) }
}

/// The cheapest plan of every kind, in the order of the kinds.
fn plans(job: &Job) -> Result<Vec<Conversion>, LayoutError> {
    let found = [renaming::in_place(job), renaming::plan(job), shuffle::plan(job), staging::plan(job)?];
    Ok(found.into_iter().flatten().collect())
}

fn does_not_fit(job: &Job) -> LayoutError {
    let bytes = staging::least_bytes(job);
    table::refuse(
        format!("elements move between warps, and the tile needs {bytes} bytes of shared memory"),
        format!("at most {} bytes, or every element already in each warp that needs it", staging::SHARED_LIMIT),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> TileLayout {
        text.parse().unwrap()
    }

    fn refused(a: &str, b: &str, bits: i64) -> String {
        let error = find_conversion(&layout(a), &layout(b), bits).unwrap_err();
        format!("{}: {error}", error.code())
    }

    #[test]
    fn fragments_of_different_sizes_are_refused() {
        assert_eq!(
            refused("S[32:1@laneid]", "S[64:1@tx]", 32),
            "L0105: shape (64) has size 64, but the layout has size 32"
        );
    }

    #[test]
    fn what_is_no_register_fragment_is_refused() {
        assert_eq!(
            refused("S[32:1@bx]", "S[32:1@laneid]", 32),
            "L0113: no such conversion: `bx` is not an axis of a register fragment"
        );
        assert_eq!(
            refused("S[32:1@laneid]", "S[32:1@reg] + -1@reg", 32),
            "L0113: no such conversion: a fragment on registers -1 to 30"
        );
        assert_eq!(
            refused("S[32:1@laneid]", "S[32:64@tx]", 32),
            "L0113: no such conversion: a fragment on threads 0 to 1984"
        );
        assert_eq!(
            refused("S[32:1@laneid]", "S[(16,2):(1@laneid,0@reg)]", 32),
            "L0113: no such conversion: register 0 of thread 0 holds the elements 0 and 1"
        );
        assert_eq!(refused("S[32:1@laneid]", "S[32:1@laneid]", 12), "L0113: no such conversion: elements of 12 bits");
    }

    #[test]
    fn too_many_places_are_refused() {
        let big = "S[(128,65536):(1@tx,1@reg)]";
        assert_eq!(refused(big, big, 32), "L0111: this enumerates 8388608 elements; the limit is 4194304");
    }

    #[test]
    fn a_tile_larger_than_shared_memory_cannot_change_warps() {
        let (a, b) = ("S[(2,32,1024):(1@warpid,1@laneid,1@reg)]", "S[(1024,32,2):(1@reg,1@laneid,1@warpid)]");
        assert_eq!(
            refused(a, b, 64),
            "L0113: no such conversion: elements move between warps, and the tile needs 524288 bytes of shared memory"
        );
    }

    #[test]
    fn all_kinds_are_listed_cheapest_first() {
        let (a, b) = (layout("S[(32,4):(1@laneid,1@reg)]"), layout("S[(32,2,2):(1@laneid,1@reg,2@reg)]"));
        let found = find_conversions(&a, &b, 32).unwrap();
        let seen: Vec<_> = found.iter().map(|plan| (plan.kind.name(), plan.cost.total())).collect();
        assert_eq!(seen, [("renaming", 0), ("staging", 164)]);
        assert_eq!(find_conversion(&a, &b, 32).unwrap(), found[0]);
    }
}
