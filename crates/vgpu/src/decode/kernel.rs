//! Decodes a kernel with the functions that it calls: statements, labels, calls.

use std::collections::{BTreeMap, BTreeSet};

use crate::decode::decoder::Decoder;
use crate::decode::symbol::Symbol;
use crate::isa::Space;
use crate::layout::{Layout, ParamInfo};
use crate::op::{Op, Reg};
use crate::program::{InstInfo, Preset, Program};
use crate::ptx::ast::{File, Function, Statement};

/// Decodes the kernel `function`, which has the statements `body`. The instructions on the lines of `traced` are traced.
pub(crate) fn decode(
    file: &File,
    layout: &Layout,
    function: &Function,
    body: &[Statement],
    params: &[ParamInfo],
    traced: &BTreeSet<u32>,
) -> Program {
    let mut decoder = Decoder::new(file, layout, traced);
    decoder.kernel(function, body, params);
    decoder.finish()
}

impl<'a> Decoder<'a> {
    fn kernel(&mut self, function: &'a Function, body: &'a [Statement], params: &[ParamInfo]) {
        self.scopes.push(BTreeMap::new());
        for param in params {
            self.define(&param.name, Symbol::Variable(Space::Param, u64::from(param.offset)));
        }
        self.program.max_registers = function.max_registers;
        self.body(function, body);
        self.scopes.pop();
        self.program.source_file = own_file(&self.program.info);
        while let Some(index) = self.queue.pop() {
            self.called_function(index);
        }
    }

    fn called_function(&mut self, index: usize) {
        let file: &'a File = self.file;
        let function = &file.functions[index];
        // A function without a body is not callable.
        let Some(body) = &function.body else { return };
        let frame = self.frames[&index].clone();
        self.current = Some(index);
        self.scopes.push(BTreeMap::new());
        let variables = function.params.iter().zip(&frame.params).chain(function.returns.iter().zip(&frame.returns));
        for (variable, (offset, _)) in variables {
            self.define(&variable.name, Symbol::Variable(Space::Local, u64::from(*offset)));
        }
        self.place_label(frame.label);
        self.body(function, body);
        self.scopes.pop();
    }

    /// Decodes the statements of a function and appends a return.
    fn body(&mut self, function: &'a Function, statements: &'a [Statement]) {
        for (line, directive) in &function.unsupported_directives {
            self.refuse(*line, directive, "this directive is not supported");
        }
        self.block(statements);
        let line = self.program.info.last().map_or(0, |info| info.line);
        let info = InstInfo {
            line,
            loc: None,
            opcode: "ret".to_string(),
            text: "end of function".to_string(),
            continues: false,
        };
        self.emit(None, Op::Ret, info);
    }

    fn block(&mut self, statements: &'a [Statement]) {
        self.scopes.push(BTreeMap::new());
        // Labels may be used before they are placed.
        for statement in statements {
            match statement {
                Statement::Label(name) => {
                    let label = self.new_label();
                    self.define(name, Symbol::Label(label));
                }
                Statement::Targets { label, targets } => self.define(label, Symbol::Targets(targets.clone())),
                Statement::Registers { .. } | Statement::Variable(_) => {}
                Statement::Block(_) | Statement::Instruction(_) => {}
            }
        }
        for statement in statements {
            self.statement(statement);
        }
        self.scopes.pop();
    }

    fn statement(&mut self, statement: &'a Statement) {
        match statement {
            Statement::Registers { dtype, names } => {
                for name in names {
                    self.define_register(name, *dtype);
                }
            }
            Statement::Variable(variable) => self.define_variable(variable),
            Statement::Label(name) => {
                if let Some(Symbol::Label(label)) = self.lookup(name) {
                    self.place_label(label);
                }
            }
            Statement::Targets { .. } => {}
            Statement::Block(inner) => self.block(inner),
            Statement::Instruction(instruction) => self.instruction(instruction),
        }
    }

    pub(super) fn new_label(&mut self) -> u32 {
        self.labels.push(None);
        (self.labels.len() - 1) as u32
    }

    fn place_label(&mut self, label: u32) {
        let pc = self.program.code.len() as u32;
        self.labels[label as usize] = Some(pc);
    }

    /// Resolves branch targets and rejects recursion.
    fn finish(mut self) -> Program {
        let labels = std::mem::take(&mut self.labels);
        let mut undefined = Vec::new();
        for (inst, info) in self.program.code.iter_mut().zip(&self.program.info) {
            let resolve = |label: &mut u32| match labels.get(*label as usize).copied().flatten() {
                Some(pc) => *label = pc,
                None => undefined.push((info.line, info.text.clone())),
            };
            inst.op.targets_mut().iter_mut().for_each(resolve);
        }
        for (line, text) in undefined {
            self.refuse(line, &text, "the target is not a label in this scope");
        }
        self.refuse_recursion();
        let presets: Vec<(Reg, Preset)> = self.presets.iter().map(|(preset, reg)| (*reg, *preset)).collect();
        self.program.presets = presets;
        self.program
    }

    fn refuse_recursion(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        for (caller, callee, line) in &calls {
            if caller.is_some_and(|caller| reaches(&calls, *callee, caller)) {
                let name = self.file.functions.get(*callee).map_or("", |function| function.name.as_str());
                self.refuse(*line, name, "recursion is not supported");
            }
        }
    }
}

/// The source file of a function with these instructions, the inlined ones aside.
fn own_file(info: &[InstInfo]) -> Option<u32> {
    info.iter().filter_map(|info| info.loc).find(|loc| loc.inlined_at.is_none()).map(|loc| loc.file)
}

/// Whether `from` is `to`, or calls it directly or indirectly.
fn reaches(calls: &[(Option<usize>, usize, u32)], from: usize, to: usize) -> bool {
    let mut seen = vec![from];
    let mut at = 0;
    while let Some(function) = seen.get(at).copied() {
        if function == to {
            return true;
        }
        for (caller, callee, _) in calls {
            if *caller == Some(function) && !seen.contains(callee) {
                seen.push(*callee);
            }
        }
        at += 1;
    }
    false
}
