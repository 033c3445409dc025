//! Prints the tile level as text, for snapshots and `emit --stage tile`.

use std::fmt;

use tilewright_diag::counted;
use tilewright_expr::{Expr, Var};

use crate::arena::Handle;
use crate::tile::atomic::{Atomic, AtomicChange};
use crate::tile::buffer::{Buffer, Space};
use crate::tile::combiner::Combiner;
use crate::tile::element::{Claim, ElementStmt, Parallel};
use crate::tile::kernel::{If, Kernel, Loop, Part, ScalarParameter, Size, Stmt, Unroll};
use crate::tile::loaded::LoadedIndex;
use crate::tile::op::Op;
use crate::tile::ring::{CLAIMED_TILES, RingKind};
use crate::tile::role::Role;
use crate::tile::tiles::Tile;
use crate::tile::value::{Access, Coord, Value};

/// The index of the element at a row-major position of a shape.
pub fn element_index(shape: &[i64], element: i64) -> Vec<i64> {
    let mut rest = element;
    let mut index: Vec<i64> = Vec::with_capacity(shape.len());
    for extent in shape.iter().rev() {
        index.push(rest % extent.max(&1));
        rest /= extent.max(&1);
    }
    index.reverse();
    index
}

/// An index in messages: `7`, or `(0, 3)` where there are several dimensions.
pub fn index_title(index: &[i64]) -> String {
    let digits: Vec<String> = index.iter().map(i64::to_string).collect();
    match &digits[..] {
        [only] => only.clone(),
        several => format!("({})", several.join(", ")),
    }
}

/// A tile as text: `b[s, 0, ..]`, where `..` stands for a whole dimension.
pub fn tile_title(kernel: &Kernel, tile: &Tile) -> String {
    let Some(buffer) = kernel.buffers.get(tile.buffer) else { return "?".to_string() };
    let whole = |d: usize| buffer.shape.get(d) == Some(&tile.extents[d]) && tile.starts[d].as_const() == Some(0);
    let mut last = tile.extents.len();
    while last > 0 && whole(last - 1) {
        last -= 1;
    }
    let index = |d: usize| match (whole(d) && tile.extents[d] > 1, tile.extents[d], &tile.starts[d]) {
        (true, _, _) => "..".to_string(),
        (false, 1, start) => start.to_string(),
        (false, extent, start) => match start.as_const() {
            Some(at) => format!("{at}..{}", at.saturating_add(extent)),
            None => format!("{start}..+{extent}"),
        },
    };
    let indices: Vec<String> = (0..last).map(index).collect();
    if indices.is_empty() { buffer.name.clone() } else { format!("{}[{}]", buffer.name, indices.join(", ")) }
}

impl Kernel {
    /// An op as text: `permute_layout(b[s], a[s])`.
    pub fn op_title(&self, op: &Op) -> String {
        let mut parts: Vec<String> = op.operands.iter().map(|tile| tile_title(self, tile)).collect();
        parts.extend(op.kind.words());
        format!("{}({})", op.kind.info().name, parts.join(", "))
    }
}

