//! Statements that only some threads execute.

use num_integer::Integer;
use tilewright_expr::linear::{Linear, linear};
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Cond, Stmt};

/// `body` under all of the conditions; empty if one of them never holds. Conditions that always hold are left out.
pub(crate) fn under(conditions: &[Cond], body: Vec<Stmt>) -> Vec<Stmt> {
    if never_hold(conditions) {
        return Vec::new();
    }
    let open = conditions.iter().rev().filter(|cond| decided(cond).is_none());
    open.fold(body, |body, cond| vec![Stmt::If { cond: cond.clone(), body }])
}

/// The least number of guarded accesses of a thread for which a tile that is inside its tensor gets statements of its own,
/// without guards.
pub(crate) const MANY_GUARDED: i64 = 8;

/// Whether one of the conditions never holds.
pub(crate) fn never_hold(conditions: &[Cond]) -> bool {
    conditions.iter().any(|cond| decided(cond) == Some(false))
}

/// `inside` where all conditions hold, else `otherwise`.
pub(crate) fn either(conditions: &[Cond], inside: Vec<Stmt>, otherwise: Vec<Stmt>) -> Vec<Stmt> {
    if never_hold(conditions) {
        return otherwise;
    }
    let open: Vec<Cond> = conditions.iter().filter(|cond| decided(cond).is_none()).cloned().collect();
    let mut body = under(&open, inside);
    if !open.is_empty() {
        body.push(Stmt::Unless { conds: open, body: otherwise });
    }
    body
}

/// Statements, each under its conditions. Conditions that all have in common stand first, and neighbours under the same
/// conditions are in one branch.
pub(crate) fn under_each(statements: Vec<(Vec<Cond>, Stmt)>) -> Vec<Stmt> {
    let Some((first, _)) = statements.first() else { return Vec::new() };
    let is_common = |cond: &&Cond| statements.iter().all(|(conditions, _)| conditions.contains(cond));
    let common: Vec<Cond> = first.iter().filter(is_common).cloned().collect();
    let under_own = |(conditions, stmt): (Vec<Cond>, Stmt)| {
        let own: Vec<Cond> = conditions.into_iter().filter(|cond| !common.contains(cond)).collect();
        under(&own, vec![stmt])
    };
    under(&common, merged(statements.into_iter().flat_map(under_own).collect()))
}

/// `index < bound`, with the smallest number in the index that decides the same: if all terms of the index and the bound
/// are multiples of 4, `x + 3 < bound` is `x < bound`. So neighbours often have one condition.
pub(crate) fn below(index: &Expr, bound: &Expr) -> Cond {
    let Linear { terms, constant } = linear(index);
    let varying = Linear { terms, constant: 0 }.to_expr();
    let multiple = varying.multiple().gcd(&bound.multiple()).max(1);
    Cond::Less(varying + constant.div_euclid(multiple) * multiple, bound.clone())
}

/// The statements without the branches that the ranges of conditions decide.
pub(crate) fn settled(body: Vec<Stmt>) -> Vec<Stmt> {
    let settle = |stmt: Stmt| match stmt.map_inner(settled) {
        Stmt::If { body, .. } | Stmt::Unless { body, .. } if body.is_empty() => Vec::new(),
        Stmt::If { cond, body } => under(&[cond], body),
        Stmt::Unless { conds, body } if never_hold(&conds) => body,
        Stmt::Unless { conds, body } => {
            let open: Vec<Cond> = conds.into_iter().filter(|cond| decided(cond).is_none()).collect();
            if open.is_empty() { Vec::new() } else { vec![Stmt::Unless { conds: open, body }] }
        }
        other => vec![other],
    };
    body.into_iter().flat_map(settle).collect()
}

/// Whether a condition holds, if the ranges of its sides decide that.
fn decided(cond: &Cond) -> Option<bool> {
    let [a, b] = cond.sides().map(Expr::range);
    match cond {
        Cond::Less(..) if a.hi < b.lo => Some(true),
        Cond::Less(..) if a.lo >= b.hi => Some(false),
        Cond::Equal(..) if a.hi < b.lo || b.hi < a.lo => Some(false),
        Cond::Equal(..) if a.constant().is_some() && a.constant() == b.constant() => Some(true),
        Cond::Less(..) | Cond::Equal(..) => None,
    }
}

/// The conditions of step `s`: the conditions in `inside` at that step, and `thread < rest` in a step that has work
/// for only `rest` threads. Conditions that all steps share come first, so that [`merged`] makes one branch of them.
///
/// `rest` is a constant only in the last steps. A step in a loop is always full, since loops run over full batches.
pub(crate) fn in_step(inside: &[Cond], step: &Var, s: i64, thread: &Expr, rest: &Expr) -> Vec<Cond> {
    let of = |cond: &Cond| with(cond, step, s);
    let (own, common): (Vec<&Cond>, Vec<&Cond>) = inside.iter().partition(|cond| cond.mentions(step));
    common.into_iter().map(of).chain(partial(thread, rest)).chain(own.into_iter().map(of)).collect()
}

/// `thread < rest` for a step that has work for only `rest` threads, if these are not all.
pub(crate) fn partial(thread: &Expr, rest: &Expr) -> Option<Cond> {
    let is_partial = rest.as_const().is_some_and(|rest| rest <= thread.range().hi);
    is_partial.then(|| Cond::Less(thread.clone(), rest.clone()))
}

