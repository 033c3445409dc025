//! The bank view: which elements each bank of shared memory holds, and how an access is served.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_diag::counted;
use tilewright_layout::LayoutError;
use tilewright_layout::access::{AccessKind, WarpAccess};

use crate::layout::label::listed;
use crate::layout::sheet::{Page, Sheet, Square};
use crate::layout::svg::draw;
use crate::layout::text::{TextOptions, print, text, title};
use crate::layout::view::LayoutView;
use crate::layout::wavefront::{BANKS, WORD, Wavefront, wavefronts_of};

const BANK_BITS: i128 = WORD as i128 * 8;
/// Banks that a column may stand for: one, or as many as a chunk of 8 or 16 bytes.
const GROUPINGS: [i64; 3] = [1, 2, 4];
/// Bits of the logical chunks of a row that have a colour each.
const CHUNK_BITS: i64 = 128;
/// Maximum number of elements named in a tooltip.
const MAX_ELEMENTS: usize = 32;

/// The bank view as text: a row per 128-byte line, a column per bank of 4 bytes, each with its elements; then how
/// `accesses` are served, the slowest in detail.
///
/// `0,4-5` are the elements (0,4) and (0,5), `0,4&1,4` are (0,4) and (1,4). If 32 columns do not fit, and 2 or 4
/// neighbouring banks always hold a run of elements, a column stands for these. The colour shows which 16-byte chunk of
/// its row an element is from. Errors: a layout that is not on `m` alone, more places than may be enumerated.
pub fn banks_text(view: &LayoutView, accesses: &[WarpAccess], options: &TextOptions) -> Result<String, LayoutError> {
    let mut banks = Banks::read(view)?;
    banks.group_to_fit(options)?;
    let above = banks.above();
    let below = served(accesses);
    text(&Page { below, ..Page::of(above, banks) }, options)
}

/// The bank view as one self-contained SVG text, with the total cost of the accesses. Errors: a layout that is not on
/// `m` alone, more places than may be enumerated.
pub fn banks_svg(view: &LayoutView, accesses: &[WarpAccess]) -> Result<String, LayoutError> {
    let banks = Banks::read(view)?;
    let above = banks.above();
    draw(&Page { below: total(accesses).into_iter().collect(), ..Page::of(above, banks) })
}

/// First bit and flat index of the elements of a bank.
type Content = BTreeSet<(i128, i64)>;

/// The elements in every bank of every line that is used.
struct Banks<'a> {
    view: &'a LayoutView,
    /// Numbers of the 128-byte lines that are used.
    lines: Vec<i64>,
    /// Elements by line and bank.
    contents: BTreeMap<(i64, i64), Content>,
    /// Banks that a column stands for.
    per_column: i64,
}

impl<'a> Banks<'a> {
    fn read(view: &'a LayoutView) -> Result<Banks<'a>, LayoutError> {
        if !view.is_linear_memory() {
            return Err(LayoutError::Hardware {
                name: "bank view",
                problem: format!("{} is not in linear memory", view.notation()),
                legal: "a layout on the axis `m` alone".to_string(),
            });
        }
        let mut contents: BTreeMap<(i64, i64), Content> = BTreeMap::new();
        for cell in view.cells()? {
            let cell = cell?;
            for place in &cell.places {
                let first = view.bit_address(place);
                let last = first + i128::from(view.bits()) - 1;
                for word in first.div_euclid(BANK_BITS)..=last.div_euclid(BANK_BITS) {
                    let (line, bank) = (word.div_euclid(i128::from(BANKS)), word.rem_euclid(i128::from(BANKS)));
                    contents.entry((line as i64, bank as i64)).or_default().insert((first, cell.index));
                }
            }
        }
        let lines: BTreeSet<i64> = contents.keys().map(|(line, _)| *line).collect();
        Ok(Banks { view, lines: lines.into_iter().collect(), contents, per_column: 1 })
    }

    /// Lets a column stand for the fewest banks with which all columns fit, else for one.
    fn group_to_fit(&mut self, options: &TextOptions) -> Result<(), LayoutError> {
        for per_column in GROUPINGS {
            self.per_column = per_column;
            let printed = print(&*self, options.width, options.height, options.style)?;
            if !printed.columns.is_folded() && (per_column == 1 || self.holds_runs()) {
                return Ok(());
            }
        }
        self.per_column = 1;
        Ok(())
    }

    fn above(&self) -> Vec<String> {
        let column = match self.per_column {
            1 => "a bank".to_string(),
            many => format!("{many} banks"),
        };
        let bits = self.view.bits();
        vec![title(self.view), format!("{bits}-bit elements; a row is 128 bytes, a column is {column} of 4 bytes")]
    }

    /// True when every column holds one run of elements in every line.
    fn holds_runs(&self) -> bool {
        let (rows, columns) = self.size();
        (0..rows).all(|row| (0..columns).all(|column| self.runs(&self.content(row, column)).len() <= 1))
    }

    fn content(&self, row: i64, column: i64) -> Content {
        let line = usize::try_from(row).ok().and_then(|row| self.lines.get(row));
        let banks = column * self.per_column..(column + 1) * self.per_column;
        let keys = line.into_iter().flat_map(|line| banks.clone().map(move |bank| (*line, bank)));
        keys.filter_map(|key| self.contents.get(&key)).flatten().copied().collect()
    }

    /// Runs of elements of one row of the tile that are contiguous in memory: first flat index and length.
    fn runs(&self, content: &Content) -> Vec<(i64, i64)> {
        let columns = self.view.shape().last().copied().unwrap_or(1);
        let mut runs: Vec<(i64, i64)> = Vec::new();
        let mut next = None;
        for (bit, index) in content {
            match runs.last_mut() {
                Some((first, length)) if next == Some(*bit) && *first + *length == *index && index % columns != 0 => {
                    *length += 1;
                }
                _ => runs.push((*index, 1)),
            }
            next = Some(bit + i128::from(self.view.bits()));
        }
        runs
    }

    fn named(&self, (first, length): (i64, i64)) -> String {
        let coordinate = self.view.coordinate(first);
        match coordinate.last() {
            Some(column) if length > 1 => format!("{}-{}", listed(&coordinate), column + length - 1),
            _ => listed(&coordinate),
        }
    }
}

impl Sheet for Banks<'_> {
    fn size(&self) -> (i64, i64) {
        (self.lines.len() as i64, BANKS as i64 / self.per_column)
    }

