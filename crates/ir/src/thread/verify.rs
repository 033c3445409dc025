//! Checks of the thread level.
//!
//! Variables, register arrays and their elements are defined before they are used; dtypes of both sides of a load or
//! store agree; register indices are inside the array, and constants in every iteration of the unrolled loops around
//! them; inputs are not stored to; vector accesses have a width
//! that the hardware supports and an index aligned to it; constant indices stay inside their memory, unless a condition
//! masks them; a warp- or CTA-collective instruction is not under a condition on which the threads of one warp (or, for
//! CTA instructions, of one CTA) may diverge; instructions exist on the target; shared memory fits it.
//!
//! Not checked: races and missing barriers (lowering derives barriers, the virtual GPU checks them).
//!
//! A finding here is a defect of the compiler: no accepted kernel should lead to one.

mod checker;
mod mma;
mod registers;
mod ring;
mod values;

use tilewright_diag::{Diagnostic, Span, counted};
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_layout::DType;
use tilewright_layout::access::LANES;
use tilewright_layout::axis::Scope;

use checker::{Checker, Divergence, Iteration};

use crate::arena::Handle;
use crate::counter::Counter;
use crate::hw_index::HwIndex;
use crate::target::Target;
use crate::thread::effects::{MemoryAccess, Moved, Resource, for_each_stmt};
use crate::thread::inst::{InstInfo, MemoryOperand, RegisterOperand};
use crate::thread::program::{Call, Memory, MemorySpace, Program, Stmt, Unroll};
use crate::thread::registers::Regs;
use crate::tile::vectors::WIDEST;
use crate::tile::{MemoryOrdering, Role, WARPS_OF_A_WARPGROUP};

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

