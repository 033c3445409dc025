//! The units of 16 bytes of shared memory that multiplicands consist of.

use std::ops::Range;

use crate::clock::Agent;
use crate::exec::access::{Access, RegionId, Slot, by_region};
use crate::exec::machine::Machine;
use crate::exec::product::sums::{Values, extend_with_unit};
use crate::exec::product::{Element, Major, Multiplier, SharedMatrix, UNIT};
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::isa::Space;
use crate::memory::map;

/// Units of 16 bytes of shared memory, by their offsets, and which of them race.
#[derive(Clone, Debug, Default)]
pub(crate) struct Units {
    /// The shared memory that they are in; `None` for that of the own CTA.
    peer: Option<u32>,
    pub(crate) offsets: Vec<usize>,
    /// First offset, number of bytes and origin of the undefined bits.
    races: Vec<(usize, usize, u32)>,
}

/// The units of lines of a multiplicand, a whole number of units if it is MN-major: those of each line if it is K-major,
/// those of each k if it is MN-major.
pub(crate) fn units_of(
    matrix: &SharedMatrix,
    multiplier: &Multiplier,
    (first, lines): (usize, usize),
    k: usize,
) -> Vec<u64> {
    let in_unit = multiplier.element.in_unit();
    let (outer, inner) = match multiplier.major {
        Major::K => (lines, k / in_unit),
        Major::Mn => (k, lines.div_ceil(in_unit)),
    };
    let (along, across) = match multiplier.major {
        Major::K => (0, first),
        Major::Mn => (first / in_unit, 0),
    };
    let unit = |at: usize| matrix.unit(multiplier.major, (along + at % inner) as u64, (across + at / inner) as u64);
    (0..outer * inner).map(unit).collect()
}

/// The ranges of bytes that units cover, in order.
fn runs_of(units: &[u64]) -> Vec<Range<u64>> {
    let (Some(least), Some(most)) = (units.iter().min(), units.iter().max()) else { return Vec::new() };
    // One bit for each unit between them, which costs less than sorting.
    let mut bits = vec![0u64; ((most - least) / UNIT / 64 + 1) as usize];
    for unit in units {
        let index = (unit - least) / UNIT;
        bits[(index / 64) as usize] |= 1 << (index % 64);
    }
    let mut runs: Vec<Range<u64>> = Vec::new();
    for (at, word) in bits.iter().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            let first = rest.trailing_zeros();
            let count = (rest >> first).trailing_ones();
            let start = least + (at as u64 * 64 + u64::from(first)) * UNIT;
            let end = start + u64::from(count) * UNIT;
            match runs.last_mut().filter(|last| last.end == start) {
                Some(last) => last.end = end,
                None => runs.push(start..end),
            }
            rest &= u64::MAX.checked_shl(first + count).unwrap_or(0);
        }
    }
    runs
}

