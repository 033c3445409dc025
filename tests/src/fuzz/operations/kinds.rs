//! Layouts of any kind, and the places of their elements.

use std::collections::BTreeSet;

use tilewright::layout::axis::M;
use tilewright::layout::{Axis, ComposeLayout, Coord, Layout, SwizzleLayout, TableLayout, TileLayout};

use crate::fuzz::brute::{Place, Places, axes_of, coord, rows};
use crate::fuzz::generate;
use crate::rng::Rng;

/// The set of places of each element, over a list of axes.
pub(crate) type Sets = Vec<BTreeSet<Place>>;

/// A tile, a swizzle over one, or a table.
pub(crate) fn any(rng: &mut Rng, budget: i64) -> Layout {
    match rng.below(3) {
        0 => Layout::Tile(generate::layout_of(rng, budget)),
        1 => Layout::Compose(swizzled(rng, budget)),
        _ => listed(&generate::layout_of(rng, budget)),
    }
}

/// A swizzle over linear memory.
pub(crate) fn swizzled(rng: &mut Rng, budget: i64) -> ComposeLayout {
    let swizzle = swizzle(rng);
    ComposeLayout::new(swizzle, generate::memory(rng, budget)).expect("positions from 0 on")
}

/// A swizzle that acts on small addresses.
pub(crate) fn swizzle(rng: &mut Rng) -> SwizzleLayout {
    let bits = rng.within(0..=3);
    let (keep, apart) = (rng.within(0..=3), rng.within(bits..=4));
    SwizzleLayout::new(keep, bits, apart, rng.percent(75)).expect("few bits")
}

/// The table of a tile, built from its places.
pub(crate) fn table(tile: &TileLayout) -> TableLayout {
    let axes = axes_of(&[tile]);
    let places = Places::of(tile, &axes);
    let coords = |element: usize| places.set(element).iter().map(|place| coord(place, &axes)).collect();
    let elements: Vec<Vec<Coord>> = (0..places.base.len()).map(coords).collect();
    TableLayout::new(&elements).expect("every element has a place")
}

/// The same, as a [`Layout`].
pub(crate) fn listed(tile: &TileLayout) -> Layout {
    Layout::Table(table(tile))
}

/// The address after the swizzle, computed bit by bit.
pub(crate) fn turned(swizzle: SwizzleLayout, address: i64) -> i64 {
    (0..swizzle.swizzle_len()).fold(address, |turned, bit| {
        let low = swizzle.per_element() + bit;
        let high = low + swizzle.atom_len();
        let (from, to) = if swizzle.inner() { (high, low) } else { (low, high) };
        turned ^ (((address >> from) & 1) << to)
    })
}

/// The places of every element: by brute force for a tile, bit by bit for a swizzle, as listed for a table.
pub(crate) fn sets_of(layout: &Layout, axes: &[Axis]) -> Sets {
    let of_tile = |tile: &TileLayout, axes: &[Axis]| -> Sets {
        let places = Places::of(tile, axes);
        (0..places.base.len()).map(|element| places.set(element).into_iter().collect()).collect()
    };
    match layout {
        Layout::Tile(tile) => of_tile(tile, axes),
        Layout::Compose(compose) => {
            let on_axes = |address: i64| -> Place {
                axes.iter().map(|axis| if *axis == M { turned(compose.swizzle(), address) } else { 0 }).collect()
            };
            let turn = |set: BTreeSet<Place>| set.iter().map(|place| on_axes(place[0])).collect();
            of_tile(compose.tile(), &[M]).into_iter().map(turn).collect()
        }
        Layout::Table(table) => {
            let coords = |element: i64| table.apply(element).expect("an element of the table");
            (0..table.size()).map(|element| rows(&coords(element), axes).into_iter().collect()).collect()
        }
    }
}

/// The layout as text for a message; a table is printed in full.
pub(crate) fn layout_text(layout: &Layout) -> String {
    match layout {
        Layout::Tile(_) | Layout::Compose(_) => format!("`{layout}`"),
        Layout::Table(table) => format!("the table {:?}", table.to_text()),
    }
}
