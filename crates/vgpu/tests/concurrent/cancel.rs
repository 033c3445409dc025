//! `clusterlaunchcontrol`: CTAs that take over the work of others.

use tilewright_vgpu::{FaultKind, Launch, Memory, Options, run};

use crate::harness::{Outcome, agreed, fault_of, first_fault, launch, module, words_of};

/// Each CTA counts itself in word `ctaid` of `a`, and cancels others, for which it adds 256 there, until there is none left.
/// `stop` is what it does when there is none.
fn body(stop: &str) -> String {
    format!(
        "mov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 ret;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, 1;\n\
         mul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd2, %rd2, %rd1;\nred.global.add.u32 [%rd2], %r3;\n\
         mbarrier.init.shared.b64 [bar], 1;\nmov.u32 %r4, 0;\nmov.u32 %r3, 256;\n\
         LOOP:\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n\
         clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response], [bar];\n\
         WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], %r4;\n@!%p2 bra WAIT;\nxor.b32 %r4, %r4, 1;\n\
         ld.shared.b128 %q1, [response];\nfence.proxy.async.shared::cta;\n\
         clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1;\n\
         clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{%r5, %r6, %r7, _}}, %q1;\n\
         @!%p3 bra DONE;\nmul.wide.u32 %rd2, %r5, 4;\nadd.u64 %rd2, %rd2, %rd1;\nred.global.add.u32 [%rd2], %r3;\n\
         bra LOOP;\nDONE:\n{stop}\nret;"
    )
}

fn execute(stop: &str, seed: u64) -> Outcome {
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a)\n{{\n.reg .pred %p<4>;\n\
         .reg .b32 %r<8>;\n.reg .b64 %rd<4>;\n.reg .b128 %q<2>;\n.shared .align 16 .b8 response[16];\n\
         .shared .align 8 .b8 bar[8];\nld.param.u64 %rd1, [a];\n{}\n}}\n",
        body(stop)
    );
    let mut memory = Memory::new();
    let a = memory.allocate("a", vec![0; 4 * 24]);
    let launch = Launch { grid: [24, 1, 1], ..launch(32, &[a]) };
    let options = Options { seed, sms: Some(2), ctas_per_sm: Some(2), ..Options::default() };
    let result = run(&module(&text), &launch, &mut memory, &options).map(|_| ());
    (result, words_of(&memory, a))
}

#[test]
fn the_work_of_every_cta_is_done_once() {
    let counts: Vec<Vec<u32>> = (0..20).map(|seed| agreed_counts(execute("", seed))).collect();
    for found in &counts {
        assert!(found.iter().all(|count| [1, 256].contains(count)), "{found:?}");
    }
    // Without a seed, the first CTA cancels all others.
    assert_eq!(counts[0][0], 1);
    assert!(counts[0][1..].iter().all(|count| *count == 256));
    // Schedules differ in which CTAs start.
    assert!(counts.iter().any(|found| *found != counts[0]));
}

fn agreed_counts((result, counts): Outcome) -> Vec<u32> {
    result.unwrap_or_else(|error| panic!("{error}"));
    counts
}

#[test]
fn what_is_undefined_after_a_failure_is_found() {
    let again = "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n\
        clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response], [bar];";
    let fault = first_fault(|seed| execute(again, seed));
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (
            FaultKind::IllegalInstruction,
            "an earlier `try_cancel` found no cluster, and this thread knows it: another one is undefined"
        )
    );
    let stored = "mul.wide.u32 %rd2, %r5, 4;\nst.global.u32 [%rd1], %r5;";
    let fault = fault_of(execute(stored, 0));
    assert_eq!(fault.kind, FaultKind::IllegalInstruction);
    assert!(fault.message.starts_with("this reads the first CTA of a response that says"), "{}", fault.message);
}

#[test]
fn a_cluster_is_canceled_for_all_its_ctas() {
    // Rank 0 cancels; both CTAs of a cluster read their own copies of the response.
    let body = "mov.u32 %r1, %cluster_ctarank;\nmov.u32 %r8, %tid.x;\nsetp.ne.u32 %p4, %r8, 0;\n\
        @!%p4 mbarrier.init.shared.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\n\
        barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n@%p4 bra END;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra WAIT;\n\
        clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [response], [bar];\n\
        WAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\n\
        ld.shared.b128 %q1, [response];\nclusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1;\n@!%p3 bra END;\n\
        clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r5, %q1;\nadd.u32 %r5, %r5, %r1;\n\
        mul.wide.u32 %rd2, %r5, 4;\nadd.u64 %rd2, %rd2, %rd1;\nmov.u32 %r6, 7;\nst.global.u32 [%rd2], %r6;\n\
        END:\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nret;";
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a)\n{{\n.reg .pred %p<5>;\n\
         .reg .b32 %r<9>;\n.reg .b64 %rd<4>;\n.reg .b128 %q<2>;\n.shared .align 16 .b8 response[16];\n\
         .shared .align 8 .b8 bar[8];\nld.param.u64 %rd1, [a];\n{body}\n}}\n"
    );
    let found = agreed(|seed| {
        let mut memory = Memory::new();
        let a = memory.allocate("a", vec![0; 4 * 4]);
        let launch = Launch { grid: [4, 1, 1], cluster: [2, 1, 1], ..launch(32, &[a]) };
        let options = Options { seed, sms: Some(1), ctas_per_sm: Some(2), ..Options::default() };
        let result = run(&module(&text), &launch, &mut memory, &options).map(|_| ());
        let mut words = words_of(&memory, a);
        // Either cluster may be the one that starts.
        words.sort_unstable();
        (result, words)
    });
    assert_eq!(found, [0, 0, 7, 7]);
}
