//! Tensor maps that threads change.

use tilewright_vgpu::{FaultKind, MapSwizzle};

use crate::bulk::{Case, load_box};

/// Thread 0 copies the map to `tile`, changes it there by `changes`, and copies it to `b` + 2048, whose address is then
/// `%rd3`; `fence` comes before its use.
fn changed(changes: &str, fence: &str, use_of_map: &str) -> String {
    format!(
        "@!%p1 bra DONE;\nmov.u32 %r8, 0;\nmov.u32 %r9, tile;\nmov.b64 %rd4, %rd3;\nCOPY:\nld.b64 %rd5, [%rd4];\n\
         st.shared.b64 [%r9], %rd5;\nadd.u32 %r9, %r9, 8;\nadd.u64 %rd4, %rd4, 8;\nadd.u32 %r8, %r8, 1;\n\
         setp.lt.u32 %p4, %r8, 16;\n@%p4 bra COPY;\n{changes}\nDONE:\nbar.sync 0;\nadd.u64 %rd3, %rd2, 2048;\n\
         setp.ge.u32 %p5, %r1, 32;\n\
         @!%p5 tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd3], [tile], 128;\n\
         bar.sync 0;\n{fence}\n{use_of_map}"
    )
}

const ACQUIRE: &str = "fence.proxy.tensormap::generic.acquire.gpu [%rd3], 128;";

#[test]
fn a_changed_map_is_used_after_its_fences() {
    let case = Case::rows(16, MapSwizzle::None);
    // Eight rows from row 4 on, of a tensor that begins at row 2 and has six rows, every second one of the old.
    let changes = "add.u64 %rd6, %rd1, 256;\ntensormap.replace.tile.global_address.shared::cta.b1024.b64 [tile], %rd6;\n\
                   mov.u32 %r10, 6;\ntensormap.replace.tile.global_dim.shared::cta.b1024.b32 [tile], 1, %r10;\n\
                   mov.u64 %rd7, 256;\ntensormap.replace.tile.global_stride.shared::cta.b1024.b64 [tile], 0, %rd7;\n\
                   tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [tile], 1, 4;";
    // The map was written in the tile, which the box overwrites.
    let load = load_box("0, 4", 512);
    let both = format!("fence.proxy.async;\n{ACQUIRE}");
    let found = case.words(&changed(changes, &both, &load));
    let want = |at: usize| {
        let (row, column) = (4 + at / 64, at % 64);
        if row < 6 { ((2 + 2 * row) * 64 + column) as u16 } else { 0 }
    };
    assert_eq!(found[..256], (0..256).map(want).collect::<Vec<u16>>());
    let missing = case.fault(&changed(changes, "fence.proxy.async;", &load));
    assert_eq!(missing.kind, FaultKind::MissingFence);
    assert!(missing.message.ends_with("is missing, or its scope is too narrow"), "{}", missing.message);
}

#[test]
fn an_acquire_is_for_its_map_and_its_scope() {
    let case = Case::rows(16, MapSwizzle::None);
    let changes = "mov.u32 %r10, 12;\ntensormap.replace.tile.global_dim.shared::cta.b1024.b32 [tile], 1, %r10;";
    let with = |acquire: &str, change: fn(String) -> String| {
        change(changed(changes, &format!("fence.proxy.async;\n{acquire}"), &load_box("0, 0", 1024)))
    };
    let keep = |text: String| text;
    let other = "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;";
    assert_eq!(case.fault(&with(other, keep)).kind, FaultKind::MissingFence);
    // Within a CTA, its own scope is enough.
    let narrow = ACQUIRE.replace(".gpu", ".cta");
    let release = |text: String| text.replace("release.gpu", "release.cta");
    assert_eq!(case.words(&with(&narrow, release))[..2], [0, 1]);
    let by_one = |text: String| text.replace("setp.ge.u32 %p5, %r1, 32;", "setp.ne.u32 %p5, %r1, 0;");
    assert_eq!(case.fault(&with(ACQUIRE, by_one)).kind, FaultKind::DivergentAligned);
    let unsynchronized = |text: String| text.replace("DONE:\nbar.sync 0;", "DONE:");
    assert_eq!(case.fault(&with(ACQUIRE, unsynchronized)).kind, FaultKind::Race);
    let in_shared = |text: String| {
        text.replace("[%rd3, {", "[%rd8, {").replacen(
            "@!%p1 bra DONE;",
            "mov.u32 %r9, tile;\ncvt.u64.u32 %rd8, %r9;\ncvta.shared.u64 %rd8, %rd8;\n@!%p1 bra DONE;",
            1,
        )
    };
    let fault = case.fault(&with(ACQUIRE, in_shared));
    let said = "a tensor map is in parameters, constants or global memory, and this one in shared memory";
    assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::BadDescriptor, said));
}

#[test]
fn what_is_illegal_after_a_change_is_found() {
    let case = Case::rows(16, MapSwizzle::None);
    let said = |changes: &str| {
        let fault = case.fault(&changed(changes, &format!("fence.proxy.async;\n{ACQUIRE}"), &load_box("0, 0", 1024)));
        assert_eq!(fault.kind, FaultKind::BadDescriptor);
        fault.message
    };
    assert_eq!(
        said("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [tile], 2;"),
        "the tensor map is illegal: box[0]: a row of 128 bytes is longer than the swizzle's 64"
    );
    assert_eq!(
        said("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [tile], 1, 9;"),
        "the tensor map is illegal: element_strides[1]: an element stride is 1 to 8; this one is 9"
    );
    assert_eq!(
        said("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [tile], 77;"),
        "there is no element type with the code 77"
    );
}
