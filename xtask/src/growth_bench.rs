//! The part of `bench` about what once grew without bound: nested loops, values that are used often, and handles.

use tilewright::prelude::*;

use crate::bench_kernel::compile_kernel;
use crate::exit::Exit;
use crate::figure::{Figure, Goal};
use crate::measuring::Measuring;
use crate::resources::{median_milliseconds, memory};
use crate::terminal::fail;

const RUNS: usize = 21;

pub(crate) fn figures(measuring: &Measuring) -> Result<Vec<Figure>, Exit> {
    let compiled = |kernel: fn() -> Kernel| median_milliseconds(RUNS, || compile_kernel(kernel, None).map(|_| ()));
    Ok(vec![
        measuring.figure("40 nested loops, DSL to CUDA text", "ms", Goal::Below(10.0), || compiled(nested))?,
        measuring
            .figure("a value doubled 60 times, DSL to CUDA text", "ms", Goal::Below(10.0), || compiled(doubled))?,
        measuring.figure("memory after 100000 kernels", "x that after 1000", Goal::Below(1.05), memory_growth)?,
    ])
}

/// 40 nested loops.
fn nested() -> Kernel {
    fn inside(k: &mut KernelBuilder, s: Buffer, depth: usize) {
        match depth {
            0 => {
                k.parallel([64], |k, [i]| k.store(s, (i,), s.at((i,)) + 1.0));
            }
            _ => k.serial(&format!("t{depth}"), 0..2, |k, _| inside(k, s, depth - 1)),
        }
    }
    kernel("nested", |k| {
        let y = k.output("y", F32, [64]);
        let s = k.shared("s", F32, [64]);
        k.threads(64);
        k.fill(s, 0.0);
        inside(k, s, 40);
        k.copy(y, s);
    })
}

/// A value that is doubled 60 times. Written out, the sum would have 2^60 terms.
fn doubled() -> Kernel {
    kernel("doubled", |k| {
        let (x, y) = (k.input("x", U32, [64]), k.output("y", U32, [64]));
        k.threads(64);
        k.parallel([64], |k, [i]| {
            let value = (0..60).fold(x.at((i,)), |value, _| value + value);
            k.store(y, (i,), value)
        });
    })
}

/// The memory of this process after many kernels over that after few, all of them dropped.
fn memory_growth() -> Result<f64, Exit> {
    let resident = || memory("VmRSS:").ok_or_else(|| fail(Exit::Unsupported, &"the system does not report memory"));
    (0..1000).for_each(|_| drop(doubled()));
    let few = resident()?;
    (0..99_000).for_each(|_| drop(doubled()));
    Ok(resident()? / few)
}
