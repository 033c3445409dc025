//! Maps lines of edited CUDA text back to lines of the generated text, and these to tile ops.

use similar::{DiffTag, TextDiff};
use tilewright_compile::Artifact;
use tilewright_diag::Span;

/// For every line of an edited text, the original line that it came from or follows.
#[derive(Clone, Debug)]
pub(crate) struct LineMap {
    /// The original line (from 1) of each edited line, in order.
    originals: Vec<u32>,
}

impl LineMap {
    /// Kept lines map to their original lines; new lines to the last original line before them, kept or deleted.
    pub(crate) fn between(original: &str, edited: &str) -> LineMap {
        let mut originals = Vec::new();
        for op in TextDiff::from_lines(original, edited).ops() {
            let (old, new) = (op.old_range(), op.new_range());
            match op.tag() {
                DiffTag::Equal => originals.extend(old.map(|index| index as u32 + 1)),
                DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                    originals.extend(new.map(|_| (old.end as u32).max(1)));
                }
            }
        }
        LineMap { originals }
    }

    /// The original line for line `edited` (from 1).
    pub(crate) fn original(&self, edited: u32) -> Option<u32> {
        self.originals.get((edited as usize).checked_sub(1)?).copied()
    }
}

/// The tile op of a line of the CUDA text that was compiled, and the user's line.
pub(crate) fn op_of_line(artifact: &Artifact, edited: Option<&LineMap>, line: u32) -> Option<(String, Span)> {
    let generated = match edited {
        None => line,
        Some(map) => map.original(line)?,
    };
    artifact.source_map().origin(generated).map(|origin| (origin.title.clone(), origin.span))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_and_changed_lines_keep_the_others_in_place() {
        let map = LineMap::between("a\nsync\nb\nc\n", "a\nb\nchanged\n");
        assert_eq!([1, 2, 3].map(|line| map.original(line)), [Some(1), Some(3), Some(4)]);
        assert_eq!(map.original(9), None);
        let before = LineMap::between("a\nb\n", "new\na\nb\nnewer\n");
        assert_eq!([1, 2, 3, 4].map(|line| before.original(line)), [Some(1), Some(1), Some(2), Some(2)]);
    }
}
