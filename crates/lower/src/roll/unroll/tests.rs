use tilewright_expr::Expr;
use tilewright_ir::Arena;
use tilewright_ir::thread::{Cond, RegArray, Regs};
use tilewright_ir::{Counter, Handle, Scalar};
use tilewright_layout::DType;

use super::*;

fn array() -> Handle<RegArray> {
    Arena::new().push(RegArray { name: "r".to_string(), dtype: DType::F32, len: 4096, vector: 1 })
}

fn set(first: Expr) -> Stmt {
    Stmt::Set { to: Regs { array: array(), first, count: 1, step: 1 }, value: Scalar::Int(0) }
}

fn repeated(trips: i64, body: Vec<Stmt>) -> Stmt {
    Stmt::For { counter: Counter::of(Var::new("i", 0, trips - 1)), unroll: Unroll::Full, body }
}

fn unroll_of(stmt: Stmt) -> Unroll {
    let Stmt::For { unroll, .. } = &unrolled_in_bounds(vec![stmt])[0] else { panic!("no loop") };
    *unroll
}

#[test]
fn short_loops_are_unrolled_completely() {
    assert_eq!(unroll_of(repeated(512, vec![set(Expr::constant(0))])), Unroll::Full);
}

#[test]
fn long_loops_are_unrolled_by_a_factor_that_divides_their_iterations() {
    assert_eq!(unroll_of(repeated(600, vec![set(Expr::constant(0))])), Unroll::By(120));
    assert_eq!(unroll_of(repeated(300, vec![set(Expr::constant(0)), set(Expr::constant(1))])), Unroll::By(60));
}

#[test]
fn a_loop_without_such_a_divisor_has_iterations_left() {
    assert_eq!(unroll_of(repeated(521, vec![set(Expr::constant(0))])), Unroll::By(128));
}

#[test]
fn conditions_count() {
    let cond = Cond::Less(Expr::var(&Var::new("x", 0, 9)), Expr::constant(5));
    let body = vec![Stmt::If { cond, body: vec![set(Expr::constant(0))] }];
    assert_eq!(unroll_of(repeated(128, body)), Unroll::By(16));
}

#[test]
fn a_long_body_is_not_unrolled() {
    assert_eq!(unroll_of(repeated(4, (0..200).map(|_| set(Expr::constant(0))).collect())), Unroll::By(1));
}

#[test]
fn loops_inside_count_as_they_are_unrolled() {
    let inner = Stmt::For {
        counter: Counter::of(Var::new("j", 0, 599)),
        unroll: Unroll::Full,
        body: vec![set(Expr::constant(0))],
    };
    assert_eq!(unroll_of(repeated(4, vec![inner.clone()])), Unroll::Full);
    assert_eq!(unroll_of(repeated(5, vec![inner])), Unroll::By(1));
}

#[test]
fn registers_have_no_addresses() {
    let var = Var::new("i", 0, 4095);
    assert_eq!(unroll_of(repeated(4096, vec![set(Expr::var(&var))])), Unroll::Full);
}

#[test]
fn many_loops_are_unrolled_less_far() {
    let loops = |count: usize| (0..count).map(|_| repeated(400, vec![set(Expr::constant(0))])).collect::<Vec<Stmt>>();
    let unrolls = |count: usize| {
        let unroll = |stmt: &Stmt| if let Stmt::For { unroll, .. } = stmt { Some(*unroll) } else { None };
        unrolled_in_bounds(loops(count)).iter().map(unroll).collect::<Vec<_>>()
    };
    assert_eq!(unrolls(20), vec![Some(Unroll::Full); 20]);
    assert_eq!(unrolls(21), vec![Some(Unroll::By(100)); 21]);
}
