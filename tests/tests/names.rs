//! Names reserved by C++ or CUDA compile and behave like other names; unused names are not declared.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::emit::reserved::{Place, is_reserved, listed};
use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};
use tilewright_tests::pages::{check, tensor};
use tilewright_tests::toolchain::built_or_skipped;

/// A kernel that adds 1 to 64 numbers, with these names: input, output, shared buffer, size, loop and value.
fn increment(name: &str, [input, output, shared, size, turn, value]: [&str; 6]) -> Kernel {
    kernel(name, |k| {
        let n = k.size(size).max(64);
        let x = k.input(input, F32, (&n,));
        let y = k.output(output, F32, (&n,));
        let s = k.shared(shared, F32, [64]);
        k.threads(64);
        k.copy(s, x.sub((0..64,)));
        k.serial(turn, 0..2, |k, i| {
            k.parallel([32], |k, [j]| {
                let at = &i * 32 + j;
                let next = k.named(value, s.at((&at,)) + 1.0);
                k.store(y, (&at,), next);
            });
        });
    })
}

fn numbers(first: f64) -> HostTensor {
    tensor(F32, &[64], |i| first + i as f64)
}

/// Checks that the kernel compiles without a warning and computes the result.
fn assert_increments(name: &str, names: [&str; 6]) {
    let kernel = increment(name, names);
    assert_no_warnings(&kernel);
    check(&kernel, &[(names[3], 64)], &[numbers(0.0)], &[numbers(1.0)], Tolerance::EXACT);
}

fn artifact(kernel: &Kernel) -> Artifact {
    let artifact = compile(kernel.clone(), &Options::new(Target::Sm100a));
    artifact.unwrap_or_else(|found| panic!("{}: {found:?}", kernel.name))
}

/// Checks that NVRTC accepts the kernel without a message.
fn assert_no_warnings(kernel: &Kernel) {
    let artifact = artifact(kernel);
    if let Some(built) = built_or_skipped(&artifact, &format!("names: {}", kernel.name)) {
        assert!(built.warnings.is_empty(), "{:?}\n{}", built.warnings, artifact.cuda());
    }
}

const PLAIN: [&str; 6] = ["x", "y", "s", "n", "turn", "next"];

#[test]
fn reserved_names_are_kernels() {
    let reserved = [
        "max",
        "exp",
        "main",
        "dim3",
        "printf",
        "remainder",
        "abs",
        "float4",
        "atomicAdd",
        "NULL",
        "char16_t",
        "float",
        "threadIdx",
        "__syncthreads",
        "_Bool",
        "_",
        "A7",
        "WARP_SZ",
        "shared_window",
    ];
    for name in reserved {
        assert_eq!(artifact(&increment(name, PLAIN)).entry(), format!("{name}_"));
        assert_increments(name, PLAIN);
    }
}

#[test]
fn names_that_are_reserved_everywhere_stand_anywhere() {
    let mut every: Vec<&str> = listed(Place::Inside).chain(["__syncthreads", "_Bool", "shared_window"]).collect();
    every.extend_from_within(..(6 - every.len() % 6) % 6);
    for names in every.chunks_exact(6) {
        let names: [&str; 6] = [0, 1, 2, 3, 4, 5].map(|at| names[at]);
        assert_increments(names[0], names);
    }
}

/// They hide functions and types that the text of this kernel does not need, or that it calls from the global
/// namespace.
#[test]
fn names_of_functions_stay_inside_of_a_kernel() {
    let names = ["max", "exp", "min", "size_t", "j1", "abs"];
    assert!(names.iter().all(|name| is_reserved(name, Place::Outside)));
    let text = artifact(&increment("k", names)).cuda().to_string();
    assert!(text.contains("k(const float* __restrict__ max, float* __restrict__ exp, int size_t)"), "{text}");
    assert_increments("k", names);
    let largest = kernel("k", |k| {
        let (x, y) = (k.input("fmaxf", F32, [64]), k.output("y", F32, [64]));
        k.parallel([64], |k, [i]| {
            k.store(y, (&i,), x.at((&i,)).max(3.0));
        });
    });
    assert_no_warnings(&largest);
    let expected = tensor(F32, &[64], |i| (i as f64).max(3.0));
    check(&largest, &[], &[numbers(0.0)], &[expected], Tolerance::EXACT);
}

#[test]
fn a_name_that_is_taken_gets_another_underscore() {
    let names = ["float", "float_", "double__", "double", "double_", "next"];
    let text = artifact(&increment("float", names)).cuda().to_string();
    assert!(
        text.contains("float_(const float* __restrict__ float__, float* __restrict__ float_, int double___)"),
        "{text}"
    );
    assert_increments("float", names);
}

#[test]
fn a_kernel_leaves_its_name_to_a_function_that_it_needs() {
    let divided = kernel("divide", |k| {
        let (x, y) = (k.input("x", I32, [32]), k.output("y", I32, [32]));
        k.parallel([32], |k, [i]| {
            let at = x.at((&i,));
            k.store(y, (&i,), at / at);
        });
    });
    assert_eq!(artifact(&divided).entry(), "divide_");
    assert_eq!(artifact(&increment("divide", PLAIN)).entry(), "divide");
    let of = |value: fn(i64) -> f64| tensor(I32, &[32], value);
    check(&divided, &[], &[of(|i| i as f64)], &[of(|i| f64::from(i > 0))], Tolerance::EXACT);
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

#[test]
fn values_that_nothing_uses_are_not_computed() {
    let doubled = kernel("doubled", |k| {
        let (x, y) = (k.input("x", F32, [64]), k.output("y", F32, [64]));
        k.threads(32);
        k.parallel([64], |k, [i]| {
            let _idle_load = k.named("idle_load", x.at((i + 1,)));
            let idle = k.named("idle_square", x.at((i,)) * x.at((i,)));
            let _idle = k.named("idle_cube", idle * x.at((i,)));
            k.serial("step", 0..2, |k, _| {
                k.named("idle_in_loop", x.at((i,)) * 3.0);
            });
            k.store(y, (i,), x.at((i,)) * 2.0);
        });
        k.parallel([64], |k, [i]| {
            k.named("idle_nest", x.at((i,)));
        });
    });
    let text = artifact(&doubled).cuda().to_string();
    assert!(!text.contains("idle"), "{text}");
    assert_no_warnings(&doubled);
    check(&doubled, &[], &[numbers(0.0)], &[tensor(F32, &[64], |i| 2.0 * i as f64)], Tolerance::EXACT);
}
