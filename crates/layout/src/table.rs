//! Layouts that iters cannot describe: the places of every element are listed.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::axis::Axis;
use crate::error::LayoutError;
use crate::tile::Coord;

/// Any map from the elements of a finite tile to sets of places: diagonals, rotations, the inverse of a sparse map.
///
/// It prints as its size, its axes and a digest; [`TableLayout::to_text`] writes all of it. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableLayout(Arc<Rows>);

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Rows {
    /// The axes of the positions, in order.
    axes: Vec<Axis>,
    /// The places of element `x` begin at place `starts[x]` and end at `starts[x + 1]`.
    starts: Vec<usize>,
    /// Positions, one per axis and place.
    positions: Vec<i64>,
}

/// Positions must be below this in magnitude, so that one more than the greatest fits in 64 bits.
const MAX_POSITION: i64 = 1 << 62;
const HEAD: &str = "tilewright table 1";

impl TableLayout {
    /// A table from the places of each element. A place is at 0 on an axis that it does not name. Errors: no elements,
    /// an element without a place, more than [`crate::ENUMERATION_LIMIT`] places.
    pub fn new(elements: &[Vec<Coord>]) -> Result<TableLayout, LayoutError> {
        let axes: BTreeSet<Axis> = elements.iter().flatten().flat_map(|place| place.keys().cloned()).collect();
        let axes: Vec<Axis> = axes.into_iter().collect();
        let mut starts = vec![0];
        let mut positions = Vec::new();
        for places in elements {
            let at = |place: &Coord| -> Vec<i64> { axes.iter().map(|a| place.get(a).copied().unwrap_or(0)).collect() };
            let rows: BTreeSet<Vec<i64>> = places.iter().map(at).collect();
            starts.push(starts[starts.len() - 1] + rows.len());
            positions.extend(rows.into_iter().flatten());
        }
        TableLayout::checked(Rows { axes, starts, positions })
    }

    /// The table in which element `x` is at position `positions[x]` of one axis.
    pub fn of_positions(axis: &Axis, positions: &[i64]) -> Result<TableLayout, LayoutError> {
        let starts = (0..=positions.len()).collect();
        TableLayout::checked(Rows { axes: vec![axis.clone()], starts, positions: positions.to_vec() })
    }

