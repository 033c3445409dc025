//! The operands of instructions that are traced.

use crate::decode::decoder::Decoder;
use crate::decode::symbol::Symbol;
use crate::float::{BF16, F16};
use crate::isa::{DType, Kind, Space};
use crate::program::{NumberKind, Operand, OperandPlace};
use crate::ptx::ast;

impl Decoder<'_> {
    /// The registers, predicates and addresses that an instruction names, in order, each of them once. `of` below is an opcode,
    /// and whether an operand is its first one, the destination.
    pub(super) fn traced_operands(&mut self, instruction: &ast::Instruction) -> Vec<Operand> {
        let opcode = instruction.opcode.as_str();
        let mut found = Vec::new();
        if let Some((name, _)) = &instruction.guard {
            self.trace_word(name, (opcode, false), &mut found);
        }
        for (at, operand) in instruction.operands.iter().enumerate() {
            self.trace_operand(operand, (opcode, at == 0), &mut found);
        }
        let mut once: Vec<Operand> = Vec::new();
        for operand in found {
            if !once.iter().any(|other| other.name == operand.name) {
                once.push(operand);
            }
        }
        once
    }

    fn trace_operand(&mut self, operand: &ast::Operand, of: (&str, bool), found: &mut Vec<Operand>) {
        match operand {
            ast::Operand::Word(name) | ast::Operand::Sum(name, _) => self.trace_word(name, of, found),
            ast::Operand::Number(_) => {}
            ast::Operand::Not(inner) => self.trace_operand(inner, of, found),
            ast::Operand::Pair(first, second) => {
                [first, second].into_iter().for_each(|inner| self.trace_operand(inner, of, found));
            }
            ast::Operand::Vector(items) | ast::Operand::List(items) => {
                items.iter().for_each(|inner| self.trace_operand(inner, of, found));
            }
            ast::Operand::Address { base, offset, extra } => {
                if let Some(name) = base {
                    self.trace_address(name, *offset, of.0, found);
                }
                extra.iter().for_each(|inner| self.trace_operand(inner, of, found));
            }
        }
    }

    fn trace_word(&mut self, name: &str, (opcode, is_destination): (&str, bool), found: &mut Vec<Operand>) {
        let place = match self.lookup(name) {
            Some(Symbol::Register(index, dtype)) => {
                let bits = dtype.width().min(64);
                OperandPlace::Register { index, bits, kind: number_kind(opcode, bits, is_destination) }
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
    let mut named: Vec<Space> = opcode.split('.').filter_map(Space::parse).collect();
    named.dedup();
    match named[..] {
        [] if opcode.starts_with("tcgen05") => None,
        [space] => Some(space),
        // A copy names two spaces; the value of an address tells which of them it is in.
        _ => Some(Space::Generic),
    }
}

/// The types that an opcode names.
fn types(opcode: &str) -> impl Iterator<Item = DType> {
    opcode.split('.').filter_map(DType::parse)
}

/// How registers of this width are to be read: as numbers if that is the only type that the opcode names.
fn number_kind(opcode: &str, bits: u32, is_destination: bool) -> NumberKind {
    // A conversion names the types of the destination and of the source.
    let mut named: Vec<DType> = match opcode.starts_with("cvt.") {
        true if is_destination => types(opcode).take(1).collect(),
        true => types(opcode).last().into_iter().collect(),
        false => types(opcode).collect(),
    };
    named.dedup();
    let [DType { kind, bits: of_type, count: 1 }] = named[..] else { return NumberKind::Bits };
    match (kind, of_type) {
        _ if of_type != bits => NumberKind::Bits,
        (Kind::Float, 16) => NumberKind::Half(F16),
        (Kind::Bfloat, 16) => NumberKind::Half(BF16),
        (Kind::Float, 32) => NumberKind::Single,
        (Kind::Float, 64) => NumberKind::Double,
        (Kind::Signed, _) => NumberKind::Signed,
        _ => NumberKind::Bits,
    }
}
