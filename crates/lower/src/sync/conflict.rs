//! Whether two groups of accesses conflict, and between which threads.

use tilewright_expr::Var;
use tilewright_ir::thread::{Memory, Program};
use tilewright_ir::{Counter, Handle};
use tilewright_layout::axis::Scope;

use super::accesses::AccessGroup;
use super::block::LoopRef;
use super::names::name_in;
use super::tensors::in_tensors;
use super::touched::{Conflict, Touched, meet};
use crate::trace::Env;

/// A loop around two accesses, of which the first belongs to an earlier iteration.
#[derive(Clone, Debug)]
pub(super) struct Again {
    /// What the loop counts through.
    pub(super) counter: Counter,
    /// Which iterations may follow the first one before a barrier does.
    pub(super) order: Order,
}

/// Which iterations of a loop may follow one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The next one.
    Next,
    /// The next one, and all after that.
    Later,
    /// Any other one: the values of a claimed loop are in no order.
    Any,
}

/// The scope in which `later` has to be ordered after `earlier`, and why; `None` if program order suffices.
pub(super) fn conflict(
    program: &Program,
    earlier: &AccessGroup,
    later: &AccessGroup,
    again: Option<&Again>,
    widest: Scope,
) -> Option<(Scope, String)> {
    let mut common = earlier.touched.common(&later.touched);
    common.retain(|(memory, _)| !are_of_other_tiles(*memory, [earlier, later], again));
    if common.is_empty() {
        return None;
    }
    let may = |way: usize| common.iter().any(|(_, ways)| ways[way]).then_some(widest);
    let most = Conflict { by_read: may(0), by_write: may(1) };
    let memories: Vec<Handle<Memory>> = common.iter().map(|(memory, _)| *memory).collect();
    let conflict = exact(program, earlier, later, again, &memories, most)
        .or_else(|| in_shared(program, earlier, later, again, &memories, most))
        .or_else(|| in_tensors(program, [earlier, later], again, &memories, most))
        .unwrap_or(most);
    let found = conflict.scope()?;
    let name = |memory: &Handle<Memory>| name_in(program, later.touched.body(), *memory);
    let names: Vec<String> = memories.iter().map(name).collect();
    let verb = if conflict.by_write == Some(found) { "writes" } else { "reads" };
    let when = if earlier.earlier { " of an earlier iteration" } else { "" };
    let reason = |between: &str| {
        let (now, before) = (&later.title, &earlier.title);
        format!("{now} {verb} {} after {before}{when}, {between}", names.join(", "))
    };
    Some(match found {
        Scope::Thread | Scope::Warp => (Scope::Warp, reason("by other lanes of the warp")),
        Scope::Warpgroup | Scope::Cta | Scope::Cluster | Scope::Grid | Scope::Mesh => {
            (Scope::Cta, reason("by other warps"))
        }
    })
}

/// The exact answer, by comparing the touched bytes for all relevant values of loop variables and block indices. The
/// search ends early at `most`. `None` if there are too many values, or if they do not determine the bytes.
fn exact(
    program: &Program,
    earlier: &AccessGroup,
    later: &AccessGroup,
    again: Option<&Again>,
    common: &[Handle<Memory>],
    most: Conflict,
) -> Option<Conflict> {
    let touched: [&Touched; 2] = [&earlier.touched, &later.touched];
    bytewise(program, ([earlier, later], again), touched, common, most)
}

/// The same for shared memory, if conditions on block indices, sizes and data may hold or not. `None` for other memory.
fn in_shared(
    program: &Program,
    earlier: &AccessGroup,
    later: &AccessGroup,
    again: Option<&Again>,
    common: &[Handle<Memory>],
    most: Conflict,
) -> Option<Conflict> {
    let are_shared = common.iter().all(|memory| program.memories[*memory].is_shared());
    let touched = are_shared.then(|| [earlier, later].map(|group| group.touched.in_shared(program, &group.loops)))?;
    bytewise(program, ([earlier, later], again), touched, common, most)
}

/// The conflict between what two groups are taken to touch.
fn bytewise(
    program: &Program,
    ([earlier, later], again): ([&AccessGroup; 2], Option<&Again>),
    [a, b]: [&Touched; 2],
    common: &[Handle<Memory>],
    most: Conflict,
) -> Option<Conflict> {
    if common.iter().any(|memory| a.is_unknown(*memory) || b.is_unknown(*memory)) {
        return None;
    }
    let shared: Vec<&Var> = earlier.loops.iter().filter(|l| later.loops.contains(l)).map(|l| &l.counter.var).collect();
    let (before, after) = (a.cases(program)?, b.cases(program)?);
    let mut found = Conflict::default();
    for a_case in before {
        for b_case in after {
            let same_block = agree(&a_case.env, &b_case.env, a.blocks.iter());
            if same_block && related(&a_case.env, &b_case.env, &shared, again) {
                found = found.max(meet(&a_case.bytes, &b_case.bytes, most));
                if found == most {
                    return Some(found);
                }
            }
        }
    }
    Some(found)
}

fn value(env: &Env, var: &Var) -> Option<i64> {
    env.iter().find(|(known, _)| known == var).map(|(_, value)| *value)
}

/// True when both assign the same values to those of these variables that both contain.
fn agree<'v>(a: &Env, b: &Env, mut vars: impl Iterator<Item = &'v Var>) -> bool {
    vars.all(|var| match (value(a, var), value(b, var)) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    })
}

/// Whether accesses to a tensor are those of different tiles: in different iterations of a loop over tiles, or in the turns of roles.
fn are_of_other_tiles(memory: Handle<Memory>, [earlier, later]: [&AccessGroup; 2], again: Option<&Again>) -> bool {
    let is_repeated = |around: &&LoopRef| again.is_some_and(|again| again.counter == around.counter);
    let mut in_both = earlier.loops.iter().filter(|around| later.loops.contains(around));
    let in_turns = |a: &LoopRef| later.loops.iter().any(|b| a.is_in_other_turn(b, memory));
    in_both.find(is_repeated).is_some_and(|around| around.own.contains_key(&memory))
        || earlier.loops.iter().any(in_turns)
}

/// Whether accesses with these values of the common loops can happen in this order: in the same iteration, or with the
/// first in an earlier one of the loop `again`.
fn related(a: &Env, b: &Env, shared: &[&Var], again: Option<&Again>) -> bool {
    let Some(Again { counter, order }) = again else { return agree(a, b, shared.iter().copied()) };
    let around = shared.iter().copied().take_while(|var| **var != counter.var);
    let is_later = match (value(a, &counter.var), value(b, &counter.var)) {
        (Some(a), Some(b)) => match order {
            Order::Next => b - a == counter.step,
            Order::Later => a < b,
            Order::Any => a != b,
        },
        _ => true,
    };
    is_later && agree(a, b, around)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_iterations_that_follow_one_depend_on_the_loop() {
        let var = Var::multiple_of("t", 0, 8, 2);
        let counter = Counter::of(var.clone());
        let follows = |order: Order, [first, second]: [i64; 2]| {
            let again = Again { counter: counter.clone(), order };
            let of = |value: i64| vec![(var.clone(), value)];
            related(&of(first), &of(second), &[&var], Some(&again))
        };
        let found = |order| [[2, 4], [2, 6], [4, 2], [2, 2]].map(|values| follows(order, values));
        assert_eq!(found(Order::Next), [true, false, false, false]);
        assert_eq!(found(Order::Later), [true, true, false, false]);
        assert_eq!(found(Order::Any), [true, true, true, false]);
    }
}