impl Checker<'_> {
    fn check_shared(&mut self) {
        let (bytes, most) = (self.program.shared_bytes(), self.program.target.shared_bytes());
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

    /// The statements of a tile op share the enclosing scope: what they declare is known after the op.
    fn op(&mut self, title: String, span: Span, body: &[Stmt]) {
        let outer = self.place.replace((title, span));
        for stmt in body {
            self.stmt(stmt);
        }
        self.place = outer;
    }

    /// The rules for every statement: variables and registers are defined before they are used, accesses fit their
    /// memory.
    fn stmt(&mut self, stmt: &Stmt) {
        let divergence = self.exprs(stmt);
        stmt.reads(&mut |resource| match resource {
            Resource::Registers(regs) => self.read(regs),
            Resource::Memory(_) => {}
        });
        for access in stmt.accesses() {
            self.access(&access);
        }
        for var in stmt.defines() {
            // What a CTA loads first is the same for all of its threads.
            let is_loaded = self.program.loaded.contains(var);
            self.define(var, if is_loaded { Divergence::None } else { divergence });
        }
        self.rules(stmt, divergence);
        stmt.writes(&mut |resource| match resource {
            Resource::Registers(regs) => self.write(regs),
            Resource::Memory(_) => {}
        });
    }

    /// Checks that every variable is defined; returns the threads between which the statement's expressions differ.
    fn exprs(&mut self, stmt: &Stmt) -> Divergence {
        let mut divergence = if stmt.names_data() { Divergence::Lanes } else { Divergence::None };
        stmt.exprs(&mut |expr| divergence = divergence.max(self.expr(expr)));
        divergence
    }

    /// The rules for each kind of statement. `divergence` is that of its expressions.
    fn rules(&mut self, stmt: &Stmt, divergence: Divergence) {
        match stmt {
            Stmt::Op { note, body } => {
                let note = &self.program.notes[*note];
                self.op(note.title.clone(), note.span, body);
            }
            Stmt::Declare(array) => {
                let len = self.program.registers[*array].len.max(0) as usize;
                self.arrays.push((*array, vec![false; len]));
            }
            Stmt::Lookup { vars, table, index } => self.lookup(vars, *table, index),
            Stmt::Move { to, from } => {
                if self.dtype_of(to) != self.dtype_of(from) || to.count != from.count {
                    self.report("V0303", "a move between registers of different types".to_string());
                }
            }
            Stmt::For { counter, unroll, body } => {
                self.counter(counter);
                let is_unrolled = matches!(unroll, Unroll::By(_) | Unroll::Full);
                if is_unrolled && indexes_with(body, &counter.var) {
                    self.iterations(counter, *unroll, body);
                } else {
                    self.branch(divergence, body);
                }
                self.variables.pop();
            }
            Stmt::If { body, .. } | Stmt::Unless { body, .. } => {
                self.conditions += 1;
                self.branch(divergence, body);
                self.conditions -= 1;
            }
            Stmt::IfValue { cond, is_uniform, body } => {
                if self.value(cond).is_some() {
                    self.report("V0319", "a condition that is not a truth value".to_string());
                }
                self.branch(if *is_uniform { Divergence::None } else { Divergence::Lanes }, body);
            }
            Stmt::Assign { to, value } => {
                if self.value(value) != Some(self.dtype_of(to)) || to.count != 1 {
                    self.report("V0319", format!("`{}` is assigned a value of another type", self.name_of(to)));
                }
            }
            Stmt::AssignPair { to, values } => {
                if to.count != 2 || to.step != 1 || to.first.multiple() % 2 != 0 || !self.is_pair(to, values) {
                    self.report("V0319", format!("`{}` is not a pair that takes these values", self.name_of(to)));
                }
            }
            Stmt::LetValue { var, value } => {
                if self.value(value).is_none_or(|dtype| !dtype.is_integer()) {
                    self.report("V0319", format!("`{}` names a value that is not an integer", var.name()));
                }
            }
            Stmt::Mma(product) => self.mma(product),
            Stmt::WarpgroupMma(product) => self.warpgroup_mma(product),
            Stmt::TensorMma(product) => self.tensor_mma(product),
            Stmt::TensorMove(moved) => self.tensor_move(moved),
            Stmt::Role { role, body } => self.role(&self.program.roles[*role], body),
            Stmt::Elect { body } => {
                self.executes("elect.sync", Target::ALL, Scope::Warp);
                let outer = std::mem::replace(&mut self.is_elected, true);
                self.branch(Divergence::Lanes, body);
                self.is_elected = outer;
                self.announced(body);
                self.committed(body);
            }
            Stmt::TensorCopy(copy) => self.tensor_copy(copy),
            Stmt::Inst(call) => {
                self.operands(call, divergence);
                self.inst(&call.inst.info());
            }
            Stmt::Let { var, value } => {
                let (own, named) = (value.range(), var.range());
                let is_within = named.lo <= own.lo && own.hi <= named.hi;
                if !is_within || value.multiple() % var.multiple() != 0 {
                    self.report("V0320", format!("`{}` cannot have every value of `{value}`", var.name()));
                }
            }
            Stmt::Advance { cursor, .. } if self.divergence.max(divergence) == Divergence::Lanes => {
                let name = self.program.cursors[*cursor].stage.name();
                self.report("V0315", format!("lanes of a warp may disagree on `{name}`"));
            }
            Stmt::Load { .. } | Stmt::Store { .. } | Stmt::Set { .. } | Stmt::Advance { .. } => {}
        }
    }

    /// Checks that the variable of a loop can have all values that the loop gives it.
    fn counter(&mut self, counter: &Counter) {
        let Counter { var, begin, end, step } = counter;
        let last = end.range().hi.saturating_sub(1);
        let (range, last) = (var.range(), last - last.rem_euclid((*step).max(1)));
        let is_within = begin.range().lo >= range.lo && last <= range.hi;
        if *step < 1 || !is_within || begin.multiple() % var.multiple() != 0 {
            self.report("V0320", format!("`{}` cannot have every value of {counter}", var.name()));
        }
    }

    /// The iterations of a loop one after the other, since their registers differ, up to the first finding.
    fn iterations(&mut self, counter: &Counter, unroll: Unroll, body: &[Stmt]) {
        let Some(values) = counter.values() else {
            return self.report("V0320", format!("an unrolled loop over {counter}, whose bounds are not constant"));
        };
        let found = self.found.len();
        for value in values {
            self.iterations.push(Iteration { var: counter.var.clone(), value, is_constant: unroll == Unroll::Full });
            self.body(body);
            self.iterations.pop();
            if self.found.len() > found {
                break;
            }
        }
    }

    /// The statements of a role, in which hardware indices have the values of its threads.
    fn role(&mut self, role: &Role, body: &[Stmt]) {
        if role.first < 0 || role.warps < 1 || role.end() * LANES as i64 > self.program.threads || self.is_in_role() {
            self.report("V0315", format!("the warps of role `{}` do not exist here", role.name));
        }
        let outside = self.variables.clone();
        let threads = std::mem::replace(&mut self.threads, role.threads());
        for (var, _) in &mut self.variables {
            if let Some(index) = HwIndex::of(var) {
                *var = index.var(self.threads, &self.program.grid);
            }
        }
        let is_of_warpgroups = [role.first, role.warps].iter().all(|warps| warps % WARPS_OF_A_WARPGROUP == 0);
        self.branch(if is_of_warpgroups { Divergence::Warpgroups } else { Divergence::Warps }, body);
        (self.variables, self.threads) = (outside, threads);
    }

    fn is_in_role(&self) -> bool {
        self.threads != self.program.threads
    }

    /// Statements under a condition with this divergence.
    fn branch(&mut self, divergence: Divergence, body: &[Stmt]) {
        let outer = self.divergence;
        self.divergence = outer.max(divergence);
        self.body(body);
        self.divergence = outer;
    }

    fn define(&mut self, var: &Var, divergence: Divergence) {
        if self.variables.iter().any(|(known, _)| known.name() == var.name()) {
            self.report("V0304", format!("`{}` is defined twice", var.name()));
        }
        self.variables.push((var.clone(), divergence));
    }

    /// Checks that every variable is defined; returns the threads between which the value differs.
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

    fn access(&mut self, access: &MemoryAccess<'_>) {
        let memory = &self.program.memories[access.memory];
        if access.effect.writes() && matches!(memory.space, MemorySpace::Global { read_only: true, .. }) {
            self.report("V0302", format!("a store to the input `{}`", memory.name));
        }
        match access.moved {
            Moved::Registers(regs) => self.transfer(access.memory, access.index, regs),
            Moved::Elements(count) => self.in_bounds(access.memory, access.index, count),
            Moved::Bytes(bytes) => self.whole_bytes(access.memory, access.index, bytes),
            Moved::Box(bytes) => {
                let elements = bytes / self.program.memories[access.memory].dtype.bytes();
                self.in_bounds(access.memory, access.index, elements);
            }
        }
    }

    /// A move between registers and as many bytes of memory.
    fn transfer(&mut self, handle: Handle<Memory>, index: &Expr, regs: &Regs) {
        let memory = &self.program.memories[handle];
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
        let most = match memory.space {
            MemorySpace::Global { .. } => self.program.target.widest_global(),
            MemorySpace::Shared | MemorySpace::SharedView { .. } | MemorySpace::SharedInside { .. } => WIDEST,
            MemorySpace::Table => WIDEST,
        };
        if !(1..=most).contains(&width) || width.count_ones() != 1 {
            let name = &memory.name;
            self.report("V0307", format!("an access to `{name}` of {width} bytes; legal are 1, 2, 4, ... {most}"));
            return;
        }
        self.aligned(handle, index, width, elements);
        self.in_bounds(handle, index, elements);
    }

    /// An access to bytes that are whole elements.
    fn whole_bytes(&mut self, handle: Handle<Memory>, index: &Expr, bytes: i64) {
        let memory = &self.program.memories[handle];
        if bytes % memory.dtype.bytes() != 0 {
            self.report("V0307", format!("an access to `{}` of {bytes} bytes splits elements", memory.name));
        }
        let elements = bytes / memory.dtype.bytes();
        self.aligned(handle, index, bytes, elements);
        self.in_bounds(handle, index, elements);
    }

    fn aligned(&mut self, handle: Handle<Memory>, index: &Expr, width: i64, elements: i64) {
        let memory = &self.program.memories[handle];
        if !self.is_multiple(index, elements.max(1)) || memory.alignment % width != 0 {
            self.report(
                "V0308",
                format!("`{}[{index}]` is not aligned to the {width} bytes of its access", memory.name),
            );
        }
    }

    /// Whether an index is a multiple of a number: by what is known of it, or for every thread.
    fn is_multiple(&self, index: &Expr, of: i64) -> bool {
        let of_thread = |thread: i64| {
            let value = |var: &Var| HwIndex::of(var)?.of_thread(thread).map(Expr::constant);
            normalize(&index.substitute(&value))
        };
        index.multiple() % of == 0 || (0..self.threads).all(|thread| of_thread(thread).multiple() % of == 0)
    }

    /// Checks that elements at a constant index exist.
    fn in_bounds(&mut self, memory: Handle<Memory>, index: &Expr, elements: i64) {
        let memory = &self.program.memories[memory];
        // Elements outside of a tensor in global memory are masked by conditions, which may never hold.
        let is_masked = self.conditions > 0 && matches!(memory.space, MemorySpace::Global { .. });
        let value = |var: &Var| self.iterations.iter().find(|known| known.var == *var).map(|known| known.value);
        if let Ok(at) = index.eval(&value)
            && !is_masked
            && (at < 0 || at + elements > memory.elements)
        {
            let elements = counted(memory.elements, "element");
            self.report("V0309", format!("`{}[{at}]` lies outside its {elements}", memory.name));
        }
    }

    /// A lookup stays inside its table, and the ranges of its variables include the entries.
    fn lookup(&mut self, vars: &[Var], table: Handle<Memory>, index: &Expr) {
        let memory = &self.program.memories[table];
        let count = vars.len() as i64;
        let inside = index.range().within(0, memory.values.len() as i64 - count + 1);
        if memory.space != MemorySpace::Table || !matches!(count, 1 | 2 | 4) || !inside || index.multiple() % count != 0
        {
            self.report("V0318", format!("a lookup of width {count} at `{}[{index}]`", memory.name));
        }
        for (at, var) in vars.iter().enumerate() {
            let range = var.range();
            let mut entries = memory.values.iter().skip(at).step_by(vars.len());
            if entries.any(|value| *value < range.lo || *value > range.hi) {
                self.report("V0318", format!("`{}` cannot hold all entries of `{}`", var.name(), memory.name));
            }
        }
    }

    /// Checks that an instruction has the operands of its row.
    fn operands(&mut self, call: &Call, divergence: Divergence) {
        let info = call.inst.info();
        let element = call.memory.first().map(|(memory, _)| self.program.memories[*memory].dtype);
        let fits = |regs: &Regs, operand: &RegisterOperand| {
            let dtype = self.dtype_of(regs);
            let is_one = regs.count == 1;
            match operand {
                RegisterOperand::Word => is_one && dtype.bytes() == 4,
                RegisterOperand::WordOrPair => is_one && matches!(dtype.bytes(), 4 | 8),
                RegisterOperand::Element => is_one && Some(dtype) == element,
                RegisterOperand::Words(words) => {
                    let in_word = (4 / dtype.bytes()).max(1);
                    let is_whole = regs.step == 1 && regs.first.multiple() % in_word == 0;
                    is_whole && regs.count * dtype.bytes() == 4 * words
                }
            }
        };
        let has_registers = call.from.len() == info.registers.len()
            && call.from.iter().zip(info.registers).all(|(regs, operand)| fits(regs, operand));
        let has_result = match (&call.to, &info.result) {
            (Some(to), Some(operand)) => fits(to, operand),
            (None, None) => true,
            (Some(to), None) => info.gives_old && fits(to, &RegisterOperand::Element),
            (None, Some(_)) => false,
        };
        let has_order = call.ordering == MemoryOrdering::default() || info.gives_old;
        let in_place = |((memory, _), operand): (&(Handle<Memory>, Expr), &MemoryOperand)| {
            let memory = &self.program.memories[*memory];
            match memory.space {
                MemorySpace::Global { .. } => operand.may_be_global,
                MemorySpace::Shared | MemorySpace::SharedView { .. } | MemorySpace::SharedInside { .. } => {
                    !operand.is_barrier() || memory.dtype == DType::U64
                }
                MemorySpace::Table => false,
            }
        };
        let has_memory = call.memory.len() == info.memory.len() && call.memory.iter().zip(info.memory).all(in_place);
        if !has_registers || !has_result || !has_memory || !has_order || info.arguments != call.arguments.len() {
            self.report("V0317", format!("`{}` has operands that it does not accept", info.name));
        }
        if info.issued_by > Scope::Thread && !info.takes_any_argument && divergence > Divergence::None {
            self.report("V0317", format!("`{}` has an operand that differs between lanes", info.name));
        }
    }

    fn inst(&mut self, info: &InstInfo) {
        self.executes(info.name, info.targets, info.issued_by);
    }

    /// The target has the instruction, and its threads execute it together.
    fn executes(&mut self, name: &str, targets: &[Target], issued_by: Scope) {
        if !targets.contains(&self.program.target) {
            self.report("V0314", format!("`{name}` does not exist on {}", self.program.target));
        }
        let allowed = match issued_by {
            Scope::Thread => Divergence::Lanes,
            Scope::Warp => Divergence::Warps,
            Scope::Warpgroup => Divergence::Warpgroups,
            Scope::Cta | Scope::Cluster | Scope::Grid | Scope::Mesh => Divergence::None,
        };
        if self.divergence > allowed {
            self.report("V0315", format!("`{name}` is under a branch on which its threads may diverge"));
        }
    }
}

/// Whether registers or elements of memory inside are numbered by a variable.
fn indexes_with(body: &[Stmt], var: &Var) -> bool {
    let mut found = false;
    for_each_stmt(body, &mut |stmt| {
        let mut mentions = |resource: Resource<'_>| {
            found |= match resource {
                Resource::Registers(regs) => regs.first.mentions(var),
                Resource::Memory(access) => access.index.mentions(var),
            };
        };
        stmt.reads(&mut mentions);
        stmt.writes(&mut mentions);
    });
    found
}

#[cfg(test)]
mod tests;
