//! A sheet: rows and columns of squares, which are drawn both as text and as SVG.

use tilewright_layout::LayoutError;

/// What one square shows.
#[derive(Clone, Debug)]
pub(crate) struct Square {
    /// What is written in it.
    pub(crate) text: String,
    /// A full description of it, for a tooltip.
    pub(crate) title: String,
    /// What its colour stands for, and the index of the colour; `None` for a hole.
    pub(crate) owner: Option<(String, usize)>,
}

/// Rows and columns of squares with heads.
pub(crate) trait Sheet {
    /// Number of rows and of columns.
    fn size(&self) -> (i64, i64);
    /// The text in the corner where the row heads and the column heads meet.
    fn corner(&self) -> &str {
        ""
    }
    /// The head of a row.
    fn row_head(&self, row: i64) -> String;
    /// The head of a column.
    fn column_head(&self, column: i64) -> String;
    /// The square at a row and a column. Error: an index outside the sheet.
    fn square(&self, row: i64, column: i64) -> Result<Square, LayoutError>;
}

/// A sheet with its heading.
pub(crate) struct Part<'a> {
    /// `[0,*,*]` for a slab of a tile of more than two dimensions.
    pub(crate) heading: Option<String>,
    /// The rows and columns of squares.
    pub(crate) sheet: Box<dyn Sheet + 'a>,
}

/// A whole drawing.
pub(crate) struct Page<'a> {
    /// Lines above the sheets: the notation and the legend.
    pub(crate) above: Vec<String>,
    /// The sheets, below each other.
    pub(crate) parts: Vec<Part<'a>>,
    /// Lines below the sheets.
    pub(crate) below: Vec<String>,
    /// What the sheets leave out, such as `3 of 8 slabs`.
    pub(crate) left_out: Vec<String>,
}

impl<'a> Page<'a> {
    /// One sheet with lines above it.
    pub(crate) fn of(above: Vec<String>, sheet: impl Sheet + 'a) -> Page<'a> {
        let part = Part { heading: None, sheet: Box::new(sheet) };
        Page { above, parts: vec![part], below: Vec::new(), left_out: Vec::new() }
    }
}
