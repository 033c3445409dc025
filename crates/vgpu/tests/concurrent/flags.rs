//! Data that is handed over through flags in memory, between CTAs that are resident at once.

use tilewright_vgpu::{FaultKind, Launch, Memory, Options, Report, RunError, run};

use crate::harness::{launch, module, words_of};

/// Runs `body` by `ctas` CTAs of 32 threads on a buffer `b` of 1024 zeros. `%r1` is the thread, `%r2` the CTA, `%rd1` the
/// buffer; a body begins at line 14.
fn execute(body: &str, ctas: u32, options: &Options) -> (Result<Report, RunError>, Vec<u32>) {
    let text = format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 b)\n{{\n.reg .pred %p<8>;\n\
         .reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n.shared .align 16 .b8 tile[64];\nld.param.u64 %rd1, [b];\n\
         mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\n{body}\n}}\n"
    );
    let mut memory = Memory::new();
    let buffer = memory.allocate("b", vec![0; 1024]);
    let launch = Launch { grid: [ctas, 1, 1], ..launch(32, &[buffer]) };
    let result = run(&module(&text), &launch, &mut memory, options);
    (result, words_of(&memory, buffer))
}

fn with_seed(seed: u64) -> Options {
    Options { seed, max_instructions_per_thread: 1_000_000, ..Options::default() }
}

/// CTA 1 writes 41 to word 0 and sets the flag in word 8; CTA 0 waits for it, and writes the word plus 1 to word 16.
fn handed_over(set: &str, wait: &str) -> String {
    format!(
        "@!%p1 ret;\nsetp.eq.u32 %p2, %r2, 1;\n@%p2 bra WRITER;\n\
         WAIT:\n{wait}\nsetp.eq.u32 %p3, %r3, 0;\n@%p3 bra WAIT;\n\
         ld.global.u32 %r4, [%rd1];\nadd.u32 %r4, %r4, 1;\nst.global.u32 [%rd1+64], %r4;\nret;\n\
         WRITER:\nst.global.u32 [%rd1], 41;\n{set}\nret;"
    )
}

#[test]
fn a_release_that_is_acquired_orders_data_of_two_ctas() {
    let body = handed_over("st.release.gpu.global.u32 [%rd1+32], 1;", "ld.acquire.gpu.global.u32 %r3, [%rd1+32];");
    for seed in 0..20 {
        let (result, words) = execute(&body, 2, &with_seed(seed));
        result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(words[16], 42);
    }
}

#[test]
fn fences_order_data_around_relaxed_and_volatile_accesses() {
    let forms = [
        ("fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%rd1+32], 1;", "ld.relaxed.gpu.global.u32 %r3, [%rd1+32];"),
        ("membar.gl;\nst.volatile.global.u32 [%rd1+32], 1;", "ld.volatile.global.u32 %r3, [%rd1+32];"),
        ("fence.sc.sys;\nred.global.add.u32 [%rd1+32], 1;", "atom.global.add.u32 %r3, [%rd1+32], 0;"),
    ];
    for (set, wait) in forms {
        // The waiting loop ends with a fence.
        let body = handed_over(set, wait).replace("bra WAIT;\n", "bra WAIT;\nfence.acq_rel.gpu;\n");
        let (result, words) = execute(&body, 2, &with_seed(0));
        result.unwrap_or_else(|error| panic!("{set}: {error}"));
        assert_eq!(words[16], 42);
    }
}

#[test]
fn without_a_release_an_acquire_or_the_scope_the_data_races() {
    let release = "st.release.gpu.global.u32 [%rd1+32], 1;";
    let acquire = "ld.acquire.gpu.global.u32 %r3, [%rd1+32];";
    let wrong = [
        (release.replace("release", "relaxed"), acquire.to_string()),
        (release.to_string(), acquire.replace("acquire", "relaxed")),
        (release.replace("gpu", "cta"), acquire.to_string()),
        (release.to_string(), acquire.replace("gpu", "cta")),
        (format!("fence.acq_rel.cta;\n{}", release.replace("release", "relaxed")), acquire.to_string()),
    ];
    for (set, wait) in wrong {
        let (result, _) = execute(&handed_over(&set, &wait), 2, &with_seed(0));
        let Err(RunError::Fault(fault)) = result else { panic!("{set} {wait}: {result:?}") };
        assert_eq!(fault.kind, FaultKind::Race, "{set} {wait}");
        assert!(fault.is_between_ctas, "{fault}");
    }
}

