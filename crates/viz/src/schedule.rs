//! Pictures of what a warp does in shared memory in one tile op: a row for each wavefront, a column for each bank, and
//! in a cell the lanes that the bank serves.

mod accesses;

use std::collections::BTreeMap;

use tilewright_diag::counted;
use tilewright_ir::thread::Program;
use tilewright_layout::LayoutError;
use tilewright_layout::access::{AccessKind, LANES, WarpAccess};

use crate::Style;
use crate::layout::sheet::{Page, Part, Sheet, Square};
use crate::layout::svg::draw;
use crate::layout::text::{TextOptions, text};
use crate::layout::wavefront::{BANKS, WORD, Wavefront, wavefronts_of};
use crate::schedule::accesses::{Access, Accesses, MAX_ACCESSES};

pub use accesses::ScheduleError;

/// Number of neighbouring lanes that share a colour.
const ALIKE: usize = 8;
/// The colour of a conflict.
const CONFLICT: usize = 6;
const LEGEND: &str = "a row is a wavefront, a column a bank, a cell the lanes that it serves; \
                      ! where one access asks a bank for several words";

/// The accesses of warp 0 to shared memory in one tile op.
///
/// Accesses of 8 or 16 bytes per lane are served by half or quarter warps, each in a separate row. If an access asks a
/// bank for several words, it takes further rows, labelled `again`.
#[derive(Clone, Debug)]
pub struct Schedule {
    title: String,
    phases: Vec<Phase>,
    /// Whether accesses beyond [`MAX_ACCESSES`] were dropped.
    is_cut: bool,
}

/// Consecutive accesses of one kind and width to one memory.
#[derive(Clone, Debug)]
struct Phase {
    heading: String,
    /// Name of the memory.
    memory: String,
    rows: Vec<WavefrontRow>,
}

/// One wavefront.
#[derive(Clone, Debug)]
struct WavefrontRow {
    /// Number of the access, and the lanes of a partial warp.
    head: String,
    /// The busy banks, by number.
    cells: BTreeMap<u64, BankCell>,
}

/// The word that one bank serves in a wavefront, and the lanes that it serves it to.
#[derive(Clone, Debug)]
struct BankCell {
    /// Lanes that are served.
    lanes: Vec<usize>,
    /// The word, as byte address divided by 4.
    word: u64,
    /// Whether the access asks this bank for other words too.
    is_conflict: bool,
}

impl Schedule {
    /// What warp 0 does in the `op`th tile op of a program. Indices of CTAs and of loops around the op have their least
    /// value, sizes that are known only at launch their greatest; loops inside the op are run. `None` if there is no
    /// such op, or if it touches no shared memory. Errors: an index or a condition without a value, an index below 0.
    pub fn of(program: &Program, op: usize) -> Result<Option<Schedule>, ScheduleError> {
        let Some((_, note)) = program.notes.iter().nth(op) else { return Ok(None) };
        let accesses = Accesses::of(program, op)?;
        let same = |(one, a): &Access, (other, b): &Access| one == other && a.kind == b.kind && a.width == b.width;
        let alike = accesses.found.chunk_by(same);
        let phases: Vec<Phase> = alike.filter_map(|accesses| Phase::of(program, accesses)).collect();
        let is_cut = accesses.is_cut;
        Ok((!phases.is_empty()).then(|| Schedule { title: note.title.clone(), phases, is_cut }))
    }

    /// The picture as text, all of it.
    pub fn to_text(&self) -> Result<String, LayoutError> {
        text(&self.page(), &TextOptions { width: usize::MAX, height: usize::MAX, style: Style::Plain })
    }

    /// The picture as one self-contained SVG text; the same schedule gives the same bytes.
    pub fn to_svg(&self) -> Result<String, LayoutError> {
        draw(&self.page())
    }

    fn page(&self) -> Page<'_> {
        let cut = self.is_cut.then(|| format!("only the first {MAX_ACCESSES} accesses are shown"));
        let parts =
            self.phases.iter().map(|phase| Part { heading: Some(phase.heading.clone()), sheet: Box::new(phase) });
        Page {
            above: vec![self.title.clone(), LEGEND.to_string()],
            parts: parts.collect(),
            below: cut.into_iter().collect(),
            left_out: Vec::new(),
        }
    }
}