/// The condition with a variable replaced by a number.
pub(crate) fn with(cond: &Cond, var: &Var, value: i64) -> Cond {
    match cond {
        Cond::Less(a, b) => Cond::Less(a.with(var, value), b.with(var, value)),
        Cond::Equal(a, b) => Cond::Equal(a.with(var, value), b.with(var, value)),
    }
}

/// The same statements, with adjacent branches under the same condition merged into one.
pub(crate) fn merged(body: Vec<Stmt>) -> Vec<Stmt> {
    let mut out: Vec<Stmt> = Vec::with_capacity(body.len());
    for stmt in body {
        match (out.last_mut(), stmt) {
            (Some(Stmt::If { cond: before, body: first }), Stmt::If { cond, body }) if *before == cond => {
                first.extend(body);
            }
            (_, stmt) => out.push(stmt),
        }
    }
    out.into_iter().map(|stmt| stmt.map_inner(merged)).collect()
}

#[cfg(test)]
mod tests {
    use tilewright_ir::thread::{Call, Inst};

    use super::*;

    #[test]
    fn neighbours_under_the_same_conditions_become_one_branch() {
        let lane = Expr::var(&Var::new("lane", 0, 31));
        let below = |n: i64| Cond::Less(lane.clone(), Expr::constant(n));
        let sync = || vec![Stmt::from(Call::plain(Inst::SyncWarp))];
        let twice = under(&[below(8), below(4)], sync()).into_iter().chain(under(&[below(8), below(4)], sync()));
        let others = under(&[below(16)], sync());
        let once = under(&[below(8), below(4)], sync().into_iter().chain(sync()).collect());
        let text = |body: Vec<Stmt>| format!("{body:?}");
        assert_eq!(text(merged(twice.chain(others.clone()).collect())), text([once, others].concat()));
    }

    #[test]
    fn a_bound_that_is_a_multiple_makes_neighbours_one_condition() {
        let row = Expr::var(&Var::new("row", 0, 31)) * 8;
        let bound = |multiple| Expr::var(&Var::multiple_of("m", 0, 1024, multiple));
        let less = |more: i64, multiple| Cond::Less(&row + more, bound(multiple));
        for more in 0..20 {
            assert_eq!(below(&(&row + more), &bound(4)), less(more / 4 * 4, 4));
            assert_eq!(below(&(&row + more), &bound(16)), less(more / 8 * 8, 16));
            assert_eq!(below(&(&row + more), &bound(1)), less(more, 1));
        }
    }

    #[test]
    fn conditions_in_common_stand_first_and_are_joined() {
        let lane = Expr::var(&Var::new("lane", 0, 31));
        let below = |n: i64| Cond::Less(lane.clone(), Expr::constant(n));
        let sync = Stmt::from(Call::plain(Inst::SyncWarp));
        let each = under_each(vec![
            (vec![below(1), below(9)], sync.clone()),
            (vec![below(1), below(9)], sync.clone()),
            (vec![below(2), below(9)], sync.clone()),
        ]);
        let inner = |n: i64, count: usize| Stmt::If { cond: below(n), body: vec![sync.clone(); count] };
        assert_eq!(each, [Stmt::If { cond: below(9), body: vec![inner(1, 2), inner(2, 1)] }]);
    }

    #[test]
    fn a_branch_that_ranges_decide_is_settled() {
        let lane = Expr::var(&Var::new("lane", 0, 31));
        let below = |n: i64| Cond::Less(lane.clone(), Expr::constant(n));
        let sync = || vec![Stmt::from(Call::plain(Inst::SyncWarp))];
        let choice = |conds: [i64; 2]| {
            let conds: Vec<Cond> = conds.map(below).to_vec();
            let inside = conds.iter().rev().fold(sync(), |body, cond| vec![Stmt::If { cond: cond.clone(), body }]);
            inside.into_iter().chain([Stmt::Unless { conds, body: sync() }]).collect::<Vec<Stmt>>()
        };
        let one = vec![Stmt::If { cond: below(8), body: sync() }, Stmt::Unless { conds: vec![below(8)], body: sync() }];
        assert_eq!(settled(choice([8, 40])), one);
        assert_eq!(settled(choice([40, 8])), one);
        assert_eq!(settled(choice([40, 32])), sync());
        assert_eq!(settled(choice([8, 0])), sync());
    }

    #[test]
    fn conditions_that_ranges_decide_are_not_printed() {
        let lane = Expr::var(&Var::new("lane", 0, 31));
        let sync = || vec![Stmt::from(Call::plain(Inst::SyncWarp))];
        let number = Expr::constant;
        let below = |most: i64| Cond::Less(lane.clone(), number(most));
        let equal = |a: i64, b: i64| Cond::Equal(number(a), number(b));
        for never in
            [below(0), equal(1, 2), Cond::Equal(lane.clone(), number(32)), Cond::Less(number(31), lane.clone())]
        {
            assert!(under(&[below(8), never.clone()], sync()).is_empty(), "{never}");
            assert_eq!(either(&[below(8), never], sync(), Vec::new()), []);
        }
        for always in [below(32), equal(3, 3), Cond::Less(number(-1), lane.clone())] {
            assert_eq!(under(&[below(8), always.clone()], sync()), under(&[below(8)], sync()), "{always}");
            assert_eq!(either(&[always], sync(), Vec::new()), sync());
        }
    }
}
