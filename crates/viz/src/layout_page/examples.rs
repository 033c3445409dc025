//! The examples that a page offers.

use tilewright_layout::LayoutError;
use tilewright_layout::hardware::SwizzleMode;

use super::conversion::PageConversion;
use super::state::{PageState, PageView};

/// The entries of the menu of examples: a name, and the state that it shows.
pub(super) fn examples() -> Vec<(&'static str, PageState)> {
    let tile = |layout: &str, shape: &[i64]| PageState { shape: shape.to_vec(), ..PageState::new(layout) };
    let rows = |swizzle| PageState {
        view: PageView::Banks,
        access: Some("S[(32,64):(1@laneid,1@reg)]".to_string()),
        swizzle,
        ..tile("S[(32,64):(64,1)]", &[32, 64])
    };
    let conversion = |to: &str| PageState {
        bits: 32,
        view: PageView::Conversion,
        to: Some(to.to_string()),
        ..tile("S[(8,4,2):(4@laneid,1@laneid,1@reg)]", &[8, 8])
    };
    vec![
        ("Row-major 8 x 16", tile("S[(8,16):(16,1)]", &[8, 16])),
        (
            "Memory in tiles of 2 x 4",
            PageState { view: PageView::Hardware, ..tile("S[(4,2,2,4):(16,4,8,1)]", &[8, 8]) },
        ),
        ("Register fragment m8n8", tile("S[(8,4,2):(4@laneid,1@laneid,1@reg)]", &[8, 8])),
        ("Accumulator m16n8", tile("S[(2,8,4,2):(2@reg,4@laneid,1@laneid,1@reg)]", &[16, 8])),
        (
            "Warps, replicas and offset",
            tile("S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)] + R[2:4@warpid] + 5@warpid", &[8, 16]),
        ),
        (
            "Tensor memory, 224 columns in two halves",
            PageState { bits: 32, ..tile("S[(2,128,112):(112@TCol,1@TLane,1@TCol)]", &[256, 112]) },
        ),
        (
            "Scale factors, four copies",
            PageState { bits: 8, ..tile("S[(32,4):(1@TLane,1@TCol)] + R[4:32@TLane]", &[32, 4]) },
        ),
        ("Mesh of 2 x 2 devices, shard and replica", tile("S[(2,4,8):(1@gpuid_y,8@m,1@m)] + R[2:1@gpuid_x]", &[8, 8])),
        ("Rows of an f16 tile, unswizzled", rows(None)),
        ("Rows of an f16 tile, 128-byte swizzle", rows(Some(SwizzleMode::B128))),
        ("Conversion within quads of lanes", conversion("S[(8,2,4):(4@laneid,1@reg,1@laneid)]")),
        ("Conversion to the transpose", conversion("S[(4,2,8):(1@laneid,1@reg,4@laneid)]")),
    ]
}

/// The conversion that a state shows, if any. Errors: texts that are not fragments of one tile.
pub(super) fn conversion_of(state: &PageState) -> Result<Option<PageConversion>, LayoutError> {
    let Some(to) = &state.to else { return Ok(None) };
    PageConversion::between_fragments(&state.layout.parse()?, &to.parse()?, state.bits).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_conversion_among_the_examples_has_a_plan() {
        let planned: Vec<_> = examples().iter().map(|(_, state)| conversion_of(state).unwrap()).collect();
        assert_eq!(planned.iter().flatten().count(), 2);
        assert!(planned.iter().flatten().all(|conversion| conversion.json_text().contains(r#""kind":"shuffles""#)));
    }
}