fn space_name(space: Space) -> &'static str {
    match space {
        Space::Global(direction) => direction.name(),
        Space::Shared => "shared",
        Space::Fragment => "fragment",
        Space::Tensor => "tensor",
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = &self.grid;
        let cluster = self.cluster.map_or(String::new(), |cluster| format!(" cluster {}", cluster.ctas));
        writeln!(f, "kernel {} grid ({x},{y},{z}){cluster} threads {}", self.name, self.threads)?;
        for Size { var, .. } in &self.sizes {
            let multiple =
                if var.multiple() > 1 { format!(", a multiple of {}", var.multiple()) } else { String::new() };
            writeln!(f, "  size {}: up to {}{multiple}", var.name(), var.range().hi)?;
        }
        for ScalarParameter { name, dtype, .. } in &self.scalars {
            writeln!(f, "  scalar {name}: {dtype}")?;
        }
        for LoadedIndex { var, of, most, .. } in &self.loaded {
            writeln!(f, "  index {}: {}, from 0 to {most}", var.name(), value_title(self, of))?;
        }
        for (_, Role { name, first, warps, .. }) in self.roles.iter() {
            writeln!(f, "  role {name}: warps {first}..{}", first + warps)?;
        }
        if self.allow_conversions {
            writeln!(f, "  conversions allowed")?;
        }
        for (_, buffer) in self.buffers.iter() {
            print_buffer(f, self, buffer)?;
        }
        for (_, ring) in self.rings.iter() {
            let names: Vec<&str> = ring.buffers.iter().map(|buffer| self.buffers[*buffer].name.as_str()).collect();
            match ring.kind {
                RingKind::Queue => {
                    writeln!(f, "  ring {}: {} in {}", ring.name, names.join(", "), counted(ring.stages, "stage"))?;
                }
                RingKind::Exchange => writeln!(f, "  exchange {}: {}", ring.name, names.join(", "))?,
                RingKind::Claims => {
                    let stages = counted(ring.stages, "stage");
                    writeln!(f, "  ring {}: {CLAIMED_TILES} in {stages}", ring.name)?;
                }
            }
        }
        print_body(f, self, &self.body, 1)
    }
}

fn print_buffer(f: &mut fmt::Formatter<'_>, kernel: &Kernel, buffer: &Buffer) -> fmt::Result {
    let fixed = || buffer.shape.iter().map(i64::to_string).collect::<Vec<_>>();
    let shape = buffer.dynamic_shape.as_ref().map_or_else(fixed, |s| s.extents.iter().map(Expr::to_string).collect());
    write!(f, "  {} {}: {}({})", space_name(buffer.space), buffer.name, buffer.dtype, shape.join(","))?;
    if let Some(owner) = buffer.view_of {
        write!(f, " view of {}", kernel.buffers[owner].name)?;
    }
    match &buffer.dynamic_shape {
        None => match &buffer.layout {
            Some(layout) => writeln!(f, " = {layout}"),
            None => writeln!(f),
        },
        Some(shape) => {
            let list = |exprs: &[Expr]| exprs.iter().map(Expr::to_string).collect::<Vec<_>>().join(",");
            writeln!(f, " = run-time ({}):({})", list(&shape.extents), list(&shape.strides))
        }
    }
}

fn print_body(f: &mut fmt::Formatter<'_>, kernel: &Kernel, body: &[Stmt], depth: usize) -> fmt::Result {
    let indent = depth * 2;
    for stmt in body {
        match stmt {
            Stmt::Op(op) => print_op(f, kernel, &kernel.ops[*op], depth)?,
            Stmt::Loop(Loop { counter, unroll, part, body, .. }) => {
                let (line, inside) = match unroll {
                    Unroll::No => (format!("serial {counter}"), depth + 1),
                    Unroll::Once => (format!("let {} = {}", counter.var.name(), counter.begin), depth),
                    Unroll::Full => (format!("unroll {counter}"), depth + 1),
                    Unroll::Pipelined(None) => (format!("pipelined {counter}"), depth + 1),
                    Unroll::Pipelined(Some(stages)) => (format!("pipelined {stages} {counter}"), depth + 1),
                    Unroll::Claimed => (format!("claimed {counter}"), depth + 1),
                };
                let part = part.map_or(String::new(), |Part { index, of }| format!(" part {index} of {of}"));
                writeln!(f, "{:indent$}{line}{part}", "")?;
                print_body(f, kernel, body, inside)?;
            }
            Stmt::Parallel(parallel) => print_parallel(f, kernel, &kernel.parallels[*parallel], depth)?,
            Stmt::Begin(hold) => writeln!(f, "{:indent$}{}", "", kernel.hold_text(*hold, false))?,
            Stmt::End(hold) => writeln!(f, "{:indent$}{}", "", kernel.hold_text(*hold, true))?,
            Stmt::EachThread(elements) => {
                writeln!(f, "{:indent$}each thread", "")?;
                print_elements(f, kernel, elements, depth + 1)?;
            }
            Stmt::If(If { cond, then, otherwise, span }) => {
                writeln!(f, "{:indent$}if {}  // {span}", "", value_title(kernel, cond))?;
                print_body(f, kernel, then, depth + 1)?;
                if !otherwise.is_empty() {
                    writeln!(f, "{:indent$}else", "")?;
                    print_body(f, kernel, otherwise, depth + 1)?;
                }
            }
        }
    }
    Ok(())
}

