//! Sums of arithmetic progressions: the positions that iters on one axis reach.

use std::collections::{BTreeMap, BTreeSet};

/// `extent` numbers, `stride` apart, from 0 on; the stride is positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Progression {
    pub(crate) stride: i64,
    pub(crate) extent: i64,
}

impl Progression {
    /// Its last number.
    pub(crate) fn reach(self) -> i64 {
        self.stride * (self.extent - 1)
    }

    /// True when the sums of both form one run with this stride: a step of `longer` lands inside this run or right
    /// after it.
    pub(crate) fn absorbs(self, longer: Progression) -> bool {
        longer.stride % self.stride == 0 && longer.stride / self.stride <= self.extent
    }
}

/// The same sums with fewer progressions, strides ascending: each absorbs those that it can.
pub(crate) fn fuse(list: Vec<Progression>) -> Vec<Progression> {
    let mut by_stride: BTreeMap<i64, i64> = BTreeMap::new();
    for progression in list {
        *by_stride.entry(progression.stride).or_insert(1) += progression.extent - 1;
    }
    let mut fused: Vec<Progression> =
        by_stride.into_iter().map(|(stride, extent)| Progression { stride, extent }).collect();
    let mut at = 0;
    while at < fused.len() {
        let absorbed = (at + 1..fused.len()).find(|&longer| fused[at].absorbs(fused[longer]));
        match absorbed {
            Some(longer) => {
                let longer = fused.remove(longer);
                fused[at].extent += longer.reach() / fused[at].stride;
            }
            None => at += 1,
        }
    }
    fused
}

/// All sums of one number of each progression, in order. `None` if there are more than `limit`.
pub(crate) fn sums(list: &[Progression], limit: i64) -> Option<BTreeSet<i64>> {
    list.iter().try_fold(BTreeSet::from([0]), |sums, progression| added(&sums, *progression, limit))
}

/// All sums of a member of `set` and a number of the progression. `None` if there are more than `limit`.
pub(crate) fn added(set: &BTreeSet<i64>, progression: Progression, limit: i64) -> Option<BTreeSet<i64>> {
    let mut sums = set.clone();
    let mut steps = 1;
    while steps < progression.extent {
        let more = steps.min(progression.extent - steps);
        let moved: Vec<i64> = sums.iter().map(|sum| sum + more * progression.stride).collect();
        sums.extend(moved);
        if sums.len() as i64 > limit {
            return None;
        }
        steps += more;
    }
    Some(sums)
}
