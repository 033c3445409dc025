//! Replicas in normal form: the set of their offsets, as the fewest progressions that add up to it.
//!
//! A replica iter moves on one axis, so the set of offsets is a product of one set of integers per axis, each a sum of
//! arithmetic progressions `{0, s, .., (e-1)s}`. Two lists of iters mean the same copies exactly if these sets agree.

use std::collections::{BTreeMap, BTreeSet};

use crate::axis::Axis;
use crate::tile::Iter;

/// A set of integers with more members than this is left as its fused iters.
const MOST_OFFSETS: i64 = 1 << 12;
/// The most sums that the search for the shortest list may form; one that needs more leaves the fused iters.
const MOST_SUMS: usize = 1 << 18;

/// `extent` numbers, `stride` apart, from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Progression {
    stride: i64,
    extent: i64,
}

/// The normal form of replica iters: iters with positive strides, sorted by axis and stride, and the shift that makes
/// the least offset on every axis 0.
pub(crate) fn normal_form(replica: &[Iter]) -> (Vec<Iter>, BTreeMap<Axis, i64>) {
    let mut by_axis: BTreeMap<Axis, Vec<Progression>> = BTreeMap::new();
    let mut shift: BTreeMap<Axis, i64> = BTreeMap::new();
    for iter in replica.iter().filter(|iter| iter.extent > 1 && iter.stride != 0) {
        if iter.stride < 0 {
            *shift.entry(iter.axis.clone()).or_insert(0) += iter.stride * (iter.extent - 1);
        }
        let progression = Progression { stride: iter.stride.abs(), extent: iter.extent };
        by_axis.entry(iter.axis.clone()).or_default().push(progression);
    }
    let iters = by_axis.into_iter().flat_map(|(axis, progressions)| {
        shortest(progressions).into_iter().map(move |p| Iter { extent: p.extent, stride: p.stride, axis: axis.clone() })
    });
    (iters.collect(), shift)
}

/// Replica iters that added to those of `part` give the copies of `whole`, or `None` if there are none. Shifts by
/// negative strides are left to the caller. Sets too large to list are compared iter by iter.
pub(crate) fn difference(whole: &[Iter], part: &[Iter]) -> Option<Vec<Iter>> {
    let (whole, part) = (progressions(whole), progressions(part));
    if part.keys().any(|axis| !whole.contains_key(axis)) {
        return None;
    }
    let mut iters = Vec::new();
    for (axis, whole) in whole {
        let rest = missing_from(part.get(&axis).map_or(&[], Vec::as_slice), whole)?;
        iters.extend(rest.into_iter().map(|p| Iter { extent: p.extent, stride: p.stride, axis: axis.clone() }));
    }
    Some(iters)
}

/// The distinct offsets of the replicas on one axis, in order. `None` if there are more than `limit`.
pub(crate) fn offsets_on(replica: &[Iter], axis: &Axis, limit: i64) -> Option<BTreeSet<i64>> {
    let mut offsets = BTreeSet::from([0]);
    let (iters, shift) = normal_form(replica);
    for iter in iters.iter().filter(|iter| iter.axis == *axis) {
        if (offsets.len() as i64).saturating_mul(iter.extent) > limit {
            return None;
        }
        offsets = sums(&offsets, &[Progression { stride: iter.stride, extent: iter.extent }]);
    }
    let shift = shift.get(axis).copied().unwrap_or(0);
    Some(offsets.into_iter().map(|offset| offset + shift).collect())
}

fn progressions(replica: &[Iter]) -> BTreeMap<Axis, Vec<Progression>> {
    let mut by_axis: BTreeMap<Axis, Vec<Progression>> = BTreeMap::new();
    for iter in normal_form(replica).0 {
        by_axis.entry(iter.axis).or_default().push(Progression { stride: iter.stride, extent: iter.extent });
    }
    by_axis
}

/// Progressions that added to `part` make the sums of `whole`; both in normal form.
fn missing_from(part: &[Progression], mut whole: Vec<Progression>) -> Option<Vec<Progression>> {
    if members(part) > MOST_OFFSETS || members(&whole) > MOST_OFFSETS {
        for known in part {
            let at = whole.iter().position(|p| p == known)?;
            whole.remove(at);
        }
        return Some(whole);
    }
    let start = sums(&BTreeSet::from([0]), part);
    let set = sums(&BTreeSet::from([0]), &whole);
    let rest = set.last()? - start.last()?;
    let mut search = Search { set: &set, formed: 0 };
    (0..=whole.len()).find_map(|length| {
        let mut chosen = Vec::new();
        search.extend(&mut chosen, &start, length, rest).then_some(chosen)
    })
}

