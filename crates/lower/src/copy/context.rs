//! What the variants of `copy` decide on.

use tilewright_diag::Diagnostic;
use tilewright_ir::plan::Reason;
use tilewright_ir::tile::{Kernel, Op};

use super::team::Team;
use crate::builder::Builder;
use crate::fragment::ThreadIndices;
use crate::operand::{MemoryTile, Operand, other_operands};

/// What the variants of `copy` decide on.
pub(crate) struct Context {
    pub(crate) dst: Operand,
    pub(crate) src: Operand,
    pub(crate) team: Team,
    pub(crate) indices: ThreadIndices,
    /// Whether elements outside of the tensor need not be zero in shared memory.
    pub(crate) zeros_are_unread: bool,
}

impl Context {
    /// Resolves the operands of a `copy`. Error: one of them has no address.
    pub(super) fn new(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<Context, Diagnostic> {
        let [dst, src] = &op.operands[..] else { return Err(other_operands(kernel, op)) };
        let [dst, src] = [Operand::resolve(builder, kernel, op, dst)?, Operand::resolve(builder, kernel, op, src)?];
        Ok(Context {
            dst,
            src,
            team: Team::of(kernel, op),
            indices: ThreadIndices::in_cta(kernel),
            zeros_are_unread: builder.copied_tiles.have_no_zeros_of(kernel, op),
        })
    }

    /// The destination and the source, if both are in memory.
    pub(super) fn both_in_memory(&self) -> Result<(&MemoryTile, &MemoryTile), Vec<Reason>> {
        match (&self.dst, &self.src) {
            (Operand::Memory(dst), Operand::Memory(src)) => Ok((dst, src)),
            (dst, src) => {
                let fragment = if matches!(dst, Operand::Fragment(_)) { dst } else { src };
                Err(vec![Reason {
                    text: format!("`{}` is in registers", fragment.title()),
                    accepted: "both operands in global or shared memory".to_string(),
                }])
            }
        }
    }
}
