//! Steps for elements narrower than a bank.
//!
//! Lanes that touch the same 4-byte word in one step merge, so a step takes one wavefront where it touches at most one
//! word of every bank. Where a bank has more elements than there are steps, elements of one word have to share a step,
//! and edge colouring alone does not arrange that. So an initial schedule (a colouring, or whole words together) is
//! repaired: an excess element moves to another step, elements that it displaces there move the opposite way, and so
//! on until neither of the two steps has an excess that the exchange caused. Several initial schedules are tried while
//! there are more wavefronts than the lower bounds.

use std::collections::BTreeMap;

use tilewright_layout::access::LANES;

use super::banks::{BANKS, bank};
use super::colouring::balanced;

/// Reading and writing.
const PHASES: [usize; 2] = [0, 1];
/// Elements that all repairs together may move, in addition to [`MOVES_PER_ELEMENT`].
const MOVES: usize = 16384;
/// Schedules are repaired up to this product of elements and steps.
const MOST_REPAIRED: usize = 1 << 20;
/// Moves that all repairs together may make, for every element of the tile.
const MOVES_PER_ELEMENT: usize = 48;
/// Random moves without gain that are tried for one cell or step when no move gains.
const NEUTRAL_MOVES: usize = 4;
/// Sweeps without gain after which a repair ends.
const QUIET_SWEEPS: usize = 10;
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The initial schedules: each word of this phase as a whole in one step, or (`None`) a balanced colouring over the
/// banks, each time for another order of the elements.
const STARTS: [Option<usize>; 6] = [None, Some(0), Some(1), None, None, None];

/// Schedules elements narrower than a bank in steps of at most 32 elements, with as few wavefronts as it finds.
///
/// `words[e]` are the 4-byte words that element `e` is read from and written to. Returns the step of every element;
/// the result is deterministic. `None` if the elements do not fit.
pub(crate) fn schedule_words(words: &[(i64, i64)], steps: usize) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..words.len()).collect();
    let mut best = coloured(words, &order, steps, LANES)?;
    let mut fewest = total(words, &best, steps);
    let bound: i64 = sides(words).into_iter().map(|side| lower_bound(side.into_iter(), steps)).sum();
    let most_moves = (MOVES + MOVES_PER_ELEMENT * words.len()) / STARTS.len();
    let mut random = Xorshift(SEED);
    for whole_words in STARTS {
        // A repair looks at all steps for every element that it moves, so large tiles are not repaired.
        if fewest <= bound || words.len() * steps > MOST_REPAIRED {
            break;
        }
        let mut repair = Repair::new(words, steps, most_moves);
        match whole_words {
            Some(phase) => repair.place_words(phase),
            None => {
                let step_of = coloured(words, &order, steps, words.len().div_ceil(steps))?;
                step_of.into_iter().enumerate().for_each(|(element, step)| repair.put(element, step));
            }
        }
        repair.run();
        let is_settled = repair.settle();
        let found = total(words, &repair.step_of, steps);
        if is_settled && found < fewest {
            (best, fewest) = (repair.step_of, found);
        }
        random.shuffle(&mut order);
    }
    Some(best)
}

/// What a schedule costs: (wavefronts of the reads, of the writes).
pub(crate) fn wavefronts(words: &[(i64, i64)], step_of: &[usize], steps: usize) -> (i64, i64) {
    let mut touched: Vec<[Vec<i64>; 2]> = vec![[Vec::new(), Vec::new()]; steps];
    for ((read, written), step) in words.iter().zip(step_of) {
        touched[*step][0].push(*read);
        touched[*step][1].push(*written);
    }
    touched.into_iter().fold((0, 0), |sum, [read, written]| (sum.0 + most_words(read), sum.1 + most_words(written)))
}

/// The fewest wavefronts that any schedule of so many steps could take in one phase that touches these words.
pub(crate) fn lower_bound(words: impl Iterator<Item = i64>, steps: usize) -> i64 {
    most_words(words.collect()).max(steps as i64)
}

