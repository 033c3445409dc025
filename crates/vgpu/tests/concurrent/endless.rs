//! Loops that never end are found when nothing changes any more, and loops that wait for long are not taken for them.

use std::num::NonZero;

use tilewright_vgpu::{Fault, FaultKind, Launch, Memory, Options, RunError, run};

use crate::harness::{SEEDS, launch, module, words_of};

/// More steps than the tests may take.
const MANY: u64 = 1 << 40;

/// Runs `body` by CTAs of 64 threads; `%r1` is the thread, `%r2` the CTA, `%rd1` a buffer of 64 words, `%p1` true for
/// thread 0.
fn execute(body: &str, ctas: u32, seed: u64) -> Result<Vec<u32>, Box<Fault>> {
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a)\n{{\n.reg .pred %p<8>;\n\
         .reg .b32 %r<12>;\n.reg .b64 %rd<4>;\n.shared .align 8 .b8 s[64];\nld.param.u64 %rd1, [a];\nmov.u32 %r1, %tid.x;\n\
         mov.u32 %r2, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\n{body}\n}}\n"
    );
    let mut memory = Memory::new();
    let a = memory.allocate("a", vec![0; 256]);
    let launch = Launch { grid: [ctas, 1, 1], ..launch(64, &[a]) };
    let options = Options {
        seed,
        host_threads: NonZero::new(2),
        max_instructions_per_thread: MANY,
        sms: Some(2),
        ctas_per_sm: Some(1),
        ..Options::default()
    };
    match run(&module(&text), &launch, &mut memory, &options) {
        Ok(_) => Ok(words_of(&memory, a)),
        Err(RunError::Fault(fault)) => Err(fault),
        Err(other) => panic!("{other}"),
    }
}

fn must_be_found(body: &str, ctas: u32) -> Box<Fault> {
    let faults = (0..SEEDS).map(|seed| execute(body, ctas, seed).expect_err(body));
    let faults: Vec<Box<Fault>> = faults.collect();
    assert!(faults.iter().all(|fault| fault.kind == FaultKind::Deadlock), "{faults:?}");
    faults.into_iter().next().expect("a fault")
}

#[test]
fn loops_in_which_nothing_changes_are_found() {
    let fault = must_be_found("AGAIN:\nbra AGAIN;", 3);
    let said = "deadlock: every thread that has not exited is waiting, or is in a loop in which nothing changes any more; \
                another CTA waits too; 1 CTA has not started, since there is no room for it until these have ended; cta (0, 0, 0) warp 0 lanes 0xffffffff; PTX line 15 `bra AGAIN`\n  \
                warps 0, 1 lanes 0xffffffff at PTX line 15 `bra AGAIN` wait for nothing: the loop reads no memory and does not end";
    assert_eq!(fault.to_string(), said);
    // A period of 1000 iterations.
    let wraps = "mov.u32 %r3, 0;\nAGAIN:\nadd.u32 %r3, %r3, 1;\nrem.u32 %r3, %r3, 1000;\nbra AGAIN;";
    must_be_found(wraps, 1);
}

#[test]
fn waits_for_what_nobody_does_are_found() {
    // A flag that nobody sets, read in three ways; the other warp waits at a barrier.
    for read in ["ld.volatile.global.u32", "ld.acquire.gpu.global.u32", "ld.global.u32"] {
        let body = format!(
            "setp.ge.u32 %p2, %r1, 32;\n@%p2 bra REST;\nAGAIN:\n{read} %r3, [%rd1];\nsetp.eq.u32 %p3, %r3, 0;\n\
             @%p3 bra AGAIN;\nREST:\nbar.sync 0;\nret;"
        );
        let fault = must_be_found(&body, 1);
        let text = fault.to_string();
        assert!(text.contains("warp 1 lanes 0xffffffff at PTX line 21 `bar.sync 0` wait for barrier 0"), "{text}");
        assert!(text.contains(" wait for a change of `a` + 0, which is 0"), "{text}");
    }
    // A lock that is never given back.
    must_be_found(
        "@!%p1 ret;\nLOCK:\natom.acquire.gpu.global.cas.b32 %r3, [%rd1], 0, 1;\nsetp.ne.u32 %p2, %r3, 0;\n@%p2 bra LOCK;\nret;",
        3,
    );
    // A lane that waits for another one, which waits for the first.
    let both = "setp.lt.u32 %p2, %r1, 16;\n@%p2 bra LOW;\nHIGH:\nld.volatile.global.u32 %r3, [%rd1];\n\
                setp.eq.u32 %p3, %r3, 0;\n@%p3 bra HIGH;\nst.volatile.global.u32 [%rd1+4], 1;\nret;\n\
                LOW:\nld.volatile.global.u32 %r3, [%rd1+4];\nsetp.eq.u32 %p3, %r3, 0;\n@%p3 bra LOW;\n\
                st.volatile.global.u32 [%rd1], 1;\nret;";
    must_be_found(both, 1);
    // A phase that nobody completes, polled by `test_wait`.
    let phase = "mov.u32 %r4, s;\n@%p1 mbarrier.init.shared.b64 [%r4], 1;\nbar.sync 0;\nAGAIN:\n\
                 mbarrier.test_wait.parity.shared.b64 %p2, [%r4], 0;\n@!%p2 bra AGAIN;\nret;";
    must_be_found(phase, 1);
}

