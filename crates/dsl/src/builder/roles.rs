//! Roles: statements of some warps.

use tilewright_diag::{Diagnostic, Span, counted};
use tilewright_ir::Handle;
use tilewright_ir::tile::Role;

use super::KernelBuilder;
use crate::nodes;

impl<'k> KernelBuilder<'k> {
    /// Statements that only some warps execute: the role `name`, which has `warps` warps. Roles get their warps in the order in
    /// which they are first named, the first role from warp 0 on, but those with a `gemm_async` come first; the warps of the CTA
    /// that are left have none. A role may be named several times, with the same number of warps.
    ///
    /// The results are those of all statements in their order; the barriers between roles are derived. Between these, roles run
    /// at the same time. Inside of a role, ops are executed by the threads of the role together, and layouts count threads and
    /// warps from the first of the role. A fragment belongs to one role; data passes from one to another through shared memory.
    #[track_caller]
    pub fn role<T>(&mut self, name: &str, warps: i64, body: impl FnOnce(&mut KernelBuilder<'k>) -> T) -> T {
        let span = Span::here();
        if let Some(outer) = self.role {
            let message = format!("the role `{name}` inside of the role `{}`", self.kernel.roles[outer].name);
            let finding = Diagnostic::error("K0275", message).label(span, "this role");
            nodes::mistake(finding.help("a warp has one role: end the outer one first"));
            return body(self);
        }
        self.role = Some(self.named_role(name, warps, span));
        let result = body(self);
        self.role = None;
        result
    }

    /// The role with this name, which begins behind the others if it is new.
    fn named_role(&mut self, name: &str, warps: i64, span: Span) -> Handle<Role> {
        let roles = &mut self.kernel.roles;
        let Some((handle, known)) = roles.iter().find(|(_, role)| role.name == name) else {
            let first = roles.iter().map(|(_, role)| role.end()).last().unwrap_or(0);
            return roles.push(Role { name: name.to_string(), first, warps, span });
        };
        if known.warps != warps {
            let [one, other] = [known.warps, warps].map(|warps| counted(warps, "warp"));
            let finding = Diagnostic::error("K0274", format!("the role `{name}` has {one} and {other}"));
            let finding = finding.label(span, "named again here").label(known.span, "first named here");
            nodes::mistake(finding.help("give it the same number of warps"));
        }
        handle
    }
}
