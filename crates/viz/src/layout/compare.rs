//! Two layouts of the same shape side by side, with the first element that they place differently.

use std::fmt;

use tilewright_diag::counted;
use tilewright_layout::axis::{M, REG};
use tilewright_layout::{Axis, Layout, LayoutError};

use crate::layout::fold::note;
use crate::layout::label::{Labels, tuple};
use crate::layout::sheet::{Page, Part};
use crate::layout::tensor::{Slab, heading};
use crate::layout::text::{Printed, TextOptions, print, text, wrapped};
use crate::layout::view::LayoutView;

const BETWEEN: &str = "  |  ";
/// Lines of a page around the two sheets: blank lines, the names of the sides, a note.
const AROUND: usize = 5;

/// An element that two layouts place differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its flat row-major index.
    pub index: i64,
    /// Its coordinate in the shape.
    pub coordinate: Vec<i64>,
    /// Where it is in the first layout, as in `on lane 1 register 0`.
    pub here: String,
    /// Where it is in the second layout.
    pub there: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { coordinate, here, there, .. } = self;
        write!(f, "first difference: element {} is {here} on the left, {there} on the right", tuple(coordinate))
    }
}

/// The first element of a tile of `shape`, in row-major order, that the two layouts place differently.
///
/// In a fragment, `m` and `reg` both count registers, as they do when a layout is attached to one. Errors: a shape
/// whose size is not that of both layouts, a swizzle or a table with more elements than may be enumerated.
pub fn first_difference(left: &Layout, right: &Layout, shape: &[i64]) -> Result<Option<Difference>, LayoutError> {
    // The width of an element affects only colours.
    Pair::new(left, right, shape, 32)?.difference()
}

/// Two layouts of a tile of `shape` as text: the tensor views side by side if they fit, else one below the other, and
/// the first element that they place differently, marked with `>`. Of a tile of more than two dimensions, the slab of
/// that element is drawn. `bits` is the width of an element. Errors as for [`first_difference`].
pub fn compare_text(
    left: &Layout,
    right: &Layout,
    shape: &[i64],
    bits: i64,
    options: &TextOptions,
) -> Result<String, LayoutError> {
    let pair = Pair::new(left, right, shape, bits)?;
    let difference = pair.difference()?;
    let labels = (Labels::of(&pair.left), Labels::of(&pair.right));
    let above = wrapped(&pair.above(&labels, difference.as_ref())?, options.width);
    let marked = difference.map(|difference| difference.index);
    let slab = pair.slab(marked);
    let here = Slab::new(&pair.left, &labels.0, slab).marking(marked);
    let there = Slab::new(&pair.right, &labels.1, slab).marking(marked);
    let height = options.height.saturating_sub(above.len() + AROUND);
    let printed =
        (print(&here, options.width, height, options.style)?, print(&there, options.width, height, options.style)?);
    let slab = heading(&pair.left, slab).map(|slab| format!(" {slab}")).unwrap_or_default();
    if let Some(lines) = side_by_side(&printed, options.width, &slab) {
        let left_out: Vec<String> = printed.0.left_out().collect();
        return Ok(joined(&[above, lines, wrapped(note(&left_out).as_slice(), options.width)]));
    }
    let parts = vec![
        Part { heading: Some(format!("left{slab}")), sheet: Box::new(here) },
        Part { heading: Some(format!("right{slab}")), sheet: Box::new(there) },
    ];
    text(&Page { above, parts, below: Vec::new(), left_out: Vec::new() }, options)
}

/// Both sheets side by side, if they fit and no column of either is folded.
fn side_by_side((left, right): &(Printed, Printed), width: usize, slab: &str) -> Option<Vec<String>> {
    let widest = |printed: &Printed| printed.lines.iter().map(|line| line.width).max().unwrap_or(0);
    let (first, second) = (widest(left).max("left".len() + slab.len()), widest(right));
    let fits = first.saturating_add(BETWEEN.len()).saturating_add(second) <= width;
    if !fits || left.columns.is_folded() || right.columns.is_folded() {
        return None;
    }
    let name = format!("left{slab}");
    let mut lines = vec![format!("{name:<first$}{BETWEEN}right{slab}")];
    for (left, right) in left.lines.iter().zip(&right.lines) {
        lines.push(format!("{}{:space$}{BETWEEN}{}", left.text, "", right.text, space = first - left.width));
    }
    Some(lines)
}

