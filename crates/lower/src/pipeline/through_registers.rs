//! Statements that load from tensors and store to shared memory, split in two: the loads run ahead, and hold what they load in
//! registers until the stage is free.
//!
//! This is for what an asynchronous copy cannot do: elements of which a thread moves 1 or 2 bytes at once, and elements that
//! are converted, or computed otherwise, on the way.

use std::collections::BTreeSet;

use tilewright_ir::Handle;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{MemorySpace, Program, RegArray, Resource, Stmt, for_each_stmt};

/// The most bytes that a thread holds for an iteration.
pub(super) const MOST_BYTES: i64 = 128;

/// The parts of a statement.
#[derive(Clone, Debug)]
pub(super) struct Halves {
    /// The declarations of the registers that are loaded.
    pub(super) declarations: Vec<Stmt>,
    /// The loads.
    pub(super) loads: Vec<Stmt>,
    /// Everything else.
    pub(super) stores: Vec<Stmt>,
    /// Bytes that a thread holds between the two.
    pub(super) bytes: i64,
}

/// The halves of some statements, which hold at most `free` bytes, or why these do not run ahead.
pub(super) fn halves(program: &Program, body: &[Stmt], free: i64) -> Result<Halves, Reason> {
    let mut check = Check { program, loaded: BTreeSet::new(), used: BTreeSet::new() };
    check.body(body)?;
    let bytes_of = |array: &Handle<RegArray>| {
        let array = &program.registers[*array];
        array.len * array.dtype.bytes()
    };
    let bytes: i64 = check.loaded.iter().map(bytes_of).sum();
    if bytes > free {
        let text = format!("a thread would hold {bytes} B for an iteration");
        return Err(Reason::new(text, format!("at most {free} B, so smaller tiles or more threads")));
    }
    let is_of_loaded = |stmt: &Stmt| matches!(stmt, Stmt::Declare(array) if check.loaded.contains(array));
    let mut declarations = Vec::new();
    for_each_stmt(body, &mut |stmt| declarations.extend(is_of_loaded(stmt).then(|| stmt.clone())));
    let loads = part(body, &|stmt| check.is_load(stmt));
    let stores = part(body, &|stmt| !check.is_load(stmt) && !is_of_loaded(stmt));
    Ok(Halves { declarations, loads, stores, bytes })
}

/// The statements for which `is_kept` holds, with the names and branches around them.
fn part(body: &[Stmt], is_kept: &dyn Fn(&Stmt) -> bool) -> Vec<Stmt> {
    let keep = |stmt: &Stmt| match stmt {
        Stmt::Let { .. } => Some(stmt.clone()),
        Stmt::If { .. } | Stmt::Unless { .. } => {
            let stmt = stmt.clone().map_inner(|inner| part(&inner, is_kept));
            let is_name = |stmt: &Stmt| matches!(stmt, Stmt::Let { .. });
            (!stmt.inner().iter().all(is_name)).then_some(stmt)
        }
        other => is_kept(other).then(|| other.clone()),
    };
    body.iter().filter_map(keep).collect()
}

/// Finds what is loaded, and that nothing is loaded again to registers that were used.
struct Check<'a> {
    program: &'a Program,
    /// The arrays that are loaded.
    loaded: BTreeSet<Handle<RegArray>>,
    /// The arrays that other statements read or write.
    used: BTreeSet<Handle<RegArray>>,
}

impl Check<'_> {
    /// Whether a statement belongs to the loads.
    fn is_load(&self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Load { .. } => true,
            Stmt::Set { to, .. } => self.loaded.contains(&to.array),
            _ => false,
        }
    }

    fn body(&mut self, body: &[Stmt]) -> Result<(), Reason> {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), Reason> {
        match stmt {
            Stmt::Load { to, memory, .. } => {
                let is_apart =
                    matches!(self.program.memories[*memory].space, MemorySpace::Global { may_alias: false, .. });
                if !is_apart || self.used.contains(&to.array) {
                    return Err(Reason::new(
                        "elements are loaded after others were stored",
                        "tiles that are loaded at once",
                    ));
                }
                self.loaded.insert(to.array);
                Ok(())
            }
            Stmt::Set { to, .. } if self.used.contains(&to.array) && self.loaded.contains(&to.array) => {
                Err(Reason::new("elements are loaded after others were stored", "tiles that are loaded at once"))
            }
            Stmt::Set { .. } | Stmt::Let { .. } | Stmt::Declare(_) => Ok(()),
            Stmt::If { body, .. } | Stmt::Unless { body, .. } => self.body(body),
            Stmt::For { .. } => Err(Reason::new("elements are moved in a loop", "smaller tiles or more threads")),
            Stmt::Lookup { .. } | Stmt::LetValue { .. } | Stmt::IfValue { .. } => Err(Reason::new(
                "an address or a condition depends on data or on a table",
                "tiles at indices that are expressions",
            )),
            Stmt::Op { .. }
            | Stmt::Mma(_)
            | Stmt::WarpgroupMma(_)
            | Stmt::TensorMma(_)
            | Stmt::TensorMove(_)
            | Stmt::Inst(_)
            | Stmt::Role { .. }
            | Stmt::Elect { .. }
            | Stmt::TensorCopy(_)
            | Stmt::Advance { .. } => {
                Err(Reason::new("threads exchange elements on the way", "elements that a thread moves by itself"))
            }
            Stmt::Store { .. } | Stmt::Move { .. } | Stmt::Assign { .. } | Stmt::AssignPair { .. } => {
                let used = &mut self.used;
                let mut add = |resource: Resource<'_>| {
                    if let Resource::Registers(regs) = resource {
                        used.insert(regs.array);
                    }
                };
                stmt.reads(&mut add);
                stmt.writes(&mut add);
                Ok(())
            }
        }
    }
}
