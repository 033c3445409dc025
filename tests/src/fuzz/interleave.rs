//! Tilings and sums by definition: the places of two layouts are added, with their dimensions interleaved.

use std::collections::BTreeSet;

use super::brute::{Place, Places, minus, plus};

/// Whether steps of the outer layout are multiplied by the spans of the inner one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scaled {
    /// A tiling.
    Yes,
    /// A direct sum.
    No,
}

/// Whether a part exists that, with the other, makes the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// It exists.
    Certain,
    /// Suitable places exist; it is not decided whether replica iters can produce their copies.
    Possible,
    /// It does not exist.
    Impossible,
}

/// The shapes of two layouts, of equal rank.
#[derive(Clone, Copy)]
pub(crate) struct Shapes<'a> {
    pub(crate) outer: &'a [i64],
    pub(crate) inner: &'a [i64],
}

impl Shapes<'_> {
    /// The shape `(o0, i0, o1, i1, ..)`.
    pub(crate) fn interleaved(self) -> Vec<i64> {
        self.outer.iter().zip(self.inner).flat_map(|(outer, inner)| [*outer, *inner]).collect()
    }

    /// The shape `(o0 * i0, o1 * i1, ..)`.
    pub(crate) fn whole(self) -> Vec<i64> {
        self.outer.iter().zip(self.inner).map(|(outer, inner)| outer * inner).collect()
    }

    /// For every element of the interleaved shape, in order: its elements in the outer and the inner layout.
    fn pairs(self) -> Vec<(usize, usize)> {
        let mut pairs = vec![(0, 0)];
        for (outer, inner) in self.outer.iter().zip(self.inner) {
            let (outer, inner) = (*outer as usize, *inner as usize);
            let digits = move |(x, y): &(usize, usize)| {
                let (x, y) = (x * outer, y * inner);
                (0..outer * inner).map(move |digit| (x + digit / inner, y + digit % inner))
            };
            pairs = pairs.iter().flat_map(digits).collect();
        }
        pairs
    }

    /// The tiling or the sum of two layouts of these shapes.
    pub(crate) fn combined(self, outer: &Places, inner: &Places, scaled: Scaled) -> Places {
        let spacing = spacing(inner, scaled);
        let place = |(x, y): (usize, usize)| {
            let steps = minus(&outer.base[x], &outer.base[0]);
            plus(&plus(&times(&steps, &spacing), &outer.base[0]), &inner.base[y])
        };
        let copies = outer.copies.iter().flat_map(|a| inner.copies.iter().map(move |b| plus(a, b)));
        Places::new(self.pairs().into_iter().map(place).collect(), copies.collect())
    }

    /// Whether some outer layout makes `whole` with this inner one.
    pub(crate) fn outer_part(self, whole: &Places, inner: &Places, scaled: Scaled) -> Part {
        let spacing = spacing(inner, scaled);
        let step = |at: usize, y: usize| {
            minus(&minus(&whole.base[at], &whole.base[0]), &minus(&inner.base[y], &inner.base[0]))
        };
        let mut steps: Vec<Option<Place>> = vec![None; outer_size(self)];
        let fits = self.pairs().into_iter().enumerate().all(|(at, (x, y))| {
            let step = step(at, y);
            let known = steps[x].get_or_insert_with(|| step.clone());
            *known == step && step.iter().zip(&spacing).all(|(step, spacing)| divides(*spacing, *step))
        });
        if fits { copies_part(&whole.copies, &inner.copies) } else { Part::Impossible }
    }

    /// Whether some inner layout makes `whole` with this outer one.
    pub(crate) fn inner_part(self, whole: &Places, outer: &Places, scaled: Scaled) -> Part {
        let pairs = self.pairs();
        let first_row = pairs.iter().enumerate().filter(|(_, (x, _))| *x == 0);
        let mut base: Vec<(usize, Place)> =
            first_row.map(|(at, (_, y))| (*y, minus(&whole.base[at], &outer.base[0]))).collect();
        base.sort();
        let base: Vec<Place> = base.into_iter().map(|(_, place)| place).collect();
        let reach = |places: &Places, column: usize| places.copies.iter().map(|copy| copy[column]).max().unwrap_or(0);
        let columns = whole.base[0].len();
        let farthest = (0..columns).map(|column| reach(whole, column) - reach(outer, column)).collect();
        let inner = Places { base, copies: vec![vec![0; columns], farthest] };
        let spacing = spacing(&inner, scaled);
        let fits = pairs.iter().enumerate().all(|(at, (x, y))| {
            let steps = minus(&outer.base[*x], &outer.base[0]);
            whole.base[at] == plus(&plus(&times(&steps, &spacing), &outer.base[0]), &inner.base[*y])
        });
        if fits { copies_part(&whole.copies, &outer.copies) } else { Part::Impossible }
    }
}

fn outer_size(shapes: Shapes<'_>) -> usize {
    shapes.outer.iter().product::<i64>() as usize
}

/// Positions from one copy of the inner layout to the next: its span where its elements move on the axis, else 1.
fn spacing(inner: &Places, scaled: Scaled) -> Place {
    let on_axis = |column: usize| {
        let moves = inner.base.iter().any(|place| place[column] != inner.base[0][column]);
        if moves && scaled == Scaled::Yes { 1 + inner.greatest(column) } else { 1 }
    };
    (0..inner.base[0].len()).map(on_axis).collect()
}

fn times(steps: &[i64], spacing: &[i64]) -> Place {
    steps.iter().zip(spacing).map(|(step, spacing)| step * spacing).collect()
}

fn divides(divisor: i64, value: i64) -> bool {
    if divisor == 0 { value == 0 } else { value % divisor == 0 }
}

/// Whether some distances, added to all of `part`, make `whole`; both begin at 0. Additional fitting distances never
/// hurt, so all of them are tried at once.
fn copies_part(whole: &[Place], part: &[Place]) -> Part {
    if whole == part {
        return Part::Certain;
    }
    let wanted: BTreeSet<&Place> = whole.iter().collect();
    let fits = |rest: &&Place| part.iter().all(|copy| wanted.contains(&plus(rest, copy)));
    let made: BTreeSet<Place> =
        whole.iter().filter(fits).flat_map(|rest| part.iter().map(move |copy| plus(rest, copy))).collect();
    if made.len() == whole.len() { Part::Possible } else { Part::Impossible }
}
