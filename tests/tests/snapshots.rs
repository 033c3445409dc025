//! Snapshots of every stage of every kernel of the library, for every target, and of the CUDA and plans of the other
//! cases.

use std::collections::BTreeSet;
use std::path::PathBuf;

use insta::{assert_snapshot, with_settings};
use tilewright::compile::{Artifact, Options, Stage, compile};
use tilewright::prelude::*;
use tilewright_tests::cases::{Case, all};
use tilewright_tests::toolchain::package;

/// Cases with snapshots of all stages, besides the library's default ones: a variant that is not the cheapest, a matrix
/// whose tiles extend past its edges, and tiles of each element width.
const SHOWN_TOO: [&str; 5] = [
    "sf_transpose-f32-warp_xor_swizzle",
    "transpose_2d-b32-m=33-n=7",
    "warp_transpose-b8",
    "warp_transpose-b16",
    "warp_transpose-b64",
];

/// The stages with snapshots for the other cases.
const STAGES_OF_OTHERS: &[Stage] = &[Stage::Cuda, Stage::Plan, Stage::Layouts];

fn is_shown_whole(case: &Case) -> bool {
    case.is_default || SHOWN_TOO.iter().any(|start| case.name.starts_with(start))
}

/// The targets and stages for which a case is compared. The remaining transposes differ only in their sizes.
fn shown(case: &Case) -> Vec<(Target, &'static [Stage])> {
    if is_shown_whole(case) {
        return Target::ALL.iter().map(|target| (*target, Stage::ALL)).collect();
    }
    if case.name.contains("transpose") { Vec::new() } else { vec![(Target::Sm100a, STAGES_OF_OTHERS)] }
}

fn folder() -> PathBuf {
    package().join("snapshots")
}

/// The name of a snapshot. Snapshots of CUDA end in `cu`, by which `cargo xtask validate` finds them.
fn name_of(case: &Case, target: Target, stage: Stage) -> String {
    let extension = match stage {
        Stage::Cuda => "cu",
        Stage::Tile | Stage::Layouts | Stage::Graph | Stage::Thread | Stage::Plan => stage.name(),
    };
    format!("{}.{target}.{extension}", case.name)
}

fn compiled(case: &Case, target: Target) -> Artifact {
    case.compile(target).unwrap_or_else(|found| panic!("{}: {found:?}", case.name))
}

fn assert_shown(case: &Case) {
    for (target, stages) in shown(case) {
        let artifact = compiled(case, target);
        let has_layouts = !artifact.stage(Stage::Layouts).starts_with("there are no fragments");
        for stage in stages {
            // Kernels without fragments have no snapshots of layouts, unless a shared layout was chosen.
            let is_empty = match stage {
                Stage::Layouts => !has_layouts,
                Stage::Graph => artifact.inferred().components.is_empty(),
                Stage::Tile | Stage::Thread | Stage::Plan | Stage::Cuda => false,
            };
            if is_empty {
                continue;
            }
            let text = artifact.stage(*stage);
            with_settings!({ snapshot_path => folder(), prepend_module_to_snapshot => false, omit_expression => true }, {
                assert_snapshot!(name_of(case, target, *stage), text);
            });
        }
    }
}

#[test]
fn every_stage_of_the_librarys_kernels() {
    all().iter().filter(|case| is_shown_whole(case)).for_each(assert_shown);
}

#[test]
fn the_cuda_and_plans_of_the_other_cases() {
    all().iter().filter(|case| !is_shown_whole(case)).for_each(assert_shown);
}

/// Snapshots without a target in their names belong to other tests.
#[test]
fn no_snapshot_of_a_case_is_left_over() {
    let mut wanted = BTreeSet::new();
    for case in all() {
        for (target, stages) in shown(&case) {
            wanted.extend(stages.iter().map(|stage| format!("{}.snap", name_of(&case, target, *stage))));
        }
    }
    for entry in std::fs::read_dir(folder()).expect("the snapshots").flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        assert!(!file.contains(".sm_") || wanted.contains(&file), "{file} does not belong to any case: delete it");
    }
}

/// The text does not depend on what was compiled before it in the same process.
#[test]
fn compiling_twice_gives_the_same_bytes() {
    for case in all() {
        let (first, second) = (compiled(&case, Target::Sm100a), compiled(&case, Target::Sm100a));
        for stage in Stage::ALL {
            assert_eq!(first.stage(*stage), second.stage(*stage), "{} {stage}", case.name);
        }
    }
}

/// CUDA snapshots compile without headers.
#[test]
fn no_kernel_includes_anything() {
    for case in all() {
        assert!(!compiled(&case, Target::Sm100a).cuda().contains("#include"), "{}", case.name);
    }
}

/// Only the two operands of a `permute_layout` may be passed the same memory.
#[test]
fn parameters_are_restricted_unless_an_op_may_alias_them() {
    let cuda = |permutes: bool| {
        let built = kernel("moved", |k| {
            let a = k.input("a", F32, [8, 32]);
            let b = k.output("b", F32, S([8, 32], [1, 8]));
            let c = k.output("c", F32, [8, 32]);
            k.threads(32);
            if permutes {
                k.warp().permute_layout(b, a)
            } else {
                k.copy(b, a)
            };
            k.copy(c, a);
        });
        let artifact = compile(built, &Options::new(Target::Sm100a)).expect("the kernel is right");
        artifact.cuda().lines().find(|line| line.starts_with("moved(")).map(str::to_string)
    };
    let expected = [
        "moved(const float* a, float* b, float* __restrict__ c) {",
        "moved(const float* __restrict__ a, float* __restrict__ b, float* __restrict__ c) {",
    ];
    assert_eq!([cuda(true), cuda(false)], expected.map(|line| Some(line.to_string())));
}
