//! Registers in another order, moved in words where both orders have whole words.

use tilewright_ir::Handle;
use tilewright_ir::thread::{RegArray, Stmt};
use tilewright_layout::DType;

use crate::builder::regs;

/// Bytes of a register of the machine.
pub(crate) const WORD_BYTES: i64 = 4;

/// Moves registers of `from` to registers `first..first + places.len()` of `to`: register `first + i` is register
/// `first + places[i]`. Both arrays hold elements of `dtype`.
pub(crate) fn reordered(
    [to, from]: [Handle<RegArray>; 2],
    dtype: DType,
    first: i64,
    places: &[usize],
) -> impl Iterator<Item = Stmt> {
    words(dtype, places).map(move |(at, place, count)| {
        let part = |array: Handle<RegArray>, at: usize| regs(array, first + at as i64, count as i64);
        Stmt::Move { to: part(to, at), from: part(from, place) }
    })
}

/// The inverse of [`reordered`]: register `i` of `from` becomes register `places[i]` of `to`.
pub(crate) fn restored(
    [to, from]: [Handle<RegArray>; 2],
    dtype: DType,
    places: &[usize],
) -> impl Iterator<Item = Stmt> {
    words(dtype, places).map(move |(at, place, count)| Stmt::Move {
        to: regs(to, place as i64, count as i64),
        from: regs(from, at as i64, count as i64),
    })
}

/// The index of a word, or of an element, its place, and how many elements it has.
fn words(dtype: DType, places: &[usize]) -> impl Iterator<Item = (usize, usize, usize)> {
    let word = (WORD_BYTES / dtype.bytes()).max(1) as usize;
    places.chunks(word).enumerate().flat_map(move |(at, places)| {
        let is_word =
            places.len() == word && places[0].is_multiple_of(word) && places.windows(2).all(|two| two[1] == two[0] + 1);
        let count = if is_word { word } else { 1 };
        places.iter().enumerate().step_by(count).map(move |(lane, place)| (at * word + lane, *place, count))
    })
}
