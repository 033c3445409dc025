//! Random kernels whose tiles the copy engine stores in tensors, while threads write and read on.

use tilewright::prelude::*;

use super::tiles::{Setting, Starts, in_role};
use crate::rng::Rng;

/// A tile, and the part of the tensor that gets its elements.
struct Stored<const N: usize> {
    tile: Buffer,
    extents: [i64; N],
    /// Where the part begins.
    starts: Starts<N>,
    /// After so many places in the first dimension it begins again.
    period: i64,
    number: i64,
    dtype: DType,
    adds: bool,
}

/// Tiles that are computed in loops and stored in a tensor, some over others, with reads of the tensor between them.
pub(super) fn random_stores(rng: &mut Rng) -> Kernel {
    match rng.below(5) {
        0 => stores::<1>(rng),
        1 => stores::<3>(rng),
        _ => stores::<2>(rng),
    }
}

fn stores<const N: usize>(rng: &mut Rng) -> Kernel {
    kernel("stores", |k| {
        let setting = Setting::<N>::random(k, rng, 40);
        let Setting { roles, dtype, unit, extents } = setting;
        let (trips, rows) = (*rng.pick(&[0, 1, 2, 3, 5]), rng.within(1..=3));
        let step = *rng.pick(&[1, 1, 2]);
        let count = rng.within(1..=3);
        let tiles: Vec<Stored<N>> = (0..count).map(|at| Stored::random(k, rng, &setting, at)).collect();
        // A tensor that holds all parts, or whose edge some of them are beyond.
        let reach = |dimension: usize| tiles.iter().map(|stored| stored.reach(dimension, trips * step, rows)).max();
        let mut shape: [i64; N] = std::array::from_fn(|dimension| reach(dimension).unwrap_or(1));
        shape[N - 1] = rounded_up(shape[N - 1], unit);
        let ragged = (N < 3 && rng.percent(50)).then(|| rng.below(N));
        let size = ragged.map(|dimension| {
            let multiple = *rng.pick(&[1, unit]);
            let most = rounded_up(shape[dimension], multiple) + rng.within(0..=3) * multiple;
            k.size("n").multiple_of(multiple).max(most)
        });
        let y = match (size, &shape[..], ragged) {
            (Some(n), [_], _) => k.inout("y", dtype, (n,)),
            (Some(n), [_, columns], Some(0)) => k.inout("y", dtype, (n, *columns)),
            (Some(n), [rows, _], _) => k.inout("y", dtype, (*rows, n)),
            _ => k.inout("y", dtype, shape),
        };
        let sum = k.fragment("sum", dtype, extents);
        let out = k.output("out", dtype, extents);
        in_role(k, roles, 1, |k| _ = k.fill(sum, 0.0));
        if size.is_none() && rng.percent(30) {
            k.fill(y, 1.0);
        }
        let reads = rng.percent(30);
        let computes = |rng: &mut Rng| usize::from(rng.percent(70));
        let roles_of_tiles: Vec<[usize; 2]> = tiles.iter().map(|_| [computes(rng), computes(rng)]).collect();
        // Tiles that are written once take no fence in the loops.
        let is_constant = rng.percent(30);
        if is_constant {
            tiles.iter().for_each(|stored| stored.compute(k, Expr::from(0), Expr::from(1)));
        }
        let body = |k: &mut KernelBuilder, row: Expr| {
            k.serial("t", (..Expr::from(trips * step)).step(step), |k, t| {
                for (stored, by) in tiles.iter().zip(&roles_of_tiles) {
                    if !is_constant {
                        in_role(k, roles, by[0], |k| stored.compute(k, row, t));
                    }
                    in_role(k, roles, by[1], |k| stored.store(k, y, row, t));
                }
                if reads {
                    let add = |k: &mut Elements, here: [Expr; N]| {
                        let from: [Expr; N] = std::array::from_fn(|at| extents[at] - 1 - here[at]);
                        k.store(sum, here, sum.at(here) + y.at(from));
                    };
                    in_role(k, roles, 1, |k| _ = k.parallel(extents, add));
                }
            });
        };
        match rng.below(3) {
            0 => k.serial("row", 0..rows, |k, row| body(k, row)),
            1 => k.unroll("row", 0..rows, |k, row| body(k, row)),
            _ => body(k, Expr::from(0)),
        }
        in_role(k, roles, 1, |k| _ = k.copy(out, sum));
    })
}

impl<const N: usize> Stored<N> {
    fn random(k: &mut KernelBuilder, rng: &mut Rng, setting: &Setting<N>, number: i64) -> Stored<N> {
        let Setting { dtype, unit, extents, .. } = *setting;
        let tile = setting.tile(k, rng, number);
        let starts = setting.starts(rng, &[0, 0, 1, unit]);
        let period = *rng.pick(&[0, 0, 0, 2, 3]);
        Stored { tile, extents, starts, period, number, dtype, adds: has_sums(dtype) && rng.percent(25) }
    }

    /// Elements of a dimension from the first of the tensor to the last that is stored.
    fn reach(&self, dimension: usize, end: i64, rows: i64) -> i64 {
        let [first, step, around] = self.starts[dimension];
        let last = first + step * (end - 1).max(0) + around * (rows - 1);
        let of_period = if dimension == 0 { self.period * step.max(1) - 1 } else { 0 };
        last.max(of_period) + self.extents[dimension]
    }

    /// Gives the tile elements that differ from one iteration to the next.
    fn compute(&self, k: &mut KernelBuilder, row: Expr, t: Expr) {
        k.parallel(self.extents, |k, here| {
            let sum = here.iter().fold(t * 3 + row * 2 + self.number, |sum, at| sum + *at);
            k.store(self.tile, here, Value::from(sum % 7).cast(self.dtype));
        });
    }

    /// Stores the tile; what lies beyond the edge of the tensor is left out.
    fn store(&self, k: &mut KernelBuilder, y: Buffer, row: Expr, t: Expr) {
        let start = |dimension: usize| {
            let [first, step, around] = self.starts[dimension];
            let place = t * step + row * around + first;
            if self.period > 0 && dimension == 0 { place % (self.period * step.max(1)) } else { place }
        };
        let parts: Vec<Index> =
            (0..N).map(|at_dimension| at(start(at_dimension), self.extents[at_dimension])).collect();
        match self.adds {
            true => k.atomic_add(y.sub(parts), self.tile),
            false => k.copy_async(y.sub(parts), self.tile),
        };
    }
}

/// Whether there are atomic additions of elements.
fn has_sums(dtype: DType) -> bool {
    [F16, BF16, F32, F64, I32, U32, I64].contains(&dtype)
}

fn rounded_up(number: i64, unit: i64) -> i64 {
    (number + unit - 1) / unit * unit
}
