//! The lanes of a warp, as masks and as values.

/// One value for each lane.
pub(crate) type Lanes = [u64; 32];

/// All lanes.
pub(crate) const FULL: u32 = u32::MAX;

/// Lane numbers of a mask, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneIter(u32);

/// The lanes of `mask`.
pub(crate) fn lanes(mask: u32) -> LaneIter {
    LaneIter(mask)
}

impl Iterator for LaneIter {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

/// The lane at each position.
pub(crate) type LaneOrder = [u8; 32];

/// The order of the lanes themselves.
pub(crate) const IN_ORDER: LaneOrder = {
    let mut order = [0; 32];
    let mut lane = 0;
    while lane < 32 {
        order[lane] = lane as u8;
        lane += 1;
    }
    order
};

/// Active lanes in the order of their addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByAddress {
    /// The lane at each position: the active lanes, then the others.
    pub(crate) lanes: LaneOrder,
    /// Number of active lanes.
    pub(crate) count: usize,
    /// Whether this is the order of the lanes.
    pub(crate) is_lane_order: bool,
}

impl ByAddress {
    /// The order of active lanes. `guess` is an order of all lanes that may be it, and becomes it.
    pub(crate) fn new(addresses: &Lanes, exec: u32, guess: &mut LaneOrder) -> ByAddress {
        let count = exec.count_ones() as usize;
        if exec == FULL {
            if !is_order(addresses, guess) {
                *guess = IN_ORDER;
                sort(addresses, guess);
            }
            return ByAddress { lanes: *guess, count, is_lane_order: *guess == IN_ORDER };
        }
        let mut order = IN_ORDER;
        let all = lanes(exec).chain(lanes(!exec));
        order.iter_mut().zip(all).for_each(|(slot, lane)| *slot = lane as u8);
        let active = &mut order[..count];
        let is_lane_order = is_order(addresses, active);
        if !is_lane_order {
            sort(addresses, active);
        }
        ByAddress { lanes: order, count, is_lane_order }
    }

    /// The active lanes.
    pub(crate) fn active(&self) -> &[u8] {
        &self.lanes[..self.count]
    }
}

/// Whether the lanes are in the order of their addresses, and those with equal ones in their own order.
fn is_order(addresses: &Lanes, order: &[u8]) -> bool {
    order.is_sorted_by_key(|lane| (addresses[usize::from(*lane)], *lane))
}

/// Sorts lanes by their addresses.
fn sort(addresses: &Lanes, order: &mut [u8]) {
    // An address in 59 bits leaves room for the lane; sorting numbers is the fastest.
    let mut keys = [0; 32];
    let keys = &mut keys[..order.len()];
    for (key, lane) in keys.iter_mut().zip(order.iter()) {
        *key = addresses[usize::from(*lane)] << 5 | u64::from(*lane);
    }
    if order.iter().all(|lane| addresses[usize::from(*lane)] >> 59 == 0) {
        keys.sort_unstable();
        order.iter_mut().zip(keys).for_each(|(lane, key)| *lane = *key as u8 & 31);
    } else {
        order.sort_unstable_by_key(|lane| (addresses[usize::from(*lane)], *lane));
    }
}
