//! The part of `bench` that times kernels of the library on a GPU, at sizes that do not fit into its caches.

use tilewright::compile::{Artifact, Parameter};
use tilewright::ir::tile::Direction;
use tilewright::prelude::*;
use tilewright::runtime::{Device, DeviceChoice, run};
use tilewright_kernels::{Config, KernelEntry};

use crate::bench_kernel::{built, configured};
use crate::exit::Exit;
use crate::measuring::Measuring;
use crate::terminal::fail;

/// What limits a kernel that is written well.
#[derive(Clone, Copy)]
enum Limit {
    /// The bandwidth of memory.
    Bandwidth,
    /// The tensor cores: twice the product of these sizes is the number of its operations, times this factor.
    Products(&'static [&'static str], f64),
}

/// A kernel, a dtype, sizes, and what limits it.
type Timed = (&'static str, DType, &'static [(&'static str, i64)], Limit);

use Limit::{Bandwidth, Products};

const MNK: &[&str] = &["m", "n", "k"];
/// Products of queries and keys, and of their weights and values.
const ATTENTION: &[&str] = &["heads", "group", "queries", "keys", "depth"];
const SQUARE: &[(&str, i64)] = &[("m", 4096), ("n", 4096), ("k", 4096)];
const LARGE_TILES: &[(&str, i64)] = &[("m", 4096), ("n", 4096), ("k", 4096), ("tile", 128), ("stages", 4)];

const RIGHT_TRANSPOSED: &[(&str, i64)] =
    &[("m", 4096), ("n", 4096), ("k", 4096), ("tile", 128), ("stages", 4), ("layout", 12)];

/// What is timed: each tensor that a kernel streams has 64 MiB or more.
const TIMED: &[Timed] = &[
    ("copy", F32, &[("n", 1 << 26)], Bandwidth),
    ("copy", F16, &[("n", 1 << 27)], Bandwidth),
    ("elementwise", F16, &[("rows", 16384), ("cols", 4096)], Bandwidth),
    ("bias_gelu", F16, &[("rows", 16384), ("cols", 4096)], Bandwidth),
    ("swiglu", F16, &[("n", 1 << 26)], Bandwidth),
    ("adamw", F32, &[("n", 1 << 25)], Bandwidth),
    ("dropout", F16, &[("n", 1 << 26)], Bandwidth),
    ("softmax", F32, &[("rows", 16384), ("cols", 2048)], Bandwidth),
    ("softmax", F32, &[("rows", 1024), ("cols", 50000)], Bandwidth),
    ("softmax", F32, &[("rows", 1024), ("cols", 50000), ("threads", 1024)], Bandwidth),
    ("layer_norm", F32, &[("rows", 16384), ("cols", 4096)], Bandwidth),
    ("layer_norm_grad", F16, &[("rows", 16384), ("cols", 2048)], Bandwidth),
    ("rms_norm", F32, &[("rows", 16384), ("cols", 4096)], Bandwidth),
    ("rms_norm_grad", F16, &[("rows", 16384), ("cols", 2048)], Bandwidth),
    ("cross_entropy", F16, &[("rows", 2048), ("cols", 32768)], Bandwidth),
    ("cross_entropy", F16, &[("rows", 2048), ("cols", 32768), ("threads", 512)], Bandwidth),
    ("cross_entropy_grad", F16, &[("rows", 2048), ("cols", 32768)], Bandwidth),
    ("row_sum", F32, &[("rows", 16384), ("cols", 2048)], Bandwidth),
    ("column_sum", F32, &[("rows", 16384), ("cols", 4096)], Bandwidth),
    ("argmax", F32, &[("rows", 16384), ("cols", 4096)], Bandwidth),
    ("topk", F32, &[("rows", 16384), ("cols", 2048)], Bandwidth),
    ("cumsum", F32, &[("rows", 16384), ("cols", 4096)], Bandwidth),
    ("histogram", U8, &[("n", 1 << 28), ("ctas", 1056)], Bandwidth),
    ("transpose_2d", B16, &[("m", 8192), ("n", 8192)], Bandwidth),
    ("transpose_2d", B32, &[("m", 8192), ("n", 8192)], Bandwidth),
    ("transpose_2d", B16, &[("m", 8191), ("n", 8191)], Bandwidth),
    ("transpose_nd", F16, &[("a", 64), ("b", 1024), ("c", 1024)], Bandwidth),
    ("embedding", F16, &[("tokens", 65536), ("words", 50000), ("dim", 1024)], Bandwidth),
    ("embedding_grad", F32, &[("tokens", 32768), ("words", 50000), ("dim", 1024)], Bandwidth),
    ("rope_halves", F16, &[("tokens", 65536)], Bandwidth),
    ("rope_pairs", F16, &[("tokens", 65536)], Bandwidth),
    ("quantize_int8", F16, &[("rows", 16384), ("cols", 4096)], Bandwidth),
    ("dequantize_int4", F16, &[("rows", 16384), ("bytes", 4096)], Bandwidth),
    ("gemv", F16, &[("rows", 16384), ("cols", 8192)], Bandwidth),
    ("ssm_scan", F32, &[("batch", 8), ("length", 2048), ("channels", 2048)], Bandwidth),
    (
        "attention_decode",
        F16,
        &[("batch", 64), ("heads", 32), ("depth", 128), ("pages", 2048), ("most", 32), ("splits", 4)],
        Bandwidth,
    ),
    ("gemm", F16, SQUARE, Products(MNK, 1.0)),
    ("gemm", F16, LARGE_TILES, Products(MNK, 1.0)),
    ("gemm", I8, LARGE_TILES, Products(MNK, 1.0)),
    ("gemm", I8, RIGHT_TRANSPOSED, Products(MNK, 1.0)),
    ("gemm", F32, LARGE_TILES, Products(MNK, 1.0)),
    ("gemm", F32, RIGHT_TRANSPOSED, Products(MNK, 1.0)),
    (
        "batched_gemm",
        F16,
        &[("batch", 64), ("m", 1024), ("n", 1024), ("k", 1024)],
        Products(&["batch", "m", "n", "k"], 1.0),
    ),
    ("split_k_gemm", F16, &[("m", 512), ("n", 512), ("k", 32768), ("splits", 16)], Products(MNK, 1.0)),
    ("attention", F16, &[("heads", 32), ("queries", 4096), ("keys", 4096)], Products(ATTENTION, 2.0)),
    ("attention", F16, &[("heads", 32), ("queries", 4096), ("keys", 4096), ("depth", 128)], Products(ATTENTION, 2.0)),
    ("attention", F16, &[("heads", 32), ("queries", 4096), ("keys", 4096), ("causal", 1)], Products(ATTENTION, 1.0)),
];

/// The times of all, as a Markdown table.
pub(crate) fn table(measuring: &Measuring) -> Result<String, Exit> {
    let (device, target) = gpu()?;
    let mut table = format!("{device}, {target}\n\n| kernel | ms | rate |\n|---|---|---|");
    for timed in TIMED {
        table += &format!("\n{}", row(measuring, timed, &device, target)?);
    }
    Ok(table)
}

/// A GPU, and the newest target that it runs.
fn gpu() -> Result<(Device, Target), Exit> {
    let mut found = Target::ALL.iter().map(|target| (Device::choose(DeviceChoice::Gpu, target.name()), *target));
    let runs = found.find_map(|(device, target)| device.ok().map(|device| (device, target)));
    runs.ok_or_else(|| fail(Exit::Unsupported, &"no GPU here can run any target"))
}

fn row(measuring: &Measuring, timed: &Timed, device: &Device, target: Target) -> Result<String, Exit> {
    let (name, dtype, sizes, limit) = timed;
    let (entry, config) = configured(name, Some(*dtype), sizes)?;
    let listed: String = sizes.iter().map(|(name, size)| format!(" {name}={size}")).collect();
    let timed = measuring.elsewhere("kernels on a GPU", || milliseconds(entry, &config, device, target));
    let (milliseconds, bytes) = timed?;
    let rate = match limit {
        Bandwidth => format!("{:.0} GB/s", bytes / milliseconds / 1e6),
        Products(sizes, factor) => {
            let product: f64 = sizes.iter().map(|size| config.size(size) as f64).product();
            let operations = if dtype.is_float() { "TFLOP/s" } else { "TOP/s" };
            format!("{:.0} {operations}", 2.0 * factor * product / milliseconds / 1e9)
        }
    };
    Ok(format!("| `{name} {dtype}{listed}` | {milliseconds:.3} | {rate} |"))
}

/// The time of a kernel in milliseconds, and the bytes of its tensors.
fn milliseconds(entry: &KernelEntry, config: &Config, device: &Device, target: Target) -> Result<(f64, f64), Exit> {
    let (artifact, built) = built(entry, config, target)?;
    let failed = |failure| fail(Exit::Fault, &failure);
    let run = run(&artifact, &built, &(entry.inputs)(config), device).map_err(failed)?;
    let timing = run.timing.ok_or_else(|| fail(Exit::Unsupported, &"only a GPU has times"))?;
    Ok((timing.milliseconds, bytes(&artifact)))
}

/// The bytes of all tensors; those of a tensor that is updated in place count twice.
fn bytes(artifact: &Artifact) -> f64 {
    let of = |parameter: &Parameter| {
        let times = if parameter.direction == Direction::InOut { 2 } else { 1 };
        (times * parameter.memory_elements() * parameter.dtype.bytes()) as f64
    };
    artifact.parameters().iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use tilewright::compile::{Options, compile};

    use super::*;

    #[test]
    fn every_timed_kernel_compiles_for_every_target() {
        for timed in TIMED {
            let (name, dtype, sizes, _) = timed;
            let (entry, config) = configured(name, Some(*dtype), sizes).expect("a configuration of the library");
            for target in Target::ALL {
                let artifact = compile((entry.build)(&config, *target), &Options::new(*target));
                let artifact = artifact.and_then(|artifact| artifact.for_sizes(&entry.sizes(&config)));
                assert!(artifact.is_ok(), "{} {config} {target}: {artifact:?}", timed.0);
            }
        }
    }

    #[test]
    fn a_tensor_that_is_updated_is_read_and_written() {
        let (entry, config) = configured("adamw", Some(F32), &[("n", 1024)]).expect("a configuration");
        let artifact = compile((entry.build)(&config, Target::Sm90a), &Options::new(Target::Sm90a));
        let artifact = artifact.and_then(|artifact| artifact.for_sizes(&entry.sizes(&config))).expect("it compiles");
        // Parameters and both moments are updated; gradients are read.
        assert_eq!(bytes(&artifact), 7.0 * 4.0 * 1024.0);
    }
}
