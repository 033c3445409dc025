//! The operands of instructions that are traced.

use crate::decode::decoder::Decoder;
use crate::decode::symbol::Symbol;
use crate::float::{BF16, F16};
use crate::isa::Space;
use crate::program::{NumberKind, Operand, OperandPlace};
use crate::ptx::ast;

impl Decoder<'_> {
    /// The registers, predicates and addresses that an instruction names, in order, each of them once.
    pub(super) fn traced_operands(&mut self, instruction: &ast::Instruction) -> Vec<Operand> {
        let opcode = instruction.opcode.as_str();
        let mut found = Vec::new();
        if let Some((name, _)) = &instruction.guard {
            self.trace_word(name, opcode, &mut found);
        }
        for (at, operand) in instruction.operands.iter().enumerate() {
            // A conversion names the types of the destination and of the source.
            let types = if opcode.starts_with("cvt.") { of_conversion(opcode, at == 0) } else { opcode.to_string() };
            self.trace_operand(operand, &types, &mut found);
        }
        let mut once: Vec<Operand> = Vec::new();
        for operand in found {
            if !once.iter().any(|other| other.name == operand.name) {
                once.push(operand);
            }
        }
        once
    }

    fn trace_operand(&mut self, operand: &ast::Operand, opcode: &str, found: &mut Vec<Operand>) {
        match operand {
            ast::Operand::Word(name) | ast::Operand::Sum(name, _) => self.trace_word(name, opcode, found),
            ast::Operand::Number(_) => {}
            ast::Operand::Not(inner) => self.trace_operand(inner, opcode, found),
            ast::Operand::Pair(first, second) => {
                [first, second].into_iter().for_each(|inner| self.trace_operand(inner, opcode, found));
            }
            ast::Operand::Vector(items) | ast::Operand::List(items) => {
                items.iter().for_each(|inner| self.trace_operand(inner, opcode, found));
            }
            ast::Operand::Address { base, offset, extra } => {
                if let Some(name) = base {
                    self.trace_address(name, *offset, opcode, found);
                }
                extra.iter().for_each(|inner| self.trace_operand(inner, opcode, found));
            }
        }
    }

    fn trace_word(&mut self, name: &str, opcode: &str, found: &mut Vec<Operand>) {
        let place = match self.lookup(name) {
            Some(Symbol::Register(index, dtype)) => {
                let bits = dtype.width().min(64);
                OperandPlace::Register { index, bits, kind: number_kind(opcode, bits) }
            }
            Some(Symbol::Predicate(index)) => OperandPlace::Predicate(index),
            _ => return,
        };
        found.push(Operand { name: name.to_string(), place });
    }

    fn trace_address(&mut self, name: &str, offset: i64, opcode: &str, found: &mut Vec<Operand>) {
        let written = match offset {
            0 => format!("[{name}]"),
            _ => format!("[{name}{offset:+}]"),
        };
        let place = match (self.lookup(name), space_of(opcode)) {
            (Some(Symbol::Register(index, _)), Some(space)) => {
                OperandPlace::Address { space, may_be_shared: opcode.contains("shared"), base: index, offset }
            }
            (Some(Symbol::Register(index, dtype)), None) => {
                OperandPlace::Register { index, bits: dtype.width().min(64), kind: NumberKind::Bits }
            }
            (Some(Symbol::Variable(space, address)), _) => {
                OperandPlace::Variable { space, address: address.wrapping_add(offset as u64) }
            }
            _ => return,
        };
        found.push(Operand { name: written, place });
    }
}

/// The space of the addresses of an instruction: generic if it names none, `None` for those of tensor memory.
fn space_of(opcode: &str) -> Option<Space> {
    let has = |space: &str| opcode.split('.').any(|part| part.split("::").next() == Some(space));
    if opcode.starts_with("tcgen05") && !has("shared") {
        return None;
    }
    let named =
        [("shared", Space::Shared), ("global", Space::Global), ("local", Space::Local), ("const", Space::Const)];
    // A copy names two spaces; buffers are told apart by their generic addresses.
    let mut found = named.into_iter().filter(|(name, _)| has(name));
    match (found.next(), found.next()) {
        (Some((_, space)), None) => Some(space),
        _ => Some(Space::Generic),
    }
}

const TYPES: [&str; 14] =
    ["f16", "bf16", "f32", "f64", "s16", "s32", "s64", "u16", "u32", "u64", "b16", "b32", "b64", "b128"];

/// The opcode of a conversion with the type of one side only.
fn of_conversion(opcode: &str, is_destination: bool) -> String {
    let mut types = opcode.split('.').filter(|part| TYPES.contains(part));
    let (to, from) = (types.next(), types.next());
    format!("cvt.{}", if is_destination { to } else { from.or(to) }.unwrap_or_default())
}

/// How registers of this width are to be read: as numbers if that is the only type that the opcode names.
fn number_kind(opcode: &str, bits: u32) -> NumberKind {
    let mut named: Vec<&str> = opcode.split('.').filter(|part| TYPES.contains(part)).collect();
    named.dedup();
    match (&named[..], bits) {
        (["f16"], 16) => NumberKind::Half(F16),
        (["bf16"], 16) => NumberKind::Half(BF16),
        (["f32"], 32) => NumberKind::Single,
        (["f64"], 64) => NumberKind::Double,
        (["s16"], 16) | (["s32"], 32) | (["s64"], 64) => NumberKind::Signed,
        _ => NumberKind::Bits,
    }
}
