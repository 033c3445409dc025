//! Sheets as text: aligned columns, folded to fit the available space.

use tilewright_layout::{ENUMERATION_LIMIT, LayoutError};

use crate::Style;
use crate::layout::fold::{Fold, note};
use crate::layout::label::{Labels, tuple};
use crate::layout::palette;
use crate::layout::sheet::{Page, Part, Sheet, Square};
use crate::layout::view::LayoutView;

const GAP: &str = "...";
/// Marks the end of a text that was cut.
const CUT: &str = "~";
/// Spaces in front of every column.
const BETWEEN: usize = 2;
/// Maximum number of lines that a text is wrapped into.
const MAX_LINES: usize = 4;
/// Lines of text are no narrower than this.
const LEAST_WIDTH: usize = 20;
/// However little space there is, a sheet keeps its heads, two rows and the gap between them.
const LEAST_HEIGHT: usize = 4;

/// How text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns of the terminal; what is wider is folded. `usize::MAX` folds nothing.
    pub width: usize,
    /// Lines of the terminal; what is taller is folded. `usize::MAX` folds nothing.
    pub height: usize,
    /// With colours or without.
    pub style: Style,
}

/// A line, and its width on the screen.
pub(crate) struct Line {
    pub(crate) text: String,
    /// In characters, without escape sequences.
    pub(crate) width: usize,
}

/// A sheet as lines.
pub(crate) struct Printed {
    pub(crate) lines: Vec<Line>,
    /// Which rows are shown.
    pub(crate) rows: Fold,
    /// Which columns are shown.
    pub(crate) columns: Fold,
}

impl Printed {
    /// What was left out.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = String> {
        [self.columns.left_out("columns"), self.rows.left_out("rows")].into_iter().flatten()
    }
}

/// What stands above every drawing: the notation with the shape, the legend, and what ` +3` in the cells means.
pub(crate) fn intro(view: &LayoutView, labels: &Labels) -> Result<Vec<String>, LayoutError> {
    let mut lines = vec![title(view)];
    lines.extend(labels.legend().map(str::to_string));
    lines.extend(labels.replicas(view)?);
    Ok(lines)
}

/// The notation with the shape.
pub(crate) fn title(view: &LayoutView) -> String {
    format!("{}, shape {}", view.notation(), tuple(view.shape()))
}

/// A drawing: lines above, sheets below each other, lines below with what was folded.
pub(crate) fn text(page: &Page<'_>, options: &TextOptions) -> Result<String, LayoutError> {
    let (mut lines, mut end) = (wrapped(&page.above, options.width), wrapped(&page.below, options.width));
    let height = sheet_height(options.height, lines.len() + end.len(), &page.parts);
    let mut left_out = page.left_out.clone();
    for part in &page.parts {
        lines.push(String::new());
        lines.extend(part.heading.clone());
        let printed = print(part.sheet.as_ref(), options.width, height, options.style)?;
        for text in printed.left_out() {
            if !left_out.contains(&text) {
                left_out.push(text);
            }
        }
        lines.extend(printed.lines.into_iter().map(|line| line.text));
    }
    end.extend(wrapped(note(&left_out).as_slice(), options.width));
    if !end.is_empty() {
        lines.push(String::new());
        lines.extend(end);
    }
    Ok(lines.join("\n") + "\n")
}

