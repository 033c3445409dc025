//! Tiles that CTAs claim from each other (PTX ISA, "clusterlaunchcontrol").
//!
//! A launch has a CTA for each tile, or a cluster. One that runs claims the tile of another one that has not started, which then never
//! does. One warp claims, and all roles read the response, 16 bytes in a stage of a ring:
//!
//! ```text
//! claim: wait until the stage is empty; one thread: announce 16 bytes, claim
//! all:   at the end of a tile: wait until the stage is full; tile = response; each warp arrives: it is empty
//! ```
//!
//! All end where the response says that no tile was left: after that, nothing may be claimed. In a cluster, the first CTA claims for
//! all, into the shared memory of each, when all have read what was there.

use tilewright_diag::Span;
use tilewright_expr::Expr;
use tilewright_ir::plan::PlanFacts;
use tilewright_ir::thread::{Call, Inst, Memory, MemorySpace, RESPONSE_BYTES, RegArray, Stmt};
use tilewright_ir::tile::{Role, Side};
use tilewright_ir::{Dim, Handle, SHARED_ALIGNMENT};
use tilewright_layout::DType;

use super::NextTile;
use super::pair::{Across, BarrierPair};
use crate::builder::{Builder, regs};
use crate::conditions::under;
use crate::engine::barrier_call;
use crate::measure::measure;

impl Builder {
    /// Shared memory for so many responses.
    pub(super) fn responses(&mut self, name: &str, count: i64, span: Span) -> Handle<Memory> {
        let place = (MemorySpace::Shared, SHARED_ALIGNMENT);
        let words = count * RESPONSE_BYTES / DType::U32.bytes();
        let memory = Memory { stages: count, ..Memory::new(self.fresh(name), DType::U32, words, place, span) };
        self.program.memories.push(memory)
    }

    /// A register for the next tile of a loop.
    pub(crate) fn next_tile(&mut self) -> Handle<RegArray> {
        let next = RegArray { name: self.fresh("next_tile"), dtype: DType::I32, len: 1, vector: 1 };
        self.program.registers.push(next)
    }
}

impl BarrierPair {
    /// The role that claims: one thread claims the next tile, and all wait for the response and read it as the other roles do.
    pub(super) fn claim(&self, builder: &Builder, role: Handle<Role>, next: &NextTile) -> Vec<Stmt> {
        let cursor = &builder.program.cursors[self.cursor];
        let full = (self.full, cursor.at());
        let bytes = Some(Expr::constant(RESPONSE_BYTES));
        let mut issue = vec![barrier_call(Inst::BarrierExpect, full.clone(), bytes)];
        let to = |inst| Call {
            memory: self.response(builder).into_iter().chain([full.clone()]).collect(),
            ..Call::plain(inst)
        };
        match self.across {
            Across::Shared => {
                let claim = Stmt::from(to(Inst::ClaimTileOfCluster));
                issue.extend(under(&[builder.is_first_of_cluster()], vec![claim]));
            }
            Across::Own | Across::Factors | Across::Pairs | Across::Sums => issue.push(Stmt::from(to(Inst::ClaimTile))),
        }
        let wait = barrier_call(Inst::BarrierWait, full.clone(), Some(Expr::var(&cursor.phase)));
        let mut body = vec![Stmt::Elect { body: issue }, wait];
        body.extend(self.take_claimed(builder, role, next));
        body
    }

    /// A role reads which tile it goes on with, and releases the stage.
    pub(super) fn take_claimed(&self, builder: &Builder, role: Handle<Role>, next: &NextTile) -> Vec<Stmt> {
        let mut body = self.read_response(builder, next);
        body.extend(self.release(builder, role));
        body
    }

    /// The response in the current stage.
    fn response(&self, builder: &Builder) -> Option<(Handle<Memory>, Expr)> {
        let memory = self.responses?;
        let stage = builder.program.cursors[self.cursor].at();
        Some((memory, stage * builder.program.memories[memory].stage_elements()))
    }

    /// What it costs a warp to read which tile comes next.
    pub(super) fn claim_facts(&self, builder: &Builder, next: &NextTile, side: Side) -> PlanFacts {
        let summary = match side {
            Side::Produce => {
                "one thread claims the tile of a CTA that has not started; each warp reads which one it is"
            }
            Side::Consume => "each warp reads which tile comes next",
        };
        let first = self.responses.map(|memory| (memory, Expr::constant(0)));
        measure(&builder.program, &[self.read(builder, first, next)], 0, summary.to_string(), i64::MAX)
    }

    /// The lanes of a warp, some of which may have issued something alone, read the next tile together, before the hardware writes to
    /// the stage again.
    fn read_response(&self, builder: &Builder, next: &NextTile) -> Vec<Stmt> {
        let [sync, fence] = [Inst::SyncWarp, Inst::ProxyFenceShared].map(|inst| Stmt::from(Call::plain(inst)));
        vec![sync, self.read(builder, self.response(builder), next), fence]
    }

    fn read(&self, builder: &Builder, response: Option<(Handle<Memory>, Expr)>, (next, end): &NextTile) -> Stmt {
        let clusters = &builder.program.grid[Dim::Y.index()];
        let (inst, arguments) = match self.across {
            Across::Shared => (Inst::ClaimedTileOfCluster, vec![clusters.clone(), end.clone()]),
            Across::Own | Across::Factors | Across::Pairs | Across::Sums => (Inst::ClaimedTile, vec![end.clone()]),
        };
        let memory = response.into_iter().collect();
        Stmt::from(Call { to: Some(regs(*next, 0, 1)), memory, arguments, ..Call::plain(inst) })
    }
}
