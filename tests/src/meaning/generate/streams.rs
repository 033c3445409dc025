//! Random kernels of one pipelined loop, whose tiles the copy engine can fill more often than those of other kernels.

use tilewright::prelude::*;

use super::tiles::{Setting, Starts, in_role};
use crate::rng::Rng;

/// A tensor, and the tile of it that an iteration reads.
struct Stream<const N: usize> {
    tensor: Buffer,
    tile: Buffer,
    extents: [i64; N],
    /// Where the tile begins.
    starts: Starts<N>,
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
        // A role that copies and one that adds, or all threads do both.
        let setting = Setting::<N>::random(k, rng, 50);
        let Setting { roles, dtype, unit, extents } = setting;
        let size = rng.percent(40).then(|| k.size("n").multiple_of(*rng.pick(&[1, unit])).max(rng.within(16..=40)));
        let count = rng.within(1..=2);
        let streams: Vec<Stream<N>> = (0..count).map(|at| Stream::random(k, rng, &setting, at, size)).collect();
        let y = k.output("y", dtype, extents);
        let sum = k.fragment("sum", dtype, extents);
        in_role(k, roles, 1, |k| _ = k.fill(sum, 0));
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
        setting: &Setting<N>,
        number: i64,
        size: Option<Size>,
    ) -> Stream<N> {
        let Setting { dtype, extents, .. } = *setting;
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
        let tile = setting.tile(k, rng, number);
        let starts = setting.starts(rng, &[0, 1, setting.unit]);
        Stream { tensor, tile, extents, starts }
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
