//! Rolls equal statements up: statements that differ only in numbers which grow by the same amount from one to the next
//! stand once, in a loop that CUDA unrolls. The program computes the same, in the same order; only its text is shorter.
//!
//! Register arrays that belong to one repetition are declared inside the loop, once. So a vector that is only moved
//! remains a variable of its own: if vectors are elements of an array, NVRTC may compile the same text differently.

mod copies;
mod quotients;
mod repeats;
mod shape;
mod strides;
mod unroll;

use std::collections::{BTreeMap, BTreeSet};

use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{RegArray, Regs, Stmt, Unroll, for_each_stmt, is_word};
use tilewright_ir::{Arena, Counter, Handle};

use self::copies::interleaved;
use self::quotients::quotients_named;
use self::repeats::{Repeat, Repeats};
use self::shape::{Mentions, mentioned_arrays};
use self::strides::strided;
use self::unroll::unrolled_in_bounds;
use crate::builder::Builder;

/// Names of loop variables, in order of preference.
const NAMES: [&str; 8] = ["i", "j", "l", "m", "n", "o", "p", "q"];

/// The statements of a program, with those of each op rolled up.
pub(crate) fn rolled(builder: &mut Builder, body: Vec<Stmt>) -> Vec<Stmt> {
    let body = interleaved(builder, body);
    let body = by_register(&builder.program.registers, body);
    let (mut declared, mut left) = (BTreeSet::new(), BTreeSet::new());
    body.iter().for_each(|stmt| declarations(stmt.inner(), &mut declared));
    let body = Rolling::of(builder, &body).outside(body);
    body.iter().for_each(|stmt| declarations(stmt.inner(), &mut left));
    builder.renumber(&declared, &left);
    let body = unrolled_in_bounds(body);
    let body = quotients_named(builder, body);
    strided(builder, body)
}

/// How many statements those of an op are once they are rolled up.
pub(crate) fn rolled_length(builder: &Builder, body: Vec<Stmt>) -> usize {
    let body = by_register(&builder.program.registers, body);
    let mut length = 0;
    for_each_stmt(&Rolling::of(builder, &body).op(body), &mut |_| length += 1);
    length
}

struct Rolling<'a> {
    builder: &'a Builder,
    /// How many statements of the program mention each register array.
    mentions: Mentions,
    /// The arrays that the current op declares.
    declared: BTreeSet<Handle<RegArray>>,
    /// Of these, the arrays that are declared inside a rolled loop, and those that such an array replaced.
    inside: BTreeSet<Handle<RegArray>>,
    /// The variables of the loops around the current list.
    scope: Vec<String>,
}

