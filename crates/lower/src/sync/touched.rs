//! What the accesses of an op touch, byte by byte, and which threads meet there.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use num_integer::Integer;
use tilewright_expr::linear::{linear, normalize};
use tilewright_expr::{Expr, Node, Var};
use tilewright_ir::thread::{Inst, Memory, Program, Stmt, for_each_expr, for_each_stmt, for_each_stmt_mut};
use tilewright_ir::tile::MemoryOrder;
use tilewright_ir::{Counter, Handle, HwIndex};
use tilewright_layout::access::LANES;
use tilewright_layout::axis::Scope;

use super::block::LoopRef;
use super::shared::in_shared;
use super::tensors::{Basis, Relative};
use crate::trace::{Env, Touch, Trace, trace};

/// The most assignments of loop variables and block indices that are traced. Beyond, the touched bytes are not known.
const MOST_CASES: usize = 32;

/// The statements of an op between two of its own barriers, and what they touch.
#[derive(Debug)]
pub(super) struct Touched {
    body: Vec<Stmt>,
    /// The memories that they access, in order.
    effects: Vec<Effects>,
    /// The enclosing loops that the touched bytes depend on.
    loops: Vec<Counter>,
    /// The block indices that the touched bytes depend on.
    pub(super) blocks: Vec<Var>,
    /// See [`Touched::cases`].
    cases: OnceCell<Option<Vec<Case>>>,
    /// See [`Touched::in_shared`].
    in_shared: OnceCell<Box<Touched>>,
    /// See [`Touched::relative`].
    relative: RefCell<BTreeMap<Basis, Option<Rc<Relative>>>>,
}

/// How a memory is accessed. A view counts as the memory that it is a view of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effects {
    pub(super) memory: Handle<Memory>,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// Whether earlier accesses to it are released.
    releases: bool,
    /// Whether later accesses to it follow an acquisition.
    acquires: bool,
    /// The atomic instruction that every access is: these are in no order among each other.
    atomic: Option<Inst>,
    /// Whether the touched bytes depend on data, or on a size that is known only at launch.
    pub(super) is_unknown: bool,
}

impl Effects {
    /// No accesses to a memory.
    fn none(memory: Handle<Memory>) -> Effects {
        let (atomic, is_unknown) = (None, false);
        Effects { memory, reads: false, writes: false, releases: false, acquires: false, atomic, is_unknown }
    }
}

/// The bytes that are touched for one assignment of loop variables and block indices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) env: Env,
    /// Disjoint, in order.
    pub(super) bytes: Vec<ByteRange>,
}

/// Bytes of a memory that the same threads read and the same threads write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteRange {
    memory: Handle<Memory>,
    first: i64,
    end: i64,
    readers: ThreadSet,
    writers: ThreadSet,
}

/// As much of a set of threads as barriers depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadSet {
    Empty,
    One(i64),
    /// Several threads of one warp.
    OfWarp(i64),
    /// Threads of several warps.
    OfWarps,
}

impl ThreadSet {
    fn warp(self) -> Option<i64> {
        match self {
            ThreadSet::One(thread) => Some(thread / LANES as i64),
            ThreadSet::OfWarp(warp) => Some(warp),
            ThreadSet::Empty | ThreadSet::OfWarps => None,
        }
    }

    fn union(self, other: ThreadSet) -> ThreadSet {
        match (self, other) {
            (one, another) if one == another => one,
            (ThreadSet::Empty, threads) | (threads, ThreadSet::Empty) => threads,
            (one, another) => match (one.warp(), another.warp()) {
                (Some(warp), Some(same)) if warp == same => ThreadSet::OfWarp(warp),
                _ => ThreadSet::OfWarps,
            },
        }
    }

    /// The widest scope of two different threads, one of each set; `None` if there are none.
    fn apart(self, other: ThreadSet) -> Option<Scope> {
        match (self, other) {
            (ThreadSet::Empty, _) | (_, ThreadSet::Empty) => None,
            (ThreadSet::One(thread), ThreadSet::One(same)) if thread == same => None,
            _ => match self.union(other) {
                ThreadSet::OfWarps => Some(Scope::Cta),
                ThreadSet::Empty | ThreadSet::One(_) | ThreadSet::OfWarp(_) => Some(Scope::Warp),
            },
        }
    }
}

