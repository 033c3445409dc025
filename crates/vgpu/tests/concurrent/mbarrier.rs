//! mbarrier objects: what waits for a phase is ordered after its arrivals, and wrong uses are found.

use tilewright_vgpu::{Fault, FaultKind, Memory, Options, RunError, run};

use crate::harness::{Outcome, SEEDS, agreed, always_races, fault_of, launch, module, words_of};

/// Runs `body` by one CTA of 64 threads on a buffer `a` of the words 0 to 255 and a buffer `b` of 256 words. `%r1` is the
/// thread, `%p1` whether it is in warp 0, `%rd1` and `%rd2` its words of the buffers, and `%r3` its word of `tile`, of which
/// both warps have the same ones; `bar` has room for two objects. A body begins at line 24.
fn execute(body: &str, seed: u64) -> Outcome {
    execute_with(body, Options { seed, ..Options::default() }, false)
}

/// As [`execute`]; `b` is compared at the end if `is_compared`.
fn execute_with(body: &str, options: Options, is_compared: bool) -> Outcome {
    let text = format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{{\n\
         .reg .pred %p<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n.shared .align 16 .b8 tile[1024];\n\
         .shared .align 8 .b8 bar[16];\nld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nmov.u32 %r1, %tid.x;\n\
         shl.b32 %r2, %r1, 2;\ncvt.u64.u32 %rd3, %r2;\nadd.u64 %rd1, %rd1, %rd3;\nadd.u64 %rd2, %rd2, %rd3;\n\
         and.b32 %r2, %r2, 127;\nmov.u32 %r3, tile;\nadd.u32 %r3, %r3, %r2;\nsetp.lt.u32 %p1, %r1, 32;\n\
         setp.eq.u32 %p2, %r1, 0;\n@%p2 mbarrier.init.shared.b64 [bar], 32;\n{body}\n}}\n"
    );
    let mut memory = Memory::new();
    let a = memory.allocate("a", (0..256u32).flat_map(u32::to_le_bytes).collect());
    let b = memory.allocate_poison("b", 1024);
    let observed = is_compared.then(|| [b].into());
    let options = Options { max_instructions_per_thread: 10_000, observed, ..options };
    let result = run(&module(&text), &launch(64, &[a, b]), &mut memory, &options).map(|_| ());
    (result, words_of(&memory, b))
}

fn words(body: &str) -> Vec<u32> {
    agreed(|seed| execute(body, seed))
}

fn fault(body: &str) -> Fault {
    fault_of(execute(body, 0))
}

fn races(body: &str) -> bool {
    always_races(|seed| execute(body, seed))
}

/// Warp 0 writes words and arrives; warp 1 waits for the phase with parity 0, and reads.
const HANDED_OVER: &str = "bar.sync 0;\n@!%p1 bra READ;\nld.global.u32 %r5, [%rd1];\nst.shared.u32 [%r3], %r5;\n\
    mbarrier.arrive.shared.b64 %rd5, [bar];\nret;\nREAD:\nmbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;\n\
    @!%p3 bra READ;\nld.shared.u32 %r5, [%r3];\nst.global.u32 [%rd2], %r5;\nret;";

#[test]
fn a_phase_hands_over_what_came_before_its_arrivals() {
    assert_eq!(words(HANDED_OVER)[32..64], (0..32).collect::<Vec<u32>>());
    let polled = HANDED_OVER.replace("try_wait", "test_wait");
    assert_eq!(words(&polled)[32..64], (0..32).collect::<Vec<u32>>());
    let one_arrives = HANDED_OVER.replace(
        "mbarrier.arrive.shared.b64 %rd5, [bar];",
        "bar.warp.sync -1;\n@%p2 mbarrier.arrive.shared.b64 _, [bar], 32;",
    );
    assert_eq!(words(&one_arrives)[32..64], (0..32).collect::<Vec<u32>>());
}

#[test]
fn an_object_is_not_used_again_while_threads_may_wait_for_it() {
    let body = "bar.sync 0;\n@%p1 mbarrier.arrive.shared.b64 _, [bar];\nAGAIN:\n\
                mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;\n@!%p3 bra AGAIN;\n@%p2 mbarrier.inval.shared.b64 [bar];\n\
                @%p2 st.shared.u64 [bar], 0;\nst.global.u32 [%rd2], %r1;\nret;";
    // Whoever waits too late finds no object; whoever has waited is not ordered before the store.
    assert!((0..SEEDS).all(|seed| execute(body, seed).0.is_err()));
    assert_eq!(fault(body).kind, FaultKind::Race);
    let ordered = body.replace("@%p2 mbarrier.inval", "bar.sync 0;\n@%p2 mbarrier.inval");
    assert_eq!(words(&ordered)[..64], (0..64).collect::<Vec<u32>>());
}

