//! `cp.async`: what it moves, and what happens if its waits or barriers are missing.

use tilewright_vgpu::{FaultKind, Memory, Options, run};

use crate::harness::{Outcome, SEEDS, agreed, always_races, fault_of, launch, module, words_of};

/// Runs `body` by one CTA of 64 threads on a buffer `a` of the words 0 to 255 and a buffer `b` of 256 words. `%r1` is the
/// thread, `%r2` four times that, `%rd1` and `%rd2` its words of the buffers, and `%r3` its word of `tile`; a body begins
/// at line 20.
fn execute(body: &str, seed: u64) -> Outcome {
    let text = format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{{\n\
         .reg .pred %p<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n.shared .align 16 .b8 tile[1024];\n\
         ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nmov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 2;\n\
         cvt.u64.u32 %rd3, %r2;\nadd.u64 %rd1, %rd1, %rd3;\nadd.u64 %rd2, %rd2, %rd3;\nmov.u32 %r3, tile;\n\
         add.u32 %r3, %r3, %r2;\nxor.b32 %r4, %r2, 128;\n{body}\n}}\n"
    );
    let mut memory = Memory::new();
    let a = memory.allocate("a", (0..256u32).flat_map(u32::to_le_bytes).collect());
    let b = memory.allocate_poison("b", 1024);
    let options = Options { seed, ..Options::default() };
    let result = run(&module(&text), &launch(64, &[a, b]), &mut memory, &options).map(|_| ());
    (result, words_of(&memory, b))
}

fn words(body: &str) -> Vec<u32> {
    agreed(|seed| execute(body, seed))
}

/// The fault, which is found whatever the seed.
fn fault(body: &str) -> (FaultKind, String) {
    let of = |seed: u64| fault_of(execute(body, seed));
    (1..SEEDS).for_each(|seed| assert_eq!(of(seed).kind, of(0).kind, "seed {seed}"));
    (of(0).kind, of(0).message)
}

fn is_found(body: &str) -> bool {
    always_races(|seed| execute(body, seed))
}

const START: &str = "cp.async.ca.shared.global [%r3], [%rd1], 4;\n";
const DONE: &str = "cp.async.commit_group;\ncp.async.wait_group 0;\n";
const OWN: &str = "ld.shared.u32 %r5, [%r3];\nst.global.u32 [%rd2], %r5;\nret;";
/// The word of the thread in the other warp.
const OTHER: &str =
    "mov.u32 %r6, tile;\nadd.u32 %r6, %r6, %r4;\nld.shared.u32 %r5, [%r6];\nst.global.u32 [%rd2], %r5;\nret;";

#[test]
fn a_copy_has_arrived_after_its_wait() {
    assert_eq!(words(&format!("{START}{DONE}{OWN}"))[..64], (0..64).collect::<Vec<u32>>());
    assert_eq!(words(&format!("{START}cp.async.wait_all;\n{OWN}"))[..64], (0..64).collect::<Vec<u32>>());
}

#[test]
fn other_threads_read_it_after_a_barrier() {
    let found = words(&format!("{START}{DONE}bar.sync 0;\n{OTHER}"));
    assert_eq!(found[..64], (0..64).map(|at| at ^ 32).collect::<Vec<u32>>());
}

#[test]
fn without_the_wait_or_the_barrier_it_races() {
    assert_eq!(fault(&format!("{START}{OWN}")).0, FaultKind::Race);
    assert_eq!(fault(&format!("{START}cp.async.commit_group;\ncp.async.wait_group 1;\n{OWN}")).0, FaultKind::Race);
    // What is not committed is in no group.
    assert_eq!(fault(&format!("{START}cp.async.wait_group 0;\n{OWN}")).0, FaultKind::Race);
    assert!(is_found(&format!("{START}{DONE}{OTHER}")));
    // The barrier comes before the wait.
    assert!(is_found(&format!("{START}cp.async.commit_group;\nbar.sync 0;\ncp.async.wait_group 0;\n{OTHER}")));
}

#[test]
fn a_wait_leaves_the_last_groups_pending() {
    // Two stages: the second copy of each thread goes 512 bytes further.
    let both = format!(
        "{START}cp.async.commit_group;\ncp.async.ca.shared.global [%r3+512], [%rd1+512], 4;\ncp.async.commit_group;\n\
         cp.async.wait_group 1;\nld.shared.u32 %r5, [%r3];\n"
    );
    let second = "cp.async.wait_group 0;\nld.shared.u32 %r6, [%r3+512];\nadd.u32 %r5, %r5, %r6;\n";
    let end = "st.global.u32 [%rd2], %r5;\nret;";
    assert_eq!(words(&format!("{both}{second}{end}"))[..64], (0..64).map(|at| 2 * at + 128).collect::<Vec<u32>>());
    assert_eq!(fault(&format!("{both}{}{end}", second.replace("wait_group 0", "wait_group 1"))).0, FaultKind::Race);
}

