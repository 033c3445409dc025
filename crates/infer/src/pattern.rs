//! Which granules of a fragment the iterations of a nest touch.

use tilewright_layout::map::NONE;

/// The granules that each iteration touches, one in each of its trips. A trip stands for one combination of values of
/// the other loop variables, inner and outer, that the index depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pattern {
    iterations: usize,
    /// Granules of the fragment.
    granules: usize,
    /// Entries of the table for each iteration.
    trips: usize,
    /// The granule of each iteration and trip, trips fastest, [`NONE`] for none; `None` for the identity.
    table: Option<Vec<u32>>,
    /// See [`Pattern::is_own`].
    is_own: bool,
    /// See [`Pattern::is_total`].
    is_total: bool,
    /// See [`Pattern::most`].
    most: usize,
    /// See [`Pattern::is_together`].
    is_together: bool,
}

impl Pattern {
    /// The pattern in which iteration i touches granule i.
    pub(crate) fn identity(iterations: usize) -> Pattern {
        Pattern {
            iterations,
            granules: iterations,
            trips: 1,
            table: None,
            is_own: true,
            is_total: true,
            most: 1,
            is_together: true,
        }
    }

    /// The pattern of a table with `trips` entries for each iteration.
    pub(crate) fn of_table(granules: usize, trips: usize, table: Vec<u32>) -> Pattern {
        let iterations = table.len() / trips.max(1);
        let is_identity = || table.iter().enumerate().all(|(at, granule)| at == *granule as usize);
        if trips == 1 && iterations == granules && is_identity() {
            return Pattern::identity(iterations);
        }
        let mut pattern = Pattern { granules, trips, table: Some(table), ..Pattern::identity(iterations) };
        pattern.look();
        pattern
    }

    /// The pattern of a table with `room` entries for each iteration, of which the last may be [`NONE`] in all of them.
    pub(crate) fn of_padded(granules: usize, room: usize, table: Vec<u32>) -> Pattern {
        let used = |list: &[u32]| list.iter().take_while(|granule| **granule != NONE).count();
        let trips = table.chunks(room).map(used).max().unwrap_or(0).max(1);
        if trips == room {
            return Pattern::of_table(granules, trips, table);
        }
        let trimmed = table.chunks(room).flat_map(|list| &list[..trips]).copied().collect();
        Pattern::of_table(granules, trips, trimmed)
    }

    /// The union of two patterns, such as those of the two branches of a condition. `None` if a trip touches different
    /// granules in them.
    pub(crate) fn joined(&self, other: &Pattern) -> Option<Pattern> {
        if self.trips != other.trips || self.granules != other.granules {
            return None;
        }
        let entry = |pattern: &Pattern, at: usize| pattern.table.as_ref().map_or(at as u32, |table| table[at]);
        let both = |at: usize| match (entry(self, at), entry(other, at)) {
            (one, NONE) => Some(one),
            (NONE, another) => Some(another),
            (one, another) => (one == another).then_some(one),
        };
        let table: Option<Vec<u32>> = (0..self.iterations * self.trips).map(both).collect();
        table.map(|table| Pattern::of_table(self.granules, self.trips, table))
    }

    /// Whether no iteration touches anything.
    pub(crate) fn is_nothing(&self) -> bool {
        self.table.as_ref().is_some_and(|table| table.iter().all(|granule| *granule == NONE))
    }

    /// Computes the properties that are stored beside the table.
    fn look(&mut self) {
        let mut last: Vec<Option<usize>> = vec![None; self.granules];
        let mut visits = vec![0; self.granules];
        let mut touching = 0;
        for iteration in 0..self.iterations {
            let Some(first) = self.of(iteration).next() else { continue };
            touching += 1;
            visits[first] += 1;
            if last[first].is_some_and(|last| last + 1 != iteration) {
                self.is_together = false;
            }
            last[first] = Some(iteration);
        }
        self.most = visits.iter().copied().max().unwrap_or(0).max(1);
        self.is_total = touching == self.iterations;
        self.is_own = self.trips == 1 && self.is_total && self.most == 1;
    }

    pub(crate) fn iterations(&self) -> usize {
        self.iterations
    }

    pub(crate) fn granules(&self) -> usize {
        self.granules
    }

    pub(crate) fn trips(&self) -> usize {
        self.trips
    }

    /// The granules of all iterations, trips fastest; `None` for the identity.
    pub(crate) fn table(&self) -> Option<&[u32]> {
        self.table.as_deref()
    }