fn total(words: &[(i64, i64)], step_of: &[usize], steps: usize) -> i64 {
    let (reads, writes) = wavefronts(words, step_of, steps);
    reads + writes
}

/// The most different words in one bank.
fn most_words(mut words: Vec<i64>) -> i64 {
    words.sort_unstable();
    words.dedup();
    let mut per_bank = [0; BANKS];
    for word in words {
        per_bank[bank(word)] += 1;
    }
    per_bank.into_iter().max().unwrap_or(0)
}

/// The words of either phase.
fn sides(words: &[(i64, i64)]) -> [Vec<i64>; 2] {
    [words.iter().map(|(read, _)| *read).collect(), words.iter().map(|(_, written)| *written).collect()]
}

/// A balanced colouring over the banks, found in this order of the elements.
fn coloured(words: &[(i64, i64)], order: &[usize], steps: usize, most: usize) -> Option<Vec<usize>> {
    let edges: Vec<(usize, usize)> = order.iter().map(|e| (bank(words[*e].0), bank(words[*e].1))).collect();
    let mut step_of = vec![0; words.len()];
    for (element, step) in order.iter().zip(balanced(&edges, steps, most)?) {
        step_of[*element] = step;
    }
    Some(step_of)
}

/// These elements by their words, in the order of the words.
fn by_word(elements: impl Iterator<Item = usize>, words: &[i64]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for element in elements {
        groups.entry(words[element]).or_default().push(element);
    }
    groups.into_values().collect()
}

/// A schedule under repair. A *cell* is a bank in a step of one phase, with the number `step * BANKS + bank`.
struct Repair {
    steps: usize,
    /// The word of each element, by phase.
    words: [Vec<i64>; 2],
    /// How many words of one bank each step may touch, by phase.
    budgets: [Vec<usize>; 2],
    /// The elements in each cell, by phase.
    cells: [Vec<Vec<usize>>; 2],
    /// How many different words these elements are in, by phase.
    distinct: [Vec<usize>; 2],
    /// Elements in each step.
    load: Vec<usize>,
    /// The step of each element.
    step_of: Vec<usize>,
    /// Words in cells above the budgets, and elements in steps above `LANES`.
    cost: usize,
    /// The number of exchanges so far.
    exchanges: usize,
    /// The number of the exchange that moved each element last, counted from 1; 0 if none did.
    moved_in: Vec<usize>,
    /// The number of moves so far.
    moves: usize,
    /// After this many moves, no exchange begins.
    most_moves: usize,
    random: Xorshift,
}

impl Repair {
    fn new(words: &[(i64, i64)], steps: usize, most_moves: usize) -> Repair {
        let words = sides(words);
        let budgets = PHASES.map(|phase| {
            let bound = lower_bound(words[phase].iter().copied(), steps) as usize;
            (0..steps).map(|step| bound / steps + usize::from(step < bound % steps)).collect()
        });
        Repair {
            steps,
            budgets,
            cells: PHASES.map(|_| vec![Vec::new(); steps * BANKS]),
            distinct: PHASES.map(|_| vec![0; steps * BANKS]),
            load: vec![0; steps],
            step_of: vec![0; words[0].len()],
            cost: 0,
            exchanges: 0,
            moved_in: vec![0; words[0].len()],
            moves: 0,
            most_moves,
            random: Xorshift(SEED),
            words,
        }
    }

    /// Puts each word of a phase as a whole into the first of the steps where it costs least.
    fn place_words(&mut self, phase: usize) {
        for group in by_word(0..self.words[phase].len(), &self.words[phase]) {
            let cheapest = (0..self.steps).min_by_key(|step| self.price(&group, *step)).unwrap_or(0);
            for element in group {
                self.put(element, cheapest);
            }
        }
    }

    /// An estimate of the cost of these elements in a step.
    fn price(&self, group: &[usize], step: usize) -> usize {
        let refused = |phase: usize, element: usize| {
            !self.accepts(phase, self.cell(phase, element, step), self.words[phase][element])
        };
        let refusals: usize = PHASES.iter().map(|phase| group.iter().filter(|e| refused(*phase, **e)).count()).sum();
        refusals + (self.load[step] + group.len()).saturating_sub(LANES)
    }

