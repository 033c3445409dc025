//! Which registers of a fragment go to or come from shared memory as one vector.

use crate::access::AccessKind;

use super::table::{FragmentTable, NONE};

/// The stores or the loads of a staging plan: the same instructions in all threads.
pub(crate) struct VectorAccesses<'a> {
    /// Which register holds which element.
    pub(crate) table: &'a FragmentTable,
    pub(crate) kind: AccessKind,
    /// Bits that an element takes in shared memory.
    pub(crate) cell: usize,
    /// Elements of a vector.
    pub(crate) width: usize,
    /// The registers of each vector, in order of address.
    pub(crate) groups: Vec<Vec<usize>>,
}

impl<'a> VectorAccesses<'a> {
    /// The widest vectors of at most `cap` elements (a power of two) of `bits`, and of at least a byte, that all threads
    /// can move as consecutive, aligned elements of the tile. `None` if not even a byte is whole.
    pub(crate) fn widest(
        table: &'a FragmentTable,
        kind: AccessKind,
        cap: usize,
        bits: usize,
    ) -> Option<VectorAccesses<'a>> {
        let (least, per_word) = ((8 / bits).max(1), (32 / bits).max(1));
        let mut width = cap;
        while width >= least {
            if let Some(groups) = vectors(table, width, per_word) {
                return Some(VectorAccesses { table, kind, cell: bits, width, groups });
            }
            width /= 2;
        }
        None
    }

    /// Every element by itself, in its own byte.
    pub(crate) fn single(table: &'a FragmentTable, kind: AccessKind) -> Option<VectorAccesses<'a>> {
        VectorAccesses::widest(table, kind, 1, 8)
    }

    /// Bytes of a vector.
    pub(crate) fn bytes(&self) -> usize {
        self.width * self.cell / 8
    }

    /// Byte permutes, and shifts and masks, that take the vectors out of words of elements of `bits`, or put them in.
    /// A vector where a word begins takes no permute. An element that is stored in its own byte is shifted
    /// down and masked; one that is loaded from there is shifted up and joined to the others.
    pub(crate) fn moves(&self, bits: usize) -> (u64, u64) {
        let per_word = (32 / bits).max(1);
        let inside = self.groups.iter().filter(|group| !group[0].is_multiple_of(per_word)).count() as u64;
        match self.kind {
            _ if self.cell == bits => (inside, 0),
            AccessKind::Store => (0, inside + self.groups.len() as u64),
            AccessKind::Load => (0, 2 * inside),
        }
    }
}

/// The registers of each vector of `width` elements. Words stay whole; their order follows the elements of the thread
/// that holds the most. `None` if some thread cannot move such vectors.
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
    /// Registers of a unit.
    length: usize,
    units: usize,
    /// The first element of each unit of each thread, [`NONE`] where it holds nothing.
    first: Vec<i32>,
    /// The units that hold something in some thread.
    used: Vec<usize>,
    /// The first thread that holds the most units.
    lead: usize,
    /// How many units that thread holds.
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

    fn groups(text: &str, cap: usize, bits: usize) -> Vec<Vec<usize>> {
        let table = FragmentTable::of(&text.parse().unwrap()).unwrap();
        VectorAccesses::widest(&table, AccessKind::Load, cap, bits).map(|part| part.groups).unwrap_or_default()
    }

    #[test]
    fn registers_of_consecutive_elements_are_vectors_in_any_order() {
        assert_eq!(groups("S[(32,4):(1@laneid,1@reg)]", 4, 32), [[0, 1, 2, 3]]);
        assert_eq!(groups("S[(32,2,2):(1@laneid,1@reg,2@reg)]", 4, 32), [[0, 2, 1, 3]]);
        assert_eq!(groups("S[(2,32,2):(2@reg,1@laneid,1@reg)]", 4, 32), [[0, 1], [2, 3]]);
    }

    #[test]
    fn words_are_not_taken_apart_for_a_wider_vector() {
        assert_eq!(groups("S[(32,2,2):(1@laneid,1@reg,2@reg)]", 8, 16), [[0], [1], [2], [3]]);
        assert_eq!(groups("S[(32,2,2,2):(1@laneid,2@reg,4@reg,1@reg)]", 8, 16), [[0, 1, 4, 5, 2, 3, 6, 7]]);
    }

    #[test]
    fn rows_that_are_no_multiple_of_the_vector_take_narrower_ones() {
        assert_eq!(groups("S[(24,6):(1@laneid,1@reg)]", 4, 32), [[0, 1], [2, 3], [4, 5]]);
        assert_eq!(groups("S[(24,5):(1@laneid,1@reg)]", 4, 32).len(), 5);
    }

    #[test]
    fn elements_below_a_byte_move_in_whole_bytes() {
        assert_eq!(groups("S[(32,4):(1@laneid,1@reg)]", 32, 4), [[0, 1, 2, 3]]);
        assert_eq!(groups("S[(32,2,2):(1@laneid,2@reg,1@reg)]", 32, 4), [[0, 1, 2, 3]]);
        assert_eq!(groups("S[(2,32,2):(2@reg,1@laneid,1@reg)]", 32, 4), [[0, 1], [2, 3]]);
        assert!(groups("S[(2,32):(1@reg,1@laneid)]", 32, 4).is_empty());
        assert!(groups("S[(32,4):(1@laneid,1@reg)]", 128, 1).is_empty());
    }

    #[test]
    fn an_element_in_a_byte_of_its_own_takes_shifts_and_masks() {
        let table = FragmentTable::of(&"S[(2,32):(1@reg,1@laneid)]".parse().unwrap()).unwrap();
        let moves = |kind| VectorAccesses::single(&table, kind).unwrap().moves(4);
        assert_eq!((moves(AccessKind::Store), moves(AccessKind::Load)), ((0, 3), (0, 2)));
    }
}
