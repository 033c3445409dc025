//! CUDA kernels with asynchronous copies, barriers and flags, compiled by NVRTC, on the virtual GPU: right in every
//! schedule, and each wait, fence, barrier and count that is dropped or changed is found.

mod case;
mod cases;
mod launch_files;
mod pages;
mod tensor_cases;

use tilewright_tests::fuzz::spread_over;
use tilewright_tests::gpu::gpu_for;
use tilewright_tests::mutants::{MutationReport, ending, mutants};
use tilewright_tests::toolchain::skip;

use case::{Case, compiled, parsed};
use launch_files::is_right_from;

use cases::{gemm, roles, split_sum, tcgen05_gemm, wgmma_gemm};

fn all() -> Vec<Case> {
    let mut all = vec![gemm(), roles(), split_sum(), tcgen05_gemm(), wgmma_gemm()];
    all.extend(tensor_cases::all());
    all
}

#[test]
fn they_are_right_in_every_schedule() {
    for case in all() {
        for target in case.targets() {
            let Some(ptx) = compiled(&case.source(), target) else { return skip("asynchronous kernels") };
            let module = parsed(&ptx);
            spread_over(&Vec::from_iter(0..20), &|seed| {
                let found =
                    case.run(&module, *seed).unwrap_or_else(|error| panic!("{} {target} {seed}: {error}", case.file));
                assert!(found, "{} {target} {seed}: the results differ", case.file);
            });
        }
    }
}

#[test]
fn they_are_right_from_launch_files() {
    for case in all() {
        let target = case.targets().last().expect("a target");
        let Some(ptx) = compiled(&case.source(), target) else { return skip("asynchronous kernels") };
        let folder = tempfile::tempdir().expect("a folder");
        case.write(folder.path(), &ptx);
        assert!(is_right_from(folder.path()), "{} {}", case.file, case.kind);
    }
}

#[test]
fn they_are_right_on_a_gpu_too() {
    for case in all() {
        for target in case.targets() {
            let Some(gpu) = gpu_for(target) else { continue };
            let Some(ptx) = compiled(&case.source(), target) else { return skip("asynchronous kernels") };
            let found = case.run_on(&gpu, &ptx).unwrap_or_else(|error| panic!("{} {target}: {error}", case.file));
            assert!(found, "{} {target}: the results differ", case.file);
        }
    }
}

/// A text of a kernel, and what stands in its place.
type Change = (&'static str, &'static str);

/// Whether one of 20 schedules finds a change of a kernel: by a fault or by a wrong result.
fn is_found(case: &Case, (from, to): Change) -> Option<bool> {
    let source = case.source();
    assert!(source.contains(from), "{}: {from}", case.file);
    let module = parsed(&compiled(&source.replacen(from, to, 1), "sm_100a")?);
    Some((0..20).any(|seed| !matches!(case.run(&module, seed), Ok(true))))
}

