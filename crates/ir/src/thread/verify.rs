//! Checks of the thread level.
//!
//! Variables, register arrays and their elements are defined before they are used; dtypes of both sides of a load or
//! store agree; register indices are constants inside the array; inputs are not stored to; vector accesses have a
//! width that hardware has and an index aligned to it; constant indices stay inside their memory, unless a condition masks
//! them; a warp- or CTA-collective instruction does not stand under a condition or loop that threads of one warp (or, for CTA
//! instructions, of one CTA) may judge differently; instructions exist on the target; shared memory fits it.
//!
//! Not checked: races and missing barriers (lowering derives barriers, the virtual GPU checks them).
//!
//! A finding here is a defect of the compiler: no kernel that was accepted leads to one.

mod mma;

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::{Expr, Var};
use tilewright_layout::DType;
use tilewright_layout::axis::Scope;

use crate::arena::Handle;
use crate::target::Target;
use crate::thread::inst::{Inst, InstInfo};
use crate::thread::program::{Cond, Memory, MemorySpace, Program, RegArray, Regs, Stmt};
use crate::thread::value::Value;
use crate::tile::{ElementClass, ElementOp};

/// A program that passed the verifier; only such a program can be emitted.
#[derive(Clone, Debug)]
pub struct VerifiedProgram(Program);

impl VerifiedProgram {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.0
    }
}

/// Checks a program. Returns everything that is wrong with it.
pub fn verify(program: Program) -> Result<VerifiedProgram, Vec<Diagnostic>> {
    let mut checker = Checker::new(&program);
    checker.check_shared();
    checker.body(&program.body);
    let found = checker.found;
    if found.is_empty() { Ok(VerifiedProgram(program)) } else { Err(found) }
}

/// Who may take different ways at the current place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Divergence {
    /// All threads of the CTA are here together.
    None,
    /// Warps may differ, the lanes of a warp do not.
    Warps,
    /// Lanes may differ.
    Lanes,
}

struct Checker<'a> {
    program: &'a Program,
    found: Vec<Diagnostic>,
    /// Variables in scope, with how far their values differ between threads.
    variables: Vec<(Var, Divergence)>,
    /// Declared arrays, with the elements that hold a value.
    arrays: Vec<(Handle<RegArray>, Vec<bool>)>,
    divergence: Divergence,
    /// Conditions on indices around the current place.
    conditions: usize,
    place: Option<(String, Span)>,
}

