//! Allocates variables in shared and local memory.

use crate::decode::decoder::Decoder;
use crate::decode::symbol::Symbol;
use crate::isa::{Space, align_up};
use crate::memory::map;
use crate::program::SharedVariable;
use crate::ptx::ast::Variable;

impl Decoder<'_> {
    pub(super) fn define_variable(&mut self, variable: &Variable) {
        match variable.space {
            Space::Shared => {
                let symbol = self.place_shared(variable);
                self.define(&variable.name, symbol);
            }
            Space::Local | Space::Param => {
                let offset = self.place_local(variable.bytes, variable.align);
                self.define(&variable.name, Symbol::Variable(Space::Local, u64::from(offset)));
            }
            // Globals and constants declared inside a function are not laid out, so that uses of them are unsupported.
            Space::Generic | Space::Global | Space::Const => {}
        }
    }

    pub(super) fn place_shared(&mut self, variable: &Variable) -> Symbol {
        if variable.is_extern || variable.bytes == 0 {
            self.program.dynamic_shared_align = self.program.dynamic_shared_align.max(variable.align);
            self.program.dynamic_shared_name.get_or_insert_with(|| variable.name.clone());
            return Symbol::DynamicShared;
        }
        let offset = place_after(self.program.static_shared_bytes, variable.align);
        self.program.static_shared_bytes = offset.saturating_add(variable.bytes);
        let name = variable.name.clone();
        self.program.shared.push(SharedVariable { name, offset, bytes: variable.bytes });
        Symbol::Variable(Space::Shared, map::SHARED_START + u64::from(offset))
    }

    /// Allocates space in the local memory of each thread.
    pub(super) fn place_local(&mut self, bytes: u32, align: u32) -> u32 {
        let offset = place_after(self.program.local_bytes, align);
        self.program.local_bytes = offset.saturating_add(bytes);
        offset
    }
}

/// The first aligned offset at or after `end`, saturated to `u32::MAX`, which a launch rejects.
fn place_after(end: u32, align: u32) -> u32 {
    u32::try_from(align_up(u64::from(end), u64::from(align))).unwrap_or(u32::MAX)
}
