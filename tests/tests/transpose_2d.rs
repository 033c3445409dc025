//! `transpose_2d` beside a transpose written by hand (`fixtures/cuda/transpose_2d.cu`), on the virtual GPU in one run:
//! both are right, and ours executes no more instructions.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::cuda::Request;
use tilewright::prelude::{DType, Target};
use tilewright::runtime::{CudaText, Device, HostTensor, run};
use tilewright::vgpu::{self, Arg, Launch, Memory, Module, Report, Space};
use tilewright_kernels::{Config, KernelEntry, find};
use tilewright_tests::toolchain::{package, skip, toolchain};

/// A kernel of the fixture: its name, rows and columns of a CTA's tile. All have 64 threads.
const BY_HAND: [(DType, &str, i64, i64); 5] = [
    (DType::B8, "transpose_b8", 128, 128),
    (DType::B16, "transpose_b16", 128, 64),
    (DType::B32, "transpose_b32", 64, 64),
    (DType::B64, "transpose_b64", 64, 32),
    (DType::B128, "transpose_b128", 32, 32),
];

fn entry() -> &'static KernelEntry {
    find("transpose_2d").expect("the kernel is in the library")
}

fn config(dtype: DType, m: i64, n: i64) -> Config {
    entry().config(Some(dtype), &[("m".to_string(), m), ("n".to_string(), n)]).expect("a configuration")
}

fn artifact(config: &Config, target: Target) -> Artifact {
    let artifact = compile((entry().build)(config), &Options::new(target)).expect("the kernel compiles");
    artifact.for_sizes(&entry().sizes(config)).expect("its sizes fit")
}

/// The transpose by hand: its output and what was counted.
fn by_hand(target: Target, input: &HostTensor, name: &str, (rows, cols): (i64, i64)) -> Option<(Vec<u8>, Report)> {
    let Ok(nvrtc) = toolchain().nvrtc(target.name()) else {
        skip(&format!("transpose_2d beside {name} {target}"));
        return None;
    };
    let source = std::fs::read_to_string(package().join("fixtures/cuda/transpose_2d.cu")).expect("the fixture");
    let request = Request { source: &source, name: "/tilewright/by_hand.cu", target: target.name(), options: &[] };
    let module = Module::parse(&nvrtc.compile(&request).expect("it compiles").ptx).expect("it parses");
    let (m, n) = (input.shape()[0], input.shape()[1]);
    let mut memory = Memory::new();
    let a = memory.allocate("a", input.bytes().to_vec());
    let b = memory.allocate_poison("b", input.bytes().len());
    let pointer = |buffer| Arg::Buffer { buffer, byte_offset: 0 };
    let size = |value: i64| Arg::Bytes((value as i32).to_le_bytes().to_vec());
    let launch = Launch {
        kernel: name.to_string(),
        grid: [((n + cols - 1) / cols) as u32, ((m + rows - 1) / rows) as u32, 1],
        block: [64, 1, 1],
        dynamic_shared_bytes: 0,
        args: vec![pointer(a), pointer(b), size(m), size(n)],
    };
    let report = vgpu::run(&module, &launch, &mut memory, &vgpu::Options::default()).expect("it runs");
    Some((memory.bytes(b).to_vec(), report))
}

/// Every sector that a warp touches in global memory is used whole, and no access to shared memory takes extra passes.
fn is_ideal(report: &Report) -> bool {
    report.accesses.iter().all(|access| match access.space {
        Space::Global => access.sectors == access.ideal_sectors,
        _ => access.wavefronts == access.ideal_wavefronts,
    })
}

#[test]
fn no_more_instructions_than_by_hand() {
    for target in Target::ALL {
        for (dtype, name, rows, cols) in BY_HAND {
            let config = config(dtype, 256, 512);
            let inputs = (entry().inputs)(&config);
            let Some((expected, hand)) = by_hand(*target, &inputs[0], name, (rows, cols)) else { return };
            let artifact = artifact(&config, *target);
            let built = toolchain().build(&artifact, &CudaText::Generated).expect("it compiles");
            let ours = run(&artifact, &built, &inputs, &Device::Virtual).expect("it runs");
            assert_eq!(ours.outputs[0].bytes(), expected, "{dtype} {target}");
            let report = ours.report.expect("counts");
            assert!(is_ideal(&report), "{dtype} {target}: {:?}", report.accesses);
            assert!(
                report.thread_instructions <= hand.thread_instructions,
                "{dtype} {target}: {} instructions, by hand {}",
                report.thread_instructions,
                hand.thread_instructions
            );
        }
    }
}
