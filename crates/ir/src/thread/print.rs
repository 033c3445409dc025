//! Prints the thread level as text, for snapshots and `emit --stage thread`.

use std::fmt;

use tilewright_expr::{Expr, Var};

use crate::arena::Handle;
use crate::thread::program::{Call, Cond, Memory, MemorySpace, Mma, Program, Stmt, Unroll};
use crate::thread::registers::{RegArray, Regs};
use crate::thread::ring::{Cursor, EngineWay, Reach, Ring, TensorCopy, TensorMapRecipe, TensorPart};
use crate::thread::tensor::{Accumulates, TensorLeft, TensorMma, TensorMove};
use crate::thread::value::Value;
use crate::thread::wgmma::{LeftMatrix, SharedMatrix, WarpgroupMma};
use crate::tile::AtomicOp;

impl fmt::Display for Cond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cond::Less(a, b) => write!(f, "{a} < {b}"),
            Cond::Equal(a, b) => write!(f, "{a} == {b}"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = &self.grid;
        writeln!(f, "program {} for {} grid ({x},{y},{z}) threads {}", self.name, self.target, self.threads)?;
        for size in &self.sizes {
            writeln!(f, "  size {}", size.name())?;
        }
        for array in &self.scalars {
            let RegArray { name, dtype, .. } = &self.registers[*array];
            writeln!(f, "  scalar {dtype} {name}")?;
        }
        for (_, memory) in self.memories.iter() {
            let space = match memory.space {
                MemorySpace::Global { read_only: true, .. } => "global const".to_string(),
                MemorySpace::Global { read_only: false, .. } => "global".to_string(),
                MemorySpace::Shared => "shared".to_string(),
                MemorySpace::SharedView { of } => format!("shared, view of {},", self.memories[of].name),
                MemorySpace::SharedInside { of } => format!("shared, inside {},", self.memories[of].name),
                MemorySpace::Table => "table".to_string(),
            };
            let Memory { name, dtype, elements, stages, alignment, caching, .. } = memory;
            let stages = if *stages == 1 { String::new() } else { format!(" in {stages} stages") };
            let caching = caching.map(|caching| format!(" {}", caching.name())).unwrap_or_default();
            writeln!(f, "  {space} {name}: {dtype}[{elements}]{stages} align {alignment}{caching}")?;
        }
        for (_, map) in self.maps.iter() {
            writeln!(f, "  {}", self.map(map))?;
        }
        for ring in &self.rings {
            writeln!(f, "  {}", self.ring(ring))?;
        }
        if let Some(tensor) = &self.tensor_memory {
            let (columns, base) = (tensor.columns, &self.registers[tensor.base].name);
            writeln!(f, "  tensor memory: {columns} columns from {base} on")?;
        }
        self.print_body(f, &self.body, 1)
    }
}

impl Program {
    fn regs(&self, regs: &Regs) -> String {
        let name = &self.registers[regs.array].name;
        match regs.count {
            1 => format!("{name}[{}]", regs.first),
            count if regs.step == 1 => format!("{name}[{}..+{count}]", regs.first),
            count => format!("{name}[{}..+{count} by {}]", regs.first, regs.step),
        }
    }

    fn place(&self, memory: Handle<Memory>, index: &Expr) -> String {
        format!("{}[{index}]", self.memories[memory].name)
    }

    /// `map a_map of a (m, k) by (k, 1): boxes of 32 x 128, the 64-byte swizzle`, the box fastest dimension first.
    fn map(&self, map: &TensorMapRecipe) -> String {
        let TensorMapRecipe { name, tensor, extents, strides, boxes, .. } = map;
        let list = |exprs: &[Expr]| exprs.iter().map(Expr::to_string).collect::<Vec<_>>().join(", ");
        let sides: Vec<String> = boxes.box_dims.iter().map(i64::to_string).collect();
        let (tensor, extents, strides) = (&self.memories[*tensor].name, list(extents), list(strides));
        let (sides, swizzle) = (sides.join(" x "), boxes.swizzle.name());
        format!("map {name} of {tensor} ({extents}) by ({strides}): boxes of {sides}, {swizzle}")
    }

    /// `ring t: left, right in 3 stages, full t_full, empty t_empty for 4 warps`
    fn ring(&self, ring: &Ring) -> String {
        let Ring { name, payload, stages, full, empty, consumers } = ring;
        let names: Vec<&str> = payload.iter().map(|memory| self.memories[*memory].name.as_str()).collect();
        let name_of = |memory: &Handle<Memory>| &self.memories[*memory].name;
        let empty = empty.iter().map(|empty| format!(", empty {} for {consumers} warps", name_of(empty)));
        let payload = names.join(", ");
        format!("ring {name}: {payload} in {stages} stages, full {}{}", name_of(full), empty.collect::<String>())
    }