impl<'a> Checker<'a> {
    fn new(program: &'a Program) -> Checker<'a> {
        let last = |n: i64| (n - 1).max(0);
        let warps = (program.threads + 31) / 32;
        let most = |dimension: usize| program.grid[dimension].range().hi;
        let mut variables = vec![
            (Var::new("lane", 0, last(program.threads.min(32))), Divergence::Lanes),
            (Var::new("tid", 0, last(program.threads)), Divergence::Lanes),
            (Var::new("warp", 0, last(warps)), Divergence::Warps),
            (Var::new("bx", 0, last(most(0))), Divergence::None),
            (Var::new("by", 0, last(most(1))), Divergence::None),
            (Var::new("bz", 0, last(most(2))), Divergence::None),
        ];
        variables.extend(program.sizes.iter().map(|size| (size.clone(), Divergence::None)));
        Checker {
            program,
            found: Vec::new(),
            variables,
            arrays: Vec::new(),
            divergence: Divergence::None,
            conditions: 0,
            place: None,
        }
    }

    fn report(&mut self, code: &'static str, message: String) {
        let mut finding = Diagnostic::internal(code, message);
        if let Some((title, span)) = &self.place {
            finding = finding.label(*span, format!("while lowering {title}"));
        }
        self.found.push(finding);
    }

    fn check_shared(&mut self) {
        let shared = self.program.memories.iter().filter(|(_, m)| m.space == MemorySpace::Shared);
        let bytes: i64 = shared.map(|(_, m)| crate::shared_room(m.elements * m.dtype.bytes())).sum();
        let most = self.program.target.shared_bytes();
        if bytes > most {
            self.report("V0301", format!("{bytes} bytes of shared memory, but {} has {most}", self.program.target));
        }
    }

    fn body(&mut self, body: &[Stmt]) {
        let (variables, arrays) = (self.variables.len(), self.arrays.len());
        for stmt in body {
            self.stmt(stmt);
        }
        self.variables.truncate(variables);
        self.arrays.truncate(arrays);
    }

    /// The statements of a tile op share the scope around it: what it declares is known after it.
    fn op(&mut self, title: String, span: Span, body: &[Stmt]) {
        let outer = self.place.replace((title, span));
        for stmt in body {
            self.stmt(stmt);
        }
        self.place = outer;
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Op { note, body } => {
                let note = &self.program.notes[*note];
                self.op(note.title.clone(), note.span, body);
            }
            Stmt::Let { var, value } => {
                let divergence = self.expr(value);
                self.define(var, divergence);
            }
            Stmt::Declare(array) => {
                let len = self.program.registers[*array].len.max(0) as usize;
                self.arrays.push((*array, vec![false; len]));
            }
            Stmt::Load { to, memory, index } => {
                self.access(*memory, index, to);
                self.write(to);
            }
            Stmt::Store { memory, index, from } => {
                if self.program.memories[*memory].space == (MemorySpace::Global { read_only: true }) {
                    self.report("V0302", format!("a store to the input `{}`", self.program.memories[*memory].name));
                }
                self.access(*memory, index, from);
                self.read(from);
            }
            Stmt::Lookup { vars, table, index } => self.lookup(vars, *table, index),
            Stmt::Compute { inst, to, from, arguments } => {
                let divergence = arguments.iter().map(|argument| self.expr(argument)).max();
                from.iter().for_each(|regs| self.read(regs));
                self.operands(*inst, to, from, arguments.len(), divergence.unwrap_or(Divergence::None));
                self.write(to);
                self.inst(&inst.info());
            }
            Stmt::Set { to, .. } => self.write(to),
            Stmt::Move { to, from } => {
                self.read(from);
                self.write(to);
                if self.program.registers[to.array].dtype != self.program.registers[from.array].dtype
                    || to.count != from.count
                {
                    self.report("V0303", "a move between registers of different types".to_string());
                }
            }
            Stmt::For { var, body, .. } => {
                let depth = self.variables.len();
                self.define(var, Divergence::None);
                self.body(body);
                self.variables.truncate(depth);
            }
            Stmt::If { cond, body } => {
                let (Cond::Less(a, b) | Cond::Equal(a, b)) = cond;
                let outer = self.divergence;
                self.divergence = outer.max(self.expr(a)).max(self.expr(b));
                self.conditions += 1;
                self.body(body);
                self.conditions -= 1;
                self.divergence = outer;
            }
            Stmt::When { cond, is_uniform, body } => {
                if self.value(cond).is_some() {
                    self.report("V0319", "a condition that is no truth value".to_string());
                }
                let outer = self.divergence;
                self.divergence = if *is_uniform { outer } else { Divergence::Lanes };
                self.body(body);
                self.divergence = outer;
            }
            Stmt::Assign { to, value } => {
                let dtype = self.value(value);
                self.write(to);
                if to.count != 1 || dtype != Some(self.program.registers[to.array].dtype) {
                    self.report("V0319", format!("`{}` becomes a value of another type", self.name_of(to)));
                }
            }
            Stmt::Name { var, value } => {
                if self.value(value).is_none_or(|dtype| !dtype.is_integer()) {
                    self.report("V0319", format!("`{}` names what is no integer", var.name()));
                }
                self.define(var, Divergence::Lanes);
            }
            Stmt::AtomicAdd { memory, index, from } => {
                if self.program.memories[*memory].space == (MemorySpace::Global { read_only: true }) {
                    self.report("V0302", format!("a store to the input `{}`", self.program.memories[*memory].name));
                }
                self.access(*memory, index, from);
                self.read(from);
            }
            Stmt::Mma { inst, sums, a, b } => self.mma(*inst, sums, a, b),
            Stmt::Inst(inst) => {
                if inst.info().registers > 0 {
                    self.report("V0317", format!("`{}` without its operands", inst.info().name));
                }
                self.inst(&inst.info());
            }
        }
    }

    fn name_of(&self, regs: &Regs) -> String {
        format!("{}[{}]", self.program.registers[regs.array].name, regs.first)
    }

    /// The dtype of a value, `None` for truth values; checks that its registers hold values and its operands fit.
    fn value(&mut self, value: &Value) -> Option<DType> {
        let registers = &self.program.registers;
        match value {
            Value::Const(dtype, _) => Some(*dtype),
            Value::Index(dtype, index) => {
                self.expr(index);
                Some(*dtype)
            }
            Value::Reg(array, at) => {
                self.read(&Regs { array: *array, first: Expr::constant(*at), count: 1, step: 1 });
                Some(registers[*array].dtype)
            }
            Value::Cast(to, _, of) => {
                if self.value(of).is_none() {
                    self.report("V0319", "a truth value where a number is needed".to_string());
                }
                Some(*to)
            }
            Value::Bits(to, of) => {
                if self.value(of).is_none_or(|from| from.bytes() != to.bytes()) {
                    self.report("V0319", format!("the bits of another size as {to}"));
                }
                Some(*to)
            }
            Value::Part(to, of, at) => {
                let inside = self.value(of).is_some_and(|from| (at + 1) * to.bytes() <= from.bytes() && *at >= 0);
                if !inside {
                    self.report("V0319", format!("part {at} as {to} lies outside of the value"));
                }
                Some(*to)
            }
            Value::With(of, at, part) => {
                let (whole, part) = (self.value(of), self.value(part));
                let fits = |(whole, part): (DType, DType)| (at + 1) * part.bytes() <= whole.bytes() && *at >= 0;
                if !whole.zip(part).is_some_and(fits) {
                    self.report("V0319", format!("part {at} lies outside of the value"));
                }
                whole
            }
            Value::Op(op, operands) => self.operation(*op, operands),
        }
    }