    fn checked(rows: Rows) -> Result<TableLayout, LayoutError> {
        let places = rows.starts.last().copied().unwrap_or(0) as i64;
        if places > crate::ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points: places });
        }
        if let Some(far) = rows.positions.iter().find(|position| position.saturating_abs() >= MAX_POSITION) {
            return Err(LayoutError::Table { line: 0, problem: format!("the position {far} does not fit in 62 bits") });
        }
        if let Some(axis) = rows.axes.iter().find(|axis| !axis.is_valid_name()) {
            return Err(LayoutError::Axes { problem: format!("`{axis}` is not a valid axis name") });
        }
        if places == 0 || rows.starts.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(LayoutError::Table { line: 0, problem: "every element needs at least one place".to_string() });
        }
        Ok(TableLayout(Arc::new(rows)))
    }

    /// How many elements it places.
    pub fn size(&self) -> i64 {
        self.0.starts.len() as i64 - 1
    }

    /// The axes that it mentions, in order.
    pub fn axes(&self) -> &[Axis] {
        &self.0.axes
    }

    /// The places of element `flat`, as a sorted set. Error: an index outside the table.
    pub fn apply(&self, flat: i64) -> Result<Vec<Coord>, LayoutError> {
        let outside = LayoutError::OutOfRange { index: flat, extent: self.size() };
        let rows = self.rows_of(flat).ok_or(outside)?;
        Ok(rows.map(|row| self.0.axes.iter().cloned().zip(row.iter().copied()).collect()).collect())
    }

    /// The positions of element `flat`, one row per place.
    pub(crate) fn rows_of(&self, flat: i64) -> Option<impl Iterator<Item = &[i64]>> {
        let at = usize::try_from(flat).ok()?;
        let (start, end) = (*self.0.starts.get(at)?, *self.0.starts.get(at + 1)?);
        let width = self.0.axes.len();
        // Without axes a place is an empty row.
        Some((start..end).map(move |place| &self.0.positions[place * width..(place + 1) * width]))
    }

    /// The position of the first place of element `flat` on `axis`; 0 on an axis that the table does not have. `flat`
    /// must be inside the table.
    pub fn position(&self, flat: i64, axis: &Axis) -> i64 {
        let first = self.0.starts[flat as usize] * self.0.axes.len();
        let column = self.0.axes.iter().position(|a| a == axis);
        column.map_or(0, |column| self.0.positions[first + column])
    }

    /// The positions of all places on `axis`; none on an axis that the table does not have.
    fn positions_on(&self, axis: &Axis) -> impl Iterator<Item = i64> {
        let column = self.0.axes.iter().position(|a| a == axis);
        let positions = move |column| self.0.positions.iter().skip(column).step_by(self.0.axes.len()).copied();
        column.into_iter().flat_map(positions)
    }

    /// One more than the greatest position on `axis`.
    pub fn span_on(&self, axis: &Axis) -> i64 {
        1 + self.positions_on(axis).max().unwrap_or(0)
    }

    /// The least position on `axis`.
    pub fn least_on(&self, axis: &Axis) -> i64 {
        self.positions_on(axis).min().unwrap_or(0)
    }

    /// The first element that has several places, if there is one.
    pub fn replicated(&self) -> Option<i64> {
        self.0.starts.windows(2).position(|pair| pair[1] - pair[0] > 1).map(|element| element as i64)
    }

    /// True when different elements never share a place.
    pub fn is_injective(&self) -> bool {
        self.collision().is_none()
    }

    /// Two elements `(earlier, later)` that share a place, if any do; `later` is the least element at the place of an
    /// earlier one.
    pub fn collision(&self) -> Option<(i64, i64)> {
        let places =
            (0..self.size()).flat_map(|flat| self.rows_of(flat).into_iter().flatten().map(move |row| (row, flat)));
        let mut places: Vec<(&[i64], i64)> = places.collect();
        places.sort_unstable();
        let shared = places.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| (pair[0].1, pair[1].1));
        shared.min_by_key(|(_, later)| *later)
    }

    /// The table of the given elements, in this order. Error: an element outside the table.
    pub fn select(&self, elements: &[i64]) -> Result<TableLayout, LayoutError> {
        let picked: Vec<Vec<Coord>> = elements.iter().map(|flat| self.apply(*flat)).collect::<Result<_, _>>()?;
        TableLayout::new(&picked)
    }

    /// FNV-1a-64 over axes, places per element and positions: equal tables have equal digests.
    pub fn digest(&self) -> u64 {
        let names = self.0.axes.iter().flat_map(|axis| axis.name().bytes().chain([0]));
        let starts = self.0.starts.iter().flat_map(|start| (*start as u64).to_le_bytes());
        let positions = self.0.positions.iter().flat_map(|position| position.to_le_bytes());
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        names.chain(starts).chain(positions).fold(0xcbf2_9ce4_8422_2325, fold)
    }

    /// The whole table as text: a header line, the axes, then one line per element, its places separated by `;`.
    pub fn to_text(&self) -> String {
        let axes: Vec<&str> = self.0.axes.iter().map(Axis::name).collect();
        let mut text = format!("{HEAD}\naxes {}\n", axes.join(" "));
        for flat in 0..self.size() {
            let row = |row: &[i64]| row.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
            let places: Vec<String> = self.rows_of(flat).into_iter().flatten().map(row).collect();
            text.push_str(&places.join(";"));
            text.push('\n');
        }
        text
    }

    /// Reads what [`TableLayout::to_text`] wrote. Errors name the line.
    pub fn from_text(text: &str) -> Result<TableLayout, LayoutError> {
        let wrong = |line: usize, problem: String| LayoutError::Table { line, problem };
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err(wrong(1, format!("a table begins with `{HEAD}`")));
        }
        let names = lines.next().and_then(|line| line.strip_prefix("axes"));
        let names = names.ok_or_else(|| wrong(2, "the axes are missing, as in `axes laneid reg`".to_string()))?;
        let axes: Vec<Axis> = names.split_whitespace().map(Axis::named).collect();
        if axes.iter().collect::<BTreeSet<_>>().len() != axes.len() {
            return Err(wrong(2, "an axis is named twice".to_string()));
        }
        let mut elements = Vec::new();
        for (at, line) in lines.enumerate() {
            let place = |text: &str| place_of(&axes, text).map_err(|problem| wrong(at + 3, problem));
            elements.push(line.split(';').map(place).collect::<Result<Vec<Coord>, _>>()?);
        }
        TableLayout::new(&elements)
    }
}

