//! The banks of shared memory, as the schedules see them.

use tilewright_ir::plan::Reason;
use tilewright_layout::DType;

use super::listed::Listed;
use crate::operand::MemoryTile;

/// Banks of one word each.
pub(crate) const BANKS: usize = 32;

/// The bank of a word.
pub(crate) fn bank(word: i64) -> usize {
    word.rem_euclid(BANKS as i64) as usize
}

/// The reason against a tile that may begin inside a word: it is then unknown which elements share a word.
pub(crate) fn inside_a_word(operand: &MemoryTile, listed: &Listed) -> Option<Reason> {
    let per_word = DType::B32.bytes() / operand.dtype.bytes().min(DType::B32.bytes());
    let begins = listed.start.multiple() % per_word == 0 && operand.alignment % DType::B32.bytes() == 0;
    (!begins).then(|| Reason {
        text: format!("`{}` begins at {}, which may be inside a word", operand.title, listed.start),
        accepted: "tiles that begin at a multiple of 4 bytes".to_string(),
    })
}
