//! Which loops the copy engine serves.
//!
//! The copies of an unrolled loop share their stages, and some of them may be unable to use the engine, since they have too
//! few iterations, say. Then none does: the barriers of a ring order nothing else that happens to its stages.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::Handle;
use tilewright_ir::thread::{Memory, Program, for_each_stmt};

use super::RunsAhead;
use crate::sync::{Block, LoopBlock, OpBlock};

/// The loops that may take the engine, and would, and have not been rotated.
#[derive(Default)]
pub(super) struct Served {
    /// Their numbers, and the memories of their stages.
    loops: BTreeMap<usize, BTreeSet<Handle<Memory>>>,
}

impl Served {
    /// The loops for which `takes` holds, and of whose stages nothing else makes use.
    pub(super) fn of(program: &Program, blocks: &[Block], takes: &dyn Fn(&RunsAhead, &LoopBlock) -> bool) -> Served {
        let mut all = Vec::new();
        pipelined(blocks, &mut |inner, ahead| all.push((inner, ahead)));
        all.retain(|(inner, ahead)| takes(ahead, inner));
        loop {
            let loops: BTreeSet<usize> = all.iter().map(|(inner, _)| inner.inner.id).collect();
            let mut used = BTreeSet::new();
            outside(program, blocks, &loops, &mut used);
            let before = all.len();
            all.retain(|(_, ahead)| ahead.memories().is_disjoint(&used));
            if all.len() == before {
                return Served {
                    loops: all.into_iter().map(|(inner, ahead)| (inner.inner.id, ahead.memories())).collect(),
                };
            }
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> i64 {
        self.loops.len() as i64
    }

    /// Removes a loop, and returns whether it was among them. If it `cannot` be served after all, the loops that share its
    /// stages are removed as well.
    pub(super) fn take(&mut self, number: usize, cannot: bool) -> bool {
        let Some(memories) = self.loops.remove(&number) else { return false };
        if cannot {
            self.loops.retain(|_, others| others.is_disjoint(&memories));
        }
        true
    }
}

/// Calls `visit` on all pipelined loops.
fn pipelined<'a>(blocks: &'a [Block], visit: &mut dyn FnMut(&'a LoopBlock, &'a RunsAhead)) {
    for block in blocks {
        match block {
            Block::Op(_) => {}
            Block::Loop(inner) => {
                if let Some(ahead) = &inner.ahead {
                    visit(inner, ahead);
                }
                pipelined(&inner.body, visit);
            }
            Block::If(branches) => {
                [&branches.then, &branches.otherwise].into_iter().for_each(|branch| pipelined(&branch.body, visit));
            }
        }
    }
}

/// Adds the memories that blocks use, without the stages of loops that are served.
fn outside(program: &Program, blocks: &[Block], served: &BTreeSet<usize>, used: &mut BTreeSet<Handle<Memory>>) {
    for block in blocks {
        match block {
            Block::Op(op) => of_op(program, op, used),
            Block::Loop(inner) => match inner.ahead.as_ref().filter(|_| served.contains(&inner.inner.id)) {
                None => outside(program, &inner.body, served, used),
                Some(ahead) => {
                    let (mut inside, own) = (BTreeSet::new(), ahead.memories());
                    outside(program, &inner.body, served, &mut inside);
                    used.extend(inside.difference(&own));
                }
            },
            Block::If(branches) => {
                of_op(program, &branches.first, used);
                for branch in [&branches.then, &branches.otherwise] {
                    outside(program, &branch.body, served, used);
                }
            }
        }
    }
}

fn of_op(program: &Program, op: &OpBlock, used: &mut BTreeSet<Handle<Memory>>) {
    for_each_stmt(&op.body, &mut |stmt| used.extend(stmt.accesses().map(|access| program.owner(access.memory))));
}
