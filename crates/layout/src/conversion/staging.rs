//! Conversion through shared memory, with a placement that is free of bank conflicts where there is one.

use crate::access::{AccessKind, LANES, WarpAccess};
use crate::error::LayoutError;
use crate::layout::Layout;

use super::cost::{Barrier, Cost};
use super::job::Job;
use super::placement::placements;
use super::shuffle::cheapest;
use super::table::{FragmentTable, NONE};
use super::vectors::VectorAccesses;
use super::{Conversion, ConversionKind};

/// Shared memory that a CTA can have on sm_90 and sm_100, in bytes (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability": 227 KB).
pub(crate) const SHARED_LIMIT: i64 = 227 * 1024;
/// Accesses that the search measures before it keeps the best placement so far.
const SEARCH_LIMIT: i64 = 1 << 16;
/// Bits of the widest access.
const WIDEST: usize = 128;

/// A tile that goes through shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staging {
    /// The position of each element of the tile in shared memory, in elements.
    pub layout: Layout,
    /// The shared memory that the tile takes, in bytes.
    pub bytes: i64,
    /// Bits that an element takes there: its width, or 8 where elements of less than a byte do not move in whole bytes,
    /// so that each is stored in its own byte.
    pub cell: usize,
    /// What orders the loads after the stores.
    pub barrier: Barrier,
    /// The stores. Of the copies of an element, only one is stored.
    pub store: SharedSide,
    /// The loads.
    pub load: SharedSide,
}

/// All stores, or all loads, of a staging plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSide {
    /// Bytes of each access of a lane.
    pub width: usize,
    /// The instructions.
    pub accesses: Vec<SharedAccess>,
}

/// One store or load instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedAccess {
    /// The registers, in order of address: of `a` for a store, of `b` for a load.
    pub registers: Vec<usize>,
    /// The position of the first element in shared memory for each thread, in elements; `None` for an idle thread.
    pub addresses: Vec<Option<usize>>,
    /// Wavefronts in each warp.
    pub wavefronts: Vec<u32>,
}

/// The cheapest plan through shared memory: with the widest vectors, and narrower ones where those have conflicts.
/// `None` where the tile does not fit.
pub(crate) fn plan(job: &Job) -> Result<Option<Conversion>, LayoutError> {
    let (owned, barrier) = owners(job);
    let mut search = PlacementSearch { job, budget: SEARCH_LIMIT };
    let mut plans = Vec::new();
    let mut last = (0, 0);
    let caps = std::iter::successors(Some(WIDEST / job.bits), |cap| Some(cap / 2));
    for cap in caps.take_while(|cap| *cap >= job.per_word) {
        let Some(parts) = parts(job, &owned, cap) else { continue };
        let widths = (parts[0].width, parts[1].width);
        if last == widths {
            continue;
        }
        last = widths;
        let Some(found) = search.best_placement(&parts)? else { continue };
        let is_free = found.is_free;
        plans.push(plan_for(job, &parts, barrier, found));
        if is_free {
            break;
        }
    }
    Ok(cheapest(plans.into_iter()))
}

/// The stores and the loads in vectors of at most `cap` elements; with each element in its own byte if either would
/// split bytes.
fn parts<'a>(job: &'a Job, owned: &'a FragmentTable, cap: usize) -> Option<[VectorAccesses<'a>; 2]> {
    let store = VectorAccesses::widest(owned, AccessKind::Store, cap, job.bits);
    let load = VectorAccesses::widest(&job.b, AccessKind::Load, cap, job.bits);
    match (store, load) {
        (Some(store), Some(load)) => Some([store, load]),
        _ => {
            Some([VectorAccesses::single(owned, AccessKind::Store)?, VectorAccesses::single(&job.b, AccessKind::Load)?])
        }
    }
}

/// The least shared memory that a tile that does not fit would take, in bytes.
pub(crate) fn least_bytes(job: &Job) -> i64 {
    let packed = (job.size * job.bits).div_ceil(8) as i64;
    // A tile that would fit packed did not fit with each element in its own byte.
    if packed > SHARED_LIMIT { packed } else { job.size as i64 }
}

