//! Clusters: ranks, the barrier, the shared memory of other CTAs, their mbarriers, and multicast copies.

use tilewright_vgpu::{Fault, FaultKind, Launch, Memory, Options, run};

use crate::harness::{Outcome, SEEDS, agreed, first_fault, launch, module, words_of};

/// Runs `body` by clusters of `cluster` CTAs of 32 threads. `%r1` is the thread, `%r2` the rank, `%rd1` the buffer `a` with the
/// words 0, 1, 2, ..., and `%rd2` the buffer `b` of 1024 words; `tile` is shared memory of 1024 bytes, and `bar` a place for an
/// mbarrier.
fn execute(body: &str, grid: [u32; 3], cluster: [u32; 3], seed: u64) -> Outcome {
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{{\n\
         .reg .pred %p<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n.shared .align 128 .b8 tile[1024];\n\
         .shared .align 8 .b8 bar[8];\nld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nmov.u32 %r1, %tid.x;\n\
         mov.u32 %r2, %cluster_ctarank;\nsetp.eq.u32 %p1, %r1, 0;\nsetp.eq.u32 %p2, %r2, 0;\n{body}\n}}\n"
    );
    let mut memory = Memory::new();
    let a = memory.allocate("a", (0..1024u32).flat_map(u32::to_le_bytes).collect());
    let b = memory.allocate("b", vec![0; 4096]);
    let launch = Launch { grid, cluster, ..launch(32, &[a, b]) };
    let options = Options { seed, max_instructions_per_thread: 20_000, ..Options::default() };
    let result = run(&module(&text), &launch, &mut memory, &options).map(|_| ());
    (result, words_of(&memory, b))
}

fn words(body: &str, grid: [u32; 3], cluster: [u32; 3]) -> Vec<u32> {
    agreed(|seed| execute(body, grid, cluster, seed))
}

/// The fault of two CTAs.
fn fault(body: &str) -> Fault {
    first_fault(|seed| execute(body, [2, 1, 1], [2, 1, 1], seed))
}

const BARRIER: &str = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

/// Stores `%r10` to `b` at the CTA's place in the grid and the thread's in the CTA.
const STORE: &str = "mov.u32 %r20, %ctaid.x;\nmad.lo.u32 %r20, %r20, 32, %r1;\nmul.wide.u32 %rd9, %r20, 4;\n\
    add.u64 %rd9, %rd9, %rd2;\nst.global.u32 [%rd9], %r10;\n";

/// Every thread writes its number and rank, and reads what the same thread of the next CTA has written.
fn exchange() -> String {
    format!(
        "mov.u32 %r3, tile;\nmad.lo.u32 %r4, %r1, 4, %r3;\nmad.lo.u32 %r5, %r2, 100, %r1;\nst.shared.u32 [%r4], %r5;\n\
         {BARRIER}mov.u32 %r6, %cluster_nctarank;\nadd.u32 %r7, %r2, 1;\nrem.u32 %r7, %r7, %r6;\n\
         mapa.shared::cluster.u32 %r8, %r4, %r7;\nld.shared::cluster.u32 %r10, [%r8];\n{BARRIER}{STORE}ret;"
    )
}

#[test]
fn a_cta_knows_its_place_in_its_cluster() {
    let places = "mov.u32 %r10, %clusterid.y;\nmov.u32 %r11, %cluster_ctaid.x;\nmad.lo.u32 %r10, %r10, 10, %r11;\n\
        mov.u32 %r11, %cluster_ctaid.y;\nmad.lo.u32 %r10, %r10, 10, %r11;\nmad.lo.u32 %r10, %r10, 10, %r2;\n\
        mov.u32 %r11, %nclusterid.x;\nmad.lo.u32 %r10, %r10, 10, %r11;\nmov.u32 %r11, %cluster_nctarank;\n\
        mad.lo.u32 %r10, %r10, 10, %r11;\nmov.u32 %r20, %ctaid.x;\nmov.u32 %r21, %ctaid.y;\nmad.lo.u32 %r20, %r21, 4, %r20;\n\
        mul.wide.u32 %rd9, %r20, 4;\nadd.u64 %rd9, %rd9, %rd2;\n@%p1 st.global.u32 [%rd9], %r10;\nret;";
    let found = words(places, [4, 4, 1], [2, 2, 1]);
    for (y, x) in (0..4u32).flat_map(|y| (0..4).map(move |x| (y, x))) {
        let digits = [y / 2, x % 2, y % 2, x % 2 + 2 * (y % 2), 2, 4];
        let expected = digits.iter().fold(0, |number, digit| number * 10 + digit);
        assert_eq!(found[(4 * y + x) as usize], expected, "{x}, {y}");
    }
}