    pub(crate) fn is_identity(&self) -> bool {
        self.table.is_none()
    }

    /// Whether every iteration touches exactly one granule, and no two the same.
    pub(crate) fn is_own(&self) -> bool {
        self.is_own
    }

    /// Whether every iteration touches something.
    pub(crate) fn is_total(&self) -> bool {
        self.is_total
    }

    /// The greatest number of iterations with the same first granule, at least 1.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Whether the iterations with the same first granule are consecutive.
    pub(crate) fn is_together(&self) -> bool {
        self.is_together
    }

    /// The granule that an iteration touches in a trip.
    pub(crate) fn at(&self, iteration: usize, trip: usize) -> Option<usize> {
        let granule = match &self.table {
            None => iteration as u32,
            Some(table) => table[iteration * self.trips + trip],
        };
        (granule != NONE).then_some(granule as usize)
    }

    /// The granules that an iteration touches.
    pub(crate) fn of(&self, iteration: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.trips).filter_map(move |trip| self.at(iteration, trip))
    }

    /// The iterations, grouped by the granule that they touch first.
    pub(crate) fn visits(&self) -> Visits {
        let first = |iteration: usize| self.of(iteration).next();
        let mut starts = vec![0; self.granules + 1];
        for granule in (0..self.iterations).filter_map(first) {
            starts[granule + 1] += 1;
        }
        for granule in 0..self.granules {
            starts[granule + 1] += starts[granule];
        }
        let mut next = starts.clone();
        let mut iterations = vec![0; starts[self.granules]];
        for (iteration, granule) in (0..self.iterations).filter_map(|at| Some((at, first(at)?))) {
            iterations[next[granule]] = iteration;
            next[granule] += 1;
        }
        Visits { starts, iterations }
    }
}

/// For each granule, the iterations that touch it before any other granule, in order.
#[derive(Clone, Debug)]
pub(crate) struct Visits {
    /// Where the iterations of each granule begin, and the end of the last.
    starts: Vec<usize>,
    /// Iterations, grouped by granule.
    iterations: Vec<usize>,
}

impl Visits {
    pub(crate) fn of(&self, granule: usize) -> &[usize] {
        &self.iterations[self.starts[granule]..self.starts[granule + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_own_numbers_is_the_identity() {
        assert_eq!(Pattern::of_table(3, 1, vec![0, 1, 2]), Pattern::identity(3));
        assert!(!Pattern::of_table(4, 1, vec![0, 1, 2]).is_identity());
    }

    #[test]
    fn a_permutation_is_own_and_a_broadcast_is_not() {
        let turned = Pattern::of_table(3, 1, vec![2, 1, 0]);
        assert_eq!((turned.is_own(), turned.most(), turned.is_together()), (true, 1, true));
        let rows = Pattern::of_table(2, 1, vec![0, 0, 1, 1]);
        assert_eq!((rows.is_own(), rows.most(), rows.is_together()), (false, 2, true));
        let columns = Pattern::of_table(2, 1, vec![0, 1, 0, 1]);
        assert_eq!((columns.is_own(), columns.most(), columns.is_together()), (false, 2, false));
    }

    #[test]
    fn iterations_that_touch_nothing_have_no_granule() {
        let part = Pattern::of_table(2, 1, vec![0, NONE]);
        assert_eq!((part.is_own(), part.of(1).next()), (false, None));
        assert_eq!((part.visits().of(0), part.visits().of(1)), (&[0][..], &[][..]));
    }

    #[test]
    fn entries_that_no_iteration_uses_are_no_trips() {
        let lists = Pattern::of_padded(3, 4, vec![0, 2, NONE, NONE, 1, NONE, NONE, NONE]);
        assert_eq!((lists.trips(), lists.of(0).collect::<Vec<_>>()), (2, vec![0, 2]));
        assert_eq!(lists.of(1).collect::<Vec<_>>(), [1]);
        assert_eq!(Pattern::of_padded(2, 2, vec![0, NONE, 1, NONE]), Pattern::identity(2));
    }

    #[test]
    fn trips_of_one_iteration_are_next_to_each_other() {
        let pairs = Pattern::of_table(4, 2, vec![0, 1, 2, 3]);
        assert_eq!((pairs.iterations(), pairs.of(1).collect::<Vec<_>>(), pairs.is_own()), (2, vec![2, 3], false));
    }
}