    fn operation(&mut self, op: ElementOp, operands: &[Value]) -> Option<DType> {
        let dtypes: Vec<Option<DType>> = operands.iter().map(|operand| self.value(operand)).collect();
        let numbers = match op.class() {
            ElementClass::Choice => dtypes.get(1..).unwrap_or_default(),
            ElementClass::Arithmetic | ElementClass::Floating | ElementClass::Comparison => &dtypes,
        };
        let first = numbers.first().copied().flatten();
        let of_one = first.is_some() && numbers.iter().all(|dtype| *dtype == first);
        let decided = op.class() != ElementClass::Choice || dtypes.first() == Some(&None);
        let is_real = op.class() != ElementClass::Floating || first.is_some_and(DType::is_float);
        if operands.len() != op.arity() || !of_one || !decided || !is_real {
            self.report("V0319", format!("`{op}` with operands that it does not take"));
        }
        if op.class() == ElementClass::Comparison { None } else { first }
    }

    fn define(&mut self, var: &Var, divergence: Divergence) {
        if self.variables.iter().any(|(known, _)| known.name() == var.name()) {
            self.report("V0304", format!("`{}` is defined twice", var.name()));
        }
        self.variables.push((var.clone(), divergence));
    }

    /// Checks that every variable is defined; says how far the value differs between threads.
    fn expr(&mut self, expr: &Expr) -> Divergence {
        let mut divergence = Divergence::None;
        let mut unknown = None;
        expr.for_each_var(&mut |var| match self.variables.iter().find(|(known, _)| known == var) {
            Some((_, d)) => divergence = divergence.max(*d),
            None => unknown = Some(var.name().to_string()),
        });
        if let Some(name) = unknown {
            self.report("V0305", format!("`{name}` is used before it is defined"));
        }
        divergence
    }

    fn access(&mut self, memory: Handle<Memory>, index: &Expr, regs: &Regs) {
        self.expr(index);
        let memory = &self.program.memories[memory];
        let array = &self.program.registers[regs.array];
        let is_opaque = matches!(array.dtype, DType::B16 | DType::B32 | DType::B64 | DType::B128);
        let as_words = is_opaque && memory.dtype.bytes() < array.dtype.bytes();
        if memory.dtype != array.dtype && !as_words {
            self.report(
                "V0306",
                format!("`{}` holds {}, `{}` holds {}", memory.name, memory.dtype, array.name, array.dtype),
            );
        }
        let width = regs.count * array.dtype.bytes();
        let elements = width / memory.dtype.bytes();
        if !matches!(width, 1 | 2 | 4 | 8 | 16) {
            self.report(
                "V0307",
                format!("an access to `{}` of {width} bytes; hardware has 1, 2, 4, 8 and 16", memory.name),
            );
            return;
        }
        let aligned = index.multiple() % elements.max(1) == 0 && memory.alignment % width == 0;
        if !aligned {
            self.report(
                "V0308",
                format!("`{}[{index}]` is not aligned to the {width} bytes of its access", memory.name),
            );
        }
        // Elements outside of a tensor in global memory are masked by conditions, which may never hold.
        let is_masked = self.conditions > 0 && matches!(memory.space, MemorySpace::Global { .. });
        if let Some(at) = index.as_const()
            && !is_masked
            && (at < 0 || at + elements > memory.elements)
        {
            self.report("V0309", format!("`{}[{at}]` lies outside its {} elements", memory.name, memory.elements));
        }
    }

    /// A lookup names entries that the table has, and its names can hold them.
    fn lookup(&mut self, vars: &[Var], table: Handle<Memory>, index: &Expr) {
        let divergence = self.expr(index);
        let memory = &self.program.memories[table];
        let count = vars.len() as i64;
        let inside = index.range().within(0, memory.values.len() as i64 - count + 1);
        if memory.space != MemorySpace::Table || !matches!(count, 1 | 2 | 4) || !inside || index.multiple() % count != 0
        {
            self.report("V0318", format!("{count} entries from `{}[{index}]` on", memory.name));
        }
        for (at, var) in vars.iter().enumerate() {
            let range = var.range();
            let mut entries = memory.values.iter().skip(at).step_by(vars.len());
            if entries.any(|value| *value < range.lo || *value > range.hi) {
                self.report("V0318", format!("`{}` cannot hold all entries of `{}`", var.name(), memory.name));
            }
            self.define(var, divergence);
        }
    }

