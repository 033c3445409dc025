//! Layouts specified by random programs: valid ones, and some invalid ones.

use super::super::boxes::size;
use super::super::expr::Index;
use super::super::program::Layout;
use super::patterns::{divided, modulo, named, number, plus, times};
use super::sketch::Arrangement;

/// The layout of a fragment or of a nest.
pub(crate) fn layout(arrangement: Arrangement, shape: &[i64], threads: i64) -> Layout {
    let of = |replicate, thread, index| Layout { shape: shape.to_vec(), replicate, thread, index };
    let elements = size(shape);
    match arrangement {
        Arrangement::InOrder(vector) => {
            let rounds = times(divided(flat(shape), vector * threads), vector);
            let lane = if vector == 1 { number(0) } else { modulo(flat(shape), vector) };
            of(1, modulo(divided(flat(shape), vector), threads), plus(rounds, lane))
        }
        Arrangement::Whole => of(threads, named("rep"), flat(shape)),
        Arrangement::Twice => {
            let thread = modulo(plus(flat(shape), times(named("rep"), threads / 2)), threads);
            of(2, thread, plus(times(divided(flat(shape), threads), 2), named("rep")))
        }
        Arrangement::Outside => {
            let first = (threads - elements / 2).max(0);
            of(1, plus(flat(shape), number(first)), number(0))
        }
        Arrangement::OneSlot => of(1, modulo(flat(shape), threads), number(0)),
    }
}

/// The row-major index of an element.
fn flat(shape: &[i64]) -> Index {
    let mut sum = number(0);
    for (dimension, extent) in shape.iter().enumerate() {
        let coordinate = named(&format!("i{dimension}"));
        sum = if dimension == 0 { coordinate } else { plus(times(sum, *extent), coordinate) };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::super::assignment::Placement;
    use super::*;

    fn owners(arrangement: Arrangement, shape: &[i64]) -> Vec<Vec<(i64, i64)>> {
        Placement::of_layout(&layout(arrangement, shape, 4)).unwrap().owners
    }

    #[test]
    fn right_ones_have_a_slot_for_every_copy() {
        for arrangement in [Arrangement::InOrder(1), Arrangement::InOrder(2), Arrangement::Whole, Arrangement::Twice] {
            let mut places: Vec<(i64, i64)> = owners(arrangement, &[3, 5]).concat();
            let count = places.len();
            assert!(places.iter().all(|(thread, _)| (0..4).contains(thread)), "{arrangement:?}");
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), count, "{arrangement:?}");
        }
    }

    #[test]
    fn wrong_ones_leave_the_block_or_clash() {
        for shape in [&[1][..], &[3], &[2, 9]] {
            assert!(owners(Arrangement::Outside, shape).concat().iter().any(|(thread, _)| *thread >= 4), "{shape:?}");
        }
        assert_eq!(owners(Arrangement::OneSlot, &[5])[4], owners(Arrangement::OneSlot, &[5])[0]);
    }
}
