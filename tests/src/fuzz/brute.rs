//! The places of elements, computed directly from shard, replica and offset, without the library's `apply`.

use std::collections::{BTreeMap, BTreeSet};

use tilewright::layout::{Axis, Coord, Iter, TileLayout};

/// One position for each of a list of axes.
pub(crate) type Place = Vec<i64>;

/// The places of every element, over a list of axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// The place of the first copy of every element.
    pub(crate) base: Vec<Place>,
    /// The distances of all copies from the first: distinct, sorted, the first all 0.
    pub(crate) copies: Vec<Place>,
}

impl Places {
    /// The places of a layout; axes outside the list are ignored.
    pub(crate) fn of(layout: &TileLayout, axes: &[Axis]) -> Places {
        Places::new(first_places(layout, axes), walk(vec![vec![0; axes.len()]], layout.replica(), axes))
    }

    /// Elements at `base`, each with copies at these distances, which may be unordered and repeated.
    pub(crate) fn new(base: Vec<Place>, mut copies: Vec<Place>) -> Places {
        copies.sort_unstable();
        copies.dedup();
        let least = copies.first().cloned().unwrap_or_default();
        Places {
            base: base.iter().map(|place| plus(place, &least)).collect(),
            copies: copies.iter().map(|copy| minus(copy, &least)).collect(),
        }
    }

    /// The places of one element, in order.
    pub(crate) fn set(&self, element: usize) -> Vec<Place> {
        self.copies.iter().map(|copy| plus(&self.base[element], copy)).collect()
    }

    /// All places that hold an element.
    pub(crate) fn all(&self) -> BTreeSet<Place> {
        (0..self.base.len()).flat_map(|element| self.set(element)).collect()
    }

    /// The elements at each place that holds any, in order.
    pub(crate) fn held(&self) -> BTreeMap<Place, Vec<i64>> {
        let mut held: BTreeMap<Place, Vec<i64>> = BTreeMap::new();
        for element in 0..self.base.len() {
            for place in self.set(element) {
                held.entry(place).or_default().push(element as i64);
            }
        }
        held
    }

    /// The places of some of the elements, in this order.
    pub(crate) fn select(&self, elements: &[usize]) -> Places {
        let base = elements.iter().map(|&element| self.base[element].clone()).collect();
        Places { base, copies: self.copies.clone() }
    }

    /// Applies a linear map to every position and every distance.
    pub(crate) fn mapped(&self, map: impl Fn(&[i64]) -> Place) -> Places {
        let each = |list: &[Place]| list.iter().map(|place| map(place)).collect();
        Places::new(each(&self.base), each(&self.copies))
    }

    /// The least position on an axis, given by its column.
    pub(crate) fn least(&self, column: usize) -> i64 {
        self.base.iter().map(|place| place[column]).min().unwrap_or(0)
    }

    /// The greatest position on an axis, given by its column.
    pub(crate) fn greatest(&self, column: usize) -> i64 {
        let most = |list: &[Place]| list.iter().map(|place| place[column]).max().unwrap_or(0);
        most(&self.base) + most(&self.copies)
    }

    /// The first element whose places differ in `other`, which has the same number of elements.
    pub(crate) fn first_difference(&self, other: &Places) -> Option<usize> {
        if self.copies != other.copies {
            return Some(0);
        }
        (0..self.base.len()).find(|&element| self.base[element] != other.base[element])
    }
}

/// The place of every element, without replicas.
pub(crate) fn first_places(layout: &TileLayout, axes: &[Axis]) -> Vec<Place> {
    let start = axes.iter().map(|axis| layout.offset().get(axis).copied().unwrap_or(0)).collect();
    walk(vec![start], layout.shard(), axes)
}

