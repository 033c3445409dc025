//! `copy`: a warp or a CTA copies elements to the same indices of another tile.

mod context;
mod memory;
mod registers;
mod staged;
mod team;

pub(crate) use registers::thread_registers;
pub(crate) use team::{Team, spread_steps};

use tilewright_ir::thread::Stmt;

use self::context::Context;
use crate::builder::Builder;
use crate::refusal::Refusal;
use crate::variant::{Schedule, Variant, VariantList};

pub(crate) enum CopySchedule {
    Memory(Box<memory::MemorySchedule>),
    Fragment(Box<registers::FragmentSchedule>),
    Registers(registers::RegisterSchedule),
}

pub(crate) static VARIANTS: VariantList<Context, CopySchedule> = VariantList {
    context: Context::new,
    floor: |_| None,
    variants: &[
        Variant {
            name: "vectorized",
            accept: |c| Ok(memory::accept_vectorized(c)?.into_iter().map(Box::new).map(CopySchedule::Memory).collect()),
        },
        Variant {
            name: "elementwise",
            accept: |c| Ok(vec![CopySchedule::Memory(Box::new(memory::accept_elementwise(c)?))]),
        },
        Variant {
            name: "fragment",
            accept: |c| Ok(vec![CopySchedule::Fragment(Box::new(registers::accept_fragment(c)?))]),
        },
        Variant { name: "registers", accept: |c| Ok(vec![CopySchedule::Registers(registers::accept_registers(c)?)]) },
    ],
};

impl Schedule<Context> for CopySchedule {
    fn summary(&self, context: &Context) -> String {
        match self {
            CopySchedule::Memory(s) => s.summary(context),
            CopySchedule::Fragment(s) => s.summary(),
            CopySchedule::Registers(s) => s.summary(),
        }
    }

    fn build(&self, context: &Context, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        match self {
            CopySchedule::Memory(s) => Ok(s.build(context, builder)),
            CopySchedule::Fragment(s) => s.build(builder),
            CopySchedule::Registers(s) => Ok(s.build()),
        }
    }
}
