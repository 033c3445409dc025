//! Roles: ops that only some warps of a CTA execute, while other warps execute others.
//!
//! A role numbers its warps and threads from 0. Its ops are those of a CTA that has only these warps, so each check, layout
//! and lowering of an op works on the kernel [as its role sees it](KernelsByRole).

use std::collections::{BTreeMap, BTreeSet};

use tilewright_diag::Span;
use tilewright_layout::access::LANES;

use crate::arena::Handle;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::element::ElementStmt;
use crate::tile::kernel::{If, Kernel, Stmt};
use crate::tile::op::{Op, OpKind};
use crate::tile::value::{Access, Value};

/// Warps of a warpgroup, the first of which has a number that is a multiple of as many (PTX ISA, "wgmma").
pub const WARPS_OF_A_WARPGROUP: i64 = 4;

/// Adjacent warps of a CTA with statements of their own.
#[derive(Clone, Debug)]
pub struct Role {
    /// What it is called in plans and CUDA.
    pub name: String,
    /// Its first warp.
    pub first: i64,
    /// The number of its warps.
    pub warps: i64,
    /// Where it was first written.
    pub span: Span,
}

impl Role {
    /// The number of its threads.
    pub fn threads(&self) -> i64 {
        self.warps.saturating_mul(LANES as i64)
    }

    /// Whether a warp of the CTA belongs to it.
    pub fn has_warp(&self, warp: i64) -> bool {
        (self.first..self.end()).contains(&warp)
    }

    /// The warp after its last one.
    pub fn end(&self) -> i64 {
        self.first.saturating_add(self.warps)
    }
}

/// A kernel as each of its roles sees it: with the threads of the role alone.
#[derive(Debug)]
pub struct KernelsByRole<'a> {
    whole: &'a Kernel,
    parts: Vec<Kernel>,
    /// The role in which each fragment is used, if one is.
    of_fragments: BTreeMap<Handle<Buffer>, Handle<Role>>,
}

impl<'a> KernelsByRole<'a> {
    /// The views of a kernel.
    pub fn of(whole: &'a Kernel) -> KernelsByRole<'a> {
        let part = |(handle, role): (Handle<Role>, &Role)| {
            let (threads, seen_by) = (role.threads(), Some(handle));
            Kernel { threads, threads_span: role.span, seen_by, ..whole.clone() }
        };
        let mut of_fragments = BTreeMap::new();
        if !whole.roles.is_empty() {
            whole.for_each_fragment_use(&mut |fragment, of| {
                if let Some(role) = of.role {
                    of_fragments.entry(fragment).or_insert(role);
                }
            });
        }
        KernelsByRole { whole, parts: whole.roles.iter().map(part).collect(), of_fragments }
    }

    /// The role in which a fragment is used; `None` if all threads of the CTA use it, or if nothing does. A kernel that
    /// verifies uses a fragment in one role. The fragment is named by the one that owns the storage.
    pub fn role_of(&self, storage: Handle<Buffer>) -> Option<Handle<Role>> {
        self.of_fragments.get(&storage).copied()
    }

    /// The kernel as the role of a fragment sees it.
    pub fn seen_by_user_of(&self, storage: Handle<Buffer>) -> &Kernel {
        self.seen_by(self.role_of(storage))
    }

    /// The kernel itself.
    pub fn whole(&self) -> &'a Kernel {
        self.whole
    }

    /// The kernel as a role sees it; outside of roles, the kernel itself.
    pub fn seen_by(&self, role: Option<Handle<Role>>) -> &Kernel {
        role.and_then(|role| self.parts.get(role.index())).unwrap_or(self.whole)
    }
}

/// A use of a fragment: in a role, or outside of roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleOfUse {
    /// Whether it is in a condition around ops, which all threads evaluate.
    pub is_condition: bool,
    /// The role of the statement.
    pub role: Option<Handle<Role>>,
    /// The statement, or the access in it.
    pub span: Span,
}

impl Kernel {
    /// Gives the roles their warps: first those whose ops are for whole warpgroups, so that these begin at multiples of four warps,
    /// then the others, both in their order. Where registers move between warpgroups, all roles of whole warpgroups come first.
    pub fn pack_roles(&mut self) {
        let loads = |op: &Op| op.kind == OpKind::Copy && self.uses_tensor_memory(op);
        let multiplies = |op: &Op| matches!(op.kind, OpKind::GemmAsync(_)) && !self.uses_tensor_memory(op);
        let ops = self.ops.iter().map(|(_, op)| op).filter(|op| loads(op) || multiplies(op));
        let of_warpgroups: BTreeSet<Handle<Role>> = ops.filter_map(|op| op.role).collect();
        let moves = self.moves_registers.is_some();
        let is_whole = |role: &Handle<Role>| moves && self.roles[*role].warps % WARPS_OF_A_WARPGROUP == 0;
        let (first, last): (Vec<_>, Vec<_>) =
            self.roles.iter().map(|(role, _)| role).partition(|role| of_warpgroups.contains(role) || is_whole(role));
        let mut next = 0;
        for role in first.into_iter().chain(last) {
            self.roles[role].first = next;
            next = self.roles[role].end();
        }
    }