#[test]
fn what_is_not_read_is_zero() {
    let filled = "and.b32 %r7, %r1, 3;\nshl.b32 %r7, %r7, 2;\nshl.b32 %r8, %r1, 4;\nmov.u32 %r9, tile;\nadd.u32 %r8, %r8, %r9;\n\
                  ld.param.u64 %rd4, [a];\nsetp.lt.u32 %p1, %r1, 4;\n@!%p1 ret;\n\
                  cp.async.cg.shared.global [%r8], [%rd4], 16, %r7;\ncp.async.wait_all;\n\
                  ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r8];\nshl.b32 %r14, %r1, 4;\nld.param.u64 %rd5, [b];\n\
                  cvt.u64.u32 %rd6, %r14;\nadd.u64 %rd5, %rd5, %rd6;\nst.global.v4.u32 [%rd5], {%r10, %r11, %r12, %r13};\nret;";
    // The thread t reads t words of 0, 1, 2, 3.
    assert_eq!(words(filled)[..16], [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 0]);
    let ignored = format!("setp.gt.u32 %p1, %r1, 9;\n{}{DONE}{OWN}", START.replace("4;", "4, %p1;"));
    let want: Vec<u32> = (0..64).map(|at| if at > 9 { 0 } else { at }).collect();
    assert_eq!(words(&ignored)[..64], want);
}

#[test]
fn a_buffer_is_not_overwritten_while_it_is_read_or_copied() {
    // The other warp still reads when the next copy starts.
    let reused = format!(
        "{START}{DONE}bar.sync 0;\nmov.u32 %r6, tile;\nadd.u32 %r6, %r6, %r4;\nld.shared.u32 %r5, [%r6];\n{{}}\
                          cp.async.ca.shared.global [%r3], [%rd1+512], 4;\n{DONE}st.global.u32 [%rd2], %r5;\nret;"
    );
    assert_eq!(words(&reused.replace("{}", "bar.sync 0;\n"))[..2], [32, 33]);
    assert_eq!(fault(&reused.replace("{}", "")).0, FaultKind::Race);
    // A store to bytes that a copy has not written yet.
    assert_eq!(fault(&format!("{START}st.shared.u32 [%r3], 5;\n{DONE}{OWN}")).0, FaultKind::Race);
}

#[test]
fn a_source_that_changes_before_the_wait_is_a_race() {
    let changed = format!("{START}st.global.u32 [%rd1], 5;\n{DONE}{OWN}");
    assert_eq!(fault(&changed).0, FaultKind::Race);
    let after = format!("{START}{DONE}st.global.u32 [%rd1], 5;\n{OWN}");
    assert_eq!(words(&after)[..64], (0..64).collect::<Vec<u32>>());
}

#[test]
fn wrong_copies_fault_where_they_start() {
    assert_eq!(fault("cp.async.cg.shared.global [%r3], [%rd1], 16;\nret;").0, FaultKind::Misaligned);
    assert_eq!(fault("cp.async.ca.shared.global [%r3+900], [%rd1], 4;\nret;").0, FaultKind::OutOfBounds);
    assert_eq!(fault("cp.async.ca.shared.global [%r3], [%rd1+900], 4;\nret;").0, FaultKind::OutOfBounds);
    let (kind, message) = fault("mov.u32 %r5, 5;\ncp.async.ca.shared.global [%r3], [%rd1], 4, %r5;\nret;");
    assert_eq!((kind, message.as_str()), (FaultKind::IllegalInstruction, "a copy of 4 B reads 5 B"));
}

#[test]
fn unwritten_bytes_travel_through_a_copy() {
    let (kind, message) = fault(
        "cp.async.ca.shared.global [%r3], [%rd2], 4;\ncp.async.wait_all;\n\
                                 ld.shared.u32 %r5, [%r3];\nst.global.u32 [%rd1], %r5;\nret;",
    );
    assert_eq!(kind, FaultKind::UninitializedRead);
    assert!(message.starts_with("4-byte read at `b` + 0 includes unwritten bytes"), "{message}");
}

/// What a lane has waited for, its neighbours in a row have not.
#[test]
fn a_copy_of_one_lane_is_read_by_a_row() {
    let copies = "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [%r3], 1;\nbar.sync 0;\nand.b32 %r5, %r1, 3;\n\
                  setp.eq.u32 %p2, %r5, 0;\n@%p2 cp.async.ca.shared.global [%r3], [%rd1], 16;\n\
                  @!%p2 cp.async.ca.shared.global [%r3+512], [%rd1], 4;\n";
    assert!(is_found(&format!("{copies}{DONE}{OWN}")));
    assert_eq!(words(&format!("{copies}{DONE}bar.warp.sync -1;\n{OWN}"))[..64], (0..64).collect::<Vec<u32>>());
}
