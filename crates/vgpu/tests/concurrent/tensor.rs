//! Tensor memory and `tcgen05`: moves, and what is missing in kernels that are almost right.

use tilewright_vgpu::{Fault, FaultKind, Memory, Options, run};

use crate::harness::{Outcome, agreed, first_fault, launch, module, words_of};

/// Runs `body` by a CTA of 128 threads: `%r1` is the thread, `%rd1` the buffer `out` of 16 KiB; `%p1` is true for thread 0 and
/// `%p3` for warp 0; `tile` and `slot` are shared memory, and `bar` is an mbarrier for one arrival.
fn execute(body: &str, seed: u64, needs_tensor_fences: bool) -> Outcome {
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<8>;\n\
         .reg .b32 %r<96>;\n.reg .b64 %rd<16>;\n.shared .align 1024 .b8 tile[8192];\n.shared .align 8 .b8 bar[8];\n\
         .shared .align 4 .b8 slot[8];\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n\
         setp.lt.u32 %p3, %r1, 32;\n@%p1 mbarrier.init.shared.b64 [bar], 1;\n{body}\n}}\n"
    );
    let mut memory = Memory::new();
    let out = memory.allocate("out", vec![0; 16384]);
    let options = Options { seed, needs_tensor_fences, max_instructions_per_thread: 20_000, ..Options::default() };
    let result = run(&module(&text), &launch(128, &[out]), &mut memory, &options).map(|_| ());
    (result, words_of(&memory, out))
}

fn words(body: &str) -> Vec<u32> {
    agreed(|seed| execute(body, seed, true))
}

fn fault(body: &str) -> Fault {
    first_fault(|seed| execute(body, seed, true))
}

/// A product of 128 x 16 ones with 16 x 16 ones, each element of which every thread adds to `out`.
const PRODUCT: &str = "mov.u32 %r20, tile;
mov.b32 %r2, 0x3c003c00;
shl.b32 %r3, %r1, 5;
add.u32 %r3, %r3, %r20;
st.shared.v4.b32 [%r3], {%r2, %r2, %r2, %r2};
st.shared.v4.b32 [%r3+16], {%r2, %r2, %r2, %r2};
st.shared.v4.b32 [%r3+4096], {%r2, %r2, %r2, %r2};
st.shared.v4.b32 [%r3+4112], {%r2, %r2, %r2, %r2};
fence.proxy.async.shared::cta;
@!%p3 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ALLOCATED:
bar.sync 0;
ld.shared.u32 %r21, [slot];
@!%p1 bra WAIT;
shr.u32 %r22, %r20, 4;
cvt.u64.u32 %rd2, %r22;
add.u64 %rd3, %rd2, 0x400800800000;
add.u64 %rd4, %rd2, 0x400800100100;
tcgen05.mma.cta_group::1.kind::f16 [%r21], %rd3, %rd4, 0x8040010, 0;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
@!%p2 bra WAIT;
tcgen05.fence::after_thread_sync;
and.b32 %r23, %r1, 96;
shl.b32 %r23, %r23, 16;
add.u32 %r23, %r23, %r21;
tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r4, %r5, %r6, %r7}, [%r23];
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %rd5, %r1, 16;
add.u64 %rd5, %rd5, %rd1;
st.global.v4.b32 [%rd5], {%r4, %r5, %r6, %r7};
tcgen05.fence::before_thread_sync;
bar.sync 0;
@!%p3 bra END;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r21, 32;
END:
ret;";

/// The product with a line replaced.
fn with(line: &str, by: &str) -> String {
    assert_eq!(PRODUCT.matches(line).count(), 1, "{line}");
    PRODUCT.replace(line, by)
}

#[test]
fn a_product_of_ones() {
    // A has 128 lines, whose units along k are 2048 bytes apart, and B has 16 lines after it.
    assert_eq!(words(PRODUCT)[..512], [16f32.to_bits(); 512]);
}

