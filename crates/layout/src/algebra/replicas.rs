//! Replicas in normal form: the set of their offsets, as the fewest progressions that add up to it.
//!
//! A replica iter moves on one axis, so the set of offsets is a product of one set of integers per axis, each a sum of
//! arithmetic progressions `{0, s, .., (e-1)s}`. Two lists of iters mean the same copies exactly if these sets agree.

use std::collections::{BTreeMap, BTreeSet};

use crate::algebra::progression::{Progression, added, fuse, sums};
use crate::axis::Axis;
use crate::error::LayoutError;
use crate::iter::Iter;

/// A set of integers with more members than this is left as its fused iters.
const MAX_OFFSETS: i64 = 1 << 12;
/// The most sums that the search for the shortest list may form; one that needs more leaves the fused iters.
const MAX_SUMS: usize = 1 << 18;

/// The normal form of replica iters: iters with positive strides, sorted by axis and stride, and the shift that makes
/// the least offset on every axis 0.
pub(crate) fn normal_form(replica: &[Iter]) -> (Vec<Iter>, BTreeMap<Axis, i64>) {
    let mut moving = replica.iter().filter(|iter| iter.extent > 1 && iter.stride != 0);
    match (moving.next(), moving.next()) {
        (None, _) => return (Vec::new(), BTreeMap::new()),
        (Some(one), None) if one.stride > 0 => return (vec![one.clone()], BTreeMap::new()),
        _ => {}
    }
    let (by_axis, shift) = split(replica);
    let iters = by_axis.into_iter().flat_map(|(axis, progressions)| iters(&axis, shortest(fuse(progressions))));
    (iters.collect(), shift)
}

/// The progressions on each axis, and the shift of their least sum on each axis due to negative strides.
fn split(iters: &[Iter]) -> (BTreeMap<Axis, Vec<Progression>>, BTreeMap<Axis, i64>) {
    let mut by_axis: BTreeMap<Axis, Vec<Progression>> = BTreeMap::new();
    let mut shift: BTreeMap<Axis, i64> = BTreeMap::new();
    for iter in iters.iter().filter(|iter| iter.extent > 1 && iter.stride != 0) {
        if iter.stride < 0 {
            *shift.entry(iter.axis.clone()).or_insert(0) += iter.stride * (iter.extent - 1);
        }
        let progression = Progression { stride: iter.stride.abs(), extent: iter.extent };
        by_axis.entry(iter.axis.clone()).or_default().push(progression);
    }
    (by_axis, shift)
}

fn iters(axis: &Axis, progressions: Vec<Progression>) -> Vec<Iter> {
    let iter = |p: Progression| Iter { extent: p.extent, stride: p.stride, axis: axis.clone() };
    progressions.into_iter().map(iter).collect()
}

/// The distinct offsets of the replicas on one axis, in order. Error: more than `limit` of them.
pub(crate) fn offsets_on(replica: &[Iter], axis: &Axis, limit: i64) -> Result<BTreeSet<i64>, LayoutError> {
    let (mut by_axis, shift) = split(replica);
    let shift = shift.get(axis).copied().unwrap_or(0);
    let offsets = sums(&fuse(by_axis.remove(axis).unwrap_or_default()), limit);
    let offsets = offsets.ok_or(LayoutError::TooLarge { points: limit + 1 })?;
    Ok(offsets.into_iter().map(|offset| offset + shift).collect())
}

/// As [`offsets_on`], with the enumeration limit.
pub(crate) fn copies_on(replica: &[Iter], axis: &Axis) -> Result<BTreeSet<i64>, LayoutError> {
    offsets_on(replica, axis, crate::ENUMERATION_LIMIT)
}

/// Replica iters that added to those of `part` give the copies of `whole`, or `None` if there are none. Shifts by
/// negative strides are left to the caller. Error: sets too large to decide.
pub(crate) fn difference(whole: &[Iter], part: &[Iter]) -> Result<Option<Vec<Iter>>, LayoutError> {
    let ((whole, _), (mut part, _)) = (split(whole), split(part));
    if part.keys().any(|axis| !whole.contains_key(axis)) {
        return Ok(None);
    }
    let mut missing = Vec::new();
    for (axis, whole) in whole {
        let Some(rest) = missing_from(fuse(part.remove(&axis).unwrap_or_default()), fuse(whole))? else {
            return Ok(None);
        };
        missing.extend(iters(&axis, rest));
    }
    Ok(Some(missing))
}