#[test]
fn a_cta_that_is_not_resident_cannot_set_a_flag() {
    let body = handed_over("st.release.gpu.global.u32 [%rd1+32], 1;", "ld.acquire.gpu.global.u32 %r3, [%rd1+32];");
    let alone = Options { sms: Some(1), ctas_per_sm: Some(1), ..Options::default() };
    let (result, _) = execute(&body, 2, &alone);
    let Err(RunError::Fault(fault)) = result else { panic!("{result:?}") };
    assert_eq!((fault.kind, fault.cta), (FaultKind::Deadlock, [0, 0, 0]));
}

/// Every CTA adds its number plus 1 to word 0 under a lock in word 8.
fn locked(take: &str, give: &str) -> String {
    format!(
        "@!%p1 ret;\nLOCK:\n{take}\nsetp.ne.u32 %p2, %r3, 0;\n@%p2 bra LOCK;\n\
         ld.global.u32 %r4, [%rd1];\nadd.u32 %r4, %r4, %r2;\nadd.u32 %r4, %r4, 1;\nst.global.u32 [%rd1], %r4;\n\
         {give}\nret;"
    )
}

#[test]
fn a_lock_makes_updates_of_many_ctas_exclusive() {
    let take = "atom.acquire.gpu.global.cas.b32 %r3, [%rd1+32], 0, 1;";
    let give = "st.release.gpu.global.u32 [%rd1+32], 0;";
    for seed in 0..10 {
        let (result, words) = execute(&locked(take, give), 64, &with_seed(seed));
        result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(words[0], 64 * 65 / 2);
    }
    let (result, _) = execute(&locked(&take.replace("acquire", "relaxed"), give), 64, &with_seed(0));
    assert!(matches!(result, Err(RunError::Fault(fault)) if fault.kind == FaultKind::Race));
}

/// Every CTA writes its number to a word; the last one to count itself in word 32 adds them up into word 40, and resets
/// the count.
fn last_one_sums(fence: &str) -> String {
    format!(
        "@!%p1 ret;\nmul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd2, %rd2, %rd1;\nst.global.u32 [%rd2], %r2;\n{fence}\n\
         atom.global.inc.u32 %r3, [%rd1+128], 1000;\nmov.u32 %r5, %nctaid.x;\nadd.u32 %r6, %r3, 1;\n\
         setp.ne.u32 %p2, %r6, %r5;\n@%p2 ret;\n{fence}\nmov.u32 %r7, 0;\n\
         SUM:\nld.global.u32 %r8, [%rd1];\nadd.u32 %r7, %r7, %r8;\nadd.u64 %rd1, %rd1, 4;\nsub.u32 %r5, %r5, 1;\n\
         setp.ne.u32 %p3, %r5, 0;\n@%p3 bra SUM;\nst.global.u32 [%rd2], %r7;\n\
         mov.u32 %r9, %nctaid.x;\nmul.wide.u32 %rd3, %r9, 4;\nsub.u64 %rd1, %rd1, %rd3;\nst.global.u32 [%rd1+160], %r7;\n\
         st.global.u32 [%rd1+128], 0;\nret;"
    )
}

#[test]
fn the_last_cta_may_read_what_all_wrote_and_reset_the_counter() {
    for seed in 0..10 {
        let (result, words) = execute(&last_one_sums("fence.acq_rel.gpu;"), 30, &with_seed(seed));
        result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!((words[40], words[32]), (29 * 30 / 2, 0));
    }
    let (result, _) = execute(&last_one_sums("").replace("\n\n", "\n"), 30, &with_seed(0));
    assert!(matches!(result, Err(RunError::Fault(fault)) if fault.kind == FaultKind::Race && fault.is_between_ctas));
}

#[test]
fn atomics_of_a_cta_scope_race_between_ctas() {
    let body = |scope: &str| format!("red{scope}.global.add.u32 [%rd1], 1;\nret;");
    let (result, words) = execute(&body(".gpu"), 4, &with_seed(0));
    assert!(result.is_ok() && words[0] == 128);
    let (result, _) = execute(&body(".cta"), 4, &with_seed(0));
    let Err(RunError::Fault(fault)) = result else { panic!("{result:?}") };
    assert!(fault.message.contains("one is not in the scope of the other"), "{}", fault.message);
}

#[test]
fn a_seed_gives_one_order_and_other_seeds_give_others() {
    // The order in which CTAs get their tickets.
    let body = "@!%p1 ret;\natom.global.add.u32 %r3, [%rd1+512], 1;\nmul.wide.u32 %rd2, %r2, 4;\n\
                add.u64 %rd2, %rd2, %rd1;\nst.global.u32 [%rd2], %r3;\nret;";
    let order = |seed: u64| execute(body, 40, &with_seed(seed)).1[..40].to_vec();
    assert_eq!(order(0), (0..40).collect::<Vec<u32>>());
    assert_eq!(order(7), order(7));
    assert_ne!(order(7), order(8));
}

