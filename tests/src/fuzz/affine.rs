//! Whether any iters can describe a list of places: a refusal is justified only if none can.

use std::collections::BTreeSet;

use super::brute::{Place, minus};

/// True if some shard iters, each on one axis, produce these places in order.
pub(crate) fn is_affine(places: &[Place]) -> bool {
    let count = places.len();
    if count < 2 {
        return true;
    }
    let step = minus(&places[1], &places[0]);
    if step.iter().filter(|on_axis| **on_axis != 0).count() > 1 {
        return false;
    }
    let walks_on = |extent: usize, at: usize| {
        let (run, digit) = (&places[at / extent * extent], (at % extent) as i64);
        places[at].iter().zip(run.iter().zip(&step)).all(|(here, (start, step))| *here == start + digit * step)
    };
    (2..=count).filter(|extent| count.is_multiple_of(*extent)).any(|extent| {
        let starts: Vec<Place> = places.iter().step_by(extent).cloned().collect();
        (0..count).all(|at| walks_on(extent, at)) && is_affine(&starts)
    })
}

/// True if some layout has exactly these sets of places, element by element: all are translations of one set of copies,
/// by affine offsets.
pub(crate) fn is_layout(sets: &[BTreeSet<Place>]) -> bool {
    let first = |set: &BTreeSet<Place>| set.first().cloned().unwrap_or_default();
    let starts: Vec<Place> = sets.iter().map(first).collect();
    let copies = |set: &BTreeSet<Place>, start: &[i64]| set.iter().map(|place| minus(place, start)).collect::<Vec<_>>();
    let all = copies(&sets[0], &starts[0]);
    let alike = sets.iter().zip(&starts).all(|(set, start)| copies(set, start) == all);
    alike && is_affine(&starts) && are_copies(&all)
}

/// True if replica iters produce these distances, the least of which is 0.
fn are_copies(copies: &[Place]) -> bool {
    let columns = copies.first().map_or(0, Vec::len);
    let on_axis = |column: usize| copies.iter().map(|copy| copy[column]).collect::<BTreeSet<i64>>();
    let axes: Vec<BTreeSet<i64>> = (0..columns).map(on_axis).collect();
    let is_product = axes.iter().map(BTreeSet::len).product::<usize>() == copies.len();
    is_product && axes.iter().all(|set| add_up(set, &BTreeSet::from([0]), 1))
}

/// True if the set is the sum of the numbers reached and arithmetic progressions with strides of at least `stride`.
fn add_up(set: &BTreeSet<i64>, reached: &BTreeSet<i64>, stride: i64) -> bool {
    let Some(missing) = set.iter().find(|number| !reached.contains(number)) else { return reached == set };
    if *missing < stride {
        return false;
    }
    set.range(stride..=*missing).any(|&stride| {
        let longer = |extent: i64| -> BTreeSet<i64> {
            reached.iter().flat_map(|number| (0..extent).map(move |digit| number + digit * stride)).collect()
        };
        (2..).map(longer).take_while(|sums| sums.is_subset(set)).any(|sums| add_up(set, &sums, stride))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_one_axis(positions: &[i64]) -> Vec<Place> {
        positions.iter().map(|position| vec![*position]).collect()
    }

    #[test]
    fn runs_of_runs_are_affine_and_a_broken_run_is_not() {
        assert!(is_affine(&on_one_axis(&[7, 9, 11, 0, 2, 4])));
        assert!(!is_affine(&on_one_axis(&[0, 1, 10, 11, 20])));
        assert!(!is_affine(&[vec![0, 0], vec![1, 1]]));
    }

    #[test]
    fn sets_that_move_along_a_walk_are_a_layout() {
        let set = |positions: &[i64]| positions.iter().map(|p| vec![*p]).collect::<BTreeSet<_>>();
        assert!(is_layout(&[set(&[0, 2, 3, 5]), set(&[10, 12, 13, 15])]));
        assert!(!is_layout(&[set(&[0, 1, 3]), set(&[10, 11, 13])]));
        assert!(!is_layout(&[set(&[0, 1]), set(&[10, 12])]));
    }
}
