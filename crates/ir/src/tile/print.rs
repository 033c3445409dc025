//! The tile level as text, as snapshots and `emit --stage tile` show it.

use std::fmt;

use tilewright_expr::Expr;

use crate::tile::kernel::{Buffer, Direction, Kernel, Loop, Size, Space, Stmt, Tile, Unroll};
use crate::tile::op::Op;

/// `b[s, 0, ..]` style title of a tile: dimensions that are taken whole are `..`.
pub fn tile_title(kernel: &Kernel, tile: &Tile) -> String {
    let buffer = &kernel.buffers[tile.buffer];
    let whole = |d: usize| tile.extents[d] == buffer.shape[d] && tile.starts[d].as_const() == Some(0);
    let mut last = tile.extents.len();
    while last > 0 && whole(last - 1) {
        last -= 1;
    }
    let index = |d: usize| match (whole(d) && buffer.shape[d] > 1, tile.extents[d], &tile.starts[d]) {
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
    /// `permute_layout(b[s], a[s])`
    pub fn op_title(&self, op: &Op) -> String {
        let mut parts: Vec<String> = op.operands.iter().map(|tile| tile_title(self, tile)).collect();
        parts.extend(op.value.map(|value| value.to_string()));
        format!("{}({})", op.kind.info().name, parts.join(", "))
    }
}

fn space_name(space: Space) -> &'static str {
    match space {
        Space::Global(Direction::Input) => "input",
        Space::Global(Direction::Output) => "output",
        Space::Shared => "shared",
        Space::Fragment => "fragment",
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = &self.grid;
        writeln!(f, "kernel {} grid ({x},{y},{z}) threads {}", self.name, self.threads)?;
        for Size { var, .. } in &self.sizes {
            let multiple =
                if var.multiple() > 1 { format!(", a multiple of {}", var.multiple()) } else { String::new() };
            writeln!(f, "  size {}: up to {}{multiple}", var.name(), var.range().hi)?;
        }
        for (_, buffer) in self.buffers.iter() {
            print_buffer(f, self, buffer)?;
        }
        print_body(f, self, &self.body, 1)
    }
}

fn print_buffer(f: &mut fmt::Formatter<'_>, kernel: &Kernel, buffer: &Buffer) -> fmt::Result {
    let fixed = || buffer.shape.iter().map(i64::to_string).collect::<Vec<_>>();
    let shape = buffer.run_time.as_ref().map_or_else(fixed, |s| s.extents.iter().map(Expr::to_string).collect());
    write!(f, "  {} {}: {}({})", space_name(buffer.space), buffer.name, buffer.dtype, shape.join(","))?;
    if let Some(owner) = buffer.view_of {
        write!(f, " view of {}", kernel.buffers[owner].name)?;
    }
    match &buffer.run_time {
        None => writeln!(f, " = {}", buffer.layout),
        Some(shape) => {
            let list = |exprs: &[Expr]| exprs.iter().map(Expr::to_string).collect::<Vec<_>>().join(",");
            writeln!(f, " = run-time ({}):({})", list(&shape.extents), list(&shape.strides))
        }
    }
}

fn print_body(f: &mut fmt::Formatter<'_>, kernel: &Kernel, body: &[Stmt], depth: usize) -> fmt::Result {
    for stmt in body {
        match stmt {
            Stmt::Op(op) => print_op(f, kernel, &kernel.ops[*op], depth)?,
            Stmt::Loop(Loop { var, unroll, body, .. }) => {
                let word = match unroll {
                    Unroll::No => "serial",
                    Unroll::Full => "unroll",
                };
                let range = var.range();
                writeln!(
                    f,
                    "{:indent$}{word} {} in {}..{}",
                    "",
                    var.name(),
                    range.lo,
                    range.hi + 1,
                    indent = depth * 2
                )?;
                print_body(f, kernel, body, depth + 1)?;
            }
        }
    }
    Ok(())
}

fn print_op(f: &mut fmt::Formatter<'_>, kernel: &Kernel, op: &Op, depth: usize) -> fmt::Result {
    write!(f, "{:indent$}{}", "", op.scope.name(), indent = depth * 2)?;
    if let Some(warp) = op.warp {
        write!(f, " {warp}")?;
    }
    write!(f, " {}", kernel.op_title(op))?;
    if let Some(name) = &op.name {
        write!(f, " as {name}")?;
    }
    if let Some(variant) = &op.variant {
        write!(f, " variant {variant}")?;
    }
    writeln!(f, "  // {}", op.span)
}
