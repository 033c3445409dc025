//! From lines of CUDA back to tile ops.

use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Note, Program};

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
    origins: Vec<Origin>,
    /// For line `n` (from 1), `lines[n - 1]` is a position in `origins`.
    lines: Vec<Option<usize>>,
}

impl SourceMap {
    /// `lines[i]` is the note of line `before + i + 1`.
    pub(crate) fn new(program: &Program, before: usize, lines: Vec<Option<Handle<Note>>>) -> SourceMap {
        let origins =
            program.notes.iter().map(|(_, note)| Origin { title: note.title.clone(), span: note.span }).collect();
        let head = std::iter::repeat_n(None, before);
        SourceMap { origins, lines: head.chain(lines.into_iter().map(|note| note.map(Handle::index))).collect() }
    }

    /// The tile op of a line of the CUDA text, from 1; `None` for lines that belong to no op.
    pub fn origin(&self, line: u32) -> Option<&Origin> {
        let position = (line as usize).checked_sub(1)?;
        self.origins.get((*self.lines.get(position)?)?)
    }

    /// Every line with an origin.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Origin)> {
        (1..).zip(&self.lines).filter_map(|(line, at)| Some((line, self.origins.get((*at)?)?)))
    }
}
