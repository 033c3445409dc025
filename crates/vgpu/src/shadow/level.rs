//! How a block is split into parts, and these again.

/// How many bytes a cell stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// 1024 bytes.
    Block,
    /// 64 bytes.
    Line,
    /// 16 bytes.
    Unit,
    /// 4 bytes.
    Word,
    /// 2 bytes, of a unit that is split into halves of words instead of words.
    Half,
    Byte,
}

impl Level {
    /// The binary logarithm of its bytes.
    fn bits(self) -> u32 {
        match self {
            Level::Block => 10,
            Level::Line => 6,
            Level::Unit => 4,
            Level::Word => 2,
            Level::Half => 1,
            Level::Byte => 0,
        }
    }

    /// Bytes of a cell.
    pub(super) fn size(self) -> usize {
        1 << self.bits()
    }

    /// That of the parts of a cell, which is not a byte; a unit may have halves instead.
    pub(super) fn below(self) -> Level {
        match self {
            Level::Block => Level::Line,
            Level::Line => Level::Unit,
            Level::Unit => Level::Word,
            Level::Word | Level::Half | Level::Byte => Level::Byte,
        }
    }

    /// Number of parts of a level in a cell.
    pub(super) fn parts(self, below: Level) -> usize {
        1 << (self.bits() - below.bits())
    }

    /// The part of a cell that has the byte at an offset in the region.
    pub(super) fn part_at(self, below: Level, offset: usize) -> usize {
        offset >> below.bits() & (self.parts(below) - 1)
    }
}