/// The table of the one place that stores each element: the first in the warp that needs it, if that warp has it. Also
/// the barrier: a warp barrier if every warp reads only what it wrote.
fn owners(job: &Job) -> (FragmentTable, Barrier) {
    let registers = job.a.registers();
    let mut owned = FragmentTable::empty(job.a.threads(), registers);
    let mut barrier = Barrier::Warp;
    for (element, needer) in needers(job).into_iter().enumerate() {
        let near = needer.first.and_then(|warp| {
            let first = warp * LANES * registers;
            job.holders.between(element, first, first + LANES * registers).first()
        });
        if needer.is_shared || near.is_none() {
            barrier = Barrier::Cta;
        }
        // Every element has a place in `a`.
        let place = near.unwrap_or(&job.holders.all(element)[0]);
        owned.set(place / registers, place % registers, element as i32);
    }
    (owned, barrier)
}

/// The first warp that needs an element, and whether others need it too.
#[derive(Clone, Copy, Default)]
struct NeedingWarps {
    first: Option<usize>,
    is_shared: bool,
}

fn needers(job: &Job) -> Vec<NeedingWarps> {
    let mut needers = vec![NeedingWarps::default(); job.size];
    for (place, element) in job.b.elements().iter().enumerate().filter(|(_, element)| **element != NONE) {
        let warp = place / (LANES * job.b.registers());
        let needer = &mut needers[*element as usize];
        needer.is_shared |= *needer.first.get_or_insert(warp) != warp;
    }
    needers
}

/// A placement, and what it costs.
struct MeasuredPlacement {
    layout: Layout,
    /// The position of every element.
    positions: Vec<i64>,
    /// Wavefronts of the costliest warp.
    wavefronts: u64,
    /// Whether no access has a bank conflict.
    is_free: bool,
}

struct PlacementSearch<'a> {
    job: &'a Job,
    /// Accesses that may still be measured.
    budget: i64,
}

impl PlacementSearch<'_> {
    /// The placement with the fewest wavefronts for these vectors, the first of equals; `None` where none fits.
    fn best_placement(&mut self, parts: &[VectorAccesses; 2]) -> Result<Option<MeasuredPlacement>, LayoutError> {
        let (wide, cell) = (parts[0].width.max(parts[1].width), parts[0].cell);
        let chunk = wide.max(32 / cell);
        let mut best: Option<MeasuredPlacement> = None;
        for layout in placements(self.job, parts, chunk)? {
            if bytes_of(&layout, cell) > SHARED_LIMIT || (best.is_some() && self.budget <= 0) {
                continue;
            }
            let positions = layout.memory_positions();
            let bound = best.as_ref().map_or(u64::MAX, |found| found.wavefronts);
            let Some((wavefronts, is_free)) = self.measure(parts, &positions, bound) else { continue };
            best = Some(MeasuredPlacement { layout, positions, wavefronts, is_free });
            if is_free {
                break;
            }
        }
        Ok(best)
    }

    /// The wavefronts of the costliest warp, and whether no access has a bank conflict; `None` once `bound` is reached.
    fn measure(&mut self, parts: &[VectorAccesses; 2], positions: &[i64], bound: u64) -> Option<(u64, bool)> {
        let (mut worst, mut is_free) = (0u64, true);
        for warp in 0..self.job.warps {
            let mut sum = 0u64;
            for (part, group) in instructions(parts) {
                self.budget -= 1;
                for wavefronts in access(part, group, warp, positions).wavefronts_of_groups() {
                    sum += u64::from(wavefronts);
                    is_free &= wavefronts <= 1;
                }
                if sum >= bound {
                    return None;
                }
            }
            worst = worst.max(sum);
        }
        Some((worst, is_free))
    }
}

fn bytes_of(layout: &Layout, cell: usize) -> i64 {
    (layout.memory_span() * cell as i64 + 7) / 8
}

