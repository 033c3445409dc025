//! Random kernels whose tiles the copy engine moves to a tensor and from it, while threads write and read on.

use tilewright::ir::tile::AtomicOp;
use tilewright::prelude::*;

use super::tiles::{Setting, Starts, in_role};
use crate::rng::Rng;

/// A tile, and the part of the tensor that gets its elements, or has them.
struct Moved<const N: usize> {
    tile: Buffer,
    extents: [i64; N],
    /// Where the part begins.
    starts: Starts<N>,
    /// After so many places in the first dimension it begins again.
    period: i64,
    number: i64,
    dtype: DType,
    /// How elements are combined with those of the tensor, if they do not replace them.
    combined: Option<AtomicOp>,
    /// Whether loads ask for the copy engine, which kernels are refused for where it cannot do them.
    asks: bool,
}

/// What happens to a tile in an iteration.
#[derive(Clone, Copy)]
enum Action {
    Compute,
    Store,
    Load,
    Use,
}

/// Tiles that are computed in loops and moved to a tensor, some over others, or from it, with reads of the tensor between them.
pub(super) fn random_boxes(rng: &mut Rng) -> Kernel {
    match rng.below(5) {
        0 => boxes::<1>(rng),
        1 => boxes::<3>(rng),
        _ => boxes::<2>(rng),
    }
}

fn boxes<const N: usize>(rng: &mut Rng) -> Kernel {
    kernel("boxes", |k| {
        let setting = Setting::<N>::random(k, rng, 40);
        let Setting { roles, dtype, unit, extents } = setting;
        let (trips, rows) = (*rng.pick(&[0, 1, 2, 3, 5]), rng.within(1..=3));
        let step = *rng.pick(&[1, 1, 2]);
        let count = rng.within(1..=3);
        let tiles: Vec<Moved<N>> = (0..count).map(|at| Moved::random(k, rng, &setting, at)).collect();
        // A tensor that holds all parts, or whose edge some of them are beyond.
        let reach = |dimension: usize| tiles.iter().map(|moved| moved.reach(dimension, trips * step, rows)).max();
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
        in_role(k, roles, 1, |k| _ = k.fill(sum, 0));
        if size.is_none() && rng.percent(30) {
            k.fill(y, 1);
        }
        let reads = rng.percent(30);
        // Tiles that are written once take no fence in the loops.
        let is_constant = rng.percent(30);
        let has_loads = rng.percent(50);
        if is_constant || has_loads {
            tiles.iter().for_each(|moved| moved.compute(k, Expr::from(0), Expr::from(1)));
        }
        let actions: Vec<(usize, Action, usize)> = match has_loads {
            true => (0..rng.within(2..=7)).map(|_| (rng.below(tiles.len()), random_action(rng), role(rng))).collect(),
            false => {
                let first = (!is_constant).then_some(Action::Compute);
                let of_tile = |at| first.into_iter().chain([Action::Store]).map(move |action| (at, action));
                (0..tiles.len()).flat_map(of_tile).map(|(at, action)| (at, action, role(rng))).collect()
            }
        };
        let body = |k: &mut KernelBuilder, row: Expr| {
            k.serial("t", (..Expr::from(trips * step)).step(step), |k, t| {
                let add = |k: &mut KernelBuilder, from: Buffer| {
                    in_role(k, roles, 1, |k| {
                        _ = k.parallel(extents, |k, here| add_turned(k, [sum, from], extents, here))
                    });
                };
                for (at, action, by) in &actions {
                    let moved = &tiles[*at];
                    match action {
                        Action::Compute => in_role(k, roles, *by, |k| moved.compute(k, row, t)),
                        Action::Store => in_role(k, roles, *by, |k| moved.store(k, y, row, t)),
                        Action::Load => in_role(k, roles, *by, |k| moved.load(k, y, row, t)),
                        Action::Use => add(k, moved.tile),
                    }
                }
                if reads {
                    add(k, y);
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

/// The role that does something.
fn role(rng: &mut Rng) -> usize {
    usize::from(rng.percent(70))
}

fn random_action(rng: &mut Rng) -> Action {
    *rng.pick(&[Action::Compute, Action::Store, Action::Load, Action::Load, Action::Use, Action::Use])
}

/// Adds the element of a buffer that is opposite to one of the sum.
fn add_turned<const N: usize>(k: &mut Elements, [sum, from]: [Buffer; 2], extents: [i64; N], here: [Expr; N]) {
    let opposite: [Expr; N] = std::array::from_fn(|at| extents[at] - 1 - here[at]);
    k.store(sum, here, sum.at(here) + from.at(opposite));
}

impl<const N: usize> Moved<N> {
    fn random(k: &mut KernelBuilder, rng: &mut Rng, setting: &Setting<N>, number: i64) -> Moved<N> {
        let Setting { dtype, unit, extents, .. } = *setting;
        let tile = setting.tile(k, rng, number);
        let starts = setting.starts(rng, &[0, 0, 1, unit]);
        let period = *rng.pick(&[0, 0, 0, 2, 3]);
        Moved {
            tile,
            extents,
            starts,
            period,
            number,
            dtype,
            combined: random_atomic(rng, dtype),
            asks: rng.percent(60),
        }
    }

    /// Elements of a dimension from the first of the tensor to the last that is moved.
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
        let part = y.sub(self.part(row, t));
        match self.combined {
            Some(AtomicOp::Add) => k.atomic_add(part, self.tile),
            Some(AtomicOp::Min) => k.atomic_min(part, self.tile),
            Some(AtomicOp::Max) => k.atomic_max(part, self.tile),
            Some(AtomicOp::And) => k.atomic_and(part, self.tile),
            Some(AtomicOp::Or) => k.atomic_or(part, self.tile),
            Some(AtomicOp::Xor) => k.atomic_xor(part, self.tile),
            None => k.copy_async(part, self.tile),
        };
    }

    /// Loads the tile; what lies beyond the edge of the tensor is 0.
    fn load(&self, k: &mut KernelBuilder, y: Buffer, row: Expr, t: Expr) {
        let copy = k.copy_async(self.tile, y.sub(self.part(row, t)));
        if self.asks {
            copy.variant("tma");
        }
    }

    /// The part of the tensor in an iteration.
    fn part(&self, row: Expr, t: Expr) -> Vec<Index> {
        let start = |dimension: usize| {
            let [first, step, around] = self.starts[dimension];
            let place = t * step + row * around + first;
            if self.period > 0 && dimension == 0 { place % (self.period * step.max(1)) } else { place }
        };
        (0..N).map(|dimension| at(start(dimension), self.extents[dimension])).collect()
    }
}

/// An atomic operation on elements of a type that has some, in one of four cases.
fn random_atomic(rng: &mut Rng, dtype: DType) -> Option<AtomicOp> {
    let operations: &[AtomicOp] = match dtype {
        F16 | BF16 | F32 | F64 => &[AtomicOp::Add],
        I32 | U32 | I64 | U64 => &AtomicOp::ALL,
        _ => return None,
    };
    rng.percent(25).then(|| *rng.pick(operations))
}

fn rounded_up(number: i64, unit: i64) -> i64 {
    (number + unit - 1) / unit * unit
}
