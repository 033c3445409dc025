//! Conflicts in tensors whose positions depend on sizes that are known only at launch.
//!
//! A position in a tensor is the sum of a base, which is the same for both accesses, of a multiple of the variable of the
//! loop that repeats them, and of a rest. Bases are not compared: the rests tell whether both touch a common byte, in one
//! iteration or in two that are so far apart. Where threads are at rows whose length is a size, rows have another length
//! for this, [`PITCH`].

use std::rc::Rc;

use tilewright_expr::linear::{Linear, linear, normalize};
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Call, Memory, Program, Regs, Stmt, for_each_expr};
use tilewright_ir::{Counter, Handle, HwIndex};

use super::accesses::AccessGroup;
use super::conflict::{Again, Order};
use super::pitch::{Facts, PITCH, Place};
use super::touched::{ByteRange, Conflict, byte_ranges, meet};
use crate::trace::{Env, trace};

/// The most pairs of iterations, and of values of other loop variables, that are compared.
const MOST_PAIRS: i64 = 64;

/// The most accesses of threads that are compared for one group.
const MOST_TOUCHES: usize = 1 << 17;

/// The conflict between two groups of accesses to tensors. `None` if that cannot be told from the rests of their positions.
pub(super) fn in_tensors(
    program: &Program,
    [earlier, later]: [&AccessGroup; 2],
    again: Option<&Again>,
    common: &[Handle<Memory>],
    most: Conflict,
) -> Option<Conflict> {
    if common.iter().any(|memory| !program.memories[*memory].is_global()) {
        return None;
    }
    let fixed = fixed(program, [earlier, later], again);
    let mut found = Conflict::default();
    for memory in common {
        let lengths = std::iter::once(None).chain(program.sizes.iter().map(Some));
        let mut scenes = lengths.map(|length| Scene { program, memory: *memory, fixed: &fixed, length, again });
        found = found.max(scenes.find_map(|scene| scene.conflict([earlier, later], most))?);
    }
    Some(found)
}

/// The variables that have the same values for both: sizes, integers that the CTA has loaded, and those of loops around both in the same iteration.
fn fixed(program: &Program, [earlier, later]: [&AccessGroup; 2], again: Option<&Again>) -> Vec<Var> {
    let shared = earlier.loops.iter().filter(|around| later.loops.contains(around)).map(|around| &around.counter.var);
    let repeated = again.map(|again| &again.counter.var);
    let shared = shared.take_while(|var| Some(*var) != repeated);
    program.sizes.iter().chain(&program.loaded).chain(shared).cloned().collect()
}

struct Scene<'a> {
    program: &'a Program,
    memory: Handle<Memory>,
    fixed: &'a [Var],
    /// The size that is the length of rows, which [`PITCH`] stands for.
    length: Option<&'a Var>,
    again: Option<&'a Again>,
}

/// What decides which part of a position is its base: the tensor, the variables that are fixed, the length of rows, and the
/// variable of the repeated loop.
pub(super) type Basis = (Handle<Memory>, Vec<Var>, Option<Var>, Option<Var>);

/// What a group touches in a tensor, from a base of 0.
#[derive(Debug)]
pub(super) struct Relative {
    /// What all positions have in common: their base, and how often the variable of the repeated loop is in them.
    common: Option<(Expr, i64)>,
    bytes: Vec<ByteRange>,
    /// Where in rows of [`PITCH`] elements they are, in elements; as the common base, so are columns counted from 0.
    columns: Option<Columns>,
}

/// The least column, and the one after the greatest.
#[derive(Clone, Copy, Debug)]
struct Columns(i64, i64);

impl Columns {
    fn with(self, other: Columns) -> Columns {
        Columns(self.0.min(other.0), self.1.max(other.1))
    }

    fn extent(self) -> i64 {
        self.1.saturating_sub(self.0)
    }
}

