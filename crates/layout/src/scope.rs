//! Axes that count threads, and how they convert: `tx = 32*warpid + laneid`, `warpid = 4*wgid + wid_in_wg`, ...
//!
//! Conversions are explicit; nothing converts implicitly. [`TileLayout::same_places_in`] compares in a named scope.

use std::collections::BTreeSet;

use crate::axis::{Axis, AxisKind, LANEID, Scope, TID_IN_WG, TX, WARPID, WGID, WID_IN_WG};
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::layout::Layout;
use crate::tile::TileLayout;

/// Threads in a warp.
const WARP: i64 = 32;
/// Warps in a warpgroup.
const WARPS_OF_A_WARPGROUP: i64 = 4;

/// `whole = factor * outer + inner`, with `inner` in `0..factor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisRelation {
    /// The axis that counts everything.
    pub whole: Axis,
    /// The axis that counts groups.
    pub outer: Axis,
    /// How many positions of `inner` are in a group.
    pub factor: i64,
    /// The axis that counts inside a group.
    pub inner: Axis,
}

/// How the thread axes of a CTA relate: a warp is 32 threads, a warpgroup 4 warps (PTX ISA, section "Thread
/// Hierarchy", and section "Asynchronous warpgroup level matrix instructions" for the warpgroup).
pub const RELATIONS: [AxisRelation; 4] = [
    AxisRelation { whole: TX, outer: WARPID, factor: 32, inner: LANEID },
    AxisRelation { whole: TX, outer: WGID, factor: 128, inner: TID_IN_WG },
    AxisRelation { whole: TID_IN_WG, outer: WID_IN_WG, factor: 32, inner: LANEID },
    AxisRelation { whole: WARPID, outer: WGID, factor: 4, inner: WID_IN_WG },
];

/// Threads in one unit of a level; `None` for levels above a warpgroup.
fn threads_in(unit: Scope) -> Option<i64> {
    match unit {
        Scope::Thread => Some(1),
        Scope::Warp => Some(32),
        Scope::Warpgroup => Some(128),
        Scope::Cta | Scope::Cluster | Scope::Grid | Scope::Mesh => None,
    }
}

/// The axis that counts the threads of one warp, warpgroup or CTA.
fn thread_index(scope: Scope) -> Option<Axis> {
    match scope {
        Scope::Warp => Some(LANEID),
        Scope::Warpgroup => Some(TID_IN_WG),
        Scope::Cta => Some(TX),
        Scope::Thread | Scope::Cluster | Scope::Grid | Scope::Mesh => None,
    }
}

impl TileLayout {
    /// The levels that the thread axes connect: the smallest unit that is counted, and the scope inside which
    /// everything is counted. `None` if the elements are not distributed over threads, CTAs or devices.
    /// Error: axes that leave a gap, as `laneid` and `wgid` do without the warp in the warpgroup, or that overlap.
    pub fn scope(&self) -> Result<Option<(Scope, Scope)>, LayoutError> {
        if !self.shard().iter().any(|iter| iter.axis.is_unit()) {
            return Ok(None);
        }
        let steps: BTreeSet<(Scope, Scope)> = self.axes().iter().filter_map(step_of).collect();
        let mut chain = steps.into_iter();
        let Some((inner, mut reached)) = chain.next() else { return Ok(None) };
        for (unit, scope) in chain {
            if unit != reached {
                let names: Vec<String> = self.axes().iter().filter(|a| a.is_unit()).map(|a| format!("`{a}`")).collect();
                let how = if unit > reached { "leave a gap" } else { "overlap" };
                return Err(LayoutError::Axes {
                    problem: format!("the axes {} {how}, so they name no single scope", names.join(", ")),
                });
            }
            reached = scope;
        }
        Ok(Some((inner, reached)))
    }

    /// The same layout with every thread axis inside `scope` (a warp, a warpgroup or a CTA) expressed as one index of
    /// its threads: `laneid`, `tid_in_wg` or `tx`. Axes that count CTAs or devices stay. Errors: any other scope, an
    /// axis that reaches beyond it, axes that count the same threads twice, positions that the hardware does not have
    /// (lane 32).
    pub fn in_scope(&self, scope: Scope) -> Result<TileLayout, LayoutError> {
        let Some(index) = thread_index(scope) else {
            return Err(LayoutError::Axes {
                problem: "threads can be counted only in a warp, a warpgroup or a CTA".to_string(),
            });
        };
        self.check_parts(|axis| axis.is_thread())?;
        let convert = |axis: &Axis, value: i64| match axis.kind() {
            AxisKind::Unit { scope: around, unit } if threads_in(unit).is_some() => {
                if around > scope {
                    let problem = format!("`{axis}` counts in a scope above that of `{index}`");
                    return Err(LayoutError::Axes { problem });
                }
                let threads = threads_in(unit).unwrap_or(1);
                Ok((index.clone(), value.checked_mul(threads).ok_or(LayoutError::Overflow)?))
            }
            AxisKind::Unit { .. } | AxisKind::Memory { .. } | AxisKind::Free => Ok((axis.clone(), value)),
        };
        self.converted(convert)
    }

