//! The grid of CTAs, and the clusters in it.

use tilewright_diag::{Diagnostic, Span};
use tilewright_ir::Dim;
use tilewright_ir::tile::Cluster;

use super::KernelBuilder;
use crate::expr::Expr;
use crate::nodes;

impl KernelBuilder<'_> {
    /// CTAs along each dimension of the grid; returns the index of the CTA in each. Call it once.
    ///
    /// After [`KernelBuilder::cluster`] it is clusters that are counted, in up to two dimensions.
    #[track_caller]
    pub fn grid<E: Into<Expr>, const N: usize>(&mut self, ctas: [E; N]) -> [Expr; N] {
        let span = Span::here();
        // The dimension along x is the cluster.
        let first = usize::from(self.kernel.cluster.is_some());
        if self.has_grid {
            let finding = Diagnostic::error("K0203", "`k.grid` is called twice")
                .label(span, "called again here")
                .label(self.kernel.grid_span, "first called here");
            nodes::mistake(finding.help("call it once, with all dimensions: k.grid([columns, rows])"));
        } else {
            for (dimension, count) in self.kernel.grid.iter_mut().skip(first).zip(ctas) {
                *dimension = count.into().resolved();
            }
            (self.kernel.grid_span, self.has_grid) = (span, true);
        }
        let most = Dim::ALL.len() - first;
        if N > most {
            let finding = Diagnostic::error("K0203", format!("a grid of {N} dimensions")).label(span, "this grid");
            nodes::mistake(finding.help(match first {
                0 => "a grid has up to 3 dimensions",
                _ => "a grid of clusters has up to 2 dimensions",
            }));
        }
        // A placeholder for other dimensions, which are a mistake.
        let block = |dimension: &Dim| Expr::from(&self.kernel.block(*dimension));
        std::array::from_fn(|at| Dim::ALL.get(first + at).map_or(Expr::from(0), block))
    }

    /// Whether CTAs are in clusters.
    pub(crate) fn has_cluster(&self) -> bool {
        self.kernel.cluster.is_some()
    }

    /// Lets so many CTAs, 1, 2, 4 or 8, be a cluster: they run at the same time. Returns the rank of the CTA in its cluster. Call it once,
    /// before [`KernelBuilder::grid`], which counts clusters then. With 1 there are no clusters, and the rank is 0.
    ///
    /// What does not depend on the rank is the same in all CTAs of a cluster. Where all of them fill a stage of a ring with the same part
    /// of a tensor, each copies a part of it to all ("multicast"): the tensor is read once. Two CTAs may
    /// multiply as a pair: see [`Gemm::pair`](tilewright_ir::tile::Gemm::pair).
    #[track_caller]
    pub fn cluster(&mut self, ctas: i64) -> Expr {
        let span = Span::here();
        if ctas == 1 {
            return Expr::from(0);
        }
        let earlier = self.kernel.cluster.map(|first| (first.span, "`k.cluster` is called twice", "first called here"));
        let grid = self.has_grid.then_some((self.kernel.grid_span, "`k.cluster` follows `k.grid`", "the grid"));
        match earlier.or(grid) {
            Some((first, message, of_first)) => {
                let finding = Diagnostic::error("K0287", message).label(span, "called here").label(first, of_first);
                nodes::mistake(finding.help("call k.cluster once, and then k.grid, which counts clusters"));
            }
            None => {
                self.kernel.cluster = Some(Cluster { ctas, span });
                self.kernel.grid[Dim::X.index()] = tilewright_expr::Expr::constant(ctas);
            }
        }
        Expr::from(&self.kernel.rank())
    }
}