#[test]
fn ctas_read_each_others_shared_memory() {
    for ctas in [1, 2, 4, 8] {
        let found = words(&exchange(), [8, 1, 1], [ctas, 1, 1]);
        for (cta, thread) in (0..8).flat_map(|cta| (0..32).map(move |thread| (cta, thread))) {
            assert_eq!(
                found[32 * cta + thread] as usize,
                (cta + 1) % ctas as usize * 100 * usize::from(ctas > 1) + thread
            );
        }
    }
}

#[test]
fn both_barriers_are_needed() {
    let body = exchange();
    let early = fault(&body.replacen(BARRIER, "", 1));
    assert!(matches!(early.kind, FaultKind::Race | FaultKind::UninitializedRead), "{early}");
    let relaxed = fault(&body.replacen("arrive.aligned", "arrive.relaxed.aligned", 1));
    assert_eq!(relaxed.kind, FaultKind::Race);
    assert!(relaxed.is_between_ctas && relaxed.message.contains("in another CTA"), "{relaxed}");
    let last = body.rfind(BARRIER).expect("a barrier");
    let gone = fault(&format!("{}{}", &body[..last], &body[last + BARRIER.len()..]));
    assert_eq!(gone.kind, FaultKind::OutOfBounds);
    assert!(gone.message.contains("of rank") && gone.message.contains("has exited"), "{gone}");
}

#[test]
fn a_fence_before_a_relaxed_arrival_releases() {
    let relaxed = "barrier.cluster.arrive.relaxed.aligned";
    let fenced = |fence: &str| exchange().replacen("barrier.cluster.arrive.aligned", &format!("{fence}\n{relaxed}"), 1);
    words(&fenced("fence.acq_rel.cluster;"), [2, 1, 1], [2, 1, 1]);
    words(&fenced("fence.mbarrier_init.release.cluster;"), [2, 1, 1], [2, 1, 1]);
    assert_eq!(fault(&fenced("fence.acq_rel.cta;")).kind, FaultKind::Race);
}

#[test]
fn an_arrival_and_a_wait_are_a_pair() {
    let twice = fault("barrier.cluster.arrive;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nret;");
    assert!(twice.message.contains("again before it has waited"), "{twice}");
    let never = fault("barrier.cluster.wait;\nret;");
    assert!(never.message.contains("before it has arrived"), "{never}");
    let alone = fault("@!%p2 bra WAIT;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nWAIT:\nbar.sync 1, 64;\nret;");
    assert_eq!(alone.kind, FaultKind::BarrierMisuse);
}

#[test]
fn a_deadlock_says_who_waits_at_the_barrier_of_the_cluster() {
    let found = fault("@%p1 bra SYNC;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nSYNC:\nbar.warp.sync -1;\nret;");
    assert_eq!(found.kind, FaultKind::Deadlock);
    let at_barrier = found.waiting.iter().find(|waiting| waiting.what == "the barrier of its cluster");
    assert_eq!(at_barrier.map(|waiting| waiting.lanes), Some(0xffff_fffe), "{found}");
}

#[test]
fn threads_that_exit_are_not_waited_for() {
    words("@%p1 ret;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nret;", [4, 1, 1], [4, 1, 1]);
}

/// The CTA of rank 1 writes to the shared memory of rank 0 and arrives at its mbarrier.
fn hand_over(arrive: &str) -> String {
    format!(
        "@%p1 mbarrier.init.shared.b64 [bar], 32;\n{BARRIER}mov.u32 %r3, tile;\nmad.lo.u32 %r4, %r1, 4, %r3;\nmov.u32 %r10, 0;\n\
         @%p2 bra WAIT;\nadd.u32 %r5, %r1, 7;\nmapa.shared::cluster.u32 %r6, %r4, 0;\nst.shared::cluster.u32 [%r6], %r5;\n\
         mov.u32 %r7, bar;\nmapa.shared::cluster.u32 %r8, %r7, 0;\n{arrive}\nbra END;\nWAIT:\n\
         mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [bar], 0;\n@!%p3 bra WAIT;\nld.shared.u32 %r10, [%r4];\n\
         END:\n{STORE}ret;"
    )
}

