//! What addresses cost: every distinct index is added to its memory once, by rules of the compiler for each target.

use std::collections::BTreeSet;

use tilewright_expr::Expr;
use tilewright_expr::linear::Linear;
use tilewright_ir::thread::{Memory, MemorySpace};
use tilewright_ir::{Handle, Target};

/// The addresses that are there.
#[derive(Default)]
pub(super) struct Addresses {
    memories: BTreeSet<Handle<Memory>>,
    /// A memory and an offset in bytes, without the constant, which is part of the access.
    offsets: BTreeSet<(Handle<Memory>, Expr)>,
    /// What every branch around the current statement made, the outermost first.
    branches: Vec<Branch>,
    /// What is made outside of branches.
    outside: Branch,
}

#[derive(Default)]
struct Branch {
    offsets: BTreeSet<(Handle<Memory>, Expr)>,
    /// The bytes of a unit, and indices in it that were made 64 bits wide.
    wide: BTreeSet<(i64, Expr)>,
}

/// What an access needs of its address.
pub(super) enum Needed {
    /// It is there.
    Nothing,
    /// A row, a run-time stride farther than one that is there.
    Row,
    /// All of it, in a branch of its own, though another has it.
    Again,
    /// All of it.
    New,
}

impl Addresses {
    pub(super) fn enter(&mut self) {
        self.branches.push(Branch::default());
    }

    pub(super) fn leave(&mut self) {
        self.branches.pop();
    }

    /// Instructions for the first use of a memory: a parameter is loaded and converted, other memory is named.
    pub(super) fn memory(&mut self, memory: Handle<Memory>, space: &MemorySpace) -> i64 {
        let is_parameter = matches!(space, MemorySpace::Global { .. });
        if self.memories.insert(memory) && is_parameter { 2 } else { 0 }
    }

    /// What an access to `memory` needs, `offset` bytes and a constant from its start. `is_row` where the offset
    /// depends on a run-time size.
    pub(super) fn need(&mut self, memory: Handle<Memory>, offset: &Linear, is_row: bool) -> Needed {
        if offset.terms.is_empty() {
            return Needed::Nothing;
        }
        let follows = is_row && self.offsets.iter().any(|(other, _)| *other == memory);
        let key = (memory, offset.to_expr());
        let is_known_here = self.around().any(|branch| branch.offsets.contains(&key));
        self.innermost().offsets.insert(key.clone());
        match self.offsets.insert(key) {
            true if follows => Needed::Row,
            true => Needed::New,
            false if is_known_here => Needed::Nothing,
            false => Needed::Again,
        }
    }

    /// An instruction if an index, in units of `bytes`, is not 64 bits wide yet.
    pub(super) fn widen(&mut self, bytes: i64, index: Expr) -> i64 {
        let key = (bytes, index);
        let is_known = self.around().any(|branch| branch.wide.contains(&key));
        self.innermost().wide.insert(key);
        i64::from(!is_known)
    }

    fn around(&self) -> impl Iterator<Item = &Branch> {
        std::iter::once(&self.outside).chain(&self.branches)
    }

    fn innermost(&mut self) -> &mut Branch {
        self.branches.last_mut().unwrap_or(&mut self.outside)
    }
}

/// Instructions for a row, a stride farther than another: one addition, where NVRTC sees it. For sm_100a it scales the
/// stride anew where an element is wider than a register, for sm_90a it widens every index of bytes, and under a
/// condition of its own it computes an address whole.
pub(super) fn another_row(target: Target, bytes: i64, is_guarded: bool) -> i64 {
    match (target, bytes) {
        _ if is_guarded => 3,
        (Target::Sm90a, 1) => 3,
        (Target::Sm100a, 8..) => 2,
        (Target::Sm90a | Target::Sm100a, _) => 1,
    }
}

/// Instructions for a global address that another branch has: for sm_90a NVRTC makes it there again (the base converted,
/// the index added, widened and added to the base), for sm_100a before the branches.
pub(super) fn made_again(target: Target) -> i64 {
    match target {
        Target::Sm90a => 4,
        Target::Sm100a => 0,
    }
}
