//! The `counted` lines of `run-kernel`: what the virtual GPU counted at each line of CUDA, by op if there are many.

use tilewright::compile::Artifact;
use tilewright::diag::Span;
use tilewright::runtime::{AccessCount, AccessKind, Built, Space};

/// The number of lines that are printed one by one, unless all are requested.
const ONE_BY_ONE: usize = 40;

/// The `counted` lines of a run, and a note if some were summed up.
pub(crate) struct Counted {
    pub(crate) lines: Vec<String>,
    /// How many lines were summed up, if any were.
    pub(crate) note: Option<String>,
}

/// What was counted, line by line. After the first lines, those of an op are summed up, unless `all` is set.
pub(crate) fn counted(artifact: &Artifact, built: &Built, accesses: &[AccessCount], all: bool) -> Counted {
    let accesses = by_cuda_line(accesses);
    let one_by_one = if all { accesses.len() } else { accesses.len().min(ONE_BY_ONE) };
    let (first, rest) = accesses.split_at(one_by_one);
    let op = |access: &AccessCount| access.cuda_line.and_then(|line| built.op(artifact, line));
    let mut lines: Vec<String> = first.iter().map(|access| access_text(access, &built.cuda)).collect();
    lines.extend(by_op(rest, &op).iter().map(OpCount::text));
    let note = (!rest.is_empty()).then(|| {
        format!("lines after the first {ONE_BY_ONE} ({} more) are summed up by op; --all prints all", rest.len())
    });
    Counted { lines, note }
}

/// Whether an access is shown. Accesses to parameters are not memory traffic of interest.
pub(crate) fn shows(access: &AccessCount) -> bool {
    access.space == Space::Shared || access.space == Space::Global
}

/// Merges the accesses of each CUDA line: NVRTC may have generated several PTX instructions for it, as by unrolling.
fn by_cuda_line(accesses: &[AccessCount]) -> Vec<AccessCount> {
    let mut merged: Vec<AccessCount> = Vec::new();
    for access in accesses.iter().filter(|access| shows(access)) {
        let same = |m: &&mut AccessCount| {
            m.cuda_line.is_some()
                && (m.cuda_line, m.space, m.kind, m.bytes_per_lane)
                    == (access.cuda_line, access.space, access.kind, access.bytes_per_lane)
        };
        match merged.iter_mut().find(same) {
            None => merged.push(access.clone()),
            Some(sum) => add(sum, access),
        }
    }
    merged
}

fn add(sum: &mut AccessCount, access: &AccessCount) {
    sum.executions += access.executions;
    sum.wavefronts += access.wavefronts;
    sum.ideal_wavefronts += access.ideal_wavefronts;
    sum.sectors += access.sectors;
    sum.ideal_sectors += access.ideal_sectors;
    sum.bytes += access.bytes;
}

/// A tile op: its title, and the user's line.
type Op = (String, Span);

/// The lines of one op, summed up.
struct OpCount {
    /// `None` for lines that belong to no op.
    op: Option<Op>,
    /// The number of CUDA lines.
    lines: usize,
    /// One for each memory and direction.
    sums: Vec<AccessCount>,
}

/// The sums of each op, in the order of their first lines.
fn by_op(accesses: &[AccessCount], op: &dyn Fn(&AccessCount) -> Option<Op>) -> Vec<OpCount> {
    let mut found: Vec<OpCount> = Vec::new();
    for access in accesses {
        let op = op(access);
        match found.iter_mut().find(|count| count.op == op) {
            None => found.push(OpCount { op, lines: 1, sums: vec![access.clone()] }),
            Some(count) => count.include(access),
        }
    }
    found
}

impl OpCount {
    fn include(&mut self, access: &AccessCount) {
        self.lines += 1;
        match self.sums.iter_mut().find(|sum| (sum.space, sum.kind) == (access.space, access.kind)) {
            None => self.sums.push(access.clone()),
            Some(sum) => add(sum, access),
        }
    }

