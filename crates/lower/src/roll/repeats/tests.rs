use tilewright_expr::Var;
use tilewright_ir::Scalar;
use tilewright_ir::thread::{Regs, Value};
use tilewright_ir::tile::ElementOp;
use tilewright_layout::DType;

use super::*;

/// An array `a` of 32 registers, four vectors `v` of 4, and arrays `t` of one register each.
struct Arrays {
    registers: Arena<RegArray>,
    a: Handle<RegArray>,
    v: Handle<RegArray>,
    t: Vec<Handle<RegArray>>,
}

fn arrays() -> Arrays {
    let mut registers = Arena::new();
    let mut array =
        |name: &str, len, vector| registers.push(RegArray { name: name.to_string(), dtype: DType::F32, len, vector });
    let (a, v) = (array("a", 32, 1), array("v", 16, 4));
    let t = (0..8).map(|_| array("t", 1, 1)).collect();
    Arrays { registers, a, v, t }
}

fn one(array: Handle<RegArray>, at: i64) -> Regs {
    Regs { array, first: Expr::constant(at), count: 1, step: 1 }
}

fn set(array: Handle<RegArray>, at: i64) -> Stmt {
    Stmt::Set { to: one(array, at), value: Scalar::Float(1.0) }
}

fn assign(to: Regs, from: Value) -> Stmt {
    Stmt::Assign { to, value: Value::Op(ElementOp::Neg, vec![from]) }
}

/// Period and count of the repeat with which statements begin, and its own arrays.
fn found(arrays: &Arrays, body: &[Stmt]) -> Option<(usize, usize, usize)> {
    let own = arrays.t.iter().copied().collect();
    let mentions = Mentions::of(body);
    let repeats = Repeats::of(body, &own, &mentions, &arrays.registers);
    let repeat = repeats.longest(0)?;
    Some((repeat.period, repeat.count, repeats.private(&repeat).0.len()))
}

#[test]
fn numbers_that_grow_evenly_repeat() {
    let all = arrays();
    let plain: Vec<Stmt> = (0..8).map(|at| set(all.a, 3 * at)).collect();
    assert_eq!(found(&all, &plain), Some((1, 8, 0)));
    let two: Vec<Stmt> = (0..12).map(|at| assign(one(all.a, at), Value::reg(all.a, at % 2))).collect();
    assert_eq!(found(&all, &two), Some((2, 6, 0)));
}

#[test]
fn a_number_that_grows_otherwise_ends_the_repeat() {
    let all = arrays();
    let places = [0, 1, 2, 3, 4, 5, 7, 8];
    let body: Vec<Stmt> = places.iter().map(|at| set(all.a, *at)).collect();
    assert_eq!(found(&all, &body), Some((1, 6, 0)));
}

#[test]
fn a_loop_that_saves_no_line_is_not_written() {
    let all = arrays();
    let body: Vec<Stmt> = (0..2).map(|at| set(all.a, at)).collect();
    assert_eq!(found(&all, &body), None);
}

#[test]
fn an_array_of_one_repetition_is_declared_in_the_loop() {
    let all = arrays();
    let pair = |at: usize| [set(all.t[at], 0), assign(one(all.a, at as i64), Value::reg(all.t[at], 0))];
    let mut body: Vec<Stmt> = (0..8).flat_map(pair).collect();
    assert_eq!(found(&all, &body), Some((2, 8, 1)));
    // The array of the last repetition is read once more.
    body.push(assign(one(all.a, 20), Value::reg(all.t[7], 0)));
    assert_eq!(found(&all, &body), Some((2, 7, 1)));
    // That of the first one is.
    body.push(assign(one(all.a, 21), Value::reg(all.t[0], 0)));
    assert_eq!(found(&all, &body), None);
}

#[test]
fn two_arrays_do_not_change_roles() {
    let all = arrays();
    // In every second repetition, both reads are of one array.
    let group = |at: usize| {
        let [first, second] = [all.t[2 * at], all.t[2 * at + 1]];
        let read = |place: i64, array| assign(one(all.a, 3 * at as i64 + place), Value::reg(array, 0));
        [set(first, 0), set(second, 0), read(0, first), read(1, if at == 1 { first } else { second })]
    };
    let body: Vec<Stmt> = (0..4).flat_map(group).collect();
    assert_eq!(found(&all, &body), None);
}

#[test]
fn parts_of_a_vector_are_named() {
    let all = arrays();
    let body: Vec<Stmt> = (0..16).map(|at| assign(one(all.a, at), Value::reg(all.v, at))).collect();
    assert_eq!(found(&all, &body), None);
}

#[test]
fn the_numbers_of_a_repetition_are_those_of_the_first_and_a_multiple() {
    let all = arrays();
    let body: Vec<Stmt> = (0..8).map(|at| assign(one(all.a, 4 * at + 1), Value::reg(all.a, 3))).collect();
    let (own, mentions) = (BTreeSet::new(), Mentions::of(&body));
    let repeats = Repeats::of(&body, &own, &mentions, &all.registers);
    let repeat = repeats.longest(0).expect("a repeat");
    let stepped = repeats.stepped(&body[..1], &repeat, &Expr::var(&Var::new("i", 0, 7)));
    let Stmt::Assign { to, value } = &stepped[0] else { panic!("{stepped:?}") };
    assert_eq!(to.first.to_string(), "i*4 + 1");
    assert_eq!(*value, Value::Op(ElementOp::Neg, vec![Value::reg(all.a, 3)]));
}
