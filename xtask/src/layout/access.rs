//! An access of a warp to the tile: what it costs, and which swizzle would cost less.

use serde_json::{Value, json};
use tilewright::diag::{Diagnostic, counted};
use tilewright::layout::access::{AccessKind, WarpAccess};
use tilewright::layout::banks::{AccessPattern, BankView, SwizzleSearch, bank_view, find_swizzle};
use tilewright::layout::{Axis, Layout, LayoutError};

use super::failure::Failure;
use super::subject::Subject;
use crate::request::suggestion;

/// An access to the tile, and the search for a swizzle that suits it.
pub(super) struct Accesses {
    pattern: AccessPattern,
    /// The instructions of the access, with their wavefronts.
    view: BankView,
    /// `None` for a table, which cannot be swizzled.
    search: Option<SwizzleSearch>,
}

/// Reads `row:3`, `column:0`, `ldmatrix:4`, `vectors:16`, or a layout of lanes over the whole tile.
pub(super) fn read(text: &str, subject: &Subject) -> Result<Accesses, Failure> {
    let pattern = pattern(text, subject)?;
    let view = bank_view(&subject.layout, subject.bits, &pattern)?;
    // A table has no tile to swizzle.
    let search = match subject.layout.tile() {
        Ok(tile) => Some(find_swizzle(tile, subject.bits, std::slice::from_ref(&pattern))?),
        Err(_) => None,
    };
    Ok(Accesses { pattern, view, search })
}

fn pattern(text: &str, subject: &Subject) -> Result<AccessPattern, Failure> {
    if text.contains('[') {
        let own: [Axis; 0] = [];
        let Layout::Tile(lanes) = Layout::parse_with_axes(text, &own)? else {
            return Err(Failure::Request("an access must be a plain layout of lanes, without a swizzle".to_string()));
        };
        let region: Vec<std::ops::Range<i64>> = subject.shape.iter().map(|extent| 0..*extent).collect();
        let pattern = AccessPattern::new("access", AccessKind::Load, &lanes, &subject.shape, &region);
        return pattern.map_err(|error| of_option(text, error, subject));
    }
    let [rows, columns] = subject.shape[..] else {
        return Err(Failure::Request(format!("`{text}` needs a two-dimensional tile; give --shape")));
    };
    let legal = "legal: row:3, column:0, ldmatrix:4, vectors:16, or a layout of lanes";
    let (what, number) =
        text.split_once(':').ok_or_else(|| Failure::Request(format!("`{text}` is not an access; {legal}")))?;
    let number: i64 = number.parse().map_err(|_| Failure::Request(format!("`{number}` is not a number; {legal}")))?;
    let shape = [rows, columns];
    let pattern = match what {
        "row" => AccessPattern::row(shape, number),
        "column" => AccessPattern::column(shape, number),
        "ldmatrix" => AccessPattern::ldmatrix(shape, [0, 0], number, subject.bits),
        "vectors" => AccessPattern::vectors(shape, subject.bits, number, AccessKind::Load),
        other => {
            let hint = suggestion(other, ["row", "column", "ldmatrix", "vectors"].into_iter());
            return Err(Failure::Request(format!("`{other}` is not an access; {legal}{hint}")));
        }
    };
    pattern.map_err(|error| of_option(text, error, subject))
}

/// The error for an access that does not fit the tile, in terms of the option.
fn of_option(text: &str, error: LayoutError, subject: &Subject) -> Failure {
    let code = error.code();
    let tile = tuple(&subject.shape);
    let found = match error {
        LayoutError::Region { dimension, begin, end, extent } => {
            let (line, what) = if dimension == 0 { ("row", "rows") } else { ("column", "columns") };
            let has = format!("the {tile} tile has {} (0 to {})", counted(extent, line), extent - 1);
            // A single row or column; also one so large that the end of its range overflows.
            if end <= begin.saturating_add(1) {
                Diagnostic::error(code, format!("`--access {text}` accesses {line} {begin}, but {has}")).help(
                    if extent > 1 {
                        format!("write {line}:0 to {line}:{}", extent - 1)
                    } else {
                        format!("write {line}:0")
                    },
                )
            } else {
                let needs = format!("`--access {text}` needs {}, but {has}", counted(end - begin, line));
                Diagnostic::error(code, needs).help(format!("use a tile of at least {end} {what}, or fewer matrices"))
            }
        }
        LayoutError::Size { shape, size } if text.contains('[') => {
            let needed: i64 = shape.iter().fold(1, |product, extent| product.saturating_mul(*extent));
            let has = format!("`--access {text}` has {}", counted(size, "element"));
            Diagnostic::error(code, format!("{has}, but the {tile} tile has {needed}"))
                .help("write a layout with a lane for each element of the tile")
        }
        other => return Failure::Layout(other),
    };
    Failure::Option(Box::new(found))
}

fn tuple(shape: &[i64]) -> String {
    let extents: Vec<String> = shape.iter().map(i64::to_string).collect();
    format!("({})", extents.join(","))
}

impl Accesses {
    pub(super) fn instructions(&self) -> Vec<WarpAccess> {
        self.view.instructions.iter().map(|instruction| instruction.access.clone()).collect()
    }

    pub(super) fn text(&self) -> String {
        let (count, width) = (self.view.instructions.len(), self.view.width);
        let instructions = counted(count, "instruction");
        let mut text = format!(
            "{}: {instructions} of {width} B per lane, wavefronts {}, ideal {}",
            self.pattern.name(),
            self.view.wavefronts(),
            self.view.ideal_wavefronts()
        );
        if let Some(search) = self.search.as_ref().filter(|_| !self.view.is_conflict_free()) {
            text.push_str(&format!("\nbest swizzle of the plain tile: {search}"));
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "name": self.pattern.name(),
            "instructions": self.view.instructions.len(),
            "width": self.view.width,
            "wavefronts": self.view.wavefronts(),
            "ideal": self.view.ideal_wavefronts(),
            "search": self.search.as_ref().map(|search| search.to_string()),
        })
    }
}
