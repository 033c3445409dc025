//! What the statements of an op access, and in which loops.

use tilewright_expr::Var;
use tilewright_ir::thread::Stmt;
use tilewright_layout::axis::Scope;

/// A loop of the kernel. Two loops may have the same variable, but not the same `id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopRef {
    pub(crate) id: usize,
    pub(crate) var: Var,
}

/// The accesses of an op between two of its own barriers.
#[derive(Clone, Debug)]
pub(super) struct AccessGroup {
    /// The op, for reasons in plans.
    pub(super) title: String,
    pub(super) body: Vec<Stmt>,
    /// Loops around the op, outermost first.
    pub(super) loops: Vec<LoopRef>,
    /// The strongest barrier executed since, if any.
    pub(super) since: Option<Scope>,
    /// Whether they belong to an earlier iteration of a loop that is being walked again.
    pub(super) earlier: bool,
    /// Their number in the order in which accesses were found.
    pub(super) number: usize,
}
