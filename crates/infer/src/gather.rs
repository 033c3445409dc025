//! Collects what the search found into [`Inferred`].

use std::sync::Arc;

use tilewright_layout::map::Map;

use crate::cost::Cost;
use crate::graph::Graph;
use crate::ids::MapId;
use crate::inferred::{Component, Inferred, MemoryAccess, Placed};
use crate::known::{Known, Reason};
use crate::nest::{MemoryTouch, Nest};
use crate::node::Origin;
use crate::price;
use crate::scene::{Scene, Work};
use crate::search::Settled;
use crate::state::Fixed;
use crate::storage::Storages;
use crate::tables::Tables;
use crate::vectors::Moves;

impl Inferred {
    /// What is known before the search.
    pub(crate) fn of_known(known: &Known, storages: &Storages) -> Inferred {
        let mut inferred = Inferred::default();
        for (storage, fixed) in known.iter() {
            let (map, bytes) = (Arc::new(fixed.map.clone()), storages.get(storage).bytes);
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
    ) -> Vec<(usize, Arc<Map>, Reason)> {
        for (storage, fixed) in settled.state.fixed.iter().enumerate() {
            let Some(Fixed { map, why: Some(why) }) = fixed else { continue };
            let stored = &scene.storages[storage];
            let map = tables.shared_map(*map);
            let note = price::of_copies(&map, stored.bytes);
            let placed = Placed { map, bytes: stored.bytes, reason: scene.reason(why), note };
            self.fragments.insert(stored.handle, placed);
        }
        self.add_component(graph, scene, settled.cost);
        let mut loops = Vec::new();
        for steps in &settled.steps {
            let at = scene.items[steps.why.item].at;
            let Some(work) = scene.work(steps.why.item) else { continue };
            self.accesses.extend(accesses(tables, graph.nodes[at].0, work, steps.map));
            loops.push((at, tables.shared_map(steps.map), scene.reason(&steps.why)));
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
    if lanes as i64 * touch.dtype.bytes() >= touch.widest {
        "the widest vector possible"
    } else if !touch.is_plain {
        "it is under a condition or in an inner loop"
    } else if touch.places.positions().is_none() {
        "its address is known only when the kernel runs"
    } else if !touch.is_movable {
        "the loop accesses the same memory elsewhere"
    } else if is_told {
        "`.vector` limits it"
    } else if lanes == moves.most && moves.ends_at_edge {
        "the tensor may end within wider vectors"
    } else if lanes == moves.most {
        "it is not known to be aligned to wider vectors"
    } else {
        "neighbouring steps do not form wider vectors"
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
            executions: 1,
            scanned: None,
            is_alone: false,
        };
        let (kernel, x) = kernel_of_x();
        let i = Var::new("i", 0, 63);
        let known = StaticAccess { buffer: x, elements: vec![vec![Expr::var(&i)]], gathered: None };
        let places = Arc::new(Places::of(&kernel, &known, &mut Splits::by(&[i])));
        let (dtype, widest) = (DType::F32, 16);
        let touch = MemoryTouch {
            buffer: x,
            writes: false,
            is_shared: true,
            places,
            dtype,
            widest,
            is_plain,
            is_movable,
            elements: 1,
            turns: 1,
        };
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
