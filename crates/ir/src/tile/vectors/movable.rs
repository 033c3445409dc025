//! The accesses of a nest that neighbouring steps may execute together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use num_integer::Integer;
use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_expr::points::{Split, Splits};

use super::gathered::Gathered;
use super::{Strided, position, widest};
use crate::arena::Handle;
use crate::tile::atomic::{Atomic, MemoryOrder};
use crate::tile::buffer::{Buffer, Space};
use crate::tile::element::ElementStmt;
use crate::tile::kernel::Kernel;
use crate::tile::value::Access;

/// Accesses to memory that neighbouring steps may make together: one, or several of an iteration that are neighbours in
/// memory, as `x[2*i]` and `x[2*i + 1]` are.
#[derive(Clone, Debug)]
pub struct StaticAccess {
    /// The buffer that it accesses.
    pub buffer: Handle<Buffer>,
    /// The indices of an iteration in the order of memory, each with one index per dimension.
    pub elements: Vec<Vec<Expr>>,
    /// The access, if some of its indices are data: it gathers rows. Steps that have the same data make it together.
    pub gathered: Option<Gathered>,
}

/// How often a nest accesses a storage.
#[derive(Default)]
struct Counts {
    accesses: usize,
    writes: usize,
}

/// The accesses to memory in a nest that neighbouring steps may execute together.
#[derive(Clone, Debug, Default)]
pub struct Movable {
    /// Loads, each element listed once.
    pub loads: Vec<StaticAccess>,
    /// Stores.
    pub stores: Vec<StaticAccess>,
}

impl StaticAccess {
    /// The access, if it is to memory and its index does not depend on data.
    pub fn of(kernel: &Kernel, access: &Access) -> Option<StaticAccess> {
        let is_in_memory = kernel.buffers[access.buffer].space != Space::Fragment;
        let index = access.known_index().filter(|_| is_in_memory)?;
        Some(StaticAccess { buffer: access.buffer, elements: vec![index], gathered: None })
    }

    /// Which of its elements an access is to.
    pub fn element(&self, access: &Access) -> Option<usize> {
        if let Some(gathered) = &self.gathered {
            return gathered.is_of(access).then_some(0);
        }
        let is_same = self.buffer == access.buffer;
        self.elements.iter().position(|index| is_same && access.is_at(index))
    }
}

impl Movable {
    /// Those that every iteration executes once and that cannot conflict with any other statement of the nest, whose
    /// variables are those of `splits`.
    pub fn of(kernel: &Kernel, body: &[ElementStmt], splits: &mut Splits<'_>) -> Movable {
        // What an operation orders must not move across it.
        let is_ordered = |atomic: &Atomic| atomic.ordering.order != MemoryOrder::Relaxed;
        if body.iter().any(|element| element.has_atomic(&is_ordered)) {
            return Movable::default();
        }
        let mut counts: BTreeMap<Handle<Buffer>, Counts> = BTreeMap::new();
        for element in body {
            element.for_each_access(&mut |access, writes| {
                let counts = counts.entry(kernel.storage(access.buffer)).or_default();
                counts.accesses += 1;
                counts.writes += usize::from(writes);
            });
        }
        let in_place: BTreeSet<Handle<Buffer>> =
            counts.keys().copied().filter(|storage| is_updated_in_place(kernel, body, *storage)).collect();
        let mut movable = Movable::default();
        let mut apart: BTreeMap<Handle<Buffer>, usize> = BTreeMap::new();
        for element in body {
            let (to, value) = match element {
                ElementStmt::Let { value, .. } | ElementStmt::Atomic(Atomic { value, condition: None, .. }) => {
                    (None, value)
                }
                // Its loads may be out of bounds where it does not happen.
                ElementStmt::Atomic(_) => continue,
                ElementStmt::Store { to, value, .. } => (Some(to), value),
                ElementStmt::If { .. } | ElementStmt::For { .. } => continue,
            };
            let is_known = |access: &Access| {
                let storage = kernel.storage(access.buffer);
                counts[&storage].writes == 0 || in_place.contains(&storage)
            };
            value.for_each_load(&mut |access| {
                if is_known(access) && movable.with(access, false).is_none() {
                    let number = movable.loads.len();
                    let gathering = || Gathered::of(kernel, access, number, &is_known);
                    movable.loads.extend(StaticAccess::of(kernel, access).or_else(gathering));
                }
            });
            let mut is_free = |to: &Access| {
                let storage = kernel.storage(to.buffer);
                let count = counts[&storage].accesses;
                let mut stores_apart = || stores_apart(kernel, body, to.buffer, splits);
                count == 1
                    || in_place.contains(&storage)
                    || count == *apart.entry(to.buffer).or_insert_with(&mut stores_apart)
            };
            let store = to.and_then(|to| Some((to, StaticAccess::of(kernel, to)?)));
            movable.stores.extend(store.filter(|(to, _)| is_free(to)).map(|(_, store)| store));
        }
        let [loads, stores] = [movable.loads, movable.stores].map(|accesses| interleaved(kernel, accesses, splits));
        Movable { loads, stores }
    }

