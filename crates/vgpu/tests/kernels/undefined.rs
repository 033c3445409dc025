//! Memory that was never written: undefined bits propagate, and fault where they have an effect.

use super::*;

#[test]
fn shared_memory_starts_unwritten() {
    let fault = fault(&with_addresses("ld.shared.u32 %r5, [%r4];\nst.global.u32 [%rd4], %r5;\nret;"), 32);
    assert_eq!((fault.kind, fault.at.ptx_line), (FaultKind::UninitializedRead, 21));
    assert_eq!(
        fault.location.map(|location| (location.space, location.name)),
        Some((Space::Shared, "tile".to_string()))
    );
}

#[test]
fn what_a_load_gets_beside_what_it_uses_is_no_fault() {
    // Bytes that were never written, and words that other lanes write before or after.
    let unwritten = "ld.shared.v2.u32 {%r5, %r6}, [tile];\n";
    let before = "st.shared.u32 [%r4], %r1;\nld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [tile];\n\
                  setp.eq.u32 %p1, %r1, 1;\nselp.u32 %r6, %r6, 1, %p1;\n";
    let after = "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [tile];\nst.shared.u32 [%r4], %r1;\n";
    for body in [unwritten, before, after] {
        let used = "st.global.u32 [%rd4], %r1;\nret;";
        report(&execute(&with_addresses(&format!("{body}{used}")), 1, 4));
    }
}

#[test]
fn a_load_may_hang_over_the_end_of_a_buffer_inside_its_alignment() {
    let run_one = |used: &str| {
        let body = format!("ld.global.v4.u32 {{%r5, %r6, %r7, %r8}}, [%rd1+16];\nst.global.u32 [%rd2], {used};\nret;");
        let module = Module::parse(&format!("{HEADER}{}\n}}\n", with_addresses(&body))).expect("PTX");
        let mut memory = Memory::new();
        let (a, b) = (memory.allocate("a", vec![1; 20]), memory.allocate_poison("b", 4));
        let args = [a, b].map(|buffer| Arg::Buffer { buffer, byte_offset: 0 }).to_vec();
        let (grid, block) = ([1, 1, 1], [1, 1, 1]);
        let launch = Launch {
            kernel: "k".to_string(),
            grid,
            block,
            cluster: [1; 3],
            overlaps_previous: false,
            dynamic_shared_bytes: 0,
            args,
        };
        match run(&module, &launch, &mut memory, &Options::default()) {
            Err(RunError::Fault(fault)) => Some((fault.kind, fault.message)),
            Err(error) => panic!("{error}"),
            Ok(_) => None,
        }
    };
    assert_eq!(run_one("%r5"), None);
    let (kind, message) = run_one("%r6").expect("a fault");
    assert_eq!(kind, FaultKind::OutOfBounds);
    let wanted = "the access at `a` + 16 extends 12 B past the end (size 20 B); \
                  the undefined bits are stored to `b` + 0";
    assert!(message.starts_with(wanted), "{message}");
}

#[test]
fn undefined_bits_may_not_decide() {
    let load = "ld.shared.u32 %r5, [tile];\n";
    for (body, how) in [
        (
            "setp.eq.u32 %p1, %r5, 7;\n@%p1 bra END;\nst.global.u32 [%rd4], 1;\nEND:\nret;",
            "decide whether an instruction is executed",
        ),
        (
            "setp.eq.u32 %p1, %r5, 0;\n@%p1 bra END;\nbar.sync 0;\nEND:\nret;",
            "decide whether an instruction is executed",
        ),
        ("setp.eq.u32 %p1, %r5, 7;\n@%p1 st.global.u32 [%rd4], 1;\nret;", "decide whether an instruction is executed"),
        ("L:\nsetp.eq.u32 %p1, %r5, 7;\nld.shared.u32 %r5, [tile];\n@%p1 bra L;\nret;", "decide whether"),
        (
            "setp.eq.u32 %p1, %r5, 7;\nmov.u32 %r6, 1;\n@%p1 bra J;\nmov.u32 %r6, 2;\nJ:\nst.global.u32 [%rd4], %r6;\nret;",
            "are stored to `b` + 0",
        ),
        (
            "setp.eq.u32 %p1, %r5, 7;\nsetp.eq.u32 %p2, %r1, 99;\n@%p1 bra J;\nsetp.ne.u32 %p2, %r1, 99;\nJ:\n\
             @%p2 bra END;\nst.global.u32 [%rd4], 1;\nEND:\nret;",
            "decide whether an instruction is executed",
        ),
        ("ld.shared.u32 %r6, [%r5];\nret;", "decide which memory is loaded"),
        ("st.shared.u32 [%r5], 0;\nret;", "decide which memory is stored to"),
        ("shfl.sync.idx.b32 %r6, %r5, 3, 31, -1;\nst.global.u32 [%rd4], %r6;\nret;", "are stored to `b` + 0"),
        ("shfl.sync.idx.b32 %r6, %r1, %r5, 31, -1;\nret;", "decide which lane is read"),
        (
            "st.shared.u32 [%r4+256], %r5;\nld.shared.u32 %r6, [%r4+256];\nst.global.u32 [%rd4], %r6;\nret;",
            "are stored",
        ),
        ("and.b32 %r6, %r5, 255;\nst.global.u8 [%rd4], %r6;\nret;", "are stored to `b` + 0"),
        ("atom.global.add.u32 %r6, [%rd4], %r5;\nret;", "are an operand of an atomic operation"),
    ] {
        let fault = fault(&with_addresses(&format!("{load}{body}")), 32);
        assert_eq!((fault.kind, fault.at.ptx_line), (FaultKind::UninitializedRead, 21), "{body}");
        assert!(fault.message.contains(how), "{body}: {}", fault.message);
    }
}

