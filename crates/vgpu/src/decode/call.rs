//! Calls of device functions: parameters are copied within the thread's local memory.

use crate::decode::decoder::{Decoded, Decoder, Frame};
use crate::decode::mods::Mods;
use crate::decode::symbol::Symbol;
use crate::isa::Space;
use crate::op::{LocalCopy, Op};
use crate::ptx::ast::{Operand, Variable};

impl Decoder<'_> {
    pub(crate) fn call(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Vec<Op>> {
        mods.take("uni");
        let (returns, name, args) = call_parts(operands)?;
        let index = self.called_index(name)?;
        let frame = self.frame(index)?;
        self.calls.push((self.current, index, self.line));
        let into = self.copies(args, &frame.params, true)?;
        let back = self.copies(returns, &frame.returns, false)?;
        let mut ops = vec![Op::Call { target: frame.label, copies: into.into_boxed_slice() }];
        if !back.is_empty() {
            ops.push(Op::CopyBack(back.into_boxed_slice()));
        }
        Ok(ops)
    }

    fn called_index(&self, name: &str) -> Decoded<usize> {
        let functions = &self.file.functions;
        let with_body = functions.iter().position(|function| function.name == name && function.body.is_some());
        if let Some(index) = with_body {
            return Ok(index);
        }
        if functions.iter().any(|function| function.name == name) {
            return Err(format!("`{name}` has no body in this file"));
        }
        Err("indirect calls are not supported".to_string())
    }

    /// The storage of a called function, allocated at its first call.
    fn frame(&mut self, index: usize) -> Decoded<Frame> {
        if let Some(frame) = self.frames.get(&index) {
            return Ok(frame.clone());
        }
        let file = self.file;
        let function = &file.functions[index];
        let in_registers = function.params.iter().chain(&function.returns).any(|variable| variable.is_register);
        if in_registers {
            return Err("parameters in registers are not supported".to_string());
        }
        let label = self.new_label();
        let params = function.params.iter().map(|variable| self.place_parameter(variable)).collect();
        let returns = function.returns.iter().map(|variable| self.place_parameter(variable)).collect();
        let frame = Frame { label, params, returns };
        self.frames.insert(index, frame.clone());
        self.queue.push(index);
        Ok(frame)
    }

    fn place_parameter(&mut self, variable: &Variable) -> (u32, u32) {
        (self.place_local(variable.bytes, variable.align), variable.bytes)
    }

    /// Copies between the caller's `.param` variables and the function's.
    fn copies(&mut self, operands: &[Operand], places: &[(u32, u32)], into: bool) -> Decoded<Vec<LocalCopy>> {
        if operands.len() != places.len() {
            return Err(format!("wrong number of arguments: {} instead of {}", operands.len(), places.len()));
        }
        let mut copies = Vec::new();
        for (operand, (place, bytes)) in operands.iter().zip(places) {
            let own = self.call_variable(operand)?;
            let (from, to) = if into { (own, *place) } else { (*place, own) };
            copies.push(LocalCopy { from, to, bytes: *bytes });
        }
        Ok(copies)
    }

    fn call_variable(&mut self, operand: &Operand) -> Decoded<u32> {
        if let Operand::Word(name) = operand
            && let Some(Symbol::Variable(Space::Local, address)) = self.lookup(name)
        {
            return Ok(address as u32);
        }
        Err("an argument is not a `.param` variable".to_string())
    }
}

/// Splits the operands of `call` into return values, function name and arguments.
fn call_parts(operands: &[Operand]) -> Decoded<(&[Operand], &str, &[Operand])> {
    let none: &[Operand] = &[];
    let (returns, rest): (&[Operand], &[Operand]) = match operands {
        [Operand::List(returns), rest @ ..] => (returns.as_slice(), rest),
        rest => (none, rest),
    };
    match rest {
        [Operand::Word(name)] => Ok((returns, name.as_str(), none)),
        [Operand::Word(name), Operand::List(args)] => Ok((returns, name.as_str(), args.as_slice())),
        _ => Err("indirect calls are not supported".to_string()),
    }
}