    /// The one that an access belongs to.
    pub fn with(&self, access: &Access, writes: bool) -> Option<&StaticAccess> {
        let known = if writes { &self.stores } else { &self.loads };
        known.iter().find(|known| known.element(access).is_some())
    }

    /// Number of steps that are executed together.
    pub fn together(&self, kernel: &Kernel, vector: Option<i64>) -> usize {
        let steps = |access: &StaticAccess| {
            let most = widest(kernel.buffers[access.buffer].dtype, kernel.widest_access(access.buffer), vector);
            most / most.gcd(&access.elements.len())
        };
        self.loads.iter().chain(&self.stores).map(steps).max().unwrap_or(1)
    }
}

/// Whether every iteration reads an element of a storage, once or several times, and then stores to the same element, and does
/// nothing else with the storage. No other iteration accesses that element, so all iterations may read before any stores.
fn is_updated_in_place(kernel: &Kernel, body: &[ElementStmt], storage: Handle<Buffer>) -> bool {
    let mut stored: Option<(Handle<Buffer>, Vec<Expr>)> = None;
    // From the last statement to the first, so that the store comes before what it depends on.
    for element in body.iter().rev() {
        let mut is_right = true;
        let is_plain = matches!(element, ElementStmt::Let { .. } | ElementStmt::Store { .. });
        if let ElementStmt::Store { to, .. } = element
            && kernel.storage(to.buffer) == storage
        {
            is_right = stored.is_none();
            stored = to.known_index().map(|index| (to.buffer, index));
        }
        element.for_each_access(&mut |access, _| {
            let is_element = |(buffer, index): &(Handle<Buffer>, Vec<Expr>)| {
                access.buffer == *buffer && (access.is_at(index) || is_at_same(access, index))
            };
            let is_elsewhere = kernel.storage(access.buffer) != storage;
            is_right &= is_elsewhere || (is_plain && stored.as_ref().is_some_and(is_element));
        });
        if !is_right {
            return false;
        }
    }
    stored.is_some()
}

/// Whether the index of an access has the same values as these expressions: `i % 12` is `i` where `i` is less than 12.
fn is_at_same(access: &Access, index: &[Expr]) -> bool {
    let own = access.known_index();
    own.is_some_and(|own| own.iter().map(normalize).eq(index.iter().map(normalize)))
}

