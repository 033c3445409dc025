//! Clusters: CTAs that run at the same time, and reach each other's shared memory and barriers.
//!
//! The CTAs of a cluster differ in the index along x alone: it is their rank. So what does not depend on it is the same for all of
//! them. A tile that all of them copy from a tensor is copied once: each brings a part of it, to all. And two CTAs may be a pair,
//! whose tensor cores multiply together.

use std::collections::BTreeSet;

use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};

use crate::arena::Handle;
use crate::counter::Counter;
use crate::hw_index::Dim;
use crate::tile::kernel::{Kernel, Stmt};
use crate::tile::op::{Op, OpKind};
use crate::tile::ring::{Ring, Side};
use crate::tile::role::Role;

/// CTAs of a pair (PTX ISA, "CTA Pair").
pub const PAIR: i64 = 2;
/// The numbers of CTAs that a cluster may have. All GPUs with clusters run eight (CUDA programming guide, "Thread Block Clusters").
pub const CLUSTERS: [i64; 4] = [1, 2, 4, 8];

/// The clusters of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Cluster {
    /// CTAs of each.
    pub ctas: i64,
    /// Where it was written.
    pub span: Span,
}

impl Kernel {
    /// CTAs of a cluster: 1 if there are no clusters.
    pub fn cluster_ctas(&self) -> i64 {
        self.cluster.map_or(1, |cluster| cluster.ctas)
    }

    /// The variable that is the rank of a CTA in its cluster.
    pub fn rank(&self) -> Var {
        self.block(Dim::X)
    }

    /// Whether an op is a product of a pair of CTAs.
    pub fn is_of_pair(op: &Op) -> bool {
        matches!(op.kind, OpKind::GemmAsync(gemm) if gemm.pair)
    }

    /// Whether a role multiplies for a pair of CTAs. The first CTA of the pair does it alone.
    pub fn leads(&self, role: Handle<Role>) -> bool {
        self.ops.iter().any(|(_, op)| op.role == Some(role) && Kernel::is_of_pair(op))
    }

    /// Whether a role that leads a pair is on this side of a ring of buffers. Claimed tiles are those of the whole cluster.
    pub fn is_led(&self, ring: Handle<Ring>, side: Side) -> bool {
        let mut holds = self.holds.iter().map(|(_, hold)| hold);
        !self.rings[ring].claims()
            && holds
                .any(|hold| hold.ring == ring && hold.side == side && hold.role.is_some_and(|role| self.leads(role)))
    }

    /// The variables that may have other values in other CTAs of a cluster: the rank, and loaded integers and loops that depend on it.
    pub fn of_rank(&self) -> BTreeSet<Var> {
        let mut of_rank = BTreeSet::from([self.rank()]);
        for loaded in &self.loaded {
            if loaded.depends_on(&|var| of_rank.contains(var)) {
                of_rank.insert(loaded.var.clone());
            }
        }
        let mut before = 0;
        // A bound may use the variable of a loop around it alone, which comes first.
        while before != of_rank.len() {
            before = of_rank.len();
            counters(&self.body, &mut |counter| {
                if [&counter.begin, &counter.end].into_iter().any(|bound| mentions(bound, &of_rank)) {
                    of_rank.insert(counter.var.clone());
                }
            });
        }
        of_rank
    }

    /// Whether all CTAs of a cluster go through the same stages of a ring: no loop around a hold depends on the rank.
    pub fn is_same_in_cluster(&self, ring: Handle<Ring>) -> bool {
        self.are_same(&self.body, ring, &self.of_rank())
    }

    fn are_same(&self, body: &[Stmt], ring: Handle<Ring>, of_rank: &BTreeSet<Var>) -> bool {
        body.iter().all(|stmt| match stmt {
            Stmt::Loop(inner) => {
                let is_around = self.has_hold(&inner.body, ring);
                !is_around || !of_rank.contains(&inner.counter.var) && self.are_same(&inner.body, ring, of_rank)
            }
            // Holds are under no conditions.
            Stmt::If(_) | Stmt::Begin(_) | Stmt::End(_) | Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) => true,
        })
    }

    fn has_hold(&self, body: &[Stmt], ring: Handle<Ring>) -> bool {
        body.iter().any(|stmt| match stmt {
            Stmt::Begin(hold) => self.holds[*hold].ring == ring,
            Stmt::Loop(inner) => self.has_hold(&inner.body, ring),
            Stmt::If(_) | Stmt::End(_) | Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) => false,
        })
    }
}

