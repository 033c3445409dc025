//! Clusters have a number of CTAs that GPUs run, and pairs of CTAs multiply what both of them have brought to a ring.

use tilewright_diag::{Diagnostic, Span, counted};

use crate::arena::Handle;
use crate::target::Target;
use crate::tile::buffer::Buffer;
use crate::tile::cluster::{CLUSTERS, PAIR};
use crate::tile::kernel::Kernel;
use crate::tile::op::{Op, OpKind};
use crate::tile::ring::{Hold, Ring, Side};
use crate::tile::role::Role;

pub(super) fn check(kernel: &Kernel, target: Target, found: &mut Vec<Diagnostic>) {
    if let Some(cluster) = kernel.cluster.filter(|cluster| !CLUSTERS.contains(&cluster.ctas)) {
        let message = format!("a cluster cannot have {} CTAs", cluster.ctas);
        let finding = wrong(message, cluster.span, "this cluster");
        found.push(finding.help("a cluster has 1, 2, 4 or 8 CTAs: all GPUs with clusters run eight, and not more"));
        return;
    }
    let products: Vec<&Op> = kernel.ops.iter().map(|(_, op)| op).filter(|op| is_said_to_be_of_pair(op)).collect();
    for op in &products {
        found.extend(no_pair(kernel, op, target));
    }
    if !found.is_empty() || products.is_empty() {
        return;
    }
    found.extend(of_single_cta(kernel));
    found.extend(kernel.ops.iter().filter_map(|(_, op)| beside_products(kernel, op)));
    found.extend(kernel.parallels.iter().filter_map(|(_, parallel)| {
        let role = parallel.role.filter(|role| kernel.leads(*role))?;
        Some(does_other_things(kernel, role, parallel.span))
    }));
    found.extend(kernel.rings.iter().filter_map(|(ring, _)| wrong_ring(kernel, ring)));
    stored_factors(kernel, found);
}

/// Adds the errors for factors of a pair that threads store: only what the copy engine brings counts at a barrier of the other CTA.
fn stored_factors(kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    let mut check = |buffer: Handle<Buffer>, span: Span| {
        let is_of_factors =
            |ring: Handle<Ring>| kernel.is_led(ring, Side::Consume) && !kernel.rings[ring].is_exchange();
        if kernel.ring_of(buffer).is_some_and(is_of_factors) {
            let message =
                format!("`{}` is stored in a stage that a pair of CTAs multiplies", kernel.buffers[buffer].name);
            let help = "copy it from a tensor: what the copy engine brings counts at the barrier of the other CTA, and stores do not";
            found.push(wrong(message, span, "here").help(help));
        }
    };
    for (_, op) in kernel.ops.iter().filter(|(_, op)| !op.kind.is_copy()) {
        let written = op.operands.iter().enumerate().filter(|(place, _)| op.effect(*place).writes());
        written.for_each(|(_, tile)| check(tile.buffer, op.span));
    }
    for (_, parallel) in kernel.parallels.iter() {
        let mut stored = Vec::new();
        for element in &parallel.body {
            element
                .for_each_access(&mut |access, writes| stored.extend(writes.then_some((access.buffer, access.span))));
        }
        stored.into_iter().for_each(|(buffer, span)| check(buffer, span));
    }
}

fn wrong(message: String, span: Span, label: &str) -> Diagnostic {
    Diagnostic::error("K0287", message).label(span, label)
}

fn is_said_to_be_of_pair(op: &Op) -> bool {
    op.kind.product().is_some_and(|gemm| gemm.pair)
}

/// The error for a product that no pair of CTAs can compute.
fn no_pair(kernel: &Kernel, op: &Op, target: Target) -> Option<Diagnostic> {
    let wrong = |message: &str| wrong(message.to_string(), op.span, "this product");
    if !matches!(op.kind, OpKind::GemmAsync(_)) {
        return Some(wrong("`gemm` is a product of one CTA").help("use k.gemm_async, with sums in tensor memory"));
    }
    if target != Target::Sm100a {
        let message = format!("{target} has no products of pairs of CTAs");
        return Some(wrong(&message).help("leave out `pair`: each CTA multiplies by itself"));
    }
    if kernel.cluster_ctas() < PAIR {
        let message = format!("a pair multiplies in a cluster of {}", counted(kernel.cluster_ctas(), "CTA"));
        return Some(wrong(&message).help("call k.cluster(2) before k.grid; a cluster of 4 has two pairs"));
    }
    let [sums, factors @ ..] = &op.operands[..] else { return None };
    if !kernel.is_in_tensor_memory(sums.buffer) || op.role.is_none() {
        let help = "let a role of one warp produce the sums in a ring: k.ring(\"acc\", 2, |r| r.tensor(\"sums\", F32, [128, 256]))";
        return Some(wrong("a pair of CTAs adds to sums that are not in tensor memory").help(help));
    }
    let is_outside = |buffer: &Handle<Buffer>| kernel.ring_of(*buffer).is_none();
    let outside = factors.iter().map(|tile| tile.buffer).find(is_outside)?;
    let message = format!("a pair of CTAs multiplies `{}`, which is in no ring", kernel.buffers[outside].name);
    Some(
        wrong(&message)
            .help("the barriers of a ring tell when both CTAs have brought their factors: declare it in k.ring"),
    )
}

