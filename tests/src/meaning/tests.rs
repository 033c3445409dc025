//! Tests of the reference itself: disabling a rule or damaging a program must be detected.

use tilewright::ir::thread::{Program, Stmt};
use tilewright::ir::tile::verify;
use tilewright::layout::axis;
use tilewright::lower::{Options, lower};
use tilewright::prelude::*;

use super::check::{Ended, check, inputs};
use super::evaluate::{Meaningless, Rules, evaluate};
use super::machine::{Copies, Memories, Order, execute};
use super::run_kernels;
use crate::rng::Rng;

fn meant(kernel: &Kernel, rules: Rules) -> Result<(), Meaningless> {
    evaluate(kernel, inputs(kernel, &mut Rng::new(1, 1)), rules).map(|_| ())
}

fn on_fragment(body: impl FnOnce(&mut KernelBuilder, Buffer, Buffer)) -> Kernel {
    kernel("k", |k| {
        k.threads(64);
        let (x, y) = (k.input("at", I32, [64]), k.output("y", I32, [64]));
        let f = k.fragment("f", I32, [64]);
        k.copy(f, x);
        body(k, f, y);
        k.copy(y, f);
    })
}

#[test]
fn without_the_rule_on_races_a_race_has_a_meaning() {
    let reversed = on_fragment(|k, f, _| {
        k.parallel([64], |k, [i]| {
            k.store(f, (i * -1 + 63,), f.at((&i,)));
        });
    });
    assert!(matches!(meant(&reversed, Rules::ALL), Err(Meaningless::Race(_))));
    assert_eq!(meant(&reversed, Rules { races: false, ..Rules::ALL }), Ok(()));
}

#[test]
fn without_the_rule_on_claims_an_untrue_claim_has_a_meaning() {
    let scattered = on_fragment(|k, f, y| {
        k.parallel([64], |k, [i]| k.store(y, (f.at((&i,)).min(3).max(0),), 1).unique());
    });
    assert!(matches!(meant(&scattered, Rules::ALL), Err(Meaningless::Claim(_))));
    assert_eq!(meant(&scattered, Rules { claims: false, ..Rules::ALL }), Ok(()));
}

#[test]
fn without_the_rule_on_what_nobody_wrote_it_is_zero() {
    let unwritten = on_fragment(|k, f, _| {
        let s = k.shared("s", I32, [64]);
        k.copy(f, s);
    });
    assert!(matches!(meant(&unwritten, Rules::ALL), Err(Meaningless::Unwritten(_))));
    assert_eq!(meant(&unwritten, Rules { unwritten: false, ..Rules::ALL }), Ok(()));
}

#[test]
fn without_the_rule_on_divergence_threads_may_differ() {
    let branches = on_fragment(|k, f, _| {
        let warp = k.warp_id();
        k.if_(Value::from(warp).eq(0), |k| {
            k.fill(f, 1);
        });
    });
    let copies = on_fragment(|k, f, _| {
        let warp = k.warp_id();
        k.each_thread(|k| {
            k.store(f, (0,), warp);
        });
    });
    for kernel in [branches, copies] {
        assert!(matches!(meant(&kernel, Rules::ALL), Err(Meaningless::Divergent(_))));
        assert_eq!(meant(&kernel, Rules { divergence: false, ..Rules::ALL }), Ok(()));
    }
}

#[test]
fn a_judge_without_a_rule_contradicts_the_compiler() {
    assert_eq!(run_kernels(1, 0..40, Rules::ALL).wrongs(), 0);
    assert!(run_kernels(1, 0..40, Rules { races: false, ..Rules::ALL }).wrongs() > 0);
}

/// Shared memory that is written by one thread and read by another.
fn shifted() -> Kernel {
    kernel("k", |k| {
        k.threads(64);
        let (x, y) = (k.input("x", I32, [64]), k.output("y", I32, [64]));
        let s = k.shared("s", I32, [64]);
        k.parallel([64], |k, [i]| {
            k.store(s, (&i,), x.at((&i,)));
        });
        k.parallel([64], |k, [i]| {
            k.store(y, (&i,), s.at(((&i + 33) % 64,)));
        });
    })
}

