//! The indices of threads, lanes, warps and CTAs: which of them statements use, and their definitions in CUDA.

use std::collections::BTreeSet;

use tilewright_expr::Expr;
use tilewright_ir::thread::{Cond, Stmt, conjunction, for_each_stmt};
use tilewright_ir::{Dim, HwIndex};
use tilewright_layout::access::LANES;

use super::declarations::Declarations;
use super::{MOST_COLUMNS, Printer};

/// The index of a warp, which all of its lanes read from one: the compiler then knows it to be uniform, so that the addresses and
/// descriptors that follow from it are in uniform registers, which copies and products by the engines take.
const UNIFORM_WARP: &str = "__shfl_sync(0xffffffff, threadIdx.x >> 5, 0)";

impl Printer<'_> {
    /// The lines that define the hardware indices in what was printed.
    pub(crate) fn hardware_indices(&self) -> Vec<String> {
        let mut indices = Declarations::default();
        for index in &self.indices {
            indices.add("const int".to_string(), format!("{} = {}", index.name(), self.hardware(*index)));
        }
        indices.lines(MOST_COLUMNS - 2)
    }

    /// The CUDA expression of a hardware index. In a CTA of one warp, the lane is the thread.
    fn hardware(&self, index: HwIndex) -> &'static str {
        match index {
            HwIndex::Tid => "threadIdx.x",
            HwIndex::Lane if self.program.threads <= LANES as i64 => "threadIdx.x",
            HwIndex::Lane => "threadIdx.x & 31",
            // Warps branch to their roles, or the products of a warpgroup begin at its first warp.
            HwIndex::Warp if !self.program.roles.is_empty() || !self.uses.warpgroup_products.is_empty() => UNIFORM_WARP,
            HwIndex::Warp => "threadIdx.x >> 5",
            HwIndex::Block(Dim::X) => "blockIdx.x",
            HwIndex::Block(Dim::Y) => "blockIdx.y",
            HwIndex::Block(Dim::Z) => "blockIdx.z",
        }
    }

    /// Notes the hardware indices of these statements, and of the conditions that are printed as one.
    pub(super) fn find_indices(&mut self, body: &[Stmt]) {
        let mut find = |expr: &Expr| expr.for_each_var(&mut |var| self.indices.extend(HwIndex::of(var)));
        for stmt in body {
            match stmt {
                Stmt::If { cond, body } => {
                    conjunction(cond, body).0.into_iter().flat_map(Cond::sides).for_each(&mut find);
                }
                other => other.exprs(&mut find),
            }
        }
    }
}

/// The hardware indices that statements mention.
pub(super) fn indices_in(body: &[Stmt]) -> BTreeSet<HwIndex> {
    let mut found = BTreeSet::new();
    let mut add = |expr: &Expr| expr.for_each_var(&mut |var| found.extend(HwIndex::of(var)));
    for_each_stmt(body, &mut |stmt| stmt.exprs(&mut add));
    found
}

/// The definition of an index that is counted from the first warp of a role; `None` for others.
pub(super) fn in_role(index: HwIndex, first: i64) -> Option<String> {
    match index {
        HwIndex::Tid => Some(format!("tid = threadIdx.x - {}", first * LANES as i64)),
        HwIndex::Warp => Some(format!("warp = {UNIFORM_WARP} - {first}")),
        HwIndex::Lane | HwIndex::Block(_) => None,
    }
}
