//! `tune`: ranks the configurations of a product by their predicted cost.

use clap::Args;
use tilewright_kernels::{Config, Cost, Machine, MatmulConfig, MatmulShape};

use crate::exit::Exit;
use crate::request::KernelArguments;
use crate::terminal::print_error;

/// Arguments of `tune`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    kernel: KernelArguments,
    /// How many of the best configurations are shown.
    #[arg(long, default_value_t = 8)]
    best: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    match ranking(arguments) {
        Ok(lines) => {
            lines.iter().for_each(|line| say!("{line}"));
            Exit::Done
        }
        Err(text) => {
            print_error(&text);
            Exit::BadInput
        }
    }
}

fn ranking(arguments: &Arguments) -> Result<Vec<String>, String> {
    let (entry, config, target) = arguments.kernel.resolve()?;
    if entry.name != "matmul" {
        return Err(format!("the kernel `{}` has no model of its costs; `matmul` has one", entry.name));
    }
    let (product, shape) = (MatmulConfig::of(&config, target), MatmulShape::of(&config));
    let ranked = product.ranked(shape);
    let Some((best, _)) = ranked.first() else {
        let why = against(product);
        return Err(format!(
            "no configuration multiplies {} on {target}: {why}; the kernel `matmul_fallback` computes this product",
            product.factor
        ));
    };
    let machine = Machine::of(target);
    let mut lines = vec![
        format!("predicted for {} ({})", machine.name, machine.source),
        format!("{:>9} {:>8} {:>6} {:>5} {:>9}  {}", "us", "TFLOP/s", "peak %", "waves", "bound", "configuration"),
    ];
    // Of those with the same costs, the first one stands for all.
    let mut shown = ranked.clone();
    shown.dedup_by(|(_, cost), (_, before)| cost == before);
    shown.truncate(arguments.best.max(1));
    lines.extend(shown.iter().map(|(config, cost)| line(config, cost, shape, &machine)));
    lines.push(format!("{} configurations in all; to run the best:", ranked.len()));
    lines.push(format!("cargo xtask run-kernel matmul {}", flags(best, &config)));
    Ok(lines)
}

fn line(config: &MatmulConfig, cost: &Cost, shape: MatmulShape, machine: &Machine) -> String {
    let rate = shape.operations() / cost.seconds;
    let of_peak = 100.0 * rate / machine.peak(config.factor);
    let (micros, rate) = (cost.seconds * 1e6, rate / 1e12);
    format!("{micros:>9.1} {rate:>8.1} {of_peak:>6.1} {:>5} {:>9}  {config}", cost.waves, cost.bound().name())
}

/// What is against a configuration with few columns and stages.
fn against(product: MatmulConfig) -> String {
    let least = MatmulConfig { columns: 32, stages: 1, cluster: 1, ..product };
    let limits = least.check().err().unwrap_or_default();
    limits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The arguments that build a configuration.
fn flags(config: &MatmulConfig, of: &Config) -> String {
    let MatmulShape { batch, m, n, k, leading } = MatmulShape::of(of);
    let leading = leading.map(|rows| ["lda", "ldb", "ldc"].into_iter().zip(rows));
    let layout = config.transposed.into_iter().fold(0, |digits, is_turned| digits * 10 + 1 + i64::from(is_turned));
    let sizes = [
        ("batch", batch),
        ("m", m),
        ("n", n),
        ("k", k),
        ("layout", layout),
        ("columns", config.columns),
        ("stages", config.stages),
        ("cluster", config.cluster),
        ("clusters", config.clusters),
        ("group", config.group),
        ("swapped", 1 + i64::from(config.swapped)),
        ("turns", 1 + i64::from(config.turns)),
        ("splits", config.splits),
    ];
    // The epilogue and the result are those that were asked for.
    let asked = ["epilogue", "result", "sums", "scheduler"].map(|name| (name, of.size(name)));
    let sizes = sizes
        .into_iter()
        .chain(asked)
        .chain(leading.into_iter().flatten())
        .map(|(name, value)| format!("--shape {name}={value}"))
        .collect::<Vec<_>>()
        .join(" ");
    format!("--target {} --dtype {} {sizes}", config.target, config.factor)
}