    fn corner(&self) -> &str {
        "line"
    }

    fn row_head(&self, row: i64) -> String {
        usize::try_from(row).ok().and_then(|row| self.lines.get(row)).map(i64::to_string).unwrap_or_default()
    }

    fn column_head(&self, column: i64) -> String {
        let first = column * self.per_column;
        if self.per_column == 1 { first.to_string() } else { format!("{first}-{}", first + self.per_column - 1) }
    }

    fn square(&self, row: i64, column: i64) -> Result<Square, LayoutError> {
        let runs = self.runs(&self.content(row, column));
        let (line, bank) = (self.row_head(row), self.column_head(column));
        let names: Vec<String> = runs.iter().take(MAX_ELEMENTS).map(|run| self.named(*run)).collect();
        let title = format!("line {line}, bank {bank}: {}", names.join("; "));
        let text = match &names[..] {
            [] => return Ok(Square { text: ".".to_string(), title: format!("{title}nothing"), owner: None }),
            [run] => run.clone(),
            [one, other] => format!("{one}&{other}"),
            [first, ..] => format!("{first} +{}", runs.len() - 1),
        };
        let owner = runs.first().map(|(index, _)| {
            let columns = self.view.shape().last().copied().unwrap_or(1);
            let chunk = (index % columns).saturating_mul(self.view.bits()) / CHUNK_BITS;
            (format!("chunk {} of 16 bytes", chunk % 8), (chunk % 8) as usize)
        });
        Ok(Square { text, title, owner })
    }
}

/// `wavefronts 8, ideal 1`, over all accesses.
fn total(accesses: &[WarpAccess]) -> Option<String> {
    let sum = |cost: fn(&WarpAccess) -> u32| accesses.iter().map(|access| u64::from(cost(access))).sum::<u64>();
    let (wavefronts, ideal) = (sum(WarpAccess::wavefronts), sum(WarpAccess::ideal_wavefronts));
    match accesses {
        [] => None,
        [access] => Some(format!("{}: wavefronts {wavefronts}, ideal {ideal}", described(access))),
        _ => Some(format!("{} accesses: wavefronts {wavefronts}, ideal {ideal}", accesses.len())),
    }
}

fn described(access: &WarpAccess) -> String {
    let kind = match access.kind {
        AccessKind::Load => "load",
        AccessKind::Store => "store",
    };
    format!("{kind} of {} a lane", counted(access.width, "byte"))
}

