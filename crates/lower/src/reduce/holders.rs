//! Which threads hold parts of rows, and which must hold results.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_ir::plan::Reason;
use tilewright_layout::map::Map;

use super::ReduceSchedule;
use super::rows::{Order, Rows, ShuffleMask};
use crate::fragment_registers::{FragmentRegisters, Slot};
use crate::refusal::Refusal;

/// By thread, the rows whose result it must hold, and the slot of each.
pub(super) type Owned = Vec<BTreeMap<usize, Slot>>;

/// The parts of all rows, and the threads that must hold results.
pub(super) struct Holders {
    pub(super) rows: Arc<Rows>,
    /// The same, with every element counted on only one of its threads.
    pub(super) single: Arc<Rows>,
    /// What threads must hold of each value of the results.
    pub(super) owned: Vec<Owned>,
}

impl Holders {
    /// The parts of `rows` rows of a source with this map, where `row_of` is the row of an element.
    pub(super) fn of(
        map: &Map,
        rows: usize,
        row_of: impl Fn(usize) -> usize + Copy,
        is_idempotent: bool,
        owned: Vec<Owned>,
    ) -> Holders {
        let in_order = |order| Rows::of(map, rows, row_of, is_idempotent, order);
        let single = Rows::of(&map.once_in_place(), rows, row_of, is_idempotent, Order::Rows);
        let (by_slot, by_row) = (in_order(Order::Slots), in_order(Order::Rows));
        let rows = if by_slot.complete().is_none() && by_row.complete().is_some() { by_row } else { by_slot };
        Holders { rows: Arc::new(rows), single: Arc::new(single), owned }
    }

    /// Whether every thread has a part of each row whose result it must hold.
    fn have_parts(&self, rows: &Rows) -> bool {
        let mut wanted = self.owned.iter().flat_map(|owned| owned.iter().enumerate());
        wanted.all(|(thread, own)| own.keys().all(|row| rows.place(thread, *row).is_some()))
    }

    /// Shuffles within warps, after which every thread has the rows whose results it must hold.
    pub(super) fn by_shuffles(&self) -> Result<Vec<ReduceSchedule>, Vec<Reason>> {
        let plain = self.rows.complete().map(|exchange| (Arc::clone(&self.rows), exchange));
        let padded = || self.rows.padded_complete().map(|(rows, exchange)| (Arc::new(rows), exchange));
        let complete = plain.filter(|(rows, _)| self.have_parts(rows)).or_else(padded);
        if let Some((rows, exchange)) = complete.filter(|(rows, _)| self.have_parts(rows)) {
            return Ok(vec![ReduceSchedule { rows, exchange, leaders: None }]);
        }
        let text = match self.have_parts(&self.rows) {
            true => "rows span warps, or lanes whose parts no shuffles combine",
            false => "a thread must hold a result but has no part of its row",
        };
        let accepted = "rows held by lanes of one warp whose numbers differ only in some bits";
        Err(vec![Reason { text: text.to_string(), accepted: accepted.to_string() }])
    }

    /// Shuffles as far as they go, and the rest through shared memory.
    pub(super) fn across_warps(&self) -> Result<Vec<ReduceSchedule>, Vec<Reason>> {
        let padded = self.rows.padded_partial().map(|(rows, exchange)| (Arc::new(rows), exchange));
        let (rows, exchange) = padded.unwrap_or_else(|| (Arc::clone(&self.rows), self.rows.partial()));
        let accepted = "rows whose elements have one owner each, or owners in equal groups";
        with_leaders(rows, exchange, accepted)
    }

    /// Counts every element on the first of its threads, and combines all parts through shared memory: this accepts any
    /// layout.
    pub(super) fn by_single_owners(&self) -> Result<Vec<ReduceSchedule>, Vec<Reason>> {
        let accepted = "sources in which every element has an owner";
        with_leaders(Arc::clone(&self.single), ShuffleMask { bits: 0 }, accepted)
    }
}

fn with_leaders(rows: Arc<Rows>, exchange: ShuffleMask, accepted: &str) -> Result<Vec<ReduceSchedule>, Vec<Reason>> {
    let leaders = rows.leaders(exchange).map_err(|text| vec![Reason { text, accepted: accepted.to_string() }])?;
    Ok(vec![ReduceSchedule { rows, exchange, leaders: Some(leaders) }])
}

/// By thread, the rows of a fragment of results that it must hold.
pub(super) fn owned(result: &FragmentRegisters, rows: usize) -> Result<Owned, Refusal> {
    let map = result.map(rows);
    let mut owned = vec![BTreeMap::new(); map.threads()];
    for (thread, _, row) in map.entries() {
        let slot = result.slot(thread, row as i64);
        owned[thread].insert(row, slot.ok_or_else(|| format!("thread {thread} has no slot for row {row}"))?);
    }
    Ok(owned)
}
