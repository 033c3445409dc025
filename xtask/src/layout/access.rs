//! An access of a warp to the tile: what it costs, and which swizzle would cost less.

use serde_json::{Value, json};
use tilewright::diag::counted;
use tilewright::layout::access::{AccessKind, WarpAccess};
use tilewright::layout::banks::{AccessPattern, BankView, SwizzleSearch, bank_view, find_swizzle};
use tilewright::layout::{Axis, Layout};

use super::failure::Failure;
use super::subject::Subject;

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
        return Ok(AccessPattern::new("access", AccessKind::Load, &lanes, &subject.shape, &region)?);
    }
    let [rows, columns] = subject.shape[..] else {
        return Err(Failure::Request(format!("`{text}` needs a two-dimensional tile; give --shape")));
    };
    let legal = "legal: row:3, column:0, ldmatrix:4, vectors:16, or a layout of lanes";
    let (what, number) =
        text.split_once(':').ok_or_else(|| Failure::Request(format!("`{text}` is not an access; {legal}")))?;
    let number: i64 = number.parse().map_err(|_| Failure::Request(format!("`{number}` is not a number; {legal}")))?;
    let shape = [rows, columns];
    Ok(match what {
        "row" => AccessPattern::row(shape, number)?,
        "column" => AccessPattern::column(shape, number)?,
        "ldmatrix" => AccessPattern::ldmatrix(shape, [0, 0], number, subject.bits)?,
        "vectors" => AccessPattern::vectors(shape, subject.bits, number, AccessKind::Load)?,
        other => {
            let hint = crate::request::suggestion(other, ["row", "column", "ldmatrix", "vectors"].into_iter());
            return Err(Failure::Request(format!("`{other}` is not an access; {legal}{hint}")));
        }
    })
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
