//! The cost of a schedule: its statements are traced for one warp, and its instructions counted.

use tilewright_ir::plan::{AccessCost, MemoryKind, PlanFacts};
use tilewright_ir::thread::{MemorySpace, Program, Stmt};
use tilewright_layout::access::{AccessKind, LANES, WarpAccess};

use crate::count::{Counts, count};
use crate::starts::worst_start;
use crate::trace::{Env, Touch, steps, trace};

/// A body with more touches than this is not traced again for other starts.
const MOST_RETRACED: usize = 1 << 14;

/// The facts of `body`, executed once by `warp`. Partial steps leave later warps idle, so the first warp is never less
/// busy than another.
///
/// The start of the tile may depend on loops and blocks. Where it is not always a multiple of a sector, the sectors
/// reported are those of the worst start, unless the body costs `limit` at the first one.
pub(crate) fn measure(program: &Program, body: &[Stmt], warp: i64, summary: String, limit: i64) -> PlanFacts {
    let first = trace(program, body, warp..warp + 1, &Env::new());
    let mut worst = accesses(program, &first.touches);
    if !first.is_whole {
        worst.iter_mut().for_each(|access| extend(access, &first.touches, steps(body, i64::MAX)));
    }
    let Counts { instructions, shuffles } = count(program, body);
    let registers = (register_bytes(program, body) + 3) / 4;
    let mut facts = PlanFacts { summary, accesses: worst, instructions, shuffles, registers };
    if first.touches.len() > MOST_RETRACED || facts.cost() >= limit {
        return facts;
    }
    if let Some(worst) = worst_start(program, body, warp, &first.touches) {
        facts.accesses = accesses(program, &trace(program, body, warp..warp + 1, &worst).touches);
    }
    facts
}

fn accesses(program: &Program, touches: &[Touch]) -> Vec<AccessCost> {
    let steps = touches.iter().map(|t| t.step + 1).max().unwrap_or(0);
    let mut by_step: Vec<Vec<&Touch>> = vec![Vec::new(); steps];
    // What engines access is not issued by lanes.
    for touch in touches.iter().filter(|touch| !touch.is_by_engine) {
        by_step[touch.step].push(touch);
    }
    let mut found: Vec<AccessCost> = Vec::new();
    for lanes in by_step.iter().filter(|lanes| !lanes.is_empty()) {
        let one = access_of(program, lanes);
        match found.iter_mut().find(|a| a.kind == one.kind && a.operand == one.operand && a.width == one.width) {
            Some(sum) => {
                sum.count += 1;
                sum.passes += one.passes;
                sum.ideal += one.ideal;
                sum.bytes += one.bytes;
            }
            None => found.push(one),
        }
    }
    found
}

/// Extrapolates the figures of the traced accesses to `steps` steps, on the assumption that the others are like them.
fn extend(access: &mut AccessCost, known: &[Touch], steps: u64) {
    let traced = known.iter().map(|touch| touch.step + 1).max().unwrap_or(1) as u128;
    for number in [&mut access.count, &mut access.passes, &mut access.ideal, &mut access.bytes] {
        let all = *number as u128 * u128::from(steps) / traced;
        *number = i64::try_from(all).unwrap_or(i64::MAX);
    }
}

/// One access of one warp.
fn access_of(program: &Program, lanes: &[&Touch]) -> AccessCost {
    let first = lanes[0];
    let memory = &program.memories[first.memory];
    let mut addresses = [None; LANES];
    for touch in lanes {
        addresses[(touch.thread % 32) as usize] = Some(touch.first_byte as u64);
    }
    let kind = if first.writes { AccessKind::Store } else { AccessKind::Load };
    let access = WarpAccess { addresses, width: first.bytes as u64, kind };
    let (memory_kind, passes, ideal) = match memory.space {
        MemorySpace::Global { .. } | MemorySpace::Table => {
            (MemoryKind::Global, access.sectors(), access.ideal_sectors())
        }
        MemorySpace::Shared | MemorySpace::SharedView { .. } | MemorySpace::SharedInside { .. } => {
            (MemoryKind::Shared, access.wavefronts(), access.ideal_wavefronts())
        }
    };
    AccessCost {
        kind,
        operand: memory.name.clone(),
        memory: memory_kind,
        width: first.bytes,
        count: 1,
        passes: i64::from(passes),
        ideal: i64::from(ideal),
        bytes: lanes.iter().map(|t| t.bytes).sum(),
    }
}

/// Bytes of all register arrays that `body` declares.
fn register_bytes(program: &Program, body: &[Stmt]) -> i64 {
    let declared = |stmt: &Stmt| {
        if let Stmt::Declare(array) = stmt {
            let array = &program.registers[*array];
            return array.len * array.dtype.bytes();
        }
        0
    };
    body.iter().map(|stmt| declared(stmt) + register_bytes(program, stmt.inner())).sum()
}
