//! Which instructions are on every path from or to another one, within a function.

use std::ops::Range;

use crate::op::Op;
use crate::program::{Inst, Program};

/// The instructions of a program, each with the nearest one that is on every path to it from the start, and on every path from it
/// to the end of its function. The number of instructions stands for that end.
#[derive(Debug)]
pub(crate) struct ControlFlow {
    dominators: Dominators,
    post_dominators: Dominators,
}

impl ControlFlow {
    pub(crate) fn of(program: &Program) -> ControlFlow {
        let end = program.code.len() as u32;
        let mut next: Vec<Vec<u32>> = (0..end).map(|pc| successors(program, pc)).collect();
        next.push(Vec::new());
        let mut before = vec![Vec::new(); next.len()];
        for pc in 0..end {
            next[pc as usize].iter().for_each(|next| before[*next as usize].push(pc));
        }
        let (dominators, post_dominators) = (Dominators::of(0, &before, &next), Dominators::of(end, &next, &before));
        ControlFlow { dominators, post_dominators }
    }

    /// Where the paths of the branch at `pc` reconverge; `None` if the end cannot be reached from it.
    pub(crate) fn join(&self, pc: u32) -> Option<u32> {
        self.post_dominators.nearest(pc)
    }

    /// Whether a lane that has exited at `exit` went past the instruction at `pc` without executing it: it has executed something
    /// else with an effect that all do after that instruction, and not all before it.
    pub(crate) fn goes_past(&self, program: &Program, pc: u32, exit: u32) -> bool {
        let (before, after) = (&self.dominators, &self.post_dominators);
        let is_effect = |at: &u32| {
            let op = &program.code[*at as usize].op;
            !matches!(op, Op::Bra { .. } | Op::Ret | Op::Exit | Op::Nop | Op::Scalar(_) | Op::Load(_))
        };
        !before.dominates(pc, exit)
            && before.all(exit).filter(is_effect).any(|at| after.dominates(at, pc) && !before.dominates(at, pc))
    }
}

/// The tree of the dominators of a graph.
#[derive(Debug)]
struct Dominators {
    /// The nearest dominator of each node.
    nearest: Vec<u32>,
    /// For each node, the numbers of the nodes of its subtree.
    subtrees: Vec<Range<u32>>,
}

/// The root does not lead to the node.
const NONE: u32 = u32::MAX;

impl Dominators {
    /// Computes them by iteration (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001), from the edges into
    /// each node and out of it.
    fn of(root: u32, into: &[Vec<u32>], out: &[Vec<u32>]) -> Dominators {
        let order = post_order(root, out);
        let mut number = vec![0u32; into.len()];
        for (at, node) in (0..).zip(&order) {
            number[*node as usize] = at;
        }
        let mut nearest = vec![NONE; into.len()];
        nearest[root as usize] = root;
        loop {
            let mut changes = false;
            // The root first: it is the last in the order.
            for node in order.iter().rev().filter(|node| **node != root) {
                let known = into[*node as usize].iter().copied().filter(|node| nearest[*node as usize] != NONE);
                let found = known.reduce(|one, other| meet(&nearest, &number, one, other)).unwrap_or(NONE);
                changes |= nearest[*node as usize] != found;
                nearest[*node as usize] = found;
            }
            if !changes {
                return Dominators { subtrees: subtrees(root, &nearest), nearest };
            }
        }
    }

    fn nearest(&self, node: u32) -> Option<u32> {
        self.nearest.get(node as usize).copied().filter(|found| *found != NONE)
    }

    /// Whether a node is on every path to another one, or the same.
    fn dominates(&self, node: u32, other: u32) -> bool {
        let other = &self.subtrees[other as usize];
        !other.is_empty() && self.subtrees[node as usize].contains(&other.start)
    }

    /// All instructions that dominate one, without itself.
    fn all(&self, node: u32) -> impl Iterator<Item = u32> {
        let end = self.nearest.len() as u32 - 1;
        let next = |at: &u32| self.nearest(*at).filter(|next| next != at);
        std::iter::successors(next(&node), next).filter(move |at| *at != end)
    }
}

/// The numbers of the nodes below each node of a tree, in the order in which they are reached from the root; nothing for nodes that
/// are not in it.
fn subtrees(root: u32, parents: &[u32]) -> Vec<Range<u32>> {
    let mut children = vec![Vec::new(); parents.len()];
    for (node, parent) in (0..).zip(parents).filter(|(node, parent)| **parent != NONE && *node != root) {
        children[*parent as usize].push(node);
    }
    let mut found = vec![0..0; parents.len()];
    let (mut number, mut open) = (0, vec![(root, 0)]);
    while let Some((node, at)) = open.pop() {
        if at == 0 {
            found[node as usize].start = number;
            number += 1;
        }
        match children[node as usize].get(at) {
            Some(child) => open.extend([(node, at + 1), (*child, 0)]),
            None => found[node as usize].end = number,
        }
    }
    found
}

/// The nearest common dominator of two nodes, which may be one of them.
fn meet(nearest: &[u32], number: &[u32], mut one: u32, mut other: u32) -> u32 {
    while one != other {
        let (a, b) = (number[one as usize], number[other as usize]);
        if a < b {
            one = nearest[one as usize];
        } else {
            other = nearest[other as usize];
        }
    }
    one
}

/// The successors of an instruction within its function; the number of instructions stands for the end of the function.
fn successors(program: &Program, pc: u32) -> Vec<u32> {
    let end = program.code.len() as u32;
    let Inst { guard, op, .. } = &program.code[pc as usize];
    let mut found = op.successors(pc, end);
    if guard.is_some() {
        found.push(pc + 1);
    }
    found.iter_mut().for_each(|next| *next = (*next).min(end));
    found
}

/// All nodes that the root leads to, in post-order: the root is the last one.
fn post_order(root: u32, out: &[Vec<u32>]) -> Vec<u32> {
    let (mut order, mut is_seen) = (Vec::new(), vec![false; out.len()]);
    let mut open = vec![(root, 0)];
    is_seen[root as usize] = true;
    while let Some((node, at)) = open.pop() {
        match out[node as usize].get(at) {
            Some(next) => {
                open.push((node, at + 1));
                if !is_seen[*next as usize] {
                    is_seen[*next as usize] = true;
                    open.push((*next, 0));
                }
            }
            None => order.push(node),
        }
    }
    order
}
