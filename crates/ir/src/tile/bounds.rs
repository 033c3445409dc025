//! Conditions on indices: sums of indices, each with a limit that it must stay below.

use std::collections::BTreeMap;

use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;

/// A sum of indices with positive factors: `(u*32 + i)*4 + e` is `[(u, 128), (i, 4), (e, 1)]`.
pub(super) type Sum<T> = Vec<(T, i64)>;

/// Sums and the limits below which they are; in most cases each sum is a single index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bounds<T: Ord>(BTreeMap<Sum<T>, Expr>);

impl<T: Ord> Default for Bounds<T> {
    fn default() -> Bounds<T> {
        Bounds(BTreeMap::new())
    }
}

impl<T: Ord + Clone> Bounds<T> {
    /// The bounds with these sums and limits; a sum that is listed twice has the lesser limit, and one of no indices is
    /// left out.
    pub(super) fn of(bounds: impl IntoIterator<Item = (Sum<T>, Expr)>) -> Bounds<T> {
        let mut all = Bounds::default();
        for (mut sum, limit) in bounds {
            sum.sort();
            if let Some(known) = all.0.get_mut(&sum) {
                *known = lesser(known, &limit);
            } else if !sum.is_empty() {
                all.0.insert(sum, limit);
            }
        }
        all
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Sum<T>, &Expr)> {
        self.0.iter()
    }

    /// The limit of a sum.
    pub(super) fn limit(&self, sum: &Sum<T>) -> Option<&Expr> {
        self.0.get(sum)
    }

    /// What both demand.
    pub(super) fn and(&self, other: &Bounds<T>) -> Bounds<T> {
        Bounds::of(self.iter().chain(other.iter()).map(|(sum, limit)| (sum.clone(), limit.clone())))
    }

    /// The bounds for which this holds.
    pub(super) fn filtered(&self, keep: impl Fn(&Sum<T>, &Expr) -> bool) -> Bounds<T> {
        Bounds(
            self.iter()
                .filter(|(sum, limit)| keep(sum, limit))
                .map(|(sum, limit)| (sum.clone(), limit.clone()))
                .collect(),
        )
    }

    /// The same with every limit replaced.
    pub(super) fn with_limits(&self, change: &dyn Fn(&Expr) -> Expr) -> Bounds<T> {
        let changed = |limit: &Expr| match change(limit) {
            same if same == *limit => same,
            other => normalize(&other),
        };
        Bounds(self.iter().map(|(sum, limit)| (sum.clone(), changed(limit))).collect())
    }

    /// The same with other names of the indices; bounds with an index that has none are left out.
    pub(super) fn renamed<U: Ord + Clone>(&self, name: impl Fn(&T) -> Option<U>) -> Bounds<U> {
        let renamed = |sum: &Sum<T>| -> Option<Sum<U>> {
            sum.iter().map(|(index, factor)| Some((name(index)?, *factor))).collect()
        };
        Bounds::of(self.iter().filter_map(|(sum, limit)| Some((renamed(sum)?, limit.clone()))))
    }
}

/// The value of a sum for these values of its indices.
pub(super) fn value_of<T>(sum: &Sum<T>, value: impl Fn(&T) -> Expr) -> Expr {
    sum.iter().fold(Expr::constant(0), |all, (index, factor)| all + value(index) * *factor)
}

/// The most operations of a limit that is followed. Longer ones come from loops that shift a tile in every iteration.
const MOST_OPERATIONS: u32 = 64;

/// The lesser of two limits; the first alone where their difference cannot be kept short.
fn lesser(a: &Expr, b: &Expr) -> Expr {
    if a == b || a.weight().saturating_add(b.weight()) > MOST_OPERATIONS {
        return a.clone();
    }
    normalize(&a.clone().at_most(b.clone()))
}
