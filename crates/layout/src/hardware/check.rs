//! For tests: compares a fragment with the ISA's formula for every register of every thread.

use crate::axis::{Axis, LANEID, M, REG, TID_IN_WG, WID_IN_WG};
use crate::tile::TileLayout;

/// `formula(thread, register)` is the element of a tensor of this `shape` that is held there. When every place holds
/// the formula's element and there are as many places as elements, layout and formula are the same bijection.
pub(super) fn assert_formula(layout: &TileLayout, shape: &[i64], threads: i64, formula: impl Fn(i64, i64) -> Vec<i64>) {
    let size: i64 = shape.iter().product();
    assert_eq!((layout.size(), size % threads), (size, 0), "{layout} as {shape:?}");
    for thread in 0..threads {
        for register in 0..size / threads {
            let element = formula(thread, register);
            let places = layout.apply_in(&element, shape).unwrap();
            let on = |axis: Axis| places[0].get(&axis).copied().unwrap_or(0);
            let held = (on(LANEID) + 32 * on(WID_IN_WG) + on(TID_IN_WG), on(REG) + on(M));
            assert_eq!((places.len(), held), (1, (thread, register)), "{layout}, element {element:?}");
        }
    }
}
