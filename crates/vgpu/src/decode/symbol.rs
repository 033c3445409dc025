//! What names refer to.

use crate::isa::{DType, Space};
use crate::op::Reg;

/// What a name refers to.
#[derive(Clone, Debug)]
pub(crate) enum Symbol {
    Register(Reg, DType),
    Predicate(u32),
    /// A variable: its state space and its address there.
    Variable(Space, u64),
    DynamicShared,
    Label(u32),
    /// A table of `.branchtargets`.
    Targets(Vec<String>),
}
