//! `copy`: a warp or a CTA copies elements to the same indices of another tile.

mod memory;
mod registers;

pub(crate) use memory::{Team, spread_steps};
pub(crate) use registers::{Held, held_elements};

use tilewright_diag::Diagnostic;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::Stmt;
use tilewright_ir::tile::{Kernel, Op};

use crate::builder::Builder;
use crate::fragment::ThreadIndices;
use crate::operand::{Operand, other_operands};
use crate::variant::{Schedule, Variant, VariantList};

/// What the variants of `copy` decide on.
pub(crate) struct Context {
    pub(crate) dst: Operand,
    pub(crate) src: Operand,
    pub(crate) team: Team,
    pub(crate) indices: ThreadIndices,
}

pub(crate) enum CopySchedule {
    Memory(memory::MemorySchedule),
    Fragment(Box<registers::FragmentSchedule>),
    Registers(registers::RegisterSchedule),
}

pub(crate) static VARIANTS: VariantList<Context, CopySchedule> = VariantList {
    context: Context::new,
    floor: |_| None,
    variants: &[
        Variant {
            name: "vectorized",
            accept: |c| Ok(memory::accept_vectorized(c)?.into_iter().map(CopySchedule::Memory).collect()),
        },
        Variant {
            name: "elementwise",
            accept: |c| memory::accept_elementwise(c).map(|s| vec![CopySchedule::Memory(s)]),
        },
        Variant {
            name: "fragment",
            accept: |c| registers::accept_fragment(c).map(|s| vec![CopySchedule::Fragment(Box::new(s))]),
        },
        Variant {
            name: "registers",
            accept: |c| registers::accept_registers(c).map(|s| vec![CopySchedule::Registers(s)]),
        },
    ],
};

impl Context {
    /// Resolves the operands of a `copy`. Error: one of them has no address.
    fn new(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<Context, Diagnostic> {
        let [dst, src] = &op.operands[..] else { return Err(other_operands(kernel, op)) };
        let [dst, src] = [Operand::resolve(builder, kernel, op, dst)?, Operand::resolve(builder, kernel, op, src)?];
        Ok(Context { dst, src, team: Team::of(kernel, op), indices: ThreadIndices::in_cta(kernel) })
    }
}

impl Schedule<Context> for CopySchedule {
    fn summary(&self, context: &Context) -> String {
        match self {
            CopySchedule::Memory(s) => s.summary(context),
            CopySchedule::Fragment(s) => s.summary(),
            CopySchedule::Registers(s) => s.summary(),
        }
    }

    fn build(&self, context: &Context, builder: &mut Builder) -> Vec<Stmt> {
        match self {
            CopySchedule::Memory(s) => s.build(context, builder),
            CopySchedule::Fragment(s) => s.build(builder),
            CopySchedule::Registers(s) => s.build(),
        }
    }
}

/// Both operands, if both are in memory.
fn both_in_memory(
    context: &Context,
) -> Result<(&crate::operand::MemoryTile, &crate::operand::MemoryTile), Vec<Reason>> {
    match (&context.dst, &context.src) {
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