/// What the accesses cost, and the wavefronts of the slowest: the banks that are busy, and the lanes that are served.
fn served(accesses: &[WarpAccess]) -> Vec<String> {
    let Some(total) = total(accesses) else { return Vec::new() };
    let mut lines = vec![total];
    // The first of the slowest: `max_by_key` would take the last.
    let slowest = accesses.iter().enumerate().rev().max_by_key(|(_, access)| access.wavefronts());
    let Some((at, access)) = slowest else { return lines };
    if accesses.len() > 1 {
        let (wavefronts, ideal) = (access.wavefronts(), access.ideal_wavefronts());
        let name = described(access);
        lines.push(format!("the slowest, number {at}, a {name}: wavefronts {wavefronts}, ideal {ideal}"));
    }
    let wavefronts = wavefronts_of(access);
    lines.extend(wavefronts.iter().enumerate().map(|(at, wavefront)| strip(at, wavefront)));
    lines
}

/// `wavefront  0  #...#...  T0-T7`: one character per bank.
fn strip(at: usize, wavefront: &Wavefront) -> String {
    let busy: BTreeSet<u64> = wavefront.words.iter().map(|word| word % BANKS).collect();
    let banks: String = (0..BANKS).map(|bank| if busy.contains(&bank) { '#' } else { '.' }).collect();
    format!("wavefront {at:>2}  {banks}  {}", ranges(&wavefront.lanes))
}

