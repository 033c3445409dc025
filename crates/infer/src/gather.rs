//! What was found, put together for those who ask.

use tilewright_ir::Handle;
use tilewright_ir::tile::Buffer;
use tilewright_layout::map::Map;

use crate::graph::{Graph, Origin};
use crate::known::{Known, Reason};
use crate::place::{Fixed, Why};
use crate::plans::WHOLE;
use crate::scene::{Scene, Work};
use crate::search::Settled;
use crate::storage::Storages;
use crate::tables::{MapId, Tables};
use crate::{Inferred, MemoryAccess, Placed};

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

    /// Adds what was found for a component. The steps of its nests are given back, each with its place in the graph.
    pub(crate) fn add(
        &mut self,
        graph: &Graph,
        scene: &Scene,
        tables: &mut Tables,
        settled: &Settled,
    ) -> Vec<(usize, Map)> {
        for (storage, fixed) in settled.state.fixed.iter().enumerate() {
            let Some(Fixed { map, why: Some(why) }) = fixed else { continue };
            let stored = &scene.storages[storage];
            let map = tables.map(*map).clone();
            let registers = (map.slots() as u64 * stored.bytes as u64).div_ceil(4);
            let note = (why.rule == WHOLE).then(|| format!("{registers} registers of every thread"));
            let placed = Placed { map, bytes: stored.bytes, reason: reason(scene, why), note };
            self.fragments.insert(stored.handle, placed);
        }
        self.cost += settled.cost;
        let mut loops = Vec::new();
        for (item, steps) in &settled.steps {
            let at = scene.items[*item].at;
            if let Some(work) = scene.work(*item) {
                self.accesses.extend(accesses(tables, graph.nodes[at].0, work, *steps));
            }
            loops.push((at, tables.map(*steps).clone()));
        }
        loops
    }
}

fn reason(scene: &Scene, why: &Why) -> Reason {
    let parent: Option<Handle<Buffer>> = why.parent.map(|storage| scene.storages[storage].handle);
    let op = scene.items[why.item].node.title().to_string();
    Reason { pass: why.pass, rule: why.rule, op, span: why.span, parent }
}

fn accesses(tables: &mut Tables, origin: Origin, work: &Work, steps: MapId) -> Vec<MemoryAccess> {
    let touches = work.nest.memory.iter().zip(&work.moves);
    let access = touches.map(|(touch, moves)| {
        let lanes = tables.lanes(moves, steps);
        MemoryAccess { origin, buffer: touch.buffer, writes: touch.writes, lanes }
    });
    access.collect()
}
