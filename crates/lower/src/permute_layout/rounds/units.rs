//! Blocks of words: words of the source whose units make up as many words of the destination.

use std::collections::BTreeMap;

/// Words that exchange their units among themselves: unit `p` of row `k` becomes unit `k` of column `p`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WordBlock {
    /// Words of the source, counted from its start.
    pub(crate) rows: Vec<i64>,
    /// Words of the destination, counted from its start.
    pub(crate) columns: Vec<i64>,
}

/// The blocks of a tile with elements of 1 or 2 bytes at these positions, in the order of their first rows. All have
/// the same number of rows and columns: 1, 2 or 4. `None` if they do not fill whole words on both sides.
pub(crate) fn blocks_of(bytes: i64, src: &[i64], dst: &[i64]) -> Option<Vec<WordBlock>> {
    let per_word = (4 / bytes) as usize;
    if !fills_words(src, per_word) || !fills_words(dst, per_word) {
        return None;
    }
    let mut moves: Vec<(i64, i64)> = src.iter().copied().zip(dst.iter().copied()).collect();
    moves.sort_unstable();
    let mut widths = [1, 2, 4].into_iter().filter(|width| *width <= per_word);
    widths.find_map(|width| in_units(&moves, width, per_word / width))
}

/// True when every word that holds an element holds only elements, each once.
fn fills_words(positions: &[i64], per_word: usize) -> bool {
    let mut sorted = positions.to_vec();
    sorted.sort_unstable();
    sorted.chunks(per_word).all(|word| word.len() == per_word && word[0] % per_word as i64 == 0 && is_run(word))
}

/// True for adjacent positions in order.
fn is_run(positions: &[i64]) -> bool {
    positions.windows(2).all(|pair| pair[1] == pair[0] + 1)
}

/// The blocks in which `width` units make a word, each of `unit` elements; `moves` has the positions of every element
/// on both sides, in the order of the source.
fn in_units(moves: &[(i64, i64)], width: usize, unit: usize) -> Option<Vec<WordBlock>> {
    let (width_of_word, length) = (width as i64, unit as i64);
    let target = |run: &[(i64, i64)]| {
        let to: Vec<i64> = run.iter().map(|(_, to)| *to).collect();
        (to[0] % length == 0 && is_run(&to)).then_some(to[0] / length)
    };
    let targets: Vec<i64> = moves.chunks(unit).map(target).collect::<Option<_>>()?;
    let mut found: BTreeMap<Vec<i64>, Vec<Option<i64>>> = BTreeMap::new();
    for (word, targets) in moves.chunks(unit * width).zip(targets.chunks(width)) {
        let row = targets[0] % width_of_word;
        if targets.iter().any(|target| target % width_of_word != row) {
            return None;
        }
        let columns = targets.iter().map(|target| target / width_of_word).collect();
        let rows = found.entry(columns).or_insert_with(|| vec![None; width]);
        rows[row as usize] = Some(word[0].0 / (length * width_of_word));
    }
    let block = |(columns, rows): (Vec<i64>, Vec<Option<i64>>)| {
        let rows = rows.into_iter().collect::<Option<_>>()?;
        Some(WordBlock { rows, columns })
    };
    let mut blocks = found.into_iter().map(block).collect::<Option<Vec<WordBlock>>>()?;
    blocks.sort_by_key(|block| block.rows[0]);
    Some(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Positions of a row-major `rows` x `cols` tile, and of its transpose, for the same elements.
    fn transpose(rows: i64, cols: i64) -> (Vec<i64>, Vec<i64>) {
        let all = 0..rows * cols;
        (all.clone().collect(), all.map(|x| x % cols * rows + x / cols).collect())
    }

    #[test]
    fn a_transpose_of_bytes_has_blocks_of_4_x_4() {
        let (src, dst) = transpose(8, 4);
        let expected = [
            WordBlock { rows: vec![0, 1, 2, 3], columns: vec![0, 2, 4, 6] },
            WordBlock { rows: vec![4, 5, 6, 7], columns: vec![1, 3, 5, 7] },
        ];
        assert_eq!(blocks_of(1, &src, &dst).as_deref(), Some(&expected[..]));
    }

    #[test]
    fn a_transpose_of_halves_has_blocks_of_2_x_2() {
        let (src, dst) = transpose(2, 4);
        let expected =
            [WordBlock { rows: vec![0, 2], columns: vec![0, 1] }, WordBlock { rows: vec![1, 3], columns: vec![2, 3] }];
        assert_eq!(blocks_of(2, &src, &dst).as_deref(), Some(&expected[..]));
    }

    #[test]
    fn pairs_of_bytes_that_stay_together_are_halves() {
        let (src, dst) = transpose(2, 2);
        let pairs = |units: &[i64]| units.iter().flat_map(|unit| [2 * unit, 2 * unit + 1]).collect::<Vec<_>>();
        let found = blocks_of(1, &pairs(&src), &pairs(&dst));
        assert_eq!(found, Some(vec![WordBlock { rows: vec![0, 1], columns: vec![0, 1] }]));
    }

    #[test]
    fn words_that_move_whole_are_blocks_of_one() {
        let src: Vec<i64> = (0..8).collect();
        let dst: Vec<i64> = (4..8).chain(0..4).collect();
        let found = blocks_of(1, &src, &dst);
        let expected =
            vec![WordBlock { rows: vec![0], columns: vec![1] }, WordBlock { rows: vec![1], columns: vec![0] }];
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn words_that_are_not_full_have_no_blocks() {
        let (src, dst) = transpose(6, 4);
        assert_eq!(blocks_of(1, &src, &dst), None);
        let shifted: Vec<i64> = src.iter().map(|position| position + 2).collect();
        assert_eq!(blocks_of(1, &shifted, &src), None);
    }

    #[test]
    fn elements_that_share_a_place_have_no_blocks() {
        assert_eq!(blocks_of(1, &[0, 1, 2, 3, 0, 1, 2, 3], &[0, 1, 2, 3, 4, 5, 6, 7]), None);
    }

    #[test]
    fn bytes_in_another_order_have_no_blocks() {
        assert_eq!(blocks_of(1, &[0, 1, 2, 3], &[1, 0, 2, 3]), None);
    }
}
