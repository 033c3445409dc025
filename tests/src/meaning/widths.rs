//! Compares the vector widths on which inference counts with those of the generated program.

use std::collections::BTreeMap;

use tilewright::infer::{Inferred, Origin};
use tilewright::ir::thread::{Program, Stmt, has_turns};
use tilewright::ir::tile::{self, Access, Kernel};

/// The least and the greatest vector width, in elements, by the name of the memory and whether it is written.
type Widths<'a> = BTreeMap<(&'a str, bool), (usize, usize)>;

/// The first difference, for a kernel with a single parallel loop that is not inside another loop.
pub fn difference(kernel: &Kernel, inferred: &Inferred, program: &Program) -> Option<String> {
    let is_sole = kernel.parallels.iter().count() == 1 && !kernel.body.iter().any(is_loop);
    let told = told(kernel, inferred);
    let done = done(program);
    let has_turns = has_turns(&program.body);
    let differs = |(key, width): (&(&str, bool), &(usize, usize))| {
        let told = told.get(key)?;
        let (name, writes) = key;
        // An access out of bounds is reported, but not executed.
        // A loop over turns has the same vectors in all of them.
        let is_right = has_turns && width.1 <= told.1
            || told.0 <= width.0 && (told.1 == width.1 || told.1 > width.1 && may_leave(kernel, name));
        (!is_right).then(|| format!("`{name}` (written: {writes}): {told:?} counted on, but {width:?} in the program"))
    };
    is_sole.then(|| done.iter().find_map(differs)).flatten()
}

/// Whether an access to a buffer may be out of bounds.
fn may_leave(kernel: &Kernel, name: &str) -> bool {
    let mut found = false;
    let mut note = |access: &Access, _: bool| {
        let buffer = &kernel.buffers[access.buffer];
        let index = access.known_index().unwrap_or_default();
        found |=
            buffer.name == name && index.iter().zip(&buffer.shape).any(|(at, extent)| !at.range().within(0, *extent));
    };
    kernel.parallels.iter().flat_map(|(_, parallel)| &parallel.body).for_each(|e| e.for_each_access(&mut note));
    found
}

fn is_loop(stmt: &tile::Stmt) -> bool {
    match stmt {
        tile::Stmt::Op(_) | tile::Stmt::Parallel(_) | tile::Stmt::EachThread(_) => false,
        tile::Stmt::Begin(_) | tile::Stmt::End(_) => false,
        tile::Stmt::Loop(_) => true,
        tile::Stmt::If(branch) => branch.then.iter().chain(&branch.otherwise).any(is_loop),
    }
}

fn note<'a>(widths: &mut Widths<'a>, key: (&'a str, bool), (least, most): (usize, usize)) {
    let known = widths.entry(key).or_insert((least, most));
    *known = (known.0.min(least), known.1.max(most));
}

fn told<'a>(kernel: &'a Kernel, inferred: &Inferred) -> Widths<'a> {
    let mut widths = Widths::new();
    for access in inferred.accesses.iter().filter(|access| matches!(access.origin, Origin::Parallel(_))) {
        note(&mut widths, (&kernel.buffers[access.buffer].name, access.writes), access.widths);
    }
    widths
}

fn done(program: &Program) -> Widths<'_> {
    let mut widths = Widths::new();
    ops(program, &program.body, &mut widths);
    widths
}

/// Collects the accesses of ops that are parallel loops.
fn ops<'a>(program: &'a Program, body: &'a [Stmt], widths: &mut Widths<'a>) {
    for stmt in body {
        match stmt {
            Stmt::Op { note, body } if program.notes[*note].title.starts_with("parallel ") => {
                accesses(program, body, widths);
            }
            _ => ops(program, stmt.inner(), widths),
        }
    }
}

fn accesses<'a>(program: &'a Program, body: &'a [Stmt], widths: &mut Widths<'a>) {
    for stmt in body {
        let (memory, registers, writes) = match stmt {
            Stmt::Load { to, memory, .. } => (*memory, to, false),
            Stmt::Store { from, memory, .. } => (*memory, from, true),
            _ => {
                accesses(program, stmt.inner(), widths);
                continue;
            }
        };
        let width = registers.count as usize;
        note(widths, (&program.memories[memory].name, writes), (width, width));
    }
}
