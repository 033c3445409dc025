//! Who takes part in a loop whose stages the copy engine fills: all threads, or those of roles.

use std::collections::BTreeSet;

use tilewright_expr::Expr;
use tilewright_ir::thread::{Cond, Inst, Program, Stmt, for_each_stmt};
use tilewright_ir::tile::Role;
use tilewright_ir::{Handle, HwIndex};
use tilewright_layout::access::LANES;

use super::RunsAhead;
use crate::conditions::under;
use crate::sync::{Block, for_each_op, role_of};

/// Threads that execute something together.
pub(crate) struct Team {
    /// The role of all of them; `None` for the CTA.
    pub(super) role: Option<Handle<Role>>,
    pub(super) threads: i64,
    /// The first warp, in the CTA.
    first: i64,
}

impl Team {
    /// The threads of a role, or of the CTA.
    pub(crate) fn of(program: &Program, role: Option<Handle<Role>>) -> Team {
        let own = role.map(|role| &program.roles[role]);
        Team { role, threads: own.map_or(program.threads, Role::threads), first: own.map_or(0, |own| own.first) }
    }

    /// A barrier of these threads, and what plans call it.
    pub(crate) fn sync(&self) -> (Inst, &'static str) {
        match self.role {
            _ if self.threads <= LANES as i64 => (Inst::SyncWarp, "__syncwarp"),
            Some(_) => (Inst::SyncThreads, "barrier of the role"),
            None => (Inst::SyncThreads, "__syncthreads"),
        }
    }

    /// Statements of the first warp of a part of these threads.
    pub(crate) fn by_first_of(&self, part: &Team, body: Vec<Stmt>) -> Vec<Stmt> {
        if self.threads <= LANES as i64 {
            return body;
        }
        let warp = HwIndex::Warp.var(self.threads, &[1, 1, 1].map(Expr::constant));
        under(&[Cond::Equal(Expr::var(&warp), Expr::constant(part.first - self.first))], body)
    }
}

/// Who takes part in a loop. Where all copies are those of one role, no other warp issues any, and where all uses of the stages
/// are those of roles, no other warps wait for stages.
pub(super) struct Teams {
    pub(super) all: Team,
    /// Those of which one thread issues the copies.
    pub(super) issuers: Team,
    /// Those that wait for a stage and release it.
    pub(super) users: Vec<Team>,
}

impl Teams {
    pub(super) fn of(program: &Program, ahead: &RunsAhead, body: &[Block]) -> Teams {
        let all = role_of(body);
        let of_first = ahead.copies.first().and_then(|copy| copy.role);
        let issuers = of_first.filter(|_| ahead.copies.iter().all(|copy| copy.role == of_first)).or(all);
        let of_uses: Option<BTreeSet<Handle<Role>>> = roles_of_uses(program, ahead, body).into_iter().collect();
        let users = of_uses.filter(|roles| !roles.is_empty());
        let users = users.map_or(vec![all], |roles| roles.into_iter().map(Some).collect());
        Teams {
            all: Team::of(program, all),
            issuers: Team::of(program, issuers),
            users: users.into_iter().map(|role| Team::of(program, role)).collect(),
        }
    }

    /// Whether all threads take part in everything.
    pub(super) fn is_one(&self) -> bool {
        self.issuers.role == self.all.role && matches!(&self.users[..], [users] if users.role == self.all.role)
    }
}

/// The role of each op of a loop that uses a stage.
fn roles_of_uses(program: &Program, ahead: &RunsAhead, body: &[Block]) -> Vec<Option<Handle<Role>>> {
    let memories = ahead.memories();
    let is_copy = |at: usize| ahead.copies.iter().any(|copy| copy.block == at);
    let rest = body.iter().enumerate().filter(|(at, _)| !is_copy(*at));
    let mut rest: Vec<Block> = rest.map(|(_, block)| block.clone()).collect();
    let mut roles = Vec::new();
    for_each_op(&mut rest, &mut |op| {
        let mut uses = false;
        for_each_stmt(&op.body, &mut |stmt| {
            uses |= stmt.accesses().any(|access| memories.contains(&program.owner(access.memory)));
        });
        roles.extend(uses.then_some(op.role));
    });
    roles
}