    fn cell(&self, phase: usize, element: usize, step: usize) -> usize {
        step * BANKS + bank(self.words[phase][element])
    }

    fn holds(&self, phase: usize, cell: usize, word: i64) -> bool {
        self.cells[phase][cell].iter().any(|element| self.words[phase][*element] == word)
    }

    fn is_crowded(&self, phase: usize, cell: usize) -> bool {
        self.distinct[phase][cell] > self.budgets[phase][cell / BANKS]
    }

    /// Whether a word can be added to a cell without cost.
    fn accepts(&self, phase: usize, cell: usize, word: i64) -> bool {
        self.distinct[phase][cell] < self.budgets[phase][cell / BANKS] || self.holds(phase, cell, word)
    }

    fn put(&mut self, element: usize, step: usize) {
        self.step_of[element] = step;
        self.cost += usize::from(self.load[step] >= LANES);
        self.load[step] += 1;
        for phase in PHASES {
            let cell = self.cell(phase, element, step);
            if !self.holds(phase, cell, self.words[phase][element]) {
                self.distinct[phase][cell] += 1;
                self.cost += usize::from(self.is_crowded(phase, cell));
            }
            self.cells[phase][cell].push(element);
        }
    }

    fn take(&mut self, element: usize) {
        let step = self.step_of[element];
        self.load[step] -= 1;
        self.cost -= usize::from(self.load[step] >= LANES);
        for phase in PHASES {
            let cell = self.cell(phase, element, step);
            self.cells[phase][cell].retain(|other| *other != element);
            if !self.holds(phase, cell, self.words[phase][element]) {
                self.cost -= usize::from(self.is_crowded(phase, cell));
                self.distinct[phase][cell] -= 1;
            }
        }
    }

    /// Moves each element to the other of two steps, whose numbers add up to `sum`.
    fn cross(&mut self, elements: &[usize], sum: usize) {
        for element in elements {
            let step = sum - self.step_of[*element];
            self.take(*element);
            self.put(*element, step);
            self.moved_in[*element] = self.exchanges;
        }
        self.moves += elements.len();
    }

    /// Moves `group` to the other step, and displaced elements between the two steps. Returns all that moved.
    fn exchange(&mut self, group: &[usize], sum: usize) -> Vec<usize> {
        self.exchanges += 1;
        self.cross(group, sum);
        let mut moved = group.to_vec();
        let mut next = 0;
        while next < moved.len() {
            let element = moved[next];
            for phase in PHASES {
                let cell = self.cell(phase, element, self.step_of[element]);
                while let Some(out) = self.crowded_out(phase, cell) {
                    self.cross(&out, sum);
                    moved.extend(out);
                }
            }
            next += 1;
        }
        moved
    }

    /// The elements of a word in a crowded cell that was there before the exchange.
    fn crowded_out(&self, phase: usize, cell: usize) -> Option<Vec<usize>> {
        if !self.is_crowded(phase, cell) {
            return None;
        }
        let (elements, words) = (&self.cells[phase][cell], &self.words[phase]);
        let arrived = |word: i64| elements.iter().any(|e| words[*e] == word && self.moved_in[*e] == self.exchanges);
        let out = elements.iter().map(|element| words[*element]).find(|word| !arrived(*word))?;
        Some(elements.iter().copied().filter(|element| words[*element] == out).collect())
    }

    /// Moves `group` if the total cost is then at most `most`; otherwise everything stays where it is.
    fn attempt(&mut self, group: &[usize], to: usize, most: usize) -> bool {
        if self.moves >= self.most_moves {
            return false;
        }
        let sum = self.step_of[group[0]] + to;
        let moved = self.exchange(group, sum);
        let is_kept = self.cost <= most;
        if !is_kept {
            self.cross(&moved, sum);
        }
        is_kept
    }

