//! The tensor view: every element of the tile at its coordinate in the shape, with its places.

use tilewright_layout::{ENUMERATION_LIMIT, LayoutError};

use crate::layout::blocks::Blocks;
use crate::layout::fold::Fold;
use crate::layout::label::{Labels, tuple};
use crate::layout::sheet::{Page, Part, Sheet, Square};
use crate::layout::svg::{MAX_SQUARES, draw};
use crate::layout::text::{TextOptions, intro, text};
use crate::layout::view::LayoutView;

/// Rows, if it has that many, that each slab shown has space for.
const FEW_ROWS: i64 = 5;
/// Lines that a slab takes besides its rows: a blank line, its heading, the heads of the columns.
const AROUND_ROWS: i64 = 3;
/// Approximate number of lines of a page that belong to no slab.
const AROUND_SLABS: usize = 8;
/// Maximum number of slabs in one SVG.
const MAX_SLABS: i64 = 16;

/// The tensor view as text: rows and columns of the shape, each element with its places.
///
/// A tile of more than two dimensions is drawn as slabs of its last two, headed `[0,*,*]`. What does not fit is folded.
/// Error: more squares to draw than may be enumerated, which only unlimited options reach.
pub fn tensor_text(view: &LayoutView, options: &TextOptions) -> Result<String, LayoutError> {
    let labels = Labels::of(view);
    let (slabs, rows, _) = view.planes();
    let room = i64::try_from(options.height.saturating_sub(AROUND_SLABS)).unwrap_or(i64::MAX);
    let fold = Fold::new(slabs, room / (rows.min(FEW_ROWS) + AROUND_ROWS));
    if fold.shown() > ENUMERATION_LIMIT {
        return Err(LayoutError::TooLarge { points: fold.shown() });
    }
    let parts = fold.indices().map(|slab| part(view, slab, Slab::new(view, &labels, slab))).collect();
    let left_out = fold.left_out("slabs").into_iter().collect();
    text(&Page { above: intro(view, &labels)?, parts, below: Vec::new(), left_out }, options)
}

/// The tensor view as one self-contained SVG text. Beyond 4,096 elements, blocks of elements are drawn instead, each
/// with the box that its places lie in. Error: more places than may be enumerated.
pub fn tensor_svg(view: &LayoutView) -> Result<String, LayoutError> {
    let labels = Labels::of(view);
    let (slabs, _, _) = view.planes();
    let fold = Fold::new(slabs, MAX_SLABS);
    let mut parts = Vec::new();
    if view.size() <= MAX_SQUARES {
        parts.extend(fold.indices().map(|slab| part(view, slab, Slab::new(view, &labels, slab))));
    } else {
        view.check_points()?;
        let most = MAX_SQUARES / 4 / fold.shown();
        for slab in fold.indices() {
            parts.push(part(view, slab, Blocks::new(view, &labels, slab, most)?));
        }
    }
    let left_out = fold.left_out("slabs").into_iter().collect();
    draw(&Page { above: intro(view, &labels)?, parts, below: Vec::new(), left_out })
}

fn part<'a>(view: &LayoutView, slab: i64, sheet: impl Sheet + 'a) -> Part<'a> {
    Part { heading: heading(view, slab), sheet: Box::new(sheet) }
}

/// The heading of a slab, as in `[0,*,*]`; `None` for a tile of at most two dimensions.
pub(crate) fn heading(view: &LayoutView, slab: i64) -> Option<String> {
    let outer = view.shape().len().checked_sub(2).filter(|outer| *outer > 0)?;
    let (_, rows, columns) = view.planes();
    let coordinate = view.coordinate(slab * rows * columns);
    let fixed: Vec<String> = coordinate.iter().take(outer).map(i64::to_string).collect();
    Some(format!("[{},*,*]", fixed.join(",")))
}

/// One slab: the last two dimensions.
pub(crate) struct Slab<'a> {
    view: &'a LayoutView,
    labels: &'a Labels,
    /// Flat index of the first element of the slab.
    first: i64,
    rows: i64,
    columns: i64,
    /// Flat index of the element that gets a `>`.
    marked: Option<i64>,
}

impl<'a> Slab<'a> {
    pub(crate) fn new(view: &'a LayoutView, labels: &'a Labels, slab: i64) -> Slab<'a> {
        let (_, rows, columns) = view.planes();
        Slab { view, labels, first: slab * rows * columns, rows, columns, marked: None }
    }

    /// The same slab with `>` in front of one element.
    pub(crate) fn marking(self, element: Option<i64>) -> Slab<'a> {
        Slab { marked: element, ..self }
    }
}