impl Machine<'_> {
    /// The descriptor of a multiplicand in shared memory.
    pub(crate) fn multiplicand_matrix(&self, lane: usize, word: u64, of: &Multiplier) -> ExecResult<SharedMatrix> {
        let matrix = self.shared_matrix(lane, word)?;
        let is_turned = of.major == Major::Mn;
        let is_wide = of.element == Element::Tf32;
        if is_turned && is_wide != matrix.has_wide_chunks() {
            let reason = match is_wide {
                true => "a tf32 matrix that is not K-major has the 128-byte swizzle of 32-byte chunks",
                false => "only tf32 matrices have the 128-byte swizzle of 32-byte chunks",
            };
            return Err(bad_matrix(lane, word, reason));
        }
        Ok(matrix)
    }

    /// The descriptor of a matrix in shared memory.
    pub(crate) fn shared_matrix(&self, lane: usize, word: u64) -> ExecResult<SharedMatrix> {
        SharedMatrix::of_tensor(word).map_err(|reason| bad_matrix(lane, word, &reason))
    }

    /// Checks the reads of units by an agent in the shared memory of the CTA of a rank, and records them. The addresses in
    /// descriptors have no rank.
    pub(crate) fn read_units(
        &mut self,
        warp: &Warp,
        lane: usize,
        (agent, rank): (Agent, u32),
        units: &[u64],
    ) -> ExecResult<Units> {
        let start = map::shared_start(rank) - map::SHARED_START;
        let runs = runs_of(units);
        let peer = (rank != self.cta.rank).then_some(rank);
        let mut found = Units { peer, ..Units::default() };
        let read_of = |address: u64| Access {
            copy: Some(agent),
            is_load: false,
            ..Access::new(warp, lane, address, UNIT as usize, true)
        };
        let mut slots = Vec::new();
        for run in &runs {
            let access = Access { len: (run.end - run.start) as usize, ..read_of(start + run.start) };
            let place = self.place(Space::Shared, &access);
            if let Slot::Region(slot) = place.map_err(|stop| outside_of_matrix(*stop, units.first()))? {
                slots.push(slot);
            }
        }
        for (id, ranges) in by_region(slots.iter()) {
            let races = self.races_of_ranges(id, &ranges, &read_of(start + runs[0].start))?;
            for range in &races {
                let access = Access { len: range.len, ..read_of(start + map::SHARED_START + range.offset as u64) };
                self.must_be_fenced(Space::Shared, &access, std::slice::from_ref(range))?;
                let stop = self.race(Space::Shared, &access, &range.conflict);
                let origin = self.origins.number(warp.id, warp.pc, *stop);
                found.races.push((range.offset, range.len, origin));
            }
        }
        found.offsets = units.iter().map(|address| (address - map::SHARED_START) as usize).collect();
        Ok(found)
    }

    /// The first `len` bytes of a unit, and where an undefined bit of them comes from, if there is one.
    pub(crate) fn unit_bytes(
        &mut self,
        warp: u32,
        read: &Access,
        units: &Units,
        (at, len): (usize, usize),
    ) -> ([u8; 16], Option<u32>) {
        let offset = units.offsets[at];
        let region = self.region(units.peer.map_or(RegionId::Shared, RegionId::Peer));
        let mut bytes = [0u8; 16];
        bytes[..len].copy_from_slice(region.bytes.in_page(offset..offset + len));
        let raced = units.races.iter().find(|(first, count, _)| *first < offset + len && offset < first + count);
        let marked = region.undefined.range(offset..offset + len).next().map(|(_, byte)| byte.origin);
        let known = raced.map(|(.., origin)| *origin).or(marked);
        if known.is_some() || region.is_written(offset, len) {
            return (bytes, known);
        }
        let rank = units.peer.unwrap_or(self.cta.rank);
        let access = Access { address: map::shared_start(rank) + offset as u64, len, ..*read };
        let stop = self.unwritten(Space::Shared, &access);
        (bytes, Some(self.origins.number(warp, read.pc, *stop)))
    }

    /// The elements of a multiplicand in shared memory.
    pub(crate) fn shared_values(
        &mut self,
        (warp, read): (u32, &Access),
        units: &Units,
        multiplier: &Multiplier,
        (lines, k): (usize, usize),
    ) -> Values {
        let in_unit = multiplier.element.in_unit();
        let inner = units.offsets.len() / if multiplier.major == Major::K { lines } else { k };
        let mut values = Values {
            elements: Vec::with_capacity(units.offsets.len() * in_unit),
            origins: vec![None; lines],
            ..Values::default()
        };
        for at in 0..units.offsets.len() {
            let (bytes, origin) = self.unit_bytes(warp, read, units, (at, multiplier.element.used_bytes()));
            extend_with_unit(&mut values.elements, &bytes, multiplier);
            if origin.is_some() {
                let (outer, first) = (at / inner, at % inner * in_unit);
                let of_unit = if multiplier.major == Major::K { outer..outer + 1 } else { first..first + in_unit };
                for known in &mut values.origins[of_unit.start.min(lines)..of_unit.end.min(lines)] {
                    *known = known.or(origin);
                }
            }
        }
        if multiplier.major == Major::Mn {
            // The elements of one k are adjacent, and fill whole units.
            let (across, all) = (inner * in_unit, std::mem::take(&mut values.elements));
            values.elements = (0..lines * k).map(|at| all[at % k * across + at / k]).collect();
        }
        values
    }
}

/// The fault of a matrix that its descriptor places outside of shared memory.
fn outside_of_matrix(stop: RaisedFault, start: Option<&u64>) -> Box<RaisedFault> {
    let start = start.copied().unwrap_or(0);
    let message = format!(
        "{}; a matrix operand that starts at {start:#x} reaches it by the offsets in its descriptor",
        stop.message
    );
    Box::new(RaisedFault { message, ..stop })
}

fn bad_matrix(lane: usize, word: u64, reason: &str) -> Box<RaisedFault> {
    let message = format!("the descriptor {word:#018x} of a matrix in shared memory: {reason}");
    RaisedFault::new(FaultKind::BadDescriptor, 1 << lane, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_units_are_one_run() {
        let at = |numbers: &[u64]| runs_of(&numbers.iter().map(|number| 1000 + number * UNIT).collect::<Vec<u64>>());
        let run = |first: u64, count: u64| 1000 + first * UNIT..1000 + (first + count) * UNIT;
        assert_eq!(at(&[]), []);
        assert_eq!(at(&[5, 3, 4, 9, 3]), [run(3, 3), run(9, 1)]);
        let all: Vec<u64> = (0..200).rev().collect();
        assert_eq!(at(&all), [run(0, 200)]);
        assert_eq!(at(&[63, 64, 127, 129]), [run(63, 2), run(127, 1), run(129, 1)]);
    }
}
