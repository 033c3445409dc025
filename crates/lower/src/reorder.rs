//! Registers in another order, moved in words where both orders have whole words.

use tilewright_ir::Handle;
use tilewright_ir::thread::{RegArray, Regs, Stmt};
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

/// The type of a register that holds whole words of elements of a dtype, and how many elements it holds.
pub(crate) fn word_of(dtype: DType) -> (DType, i64) {
    let elements = WORD_BYTES / dtype.bytes();
    if elements > 1 { (DType::B32, elements) } else { (dtype, 1) }
}

/// Registers from `first` on, `step` apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Evenly {
    first: i64,
    step: i64,
}

impl Evenly {
    /// The first `count` of these registers, of those of an array from register `from` on.
    pub(crate) fn regs(&self, array: Handle<RegArray>, from: i64, count: i64) -> Regs {
        Regs { step: self.step, ..regs(array, from + self.first, count) }
    }
}

/// For every `width` elements of an order, the registers of [`word_of`] that hold them, if these are evenly apart.
pub(crate) fn evenly_apart(dtype: DType, places: &[usize], width: usize) -> Option<Vec<Evenly>> {
    places.chunks(width).map(|places| evenly(places, word_of(dtype).1)).collect()
}

fn evenly(places: &[usize], per_register: i64) -> Option<Evenly> {
    let in_register = |elements: &[usize]| {
        let first = elements[0] as i64;
        let is_whole = elements.len() as i64 == per_register && first % per_register == 0;
        let is_in_order = elements.iter().zip(first..).all(|(element, expected)| *element as i64 == expected);
        (is_whole && is_in_order).then_some(first / per_register)
    };
    let registers: Vec<i64> = places.chunks(per_register as usize).map(in_register).collect::<Option<_>>()?;
    let first = *registers.first()?;
    let step = registers.get(1).map_or(1, |second| second - first);
    let is_even = step > 0 && registers.iter().zip(0..).all(|(register, at)| *register == first + at * step);
    is_even.then_some(Evenly { first, step })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_and_odd_words_are_evenly_apart() {
        let places = [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15];
        let found = evenly_apart(DType::F16, &places, 8);
        assert_eq!(found, Some(vec![Evenly { first: 0, step: 2 }, Evenly { first: 1, step: 2 }]));
    }

    #[test]
    fn halves_of_words_and_uneven_words_are_not() {
        assert_eq!(evenly_apart(DType::F16, &[0, 2, 1, 3], 4), None);
        assert_eq!(evenly_apart(DType::F16, &[1, 2, 3, 4], 4), None);
        assert_eq!(evenly_apart(DType::F32, &[0, 1, 3], 3), None);
        assert_eq!(evenly_apart(DType::F32, &[3, 2], 2), None);
        assert_eq!(evenly_apart(DType::F32, &[3, 2], 1).map(|found| found.len()), Some(2));
    }
}
