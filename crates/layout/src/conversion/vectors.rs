//! Which registers of a fragment go to or come from shared memory as one vector.

use crate::access::AccessKind;

use super::table::{FragmentTable, NONE};

/// The stores or the loads of a staging plan: the same instructions in all threads.
pub(crate) struct Part<'a> {
    pub(crate) table: &'a FragmentTable,
    pub(crate) kind: AccessKind,
    /// Elements of a vector.
    pub(crate) width: usize,
    /// The registers of each vector, in order of address.
    pub(crate) groups: Vec<Vec<usize>>,
}

impl<'a> Part<'a> {
    /// The widest vectors of at most `cap` elements (a power of two) that all threads can move in elements that follow
    /// each other in the tile, aligned.
    pub(crate) fn widest(table: &'a FragmentTable, kind: AccessKind, cap: usize, per_word: usize) -> Part<'a> {
        let mut width = cap;
        while width > 1 {
            if let Some(groups) = vectors(table, width, per_word) {
                return Part { table, kind, width, groups };
            }
            width /= 2;
        }
        let is_used = |register: &usize| (0..table.threads()).any(|thread| table.at(thread, *register) != NONE);
        let groups = (0..table.registers()).filter(is_used).map(|register| vec![register]).collect();
        Part { table, kind, width: 1, groups }
    }

    /// Vectors that do not begin where a word begins: their elements must be taken out of words, or put in.
    pub(crate) fn pieces(&self, per_word: usize) -> u64 {
        self.groups.iter().filter(|group| !group[0].is_multiple_of(per_word)).count() as u64
    }
}

/// The registers of each vector of `width` elements. Words stay whole; their order follows the elements of the thread
/// that has most. `None` where some thread cannot.
fn vectors(table: &FragmentTable, width: usize, per_word: usize) -> Option<Vec<Vec<usize>>> {
    let length = width.min(per_word);
    let runs = Runs::of(table, length)?;
    let count = width / length;
    let mut order = runs.used.clone();
    if count > 1 {
        if order.len() != runs.most || !order.len().is_multiple_of(count) {
            return None;
        }
        order.sort_by_key(|unit| (runs.first(runs.lead, *unit), *unit));
    }
    let groups = order.chunks(count);
    if !groups.clone().all(|group| runs.is_vector(table.threads(), group, width)) {
        return None;
    }
    Some(groups.map(|group| group.iter().flat_map(|unit| unit * length..(unit + 1) * length).collect()).collect())
}

/// A fragment cut into units of `length` registers that hold a run of elements or nothing.
struct Runs {
    length: usize,
    units: usize,
    /// The first element of each unit of each thread, [`NONE`] where it holds nothing.
    first: Vec<i32>,
    /// The units that hold something in some thread.
    used: Vec<usize>,
    /// The first thread that holds the most units, and how many those are.
    lead: usize,
    most: usize,
}

impl Runs {
    /// `None` where a unit of some thread holds no aligned run.
    fn of(table: &FragmentTable, length: usize) -> Option<Runs> {
        let units = table.registers().div_ceil(length);
        let mut runs = Runs { length, units, first: Vec::new(), used: Vec::new(), lead: 0, most: 0 };
        let mut is_used = vec![false; units];
        for thread in 0..table.threads() {
            let mut present = 0;
            for (unit, used) in is_used.iter_mut().enumerate() {
                let start = run_at(table, thread, unit * length, length)?;
                runs.first.push(start);
                *used |= start != NONE;
                present += usize::from(start != NONE);
            }
            if present > runs.most {
                (runs.lead, runs.most) = (thread, present);
            }
        }
        runs.used = (0..units).filter(|unit| is_used[*unit]).collect();
        Some(runs)
    }

    fn first(&self, thread: usize, unit: usize) -> i32 {
        self.first[thread * self.units + unit]
    }

    /// Whether these units hold one aligned run in every thread that holds them.
    fn is_vector(&self, threads: usize, group: &[usize], width: usize) -> bool {
        (0..threads).all(|thread| {
            let start = self.first(thread, group[0]);
            let wanted = |i: usize| if start == NONE { NONE } else { start + (i * self.length) as i32 };
            let follows = group.iter().enumerate().all(|(i, unit)| self.first(thread, *unit) == wanted(i));
            follows && (start == NONE || (start as usize).is_multiple_of(width))
        })
    }
}

/// The first element of `length` registers that hold an aligned run, [`NONE`] where they hold nothing.
fn run_at(table: &FragmentTable, thread: usize, register: usize, length: usize) -> Option<i32> {
    let start = table.at(thread, register);
    let wanted = |i: usize| if start == NONE { NONE } else { start + i as i32 };
    let is_run = (1..length).all(|i| table.at(thread, register + i) == wanted(i));
    (is_run && (start == NONE || (start as usize).is_multiple_of(length))).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(text: &str, cap: usize, per_word: usize) -> Vec<Vec<usize>> {
        let table = FragmentTable::of(&text.parse().unwrap()).unwrap();
        Part::widest(&table, AccessKind::Load, cap, per_word).groups
    }

    #[test]
    fn registers_of_consecutive_elements_are_vectors_in_any_order() {
        assert_eq!(groups("S[(32,4):(1@laneid,1@reg)]", 4, 1), [[0, 1, 2, 3]]);
        assert_eq!(groups("S[(32,2,2):(1@laneid,1@reg,2@reg)]", 4, 1), [[0, 2, 1, 3]]);
        assert_eq!(groups("S[(2,32,2):(2@reg,1@laneid,1@reg)]", 4, 1), [[0, 1], [2, 3]]);
    }

    #[test]
    fn words_are_not_taken_apart_for_a_wider_vector() {
        assert_eq!(groups("S[(32,2,2):(1@laneid,1@reg,2@reg)]", 8, 2), [[0], [1], [2], [3]]);
        assert_eq!(groups("S[(32,2,2,2):(1@laneid,2@reg,4@reg,1@reg)]", 8, 2), [[0, 1, 4, 5, 2, 3, 6, 7]]);
    }

    #[test]
    fn rows_that_are_no_multiple_of_the_vector_take_narrower_ones() {
        assert_eq!(groups("S[(24,6):(1@laneid,1@reg)]", 4, 1), [[0, 1], [2, 3], [4, 5]]);
        assert_eq!(groups("S[(24,5):(1@laneid,1@reg)]", 4, 1).len(), 5);
    }
}