fn mentions(expr: &Expr, vars: &BTreeSet<Var>) -> bool {
    let mut found = false;
    expr.for_each_var(&mut |var| found |= vars.contains(var));
    found
}

fn counters(body: &[Stmt], visit: &mut dyn FnMut(&Counter)) {
    for stmt in body {
        match stmt {
            Stmt::Loop(inner) => {
                visit(&inner.counter);
                counters(&inner.body, visit);
            }
            Stmt::If(branch) => {
                counters(&branch.then, visit);
                counters(&branch.otherwise, visit);
            }
            Stmt::Begin(_) | Stmt::End(_) | Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) => {}
        }
    }
}

/// Which CTAs of a cluster get a tile that all of them copy: those with a distance of `step`, or `step` adjacent ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// CTAs of a cluster.
    pub cluster: i64,
    /// How many get the tile.
    pub ctas: i64,
    /// The distance of their ranks: 1, or the number of groups.
    pub step: i64,
}

impl Group {
    /// The groups of CTAs for which an expression has the same value, if they are of this kind and have two CTAs or more.
    /// `value` gives what the expression is for each rank.
    pub fn of<T: PartialEq>(cluster: i64, value: impl Fn(i64) -> T) -> Option<Group> {
        let values: Vec<T> = (0..cluster).map(value).collect();
        let is_right = |group: &Group| {
            let firsts: Vec<Expr> = (0..cluster).map(|rank| group.first(&Expr::constant(rank))).collect();
            let ranks = || 0..values.len();
            ranks().all(|a| ranks().all(|b| (firsts[a] == firsts[b]) == (values[a] == values[b])))
        };
        let sizes = CLUSTERS.into_iter().filter(|ctas| *ctas > 1 && *ctas <= cluster);
        let kinds = sizes.flat_map(|ctas| [1, cluster / ctas].map(|step| Group { cluster, ctas, step }));
        kinds.into_iter().find(is_right)
    }

    /// The place of a CTA in its group, as an expression of the rank.
    pub fn place(&self, rank: &Expr) -> Expr {
        if self.step == 1 { rank % self.ctas } else { rank / self.step }
    }

    /// The first rank of the group of a CTA, as an expression of the rank.
    pub fn first(&self, rank: &Expr) -> Expr {
        if self.step == 1 { rank / self.ctas * self.ctas } else { rank % self.step }
    }

    /// A bit for each CTA of the group with the first rank 0 (PTX ISA, "cp.async.bulk.tensor", `ctaMask`). That of another group is
    /// shifted by its first rank.
    pub fn mask(&self) -> u16 {
        (0..self.ctas).fold(0, |mask, place| mask | 1 << (place * self.step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks in the mask of a CTA.
    fn members(group: &Group, rank: i64) -> Vec<i64> {
        let first = group.first(&Expr::constant(rank)).as_const().expect("a number");
        let mask = u32::from(group.mask()) << first;
        (0..16).filter(|bit| mask >> bit & 1 == 1).collect()
    }

    #[test]
    fn a_mask_has_exactly_the_ranks_with_the_same_value() {
        for cluster in [2, 4, 8] {
            for (by, modulus) in [(1, 1), (1, 2), (2, cluster), (1, 4), (4, cluster)] {
                let value = |rank: i64| rank / by % modulus;
                let Some(group) = Group::of(cluster, value) else { continue };
                for rank in 0..cluster {
                    let same: Vec<i64> = (0..cluster).filter(|other| value(*other) == value(rank)).collect();
                    assert_eq!(members(&group, rank), same, "{cluster} {by} {modulus} {rank}");
                    let of_rank = Expr::constant(rank);
                    let place = same.iter().position(|other| *other == rank);
                    assert_eq!(group.place(&of_rank).as_const(), place.map(|place| place as i64));
                }
            }
        }
    }

    #[test]
    fn what_differs_for_all_ranks_has_no_group() {
        assert_eq!(Group::of(4, |rank| rank), None);
        assert_eq!(Group::of(4, |rank| rank == 0), None);
        assert_eq!(Group::of(4, |_| 0), Some(Group { cluster: 4, ctas: 4, step: 1 }));
    }
}