impl Touched {
    /// What statements inside these loops touch.
    pub(super) fn of(program: &Program, mut body: Vec<Stmt>, loops: &[LoopRef]) -> Touched {
        let names: Vec<&(Var, Expr)> = loops.iter().flat_map(|around| &around.names).collect();
        if !names.is_empty() {
            let named = |var: &Var| names.iter().find(|(known, _)| known == var).map(|(_, value)| value.clone());
            for_each_stmt_mut(&mut body, &mut |stmt| {
                stmt.exprs_mut(&mut |expr| *expr = normalize(&expr.substitute(&named)));
            });
        }
        let (mut relevant, mut blocks): (Vec<Counter>, Vec<Var>) = (Vec::new(), Vec::new());
        for_each_expr(&body, &mut |expr| {
            expr.for_each_var(&mut |var| {
                if let Some(around) = loops.iter().find(|around| around.counter.var == *var) {
                    if !relevant.contains(&around.counter) {
                        relevant.push(around.counter.clone());
                    }
                } else if matches!(HwIndex::of(var), Some(HwIndex::Block(_))) && !blocks.contains(var) {
                    blocks.push(var.clone());
                }
            });
        });
        let effects = effects(program, &body);
        let (cases, in_shared) = (OnceCell::new(), OnceCell::new());
        Touched { body, effects, loops: relevant, blocks, cases, in_shared, relative: RefCell::default() }
    }

    /// What is touched in shared memory if conditions on block indices, sizes and data may hold or not, and those on long loops
    /// in which they are not periodic: at least what is touched.
    pub(super) fn in_shared(&self, program: &Program, loops: &[LoopRef]) -> &Touched {
        self.in_shared.get_or_init(|| {
            let long = self.loops.iter().filter(|counter| counter.most_trips() > MOST_CASES as i64);
            let long: Vec<&Var> = long.map(|counter| &counter.var).collect();
            let is_open = |side: &Expr| long.iter().any(|var| common_period(side, var, 1).is_none());
            let body = in_shared(program, &self.body, &unknown(program, &self.body), &is_open);
            Box::new(Touched::of(program, body, loops))
        })
    }

    /// What is touched in a tensor, from a base of 0: `make` finds it out once for each basis.
    pub(super) fn relative(&self, basis: Basis, make: impl FnOnce() -> Option<Relative>) -> Option<Rc<Relative>> {
        if let Some(known) = self.relative.borrow().get(&basis) {
            return known.clone();
        }
        let made = make().map(Rc::new);
        self.relative.borrow_mut().insert(basis, made.clone());
        made
    }

    /// The statements.
    pub(super) fn body(&self) -> &[Stmt] {
        &self.body
    }

    /// The memories that both access and at least one writes, each with how `later` may conflict with it: by reading
    /// what this writes, and by writing.
    pub(super) fn common(&self, later: &Touched) -> Vec<(Handle<Memory>, [bool; 2])> {
        let common = |here: &Effects| {
            let there = later.effects.iter().find(|there| there.memory == here.memory)?;
            if here.atomic.is_some() && here.atomic == there.atomic {
                return None;
            }
            let touches = |effects: &Effects| effects.reads || effects.writes;
            let is_released = there.releases && touches(here);
            let ways = [
                there.reads && (here.writes || here.acquires),
                is_released || there.writes && (touches(here) || here.acquires),
            ];
            ways.contains(&true).then_some((here.memory, ways))
        };
        self.effects.iter().filter_map(common).collect()
    }

    /// Whether the touched bytes of a memory depend on data, or on a size that is known only at launch.
    pub(super) fn is_unknown(&self, memory: Handle<Memory>) -> bool {
        self.effects.iter().any(|effects| effects.memory == memory && effects.is_unknown)
    }

