//! Operands of a tile op, resolved: which memory or registers, and where in there the tile lies.

use tilewright_diag::Diagnostic;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Memory, RegArray};
use tilewright_ir::tile::{Kernel, Op, Space, Tile, tile_title};
use tilewright_layout::{DType, PlacedTile, TileLayout};

use crate::builder::Builder;

/// An operand in global or shared memory.
#[derive(Clone, Debug)]
pub(crate) struct MemoryTile {
    pub(crate) memory: Handle<Memory>,
    pub(crate) placed: PlacedTile,
    pub(crate) dtype: DType,
    /// Bytes to which the memory's first element is aligned.
    pub(crate) alignment: i64,
    pub(crate) title: String,
}

/// An operand in registers.
#[derive(Clone, Debug)]
pub(crate) struct FragmentTile {
    pub(crate) array: Handle<RegArray>,
    /// Element to thread and register.
    pub(crate) layout: TileLayout,
    pub(crate) dtype: DType,
    pub(crate) title: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Memory(MemoryTile),
    Fragment(FragmentTile),
}

impl Operand {
    pub(crate) fn resolve(builder: &Builder, kernel: &Kernel, op: &Op, tile: &Tile) -> Result<Operand, Diagnostic> {
        let buffer = &kernel.buffers[tile.buffer];
        let title = tile_title(kernel, tile);
        let explain = |error: tilewright_layout::LayoutError| {
            error
                .diagnostic()
                .label(op.span, format!("the tile `{title}`"))
                .label(buffer.span, format!("`{}` is laid out as {}", buffer.name, buffer.layout))
        };
        if buffer.space == Space::Fragment {
            return fragment(builder, kernel, tile, title.clone(), &explain);
        }
        let placed = buffer.layout.place(&buffer.shape, &tile.starts, &tile.extents).map_err(explain)?;
        let memory = builder.memory(tile.buffer);
        let alignment = builder.program.memories[memory].alignment;
        Ok(Operand::Memory(MemoryTile { memory, placed, dtype: buffer.dtype, alignment, title }))
    }

    pub(crate) fn title(&self) -> &str {
        match self {
            Operand::Memory(m) => &m.title,
            Operand::Fragment(f) => &f.title,
        }
    }
}

fn fragment(
    builder: &Builder,
    kernel: &Kernel,
    tile: &Tile,
    title: String,
    explain: &dyn Fn(tilewright_layout::LayoutError) -> Diagnostic,
) -> Result<Operand, Diagnostic> {
    let buffer = &kernel.buffers[tile.buffer];
    let mut region = Vec::with_capacity(tile.starts.len());
    for (dimension, (start, extent)) in tile.starts.iter().zip(&tile.extents).enumerate() {
        let Some(at) = start.as_const() else {
            let range = start.range();
            let error =
                tilewright_layout::LayoutError::NotAffine { dimension, begin: range.lo, end: range.hi + extent };
            return Err(explain(error).note("registers have no address: the index of a fragment must be a number"));
        };
        region.push(at..at + extent);
    }
    let layout = buffer.layout.tile().and_then(|tile| tile.slice(&buffer.shape, &region)).map_err(explain)?;
    Ok(Operand::Fragment(FragmentTile { array: builder.fragment(tile.buffer), layout, dtype: buffer.dtype, title }))
}
