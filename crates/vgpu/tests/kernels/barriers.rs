//! The barriers of a CTA: what they order, and how they are misused.

use super::*;

#[test]
fn barriers_order_shared_memory() {
    let outcome = execute(
        &with_addresses(
            "st.shared.u32 [%r4], %r1;\nbar.sync 0;\nxor.b32 %r5, %r2, 4;\nadd.s32 %r5, %r5, %r3;\n\
             ld.shared.u32 %r6, [%r5];\nst.global.u32 [%rd4], %r6;\nret;",
        ),
        1,
        128,
    );
    report(&outcome);
    assert_eq!(words(&outcome, outcome.b)[..4], [1, 0, 3, 2]);
}

#[test]
fn producers_and_consumers_meet_by_arrival() {
    let outcome = execute(
        &with_addresses(
            "setp.lt.u32 %p1, %r1, 32;\n@!%p1 bra CONSUME;\nst.shared.u32 [%r4], %r1;\nbar.arrive 1, 64;\nret;\n\
             CONSUME:\nbar.sync 1, 64;\nld.shared.u32 %r5, [%r4+-128];\nst.global.u32 [%rd4], %r5;\nret;",
        ),
        1,
        64,
    );
    report(&outcome);
    assert_eq!(words(&outcome, outcome.b)[32..36], [0, 1, 2, 3]);
}

#[test]
fn a_missing_barrier_is_a_race_of_two_lines() {
    let body = "st.shared.u32 [%r4], %r1;\nxor.b32 %r5, %r2, 4;\nadd.s32 %r5, %r5, %r3;\n\
         ld.shared.u32 %r6, [%r5];\nst.global.u32 [%rd4], %r6;\nret;";
    let fault = fault(&with_addresses(body), 32);
    assert_eq!((fault.kind, fault.at.ptx_line), (FaultKind::Race, 24));
    assert_eq!(fault.related.map(|place| place.ptx_line), Some(21));
}

#[test]
fn an_aligned_barrier_needs_the_whole_warp() {
    let predicated = "setp.lt.u32 %p1, %r1, 16;\n@%p1 bar.sync 0;\nret;";
    let fault = fault(&with_addresses(predicated), 32);
    assert_eq!((fault.kind, fault.at.ptx_line, fault.lanes), (FaultKind::DivergentAligned, 22, 0xffff));
    let branched = "setp.lt.u32 %p1, %r1, 16;\n@!%p1 bra SKIP;\nbar.sync 0;\nSKIP:\nst.global.u32 [%rd4], %r1;\nret;";
    let fault = self::fault(&with_addresses(branched), 32);
    assert_eq!((fault.kind, fault.at.ptx_line, fault.lanes), (FaultKind::DivergentAligned, 23, 0xffff));
}

#[test]
fn lanes_may_exit_before_an_aligned_barrier_but_not_go_past_it() {
    let long = "mov.u32 %r5, 0;\nMORE:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p2, %r5, 40;\n@%p2 bra MORE;\n";
    let halves = "setp.lt.u32 %p1, %r1, 16;\n";
    // Whichever half runs first.
    for early in [
        format!("{halves}@%p1 bra WAIT;\n{long}ret;\nWAIT:\nbar.sync 0;\nret;"),
        format!("{halves}@!%p1 bra LEAVE;\nbar.sync 0;\nret;\nLEAVE:\n{long}ret;"),
        format!("{halves}@!%p1 bra END;\nbar.sync 0;\nst.global.u32 [%rd4], %r1;\nEND:\nret;"),
        // A loop that the lanes leave one after the other.
        "mov.u32 %r5, 0;\nMORE:\nadd.u32 %r5, %r5, 1;\nsetp.gt.u32 %p2, %r5, %r1;\n@%p2 ret;\nbar.sync 0;\nbra MORE;"
            .to_string(),
        // A loop that they leave after the barrier, and one with two barriers.
        "MORE:\nbar.sync 0;\nsetp.lt.u32 %p2, %r1, 16;\n@%p2 ret;\nmov.u32 %r1, 0;\nbra MORE;".to_string(),
        "MORE:\nst.global.u32 [%rd4], %r1;\nbar.sync 0;\nsetp.lt.u32 %p2, %r1, 16;\n@%p2 exit;\nbar.sync 1;\n\
         mov.u32 %r1, 0;\nbra MORE;"
            .to_string(),
        // The end that they share does something that nobody sees.
        format!("{halves}@!%p1 bra END;\nbar.sync 0;\nst.global.u32 [%rd4], %r1;\nEND:\nmov.u32 %r5, 0;\nret;"),
    ] {
        report(&execute(&with_addresses(&early), 1, 32));
    }
    let past = "JOIN:\nst.global.u32 [%rd4], %r1;\nsetp.eq.u32 %p3, %r2, %r3;\n@%p3 ret;\nret;";
    for late in [
        format!("{halves}@!%p1 bra JOIN;\nbar.sync 0;\n{past}"),
        format!("{halves}@%p1 bra WAIT;\n{past}\nWAIT:\nbar.sync 0;\nbra JOIN;"),
    ] {
        let fault = fault(&with_addresses(&late), 32);
        assert_eq!((fault.kind, fault.lanes), (FaultKind::DivergentAligned, 0xffff), "{late}");
    }
}

#[test]
fn barriers_have_rules() {
    let high = fault(&with_addresses("bar.sync 16;\nret;"), 32);
    assert_eq!((high.kind, high.at.ptx_line), (FaultKind::BarrierMisuse, 21));
    let odd = fault(&with_addresses("bar.sync 1, 40;\nret;"), 64);
    assert_eq!((odd.kind, odd.at.ptx_line), (FaultKind::BarrierMisuse, 21));
}

#[test]
fn all_threads_of_a_barrier_name_their_number_or_none_does() {
    // On an H200, an illegal instruction.
    let body = "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra ONE;\nbar.sync 1;\nret;\nONE:\nbar.sync 1, 64;\nret;";
    let fault = fault(&with_addresses(body), 64);
    let want = "barrier 1: the instruction gives no thread count, and another one waits for 64 threads";
    assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::BarrierMisuse, want));
}