impl Phase {
    fn of(program: &Program, accesses: &[Access]) -> Option<Phase> {
        let (memory, first) = accesses.first()?;
        let memory = program.memories[*memory].name.clone();
        let verb = match first.kind {
            AccessKind::Load => "read",
            AccessKind::Store => "write",
        };
        let sum = |cost: fn(&WarpAccess) -> u32| accesses.iter().map(|(_, access)| cost(access)).sum::<u32>();
        let (wavefronts, ideal) = (sum(WarpAccess::wavefronts), sum(WarpAccess::ideal_wavefronts));
        let (count, width) = (accesses.len(), first.width);
        let wavefronts = counted(wavefronts, "wavefront");
        let heading = format!("{verb} {memory}: {count} x {width} B, {wavefronts} (ideal {ideal})");
        let rows = accesses.iter().enumerate().flat_map(|(at, (_, access))| rows_of(access, at)).collect();
        Some(Phase { heading, memory, rows })
    }
}

/// The wavefronts of access number `at`.
fn rows_of(access: &WarpAccess, at: usize) -> Vec<WavefrontRow> {
    let group = access.group();
    let group_of = |wavefront: &Wavefront| wavefront.lanes.first().map_or(0, |lane| lane / group);
    let wavefronts = wavefronts_of(access);
    // How many words each group of lanes asks each bank for.
    let mut asked: BTreeMap<(usize, u64), usize> = BTreeMap::new();
    for wavefront in &wavefronts {
        for word in &wavefront.words {
            *asked.entry((group_of(wavefront), word % BANKS)).or_insert(0) += 1;
        }
    }
    let mut rows = Vec::new();
    let mut before = None;
    for wavefront in &wavefronts {
        let number = group_of(wavefront);
        let cell = |word: &u64| {
            let is_conflict = asked.get(&(number, word % BANKS)).is_some_and(|words| *words > 1);
            (word % BANKS, BankCell { lanes: lanes_of(access, wavefront, *word), word: *word, is_conflict })
        };
        let lanes = match group {
            LANES => String::new(),
            _ => format!(" T{}-T{}", number * group, (number + 1) * group - 1),
        };
        let again = if before == Some(number) { " again" } else { "" };
        rows.push(WavefrontRow {
            head: format!("{at}{lanes}{again}"),
            cells: wavefront.words.iter().map(cell).collect(),
        });
        before = Some(number);
    }
    rows
}

/// The lanes that are served this word in this wavefront.
fn lanes_of(access: &WarpAccess, wavefront: &Wavefront, word: u64) -> Vec<usize> {
    let covers = |lane: &usize| {
        let first = access.addresses.get(*lane).copied().flatten();
        first.is_some_and(|first| (first / WORD..=(first + access.width - 1) / WORD).contains(&word))
    };
    wavefront.lanes.iter().copied().filter(covers).collect()
}

/// `3`, `0-3` for neighbours, `0+3` for lane 0 and three others.
fn label(lanes: &[usize]) -> String {
    match lanes {
        [] => String::new(),
        [one] => one.to_string(),
        [first, .., last] if last - first + 1 == lanes.len() => format!("{first}-{last}"),
        [first, others @ ..] => format!("{first}+{}", others.len()),
    }
}

impl Sheet for &Phase {
    fn size(&self) -> (i64, i64) {
        (self.rows.len() as i64, BANKS as i64)
    }

    fn corner(&self) -> &str {
        "access"
    }

    fn row_head(&self, row: i64) -> String {
        usize::try_from(row).ok().and_then(|row| self.rows.get(row)).map(|row| row.head.clone()).unwrap_or_default()
    }

    fn column_head(&self, column: i64) -> String {
        column.to_string()
    }

