//! Thread statements as C++.

mod conditions;
pub(crate) mod declarations;
mod indices;
mod roles;
mod stages;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tilewright_diag::Diagnostic;
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{
    Call, Cond, Cursor, Inst, Memory, MemorySpace, Mma, Note, Program, RegArray, Regs, Stmt, Unroll, conjunction,
    is_word,
};
use tilewright_ir::{Caching, Counter, Handle, HwIndex};
use tilewright_layout::DType;

use crate::asynchronous;
use crate::combined::{combined_arrays, shuffled};
use crate::constants::{self, CONSTANT, PARAMETER, UNROLL};
use crate::defect::unprintable;
use crate::dtype::{c_type, literal, vector_literal, vector_type};
use crate::immediates::Immediates;
use crate::index::{c_index, needs_64_bits};
use crate::mma;
use crate::registers::{PARTS, is_single, pointer, register, vector_name};
use crate::source_map::Lines;
use crate::statements::conditions::{all_of, loop_head, under_all};
use crate::statements::stages::Stages;
use crate::tensor;
use crate::tensor_copies;
use crate::uses::{ArrayUses, Uses, loaded};
use crate::values::Values;
use crate::wgmma;
use crate::wrapped;

/// Column at which the source location of a tile op is printed.
const PLACE_COLUMN: usize = 64;
/// A loop or a function of one statement stands on one line of up to this many columns.
pub(crate) const MOST_COLUMNS: usize = 120;

pub(crate) struct Printer<'a> {
    program: &'a Program,
    uses: &'a Uses<'a>,
    text: String,
    /// Nesting depth of blocks; each indents by two spaces.
    depth: usize,
    /// The note of the tile op that is printed now.
    note: Option<Handle<Note>>,
    lines: Lines,
    /// Arrays of vectors that are declared where they are loaded.
    defined_by_load: BTreeSet<Handle<RegArray>>,
    values: Values<'a>,
    /// The variables of the loops that are open now and call a lambda with constants.
    constants: Vec<Var>,
    /// Whether there is such a loop.
    uses_constants: bool,
    /// The arrays of shuffles that are printed inside of values.
    combined: BTreeSet<Handle<RegArray>>,
    /// Constants that are printed as operands.
    immediates: &'a Immediates,
    /// The hardware indices in what was printed so far.
    indices: BTreeSet<HwIndex>,
    /// The instructions that were printed as calls so far.
    pub(crate) called: BTreeSet<Inst>,
}

/// How often the statements of a block, without those of inner blocks, load each array.
type Loads = BTreeMap<Handle<RegArray>, usize>;

fn loads_of(block: &[Stmt]) -> Loads {
    let mut loads = Loads::new();
    for array in block.iter().filter_map(loaded) {
        *loads.entry(array).or_default() += 1;
    }
    loads
}

