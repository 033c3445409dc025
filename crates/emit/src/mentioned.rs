//! The memories and registers that statements mention. Others are not declared: NVRTC warns about unused names.

use std::collections::BTreeSet;

use tilewright_ir::Handle;
use tilewright_ir::thread::{Memory, Program, RegArray, Resource, for_each_stmt};

/// The memories and register arrays that statements mention.
pub(crate) struct Mentioned {
    memories: BTreeSet<Handle<Memory>>,
    arrays: BTreeSet<Handle<RegArray>>,
}

impl Mentioned {
    pub(crate) fn of(program: &Program) -> Mentioned {
        let mut mentioned = Mentioned { memories: BTreeSet::new(), arrays: BTreeSet::new() };
        for_each_stmt(&program.body, &mut |stmt| {
            stmt.reads(&mut |resource| mentioned.resource(resource));
            stmt.writes(&mut |resource| mentioned.resource(resource));
        });
        let owners: Vec<Handle<Memory>> = mentioned.memories.iter().map(|memory| program.owner(*memory)).collect();
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

    fn resource(&mut self, resource: Resource<'_>) {
        match resource {
            Resource::Registers(regs) => {
                self.arrays.insert(regs.array);
            }
            Resource::Memory(access) => {
                self.memories.insert(access.memory);
            }
        }
    }
}
