//! Resolved operands of a tile op: the memory or registers, and where the tile lies in them.

use std::sync::Arc;

use num_integer::Integer;
use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::plan::{MemoryKind, Reason};
use tilewright_ir::thread::{Cond, Memory, RegArray};
use tilewright_ir::tile::{Buffer, DynamicShape, Kernel, Op, Space, Tile, tile_title};
use tilewright_layout::{DType, Layout, Pitch, PlacedTile, TileLayout};

use crate::builder::Builder;
use crate::fragment_registers::FragmentRegisters;
use crate::refusal::Refusal;

/// An operand in global or shared memory.
#[derive(Clone, Debug)]
pub(crate) struct MemoryTile {
    pub(crate) memory: Handle<Memory>,
    pub(crate) memory_kind: MemoryKind,
    /// Where the tile lies in the memory, before a variant cuts it.
    pub(crate) placed: PlacedTile,
    pub(crate) dtype: DType,
    /// Alignment in bytes of the memory's first element.
    pub(crate) alignment: i64,
    /// The most bytes that a thread moves at once.
    pub(crate) widest: i64,
    /// The tile as the user wrote it, for messages.
    pub(crate) title: String,
}

/// An operand in registers.
#[derive(Clone, Debug)]
pub(crate) struct FragmentTile {
    pub(crate) array: Handle<RegArray>,
    /// Maps elements to threads and registers.
    pub(crate) layout: TileLayout,
    /// Whether each warp has its own tile, held by the lanes that the layout gives.
    pub(crate) is_of_warps: bool,
    pub(crate) dtype: DType,
    /// The tile as the user wrote it, for messages.
    pub(crate) title: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Memory(MemoryTile),
    Fragment(FragmentTile),
}

impl MemoryTile {
    /// The simplified position of element `flat` in the memory; `layout` has the iters of the tile in some order.
    pub(crate) fn index_of(&self, builder: &mut Builder, layout: &TileLayout, flat: &Expr) -> Expr {
        let position = self.placed.position_expr(self.placed.relative_expr(layout, flat));
        builder.simplifier.simplify(&position)
    }

    /// Conditions under which element `flat` is inside the tensor; empty if the tile cannot hang over an edge.
    pub(crate) fn inside(&self, builder: &mut Builder, layout: &TileLayout, flat: &Expr) -> Vec<Cond> {
        let edges = self.placed.pitches.iter().filter_map(|pitch| Some((pitch, pitch.edge.clone()?)));
        edges
            .map(|(pitch, edge)| {
                let index = &pitch.first + &layout.position_expr(flat, &pitch.axis);
                Cond::Less(builder.simplifier.simplify(&index), edge)
            })
            .collect()
    }

    /// Conditions under which the whole tile is inside the tensor; empty if it always is.
    ///
    /// The extent of the tile is subtracted from that of the tensor, so that NVRTC does not conclude that sizes are
    /// positive: then it would widen every index to 64 bits without sign, one by one, instead of adding rows to addresses.
    fn whole_inside(&self) -> Vec<Cond> {
        let edges = self.placed.pitches.iter().filter_map(|pitch| Some((pitch, pitch.edge.as_ref()?)));
        let inside = |(pitch, edge): (&Pitch, &Expr)| {
            let last = self.placed.span_on(&pitch.axis) - 1;
            let multiple = pitch.first.multiple().gcd(&edge.multiple()).max(1);
            Cond::Less(pitch.first.clone(), edge - last / multiple * multiple)
        };
        edges.map(inside).collect()
    }

    /// True when no part of the tile can lie outside its tensor.
    pub(crate) fn is_inside(&self) -> bool {
        self.placed.pitches.iter().all(|pitch| pitch.edge.is_none())
    }

    /// The iters of the tile, or the reason why it has none.
    pub(crate) fn iters(&self) -> Result<&TileLayout, Reason> {
        self.placed.iters().ok_or_else(|| Reason {
            text: format!("`{}` is laid out by a table", self.title),
            accepted: "layouts of shard, replica and offset".to_string(),
        })
    }
}

impl Operand {
    pub(crate) fn resolve(builder: &Builder, kernel: &Kernel, op: &Op, tile: &Tile) -> Result<Operand, Diagnostic> {
        let buffer = &kernel.buffers[tile.buffer];
        let title = tile_title(kernel, tile);
        let explain = |error: tilewright_layout::LayoutError| {
            error
                .diagnostic()
                .label(op.span, format!("the tile `{title}`"))
                .label(buffer.span, format!("`{}` is {}", buffer.name, buffer.laid_out()))
        };
        let Some(layout) = &buffer.layout else { return Err(unplaced(op, buffer)) };
        if buffer.space == Space::Fragment {
            return fragment(builder, kernel, tile, layout, title.clone(), &explain);
        }
        let placed = match &buffer.dynamic_shape {
            None => layout.place(&buffer.shape, &tile.starts, &tile.extents),
            Some(shape) => PlacedTile::over(&tile.starts, &tile.extents, &shape.strides, &edges(kernel, tile, shape)),
        };
        let placed = placed.map_err(explain)?;
        let memory = builder.memory(tile.buffer);
        let alignment = builder.program.memories[memory].alignment;
        let memory_kind = match buffer.space {
            Space::Global(_) => MemoryKind::Global,
            Space::Shared | Space::Fragment | Space::Tensor => MemoryKind::Shared,
        };
        let widest = kernel.widest_access(tile.buffer);
        Ok(Operand::Memory(MemoryTile { memory, memory_kind, placed, dtype: buffer.dtype, alignment, widest, title }))
    }