#[test]
fn each_part_of_the_columns_has_a_left_multiplicand_of_its_own() {
    // A is in tensor memory: ones on lanes 0 to 63, for columns 0 to 31 of D, and twos on the others.
    let line = "tcgen05.mma.cta_group::1.kind::f16 [%r21], %rd3, %rd4, 0x8040010, 0;";
    let body = with(line, "tcgen05.mma.ws.cta_group::1.kind::f16 [%r21], [%r21+32], %rd3, 0x4100010, 0;")
        .replace("b32 [slot], 32;", "b32 [slot], 64;")
        .replace("b32 %r21, 32;", "b32 %r21, 64;")
        .replace(
            "ld.shared.u32 %r21, [slot];",
            "ld.shared.u32 %r21, [slot];\nsetp.lt.u32 %p4, %r1, 64;\nselp.b32 %r2, 0x3c003c00, 0x40004000, %p4;\n\
             and.b32 %r23, %r1, 96;\nshl.b32 %r23, %r23, 16;\nadd.u32 %r23, %r23, %r21;\n\
             tcgen05.st.sync.aligned.32x32b.x8.b32 [%r23+32], {%r2, %r2, %r2, %r2, %r2, %r2, %r2, %r2};\n\
             tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\nbar.sync 0;\n\
             tcgen05.fence::after_thread_sync;",
        );
    let sum = |lane: usize| if lane < 64 { 16f32 } else { 32f32 };
    let expected: Vec<u32> = (0..512).map(|at| sum(at / 4).to_bits()).collect();
    assert_eq!(words(&body)[..512], expected);
}

#[test]
fn halves_that_a_packed_load_leaves_out_may_be_undefined() {
    let load = "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r4, %r5, %r6, %r7}, [%r23];";
    let body = |undefined: &str| {
        with(
            load,
            &format!(
                "ld.shared.u32 %r2, [slot+4];\nand.b32 %r2, %r2, {undefined};\nor.b32 %r2, %r2, 5;\n\
                 tcgen05.st.sync.aligned.32x32b.x2.b32 [%r23], {{%r2, %r2}};\ntcgen05.wait::st.sync.aligned;\n\
                 tcgen05.ld.sync.aligned.32x32b.x1.pack::16b.b32 {{%r4}}, [%r23];\nmov.b32 %r5, 0;\nmov.b32 %r6, 0;\nmov.b32 %r7, 0;"
            ),
        )
    };
    assert_eq!(words(&body("0xffff0000"))[0], 0x0005_0005);
    assert_eq!(fault(&body("0x00000002")).kind, FaultKind::UninitializedRead);
}

#[test]
fn every_step_of_a_product_is_needed() {
    use FaultKind::*;
    let wait = "WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;";
    let mutants = [
        ("fence.proxy.async.shared::cta;", "", MissingFence, "`fence.proxy.async` is missing"),
        (wait, "WAIT:", Race, "`tcgen05.commit` and a wait for its mbarrier are missing"),
        ("tcgen05.fence::after_thread_sync;", "", MissingFence, "`tcgen05.fence::after_thread_sync` is missing"),
        ("tcgen05.wait::ld.sync.aligned;", "", AsyncRegisterHazard, "`tcgen05.wait::ld` has not waited for this load"),
        ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r21, 32;", "", TmemLeak, "`tcgen05.dealloc` is missing"),
        (
            "tcgen05.wait::ld.sync.aligned;",
            "add.u32 %r5, %r5, 1;\ntcgen05.wait::ld.sync.aligned;",
            AsyncRegisterHazard,
            "a register of a load was written before `tcgen05.wait::ld`",
        ),
        (
            "tcgen05.wait::ld.sync.aligned;",
            "mov.b32 %r5, 0;\ntcgen05.wait::ld.sync.aligned;",
            AsyncRegisterHazard,
            "a register of a load was written before `tcgen05.wait::ld`",
        ),
        ("0x400800100100", "0x20400800100100", BadDescriptor, "bits 53 to 60"),
        ("0x8040010, 0;", "0x8040050, 0;", BadDescriptor, "it has reserved bits from bit 6 on"),
        ("0x400800100100", "0x7fff00100100", OutOfBounds, "a matrix operand that starts at"),
        ("tcgen05.fence::before_thread_sync;\nbar.sync 0;", "", TmemMisuse, ""),
        ("b32 %r21, 32", "b32 %r21, 64", TmemMisuse, "no allocation of 64 columns at 0x0; there are 32 columns at 0x0"),
        ("[slot], 32", "[slot], 48", TmemMisuse, "32, 64, 128, 256 or 512 columns; this one has 48"),
        ("0x8040010", "0x3040010", BadDescriptor, "M = 48 and N = 16"),
        ("0x400800800000", "0x800800000", BadDescriptor, "bits 46 to 48 are 0b000"),
        ("0x400800100100", "0x6000400800100100", BadDescriptor, "no swizzle with the code 3"),
        ("and.b32 %r23, %r1, 96;", "mov.b32 %r23, 0;", TmemMisuse, "lanes 32 to 63"),
        ("0x8040010, 0;", "0x8040010, 1;", UninitializedRead, "tensor memory that was never written"),
        ("@!%p1 bra WAIT;", "@!%p3 bra WAIT;", IllegalInstruction, "32 lanes execute this instruction"),
        ("[%r23];", "[%r23+30];", TmemMisuse, "columns 30 to 33 of tensor memory are not in one allocation"),
    ];
    for (line, by, kind, told) in mutants {
        let found = fault(&with(line, by));
        assert!(found.kind == kind && found.message.contains(told), "{line} -> {by}: {found}");
    }
}