    /// An instruction as text: `r[2] = byte_permute r[0], r[1], 0x5140`.
    fn call(&self, call: &Call) -> String {
        let memory = call.memory.iter().map(|(memory, index)| self.place(*memory, index));
        let registers = call.from.iter().map(|regs| self.regs(regs));
        let operands: Vec<String> = memory.chain(registers).chain(call.arguments.iter().map(Expr::to_string)).collect();
        let result = call.to.as_ref().map(|to| format!("{} = ", self.regs(to))).unwrap_or_default();
        let text = format!("{result}{} {}{}", call.inst.info().name, operands.join(", "), call.ordering);
        text.trim_end().to_string()
    }

    /// `tensor_copy left[0] = a_map[t*32, y], 4096 bytes at t_full[0]`, or `tensor_copy c_map[x, y] += tile[0], 4096 bytes`
    fn tensor_copy(&self, copy: &TensorCopy) -> String {
        let TensorCopy { part, shared, bytes, way } = copy;
        let place = |(memory, index): &(Handle<Memory>, Expr)| self.place(*memory, index);
        let (name, part) = match part {
            TensorPart::Box { map, coordinates } => {
                let at: Vec<String> = coordinates.iter().map(Expr::to_string).collect();
                ("tensor_copy", format!("{}[{}]", self.maps[*map].name, at.join(", ")))
            }
            TensorPart::Run { first } => ("bulk_copy", place(first)),
        };
        let shared = place(shared);
        match way {
            EngineWay::ToShared { full, reach } => {
                let reach = match reach {
                    Reach::Own => String::new(),
                    Reach::Group { mask, first, .. } => format!(" of CTAs {mask:#b} << {first}"),
                    Reach::OfPair { .. } => " of the pair".to_string(),
                    Reach::OfPairs { mask, first, .. } => format!(" of the pairs of CTAs {mask:#b} << {first}"),
                };
                format!("{name} {shared} = {part}, {bytes} bytes at {}{reach}", place(full))
            }
            EngineWay::ToTensor { combined } => {
                let sign = combined.map(AtomicOp::symbol).unwrap_or_default();
                format!("{name} {part} {sign}= {shared}, {bytes} bytes")
            }
        }
    }

    /// `part[0..+32] = tensor[(warp << 21)]`
    fn tensor_move(&self, moved: &TensorMove) -> String {
        let (registers, columns) = (self.regs(&moved.registers), format!("tensor[{}]", moved.address));
        if moved.is_store { format!("{columns} = {registers}") } else { format!("{registers} = {columns}") }
    }

    /// `sums[0..+32] += wgmma.n64 f32.bf16.bf16 left[0], right[0]`
    fn warpgroup_mma(&self, product: &WarpgroupMma) -> String {
        let WarpgroupMma { inst, n, sums, a, b, accumulates } = product;
        let left = match a {
            LeftMatrix::Registers(regs) => self.regs(regs),
            LeftMatrix::Shared(part) => self.shared_matrix(part),
        };
        let sign = if *accumulates { "+=" } else { "=" };
        format!("{} {sign} wgmma.n{n} {} {left}, {}", self.regs(sums), inst.info().types, self.shared_matrix(b))
    }

    fn shared_matrix(&self, part: &SharedMatrix) -> String {
        let turned = if part.is_transposed { " transposed" } else { "" };
        format!("{}{turned}", self.place(part.memory, &(&part.first + &part.offset)))
    }

    /// A value as text: `exp(v[0] - max[0])`.
    fn value(&self, value: &Value) -> String {
        match value {
            Value::Const(_, value) => value.to_string(),
            Value::Index(_, index) => index.to_string(),
            Value::Reg(array, at) => format!("{}[{at}]", self.registers[*array].name),
            Value::Cast(dtype, narrowing, of) => format!("{}({})", narrowing.title(*dtype), self.value(of)),
            Value::Bits(dtype, of) => format!("{dtype}.bits({})", self.value(of)),
            Value::Part(dtype, of, at) => format!("{dtype}.part({}, {at})", self.value(of)),
            Value::With(of, at, part) => format!("with({}, {at}, {})", self.value(of), self.value(part)),
            Value::Op(op, operands) => match (op.sign(), &operands[..]) {
                (Some(sign), [a, b]) => format!("{} {sign} {}", self.operand(a), self.operand(b)),
                (Some(sign), [a]) => format!("{sign}{}", self.operand(a)),
                _ => {
                    let operands: Vec<String> = operands.iter().map(|operand| self.value(operand)).collect();
                    format!("{op}({})", operands.join(", "))
                }
            },
        }
    }

    /// An operand of an operator, in parentheses if it is itself written with an operator.
    fn operand(&self, value: &Value) -> String {
        let has_operator = match value {
            Value::Op(op, operands) => op.sign().is_some() && operands.len() == 2,
            Value::Index(_, index) => index.operands().is_some(),
            Value::Const(..) | Value::Reg(..) | Value::Cast(..) | Value::Bits(..) => false,
            Value::Part(..) | Value::With(..) => false,
        };
        if has_operator { format!("({})", self.value(value)) } else { self.value(value) }
    }