/// Progressions that added to `part` make the sums of `whole`, or `None` if there are none.
fn missing_from(part: Vec<Progression>, whole: Vec<Progression>) -> Result<Option<Vec<Progression>>, LayoutError> {
    let (Some(start), Some(set)) = (sums(&part, MAX_OFFSETS), sums(&whole, MAX_OFFSETS)) else {
        return missing_from_large(&part, whole).map(Some);
    };
    if !start.is_subset(&set) {
        return Ok(None);
    }
    let reach = |list: &[Progression]| list.iter().map(|p| p.reach()).sum::<i64>();
    let mut search = ProgressionSearch { set: &set, formed: 0 };
    for length in 0..=whole.len() {
        let mut chosen = Vec::new();
        if search.extend(&mut chosen, &start, length, reach(&whole) - reach(&part)) {
            return Ok(Some(chosen));
        }
    }
    if search.formed > MAX_SUMS { Err(LayoutError::TooLarge { points: MAX_SUMS as i64 }) } else { Ok(None) }
}

/// As [`missing_from`], for sets too large to list: `whole` without the progressions of `part`, or the run that
/// completes `part`.
fn missing_from_large(part: &[Progression], mut whole: Vec<Progression>) -> Result<Vec<Progression>, LayoutError> {
    if let [run] = whole[..] {
        let reached: i64 = part.iter().map(|p| p.reach()).sum();
        let rest = Progression { stride: run.stride, extent: 1 + (run.reach() - reached) / run.stride };
        if rest.extent >= 1 && fuse(part.iter().copied().chain([rest]).collect()) == [run] {
            return Ok(if rest.extent > 1 { vec![rest] } else { Vec::new() });
        }
    }
    for known in part {
        let at = whole.iter().position(|p| p == known).ok_or(LayoutError::TooLarge { points: MAX_OFFSETS + 1 })?;
        whole.remove(at);
    }
    Ok(whole)
}

/// The fewest progressions with the same sums; of several such lists the first, each list in order of stride.
fn shortest(fused: Vec<Progression>) -> Vec<Progression> {
    if fused.len() < 2 {
        return fused;
    }
    let Some(set) = sums(&fused, MAX_OFFSETS) else { return fused };
    let farthest = fused.iter().map(|p| p.reach()).sum();
    let mut search = ProgressionSearch { set: &set, formed: 0 };
    for length in 1..=fused.len() {
        let mut chosen = Vec::new();
        if search.extend(&mut chosen, &BTreeSet::from([0]), length, farthest) {
            return chosen;
        }
    }
    fused
}

struct ProgressionSearch<'a> {
    /// The sums that the progressions must reach.
    set: &'a BTreeSet<i64>,
    /// How many sums the search has formed so far.
    formed: usize,
}

