//! Registers in another order, moved in words where both orders have whole words.

use tilewright_ir::Handle;
use tilewright_ir::thread::{RegArray, Stmt};
use tilewright_layout::DType;

use crate::builder::regs;

/// Bytes of a register of the machine.
const WORD_BYTES: i64 = 4;

/// Moves registers of `from` to registers `first..first + places.len()` of `to`: register `first + i` is register
/// `first + places[i]`. Both arrays hold elements of `dtype`.
pub(crate) fn reordered(
    [to, from]: [Handle<RegArray>; 2],
    dtype: DType,
    first: i64,
    places: &[usize],
) -> impl Iterator<Item = Stmt> {
    let word = (WORD_BYTES / dtype.bytes()).max(1) as usize;
    places.chunks(word).enumerate().flat_map(move |(at, places)| {
        let is_word =
            places.len() == word && places[0].is_multiple_of(word) && places.windows(2).all(|two| two[1] == two[0] + 1);
        let count = if is_word { word } else { 1 };
        places.iter().enumerate().step_by(count).map(move |(lane, place)| {
            let part = |array: Handle<RegArray>, at: usize| regs(array, first + at as i64, count as i64);
            Stmt::Move { to: part(to, at * word + lane), from: part(from, *place) }
        })
    })
}
