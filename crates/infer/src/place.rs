//! Layouts that follow from layouts: the strict and common passes, and who does a nest whose fragments are all known.

use std::collections::{BTreeMap, VecDeque};

use tilewright_ir::Handle;
use tilewright_ir::tile::Buffer;
use tilewright_layout::map::{Map, Spread};

use crate::cost;
use crate::graph::{Graph, Node, Reduction};
use crate::known::{Known, Pass, Reason};
use crate::nest::{Nest, Touch};
use crate::steps::Violation;
use crate::storage::Storages;

/// What does not change while layouts are sought.
pub(crate) struct Scene<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) storages: &'a Storages,
    pub(crate) threads: usize,
    /// Steps of loops that the user laid out, by node.
    pub(crate) laid_out: BTreeMap<usize, Map>,
}

impl Scene<'_> {
    /// Derives what follows from the layouts that are known, breadth first, until nothing does. It ends, since
    /// a change adds a layout, or copies of elements to one.
    pub(crate) fn spread_out(&self, known: &mut Known, members: &[usize], pass: Pass) {
        let mut queue: VecDeque<usize> = members.iter().copied().collect();
        while let Some(at) = queue.pop_front() {
            let changed = self.derive(at, known, pass);
            for other in members {
                let is_user = self.graph.nodes[*other].1.storages().iter().any(|storage| changed.contains(storage));
                if is_user && *other != at && !queue.contains(other) {
                    queue.push_back(*other);
                }
            }
        }
    }

    /// The storages that a node gives a layout or more copies.
    fn derive(&self, at: usize, known: &mut Known, pass: Pass) -> Vec<Handle<Buffer>> {
        match &self.graph.nodes[at].1 {
            Node::Nest(nest) => self.derive_nest(at, nest, known, pass),
            Node::Reduce(reduction) => derive_reduction(reduction, known, pass),
            Node::Gemm(_) => Vec::new(),
        }
    }

    fn derive_nest(&self, at: usize, nest: &Nest, known: &mut Known, pass: Pass) -> Vec<Handle<Buffer>> {
        let Some((steps, parent)) = self.steps_that_follow(at, nest, known) else { return Vec::new() };
        if steps.missing().is_some() {
            return Vec::new();
        }
        let mut changed = Vec::new();
        for touch in &nest.touches {
            let map = nest.complete(touch, &steps, self.storages.get(touch.storage).granules);
            let reason = |rule| Reason { pass, rule, op: nest.title.clone(), span: touch.span, parent };
            match known.get(touch.storage) {
                None if map.missing().is_none() => {
                    known.set(touch.storage, map, reason("an element is where it is used"));
                    changed.push(touch.storage);
                }
                None => {}
                Some(fixed) if !touch.writes && fixed.reason.pass != Pass::Strict => {
                    let lacks = map.entries().any(|(thread, _, element)| !fixed.owners.has(element, thread));
                    if lacks {
                        let wider = fixed.map.widened(&map);
                        known.set(touch.storage, wider, reason("copied to where it is read"));
                        changed.push(touch.storage);
                    }
                }
                Some(_) => {}
            }
        }
        changed
    }

    /// The steps that a known fragment dictates: the one that is written, else one of which every iteration reads an
    /// element of its own.
    fn steps_that_follow(&self, at: usize, nest: &Nest, known: &Known) -> Option<(Map, Option<Handle<Buffer>>)> {
        if let Some(steps) = self.laid_out.get(&at) {
            return Some((steps.clone(), None));
        }
        let of = |touch: &Touch| {
            let fixed = known.get(touch.storage)?;
            Some((nest.steps_from(touch, &fixed.map, &fixed.owners), Some(touch.storage)))
        };
        let written = nest.touches.iter().filter(|touch| touch.writes).find_map(of);
        let own = |touch: &&Touch| touch.is_own();
        written.or_else(|| nest.touches.iter().filter(|touch| !touch.writes).filter(own).find_map(of))
    }

    /// Who does a nest whose fragments are all known, and what that costs.
    pub(crate) fn settle(&self, at: usize, nest: &Nest, known: &Known) -> Result<(Map, u64), Violation> {
        let mut first: Option<Violation> = None;
        let mut best: Option<(Map, u64)> = None;
        for steps in self.choices(at, nest, known) {
            match nest.check(&steps, known) {
                Ok(()) => {
                    let cost = cost::of_nest(nest, &steps);
                    if best.as_ref().is_none_or(|(_, least)| cost < *least) {
                        best = Some((steps, cost));
                    }
                }
                Err(violation) => first = first.or(Some(violation)),
            }
        }
        let nothing = || Violation { op: nest.title.clone(), what: "no thread has all that it touches".to_string() };
        best.ok_or_else(|| first.unwrap_or_else(nothing))
    }

    fn choices(&self, at: usize, nest: &Nest, known: &Known) -> Vec<Map> {
        if let Some((steps, _)) = self.steps_that_follow(at, nest, known)
            && (self.laid_out.contains_key(&at) || nest.touches.iter().any(|touch| touch.writes))
        {
            return vec![steps];
        }
        let from = |touch: &Touch| {
            let fixed = known.get(touch.storage)?;
            let steps = nest.steps_from(touch, &fixed.map, &fixed.owners);
            Some([steps.once(), steps])
        };
        let mut choices: Vec<Map> = nest.touches.iter().filter_map(from).flatten().collect();
        let plain = self.spreads(nest, false);
        choices.extend(plain.into_iter().map(|spread| Map::spread(self.threads, nest.iterations(), spread)));
        choices
    }

    /// Ways to share the iterations of a nest among the threads; by rows only where rows matter.
    pub(crate) fn spreads(&self, nest: &Nest, by_rows: bool) -> Vec<Spread> {
        let narrowest = nest.memory.iter().map(|touch| touch.bytes).min().unwrap_or(4).max(1);
        let widest = nest.vector.unwrap_or(16 / narrowest).clamp(1, 16);
        spreads(&nest.extents, self.threads, widest as usize, by_rows)
    }
}