#[test]
fn what_has_reached_a_result_comes_before_a_deadlock() {
    let body = "bar.sync 0;\nld.shared.u32 %r5, [%r3];\nst.global.u32 [%rd2], %r5;\nbar.warp.sync -1;\nAGAIN:\n\
                mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;\n@!%p3 bra AGAIN;\nret;";
    let of = |is_compared| fault_of(execute_with(body, Options::default(), is_compared));
    let found = of(true);
    assert_eq!((found.kind, found.at.ptx_line), (FaultKind::UninitializedRead, 25));
    assert!(found.message.contains("the undefined bits reach `b` + 0"), "{}", found.message);
    let nothing = execute_with(&body.replace("ld.shared.u32 %r5, [%r3]", "mov.u32 %r5, 1"), Options::default(), true);
    assert_eq!(fault_of(nothing).kind, FaultKind::Deadlock);
}

#[test]
fn what_is_not_ordered_by_it_races() {
    let before = HANDED_OVER
        .replace("st.shared.u32 [%r3], %r5;\n", "")
        .replace("%rd5, [bar];\n", "%rd5, [bar];\nst.shared.u32 [%r3], %r5;\n");
    assert!(races(&before));
    // The preceding phase has completed: nothing is waited for, or the next phase, which never completes.
    let other_parity = HANDED_OVER.replace("[bar], 0;", "[bar], 1;");
    assert!((0..SEEDS).all(|seed| matches!(execute(&other_parity, seed).0, Err(RunError::Fault(_)))));
    assert!(races(&HANDED_OVER.replace("mbarrier.arrive.shared", "mbarrier.arrive.relaxed.cta.shared")));
    assert!(races(&HANDED_OVER.replace("try_wait.parity", "try_wait.parity.relaxed.cta")));
    // One thread arrives for all, and the others are not ordered before it.
    assert!(races(
        &HANDED_OVER
            .replace("mbarrier.arrive.shared.b64 %rd5, [bar];", "@%p2 mbarrier.arrive.shared.b64 _, [bar], 32;")
    ));
    // The object is initialized without a barrier behind it.
    let unordered = fault(&HANDED_OVER.replace("bar.sync 0;\n", ""));
    assert_eq!(unordered.kind, FaultKind::Race);
}

#[test]
fn phases_alternate_and_states_name_them() {
    // Three rounds: each thread of warp 0 arrives and waits for its own state.
    let rounds = "bar.sync 0;\n@!%p1 ret;\nmov.u32 %r5, 0;\nROUND:\nmbarrier.arrive.shared.b64 %rd5, [bar];\n\
                  WAIT:\nmbarrier.test_wait.shared.b64 %p3, [bar], %rd5;\n@!%p3 bra WAIT;\nadd.u32 %r5, %r5, 1;\n\
                  setp.lt.u32 %p4, %r5, 3;\n@%p4 bra ROUND;\nmbarrier.pending_count.b64 %r6, %rd5;\n\
                  st.global.u32 [%rd2], %r6;\nret;";
    let mut found = words_sorted(rounds);
    found.truncate(32);
    assert_eq!(found, (1..=32).collect::<Vec<u32>>());
}

/// The first 32 words, sorted.
fn words_sorted(body: &str) -> Vec<u32> {
    let (result, words) = execute(body, 0);
    result.unwrap_or_else(|error| panic!("{error}"));
    let mut words = words[..32].to_vec();
    words.sort_unstable();
    words
}

#[test]
fn expected_bytes_hold_a_phase_back() {
    let body = |complete: &str| {
        format!(
            "bar.sync 0;\n@!%p2 ret;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;\n\
             mbarrier.arrive.shared.b64 _, [bar], 31;\n{complete}\n\
             WAIT:\nmbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;\n@!%p3 bra WAIT;\nst.global.u32 [%rd2], %r1;\nret;"
        )
    };
    let complete = "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 32;\n".repeat(2);
    assert_eq!(words(&body(&complete))[0], 0);
    let fault = fault(&body("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 32;"));
    assert_eq!(fault.kind, FaultKind::Deadlock);
    let waits: Vec<&str> = fault.waiting.iter().map(|item| item.what.as_str()).collect();
    assert_eq!(waits, ["the mbarrier at `bar` + 0, phase 0 (parity 0), which lacks 32 bytes"]);
}

#[test]
fn a_phase_that_never_completes_is_a_deadlock() {
    let fault = fault(
        &HANDED_OVER
            .replace("mbarrier.arrive.shared.b64 %rd5, [bar];", "@%p2 mbarrier.arrive.shared.b64 _, [bar], 30;"),
    );
    assert_eq!((fault.kind, fault.waiting.len()), (FaultKind::Deadlock, 1));
    assert_eq!(fault.waiting[0].what, "the mbarrier at `bar` + 0, phase 0 (parity 0), which lacks 2 of 32 arrivals");
}