/// Lines for each sheet, after subtracting the lines around them, their headings and two lines for what was folded.
fn sheet_height(height: usize, around: usize, parts: &[Part<'_>]) -> usize {
    let headings = parts.iter().filter(|part| part.heading.is_some()).count();
    let fixed = around + headings + parts.len() + 3;
    (height.saturating_sub(fixed) / parts.len().max(1)).max(LEAST_HEIGHT)
}

/// A sheet as lines of at most `width` characters and `height` lines; at least two rows and columns are shown.
pub(crate) fn print(sheet: &dyn Sheet, width: usize, height: usize, style: Style) -> Result<Printed, LayoutError> {
    let (row_total, column_total) = sheet.size();
    let room = count(height).saturating_sub(1);
    let rows = if row_total <= room { Fold::all(row_total) } else { Fold::new(row_total, room - 1) };
    check_points(rows.shown())?;
    let heads: Vec<String> = rows.indices().map(|row| sheet.row_head(row)).collect();
    let least = if rows.is_folded() { GAP.len() } else { 0 };
    let head_width = heads.iter().map(|head| length(head)).max().unwrap_or(0).max(length(sheet.corner())).max(least);
    let head_width = head_width.min(width / 2);
    let left = width.saturating_sub(head_width);
    // No column is narrower than one character, so that no more than these can fit.
    let candidates = Fold::new(column_total, count(left / (BETWEEN + 1)));
    let table = Table::read(sheet, rows, candidates)?;
    let columns = fit(candidates, table.widest(candidates), left);
    let column_width = table.widest(columns).min(widest_column(columns, left));
    let frame = TextGeometry { head_width, column_width, columns, style };
    let mut lines = vec![frame.head(sheet.corner(), &table)];
    for ((row, head), squares) in rows.indices().zip(&heads).zip(&table.rows) {
        if rows.resumes_at(row) {
            lines.push(Line { text: format!("{GAP:>head_width$}"), width: head_width });
        }
        lines.push(frame.row(head, &table.indices, squares));
    }
    Ok(Printed { lines, rows, columns })
}

/// The columns that fit if each is `widest` characters wide.
fn fit(candidates: Fold, widest: usize, left: usize) -> Fold {
    let each = widest + BETWEEN;
    if !candidates.is_folded() && candidates.total().saturating_mul(count(each)) <= count(left) {
        return candidates;
    }
    Fold::new(candidates.total(), count(left.saturating_sub(GAP.len() + BETWEEN) / each))
}

/// The maximum width of columns that are shown in any case; longer texts are cut.
fn widest_column(columns: Fold, left: usize) -> usize {
    let gap = if columns.is_folded() { GAP.len() + BETWEEN } else { 0 };
    let shown = usize::try_from(columns.shown()).unwrap_or(usize::MAX).max(1);
    (left.saturating_sub(gap) / shown).saturating_sub(BETWEEN).max(1)
}

/// The squares that may be shown.
struct Table {
    /// Column indices.
    indices: Vec<i64>,
    /// Heads of these columns.
    heads: Vec<String>,
    /// The squares of every shown row in these columns.
    rows: Vec<Vec<Square>>,
}

impl Table {
    fn read(sheet: &dyn Sheet, rows: Fold, columns: Fold) -> Result<Table, LayoutError> {
        check_points(rows.shown().saturating_mul(columns.shown()))?;
        let squares = |row| columns.indices().map(|column| sheet.square(row, column)).collect::<Result<Vec<_>, _>>();
        Ok(Table {
            indices: columns.indices().collect(),
            heads: columns.indices().map(|column| sheet.column_head(column)).collect(),
            rows: rows.indices().map(squares).collect::<Result<Vec<_>, LayoutError>>()?,
        })
    }

    /// The width of the widest square or head in these columns.
    fn widest(&self, columns: Fold) -> usize {
        let width = |at: usize| {
            let squares = self.rows.iter().map(|row| length(&row[at].text));
            squares.max().unwrap_or(0).max(length(&self.heads[at]))
        };
        let shown = (0..self.indices.len()).filter(|at| columns.shows(self.indices[*at]));
        shown.map(width).max().unwrap_or(0)
    }
}

/// The measures of a printed sheet.
struct TextGeometry {
    /// Width of the row heads, in characters.
    head_width: usize,
    /// Width of a column without the spaces in front of it, in characters.
    column_width: usize,
    /// Which columns are shown.
    columns: Fold,
    style: Style,
}

impl TextGeometry {
    fn head(&self, corner: &str, table: &Table) -> Line {
        let heads = table.indices.iter().zip(&table.heads);
        self.line(corner, heads.map(|(index, head)| (*index, self.padded(head))))
    }

    fn row(&self, head: &str, indices: &[i64], squares: &[Square]) -> Line {
        let painted = |(index, square): (&i64, &Square)| {
            let text = self.padded(&square.text);
            match square.owner {
                Some((_, colour)) => (*index, self.style.paint(&palette::ansi(colour), &text)),
                None => (*index, text),
            }
        };
        self.line(head, indices.iter().zip(squares).map(painted))
    }

    fn padded(&self, text: &str) -> String {
        right_aligned(text, self.column_width)
    }

    fn line(&self, head: &str, columns: impl Iterator<Item = (i64, String)>) -> Line {
        let mut text = right_aligned(head, self.head_width);
        let mut width = self.head_width;
        for (index, column) in columns.filter(|(index, _)| self.columns.shows(*index)) {
            if self.columns.resumes_at(index) {
                text.push_str(&format!("{:BETWEEN$}{GAP}", ""));
                width += BETWEEN + GAP.len();
            }
            text.push_str(&format!("{:BETWEEN$}{column}", ""));
            width += BETWEEN + self.column_width;
        }
        Line { text, width }
    }
}

/// A text of exactly `width` characters, right-aligned, or cut if it is longer.
fn right_aligned(text: &str, width: usize) -> String {
    if length(text) <= width {
        return format!("{text:>width$}");
    }
    let kept: String = text.chars().take(width.saturating_sub(CUT.len())).collect();
    format!("{kept}{CUT}")
}

/// Texts in lines of `width` characters.
pub(crate) fn wrapped(texts: &[String], width: usize) -> Vec<String> {
    texts.iter().flat_map(|text| wrapped_text(text, width)).collect()
}

/// A text in lines of `width` characters, broken at spaces, and truncated if it would take more than [`MAX_LINES`].
fn wrapped_text(text: &str, width: usize) -> Vec<String> {
    let width = width.max(LEAST_WIDTH);
    let (mut lines, mut rest) = (Vec::new(), text);
    while length(rest) > width && lines.len() < MAX_LINES {
        let end = rest.char_indices().nth(width).map_or(rest.len(), |(at, _)| at);
        let (line, after) = rest.split_at(end);
        let cut = if after.starts_with(' ') { end } else { line.rfind(' ').unwrap_or(end) };
        lines.push(rest[..cut].to_string());
        rest = rest[cut..].trim_start();
    }
    if lines.len() < MAX_LINES {
        lines.push(rest.to_string());
    } else {
        lines.truncate(MAX_LINES - 1);
        lines.push(GAP.to_string());
    }
    lines
}

/// Characters of a text.
pub(crate) fn length(text: &str) -> usize {
    text.chars().count()
}

/// Unlimited options could request more squares than fit in memory.
fn check_points(points: i64) -> Result<(), LayoutError> {
    if points > ENUMERATION_LIMIT { Err(LayoutError::TooLarge { points }) } else { Ok(()) }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_where_there_are_any() {
        assert_eq!(wrapped_text("twenty characters are the least", 20), ["twenty characters", "are the least"]);
        assert_eq!(wrapped_text(&"x".repeat(30), 20), ["x".repeat(20), "x".repeat(10)]);
        assert_eq!(wrapped_text("twenty characters ab cd", 20), ["twenty characters ab", "cd"]);
    }

    #[test]
    fn a_text_never_takes_a_screen() {
        assert_eq!(wrapped_text(&"word ".repeat(1000), 24).len(), MAX_LINES);
    }

    #[test]
    fn a_text_that_is_too_wide_is_cut() {
        assert_eq!((right_aligned("abcdef", 4), right_aligned("ab", 4)), ("abc~".to_string(), "  ab".to_string()));
    }
}