/// Lanes in runs, as in `T0-T3,T8`.
fn ranges(lanes: &[usize]) -> String {
    let runs = lanes.chunk_by(|a, b| a + 1 == *b).filter_map(|run| run.first().zip(run.last()));
    let texts = runs.map(|(first, last)| if first == last { format!("T{first}") } else { format!("T{first}-T{last}") });
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;

    const ROW_MAJOR: &str = "S[(8,64):(64,1)]";
    const SWIZZLED: &str = "swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]";

    fn drawn(notation: &str, shape: &[i64], bits: i64, accesses: &[WarpAccess]) -> String {
        let view = LayoutView::new(&notation.parse().unwrap(), shape, bits).unwrap();
        banks_text(&view, accesses, &TextOptions { width: 80, height: 60, style: Style::Plain }).unwrap()
    }

    /// Lanes 0 to 7 read column 0 of 8 rows of 64 half-precision elements.
    fn column(notation: &str) -> WarpAccess {
        let layout: tilewright_layout::Layout = notation.parse().unwrap();
        WarpAccess::of(2, AccessKind::Load, |lane| {
            (lane < 8).then(|| layout.memory_position(lane as i64 * 64) as u64 * 2)
        })
    }

    #[test]
    fn the_128_byte_swizzle_spreads_a_column_over_the_banks() {
        let expected = "\
swizzle(M=3,B=3,S=3) o S[(8,64):(64@m,1@m)], shape (8,64)
16-bit elements; a row is 128 bytes, a column is 4 banks of 4 bytes

line      0-3      4-7     8-11    12-15    16-19    20-23    24-27    28-31
   0    0,0-7   0,8-15  0,16-23  0,24-31  0,32-39  0,40-47  0,48-55  0,56-63
   1   1,8-15    1,0-7  1,24-31  1,16-23  1,40-47  1,32-39  1,56-63  1,48-55
   2  2,16-23  2,24-31    2,0-7   2,8-15  2,48-55  2,56-63  2,32-39  2,40-47
   3  3,24-31  3,16-23   3,8-15    3,0-7  3,56-63  3,48-55  3,40-47  3,32-39
   4  4,32-39  4,40-47  4,48-55  4,56-63    4,0-7   4,8-15  4,16-23  4,24-31
   5  5,40-47  5,32-39  5,56-63  5,48-55   5,8-15    5,0-7  5,24-31  5,16-23
   6  6,48-55  6,56-63  6,32-39  6,40-47  6,16-23  6,24-31    6,0-7   6,8-15
   7  7,56-63  7,48-55  7,40-47  7,32-39  7,24-31  7,16-23   7,8-15    7,0-7

load of 2 bytes a lane: wavefronts 1, ideal 1
wavefront  0  #...#...#...#...#...#...#...#...  T0-T7
";
        assert_eq!(drawn(SWIZZLED, &[8, 64], 16, &[column(SWIZZLED)]), expected);
    }

    #[test]
    fn a_column_of_a_row_major_tile_is_served_one_lane_at_a_time() {
        let expected = "\
S[(8,64):(64@m,1@m)], shape (8,64)
16-bit elements; a row is 128 bytes, a column is 4 banks of 4 bytes

line      0-3      4-7     8-11    12-15    16-19    20-23    24-27    28-31
   0    0,0-7   0,8-15  0,16-23  0,24-31  0,32-39  0,40-47  0,48-55  0,56-63
   1    1,0-7   1,8-15  1,16-23  1,24-31  1,32-39  1,40-47  1,48-55  1,56-63
   2    2,0-7   2,8-15  2,16-23  2,24-31  2,32-39  2,40-47  2,48-55  2,56-63
   3    3,0-7   3,8-15  3,16-23  3,24-31  3,32-39  3,40-47  3,48-55  3,56-63
   4    4,0-7   4,8-15  4,16-23  4,24-31  4,32-39  4,40-47  4,48-55  4,56-63
   5    5,0-7   5,8-15  5,16-23  5,24-31  5,32-39  5,40-47  5,48-55  5,56-63
   6    6,0-7   6,8-15  6,16-23  6,24-31  6,32-39  6,40-47  6,48-55  6,56-63
   7    7,0-7   7,8-15  7,16-23  7,24-31  7,32-39  7,40-47  7,48-55  7,56-63

load of 2 bytes a lane: wavefronts 8, ideal 1
wavefront  0  #...............................  T0
wavefront  1  #...............................  T1
wavefront  2  #...............................  T2
wavefront  3  #...............................  T3
wavefront  4  #...............................  T4
wavefront  5  #...............................  T5
wavefront  6  #...............................  T6
wavefront  7  #...............................  T7
";
        assert_eq!(drawn(ROW_MAJOR, &[8, 64], 16, &[column(ROW_MAJOR)]), expected);
    }

    #[test]
    fn of_several_accesses_the_slowest_is_shown() {
        let expected = "\
S[(2,64):(64@m,1@m)], shape (2,64)
16-bit elements; a row is 128 bytes, a column is 4 banks of 4 bytes

line      0-3      4-7     8-11    12-15    16-19    20-23    24-27    28-31
   0    0,0-7   0,8-15  0,16-23  0,24-31  0,32-39  0,40-47  0,48-55  0,56-63
   1    1,0-7   1,8-15  1,16-23  1,24-31  1,32-39  1,40-47  1,48-55  1,56-63

2 accesses: wavefronts 9, ideal 2
the slowest, number 1, a load of 2 bytes a lane: wavefronts 8, ideal 1
wavefront  0  #...............................  T0
wavefront  1  #...............................  T1
wavefront  2  #...............................  T2
wavefront  3  #...............................  T3
wavefront  4  #...............................  T4
wavefront  5  #...............................  T5
wavefront  6  #...............................  T6
wavefront  7  #...............................  T7
";
        assert_eq!(drawn("S[(2,64):(64,1)]", &[2, 64], 16, &[column(SWIZZLED), column(ROW_MAJOR)]), expected);
    }

    #[test]
    fn elements_that_are_no_neighbours_are_named_one_by_one() {
        let expected = "\
S[(4,3):(1@m,4@m)], shape (4,3)
16-bit elements; a row is 128 bytes, a column is a bank of 4 bytes

line        0        1        2        3  ...       29       30       31
   0  0,0&1,0  2,0&3,0  0,1&1,1  2,1&3,1  ...        .        .        .

folded: 25 of 32 columns; `--svg FILE` or `--html FILE` shows all
";
        assert_eq!(drawn("S[(4,3):(1,4)]", &[4, 3], 16, &[]), expected);
    }

    #[test]
    fn a_wide_element_is_in_several_banks() {
        let expected = "\
S[(2,4):(4@m,1@m)], shape (2,4)
256-bit elements; a row is 128 bytes, a column is 4 banks of 4 bytes

line    0-3    4-7   8-11  12-15  16-19  20-23  24-27  28-31
   0    0,0    0,0    0,1    0,1    0,2    0,2    0,3    0,3
   1    1,0    1,0    1,1    1,1    1,2    1,2    1,3    1,3
";
        assert_eq!(drawn("S[(2,4):(4,1)]", &[2, 4], 256, &[]), expected);
    }

    #[test]
    fn lanes_have_no_banks() {
        let view = LayoutView::new(&"S[4:1@laneid]".parse().unwrap(), &[4], 32).unwrap();
        let options = TextOptions { width: 80, height: 60, style: Style::Plain };
        let error = banks_text(&view, &[], &options).unwrap_err();
        assert_eq!(error.to_string(), "no such bank view: S[4:1@laneid] is not in linear memory");
    }

    #[test]
    fn the_svg_tells_what_accesses_cost() {
        let view = LayoutView::new(&ROW_MAJOR.parse().unwrap(), &[8, 64], 16).unwrap();
        let svg = banks_svg(&view, &[column(ROW_MAJOR)]).unwrap();
        assert!(svg.contains("load of 2 bytes a lane: wavefronts 8, ideal 1</text>"), "{svg}");
        assert!(svg.contains("<title>line 7, bank 31: 7,62-63</title>"), "{svg}");
    }
}