/// A variable with its range: `i in 0..4`.
fn range(var: &Var) -> String {
    format!("{} in {}..{}", var.name(), var.range().lo, var.range().hi + 1)
}

fn print_parallel(f: &mut fmt::Formatter<'_>, kernel: &Kernel, parallel: &Parallel, depth: usize) -> fmt::Result {
    let ranges: Vec<String> = parallel.vars.iter().map(range).collect();
    write!(f, "{:indent$}parallel {}", "", ranges.join(", "), indent = depth * 2)?;
    if let Some(layout) = &parallel.layout {
        write!(f, " = {layout}")?;
    }
    if let Some(vector) = parallel.vector {
        write!(f, " vector {vector}")?;
    }
    print_role(f, kernel, parallel.role)?;
    writeln!(f, "  // {}", parallel.span)?;
    print_elements(f, kernel, &parallel.body, depth + 1)
}

fn print_elements(f: &mut fmt::Formatter<'_>, kernel: &Kernel, elements: &[ElementStmt], depth: usize) -> fmt::Result {
    let indent = depth * 2;
    for element in elements {
        match element {
            ElementStmt::Let { name, value, .. } => {
                writeln!(f, "{:indent$}let {name} = {}", "", value_title(kernel, value))?
            }
            ElementStmt::Store { to, value, claim } => {
                let claim = match claim {
                    Claim::None => "",
                    Claim::Unique => " unique",
                    Claim::AnyWins => " any wins",
                };
                let (to, value) = (access_title(kernel, to), value_title(kernel, value));
                writeln!(f, "{:indent$}{to} = {value}{claim}", "")?;
            }
            ElementStmt::Atomic(atomic) => writeln!(f, "{:indent$}{}", "", atomic_title(kernel, atomic))?,
            ElementStmt::If { cond, then, otherwise, .. } => {
                writeln!(f, "{:indent$}if {}", "", value_title(kernel, cond))?;
                print_elements(f, kernel, then, depth + 1)?;
                if !otherwise.is_empty() {
                    writeln!(f, "{:indent$}else", "")?;
                    print_elements(f, kernel, otherwise, depth + 1)?;
                }
            }
            ElementStmt::For { counter, body, .. } => {
                writeln!(f, "{:indent$}for {counter}", "")?;
                print_elements(f, kernel, body, depth + 1)?;
            }
        }
    }
    Ok(())
}

/// An atomic change as text: `old = atomic count[i] += 1, acquire, cta`.
fn atomic_title(kernel: &Kernel, atomic: &Atomic) -> String {
    let (to, value) = (access_title(kernel, &atomic.to), value_title(kernel, &atomic.value));
    let old = atomic.old.as_ref().map_or(String::new(), |old| format!("{} = ", old.name));
    let mut text = match atomic.change {
        AtomicChange::Combine(op) => format!("{old}atomic {to} {}= {value}", op.symbol()),
        AtomicChange::Exchange | AtomicChange::CompareExchange => format!("{old}atomic {to} = {value}"),
    };
    if let Some(expected) = &atomic.expected {
        text += &format!(" if it is {}", value_title(kernel, expected));
    }
    if let Some(condition) = &atomic.condition {
        text += &format!(" where {}", value_title(kernel, condition));
    }
    text + &atomic.ordering.to_string()
}

/// An access as text: `fragment[i, 0]`.
pub fn access_title(kernel: &Kernel, access: &Access) -> String {
    let coord = |coord: &Coord| match coord {
        Coord::At(expr) => expr.to_string(),
        Coord::Data(value) => value_title(kernel, value),
    };
    let index: Vec<String> = access.index.iter().map(coord).collect();
    let name = kernel.buffers.get(access.buffer).map_or("?", |buffer| &buffer.name);
    format!("{name}[{}]", index.join(", "))
}

