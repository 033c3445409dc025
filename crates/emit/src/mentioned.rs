//! What statements mention. The rest is not declared: NVRTC warns of what nothing refers to.

use std::collections::BTreeSet;

use tilewright_ir::Handle;
use tilewright_ir::thread::{Memory, MemorySpace, Program, RegArray, Stmt, Value};

/// The memories and register arrays that statements mention.
pub(crate) struct Mentioned {
    memories: BTreeSet<Handle<Memory>>,
    arrays: BTreeSet<Handle<RegArray>>,
}

impl Mentioned {
    pub(crate) fn of(program: &Program) -> Mentioned {
        let mut mentioned = Mentioned { memories: BTreeSet::new(), arrays: BTreeSet::new() };
        mentioned.body(&program.body);
        let owner = |handle: &Handle<Memory>| match program.memories[*handle].space {
            MemorySpace::SharedView { of } => Some(of),
            MemorySpace::Global { .. } | MemorySpace::Shared | MemorySpace::Table => None,
        };
        let owners: Vec<Handle<Memory>> = mentioned.memories.iter().filter_map(owner).collect();
        mentioned.memories.extend(owners);
        mentioned
    }

    /// Whether statements touch a memory, or a view of it.
    pub(crate) fn has_memory(&self, memory: Handle<Memory>) -> bool {
        self.memories.contains(&memory)
    }

    /// Whether statements use a register array.
    pub(crate) fn has_array(&self, array: Handle<RegArray>) -> bool {
        self.arrays.contains(&array)
    }

    fn body(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.stmt(stmt);
            self.body(stmt.inner());
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Load { to: regs, memory, .. }
            | Stmt::Store { from: regs, memory, .. }
            | Stmt::AtomicAdd { from: regs, memory, .. } => {
                self.arrays.insert(regs.array);
                self.memories.insert(*memory);
            }
            Stmt::Lookup { table, .. } => {
                self.memories.insert(*table);
            }
            Stmt::Set { to, .. } => {
                self.arrays.insert(to.array);
            }
            Stmt::Move { to, from } => self.arrays.extend([to.array, from.array]),
            Stmt::Compute { to, from, .. } => {
                self.arrays.insert(to.array);
                self.arrays.extend(from.iter().map(|regs| regs.array));
            }
            Stmt::Mma { sums, a, b, .. } => self.arrays.extend([sums.array, a.array, b.array]),
            Stmt::Assign { to, value } => {
                self.arrays.insert(to.array);
                self.value(value);
            }
            Stmt::Name { value, .. } | Stmt::When { cond: value, .. } => self.value(value),
            Stmt::Op { .. } | Stmt::Let { .. } | Stmt::Declare(_) | Stmt::For { .. } => {}
            Stmt::If { .. } | Stmt::Inst(_) => {}
        }
    }

    fn value(&mut self, value: &Value) {
        value.for_each(&mut |part| {
            if let Value::Reg(array, _) = part {
                self.arrays.insert(*array);
            }
        });
    }
}
