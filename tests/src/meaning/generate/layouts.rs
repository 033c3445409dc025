//! Random layouts of shared memory and fragments.

use tilewright::dsl::IntoLayout;
use tilewright::layout::LayoutError;
use tilewright::prelude::*;

use crate::rng::Rng;

/// A shape and a layout, as a user may specify them.
#[derive(Clone)]
pub(super) struct Laid {
    shape: Vec<i64>,
    layout: Layout,
}

impl IntoLayout for Laid {
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        Ok((self.shape, self.layout))
    }
}

/// A shape whose layout is inferred.
pub(super) struct Open(pub(super) Vec<i64>);

impl IntoLayout for Open {
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        self.0.into_layout()
    }

    fn is_shape(&self) -> bool {
        true
    }
}

/// A narrower dtype, and how many of its elements fit in one element.
pub(super) fn narrower(dtype: DType) -> (DType, i64) {
    match dtype.bytes() {
        8 => (I32, 2),
        4 => (U16, 2),
        2 => (U8, 2),
        _ => (I8, 1),
    }
}

/// Padded rows, column-major order, or a swizzle; `None` for row-major.
pub(super) fn memory_layout(rng: &mut Rng, shape: Vec<i64>) -> Option<Laid> {
    let layout = match (&shape[..], rng.below(5)) {
        ([rows, columns], 0) => S([*rows, *columns], [*columns + 1, 1]).build().ok()?.into(),
        ([rows, columns], 1) => S([*rows, *columns], [1, *rows]).build().ok()?.into(),
        (_, 2) => swizzled(rng, shape.iter().product())?,
        _ => return None,
    };
    Some(Laid { shape, layout })
}

/// A swizzle over `size` contiguous elements, if they are a multiple of its period.
fn swizzled(rng: &mut Rng, size: i64) -> Option<Layout> {
    let (stay, turned) = (rng.within(0..=3), rng.within(1..=3));
    let apart = rng.within(turned..=4);
    let is_whole = size % (1 << (stay + turned + apart)) == 0;
    let inner = if rng.percent(20) { ",inner=false" } else { "" };
    let text = format!("swizzle(M={stay},B={turned},S={apart}{inner}) o S[{size}:1]");
    is_whole.then(|| text.parse().ok()).flatten()
}

/// `stages` consecutive tiles: under one swizzle, padded, or row-major.
pub(super) fn staged_layout(rng: &mut Rng, stages: i64, tile: Vec<i64>) -> Option<Laid> {
    let size: i64 = tile.iter().product();
    let shape: Vec<i64> = std::iter::once(stages).chain(tile).collect();
    let layout = match rng.below(3) {
        0 => swizzled(rng, stages * size)?,
        1 => S([stages, size], [size + rng.within(0..=3) * 8, 1]).build().ok()?.into(),
        _ => return None,
    };
    Some(Laid { shape, layout })
}

/// Elements distributed over lanes: on one warp, replicated over all warps, or without specifying warps.
fn by_lanes(rng: &mut Rng, shape: Vec<i64>, threads: i64) -> Option<Laid> {
    let count: i64 = shape.iter().product();
    let across: Vec<i64> = (1..=count.min(threads.min(32))).filter(|across| count % across == 0).collect();
    let lanes = *rng.pick(&across);
    let warps = (threads + 31) / 32;
    let rest = match rng.below(4) {
        0 => String::new(),
        1 => format!(" + {}@warpid", rng.within(0..=warps - 1)),
        2 => format!(" + R[{warps}:1@warpid]"),
        _ => " + R[1:1@warpid]".to_string(),
    };
    let layout = format!("S[({lanes},{}):(1@laneid,1@reg)]{rest}", count / lanes);
    Some(Laid { shape, layout: layout.parse().ok()? })
}

/// A row of `columns` elements per warp, distributed over its lanes.
pub(super) fn own_of_warps(rng: &mut Rng, warps: i64, columns: i64) -> Option<Laid> {
    let across: Vec<i64> = (1..=columns.min(32)).filter(|across| columns % across == 0).collect();
    let lanes = *rng.pick(&across);
    let copies = if rng.percent(40) { 32 / lanes } else { 1 };
    let each = columns / lanes;
    let layout = format!("S[({warps},{lanes},{each}):(1@warpid,1@laneid,1@reg)] + R[{copies}:{lanes}@laneid]");
    Some(Laid { shape: vec![warps, columns], layout: layout.parse().ok()? })
}

/// Elements distributed over threads, in vectors, with copies on other threads and in other registers.
pub(super) fn fragment_layout(rng: &mut Rng, shape: Vec<i64>, threads: i64) -> Option<Laid> {
    let count: i64 = shape.iter().product();
    if rng.percent(25) {
        return by_lanes(rng, shape, threads);
    }
    let across: Vec<i64> = (1..=count.min(threads)).filter(|across| count % across == 0).collect();
    let lanes = *rng.pick(&across);
    let each = count / lanes;
    let vector: Vec<i64> = (1..=each).filter(|vector| each % vector == 0).collect();
    let vector = *rng.pick(&vector);
    let copies = (threads / lanes).max(1);
    let copies = if rng.percent(60) { copies } else { 1 };
    let spread = if lanes > 1 { rng.within(1..=(threads / lanes / copies).max(1)) } else { 1 };
    let again = if rng.percent(12) { 2 } else { 1 };
    let layout = format!(
        "S[({},{lanes},{vector}):({vector}@reg,{spread}@tx,1@reg)] + R[({copies},{again}):({}@tx,{each}@reg)]",
        each / vector,
        lanes * spread
    );
    let layout = layout.parse::<Layout>().ok()?;
    Some(Laid { shape, layout })
}