    fn print_body(&self, f: &mut fmt::Formatter<'_>, body: &[Stmt], depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        for stmt in body {
            write!(f, "{indent}")?;
            match stmt {
                Stmt::Op { note, body } => {
                    let note = &self.notes[*note];
                    writeln!(f, "{}  // {}", note.title, note.span)?;
                    self.print_body(f, body, depth + 1)?;
                }
                Stmt::Let { var, value } => writeln!(f, "let {} = {value}", var.name())?,
                Stmt::Declare(array) => {
                    let array = &self.registers[*array];
                    let vectors =
                        if array.vector > 1 { format!(" in vectors of {}", array.vector) } else { String::new() };
                    writeln!(f, "registers {}: {}[{}]{vectors}", array.name, array.dtype, array.len)?;
                }
                Stmt::Load { to, memory, index } => {
                    writeln!(f, "{} = load.{} {}", self.regs(to), to.count, self.place(*memory, index))?;
                }
                Stmt::Store { memory, index, from } => {
                    writeln!(f, "store.{} {} = {}", from.count, self.place(*memory, index), self.regs(from))?;
                }
                Stmt::Lookup { vars, table, index } => {
                    let names: Vec<&str> = vars.iter().map(Var::name).collect();
                    writeln!(f, "let {} = lookup.{} {}", names.join(", "), vars.len(), self.place(*table, index))?;
                }
                Stmt::Set { to, value } => writeln!(f, "{} = {value}", self.regs(to))?,
                Stmt::Move { to, from } => writeln!(f, "{} = {}", self.regs(to), self.regs(from))?,
                Stmt::For { counter, unroll, body } => {
                    let unrolled = match unroll {
                        Unroll::Auto => String::new(),
                        Unroll::By(factor) => format!(" unrolled by {factor}"),
                        Unroll::Full => " unrolled".to_string(),
                        Unroll::Claimed(next) => format!(" then {}", self.registers[*next].name),
                    };
                    writeln!(f, "for {counter}{unrolled}")?;
                    self.print_body(f, body, depth + 1)?;
                }
                Stmt::If { cond, body } => {
                    writeln!(f, "if {cond}")?;
                    self.print_body(f, body, depth + 1)?;
                }
                Stmt::Unless { conds, body } => {
                    let conds: Vec<String> = conds.iter().map(Cond::to_string).collect();
                    writeln!(f, "unless {}", conds.join(" and "))?;
                    self.print_body(f, body, depth + 1)?;
                }
                Stmt::IfValue { cond, body, .. } => {
                    writeln!(f, "when {}", self.value(cond))?;
                    self.print_body(f, body, depth + 1)?;
                }
                Stmt::Assign { to, value } => writeln!(f, "{} = {}", self.regs(to), self.value(value))?,
                Stmt::AssignPair { to, values: [low, high] } => {
                    writeln!(f, "{} = {}, {}", self.regs(to), self.value(low), self.value(high))?;
                }
                Stmt::LetValue { var, value } => writeln!(f, "let {} = {}", var.name(), self.value(value))?,
                Stmt::Mma(product) => {
                    let Mma { inst, sums, a, b } = &**product;
                    let (sums, a, b) = (self.regs(sums), self.regs(a), self.regs(b));
                    writeln!(f, "{sums} += {} {a}, {b}", inst.info().name)?;
                }
                Stmt::Role { role, body } => {
                    writeln!(f, "role {}", self.roles[*role].name)?;
                    self.print_body(f, body, depth + 1)?;
                }
                Stmt::Elect { body } => {
                    writeln!(f, "elect")?;
                    self.print_body(f, body, depth + 1)?;
                }
                Stmt::TensorCopy(copy) => writeln!(f, "{}", self.tensor_copy(copy))?,
                Stmt::TensorMma(product) => {
                    let TensorMma { kind, sums, a, b, accumulates, .. } = &**product;
                    let sign = match accumulates {
                        Accumulates::Never => "=".to_string(),
                        Accumulates::Always => "+=".to_string(),
                        Accumulates::If(flag) => format!("= ({}) +", self.regs(flag)),
                    };
                    let a = match a {
                        TensorLeft::Shared(a) => self.shared_matrix(a),
                        TensorLeft::Tensor(a) => format!("tensor[{a}]"),
                    };
                    let b = self.shared_matrix(b);
                    writeln!(f, "tensor[{sums}] {sign} tcgen05.{} {a}, {b}", kind.name())?;
                }
                Stmt::TensorMove(moved) => writeln!(f, "{}", self.tensor_move(moved))?,
                Stmt::WarpgroupMma(product) => writeln!(f, "{}", self.warpgroup_mma(product))?,
                Stmt::Advance { cursor, by } => {
                    let Cursor { stage, phase, stages } = &self.cursors[*cursor];
                    let by = if by.as_const() == Some(1) { String::new() } else { format!(" by {by}") };
                    writeln!(f, "advance {}, {} of {stages}{by}", stage.name(), phase.name())?;
                }
                Stmt::Inst(call) => writeln!(f, "{}", self.call(call))?,
            }
        }
        Ok(())
    }
}