#[test]
fn a_second_product_waits_for_the_reads_of_the_first() {
    let again = "tcgen05.mma.cta_group::1.kind::f16 [%r21], %rd3, %rd4, 0x8040010, 0;\n\
                 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\nLATER:\n\
                 mbarrier.try_wait.parity.shared.b64 %p2, [bar], 1;\n@!%p2 bra LATER;\nbar.sync 0;\n@!%p3 bra END;";
    let ordered = format!(
        "tcgen05.fence::before_thread_sync;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;\n@!%p1 bra LATER;\n{again}"
    );
    let old = "tcgen05.fence::before_thread_sync;\nbar.sync 0;\n@!%p3 bra END;";
    words(&with(old, &ordered));
    for (dropped, kind, told) in [
        (
            "tcgen05.fence::before_thread_sync;\n",
            FaultKind::Race,
            "`tcgen05.fence::before_thread_sync` and a barrier are",
        ),
        (
            "tcgen05.fence::after_thread_sync;\n",
            FaultKind::MissingFence,
            "`tcgen05.fence::after_thread_sync` is missing",
        ),
        ("bar.sync 0;\n", FaultKind::Race, "of tensor memory and the"),
    ] {
        let found = fault(&with(old, &ordered.replacen(dropped, "", 1)));
        assert!(found.kind == kind && found.message.contains(told), "{dropped}: {found}");
    }
}

#[test]
fn without_the_rule_a_barrier_is_enough() {
    let unfenced = with("tcgen05.fence::after_thread_sync;", "").replace("tcgen05.fence::before_thread_sync;\n", "");
    assert!(execute(&unfenced, 0, false).0.is_ok());
    assert!(execute(&unfenced, 0, true).0.is_err());
}

#[test]
fn an_allocation_is_not_freed_under_a_product() {
    let free = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r21, 32;";
    let early = with("WAIT:\n", &format!("WAIT:\n@!%p3 bra LOOP;\n{free}\nLOOP:\n"))
        .replace("@!%p2 bra WAIT", "@!%p2 bra LOOP");
    let found = fault(&early);
    assert_eq!(found.kind, FaultKind::TmemMisuse);
    assert!(found.message.contains("may still use these columns"), "{found}");
}

#[test]
fn a_warp_waits_for_columns_that_another_one_frees() {
    let both = "setp.lt.u32 %p4, %r1, 64;
@!%p4 bra END;
shr.u32 %r2, %r1, 5;
shl.b32 %r2, %r2, 2;
mov.u32 %r3, slot;
add.u32 %r2, %r2, %r3;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 512;
bar.warp.sync -1;
ld.shared.b32 %r4, [%r2];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 512;
END:
ret;";
    words(both);
    let never = both.replace("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 512;\n", "");
    let found = fault(&never);
    assert_eq!(found.kind, FaultKind::Deadlock);
    assert!(found.waiting[0].what.contains("512 free columns of tensor memory"), "{found}");
}

#[test]
fn nothing_is_allocated_after_the_permit_is_given_back() {
    let late = with(
        "@!%p3 bra END;\n",
        "@!%p3 bra END;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\n",
    );
    let found = fault(&late);
    assert!(found.message.contains("after `tcgen05.relinquish_alloc_permit`"), "{found}");
}