impl ProgressionSearch<'_> {
    /// Adds `left` progressions, strides ascending, so that `reached` becomes the whole set. `rest` is how far the sum
    /// of their last numbers must still go.
    fn extend(&mut self, chosen: &mut Vec<Progression>, reached: &BTreeSet<i64>, left: usize, rest: i64) -> bool {
        if left == 0 {
            return rest == 0 && reached.len() == self.set.len();
        }
        for next in self.candidates(chosen, reached, left, rest) {
            let Some(sum) = added(reached, next, self.set.len() as i64) else { continue };
            self.formed += sum.len();
            if self.formed > MAX_SUMS {
                return false;
            }
            if !sum.is_subset(self.set) {
                continue;
            }
            chosen.push(next);
            if self.extend(chosen, &sum, left - 1, rest - next.reach()) {
                return true;
            }
            chosen.pop();
        }
        false
    }

    /// The progressions that may come next. Their strides are members up to the least one still missing: all later
    /// strides are longer, so nothing else could make it. A list where one progression absorbs another is not shortest.
    fn candidates(&self, chosen: &[Progression], reached: &BTreeSet<i64>, left: usize, rest: i64) -> Vec<Progression> {
        let Some(missing) = self.set.iter().find(|member| !reached.contains(member)) else { return Vec::new() };
        let first = chosen.last().map_or(1, |last| last.stride);
        let absorbed = |stride: &i64| chosen.iter().any(|p| p.absorbs(Progression { stride: *stride, extent: 2 }));
        let strides = self.set.range(first..=*missing).copied().filter(|stride| !absorbed(stride) && *stride <= rest);
        let extents = |stride: i64| {
            // The last progression must cover the rest.
            let least = if left == 1 { if rest % stride == 0 { rest / stride + 1 } else { i64::MAX } } else { 2 };
            let is_member = move |extent: &i64| self.set.contains(&(stride * (extent - 1)));
            let all = (least..=rest / stride + 1).take_while(is_member);
            all.map(move |extent| Progression { stride, extent })
        };
        strides.flat_map(extents).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::TileLayout;

    fn canonical(replica: &str) -> String {
        let layout: TileLayout = format!("S[2:100] + {replica}").parse().unwrap();
        layout.canonicalize().to_string().replace("S[2:100@m]", "").trim_start_matches(" + ").to_string()
    }

    #[test]
    fn two_ways_to_write_one_set_become_one() {
        assert_eq!(canonical("R[(3,4):(2,3)]"), "R[(3,4):(2@m,3@m)]");
        assert_eq!(canonical("R[(6,2):(2,3)]"), "R[(3,4):(2@m,3@m)]");
        assert_eq!(canonical("R[(7,5,2,2):(2,3,26,42)]"), "R[(4,7,2,2):(2@m,3@m,26@m,42@m)]");
        assert_eq!(canonical("R[(10,3,2,2):(2,3,26,42)]"), "R[(4,7,2,2):(2@m,3@m,26@m,42@m)]");
    }

    #[test]
    fn copies_of_copies_count_once() {
        assert_eq!(canonical("R[(2,2):(4,4)]"), "R[3:4@m]");
        assert_eq!(canonical("R[(4,3):(1,2)]"), "R[8:1@m]");
    }

    #[test]
    fn overlapping_copies_do_not_count_towards_the_limit() {
        assert_eq!(canonical("R[(64,65):(2,3)]"), canonical("R[(61,67):(2,3)]"));
    }

    #[test]
    fn the_least_offset_is_zero_and_the_rest_moves_into_the_offset() {
        assert_eq!(canonical("R[3:-2]"), "R[3:2@m] + -4@m");
    }

    #[test]
    fn fewer_iters_are_found_where_fusing_alone_finds_none() {
        assert_eq!(canonical("R[(2,2,2):(2,3,4)]"), "R[(4,2):(2@m,3@m)]");
    }

    #[test]
    fn axes_are_independent() {
        assert_eq!(canonical("R[(2,2,2):(4@tx,8@warpid,2@tx)]"), "R[(4,2):(2@tx,8@warpid)]");
    }

    #[test]
    fn a_set_too_large_to_list_keeps_its_fused_iters() {
        assert_eq!(canonical("R[(4096,4096):(4096,1)]"), "R[16777216:1@m]");
        assert_eq!(canonical("R[(4096,4096):(1,8192)]"), "R[(4096,4096):(1@m,8192@m)]");
    }

    fn missing(whole: &str, part: &str) -> Result<Option<Vec<Iter>>, LayoutError> {
        let replica = |text: &str| text.parse::<TileLayout>().unwrap().replica().to_vec();
        difference(&replica(whole), &replica(part))
    }

    #[test]
    fn what_is_no_part_is_found_out() {
        assert_eq!(missing("R[4:2@tx]", "R[(2,2):(1@tx,5@tx)]"), Ok(None));
    }

    #[test]
    fn a_run_of_any_length_is_completed() {
        let rest = missing("R[16777216:1@tx]", "R[4096:1@tx]").unwrap().unwrap();
        assert_eq!((rest.len(), rest[0].extent, rest[0].stride), (1, 16_773_121, 1));
        assert_eq!(missing("R[(4096,4096):(1,8192)]", "R[2:3]").unwrap_err().code(), "L0111");
    }
}
