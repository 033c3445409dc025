//! `copy`: a warp or a CTA copies elements to the same indices of another tile.

mod context;
mod memory;
mod registers;
mod team;

pub(crate) use registers::{Held, held_elements};
pub(crate) use team::{Team, spread_steps};

use tilewright_ir::thread::Stmt;

use self::context::Context;
use crate::builder::Builder;
use crate::variant::{Schedule, Variant, VariantList};

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
