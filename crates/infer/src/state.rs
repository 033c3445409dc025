//! The maps of a component's fragments at one point of the search.

use tilewright_diag::Span;

use crate::ids::MapId;
use crate::known::Pass;

/// Why a storage has its map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Why {
    pub(crate) pass: Pass,
    pub(crate) rule: &'static str,
    /// The index of the op that gives it.
    pub(crate) item: usize,
    pub(crate) span: Span,
    /// The storage that it follows from.
    pub(crate) parent: Option<usize>,
}

/// The map of a storage. `why` is `None` if it was given before the search; it then never changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed {
    pub(crate) map: MapId,
    pub(crate) why: Option<Why>,
}

/// The maps that are known so far. Cheap to copy, so that a choice can be tried and undone.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The map of each storage, `None` while it has none.
    pub(crate) fixed: Vec<Option<Fixed>>,
    /// By op, the steps that a plan chose for its nest.
    pub(crate) hints: Vec<Option<MapId>>,
}

impl State {
    pub(crate) fn map(&self, storage: usize) -> Option<MapId> {
        self.fixed[storage].map(|fixed| fixed.map)
    }

    pub(crate) fn set(&mut self, storage: usize, map: MapId, why: Why) {
        self.fixed[storage] = Some(Fixed { map, why: Some(why) });
    }
}