/// A loop that was unswitched on a loaded value, above the condition under which only thread 0 loads it.
#[test]
fn a_branch_on_undefined_bits_may_lead_to_nothing() {
    let body = "setp.ne.u32 %p2, %r1, 0;\n@%p2 bra READ;\nst.shared.u32 [tile], 3;\nREAD:\nld.shared.u32 %r5, [tile];\n\
                setp.eq.u32 %p1, %r5, 3;\nmov.u32 %r6, 0;\nmov.u32 %r7, 0;\n@%p1 bra THREE;\n\
                OTHER:\n@%p2 bra NEXT1;\nst.global.u32 [%rd4], 1;\nNEXT1:\nadd.s32 %r6, %r6, 1;\n\
                setp.lt.u32 %p3, %r6, 3;\n@%p3 bra OTHER;\nbra.uni END;\n\
                THREE:\n@%p2 bra NEXT2;\nld.shared.u32 %r7, [tile];\nst.global.u32 [%rd4], %r7;\nNEXT2:\n\
                add.s32 %r6, %r6, 1;\nsetp.lt.u32 %p3, %r6, 3;\n@%p3 bra THREE;\n\
                END:\nadd.s32 %r6, %r6, 2;\n@!%p2 bra LEAVE;\nst.global.u32 [%rd4], %r6;\nLEAVE:\nret;";
    let outcome = execute(&with_addresses(body), 1, 64);
    report(&outcome);
    let wanted: Vec<u32> = (0..64).map(|thread| if thread == 0 { 3 } else { 5 }).collect();
    assert_eq!(words(&outcome, outcome.b)[..64], wanted);
}

#[test]
fn bits_that_are_masked_away_are_defined() {
    let load = "st.shared.u8 [%r4], 3;\nld.shared.u32 %r5, [%r4];\n";
    for body in [
        "and.b32 %r6, %r5, 255;",
        "shl.b32 %r6, %r5, 24;\nshr.u32 %r6, %r6, 24;",
        "bfe.u32 %r6, %r5, 0, 8;",
        "prmt.b32 %r6, %r5, 0, 0x4440;",
        "or.b32 %r6, %r5, 0xffffff00;\nand.b32 %r6, %r6, 255;",
        "add.s32 %r6, %r5, 512;\nand.b32 %r6, %r6, 255;",
        "lop3.b32 %r6, %r5, 255, 0, 0xc0;",
        "cvt.u32.u8 %r6, %r5;",
        "xor.b32 %r7, %r5, %r1;\nmul.lo.s32 %r7, %r7, 0;\nmov.u32 %r6, 3;",
    ] {
        let outcome = execute(&with_addresses(&format!("{load}{body}\nst.global.u32 [%rd4], %r6;\nret;")), 1, 4);
        report(&outcome);
        assert_eq!(words(&outcome, outcome.b)[..4], [3; 4], "{body}");
    }
}

#[test]
fn what_another_warp_writes_later_is_a_race_not_unwritten() {
    // Warp 0 runs first, and reads what warp 1 writes: with a barrier between them it would be in order.
    let body = "xor.b32 %r5, %r2, 128;\nadd.u32 %r5, %r5, %r3;\nst.shared.u32 [%r4], %r1;\n\
                ld.shared.u32 %r6, [%r5];\nst.global.u32 [%rd4], %r6;\nret;";
    let found = fault(&with_addresses(body), 64);
    assert_eq!((found.kind, found.warp), (FaultKind::Race, 0));
    let wanted = "this read of `tile` + 128 and the write at PTX line 23 by lane 0 of warp 1 are not ordered by a barrier or by a flag; ";
    assert!(found.message.starts_with(wanted), "{}", found.message);
    // Nobody writes it.
    let unwritten = fault(&with_addresses(&body.replace("[%r4], %r1", "[%r3], %r1")), 64);
    assert_eq!(unwritten.kind, FaultKind::UninitializedRead);
}
