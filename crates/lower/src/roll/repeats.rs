//! Finds statements that repeat with numbers that grow evenly.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_ir::thread::{RegArray, Stmt};
use tilewright_ir::{Arena, Handle};

use super::shape::{Mentions, Place, Shape, for_each_number, is_repeatable, map_numbers};

/// The most statements that repeat together.
const MOST_STATEMENTS: usize = 256;
/// How many places of the same shape are tried as the beginning of the second repetition.
const MOST_TRIED: usize = 12;

/// `count` times `period` statements, from `at` on.
pub(super) struct Repeat {
    pub(super) at: usize,
    pub(super) period: usize,
    pub(super) count: usize,
}

/// A list of statements, as far as their repetition matters.
pub(super) struct Repeats<'a> {
    body: &'a [Stmt],
    shapes: Vec<Shape>,
    /// For each statement, the number of its shape; `None` if it must stand alone.
    kinds: Vec<Option<usize>>,
    /// For each statement, the next one of its shape.
    next: Vec<Option<usize>>,
    /// Lines of each statement.
    lines: Vec<usize>,
    mentions: &'a Mentions,
    registers: &'a Arena<RegArray>,
}

impl<'a> Repeats<'a> {
    pub(super) fn of(
        body: &'a [Stmt],
        own: &BTreeSet<Handle<RegArray>>,
        mentions: &'a Mentions,
        registers: &'a Arena<RegArray>,
    ) -> Repeats<'a> {
        let mut first = BTreeMap::new();
        for array in own {
            let RegArray { dtype, len, vector, .. } = &registers[*array];
            first.entry((*dtype, *len, *vector)).or_insert(*array);
        }
        let representative = |array: Handle<RegArray>| {
            let RegArray { dtype, len, vector, .. } = &registers[array];
            own.contains(&array).then(|| first[&(*dtype, *len, *vector)])
        };
        let shapes: Vec<Shape> = body.iter().map(|stmt| Shape::of(stmt, &representative)).collect();
        let mut known: BTreeMap<u64, Vec<(usize, usize)>> = BTreeMap::new();
        let mut kinds = Vec::new();
        let (mut next, mut last) = (vec![None; body.len()], BTreeMap::new());
        let mut count = 0;
        for (at, shape) in shapes.iter().enumerate() {
            if !is_repeatable(&body[at]) {
                kinds.push(None);
                continue;
            }
            let alike = known.entry(shape.fingerprint).or_default();
            let kind = alike.iter().find(|(_, of)| shapes[*of].frame == shape.frame).map(|(kind, _)| *kind);
            let kind = kind.unwrap_or_else(|| {
                count += 1;
                alike.push((count, at));
                count
            });
            if let Some(before) = last.insert(kind, at) {
                next[before] = Some(at);
            }
            kinds.push(Some(kind));
        }
        let lines = body.iter().map(lines).collect();
        Repeats { body, shapes, kinds, next, lines, mentions, registers }
    }

    /// The repeat from a statement on that saves the most lines, if one saves any; of several, the shortest period.
    pub(super) fn longest(&self, at: usize) -> Option<Repeat> {
        self.kinds[at]?;
        let candidates = std::iter::successors(self.next[at], |found| self.next[*found]).take(MOST_TRIED);
        let repeats = candidates.map(|found| found - at).take_while(|period| *period <= MOST_STATEMENTS);
        let saved = |repeat: &Repeat| {
            // Vectors are declared where they are loaded.
            let is_declared = |array: &&Handle<RegArray>| self.registers[**array].vector == 1;
            let declared = self.private(repeat).0.iter().filter(is_declared).count();
            let lines = declared + self.lines[at..at + repeat.period].iter().sum::<usize>();
            (lines * repeat.count).saturating_sub(lines_of_loop(lines))
        };
        let repeats = repeats.filter_map(|period| self.repeat(at, period)).filter(|repeat| saved(repeat) > 0);
        repeats.max_by_key(|repeat| (saved(repeat), std::cmp::Reverse(repeat.period)))
    }

    /// The repeat with this period, as long as it is.
    fn repeat(&self, at: usize, period: usize) -> Option<Repeat> {
        let first = Repeat { at, period, count: 1 };
        let continues = |count: &usize| self.continues(at, period, *count) && self.has_arrays_like(&first, *count);
        let count = 1 + (1..).take_while(continues).count();
        (count > 1).then_some(Repeat { count, ..first })
    }

    /// Whether repetition `count` is like the ones before.
    fn continues(&self, at: usize, period: usize, count: usize) -> bool {
        let from = at + count * period;
        if from + period > self.shapes.len() {
            return false;
        }
        (0..period).all(|place| {
            let (first, this) = (at + place, from + place);
            self.kinds[first].is_some() && self.kinds[first] == self.kinds[this] && {
                let step = |number: usize| {
                    let second = &self.shapes[first + period].numbers;
                    second[number] - self.shapes[first].numbers[number]
                };
                let is_even = |number: usize| {
                    let wanted = self.shapes[first].numbers[number] + step(number) * count as i64;
                    self.shapes[this].numbers[number] == wanted
                };
                (0..self.shapes[first].numbers.len()).all(is_even)
            }
        })
    }

    /// Whether the arrays of a repetition are those of the first one, except for arrays that belong to this repetition
    /// alone and have the roles of arrays that belong to the first one alone.
    fn has_arrays_like(&self, repeat: &Repeat, repetition: usize) -> bool {
        let mut own: BTreeMap<Handle<RegArray>, Handle<RegArray>> = BTreeMap::new();
        let mut roles: BTreeMap<Handle<RegArray>, Handle<RegArray>> = BTreeMap::new();
        let pairs = self.arrays(repeat, 0).zip(self.arrays(repeat, repetition));
        // Where the second repetition has an array of its own, every other one has.
        let seconds = self.arrays(repeat, 1);
        for ((first, this), second) in pairs.zip(seconds) {
            if (first == this) != (first == second) {
                return false;
            }
            if first != this
                && (*own.entry(first).or_insert(this) != this || *roles.entry(this).or_insert(first) != first)
            {
                return false;
            }
        }
        let is_second = repetition == 1;
        self.are_private(repeat, repetition, own.values())
            && (!is_second || (self.are_private(repeat, 0, own.keys()) && self.constants_stay(repeat)))
    }

    /// Whether the registers of arrays of vectors, and what is compared for equality, are the same in all repetitions.
    fn constants_stay(&self, repeat: &Repeat) -> bool {
        (repeat.at..repeat.at + repeat.period).all(|at| {
            let (this, next) = (&self.shapes[at], &self.shapes[at + repeat.period]);
            let may_change = |place: Place| match place {
                Place::Register(array) => self.registers[array].vector == 1,
                Place::Equality => false,
                Place::Other => true,
            };
            (0..this.numbers.len()).all(|of| this.numbers[of] == next.numbers[of] || may_change(this.places[of]))
        })
    }

    fn arrays(&self, repeat: &Repeat, repetition: usize) -> impl Iterator<Item = Handle<RegArray>> {
        let from = repeat.at + repetition * repeat.period;
        self.shapes[from..from + repeat.period].iter().flat_map(|shape| shape.arrays.iter().copied())
    }

    /// Whether nothing but this repetition mentions the arrays.
    fn are_private<'b>(
        &self,
        repeat: &Repeat,
        repetition: usize,
        mut arrays: impl Iterator<Item = &'b Handle<RegArray>>,
    ) -> bool {
        let from = repeat.at + repetition * repeat.period;
        let here = Mentions::of(&self.body[from..from + repeat.period]);
        arrays.all(|array| here.count(*array) == self.mentions.count(*array))
    }

    /// The arrays of the first repetition that differ from those of the others, and those of the others.
    pub(super) fn private(&self, repeat: &Repeat) -> (BTreeSet<Handle<RegArray>>, BTreeSet<Handle<RegArray>>) {
        let (mut own, mut others) = (BTreeSet::new(), BTreeSet::new());
        for repetition in 1..repeat.count {
            let pairs = self.arrays(repeat, 0).zip(self.arrays(repeat, repetition));
            for (first, this) in pairs.filter(|(first, this)| first != this) {
                own.insert(first);
                others.insert(this);
            }
        }
        (own, others)
    }

    /// The statements of the first repetition with their numbers as those of repetition `var`.
    pub(super) fn stepped(&self, body: &[Stmt], repeat: &Repeat, var: &Expr) -> Vec<Stmt> {
        let stepped = |(place, stmt): (usize, &Stmt)| {
            let (first, second) = (repeat.at + place, repeat.at + place + repeat.period);
            let mut steps = self.shapes[first]
                .numbers
                .iter()
                .zip(&self.shapes[second].numbers)
                .map(|(first, second)| second - first);
            let mut stmt = stmt.clone();
            for_each_number(&mut stmt, &mut |_, expr| {
                *expr = normalize(&map_numbers(expr, &mut |number| var * steps.next().unwrap_or(0) + number));
            });
            stmt
        };
        body.iter().enumerate().map(stepped).collect()
    }
}

/// Lines of a loop with so many lines of statements: the directive, the head, and the end; a single statement is on the
/// line of the head.
fn lines_of_loop(inner: usize) -> usize {
    if inner == 1 { 2 } else { inner + 3 }
}

/// Lines of a statement in CUDA.
fn lines(stmt: &Stmt) -> usize {
    let inner: usize = stmt.inner().iter().map(lines).sum();
    match stmt {
        Stmt::For { .. } => lines_of_loop(inner),
        Stmt::If { .. } | Stmt::Unless { .. } | Stmt::IfValue { .. } => inner + 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
