//! The softmax of rows of scores that arrive tile by tile: what was summed up with an earlier maximum is scaled. Exponentials are
//! powers of 2.

use tilewright::prelude::*;

/// So many powers of 2 may a weight be above 1 before what was summed up is scaled: in 16 bits, it has as many digits.
const LEEWAY: f64 = 8.0;

/// What the softmax of each row has seen so far.
#[derive(Clone, Copy)]
pub(crate) struct RunningSoftmax {
    /// The number of rows.
    rows: i64,
    /// The scores of a tile, and what becomes of them.
    pub(crate) scores: Buffer,
    /// The factor of what was summed up before the last tile.
    pub(crate) before: Buffer,
    /// The score of which the weight is 1: the greatest one of a row, or one that is little less.
    max: Buffer,
    /// The sum of the weights of a row.
    sum: Buffer,
    /// Of so many columns, the last one has its weights by a polynomial.
    polynomials: Option<i64>,
}

/// Which scores of a tile count.
pub(crate) struct Seen<F> {
    /// Whether all of them do, the same for all threads.
    pub(crate) all: Value,
    /// Whether the score of a row and a column does.
    pub(crate) is_seen: F,
}

impl RunningSoftmax {
    /// The softmax of `rows` rows that arrive in tiles of `columns` scores.
    #[track_caller]
    pub(crate) fn new(k: &mut KernelBuilder, [rows, columns]: [i64; 2]) -> RunningSoftmax {
        k.op("softmax", |k| {
            let scores = k.fragment("scores", F32, [rows, columns]);
            let [max, before, sum] = ["max", "before", "sum"].map(|name| k.fragment(name, F32, [rows]));
            k.fill(max, f64::NEG_INFINITY);
            k.fill(sum, 0.0);
            RunningSoftmax { rows, scores, before, max, sum, polynomials: None }
        })
    }

    /// The same with the weights of every so many-th column by a polynomial: the unit that computes exponentials has less to do.
    pub(crate) fn with_polynomials(self, columns: Option<i64>) -> RunningSoftmax {
        RunningSoftmax { polynomials: columns, ..self }
    }

    /// Takes in the scores of a tile, times `scale`. Those that `seen.is_seen` does not hold for count as minus infinity; where `seen.all`
    /// holds, a condition on the tile, there are none. The scores become weights.
    #[track_caller]
    pub(crate) fn step(self, k: &mut KernelBuilder, scale: f64, seen: Seen<impl Fn(Expr, Expr) -> Value>) {
        let RunningSoftmax { scores, before, max, sum, .. } = self;
        k.op("softmax", |k| {
            self.hide(k, seen);
            k.copy(before, max);
            k.reduce(Max, max, scores, 1).accumulate();
            k.map(before, |[i]| (before.at((i,)) * scale - max.at((i,)) * scale).fast_exp2());
            self.weigh(k, scale);
            k.map(sum, |[i]| sum.at((i,)) * before.at((i,)));
            k.reduce(Sum, sum, scores, 1).accumulate();
        });
    }

    /// The same where it takes long to scale what was summed up. Returns a condition on the tile: where it holds, `before` is to be used;
    /// elsewhere, no maximum has grown so much that weights would become too large.
    #[track_caller]
    pub(crate) fn step_with_leeway(
        self,
        k: &mut KernelBuilder,
        scale: f64,
        seen: Seen<impl Fn(Expr, Expr) -> Value>,
    ) -> Value {
        let RunningSoftmax { rows, scores, before, max, sum, .. } = self;
        k.op("softmax", |k| {
            let next = k.fragment("next", F32, [rows]);
            let [grows, grow] = [("grows", rows), ("grow", 1)].map(|(name, extent)| k.fragment(name, I32, [extent]));
            self.hide(k, seen);
            k.copy(next, max);
            k.reduce(Max, next, scores, 1).accumulate();
            k.map(grows, |[i]| (next.at((i,)) * scale - max.at((i,)) * scale).gt(LEEWAY).select(1, 0));
            k.reduce(Or, grow, grows, 0);
            let some_grow = grow.at((0,)).ne(0);
            k.if_(some_grow, |k| {
                k.map(before, |[i]| (max.at((i,)) * scale - next.at((i,)) * scale).fast_exp2());
                k.map(sum, |[i]| sum.at((i,)) * before.at((i,)));
                k.copy(max, next);
            });
            self.weigh(k, scale);
            k.reduce(Sum, sum, scores, 1).accumulate();
            some_grow
        })
    }

    /// Scores that do not count become minus infinity.
    #[track_caller]
    fn hide(self, k: &mut KernelBuilder, seen: Seen<impl Fn(Expr, Expr) -> Value>) {
        let scores = self.scores;
        k.if_(!seen.all, |k| {
            k.map(scores, |[i, j]| (seen.is_seen)(i, j).select(scores.at((i, j)), f64::NEG_INFINITY));
        });
    }

    /// Scores become weights.
    #[track_caller]
    fn weigh(self, k: &mut KernelBuilder, scale: f64) {
        let RunningSoftmax { scores, max, polynomials, .. } = self;
        // The product of a score and the difference from that of the maximum are one operation.
        k.map(scores, |[i, j]| {
            let distance = scores.at((i, j)) * scale - max.at((i,)) * scale;
            match polynomials {
                Some(columns) => {
                    let is_last = (j % columns).eq(columns - 1);
                    is_last.select(distance.polynomial_exp2(), distance.fast_exp2())
                }
                None => distance.fast_exp2(),
            }
        });
    }

    /// Divides what was summed up by the sums of weights. Of a row without scores, all is 0.
    #[track_caller]
    pub(crate) fn finish(self, k: &mut KernelBuilder, held: Buffer) {
        let of_row = self.inverse_sums(k);
        k.op("softmax", |k| _ = k.map(held, |[i, j]| held.at((i, j)) * of_row.at((i,))));
    }

    /// The factor of what was summed up in a row: 1 by the sum of weights. Of a row without scores, it is 0.
    #[track_caller]
    pub(crate) fn inverse_sums(self, k: &mut KernelBuilder) -> Buffer {
        let sum = self.sum;
        k.op("softmax", |k| _ = k.map(sum, |[i]| sum.at((i,)).gt(0.0).select(1.0 / sum.at((i,)), 0.0)));
        sum
    }
}
