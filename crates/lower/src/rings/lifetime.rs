//! What happens once in a CTA with rings: barriers are initialised, and tensor memory is allocated and freed.

use tilewright_expr::{Expr, Var};
use tilewright_ir::Counter;
use tilewright_ir::plan::{AccessCost, Barrier, MemoryKind, OpPlan};
use tilewright_ir::thread::{Call, Inst, Program, Stmt, TensorMemory, Unroll};
use tilewright_ir::tile::Kernel;
use tilewright_layout::access::{AccessKind, LANES};

use super::pair::{Across, BarrierPair};
use crate::builder::{Builder, regs};
use crate::engine::barrier_call;
use crate::pipeline::Team;
use crate::sync::OpBlock;

/// The block in which one thread initialises the barriers of all rings, and all threads see them.
pub(super) fn begin_block(
    kernel: &Kernel,
    builder: &mut Builder,
    all: &[BarrierPair],
    plans: &mut [OpPlan],
) -> Option<OpBlock> {
    let first = all.first()?.plan;
    let mut inits = Vec::new();
    for (pair, (_, ring)) in all.iter().zip(kernel.rings.iter()) {
        let [full, empty] = pair.arrivals(builder);
        let stage = Var::new(builder.fresh("stage"), 0, ring.stages - 1);
        let at = Expr::var(&stage);
        let init =
            |memory, arrivals| barrier_call(Inst::BarrierInit, (memory, at.clone()), Some(Expr::constant(arrivals)));
        let body = vec![init(pair.full, full), init(pair.empty, empty)];
        inits.push(Stmt::For { counter: Counter::of(stage), unroll: Unroll::Auto, body });
        if let Some(turns) = pair.turns {
            let turn = Var::new(builder.fresh("turn"), 0, turns.of - 1);
            let place = (turns.barriers, Expr::var(&turn));
            let init = barrier_call(Inst::BarrierInit, place, Some(Expr::constant(turns.warps)));
            inits.push(Stmt::For { counter: Counter::of(turn), unroll: Unroll::Auto, body: vec![init] });
        }
    }
    inits.push(Stmt::from(Call::plain(Inst::BarrierInitFence)));
    let team = Team::of(&builder.program, None);
    let mut body = team.by_first_of(&team, vec![Stmt::Elect { body: inits }]);
    let (sync, what) = sync_of(&team, all);
    body.push(Stmt::from(Call::plain(sync)));
    let reason = "all threads see the barriers of the rings".to_string();
    plans[first].barriers.push(Barrier { what: what.to_string(), reason });
    let title = plans[first].title.clone();
    if let Some(tensor) = &builder.program.tensor_memory {
        body = with_tensor_memory(builder, tensor, body);
    }
    Some(OpBlock::new(title, None, body, first).part("its barriers begin"))
}

/// Statements that end in a barrier, before which a warp allocates tensor memory and after which all threads know its address.
fn with_tensor_memory(builder: &Builder, tensor: &TensorMemory, mut body: Vec<Stmt>) -> Vec<Stmt> {
    let slot = (tensor.slot, Expr::constant(0));
    let alloc_inst = if tensor.is_of_pair { Inst::TensorAllocPair } else { Inst::TensorAlloc };
    let alloc = Call { memory: vec![slot], arguments: vec![Expr::constant(tensor.columns)], ..Call::plain(alloc_inst) };
    let team = Team::of(&builder.program, None);
    let sync = body.pop();
    body.extend(team.by_first_of(&team, vec![Stmt::from(alloc)]));
    body.push(Stmt::from(Call::plain(Inst::TensorFenceBefore)));
    body.extend(sync);
    body.push(Stmt::from(Call::plain(Inst::TensorFenceAfter)));
    body.push(Stmt::Declare(tensor.base));
    body.push(Stmt::Load { to: regs(tensor.base, 0, 1), memory: tensor.slot, index: Expr::constant(0) });
    body
}

/// What it costs a warp to read where tensor memory begins.
pub(super) fn read_of_address(program: &Program, tensor: &TensorMemory) -> AccessCost {
    let slot = &program.memories[tensor.slot];
    let width = slot.dtype.bytes();
    AccessCost {
        kind: AccessKind::Load,
        operand: slot.name.clone(),
        memory: MemoryKind::Shared,
        width,
        count: 1,
        passes: 1,
        ideal: 1,
        bytes: width * LANES as i64,
    }
}

/// A barrier of all threads that use the rings: those of the CTA, or of its cluster.
fn sync_of(team: &Team, all: &[BarrierPair]) -> (Inst, &'static str) {
    match all.iter().any(|pair| pair.across != Across::Own) {
        true => (Inst::SyncCluster, "barrier of the cluster"),
        false => team.sync(),
    }
}

/// The block after which nothing uses the rings: the warp that allocated tensor memory frees it when no thread uses it any more, and no
/// CTA ends while others of its cluster may arrive at its barriers.
pub(super) fn end_block(builder: &Builder, all: &[BarrierPair], plans: &mut [OpPlan]) -> Option<OpBlock> {
    let first = all.first()?.plan;
    let team = Team::of(&builder.program, None);
    let (sync, what) = sync_of(&team, all);
    let tensor = builder.program.tensor_memory;
    let (part, reason) = match tensor {
        Some(_) => ("tensor memory is freed", "all roles have finished with tensor memory"),
        None if sync == Inst::SyncCluster => {
            ("its barriers end", "all CTAs of the cluster have finished with the rings")
        }
        None => return None,
    };
    let mut body = vec![Stmt::from(Call::plain(sync))];
    if let Some(tensor) = tensor {
        let dealloc = if tensor.is_of_pair { Inst::TensorDeallocPair } else { Inst::TensorDealloc };
        let (from, arguments) = (vec![regs(tensor.base, 0, 1)], vec![Expr::constant(tensor.columns)]);
        body.insert(0, Stmt::from(Call::plain(Inst::TensorFenceBefore)));
        body.push(Stmt::from(Call::plain(Inst::TensorFenceAfter)));
        body.extend(team.by_first_of(&team, vec![Stmt::from(Call { from, arguments, ..Call::plain(dealloc) })]));
    }
    plans[first].barriers.push(Barrier { what: what.to_string(), reason: reason.to_string() });
    Some(OpBlock::new(plans[first].title.clone(), None, body, first).part(part))
}
