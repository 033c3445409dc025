//! Collects what the search found into [`Inferred`].

use tilewright_ir::Handle;
use tilewright_ir::tile::Buffer;
use tilewright_ir::tile::vectors::WIDEST;
use tilewright_layout::map::Map;

use crate::cost::Cost;
use crate::graph::{Graph, Origin};
use crate::known::{Known, Pass, Reason, WRITTEN};
use crate::nest::{MemoryTouch, Nest};
use crate::place::{Fixed, State, Why};
use crate::price;
use crate::scene::{Scene, Work};
use crate::search::Settled;
use crate::storage::Storages;
use crate::tables::{MapId, Tables};
use crate::vectors::Moves;
use crate::{Component, Inferred, MemoryAccess, Placed};

/// The rule of nests that give their fragments a layout.
const SHARED: &str = "shared among the threads";
/// The rule of nests that are done by the threads that have a fragment's elements.
const FOLLOWS: &str = "done by the threads that have what it touches";
/// The rule of nests that are done by the first thread that has a fragment's element.
const ONCE: &str = "done by the first thread that has what it reads";
/// The rule of other nests, which read elements that several threads have.
const CHEAPEST: &str = "shared among the threads that have what it reads, in the cheapest way";

impl Inferred {
    /// What is known before the search.
    pub(crate) fn of_known(known: &Known, storages: &Storages) -> Inferred {
        let mut inferred = Inferred::default();
        for (storage, fixed) in known.iter() {
            let (map, bytes) = (fixed.map.clone(), storages.get(storage).bytes);
            inferred.fragments.insert(storage, Placed { map, bytes, reason: fixed.reason.clone(), note: None });
        }
        inferred
    }

    /// Adds what was found for a component. Returns the steps of its nests, each with the index of its node in the
    /// graph and the reason.
    pub(crate) fn add(
        &mut self,
        graph: &Graph,
        scene: &Scene,
        tables: &mut Tables,
        settled: &Settled,
    ) -> Vec<(usize, Map, Reason)> {
        for (storage, fixed) in settled.state.fixed.iter().enumerate() {
            let Some(Fixed { map, why: Some(why) }) = fixed else { continue };
            let stored = &scene.storages[storage];
            let map = tables.map(*map).clone();
            let note = price::of_copies(&map, stored.bytes);
            let placed = Placed { map, bytes: stored.bytes, reason: reason(scene, why), note };
            self.fragments.insert(stored.handle, placed);
        }
        self.add_component(graph, scene, settled.cost);
        let mut loops = Vec::new();
        for (item, steps) in &settled.steps {
            let at = scene.items[*item].at;
            let Some(work) = scene.work(*item) else { continue };
            self.accesses.extend(accesses(tables, graph.nodes[at].0, work, *steps));
            let (pass, rule, parent) = rule_of_steps(tables, &settled.state, (*item, work, *steps));
            let (op, span) = (work.nest.title.clone(), work.nest.span);
            let parent = parent.map(|storage| scene.storages[storage].handle);
            loops.push((at, tables.map(*steps).clone(), Reason { pass, rule, op, span, parent }));
        }
        loops
    }

    fn add_component(&mut self, graph: &Graph, scene: &Scene, cost: Cost) {
        let fragments = scene.storages.iter().map(|stored| stored.handle).collect();
        let ops = scene.items.iter().map(|item| graph.nodes[item.at].0).collect();
        self.components.push(Component { fragments, ops, cost });
        self.cost += cost;
    }
}

pub(crate) fn reason(scene: &Scene, why: &Why) -> Reason {
    let parent: Option<Handle<Buffer>> = why.parent.map(|storage| scene.storages[storage].handle);
    let op = scene.items[why.item].node.title().to_string();
    Reason { pass: why.pass, rule: why.rule, op, span: why.span, parent }
}

