//! The rows of an access: lanes that access adjacent bytes.

use std::ops::Range;

use crate::exec::access::WarpAccess;
use crate::lanes::{FULL, IN_ORDER, LaneOrder};
use crate::shadow::{OrderNumber, Records};

/// The lanes of an access in an order in which they form rows: of adjacent positions, at adjacent addresses.
pub(super) struct Positions<'a> {
    access: &'a WarpAccess<'a>,
    pub(super) order: &'a LaneOrder,
    pub(super) number: OrderNumber,
    /// The positions with lanes that access memory.
    active: u32,
    /// The positions whose lane is like that at the next position.
    alike: u32,
}

impl<'a> Positions<'a> {
    pub(super) fn new(
        access: &'a WarpAccess<'a>,
        (alike, is_uniform): (u32, bool),
        records: &mut Records,
    ) -> Positions<'a> {
        let order = &access.order;
        let is_free = !order.is_lane_order && is_uniform;
        match is_free.then(|| records.order(&order.lanes)).flatten() {
            None => Positions { access, order: &IN_ORDER, number: OrderNumber::LANES, active: access.exec, alike },
            Some(number) => {
                let active = FULL >> (32 - order.count);
                Positions { access, order: &order.lanes, number, active, alike: FULL }
            }
        }
    }

    fn address(&self, position: usize) -> u64 {
        self.access.addresses[usize::from(self.order[position])]
    }

    /// The end of the row that begins at a position.
    fn end_of_row(&self, first: usize) -> usize {
        let goes_on = |at: usize| {
            let both = self.active >> at & 1 == 1 && self.alike >> (at - 1) & 1 == 1;
            both && self.address(at) == self.address(at - 1).wrapping_add(self.access.bytes.into())
        };
        (first + 1..32).find(|at| !goes_on(*at)).unwrap_or(32)
    }

    /// The first position and the end of each row.
    pub(super) fn rows(&self) -> impl Iterator<Item = Range<usize>> + Clone {
        let mut rest = self.active;
        std::iter::from_fn(move || {
            let first = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            let end = self.end_of_row(first);
            rest &= FULL.checked_shl(end as u32).unwrap_or(0);
            Some(first..end)
        })
    }
}
