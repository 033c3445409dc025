//! Detection of races: which iteration and which CTA accessed each byte. Neither iterations of a loop nor CTAs are
//! ordered.

use tilewright::ir::Handle;
use tilewright::ir::tile::{Buffer, Claim, Space};

use super::machine::{CHANGES, Machine, Meaningless, Outcome, Touch, number_of};

impl Machine<'_> {
    /// Records an access of the current iteration to a byte, and fails if it conflicts with one of another iteration.
    /// Returns whether it is a store with [`Claim::AnyWins`] to a byte that another iteration stored in the same way.
    pub(super) fn touch(&mut self, storage: Handle<Buffer>, at: usize, touch: Touch) -> Outcome<bool> {
        self.among_ctas(storage, at, touch)?;
        let own = self.kernel.buffers[storage].space == Space::Fragment;
        let Some(running) = self.marks.as_mut().filter(|running| !(running.by_threads && own)) else {
            return Ok(false);
        };
        let iteration = running.iteration;
        let marks = running.bytes.entry((storage, at)).or_default();
        let other = |first: Option<i64>| first.is_some_and(|first| first != iteration);
        let is_by_chance = match touch {
            Touch::Atomic(change, is_ordered) => {
                other(marks.in_order) || is_ordered && other(marks.atomic[number_of(change)])
            }
            Touch::Read | Touch::Store(_) => false,
        };
        let is_changed = marks.atomic.iter().any(|first| other(*first));
        let (races, is_untrue) = match touch {
            Touch::Read => (other(marks.stored) || other(marks.stored_any) || is_changed, other(marks.stored_unique)),
            Touch::Atomic(change, _) => {
                let number = number_of(change);
                let otherwise = (0..CHANGES).any(|one| one != number && other(marks.atomic[one]));
                let stored = other(marks.stored) || other(marks.stored_any);
                (stored || otherwise || other(marks.read), other(marks.stored_unique))
            }
            Touch::Store(Claim::None) => (
                other(marks.stored) || other(marks.stored_any) || is_changed || other(marks.read),
                other(marks.stored_unique),
            ),
            Touch::Store(Claim::AnyWins) => {
                (other(marks.stored) || is_changed || other(marks.read), other(marks.stored_unique))
            }
            Touch::Store(Claim::Unique) => {
                let all = [marks.stored, marks.stored_any, marks.stored_unique, marks.read];
                (false, all.into_iter().any(other) || is_changed)
            }
        };
        let is_second = touch == Touch::Store(Claim::AnyWins) && other(marks.stored_any);
        let mark = match touch {
            Touch::Read => &mut marks.read,
            Touch::Atomic(change, is_ordered) => {
                if is_ordered {
                    marks.in_order.get_or_insert(iteration);
                }
                &mut marks.atomic[number_of(change)]
            }
            Touch::Store(Claim::None) => &mut marks.stored,
            Touch::Store(Claim::AnyWins) => &mut marks.stored_any,
            Touch::Store(Claim::Unique) => &mut marks.stored_unique,
        };
        mark.get_or_insert(iteration);
        let title = || format!("byte {at} of `{}`", self.kernel.buffers[storage].name);
        match (races && self.rules.races, is_untrue && self.rules.claims) {
            (true, _) => Err(Meaningless::Race(title())),
            (_, true) => Err(Meaningless::Claim(title())),
            (false, false) if is_by_chance => Err(Meaningless::Chance(title())),
            (false, false) => Ok(is_second),
        }
    }

    /// Fails if one CTA writes a byte that another accesses, since the result depends on their order.
    pub(super) fn among_ctas(&mut self, storage: Handle<Buffer>, at: usize, touch: Touch) -> Outcome<()> {
        if !matches!(self.kernel.buffers[storage].space, Space::Global(direction) if direction.is_written()) {
            return Ok(());
        }
        let kind = match touch {
            Touch::Read => 0,
            Touch::Store(_) | Touch::Atomic(_, true) => 1,
            Touch::Atomic(change, false) => 2 + number_of(change),
        };
        let (cta, marks) = (self.cta, self.ctas.entry((storage, at)).or_default());
        let meets = |other: usize| {
            marks[other].is_some_and(|first| first != cta) && (kind != other || kind < 2) && kind + other > 0
        };
        if (0..marks.len()).any(meets) {
            return Err(Meaningless::Chance(format!(
                "several CTAs access byte {at} of `{}`",
                self.kernel.buffers[storage].name
            )));
        }
        marks[kind].get_or_insert(cta);
        Ok(())
    }
}