#[test]
fn copies_arrive_when_they_are_done() {
    // Each thread of warp 0 copies a word and lets its copy arrive; warp 1 waits for all of them.
    let body = |arrive: &str| {
        HANDED_OVER.replace(
            "ld.global.u32 %r5, [%rd1];\nst.shared.u32 [%r3], %r5;\nmbarrier.arrive.shared.b64 %rd5, [bar];",
            &format!("cp.async.ca.shared.global [%r3], [%rd1], 4;\n{arrive}"),
        )
    };
    assert_eq!(words(&body("cp.async.mbarrier.arrive.noinc.shared.b64 [bar];"))[32..64], (0..32).collect::<Vec<u32>>());
    // Without `.noinc`, the arrival is one more than the count.
    let both = "cp.async.mbarrier.arrive.shared.b64 [bar];\nmbarrier.arrive.shared.b64 %rd5, [bar];";
    assert_eq!(words(&body(both))[32..64], (0..32).collect::<Vec<u32>>());
    assert!(races(&body("mbarrier.arrive.shared.b64 %rd5, [bar];")));
}

#[test]
fn a_state_counts_the_arrivals_of_copies_too() {
    let body = "bar.sync 0;\n@!%p2 ret;\nmbarrier.init.shared.b64 [bar+8], 1;\n\
                cp.async.ca.shared.global [%r3], [%rd1], 4;\ncp.async.mbarrier.arrive.shared.b64 [bar+8];\n\
                mbarrier.arrive.shared.b64 %rd5, [bar+8];\nWAIT:\nmbarrier.try_wait.shared.b64 %p3, [bar+8], %rd5;\n\
                @!%p3 bra WAIT;\nld.shared.u32 %r5, [%r3];\nst.global.u32 [%rd2], 7;\nret;";
    assert_eq!(words(body)[0], 7);
}

#[test]
fn wrong_uses_are_named() {
    let said = |body: &str| {
        let fault = fault(&format!("bar.sync 0;\n@!%p2 ret;\n{body}\nret;"));
        assert_eq!(fault.kind, FaultKind::BarrierMisuse);
        fault.message
    };
    assert_eq!(said("mbarrier.arrive.shared.b64 _, [bar+8];"), "the mbarrier at `bar` + 8: it is not initialized");
    assert_eq!(
        said("mbarrier.init.shared.b64 [bar], 2;"),
        "the mbarrier at `bar` + 0: it is initialized again without `mbarrier.inval`"
    );
    assert_eq!(
        said("mbarrier.init.shared.b64 [bar+8], 0;"),
        "the mbarrier at `bar` + 8: a count is from 1 to 1048575; this one is 0"
    );
    assert_eq!(
        said("mbarrier.arrive.shared.b64 _, [bar], 33;"),
        "the mbarrier at `bar` + 0: an arrival that counts 33 is too many for phase 0 (parity 0), which lacks 32 of 32 arrivals; a wait before it is missing, or has the wrong parity"
    );
    assert_eq!(
        said("mbarrier.arrive.noComplete.shared.b64 %rd5, [bar], 32;"),
        "the mbarrier at `bar` + 0: a `.noComplete` arrival completes the phase"
    );
    assert_eq!(
        said("mov.u32 %r5, 1048576;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], %r5;"),
        "the mbarrier at `bar` + 0: 1048576 bytes are pending; at most 1048575 may be"
    );
    assert_eq!(
        said("mbarrier.test_wait.parity.shared.b64 %p3, [bar], 3;"),
        "the mbarrier at `bar` + 0: the parity of a phase is 0 or 1; this one is 3"
    );
    assert_eq!(
        said("mbarrier.test_wait.shared.b64 %p3, [bar], 77;"),
        "the mbarrier at `bar` + 0: no arrival at it has returned the state 0x4d"
    );
    assert_eq!(said("st.shared.u32 [bar+4], 0;"), "the mbarrier at `bar` + 0: a store overwrites it");
    let misaligned = fault("bar.sync 0;\n@!%p2 ret;\nmbarrier.arrive.shared.b64 _, [bar+4];\nret;");
    assert_eq!(misaligned.kind, FaultKind::Misaligned);
}

#[test]
fn a_thread_that_drops_out_is_not_expected_again() {
    let body = "bar.sync 0;\n@!%p2 ret;\nmbarrier.arrive_drop.shared.b64 %rd5, [bar];\nmbarrier.arrive.shared.b64 _, [bar], 31;\n\
                mbarrier.arrive.shared.b64 _, [bar], 31;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 %p3, [bar], 1;\n\
                @!%p3 bra WAIT;\nst.global.u32 [%rd2], %r1;\nret;";
    assert_eq!(words(body)[0], 0);
}
