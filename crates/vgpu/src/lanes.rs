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

/// The order of the lanes.
pub(crate) const IN_ORDER: [u8; 32] = {
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
    pub(crate) lanes: [u8; 32],
    /// Number of active lanes.
    pub(crate) count: usize,
    /// Whether this is the order of the lanes.
    pub(crate) is_lane_order: bool,
}

impl ByAddress {
    pub(crate) fn new(addresses: &Lanes, exec: u32) -> ByAddress {
        let mut order = IN_ORDER;
        if exec != FULL {
            let all = lanes(exec).chain(lanes(!exec));
            order.iter_mut().zip(all).for_each(|(slot, lane)| *slot = lane as u8);
        }
        let count = exec.count_ones() as usize;
        let active = &mut order[..count];
        let is_lane_order = active.is_sorted_by_key(|lane| addresses[usize::from(*lane)]);
        if !is_lane_order {
            // An address in 59 bits leaves room for the lane; sorting numbers is the fastest.
            let mut keys = [0; 32];
            let keys = &mut keys[..count];
            for (key, lane) in keys.iter_mut().zip(active.iter()) {
                *key = addresses[usize::from(*lane)] << 5 | u64::from(*lane);
            }
            if lanes(exec).all(|lane| addresses[lane] >> 59 == 0) {
                keys.sort_unstable();
                active.iter_mut().zip(keys).for_each(|(lane, key)| *lane = *key as u8 & 31);
            } else {
                active.sort_unstable_by_key(|lane| addresses[usize::from(*lane)]);
            }
        }
        ByAddress { lanes: order, count, is_lane_order }
    }

    /// The active lanes.
    pub(crate) fn active(&self) -> &[u8] {
        &self.lanes[..self.count]
    }
}
