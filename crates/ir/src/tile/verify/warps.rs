//! A warp-scope op that several warps reach must work on a different tile in each warp, or name one warp. No warp may
//! touch what another one writes.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::Var;
use tilewright_layout::axis::Scope;

use super::owners;
use super::races::{self, Iterations, WARPS_HELP, Who};
use crate::counter::Counter;
use crate::scalar::Scalar;
use crate::tile::buffer::Space;
use crate::tile::element::{Claim, ElementStmt};
use crate::tile::kernel::Kernel;
use crate::tile::op::{Effect, Op};
use crate::tile::print::tile_title;
use crate::tile::tiles::Tile;
use crate::tile::value::Value;

pub(super) fn check(kernel: &Kernel, op: &Op, found: &mut Vec<Diagnostic>) {
    let warps = kernel.warps();
    if op.scope != Scope::Warp {
        found.extend(op.operands.iter().find_map(|tile| tile_of_a_warp(kernel, op, tile)));
        return;
    }
    if warps > 1 {
        found.extend(op.operands.iter().find_map(|tile| beyond_the_warp(kernel, op, tile)));
    }
    if let Some(warp) = op.warp {
        if warp < 0 || warp >= warps {
            let message = format!("warp {warp} does not exist: the number of warps is {warps}");
            let legal = match warps {
                1 => "the only warp of this CTA is 0".to_string(),
                _ => format!("the warps of this CTA are 0 to {}", warps - 1),
            };
            let help = format!("{legal}; `k.threads(n)` gives a CTA one warp for each 32 threads");
            found.push(Diagnostic::error("K0220", message).label(op.span, "this op").help(help));
        }
        return;
    }
    if warps == 1 {
        return;
    }
    match same_tile(kernel, op) {
        Some(finding) => found.push(finding),
        None => {
            let body = by_elements(op);
            let iterations = Iterations { vars: vec![kernel.warp()], body: &body, who: Who::Warps(op.span) };
            races::check(kernel, &iterations, &[], found);
        }
    }
}

/// Reports an op whose warps all write the same tile.
fn same_tile(kernel: &Kernel, op: &Op) -> Option<Diagnostic> {
    let (warp, info) = (kernel.warp(), op.kind.info());
    let mut written = op.tiles().filter(|(operand, _)| operand.effect.writes());
    let is_of_all = |tile: &Tile| {
        let is_in_memory = kernel.buffers[tile.buffer].space != Space::Fragment;
        is_in_memory && !tile.starts.iter().any(|start| start.mentions(&warp))
    };
    let (_, tile) = written.find(|(_, tile)| is_of_all(tile))?;
    let title = tile_title(kernel, tile);
    let message = format!("all {} warps would execute `{}` on the same tile `{title}`", kernel.warps(), info.name);
    let finding = Diagnostic::error("K0221", message).label(op.span, "a warp-scope op that several warps reach");
    Some(finding.help(WARPS_HELP))
}

/// What a warp does to its tiles, as statements on single elements.
fn by_elements(op: &Op) -> Vec<ElementStmt> {
    let operands = op.tiles();
    operands.map(|(operand, tile)| of_tile(tile, operand.effect, op.span)).collect()
}

fn of_tile(tile: &Tile, effect: Effect, span: Span) -> ElementStmt {
    let extents = tile.non_unit_extents();
    let vars: Vec<Var> = extents.iter().enumerate().map(|(at, e)| Var::new(format!("#{at}"), 0, e - 1)).collect();
    let access = tile.access(&vars, span);
    let element = match effect {
        Effect::Read | Effect::Move => ElementStmt::Let { name: "#".to_string(), value: Value::Load(access), span },
        Effect::Write | Effect::Update => {
            ElementStmt::Store { to: access, value: Value::Const(Scalar::Int(0)), claim: Claim::None }
        }
    };
    vars.iter().rev().fold(element, |inner, var| ElementStmt::For {
        counter: Counter::of(var.clone()),
        body: vec![inner],
        span,
    })
}

/// The error for an op of the whole CTA on a tile that differs between warps: each warp would do part of a different
/// tile.
fn tile_of_a_warp(kernel: &Kernel, op: &Op, tile: &Tile) -> Option<Diagnostic> {
    let is_moved = kernel.warps() > 1 && tile.starts.iter().any(|start| start.mentions(&kernel.warp()));
    is_moved.then(|| {
        let (name, title) = (op.kind.info().name, tile_title(kernel, tile));
        if kernel.seen_by.is_some() {
            return super::index::of_the_warp(&title).label(op.span, "in this op");
        }
        Diagnostic::error("K0248", format!("`{name}` runs on the CTA, but its tile `{title}` depends on the warp"))
            .label(op.span, "all warps execute this op together")
            .help("let each warp execute it on its own tile, with k.warp()")
    })
}

/// The error for a tile in a fragment that one warp does not hold completely: the tile is not a separate slice for each
/// warp, and the warp that the op names does not hold all of the fragment.
fn beyond_the_warp(kernel: &Kernel, op: &Op, tile: &Tile) -> Option<Diagnostic> {
    let buffer = &kernel.buffers[tile.buffer];
    if buffer.space != Space::Fragment || kernel.warp_slice_dimension(tile).is_some() {
        return None;
    }
    let owner = &kernel.buffers[kernel.storage(tile.buffer)];
    let Some(layout) = &owner.layout else { return Some(of_several_warps(kernel, op, tile)) };
    if !layout.unnamed_thread_axes(kernel.threads).is_empty() {
        // That has been reported.
        return None;
    }
    let map = match owners::map_of(kernel, owner) {
        Ok(map) => map?,
        Err(finding) => return Some(finding),
    };
    let is_of_others = |warp: i64| map.entries().any(|(thread, ..)| thread as i64 / 32 != warp);
    op.warp.is_none_or(is_of_others).then(|| of_several_warps(kernel, op, tile))
}

/// One warp cannot read or write the registers of another.
fn of_several_warps(kernel: &Kernel, op: &Op, tile: &Tile) -> Diagnostic {
    let (name, buffer, warps) = (op.kind.info().name, &kernel.buffers[tile.buffer], kernel.warps());
    let whose = op.warp.map_or("each warp".to_string(), |warp| format!("warp {warp}"));
    let message = format!("`{name}` runs on {whose}, but other warps hold parts or copies of `{}`", buffer.name);
    let held = buffer.layout.as_ref().map_or("its layout is inferred for all warps".to_string(), |_| buffer.laid_out());
    let finding =
        Diagnostic::error("K0249", message).label(op.span, "an op of one warp at a time").label(buffer.span, held);
    let own = "for a fragment per warp, give it a leading dimension";
    finding
        .help(format!("let the CTA execute it: k.{name}(..)"))
        .help(format!("{own} `{warps}:1@warpid`, and take `.sub((warp, ..))` of it with k.warp_id()"))
}