impl Scene<'_> {
    fn conflict(&self, [earlier, later]: [&AccessGroup; 2], most: Conflict) -> Option<Conflict> {
        let (before, after) = (self.relative(earlier)?, self.relative(later)?);
        if before.common != after.common {
            return None;
        }
        let shift = before.common.as_ref()?.1.checked_mul(self.program.memories[self.memory].dtype.bytes())?;
        let mut found = Conflict::default();
        for apart in self.distances(shift, &before, &after)? {
            let moved: Vec<ByteRange> = after.bytes.iter().map(|range| range.moved(apart)).collect();
            found = found.max(meet(&before.bytes, &moved, most));
        }
        Some(found)
    }

    /// How far apart the bases of the two may be, in bytes, as far as they can meet at all: those of `later` behind those of
    /// `earlier`.
    fn distances(&self, shift: i64, earlier: &Relative, later: &Relative) -> Option<Vec<i64>> {
        let Some(Again { counter, order }) = self.again else { return Some(vec![0]) };
        let apart = shift.checked_mul(counter.step)?;
        let columns = earlier.columns.into_iter().chain(later.columns).reduce(Columns::with);
        let within_row = match columns {
            Some(columns) => self.within_row(apart, columns)?,
            None => None,
        };
        if *order == Order::Next || apart == 0 {
            return Some(vec![apart]);
        }
        let (Some(before), Some(after)) = (ByteRange::around(&earlier.bytes), ByteRange::around(&later.bytes)) else {
            return Some(Vec::new());
        };
        let up_to = |apart: i64| {
            let reach = if apart > 0 { before.end - after.start } else { after.end - before.start };
            let reach = within_row.unwrap_or(reach);
            let turns = reach.max(0).div_euclid(apart.abs()).checked_add(1)?.min(counter.most_trips());
            (turns <= MOST_PAIRS).then(|| (1..=turns).map(move |turn| turn * apart))
        };
        let back = if *order == Order::Any { Some(up_to(-apart)?) } else { None };
        Some(up_to(apart)?.chain(back.into_iter().flatten()).collect())
    }

    /// How far apart two iterations may be in bytes and meet, if they differ in the column alone. `None` if columns may exceed a
    /// row of [`PITCH`] elements in the iterations that are compared.
    fn within_row(&self, apart: i64, columns: Columns) -> Option<Option<i64>> {
        let element = self.program.memories[self.memory].dtype.bytes();
        let elements = apart / element;
        let rows = (elements + PITCH / 2).div_euclid(PITCH);
        let aside = (elements - rows * PITCH).saturating_abs().saturating_mul(MOST_PAIRS);
        if aside.saturating_add(columns.extent()) > PITCH / 2 {
            return None;
        }
        Some((rows == 0).then(|| columns.extent() * element))
    }

    /// The variable of the loop that repeats the accesses.
    fn repeated(&self) -> Option<&Var> {
        self.again.map(|again| &again.counter.var)
    }

    /// What a group touches; it is found out once for all groups that it is compared with in this way.
    fn relative(&self, group: &AccessGroup) -> Option<Rc<Relative>> {
        let basis = (self.memory, self.fixed.to_vec(), self.length.cloned(), self.repeated().cloned());
        group.touched.relative(basis, || {
            let loops = group.loops.iter().map(|around| around.counter.var.clone()).collect();
            let facts = Facts::in_loops(group.loops.iter().map(|around| around.counter.clone()));
            let mut reader = Reader { scene: self, common: None, columns: None, names: Vec::new(), facts, loops };
            let body = reader.statements(group.touched.body())?;
            Some(Relative { bytes: self.bytes(&body, group)?, common: reader.common, columns: reader.columns })
        })
    }

    /// The bytes that statements touch. `None` if there are too many.
    fn bytes(&self, body: &[Stmt], group: &AccessGroup) -> Option<Vec<ByteRange>> {
        let is_used = |counter: &&Counter| {
            let mut found = false;
            for_each_expr(body, &mut |expr| found |= expr.mentions(&counter.var));
            found
        };
        let mut cases: Vec<Env> = vec![Vec::new()];
        for counter in group.loops.iter().map(|around| &around.counter).filter(is_used) {
            if counter.most_trips().checked_mul(cases.len() as i64)? > MOST_PAIRS {
                return None;
            }
            let with =
                |env: &Env, value: i64| env.iter().cloned().chain([(counter.var.clone(), value)]).collect::<Env>();
            cases = cases.iter().flat_map(|env| counter.possible().map(|value| with(env, value))).collect();
        }
        let mut touches = Vec::new();
        for env in &cases {
            let traced = trace(self.program, body, 0..self.program.warps(), env);
            touches.extend(traced.is_whole.then_some(traced.touches)?);
            if touches.len() > MOST_TOUCHES {
                return None;
            }
        }
        Some(byte_ranges(self.program, &touches))
    }

    /// Whether a term is the same for both groups.
    fn is_fixed(&self, atom: &Expr) -> bool {
        all_vars(atom, |var| self.fixed.contains(var) || matches!(HwIndex::of(var), Some(HwIndex::Block(_))))
    }

    /// Whether a memory is not the tensor, nor a view of it.
    fn is_other(&self, memory: Handle<Memory>) -> bool {
        self.program.owner(memory) != self.memory
    }
}

