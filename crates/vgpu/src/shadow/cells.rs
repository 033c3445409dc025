//! The cells of a shadow: those of blocks, and of the parts that they are split into.

use crate::shadow::Span;
use crate::shadow::cell::{Cell, Parts};
use crate::shadow::half::Half;
use crate::shadow::level::Level;
use crate::shadow::sets::SideTables;
use crate::shadow::stamp::Records;

/// Parts for which there is room at first.
const FEWEST_PARTS: usize = 1024;

/// Where a cell is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// That of a block.
    Block(usize),
    /// That of a part.
    Part(usize),
    /// That of half a word.
    Half(usize),
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
    /// The halves of words; those of a unit are adjacent.
    halves: Vec<Half>,
}

impl Parts {
    /// The place of one of them.
    pub(super) fn place(self, index: usize) -> Place {
        match self {
            Parts::Cells(first) => Place::Part(first + index),
            Parts::Halves(first) => Place::Half(first + index),
        }
    }

    /// Their level, in a cell of a level.
    pub(super) fn level(self, whole: Level) -> Level {
        match self {
            Parts::Cells(_) => whole.below(),
            Parts::Halves(_) => Level::Half,
        }
    }
}

impl Cells {
    /// Bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        (self.blocks.len() + self.parts.len()) * size_of::<Cell>() + self.halves.len() * size_of::<Half>()
    }

    pub(super) fn clear(&mut self) {
        self.blocks.clear();
        self.parts.clear();
        self.halves.clear();
    }

    /// Makes room for so many bytes.
    pub(super) fn reach(&mut self, bytes: usize) {
        let blocks = bytes.div_ceil(Level::Block.size());
        if self.blocks.len() < blocks {
            self.blocks.resize(blocks, Cell::EMPTY);
        }
    }

    pub(super) fn get(&self, place: Place) -> Cell {
        match place {
            Place::Block(index) => self.blocks[index],
            Place::Part(index) => self.parts[index],
            Place::Half(index) => match self.halves[index].place() {
                Some(part) => self.parts[part],
                None => self.halves[index].cell(),
            },
        }
    }

    pub(super) fn set(&mut self, place: Place, cell: Cell) {
        match place {
            Place::Block(index) => self.blocks[index] = cell,
            Place::Part(index) => self.parts[index] = cell,
            Place::Half(index) => match (self.halves[index].place(), Half::of(&cell)) {
                (Some(part), _) => self.parts[part] = cell,
                (None, Some(half)) => self.halves[index] = half,
                (None, None) => {
                    self.halves[index] = Half::elsewhere(self.parts.len() as u32);
                    self.push(cell);
                }
            },
        }
    }

    fn push(&mut self, cell: Cell) {
        if self.parts.len() == self.parts.capacity() {
            // Room that is not used takes no memory of the host, but copies take time.
            self.parts.reserve(7 * self.parts.len() + FEWEST_PARTS);
        }
        self.parts.push(cell);
    }

    /// The cell of the byte at an offset, with its level, if its block was accessed.
    pub(super) fn find(&self, offset: usize) -> Option<(Cell, Level)> {
        let block = *self.blocks.get(offset / Level::Block.size())?;
        Some(self.find_within(block, Level::Block, offset))
    }

    /// The cell of the byte at an offset, in a cell of a level, with its level.
    pub(super) fn find_within(&self, mut cell: Cell, mut level: Level, offset: usize) -> (Cell, Level) {
        while let Some(parts) = cell.parts() {
            let below = parts.level(level);
            cell = self.get(parts.place(level.part_at(below, offset)));
            level = below;
        }
        (cell, level)
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
        let size = Level::Block.size();
        (span.offset / size..span.end().div_ceil(size)).all(|block| {
            let part = span.within(block * size, size);
            self.visit_within(Place::Block(block), Level::Block, part, (tables, records), &mut f)
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
            let cell = match place {
                Place::Block(index) => &mut self.blocks[index],
                Place::Part(index) => &mut self.parts[index],
                Place::Half(_) => return self.visit_half(place, span, (tables, records), f),
            };
            let parts = cell.parts();
            if parts.is_none() && span.len == level.size() {
                match f(cell, tables, span) {
                    Visit::Done => return true,
                    Visit::Stop => return false,
                    Visit::Split => {}
                }
            }
            let parts = parts.unwrap_or_else(|| self.split(place, level, parts_for(level, span), (tables, records)));
            let below = parts.level(level);
            let (first, last) = (level.part_at(below, span.offset), level.part_at(below, span.end() - 1));
            if first == last {
                (place, level) = (parts.place(first), below);
                continue;
            }
            let start = span.offset & !(below.size() - 1);
            return (first..=last).all(|part| {
                let inside = span.within(start + (part - first) * below.size(), below.size());
                self.visit_within(parts.place(part), below, inside, (tables, records), f)
            });
        }
    }

    /// Visits half a word, or its bytes.
    fn visit_half(
        &mut self,
        place: Place,
        span: Span,
        (tables, records): (&mut SideTables, &Records),
        f: &mut dyn FnMut(&mut Cell, &mut SideTables, Span) -> Visit,
    ) -> bool {
        let mut cell = self.get(place);
        if !cell.is_split() && span.len == Level::Half.size() {
            match f(&mut cell, tables, span) {
                Visit::Done => {
                    self.set(place, cell);
                    return true;
                }
                Visit::Stop => return false,
                Visit::Split => {}
            }
        }
        let bytes =
            cell.parts().unwrap_or_else(|| self.split(place, Level::Half, Level::Byte, (&mut *tables, records)));
        (span.offset..span.end()).all(|offset| {
            let place = bytes.place(Level::Half.part_at(Level::Byte, offset));
            let mut byte = self.get(place);
            let visited = f(&mut byte, tables, Span { offset, len: 1 });
            self.set(place, byte);
            // A byte has no parts.
            matches!(visited, Visit::Done)
        })
    }

    /// Splits the cell at a place into parts of a level.
    pub(super) fn split(
        &mut self,
        place: Place,
        level: Level,
        below: Level,
        (tables, records): (&mut SideTables, &Records),
    ) -> Parts {
        let whole = self.get(place);
        let parts = self.empty_parts(level, below);
        for index in 0..level.parts(below) {
            let copy = if index == 0 { whole } else { tables.copy(whole) };
            let part = copy.part(index * below.size(), |stamp| records.of(stamp).sharing);
            self.set(parts.place(index), part);
        }
        self.set(place, Cell::split(parts));
        parts
    }

    /// Empty cells for the parts of a cell.
    pub(super) fn empty_parts(&mut self, level: Level, below: Level) -> Parts {
        let count = level.parts(below);
        if below == Level::Half {
            let first = self.halves.len();
            self.halves.extend((0..count).filter_map(|_| Half::of(&Cell::EMPTY)));
            return Parts::Halves(first);
        }
        let first = self.parts.len();
        (0..count).for_each(|_| self.push(Cell::EMPTY));
        Parts::Cells(first)
    }
}

/// The level of the parts into which a cell is split for an access to a span in it.
fn parts_for(level: Level, span: Span) -> Level {
    let is_half = span.len == Level::Half.size() && span.offset.is_multiple_of(Level::Half.size());
    if level == Level::Unit && is_half { Level::Half } else { level.below() }
}
