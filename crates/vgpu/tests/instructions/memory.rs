//! Loads and stores of 16-bit elements and vectors, and accesses to read-only and local memory.

use crate::harness::{Random, execute, fault, map};
use tilewright_vgpu::FaultKind;

#[test]
fn vectors_of_halves_keep_their_order() {
    let words = Random(40).words(128);
    let body = "bar.warp.sync -1;\nshl.b32 %r10, %r1, 3;\ncvt.u64.u32 %rd5, %r10;\nadd.s64 %rd6, %rd1, %rd5;\n\
                ld.global.nc.v4.u16 {%h1, %h2, %h3, %h4}, [%rd6];\n\
                ld.global.nc.L1::no_allocate.v2.b16 {%h5, %h6}, [%rd6+4];\n\
                mov.b32 %o0, {%h2, %h1};\nmov.b32 %o1, {%h4, %h3};\nmov.b32 %o2, {%h5, %h6};\n\
                ld.global.nc.b16 %h7, [%rd6+2];\ncvt.s32.s16 %o3, %h7;\nld.global.nc.s8 %o4, [%rd6+1];\n\
                st.shared.v4.b16 [tile], {%h4, %h4, %h4, %h4};";
    // Only lane 0 runs, so that the store does not race.
    let done = execute(body, &[&words[..32], &words[32..64]], 5, 1).unwrap_or_else(|error| panic!("{error}"));
    let found: Vec<u32> = done.outputs.iter().map(|output| output[0]).collect();
    let [first, second] = [words[0], words[1]];
    let high = (first >> 16) as i16;
    let want = [
        first.rotate_left(16),
        second.rotate_left(16),
        second,
        i32::from(high) as u32,
        i32::from((first >> 8) as i8) as u32,
    ];
    assert_eq!(found, want);
}

#[test]
fn stores_of_halves_change_only_their_bytes() {
    let [found] = map(
        "shl.b32 %r10, %r1, 3;\nmov.u32 %r11, tile;\nadd.u32 %r10, %r10, %r11;\n\
         st.shared.v2.b32 [%r10], {-1, -1};\nmov.b16 %h1, 0x1234;\nst.shared.b16 [%r10+2], %h1;\n\
         st.shared.v2.b16 [%r10+4], {%h1, %h1};\nst.shared.u8 [%r10], 7;\nld.shared.v2.b32 {%r12, %r13}, [%r10];\n\
         xor.b32 %o0, %r12, %r13;",
        &[],
    );
    assert_eq!(found, [0x1234_ff07 ^ 0x1234_1234; 32]);
}

#[test]
fn every_thread_has_its_own_local_memory() {
    let values = Random(41).words(64);
    let body = ".local .align 16 .b8 frame[32];\nmov.u64 %rd5, frame;\ncvta.local.u64 %rd6, %rd5;\n\
                st.local.v2.b32 [frame+8], {%i0, %r1};\nst.local.b16 [%rd5+16], %h0;\nst.b32 [%rd6], %i0;\n\
                add.s64 %rd7, %rd6, 12;\nld.u32 %o0, [%rd7];\nld.local.u32 %o1, [%rd5+8];\nld.local.u32 %o2, [frame];";
    let [lane, stored, generic] = map(body, &[&values]);
    assert_eq!(lane, (0..32).chain(0..32).collect::<Vec<u32>>());
    assert_eq!((&stored, &generic), (&values, &values));
    let unwritten = fault(
        ".local .align 4 .b8 frame[8];\nld.local.u32 %r10, [frame+4];\n\
         setp.eq.u32 %p2, %r10, 0;\n@%p2 trap;",
        32,
    );
    assert_eq!(unwritten.kind, FaultKind::UninitializedRead);
    let outside = fault(".local .align 4 .b8 frame[8];\nst.local.u32 [frame+8], %r1;", 32);
    assert_eq!(outside.kind, FaultKind::OutOfBounds);
}

#[test]
fn wide_vectors_are_loaded_and_stored() {
    let words = Random(42).words(256);
    let arrays: Vec<&[u32]> = words.chunks(32).collect();
    let body = "bar.warp.sync -1;\nshl.b32 %r10, %r1, 5;\ncvt.u64.u32 %rd5, %r10;\nadd.s64 %rd6, %rd1, %rd5;\n\
                ld.global.v8.b32 {%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}, [%rd6];\n\
                ld.global.nc.v4.b64 {%d1, %d2, %d3, %d4}, [%rd6];\nmov.b64 {%o0, %o1}, %d3;\nbar.warp.sync -1;\n\
                st.global.v8.f32 [%rd6], {%r27, %r26, %r25, %r24, %r23, %r22, %r21, %r20};";
    let done = execute(body, &arrays, 2, 32).unwrap_or_else(|error| panic!("{error}"));
    for lane in 0..32 {
        let own = &words[8 * lane..8 * lane + 8];
        let reversed: Vec<u32> = own.iter().rev().copied().collect();
        assert_eq!(done.inputs[8 * lane..8 * lane + 8], reversed);
        assert_eq!([done.outputs[0][lane], done.outputs[1][lane]], own[4..6]);
    }
}