/// Stores registers by one shape and loads them by another, warp 0 only.
fn moved(store: &str, load: &str, is_waited: bool) -> String {
    let wait = if is_waited { "tcgen05.wait::st.sync.aligned;" } else { "" };
    format!(
        "@!%p3 bra END;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\nbar.warp.sync -1;\nld.shared.u32 %r21, [slot];\n\
         shl.b32 %r2, %r1, 8;\nadd.u32 %r4, %r2, 1;\nadd.u32 %r5, %r2, 2;\nadd.u32 %r6, %r2, 3;\nadd.u32 %r7, %r2, 4;\n\
         {store}\n{wait}\n{load}\ntcgen05.wait::ld.sync.aligned;\nmul.wide.u32 %rd5, %r1, 16;\nadd.u64 %rd5, %rd5, %rd1;\n\
         st.global.v4.b32 [%rd5], {{%r8, %r9, %r10, %r11}};\n\
         tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r21, 32;\nEND:\nret;"
    )
}

#[test]
fn a_load_waits_for_the_store_of_its_warp() {
    let store = "tcgen05.st.sync.aligned.32x32b.x4.b32 [%r21], {%r4, %r5, %r6, %r7};";
    let load = "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r8, %r9, %r10, %r11}, [%r21];";
    let found = words(&moved(store, load, true));
    assert_eq!(found[4..8], [0x101, 0x102, 0x103, 0x104]);
    let late = fault(&moved(store, load, false));
    assert_eq!(late.kind, FaultKind::Race);
    assert!(late.message.contains("`tcgen05.wait::ld` or `tcgen05.wait::st`"), "{late}");
}

/// Stores to columns 0 to 15: `lane << 8 | (column + 1)`.
fn store_columns() -> String {
    let columns = |part: i32| {
        format!(
            "add.u32 %r12, %r4, {0};\nadd.u32 %r13, %r5, {0};\nadd.u32 %r14, %r6, {0};\nadd.u32 %r15, %r7, {0};\n\
             tcgen05.st.sync.aligned.32x32b.x4.b32 [%r21+{0}], {{%r12, %r13, %r14, %r15}};\n",
            4 * part
        )
    };
    (0..4).map(columns).collect()
}

/// The lane and the column of a register of a thread, as the figures of the PTX ISA show them.
type Place = fn(u32, u32) -> (u32, u32);

#[test]
fn shapes_put_registers_where_the_isa_shows_them() {
    let shapes: [(&str, u32, Place); 4] = [
        ("16x64b.x4", 4, |t, r| (t / 4 + 8 * (t & 1), 2 * r + (t >> 1 & 1))),
        ("16x128b.x2", 4, |t, r| (t / 4 + 8 * (r & 1), 4 * (r >> 1) + t % 4)),
        ("16x256b.x1", 4, |t, r| (t / 4 + 8 * (r >> 1), 2 * (t % 4) + (r & 1))),
        ("16x32bx2.x4", 4, |t, r| (t % 16, t / 16 * 9 + r)),
    ];
    for (shape, registers, place) in shapes {
        let split = if shape.starts_with("16x32bx2") { ", 9" } else { "" };
        let load = format!("tcgen05.ld.sync.aligned.{shape}.b32 {{%r8, %r9, %r10, %r11}}, [%r21]{split};");
        let found = words(&moved(&store_columns(), &load, true));
        for (thread, register) in (0..32).flat_map(|thread| (0..registers).map(move |register| (thread, register))) {
            let (lane, column) = place(thread, register);
            assert_eq!(
                found[(4 * thread + register) as usize],
                lane << 8 | (column + 1),
                "{shape} {thread} {register}"
            );
        }
    }
}

#[test]
fn the_second_half_of_a_split_is_as_many_columns_further_when_it_is_packed() {
    let load =
        "tcgen05.ld.sync.aligned.16x32bx2.x2.pack::16b.b32 {%r8, %r9}, [%r21], 6;\nmov.b32 %r10, 0;\nmov.b32 %r11, 0;";
    let found = words(&moved(&store_columns(), load, true));
    let pair = |lane: u32, column: u32| (lane << 8 | (column + 2)) << 16 | (lane << 8 | (column + 1));
    assert_eq!(found[..2], [pair(0, 0), pair(0, 2)]);
    assert_eq!(found[4 * 17..4 * 17 + 2], [pair(1, 6), pair(1, 8)]);
    let outside = "tcgen05.ld.sync.aligned.16x32bx2.x1.pack::16b.b32 {%r8}, [%r21], 31;";
    assert_eq!(fault(&moved(&store_columns(), outside, true)).kind, FaultKind::TmemMisuse);
}

