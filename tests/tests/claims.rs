//! What a user claims of data is checked by the virtual GPU: indices that are called unique and are not, are a race.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::CudaText;
use tilewright::vgpu::{self, Arg, FaultKind, Launch, Memory, Module, RunError};
use tilewright_tests::toolchain::{skip, toolchain};

/// `y[at[i]] = x[i]`, where the user says that all of `at` differ.
fn scatter() -> Kernel {
    kernel("scatter", |k| {
        let x = k.input("x", F32, [64]);
        let at = k.input("at", I32, [64]);
        let y = k.output("y", F32, [64]);
        k.threads(64);
        k.parallel([64], |k, [i]| {
            k.store(y, (at.at((&i,)),), x.at((&i,))).unique();
        });
    })
}

/// The fault of a run with these indices, if there is one; `None` without NVRTC.
fn run(at: &[i32]) -> Option<Result<(), FaultKind>> {
    let artifact = compile(scatter(), &Options::new(Target::Sm100a)).expect("it compiles");
    let Ok(built) = toolchain().build(&artifact, &CudaText::Generated) else {
        skip("claims about data on the virtual GPU");
        return None;
    };
    let module = Module::parse(&built.ptx).expect("PTX");
    let mut memory = Memory::new();
    let indices = at.iter().flat_map(|index| index.to_le_bytes()).collect();
    let values = (0u8..64).flat_map(|value| f32::from(value).to_le_bytes()).collect();
    let buffers = [("x", values), ("at", indices), ("y", vec![0; 256])];
    let args = buffers.map(|(name, bytes)| Arg::Buffer { buffer: memory.allocate(name, bytes), byte_offset: 0 });
    let launch = Launch {
        kernel: artifact.entry().to_string(),
        grid: [1, 1, 1],
        block: [64, 1, 1],
        dynamic_shared_bytes: 0,
        args: args.to_vec(),
    };
    Some(match vgpu::run(&module, &launch, &mut memory, &vgpu::Options::default()) {
        Ok(_) => Ok(()),
        Err(RunError::Fault(fault)) => Err(fault.kind),
        Err(other) => panic!("{other}"),
    })
}

#[test]
fn indices_that_differ_are_no_race() {
    let reversed: Vec<i32> = (0..64).rev().collect();
    assert!(run(&reversed).is_none_or(|ran| ran == Ok(())));
}

#[test]
fn indices_that_are_called_unique_and_are_not_are_a_race() {
    let mut twice: Vec<i32> = (0..64).collect();
    twice[40] = 3;
    assert!(run(&twice).is_none_or(|ran| ran == Err(FaultKind::Race)));
}
