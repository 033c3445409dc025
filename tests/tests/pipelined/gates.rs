//! What the machine code of the library's `matmul` has to be like, read from SASS; on a machine without the disassembler, only PTX is
//! read; and what its accesses to memory have to be like, counted by the virtual GPU.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{Device, HostTensor, run_watched};
use tilewright::vgpu;
use tilewright_kernels::{Activation, Epilogue, MatmulConfig, MatmulShape, Scheduler};
use tilewright_tests::machine_code::{count, disassemble, find, gaps};

use super::{built_or_skipped, number};

const SHAPE: MatmulShape = MatmulShape::new([4096; 3]);

/// Configurations of all kinds, with the most instructions between two products of a stage. A product of `wgmma` takes 64 cycles or more;
/// its sums are in registers, so that the code between products also is that of the loop around them.
fn configurations() -> Vec<(MatmulConfig, usize)> {
    let whole = Epilogue { scale: true, bias: true, activation: Activation::Gelu, residual: true };
    let blackwell = MatmulConfig::new(Target::Sm100a, BF16);
    let hopper = MatmulConfig::new(Target::Sm90a, BF16);
    let of_blackwell = [
        blackwell,
        MatmulConfig { columns: 256, stages: 3, ..blackwell },
        MatmulConfig { columns: 256, cluster: 2, ..blackwell },
        MatmulConfig { columns: 240, stages: 3, cluster: 4, ..blackwell },
        MatmulConfig { epilogue: whole, stages: 3, ..blackwell },
        MatmulConfig { transposed: [true, false], ..blackwell },
        MatmulConfig { factor: E4M3, ..blackwell },
        MatmulConfig { factor: I8, result: I32, stages: 3, ..blackwell },
        MatmulConfig { columns: 32, stages: 8, swapped: true, epilogue: whole, ..blackwell },
        MatmulConfig { columns: 64, swapped: true, splits: 4, result: F32, ..blackwell },
        MatmulConfig { scheduler: Scheduler::Claimed, ..blackwell },
        MatmulConfig { scheduler: Scheduler::Claimed, columns: 256, cluster: 2, ..blackwell },
    ];
    let of_hopper = [
        hopper,
        MatmulConfig { columns: 224, stages: 3, cluster: 2, ..hopper },
        MatmulConfig { epilogue: whole, stages: 3, ..hopper },
        MatmulConfig { factor: E4M3, result: F32, stages: 3, ..hopper },
        MatmulConfig { columns: 32, stages: 8, swapped: true, epilogue: whole, ..hopper },
        MatmulConfig { columns: 64, splits: 4, result: F32, ..hopper },
        MatmulConfig { turns: true, cluster: 2, ..hopper },
        MatmulConfig { turns: true, epilogue: whole, stages: 3, ..hopper },
    ];
    of_blackwell.map(|config| (config, 2)).into_iter().chain(of_hopper.map(|config| (config, 12))).collect()
}

