//! The cost of accesses to shared memory.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tilewright::layout::access::{AccessKind, LANES, WarpAccess};
use tilewright::layout::axis::M;
use tilewright::layout::banks::{AccessPattern, bank_of, bank_view, line_of};
use tilewright::layout::hardware::SwizzleMode;
use tilewright::layout::{ComposeLayout, Layout, LayoutError, TileLayout};

use super::golden::layouts;

/// The element widths offered by the page, in bits.
const BITS: [i64; 6] = [4, 8, 16, 32, 64, 128];
/// A layout whose copies are at lower positions than its elements.
const COPIES_BELOW: &str = "S[(4,8):(8,1)] + R[2:-32] + 33";

/// Accesses to every layout on linear memory, `[layout, lanes, bits, kind, cost]`: adjacent lanes access adjacent
/// elements, or each lane accesses a run of them. The cost is the bytes per lane, instructions, wavefronts, and the
/// minimum number of wavefronts; or the code and message of the error.
pub(crate) fn golden_accesses(texts: &BTreeSet<String>) -> Vec<Value> {
    let mut texts = texts.clone();
    texts.insert(COPIES_BELOW.to_string());
    let mut accesses = Vec::new();
    for (text, layout) in layouts(&texts).filter(|(_, layout)| layout.axes() == BTreeSet::from([M])) {
        let lanes: i64 = 1 << layout.size().trailing_zeros().min(LANES.ilog2());
        let registers = layout.size() / lanes;
        let neighbours = format!("S[({registers},{lanes}):(1@reg,1@laneid)]");
        let runs = format!("S[({lanes},{registers}):(1@laneid,1@reg)]");
        for bits in BITS {
            for (pattern, kind, name) in [(&neighbours, AccessKind::Load, "load"), (&runs, AccessKind::Store, "store")]
            {
                let cost = match cost(&layout, bits, pattern, kind) {
                    Ok(cost) => json!(cost),
                    Err(error) => json!([error.code(), error.to_string()]),
                };
                accesses.push(json!([text, pattern, bits, name, cost]));
            }
        }
    }
    accesses
}

fn cost(layout: &Layout, bits: i64, lanes: &str, kind: AccessKind) -> Result<[u64; 4], LayoutError> {
    let (lanes, size): (TileLayout, i64) = (lanes.parse()?, layout.size());
    let pattern = AccessPattern::new("golden", kind, &lanes, &[size], std::slice::from_ref(&(0..size)))?;
    let view = bank_view(layout, bits, &pattern)?;
    let (wavefronts, ideal) = (view.wavefronts(), view.ideal_wavefronts());
    Ok([view.width, view.instructions.len() as u64, u64::from(wavefronts), u64::from(ideal)])
}

/// Accesses of a warp with their wavefronts: of all widths, strided, paired, scattered, with inactive lanes.
pub(crate) fn warp_accesses() -> Vec<Value> {
    let mut random = 1u64;
    let mut next = move |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut accesses = Vec::new();
    for width in [1, 2, 4, 8, 16] {
        for case in 0..60 {
            let (stride, merged, idle) = (next(40), [0, 1, 2, 3][case % 4], case % 5 == 4);
            let scattered: Vec<u64> = (0..LANES).map(|_| next(64)).collect();
            let address = |lane: usize| {
                let leader = lane & !merged;
                let unit = if case.is_multiple_of(3) { scattered[leader] } else { leader as u64 * stride };
                (!idle || !lane.is_multiple_of(3)).then_some(unit * width)
            };
            for (kind, name) in [(AccessKind::Load, "load"), (AccessKind::Store, "store")] {
                let access = WarpAccess::of(width, kind, address);
                let cost = [access.wavefronts(), access.ideal_wavefronts()];
                accesses.push(json!({ "addresses": access.addresses, "width": width, "kind": name, "cost": cost }));
            }
        }
    }
    accesses
}

/// Addresses in elements with byte, line and bank: `[bits, address, byte, line, bank]`.
pub(crate) fn addresses() -> Vec<Value> {
    let numbered = |bits: i64| {
        (0..600).map(move |address: i64| {
            let byte = (address * bits / 8) as u64;
            json!([bits, address, byte, line_of(byte), bank_of(byte)])
        })
    };
    BITS.into_iter().flat_map(numbered).collect()
}

/// Every swizzle mode over 8 elements of every width: `[bits, bytes, layout]`.
pub(crate) fn modes() -> Result<Vec<Value>, LayoutError> {
    let tile: TileLayout = "S[8:1]".parse()?;
    let mut modes = Vec::new();
    for bits in BITS {
        for mode in [SwizzleMode::B32, SwizzleMode::B64, SwizzleMode::B128] {
            let swizzled = ComposeLayout::new(mode.swizzle(bits)?, tile.clone())?;
            modes.push(json!([bits, mode.bytes(), swizzled.to_string()]));
        }
    }
    Ok(modes)
}
