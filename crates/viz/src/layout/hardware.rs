//! The hardware view: every place, with the elements that are there.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_diag::counted;
use tilewright_layout::LayoutError;
use tilewright_layout::access::WAVEFRONT_BYTES;

use crate::layout::label::{Labels, listed, tuple};
use crate::layout::sheet::{Page, Sheet, Square};
use crate::layout::svg::draw;
use crate::layout::text::{TextOptions, intro, text};
use crate::layout::view::{LayoutView, Place};

/// Bits of a line of shared memory: 32 banks of 4 bytes.
const LINE_BITS: i64 = WAVEFRONT_BYTES * 8;
/// Elements per row of memory if a line does not hold a whole number of them.
const ELEMENTS: i64 = 32;
/// Empty columns are drawn as long as no more than three in four are empty.
const SPARSEST: i64 = 4;
/// Maximum number of elements named in a tooltip.
const MAX_ELEMENTS: usize = 16;

/// The hardware view as text: a row per owner (lane, thread, device), a column per slot (register, column), each with
/// the coordinate of its element. Linear memory has a row per 128-byte line. `.` is a hole; `(0,0)&(1,0)` are two
/// elements in one place. Error: more places than may be enumerated.
pub fn hardware_text(view: &LayoutView, options: &TextOptions) -> Result<String, LayoutError> {
    text(&page(view, &Labels::of(view))?, options)
}

/// The hardware view as one self-contained SVG text; beyond 4,096 places it is folded. Error: more places than may be
/// enumerated.
pub fn hardware_svg(view: &LayoutView) -> Result<String, LayoutError> {
    draw(&page(view, &Labels::of(view))?)
}

fn page<'a>(view: &'a LayoutView, labels: &'a Labels) -> Result<Page<'a>, LayoutError> {
    let places = Places::read(view, labels)?;
    let mut above = intro(view, labels)?;
    if view.is_linear_memory() {
        above.push(format!("a row is {} of {}", counted(places.per_row, "element"), counted(view.bits(), "bit")));
    }
    Ok(Page::of(above, places))
}

/// The elements at every place: rows of owners or lines, and in each row the slots that are used.
struct Places<'a> {
    view: &'a LayoutView,
    labels: &'a Labels,
    /// Owners, or line numbers of linear memory, each with its slots.
    rows: Vec<(Vec<i64>, Slots)>,
    /// Slots, or positions in a line of linear memory.
    columns: Vec<Vec<i64>>,
    /// Elements of a line of linear memory.
    per_row: i64,
}

/// Flat indices of the elements in each slot.
type Slots = BTreeMap<Vec<i64>, Vec<i64>>;

impl<'a> Places<'a> {
    fn read(view: &'a LayoutView, labels: &'a Labels) -> Result<Places<'a>, LayoutError> {
        let per_row = if LINE_BITS % view.bits() == 0 { LINE_BITS / view.bits() } else { ELEMENTS };
        let mut rows: BTreeMap<Vec<i64>, Slots> = BTreeMap::new();
        let mut columns = BTreeSet::new();
        for cell in view.cells()? {
            let cell = cell?;
            for place in cell.places {
                let (row, column) = split(view, place, per_row);
                columns.insert(column.clone());
                rows.entry(row).or_default().entry(column).or_default().push(cell.index);
            }
        }
        Ok(Places { view, labels, rows: rows.into_iter().collect(), columns: with_holes(columns), per_row })
    }

    /// The place that a row and a column represent.
    fn place(&self, row: &[i64], column: &[i64]) -> Place {
        match (row, column) {
            ([line], [position]) if self.view.is_linear_memory() => {
                Place { owner: Vec::new(), slot: vec![line.saturating_mul(self.per_row).saturating_add(*position)] }
            }
            _ => Place { owner: row.to_vec(), slot: column.to_vec() },
        }
    }

    fn titled(&self, place: &Place, elements: &[i64]) -> String {
        let mut texts: Vec<String> =
            elements.iter().take(MAX_ELEMENTS).map(|element| tuple(&self.view.coordinate(*element))).collect();
        match elements.len() {
            0 => texts.push("nothing".to_string()),
            many if many > MAX_ELEMENTS => texts.push(format!("{} more", many - MAX_ELEMENTS)),
            _ => {}
        }
        format!("{}: {}", self.labels.place(place), texts.join(", "))
    }
}

/// Row and column of a place: owner and slot, or line and position in the line.
fn split(view: &LayoutView, place: Place, per_row: i64) -> (Vec<i64>, Vec<i64>) {
    let address = place.slot.first().copied().filter(|_| view.is_linear_memory());
    match address {
        Some(address) => (vec![address.div_euclid(per_row)], vec![address.rem_euclid(per_row)]),
        None => (place.owner, place.slot),
    }
}

/// The slots, including the unused ones between them if these are not too many, so that holes are visible.
fn with_holes(slots: BTreeSet<Vec<i64>>) -> Vec<Vec<i64>> {
    if let (Some([low]), Some([high])) = (slots.first().map(Vec::as_slice), slots.last().map(Vec::as_slice)) {
        let span = high.saturating_sub(*low).saturating_add(1);
        if span / SPARSEST <= slots.len() as i64 {
            return (*low..=*high).map(|slot| vec![slot]).collect();
        }
    }
    slots.into_iter().collect()
}

