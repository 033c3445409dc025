//! A slab with too many elements to draw: blocks of neighbouring elements are drawn instead.

use tilewright_diag::counted;
use tilewright_layout::LayoutError;

use crate::layout::label::Labels;
use crate::layout::sheet::{Sheet, Square};
use crate::layout::view::{LayoutView, Place};

/// Blocks grow to about this many columns for each of their rows, since most layouts are contiguous along a row.
const COLUMNS_PER_ROW: i64 = 4;

/// One slab in blocks of `block_rows` x `block_columns` elements.
pub(crate) struct Blocks<'a> {
    view: &'a LayoutView,
    /// Rows of elements in a block.
    block_rows: i64,
    /// Columns of elements in a block.
    block_columns: i64,
    /// Rows of elements in the slab.
    rows: i64,
    /// Columns of elements in the slab.
    columns: i64,
    /// The blocks, row by row.
    squares: Vec<Square>,
}

impl<'a> Blocks<'a> {
    /// The slab in at most `most` blocks, but at least one. Reads every element.
    pub(crate) fn new(view: &'a LayoutView, labels: &Labels, slab: i64, most: i64) -> Result<Blocks<'a>, LayoutError> {
        let (_, rows, columns) = view.planes();
        let (block_rows, block_columns) = block(rows, columns, most.max(1));
        let (down, across) = (ceil(rows, block_rows), ceil(columns, block_columns));
        let mut blocks = Blocks { view, block_rows, block_columns, rows, columns, squares: Vec::new() };
        for row in 0..down {
            for column in 0..across {
                let square = blocks.read(labels, slab * rows * columns, row, column)?;
                blocks.squares.push(square);
            }
        }
        Ok(blocks)
    }

    fn read(&self, labels: &Labels, first: i64, row: i64, column: i64) -> Result<Square, LayoutError> {
        let (rows, columns) = (self.element_rows(row), self.element_columns(column));
        let mut bounds = Bounds::default();
        for i in rows.clone() {
            for j in columns.clone() {
                bounds.add(&self.view.cell(first + i * self.columns + j)?.places);
            }
        }
        let count = (rows.end - rows.start) * (columns.end - columns.start);
        let text = labels.range(&bounds.low, &bounds.high);
        let across = ends(columns.start, columns.end);
        let title = match self.row_head(row) {
            head if head.is_empty() => format!("elements {across}: {count}, within {text}"),
            head => format!("rows {head}, columns {across}: {}, within {text}", counted(count, "element")),
        };
        let owner = bounds.first.map(|place| (labels.coloured_by(self.view, &place), self.view.colour(&place)));
        Ok(Square { text, title, owner })
    }

    fn element_rows(&self, row: i64) -> std::ops::Range<i64> {
        row * self.block_rows..((row + 1) * self.block_rows).min(self.rows)
    }

    fn element_columns(&self, column: i64) -> std::ops::Range<i64> {
        column * self.block_columns..((column + 1) * self.block_columns).min(self.columns)
    }

    fn across(&self) -> i64 {
        ceil(self.columns, self.block_columns)
    }
}

impl Sheet for Blocks<'_> {
    fn size(&self) -> (i64, i64) {
        (ceil(self.rows, self.block_rows), self.across())
    }

    fn row_head(&self, row: i64) -> String {
        let rows = self.element_rows(row);
        if self.view.shape().len() < 2 { String::new() } else { ends(rows.start, rows.end) }
    }

    fn column_head(&self, column: i64) -> String {
        let columns = self.element_columns(column);
        ends(columns.start, columns.end)
    }

    fn square(&self, row: i64, column: i64) -> Result<Square, LayoutError> {
        let at = row * self.across() + column;
        let outside = LayoutError::OutOfRange { index: at, extent: self.squares.len() as i64 };
        usize::try_from(at).ok().and_then(|at| self.squares.get(at)).cloned().ok_or(outside)
    }
}

/// The least and the greatest position on each axis, and the first place.
#[derive(Default)]
struct Bounds {
    /// Least position on every axis, owners first.
    low: Vec<i64>,
    /// Greatest position on every axis, owners first.
    high: Vec<i64>,
    /// The first place added.
    first: Option<Place>,
}

impl Bounds {
    fn add(&mut self, places: &[Place]) {
        for place in places {
            let positions: Vec<i64> = place.owner.iter().chain(&place.slot).copied().collect();
            if self.first.is_none() {
                (self.low, self.high) = (positions.clone(), positions);
                self.first = Some(place.clone());
                continue;
            }
            for ((low, high), position) in self.low.iter_mut().zip(&mut self.high).zip(positions) {
                (*low, *high) = ((*low).min(position), (*high).max(position));
            }
        }
    }
}

/// The extents of a block such that at most `most` blocks cover the slab.
fn block(rows: i64, columns: i64, most: i64) -> (i64, i64) {
    let (mut down, mut across) = (1, 1);
    while ceil(rows, down).saturating_mul(ceil(columns, across)) > most {
        if down >= rows || (across < columns && across <= down * COLUMNS_PER_ROW) {
            across *= 2;
        } else {
            down *= 2;
        }
    }
    (down, across)
}

fn ceil(number: i64, by: i64) -> i64 {
    number / by + i64::from(number % by != 0)
}

/// `0-7` for the half-open range from 0 to 8, `5` for a single one.
fn ends(start: i64, end: i64) -> String {
    if end - start == 1 { start.to_string() } else { format!("{start}-{}", end - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(notation: &str, shape: &[i64], most: i64) -> (i64, i64, Square) {
        let view = LayoutView::new(&notation.parse().unwrap(), shape, 32).unwrap();
        let labels = Labels::of(&view);
        let blocks = Blocks::new(&view, &labels, 0, most).unwrap();
        let (rows, columns) = blocks.size();
        (rows, columns, blocks.square(rows - 1, columns - 1).unwrap())
    }

    #[test]
    fn an_accumulator_is_drawn_in_blocks() {
        let (rows, columns, last) = blocks("S[(128,256):(1@TLane,1@TCol)]", &[128, 256], 1024);
        assert_eq!((rows, columns), (64, 16));
        assert_eq!(last.text, "L126-127 C240-255");
        assert_eq!(last.title, "rows 126-127, columns 240-255: 32 elements, within L126-127 C240-255");
    }

    #[test]
    fn the_last_block_may_be_smaller() {
        let (rows, columns, last) = blocks("S[10:1]", &[10], 4);
        assert_eq!((rows, columns), (1, 3));
        assert_eq!(last.title, "elements 8-9: 2, within 8-9");
    }

    #[test]
    fn one_block_can_hold_everything() {
        assert_eq!(blocks("S[(3,5):(5,1)]", &[3, 5], 1).2.text, "0-14");
    }
}
