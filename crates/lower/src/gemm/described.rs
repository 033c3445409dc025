//! Factors in shared memory, as descriptors describe them to the matrix units that read them by themselves.

use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_ir::plan::{MemoryKind, Reason};
use tilewright_ir::thread::SharedMatrix;
use tilewright_layout::axis::M;
use tilewright_layout::descriptor::{
    Major, SwizzlePattern, Tcgen05Descriptor, WgmmaDescriptor, tcgen05_descriptor, wgmma_descriptor,
};
use tilewright_layout::{ComposeLayout, Layout, LayoutError};

use super::{ragged, reason};
use crate::builder::Builder;
use crate::operand::{MemoryTile, Operand};

/// Rows in a block, with which parts of a factor begin.
pub(super) const BLOCK_ROWS: i64 = 64;

/// The matrix unit that reads a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatrixUnit {
    /// That of `wgmma`.
    Wgmma,
    /// That of `tcgen05.mma`.
    Tcgen05,
}

/// A tile in shared memory that descriptors describe.
#[derive(Clone)]
pub(super) struct Described {
    tile: MemoryTile,
    /// The descriptor without an address.
    descriptor: u64,
    pub(super) pattern: SwizzlePattern,
    /// Bytes from the first of the tile to the first part.
    start: i64,
    /// Bytes that each step along K adds.
    advance: Vec<i64>,
    /// Bytes from one block of rows to the next.
    apart: i64,
    pub(super) is_transposed: bool,
    /// Bytes of which the memory begins at a multiple.
    alignment: i64,
}

/// What a unit says of a tile: the descriptor without an address, where it begins, and what steps along K add.
type Parts = (u64, i64, Vec<i64>);

impl MatrixUnit {
    fn describe(self, layout: &Layout, shape: [i64; 2], bits: i64, major: Major) -> Result<Parts, LayoutError> {
        match self {
            MatrixUnit::Wgmma => {
                let found = wgmma_descriptor(layout, shape, bits, major)?;
                let plain = WgmmaDescriptor { start_address: 0, ..found.descriptor };
                Ok((plain.encode(), i64::from(found.descriptor.start_address) * 16, found.advance))
            }
            MatrixUnit::Tcgen05 => {
                let found = tcgen05_descriptor(layout, shape, bits, major)?;
                let plain = Tcgen05Descriptor { start_address: 0, ..found.descriptor };
                Ok((plain.encode(), i64::from(found.descriptor.start_address) * 16, found.advance))
            }
        }
    }
}

impl Described {
    /// The descriptors of a tile of rows of M or N, with K along them unless it is stored the other way round.
    pub(super) fn of(
        unit: MatrixUnit,
        tile: &MemoryTile,
        [rows, k]: [i64; 2],
        (is_turned, name): (bool, &str),
    ) -> Result<Described, Reason> {
        let refused = |error: LayoutError| {
            let (problem, accepted) = match error {
                LayoutError::Descriptor { problem, legal, .. } => (problem, legal),
                other => (other.to_string(), "the layouts of `mma_shared_layout`".to_string()),
            };
            reason(format!("no descriptor matches `{}`, which is `{name}`: {problem}", tile.title), &accepted)
        };
        let stored = if is_turned { [k, rows] } else { [rows, k] };
        let iters = tile.iters()?.clone();
        let whole = match tile.placed.swizzle {
            None => Layout::Tile(iters),
            Some(swizzle) => Layout::Compose(ComposeLayout::new(swizzle, iters).map_err(refused)?),
        };
        let upright = if is_turned { whole.reorder(&stored, &[1, 0]).map_err(refused)? } else { whole };
        let bits = tile.dtype.bytes() * 8;
        let pattern = SwizzlePattern::of(&upright, bits).unwrap_or(SwizzlePattern::None);
        let alignment = pattern.repeat().max(16);
        if (tile.placed.start.multiple() * tile.dtype.bytes()) % alignment != 0 {
            let text = format!("`{}` does not begin at a multiple of {alignment} B", tile.title);
            return Err(reason(text, "tiles that begin where the pattern of the swizzle does"));
        }
        let of = |major| unit.describe(&upright, [rows, k], bits, major);
        let (parts, is_transposed) = match (of(Major::K), of(Major::MN)) {
            (Ok(parts), _) => (parts, false),
            (Err(_), Ok(parts)) => (parts, true),
            (Err(along_k), Err(along_mn)) => return Err(refused(if is_turned { along_mn } else { along_k })),
        };
        let apart = blocks_apart(&upright, [rows, k], tile.dtype.bytes()).ok_or_else(|| {
            let text = format!("the blocks of {BLOCK_ROWS} rows of `{}` are not evenly spaced", tile.title);
            reason(text, "the layouts of `mma_shared_layout`")
        })?;
        let (descriptor, start, advance) = parts;
        Ok(Described { tile: tile.clone(), descriptor, pattern, start, advance, apart, is_transposed, alignment })
    }