/// The error for a product of a single CTA beside those of pairs: all instructions on tensor memory of a kernel are for as many CTAs (PTX
/// ISA, "tcgen05", `.cta_group`).
fn of_single_cta(kernel: &Kernel) -> Option<Diagnostic> {
    let is_single = |op: &&Op| {
        matches!(op.kind, OpKind::GemmAsync(_)) && kernel.uses_tensor_memory(op) && !is_said_to_be_of_pair(op)
    };
    let single = kernel.ops.iter().map(|(_, op)| op).find(is_single)?;
    let message = "a kernel has products of pairs of CTAs, and of single CTAs".to_string();
    Some(
        wrong(message, single.span, "this is one of a single CTA")
            .help("let all of them be products of pairs, or none"),
    )
}

/// The error for what a role does that a role which multiplies for a pair cannot do, as it runs in one of the CTAs.
fn beside_products(kernel: &Kernel, op: &Op) -> Option<Diagnostic> {
    let role = op.role.filter(|role| kernel.leads(*role))?;
    let is_of_sums = op.operands.first().is_some_and(|tile| kernel.is_in_tensor_memory(tile.buffer));
    let is_right = is_said_to_be_of_pair(op) || matches!(op.kind, OpKind::Fill(_)) && is_of_sums;
    (!is_right).then(|| does_other_things(kernel, role, op.span))
}

fn does_other_things(kernel: &Kernel, role: Handle<Role>, span: Span) -> Diagnostic {
    let name = &kernel.roles[role].name;
    let message = format!("the role `{name}` multiplies for a pair of CTAs, and does other things too");
    let help =
        "it runs in the first CTA of the pair only: fill sums and multiply there, and do the rest in another role";
    wrong(message, span, "this").help(help)
}

/// The error for a ring of a role that multiplies for a pair, if others use its stages too, or if the CTAs may differ in their number.
fn wrong_ring(kernel: &Kernel, handle: Handle<Ring>) -> Option<Diagnostic> {
    let ring = &kernel.rings[handle];
    let of_ring = |side: Side| {
        kernel.holds.iter().map(|(_, hold)| hold).filter(move |hold| hold.ring == handle && hold.side == side)
    };
    let leads = |hold: &&Hold| hold.role.is_some_and(|role| kernel.leads(role));
    if ring.claims() {
        return None;
    }
    if let Some(hold) = [Side::Consume, Side::Produce].into_iter().find_map(|side| of_ring(side).find(leads))
        && ring.is_exchange()
    {
        let message = format!("`{}` is exchanged with a role that multiplies for a pair of CTAs", ring.name);
        let help = "use a ring, k.ring(..), in which that role begins new sums in each stage";
        return Some(wrong(message, hold.span, "this role is one of the pair").help(help));
    }
    for side in [Side::Consume, Side::Produce] {
        let (one, other) = (of_ring(side).find(leads), of_ring(side).find(|hold| !leads(hold)));
        if let (Some(_), Some(other)) = (one, other) {
            let message = format!("the ring `{}` is one of a pair of CTAs, and of single CTAs", ring.name);
            let help = "let only roles that multiply for the pair be on this side of the ring";
            return Some(wrong(message, other.span, "this role is one of a single CTA").help(help));
        }
    }
    let is_of_pair = [Side::Consume, Side::Produce].into_iter().any(|side| kernel.is_led(handle, side));
    (is_of_pair && !kernel.is_same_in_cluster(handle)).then(|| {
        let message = format!("the CTAs of a pair may go through different numbers of stages of `{}`", ring.name);
        wrong(message, ring.span, "this ring").help("let no loop around its stages depend on the rank in the cluster")
    })
}