fn program() -> Program {
    let kernel = verify(shifted(), Target::Sm100a).expect("it verifies");
    let (kernel, _) = tilewright::infer::lay_out(kernel.into_kernel()).expect("it has layouts");
    let kernel = verify(kernel, Target::Sm100a).expect("it verifies");
    lower(&kernel, Target::Sm100a, &Options::default()).expect("it is lowered")
}

/// The contents of `y` after the run, if every element of `x` is its own index.
fn left(program: &Program, order: Order) -> Result<Vec<i32>, String> {
    let bytes = (0..64i32).flat_map(|at| at.to_le_bytes()).map(Some).collect();
    let mut memories = Memories::from([(0, bytes), (1, vec![None; 256])]);
    execute(program, &mut memories, order, &[])?;
    let word =
        |bytes: &[Option<u8>]| bytes.iter().rev().fold(0, |word, byte| word << 8 | i32::from(byte.unwrap_or(0xff)));
    Ok(memories[&1].chunks(4).map(word).collect())
}

#[test]
fn a_barrier_that_is_missing_is_noticed_in_one_of_the_orders() {
    let expected: Vec<i32> = (0..64).map(|at| (at + 33) % 64).collect();
    let mut program = program();
    for order in [Order::Forwards, Order::Backwards] {
        assert_eq!(left(&program, order).as_ref(), Ok(&expected));
    }
    let mut merged = Vec::new();
    for stmt in std::mem::take(&mut program.body) {
        match stmt {
            Stmt::Op { body, .. } => {
                merged.extend(body.into_iter().filter(|stmt| stmt.orders() == axis::Scope::Thread))
            }
            other => merged.push(other),
        }
    }
    program.body = merged;
    let orders = [Order::Forwards, Order::Backwards].map(|order| left(&program, order));
    assert!(orders.iter().any(|left| left.as_ref() != Ok(&expected)), "{orders:?}");
}

#[test]
fn copies_that_differ_after_an_op_are_noticed() {
    let program = program();
    let copies = |places| Copies { name: "r".to_string(), places: vec![places], bytes: 4 };
    let bytes: Vec<Option<u8>> = (0..64i32).flat_map(|at| at.to_le_bytes()).map(Some).collect();
    let run = |copies: Copies| {
        let mut memories = Memories::from([(0, bytes.clone()), (1, vec![None; 256])]);
        execute(&program, &mut memories, Order::Forwards, &[copies])
    };
    assert_eq!(run(copies(vec![(5, 0)])), Ok(()));
    let why = run(copies(vec![(5, 0), (6, 0)])).expect_err("threads 5 and 6 hold different numbers");
    assert!(why.ends_with("threads 5 and 6 hold different copies of element 0 of `r`"), "{why}");
}

/// The bits of a NaN are not specified.
#[test]
fn copies_that_are_nan_are_the_same() {
    let mut program = program();
    program.registers.iter_mut().for_each(|array| array.dtype = F32);
    let places = vec![(5, 0), (6, 0)];
    let run = |of: fn(u32) -> u32| {
        let bytes: Vec<Option<u8>> = (0..64).flat_map(|at| of(at).to_le_bytes()).map(Some).collect();
        let mut memories = Memories::from([(0, bytes), (1, vec![None; 256])]);
        let copies = Copies { name: "r".to_string(), places: vec![places.clone()], bytes: 4 };
        execute(&program, &mut memories, Order::Forwards, &[copies])
    };
    assert_eq!(run(|at| 0x7fc0_0000 + at), Ok(()));
    assert!(run(|at| 0x3f80_0000 + at).is_err());
}

#[test]
fn a_kernel_without_a_fault_is_right() {
    assert_eq!(check(&shifted(), &mut Rng::new(1, 1), Rules::ALL), Ok(Ended::Right));
}
