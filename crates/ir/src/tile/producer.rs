//! Pipelined loops whose copies a warp of its own issues: the kernel becomes one of two roles.

use std::collections::BTreeSet;

use tilewright_layout::access::LANES;
use tilewright_layout::axis::Scope;

use crate::arena::{Arena, Handle};
use crate::plan::Reason;
use crate::target::Target;
use crate::tile::buffer::Space;
use crate::tile::element::Parallel;
use crate::tile::kernel::{If, Kernel, Loop, Stmt, Unroll};
use crate::tile::op::Op;
use crate::tile::role::Role;

/// The variant of a pipelined loop in which the copy engine fills stages, and a warp of its own issues the copies.
pub const TMA_WARP_SPECIALISED: &str = "tma_warp_specialised";
/// The variant in which the copy engine executes copies: of ops, and of pipelined loops.
pub const TMA: &str = "tma";
/// The variant in which the copy engine moves a tile as a run of neighbouring elements, without a tensor map.
pub const BULK: &str = "bulk";

/// The kernel with a producer warp for the loops that ask for it, by their variant or by that of the options: the statements
/// that copy ahead are those of the role `producer`, a warp more, and all others those of the role `consumer`. A kernel that
/// [cannot have one](Kernel::has_no_producer) stays as it is.
pub fn with_producer(mut kernel: Kernel, target: Target, asked: Option<&str>) -> Kernel {
    if asked == Some(TMA_WARP_SPECIALISED) {
        kernel.body = asking(std::mem::take(&mut kernel.body));
    }
    let mut copies = Statements::default();
    let loops = kernel.all_fills();
    for (inner, fills) in loops.iter().filter(|(inner, _)| inner.variant.as_deref() == Some(TMA_WARP_SPECIALISED)) {
        fills.statements.iter().for_each(|at| copies.add(&inner.body[*at]));
    }
    if copies == Statements::default() || kernel.has_no_producer(target).is_some() {
        return kernel;
    }
    let span = loops.first().map_or(kernel.span, |(inner, _)| inner.span);
    let warps = kernel.threads / LANES as i64;
    let role = |name: &str, first, warps| Role { name: name.to_string(), first, warps, span };
    let mut roles = Arena::new();
    let consumer = roles.push(role("consumer", 0, warps));
    let producer = roles.push(role("producer", warps, 1));
    let of = |is_copy: bool| Some(if is_copy { producer } else { consumer });
    kernel.roles = roles;
    kernel.threads += LANES as i64;
    let ops: Vec<Handle<Op>> = kernel.ops.iter().map(|(handle, _)| handle).collect();
    ops.into_iter().for_each(|op| kernel.ops[op].role = of(copies.ops.contains(&op)));
    let parallels: Vec<Handle<Parallel>> = kernel.parallels.iter().map(|(handle, _)| handle).collect();
    parallels.into_iter().for_each(|nest| kernel.parallels[nest].role = of(copies.parallels.contains(&nest)));
    kernel
}

/// Ops and parallel loops.
#[derive(Default, PartialEq)]
struct Statements {
    ops: BTreeSet<Handle<Op>>,
    parallels: BTreeSet<Handle<Parallel>>,
}

impl Statements {
    fn add(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Op(op) => _ = self.ops.insert(*op),
            Stmt::Parallel(parallel) => _ = self.parallels.insert(*parallel),
            Stmt::Loop(_) | Stmt::EachThread(_) | Stmt::If(_) | Stmt::Begin(_) | Stmt::End(_) => {}
        }
    }
}

/// The statements with the variant asked for in each pipelined loop that has none.
fn asking(body: Vec<Stmt>) -> Vec<Stmt> {
    let in_stmt = |stmt: Stmt| match stmt {
        Stmt::Loop(inner) => {
            let is_open = matches!(inner.unroll, Unroll::Pipelined(_)) && inner.variant.is_none();
            let variant = if is_open { Some(TMA_WARP_SPECIALISED.to_string()) } else { inner.variant };
            Stmt::Loop(Loop { variant, body: asking(inner.body), ..inner })
        }
        Stmt::If(If { cond, then, otherwise, span }) => {
            Stmt::If(If { cond, then: asking(then), otherwise: asking(otherwise), span })
        }
        Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) | Stmt::Begin(_) | Stmt::End(_) => stmt,
    };
    body.into_iter().map(in_stmt).collect()
}

impl Kernel {
    /// Why a kernel cannot have a warp that copies for all others; `None` if it can.
    pub fn has_no_producer(&self, target: Target) -> Option<Reason> {
        let (lanes, most) = (LANES as i64, target.max_threads());
        if !self.roles.is_empty() {
            return Some(Reason::new(
                "the kernel has roles of its own",
                "a role for the copies, written in the kernel",
            ));
        }
        if self.threads % lanes != 0 || self.threads + lanes > most {
            let text = format!("a CTA of {} threads cannot have a warp more", self.threads);
            return Some(Reason::new(text, format!("multiples of {lanes} threads, up to {}", most - lanes)));
        }
        if self.ops.iter().any(|(_, op)| op.scope == Scope::Warp || op.warp.is_some()) {
            return Some(Reason::new("the kernel has ops of single warps", "ops of the CTA"));
        }
        needs_all_threads(self, &self.body).then(|| {
            let text = "the kernel has statements of each thread, or conditions on fragments";
            Reason::new(text, "parallel loops, and conditions on memory")
        })
    }
}

/// Whether all threads of the CTA execute some of these statements, or read fragments in conditions around them.
fn needs_all_threads(kernel: &Kernel, body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::EachThread(_) => true,
        Stmt::Loop(inner) => needs_all_threads(kernel, &inner.body),
        Stmt::If(branch) => {
            let mut reads = false;
            branch.cond.for_each_load(&mut |access| {
                reads |= kernel.buffers[access.buffer].space == Space::Fragment;
            });
            reads || needs_all_threads(kernel, &branch.then) || needs_all_threads(kernel, &branch.otherwise)
        }
        Stmt::Op(_) | Stmt::Parallel(_) | Stmt::Begin(_) | Stmt::End(_) => false,
    })
}