fn place_of(axes: &[Axis], text: &str) -> Result<Coord, String> {
    let positions: Vec<&str> = if axes.is_empty() && text.is_empty() { Vec::new() } else { text.split(',').collect() };
    if positions.len() != axes.len() {
        return Err(format!("position count {} differs from axis count {}", positions.len(), axes.len()));
    }
    let read = |(axis, text): (&Axis, &str)| {
        let position = text.trim().parse::<i64>().ok();
        Ok((axis.clone(), position.ok_or_else(|| format!("`{text}` is not a position"))?))
    };
    axes.iter().zip(positions).map(read).collect()
}

impl fmt::Display for TableLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes: Vec<&str> = self.0.axes.iter().map(Axis::name).collect();
        write!(f, "table({} -> {}, {:016x})", self.size(), axes.join(","), self.digest())
    }
}

impl fmt::Debug for TableLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{LANEID, M};

    fn diagonal() -> TableLayout {
        let positions: Vec<i64> = (0..16).map(|x| x / 4 * 4 + (x / 4 + x % 4) % 4).collect();
        TableLayout::of_positions(&M, &positions).unwrap()
    }

    #[test]
    fn a_diagonal_is_a_table() {
        assert_eq!(diagonal().apply(4).unwrap(), vec![Coord::from([(M, 5)])]);
        assert_eq!((diagonal().size(), diagonal().span_on(&M), diagonal().is_injective()), (16, 16, true));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let copies = TableLayout::new(&[
            vec![Coord::from([(LANEID, 3), (M, 1)]), Coord::from([(LANEID, 1)])],
            vec![Coord::from([(M, -7)])],
        ]);
        for table in [diagonal(), copies.unwrap()] {
            assert_eq!(TableLayout::from_text(&table.to_text()), Ok(table));
        }
    }

    #[test]
    fn it_prints_its_size_and_digest() {
        assert_eq!(diagonal().to_string(), "table(16 -> m, 52d6ea8757499a18)");
    }

    #[test]
    fn text_that_is_no_table_names_the_line() {
        let error = TableLayout::from_text("tilewright table 1\naxes m\n0\nx\n").unwrap_err();
        assert_eq!(error.to_string(), "line 4 of the table: `x` is not a position");
    }

    #[test]
    fn the_least_element_at_a_taken_place_is_named_with_the_one_before_it() {
        let table = TableLayout::of_positions(&M, &[4, 7, 2, 7, 4, 7]).unwrap();
        assert_eq!((table.collision(), diagonal().collision()), (Some((1, 3)), None));
    }

    #[test]
    fn copies_collide_with_the_places_of_others() {
        let at = |position: i64| Coord::from([(M, position)]);
        let table = TableLayout::new(&[vec![at(0), at(2)], vec![at(1)], vec![at(3), at(2)]]).unwrap();
        assert_eq!((table.collision(), table.replicated()), (Some((0, 2)), Some(0)));
    }

    #[test]
    fn the_least_position_may_be_negative() {
        let table = TableLayout::of_positions(&M, &[4, -7, 2]).unwrap();
        assert_eq!((table.least_on(&M), table.least_on(&LANEID), table.span_on(&LANEID)), (-7, 0, 1));
    }

    #[test]
    fn an_element_needs_a_place() {
        assert_eq!(TableLayout::new(&[vec![]]).unwrap_err().code(), "L0121");
    }
}
