//! `atom` and `red`.

use crate::harness::{Random, execute, map, refusals};
use crate::small::{BF16, F16};

/// The words of the inputs after all 32 lanes have run `body`, whose accesses are ordered after the loads of the
/// harness.
fn after(body: &str, inputs: &[&[u32]]) -> Vec<u32> {
    let body = format!("bar.warp.sync -1;\n{body}");
    execute(&body, inputs, 0, 32).unwrap_or_else(|error| panic!("{error}")).inputs
}

#[test]
fn reductions_of_words_gather_all_lanes() {
    let mut random = Random(9);
    let values = random.words(32);
    let signed = values.iter().map(|value| *value as i32);
    let total = values.iter().fold(7u32, |sum, value| sum.wrapping_add(*value));
    let forms = [
        ("add.u32", 7, total),
        ("add.s32", 7, total),
        ("min.s32", 7, signed.clone().chain([7]).min().unwrap_or(0) as u32),
        ("max.s32", 7, signed.chain([7]).max().unwrap_or(0) as u32),
        ("min.u32", u32::MAX, values.iter().copied().min().unwrap_or(0)),
        ("max.u32", 7, values.iter().copied().max().unwrap_or(0).max(7)),
        ("and.b32", 0xffff_fff0, values.iter().fold(0xffff_fff0u32, |all, value| all & value)),
        ("or.b32", 1, values.iter().fold(1u32, |all, value| all | value)),
        ("xor.b32", 3, values.iter().fold(3u32, |all, value| all ^ value)),
        ("inc.u32", 20, 0),
    ];
    for (form, first, want) in forms {
        // Counting up to 51 from 20, 32 times, ends at 0.
        let value = if form == "inc.u32" { "51" } else { "%i0" };
        let global = after(&format!("red.relaxed.gpu.global.{form} [%rd1+128], {value};"), &[&values, &[first; 32]]);
        assert_eq!(global[32], want, "{form}");
        let shared = format!(
            "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [tile+16], %i1;\nbar.warp.sync -1;\n\
             atom.shared.{form} %r10, [tile+16], {value};\nbar.warp.sync -1;\nld.shared.u32 %o0, [tile+16];"
        );
        let [found] = map(&shared, &[&values, &[first; 32]]);
        assert_eq!(found, [want; 32], "{form}");
    }
}

#[test]
fn exchanges_give_every_value_back_once() {
    let values: Vec<u32> = (100..132).collect();
    let body = "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [tile], 0;\nbar.warp.sync -1;\n\
                atom.shared.exch.b32 %o0, [tile], %i0;\nbar.warp.sync -1;\nld.shared.u32 %o1, [tile];";
    let [mut found, last] = map(body, &[&values]);
    found.push(last[0]);
    found.sort_unstable();
    assert_eq!(found, [&[0][..], &values[..]].concat());
}

#[test]
fn compare_and_swap_lets_one_lane_win() {
    let body = "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.v2.u32 [tile], {0, 0};\nbar.warp.sync -1;\n\
                add.u32 %r10, %r1, 1;\natom.shared.cas.b32 %o0, [tile], 0, %r10;\ncvt.u16.u32 %h1, %r10;\n\
                atom.shared.cas.b16 %h2, [tile+6], 0, %h1;\nbar.warp.sync -1;\nld.shared.u32 %o1, [tile];\n\
                ld.shared.u32 %o2, [tile+4];";
    let [old, last, half] = map(body, &[]);
    let winners: Vec<u32> = (0..32).filter(|lane| old[*lane as usize] == 0).collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(last, [winners[0] + 1; 32]);
    assert_eq!(half[0] & 0xffff, 0);
    assert!((1..=32).contains(&(half[0] >> 16)));
}

#[test]
fn sums_of_64_bits() {
    let words = after(
        "cvt.u64.u32 %rd5, %r1;\nred.global.add.u64 [%rd1], %rd5;\nmov.b64 %d1, 0d3FE0000000000000;\n\
         red.global.add.f64 [%rd1+8], %d1;\nneg.s64 %rd6, %rd5;\nred.global.min.s64 [%rd1+16], %rd6;",
        &[&[0xffff_ffff, 0, 0, 0x3ff0_0000, 5, 0]],
    );
    assert_eq!(words[..2], [495, 1]);
    assert_eq!(f64::from_bits(u64::from(words[3]) << 32 | u64::from(words[2])), 17.0);
    assert_eq!((words[4] as i32, words[5]), (-31, u32::MAX));
}

#[test]
fn sums_of_halves_keep_subnormals() {
    let [f16_one, bf16_one] = [F16.nearest(1.0), BF16.nearest(1.0)];
    let body = format!(
        "mov.b16 %h1, {f16_one};\nmov.b16 %h2, {bf16_one};\nred.global.add.noftz.f16 [%rd1], %h1;\n\
         red.global.add.noftz.bf16 [%rd1+2], %h2;\nmov.b32 %r10, 0x00010001;\n\
         red.global.add.noftz.f16x2 [%rd1+4], %r10;\natom.global.add.noftz.bf16x2 %r11, [%rd1+8], %r10;\n\
         mov.b16 %h3, 0;\nred.global.max.noftz.v2.f16 [%rd1+12], {{%h1, %h3}};"
    );
    let words = after(&body, &[&[0, 0x0000_3c00, 0x0001_3f80, 0x0000_c000]]);
    assert_eq!(words[0], BF16.nearest(32.0) << 16 | F16.nearest(32.0));
    // The sum of 32 smallest subnormals; added to 1.0, each of them is rounded away.
    assert_eq!(words[1], 0x0020_3c00);
    assert_eq!(words[2], 0x0021_3f80);
    assert_eq!(words[3], f16_one);
}

