//! The datapaths of accumulators, and left multiplicands in tensor memory.

use crate::exec::access::RegionId;
use crate::exec::machine::Machine;
use crate::exec::product::{Element, Major, Multiplier, Values, extend_with_unit};
use crate::exec::tensor::memory::{COLUMNS, split};

/// The datapaths of an accumulator in one CTA (PTX ISA, section "Data Path Layout Organization").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Datapath {
    /// A row on each lane.
    Whole,
    /// Sixteen rows on each quarter of the lanes.
    Quarters,
    /// Rows on lanes in order; the columns are split into this many parts, each on its own lanes.
    Parts(usize),
}

impl Datapath {
    /// The datapath of the rows of one CTA.
    pub(super) fn of(m: usize, is_stationary: bool, is_pair: bool) -> Datapath {
        match (m, is_stationary) {
            (128, _) => Datapath::Whole,
            (_, false) if is_pair => Datapath::Parts(2),
            (_, false) => Datapath::Quarters,
            (_, true) => Datapath::Parts(128 / m),
        }
    }

    /// The lane and the column of an element.
    pub(super) fn place(self, m: usize, n: usize, row: usize, column: usize) -> (usize, usize) {
        let columns = self.columns(n);
        (self.lane(m, row, column / columns), column % columns)
    }

    /// The lane of a row of `m`, in a part of the columns.
    fn lane(self, m: usize, row: usize, part: usize) -> usize {
        match self {
            Datapath::Whole => row,
            Datapath::Quarters => row / 16 * 32 + row % 16,
            Datapath::Parts(_) => part * m + row,
        }
    }

    /// How many parts the columns are split into.
    pub(super) fn parts(self) -> usize {
        if let Datapath::Parts(parts) = self { parts } else { 1 }
    }

    pub(super) fn columns(self, n: usize) -> usize {
        n / self.parts()
    }

    /// The groups of 16 lanes, if the address has lane `first`.
    pub(super) fn groups(self, first: usize) -> Option<u8> {
        match (self, first) {
            (Datapath::Whole | Datapath::Parts(_), 0) => Some(u8::MAX),
            (Datapath::Quarters, 0) => Some(0b0101_0101),
            (Datapath::Quarters, 16) => Some(0b1010_1010),
            _ => None,
        }
    }
}

impl Machine<'_> {
    /// The elements of a left multiplicand in tensor memory: each row on its lane, adjacent along k. Each part of the columns of D
    /// has all rows on its own lanes, where they are the same (CUTLASS, `TmemAllocMode::Duplicated`).
    pub(super) fn tensor_values(
        &mut self,
        (warp, pc): (u32, u32),
        (id, address): (RegionId, u32),
        multiplier: &Multiplier,
        (rows, k): (usize, usize),
        (path, part): (Datapath, usize),
    ) -> Values {
        let (first_lane, first_column) = split(address);
        let in_unit = multiplier.element.in_unit();
        let mut values = Values { elements: Vec::new(), origins: vec![None; rows], ..Values::default() };
        for row in 0..rows {
            let lane = path.lane(rows, row, part);
            for unit in 0..k / in_unit {
                let mut bytes = [0u8; 16];
                for (word, part) in bytes.chunks_exact_mut(4).enumerate() {
                    let column = (first_column + unit * 4 + word) % COLUMNS;
                    let (bits, undefined) = self.owner(id).tensor.memory.get(first_lane + lane, column);
                    part.copy_from_slice(&bits.to_le_bytes());
                    let undefined = undefined.unwrap_or_else(|| self.unwritten_tensor(warp, pc));
                    if undefined.is_some() {
                        values.origins[row] = values.origins[row].or(Some(undefined.origin));
                    }
                }
                extend_with_unit(&mut values.elements, &bytes, multiplier);
            }
        }
        values
    }
}

/// Columns that a row of a left multiplicand takes in tensor memory.
pub(super) fn columns_of(multiplier: &Multiplier, k: usize) -> usize {
    k / multiplier.element.in_unit() * 4
}

/// Whether a left multiplicand of these elements can be in tensor memory here.
pub(super) fn is_in_tensor_memory(multiplier: &Multiplier) -> bool {
    multiplier.major == Major::K && !matches!(multiplier.element, Element::Padded(_))
}