/// A value as text: `exp(v[j] - max[0])`.
pub fn value_title(kernel: &Kernel, value: &Value) -> String {
    match value {
        Value::Const(value) => value.to_string(),
        Value::Index(expr) => expr.to_string(),
        Value::Named(name) => name.to_string(),
        Value::Load(access) if access.or_zero => format!("{}.or_zero()", access_title(kernel, access)),
        Value::Load(access) => access_title(kernel, access),
        Value::Op(op, arguments) => {
            let of = |at: usize| arguments.get(at).map(|argument| operand_title(kernel, argument)).unwrap_or_default();
            match (op.sign(), arguments.len()) {
                (Some(sign), 2) => format!("{} {sign} {}", of(0), of(1)),
                (Some(sign), 1) => format!("{sign}{}", of(0)),
                _ => {
                    let all: Vec<String> = arguments.iter().map(|argument| value_title(kernel, argument)).collect();
                    format!("{op}({})", all.join(", "))
                }
            }
        }
        Value::Cast(dtype, narrowing, value) => format!("{}({})", narrowing.title(*dtype), value_title(kernel, value)),
    }
}

/// An operand of an operator, in parentheses if it is itself written with an operator.
fn operand_title(kernel: &Kernel, value: &Value) -> String {
    let is_sum = match value {
        Value::Op(op, operands) => op.sign().is_some() && operands.len() == 2,
        Value::Index(expr) => expr.operands().is_some(),
        Value::Const(_) | Value::Named(_) | Value::Load(_) | Value::Cast(..) => false,
    };
    let title = value_title(kernel, value);
    if is_sum { format!("({title})") } else { title }
}

fn print_op(f: &mut fmt::Formatter<'_>, kernel: &Kernel, op: &Op, depth: usize) -> fmt::Result {
    write!(f, "{:indent$}{}", "", op.scope.name(), indent = depth * 2)?;
    if let Some(warp) = op.warp {
        write!(f, " {warp}")?;
    }
    write!(f, " {}", kernel.op_title(op))?;
    if let Some(layout) = &op.layout {
        write!(f, " = {layout}")?;
    }
    if let Some(name) = &op.name {
        write!(f, " as {name}")?;
    }
    if let Some(variant) = &op.variant {
        write!(f, " variant {variant}")?;
    }
    print_role(f, kernel, op.role)?;
    writeln!(f, "  // {}", op.span)?;
    match op.kind.tuples() {
        Some(tuples) => print_function(f, kernel, &kernel.combiners[tuples.combiner], depth + 1),
        None => Ok(()),
    }
}

/// The function of an op that combines tuples, after its tuples: `(a.m, a.l), (b.m, b.l), else (-inf, 0)`.
fn print_function(f: &mut fmt::Formatter<'_>, kernel: &Kernel, function: &Combiner, depth: usize) -> fmt::Result {
    let (indent, tuple) = (depth * 2, |values: Vec<String>| format!("({})", values.join(", ")));
    let side = |at: usize| tuple(function.parameters.iter().map(|parameter| parameter.names[at].clone()).collect());
    let identity = tuple(function.identity.iter().map(|number| number.to_string()).collect());
    writeln!(f, "{:indent$}by {}, {}, else {identity}", "", side(0), side(1))?;
    for (name, value) in &function.named {
        writeln!(f, "{:indent$}let {name} = {}", "", value_title(kernel, value))?;
    }
    let results = tuple(function.results.iter().map(|result| value_title(kernel, result)).collect());
    writeln!(f, "{:indent$}{results}", "")
}

fn print_role(f: &mut fmt::Formatter<'_>, kernel: &Kernel, role: Option<Handle<Role>>) -> fmt::Result {
    role.map_or(Ok(()), |role| write!(f, " role {}", kernel.roles[role].name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_called_by_its_index() {
        assert_eq!(index_title(&element_index(&[2, 4, 32], 133)), "(1, 0, 5)");
        assert_eq!(index_title(&element_index(&[8], 7)), "7");
    }
}