    /// The same layout with `outer` and `inner` expressed as `whole`. Errors: positions on `inner` outside `0..factor`,
    /// a layout that already uses `whole` as well.
    pub fn join_axes(&self, relation: &AxisRelation) -> Result<TileLayout, LayoutError> {
        let AxisRelation { whole, outer, factor, inner } = relation;
        let (least, end) = (self.least_on(inner), self.span_on(inner));
        if least < 0 || end > *factor {
            let problem = format!("`{inner}` reaches {least}..{end}, outside 0..{factor}, a group of `{whole}`");
            return Err(LayoutError::Axes { problem });
        }
        let axes = self.axes();
        if axes.contains(whole) && (axes.contains(outer) || axes.contains(inner)) {
            let problem = format!("`{whole}` already counts what `{outer}` and `{inner}` count");
            return Err(LayoutError::Axes { problem });
        }
        self.converted(|axis, value| {
            if *axis == relation.outer {
                let value = value.checked_mul(relation.factor).ok_or(LayoutError::Overflow)?;
                Ok((relation.whole.clone(), value))
            } else if *axis == relation.inner {
                Ok((relation.whole.clone(), value))
            } else {
                Ok((axis.clone(), value))
            }
        })
    }

    /// The same layout with `whole` expressed as `outer` and `inner`. Error: an iter that steps across groups unevenly,
    /// or positions inside a group that would carry into the next.
    pub fn split_axis(&self, relation: &AxisRelation) -> Result<TileLayout, LayoutError> {
        let refuse = |what: String| {
            let AxisRelation { whole, outer, factor, inner } = relation;
            LayoutError::Axes { problem: format!("`{whole}` does not split into `{factor}*{outer} + {inner}`: {what}") }
        };
        let axes = self.axes();
        if relation.factor < 1 || (axes.contains(&relation.whole) && axes.contains(&relation.inner)) {
            return Err(refuse("the factor is below 1, or the inner axis is already used".to_string()));
        }
        let split = |iters: &[Iter]| -> Result<Vec<Iter>, LayoutError> {
            let parts = iters.iter().map(|iter| {
                split_iter(iter, relation)
                    .ok_or_else(|| refuse(format!("the iter {}:{} crosses groups unevenly", iter.extent, iter.stride)))
            });
            Ok(parts.collect::<Result<Vec<_>, _>>()?.concat())
        };
        let mut offset = self.offset().clone();
        if let Some(value) = offset.remove(&relation.whole) {
            *offset.entry(relation.outer.clone()).or_insert(0) += value.div_euclid(relation.factor);
            *offset.entry(relation.inner.clone()).or_insert(0) += value.rem_euclid(relation.factor);
        }
        let layout = TileLayout::new(split(self.shard())?, split(self.replica())?, offset)?;
        let reach = layout.span_on(&relation.inner);
        if layout.least_on(&relation.inner) < 0 || reach > relation.factor {
            return Err(refuse(format!("positions inside a group reach {}", reach - 1)));
        }
        Ok(layout)
    }

    /// Checks that the axes count different threads, at positions that the hardware has.
    fn check_parts(&self, counted: impl Fn(&Axis) -> bool) -> Result<(), LayoutError> {
        let axes: Vec<Axis> = self.axes().into_iter().filter(counted).collect();
        for axis in &axes {
            if let Some((positions, reached)) = axis.beyond(self.least_on(axis), self.span_on(axis) - 1) {
                return Err(LayoutError::Axes { problem: format!("{positions}; this layout reaches {reached}") });
            }
        }
        let steps: Vec<(&Axis, (Scope, Scope))> = axes.iter().filter_map(|a| Some((a, step_of(a)?))).collect();
        for (at, (axis, (unit, scope))) in steps.iter().enumerate() {
            let overlaps = |(_, (u, s)): &&(&Axis, (Scope, Scope))| u < scope && unit < s;
            if let Some((other, _)) = steps[..at].iter().find(overlaps) {
                let problem = format!("`{other}` and `{axis}` count the same threads");
                return Err(LayoutError::Axes { problem });
            }
        }
        Ok(())
    }