#[test]
fn a_grid_barrier_of_more_ctas_than_fit_is_found() {
    let body = "@!%p1 ret;\nred.release.gpu.global.add.u32 [%rd1], 1;\nAGAIN:\nld.acquire.gpu.global.u32 %r3, [%rd1];\n\
                setp.lt.u32 %p2, %r3, 4;\n@%p2 bra AGAIN;\nret;";
    must_be_found(body, 4);
    let fits = body.replace("%r3, 4", "%r3, 2");
    (0..SEEDS).for_each(|seed| assert_eq!(execute(&fits, 2, seed).expect("it is right")[0], 2));
}

/// Counts in registers alone.
const DELAY: &str = "mov.u32 %r8, 0;\nDELAY:\nadd.u32 %r8, %r8, 1;\nsetp.lt.u32 %p5, %r8, 3000;\n@%p5 bra DELAY;\n";

#[test]
fn waits_for_what_comes_late_end() {
    let wait = "AGAIN:\nld.acquire.gpu.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p3, %r3, 0;\n@%p3 bra AGAIN;\n\
                @%p1 st.global.u32 [%rd1+4], %r3;\nret;\nLATE:\n";
    let set = "st.release.gpu.global.u32 [%rd1], 7;\nret;";
    // Another warp, another CTA, and another lane of the same warp.
    for (who, ctas) in
        [("setp.eq.u32 %p2, %r1, 32;", 1), ("setp.eq.u32 %p2, %r2, 1;", 2), ("setp.eq.u32 %p2, %r1, 5;", 1)]
    {
        let body = format!("{who}\n@%p2 bra LATE;\n{wait}{DELAY}{set}");
        for seed in 0..SEEDS {
            let words = execute(&body, ctas, seed).unwrap_or_else(|fault| panic!("{who} {fault}"));
            assert_eq!(words[..2], [7, 7], "{who}");
        }
    }
}

#[test]
fn a_poll_of_a_copy_ends() {
    let body = "mov.u32 %r4, s;\n@%p1 mbarrier.init.shared.b64 [%r4], 1;\nfence.mbarrier_init.release.cluster;\nbar.sync 0;\n\
                @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 16;\n\
                @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s+16], [%rd1], 16, [%r4];\n\
                AGAIN:\nmbarrier.test_wait.parity.shared.b64 %p2, [%r4], 0;\n@!%p2 bra AGAIN;\nret;";
    (0..SEEDS).for_each(|seed| _ = execute(body, 1, seed).unwrap_or_else(|fault| panic!("{fault}")));
}

#[test]
fn a_loop_until_a_time_ends() {
    // Only the upper bits of the clock are kept, so that the registers repeat.
    let body = "@!%p1 ret;\nmov.u32 %r4, %clock;\nshr.u32 %r4, %r4, 14;\nAGAIN:\nmov.u32 %r3, %clock;\nshr.u32 %r3, %r3, 14;\n\
                setp.eq.u32 %p2, %r3, %r4;\n@%p2 bra AGAIN;\nst.global.u32 [%rd1], 7;\nret;";
    (0..5).for_each(|seed| assert_eq!(execute(body, 1, seed).expect("it is right")[0], 7));
}

#[test]
fn a_lane_that_sleeps_while_another_one_polls_goes_on() {
    let body = "mov.u32 %r4, s;\n@%p1 mbarrier.init.shared.b64 [%r4], 1;\nbar.sync 0;\nsetp.ge.u32 %p2, %r1, 2;\n@%p2 ret;\n\
                setp.eq.u32 %p2, %r1, 1;\n@%p2 bra ONE;\nPOLL:\nld.volatile.global.u32 %r5, [%rd1];\n\
                setp.eq.u32 %p3, %r5, 0;\n@%p3 bra POLL;\nret;\nONE:\n\
                mbarrier.try_wait.parity.shared.b64 %p4, [%r4], 0;\nst.volatile.global.u32 [%rd1], 7;\nret;";
    (0..SEEDS).for_each(|seed| assert_eq!(execute(body, 1, seed).expect("it is right")[0], 7));
}

#[test]
fn waits_that_are_counted_end() {
    let body = "mov.u32 %r4, s;\n@%p1 mbarrier.init.shared.b64 [%r4], 1;\nbar.sync 0;\nmov.u32 %r5, 0;\nAGAIN:\n\
                mbarrier.try_wait.parity.shared.b64 %p4, [%r4], 0;\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p2, %r5, 300;\n\
                @%p2 bra AGAIN;\n@%p1 st.global.u32 [%rd1], %r5;\nret;";
    (0..SEEDS).for_each(|seed| assert_eq!(execute(body, 1, seed).expect("it is right")[0], 300));
}

#[test]
fn stores_of_what_is_there_change_nothing() {
    let poll = "ld.volatile.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p3, %r3, 0;\n@%p3 bra AGAIN;\nret;";
    for store in ["st.volatile.global.u32 [%rd1+8], 0;", "st.shared.u32 [s+8], 5;", "st.global.u32 [%rd1+12], 0;"] {
        must_be_found(&format!("@!%p1 ret;\nAGAIN:\n{store}\n{poll}"), 1);
    }
    // A branch by index, and an undefined register that is not used.
    must_be_found("mov.u32 %r3, 0;\nTABLE: .branchtargets AGAIN;\nAGAIN:\nbrx.idx %r3, TABLE;", 1);
    must_be_found(&format!("@!%p1 ret;\nld.shared.u32 %r7, [s+32];\nAGAIN:\n{poll}"), 1);
}