fn members(progressions: &[Progression]) -> i64 {
    progressions.iter().fold(1i64, |n, p| n.saturating_mul(p.extent))
}

/// The fewest progressions with the same sums; of several such lists the first, each list in order of stride.
fn shortest(given: Vec<Progression>) -> Vec<Progression> {
    let fused = fuse(given);
    if fused.len() < 2 || members(&fused) > MOST_OFFSETS {
        return fused;
    }
    let set = sums(&BTreeSet::from([0]), &fused);
    let farthest = fused.iter().map(|p| p.stride * (p.extent - 1)).sum();
    let mut search = Search { set: &set, formed: 0 };
    for length in 1..=fused.len() {
        let mut chosen = Vec::new();
        if search.extend(&mut chosen, &BTreeSet::from([0]), length, farthest) {
            return chosen;
        }
    }
    fused
}

/// Sorted by stride; a progression whose step lands inside or right behind another's run lengthens that run.
fn fuse(mut list: Vec<Progression>) -> Vec<Progression> {
    loop {
        list.sort_unstable();
        let pairs = (0..list.len()).flat_map(|a| (a + 1..list.len()).map(move |b| (a, b)));
        let fits = |(a, b): &(usize, usize)| {
            let (run, step) = (list[*a], list[*b]);
            step.stride % run.stride == 0 && step.stride / run.stride <= run.extent
        };
        let Some((a, b)) = pairs.into_iter().find(fits) else { return list };
        let step = list.remove(b);
        list[a].extent += (step.extent - 1) * (step.stride / list[a].stride);
    }
}

fn sums(base: &BTreeSet<i64>, progressions: &[Progression]) -> BTreeSet<i64> {
    progressions.iter().fold(base.clone(), |set, p| {
        set.iter().flat_map(|sum| (0..p.extent).map(move |k| sum + k * p.stride)).collect()
    })
}

struct Search<'a> {
    set: &'a BTreeSet<i64>,
    formed: usize,
}

impl Search<'_> {
    /// Adds `left` progressions, strides ascending, so that `reached` becomes the whole set. `rest` is how far the sum
    /// of their last members must still go. The next stride is a member not above the least one still missing: all
    /// later strides are longer, so nothing else could make that one.
    fn extend(&mut self, chosen: &mut Vec<Progression>, reached: &BTreeSet<i64>, left: usize, rest: i64) -> bool {
        if left == 0 {
            return rest == 0 && reached.len() == self.set.len();
        }
        let Some(missing) = self.set.iter().find(|member| !reached.contains(member)) else { return false };
        let first = chosen.last().map_or(1, |last| last.stride);
        let strides: Vec<i64> = self.set.range(first..=*missing).copied().collect();
        for stride in strides {
            for extent in 2..=rest / stride + 1 {
                if self.formed > MOST_SUMS || !self.set.contains(&(stride * (extent - 1))) {
                    break;
                }
                let next = Progression { stride, extent };
                let sum = sums(reached, &[next]);
                self.formed += sum.len();
                if !sum.is_subset(self.set) {
                    break;
                }
                chosen.push(next);
                if self.extend(chosen, &sum, left - 1, rest - stride * (extent - 1)) {
                    return true;
                }
                chosen.pop();
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::TileLayout;

    fn canonical(replica: &str) -> String {
        let layout: TileLayout = format!("S[2:100] + {replica}").parse().unwrap();
        layout.canonicalize().to_string().replace("S[2:100@m]", "").trim_start_matches(" + ").to_string()
    }

    #[test]
    fn two_ways_to_write_one_set_become_one() {
        assert_eq!(canonical("R[(3,4):(2,3)]"), "R[(3,4):(2@m,3@m)]");
        assert_eq!(canonical("R[(6,2):(2,3)]"), "R[(3,4):(2@m,3@m)]");
    }

    #[test]
    fn copies_of_copies_count_once() {
        assert_eq!(canonical("R[(2,2):(4,4)]"), "R[3:4@m]");
        assert_eq!(canonical("R[(4,3):(1,2)]"), "R[8:1@m]");
    }

    #[test]
    fn the_least_offset_is_zero_and_the_rest_moves_into_the_offset() {
        assert_eq!(canonical("R[3:-2]"), "R[3:2@m] + -4@m");
    }

    #[test]
    fn fewer_iters_are_found_where_fusing_alone_finds_none() {
        // {0,2} + {0,3} + {0,4}: 2 and 4 make 0,2,4,6.
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
}