/// Ways to share elements of these extents among threads, the widest vectors first.
pub(crate) fn spreads(extents: &[i64], threads: usize, widest: usize, by_rows: bool) -> Vec<Spread> {
    let all = extents.iter().product::<i64>().max(1) as usize;
    let row = extents.last().copied().unwrap_or(1).max(1) as usize;
    let mut out: Vec<Spread> = Vec::new();
    let mut vector = if widest > 1 { 1 << widest.ilog2() } else { 1 };
    while vector >= 1 {
        if row.is_multiple_of(vector) {
            out.push(Spread { row: all, group: threads, groups: 1, vector });
            let mut group = 1;
            while by_rows && group <= threads && row < all {
                if threads.is_multiple_of(group) && row.div_ceil(vector) >= group {
                    out.push(Spread { row, group, groups: threads / group, vector });
                }
                group *= 2;
            }
        }
        vector /= 2;
    }
    out
}

fn derive_reduction(reduction: &Reduction, known: &mut Known, pass: Pass) -> Vec<Handle<Buffer>> {
    let Some(source) = known.get(reduction.src) else { return Vec::new() };
    if known.get(reduction.dst).is_some() {
        return Vec::new();
    }
    let map = source.map.through(reduction.rows, &|granule| Some(reduction.row_of[granule] as usize));
    let reason = Reason {
        pass,
        rule: "a result is where part of its row is",
        op: reduction.title.clone(),
        span: reduction.span,
        parent: Some(reduction.src),
    };
    known.set(reduction.dst, map, reason);
    vec![reduction.dst]
}

impl Reduction {
    /// Every result is only where part of its row is.
    pub(crate) fn check(&self, known: &Known) -> Result<(), Violation> {
        let (Some(source), Some(result)) = (known.get(self.src), known.get(self.dst)) else { return Ok(()) };
        let rows = source.map.through(self.rows, &|granule| Some(self.row_of[granule] as usize)).owners();
        for row in 0..self.rows {
            if let Some(thread) = result.owners.of(row).iter().find(|thread| !rows.has(row, **thread as usize)) {
                let what = format!("result {row} is on thread {thread}, which has no part of its row");
                return Err(Violation { op: self.title.clone(), what });
            }
        }
        Ok(())
    }
}
