//! Where the paths of a branch reconverge: its immediate post-dominator among the instructions of the program.

use crate::program::{Inst, Program};

/// The immediate post-dominator of each instruction; the number of instructions stands for the end of the function.
#[derive(Debug)]
pub(crate) struct PostDominators(Vec<u32>);

/// No post-dominator is known: the end cannot be reached from there.
const NONE: u32 = u32::MAX;

impl PostDominators {
    /// Computes the post-dominators by iteration over the instructions, the last one first (Cooper, Harvey and Kennedy,
    /// "A Simple, Fast Dominance Algorithm", 2001, on the reversed graph).
    pub(crate) fn of(program: &Program) -> PostDominators {
        let end = program.code.len() as u32;
        let order = post_order(program);
        let mut number = vec![0u32; program.code.len() + 1];
        for (at, pc) in (0..).zip(&order) {
            number[*pc as usize] = at;
        }
        let mut joins = vec![NONE; program.code.len() + 1];
        joins[end as usize] = end;
        loop {
            let mut changes = false;
            // The end first: it is the last in the order.
            for pc in order.iter().rev().filter(|pc| **pc != end) {
                let known = next(program, *pc).into_iter().filter(|next| joins[*next as usize] != NONE);
                let join = known.reduce(|one, other| meet(&joins, &number, one, other)).unwrap_or(NONE);
                changes |= joins[*pc as usize] != join;
                joins[*pc as usize] = join;
            }
            if !changes {
                return PostDominators(joins);
            }
        }
    }

    /// Where the paths of the branch at `pc` reconverge; `None` if the end cannot be reached from it.
    pub(crate) fn at(&self, pc: u32) -> Option<u32> {
        self.0.get(pc as usize).copied().filter(|join| *join != NONE)
    }
}

/// The nearest common post-dominator of two instructions, which may be one of them.
fn meet(joins: &[u32], number: &[u32], mut one: u32, mut other: u32) -> u32 {
    while one != other {
        let (a, b) = (number[one as usize], number[other as usize]);
        if a < b {
            one = joins[one as usize];
        } else {
            other = joins[other as usize];
        }
    }
    one
}

/// The successors of an instruction within its function; the number of instructions stands for the end of the function.
fn next(program: &Program, pc: u32) -> Vec<u32> {
    let end = program.code.len() as u32;
    let Inst { guard, op, .. } = &program.code[pc as usize];
    let mut found = op.successors(pc, end);
    if guard.is_some() {
        found.push(pc + 1);
    }
    found.iter_mut().for_each(|next| *next = (*next).min(end));
    found
}

/// All instructions from which the end can be reached, in post-order of the reversed graph: outside of loops, each
/// follows its predecessors, and the end is last.
fn post_order(program: &Program) -> Vec<u32> {
    let end = program.code.len() as u32;
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); program.code.len() + 1];
    for pc in 0..end {
        next(program, pc).into_iter().for_each(|next| before[next as usize].push(pc));
    }
    let (mut order, mut is_seen) = (Vec::new(), vec![false; program.code.len() + 1]);
    let mut open = vec![(end, 0)];
    is_seen[end as usize] = true;
    while let Some((pc, at)) = open.pop() {
        match before[pc as usize].get(at) {
            Some(earlier) => {
                open.push((pc, at + 1));
                if !is_seen[*earlier as usize] {
                    is_seen[*earlier as usize] = true;
                    open.push((*earlier, 0));
                }
            }
            None => order.push(pc),
        }
    }
    order
}
