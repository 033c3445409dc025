//! What is not used is not declared.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{CudaText, HostTensor, Tolerance};
use tilewright_tests::pages::{check, tensor};
use tilewright_tests::toolchain::{skip, toolchain};

fn numbers(first: f64) -> HostTensor {
    tensor(F32, &[64], |i| first + i as f64)
}

fn artifact(kernel: &Kernel) -> Artifact {
    let artifact = compile(kernel.clone(), &Options::new(Target::Sm100a));
    artifact.unwrap_or_else(|found| panic!("{}: {found:?}", kernel.name))
}

/// NVRTC takes the kernel and says nothing of it.
fn assert_no_warnings(kernel: &Kernel) {
    let artifact = artifact(kernel);
    match toolchain().build(&artifact, &CudaText::Generated) {
        Ok(built) => assert!(built.warnings.is_empty(), "{:?}\n{}", built.warnings, artifact.cuda()),
        Err(failure) if failure.diagnostics[0].code == "R0601" => skip(&format!("names: {}", kernel.name)),
        Err(failure) => panic!("{failure}\n{}", artifact.cuda()),
    }
}

#[test]
fn what_no_statement_touches_is_not_declared() {
    let copied = kernel("copied", |k| {
        let (x, y) = (k.input("x", F32, [64]), k.output("y", F32, [64]));
        let s = k.shared("s", F32, [64]);
        let f = k.fragment("f", F32, [64]);
        k.threads(32);
        k.view_as("idle_halves", s, U16, [128]);
        k.view("idle_rows", s, [8, 8]);
        k.view_as("idle_doubles", f, F64, [32]);
        let shared = k.shared("idle_shared", F32, [16_384]);
        k.view("idle_view", shared, [128, 128]);
        k.fragment("idle_fragment", F32, S([32, 2], [1 * LANEID, 1 * M]));
        k.copy(s, x);
        k.copy(f, s);
        k.copy(y, f);
    });
    let artifact = artifact(&copied);
    assert!(!artifact.cuda().contains("idle") && !artifact.cuda().contains("double"), "{}", artifact.cuda());
    assert_eq!(artifact.dynamic_shared_bytes(), 0);
    assert_no_warnings(&copied);
    check(&copied, &[], &[numbers(0.0)], &[numbers(0.0)], Tolerance::EXACT);
}
