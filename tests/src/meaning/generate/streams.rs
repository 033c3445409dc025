//! Random kernels of one pipelined loop, whose tiles the copy engine can fill more often than those of other kernels.

use tilewright::prelude::*;

use super::layouts::memory_layout;
use super::maker::{DTYPES, role_name};
use crate::rng::Rng;

/// A tensor, and the tile of it that an iteration reads.
struct Stream<const N: usize> {
    tensor: Buffer,
    tile: Buffer,
    extents: [i64; N],
    /// Where the tile begins: so many elements, so many more in each iteration, and in each of the loop around.
    starts: [[i64; 3]; N],
}

/// Sums of the tiles that a pipelined loop goes through, read in the opposite order by other threads.
pub(super) fn random_stream(rng: &mut Rng) -> Kernel {
    match rng.below(5) {
        0 => sums::<1>(rng),
        1 => sums::<3>(rng),
        2 => sums::<4>(rng),
        _ => sums::<2>(rng),
    }
}

fn sums<const N: usize>(rng: &mut Rng) -> Kernel {
    kernel("stream", |k| {
        let threads = *rng.pick(&[32, 32, 48, 64, 96, 128, 16]);
        k.threads(threads);
        // A role that copies and one that adds, or all threads do both.
        let warps = threads / 32;
        let roles =
            (warps > 1 && rng.percent(50)).then(|| rng.within(1..=warps - 1)).map(|first| [first, warps - first]);
        let dtype = *rng.pick(&DTYPES);
        let unit = 16 / dtype.bytes();
        let mut extents = [0; N].map(|_| *rng.pick(&[1, 1, 2, 3, 4, 8]));
        extents[N - 1] = unit * *rng.pick(&[1, 2, 4, 4, 8]);
        let size = rng.percent(40).then(|| k.size("n").multiple_of(*rng.pick(&[1, unit])).max(rng.within(16..=40)));
        let count = rng.within(1..=2);
        let streams: Vec<Stream<N>> = (0..count).map(|at| Stream::random(k, rng, dtype, extents, at, size)).collect();
        let y = k.output("y", dtype, extents);
        let sum = k.fragment("sum", dtype, extents);
        in_role(k, roles, 1, |k| _ = k.fill(sum, 0.0));
        let trips = *rng.pick(&[0, 1, 2, 3, 4, 5, 8]);
        let stages = *rng.pick(&[2, 2, 3, 3, 4, 6]);
        let rows = rng.within(1..=3);
        let around = rng.below(4);
        let body = |k: &mut KernelBuilder, row: Expr| {
            let end = match size {
                Some(n) if rng.percent(40) => n.ceil_div(8),
                _ => Expr::from(trips),
            };
            let first = rng.within(0..=2);
            let counted = (Expr::from(first)..end + first).step(*rng.pick(&[1, 1, 1, 2]));
            k.pipelined("t", counted, stages, |k, t| {
                in_role(k, roles, 0, |k| streams.iter().for_each(|stream| stream.fill(k, row, t)));
                let add = |k: &mut Elements, here: [Expr; N]| {
                    let opposite: [Expr; N] = std::array::from_fn(|at| extents[at] - 1 - here[at]);
                    let all = streams.iter().map(|stream| stream.tile.at(opposite));
                    let all = all.fold(sum.at(here), |all, one| all + one);
                    k.store(sum, here, all);
                };
                in_role(k, roles, 1, |k| _ = k.parallel(extents, add));
            });
        };
        match around {
            0 => k.serial("row", 0..rows, body),
            1 => unrolled(k, rows, body),
            _ => once(k, body),
        }
        in_role(k, roles, 1, |k| _ = k.copy(y, sum));
    })
}

/// Statements of one of two roles with so many warps, if there are roles.
pub(super) fn in_role(
    k: &mut KernelBuilder,
    roles: Option<[i64; 2]>,
    role: usize,
    add: impl FnOnce(&mut KernelBuilder),
) {
    match roles {
        None => add(k),
        Some(warps) => k.role(&role_name(role), warps[role], add),
    }
}

fn unrolled(k: &mut KernelBuilder, rows: i64, body: impl FnOnce(&mut KernelBuilder, Expr)) {
    k.unroll("row", 0..rows, body);
}

fn once(k: &mut KernelBuilder, body: impl FnOnce(&mut KernelBuilder, Expr)) {
    body(k, Expr::from(0));
}

impl<const N: usize> Stream<N> {
    fn random(
        k: &mut KernelBuilder,
        rng: &mut Rng,
        dtype: DType,
        extents: [i64; N],
        number: i64,
        size: Option<Size>,
    ) -> Stream<N> {
        let mut shape = extents.map(|extent| extent * rng.within(1..=3) + rng.within(0..=2));
        let unit = if rng.percent(80) { 16 / dtype.bytes() } else { 1 };
        shape[N - 1] = (shape[N - 1] + unit - 1) / unit * unit;
        let name = format!("x{number}");
        let tensor = match (size, &shape[..]) {
            (Some(n), [_]) if rng.percent(60) => k.input(&name, dtype, (n,)),
            (Some(n), [_, columns]) if rng.percent(40) => k.input(&name, dtype, (n, *columns)),
            (Some(n), [rows, _]) if rng.percent(60) => k.input(&name, dtype, (*rows, n)),
            _ => k.input(&name, dtype, shape),
        };
        let (name, of_tile) = (format!("tile{number}"), extents.to_vec());
        let laid_out = if N == 2 { memory_layout(rng, of_tile.clone()) } else { None };
        let tile = match laid_out {
            Some(layout) => k.shared(&name, dtype, layout),
            None => k.shared(&name, dtype, of_tile),
        };
        let start = |extent: &i64| {
            let step = *rng.pick(&[0, 1, *extent, *extent]);
            [rng.within(0..=3), step, rng.within(0..=2) * extent]
        };
        let mut starts: Vec<[i64; 3]> = extents.iter().map(start).collect();
        starts[N - 1][0] *= *rng.pick(&[0, 1, unit]);
        Stream { tensor, tile, extents, starts: std::array::from_fn(|at| starts[at]) }
    }

    /// Fills the tile; what lies beyond the edge of the tensor is 0.
    fn fill(&self, k: &mut KernelBuilder, row: Expr, t: Expr) {
        let start = |dimension: usize| {
            let [first, step, around] = self.starts[dimension];
            t * step + row * around + first
        };
        k.parallel(self.extents, |k, here| {
            let from: [Expr; N] = std::array::from_fn(|at| start(at) + here[at]);
            k.store(self.tile, here, self.tensor.at(from));
        });
    }
}
