//! The cost of a schedule: its statements are traced for one warp, and its instructions counted.

use num_integer::Integer;
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::{AccessCost, MemoryKind, PlanFacts};
use tilewright_ir::thread::{Memory, MemorySpace, Program, Stmt, for_each_stmt, largest};
use tilewright_ir::tile::Effect;
use tilewright_ir::{Handle, HwIndex};
use tilewright_layout::access::{AccessKind, LANES, SECTOR, WarpAccess};
use tilewright_layout::axis::Scope;

use crate::count::{Counts, count};
use crate::trace::{Env, Touch, steps, trace};

/// A body with more touches than this is not traced again for other starts.
const MOST_RETRACED: usize = 1 << 14;

/// The facts of `body`, executed once by `warp`. Partial steps leave later warps idle, so the first warp is never less
/// busy than another.
///
/// The start of the tile may depend on loops and blocks. Where it is not always a multiple of a sector, the sectors
/// reported are those of the worst start, unless the body costs `limit` at the first one.
pub(crate) fn measure(program: &Program, body: &[Stmt], warp: i64, summary: String, limit: i64) -> PlanFacts {
    let of = |env: &Env| accesses(program, &trace(program, body, warp..warp + 1, env).touches);
    let total = |accesses: &[AccessCost]| accesses.iter().map(|a| a.passes).sum::<i64>();
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
    for env in unaligned_starts(program, body) {
        let here = of(&env);
        if total(&here) > total(&facts.accesses) {
            facts.accesses = here;
        }
    }
    facts
}

/// The starts to measure: the least values of every outer variable whose step moves a global access by a fraction of a
/// sector, since the alignment repeats after as many steps as a sector has bytes; and values of the sizes.
fn unaligned_starts(program: &Program, body: &[Stmt]) -> Vec<Env> {
    let mut moving: Vec<Var> = Vec::new();
    let mut defined: Vec<Var> = Vec::new();
    for_each_stmt(body, &mut |stmt| defined.extend(stmt.defines().iter().cloned()));
    // All accesses of an operand have the same start, so the first one represents them all.
    let mut asked: Vec<(Var, Handle<Memory>)> = Vec::new();
    // The sizes in indices, each with the bytes of the narrowest elements.
    let mut pitches: Vec<(Var, i64)> = Vec::new();
    for_each_global_index(program, body, &mut |index, memory| {
        let bytes = program.memories[memory].dtype.bytes();
        let mut vars: Vec<Var> = Vec::new();
        index.for_each_var(&mut |var| vars.extend((!vars.contains(var)).then(|| var.clone())));
        for var in &vars {
            if program.sizes.contains(var) && !moves_by_sectors(index, var, bytes) {
                match pitches.iter_mut().find(|(size, _)| size == var) {
                    Some((_, least)) => *least = bytes.min(*least),
                    None => pitches.push((var.clone(), bytes)),
                }
            }
            let is_index = HwIndex::of(var).is_some_and(|index| index.uniform_in() < Scope::Cta);
            let is_known = is_index || program.sizes.contains(var) || defined.contains(var);
            let is_outer = !is_known && var.range().lo < var.range().hi;
            if is_outer && !asked.iter().any(|(v, m)| v == var && *m == memory) {
                asked.push((var.clone(), memory));
                if !moving.contains(var) && !moves_by_sectors(index, var, bytes) {
                    moving.push(var.clone());
                }
            }
        }
    });
    let values = |var: &Var| {
        let all = (var.range().lo..=var.range().hi).step_by(var.multiple() as usize);
        all.take(SECTOR as usize).map(|value| vec![(var.clone(), value)]).collect::<Vec<Env>>()
    };
    // Rows begin at other offsets from the second one on.
    let second: Env = moving.iter().map(|var| (var.clone(), var.range().lo + var.multiple())).collect();
    let sizes = pitches.iter().flat_map(|(size, bytes)| rows_across_sectors(size, *bytes));
    let sizes = sizes.map(|size| second.iter().cloned().chain(size).collect());
    moving.iter().flat_map(values).chain(sizes).collect()
}

/// Values of a size below its maximum, with which the rows of a tensor of elements of `bytes` begin at every offset in a
/// sector.
fn rows_across_sectors(size: &Var, bytes: i64) -> impl Iterator<Item = Env> {
    let offsets = SECTOR as i64 / (bytes * size.multiple()).gcd(&(SECTOR as i64));
    let below = (1..offsets).map(|step| largest(size) - step * size.multiple());
    below.take_while(|value| *value >= 1).map(|value| vec![(size.clone(), value)])
}

/// True when a step of `var` moves the index by a multiple of a sector.
fn moves_by_sectors(index: &Expr, var: &Var, bytes: i64) -> bool {
    let lo = var.range().lo;
    let step = normalize(&(index.with(var, lo + var.multiple()) - index.with(var, lo)));
    step.multiple().saturating_mul(bytes) % SECTOR as i64 == 0
}

/// Visits the indices of loads and stores in global memory. An atomic addition is measured only at its first start.
fn for_each_global_index(program: &Program, body: &[Stmt], visit: &mut dyn FnMut(&Expr, Handle<Memory>)) {
    let is_global = |memory: Handle<Memory>| matches!(program.memories[memory].space, MemorySpace::Global { .. });
    for_each_stmt(body, &mut |stmt| {
        let moves = stmt.accesses().filter(|access| access.effect != Effect::Update && is_global(access.memory));
        moves.for_each(|access| visit(access.index, access.memory));
    });
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