    /// Moves one group out of a crowded cell or step; `options` are the groups and steps that may lower the cost.
    fn relieve(&mut self, groups: &[Vec<usize>], options: &[(usize, usize)]) {
        let cost = self.cost;
        let (later, sooner) = options.split_at(self.random.below(options.len()));
        for (group, to) in sooner.iter().chain(later) {
            if self.attempt(&groups[*group], *to, cost - 1) {
                return;
            }
        }
        for _ in 0..NEUTRAL_MOVES {
            let group = &groups[self.random.below(groups.len())];
            let to = self.random.below(self.steps);
            if to != self.step_of[group[0]] && self.attempt(group, to, cost) {
                return;
            }
        }
    }

    fn relieve_cell(&mut self, phase: usize, cell: usize) {
        let groups = by_word(self.cells[phase][cell].iter().copied(), &self.words[phase]);
        let mut options = Vec::new();
        for (group, elements) in groups.iter().enumerate() {
            let word = self.words[phase][elements[0]];
            let others = (0..self.steps).filter(|step| *step != cell / BANKS);
            let open = others.filter(|step| self.accepts(phase, step * BANKS + cell % BANKS, word));
            options.extend(open.map(|step| (group, step)));
        }
        self.relieve(&groups, &options);
    }

    fn relieve_step(&mut self, step: usize) {
        let groups: Vec<Vec<usize>> = self.in_step(step).into_iter().map(|element| vec![element]).collect();
        let open = self.open_steps();
        let options: Vec<(usize, usize)> =
            (0..groups.len()).flat_map(|group| open.iter().map(move |to| (group, *to))).collect();
        self.relieve(&groups, &options);
    }

    fn in_step(&self, step: usize) -> Vec<usize> {
        self.cells[0][step * BANKS..(step + 1) * BANKS].concat()
    }

    fn open_steps(&self) -> Vec<usize> {
        (0..self.steps).filter(|step| self.load[*step] < LANES).collect()
    }

    fn run(&mut self) {
        let (mut lowest, mut quiet) = (self.cost, 0);
        while self.cost > 0 && self.moves < self.most_moves && quiet < QUIET_SWEEPS {
            self.sweep();
            quiet = if self.cost < lowest { 0 } else { quiet + 1 };
            lowest = lowest.min(self.cost);
        }
    }

    fn sweep(&mut self) {
        for cell in 0..self.steps * BANKS {
            for phase in PHASES {
                if self.is_crowded(phase, cell) {
                    self.relieve_cell(phase, cell);
                }
            }
        }
        for step in 0..self.steps {
            if self.load[step] > LANES {
                self.relieve_step(step);
            }
        }
    }

    /// Moves the elements of a step beyond `LANES` to where they cost least. False if there is no room for them.
    fn settle(&mut self) -> bool {
        for step in 0..self.steps {
            while self.load[step] > LANES {
                let open = self.open_steps();
                let here = self.in_step(step);
                let moves = here.iter().flat_map(|element| open.iter().map(move |to| (*element, *to)));
                let cheapest = moves.min_by_key(|(element, to)| self.price(&[*element], *to));
                let Some((element, to)) = cheapest else { return false };
                self.take(element);
                self.put(element, to);
            }
        }
        true
    }
}

/// Pseudo-random numbers (xorshift), the same in every run.
struct Xorshift(u64);