    /// `copy(keys, key) at kernels/src/short_attention.rs:72, 8 lines: 64 global loads, 256 sectors (ideal 256); ...`
    fn text(&self) -> String {
        let op = match &self.op {
            Some((title, span)) => format!("{title} at {span}"),
            None => "outside any op".to_string(),
        };
        let lines = if self.lines == 1 { "1 line".to_string() } else { format!("{} lines", self.lines) };
        let sums: Vec<String> = self.sums.iter().map(sum_text).collect();
        format!("{op}, {lines}: {}", sums.join("; "))
    }
}

fn sum_text(sum: &AccessCount) -> String {
    format!("{} {} {}s, {}", sum.executions, sum.space.as_str(), verb(sum.kind), passes_text(sum))
}

/// One line: its number, what it did, what that cost, and its text.
fn access_text(access: &AccessCount, cuda: &str) -> String {
    let source = access.cuda_line.and_then(|line| cuda.lines().nth((line as usize).saturating_sub(1)));
    let place = match access.cuda_line {
        Some(line) => format!("line {line}"),
        None => format!("PTX line {}", access.ptx_line),
    };
    format!(
        "{place}: {} {} x {} B {}, {}  {}",
        verb(access.kind),
        access.executions,
        access.bytes_per_lane,
        access.space.as_str(),
        passes_text(access),
        source.unwrap_or("").trim()
    )
}

fn verb(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Load => "load",
        AccessKind::Store => "store",
        AccessKind::Atomic => "atomic",
    }
}

/// `4 wavefronts (ideal 2)`
fn passes_text(access: &AccessCount) -> String {
    let (passes, unit, ideal) = match access.space {
        Space::Shared => (access.wavefronts, "wavefronts", access.ideal_wavefronts),
        _ => (access.sectors, "sectors", access.ideal_sectors),
    };
    format!("{passes} {unit} (ideal {ideal})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(line: u32, space: Space, kind: AccessKind) -> AccessCount {
        AccessCount {
            ptx_line: 100 + line,
            cuda_line: Some(line),
            space,
            buffer: None,
            kind,
            bytes_per_lane: 4,
            executions: 2,
            wavefronts: 3,
            ideal_wavefronts: 2,
            sectors: 8,
            ideal_sectors: 7,
            bytes: 256,
        }
    }

    /// Lines below 10 belong to a copy, line 10 to another copy with the same title, the rest to no op.
    fn op(access: &AccessCount) -> Option<Op> {
        let line = access.cuda_line.filter(|line| *line <= 10)?;
        let span = Span::at("k.rs", if line < 10 { 1 } else { 2 }, 1);
        Some(("copy(b, a)".to_string(), span))
    }

    #[test]
    fn lines_of_one_op_are_one_with_its_sums_by_memory_and_direction() {
        let accesses = [
            access(1, Space::Global, AccessKind::Load),
            access(2, Space::Shared, AccessKind::Store),
            access(10, Space::Global, AccessKind::Load),
            access(3, Space::Global, AccessKind::Load),
            access(11, Space::Global, AccessKind::Atomic),
        ];
        let texts: Vec<String> = by_op(&accesses, &op).iter().map(OpCount::text).collect();
        assert_eq!(
            texts,
            [
                "copy(b, a) at k.rs:1, 3 lines: 4 global loads, 16 sectors (ideal 14); \
                 2 shared stores, 3 wavefronts (ideal 2)",
                "copy(b, a) at k.rs:2, 1 line: 2 global loads, 8 sectors (ideal 7)",
                "outside any op, 1 line: 2 global atomics, 8 sectors (ideal 7)",
            ]
        );
    }

    #[test]
    fn instructions_of_one_line_are_one() {
        let twice = [access(1, Space::Shared, AccessKind::Load), access(1, Space::Shared, AccessKind::Load)];
        let merged = by_cuda_line(&twice);
        assert_eq!((merged.len(), merged[0].executions, merged[0].bytes), (1, 4, 512));
        let text = access_text(&merged[0], "  r = a[0];");
        assert_eq!(text, "line 1: load 4 x 4 B shared, 6 wavefronts (ideal 4)  r = a[0];");
    }
}