    pub(crate) fn title(&self) -> &str {
        match self {
            Operand::Memory(m) => &m.title,
            Operand::Fragment(f) => &f.title,
        }
    }
}

/// Conditions under which these tiles are inside their tensors; empty if they always are.
pub(crate) fn all_inside(tiles: &[&MemoryTile]) -> Vec<Cond> {
    let mut conditions: Vec<Cond> = Vec::new();
    for cond in tiles.iter().flat_map(|tile| tile.whole_inside()) {
        if !conditions.contains(&cond) {
            conditions.push(cond);
        }
    }
    conditions
}

/// The registers of operands that are whole fragments. Error: one of them is not, or has no layout.
pub(crate) fn whole_fragments<const N: usize>(
    builder: &Builder,
    kernel: &Kernel,
    op: &Op,
    tiles: [&Tile; N],
) -> Result<[Arc<FragmentRegisters>; N], Diagnostic> {
    let refused = |why: String| Refusal::from(why).diagnostic(&kernel.op_title(op), op.span);
    let mut found = Vec::with_capacity(N);
    for tile in tiles {
        let buffer = &kernel.buffers[tile.buffer];
        if buffer.space != Space::Fragment || tile.extents != buffer.shape {
            return Err(refused(format!("`{}` is not a whole fragment", tile_title(kernel, tile))));
        }
        found.push(builder.fragment_registers(kernel, tile.buffer).map_err(refused)?);
    }
    found.try_into().map_err(|_| other_operands(kernel, op))
}

/// The error for an op whose operands or attributes do not match its kind.
pub(crate) fn other_operands(kernel: &Kernel, op: &Op) -> Diagnostic {
    Refusal::from("its operands do not match the op").diagnostic(&kernel.op_title(op), op.span)
}

/// For each dimension, the extent of the tensor where the tile may hang over its edge, else `None`.
fn edges(kernel: &Kernel, tile: &Tile, shape: &DynamicShape) -> Vec<Option<Expr>> {
    let dimensions = tile.starts.iter().zip(&tile.extents).zip(&shape.extents);
    dimensions
        .map(|((start, extent), size)| (!kernel.lies_inside(start, *extent, size)).then(|| size.clone()))
        .collect()
}

/// The reason against a tile that may hang over an edge.
pub(crate) fn hangs_over(title: &str) -> Reason {
    Reason {
        text: format!("`{title}` may hang over an edge that is known only at launch"),
        accepted: "tiles that divide the tensor's sizes, as declared with k.size(..).multiple_of(..)".to_string(),
    }
}

fn listed_fragment(buffer: &Buffer) -> Diagnostic {
    let message = format!("`{}` is a fragment laid out by a table, which this variant cannot address", buffer.name);
    Diagnostic::error("K0229", message)
        .label(buffer.span, buffer.laid_out())
        .help("leave the choice open, or take the variant `elements`")
}

fn reinterpreted(buffer: &Buffer) -> Diagnostic {
    let message = format!("`{}` views registers of another dtype, which this variant cannot address", buffer.name);
    Diagnostic::error("K0229", message)
        .label(buffer.span, buffer.laid_out())
        .help("leave the choice open, or take the variant `elements`")
}

/// The error for a buffer without a layout: nothing but conversions uses it, or nothing that inference places.
pub(crate) fn unplaced(op: &Op, buffer: &Buffer) -> Diagnostic {
    Diagnostic::error("K0232", format!("`{}` has no layout", buffer.name))
        .label(buffer.span, "declared here")
        .label(op.span, "used here")
        .help("declare it with a layout")
}

fn fragment(
    builder: &Builder,
    kernel: &Kernel,
    tile: &Tile,
    layout: &Layout,
    title: String,
    explain: &dyn Fn(tilewright_layout::LayoutError) -> Diagnostic,
) -> Result<Operand, Diagnostic> {
    let buffer = &kernel.buffers[tile.buffer];
    let mut region = Vec::with_capacity(tile.starts.len());
    let own = kernel.warp_slice_dimension(tile);
    for (dimension, (start, extent)) in tile.starts.iter().zip(&tile.extents).enumerate() {
        if own == Some(dimension) {
            region.push(0..1);
            continue;
        }
        let Some(at) = start.as_const() else {
            let range = start.range();
            let error =
                tilewright_layout::LayoutError::NotAffine { dimension, begin: range.lo, end: range.hi + extent };
            return Err(explain(error).note("registers have no address: the index of a fragment must be a constant"));
        };
        region.push(at..at + extent);
    }
    if matches!(layout, Layout::Table(_)) {
        return Err(listed_fragment(buffer));
    }
    let array = builder.fragment(tile.buffer);
    if builder.program.registers[array].dtype != buffer.dtype {
        return Err(reinterpreted(buffer));
    }
    let layout = layout.tile().and_then(|tile| tile.slice(&buffer.shape, &region)).map_err(explain)?;
    Ok(Operand::Fragment(FragmentTile { array, layout, is_of_warps: own.is_some(), dtype: buffer.dtype, title }))
}