#[test]
fn sums_of_halves_through_generic_addresses() {
    let [f16_one, bf16_one] = [F16.nearest(1.0), BF16.nearest(1.0)];
    let constants = format!("mov.b16 %h1, {f16_one};\nmov.b16 %h2, {bf16_one};\n");
    let sums = "red.add.noftz.f16 [%rd6], %h1;\nred.add.noftz.bf16 [%rd6+2], %h2;\n";
    let want = BF16.nearest(32.0) << 16 | F16.nearest(32.0);
    let words = after(&format!("{constants}cvta.global.u64 %rd6, %rd1;\n{sums}"), &[&[0, 7]]);
    assert_eq!(words[..2], [want, 7]);
    let shared = format!(
        "{constants}setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.b32 [tile], 0;\nbar.warp.sync -1;\n\
         mov.u32 %r10, tile;\ncvt.u64.u32 %rd5, %r10;\ncvta.shared.u64 %rd6, %rd5;\n{sums}bar.warp.sync -1;\n\
         ld.shared.u32 %o0, [tile];"
    );
    let [found] = map(&shared, &[]);
    assert_eq!(found, [want; 32]);
}

#[test]
fn single_sums_flush_subnormals_in_global_memory_only() {
    let subnormal = 1e-40f32.to_bits();
    let global = after(
        "setp.eq.u32 %p1, %r1, 0;\n@%p1 atom.global.add.f32 %r10, [%rd1], %i0;\n\
         @%p1 red.global.add.noftz.f32 [%rd1+4], %i0;\ncvta.global.u64 %rd5, %rd1;\n@%p1 red.add.f32 [%rd5+8], %i0;",
        &[&[subnormal, subnormal, subnormal, 7]],
    );
    assert_eq!(global[..4], [0, (1e-40f32 + 1e-40f32).to_bits(), 0, 7]);
    let [shared] = map(
        "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.b32 [tile], %i0;\nbar.warp.sync -1;\n\
         @%p1 red.shared.add.f32 [tile], %i0;\nbar.warp.sync -1;\nld.shared.b32 %o0, [tile];",
        &[&[subnormal]],
    );
    assert_eq!(shared[0], (1e-40f32 + 1e-40f32).to_bits());
}

#[test]
fn vectors_are_reduced_element_by_element() {
    let first: Vec<Vec<u32>> =
        (0..4).map(|array| (0..32).map(|at| (at as f32 + array as f32).to_bits()).collect()).collect();
    let inputs: Vec<&[u32]> = first.iter().map(Vec::as_slice).collect();
    let address = "shl.b32 %r10, %r1, 4;\ncvt.u64.u32 %rd5, %r10;\nadd.s64 %rd6, %rd1, %rd5;\n\
                   cvt.rn.f32.u32 %r11, %r1;\nmov.b32 %r12, 0f3F800000;\nmov.b32 %r13, 0fC0000000;\n";
    let all = first.concat();
    let words = after(&format!("{address}red.global.add.v4.f32 [%rd6], {{%r11, %r12, %r13, %r12}};"), &inputs);
    for (at, (before, after)) in all.iter().zip(&words).enumerate() {
        let added = [(at / 4) as f32, 1.0, -2.0, 1.0][at % 4];
        assert_eq!(f32::from_bits(*after), f32::from_bits(*before) + added);
    }
    let body = format!(
        "bar.warp.sync -1;\n{address}atom.global.v2.f32.add {{%o0, %o1}}, [%rd6+8], {{%r12, %r13}};\n\
         atom.global.max.noftz.v4.f16 {{%h1, %h2, %h3, %h4}}, [%rd6], {{%h9, %h9, %h9, %h9}};\ncvt.u32.u16 %o2, %h3;"
    );
    let done = execute(&body, &inputs, 3, 32).unwrap_or_else(|error| panic!("{error}"));
    for lane in 0..32 {
        let before: Vec<u32> = [2, 3].iter().map(|at| all[lane * 4 + at]).collect();
        assert_eq!([done.outputs[0][lane], done.outputs[1][lane]], before[..]);
        let sums = [done.inputs[lane * 4 + 2], done.inputs[lane * 4 + 3]].map(f32::from_bits);
        assert_eq!(sums, [f32::from_bits(before[0]) + 1.0, f32::from_bits(before[1]) - 2.0]);
        // The low half of the second word.
        assert_eq!(done.outputs[2][lane], all[lane * 4 + 1] & 0xffff);
    }
    let done =
        execute("bar.warp.sync -1;\nred.global.v2.f16x2.add.noftz [%rd1], {%i0, %i0};", &[&[0x0001_0001, 0]], 0, 1);
    let words = done.unwrap_or_else(|error| panic!("{error}")).inputs;
    assert_eq!(words[..2], [0x0002_0002, 0x0001_0001]);
}

#[test]
fn other_vectors_are_refused() {
    let forms = [
        "red.global.add.v2.u32 [%rd1], {%r1, %r2};",
        "red.global.add.v2.f64 [%rd1], {%d1, %d2};",
        "atom.global.exch.v2.f32 {%r1, %r2}, [%rd1], {%r1, %r2};",
        "red.global.add.v4.f32 [%rd1], {%r1, %r2};",
        "red.async.global.add.u32 [%rd1], %r1;",
    ];
    assert_eq!(refusals(&forms.join("\n")).len(), forms.len());
}