/// Every place, displaced by every digit of every iter, the last iter fastest.
fn walk(start: Vec<Place>, iters: &[Iter], axes: &[Axis]) -> Vec<Place> {
    let mut places = start;
    for iter in iters {
        let column = axes.iter().position(|axis| *axis == iter.axis);
        let moved = |place: &Place, digit: i64| {
            let mut moved = place.clone();
            if let Some(column) = column {
                moved[column] += digit * iter.stride;
            }
            moved
        };
        places = places.iter().flat_map(|place| (0..iter.extent).map(move |digit| moved(place, digit))).collect();
    }
    places
}

pub(crate) fn plus(a: &[i64], b: &[i64]) -> Place {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

pub(crate) fn minus(a: &[i64], b: &[i64]) -> Place {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// The axes that the layouts use, ordered by name.
pub(crate) fn axes_of(layouts: &[&TileLayout]) -> Vec<Axis> {
    let mut axes = BTreeSet::new();
    for layout in layouts {
        axes.extend(layout.shard().iter().chain(layout.replica()).map(|iter| iter.axis.clone()));
        axes.extend(layout.offset().keys().cloned());
    }
    axes.into_iter().collect()
}

/// Fails if two maps place some element differently.
pub(crate) fn agree(got: &Places, expected: &Places) -> Result<(), String> {
    if got.base.len() != expected.base.len() {
        return Err(format!("{} elements, expected {}", got.base.len(), expected.base.len()));
    }
    match got.first_difference(expected) {
        None => Ok(()),
        Some(element) => {
            Err(format!("element {element} is at {:?}, expected {:?}", got.set(element), expected.set(element)))
        }
    }
}

/// Fails if two layouts place some element differently.
pub(crate) fn keeps_places(got: &TileLayout, expected: &TileLayout) -> Result<(), String> {
    let axes = axes_of(&[got, expected]);
    agree(&Places::of(got, &axes), &Places::of(expected, &axes)).map_err(|what| format!("{got}: {what}"))
}

/// The result of `apply`, as places over these axes.
pub(crate) fn rows(coords: &[Coord], axes: &[Axis]) -> Vec<Place> {
    let row = |coord: &Coord| axes.iter().map(|axis| coord.get(axis).copied().unwrap_or(0)).collect();
    coords.iter().map(row).collect()
}

/// A place in the form that the library accepts.
pub(crate) fn coord(place: &[i64], axes: &[Axis]) -> Coord {
    axes.iter().cloned().zip(place.iter().copied()).collect()
}

/// The extents of the shard iters.
pub(crate) fn extents_of(layout: &TileLayout) -> Vec<i64> {
    layout.shard().iter().map(|iter| iter.extent).collect()
}

/// The number of elements of a shape.
pub(crate) fn volume(shape: &[i64]) -> i64 {
    shape.iter().product()
}

/// True if all shapes can be formed from one list of extents: of any two numbers of elements after a boundary, one
/// divides the other.
pub(crate) fn nest(shapes: &[&[i64]]) -> bool {
    let mut boundaries = BTreeSet::from([1]);
    for shape in shapes {
        let mut behind = 1;
        for extent in shape.iter().rev() {
            behind *= extent;
            boundaries.insert(behind);
        }
    }
    let boundaries: Vec<i64> = boundaries.into_iter().collect();
    boundaries.windows(2).all(|pair| pair[1] % pair[0] == 0)
}

/// True if the canonical iters of the layout can be split at the boundaries of `shape`.
pub(crate) fn groups(layout: &TileLayout, shape: &[i64]) -> bool {
    volume(shape) == layout.size() && nest(&[&extents_of(&layout.canonicalize()), shape])
}

/// The row-major digits of an element in a shape.
pub(crate) fn digits(element: usize, shape: &[i64]) -> Vec<i64> {
    let mut rest = element as i64;
    let mut digits = vec![0; shape.len()];
    for (digit, extent) in digits.iter_mut().zip(shape).rev() {
        *digit = rest % extent;
        rest /= extent;
    }
    digits
}

/// The element at a coordinate of a shape.
pub(crate) fn element_at(coordinate: &[i64], shape: &[i64]) -> usize {
    coordinate.iter().zip(shape).fold(0i64, |element, (index, extent)| element * extent + index) as usize
}
