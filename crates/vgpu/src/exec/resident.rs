//! The CTAs that are resident at once, and their turns. Without a seed, a CTA runs until it ends or has to wait, and the
//! next one starts only then; a seed starts them in another order and interleaves them.

use crate::exec::cta::Cta;
use crate::exec::machine::Machine;
use crate::exec::random::Random;
use crate::exec::schedule::Slice;
use crate::exec::warp::Warp;
use crate::fault::Fault;

/// A CTA that has started and not ended.
pub(super) struct Resident {
    cta: Cta,
    pub(super) warps: Vec<Warp>,
}

/// The order in which the CTAs of a grid start.
struct Starts {
    count: u64,
    next: u64,
    /// The CTA at place `n` is `(first + n * step) % count`; `step` has no divisor in common with `count`.
    first: u64,
    step: u64,
}

impl Starts {
    fn new(count: u32, random: Option<&mut Random>) -> Starts {
        let (first, step) = match random {
            None => (0, 1),
            Some(random) => {
                let mut step = u64::from(random.below(count)).max(1);
                while divisor(step, u64::from(count)) != 1 {
                    step += 1;
                }
                (u64::from(random.below(count)), step)
            }
        };
        Starts { count: u64::from(count), next: 0, first, step }
    }

    /// The linear index of the next CTA.
    fn next(&mut self) -> Option<u32> {
        let place = (self.next < self.count).then_some(self.next)?;
        self.next += 1;
        Some(((self.first + place * self.step) % self.count) as u32)
    }
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

impl Machine<'_> {
    /// Runs every CTA of the grid.
    pub(super) fn run_ctas(&mut self, most_resident: u32) -> Result<(), Box<Fault>> {
        let mut starts = Starts::new(self.completed.ctas, self.random.as_mut());
        let mut resident: Vec<Resident> = Vec::new();
        loop {
            let room = resident.len() < most_resident as usize;
            let started = if room { starts.next() } else { None };
            let has_started = started.is_some();
            resident.extend(started.map(|linear| self.start(linear)));
            if resident.is_empty() {
                return Ok(());
            }
            if let Some(random) = &mut self.random {
                random.shuffle(&mut resident);
            }
            let mut progress = has_started;
            let mut running = Vec::new();
            for mut item in resident {
                match self.run_slice(&mut item)? {
                    Slice::Ended => progress = true,
                    Slice::Running => {
                        progress = true;
                        running.push(item);
                    }
                    Slice::Blocked => running.push(item),
                }
            }
            resident = running;
            if !progress {
                return Err(self.deadlock(&mut resident));
            }
        }
    }

    fn start(&mut self, linear: u32) -> Resident {
        let [x, y, _] = self.launch.grid;
        let index = [linear % x, linear / x % y, linear / x / y];
        let cta = Cta::new(self.program, self.launch, self.options, self.first_cta + linear, index);
        let warps = self.warps_of(&cta);
        Resident { cta, warps }
    }

    /// Gives a CTA its turn.
    fn run_slice(&mut self, item: &mut Resident) -> Result<Slice, Box<Fault>> {
        std::mem::swap(&mut self.cta, &mut item.cta);
        let slice = self.run_warps(&mut item.warps)?;
        if slice == Slice::Ended {
            self.completed.ended += 1;
        }
        std::mem::swap(&mut self.cta, &mut item.cta);
        Ok(slice)
    }

    /// The fault of a launch in which no thread can run: that of its first CTA.
    fn deadlock(&mut self, resident: &mut [Resident]) -> Box<Fault> {
        resident.sort_by_key(|item| item.cta.number);
        let first = &mut resident[0];
        std::mem::swap(&mut self.cta, &mut first.cta);
        self.deadlock_fault(&first.warps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cta_starts_once_in_any_order() {
        for (count, seed) in [(1, 1), (7, 2), (60, 3), (1000, 4)] {
            let mut random = Random::new(seed);
            let mut starts = Starts::new(count, Some(&mut random));
            let mut order: Vec<u32> = std::iter::from_fn(|| starts.next()).collect();
            assert!(count < 60 || order != (0..count).collect::<Vec<u32>>());
            order.sort_unstable();
            assert_eq!(order, (0..count).collect::<Vec<u32>>());
        }
    }
}
