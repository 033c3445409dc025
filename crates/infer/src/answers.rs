//! Results that were computed already.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_ir::tile::vectors::Chunk;
use tilewright_layout::map::Spread;

use crate::ids::{MapId, PatternId};
use crate::issue::{Issue, IssueKey};

/// Results that were computed already, by their inputs.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// Results of `Tables::spread`.
    pub(crate) spreads: BTreeMap<(usize, Spread), MapId>,
    /// Results of `Tables::complete`.
    pub(crate) completed: BTreeMap<(MapId, PatternId), MapId>,
    /// Results of `Tables::steps_from`.
    pub(crate) followed: BTreeMap<(MapId, PatternId), MapId>,
    /// Results of `Tables::once`.
    pub(crate) once: BTreeMap<MapId, MapId>,
    /// Results of `Tables::filled`.
    pub(crate) filled: BTreeMap<MapId, MapId>,
    /// Results of `Tables::widened`.
    pub(crate) widened: BTreeMap<(MapId, MapId), MapId>,
    /// Results of `Tables::is_within`.
    pub(crate) within: BTreeMap<(MapId, MapId), bool>,
    /// Results of `Tables::is_right`.
    pub(crate) right: BTreeMap<(MapId, PatternId, bool, MapId), bool>,
    /// Results of `Tables::selections`.
    pub(crate) selections: BTreeMap<(MapId, PatternId, MapId), u64>,
    /// Results of `Tables::with_turns`.
    pub(crate) turned: BTreeMap<(MapId, usize), MapId>,
    /// Chunks, by steps and the number of steps done together.
    pub(crate) chunks: BTreeMap<(MapId, usize), Arc<Vec<Chunk>>>,
    /// Results of `Tables::issue`.
    pub(crate) issues: BTreeMap<IssueKey, Issue>,
    /// Exchanges of a reduction, by source map and rows.
    pub(crate) shuffles: BTreeMap<(MapId, PatternId), u64>,
}
