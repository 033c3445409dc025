//! Orders of the lanes of a warp: which lane is at each position of a row.

use std::collections::BTreeMap;

use crate::lanes::{IN_ORDER, LaneOrder};

/// Orders that can be numbered; rows in others are not recorded as rows.
const MOST_ORDERS: usize = 1 << 12;

/// The number of an order; the one of [`OrderNumber::LANES`] is the order of lanes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderNumber(u16);

impl OrderNumber {
    /// Each lane is at its own position.
    pub(crate) const LANES: OrderNumber = OrderNumber(0);
}

/// All orders of rows of a memory, numbered.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    all: Vec<LaneOrder>,
    numbers: BTreeMap<LaneOrder, OrderNumber>,
}

impl Default for Orders {
    fn default() -> Orders {
        Orders { all: vec![IN_ORDER], numbers: BTreeMap::from([(IN_ORDER, OrderNumber::LANES)]) }
    }
}

impl Orders {
    /// The number of an order; `None` if it is new and there are too many.
    pub(super) fn number(&mut self, order: &LaneOrder) -> Option<OrderNumber> {
        if let Some(number) = self.numbers.get(order) {
            return Some(*number);
        }
        if self.all.len() >= MOST_ORDERS {
            return None;
        }
        let number = OrderNumber(self.all.len() as u16);
        self.all.push(*order);
        self.numbers.insert(*order, number);
        Some(number)
    }

    pub(super) fn get(&self, number: OrderNumber) -> &LaneOrder {
        &self.all[usize::from(number.0)]
    }
}