    /// The layout with every stride and offset replaced by what `convert` gives for it.
    fn converted(
        &self,
        convert: impl Fn(&Axis, i64) -> Result<(Axis, i64), LayoutError>,
    ) -> Result<TileLayout, LayoutError> {
        let iters = |list: &[Iter]| -> Result<Vec<Iter>, LayoutError> {
            let each = list.iter().map(|iter| {
                let (axis, stride) = convert(&iter.axis, iter.stride)?;
                Ok(Iter { extent: iter.extent, stride, axis })
            });
            each.collect()
        };
        let offset: Vec<(Axis, i64)> =
            self.offset().iter().map(|(axis, value)| convert(axis, *value)).collect::<Result<_, _>>()?;
        TileLayout::new(iters(self.shard())?, iters(self.replica())?, offset)
    }
}

impl Layout {
    /// The thread axes that the layout does not name, in a CTA with this many threads, and how many coordinates each
    /// has. No iter (not even of extent 1), replica or offset is on these axes, although they have more than one
    /// coordinate; every element is at coordinate 0 of them.
    pub fn unnamed_thread_axes(&self, threads: i64) -> Vec<(Axis, i64)> {
        let warps = (threads + WARP - 1) / WARP;
        let levels = [
            (Scope::Thread, Scope::Warp, threads.min(WARP)),
            (Scope::Warp, Scope::Warpgroup, warps.min(WARPS_OF_A_WARPGROUP)),
            (Scope::Warpgroup, Scope::Cta, (warps + WARPS_OF_A_WARPGROUP - 1) / WARPS_OF_A_WARPGROUP),
        ];
        let steps: Vec<(Scope, Scope)> = self.axes().iter().filter_map(step_of).collect();
        let [lanes, in_group, groups] =
            levels.map(|(unit, scope, _)| steps.iter().any(|(from, to)| *from <= unit && scope <= *to));
        let axes = match (lanes, in_group, groups) {
            (true, true, true) => vec![],
            (false, false, false) => vec![(TX, threads)],
            (true, false, false) => vec![(WARPID, warps)],
            (false, false, true) => vec![(TID_IN_WG, levels[0].2 * levels[1].2)],
            (lanes, in_group, groups) => {
                let named = [(lanes, LANEID), (in_group, WID_IN_WG), (groups, WGID)];
                let each = named.into_iter().zip(levels).filter(|((is_named, _), _)| !is_named);
                each.map(|((_, axis), (_, _, coordinates))| (axis, coordinates)).collect()
            }
        };
        axes.into_iter().filter(|(_, coordinates)| *coordinates > 1).collect()
    }
}

fn step_of(axis: &Axis) -> Option<(Scope, Scope)> {
    match axis.kind() {
        AxisKind::Unit { scope, unit } => Some((unit, scope)),
        AxisKind::Memory { .. } | AxisKind::Free => None,
    }
}

