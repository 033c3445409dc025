//! Atomic operations that the hardware does not have.

use super::assert_mistake;
use tilewright::prelude::*;

#[test]
fn atomic_additions_of_small_integers() {
    let small = kernel("k", |k| {
        k.threads(32);
        let y = k.output("y", U8, [32]);
        let f = k.fragment("f", U8, [32]);
        k.fill(f, 1);
        k.atomic_add(y, f);
        k.parallel([32], |k, [i]| k.atomic_add(y, (&i,), 1));
    });
    assert_mistake("atomic_additions_of_small_integers", small);
}

#[test]
fn atomic_operations_on_floats() {
    let floats = kernel("k", |k| {
        let x = k.input("x", F32, [32]);
        let y = k.inout("y", F32, [1]);
        k.parallel([32], |k, [i]| {
            k.atomic_max(y, (0,), x.at((i,)));
            k.atomic_or(y, (0,), x.at((i,)));
        });
    });
    assert_mistake("atomic_operations_on_floats", floats);
}
