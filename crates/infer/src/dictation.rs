//! Products: the instruction dictates the layouts of the fragments that it works on.
//!
//! Before anything is chosen, a gemm gives its fragments the layouts of `mma.sync` ([`Product`]), on every target. On
//! sm_90 TileLang uses `wgmma` from 128 threads on, which shares the rows among warps differently; both are correct,
//! so only one is used here. Operands in memory are given no layout: they are loaded as the instruction needs them.

use tilewright_diag::{Diagnostic, Span};
use tilewright_ir::Handle;
use tilewright_ir::product::{Matrix, Product};
use tilewright_ir::tile::{Buffer, Effect, Kernel, Op, Space, Tile};
use tilewright_layout::map::Map;

use crate::granules::granules;
use crate::known::{Pass, Reason};
use crate::storage::Storages;

/// A product, and the layouts that it dictates.
#[derive(Clone, Debug)]
pub(crate) struct Dictation {
    /// What dictates it.
    by: &'static str,
    pub(crate) title: String,
    pub(crate) span: Span,
    pub(crate) fragments: Vec<Dictated>,
}

/// A fragment whose layout a product dictates.
#[derive(Clone, Debug)]
pub(crate) struct Dictated {
    pub(crate) storage: Handle<Buffer>,
    /// The map of its granules.
    pub(crate) map: Map,
    /// What the product does to it.
    pub(crate) effect: Effect,
}

impl Dictation {
    /// What a gemm dictates. Error: why its fragments cannot be operands of `mma.sync`.
    pub(crate) fn of(kernel: &Kernel, storages: &Storages, op: &Op) -> Result<Dictation, Diagnostic> {
        let title = kernel.op_title(op);
        let refused = |buffer: &Buffer, text: &str, accepted: &str| {
            Diagnostic::error("I0705", format!("`{title}` with the fragment `{}`: {text}", buffer.name))
                .label(op.span, "this product")
                .label(buffer.span, "its layout is dictated by `mma.sync`")
                .help(format!("accepted: {accepted}"))
        };
        let mut fragments = Vec::new();
        let effects = op.kind.info().operands.iter().map(|operand| operand.effect);
        for ((matrix, tile), effect) in Matrix::ALL.into_iter().zip(&op.operands).zip(effects) {
            let buffer = &kernel.buffers[tile.buffer];
            if buffer.space != Space::Fragment {
                continue;
            }
            let product = Product::of(kernel, op).map_err(|why| refused(buffer, &why.text, &why.accepted))?;
            let storage = kernel.storage(tile.buffer);
            let whole = storages.get(storage);
            let (map, ratio) = (product.map(matrix), (whole.bytes / buffer.dtype.bytes()) as usize);
            if tile.extents != buffer.shape || map.elements() != whole.granules * ratio {
                return Err(refused(buffer, "this is a part of a fragment", "whole fragments"));
            }
            let granules = granules(&map, ratio);
            let granules = granules.map_err(|why| {
                let text = format!("its layout {why}");
                refused(buffer, &text, "views whose elements lie on one thread each")
            });
            fragments.push(Dictated { storage, map: granules?, effect });
        }
        Ok(Dictation { by: "dictated by `mma.sync`", title, span: op.span, fragments })
    }

    /// What a copy from or to tensor memory dictates: a row for each thread. `None` for other ops. Error: why its fragment cannot have
    /// that layout.
    pub(crate) fn of_tensor_memory(
        kernel: &Kernel,
        storages: &Storages,
        op: &Op,
    ) -> Option<Result<Dictation, Diagnostic>> {
        let is_fragment = |tile: &&Tile| kernel.buffers[tile.buffer].space == Space::Fragment;
        let place = op.operands.iter().position(|tile| is_fragment(&tile))?;
        let (tile, effect) = (&op.operands[place], op.effect(place));
        let by = if effect == Effect::Write { "dictated by `tcgen05.ld`" } else { "dictated by `tcgen05.st`" };
        let buffer = &kernel.buffers[tile.buffer];
        let title = kernel.op_title(op);
        let refused = |text: &str, accepted: &str| {
            Diagnostic::error("I0705", format!("`{title}` with the fragment `{}`: {text}", buffer.name))
                .label(op.span, "this copy")
                .label(buffer.span, format!("its layout is {by}"))
                .help(format!("accepted: {accepted}"))
        };
        let [rows, columns] = buffer.shape[..] else {
            return Some(Err(refused("it does not have two dimensions", "128 rows of some columns")));
        };
        let storage = kernel.storage(tile.buffer);
        let whole = storages.get(storage);
        let is_whole = tile.extents == buffer.shape && (whole.granules as i64) == rows * columns;
        if !is_whole {
            return Some(Err(refused("this is a part of a fragment, or a view", "whole fragments")));
        }
        let mut map = Map::empty(kernel.threads.max(1) as usize, (rows * columns) as usize);
        for element in 0..rows * columns {
            map.put((element / columns) as usize, (element % columns) as usize, element as usize);
        }
        let fragments = vec![Dictated { storage, map, effect }];
        Some(Ok(Dictation { by, title, span: op.span, fragments }))
    }