impl Xorshift {
    /// A number below `count`, or 0.
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % count.max(1) as u64) as usize
    }

    fn shuffle(&mut self, order: &mut [usize]) {
        for last in (1..order.len()).rev() {
            order.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Element `e` is read from place `e` and written to place `places[e]`, in elements.
    fn dense(bytes: usize, places: &[usize]) -> Vec<(i64, i64)> {
        places.iter().enumerate().map(|(e, place)| ((e * bytes / 4) as i64, (place * bytes / 4) as i64)).collect()
    }

    /// Where elements go when the digits of their row-major numbers are put in another order.
    fn reordered(extents: &[usize], order: &[usize]) -> Vec<usize> {
        let place = |element: usize| {
            let mut digits = vec![0; extents.len()];
            let mut rest = element;
            for (digit, extent) in digits.iter_mut().zip(extents).rev() {
                *digit = rest % extent;
                rest /= extent;
            }
            order.iter().fold(0, |flat, axis| flat * extents[*axis] + digits[*axis])
        };
        (0..extents.iter().product::<usize>()).map(place).collect()
    }

    fn shuffled(count: usize, seed: u64) -> Vec<usize> {
        let mut places: Vec<usize> = (0..count).collect();
        Xorshift(seed).shuffle(&mut places);
        places
    }

    /// Wavefronts above the lower bounds; no step may have more than 32 elements.
    fn gaps(words: &[(i64, i64)], steps: usize) -> (i64, i64) {
        let step_of = schedule_words(words, steps).unwrap();
        assert!((0..steps).all(|step| step_of.iter().filter(|s| **s == step).count() <= LANES), "{step_of:?}");
        let (reads, writes) = wavefronts(words, &step_of, steps);
        let [read, written] = sides(words).map(|side| lower_bound(side.into_iter(), steps));
        (reads - read, writes - written)
    }

    fn assert_bounds_are_reached(extents: &[usize], order: &[usize]) {
        for bytes in [1, 2] {
            let words = dense(bytes, &reordered(extents, order));
            let steps = words.len().div_ceil(LANES);
            assert_eq!(gaps(&words, steps), (0, 0), "{extents:?} {order:?}, {bytes} bytes");
        }
    }

    #[test]
    fn dense_transposes_reach_the_lower_bounds() {
        for (rows, columns) in [(5, 32), (20, 8), (12, 8), (9, 32), (7, 31), (16, 16), (25, 40), (29, 25)] {
            assert_bounds_are_reached(&[rows, columns], &[1, 0]);
        }
    }

    #[test]
    fn dense_shuffles_of_digits_reach_the_lower_bounds() {
        let cases = [
            ([2, 5, 4, 4], [2, 3, 0, 1]),
            ([1, 4, 7, 8], [0, 2, 3, 1]),
            ([1, 3, 5, 11], [0, 3, 2, 1]),
            ([2, 2, 8, 17], [3, 1, 0, 2]),
            ([3, 2, 2, 16], [1, 3, 0, 2]),
        ];
        for (extents, order) in cases {
            assert_bounds_are_reached(&extents, &order);
        }
    }

    #[test]
    fn random_bijections_stay_within_one_wavefront_a_step_above_the_lower_bounds() {
        for count in [33, 70, 96, 150, 160, 200, 288, 300] {
            for bytes in [1, 2] {
                let words = dense(bytes, &shuffled(count, count as u64));
                let steps = words.len().div_ceil(LANES);
                let (reads, writes) = gaps(&words, steps);
                assert!(reads.max(writes) <= steps as i64, "{count} of {bytes} bytes: {reads} + {writes}");
            }
        }
    }

    #[test]
    fn padded_rows_reach_the_lower_bounds() {
        let places = (0..16i64).flat_map(|row| (0..16i64).map(move |column| (row * 18 + column, column * 20 + row)));
        let words: Vec<(i64, i64)> = places.map(|(read, written)| (read / 2, written / 2)).collect();
        assert_eq!(gaps(&words, 8), (0, 0));
    }

    #[test]
    fn lanes_in_the_same_word_merge() {
        let words = [(0, 0), (0, 32), (32, 1), (33, 1)];
        assert_eq!((wavefronts(&words, &[0; 4], 1), wavefronts(&words, &[0, 0, 1, 1], 2)), ((2, 2), (2, 3)));
    }

    #[test]
    fn the_lower_bound_is_one_wavefront_a_step_and_one_a_word_of_a_bank() {
        let words = [0, 32, 64, 64, 1];
        assert_eq!([2, 5].map(|steps| lower_bound(words.into_iter(), steps)), [3, 5]);
    }

    #[test]
    fn elements_that_do_not_fit_are_refused() {
        assert_eq!((schedule_words(&[(0, 0); 33], 1), schedule_words(&[], 0)), (None, Some(Vec::new())));
    }
}