impl Sheet for Places<'_> {
    fn size(&self) -> (i64, i64) {
        (self.rows.len() as i64, self.columns.len() as i64)
    }

    fn corner(&self) -> &str {
        if self.view.is_linear_memory() { "line" } else { "" }
    }

    fn row_head(&self, row: i64) -> String {
        match usize::try_from(row).ok().and_then(|row| self.rows.get(row)) {
            Some((line, _)) if self.view.is_linear_memory() => listed(line),
            Some((owner, _)) => self.labels.owner(owner),
            None => String::new(),
        }
    }

    fn column_head(&self, column: i64) -> String {
        match usize::try_from(column).ok().and_then(|column| self.columns.get(column)) {
            Some(slot) if self.view.is_linear_memory() => format!("+{}", listed(slot)),
            Some(slot) => self.labels.slot(slot),
            None => String::new(),
        }
    }

    fn square(&self, row: i64, column: i64) -> Result<Square, LayoutError> {
        let outside = LayoutError::OutOfRange { index: row, extent: self.size().0 };
        let (head, slots) = usize::try_from(row).ok().and_then(|row| self.rows.get(row)).ok_or(outside)?;
        let outside = LayoutError::OutOfRange { index: column, extent: self.size().1 };
        let column = usize::try_from(column).ok().and_then(|column| self.columns.get(column)).ok_or(outside)?;
        let place = self.place(head, column);
        let elements = slots.get(column).map_or(&[][..], Vec::as_slice);
        let title = self.titled(&place, elements);
        let named = |element: &i64| tuple(&self.view.coordinate(*element));
        let text = match elements {
            [] => return Ok(Square { text: ".".to_string(), title, owner: None }),
            [element] => named(element),
            [one, other] => format!("{}&{}", named(one), named(other)),
            [first, rest @ ..] => format!("{} +{}", named(first), rest.len()),
        };
        let owner = (self.labels.coloured_by(self.view, &place), self.view.colour(&place));
        Ok(Square { text, title, owner: Some(owner) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;

    fn drawn(notation: &str, shape: &[i64], bits: i64, width: usize) -> String {
        let view = LayoutView::new(&notation.parse().unwrap(), shape, bits).unwrap();
        hardware_text(&view, &TextOptions { width, height: 40, style: Style::Plain }).unwrap()
    }

    #[test]
    fn every_lane_shows_its_elements() {
        let expected = "\
S[(4,2,2):(2@laneid,1@laneid,1@reg)], shape (4,4)
T = laneid, r = reg

       r0     r1
T0  (0,0)  (0,1)
T1  (0,2)  (0,3)
T2  (1,0)  (1,1)
T3  (1,2)  (1,3)
T4  (2,0)  (2,1)
T5  (2,2)  (2,3)
T6  (3,0)  (3,1)
T7  (3,2)  (3,3)
";
        assert_eq!(drawn("S[(4,2,2):(2@laneid,1@laneid,1@reg)]", &[4, 4], 32, 80), expected);
    }

    #[test]
    fn padding_is_a_hole() {
        let expected = "\
S[(3,4):(5@m,1@m)], shape (3,4)
a number is an address on m, in elements
a row is 32 elements of 32 bits

line     +0     +1     +2     +3     +4     +5     +6     +7     +8     +9    +10    +11    +12    +13
   0  (0,0)  (0,1)  (0,2)  (0,3)      .  (1,0)  (1,1)  (1,2)  (1,3)      .  (2,0)  (2,1)  (2,2)  (2,3)
";
        assert_eq!(drawn("S[(3,4):(5,1)]", &[3, 4], 32, 120), expected);
    }

    #[test]
    fn elements_that_share_a_place_stand_together() {
        let expected = "\
S[(2,4):(2@m,1@m)] + 1@gpuid_x, shape (2,4)
x = gpuid_x

             m0           m1           m2           m3           m4           m5
x1        (0,0)        (0,1)  (0,2)&(1,0)  (0,3)&(1,1)        (1,2)        (1,3)
";
        assert_eq!(drawn("S[(2,4):(2,1)] + 1@gpuid_x", &[2, 4], 32, 100), expected);
    }

    #[test]
    fn a_line_of_memory_holds_128_bytes() {
        let expected = "\
S[(4,8):(1@m,4@m)], shape (4,8)
a number is an address on m, in elements
a row is 8 elements of 128 bits

line     +0     +1     +2     +3     +4     +5     +6     +7
   0  (0,0)  (1,0)  (2,0)  (3,0)  (0,1)  (1,1)  (2,1)  (3,1)
   1  (0,2)  (1,2)  (2,2)  (3,2)  (0,3)  (1,3)  (2,3)  (3,3)
   2  (0,4)  (1,4)  (2,4)  (3,4)  (0,5)  (1,5)  (2,5)  (3,5)
   3  (0,6)  (1,6)  (2,6)  (3,6)  (0,7)  (1,7)  (2,7)  (3,7)
";
        assert_eq!(drawn("S[(4,8):(1,4)]", &[4, 8], 128, 80), expected);
    }

    #[test]
    fn an_offset_and_replicas_name_all_warps() {
        let expected = "\
S[(2,2,2):(1@laneid,1@warpid,1@m)] + R[2:4@warpid] + 5@warpid, shape (2,4)
w = warpid, T = laneid, r = m

           r0     r1
 w5 T0  (0,0)  (0,1)
 w5 T1  (1,0)  (1,1)
 w6 T0  (0,2)  (0,3)
 w6 T1  (1,2)  (1,3)
 w9 T0  (0,0)  (0,1)
 w9 T1  (1,0)  (1,1)
w10 T0  (0,2)  (0,3)
w10 T1  (1,2)  (1,3)
";
        assert_eq!(drawn("S[(2,2,2):(1@laneid,1@warpid,1)] + R[2:4@warpid] + 5@warpid", &[2, 4], 32, 80), expected);
    }
}
