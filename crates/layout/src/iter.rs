//! The part that layouts are made of.

use crate::axis::{Axis, M};

/// A strided walk over one axis: `extent` positions, `stride` apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Iter {
    /// How many positions it has; at least 1.
    pub extent: i64,
    /// How far one step moves, in units of the axis; may be 0 or negative.
    pub stride: i64,
    /// The axis.
    pub axis: Axis,
}

impl Iter {
    /// An iter on linear memory.
    pub fn memory(extent: i64, stride: i64) -> Iter {
        Iter { extent, stride, axis: M }
    }
}