    /// The touched bytes for every assignment of the loop variables and block indices that they depend on. `None` if
    /// there are more than [`MOST_CASES`] assignments, or too many accesses to list.
    pub(super) fn cases(&self, program: &Program) -> Option<&[Case]> {
        let traced = |env: Env| {
            let Trace { touches, is_whole } = trace(program, &self.body, 0..program.warps(), &env);
            let is_ordered = |touch: &Touch| program.ring_of(touch.memory).is_some();
            let touches: Vec<Touch> = touches.into_iter().filter(|touch| !is_ordered(touch)).collect();
            is_whole.then(|| Case { bytes: byte_ranges(program, &touches), env })
        };
        let all = || {
            let in_loops = self.loops.iter().map(|counter| Some((&counter.var, counted(counter, &self.body)?)));
            let in_grid = self.blocks.iter().map(|var| Some((var, consecutive(var)?)));
            let values: Option<Vec<(&Var, Vec<i64>)>> = in_loops.chain(in_grid).collect();
            assignments(&values?)?.into_iter().map(traced).collect()
        };
        self.cases.get_or_init(all).as_deref()
    }

    /// Whether both touch the same bytes of the same memories by the same threads, as far as that is known.
    pub(super) fn is_like(&self, other: &Touched, program: &Program) -> bool {
        let is_known = |effects: &Effects| !effects.is_unknown;
        self.effects == other.effects
            && (self.loops == other.loops && self.blocks == other.blocks)
            && self.effects.iter().all(is_known)
            && self.cases(program).is_some_and(|cases| other.cases(program) == Some(cases))
    }
}

/// The variables that stand for data, or for sizes that are known only at launch.
fn unknown(program: &Program, body: &[Stmt]) -> BTreeSet<Var> {
    let mut unknown: BTreeSet<Var> = program.sizes.iter().chain(&program.loaded).cloned().collect();
    for_each_stmt(body, &mut |stmt| {
        if stmt.names_data() {
            unknown.extend(stmt.defines().iter().cloned());
        }
    });
    unknown
}

/// Adds how a memory is accessed to what is known of it.
fn add(all: &mut Vec<Effects>, more: Effects) {
    match all.iter_mut().find(|known| known.memory == more.memory) {
        Some(known) => {
            known.reads |= more.reads;
            known.writes |= more.writes;
            known.releases |= more.releases;
            known.acquires |= more.acquires;
            known.atomic = known.atomic.filter(|known| Some(*known) == more.atomic);
            known.is_unknown |= more.is_unknown;
        }
        None => all.push(more),
    }
}

/// The memories that statements access.
fn effects(program: &Program, body: &[Stmt]) -> Vec<Effects> {
    let unknown = unknown(program, body);
    let mut all: Vec<Effects> = Vec::new();
    for stmt in body {
        let mut is_unknown = false;
        for_each_expr(std::slice::from_ref(stmt), &mut |expr| {
            expr.for_each_var(&mut |var| is_unknown |= unknown.contains(var));
        });
        for_each_stmt(std::slice::from_ref(stmt), &mut |stmt| {
            // The barriers of a ring order the accesses to its memories.
            for access in stmt.accesses().filter(|access| program.ring_of(access.memory).is_none()) {
                let (reads, writes) = (access.effect.reads(), access.effect.writes());
                let atomic = match stmt {
                    // The old elements tell the order of operations.
                    Stmt::Inst(call) if call.to.is_none() => call.inst.atomic().filter(|inst| inst.is_commutative()),
                    _ => None,
                };
                let memory = program.owner(access.memory);
                let effects = Effects { reads, writes, atomic, is_unknown, ..Effects::none(memory) };
                add(&mut all, effects);
            }
            let order = stmt.memory_order();
            if order != MemoryOrder::Relaxed {
                let (releases, acquires) = (order.releases(), order.acquires());
                let ordered = |memory| Effects { releases, acquires, is_unknown: true, ..Effects::none(memory) };
                program.written_tensors().for_each(|memory| add(&mut all, ordered(memory)));
            }
        });
    }
    all.sort_by_key(|effects| effects.memory);
    all
}