#[test]
fn halves_are_packed_and_unpacked() {
    let store = "tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%r21], {%r4, %r5};";
    let load = "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r8, %r9, %r10, %r11}, [%r21];";
    assert_eq!(words(&moved(store, load, true))[4..8], [0x101, 0, 0x102, 0]);
    let store = "tcgen05.st.sync.aligned.32x32b.x4.b32 [%r21], {%r4, %r5, %r6, %r7};";
    let load =
        "tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {%r8, %r9}, [%r21];\nmov.b32 %r10, 0;\nmov.b32 %r11, 0;";
    assert_eq!(words(&moved(store, load, true))[4..6], [0x102_0101, 0x104_0103]);
}

/// Thread 0 of each warp copies, shifts and commits `operations` on columns that hold 1000 times the column plus the lane, and
/// all threads store the words of their lanes.
fn shifted(operations: &str) -> String {
    format!(
        "mov.u32 %r20, tile;\n@!%p3 bra ALLOCATED;\n\
         tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\nALLOCATED:\nbar.sync 0;\n\
         ld.shared.u32 %r21, [slot];\nand.b32 %r23, %r1, 96;\nshl.b32 %r23, %r23, 16;\nadd.u32 %r23, %r23, %r21;\n\
         {}tcgen05.st.sync.aligned.32x32b.x8.b32 [%r23], {{%r30, %r31, %r32, %r33, %r34, %r35, %r36, %r37}};\n\
         tcgen05.wait::st.sync.aligned;\nshl.b32 %r3, %r1, 4;\nadd.u32 %r3, %r3, %r20;\nmov.u32 %r4, 77;\n\
         st.shared.v4.b32 [%r3], {{%r4, %r4, %r4, %r4}};\nst.shared.v4.b32 [%r3+2048], {{%r4, %r4, %r4, %r4}};\nfence.proxy.async.shared::cta;\n\
         tcgen05.fence::before_thread_sync;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;\n@!%p1 bra WAIT;\n\
         shr.u32 %r22, %r20, 4;\ncvt.u64.u32 %rd2, %r22;\nadd.u64 %rd3, %rd2, 0x400800800000;\n\
         {operations}\ntcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n\
         WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\ntcgen05.fence::after_thread_sync;\n\
         tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%r30, %r31, %r32, %r33, %r34, %r35, %r36, %r37}}, [%r23];\n\
         tcgen05.wait::ld.sync.aligned;\ntcgen05.fence::before_thread_sync;\nbar.sync 0;\n\
         @%p3 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r21, 32;\nmul.wide.u32 %rd5, %r1, 32;\n\
         add.u64 %rd5, %rd5, %rd1;\nst.global.v4.b32 [%rd5], {{%r30, %r31, %r32, %r33}};\n\
         st.global.v4.b32 [%rd5+16], {{%r34, %r35, %r36, %r37}};\nret;",
        (0..8).map(|column| format!("add.u32 %r3{column}, %r1, {};\n", 1000 * column)).collect::<String>()
    )
}

#[test]
fn rows_are_shifted_and_the_first_ones_replaced() {
    let shift = "add.u32 %r40, %r21, 0x200000;\ntcgen05.shift.cta_group::1.down [%r40];\n";
    let found = words(&shifted(shift));
    let place = |at: u32| (at / 8, at % 8);
    let want = |at: u32| {
        let (lane, column) = place(at);
        1000 * column + if (33..64).contains(&lane) { lane - 1 } else { lane }
    };
    assert_eq!(found[..1024], (0..1024).map(want).collect::<Vec<u32>>());
    let replaced = words(&shifted(&format!("{shift}tcgen05.cp.cta_group::1.4x256b [%r21], %rd3;\n")));
    let new = |at: u32| if place(at).0.is_multiple_of(32) { 77 } else { want(at) };
    assert_eq!(replaced[..1024], (0..1024).map(new).collect::<Vec<u32>>());
    let twice = fault(&shifted(&format!("{shift}tcgen05.shift.cta_group::1.down [%r40];\n")));
    assert_eq!(twice.kind, FaultKind::Race);
    let odd = fault(&shifted("add.u32 %r40, %r21, 0x100000;\ntcgen05.shift.cta_group::1.down [%r40];\n"));
    assert_eq!(odd.message, "a shift begins on lane 0, 32, 64 or 96, not on lane 16");
}