    fn square(&self, row: i64, column: i64) -> Result<Square, LayoutError> {
        let place = format!("access {}, bank {column}", self.row_head(row));
        let row = usize::try_from(row).ok().and_then(|row| self.rows.get(row));
        let Some(cell) = row.and_then(|row| row.cells.get(&(column as u64))) else {
            return Ok(Square { text: ".".to_string(), title: format!("{place}: idle"), owner: None });
        };
        let lanes: Vec<String> = cell.lanes.iter().map(usize::to_string).collect();
        let title = format!("{place}: lane {}, byte {} of {}", lanes.join(", "), cell.word * WORD, self.memory);
        let text = label(&cell.lanes);
        if cell.is_conflict {
            let owner = Some(("several words of one bank".to_string(), CONFLICT));
            return Ok(Square { text: format!("{text}!"), title, owner });
        }
        let colour = cell.lanes.first().map_or(0, |lane| lane / ALIKE);
        let owner = Some((format!("lanes {}-{}", colour * ALIKE, (colour + 1) * ALIKE - 1), colour));
        Ok(Square { text, title, owner })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_diag::Span;
    use tilewright_expr::{Expr, Var};
    use tilewright_ir::thread::{Cond, Memory, MemorySpace, Note, RegArray, Regs, Stmt, Unroll};
    use tilewright_ir::{Arena, Counter, Handle, Target};
    use tilewright_layout::DType;

    /// A program of one op on a shared memory, with what its statements are made of.
    struct Fixture {
        program: Program,
        tile: Handle<Memory>,
        registers: Handle<RegArray>,
    }

    fn memory(name: &str, dtype: DType, space: MemorySpace, values: Vec<i64>) -> Memory {
        Memory { values, ..Memory::new(name, dtype, 4096, (space, 128), Span::here()) }
    }

    fn fixture(dtype: DType, threads: i64) -> Fixture {
        let (mut memories, mut registers, mut notes) = (Arena::new(), Arena::new(), Arena::new());
        let tile = memories.push(memory("tile", dtype, MemorySpace::Shared, Vec::new()));
        let registers_of_op = registers.push(RegArray { name: "r".to_string(), dtype, len: 4, vector: 1 });
        notes.push(Note {
            title: "permute_layout(b, a)".to_string(),
            details: Vec::new(),
            span: Span::here(),
            plan: 0,
        });
        let (name, target) = ("k".to_string(), Target::Sm100a);
        let (sizes, scalars, grid) = (Vec::new(), Vec::new(), [1, 1, 1].map(Expr::constant));
        let empty = Program::new(&name, target, threads);
        let program = Program { sizes, scalars, grid, memories, registers, notes, ..empty };
        Fixture { program, tile, registers: registers_of_op }
    }

    fn lane() -> Expr {
        Expr::var(&Var::new("lane", 0, 31))
    }

    impl Fixture {
        fn regs(&self, count: i64) -> Regs {
            Regs { array: self.registers, first: Expr::constant(0), count, step: 1 }
        }

        fn load(&self, index: Expr, count: i64) -> Stmt {
            Stmt::Load { to: self.regs(count), memory: self.tile, index }
        }

        fn store(&self, index: Expr, count: i64) -> Stmt {
            Stmt::Store { memory: self.tile, index, from: self.regs(count) }
        }

        /// The statements as the only op.
        fn op(&self, body: Vec<Stmt>) -> Stmt {
            let note = self.program.notes.iter().map(|(note, _)| note).next().unwrap();
            Stmt::Op { note, body }
        }

        fn schedule(&self, body: Vec<Stmt>) -> Option<Schedule> {
            self.found(body).unwrap()
        }

        fn found(&self, body: Vec<Stmt>) -> Result<Option<Schedule>, ScheduleError> {
            Schedule::of(&Program { body, ..self.program.clone() }, 0)
        }

        /// Every row of the op with these statements: its head, and `bank:text` of the banks that are not idle.
        fn rows(&self, body: Vec<Stmt>) -> Vec<String> {
            rows(&self.schedule(vec![self.op(body)]).unwrap())
        }
    }

    fn rows(schedule: &Schedule) -> Vec<String> {
        let mut found = Vec::new();
        for phase in &schedule.phases {
            for row in 0..phase.rows.len() as i64 {
                let texts = (0..32).map(|bank| (bank, phase.square(row, bank).unwrap().text));
                let busy: Vec<String> =
                    texts.filter(|(_, text)| text != ".").map(|(bank, text)| format!("{bank}:{text}")).collect();
                found.push(format!("{}  {}", phase.row_head(row), busy.join(" ")));
            }
        }
        found
    }

    #[test]
    fn every_access_without_conflicts_is_one_row() {
        let f = fixture(DType::B32, 32);
        let found = f.rows(vec![f.load(lane(), 1), f.store(lane() ^ Expr::constant(1), 1)]);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("0  0:0 1:1 2:2 ") && found[1].starts_with("0  0:1 1:0 2:3 "), "{found:?}");
    }

    #[test]
    fn words_of_one_bank_take_rows_of_their_own_and_are_marked() {
        let f = fixture(DType::B32, 3);
        let found = f.rows(vec![f.load(lane() * 32, 1)]);
        assert_eq!(found, ["0  0:0!", "0 again  0:1!", "0 again  0:2!"]);
    }