/// The iter moved to `outer` or `inner`, or cut where a group ends; `None` if it steps across groups unevenly.
fn split_iter(iter: &Iter, relation: &AxisRelation) -> Option<Vec<Iter>> {
    let AxisRelation { whole, outer, factor, inner } = relation;
    if iter.axis != *whole {
        return Some(vec![iter.clone()]);
    }
    if iter.stride % factor == 0 {
        return Some(vec![Iter { stride: iter.stride / factor, axis: outer.clone(), ..iter.clone() }]);
    }
    let inside = Iter { axis: inner.clone(), ..iter.clone() };
    if (iter.extent - 1).checked_mul(iter.stride.abs())? < *factor {
        return Some(vec![inside]);
    }
    let steps = (factor % iter.stride == 0).then(|| factor / iter.stride.abs())?;
    (iter.extent % steps == 0).then(|| {
        vec![
            Iter { extent: iter.extent / steps, stride: iter.stride.signum(), axis: outer.clone() },
            Iter { extent: steps, ..inside },
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> TileLayout {
        text.parse().unwrap()
    }

    fn scope(text: &str) -> Result<Option<(Scope, Scope)>, &'static str> {
        layout(text).scope().map_err(|e| e.code())
    }

    #[test]
    fn axes_chain_from_the_smallest_unit_to_the_largest_scope() {
        assert_eq!(scope("S[(8,4):(1@tid_in_wg,1@wgid)]"), Ok(Some((Scope::Thread, Scope::Cta))));
        assert_eq!(scope("S[(8,4):(1@tx,1@bx)]"), Ok(Some((Scope::Thread, Scope::Grid))));
        assert_eq!(scope("S[4:1@wgid]"), Ok(Some((Scope::Warpgroup, Scope::Cta))));
        assert_eq!(scope("S[8:1@m] + R[2:1@warpid]"), Ok(None));
    }

    #[test]
    fn thread_axes_that_are_not_named_are_listed_with_their_coordinates() {
        let unnamed = |text: &str, threads: i64| {
            let layout: Layout = text.parse().unwrap();
            let axes = layout.unnamed_thread_axes(threads);
            axes.iter().map(|(axis, count)| format!("{count}@{axis}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(unnamed("S[16:1@reg]", 64), "64@tx");
        assert_eq!(unnamed("S[16:1@reg]", 1), "");
        assert_eq!(unnamed("S[(32,4):(1@laneid,1@reg)]", 64), "2@warpid");
        assert_eq!(unnamed("S[(32,4):(1@laneid,1@reg)]", 32), "");
        assert_eq!(unnamed("S[(32,4):(1@laneid,1@reg)] + 1@warpid", 64), "");
        assert_eq!(unnamed("S[(1,32,4):(1@warpid,1@laneid,1@reg)]", 64), "");
        assert_eq!(unnamed("S[2:1@warpid] + R[8:1@laneid]", 64), "");
        assert_eq!(unnamed("S[2:1@warpid]", 64), "32@laneid");
        assert_eq!(unnamed("S[2:1@wgid]", 256), "128@tid_in_wg");
        assert_eq!(unnamed("S[(4,32):(1@wid_in_wg,1@laneid)]", 256), "2@wgid");
        assert_eq!(unnamed("S[4:1@wid_in_wg]", 256), "32@laneid 2@wgid");
    }

    #[test]
    fn axes_with_a_gap_or_an_overlap_have_no_scope() {
        assert_eq!(scope("S[(8,4):(1@laneid,1@wgid)]"), Err("L0120"));
        assert_eq!(scope("S[(8,4):(1@laneid,1@tx)]"), Err("L0120"));
    }

    #[test]
    fn all_thread_axes_of_a_cta_are_one_index() {
        let fragment = layout("S[(2,4,32,2):(1@wgid,1@wid_in_wg,1@laneid,1@reg)] + 1@wgid");
        assert_eq!(
            fragment.in_scope(Scope::Cta).unwrap().canonicalize().to_string(),
            "S[(256,2):(1@tx,1@reg)] + 128@tx"
        );
        assert_eq!(fragment.in_scope(Scope::Warp).unwrap_err().code(), "L0120");
    }

    #[test]
    fn a_thread_index_splits_where_groups_end() {
        let [tx, ..] = &RELATIONS;
        assert_eq!(layout("S[128:1@tx]").split_axis(tx).unwrap().to_string(), "S[(4,32):(1@warpid,1@laneid)]");
        assert_eq!(layout("S[(4,8):(4@tx,64@tx)]").split_axis(tx).unwrap().to_string(), "S[(4,8):(4@laneid,2@warpid)]");
        assert_eq!(layout("S[48:1@tx]").split_axis(tx).unwrap_err().code(), "L0120");
        assert_eq!(layout("S[32:1@tx] + 1@tx").split_axis(tx).unwrap_err().code(), "L0120");
    }

    #[test]
    fn joining_undoes_splitting() {
        for relation in &RELATIONS {
            let text = format!("S[(4,{}):({}@{w},1@{w})]", relation.factor, relation.factor, w = relation.whole);
            let whole = layout(&text);
            assert_eq!(whole.split_axis(relation).unwrap().join_axes(relation).unwrap(), whole);
        }
    }

    #[test]
    fn threads_that_do_not_exist_or_are_counted_twice_are_errors() {
        let said = |text: &str| layout(text).in_scope(Scope::Cta).map_or_else(|e| e.to_string(), |l| l.to_string());
        assert_eq!(said("S[64:1@laneid]"), "`laneid` has 32 positions (0 to 31); this layout reaches 63");
        assert_eq!(said("S[4:-1@tx]"), "positions on `tx` begin at 0; this layout reaches -3");
        assert_eq!(said("S[(2,2):(1@tx,1@laneid)]"), "`laneid` and `tx` count the same threads");
        let [tx, ..] = &RELATIONS;
        assert_eq!(layout("S[(4,2):(1@tx,1@laneid)]").split_axis(tx).unwrap_err().code(), "L0120");
        assert_eq!(layout("S[64:1@laneid]").join_axes(tx).unwrap_err().code(), "L0120");
        let nothing = AxisRelation { factor: 0, ..tx.clone() };
        assert_eq!(layout("S[4:1@tx]").split_axis(&nothing).unwrap_err().code(), "L0120");
    }
}