    /// Why its fragments have the layouts that it dictates.
    pub(crate) fn reason(&self) -> Reason {
        Reason { pass: Pass::Strict, rule: self.by, op: self.title.clone(), span: self.span, parent: None }
    }
}

#[cfg(test)]
mod tests {
    use tilewright_expr::Expr;
    use tilewright_ir::Arena;
    use tilewright_ir::tile::{Gemm, OpKind, Stmt, Tile, WarpPolicy};
    use tilewright_layout::axis::Scope;
    use tilewright_layout::{DType, Layout};

    use super::*;
    use crate::inference::infer;

    /// A kernel of 64 threads with these fragments, and products (c, a, b) of them.
    fn kernel(fragments: &[(&str, DType, [i64; 2])], policy: WarpPolicy, products: &[[usize; 3]]) -> Kernel {
        let mut buffers = Arena::new();
        let mut handles = Vec::new();
        for (name, dtype, shape) in fragments {
            handles.push(buffers.push(Buffer::fragment(*name, *dtype, shape, Span::here())));
        }
        let (mut ops, mut body) = (Arena::new(), Vec::new());
        for product in products {
            let tile = |at: &usize| {
                let shape = fragments[*at].2.to_vec();
                Tile { buffer: handles[*at], starts: vec![Expr::constant(0); 2], extents: shape }
            };
            let gemm = Gemm { transpose_a: false, transpose_b: false, policy, ..Gemm::PLAIN };
            body.push(Stmt::Op(ops.push(Op {
                kind: OpKind::Gemm(gemm),
                scope: Scope::Cta,
                warp: None,
                role: None,
                operands: product.iter().map(tile).collect(),
                variant: None,
                name: None,
                layout: None,
                span: Span::here(),
            })));
        }
        Kernel { threads: 64, buffers, ops, body, ..Kernel::new("k", Span::here()) }
    }

    fn codes(kernel: &Kernel) -> Vec<&'static str> {
        infer(kernel).err().unwrap_or_default().iter().map(|finding| finding.code).collect()
    }

    const C: (&str, DType, [i64; 2]) = ("c", DType::F32, [32, 32]);
    const A: (&str, DType, [i64; 2]) = ("a", DType::F16, [32, 16]);
    const B: (&str, DType, [i64; 2]) = ("b", DType::F16, [16, 32]);

    #[test]
    fn all_fragments_of_a_product_are_dictated() {
        let inferred = infer(&kernel(&[C, A, B], WarpPolicy::Square, &[[0, 1, 2]])).unwrap();
        let said: Vec<(usize, &str)> =
            inferred.fragments.values().map(|placed| (placed.map.copies(), placed.reason.rule)).collect();
        let rule = "dictated by `mma.sync`";
        assert_eq!(said, [(1, rule), (2, rule), (1, rule)]);
    }

    #[test]
    fn sums_are_the_next_left_multiplicand_where_warps_share_rows() {
        let fragments = [("s", DType::F16, [32, 16]), A, ("b", DType::F16, [16, 16]), C, B];
        let products = [[0, 1, 2], [3, 0, 4]];
        assert!(infer(&kernel(&fragments, WarpPolicy::FullRow, &products)).is_ok());
        assert_eq!(codes(&kernel(&fragments, WarpPolicy::FullCol, &products)), ["I0706"]);
    }

    #[test]
    fn one_fragment_cannot_be_both_multiplicands() {
        let fragments = [("c", DType::F32, [32, 32]), ("a", DType::F16, [32, 32])];
        assert_eq!(codes(&kernel(&fragments, WarpPolicy::Square, &[[0, 1, 1]])), ["I0706"]);
    }

    #[test]
    fn shapes_that_are_no_atoms_are_refused() {
        let fragments = [("c", DType::F32, [24, 32]), ("a", DType::F16, [24, 16]), B];
        assert_eq!(codes(&kernel(&fragments, WarpPolicy::Square, &[[0, 1, 2]])), ["I0705"]);
    }

    #[test]
    fn a_layout_of_the_user_must_be_the_dictated_one() {
        let mut kernel = kernel(&[C, A, B], WarpPolicy::Square, &[[0, 1, 2]]);
        let (c, _) = kernel.buffers.iter().next().unwrap();
        let product = Product::of(&kernel, kernel.ops.iter().next().unwrap().1).unwrap();
        kernel.buffers[c].layout = product.map(Matrix::C).to_layout();
        assert!(matches!(kernel.buffers[c].layout, Some(Layout::Tile(_))));
        assert!(infer(&kernel).is_ok());
        kernel.buffers[c].layout = "S[(64,16):(1@tx,1@reg)]".parse().ok();
        let found = infer(&kernel).unwrap_err();
        assert_eq!((found[0].code, found[0].labels.len()), ("I0706", 2));
    }
}
