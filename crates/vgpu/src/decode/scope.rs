//! Scopes of names.

use crate::decode::decoder::Decoder;
use crate::decode::symbol::Symbol;
use crate::isa::{DType, Kind, Space};
use crate::op::Reg;
use crate::program::Preset;

impl Decoder<'_> {
    pub(crate) fn define(&mut self, name: &str, symbol: Symbol) {
        let innermost = self.scopes.len() - 1;
        self.scopes[innermost].insert(name.to_string(), symbol);
    }

    pub(crate) fn define_register(&mut self, name: &str, dtype: DType) {
        let symbol = if dtype.kind == Kind::Pred {
            Symbol::Predicate(self.new_predicate())
        } else {
            let reg = self.new_register();
            if dtype.bits > 64 {
                // A 128-bit register occupies two register indices.
                self.new_register();
            }
            Symbol::Register(reg, dtype)
        };
        self.define(name, symbol);
    }

    pub(crate) fn new_register(&mut self) -> Reg {
        self.program.registers += 1;
        self.program.registers - 1
    }

    pub(crate) fn new_predicate(&mut self) -> u32 {
        self.program.predicates += 1;
        self.program.predicates - 1
    }

    /// The meaning of `name` in the innermost scope that has it.
    pub(crate) fn lookup(&mut self, name: &str) -> Option<Symbol> {
        let open = self.scopes.iter().rev().chain([&self.module_scope]);
        let found = open.into_iter().find_map(|scope| scope.get(name)).cloned();
        if found.is_some() {
            return found;
        }
        if let Some((space, address)) = self.layout.addresses.get(name) {
            return Some(Symbol::Variable(*space, *address));
        }
        self.module_shared(name)
    }

    /// Allocates a shared variable of the module in the kernel that uses it.
    fn module_shared(&mut self, name: &str) -> Option<Symbol> {
        let file = self.file;
        let variable =
            file.variables.iter().find(|variable| variable.name == name && variable.space == Space::Shared)?;
        let symbol = self.place_shared(variable);
        self.module_scope.insert(name.to_string(), symbol.clone());
        Some(symbol)
    }

    /// The register that always holds `preset`.
    pub(crate) fn preset(&mut self, preset: Preset) -> Reg {
        if let Some(reg) = self.presets.get(&preset) {
            return *reg;
        }
        let reg = self.new_register();
        self.presets.insert(preset, reg);
        reg
    }

    /// The register that always holds `value`.
    pub(crate) fn constant(&mut self, value: u64) -> Reg {
        self.preset(Preset::Value(value))
    }
}