    /// An instruction has the operands of its row, single 32-bit registers; shuffles take 64-bit ones in two halves.
    fn operands(&mut self, inst: Inst, to: &Regs, from: &[Regs], arguments: usize, divergence: Divergence) {
        let info = inst.info();
        let is_word = |regs: &Regs| {
            let array = &self.program.registers[regs.array];
            let fits = array.dtype.bytes() == 4 || (inst == Inst::ShuffleXor && array.dtype.bytes() == 8);
            regs.count == 1 && fits
        };
        let fits = info.registers == from.len() && info.arguments == arguments && info.registers > 0;
        if !fits || !from.iter().chain([to]).all(is_word) {
            self.report("V0317", format!("`{}` with operands that it does not take", info.name));
        }
        if info.collective > Scope::Thread && divergence > Divergence::None {
            self.report("V0317", format!("`{}` with an operand that differs between lanes", info.name));
        }
    }

    /// The elements `regs` stands for, if its index is a constant inside a declared array.
    fn elements(&mut self, regs: &Regs) -> Option<(usize, Vec<usize>)> {
        let name = self.program.registers[regs.array].name.clone();
        let Some(position) = self.arrays.iter().rposition(|(array, _)| *array == regs.array) else {
            self.report("V0310", format!("the register array `{name}` is used before it is declared"));
            return None;
        };
        let Some(first) = regs.first.as_const() else {
            self.report("V0311", format!("`{name}[{}]`: a register index must be a constant", regs.first));
            return None;
        };
        let len = self.arrays[position].1.len() as i64;
        let last = first.saturating_add(regs.step.saturating_mul(regs.count - 1));
        if first < 0 || regs.count < 1 || regs.step < 1 || last >= len {
            self.report("V0312", format!("`{name}[{first}]` with {} elements lies outside its {len}", regs.count));
            return None;
        }
        Some((position, (first..=last).step_by(regs.step as usize).map(|at| at as usize).collect()))
    }

    /// True for exactly one vector of an array of vectors, and for adjacent elements of other arrays.
    fn is_whole(&self, regs: &Regs) -> bool {
        let vector = self.program.registers[regs.array].vector;
        regs.step == 1 && (vector == 1 || (regs.count == vector && regs.first.multiple() % vector == 0))
    }

    fn write(&mut self, regs: &Regs) {
        let Some((array, elements)) = self.elements(regs) else { return };
        if !self.is_whole(regs) {
            self.report_parts(regs);
        }
        for element in elements {
            self.arrays[array].1[element] = true;
        }
    }

    fn read(&mut self, regs: &Regs) {
        let Some((array, elements)) = self.elements(regs) else { return };
        let RegArray { name, dtype, vector, .. } = &self.program.registers[regs.array];
        // Vectors of narrower elements have no parts in CUDA.
        if !self.is_whole(regs) && *vector > 1 && dtype.bytes() < 4 {
            return self.report_parts(regs);
        }
        if !elements.iter().all(|element| self.arrays[array].1[*element]) {
            let message = format!("`{name}[{}]` is read before it holds a value", regs.first);
            self.report("V0313", message);
        }
    }

    fn report_parts(&mut self, regs: &Regs) {
        let RegArray { name, vector, .. } = &self.program.registers[regs.array];
        let message =
            format!("`{name}[{}]` with {} elements is not a whole vector of {vector}", regs.first, regs.count);
        self.report("V0316", message);
    }

    fn inst(&mut self, info: &InstInfo) {
        self.executes(info.name, info.targets, info.collective);
    }

    /// The target has the instruction, and its threads execute it together.
    fn executes(&mut self, name: &str, targets: &[Target], collective: Scope) {
        if !targets.contains(&self.program.target) {
            self.report("V0314", format!("`{name}` does not exist on {}", self.program.target));
        }
        let allowed = match collective {
            Scope::Thread => Divergence::Lanes,
            Scope::Warp => Divergence::Warps,
            Scope::Warpgroup | Scope::Cta | Scope::Cluster | Scope::Grid | Scope::Mesh => Divergence::None,
        };
        if self.divergence > allowed {
            self.report("V0315", format!("`{name}` stands under a branch that its threads may judge differently"));
        }
    }
}

#[cfg(test)]
mod tests;
