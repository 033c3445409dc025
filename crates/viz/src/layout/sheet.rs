//! A sheet: rows and columns of squares, which text and SVG draw alike.

use tilewright_layout::LayoutError;

/// What one square shows.
#[derive(Clone, Debug)]
pub(crate) struct Square {
    /// What is written in it.
    pub(crate) text: String,
    /// Everything there is to say about it.
    pub(crate) title: String,
    /// Whose it is, and the number of its colour; `None` for a hole.
    pub(crate) owner: Option<(String, usize)>,
}

/// Rows and columns of squares with heads.
pub(crate) trait Sheet {
    /// Rows and columns.
    fn size(&self) -> (i64, i64);
    /// What stands where the heads meet.
    fn corner(&self) -> &str {
        ""
    }
    /// The head of a row.
    fn row_head(&self, row: i64) -> String;
    /// The head of a column.
    fn column_head(&self, column: i64) -> String;
    /// A square.
    fn square(&self, row: i64, column: i64) -> Result<Square, LayoutError>;
}

/// A sheet with what stands above it.
pub(crate) struct Part<'a> {
    /// `[0,*,*]` for a slab of a tile of more than two dimensions.
    pub(crate) heading: Option<String>,
    /// The squares.
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
    /// What is not among the sheets, as in `3 of 8 slabs`.
    pub(crate) left_out: Vec<String>,
}

impl<'a> Page<'a> {
    /// One sheet with lines above it.
    pub(crate) fn of(above: Vec<String>, sheet: impl Sheet + 'a) -> Page<'a> {
        let part = Part { heading: None, sheet: Box::new(sheet) };
        Page { above, parts: vec![part], below: Vec::new(), left_out: Vec::new() }
    }
}
