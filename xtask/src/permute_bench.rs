//! The `permute_layout` part of `bench`: how long plans take.

use tilewright::layout::TableLayout;
use tilewright::prelude::*;

use crate::bench_kernel::{compile_built, compile_kernel};
use crate::exit::Exit;
use crate::figure::{Figure, Goal};
use crate::measuring::Measuring;
use crate::resources::median_milliseconds;
use crate::terminal::fail;

pub(crate) fn figures(measuring: &Measuring) -> Result<Vec<Figure>, Exit> {
    let mut figures = Vec::new();
    for (dtype, name) in [
        (B8, "plans of a transpose, 32 x 32 of 1 byte"),
        (B16, "plans of a transpose, 32 x 32 of 2 bytes"),
        (B32, "plans of a transpose, 32 x 32 of 4 bytes"),
        (B64, "plans of a transpose, 32 x 32 of 8 bytes"),
        (B128, "plans of a transpose, 32 x 32 of 16 bytes"),
    ] {
        let plan = || median_milliseconds(51, || compile_kernel(|| transpose(dtype), None).map(|_| ()));
        figures.push(measuring.figure(name, "ms", Goal::Below(2.0), plan)?);
    }
    figures.extend(scheduler(measuring)?);
    Ok(figures)
}

/// Schedules of elements that move to shuffled positions.
fn scheduler(measuring: &Measuring) -> Result<Vec<Figure>, Exit> {
    let figure = |name, elements, dtype, goal| {
        let schedule = || compile_built(|| shuffled(elements, dtype), Some("warp_scheduled")).map(|_| ());
        measuring.figure(name, "ms", goal, || median_milliseconds(21, schedule))
    };
    let small = figure("scheduler, 256 shuffled elements of 4 bytes", 256, B32, Goal::Base)?;
    let middle = figure("scheduler, 1,024 shuffled elements of 4 bytes", 1024, B32, Goal::Below(10.0))?;
    let in_proportion = Goal::Linear(4.0 * middle.value);
    let large = figure("scheduler, 4,096 shuffled elements of 4 bytes", 4096, B32, in_proportion)?;
    let narrow = figure("scheduler, 1,024 shuffled elements of 1 byte", 1024, B8, Goal::Below(10.0))?;
    Ok(vec![small, middle, large, narrow])
}

/// A tile transposed in place, planned and lowered.
fn transpose(dtype: DType) -> Kernel {
    kernel("transpose", |k| {
        let tile = k.shared("tile", dtype, [32, 32]);
        let columns = k.view("columns", tile, S([32, 32], [1, 32]));
        k.warp().permute_layout(columns, tile);
    })
}

/// A tile whose elements move to shuffled positions.
fn shuffled(elements: i64, dtype: DType) -> Result<Kernel, Exit> {
    let mut state = 7u64;
    let mut places: Vec<i64> = (0..elements).collect();
    for at in (1..places.len()).rev() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        places.swap(at, (state >> 33) as usize % (at + 1));
    }
    let table = TableLayout::of_positions(&M, &places).map_err(|error| fail(Exit::BadInput, &error))?;
    Ok(kernel("shuffled", |k| {
        let from = k.shared("from", dtype, [elements]);
        let to = k.shared("to", dtype, table);
        k.warp().permute_layout(to, from);
    }))
}
