//! Decodes one instruction.

use std::sync::Arc;

use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::nearest::unknown_opcode;
use crate::decode::symbol::Symbol;
use crate::decode::table::{self, Row, Unit};
use crate::fault::Unsupported;
use crate::op::{Guard, Op};
use crate::program::{Inst, InstInfo, Operand};
use crate::ptx::ast::Instruction;

impl Decoder<'_> {
    pub(super) fn emit(&mut self, guard: Option<Guard>, op: Op, info: InstInfo) {
        self.program.code.push(Inst::new(guard, op));
        self.program.info.push(info);
    }

    pub(super) fn refuse(&mut self, line: u32, text: &str, reason: &str) {
        let text = format!("`{text}`: {reason}");
        self.program.unsupported.push(Unsupported { line, text });
    }

    pub(super) fn instruction(&mut self, instruction: &Instruction) {
        let info = InstInfo {
            line: instruction.line,
            loc: instruction.loc,
            opcode: instruction.opcode.clone(),
            text: instruction.text.clone(),
            continues: false,
        };
        let guard = match &instruction.guard {
            None => None,
            Some((name, negate)) => match self.lookup(name) {
                Some(Symbol::Predicate(index)) => Some(Guard { index, negate: *negate }),
                Some(_) => return self.refuse(info.line, &info.text, &format!("`{name}` is not a predicate")),
                None => {
                    let reason = self.unknown(name);
                    return self.refuse(info.line, &info.text, &reason);
                }
            },
        };
        let result = self.decode_ops(instruction);
        match result {
            Ok(ops) => {
                let first = self.program.code.len() as u32;
                for (at, op) in ops.into_iter().enumerate() {
                    self.emit(guard, op, InstInfo { continues: at > 0, ..info.clone() });
                }
                if self.traced.contains(&info.line) {
                    let operands: Arc<[Operand]> = self.traced_operands(instruction).into();
                    let all = first..self.program.code.len() as u32;
                    self.program.traced.extend(all.map(|pc| (pc, Arc::clone(&operands))));
                }
            }
            Err(reason) => {
                self.refuse(info.line, &info.text, &reason);
                self.emit(guard, Op::Nop, info);
            }
        }
    }

    fn decode_ops(&mut self, instruction: &Instruction) -> Decoded<Vec<Op>> {
        let opcode = &instruction.opcode;
        let Some((row, mut mods)) = table::find(opcode) else {
            let names = table::rows().map(|row| row.name).filter(|_| self.explains());
            return Err(unknown_opcode(opcode, names));
        };
        self.line = instruction.line;
        let ops = (row.decode)(self, &mut mods, &instruction.operands);
        let ops = ops.and_then(|ops| mods.finish().map(|()| ops));
        match ops {
            Ok(ops) => self.must_be_a_form(row, opcode).map(|()| ops),
            Err(reason) => match self.explains().then(|| row.slip(opcode)).flatten() {
                Some((given, meant)) => Err(format!("{reason}; did you mean `.{meant}` in place of `.{given}`?")),
                None => Err(reason),
            },
        }
    }

    /// Refuses what the decoding functions of scalar instructions take, and assemblers do not: the table has all the forms of
    /// these.
    fn must_be_a_form(&mut self, row: &Row, opcode: &str) -> Decoded<()> {
        if !matches!(row.unit, Unit::Arithmetic | Unit::Register) || self.known_forms.contains(opcode) {
            return Ok(());
        }
        if !row.has_form(opcode) {
            let nearest = if self.explains() { row.nearest_form(opcode) } else { None };
            let nearest = nearest.map_or(String::new(), |form| format!("; the nearest one is `{form}`"));
            return Err(format!("there is no such form of `{}`{nearest}", row.name));
        }
        self.known_forms.insert(opcode.to_string());
        Ok(())
    }
}