/// All stores, then all loads.
fn instructions<'a>(parts: &'a [VectorAccesses<'a>; 2]) -> impl Iterator<Item = (&'a VectorAccesses<'a>, &'a [usize])> {
    parts.iter().flat_map(|part| part.groups.iter().map(move |group| (part, group.as_slice())))
}

/// What the lanes of a warp access with one instruction.
fn access(part: &VectorAccesses, group: &[usize], warp: usize, positions: &[i64]) -> WarpAccess {
    WarpAccess::of(part.bytes() as u64, part.kind, |lane| {
        let element = usize::try_from(part.table.at(warp * LANES + lane, group[0])).ok()?;
        Some(positions[element] as u64 * part.cell as u64 / 8)
    })
}

fn plan_for(job: &Job, parts: &[VectorAccesses; 2], barrier: Barrier, found: MeasuredPlacement) -> Conversion {
    let [store, load] = parts;
    let ((taken_out, masked_out), (put_in, masked_in)) = (store.moves(job.bits), load.moves(job.bits));
    let cost = Cost {
        permutes: taken_out + put_in,
        selects: masked_out + masked_in,
        stores: store.groups.len() as u64,
        loads: load.groups.len() as u64,
        wavefronts: found.wavefronts,
        barrier,
        ..Cost::default()
    };
    let staging = Staging {
        bytes: bytes_of(&found.layout, store.cell),
        cell: store.cell,
        barrier,
        store: side_of(job, store, &found.positions),
        load: side_of(job, load, &found.positions),
        layout: found.layout,
    };
    Conversion::new(job, ConversionKind::Staging(staging), cost)
}

fn side_of(job: &Job, part: &VectorAccesses, positions: &[i64]) -> SharedSide {
    let accesses = part.groups.iter().map(|group| {
        let address = |thread| {
            let element = usize::try_from(part.table.at(thread, group[0])).ok()?;
            Some(positions[element] as usize)
        };
        SharedAccess {
            registers: group.clone(),
            addresses: (0..part.table.threads()).map(address).collect(),
            wavefronts: (0..job.warps).map(|warp| access(part, group, warp, positions).wavefronts()).collect(),
        }
    });
    SharedSide { width: part.bytes(), accesses: accesses.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn staged(a: &str, b: &str, bits: i64) -> Staging {
        let job = Job::new(&a.parse().unwrap(), &b.parse().unwrap(), bits).unwrap();
        match plan(&job).unwrap().unwrap().kind {
            ConversionKind::Staging(staging) => staging,
            other => panic!("{}", other.name()),
        }
    }

    #[test]
    fn a_transpose_is_swizzled_free_of_conflicts() {
        let staging = staged("S[(32,32):(1@laneid,1@reg)]", "S[(32,32):(1@reg,1@laneid)]", 32);
        assert_eq!(staging.layout.to_string(), "swizzle(M=2,B=3,S=3) o S[1024:1@m]");
        let wavefronts = |side: &SharedSide| side.accesses.iter().map(|a| a.wavefronts[0]).collect::<Vec<_>>();
        assert_eq!((wavefronts(&staging.store), wavefronts(&staging.load)), (vec![4; 8], vec![1; 32]));
        assert_eq!((staging.store.width, staging.load.width, staging.barrier), (16, 4, Barrier::Warp));
    }

    #[test]
    fn warps_that_read_what_others_wrote_need_a_barrier_of_the_cta() {
        let staging = staged("S[(4,32,4):(1@warpid,1@laneid,1@reg)]", "S[(4,32,4):(1@reg,1@laneid,1@warpid)]", 32);
        assert_eq!((staging.barrier, staging.bytes), (Barrier::Cta, 2048));
    }

    #[test]
    fn of_copies_in_several_warps_one_is_stored() {
        let staging = staged("S[32:1@laneid] + R[4:1@warpid]", "S[32:1@tx] + 64@tx", 32);
        let stored = staging.store.accesses[0].addresses.iter().filter(|address| address.is_some()).count();
        assert_eq!((stored, staging.barrier), (32, Barrier::Warp));
    }
}