impl<'a> Printer<'a> {
    pub(crate) fn new(program: &'a Program, uses: &'a Uses<'a>, immediates: &'a Immediates) -> Printer<'a> {
        Printer {
            program,
            uses,
            text: String::new(),
            depth: 1,
            note: None,
            lines: Lines::default(),
            defined_by_load: BTreeSet::new(),
            values: Values::new(program, uses),
            constants: Vec::new(),
            uses_constants: false,
            combined: combined_arrays(program, uses),
            immediates,
            indices: BTreeSet::new(),
            called: BTreeSet::new(),
        }
    }

    /// The lines that define the functions that the text calls.
    pub(crate) fn functions(&self) -> Vec<String> {
        let constants = if self.uses_constants { constants::definitions() } else { Vec::new() };
        [self.values.functions(), constants].concat()
    }

    /// The names of those functions.
    pub(crate) fn function_names(&self) -> impl Iterator<Item = &'static str> {
        let constants = [UNROLL, CONSTANT].into_iter().filter(|_| self.uses_constants);
        self.values.function_names().chain(constants)
    }

    /// The text that was printed, and what its lines come from.
    pub(crate) fn finish(self) -> (String, Lines) {
        (self.text, self.lines)
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let start = self.text.len();
        let _ = write!(self.text, "{:indent$}{line}", "", indent = self.depth * 2);
        self.text.truncate(start + self.text[start..].trim_end().len());
        self.text.push('\n');
        self.lines.push(self.note);
    }

    pub(crate) fn body(&mut self, body: &[Stmt]) -> Result<(), Diagnostic> {
        self.find_indices(body);
        let loads = loads_of(body);
        let mut rest = body;
        while let [stmt, after @ ..] = rest {
            if matches!(stmt, Stmt::Declare(_)) {
                rest = self.declarations(rest, &loads)?;
                continue;
            }
            if matches!(stmt, Stmt::Role { .. }) {
                rest = self.roles(rest)?;
                continue;
            }
            rest = after;
            if let [Stmt::Unless { conds, body }, after @ ..] = after
                && let Some(inside) = under_all(stmt, conds)
            {
                rest = after;
                self.choice(conds, inside, body)?;
            } else if let (Stmt::Inst(call), [Stmt::Assign { to, value }, after @ ..]) = (stmt, after)
                && let Some(array) = shuffled(self.program, call).filter(|array| self.is_combined(*array))
            {
                rest = after;
                let shuffle = self.call(call)?;
                let (target, value) = (self.reg(to, 0)?, self.values.assigned_with(to.array, value, (array, shuffle))?);
                self.line(format_args!("{target} = {value};"));
            } else {
                self.stmt(stmt)?;
            }
        }
        Ok(())
    }

    /// Whether loads of the same block, one for each vector, are the only loads of an array of vectors, or one load is all
    /// that writes to a single register: each load is then printed as a definition.
    fn is_filled_by(&self, array: Handle<RegArray>, loads: &Loads) -> bool {
        let RegArray { vector, len, .. } = self.program.registers[array];
        let here = loads.get(&array).copied().unwrap_or_default();
        let ArrayUses { writes, loads: everywhere, .. } = self.uses.of_array(array);
        let is_defined_once = is_single(&self.program.registers[array]) && writes == 1;
        (vector > 1 || is_defined_once) && here as i64 == len / vector && here == everywhere
    }

    /// One list of statements if all conditions hold, else the other.
    fn choice(&mut self, conds: &[Cond], inside: &[Stmt], otherwise: &[Stmt]) -> Result<(), Diagnostic> {
        // Some of these are printed as a part of something else.
        [inside, otherwise].into_iter().for_each(|body| self.find_indices(body));
        if let Some(copy) = asynchronous::filling_copy(inside, otherwise) {
            let call = self.call(copy)?;
            let call = call.strip_suffix(')').unwrap_or(&call);
            self.line(format_args!("{call}, {});", all_of(conds)));
            return Ok(());
        }
        self.line(format_args!("if ({}) {{", all_of(conds)));
        self.depth += 1;
        self.body(inside)?;
        self.depth -= 1;
        match otherwise {
            [Stmt::If { cond, body }] => {
                let (conds, body) = conjunction(cond, body);
                self.block(format_args!("}} else if ({})", all_of(conds)), body)
            }
            _ => self.block(format_args!("}} else"), otherwise),
        }
    }

    /// A loop whose body is one short statement. False, with nothing printed, if it is longer.
    fn on_one_line(&mut self, head: &str, body: &[Stmt]) -> Result<bool, Diagnostic> {
        let [stmt] = body else { return Ok(false) };
        if !stmt.inner().is_empty() || matches!(stmt, Stmt::Declare(_)) {
            return Ok(false);
        }
        self.find_indices(body);
        let (start, line) = (self.text.len(), self.lines.count());
        self.stmt(stmt)?;
        let text = self.text[start..].trim().to_string();
        let is_short = self.lines.count() == line + 1 && self.depth * 2 + head.len() + 1 + text.len() <= MOST_COLUMNS;
        self.text.truncate(start);
        self.lines.truncate(line);
        if is_short {
            if let Stmt::Store { memory, .. } = stmt {
                self.lines.push_store(*memory);
            }
            self.line(format_args!("{head} {text}"));
        }
        Ok(is_short)
    }

    fn block(&mut self, head: std::fmt::Arguments<'_>, body: &[Stmt]) -> Result<(), Diagnostic> {
        self.line(format_args!("{head} {{"));
        self.depth += 1;
        self.body(body)?;
        self.depth -= 1;
        self.line(format_args!("}}"));
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), Diagnostic> {
        match stmt {
            Stmt::Op { note, body } => self.op(*note, body)?,
            Stmt::Let { var, value } => {
                let is_wide = needs_64_bits(value) || needs_64_bits(&Expr::var(var));
                let c_type = if is_wide { "long long" } else { "int" };
                self.line(format_args!("const {c_type} {} = {};", var.name(), c_index(value)));
            }
            Stmt::Declare(array) => self.declare(&[*array])?,
            Stmt::Load { to, memory, index } => {
                let (target, place) = (self.regs(to)?, self.place(*memory, index, to, true)?);
                let source = match self.caching_of_loads(*memory) {
                    Some(caching) => format!("{}(&{place})", caching.functions()[0]),
                    None => place,
                };
                let definition = self.defined_by_load.contains(&to.array);
                let c_type = self.moved_type(to)?;
                let head = if definition { format!("const {c_type} ") } else { String::new() };
                self.line(format_args!("{head}{target} = {source};"));
            }
            Stmt::Store { memory, index, from } => {
                let (target, source) = (self.place(*memory, index, from, false)?, self.regs(from)?);
                self.lines.push_store(*memory);
                match self.program.memories[*memory].caching {
                    Some(caching) => self.line(format_args!("{}(&{target}, {source});", caching.functions()[1])),
                    None => self.line(format_args!("{target} = {source};")),
                }
            }
            Stmt::Lookup { vars, table, index } => self.lookup(vars, *table, index)?,
            Stmt::Set { to, value } if self.program.registers[to.array].vector > 1 => {
                let value = vector_literal(self.program.registers[to.array].dtype, to.count, *value)?;
                let target = self.regs(to)?;
                self.line(format_args!("{target} = {value};"));
            }
            Stmt::Set { to, value } => {
                let value = literal(self.program.registers[to.array].dtype, *value);
                for at in 0..to.count {
                    let target = self.reg(to, at)?;
                    self.line(format_args!("{target} = {value};"));
                }
            }
            Stmt::Move { to, from } if is_word(&self.program.registers, [to, from]) => {
                let (target, source) = (self.word(to)?, self.word(from)?);
                self.line(format_args!("{target} = {source};"));
            }
            Stmt::Move { to, from } => {
                for at in 0..to.count {
                    let (target, source) = (self.reg(to, at)?, self.reg(from, at)?);
                    self.line(format_args!("{target} = {source};"));
                }
            }
            Stmt::For { counter, unroll: Unroll::Full, body }
                if constants::has_to_be_constant(self.program, counter, body, &self.constants) =>
            {
                self.loop_over_constants(&counter.var, body)?;
            }
            Stmt::For { counter, unroll, body } => {
                let next = match unroll {
                    Unroll::Claimed(next) => Some(register(self.program, *next, &Expr::constant(0))?),
                    Unroll::Auto | Unroll::By(_) | Unroll::Full => None,
                };
                let head = loop_head(counter, next.as_deref());
                let pragma = match unroll {
                    Unroll::Auto | Unroll::Claimed(_) => None,
                    Unroll::By(factor) => Some(format!("#pragma unroll {factor}")),
                    Unroll::Full => Some("#pragma unroll".to_string()),
                };
                match pragma {
                    None => self.repeated(counter, &head, body)?,
                    Some(pragma) => {
                        self.line(format_args!("{pragma}"));
                        if !self.on_one_line(&head, body)? {
                            self.block(format_args!("{head}"), body)?;
                        }
                    }
                }
            }
            Stmt::If { cond, body } => {
                let (conds, body) = conjunction(cond, body);
                match body {
                    [Stmt::Elect { body }] => {
                        let elected = tensor_copies::is_elected(self.uses);
                        self.block(format_args!("if ({} && {elected})", all_of(conds)), body)?;
                    }
                    _ => self.block(format_args!("if ({})", all_of(conds)), body)?,
                }
            }
            Stmt::Unless { conds, body } => self.block(format_args!("if (!({}))", all_of(conds)), body)?,
            Stmt::IfValue { cond, body, .. } => {
                let cond = self.values.text(cond)?;
                self.block(format_args!("if ({cond})"), body)?;
            }
            Stmt::Assign { to, value } => {
                let (target, value) = (self.reg(to, 0)?, self.values.assigned(to.array, value)?);
                self.line(format_args!("{target} = {value};"));
            }
            Stmt::AssignPair { to, values: [low, high] } => {
                let text = self.values.assigned_pair(to, [low, high])?;
                let head = if self.defined_by_load.contains(&to.array) { "const float2 " } else { "" };
                self.line(format_args!("{head}{text};"));
            }
            Stmt::LetValue { var, value } => {
                let definition = self.values.named(var, value)?;
                self.line(format_args!("{definition};"));
            }
            Stmt::Role { .. } => _ = self.roles(std::slice::from_ref(stmt))?,
            Stmt::Elect { body } => {
                let cond = tensor_copies::is_elected(self.uses);
                self.block(format_args!("if ({cond})"), body)?;
            }
            Stmt::TensorCopy(copy) => {
                let call = tensor_copies::call(self.program, self.uses, copy);
                self.line(format_args!("{call};"));
            }
            Stmt::Mma(product) => {
                let Mma { inst, sums, a, b } = &**product;
                let call = mma::call(self.program, self.uses, *inst, [sums, a, b]);
                self.line(format_args!("{call};"));
            }
            Stmt::TensorMma(product) => {
                let call = tensor::product_call(self.program, self.uses, product)?;
                self.line(format_args!("{call};"));
            }
            Stmt::TensorMove(moved) => {
                let call = tensor::move_call(self.program, self.uses, moved);
                self.line(format_args!("{call};"));
            }
            Stmt::WarpgroupMma(product) => {
                let call = wgmma::call(self.program, self.uses, product)?;
                self.line(format_args!("{call};"));
            }
            Stmt::Advance { cursor, by } => self.advance(&self.program.cursors[*cursor], by),
            Stmt::Inst(call) if wrapped::is_wrapped(&call.inst.info()) => {
                let text = self.wrapped_call(call)?;
                self.line(format_args!("{text};"));
            }
            Stmt::Inst(call) => {
                let text = self.call(call)?;
                let result = match &call.to {
                    Some(to) => format!("{} = ", self.reg(to, 0)?),
                    None => String::new(),
                };
                self.line(format_args!("{result}{text};"));
            }
        }
        Ok(())
    }

    fn repeated(&mut self, counter: &Counter, head: &str, body: &[Stmt]) -> Result<(), Diagnostic> {
        let Some(stages) = Stages::of(counter, body) else { return self.block(format_args!("{head}"), body) };
        self.line(format_args!("{}", stages.before()));
        self.line(format_args!("{head} {{"));
        self.depth += 1;
        self.body(&stages.body)?;
        for line in stages.after() {
            self.line(format_args!("{line}"));
        }
        self.depth -= 1;
        self.line(format_args!("}}"));
        Ok(())
    }

    /// A loop that calls a lambda with constants.
    fn loop_over_constants(&mut self, var: &Var, body: &[Stmt]) -> Result<(), Diagnostic> {
        let (unroll, count) = (self.uses.visible(UNROLL), var.range().hi + 1);
        self.uses_constants = true;
        self.constants.push(var.clone());
        // An inner lambda may not use the parameter in constants, since it captures it.
        let has_inner = constants::has_loops_over_constants(self.program, body, &self.constants);
        let parameter = if has_inner { PARAMETER } else { var.name() };
        self.line(format_args!("{unroll}<{count}>([&](auto {parameter}) {{"));
        self.depth += 1;
        if has_inner {
            self.line(format_args!("constexpr int {} = {PARAMETER};", var.name()));
        }
        self.body(body)?;
        self.depth -= 1;
        self.constants.pop();
        self.line(format_args!("}});"));
        Ok(())
    }

    fn op(&mut self, note: Handle<Note>, body: &[Stmt]) -> Result<(), Diagnostic> {
        let outer = self.note.replace(note);
        let Note { title, details, span, .. } = &self.program.notes[note];
        self.line(format_args!("// {title:<width$} {span}", width = PLACE_COLUMN.saturating_sub(self.depth * 2)));
        for detail in details {
            self.line(format_args!("//   {detail}"));
        }
        self.body(body)?;
        self.note = outer;
        Ok(())
    }

    /// A warp goes on by so many stages of a ring.
    fn advance(&mut self, cursor: &Cursor, by: &Expr) {
        let (stage, phase, stages) = (cursor.stage.name(), cursor.phase.name(), cursor.stages);
        if by.as_const() != Some(1) {
            let by = c_index(by);
            if stages == 1 {
                self.line(format_args!("{phase} ^= {by} & 1;"));
                return;
            }
            self.line(format_args!("{stage} += {by};"));
            self.line(format_args!("{phase} ^= {stage}/{stages} & 1;"));
            self.line(format_args!("{stage} %= {stages};"));
            return;
        }
        if stages == 1 {
            self.line(format_args!("{phase} ^= 1;"));
            return;
        }
        self.line(format_args!("if (++{stage} == {stages}) {{"));
        self.line(format_args!("  {stage} = 0;"));
        self.line(format_args!("  {phase} ^= 1;"));
        self.line(format_args!("}}"));
    }

    /// The lines that define where warps are in rings.
    pub(crate) fn cursors(&self) -> Vec<String> {
        let of = |cursor: &Cursor| {
            let begins: Vec<String> = cursor.vars().map(|var| format!("{} = 0", var.name())).collect();
            format!("int {};", begins.join(", "))
        };
        self.program.cursors.iter().map(|(_, cursor)| of(cursor)).collect()
    }

    fn is_combined(&self, array: Handle<RegArray>) -> bool {
        self.combined.contains(&array)
    }

    fn reg(&self, regs: &Regs, at: i64) -> Result<String, Diagnostic> {
        register(self.program, regs.array, &normalize(&(&regs.first + at * regs.step)))
    }

    /// The word that begins at the first of these registers.
    fn word(&mut self, regs: &Regs) -> Result<String, Diagnostic> {
        if self.program.registers[regs.array].vector > 1 {
            return Ok(format!("reinterpret_cast<unsigned int&>({})", self.reg(regs, 0)?));
        }
        Ok(self.values.word(&pointer(self.program, regs.array, &regs.first)))
    }

    fn regs(&self, regs: &Regs) -> Result<String, Diagnostic> {
        let RegArray { name, dtype, vector, len } = &self.program.registers[regs.array];
        if *vector > 1
            && regs.count == *vector
            && regs.step == 1
            && let Some(first) = regs.first.as_const().filter(|first| first % vector == 0)
        {
            return Ok(vector_name(name, len / vector, first / vector));
        }
        match regs.count {
            1 => self.reg(regs, 0),
            _ if regs.step == 1 && *vector == 1 => {
                Ok(format!("reinterpret_cast<{}&>({})", self.moved_type(regs)?, self.reg(regs, 0)?))
            }
            count => {
                let parts: Result<Vec<String>, Diagnostic> = (0..count).map(|at| self.reg(regs, at)).collect();
                Ok(format!("make_{}({})", vector_type(*dtype, count)?, parts?.join(", ")))
            }
        }
    }

    /// How loads are cached. Of memory that the kernel writes, they have no hint: nvcc may move CUDA's functions for it, which are
    /// no accesses to memory in its eyes, across stores and barriers.
    fn caching_of_loads(&self, memory: Handle<Memory>) -> Option<Caching> {
        let memory = &self.program.memories[memory];
        let is_only_read = matches!(memory.space, MemorySpace::Global { read_only: true, may_alias: false });
        memory.caching.filter(|_| is_only_read)
    }

    /// The type through which registers move. Vectors of 32 bytes consist of words of 64 bits; so do the shorter vectors of
    /// an array that also moves in 32 bytes, so that NVRTC does not take words apart.
    fn moved_type(&self, regs: &Regs) -> Result<String, Diagnostic> {
        let dtype = self.program.registers[regs.array].dtype;
        let bytes = regs.count * dtype.bytes();
        let is_wide = regs.step == 1 && self.uses.of_array(regs.array).widest == 32;
        let words = bytes / DType::B64.bytes();
        if is_wide && words > 0 && regs.count > 1 {
            vector_type(DType::B64, words)
        } else {
            vector_type(dtype, regs.count)
        }
    }

    /// The place in memory that these registers are moved to or from.
    fn place(&self, memory: Handle<Memory>, index: &Expr, regs: &Regs, reads: bool) -> Result<String, Diagnostic> {
        let memory = &self.program.memories[memory];
        let dtype = self.program.registers[regs.array].dtype;
        let name = &memory.name;
        if regs.count == 1 && dtype == memory.dtype {
            return Ok(format!("{name}[{}]", c_index(index)));
        }
        let c_type = self.moved_type(regs)?;
        let c_type = if reads { format!("const {c_type}") } else { c_type };
        // If the index counts whole vectors, so does the text: NVRTC then never splits them.
        let elements = regs.count * dtype.bytes() / memory.dtype.bytes();
        let vector = normalize(&(index / elements));
        Ok(if normalize(&(&vector * elements)) == normalize(index) {
            format!("reinterpret_cast<{c_type}*>({name})[{}]", c_index(&vector))
        } else {
            format!("reinterpret_cast<{c_type}&>({name}[{}])", c_index(index))
        })
    }

    fn lookup(&mut self, vars: &[Var], table: Handle<Memory>, index: &Expr) -> Result<(), Diagnostic> {
        let Memory { name: table, dtype, .. } = &self.program.memories[table];
        if let [var] = vars {
            let c_type = c_type(*dtype);
            self.line(format_args!("const {c_type} {} = {table}[{}];", var.name(), c_index(index)));
            return Ok(());
        }
        let entries: Vec<&str> = vars.iter().map(Var::name).collect();
        let vector = vector_type(*dtype, vars.len() as i64)?;
        let whole = lookup_name(entries.iter().copied());
        self.line(format_args!(
            "const {vector} {whole} = reinterpret_cast<const {vector}&>({table}[{}]);",
            c_index(index)
        ));
        let parts = entries.iter().zip(PARTS).map(|(entry, part)| format!("{entry} = {whole}.{part}"));
        let single = c_type(*dtype);
        self.line(format_args!("const {single} {};", parts.collect::<Vec<_>>().join(", ")));
        Ok(())
    }

    /// The CUDA text of an instruction, with its operands filled in.
    fn call(&mut self, call: &Call) -> Result<String, Diagnostic> {
        let argument = |expr: &Expr| match expr.as_const() {
            Some(selector) if call.inst == Inst::BytePermute => format!("{selector:#06x}"),
            Some(_) | None => c_index(expr),
        };
        let name = |memory: &Handle<Memory>| &self.program.memories[*memory].name;
        let memory = call.memory.iter().map(|(memory, index)| Ok(format!("{}[{}]", name(memory), c_index(index))));
        let registers = call.from.iter().map(|regs| match self.immediates.get(&regs.array) {
            Some(constant) => Ok(constant.clone()),
            None => self.reg(regs, 0),
        });
        let arguments = call.arguments.iter().map(|expr| Ok(argument(expr)));
        let operands: Result<Vec<String>, Diagnostic> = memory.chain(registers).chain(arguments).collect();
        let operands = operands?;
        if let ([(memory, _)], [target, sources @ ..]) = (&call.memory[..], &operands[..])
            && call.inst.info().gives_old
        {
            let dtype = self.program.memories[*memory].dtype;
            return Ok(self.values.atomic((call.inst, call.ordering), dtype, target, sources));
        }
        self.called.insert(call.inst);
        Ok(asynchronous::visible(self.uses, call.inst, filled(call.inst.info().cuda, &operands)?))
    }

    /// A call of the function around an instruction: its registers, and the array and the byte at which its memory begins.
    fn wrapped_call(&self, call: &Call) -> Result<String, Diagnostic> {
        let regs = call.to.as_ref().or(call.from.first());
        let (Some(regs), Some((memory, _)), Some([offset, rest])) =
            (regs, call.memory.first(), constants::split(self.program, call, &self.constants))
        else {
            return Err(unprintable("a function around an instruction without registers or memory".to_string()));
        };
        let regs = pointer(self.program, regs.array, &regs.first);
        let operands = [regs, self.program.memories[*memory].name.clone(), c_index(&rest)];
        Ok(wrapped::call(self.uses, &call.inst.info(), &c_index(&offset), &operands))
    }
}

/// A text with each `%` replaced by an operand.
fn filled(text: &str, operands: &[String]) -> Result<String, Diagnostic> {
    let parts: Vec<&str> = text.split('%').collect();
    if parts.len() != operands.len() + 1 {
        return Err(unprintable(format!("`{text}` with {} operands", operands.len())));
    }
    let after = parts[1..].iter().zip(operands).map(|(part, operand)| format!("{operand}{part}"));
    Ok(std::iter::once(parts[0].to_string()).chain(after).collect())
}

/// The variable that holds several entries of a table.
pub(crate) fn lookup_name<'a>(entries: impl Iterator<Item = &'a str>) -> String {
    entries.collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests;