/// The number of stores to a buffer that every iteration executes, if no two of all iterations are to one element, else 0.
fn stores_apart(kernel: &Kernel, body: &[ElementStmt], buffer: Handle<Buffer>, splits: &mut Splits<'_>) -> usize {
    let mut positions: Vec<Split> = Vec::new();
    for element in body {
        let ElementStmt::Store { to, .. } = element else { continue };
        if to.buffer != buffer {
            continue;
        }
        let Some(index) = to.known_index() else { return 0 };
        let Some(place) = position(&kernel.buffers[buffer], &index, splits) else { return 0 };
        positions.push(place);
    }
    let mut all: Vec<i64> = positions.iter().flat_map(|place| place.own.iter().copied()).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    let have_one_rest = positions.windows(2).all(|pair| pair[0].other == pair[1].other);
    if have_one_rest && all.len() == count { positions.len() } else { 0 }
}

/// The most neighbours that are joined whatever their number is.
const MOST_WITHOUT_GAPS: usize = 8;

/// Accesses on the same line of memory: the distance of any two is the same number in all iterations.
struct Line {
    alike: Alike,
    /// The position of each iteration, plus what does not depend on the iteration, for the first access.
    own: Arc<Vec<i64>>,
    /// The distance of each access from the first one, and its place in the list of accesses.
    accesses: BTreeMap<i64, usize>,
}

/// What accesses on the same line have in common.
#[derive(PartialEq)]
struct Alike {
    buffer: Handle<Buffer>,
    /// Positions along dimensions whose strides depend on sizes, for each iteration.
    across: Vec<Arc<Vec<i64>>>,
    /// The parts of the position and of its bounds that do not depend on the iteration, and the extents of the bounds.
    rest: Vec<Expr>,
}

/// Joins accesses whose elements are neighbours in memory in every iteration. Separately, neighbouring steps could not
/// make any of them as vectors: between the elements of one are those of the others.
fn interleaved(kernel: &Kernel, accesses: Vec<StaticAccess>, splits: &mut Splits<'_>) -> Vec<StaticAccess> {
    let mut counts: BTreeMap<Handle<Buffer>, usize> = BTreeMap::new();
    accesses.iter().for_each(|access| *counts.entry(access.buffer).or_default() += 1);
    let mut lines: Vec<Line> = Vec::new();
    for (at, access) in
        accesses.iter().enumerate().filter(|(_, access)| counts[&access.buffer] > 1 && access.gathered.is_none())
    {
        let Some((alike, own)) = Alike::of(kernel, access, splits) else { continue };
        let known = lines.iter_mut().filter(|line| line.alike == alike);
        match known.map(|line| (distance(&line.own, &own), line)).find_map(|(apart, line)| Some((apart?, line))) {
            Some((apart, line)) => {
                line.accesses.entry(apart).or_insert(at);
            }
            None => lines.push(Line { alike, own, accesses: BTreeMap::from([(0, at)]) }),
        }
    }
    let groups = lines.iter().flat_map(|line| neighbours(&line.own, &line.accesses));
    let joined: Vec<Vec<usize>> = groups.filter(|group| group.len() > 1).collect();
    let mut out = Vec::new();
    for (at, access) in accesses.iter().enumerate() {
        match joined.iter().find(|group| group.contains(&at)) {
            None => out.push(access.clone()),
            Some(group) if group.iter().min() == Some(&at) => {
                let elements = group.iter().flat_map(|member| accesses[*member].elements.clone()).collect();
                out.push(StaticAccess { buffer: access.buffer, elements, gathered: None });
            }
            Some(_) => {}
        }
    }
    out
}

impl Alike {
    /// What an access has in common with others on its line, and its position on the line for each iteration.
    fn of(kernel: &Kernel, access: &StaticAccess, splits: &mut Splits<'_>) -> Option<(Alike, Arc<Vec<i64>>)> {
        let (buffer, index) = (&kernel.buffers[access.buffer], &access.elements[0]);
        let (mut across, mut rest) = (Vec::new(), Vec::new());
        let own = match position(buffer, index, splits) {
            Some(Split { own, other, .. }) => {
                rest.push(other);
                own
            }
            None => {
                let mut on_line = None;
                for (Split { own, other, .. }, stride) in Strided::of(buffer, index, splits)?.parts {
                    rest.push(other);
                    if stride.as_const() == Some(1) { on_line = Some(own) } else { across.push(own) }
                }
                on_line?
            }
        };
        for bound in kernel.bounds(buffer, index, splits) {
            rest.extend([splits.of(&bound.index)?.other, bound.extent]);
        }
        Some((Alike { buffer: access.buffer, across, rest }, own))
    }
}

