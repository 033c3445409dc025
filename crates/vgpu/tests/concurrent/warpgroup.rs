//! `wgmma`: what is missing in kernels that are almost right.

use tilewright_vgpu::{Fault, FaultKind, Memory, Options, run};

use crate::harness::{Outcome, agreed, fault_of, first_fault, launch, module, words_of};

/// The product of 64 x 16 ones and 16 x 8 ones, twice, by 128 threads; each stores its four elements.
const PRODUCT: &str = "mov.u32 %r20, tile;
mov.b32 %r2, 0x3c003c00;
shl.b32 %r3, %r1, 5;
add.u32 %r3, %r3, %r20;
st.shared.v4.b32 [%r3], {%r2, %r2, %r2, %r2};
st.shared.v4.b32 [%r3+16], {%r2, %r2, %r2, %r2};
fence.proxy.async.shared::cta;
bar.sync 0;
shr.u32 %r22, %r20, 4;
cvt.u64.u32 %rd2, %r22;
add.u64 %rd3, %rd2, 0x800400000;
add.u64 %rd4, %rd2, 0x800080080;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r4, %r5, %r6, %r7}, %rd3, %rd4, 0, 1, 1, 0, 0;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r4, %r5, %r6, %r7}, %rd3, %rd4, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mul.wide.u32 %rd5, %r1, 16;
add.u64 %rd5, %rd5, %rd1;
st.global.v4.b32 [%rd5], {%r4, %r5, %r6, %r7};
bar.sync 0;
st.shared.b32 [%r3], 0;
ret;";

fn execute(body: &str, threads: u32, seed: u64) -> Outcome {
    let text = format!(
        ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<8>;\n\
         .reg .b32 %r<96>;\n.reg .b64 %rd<16>;\n.shared .align 1024 .b8 tile[4096];\nld.param.u64 %rd1, [out];\n\
         mov.u32 %r1, %tid.x;\n{body}\n}}\n"
    );
    let mut memory = Memory::new();
    let out = memory.allocate("out", vec![0; 2048]);
    let options = Options { seed, ..Options::default() };
    let result = run(&module(&text), &launch(threads, &[out]), &mut memory, &options).map(|_| ());
    (result, words_of(&memory, out))
}

/// The fault of the product with a line replaced.
fn fault(line: &str, by: &str) -> Fault {
    assert_eq!(PRODUCT.matches(line).count(), 1, "{line}");
    let body = PRODUCT.replace(line, by);
    first_fault(|seed| execute(&body, 128, seed))
}

#[test]
fn two_products_of_ones() {
    assert_eq!(agreed(|seed| execute(PRODUCT, 128, seed)), [32f32.to_bits(); 512]);
}

#[test]
fn every_step_of_a_product_is_needed() {
    use FaultKind::*;
    let late = "`wgmma.wait_group` has not waited for this product";
    let mutants = [
        ("fence.proxy.async.shared::cta;", "", MissingFence, "`fence.proxy.async` is missing"),
        ("wgmma.fence.sync.aligned;", "", AsyncRegisterHazard, "`wgmma.fence` is missing"),
        ("wgmma.wait_group.sync.aligned 0;", "", AsyncRegisterHazard, late),
        ("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;", AsyncRegisterHazard, late),
        ("wgmma.commit_group.sync.aligned;", "", AsyncRegisterHazard, late),
        (
            "wgmma.commit_group.sync.aligned;",
            "wgmma.commit_group.sync.aligned;\nmov.b32 %r5, 0;",
            AsyncRegisterHazard,
            "was written before `wgmma.wait_group` has waited for it",
        ),
        (
            "wgmma.commit_group.sync.aligned;",
            "wgmma.commit_group.sync.aligned;\nadd.f32 %r5, %r5, 0f3f800000;",
            AsyncRegisterHazard,
            "was written before `wgmma.wait_group` has waited for it",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r4, %r5, %r6, %r7}, %rd3, %rd4, 1, 1, 1, 0, 0;",
            "add.f32 %r5, %r5, 0f3f800000;\n\
             wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r4, %r5, %r6, %r7}, %rd3, %rd4, 1, 1, 1, 0, 0;",
            AsyncRegisterHazard,
            "`wgmma.fence` is missing",
        ),
        (
            "wgmma.fence.sync.aligned;",
            "wgmma.fence.sync.aligned;\nmov.b32 %r4, 0x3f800000;",
            AsyncRegisterHazard,
            "`wgmma.fence` is missing",
        ),
        (
            "wgmma.fence.sync.aligned;",
            "wgmma.fence.sync.aligned;\nsetp.lt.u32 %p3, %r1, 32;\n@%p3 ret;",
            IllegalInstruction,
            "warp 0 has executed 0 of them, and warp 1 has executed 2",
        ),
        (
            "add.u64 %rd4, %rd2, 0x800080080;",
            "and.b32 %r8, %r1, 1;\ncvt.u64.u32 %rd4, %r8;\nadd.u64 %rd4, %rd4, %rd2;\nadd.u64 %rd4, %rd4, 0x800080080;",
            IllegalInstruction,
            "the lanes of the warp have different descriptors",
        ),
        ("wgmma.wait_group.sync.aligned 0;", "ret;", AsyncRegisterHazard, "the warp exits before `wgmma.wait_group`"),
        (
            "wgmma.commit_group.sync.aligned;",
            "wgmma.commit_group.sync.aligned;\nst.shared.b32 [%r3], 0;",
            Race,
            "are not ordered",
        ),
    ];
    for (line, by, kind, told) in mutants {
        let found = fault(line, by);
        assert!(found.kind == kind && found.message.contains(told), "{line} -> {by}: {found}");
    }
}

#[test]
fn an_accumulator_that_was_changed_needs_a_fence() {
    let again = "wgmma.wait_group.sync.aligned 0;\nmov.b32 %r4, 0;\n\
                 wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r4, %r5, %r6, %r7}, %rd3, %rd4, 1, 1, 1, 0, 0;\n\
                 wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;";
    let found = fault("wgmma.wait_group.sync.aligned 0;", again);
    assert_eq!(found.kind, FaultKind::AsyncRegisterHazard);
    let unchanged = PRODUCT.replace("wgmma.wait_group.sync.aligned 0;", &again.replace("mov.b32 %r4, 0;\n", ""));
    assert!(execute(&unchanged, 128, 0).0.is_ok());
}

#[test]
fn a_warpgroup_has_four_warps() {
    let found = fault_of(execute(PRODUCT, 96, 0));
    assert!(found.message.contains("a warpgroup has four warps"), "{found}");
}