/// Blocks of lines with a blank line between.
fn joined(blocks: &[Vec<String>]) -> String {
    let texts: Vec<String> = blocks.iter().filter(|block| !block.is_empty()).map(|block| block.join("\n")).collect();
    texts.join("\n\n") + "\n"
}

/// Two views of one shape.
struct Pair {
    left: LayoutView,
    right: LayoutView,
    /// The layouts of both views, with fragments on `reg`.
    layouts: (Layout, Layout),
}

impl Pair {
    fn new(left: &Layout, right: &Layout, shape: &[i64], bits: i64) -> Result<Pair, LayoutError> {
        let layouts = (on_registers(left), on_registers(right));
        Ok(Pair {
            left: LayoutView::new(&layouts.0, shape, bits)?,
            right: LayoutView::new(&layouts.1, shape, bits)?,
            layouts,
        })
    }

    fn difference(&self) -> Result<Option<Difference>, LayoutError> {
        let Some(index) = self.layouts.0.first_difference(&self.layouts.1)? else { return Ok(None) };
        let (here, there) = (self.left.cell(index)?, self.right.cell(index)?);
        Ok(Some(Difference {
            index,
            here: Labels::of(&self.left).sentence(&here.places),
            there: Labels::of(&self.right).sentence(&there.places),
            coordinate: here.coordinate,
        }))
    }

    fn above(&self, labels: &(Labels, Labels), difference: Option<&Difference>) -> Result<Vec<String>, LayoutError> {
        let mut lines = vec![
            format!("left   {}", self.left.notation()),
            format!("right  {}", self.right.notation()),
            match difference {
                Some(difference) => difference.to_string(),
                None => format!("no difference: {} at the same places", counted(self.left.size(), "element")),
            },
        ];
        let legends = [
            labels.0.legend().map(str::to_string),
            labels.1.legend().map(str::to_string),
            labels.0.replicas(&self.left)?,
            labels.1.replicas(&self.right)?,
        ];
        for legend in legends.into_iter().flatten() {
            if !lines.contains(&legend) {
                lines.push(legend);
            }
        }
        Ok(lines)
    }

    /// The slab of an element, else the first.
    fn slab(&self, element: Option<i64>) -> i64 {
        let (_, rows, columns) = self.left.planes();
        element.map_or(0, |element| element / (rows * columns))
    }
}