    /// The role, unless it has all warps of the CTA.
    pub fn part_of_cta(&self, role: Option<Handle<Role>>) -> Option<Handle<Role>> {
        role.filter(|role| self.roles[*role].threads() != self.threads)
    }

    /// Calls `visit` with each use of a fragment, which is named by the one that owns the storage.
    pub fn for_each_fragment_use(&self, visit: &mut dyn FnMut(Handle<Buffer>, RoleOfUse)) {
        self.fragments_in(&self.body, visit);
    }

    fn fragments_in(&self, body: &[Stmt], visit: &mut dyn FnMut(Handle<Buffer>, RoleOfUse)) {
        for stmt in body {
            match stmt {
                Stmt::Op(op) => {
                    let op = &self.ops[*op];
                    for tile in &op.operands {
                        self.visit_fragment(
                            tile.buffer,
                            RoleOfUse { is_condition: false, role: op.role, span: op.span },
                            visit,
                        );
                    }
                }
                Stmt::Loop(inner) => self.fragments_in(&inner.body, visit),
                Stmt::Parallel(parallel) => {
                    let parallel = &self.parallels[*parallel];
                    self.fragments_of_elements(&parallel.body, parallel.role, visit);
                }
                Stmt::EachThread(elements) => self.fragments_of_elements(elements, None, visit),
                Stmt::Begin(_) | Stmt::End(_) => {}
                Stmt::If(branch) => {
                    self.fragments_of_value(&branch.cond, self.evaluator(branch), visit);
                    self.fragments_in(&branch.then, visit);
                    self.fragments_in(&branch.otherwise, visit);
                }
            }
        }
    }

    fn fragments_of_elements(
        &self,
        elements: &[ElementStmt],
        role: Option<Handle<Role>>,
        visit: &mut dyn FnMut(Handle<Buffer>, RoleOfUse),
    ) {
        for element in elements {
            element.for_each_access(&mut |access, _| {
                self.visit_fragment(access.buffer, RoleOfUse { is_condition: false, role, span: access.span }, visit);
            });
        }
    }

    fn fragments_of_value(
        &self,
        value: &Value,
        role: Option<Handle<Role>>,
        visit: &mut dyn FnMut(Handle<Buffer>, RoleOfUse),
    ) {
        value.for_each_load(&mut |access: &Access| {
            self.visit_fragment(access.buffer, RoleOfUse { is_condition: true, role, span: access.span }, visit);
        });
    }

    /// The role that alone evaluates a condition: that of all that stands under it, if nothing writes the memory that the condition
    /// reads. Its fragments are those of the role. `None` if all threads evaluate it.
    pub fn evaluator(&self, branch: &If) -> Option<Handle<Role>> {
        self.roles_under(branch).1
    }

    /// The roles that execute what stands under a condition, `None` for all threads, and the one that evaluates it.
    fn roles_under(&self, branch: &If) -> (BTreeSet<Option<Handle<Role>>>, Option<Handle<Role>>) {
        let mut roles = BTreeSet::new();
        [&branch.then, &branch.otherwise].into_iter().for_each(|body| self.add_roles(body, &mut roles));
        let sole = roles.first().copied().flatten().filter(|_| roles.len() == 1);
        (roles, sole.filter(|_| self.reads_what_nothing_writes(&branch.cond)))
    }

    fn reads_what_nothing_writes(&self, cond: &Value) -> bool {
        let mut in_memory = BTreeSet::new();
        cond.for_each_load(&mut |access| {
            let storage = self.storage(access.buffer);
            in_memory.extend((self.buffers[storage].space != Space::Fragment).then_some(storage));
        });
        in_memory.is_empty() || self.written().is_disjoint(&in_memory)
    }

    fn add_roles(&self, body: &[Stmt], found: &mut BTreeSet<Option<Handle<Role>>>) {
        for stmt in body {
            match stmt {
                Stmt::Op(op) => _ = found.insert(self.ops[*op].role),
                Stmt::Parallel(parallel) => _ = found.insert(self.parallels[*parallel].role),
                Stmt::EachThread(_) => _ = found.insert(None),
                Stmt::Begin(hold) | Stmt::End(hold) => _ = found.insert(self.holds[*hold].role),
                Stmt::Loop(inner) => self.add_roles(&inner.body, found),
                Stmt::If(branch) => {
                    let (roles, evaluator) = self.roles_under(branch);
                    found.extend(roles);
                    found.insert(evaluator);
                }
            }
        }
    }

    fn visit_fragment(&self, buffer: Handle<Buffer>, of: RoleOfUse, visit: &mut dyn FnMut(Handle<Buffer>, RoleOfUse)) {
        if self.buffers[buffer].space == Space::Fragment {
            visit(self.storage(buffer), of);
        }
    }
}