    #[test]
    fn lanes_of_one_word_merge() {
        let f = fixture(DType::B8, 6);
        assert_eq!(f.rows(vec![f.store(lane(), 1)]), ["0  0:0-3 1:4-5"]);
        assert_eq!(f.rows(vec![f.load(lane() % 2 * 4, 1)]), ["0  0:0+2 1:1+2"]);
    }

    #[test]
    fn wide_accesses_cover_several_banks_and_are_served_by_parts_of_the_warp() {
        let f = fixture(DType::B32, 32);
        let found = f.rows(vec![f.store(lane() * 4, 4)]);
        let heads: Vec<&str> = found.iter().filter_map(|row| row.split_once("  ")).map(|(head, _)| head).collect();
        assert_eq!(heads, ["0 T0-T7", "0 T8-T15", "0 T16-T23", "0 T24-T31"]);
        assert!(found[1].starts_with("0 T8-T15  0:8 1:8 2:8 3:8 4:9 "), "{found:?}");
    }

    #[test]
    fn lanes_rest_where_a_condition_does_not_hold() {
        let f = fixture(DType::B32, 32);
        let cond = Cond::Less(lane(), Expr::constant(2));
        assert_eq!(f.rows(vec![Stmt::If { cond, body: vec![f.load(lane(), 1)] }]), ["0  0:0 1:1"]);
    }

    #[test]
    fn named_values_and_tables_are_known() {
        let mut f = fixture(DType::B32, 2);
        let table = memory("offsets", DType::I32, MemorySpace::Table, vec![7, 5, 3, 1]);
        let table = f.program.memories.push(table);
        let [first, second, sum] = ["first", "second", "sum"].map(|name| Var::new(name, 0, 31));
        let body = vec![
            Stmt::Lookup { vars: vec![first.clone(), second.clone()], table, index: lane() * 2 },
            Stmt::Let { var: sum.clone(), value: Expr::var(&first) + Expr::var(&second) },
            f.load(Expr::var(&sum), 1),
        ];
        assert_eq!(f.rows(body), ["0  4:1 12:0"]);
    }

    #[test]
    fn loops_of_the_op_run_and_loops_around_it_are_at_their_beginning() {
        let f = fixture(DType::B32, 1);
        let [outer, inner] = [Var::new("s", 3, 5), Var::new("i", 0, 1)];
        let index = Expr::var(&outer) + Expr::var(&inner) * 8;
        let inside = Stmt::For { counter: Counter::of(inner), unroll: Unroll::Auto, body: vec![f.store(index, 1)] };
        let body =
            vec![Stmt::For { counter: Counter::of(outer), unroll: Unroll::Auto, body: vec![f.op(vec![inside])] }];
        assert_eq!(rows(&f.schedule(body).unwrap()), ["0  3:0", "1  11:0"]);
    }

    #[test]
    fn an_op_that_is_not_there_or_touches_no_shared_memory_has_no_picture() {
        let f = fixture(DType::B32, 32);
        assert!(f.schedule(vec![f.op(Vec::new())]).is_none());
        assert!(f.schedule(vec![f.load(lane(), 1)]).is_none());
        assert!(Schedule::of(&f.program, 1).unwrap().is_none());
    }

    #[test]
    fn an_index_below_0_or_without_a_value_is_no_picture() {
        let f = fixture(DType::B32, 2);
        let outside = f.found(vec![f.op(vec![f.load(lane() - 1, 1)])]).unwrap_err();
        assert_eq!(outside.to_string(), "lane 0 accesses element -1 of `tile`");
        let without = f.found(vec![f.op(vec![f.load(lane() / (lane() - lane()), 1)])]).unwrap_err();
        assert_eq!(without.to_string(), "division by 0, which is not positive");
    }

    #[test]
    fn headings_say_what_accesses_cost() {
        let f = fixture(DType::B32, 2);
        let schedule = f.schedule(vec![f.op(vec![f.load(lane() * 32, 1), f.store(lane(), 1)])]).unwrap();
        let (text, svg) = (schedule.to_text().unwrap(), schedule.to_svg().unwrap());
        for line in ["read tile: 1 x 4 B, 2 wavefronts (ideal 1)", "write tile: 1 x 4 B, 1 wavefront (ideal 1)"] {
            assert!(text.contains(line) && svg.contains(line), "{text}");
        }
        assert!(svg.contains("<title>access 0 again, bank 0: lane 1, byte 128 of tile</title>"), "{svg}");
    }
}