/// Every combination of values; `None` if there are more than [`MOST_CASES`].
fn assignments(values: &[(&Var, Vec<i64>)]) -> Option<Vec<Env>> {
    let mut all: Vec<Env> = vec![Vec::new()];
    for (var, values) in values {
        if all.len().saturating_mul(values.len()) > MOST_CASES {
            return None;
        }
        let with = |env: &Env, value: i64| env.iter().cloned().chain([((*var).clone(), value)]).collect::<Env>();
        all = all.iter().flat_map(|env| values.iter().map(move |value| with(env, *value))).collect();
    }
    Some(all)
}

/// All values of a variable; `None` if there are more than [`MOST_CASES`].
fn consecutive(var: &Var) -> Option<Vec<i64>> {
    let range = var.range();
    let count = range.hi.checked_sub(range.lo)?.checked_add(1)?;
    (count <= MOST_CASES as i64).then(|| (range.lo..=range.hi).collect())
}

/// The values of a loop's variable that have to be told apart: all of them, or those of two periods if statements depend
/// only on remainders of the variable. `None` if there are more than [`MOST_CASES`].
fn counted(counter: &Counter, body: &[Stmt]) -> Option<Vec<i64>> {
    let all = || counter.possible();
    let count = counter.most_trips();
    if count <= MOST_CASES as i64 {
        return Some(all().collect());
    }
    let mut period = Some(1);
    for_each_expr(body, &mut |expr| period = period.and_then(|known| common_period(expr, &counter.var, known)));
    let turns = period?.checked_div(period?.gcd(&counter.step))?.checked_mul(2)?;
    (turns <= MOST_CASES as i64).then(|| all().take(turns as usize).collect())
}

/// The least period of an expression in a variable that is a multiple of `known`: the expression depends on remainders of
/// the variable only. `None` if there is none.
fn common_period(expr: &Expr, var: &Var, known: i64) -> Option<i64> {
    if !expr.mentions(var) {
        return Some(known);
    }
    match (expr.node(), expr.operands()?) {
        (Node::Mod(..), (of, divisor)) => match distance_in(of, var) {
            Some(distance) => Some(known.lcm(&divisor.as_const()?.checked_mul(distance)?)),
            None => common_period(of, var, known),
        },
        (_, (a, b)) => common_period(b, var, common_period(a, var, known)?),
    }
}

/// For a sum in which the variable occurs only times a number, or divided by one that divides all its values: by how much the
/// variable grows where the sum grows by a whole number. `None` for other expressions.
fn distance_in(expr: &Expr, var: &Var) -> Option<i64> {
    let of_atom = |atom: &Expr| match (atom.node(), atom.operands()) {
        (Node::Var(_), _) => Some(1),
        (Node::Div(..), Some((of, by))) if *of == Expr::var(var) => {
            by.as_const().filter(|by| *by > 0 && var.multiple() % by == 0)
        }
        _ => None,
    };
    let terms = linear(expr).terms;
    let with_var = terms.iter().map(|(_, atom)| atom).filter(|atom| atom.mentions(var));
    with_var.map(of_atom).try_fold(1i64, |all, distance| Some(all.lcm(&distance?)))
}

/// The touched bytes, in order of memory and address.
pub(super) fn byte_ranges(program: &Program, touches: &[Touch]) -> Vec<ByteRange> {
    let mut all: Vec<ByteRange> = touches.iter().map(|touch| touched_by(program, touch)).collect();
    all.sort_unstable_by_key(|range| (range.memory, range.first, range.end));
    all.dedup_by(|next, known| {
        let is_same = (next.memory, next.first, next.end) == (known.memory, known.first, known.end);
        if is_same {
            known.add(next);
        }
        is_same
    });
    let ranges = all.chunk_by(|a, b| a.memory == b.memory).flat_map(disjoint).collect();
    joined(ranges)
}

