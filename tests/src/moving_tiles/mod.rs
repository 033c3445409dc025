//! Regenerates what `docs/moving-tiles.md` shows: its pictures, the output of its commands, and the texts of refusals.

mod pictures;
mod refusals;
mod shown;

pub use pictures::{is_picture, pictures};
pub use shown::refreshed;

/// The numbers below `count` in a pseudorandom order, the same on every run.
fn shuffled(count: i64) -> Vec<i64> {
    let mut order: Vec<i64> = (0..count).collect();
    let mut state: u64 = 1;
    for last in (1..order.len()).rev() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        order.swap(last, (state >> 33) as usize % (last + 1));
    }
    order
}
