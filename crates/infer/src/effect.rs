//! What several accesses do to a fragment.

use tilewright_ir::tile::Effect;

/// What two accesses do together.
pub(crate) fn both(one: Effect, other: Effect) -> Effect {
    match (one.reads() || other.reads(), one.writes() || other.writes()) {
        (true, true) => Effect::Update,
        (false, true) => Effect::Write,
        (_, false) => Effect::Read,
    }
}