/// Takes the bases off the positions of statements.
struct Reader<'a> {
    scene: &'a Scene<'a>,
    /// See [`Relative`].
    common: Option<(Expr, i64)>,
    columns: Option<Columns>,
    /// The values of variables that are defined in the statements so far.
    names: Vec<(Var, Expr)>,
    /// What is known where the statements are executed.
    facts: Facts,
    /// The variables of loops, around the statements and in them.
    loops: Vec<Var>,
}

impl Reader<'_> {
    /// The statements that access the tensor, under the conditions on threads alone: they touch at least what the statements
    /// touch.
    fn statements(&mut self, body: &[Stmt]) -> Option<Vec<Stmt>> {
        let mut out = Vec::new();
        for stmt in body {
            match stmt {
                Stmt::Let { var, value } => {
                    let value = self.named(value);
                    self.names.push((var.clone(), value));
                }
                Stmt::Load { to, memory, index } if *memory == self.scene.memory => {
                    let index = self.rest(index, Some(self.elements(to)))?;
                    out.push(Stmt::Load { to: to.clone(), memory: *memory, index });
                }
                Stmt::Store { memory, index, from } if *memory == self.scene.memory => {
                    let index = self.rest(index, Some(self.elements(from)))?;
                    out.push(Stmt::Store { memory: *memory, index, from: from.clone() });
                }
                Stmt::Inst(call) => out.extend(self.call(call)?),
                Stmt::If { cond, body } => {
                    let mut cond = cond.clone();
                    cond.sides_mut().into_iter().for_each(|side| *side = self.named(side));
                    let mark = self.facts.mark();
                    self.facts.assume(&cond);
                    let body = self.statements(body)?;
                    self.facts.rewind(mark);
                    let is_of_threads = cond.sides().into_iter().all(is_of_threads);
                    if is_of_threads { out.push(Stmt::If { cond, body }) } else { out.extend(body) }
                }
                Stmt::Unless { body, .. } | Stmt::Elect { body, .. } | Stmt::IfValue { body, .. } => {
                    out.extend(self.statements(body)?);
                }
                Stmt::For { counter, body, unroll } => {
                    let _ = counter.values()?;
                    self.loops.push(counter.var.clone());
                    let body = self.statements(body)?;
                    out.push(Stmt::For { counter: counter.clone(), unroll: *unroll, body });
                }
                Stmt::Role { role, body } => {
                    let body = self.statements(body)?;
                    out.push(Stmt::Role { role: *role, body });
                }
                Stmt::Op { body, .. } => out.extend(self.statements(body)?),
                Stmt::Load { memory, .. } | Stmt::Store { memory, .. } => self.scene.is_other(*memory).then_some(())?,
                // A variable that they define is in no rest.
                Stmt::Lookup { .. } | Stmt::LetValue { .. } => {}
                Stmt::TensorCopy(_) | Stmt::Advance { .. } => {}
                Stmt::Declare(_) | Stmt::Set { .. } | Stmt::Move { .. } => {}
                Stmt::Assign { .. } | Stmt::AssignPair { .. } | Stmt::Mma(_) | Stmt::WarpgroupMma(_) => {}
                Stmt::TensorMma(_) | Stmt::TensorMove(_) => {}
            }
        }
        Some(out)
    }

    /// An instruction that accesses only the tensor. `None` if it accesses other memory too.
    fn call(&mut self, call: &Call) -> Option<Option<Stmt>> {
        match &call.memory[..] {
            [(memory, index)] if *memory == self.scene.memory => {
                let memory = vec![(*memory, self.rest(index, None)?)];
                Some(Some(Stmt::from(Call { memory, ..call.clone() })))
            }
            others => others.iter().all(|(memory, _)| self.scene.is_other(*memory)).then_some(None),
        }
    }

    /// The most elements of the tensor that registers hold.
    fn elements(&self, of: &Regs) -> i64 {
        let Scene { program, memory, .. } = self.scene;
        let bytes = program.registers[of.array].dtype.bytes() * of.count;
        (bytes / program.memories[*memory].dtype.bytes()).max(of.count)
    }

    /// The position in rows of [`PITCH`] elements, of `width` elements. `None` if they may not lie in one row of the tensor.
    fn in_rows(&mut self, position: &Expr, length: &Var, width: i64) -> Option<Expr> {
        let place = Place::of(position, length)?;
        if !self.facts.are_in_row(&place.column, width, length) {
            return None;
        }
        let is_own = |(_, atom): &(i64, Expr)| {
            !self.scene.is_fixed(atom) && self.scene.repeated().is_none_or(|var| *atom != Expr::var(var))
        };
        let sum = linear(&place.column);
        let own = Linear { terms: sum.terms.into_iter().filter(is_own).collect(), constant: sum.constant };
        let range = own.to_expr().range();
        let columns = Columns(range.lo, range.hi.saturating_add(width));
        self.columns = Some(self.columns.map_or(columns, |known| known.with(columns)));
        Some(place.position())
    }

    /// What remains of a position without base and the multiple of the repeated variable, which must be those of all others.
    /// `width` is how many elements are accessed there, if that is known.
    fn rest(&mut self, index: &Expr, width: Option<i64>) -> Option<Expr> {
        let index = self.named(index);
        let index = match self.scene.length {
            Some(length) => self.in_rows(&index, length, width?)?,
            None => index,
        };
        let sum = linear(&index);
        let repeated = self.scene.repeated().map(Expr::var);
        let (mut base, mut rest) = (Vec::new(), Vec::new());
        let mut times = 0;
        for (factor, atom) in sum.terms {
            if Some(&atom) == repeated.as_ref() {
                times = factor;
            } else if self.scene.is_fixed(&atom) {
                base.push((factor, atom));
            } else if self.is_known(&atom) {
                rest.push((factor, atom));
            } else {
                return None;
            }
        }
        let base = Linear { terms: base, constant: 0 }.to_expr();
        let common = self.common.get_or_insert_with(|| (base.clone(), times));
        let rest = Linear { terms: rest, constant: sum.constant }.to_expr();
        (*common == (base, times)).then_some(rest)
    }

    /// Whether a term depends on threads and loops alone.
    fn is_known(&self, atom: &Expr) -> bool {
        let Scene { fixed, .. } = self.scene;
        let is_counted =
            |var: &Var| self.loops.contains(var) && Some(var) != self.scene.repeated() && !fixed.contains(var);
        all_vars(atom, |var| is_of_thread(var) || is_counted(var))
    }

    /// An expression without the names that the statements define.
    fn named(&self, expr: &Expr) -> Expr {
        let value = |var: &Var| self.names.iter().rev().find(|(known, _)| known == var).map(|(_, value)| value.clone());
        normalize(&expr.substitute(&value))
    }
}

fn is_of_thread(var: &Var) -> bool {
    matches!(HwIndex::of(var), Some(HwIndex::Tid | HwIndex::Lane | HwIndex::Warp))
}

/// Whether a side of a condition depends on threads alone.
fn is_of_threads(side: &Expr) -> bool {
    all_vars(side, is_of_thread)
}

fn all_vars(expr: &Expr, is_right: impl Fn(&Var) -> bool) -> bool {
    let mut all = true;
    expr.for_each_var(&mut |var| all &= is_right(var));
    all
}