#[test]
fn a_thread_arrives_at_the_mbarrier_of_another_cta() {
    let found =
        words(&hand_over("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];"), [2, 1, 1], [2, 1, 1]);
    assert_eq!(found[..32], (7..39).collect::<Vec<u32>>());
    let relaxed = fault(&hand_over("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r8];"));
    assert!(relaxed.kind == FaultKind::Race && relaxed.is_between_ctas, "{relaxed}");
    let own = fault(&hand_over("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];"));
    assert_eq!(own.kind, FaultKind::Deadlock);
}

#[test]
fn only_the_own_mbarrier_is_waited_for() {
    let body = format!(
        "@%p1 mbarrier.init.shared.b64 [bar], 1;\n{BARRIER}mov.u32 %r7, bar;\nmapa.shared::cluster.u32 %r8, %r7, 0;\n@%p2 bra END;\n\
         mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r8], 1;\nEND:\n{BARRIER}ret;"
    );
    assert!(fault(&body).message.contains("a thread can only wait for an mbarrier of its own CTA"));
}

/// The CTA of rank 0 copies 128 bytes to CTAs of the cluster, each of which expects them.
fn multicast(copy: &str) -> String {
    format!(
        "@%p1 mbarrier.init.shared.b64 [bar], 1;\n@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;\n{BARRIER}\
         mov.u32 %r3, tile;\nmov.u32 %r7, bar;\nmad.lo.u32 %r4, %r1, 4, %r3;\nand.pred %p4, %p1, %p2;\n@%p4 {copy}\n\
         WAIT:\nmbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;\n@!%p3 bra WAIT;\nld.shared.u32 %r10, [%r4];\n{STORE}\
         {BARRIER}ret;"
    )
}

#[test]
fn a_copy_is_multicast_to_the_ranks_of_a_mask() {
    let name = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster";
    let found = words(&multicast(&format!("{name} [%r3], [%rd1], 128, [%r7], 15;")), [4, 1, 1], [4, 1, 1]);
    assert_eq!(found[..128], (0..128).map(|place| place % 32).collect::<Vec<u32>>());
    // What is on its way to another CTA does not need the one that has started it.
    let last = |body: String| body.replace(&format!("{BARRIER}ret;"), "ret;");
    words(&last(multicast(&format!("{name} [%r3], [%rd1], 128, [%r7], 3;"))), [2, 1, 1], [2, 1, 1]);
    let partial = fault(&multicast(&format!("{name} [%r3], [%rd1], 128, [%r7], 1;")));
    assert_eq!((partial.kind, partial.cta), (FaultKind::Deadlock, [1, 0, 0]));
    let wide = fault(&multicast(&format!("{name} [%r3], [%rd1], 128, [%r7], 7;")));
    assert!(wide.message.contains("a multicast to the ranks 0x0007 of a cluster of 2"), "{wide}");
}

#[test]
fn shared_memory_is_copied_to_another_cta() {
    let body = format!(
        "@%p1 mbarrier.init.shared.b64 [bar], 1;\n@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;\n{BARRIER}\
         mov.u32 %r3, tile;\nmad.lo.u32 %r4, %r1, 4, %r3;\nmad.lo.u32 %r5, %r2, 100, %r1;\nst.shared.u32 [%r4+512], %r5;\n\
         fence.proxy.async.shared::cta;\nbar.sync 0;\nxor.b32 %r6, %r2, 1;\nmapa.shared::cluster.u32 %r8, %r3, %r6;\n\
         mov.u32 %r7, bar;\nmapa.shared::cluster.u32 %r9, %r7, %r6;\nadd.u32 %r11, %r3, 512;\n\
         @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8], [%r11], 128, [%r9];\n\
         WAIT:\nmbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;\n@!%p3 bra WAIT;\nld.shared.u32 %r10, [%r4];\n{STORE}\
         {BARRIER}ret;"
    );
    let found = words(&body, [2, 1, 1], [2, 1, 1]);
    assert_eq!(found[..64], (100..132).chain(0..32).collect::<Vec<u32>>());
    let unfenced = fault(&body.replace("fence.proxy.async.shared::cta;", ""));
    assert_eq!(unfenced.kind, FaultKind::MissingFence);
}

