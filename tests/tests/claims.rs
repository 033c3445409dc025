//! The virtual GPU checks the user's claims about data: indices that are claimed to be unique but are not cause a race
//! of two threads, or two writes by one thread.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright::vgpu::{self, Arg, FaultKind, Launch, Memory, Module, RunError};
use tilewright_tests::toolchain::built_or_skipped;

/// A kernel that stores 64 numbers `x` to positions `at` in `y`.
fn scatter(threads: i64, body: impl FnOnce(&mut KernelBuilder, [Buffer; 3])) -> Artifact {
    let kernel = kernel("scatter", |k| {
        let x = k.input("x", F32, [64]);
        let at = k.input("at", I32, [64]);
        let y = k.output("y", F32, [64]);
        k.threads(threads);
        body(k, [x, at, y]);
    });
    compile(kernel, &Options::new(Target::Sm100a)).expect("it compiles")
}

/// `y[at[i]] = x[i]`, where the user claims that all of `at` differ.
fn plain(threads: i64) -> Artifact {
    scatter(threads, |k, [x, at, y]| {
        k.parallel([64], |k, [i]| {
            k.store(y, (at.at((&i,)),), x.at((&i,))).unique();
        });
    })
}

/// The results of runs with these indices; `None` without NVRTC.
fn run(artifact: &Artifact, indices: &[Vec<i32>]) -> Option<Vec<Result<(), FaultKind>>> {
    let built = built_or_skipped(artifact, "claims about data on the virtual GPU")?;
    let module = Module::parse(&built.ptx).expect("PTX");
    Some(indices.iter().map(|at| run_once(artifact, &module, at)).collect())
}

fn run_once(artifact: &Artifact, module: &Module, at: &[i32]) -> Result<(), FaultKind> {
    let mut memory = Memory::new();
    let indices = at.iter().flat_map(|index| index.to_le_bytes()).collect();
    let values = (0u8..64).flat_map(|value| f32::from(value).to_le_bytes()).collect();
    let buffers = [("x", values), ("at", indices), ("y", vec![0; 256])];
    let args = buffers.map(|(name, bytes)| Arg::Buffer { buffer: memory.allocate(name, bytes), byte_offset: 0 });
    let launch = Launch {
        kernel: artifact.entry().to_string(),
        grid: [1, 1, 1],
        block: [artifact.threads() as u32, 1, 1],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: 0,
        args: args.to_vec(),
    };
    let options = vgpu::Options { apart: artifact.unique_stores(), ..vgpu::Options::default() };
    match vgpu::run(module, &launch, &mut memory, &options) {
        Ok(_) => Ok(()),
        Err(RunError::Fault(fault)) => Err(fault.kind),
        Err(other) => panic!("{other}"),
    }
}

/// 64 distinct positions.
fn reversed() -> Vec<i32> {
    (0..64).rev().collect()
}

/// The same, except that iteration `later` has the position of iteration 0.
fn twice(later: usize) -> Vec<i32> {
    let mut at = reversed();
    at[later] = at[0];
    at
}

#[test]
fn indices_that_differ_are_no_fault() {
    for threads in [1, 32, 64] {
        let ran = run(&plain(threads), &[reversed()]);
        assert!(ran.is_none_or(|ran| ran == [Ok(())]), "{threads} threads");
    }
}

#[test]
fn indices_that_are_called_unique_and_are_not_are_a_fault() {
    let all: Vec<Vec<i32>> = (1..64).map(twice).collect();
    // Every thread executes one iteration, two, or all of them.
    for (threads, least_of_one) in [(64, 0), (32, 1), (1, 63)] {
        let Some(ran) = run(&plain(threads), &all) else { return };
        let count = |kind: FaultKind| ran.iter().filter(|ran| **ran == Err(kind)).count();
        let (of_one, of_two) = (count(FaultKind::NotApart), count(FaultKind::Race));
        assert!(of_one >= least_of_one && of_one + of_two == all.len(), "{threads} threads: {ran:?}");
    }
}

#[test]
fn iterations_of_a_loop_around_may_store_again() {
    let again = scatter(32, |k, [x, at, y]| {
        k.serial("s", 0..3, |k, s| {
            k.parallel([64], |k, [i]| {
                k.store(y, (at.at((&i,)),), x.at((&i,)) + Value::from(&s)).unique();
            });
        });
    });
    assert!(!again.unique_stores().is_empty());
    let ran = run(&again, &[reversed(), twice(5)]);
    assert!(ran.is_none_or(|ran| ran[0] == Ok(()) && ran[1].is_err()));
}

#[test]
fn an_iteration_may_store_to_its_element_again() {
    let again = scatter(32, |k, [x, at, y]| {
        k.parallel([64], |k, [i]| {
            k.serial("j", 0..3, |k, j| {
                k.store(y, (at.at((&i,)),), x.at((&i,)) + Value::from(&j)).unique();
            });
        });
    });
    assert!(again.unique_stores().is_empty());
    let ran = run(&again, &[reversed()]);
    assert!(ran.is_none_or(|ran| ran == [Ok(())]));
}