/// Accesses in groups of neighbours in the order of memory: `own` are the positions of iterations in the first access,
/// and `accesses` has the distances of all. No two elements of a group are the same in any two iterations: these are
/// multiples of `apart` from each other, and a group is between two multiples.
fn neighbours(own: &[i64], accesses: &BTreeMap<i64, usize>) -> Vec<Vec<usize>> {
    let Some(first) = own.first() else { return Vec::new() };
    let apart = own.iter().fold(0, |apart: i64, own| apart.gcd(&(own - first)));
    let positions: Vec<(i64, usize)> = accesses.iter().map(|(distance, access)| (first + distance, *access)).collect();
    let is_neighbour =
        |one: &(i64, usize), next: &(i64, usize)| next.0 == one.0 + 1 && (apart == 0 || next.0.rem_euclid(apart) != 0);
    positions.chunk_by(is_neighbour).flat_map(|group| in_vectors(group, apart)).collect()
}

/// Neighbours as one group if all iterations together have no gaps, and else in groups of as many elements as a vector
/// may have. `positions` are those of one iteration; the others are multiples of `apart` from them.
fn in_vectors(positions: &[(i64, usize)], apart: i64) -> Vec<Vec<usize>> {
    let mut left = positions;
    let mut groups = Vec::new();
    while let Some((first, _)) = left.first() {
        let is_without_gaps = left.len() as i64 == apart && left.len() <= MOST_WITHOUT_GAPS;
        let aligned = (first | apart).trailing_zeros().min(left.len().ilog2());
        let (group, others) = left.split_at(if is_without_gaps { left.len() } else { 1 << aligned });
        groups.push(group.iter().map(|(_, access)| *access).collect());
        left = others;
    }
    groups
}

/// `next` minus `first`, if it is the same in all iterations.
fn distance(first: &[i64], next: &[i64]) -> Option<i64> {
    let mut apart = first.iter().zip(next).map(|(first, next)| next - first);
    let distance = apart.next()?;
    apart.all(|other| other == distance).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(own: &[i64], distances: &[i64]) -> Vec<Vec<usize>> {
        let accesses = distances.iter().enumerate().map(|(access, distance)| (*distance, access)).collect();
        neighbours(own, &accesses)
    }

    #[test]
    fn elements_that_iterations_have_for_themselves_are_neighbours() {
        assert_eq!(groups(&[0, 2, 4], &[1, 0]), [[1, 0]]);
        assert_eq!(groups(&[0, 3, 6], &[0, 1, 2]), [[0, 1, 2]]);
        assert_eq!(groups(&[0, 2, 4], &[0, 1, 2]), [vec![0, 1], vec![2]]);
        assert_eq!(groups(&[0, 1, 2], &[0, 1]), [[0], [1]]);
    }

    #[test]
    fn neighbours_with_gaps_are_as_many_as_a_vector_has() {
        assert_eq!(groups(&[0, 6, 12], &[0, 1, 2]), [vec![0, 1], vec![2]]);
        assert_eq!(groups(&[1, 9, 17], &[0, 1, 2, 3]), [vec![0], vec![1, 2], vec![3]]);
        assert_eq!(groups(&[4, 4, 4], &[0, 1, 2, 3]), [[0, 1, 2, 3]]);
    }

    #[test]
    fn only_a_distance_that_is_the_same_in_all_iterations_is_one() {
        assert_eq!(distance(&[0, 2, 4], &[1, 3, 5]), Some(1));
        assert_eq!(distance(&[0, 2, 4], &[1, 3, 4]), None);
    }
}
