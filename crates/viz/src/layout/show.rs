//! `layout.show()`: one screen, for a test or a debugger.

use tilewright_layout::{Iter, Layout, TileLayout};

use crate::Style;
use crate::layout::tensor::tensor_text;
use crate::layout::text::TextOptions;
use crate::layout::view::LayoutView;

const SCREEN: TextOptions = TextOptions { width: 80, height: 40, style: Style::Plain };
/// Bits of an element, which plain text does not depend on.
const BITS: i64 = 32;

/// A picture of a value on one screen.
pub trait Show {
    /// The notation and the tensor view in [`default_shape`], in at most 80 columns and 40 lines, without colours.
    fn show(&self) -> String;
}

impl Show for Layout {
    fn show(&self) -> String {
        let drawn = LayoutView::new(self, &default_shape(self), BITS).and_then(|view| tensor_text(&view, &SCREEN));
        drawn.unwrap_or_else(|error| format!("{self}\n{error}\n"))
    }
}

impl Show for TileLayout {
    fn show(&self) -> String {
        Layout::Tile(self.clone()).show()
    }
}

/// The shape that a layout is drawn in if none is given: its shard extents in two runs, as square as possible.
/// `S[(8,2,4,2):...]` is drawn as `(8,16)`. A single iter and a table have one dimension.
pub fn default_shape(layout: &Layout) -> Vec<i64> {
    match layout {
        Layout::Tile(tile) => most_square(tile.shard()),
        Layout::Compose(compose) => most_square(compose.tile().shard()),
        Layout::Table(table) => vec![table.size()],
    }
}

fn most_square(iters: &[Iter]) -> Vec<i64> {
    let size: i64 = iters.iter().map(|iter| iter.extent).product();
    let cuts = (1..iters.len()).map(|cut| {
        let rows: i64 = iters.iter().take(cut).map(|iter| iter.extent).product();
        vec![rows, size / rows]
    });
    cuts.min_by_key(|shape| shape.iter().copied().max()).unwrap_or_else(|| vec![size])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(notation: &str) -> Vec<i64> {
        default_shape(&notation.parse().unwrap())
    }

    #[test]
    fn the_shape_is_as_square_as_the_iters_allow() {
        assert_eq!(shape("S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)]"), [8, 16]);
        assert_eq!(shape("S[(4,2,2,4):(16,4,8,1)]"), [8, 8]);
        assert_eq!(shape("swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]"), [8, 64]);
        assert_eq!((shape("S[12:1]"), shape("S[():()]")), (vec![12], vec![1]));
    }

    #[test]
    fn nothing_is_larger_than_a_screen() {
        let texts = [
            "S[(8192,8192):(8192,1)]",
            "S[1048576:1@reg] + R[2:1@laneid]",
            "S[(64,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2):(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19)]",
            "S[(32,4):(1@a_long_name_of_an_axis_of_a_machine,1@another_long_name_of_an_axis_of_a_machine)]",
            "S[(128,128):(1@TLane,1@TCol)] + R[(2,2,2,2):(1000@TCol,2000@TCol,4000@TCol,128@TLane)]",
        ];
        for text in texts {
            let shown = text.parse::<TileLayout>().unwrap().show();
            assert!(shown.lines().count() <= 40, "{} lines of {text}", shown.lines().count());
            assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        }
    }

    #[test]
    fn a_tile_is_shown_in_its_default_shape() {
        let expected = "\
S[(4,2,2,4):(16@m,4@m,8@m,1@m)], shape (8,8)
a number is an address on m, in elements

    0   1   2   3   4   5   6   7
0   0   1   2   3   8   9  10  11
1   4   5   6   7  12  13  14  15
2  16  17  18  19  24  25  26  27
3  20  21  22  23  28  29  30  31
4  32  33  34  35  40  41  42  43
5  36  37  38  39  44  45  46  47
6  48  49  50  51  56  57  58  59
7  52  53  54  55  60  61  62  63
";
        assert_eq!("S[(4,2,2,4):(16,4,8,1)]".parse::<TileLayout>().unwrap().show(), expected);
    }
}
