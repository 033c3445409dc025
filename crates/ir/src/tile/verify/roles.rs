//! Roles are adjacent warps that the CTA has, and what a fragment holds does not pass from one role to another.

use indexmap::IndexMap;
use tilewright_diag::{Diagnostic, counted};
use tilewright_layout::access::LANES;
use tilewright_layout::axis::Scope;

use super::identifiers::check_name;
use crate::arena::Handle;
use crate::target::Target;
use crate::tile::buffer::Buffer;
use crate::tile::kernel::Kernel;
use crate::tile::op::Op;
use crate::tile::role::{Role, RoleOfUse};

/// The most roles of a CTA: each has a barrier of its own, and one of the sixteen is that of the CTA (PTX ISA, `barrier`).
const MOST_ROLES: usize = 15;

pub(super) fn check(kernel: &Kernel, target: Target, found: &mut Vec<Diagnostic>) {
    if kernel.roles.is_empty() {
        return;
    }
    kernel.roles.iter().for_each(|(_, role)| check_name(&role.name, role.span, "a role", found));
    found.extend(too_many_roles(kernel).or_else(|| beyond_the_cta(kernel, target)));
    found.extend(kernel.ops.iter().filter_map(|(_, op)| of_one_warp(kernel, op)));
    crossing(kernel, found);
}

fn too_many_roles(kernel: &Kernel) -> Option<Diagnostic> {
    let (_, last) = kernel.roles.iter().nth(MOST_ROLES)?;
    let message = format!("a CTA has up to {MOST_ROLES} roles; this one has {}", kernel.roles.len());
    Some(Diagnostic::error("K0274", message).label(last.span, "this role").help("let a role do the work of several"))
}

/// The error for roles that have more warps than the CTA, or none.
fn beyond_the_cta(kernel: &Kernel, target: Target) -> Option<Diagnostic> {
    let is_empty = |role: &&Role| role.warps < 1;
    if let Some(role) = kernel.roles.iter().map(|(_, role)| role).find(is_empty) {
        let message = format!("the role `{}` cannot have {}", role.name, counted(role.warps, "warp"));
        return Some(
            Diagnostic::error("K0274", message).label(role.span, "this role").help("a role has 1 warp or more"),
        );
    }
    let warps = kernel.threads / LANES as i64;
    let role = kernel.roles.iter().map(|(_, role)| role).find(|role| role.end() > warps)?;
    let needed = kernel.roles.iter().map(|(_, role)| role.warps).fold(0, i64::saturating_add);
    let (threads, whole) = (counted(kernel.threads, "thread"), counted(warps, "whole warp"));
    let message = format!("the roles need {}, but a CTA of {threads} has {whole}", counted(needed, "warp"));
    let finding = Diagnostic::error("K0274", message)
        .label(role.span, format!("`{}` begins at warp {}", role.name, role.first))
        .label(kernel.threads_span, "the threads of the CTA");
    let threads = needed.saturating_mul(LANES as i64);
    Some(match threads > target.max_threads() {
        true => finding
            .help(format!("k.role takes warps, not threads; a CTA has up to {}", target.max_threads() / LANES as i64)),
        false => finding.help(format!("call k.threads({threads}), or give the roles fewer warps")),
    })
}

/// The error for an op of single warps in a role, whose warps execute its ops together.
fn of_one_warp(kernel: &Kernel, op: &Op) -> Option<Diagnostic> {
    let role = &kernel.roles[op.role?];
    let is_of_warps = op.scope == Scope::Warp || op.warp.is_some();
    is_of_warps.then(|| {
        let name = op.kind.info().name;
        let message = format!("`{name}` runs on single warps, but stands in the role `{}`", role.name);
        Diagnostic::error("K0275", message)
            .label(op.span, "the warps of a role execute its ops together")
            .help(format!("write k.{name}(..), or give the warp a role of its own: k.role(\"..\", 1, |k| ..)"))
    })
}

/// The errors for fragments that are used in several roles, or both in a role and outside of it.
fn crossing(kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    let mut first: IndexMap<Handle<Buffer>, RoleOfUse> = IndexMap::new();
    let mut reported: Vec<Handle<Buffer>> = Vec::new();
    kernel.for_each_fragment_use(&mut |fragment, of| {
        let known = *first.entry(fragment).or_insert(of);
        if known.role != of.role && !reported.contains(&fragment) {
            reported.push(fragment);
            found.push(crosses(kernel, fragment, [known, of]));
        }
    });
}

fn crosses(kernel: &Kernel, fragment: Handle<Buffer>, uses: [RoleOfUse; 2]) -> Diagnostic {
    let buffer = &kernel.buffers[fragment];
    let who = |of: RoleOfUse| match of.role {
        Some(role) => format!("by the role `{}`", kernel.roles[role].name),
        None if of.is_condition => "in a condition, which all threads evaluate".to_string(),
        None => "by all threads, outside of roles".to_string(),
    };
    let [one, other] = uses;
    let message = format!("`{}` is in the registers of some warps, and others use it", buffer.name);
    Diagnostic::error("K0276", message)
        .label(one.span, format!("used {}", who(one)))
        .label(other.span, format!("used {}", who(other)))
        .label(buffer.span, "declared here")
        .help("use it in one role only: also its first fill or copy stands inside of k.role(..)")
        .help("or copy it to shared memory in one role, and use that in the other: the barrier between them is derived")
}
