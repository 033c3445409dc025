//! Turns a kernel and the functions it calls into a [`Program`].
//!
//! Names, labels and modifiers are resolved once. An unsupported form is recorded with its line, and decoding
//! continues, so that a launch can report all of them. The registers and local variables of a function exist once per
//! kernel: since recursion is not supported, no thread has two active calls of the same function.

mod arith;
mod call;
mod control;
mod convert;
mod float;
mod matrix;
mod memory;
mod mods;
mod operand;
mod scalar;
mod scope;

use std::collections::BTreeMap;

use crate::fault::Unsupported;
use crate::isa::{Space, align_up};
use crate::memory::map;
use crate::module::{Layout, ParamInfo};
use crate::op::{Guard, Op, Reg};
use crate::program::{Info, Inst, Preset, Program, SharedVariable};
use crate::ptx::ast::{File, Function, Instruction, Statement, Variable};
use mods::Mods;
use scope::Symbol;

/// Decodes the kernel `function`, which has the statements `body`.
pub(crate) fn decode(
    file: &File,
    layout: &Layout,
    function: &Function,
    body: &[Statement],
    params: &[ParamInfo],
) -> Program {
    let mut decoder = Decoder::new(file, layout);
    decoder.kernel(function, body, params);
    decoder.finish()
}

/// A result, or the reason why an instruction is not supported.
type Decoded<T> = Result<T, String>;

/// The entry label of a called function and the storage of its parameters.
#[derive(Clone)]
struct Frame {
    /// Label of the function's first instruction.
    label: u32,
    /// Offset in local memory and size of each parameter, in bytes.
    params: Vec<(u32, u32)>,
    /// Offset in local memory and size of each return value, in bytes.
    returns: Vec<(u32, u32)>,
}

struct Decoder<'a> {
    file: &'a File,
    /// Addresses of the module's global and constant variables.
    layout: &'a Layout,
    program: Program,
    /// The module's shared variables that are in use.
    module_scope: BTreeMap<String, Symbol>,
    /// Symbols of the open scopes, the innermost last.
    scopes: Vec<BTreeMap<String, Symbol>>,
    /// Program counter of each label, once it is placed.
    labels: Vec<Option<u32>>,
    /// Register of each preset value in use.
    presets: BTreeMap<Preset, Reg>,
    /// Storage of the called functions, by index in `file.functions`.
    frames: BTreeMap<usize, Frame>,
    /// Called functions that are not decoded yet, by index.
    queue: Vec<usize>,
    /// Caller (`None` for the kernel), callee and PTX line of each call.
    calls: Vec<(Option<usize>, usize, u32)>,
    /// Index of the function being decoded; `None` for the kernel.
    current: Option<usize>,
}

impl<'a> Decoder<'a> {
    fn new(file: &'a File, layout: &'a Layout) -> Decoder<'a> {
        let program = Program { files: file.files.clone(), ..Program::default() };
        Decoder {
            file,
            layout,
            program,
            module_scope: BTreeMap::new(),
            scopes: Vec::new(),
            labels: Vec::new(),
            presets: BTreeMap::new(),
            frames: BTreeMap::new(),
            queue: Vec::new(),
            calls: Vec::new(),
            current: None,
        }
    }

    fn kernel(&mut self, function: &'a Function, body: &'a [Statement], params: &[ParamInfo]) {
        if let Some((line, _)) = function.required_cluster.filter(|(_, ctas)| *ctas != [1; 3]) {
            self.refuse(line, ".reqnctapercluster", "clusters of several CTAs are not supported");
        }
        self.scopes.push(BTreeMap::new());
        for param in params {
            self.define(&param.name, Symbol::Variable(Space::Param, u64::from(param.offset)));
        }
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
        let info = Info { line, loc: None, opcode: "ret".to_string(), text: "end of function".to_string() };
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

    fn new_label(&mut self) -> u32 {
        self.labels.push(None);
        (self.labels.len() - 1) as u32
    }

    fn place_label(&mut self, label: u32) {
        let pc = self.program.code.len() as u32;
        self.labels[label as usize] = Some(pc);
    }

    fn define_variable(&mut self, variable: &Variable) {
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

    fn place_shared(&mut self, variable: &Variable) -> Symbol {
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
    fn place_local(&mut self, bytes: u32, align: u32) -> u32 {
        let offset = place_after(self.program.local_bytes, align);
        self.program.local_bytes = offset.saturating_add(bytes);
        offset
    }

    fn emit(&mut self, guard: Option<Guard>, op: Op, info: Info) {
        self.program.code.push(Inst { guard, op });
        self.program.info.push(info);
    }

    fn refuse(&mut self, line: u32, text: &str, reason: &str) {
        let text = format!("`{text}`: {reason}");
        self.program.unsupported.push(Unsupported { line, text });
    }

    fn instruction(&mut self, instruction: &'a Instruction) {
        let info = Info {
            line: instruction.line,
            loc: instruction.loc,
            opcode: instruction.opcode.clone(),
            text: instruction.text.clone(),
        };
        let guard = match &instruction.guard {
            None => None,
            Some((name, negate)) => match self.lookup(name) {
                Some(Symbol::Predicate(index)) => Some(Guard { index, negate: *negate }),
                _ => return self.refuse(info.line, &info.text, &format!("`{name}` is not a predicate")),
            },
        };
        let result = self.decode_ops(instruction);
        match result {
            Ok(ops) => {
                for op in ops {
                    self.emit(guard, op, info.clone());
                }
            }
            Err(reason) => {
                self.refuse(info.line, &info.text, &reason);
                self.emit(guard, Op::Nop, info);
            }
        }
    }

    fn decode_ops(&mut self, instruction: &Instruction) -> Decoded<Vec<Op>> {
        let mut mods = Mods::new(&instruction.opcode);
        let operands = &instruction.operands;
        let base = mods.base();
        let ops = match base.as_str() {
            "call" => self.call(&mut mods, instruction)?,
            base if control::is_control(base) => vec![self.control(&mut mods, operands)?],
            base if memory::is_memory(base) => vec![self.memory(&mut mods, operands)?],
            "mma" | "ldmatrix" | "stmatrix" | "movmatrix" => vec![self.matrix(&mut mods, operands)?],
            "cvt" => vec![self.convert(&mut mods, operands)?],
            _ => self.scalar(&mut mods, operands)?,
        };
        mods.finish()?;
        Ok(ops)
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
fn own_file(info: &[Info]) -> Option<u32> {
    info.iter().filter_map(|info| info.loc).find(|loc| loc.inlined_at.is_none()).map(|loc| loc.file)
}

/// The first aligned offset at or after `end`, saturated to `u32::MAX`, which a launch rejects.
fn place_after(end: u32, align: u32) -> u32 {
    u32::try_from(align_up(u64::from(end), u64::from(align))).unwrap_or(u32::MAX)
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
