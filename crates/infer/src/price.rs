//! The registers that a fragment takes where threads have all of it.

use tilewright_diag::Diagnostic;
use tilewright_ir::tile::Kernel;
use tilewright_layout::map::Map;

use crate::inferred::Inferred;
use crate::known::Pass;

/// Registers that a fragment may take without a warning where threads have all of it.
const QUIET: u64 = 16;

impl Inferred {
    /// Warnings about fragments that threads have all of because nothing cheaper was found, with the price, and about
    /// `.vector(n)` that no access reaches. The kernel is the one given to inference, or the one that
    /// [`lay_out`](crate::lay_out) returned.
    pub fn warnings(&self, kernel: &Kernel) -> Vec<Diagnostic> {
        let mut found = self.whole_fragments(kernel);
        found.extend(self.narrower_than_asked(kernel));
        found
    }

    fn whole_fragments(&self, kernel: &Kernel) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (handle, placed) in &self.fragments {
            let is_chosen = placed.reason.pass == Pass::Free && placed.reason.parent.is_none();
            let Some(price) = Price::of(&placed.map, placed.bytes).filter(|price| is_chosen && price.taken > QUIET)
            else {
                continue;
            };
            let buffer = &kernel.buffers[*handle];
            let elements = buffer.shape.iter().product::<i64>();
            let (who, taken, share) = (price.who(), price.taken, price.share);
            let message = format!("{who} all {elements} elements of `{}`: {taken} registers", buffer.name);
            found.push(
                Diagnostic::warning("I0709", message)
                    .label(placed.reason.span, format!("`{}`: {}", placed.reason.op, placed.reason.rule))
                    .label(buffer.span, "declared here")
                    .note(format!("shared among the threads, it would take {share} per thread"))
                    .help("keep it in shared memory, or index it only by variables of parallel loops"),
            );
        }
        found
    }
}

/// The 4-byte registers that `granules` granules of `bytes` bytes take.
pub(crate) fn registers(granules: usize, bytes: i64) -> u64 {
    (granules as u64 * bytes as u64).div_ceil(4)
}

/// The price of a fragment that threads have all of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Price {
    /// Threads that have all of it.
    holders: usize,
    /// Threads of the CTA.
    threads: usize,
    /// Registers that it takes.
    taken: u64,
    /// Registers that it would take of each thread if it were shared among all.
    share: u64,
}

impl Price {
    /// `None` if no thread has all of it, or if sharing it would save no registers.
    fn of(map: &Map, bytes: i64) -> Option<Price> {
        let threads = map.threads();
        let (taken, share) = (registers(map.slots(), bytes), registers(map.elements().div_ceil(threads.max(1)), bytes));
        if taken <= share || map.slots() < map.elements() {
            return None;
        }
        let mut held = vec![0; threads];
        map.entries().for_each(|(thread, ..)| held[thread] += 1);
        let holders = held.iter().filter(|held| **held == map.elements()).count();
        (holders > 0).then_some(Price { holders, threads, taken, share })
    }

    fn who(&self) -> String {
        match self.holders {
            1 => "one thread has".to_string(),
            all if all == self.threads => "every thread has".to_string(),
            some => format!("{some} threads have"),
        }
    }
}

/// The price in words, if threads have all of a fragment and sharing it would save registers.
pub(crate) fn of_copies(map: &Map, bytes: i64) -> Option<String> {
    let price = Price::of(map, bytes)?;
    Some(format!("{} all of it: {} registers, {} if it were shared", price.who(), price.taken, price.share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_have_whole_has_a_price_and_other_things_have_none() {
        let price = "every thread has all of it: 32 registers, 1 if it were shared";
        assert_eq!(of_copies(&Map::replicated(32, 64), 2).as_deref(), Some(price));
        let half = Map::of_slots(4, 8, |thread, slot| (thread < 2).then_some(slot), 8);
        let price = "2 threads have all of it: 8 registers, 2 if it were shared";
        assert_eq!(of_copies(&half, 4).as_deref(), Some(price));
        assert_eq!(of_copies(&Map::replicated(32, 1), 4), None);
        let rows = Map::of_slots(4, 8, |thread, slot| Some(thread / 2 * 4 + slot), 4);
        assert_eq!(of_copies(&rows, 4), None);
    }
}
