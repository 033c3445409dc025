//! Attributes of an op that was just added.

use tilewright_diag::{Diagnostic, Span};
use tilewright_ir::Handle;
use tilewright_ir::tile::{self, Gemm, OpKind};

use crate::later::Later;
use crate::nodes;
use crate::region::IntoCarries;

/// An op that was just added, to set more options of it. It is valid while its kernel is being built:
///
/// ```compile_fail,E0521
/// use tilewright_dsl::kernel;
/// use tilewright_ir::tile::ReduceKind::Sum;
/// use tilewright_layout::DType::F32;
///
/// let mut kept = None;
/// let sums = kernel("sums", |k| {
///     let (rows, sums) = (k.fragment("rows", F32, [8, 8]), k.fragment("sums", F32, [8]));
///     kept = Some(k.reduce(Sum, sums, rows, 1));
/// });
/// kept.map(|op| op.accumulate());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OpRef<'k> {
    pub(crate) later: &'k Later,
    pub(crate) op: Handle<tile::Op>,
    pub(crate) kind: OpKind,
}

impl OpRef<'_> {
    /// Forces this variant; if it does not accept the op, compiling fails with its reasons. `emit --stage plan` lists
    /// the names.
    pub fn variant(self, name: &str) -> Self {
        self.variant_opt(Some(name))
    }

    /// Forces the variant if a name is given; otherwise the cheapest is taken.
    pub fn variant_opt(self, name: Option<&str>) -> Self {
        let name = name.map(str::to_string);
        self.edit(|op| op.variant = name)
    }

    /// For a reduction: includes the old values of the destination, which are otherwise overwritten.
    #[track_caller]
    pub fn accumulate(self) -> Self {
        self.expect_op(self.kind.reduction().is_some(), "reduce` and `reduce_by", ".accumulate()");
        self.edit(|op| op.kind = op.kind.accumulating().unwrap_or(op.kind))
    }

    /// For a scan: leaves every element out of its own result. The first one is the result of no elements: 0 for sums, 1 for
    /// products, the least number (of floats, minus infinity) for `Max`, the identity for `scan_by`.
    #[track_caller]
    pub fn exclusive(self) -> Self {
        self.expect_op(self.kind.scan_order().is_some(), "scan` and `scan_by", ".exclusive()");
        self.edit(|op| op.kind.scan_order_mut().into_iter().for_each(|order| order.is_exclusive = true))
    }

    /// For a scan: begins with the last element.
    #[track_caller]
    pub fn reverse(self) -> Self {
        self.expect_op(self.kind.scan_order().is_some(), "scan` and `scan_by", ".reverse()");
        self.edit(|op| op.kind.scan_order_mut().into_iter().for_each(|order| order.is_reverse = true))
    }

    /// For a scan: goes on from `carry`, which has an element for each row, and leaves there what that is combined to with all of
    /// the row. So a loop scans rows longer than a tile:
    ///
    /// ```
    /// use tilewright_dsl::{at, kernel};
    /// use tilewright_ir::tile::ReduceKind::Sum;
    /// use tilewright_layout::DType::F32;
    ///
    /// let sums = kernel("sums", |k| {
    ///     let (x, y) = (k.input("x", F32, [4, 1024]), k.output("y", F32, [4, 1024]));
    ///     let (v, carry) = (k.fragment("v", F32, [4, 128]), k.fragment("carry", F32, [4]));
    ///     k.threads(128);
    ///     k.fill(carry, 0);
    ///     k.serial("t", 0..8, |k, t| {
    ///         let part = (.., at(t * 128, 128));
    ///         k.copy(v, x.sub(part));
    ///         k.scan(Sum, v, v, 1).carry(carry);
    ///         k.copy(y.sub(part), v);
    ///     });
    /// });
    /// ```
    ///
    /// A `scan_by` takes a carry for each value: `.carry([a, b])`. The first result of an exclusive scan is the carry. A carry
    /// has the dtype of the elements, or that in which a `scan` combines them: f32 for f16.
    #[track_caller]
    pub fn carry(self, carry: impl IntoCarries) -> Self {
        self.expect_op(self.kind.scan_order().is_some(), "scan` and `scan_by", ".carry(..)");
        let mut regions = Vec::new();
        for region in carry.into_carries() {
            region.buffer.is_own();
            regions.push(region.resolved());
        }
        let op = self.op;
        self.later.edit(move |kernel| {
            let tiles: Vec<tile::Tile> = regions.into_iter().map(|region| region.tile(kernel)).collect();
            let op = &mut kernel.ops[op];
            op.operands.truncate(op.operands.len() - op.carries().len());
            op.operands.extend(tiles);
            op.kind.scan_order_mut().into_iter().for_each(|order| order.has_carry = true);
        });
        self
    }

    /// For a product: sets what is transposed, how warps divide it, and whether the destination is overwritten.
    #[track_caller]
    pub fn with(self, gemm: Gemm) -> Self {
        self.expect_op(self.kind.product().is_some(), "gemm` and `gemm_async", ".with(..)");
        self.edit(move |op| op.kind.product_mut().into_iter().for_each(|known| *known = gemm))
    }

    /// For a product of f32: `a` and `b` become tf32, with 10 bits of mantissa. Without it, such a product is
    /// rejected.
    #[track_caller]
    pub fn tf32(self) -> Self {
        self.expect_op(self.kind.product().is_some(), "gemm` and `gemm_async", ".tf32()");
        self.edit(|op| op.kind.product_mut().into_iter().for_each(|gemm| gemm.tf32 = true))
    }

    /// Sets the name of the op in plans, diagnostics and comments of the CUDA text. Line breaks become spaces.
    pub fn name(self, name: &str) -> Self {
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        self.edit(|op| op.name = Some(name))
    }

    /// Reports a method that is called on an op other than the one it applies to.
    #[track_caller]
    fn expect_op(self, is_expected: bool, expected: &str, method: &str) {
        if !is_expected {
            let finding = Diagnostic::error("K0255", format!("`{}` has no method `{method}`", self.kind.info().name));
            let help = format!("remove it: it applies only to `{expected}`");
            nodes::mistake(finding.label(Span::here(), "called here").help(help));
        }
    }

    fn edit(self, change: impl FnOnce(&mut tile::Op) + 'static) -> Self {
        let op = self.op;
        self.later.edit(move |kernel| change(&mut kernel.ops[op]));
        self
    }
}
