//! Ways to lay out a fragment that were not taken: what they would cost, or the first conflict.
//!
//! The search skips what cannot be cheaper and keeps no list, so the alternatives are computed on request.

use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Kernel, KernelsByRole};
use tilewright_layout::map::Spread;

use crate::cost::Cost;
use crate::graph::Graph;
use crate::inferred::{Inferred, Placed};
use crate::known::Pass;
use crate::node::Origin;
use crate::plans::Way;
use crate::scene::Scene;
use crate::state::State;
use crate::steps::Violation;
use crate::storage::Storages;
use crate::strict::{laid_out_loops, strict, threads_of};
use crate::tables::Tables;

/// The maximum number of plans that are evaluated.
const MOST: usize = 48;

/// A way to lay out a fragment that was not taken.
#[derive(Clone, Debug)]
pub struct Alternative {
    /// The way, in words.
    pub way: String,
    /// What the whole component would cost, or the first conflict.
    pub outcome: Result<Cost, Violation>,
}

impl Inferred {
    /// Other ways to lay out a fragment whose layout was chosen and follows from no other, the cheapest first; those
    /// that fail come last. Ways that leave the layout of another fragment open are left out. The kernel is the one
    /// that [`lay_out`](crate::lay_out) returned.
    pub fn alternatives(&self, kernel: &Kernel, fragment: Handle<Buffer>) -> Vec<Alternative> {
        let placed = self.fragments.get(&fragment);
        let chosen = placed.filter(|placed| placed.reason.pass == Pass::Free && placed.reason.parent.is_none());
        let other = chosen.and_then(|taken| others(&self.as_written(kernel), fragment, taken));
        other.unwrap_or_default()
    }

    /// The kernel without the layouts that were inferred.
    fn as_written(&self, kernel: &Kernel) -> Kernel {
        let mut kernel = kernel.clone();
        for (fragment, _) in self.fragments.iter().filter(|(_, placed)| !placed.reason.is_written()) {
            kernel.buffers[*fragment].layout = None;
        }
        for ((origin, _), reason) in self.loops.iter().zip(&self.loop_reasons) {
            match origin {
                Origin::Op(op) => kernel.ops[*op].layout = None,
                Origin::Parallel(parallel) if !reason.is_written() => kernel.parallels[*parallel].layout = None,
                Origin::Parallel(_) => {}
            }
        }
        kernel
    }
}

fn others(kernel: &Kernel, fragment: Handle<Buffer>, taken: &Placed) -> Option<Vec<Alternative>> {
    let storages = Storages::of(kernel);
    let kernels = KernelsByRole::of(kernel);
    let graph = Graph::of(&kernels, &storages);
    let known = strict(&kernels, &storages, &graph).ok()?;
    let laid_out = laid_out_loops(&kernels, &graph).ok()?;
    let touches = |at: &usize| graph.uses.of_op(*at).contains(&fragment);
    let members = graph.uses.components().into_iter().find(|members| members.iter().any(touches))?;
    let mut tables = Tables::new(threads_of(kernels.seen_by_user_of(fragment)));
    let scene = Scene::of(&mut tables, (&graph, &storages), &known, &laid_out, &members);
    let storage = scene.storages.iter().position(|stored| stored.handle == fragment)?;
    let mut start = scene.start();
    let everything = (0..scene.items.len()).collect();
    scene.propagate(&mut tables, &mut start, everything, u64::MAX, &mut Vec::new());
    let (families, family_of) = scene.families(&tables, &start);
    let family = &families[family_of[storage]?];
    let mut seen = vec![tables.number((*taken.map).clone())];
    let mut found = Vec::new();
    for plan in scene.plans(family).into_iter().take(MOST) {
        let mut state = start.clone();
        let chosen = scene.follow(&mut tables, plan.way, &mut state);
        let users = scene.users_of(&chosen);
        let ends = scene.propagate(&mut tables, &mut state, users, u64::MAX, &mut Vec::new());
        let Some(map) = state.map(storage).filter(|map| ends && !seen.contains(map)) else { continue };
        seen.push(map);
        if scene.open(&state).is_none() {
            let outcome = scene.cost_of(&mut tables, &state);
            found.push(Alternative { way: scene.way_title(kernel, plan.way), outcome });
        }
    }
    found.sort_by_key(|one| one.outcome.as_ref().map_or(u64::MAX, |cost| cost.total()));
    Some(found)
}

impl Scene<'_> {
    /// The cost of a state in which every storage has a map, or the first conflict.
    fn cost_of(&self, tables: &mut Tables, state: &State) -> Result<Cost, Violation> {
        let mut cost = Cost::default();
        for item in 0..self.items.len() {
            match self.settle(tables, state, item, u64::MAX) {
                Some(settlement) => cost += settlement.cost,
                None => return Err(self.violation(tables, state)),
            }
        }
        for storage in 0..self.storages.len() {
            cost.registers += state.map(storage).map_or(0, |map| self.registers(tables, storage, map));
        }
        Ok(cost)
    }

    fn way_title(&self, kernel: &Kernel, way: Way) -> String {
        let name = |storage: usize| kernel.buffers[self.storages[storage].handle].name.as_str();
        match way {
            Way::Nest(item, spread, along) => {
                let fastest = along.map_or_else(String::new, |along| format!(", dimension {along} fastest"));
                let iterations = self.work(item).map_or(0, |work| work.iterations);
                format!("`{}` {}{fastest}", self.items[item].node.title(), spread_title(spread, iterations))
            }
            Way::Storage(storage, spread) => {
                format!("`{}` {}", name(storage), spread_title(spread, self.storages[storage].granules))
            }
            Way::Whole(storage) => format!("all of `{}` on every thread", name(storage)),
        }
    }
}

/// `in vectors of 4 by 64 threads in turn`
fn spread_title(spread: Spread, elements: usize) -> String {
    let Spread { row, group, groups, vector } = spread;
    let by = format!("in vectors of {vector} by {group} threads in turn");
    if row >= elements { by } else { format!("in rows of {row}, {groups} at once, each {by}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_told_by_its_vectors_and_rows() {
        let plain = Spread { row: 64, group: 32, groups: 1, vector: 2 };
        assert_eq!(spread_title(plain, 64), "in vectors of 2 by 32 threads in turn");
        let rows = Spread { row: 16, group: 4, groups: 8, vector: 4 };
        assert_eq!(spread_title(rows, 64), "in rows of 16, 8 at once, each in vectors of 4 by 4 threads in turn");
    }
}