/// The layout of a fragment as it is attached, with `m` renamed to `reg`; any other layout unchanged.
fn on_registers(layout: &Layout) -> Layout {
    match layout {
        Layout::Tile(tile) if tile.axes().iter().any(Axis::is_thread) && !tile.axes().contains(&REG) => {
            // The layout has no `reg` axis, so no positions are added together.
            tile.renamed(&M, &REG).map_or_else(|_| layout.clone(), Layout::Tile)
        }
        Layout::Tile(_) | Layout::Compose(_) | Layout::Table(_) => layout.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;

    fn layout(notation: &str) -> Layout {
        notation.parse().unwrap()
    }

    fn difference(left: &str, right: &str, shape: &[i64]) -> Option<String> {
        first_difference(&layout(left), &layout(right), shape).unwrap().map(|found| found.to_string())
    }

    fn drawn(left: &str, right: &str, shape: &[i64], width: usize) -> String {
        let options = TextOptions { width, height: 40, style: Style::Plain };
        compare_text(&layout(left), &layout(right), shape, 32, &options).unwrap()
    }

    const ATOM: &str = "S[(8,4,2):(4@laneid,1@laneid,1@reg)]";

    #[test]
    fn the_first_difference_is_told_in_words() {
        let text = difference(ATOM, "S[(8,2,4):(4@laneid,1@laneid,1@reg)]", &[8, 8]).unwrap();
        assert_eq!(
            text,
            "first difference: element (0,2) is on lane 1 register 0 on the left, \
                          on lane 0 register 2 on the right"
        );
    }

    #[test]
    fn memory_of_a_fragment_is_its_registers() {
        assert_eq!(difference(ATOM, "S[(8,4,2):(4@laneid,1@laneid,1)]", &[8, 8]), None);
        assert!(difference("S[8:1@reg]", "S[8:1@m]", &[8]).is_some());
    }

    #[test]
    fn a_shape_of_another_size_is_an_error() {
        let found = first_difference(&layout("S[8:1]"), &layout("S[4:1]"), &[8]).unwrap_err();
        assert_eq!(found, LayoutError::Size { shape: vec![8], size: 4 });
    }

    #[test]
    fn two_that_fit_stand_side_by_side() {
        let expected = "\
left   S[(4,2,2):(2@laneid,1@laneid,1@reg)]
right  S[(4,2,2):(2@laneid,1@reg,1@laneid)]
first difference: element (0,1) is on lane 0 register 1 on the left, on lane 1
register 0 on the right
T = laneid, r = reg

left                               |  right
        0       1       2       3  |          0       1       2       3
0   T0 r0  >T0 r1   T1 r0   T1 r1  |  0   T0 r0  >T1 r0   T0 r1   T1 r1
1   T2 r0   T2 r1   T3 r0   T3 r1  |  1   T2 r0   T3 r0   T2 r1   T3 r1
2   T4 r0   T4 r1   T5 r0   T5 r1  |  2   T4 r0   T5 r0   T4 r1   T5 r1
3   T6 r0   T6 r1   T7 r0   T7 r1  |  3   T6 r0   T7 r0   T6 r1   T7 r1
";
        assert_eq!(
            drawn("S[(4,2,2):(2@laneid,1@laneid,1@reg)]", "S[(4,2,2):(2@laneid,1@reg,1@laneid)]", &[4, 4], 80),
            expected
        );
    }

    #[test]
    fn two_that_do_not_fit_stand_below_each_other() {
        let expected = "\
left   S[(2,4,2):(4@laneid,1@laneid,1@reg)]
right  S[(2,2,4):(4@laneid,1@laneid,1@reg)]
first difference: element (0,2) is on lane 1 register 0 on the left, on lane
0 register 2 on the right
T = laneid, r = reg

left
        0       1       2       3       4       5       6       7
0   T0 r0   T0 r1  >T1 r0   T1 r1   T2 r0   T2 r1   T3 r0   T3 r1
1   T4 r0   T4 r1   T5 r0   T5 r1   T6 r0   T6 r1   T7 r0   T7 r1

right
        0       1       2       3       4       5       6       7
0   T0 r0   T0 r1  >T0 r2   T0 r3   T1 r0   T1 r1   T1 r2   T1 r3
1   T4 r0   T4 r1   T4 r2   T4 r3   T5 r0   T5 r1   T5 r2   T5 r3
";
        assert_eq!(
            drawn("S[(2,4,2):(4@laneid,1@laneid,1@reg)]", "S[(2,2,4):(4@laneid,1@laneid,1@reg)]", &[2, 8], 76),
            expected
        );
    }

    #[test]
    fn of_many_slabs_the_first_is_drawn_where_nothing_differs() {
        let expected = "\
left   S[(3,2,2):(4@m,2@m,1@m)]
right  S[12:1@m]
no difference: 12 elements at the same places
a number is an address on m, in elements

left [0,*,*]  |  right [0,*,*]
   0  1       |     0  1
0  0  1       |  0  0  1
1  2  3       |  1  2  3
";
        assert_eq!(drawn("S[(3,2,2):(4,2,1)]", "S[12:1]", &[3, 2, 2], 80), expected);
    }
}
