//! What the variants of `permute_layout` decide on, and the barriers around their accesses.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::Var;
use tilewright_ir::thread::{Call, Inst, Stmt};
use tilewright_ir::tile::{Kernel, Op, Space, Tile};
use tilewright_layout::PlacedTile;

use crate::builder::Builder;
use crate::operand::{MemoryTile, Operand, other_operands};

/// The most 32-bit registers of one lane, for data, offsets and intermediate values.
pub(crate) const MOST_REGISTERS: i64 = 200;

/// What the variants of `permute_layout` decide on.
pub(crate) struct Context {
    pub(crate) dst: MemoryTile,
    pub(crate) src: MemoryTile,
    pub(crate) lane: Var,
    /// Whether both operands may be the same storage: views of one buffer, or two parameters.
    pub(crate) may_alias: bool,
    /// Where the user wrote the op.
    pub(crate) span: Span,
}

impl Context {
    /// Resolves the operands of a `permute_layout`. Error: one of them is not in memory.
    pub(crate) fn new(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<Context, Diagnostic> {
        let [dst, src] = &op.operands[..] else { return Err(other_operands(kernel, op)) };
        let in_memory = |tile: &Tile| match Operand::resolve(builder, kernel, op, tile)? {
            Operand::Memory(tile) => Ok(tile),
            Operand::Fragment(tile) => {
                Err(Diagnostic::error("P0403", format!("`permute_layout` cannot move the fragment `{}`", tile.title))
                    .label(op.span, kernel.op_title(op))
                    .help("its operands must be tiles in global or shared memory"))
            }
        };
        let (to, from) = (in_memory(dst)?, in_memory(src)?);
        let may_alias = may_alias(kernel, [dst, src], &to.placed, &from.placed);
        Ok(Context { dst: to, src: from, lane: kernel.lane(), may_alias, span: op.span })
    }

    /// 32-bit registers of one element.
    pub(crate) fn registers_of_element(&self) -> i64 {
        (self.src.dtype.bytes() / 4).max(1)
    }
}

/// Whether both operands may share bytes: they are parts of one buffer, or of two parameters for which a caller may
/// pass the same memory, and the tiles may overlap there.
fn may_alias(kernel: &Kernel, operands: [&Tile; 2], dst: &PlacedTile, src: &PlacedTile) -> bool {
    let storages = operands.map(|tile| kernel.storage(tile.buffer));
    let is_global = |storage| matches!(kernel.buffers[storage].space, Space::Global(_));
    let one_memory = storages.into_iter().all(is_global) && !are_distinct_parameters(dst, src);
    storages[0] == storages[1] || (one_memory && dst.may_overlap(src))
}

/// Whether the tiles are of two parameters that have memory of their own by the rules of the language: both have sizes
/// known at launch only, and where one tile is relative to the other depends on these or on the CTA, as in a transpose.
fn are_distinct_parameters(dst: &PlacedTile, src: &PlacedTile) -> bool {
    let have_pitches = !dst.pitches.is_empty() && !src.pitches.is_empty();
    have_pitches && dst.distance_from(src).is_none()
}

/// `read all, __syncwarp, write all, __syncwarp`, around the accesses of a schedule. Operands that share no byte need
/// no barrier: every lane writes what it read itself.
pub(crate) fn staged(context: &Context, mut body: Vec<Stmt>, reads: Vec<Stmt>, writes: Vec<Stmt>) -> Vec<Stmt> {
    let sync = context.may_alias.then_some(Stmt::from(Call::plain(Inst::SyncWarp)));
    body.extend(reads);
    body.extend(sync.clone());
    body.extend(writes);
    body.extend(sync);
    body
}
