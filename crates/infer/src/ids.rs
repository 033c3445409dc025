//! Numbers of interned maps, patterns and places.

/// The number of an interned map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MapId(pub(crate) usize);

/// The number of an interned pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PatternId(pub(crate) usize);

/// The number of interned [`Places`](tilewright_ir::tile::vectors::Places).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlacesId(pub(crate) usize);
