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