    /// Lets the memory of the tile begin where descriptors can say.
    pub(super) fn align(&self, builder: &mut Builder) {
        let owner = builder.program.owner(self.tile.memory);
        builder.align(owner, self.alignment);
    }

    /// The tile, as an instruction reads it in a step along K, from a block of rows on.
    pub(super) fn matrix(&self, builder: &Builder, step: i64, block: &Expr) -> SharedMatrix {
        let bytes = self.tile.dtype.bytes();
        let stage = builder.program.memories[self.tile.memory].stage_elements();
        let offset = block * (self.apart / bytes) + (self.start + self.advance[step as usize]) / bytes;
        SharedMatrix {
            memory: self.tile.memory,
            first: self.tile.placed.start.clone(),
            bytes: self.tile.placed.span_on(&M).min(stage) * bytes,
            offset: normalize(&offset),
            descriptor: self.descriptor,
            is_transposed: self.is_transposed,
        }
    }

    /// `K-major with the 128-byte swizzle`
    pub(super) fn summary(&self) -> String {
        let major = if self.is_transposed { "MN-major" } else { "K-major" };
        format!("{major} with {}", self.pattern.name())
    }
}

/// A factor in shared memory.
pub(super) fn in_shared(operand: Operand) -> Result<MemoryTile, Reason> {
    match operand {
        Operand::Memory(tile) if !tile.is_inside() => Err(ragged(&tile.title)),
        Operand::Memory(tile) if tile.memory_kind == MemoryKind::Shared => Ok(tile),
        Operand::Memory(tile) => Err(reason(format!("`{}` is in global memory", tile.title), "tiles in shared memory")),
        Operand::Fragment(tile) => Err(reason(format!("`{}` is in registers", tile.title), "tiles in shared memory")),
    }
}

/// The columns of one instruction, if the sums have `n`: all of them, or as many blocks of 64 as possible, the same in each.
pub(super) fn columns_of_an_instruction(n: i64, is_possible: impl Fn(i64) -> bool) -> Option<i64> {
    let parts = (1..=n / 8).filter(|parts| n % parts == 0).map(|parts| n / parts);
    parts.into_iter().find(|columns| is_possible(*columns) && (*columns == n || columns % BLOCK_ROWS == 0))
}

/// Bytes from one block of rows to the next, before the swizzle; 0 if there is one. `None` if they are not evenly spaced.
fn blocks_apart(layout: &Layout, [rows, k]: [i64; 2], bytes: i64) -> Option<i64> {
    let tile = layout.tile().ok()?;
    let place = |block: i64| tile.position(block * BLOCK_ROWS * k, &M);
    let blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    if blocks == 1 {
        return Some(0);
    }
    let apart = place(1) - place(0);
    (0..blocks).all(|block| place(block) - place(0) == block * apart).then_some(apart * bytes)
}