#[test]
fn a_fence_orders_only_in_its_direction() {
    let (set, wait) = ("st.relaxed.gpu.global.u32 [%rd1+32], 1;", "ld.relaxed.gpu.global.u32 %r3, [%rd1+32];");
    let body = |before: &str, after: &str| {
        handed_over(&format!("{before}\n{set}"), wait).replace("bra WAIT;\n", &format!("bra WAIT;\n{after}\n"))
    };
    let is_race = |body: &str| matches!(execute(body, 2, &with_seed(0)).0, Err(RunError::Fault(fault)) if fault.kind == FaultKind::Race);
    assert!(execute(&body("fence.release.gpu;", "fence.acquire.gpu;"), 2, &with_seed(0)).0.is_ok());
    assert!(is_race(&body("fence.acquire.gpu;", "fence.acq_rel.gpu;")));
    assert!(is_race(&body("fence.acq_rel.gpu;", "fence.release.gpu;")));
}

/// Every thread writes its number and fences; a thread of each CTA counts it; the last CTA reads what all wrote.
const ALL_FENCE: &str = "mul.wide.u32 %rd3, %r1, 4;\nadd.u64 %rd3, %rd3, %rd1;\nmul.wide.u32 %rd4, %r2, 128;\n\
    add.u64 %rd4, %rd4, %rd3;\nst.global.u32 [%rd4], %r1;\nmembar.gl;\nbar.sync 0;\n@!%p1 bra READ;\n\
    atom.global.add.u32 %r7, [%rd1+512], 1;\nst.shared.u32 [tile], %r7;\nmembar.gl;\nREAD:\nbar.sync 0;\n\
    ld.shared.u32 %r8, [tile];\nsetp.ne.u32 %p3, %r8, 1;\n@%p3 ret;\nld.global.u32 %r9, [%rd3];\n\
    ld.global.u32 %r10, [%rd3+128];\nadd.u32 %r9, %r9, %r10;\nst.global.u32 [%rd3+640], %r9;\nret;";

#[test]
fn sequentially_consistent_fences_synchronize_with_each_other() {
    for seed in 0..20 {
        let (result, words) = execute(ALL_FENCE, 2, &with_seed(seed));
        result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(words[160..192], (0..32).map(|at| 2 * at).collect::<Vec<u32>>());
    }
    // Without the order of all fences, those of the other threads hand over nothing.
    let weaker = ALL_FENCE.replace("membar.gl", "fence.acq_rel.gpu");
    assert!(
        matches!(execute(&weaker, 2, &with_seed(0)).0, Err(RunError::Fault(fault)) if fault.kind == FaultKind::Race)
    );
}

#[test]
fn a_seed_finds_a_lock_that_is_not_waited_for() {
    let take = "atom.acquire.gpu.global.cas.b32 %r3, [%rd1+32], 0, 1;";
    let give = "st.release.gpu.global.u32 [%rd1+32], 0;";
    let unwaited = locked(take, give).replace("@%p2 bra LOCK;\n", "");
    let is_found = |seed: u64| {
        let (result, words) = execute(&unwaited, 24, &with_seed(seed));
        result.is_err() || words[0] != 24 * 25 / 2
    };
    assert!((1..20).any(is_found));
}

/// Whether one CTA reads a word of the buffer that the other one writes, in an order that a seed selects, and it is a race.
fn races_in_every_order(first: &str, second: &str) -> bool {
    let body = format!(
        "@!%p1 ret;\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra FIRST;\n{second}\nret;\nFIRST:\n{first}\n\
         st.global.u32 [%rd1+64], %r3;\nret;"
    );
    (0..10).all(|seed| matches!(execute(&body, 2, &with_seed(seed)).0, Err(RunError::Fault(fault)) if fault.kind == FaultKind::Race))
}

#[test]
fn a_strong_load_and_a_strong_store_race_if_one_is_not_in_the_scope_of_the_other() {
    let load = |how: &str| format!("ld.{how}.global.u32 %r3, [%rd1];");
    assert!(races_in_every_order(&load("relaxed.cta"), "st.relaxed.cta.global.u32 [%rd1], 7;"));
    assert!(races_in_every_order(&load("relaxed.cta"), "atom.relaxed.gpu.global.exch.b32 %r4, [%rd1], 7;"));
    assert!(!races_in_every_order(&load("relaxed.gpu"), "st.relaxed.gpu.global.u32 [%rd1], 7;"));
}

#[test]
fn a_thread_that_reads_back_a_value_that_others_store_too_races_with_them() {
    let store = "st.global.u32 [%rd1], 7;";
    assert!(races_in_every_order(&format!("{store}\nld.global.u32 %r3, [%rd1];"), store));
}
