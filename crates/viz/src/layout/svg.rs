//! Sheets as SVG: one self-contained text with its own style, for a light or a dark page.

use std::fmt::Write;

use tilewright_layout::LayoutError;

use crate::layout::fold::Fold;
use crate::layout::palette;
use crate::layout::sheet::{Page, Sheet, Square};
use crate::layout::text::length;

/// No sheet has more squares than this; what goes beyond is folded.
pub(crate) const MAX_SQUARES: i64 = 4096;
/// Maximum number of owners that get a patch of colour with their name.
const MAX_PATCHES: usize = 8;

/// Sizes in pixels, for a font size of 12 pixels.
const MARGIN: i64 = 16;
const LINE: i64 = 20;
const SQUARE: i64 = 22;
const CHARACTER: i64 = 8;
const PADDING: i64 = 10;
const GAP: i64 = 28;
/// From the top of a line to the baseline of its text.
const FOOT: i64 = 15;

/// A page as SVG; the same page gives the same bytes.
pub(crate) fn draw(page: &Page<'_>) -> Result<String, LayoutError> {
    let mut canvas = Canvas { body: String::new(), y: MARGIN, width: 0, owners: Vec::new() };
    for line in &page.above {
        canvas.line(line);
    }
    let mut left_out = page.left_out.clone();
    for part in &page.parts {
        canvas.y += LINE / 2;
        if let Some(heading) = &part.heading {
            canvas.line(heading);
        }
        for text in canvas.sheet(part.sheet.as_ref())? {
            if !left_out.contains(&text) {
                left_out.push(text);
            }
        }
    }
    canvas.y += LINE / 2;
    canvas.patches();
    for line in &page.below {
        canvas.line(line);
    }
    if !left_out.is_empty() {
        canvas.line(&format!("not drawn: {}", left_out.join(", ")));
    }
    Ok(canvas.finish(page.above.first().map_or("", String::as_str)))
}

struct Canvas {
    /// SVG elements written so far.
    body: String,
    /// Top of the next line, in pixels.
    y: i64,
    /// Width of the drawing so far, in pixels.
    width: i64,
    /// Owners whose colours were used, with the index of the colour.
    owners: Vec<(String, usize)>,
}

impl Canvas {
    /// A line of text at the left margin.
    fn line(&mut self, text: &str) {
        self.text("h", MARGIN, text);
        self.reach(MARGIN + characters(text));
        self.y += LINE;
    }