impl<'a> Rolling<'a> {
    /// Before anything of a program is rolled up.
    fn of(builder: &'a Builder, body: &[Stmt]) -> Rolling<'a> {
        let (declared, inside) = (BTreeSet::new(), BTreeSet::new());
        Rolling { builder, mentions: Mentions::of(body), declared, inside, scope: Vec::new() }
    }

    /// The statements between ops.
    fn outside(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        let stmt = |stmt: Stmt| match stmt {
            Stmt::Op { note, body } => Stmt::Op { note, body: self.op(body) },
            other => other.map_inner(|body| self.outside(body)),
        };
        body.into_iter().map(stmt).collect()
    }

    fn op(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        self.declared.clear();
        self.inside.clear();
        declarations(&body, &mut self.declared);
        let body = self.list(body);
        let body = without(body, &self.inside);
        declared_late(body)
    }

    /// A list of statements, rolled up, then each of them.
    fn list(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        let (mut declared, mut rest): (Vec<Stmt>, Vec<Stmt>) =
            body.into_iter().partition(|stmt| matches!(stmt, Stmt::Declare(_)));
        while let Some(shorter) = self.shorter(&rest) {
            rest = shorter;
        }
        let rest: Vec<Stmt> = rest.into_iter().map(|stmt| self.inner(stmt)).collect();
        // An array that a loop inside declares has no other use.
        let mut inside = BTreeSet::new();
        declarations(&rest, &mut inside);
        declared.retain(|stmt| !matches!(stmt, Stmt::Declare(array) if inside.contains(array)));
        declared.into_iter().chain(rest).collect()
    }

    /// A statement with the list inside it rolled up.
    fn inner(&mut self, stmt: Stmt) -> Stmt {
        let Stmt::For { counter, unroll, body } = stmt else { return stmt.map_inner(|body| self.list(body)) };
        self.scope.push(counter.var.name().to_string());
        let body = self.list(body);
        self.scope.pop();
        Stmt::For { counter, unroll, body }
    }

    /// The list with its repeats in loops; `None` if there are none.
    fn shorter(&mut self, body: &[Stmt]) -> Option<Vec<Stmt>> {
        let registers = &self.builder.program.registers;
        let repeats = Repeats::of(body, &self.declared, &self.mentions, registers);
        let mut out = Vec::new();
        let mut replaced = Vec::new();
        let mut at = 0;
        while at < body.len() {
            match repeats.longest(at) {
                Some(repeat) => {
                    let end = at + repeat.count * repeat.period;
                    let (repeated, inside) = self.loop_of(body, &repeats, &repeat);
                    replaced.push((at..end, out.len(), inside));
                    out.push(repeated);
                    at = end;
                }
                None => {
                    out.push(body[at].clone());
                    at += 1;
                }
            }
        }
        for (old, new, inside) in &replaced {
            self.mentions.replace(&body[old.clone()], &out[*new]);
            self.inside.extend(inside);
        }
        (!replaced.is_empty()).then_some(out)
    }

    /// The loop for a repeat, and the arrays that are declared inside it, or not at all.
    fn loop_of(&self, body: &[Stmt], repeats: &Repeats, repeat: &Repeat) -> (Stmt, BTreeSet<Handle<RegArray>>) {
        let first = &body[repeat.at..repeat.at + repeat.period];
        let var = Var::new(self.name(first), 0, repeat.count as i64 - 1);
        let (own, others) = repeats.private(repeat);
        let inside = own.union(&others).copied().collect();
        let declared = own.into_iter().filter(|array| !is_declared(first, *array)).map(Stmt::Declare);
        let stepped = repeats.stepped(first, repeat, &Expr::var(&var));
        let (counter, body) = (Counter::of(var), declared.chain(stepped).collect());
        (Stmt::For { counter, unroll: Unroll::Full, body }, inside)
    }

    /// A name that nothing in the kernel has, nor a loop inside.
    fn name(&self, body: &[Stmt]) -> String {
        let mut inner = BTreeSet::new();
        for_each_stmt(body, &mut |stmt| {
            inner.extend(stmt.defines().iter().map(|var| var.name().to_string()));
        });
        let is_free = |name: &&&str| {
            !self.builder.is_taken(name) && !inner.contains(**name) && !self.scope.iter().any(|known| known == **name)
        };
        let numbered = || (0..).map(|at| format!("i{at}")).find(|name| is_free(&&name.as_str()));
        NAMES.iter().find(is_free).map(|name| name.to_string()).or_else(numbered).unwrap_or_default()
    }
}

/// The statements with each constant or move of several registers as one statement for each register, except moves of
/// words.
fn by_register(registers: &Arena<RegArray>, body: Vec<Stmt>) -> Vec<Stmt> {
    let is_split = |regs: &Regs| regs.count > 1 && registers[regs.array].vector == 1;
    let at = |regs: &Regs, place: i64| {
        let first = normalize(&(&regs.first + place * regs.step));
        Regs { array: regs.array, first, count: 1, step: 1 }
    };
    let split = |stmt: Stmt| -> Vec<Stmt> {
        match stmt {
            Stmt::Set { to, value } if is_split(&to) => {
                (0..to.count).map(|place| Stmt::Set { to: at(&to, place), value }).collect()
            }
            Stmt::Move { to, from } if is_split(&to) && is_split(&from) && !is_word(registers, [&to, &from]) => {
                (0..to.count).map(|place| Stmt::Move { to: at(&to, place), from: at(&from, place) }).collect()
            }
            other => vec![other.map_inner(|body| by_register(registers, body))],
        }
    };
    body.into_iter().flat_map(split).collect()
}

fn declarations(body: &[Stmt], found: &mut BTreeSet<Handle<RegArray>>) {
    for_each_stmt(body, &mut |stmt| {
        if let Stmt::Declare(array) = stmt {
            found.insert(*array);
        }
    });
}

fn is_declared(body: &[Stmt], array: Handle<RegArray>) -> bool {
    let mut found = BTreeSet::new();
    declarations(body, &mut found);
    found.contains(&array)
}

/// The statements without the declarations of arrays that are declared in a loop; those in unrolled loops stay.
fn without(body: Vec<Stmt>, arrays: &BTreeSet<Handle<RegArray>>) -> Vec<Stmt> {
    let is_kept = |stmt: &Stmt| !matches!(stmt, Stmt::Declare(array) if arrays.contains(array));
    let inner = |stmt: Stmt| match stmt {
        Stmt::For { unroll: Unroll::Full, .. } => stmt,
        _ => stmt.map_inner(|body| without(body, arrays)),
    };
    body.into_iter().filter(is_kept).map(inner).collect()
}

/// The statements with each declaration in front of the first statement that mentions its array.
fn declared_late(body: Vec<Stmt>) -> Vec<Stmt> {
    let (declarations, rest): (Vec<Stmt>, Vec<Stmt>) =
        body.into_iter().partition(|stmt| matches!(stmt, Stmt::Declare(_)));
    let mut first: BTreeMap<Handle<RegArray>, usize> = BTreeMap::new();
    for (at, stmt) in rest.iter().enumerate() {
        for array in mentioned_arrays(std::slice::from_ref(stmt)) {
            first.entry(array).or_insert(at);
        }
    }
    let mut before: BTreeMap<usize, Vec<Stmt>> = BTreeMap::new();
    for declaration in declarations {
        let Stmt::Declare(array) = declaration else { continue };
        before.entry(first.get(&array).copied().unwrap_or(rest.len())).or_default().push(declaration);
    }
    let mut out = Vec::new();
    for (at, stmt) in rest.into_iter().enumerate() {
        out.extend(before.remove(&at).unwrap_or_default());
        out.push(stmt);
    }
    out.extend(before.into_values().flatten());
    out
}
