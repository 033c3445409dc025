//! Values with names, inside a nest.

use tilewright_ir::thread::Value as ThreadValue;
use tilewright_ir::tile::Value;
use tilewright_layout::DType;

/// A value with a name.
#[derive(Clone)]
pub(super) struct Name {
    pub(super) name: String,
    pub(super) value: Named,
}

/// What a name stands for.
#[derive(Clone)]
pub(super) enum Named {
    /// A value in a register.
    Kept(ThreadValue, DType),
    /// A truth value.
    Truth(ThreadValue),
    /// An integer computed from indices, of whatever dtype its use requires.
    Index(Value),
}
