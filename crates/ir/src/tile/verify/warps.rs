//! A warp-scope op that several warps reach must be several ops: each warp on its own tile, or one warp by name.

use std::collections::BTreeSet;

use tilewright_diag::Diagnostic;
use tilewright_expr::{Expr, Var};
use tilewright_layout::axis::Scope;
use tilewright_layout::map::Map;

use crate::tile::kernel::{Kernel, Space, Tile};
use crate::tile::op::Op;
use crate::tile::print::tile_title;

/// The most positions that one comparison of two warps' tiles looks at.
const LIMIT: i64 = tilewright_layout::ENUMERATION_LIMIT;

pub(super) fn check(kernel: &Kernel, op: &Op, found: &mut Vec<Diagnostic>) {
    let warps = kernel.warps();
    if op.scope != Scope::Warp {
        found.extend(op.operands.iter().find_map(|tile| tile_of_a_warp(kernel, op, tile)));
        return;
    }
    if warps > 1
        && let Some(tile) = op.operands.iter().find(|tile| is_beyond_the_warp(kernel, op, tile))
    {
        found.push(of_several_warps(kernel, op, tile));
    }
    if let Some(warp) = op.warp {
        if warp < 0 || warp >= warps {
            let message = format!("warp {warp} of a CTA that has {warps}");
            found.push(Diagnostic::error("K0220", message).label(op.span, "this op"));
        }
        return;
    }
    if warps == 1 {
        return;
    }
    let written = op.kind.info().operands.iter().zip(&op.operands).filter(|(o, _)| o.effect.writes());
    for (_, tile) in written {
        let shared_storage = kernel.buffers[tile.buffer].space != Space::Fragment;
        if shared_storage && warps_meet(kernel, tile) {
            let name = op.kind.info().name;
            let message =
                format!("all {warps} warps would do `{name}` on the same tile `{}`", tile_title(kernel, tile));
            found.push(
                Diagnostic::error("K0221", message)
                    .label(op.span, "a warp-scope op that several warps reach")
                    .help("name the warp: k.warp_at(0), or give each its own tile with an index that uses k.warp_id()"),
            );
        }
    }
}

/// An op of the whole CTA on a tile that is another in every warp: each warp would do a part of another tile.
fn tile_of_a_warp(kernel: &Kernel, op: &Op, tile: &Tile) -> Option<Diagnostic> {
    let is_moved = kernel.warps() > 1 && tile.starts.iter().any(|start| start.mentions(&kernel.warp()));
    is_moved.then(|| {
        let (name, title) = (op.kind.info().name, tile_title(kernel, tile));
        Diagnostic::error("K0248", format!("`{name}` by the CTA, on the tile `{title}`, which depends on the warp"))
            .label(op.span, "an op of all warps together")
            .help("let each warp do it on its own tile, with k.warp()")
    })
}

/// Whether a tile is in registers that one warp cannot reach whole: it is no slice of each warp's own, and not all of the
/// fragment is in the warp that the op names.
fn is_beyond_the_warp(kernel: &Kernel, op: &Op, tile: &Tile) -> bool {
    let buffer = &kernel.buffers[tile.buffer];
    if buffer.space != Space::Fragment || kernel.own_of_warps(tile).is_some() {
        return false;
    }
    let owner = &kernel.buffers[kernel.storage(tile.buffer)];
    // A layout that is wrong by itself is told of already.
    let Some(layout) = owner.layout.as_ref() else { return true };
    let is_told = !layout.unnamed_thread_axes(kernel.threads).is_empty();
    let map = (!is_told).then(|| Map::of_layout(layout, kernel.threads.max(1) as usize));
    let Some(Ok(map)) = map else { return false };
    let Some(warp) = op.warp else { return true };
    map.entries().any(|(thread, ..)| thread as i64 / 32 != warp)
}

/// One warp cannot read or write the registers of another.
fn of_several_warps(kernel: &Kernel, op: &Op, tile: &Tile) -> Diagnostic {
    let (name, buffer, warps) = (op.kind.info().name, &kernel.buffers[tile.buffer], kernel.warps());
    let whose = op.warp.map_or("each warp".to_string(), |warp| format!("warp {warp}"));
    let message = format!("`{name}` by {whose}, but other warps hold parts or copies of `{}`", buffer.name);
    let held = buffer.layout.as_ref().map_or("its layout is chosen for all warps".to_string(), |_| buffer.laid_out());
    let finding =
        Diagnostic::error("K0249", message).label(op.span, "an op of one warp at a time").label(buffer.span, held);
    let own = "for a fragment of each warp's own, give it a leading dimension";
    finding
        .help(format!("let the CTA do it: k.{name}(..)"))
        .help(format!("{own} `{warps}:1@warpid`, and take `.sub((&warp, ..))` of it with k.warp_id()"))
}

/// True when two warps write a common position, or when whether they do depends on more than the warp.
fn warps_meet(kernel: &Kernel, tile: &Tile) -> bool {
    let buffer = &kernel.buffers[tile.buffer];
    let warp = kernel.warp();
    if !tile.starts.iter().any(|start| start.mentions(&warp)) {
        return true;
    }
    if buffer.run_time.is_some() {
        return boxes_meet(kernel, tile);
    }
    let placed = buffer.layout.as_ref().map(|layout| layout.place(&buffer.shape, &tile.starts, &tile.extents));
    let Some(Ok(placed)) = placed else { return true };
    if placed.size() * kernel.warps() > LIMIT {
        return true;
    }
    let relative = placed.positions();
    let starts: Option<Vec<i64>> = (0..kernel.warps()).map(|w| distance_from_warp_0(&placed.start, &warp, w)).collect();
    let Some(starts) = starts else { return true };
    let mut taken: BTreeSet<i64> = BTreeSet::new();
    starts.iter().any(|start| relative.iter().any(|r| !taken.insert(start + r)))
}

/// True unless the boxes of any two warps are apart in some dimension.
fn boxes_meet(kernel: &Kernel, tile: &Tile) -> bool {
    let warp = kernel.warp();
    let apart = |first: i64, second: i64| {
        tile.starts.iter().zip(&tile.extents).any(|(start, extent)| {
            let distance = start.with(&warp, second) - start.with(&warp, first);
            let distance = tilewright_expr::linear::normalize(&distance).as_const();
            distance.is_some_and(|distance| distance.abs() >= *extent)
        })
    };
    (0..kernel.warps()).any(|second| (0..second).any(|first| !apart(first, second)))
}

/// How far the tile of warp `w` is from that of warp 0, if that does not depend on anything else.
fn distance_from_warp_0(start: &Expr, warp: &Var, w: i64) -> Option<i64> {
    let apart = start.with(warp, w) - start.with(warp, 0);
    tilewright_expr::linear::normalize(&apart).as_const()
}
