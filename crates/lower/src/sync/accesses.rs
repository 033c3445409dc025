//! What the statements of an op access, and in which loops.

use std::rc::Rc;

use tilewright_ir::Handle;
use tilewright_ir::thread::Program;
use tilewright_ir::tile::Role;
use tilewright_layout::axis::Scope;

use super::block::LoopRef;
use super::touched::Touched;

/// The accesses of an op between two of its own barriers.
#[derive(Clone, Debug)]
pub(super) struct AccessGroup {
    /// The op, for reasons in plans.
    pub(super) title: String,
    pub(super) touched: Rc<Touched>,
    /// Loops around the op, outermost first.
    pub(super) loops: Vec<LoopRef>,
    /// The role whose warps execute the op, if not all do.
    pub(super) role: Option<Handle<Role>>,
    /// The strongest barrier executed since, if any.
    pub(super) since: Option<Scope>,
    /// Whether all warps of the role have waited for each other since.
    pub(super) since_in_role: bool,
    /// Whether they belong to an earlier iteration of a loop that is being walked again.
    pub(super) earlier: bool,
    /// Their number in the order in which accesses were found.
    pub(super) number: usize,
}

impl AccessGroup {
    /// Whether barriers before later accesses are the same for both, so that only one of them needs to be kept.
    pub(super) fn is_like(&self, other: &AccessGroup, program: &Program) -> bool {
        let place = |group: &AccessGroup| (group.role, group.since, group.since_in_role, group.earlier);
        self.title == other.title
            && place(self) == place(other)
            && self.loops == other.loops
            && (Rc::ptr_eq(&self.touched, &other.touched) || self.touched.is_like(&other.touched, program))
    }
}
