//! From lines of CUDA back to tile ops.

use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Memory, Note, Program};

/// Where a line of CUDA comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The tile op: `permute_layout(b[s], a[s])`.
    pub title: String,
    /// The user's line.
    pub span: Span,
}

/// The origin of every line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceMap {
    /// The tile ops, by the index of their note, and their places among the plans.
    origins: Vec<(Origin, usize)>,
    /// Lines in front of the body.
    before: usize,
    /// The lines of the body: its line `i` is line `before + i + 1` of the text.
    lines: Lines,
    /// The names of the memories in the IR.
    memories: Vec<String>,
}

/// A line of CUDA that stores to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLine<'a> {
    /// The line, from 1.
    pub line: u32,
    /// The number of its op: an op in an unrolled loop has a different number in each copy.
    pub op: usize,
    /// What the line comes from.
    pub origin: &'a Origin,
    /// The memory, by its name in the IR.
    pub memory: &'a str,
}

/// What the lines of the body of a kernel come from; its lines are counted from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    /// How many there are.
    count: usize,
    /// The note of a line and of those after it, up to the next line in this list.
    notes: Vec<(usize, Option<Handle<Note>>)>,
    /// The memory that a line stores to; at most one for each line, in order.
    stores: Vec<(usize, Handle<Memory>)>,
}

impl Lines {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Adds a line.
    pub(crate) fn push(&mut self, note: Option<Handle<Note>>) {
        if self.notes.last().is_none_or(|(_, last)| *last != note) {
            self.notes.push((self.count, note));
        }
        self.count += 1;
    }

    /// Notes that the next line stores to a memory.
    pub(crate) fn push_store(&mut self, memory: Handle<Memory>) {
        self.stores.push((self.count, memory));
    }

    /// Forgets the lines from `count` on, and what they store to.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.count = count;
        self.notes.truncate(self.notes.partition_point(|(first, _)| *first < count));
        self.stores.truncate(self.stores.partition_point(|(line, _)| *line < count));
    }

    fn note(&self, line: usize) -> Option<Handle<Note>> {
        let after = self.notes.partition_point(|(first, _)| *first <= line);
        if line < self.count { self.notes.get(after.checked_sub(1)?)?.1 } else { None }
    }
}

impl SourceMap {
    /// The map of a text with this number of lines in front of these.
    pub(crate) fn new(program: &Program, before: usize, lines: Lines) -> SourceMap {
        let origin = |note: &Note| (Origin { title: note.title.clone(), span: note.span }, note.plan);
        let origins = program.notes.iter().map(|(_, note)| origin(note)).collect();
        let memories = program.memories.iter().map(|(_, memory)| memory.name.clone()).collect();
        SourceMap { origins, before, lines, memories }
    }

    /// The tile op of a line of the CUDA text, from 1; `None` for lines that belong to no op.
    pub fn origin(&self, line: u32) -> Option<&Origin> {
        self.known(line).map(|(origin, _)| origin)
    }

    /// The number of the op that [`SourceMap::origin`] names: its place among the plans of the program.
    pub fn op(&self, line: u32) -> Option<usize> {
        self.known(line).map(|(_, op)| *op)
    }

    fn known(&self, line: u32) -> Option<&(Origin, usize)> {
        let position = (line as usize).checked_sub(self.before + 1)?;
        self.origins.get(self.lines.note(position)?.index())
    }

    /// Every line of an op that stores to memory.
    pub fn stores(&self) -> impl Iterator<Item = StoreLine<'_>> {
        self.lines.stores.iter().filter_map(|(at, memory)| {
            let line = (self.before + at + 1) as u32;
            let (origin, op) = self.known(line)?;
            Some(StoreLine { line, op: *op, origin, memory: self.memories.get(memory.index())? })
        })
    }

    /// Every line with an origin.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Origin)> {
        let all = self.before + 1..=self.before + self.lines.count;
        all.filter_map(|line| Some((line as u32, self.origin(line as u32)?)))
    }
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{Arena, Target};
    use tilewright_layout::DType;

    use super::*;

    #[test]
    fn a_line_that_is_printed_again_replaces_the_first() {
        let (mut notes, mut memories) = (Arena::new(), Arena::new());
        let mut note = |title: &str, plan: usize| {
            notes.push(Note { title: title.to_string(), details: Vec::new(), span: Span::here(), plan })
        };
        let (first, second) = (note("first", 3), note("second", 7));
        let place = (tilewright_ir::thread::MemorySpace::Shared, 16);
        let memory = memories.push(Memory::new("m", DType::F32, 1, place, Span::here()));
        let mut lines = Lines::default();
        for note in [None, Some(first), Some(first), Some(second)] {
            lines.push(note);
        }
        lines.push_store(memory);
        lines.push(Some(second));
        lines.truncate(3);
        lines.push_store(memory);
        lines.push(Some(second));
        let program = Program { notes, memories, ..Program::new("k", Target::Sm100a, 32) };
        let map = SourceMap::new(&program, 2, lines);
        let titles: Vec<(u32, &str)> = map.iter().map(|(line, origin)| (line, origin.title.as_str())).collect();
        assert_eq!(titles, [(4, "first"), (5, "first"), (6, "second")]);
        assert_eq!([1, 2, 3, 7].map(|line| map.origin(line)), [None; 4]);
        let stores: Vec<(u32, usize, &str)> = map.stores().map(|store| (store.line, store.op, store.memory)).collect();
        assert_eq!(stores, [(6, 7, "m")]);
    }
}
