//! The maps of a component's fragments at one point of the search.

use tilewright_diag::Span;

use crate::ids::MapId;
use crate::known::Pass;

/// Why a storage has its map, or a nest its steps.
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

/// The steps of a nest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    pub(crate) map: MapId,
    pub(crate) why: Why,
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

    /// The storage that an op follows where it follows `storage`. If that got its map from this op itself, it is the
    /// storage that the map came from.
    pub(crate) fn origin(&self, storage: usize, item: usize) -> usize {
        let why = self.fixed[storage].and_then(|fixed| fixed.why).filter(|why| why.item == item);
        why.and_then(|why| why.parent).unwrap_or(storage)
    }

    pub(crate) fn set(&mut self, storage: usize, map: MapId, why: Why) {
        self.fixed[storage] = Some(Fixed { map, why: Some(why) });
    }
}
