//! Every stage of every kernel, for every target, as reviewed text; and the CUDA of the kernels that only tests need.

use insta::{assert_snapshot, with_settings};
use tilewright::compile::{Artifact, Stage};
use tilewright::prelude::Target;
use tilewright_tests::cases::{Case, all};
use tilewright_tests::toolchain::package;

fn assert_stage(case: &Case, artifact: &Artifact, stage: Stage, extension: &str) {
    let folder = package().join("snapshots");
    let name = format!("{}.{}.{extension}", case.name, artifact.target());
    with_settings!({ snapshot_path => folder, prepend_module_to_snapshot => false, omit_expression => true }, {
        assert_snapshot!(name, artifact.stage(stage));
    });
}

fn compiled(case: &Case, target: Target) -> Artifact {
    case.compile(target).unwrap_or_else(|found| panic!("{}: {found:?}", case.name))
}

/// Library kernels at their default size, and one small transpose per width.
fn is_shown_whole(case: &Case) -> bool {
    [
        "sf_transpose",
        "warp_transpose-b32-rows=32-cols=32",
        "warp_transpose-b8",
        "warp_transpose-b16",
        "warp_transpose-b64",
    ]
    .iter()
    .any(|start| case.name.starts_with(start))
}

#[test]
fn every_stage_of_the_librarys_kernels() {
    for case in all().iter().filter(|case| is_shown_whole(case)) {
        for target in Target::ALL {
            let artifact = compiled(case, *target);
            for (stage, extension) in
                [(Stage::Tile, "tile"), (Stage::Plan, "plan"), (Stage::Thread, "thread"), (Stage::Cuda, "cu")]
            {
                assert_stage(case, &artifact, stage, extension);
            }
        }
    }
}

#[test]
fn the_cuda_and_plans_of_the_tests_own_kernels() {
    let own = all().into_iter().filter(|case| !case.name.contains("transpose"));
    for case in own {
        let artifact = compiled(&case, Target::Sm100a);
        assert_stage(&case, &artifact, Stage::Cuda, "cu");
        assert_stage(&case, &artifact, Stage::Plan, "plan");
        if artifact.stage(Stage::Layouts).contains("fragment ") {
            assert_stage(&case, &artifact, Stage::Layouts, "layouts");
        }
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

/// The compiler that reads a snapshot needs no header and no `__restrict__`.
#[test]
fn no_kernel_includes_or_restricts_anything() {
    for case in all() {
        let cuda = compiled(&case, Target::Sm100a).cuda().to_string();
        assert!(!cuda.contains("#include") && !cuda.contains("__restrict__"), "{}", case.name);
    }
}