/// Why a nest is done in these steps, and which storage they follow.
fn rule_of_steps(
    tables: &mut Tables,
    state: &State,
    (item, work, steps): (usize, &Work, MapId),
) -> (Pass, &'static str, Option<usize>) {
    if work.laid_out.is_some() {
        return (Pass::Strict, WRITTEN, None);
    }
    if state.hints[item] == Some(steps) {
        return (Pass::Free, SHARED, None);
    }
    if let Some((follows, parent)) = work.steps_that_follow(tables, state)
        && follows == steps
    {
        return (Pass::Common, FOLLOWS, parent.map(|storage| source(state, item, storage)));
    }
    // The search does not take steps that are many times a thread's share.
    let most = 4 * work.iterations.div_ceil(tables.threads());
    for touch in &work.touches {
        let Some(map) = state.map(touch.storage) else { continue };
        let is_sole = tables.facts(map).is_sole && tables.pattern(touch.pattern).trips() == 1;
        if !is_sole && tables.most_steps_from(map, touch.pattern) > most {
            continue;
        }
        let all = tables.steps_from(map, touch.pattern);
        if all == steps {
            let pass = if is_sole { Pass::Common } else { Pass::Free };
            return (pass, FOLLOWS, Some(touch.storage));
        }
        if tables.once(all) == steps {
            return (Pass::Free, ONCE, Some(touch.storage));
        }
    }
    let rule = if work.touches.is_empty() { SHARED } else { CHEAPEST };
    (Pass::Free, rule, None)
}

/// The storage that an op follows. If that got its map from this op itself, it is the storage that the map came from.
fn source(state: &State, item: usize, storage: usize) -> usize {
    let why = state.fixed[storage].and_then(|fixed| fixed.why).filter(|why| why.item == item);
    why.and_then(|why| why.parent).unwrap_or(storage)
}

fn accesses(tables: &mut Tables, origin: Origin, work: &Work, steps: MapId) -> Vec<MemoryAccess> {
    let touches = work.nest.memory.iter().zip(&work.moves);
    let access = touches.map(|(touch, moves)| {
        let issue = tables.issue(work.nest, moves, steps);
        let limit = limit(work.nest, touch, moves, issue.widths.1);
        MemoryAccess { origin, buffer: touch.buffer, writes: touch.writes, widths: issue.widths, limit }
    });
    access.collect()
}

/// Why a thread does not move more elements at once.
fn limit(nest: &Nest, touch: &MemoryTouch, moves: &Moves, lanes: usize) -> &'static str {
    let is_told = nest.vector.is_some_and(|vector| vector < 2 * lanes as i64);
    if lanes as i64 * touch.dtype.bytes() >= WIDEST {
        "the widest vector possible"
    } else if !touch.is_plain {
        "it is under a condition or in an inner loop"
    } else if touch.places.positions().is_none() {
        "its address is known only when the kernel runs"
    } else if !touch.is_movable {
        "the loop accesses the same memory elsewhere"
    } else if is_told {
        "`.vector` limits it"
    } else if lanes == moves.most {
        "it is not known to be aligned to wider vectors"
    } else {
        "neighbouring steps do not form wider vectors"
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use tilewright_diag::Span;
    use tilewright_expr::points::Splits;
    use tilewright_expr::{Expr, Var};
    use tilewright_ir::tile::vectors::{Places, StaticAccess};
    use tilewright_layout::DType;

    use super::*;
    use crate::small_kernels::kernel_of_x;

    fn limited(vector: Option<i64>, is_plain: bool, is_movable: bool, most: usize, lanes: usize) -> &'static str {
        let nest = Nest {
            title: "parallel i".to_string(),
            span: Span::here(),
            extents: vec![64],
            touches: Vec::new(),
            memory: Vec::new(),
            vector,
            turns: 1,
            together: 4,
            is_alone: false,
        };
        let (kernel, x) = kernel_of_x();
        let i = Var::new("i", 0, 63);
        let known = StaticAccess { buffer: x, index: vec![Expr::var(&i)] };
        let places = Rc::new(Places::of(&kernel, &known, &mut Splits::by(&[i])));
        let dtype = DType::F32;
        let touch =
            MemoryTouch { buffer: x, writes: false, is_shared: true, places, dtype, is_plain, is_movable, turns: 1 };
        let moves = Moves { most, ..Moves::of(&mut Tables::new(32), &nest, &touch) };
        limit(&nest, &touch, &moves, lanes)
    }

    #[test]
    fn a_width_is_explained_by_what_keeps_it_from_growing() {
        assert_eq!(limited(None, true, true, 4, 4), "the widest vector possible");
        assert_eq!(limited(None, false, false, 1, 1), "it is under a condition or in an inner loop");
        assert_eq!(limited(None, true, false, 1, 1), "the loop accesses the same memory elsewhere");
        assert_eq!(limited(Some(2), true, true, 2, 2), "`.vector` limits it");
        assert_eq!(limited(None, true, true, 2, 2), "it is not known to be aligned to wider vectors");
        assert_eq!(limited(None, true, true, 4, 2), "neighbouring steps do not form wider vectors");
    }
}