#[test]
fn flags_of_the_scope_of_a_cluster_order_its_ctas() {
    let body = |scope: &str| {
        format!(
            "mov.u32 %r10, 0;\nmov.u32 %r12, %ctaid.x;\nsetp.eq.u32 %p4, %r12, 0;\n@!%p1 bra END;\n@%p4 bra WAIT;\n\
             st.global.u32 [%rd2+2048], 5;\n\
             st.release.{scope}.global.u32 [%rd2+2052], 1;\nbra END;\nWAIT:\nld.acquire.{scope}.global.u32 %r11, [%rd2+2052];\n\
             setp.eq.u32 %p3, %r11, 0;\n@%p3 bra WAIT;\nld.global.u32 %r10, [%rd2+2048];\nEND:\n{STORE}ret;"
        )
    };
    assert_eq!(words(&body("cluster"), [2, 1, 1], [2, 1, 1])[0], 5);
    let narrow = fault(&body("cta"));
    assert_eq!(narrow.kind, FaultKind::Race);
    let apart = (0..SEEDS).find_map(|seed| execute(&body("cluster"), [2, 1, 1], [1, 1, 1], seed).0.err());
    let apart = apart.expect("a fault").to_string();
    assert!(apart.contains("one is not in the scope of the other"), "{apart}");
}

#[test]
fn a_launch_consists_of_clusters() {
    let told = |grid: [u32; 3], cluster: [u32; 3]| execute("ret;", grid, cluster, 0).0.unwrap_err().to_string();
    assert!(told([3, 1, 1], [2, 1, 1]).contains("the grid [3, 1, 1] does not consist of clusters of [2, 1, 1] CTAs"));
    assert!(told([32, 1, 1], [32, 1, 1]).contains("a cluster has 1 to 16 CTAs; this one has 32"));
    assert!(told([2, 1, 1], [0, 1, 1]).contains("a cluster has 1 to 16 CTAs; this one has 0"));
}

/// Every thread stores its number to the same thread of the other CTA by `store`, which takes `%r8` (the address), `%r5` and
/// `%r9` (the mbarrier there); that waits for `bytes`.
fn stored_later(store: &str, bytes: u32) -> String {
    format!(
        "mov.u32 %r3, tile;\nmov.u32 %r4, bar;\n@%p1 mbarrier.init.shared.b64 [bar], 1;\n\
         @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes};\nfence.mbarrier_init.release.cluster;\n\
         mad.lo.u32 %r11, %r1, 8, %r3;\nmov.u64 %rd3, 0;\nst.shared.u64 [%r11], %rd3;\n{BARRIER}\
         xor.b32 %r7, %r2, 1;\nmapa.shared::cluster.u32 %r8, %r11, %r7;\nmapa.shared::cluster.u32 %r9, %r4, %r7;\n\
         mad.lo.u32 %r5, %r2, 100, %r1;\n{store}\nWAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared.b64 %p3, [bar], 0;\n\
         @!%p3 bra WAIT;\nld.shared.v2.u32 {{%r10, %r12}}, [%r11];\n{STORE}{BARRIER}ret;"
    )
}

#[test]
fn values_are_stored_to_another_cta_later() {
    let one = "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r8], %r5, [%r9];";
    let two = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r8], {%r5, %r5}, [%r9];";
    let sum = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r8], %r5, [%r9];";
    for (store, bytes, times) in [(one, 128, 1), (two, 256, 1), (sum, 128, 1), (&format!("{sum}\n{sum}"), 256, 2)] {
        let found = words(&stored_later(store, bytes), [2, 1, 1], [2, 1, 1]);
        let want = |at: u32| times * ((1 - at / 32) * 100 + at % 32);
        assert_eq!(found[..64], (0..64).map(want).collect::<Vec<u32>>(), "{store}");
    }
    let missing = fault(&stored_later(one, 132));
    assert_eq!(missing.kind, FaultKind::Deadlock);
    assert!(missing.waiting[0].what.ends_with("which lacks 4 bytes"), "{missing}");
    // Without the wait, the value is late.
    let unwaited = stored_later(one, 128).replace("@!%p3 bra WAIT;", "");
    assert!([FaultKind::Race, FaultKind::BarrierMisuse].contains(&fault(&unwaited).kind));
}
