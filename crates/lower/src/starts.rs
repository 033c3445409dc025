//! Where tiles begin: at the start at which the accesses of a body touch the most sectors of global memory.

use num_integer::Integer;
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Memory, MemorySpace, Program, Stmt, for_each_stmt, largest};
use tilewright_ir::tile::Effect;
use tilewright_ir::{Handle, HwIndex};
use tilewright_layout::access::{AccessKind, LANES, SECTOR, WarpAccess};
use tilewright_layout::axis::Scope;

use crate::trace::{Env, Touch, trace_first};

/// Of so many touches, the first of a body, the sectors are compared. The others repeat them further on.
const MOST_COMPARED: usize = 1 << 12;

/// The start at which the first accesses of `body`, executed once by `warp`, touch the most sectors; `None` if that is the first
/// one, whose touches are given.
pub(crate) fn worst_start(program: &Program, body: &[Stmt], warp: i64, first: &[Touch]) -> Option<Env> {
    let touches = |env: &Env| in_global_memory(program, trace_first(program, body, warp, env, MOST_COMPARED).touches);
    let (mut most, mut worst) = (sectors(&in_global_memory(program, first.to_vec())), None);
    for starts in unaligned_starts(program, body) {
        for (env, sectors) in starts.iter().zip(sectors_at(&starts, &touches)) {
            if sectors > most {
                (most, worst) = (sectors, Some(env.clone()));
            }
        }
    }
    worst
}

fn in_global_memory(program: &Program, mut touches: Vec<Touch>) -> Vec<Touch> {
    touches.truncate(MOST_COMPARED);
    touches.retain(|touch| {
        let space = program.memories[touch.memory].space;
        !touch.is_by_engine && matches!(space, MemorySpace::Global { .. } | MemorySpace::Table)
    });
    touches
}

/// The sectors that are touched at each of these starts. Where each address is as far from one start to the next as between the
/// first two, which the last start tells, only three of them are traced.
fn sectors_at(starts: &[Env], touches: &impl Fn(&Env) -> Vec<Touch>) -> Vec<u32> {
    let traced = || starts.iter().map(|env| sectors(&touches(env))).collect();
    let [first, second, .., last] = starts else { return traced() };
    let [first, second, last] = [first, second, last].map(touches);
    let is_same = |(a, b): (&Touch, &Touch)| Touch { first_byte: b.first_byte, ..*a } == *b;
    let moved = |by: i64| {
        let along = first.iter().zip(&second);
        along.map(move |(a, b)| Touch { first_byte: a.first_byte + by * (b.first_byte - a.first_byte), ..*a })
    };
    let is_even = first.len() == second.len()
        && first.iter().zip(&second).all(is_same)
        && moved(starts.len() as i64 - 1).eq(last.iter().copied());
    if !is_even {
        return traced();
    }
    (0..starts.len() as i64).map(|by| sectors(&moved(by).collect::<Vec<Touch>>())).collect()
}

/// The sectors that accesses of one warp touch, each access counted for itself.
fn sectors(touches: &[Touch]) -> u32 {
    let of_access = |lanes: &[Touch]| {
        let mut addresses = [None; LANES];
        lanes.iter().for_each(|touch| addresses[touch.thread as usize % LANES] = Some(touch.first_byte as u64));
        WarpAccess { addresses, width: lanes[0].bytes as u64, kind: AccessKind::Load }.sectors()
    };
    touches.chunk_by(|a, b| a.step == b.step).map(of_access).sum()
}

/// The starts to measure: the least values of every outer variable whose step moves a global access by a fraction of a
/// sector, until the alignment repeats; and values of the sizes. In each list, one variable takes values that are equally far apart.
fn unaligned_starts(program: &Program, body: &[Stmt]) -> Vec<Vec<Env>> {
    // The variables, each with the bytes of the narrowest elements that it moves.
    let mut moving: Vec<(Var, i64)> = Vec::new();
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
            if program.sizes.contains(var) && !is_noted(&pitches, var, bytes) && !moves_by_sectors(index, var, bytes) {
                note(&mut pitches, var, bytes);
            }
            let is_index = HwIndex::of(var).is_some_and(|index| index.uniform_in() < Scope::Cta);
            let is_known = is_index || program.sizes.contains(var) || defined.contains(var);
            let is_outer = !is_known && var.range().lo < var.range().hi;
            if is_outer && !asked.iter().any(|(v, m)| v == var && *m == memory) {
                asked.push((var.clone(), memory));
                if !is_noted(&moving, var, bytes) && !moves_by_sectors(index, var, bytes) {
                    note(&mut moving, var, bytes);
                }
            }
        }
    });
    let values = |(var, bytes): &(Var, i64)| {
        let all = (var.range().lo..=var.range().hi).step_by(var.multiple() as usize);
        all.take(offsets(var, *bytes)).map(|value| vec![(var.clone(), value)]).collect()
    };
    // Rows begin at other offsets from the second one on.
    let second: Env = moving.iter().map(|(var, _)| (var.clone(), var.range().lo + var.multiple())).collect();
    let at_second = |env: Env| second.iter().cloned().chain(env).collect();
    let sizes = pitches.iter().map(|(size, bytes)| rows_across_sectors(size, *bytes).map(at_second).collect());
    moving.iter().map(values).chain(sizes).collect()
}

/// Whether a variable is known with elements of so many bytes, or narrower ones.
fn is_noted(known: &[(Var, i64)], var: &Var, bytes: i64) -> bool {
    known.iter().any(|(of, least)| of == var && *least <= bytes)
}

fn note(known: &mut Vec<(Var, i64)>, var: &Var, bytes: i64) {
    match known.iter_mut().find(|(of, _)| of == var) {
        Some((_, least)) => *least = bytes.min(*least),
        None => known.push((var.clone(), bytes)),
    }
}

/// How many steps of a variable that counts elements of so many bytes may begin at different offsets in a sector.
fn offsets(var: &Var, bytes: i64) -> usize {
    SECTOR as usize / (bytes * var.multiple()).gcd(&(SECTOR as i64)) as usize
}

/// Values of a size below its maximum, with which the rows of a tensor of elements of `bytes` begin at every offset in a
/// sector.
fn rows_across_sectors(size: &Var, bytes: i64) -> impl Iterator<Item = Env> {
    let below = (1..offsets(size, bytes) as i64).map(|step| largest(size) - step * size.multiple());
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
