//! Makes the registers of a kernel visible: fragments are zeroed first, and copied to global memory at the end.

use tilewright::expr::Expr;
use tilewright::ir::tile::{Buffer, Direction, Kernel, Op, OpKind, Space, Stmt, Tile};
use tilewright::ir::{Dim, Handle, Scalar};
use tilewright::layout::axis::Scope;
use tilewright::layout::{Layout, TileLayout};

/// Adds an output `debug_<name>` for every fragment that is not a view, in order. If there are several CTAs, its first
/// dimension is the CTA, with x fastest.
pub(crate) fn debug_stores(kernel: &mut Kernel) -> Result<(), String> {
    let is_shown = |buffer: &Buffer| buffer.space == Space::Fragment && buffer.view_of.is_none();
    let shown: Vec<Handle<Buffer>> =
        kernel.buffers.iter().filter(|(_, buffer)| is_shown(buffer)).map(|(handle, _)| handle).collect();
    let (block, blocks) = linear_block(kernel)?;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for handle in shown {
        let fragment = kernel.buffers[handle].clone();
        let debug = debug_buffer(kernel, &fragment, blocks)?;
        let mut shown_at = vec![Expr::constant(0); fragment.shape.len()];
        let mut extents = fragment.shape.clone();
        let registers = Tile { buffer: handle, starts: shown_at.clone(), extents: extents.clone() };
        if blocks > 1 {
            shown_at.insert(0, block.clone());
            extents.insert(0, 1);
        }
        let memory = Tile { buffer: kernel.buffers.push(debug), starts: shown_at, extents };
        before.push(Stmt::Op(op(kernel, &fragment, OpKind::Fill(Scalar::Int(0)), vec![registers.clone()])));
        after.push(Stmt::Op(op(kernel, &fragment, OpKind::Copy, vec![memory, registers])));
    }
    before.append(&mut kernel.body);
    before.append(&mut after);
    kernel.body = before;
    Ok(())
}

/// The index of the CTA in the grid, and the number of CTAs.
fn linear_block(kernel: &Kernel) -> Result<(Expr, i64), String> {
    let (mut block, mut blocks) = (Expr::constant(0), 1);
    for dimension in [Dim::Z, Dim::Y, Dim::X] {
        let extent = kernel.grid[dimension.index()].as_const().ok_or("the grid is known only at launch")?;
        if extent > 1 {
            block = block * extent + Expr::var(&kernel.block(dimension));
            blocks *= extent;
        }
    }
    Ok((block, blocks))
}

fn debug_buffer(kernel: &Kernel, fragment: &Buffer, blocks: i64) -> Result<Buffer, String> {
    let mut name = format!("debug_{}", fragment.name);
    while kernel.buffers.iter().any(|(_, buffer)| buffer.name == name) {
        name.push('_');
    }
    let mut shape = fragment.shape.clone();
    if blocks > 1 {
        shape.insert(0, blocks);
    }
    let layout = TileLayout::row_major(&shape).map_err(|error| format!("`{name}`: {error}"))?;
    Ok(Buffer {
        name,
        dtype: fragment.dtype,
        shape,
        space: Space::Global(Direction::Output),
        layout: Some(Layout::Tile(layout)),
        dynamic_shape: None,
        view_of: None,
        order: None,
        is_open: false,
        span: fragment.span,
    })
}

fn op(kernel: &mut Kernel, of: &Buffer, kind: OpKind, operands: Vec<Tile>) -> Handle<Op> {
    let (scope, span) = (Scope::Cta, of.span);
    kernel.ops.push(Op { kind, scope, warp: None, role: None, operands, variant: None, name: None, layout: None, span })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tilewright::ir::Target;
    use tilewright::ir::tile::verify;

    use super::super::{kernel_of, read_case};
    use super::*;

    fn with_debug_stores(name: &str) -> Kernel {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/tilelang"));
        let case = read_case(&std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap()).unwrap();
        let mut kernel = kernel_of(&case).unwrap();
        debug_stores(&mut kernel).unwrap();
        kernel
    }

    fn shape_of(kernel: &Kernel, name: &str) -> Option<Vec<i64>> {
        kernel.buffers.iter().find(|(_, buffer)| buffer.name == name).map(|(_, buffer)| buffer.shape.clone())
    }

    fn kind(kernel: &Kernel, stmt: Option<&Stmt>) -> Option<OpKind> {
        match stmt {
            Some(Stmt::Op(op)) => Some(kernel.ops[*op].kind),
            _ => None,
        }
    }

    #[test]
    fn registers_are_cleared_and_shown() {
        let kernel = with_debug_stores("al_view_f32_as_f16");
        assert_eq!((shape_of(&kernel, "debug_a"), shape_of(&kernel, "debug_v")), (Some(vec![16, 16]), None));
        let ends = [kernel.body.first(), kernel.body.last()].map(|stmt| kind(&kernel, stmt));
        assert_eq!(ends, [Some(OpKind::Fill(Scalar::Int(0))), Some(OpKind::Copy)]);
        assert!(verify(kernel, Target::Sm90a).is_ok());
    }

    #[test]
    fn every_block_has_its_own_place() {
        let kernel = with_debug_stores("np2_copy_oob_rows");
        assert_eq!(shape_of(&kernel, "debug_a"), Some(vec![2, 64, 64]));
        assert!(verify(kernel, Target::Sm90a).is_ok());
    }
}
