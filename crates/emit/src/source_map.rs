//! From lines of CUDA back to tile ops.

use std::collections::BTreeMap;

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
    /// The tile ops, by the index of their note.
    origins: Vec<Origin>,
    /// For line `n` (from 1), `lines[n - 1]` is an index into `origins`.
    lines: Vec<Option<usize>>,
    /// The memory that a line stores to, by its name in the IR.
    stores: BTreeMap<u32, String>,
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

/// The body of a kernel as text.
pub(crate) struct Body {
    pub(crate) text: String,
    /// The note of each of its lines.
    pub(crate) notes: Vec<Option<Handle<Note>>>,
    /// The memory that a line stores to, by the number of the line from 0.
    pub(crate) stores: BTreeMap<usize, Handle<Memory>>,
}

impl SourceMap {
    /// Line `i` of the body is line `before + i + 1` of the text.
    pub(crate) fn new(program: &Program, before: usize, body: Body) -> SourceMap {
        let origins =
            program.notes.iter().map(|(_, note)| Origin { title: note.title.clone(), span: note.span }).collect();
        let head = std::iter::repeat_n(None, before);
        let lines = head.chain(body.notes.into_iter().map(|note| note.map(Handle::index))).collect();
        let name = |memory: Handle<Memory>| program.memories[memory].name.clone();
        let stores = body.stores.into_iter().map(|(at, memory)| ((before + at + 1) as u32, name(memory)));
        SourceMap { origins, lines, stores: stores.collect() }
    }

    /// The tile op of a line of the CUDA text, from 1; `None` for lines that belong to no op.
    pub fn origin(&self, line: u32) -> Option<&Origin> {
        self.origins.get(self.op(line)?)
    }

    /// The number of the op that [`SourceMap::origin`] names: its place among the plans of the program.
    pub fn op(&self, line: u32) -> Option<usize> {
        let position = (line as usize).checked_sub(1)?;
        *self.lines.get(position)?
    }

    /// Every line of an op that stores to memory.
    pub fn stores(&self) -> impl Iterator<Item = StoreLine<'_>> {
        self.stores.iter().filter_map(|(line, memory)| {
            let op = self.op(*line)?;
            Some(StoreLine { line: *line, op, origin: self.origins.get(op)?, memory })
        })
    }

    /// Every line with an origin.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Origin)> {
        (1..).zip(&self.lines).filter_map(|(line, at)| Some((line, self.origins.get((*at)?)?)))
    }
}