impl Sheet for Slab<'_> {
    fn size(&self) -> (i64, i64) {
        (self.rows, self.columns)
    }

    fn row_head(&self, row: i64) -> String {
        if self.view.shape().len() < 2 { String::new() } else { row.to_string() }
    }

    fn column_head(&self, column: i64) -> String {
        column.to_string()
    }

    fn square(&self, row: i64, column: i64) -> Result<Square, LayoutError> {
        let index = self.first + row * self.columns + column;
        let cell = self.view.cell(index)?;
        let mark = if self.marked == Some(index) { ">" } else { "" };
        let owner =
            cell.places.first().map(|place| (self.labels.coloured_by(self.view, place), self.view.colour(place)));
        Ok(Square {
            text: format!("{mark}{}", self.labels.cell(&cell.places)),
            title: format!("{}: {}", tuple(&cell.coordinate), self.labels.all(&cell.places)),
            owner,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;

    fn painted(notation: &str, shape: &[i64], width: usize, height: usize, style: Style) -> String {
        let view = LayoutView::new(&notation.parse().unwrap(), shape, 32).unwrap();
        tensor_text(&view, &TextOptions { width, height, style }).unwrap()
    }

    fn drawn(notation: &str, shape: &[i64], width: usize, height: usize) -> String {
        painted(notation, shape, width, height, Style::Plain)
    }

    #[test]
    fn a_fragment_shows_lane_and_register() {
        let expected = "\
S[(8,4,2):(4@laneid,1@laneid,1@reg)], shape (8,8)
T = laneid, r = reg

        0       1       2       3       4       5       6       7
0   T0 r0   T0 r1   T1 r0   T1 r1   T2 r0   T2 r1   T3 r0   T3 r1
1   T4 r0   T4 r1   T5 r0   T5 r1   T6 r0   T6 r1   T7 r0   T7 r1
2   T8 r0   T8 r1   T9 r0   T9 r1  T10 r0  T10 r1  T11 r0  T11 r1
3  T12 r0  T12 r1  T13 r0  T13 r1  T14 r0  T14 r1  T15 r0  T15 r1
4  T16 r0  T16 r1  T17 r0  T17 r1  T18 r0  T18 r1  T19 r0  T19 r1
5  T20 r0  T20 r1  T21 r0  T21 r1  T22 r0  T22 r1  T23 r0  T23 r1
6  T24 r0  T24 r1  T25 r0  T25 r1  T26 r0  T26 r1  T27 r0  T27 r1
7  T28 r0  T28 r1  T29 r0  T29 r1  T30 r0  T30 r1  T31 r0  T31 r1
";
        assert_eq!(drawn("S[(8,4,2):(4@laneid,1@laneid,1@reg)]", &[8, 8], 80, 40), expected);
    }

    #[test]
    fn memory_shows_addresses() {
        let expected = "\
S[(4,4):(4@m,1@m)], shape (4,4)
a number is an address on m, in elements

    0   1   2   3
0   0   1   2   3
1   4   5   6   7
2   8   9  10  11
3  12  13  14  15
";
        assert_eq!(drawn("S[(4,4):(4,1)]", &[4, 4], 80, 40), expected);
    }

    #[test]
    fn replicas_stand_beside_each_other() {
        let expected = "\
S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1@m)] + R[2:4@warpid] + 5@warpid, shape
(8,16)
w = warpid, T = laneid, r = m

               0              1  ...             14             15
0    w5,w9 T0 r0    w5,w9 T0 r1  ...   w6,w10 T3 r0   w6,w10 T3 r1
1    w5,w9 T4 r0    w5,w9 T4 r1  ...   w6,w10 T7 r0   w6,w10 T7 r1
2    w5,w9 T8 r0    w5,w9 T8 r1  ...  w6,w10 T11 r0  w6,w10 T11 r1
3   w5,w9 T12 r0   w5,w9 T12 r1  ...  w6,w10 T15 r0  w6,w10 T15 r1
4   w5,w9 T16 r0   w5,w9 T16 r1  ...  w6,w10 T19 r0  w6,w10 T19 r1
5   w5,w9 T20 r0   w5,w9 T20 r1  ...  w6,w10 T23 r0  w6,w10 T23 r1
6   w5,w9 T24 r0   w5,w9 T24 r1  ...  w6,w10 T27 r0  w6,w10 T27 r1
7   w5,w9 T28 r0   w5,w9 T28 r1  ...  w6,w10 T31 r0  w6,w10 T31 r1

folded: 12 of 16 columns; `--svg FILE` or `--html FILE` shows all
";
        assert_eq!(
            drawn("S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)] + R[2:4@warpid] + 5@warpid", &[8, 16], 80, 40),
            expected
        );
    }

    #[test]
    fn what_is_too_wide_or_too_tall_is_folded_with_a_note() {
        let expected = "\
S[(128,256):(1@TLane,1@TCol)], shape (128,256)
L = TLane, C = TCol

             0          1  ...        254        255
  0      L0 C0      L0 C1  ...    L0 C254    L0 C255
  1      L1 C0      L1 C1  ...    L1 C254    L1 C255
  2      L2 C0      L2 C1  ...    L2 C254    L2 C255
  3      L3 C0      L3 C1  ...    L3 C254    L3 C255
...
124    L124 C0    L124 C1  ...  L124 C254  L124 C255
125    L125 C0    L125 C1  ...  L125 C254  L125 C255
126    L126 C0    L126 C1  ...  L126 C254  L126 C255
127    L127 C0    L127 C1  ...  L127 C254  L127 C255

folded: 252 of 256 columns, 120 of 128 rows; `--svg FILE` or
`--html FILE` shows all
";
        assert_eq!(drawn("S[(128,256):(1@TLane,1@TCol)]", &[128, 256], 60, 16), expected);
    }

    #[test]
    fn many_replicas_are_counted_and_explained() {
        let expected = "\
S[(32,4):(1@TLane,1@TCol)] + R[4:32@TLane], shape (32,4)
L = TLane, C = TCol
+3: at 3 more places; (0,0) is also at L32 C0, L64 C0, L96 C0

             0          1          2          3
  0   L0 C0 +3   L0 C1 +3   L0 C2 +3   L0 C3 +3
  1   L1 C0 +3   L1 C1 +3   L1 C2 +3   L1 C3 +3
  2   L2 C0 +3   L2 C1 +3   L2 C2 +3   L2 C3 +3
...
 30  L30 C0 +3  L30 C1 +3  L30 C2 +3  L30 C3 +3
 31  L31 C0 +3  L31 C1 +3  L31 C2 +3  L31 C3 +3

folded: 27 of 32 rows; `--svg FILE` or `--html FILE` shows all
";
        assert_eq!(drawn("S[(32,4):(1@TLane,1@TCol)] + R[4:32@TLane]", &[32, 4], 80, 14), expected);
    }

    #[test]
    fn more_than_two_dimensions_are_slabs() {
        let expected = "\
S[(2,4,4):(16@m,4@m,1@m)], shape (2,4,4)
a number is an address on m, in elements

[0,*,*]
    0   1   2   3
0   0   1   2   3
1   4   5   6   7
2   8   9  10  11
3  12  13  14  15

[1,*,*]
    0   1   2   3
0  16  17  18  19
1  20  21  22  23
2  24  25  26  27
3  28  29  30  31
";
        assert_eq!(drawn("S[(2,4,4):(16,4,1)]", &[2, 4, 4], 60, 40), expected);
    }

    #[test]
    fn many_slabs_are_folded() {
        let expected = "\
S[(9,2,2):(4@m,2@m,1@m)], shape (9,2,2)
a number is an address on m, in elements

[0,*,*]
   0  1
0  0  1
1  2  3

[8,*,*]
    0   1
0  32  33
1  34  35

folded: 7 of 9 slabs; `--svg FILE` or `--html FILE` shows all
";
        assert_eq!(drawn("S[(9,2,2):(4,2,1)]", &[9, 2, 2], 80, 19), expected);
    }

    #[test]
    fn owners_have_colours_on_a_terminal() {
        let text = painted("S[2:1@laneid]", &[2], 80, 40, Style::Coloured);
        let expected = "\
S[2:1@laneid], shape (2)
T = laneid

   0   1
  \x1b[48;5;74;38;5;16mT0\x1b[0m  \x1b[48;5;178;38;5;16mT1\x1b[0m
";
        assert_eq!(text, expected);
    }
}