/// The instructions of the copies to shared memory, the products, the reads of sums, and the copies of the result; first in SASS, then
/// in PTX.
fn of_roles(config: &MatmulConfig) -> [[&'static str; 2]; 4] {
    let [products, sums] = match config.target {
        Target::Sm100a => [["MMA", "tcgen05.mma."], ["LDTM", "tcgen05.ld."]],
        Target::Sm90a => [["MMA", "wgmma.mma_async"], ["MMA", "wgmma.wait_group"]],
    };
    let loads = ["UTMALDG", "cp.async.bulk.tensor.2d.shared"];
    let stores = match config.splits {
        1 => ["UTMASTG", "cp.async.bulk.tensor.2d.global"],
        _ => ["UTMAREDG", "cp.reduce.async.bulk.tensor.2d.global"],
    };
    [loads, products, sums, stores]
}

#[test]
fn machine_code_of_products() {
    println!("{:>5} {:>9} {:>7} {:>9}  configuration", "most", "BRA.U.ANY", "spills", "registers");
    for (config, most) in configurations() {
        let artifact = compile(config.kernel(SHAPE), &Options::new(config.target)).expect("a right configuration");
        let Some(built) = built_or_skipped(&artifact, "machine code of products") else { return };
        assert_eq!(built.warnings, [], "{config}");
        let resources = built.resources.as_ref().expect("resources");
        assert_eq!((resources.spill_store_bytes, resources.spill_load_bytes, resources.stack_bytes), (0, 0, 0));
        for [_, ptx] in of_roles(&config) {
            // Tiles in blocks of columns are boxes of three dimensions.
            let has = ["2d", "3d"].iter().any(|rank| built.ptx.contains(&ptx.replace("2d", rank)));
            assert!(has, "{config}: no {ptx}");
        }
        if find().is_none() {
            continue;
        }
        let text = disassemble(&built.cubin).expect("machine code");
        let of = |opcode: &str| count(&text, artifact.entry(), opcode);
        for [sass, _] in of_roles(&config) {
            assert!(of(sass) > 0, "{config}: no {sass}");
        }
        let between = gaps(&text, artifact.entry(), &["MMA"]);
        let longest = between.iter().copied().max().expect("several products of a stage");
        println!(
            "{longest:>5} {:>9} {:>7} {:>9}  {config}",
            of("BRA.U.ANY"),
            of("STL") + of("LDL"),
            resources.registers
        );
        assert!(longest <= most, "{config}: {between:?}");
        assert_eq!((of("BRA.U.ANY"), of("STL"), of("LDL")), (0, 0, 0), "{config}");
    }
}

/// Inputs of a configuration, without regard to the result: tensors, and the number that sums are multiplied by.
fn inputs(artifact: &Artifact, config: &MatmulConfig) -> Vec<HostTensor> {
    let tensors = artifact.parameters().iter().filter(|parameter| parameter.direction.takes_values());
    let tensors = tensors.map(|parameter| HostTensor::from_f64(parameter.dtype, &parameter.shape, number));
    let scale = config.epilogue.scale.then(|| HostTensor::from_f64(F32, &[1], |_| 0.5));
    tensors.chain(scale).collect()
}

/// Where tiles are whole, no access takes more wavefronts or sectors than its bytes need, and more bytes are on their way than
/// latency hides: 1.5 times Little's number, in configurations for large products.
///
/// Sums of f32 of `wgmma` take two wavefronts instead of one: 16 threads store 8 bytes each, 32 bytes of 4 rows, and the swizzle of 128
/// bytes leaves two of these rows in the same banks. Only boxes of 32 bytes would have no conflicts, with four times as many rows for the
/// copy engine.
#[test]
fn accesses_of_products_are_ideal() {
    println!("{:>10} {:>8} {:>6}  configuration", "wavefronts", "sectors", "bytes");
    for (config, _) in configurations() {
        let sides = [256 * config.cluster.min(2), 2 * config.columns];
        let [m, n] = if config.swapped { [sides[1], sides[0]] } else { sides };
        let config = MatmulConfig { clusters: 2, ..config };
        let shape = MatmulShape::new([m, n, 2 * config.step() * config.splits]);
        let artifact = compile(config.kernel(shape), &Options::new(config.target)).expect("a right configuration");
        let Some(built) = built_or_skipped(&artifact, "accesses of products") else { return };
        let bound = artifact.for_sizes(&[("m", shape.m), ("n", shape.n), ("k", shape.k)]).expect("sizes");
        let options = vgpu::Options::default();
        let run = run_watched(&bound, &built, &inputs(&bound, &config), &Device::Virtual, &options, &mut |_| ());
        let report = run.expect("it runs").report.expect("a report");
        let ways = if config.target == Target::Sm90a && config.result == F32 { 2 } else { 1 };
        let is_wasteful = |access: &&vgpu::AccessCount| {
            access.wavefronts > ways * access.ideal_wavefronts || access.sectors > access.ideal_sectors
        };
        let wasteful = report.accesses.iter().find(is_wasteful);
        assert_eq!(wasteful, None, "{config}");
        let wavefronts: u64 = report.accesses.iter().map(|access| access.wavefronts).sum();
        let sectors: u64 = report.accesses.iter().map(|access| access.sectors).sum();
        let in_flight = config.cost(SHAPE).in_flight;
        println!("{wavefronts:>10} {sectors:>8} {in_flight:>6.2}  {config}");
        assert!(config.columns < 128 || in_flight >= 1.5, "{config}: {in_flight}");
    }
}
