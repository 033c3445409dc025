//! The cells of a shadow: those of blocks, and of the parts that they are split into.

use crate::shadow::Span;
use crate::shadow::cell::Cell;
use crate::shadow::sets::SideTables;
use crate::shadow::stamp::Records;

/// Binary logarithms of the bytes of a block, and of the parts that each is split into.
const BITS: [u32; 5] = [10, 6, 4, 2, 0];

/// Parts for which there is room at first.
const FEWEST_PARTS: usize = 1024;

/// How many bytes a cell stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level(usize);

impl Level {
    pub(super) const BLOCK: Level = Level(0);

    /// Bytes of a cell.
    pub(super) fn size(self) -> usize {
        1 << BITS[self.0]
    }

    /// That of the parts of a cell, which is not a byte.
    pub(super) fn below(self) -> Level {
        Level(self.0 + 1)
    }

    /// Number of parts of a cell, which is not a byte.
    pub(super) fn parts(self) -> usize {
        1 << (BITS[self.0] - BITS[self.0 + 1])
    }

    /// The part of a cell that has the byte at an offset in the region.
    fn part_at(self, offset: usize) -> usize {
        offset >> BITS[self.0 + 1] & (self.parts() - 1)
    }
}

/// Where a cell is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// That of a block.
    Block(usize),
    /// That of a part.
    Part(usize),
}

/// What is to follow the visit of a cell.
pub(super) enum Visit {
    Done,
    /// Nothing: the visit ends here.
    Stop,
    /// The visits of the cells of its parts, instead.
    Split,
}

/// The cells of a shadow.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    /// Those of the blocks, up to the last one that was accessed.
    pub(super) blocks: Vec<Cell>,
    /// Those of parts; the parts of one cell are adjacent.
    parts: Vec<Cell>,
}

impl Cells {
    pub(super) fn count(&self) -> usize {
        self.blocks.len() + self.parts.len()
    }

    pub(super) fn clear(&mut self) {
        self.blocks.clear();
        self.parts.clear();
    }

    /// Makes room for so many bytes.
    pub(super) fn reach(&mut self, bytes: usize) {
        let blocks = bytes.div_ceil(Level::BLOCK.size());
        if self.blocks.len() < blocks {
            self.blocks.resize(blocks, Cell::EMPTY);
        }
    }

    pub(super) fn get(&self, place: Place) -> Cell {
        match place {
            Place::Block(index) => self.blocks[index],
            Place::Part(index) => self.parts[index],
        }
    }

    pub(super) fn get_mut(&mut self, place: Place) -> &mut Cell {
        match place {
            Place::Block(index) => &mut self.blocks[index],
            Place::Part(index) => &mut self.parts[index],
        }
    }

    /// The cell of the byte at an offset, with its level, if its block was accessed.
    pub(super) fn find(&self, offset: usize) -> Option<(Cell, Level)> {
        let (mut cell, mut level) = (*self.blocks.get(offset / Level::BLOCK.size())?, Level::BLOCK);
        while let Some(first) = cell.parts() {
            cell = self.parts[first + level.part_at(offset)];
            level = level.below();
        }
        Some((cell, level))
    }

    /// Calls `f` with the cells of the bytes of a span, and with the bytes that each stands for. What the span covers only in
    /// part is split first. Returns whether it has visited all of them.
    pub(super) fn visit(
        &mut self,
        span: Span,
        (tables, records): (&mut SideTables, &Records),
        mut f: impl FnMut(&mut Cell, &mut SideTables, Span) -> Visit,
    ) -> bool {
        self.reach(span.end());
        let size = Level::BLOCK.size();
        (span.offset / size..span.end().div_ceil(size)).all(|block| {
            let part = span.within(block * size, size);
            self.visit_within(Place::Block(block), Level::BLOCK, part, (tables, records), &mut f)
        })
    }

    fn visit_within(
        &mut self,
        mut place: Place,
        mut level: Level,
        span: Span,
        (tables, records): (&mut SideTables, &Records),
        f: &mut impl FnMut(&mut Cell, &mut SideTables, Span) -> Visit,
    ) -> bool {
        loop {
            let cell = self.get_mut(place);
            let parts = cell.parts();
            if parts.is_none() && span.len == level.size() {
                match f(cell, tables, span) {
                    Visit::Done => return true,
                    Visit::Stop => return false,
                    Visit::Split => {}
                }
            }
            let parts = parts.unwrap_or_else(|| self.split(place, level, (tables, records)));
            let (first, last) = (level.part_at(span.offset), level.part_at(span.end() - 1));
            let below = level.below();
            if first == last {
                (place, level) = (Place::Part(parts + first), below);
                continue;
            }
            let start = span.offset & !(below.size() - 1);
            return (first..=last).all(|part| {
                let inside = span.within(start + (part - first) * below.size(), below.size());
                self.visit_within(Place::Part(parts + part), below, inside, (tables, records), f)
            });
        }
    }

    /// Splits the cell at a place into its parts, and returns the place of the first one.
    pub(super) fn split(
        &mut self,
        place: Place,
        level: Level,
        (tables, records): (&mut SideTables, &Records),
    ) -> usize {
        let (whole, first) = (self.get(place), self.parts.len());
        if self.parts.capacity() - first < level.parts() {
            // Room that is not used takes no memory of the host, but copies take time.
            self.parts.reserve(7 * first + FEWEST_PARTS);
        }
        for index in 0..level.parts() {
            let copy = if index == 0 { whole } else { tables.copy(whole) };
            let offset = index * level.below().size();
            self.parts.push(copy.part(offset, |stamp| records.of(stamp).sharing));
        }
        *self.get_mut(place) = Cell::split(first as u32);
        first
    }
}