    fn text(&mut self, class: &str, x: i64, text: &str) {
        if text.is_empty() {
            return;
        }
        let _ = writeln!(self.body, r#"<text class="{class}" x="{x}" y="{}">{}</text>"#, self.y + FOOT, escaped(text));
    }

    fn reach(&mut self, x: i64) {
        self.width = self.width.max(x + MARGIN);
    }

    /// Draws a sheet; returns what was folded.
    fn sheet(&mut self, sheet: &dyn Sheet) -> Result<Vec<String>, LayoutError> {
        let (rows, columns) = folds(sheet.size());
        let heads: Vec<String> = rows.indices().map(|row| sheet.row_head(row)).collect();
        let column_heads: Vec<String> = columns.indices().map(|column| sheet.column_head(column)).collect();
        let mut table = Vec::new();
        for row in rows.indices() {
            let squares = columns.indices().map(|column| sheet.square(row, column));
            table.push(squares.collect::<Result<Vec<Square>, LayoutError>>()?);
        }
        let head = heads.iter().map(|head| characters(head)).max().unwrap_or(0).max(characters(sheet.corner()));
        let texts = table.iter().flatten().map(|square| &square.text).chain(&column_heads);
        let frame = SheetGeometry {
            left: MARGIN + head + PADDING,
            column: texts.map(|text| characters(text)).max().unwrap_or(0) + PADDING,
            columns,
        };
        self.text("e", frame.left - PADDING, sheet.corner());
        self.columns(&frame, &column_heads);
        for ((row, head), squares) in rows.indices().zip(&heads).zip(&table) {
            if rows.resumes_at(row) {
                self.text("e", frame.left - PADDING, "...");
                self.y += SQUARE;
            }
            self.text("e", frame.left - PADDING, head);
            self.row(&frame, squares);
        }
        Ok([columns.left_out("columns"), rows.left_out("rows")].into_iter().flatten().collect())
    }

    fn columns(&mut self, frame: &SheetGeometry, heads: &[String]) {
        for (x, head) in frame.positions().zip(heads) {
            self.text("c", x + frame.column / 2, head);
        }
        if let Some(x) = frame.gap() {
            self.text("c", x, "...");
        }
        self.y += SQUARE;
    }

    fn row(&mut self, frame: &SheetGeometry, squares: &[Square]) {
        let (width, height) = (frame.column - 2, SQUARE - 2);
        for (x, square) in frame.positions().zip(squares) {
            let (fill, text) = match &square.owner {
                Some((_, colour)) if palette::takes_dark_text(*colour) => (format!("p{colour}"), "d"),
                Some((_, colour)) => (format!("p{colour}"), "l"),
                None => ("o".to_string(), "c"),
            };
            let (title, shown) = (escaped(&square.title), escaped(&square.text));
            let (middle, foot) = (x + frame.column / 2, self.y + FOOT);
            let _ = write!(self.body, "<g><title>{title}</title>");
            let _ = write!(self.body, r#"<rect class="{fill}" x="{x}" y="{}" "#, self.y);
            let _ = write!(self.body, r#"width="{width}" height="{height}"/>"#);
            let _ = writeln!(self.body, r#"<text class="{text}" x="{middle}" y="{foot}">{shown}</text></g>"#);
            self.reach(x + frame.column);
            self.note(square);
        }
        self.y += SQUARE;
    }

    /// Records the owner whose colour was used, up to one more than are explained.
    fn note(&mut self, square: &Square) {
        let Some(owner) = &square.owner else { return };
        if self.owners.len() <= MAX_PATCHES && !self.owners.contains(owner) {
            self.owners.push(owner.clone());
        }
    }

    /// Draws a patch of colour for each owner, if there are few.
    fn patches(&mut self) {
        let mut owners = std::mem::take(&mut self.owners);
        if owners.len() > MAX_PATCHES {
            self.line(&format!("one colour per owner, cycling through {} colours", palette::COLOURS));
            return;
        }
        owners.sort_by_key(|(_, colour)| *colour);
        for (name, colour) in owners {
            let (x, y) = (MARGIN, self.y + 3);
            let _ = writeln!(self.body, r#"<rect class="p{colour}" x="{x}" y="{y}" width="14" height="14"/>"#);
            self.text("h", MARGIN + LINE, &name);
            self.reach(MARGIN + LINE + characters(&name));
            self.y += LINE;
        }
    }

    fn finish(self, title: &str) -> String {
        let (width, height) = (self.width, self.y + MARGIN);
        let mut out = String::new();
        let _ = write!(out, r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" "#);
        let _ = writeln!(out, r#"viewBox="0 0 {width} {height}" role="img">"#);
        let _ = writeln!(out, "<title>{}</title>", escaped(title));
        out.push_str(&style());
        let _ = writeln!(out, r#"<rect class="b" width="{width}" height="{height}"/>"#);
        out.push_str(&self.body);
        out.push_str("</svg>\n");
        out
    }
}

/// Where the columns of a sheet are.
struct SheetGeometry {
    /// Left edge of the first column, in pixels.
    left: i64,
    /// Width of a column, in pixels.
    column: i64,
    /// Which columns are drawn.
    columns: Fold,
}

impl SheetGeometry {
    /// The left edge of every column.
    fn positions(&self) -> impl Iterator<Item = i64> {
        self.columns.indices().enumerate().map(move |(at, index)| {
            let gap = if self.columns.is_past_gap(index) { GAP } else { 0 };
            self.left + at as i64 * self.column + gap
        })
    }

    /// The middle of the gap, if columns are left out.
    fn gap(&self) -> Option<i64> {
        let before = self.columns.indices().filter(|index| !self.columns.is_past_gap(*index)).count();
        self.columns.is_folded().then(|| self.left + before as i64 * self.column + GAP / 2)
    }
}

/// How many rows and columns are drawn, so that their squares stay within the limit.
fn folds((rows, columns): (i64, i64)) -> (Fold, Fold) {
    if rows.saturating_mul(columns) <= MAX_SQUARES {
        return (Fold::all(rows), Fold::all(columns));
    }
    let rows = Fold::new(rows, (MAX_SQUARES / columns).max(MAX_SQUARES.isqrt()));
    (rows, Fold::new(columns, MAX_SQUARES / rows.shown()))
}

fn characters(text: &str) -> i64 {
    length(text) as i64 * CHARACTER
}

/// Colours, fonts, and what changes on a dark page.
fn style() -> String {
    let mut out = String::from(
        "<style>\n\
         :root{color-scheme:light dark}\n\
         text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1a1a1a}\n\
         .c,.d,.l{text-anchor:middle}.e{text-anchor:end}\n\
         .b{fill:#fff}.o{fill:none;stroke:#bbb}.d{fill:#000}.l{fill:#fff}\n\
         g:hover rect{stroke:#000;stroke-width:2}\n\
         @media (prefers-color-scheme:dark){\n\
         .b{fill:#16181d}.o{stroke:#555}.h,.c,.e{fill:#e6e6e6}g:hover rect{stroke:#fff}}\n",
    );
    for colour in 0..palette::COLOURS {
        let _ = writeln!(out, ".p{colour}{{fill:{}}}", palette::hex(colour));
    }
    out.push_str("</style>\n");
    out
}

/// Text escaped for XML; characters that XML cannot represent become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ if character.is_control() => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{LayoutView, hardware_svg, tensor_svg};

    fn view(notation: &str, shape: &[i64]) -> LayoutView {
        LayoutView::new(&notation.parse().unwrap(), shape, 32).unwrap()
    }

    fn count(svg: &str, part: &str) -> usize {
        svg.matches(part).count()
    }

    #[test]
    fn every_element_is_a_square_with_all_its_places_as_a_tooltip() {
        let svg = tensor_svg(&view("S[(2,2):(1@laneid,1@reg)] + R[2:16@laneid]", &[2, 2])).unwrap();
        assert_eq!((count(&svg, "<g>"), count(&svg, "</g>")), (4, 4));
        assert!(svg.contains("<g><title>(1,0): T1 r0; T17 r0</title>"), "{svg}");
        assert!(svg.contains(">T1,T17 r0</text></g>"), "{svg}");
    }

    #[test]
    fn the_same_layout_gives_the_same_bytes() {
        let draw = || tensor_svg(&view("S[(8,4,2):(4@laneid,1@laneid,1@reg)]", &[8, 8])).unwrap();
        assert_eq!(draw(), draw());
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("a<b>&\"'\u{1}\n"), "a&lt;b&gt;&amp;&quot;&#39;\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_tile_of_many_elements_is_drawn_in_blocks() {
        let svg = tensor_svg(&view("S[(2,128,112):(112@TCol,1@TLane,1@TCol)]", &[2, 128, 112])).unwrap();
        assert!(count(&svg, "<g>") <= 1024 && count(&svg, "<g>") > 100, "{}", count(&svg, "<g>"));
        assert!(svg.contains("[1,*,*]</text>") && svg.contains(">L0-1 C112-127</text>"), "no slab or no block");
    }

    #[test]
    fn a_hardware_view_of_many_places_is_folded() {
        let svg = hardware_svg(&view("S[(128,256):(1@TLane,1@TCol)]", &[128, 256])).unwrap();
        assert_eq!(count(&svg, "<g>"), 4096);
        assert!(svg.contains("not drawn: 192 of 256 columns, 64 of 128 rows"), "no note");
    }

    #[test]
    fn few_owners_are_named_beside_their_colours() {
        let svg = tensor_svg(&view("S[(2,4,2,4):(1@gpuid_y,4@m,1@gpuid_x,1@m)]", &[8, 8])).unwrap();
        for device in ["x0 y0", "x0 y1", "x1 y0", "x1 y1"] {
            assert!(svg.contains(&format!(">{device}</text>")), "{svg}");
        }
    }
}