/// The bytes of one access.
fn touched_by(program: &Program, touch: &Touch) -> ByteRange {
    let (thread, nobody) = (ThreadSet::One(touch.thread), ThreadSet::Empty);
    let thread = thread.warp().filter(|_| touch.is_of_warp).map_or(thread, ThreadSet::OfWarp);
    ByteRange {
        memory: program.owner(touch.memory),
        first: touch.first_byte,
        end: touch.first_byte + touch.bytes,
        readers: if touch.writes { nobody } else { thread },
        writers: if touch.writes { thread } else { nobody },
    }
}

/// Ranges of one memory, in order, cut where others begin or end.
fn disjoint(ranges: &[ByteRange]) -> Vec<ByteRange> {
    if ranges.windows(2).all(|pair| pair[0].end <= pair[1].first) {
        return ranges.to_vec();
    }
    let mut ends: Vec<i64> = ranges.iter().flat_map(|range| [range.first, range.end]).collect();
    ends.sort_unstable();
    ends.dedup();
    let untouched = |pair: &[i64]| ByteRange {
        first: pair[0],
        end: pair[1],
        readers: ThreadSet::Empty,
        writers: ThreadSet::Empty,
        ..ranges[0]
    };
    let mut cut: Vec<ByteRange> = ends.windows(2).map(untouched).collect();
    for range in ranges {
        let first = cut.partition_point(|piece| piece.first < range.first);
        cut[first..].iter_mut().take_while(|piece| piece.first < range.end).for_each(|piece| piece.add(range));
    }
    cut.retain(|piece| (piece.readers, piece.writers) != (ThreadSet::Empty, ThreadSet::Empty));
    cut
}

/// The same bytes, with neighbours of the same threads as one range.
fn joined(ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    let mut joined: Vec<ByteRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range == (ByteRange { first: last.end, end: range.end, ..*last }) => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

impl ByteRange {
    /// The same so many bytes further on.
    pub(super) fn moved(self, bytes: i64) -> ByteRange {
        ByteRange { first: self.first + bytes, end: self.end + bytes, ..self }
    }

    /// The bytes from the first to the last of all ranges; `None` if there are no ranges.
    pub(super) fn around(ranges: &[ByteRange]) -> Option<Range<i64>> {
        let first = ranges.iter().map(|range| range.first).min()?;
        Some(first..ranges.iter().map(|range| range.end).max()?)
    }

    fn add(&mut self, other: &ByteRange) {
        self.readers = self.readers.union(other.readers);
        self.writers = self.writers.union(other.writers);
    }

    /// The conflicts of these bytes with the same bytes, touched later.
    fn conflict(&self, later: &ByteRange) -> Conflict {
        let by_write = self.readers.union(self.writers).apart(later.writers);
        Conflict { by_read: self.writers.apart(later.readers), by_write }
    }
}

/// The widest scopes of two threads that touch a common byte, one of them earlier and one later; `None` if there are
/// none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Conflict {
    /// Where the later one reads what the earlier one writes.
    pub(super) by_read: Option<Scope>,
    /// Where the later one writes what the earlier one reads or writes.
    pub(super) by_write: Option<Scope>,
}

impl Conflict {
    /// The widest scope of any.
    pub(super) fn scope(self) -> Option<Scope> {
        self.by_read.max(self.by_write)
    }

    /// The wider scopes of both.
    pub(super) fn max(self, other: Conflict) -> Conflict {
        let Conflict { by_read, by_write } = other;
        Conflict { by_read: self.by_read.max(by_read), by_write: self.by_write.max(by_write) }
    }
}

/// The conflicts between accesses. The search stops once it has found `widest`, which nothing can exceed.
pub(super) fn meet(earlier: &[ByteRange], later: &[ByteRange], widest: Conflict) -> Conflict {
    let (mut found, mut earlier, mut later) = (Conflict::default(), earlier.iter().peekable(), later.iter().peekable());
    while let (Some(a), Some(b)) = (earlier.peek(), later.peek()) {
        if a.memory == b.memory && a.first < b.end && b.first < a.end {
            found = found.max(a.conflict(b));
            if found == widest {
                break;
            }
        }
        if (a.memory, a.end) <= (b.memory, b.end) {
            earlier.next()
        } else {
            later.next()
        };
    }
    found
}
