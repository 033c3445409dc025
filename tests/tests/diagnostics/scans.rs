//! Mistakes in scans and their carries.

use tilewright::prelude::*;

use super::assert_mistake;

#[test]
fn mistakes_in_scans() {
    let mistakes = kernel("k", |k| {
        let (v, w) = (k.fragment("v", F32, [8, 64]), k.fragment("w", F32, [8, 32]));
        let tile = k.shared("tile", F32, [8, 64]);
        k.fill(v, 0.0);
        k.fill(tile, 0.0);
        k.scan(Sum, w, v, 1);
        k.scan(Or, v, v, 2).accumulate();
        k.scan(Sum, tile, v, 1);
        k.reduce(Sum, w, v, []).exclusive();
    });
    assert_mistake("mistakes_in_scans", mistakes);
    let late = kernel("k", |k| {
        let v = k.fragment("v", F32, [8, 64]);
        let tile = k.shared("tile", F32, [8, 64]);
        k.fill(v, 0.0);
        k.scan(Or, v, v, 2);
        k.convert_layout(tile, v);
        k.reduce(Sum, v, v, []);
    });
    assert_mistake("mistakes_in_operands_of_scans", late);
}

#[test]
fn mistakes_in_carries() {
    let scanned = |carry: fn(&mut KernelBuilder, Buffer)| {
        kernel("k", |k| {
            let v = k.fragment("v", F16, [8, 64]);
            k.fill(v, 0.0);
            carry(k, v);
        })
    };
    let of_other_extents = scanned(|k, v| {
        let carry = k.fragment("carry", F16, [64]);
        k.fill(carry, 0.0);
        k.scan(Sum, v, v, 1).carry(carry);
    });
    assert_mistake("a_carry_of_other_extents", of_other_extents);
    let of_another_dtype = scanned(|k, v| {
        let carry = k.fragment("carry", I32, [8]);
        k.fill(carry, 0);
        k.scan(Sum, v, v, 1).carry(carry);
    });
    assert_mistake("a_carry_of_another_dtype", of_another_dtype);
    let in_the_source = scanned(|k, v| {
        k.scan(Sum, v, v, 1).carry(v.sub((.., 0)));
    });
    assert_mistake("a_carry_in_the_source", in_the_source);
    let too_many = scanned(|k, v| {
        let [one, other] = ["one", "other"].map(|name| k.fragment(name, F16, [8]));
        k.fill(one, 0.0);
        k.fill(other, 0.0);
        k.scan(Sum, v, v, 1).carry([one, other]);
    });
    assert_mistake("two_carries_for_one_value", too_many);
    let unwritten = scanned(|k, v| {
        let carry = k.fragment("carry", F16, [8]);
        k.scan(Sum, v, v, 1).carry(carry);
    });
    assert_mistake("a_carry_that_nothing_has_written", unwritten);
    let of_a_copy = scanned(|k, v| {
        let carry = k.fragment("carry", F16, [8]);
        k.fill(v, 0.0).carry(carry);
    });
    assert_mistake("a_carry_of_another_op", of_a_copy);
}