#[test]
fn what_is_dropped_or_changed_is_found() {
    let of_gemm: [Change; 5] = [
        ("asm volatile(\"cp.async.wait_group %0;\" ::\"n\"(kStages - 2) : \"memory\");", ""),
        ("\"n\"(kStages - 2)", "\"n\"(kStages - 1)"),
        ("    __syncthreads();\n    if (step + kStages", "    if (step + kStages"),
        ("    asm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n    const unsigned", "    const unsigned"),
        ("kStages = 3", "kStages = 1"),
    ];
    let of_roles: [Change; 12] = [
        ("if (step >= kStages) wait(", "if (false) wait("),
        ("(step / kStages - 1) & 1", "(step / kStages) & 1"),
        ("step / kStages & 1);\n    // Each", "(step / kStages + 1) & 1);\n    // Each"),
        ("expect(&barriers.full[stage], kTileBytes)", "expect(&barriers.full[stage], kTileBytes + 16)"),
        ("expect(&barriers.full[stage], kTileBytes)", "expect(&barriers.full[stage], kTileBytes - 16)"),
        ("asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");", ""),
        ("asm volatile(\"bar.sync 1, 64;\" ::: \"memory\");", ""),
        ("asm volatile(\"cp.async.bulk.wait_group.read 0;\" ::: \"memory\");", ""),
        ("asm volatile(\"cp.async.bulk.commit_group;\" ::: \"memory\");", ""),
        ("      arrive(&barriers.empty[stage]);", ""),
        ("init(&barriers.empty[stage], 1)", "init(&barriers.empty[stage], 2)"),
        ("  __syncthreads();\n\n  if (warp == 0)", "  if (warp == 0)"),
    ];
    let of_split: [Change; 4] = [
        ("    __threadfence();\n    is_last", "    is_last"),
        ("1;\n    __threadfence();\n  }", "1;\n  }"),
        ("  }\n  __syncthreads();\n  if (is_last", "  }\n  if (is_last"),
        ("  partial[threadIdx.x] = own;\n  __syncthreads();", "  partial[threadIdx.x] = own;"),
    ];
    for (case, changes) in [(gemm(), &of_gemm[..]), (roles(), &of_roles[..]), (split_sum(), &of_split[..])] {
        for change in changes {
            match is_found(&case, *change) {
                None => return skip("asynchronous kernels"),
                Some(found) => assert!(found, "{}: `{}` is not found", case.file, change.0),
            }
        }
    }
}

#[test]
fn mechanical_changes_of_their_ptx_are_found() {
    let mut report = MutationReport::default();
    for case in all() {
        let target = case.targets().last().expect("a target");
        let Some(ptx) = compiled(&case.source(), target) else { return skip("asynchronous kernels") };
        let mutants = mutants(&ptx);
        let endings = spread_over(&mutants, &|mutant| ending(mutant, 10, &|module, seed| case.run(module, seed)));
        mutants.iter().zip(&endings).for_each(|(mutant, ending)| report.add(mutant, ending));
    }
    assert!(report.mutants() >= 2200, "{report:#?}");
    let opcode = |text: &str| text.split_whitespace().next().unwrap_or_default().trim_end_matches(';').to_string();
    let mut survived: Vec<(&str, String)> =
        report.survivors.iter().map(|(kind, _, text)| (*kind, opcode(text))).collect();
    survived.sort_unstable();
    survived.dedup();
    let equivalent = [
        // The last release of a stage, for which nobody waits.
        ("drop arrival", "mbarrier.arrive.shared::cta.b64"),
        // The last step of the sum in shared memory, whose result its own thread reads.
        ("drop barrier", "bar.sync"),
        // The last release of a stage by the engine, in a loop of its own.
        ("drop commit", "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"),
        ("drop commit", "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"),
        ("drop commit", "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"),
        // The barrier behind it makes the objects visible; that the engine needs more is not modelled.
        ("drop fence", "fence.mbarrier_init.release.cluster"),
        // Between the read of a response and the write of the next one: a write after a read needs no proxy fence.
        ("drop fence", "fence.proxy.async.shared::cta"),
        // Around the barrier after the allocation, which accesses no tensor memory, and before the one at the end: that an
        // allocation is freed after the loads from it is known by their waits.
        ("drop fence", "tcgen05.fence::after_thread_sync"),
        ("drop fence", "tcgen05.fence::before_thread_sync"),
        // Between products of one accumulator, which nothing else accesses.
        ("drop fence", "wgmma.fence.sync.aligned"),
        // Before a barrier of the cluster that is `.aligned`, at which the lanes of a warp meet anyway.
        ("drop warp barrier", "bar.warp.sync"),
        // Without one thread of 128: the others of its warp have waited for what the warp reads.
        ("one arrival less", "mbarrier.init.shared::cta.b64"),
    ];
    let equivalent = equivalent.map(|(kind, opcode)| (kind, opcode.to_string()));
    assert_eq!(survived, equivalent, "{report:#?}");
    // Of each kind there may be more that are found: only so many are not.
    assert_eq!(report.survivors.len(), 53, "{report:#?}");
}
