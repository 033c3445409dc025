//! Ops on tensor memory: products, copies from and to fragments, and fills that let the next product replace sums.

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_ir::plan::{OpPlan, PlanFacts, Reason, VariantResult};
use tilewright_ir::thread::{Accumulates, COLUMN_BYTES, MOST_MOVED, RegArray, Regs, Stmt, TENSOR_LANE, TensorMove};
use tilewright_ir::tile::{Op, OpKind, Tile, tile_title};
use tilewright_ir::{Handle, HwIndex, Scalar, tile};
use tilewright_layout::DType;
use tilewright_layout::access::LANES;

use super::kernel_lowering::KernelLowering;
use crate::builder::regs;
use crate::gemm::{Issue, issue};
use crate::pipeline::Team;
use crate::sync::OpBlock;

/// The name of the only variant of an op on tensor memory.
pub(crate) const TCGEN05: &str = "tcgen05";

impl KernelLowering<'_> {
    /// The block of an op on tensor memory.
    pub(super) fn tensor_op(&mut self, op: &Op) -> Result<OpBlock, Diagnostic> {
        self.in_role(op.role, |lowering| {
            let (body, summary) = match op.kind {
                OpKind::Fill(_) => lowering.forget(op),
                OpKind::Copy => lowering.moves(op)?,
                _ => lowering.multiplies(op)?,
            };
            let title = lowering.title(op);
            let facts = PlanFacts::without_accesses(summary, body.len() as i64);
            let plan = OpPlan::new(title.clone(), op.span, lowering.executions(op), TCGEN05);
            let considered = vec![VariantResult { variant: TCGEN05, answer: Ok(facts) }];
            lowering.plans.push(OpPlan { considered, ..plan });
            let role = lowering.kernels.whole().part_of_cta(op.role);
            Ok(OpBlock::new(title, None, body, lowering.plans.len() - 1).of(role))
        })
    }

    /// The next product replaces the sums.
    fn forget(&mut self, op: &Op) -> (Vec<Stmt>, String) {
        let flag = self.sums_flag(op.operands[0].buffer);
        let set = flag.map(|flag| Stmt::Set { to: flag, value: Scalar::Int(0) });
        (set.into_iter().collect(), "the next product replaces the sums".to_string())
    }

    /// The register that says whether products are added to sums. It is 0 after a fill, until the first product. `None` if it would
    /// always be 1, or if all products replace the sums.
    fn sums_flag(&mut self, sums: Handle<tile::Buffer>) -> Option<Regs> {
        let kernel = self.kernels.whole();
        let is_some =
            |of: &dyn Fn(OpKind) -> bool| kernel.ops.iter().any(|(_, op)| op.operands[0].buffer == sums && of(op.kind));
        let adds = |kind: OpKind| matches!(kind, OpKind::GemmAsync(gemm) if !gemm.clear);
        if !is_some(&adds) || !is_some(&|kind| matches!(kind, OpKind::Fill(_))) {
            return None;
        }
        if let Some(known) = self.sums_flags.get(&sums) {
            return Some(regs(*known, 0, 1));
        }
        let name = self.builder.fresh(&format!("{}_accumulates", self.kernel.buffers[sums].name));
        let array = self.builder.program.registers.push(RegArray { name, dtype: DType::I32, len: 1, vector: 1 });
        let set = Stmt::Set { to: regs(array, 0, 1), value: Scalar::Int(1) };
        self.builder.program.body.extend([Stmt::Declare(array), set]);
        self.sums_flags.insert(sums, array);
        Some(regs(array, 0, 1))
    }

    /// One thread of the first warp issues a product.
    fn multiplies(&mut self, op: &Op) -> Result<(Vec<Stmt>, String), Diagnostic> {
        let sums = self.address(op, &op.operands[0], Expr::constant(0))?;
        let flag = self.sums_flag(op.operands[0].buffer);
        let replaces = op.kind.product().is_some_and(|gemm| gemm.clear);
        let first = match &flag {
            _ if replaces => Accumulates::Never,
            Some(flag) => Accumulates::If(flag.clone()),
            None => Accumulates::Always,
        };
        let left = &op.operands[1];
        let left = match self.kernel.is_in_tensor_memory(left.buffer) {
            true => Some(self.address(op, left, Expr::constant(0))?),
            false => None,
        };
        let Issue { body, summary } = match issue(&mut self.builder, self.kernel, op, (&sums, &first), left)? {
            Ok(issued) => issued,
            Err(reasons) => return Err(impossible(&self.kernel.op_title(op), op, reasons)),
        };
        let team = Team::of(&self.builder.program, op.role);
        let mut all = team.by_first_of(&team, vec![Stmt::Elect { body }]);
        all.extend(flag.map(|flag| Stmt::Set { to: flag, value: Scalar::Int(1) }));
        Ok((all, summary))
    }

    /// Each thread loads or stores the columns of its row.
    fn moves(&mut self, op: &Op) -> Result<(Vec<Stmt>, String), Diagnostic> {
        let is_store = self.kernel.is_in_tensor_memory(op.operands[0].buffer);
        let (fragment, tile) = match is_store {
            true => (&op.operands[1], &op.operands[0]),
            false => (&op.operands[0], &op.operands[1]),
        };
        let array = self.builder.fragment(fragment.buffer);
        let in_column = COLUMN_BYTES / self.kernel.buffers[tile.buffer].dtype.bytes();
        let columns = tile.extents.last().copied().unwrap_or(0) / in_column;
        let warp = HwIndex::Warp.var(self.builder.program.threads, &self.builder.program.grid);
        let lane = Expr::var(&warp) * (TENSOR_LANE * LANES as i64);
        let first = tile.starts.last().cloned().unwrap_or(Expr::constant(0)) / in_column + lane;
        let begin = self.address(op, tile, first)?;
        let (mut body, mut at) = (Vec::new(), 0);
        while at < columns {
            let count = (columns - at).min(MOST_MOVED);
            let (address, registers) =
                (normalize(&(begin.clone() + at)), regs(array, at * in_column, count * in_column));
            body.push(Stmt::from(TensorMove { registers, address, is_store }));
            at += count;
        }
        let summary = format!("a row for each thread, {columns} columns, up to {MOST_MOVED} at a time");
        Ok((body, summary))
    }

    /// The address of a tile in tensor memory, from the base of the allocation on, in the stage that the role holds.
    fn address(&self, op: &Op, tile: &Tile, first: Expr) -> Result<Expr, Diagnostic> {
        let kernel = self.kernels.whole();
        let stage =
            kernel.ring_of(tile.buffer).and_then(|ring| self.rings.stage_of(kernel, &self.builder, (op.role, ring)));
        let columns = self.tensor_columns.first.get(&tile.buffer);
        let (Some(stage), Some(begin)) = (stage, columns) else {
            let message = format!("`{}` has no place in tensor memory", tile_title(kernel, tile));
            return Err(Diagnostic::internal("P0404", message).label(op.span, "here"));
        };
        Ok(normalize(&(stage * kernel.buffers[tile.buffer].columns() + first + *begin)))
    }
}

/// The error for a product that `tcgen05.mma` cannot compute.
fn impossible(title: &str, op: &Op, reasons: Vec<Reason>) -> Diagnostic {
    let message = format!("`{title}` cannot have sums in tensor memory");
    let found = Diagnostic::error("P0402", message).label(op.span, "this product");
    let of = |Reason { text, accepted }: Reason| format!("{TCGEN05}: {text}; accepted: {accepted}");
    let found = reasons.into_iter().fold(found, |found, reason| found.note(of(reason)));
    found.help("keep the sums in a fragment, and write k.gemm; or change what the notes say")
}
