//! Plans executed byte by byte, with what their tables hold.

use tilewright_expr::Expr;
use tilewright_layout::access::{AccessKind, tile_floor};

use super::machine::{Lane, execute};
use super::recipe::{VirtualReg, actions, written};
use super::table::{Encoding, first_selector, first_value, selector_entries, selector_table};
use super::*;

/// Positions of a row-major `rows` x `cols` tile, and of its transpose, for the same elements.
fn transpose(rows: i64, cols: i64) -> (Vec<i64>, Vec<i64>) {
    let all = 0..rows * cols;
    (all.clone().collect(), all.map(|x| x % cols * rows + x / cols).collect())
}

fn plans(bytes: i64, src: &[i64], dst: &[i64]) -> Vec<Vec<Round>> {
    candidates(&blocks_of(bytes, src, dst).expect("blocks")).expect("rounds")
}

fn number(value: &Expr) -> i64 {
    value.as_const().expect("a number")
}

/// What a lane looks up: its words on both sides, and its selectors.
fn looked_up(rounds: &[Round], at: usize, lane: usize) -> ([Vec<i64>; 2], Vec<i64>) {
    let round = &rounds[at];
    let encoding = Encoding::of(rounds).expect("small offsets");
    let entries = |table: Vec<i64>, first: usize, count: usize| {
        table[first + lane * count..][..count].iter().copied().map(Expr::constant).collect::<Vec<_>>()
    };
    let tables = encoding.tables(rounds).into_iter();
    let found: Vec<Vec<Expr>> = tables.map(|table| entries(table, first_value(rounds, at), round.values())).collect();
    let [src, dst] = encoding.values(&found).expect("one table or two");
    let (src, read) = round.src.located(src, round.form, encoding.src_unit, &mut |value| value).expect("words");
    let (dst, write) = round.dst.located(dst, round.form, encoding.dst_unit, &mut |value| value).expect("words");
    let listed = entries(selector_table(rounds), first_selector(rounds, at), selector_entries(round));
    let selectors = round.selectors(&Expr::constant(lane as i64), [&read, &write], &listed).expect("selectors");
    let words = [src, dst].map(|words| words.iter().map(number).collect());
    (words, selectors.iter().map(number).collect())
}

/// The byte of the source that each byte of the destination gets.
fn moved(rounds: &[Round]) -> Vec<(i64, i64)> {
    let bytes = |word: i64| std::array::from_fn::<i64, 4, _>(|byte| 4 * word + byte as i64);
    let mut found = Vec::new();
    for (at, round) in rounds.iter().enumerate() {
        let needed: Vec<_> = (0..LANES).map(|lane| looked_up(rounds, at, lane)).collect();
        let mut lanes = vec![Lane::default(); LANES];
        for (lane, (words, selectors)) in lanes.iter_mut().zip(&needed) {
            lane.selectors = selectors.clone();
            lane.words.iter_mut().zip(&words[0]).for_each(|(register, word)| *register = bytes(*word));
        }
        execute(&actions(round.shape), &mut lanes);
        for (lane, (words, _)) in lanes.iter().zip(&needed).take(round.busy()) {
            let places: Vec<VirtualReg> = written(round.shape);
            for (place, word) in places.into_iter().zip(&words[1]) {
                found.extend(bytes(*word).into_iter().zip(lane.get(place)));
            }
        }
    }
    found.sort_unstable();
    found
}

/// The same, from the positions of the elements.
fn expected(bytes: i64, src: &[i64], dst: &[i64]) -> Vec<(i64, i64)> {
    let pairs = src.iter().zip(dst);
    let of_element = |(from, to): (&i64, &i64)| {
        let (from, to) = (from * bytes, to * bytes);
        (0..bytes).map(move |byte| (to + byte, from + byte))
    };
    let mut found: Vec<(i64, i64)> = pairs.flat_map(of_element).collect();
    found.sort_unstable();
    found
}

fn wavefronts(rounds: &[Round]) -> [i64; 2] {
    let reads = rounds.iter().map(|round| round.src.wavefronts(AccessKind::Load)).sum();
    [reads, rounds.iter().map(|round| round.dst.wavefronts(AccessKind::Store)).sum()]
}

#[test]
fn every_byte_goes_where_it_belongs() {
    let of_bytes = [(12, 20), (24, 40), (36, 44), (28, 20), (4, 12), (20, 28), (48, 64), (20, 36), (8, 40)];
    let of_halves = [(6, 10), (10, 14), (30, 34), (14, 22)];
    let tiles = of_bytes.map(|tile| (tile, 1)).into_iter().chain(of_halves.map(|tile| (tile, 2)));
    for ((rows, cols), bytes) in tiles {
        let (src, dst) = transpose(rows, cols);
        for plan in plans(bytes, &src, &dst) {
            assert_eq!(moved(&plan), expected(bytes, &src, &dst), "{rows} x {cols} of {bytes} bytes");
        }
    }
}

#[test]
fn whole_words_and_pairs_of_bytes_go_where_they_belong() {
    for unit in [2, 4] {
        let (src, dst) = transpose(12, 20);
        let bytes = |units: &[i64]| units.iter().flat_map(|at| at * unit..(at + 1) * unit).collect::<Vec<i64>>();
        let (src, dst) = (bytes(&src), bytes(&dst));
        for plan in plans(1, &src, &dst) {
            assert_eq!(moved(&plan), expected(1, &src, &dst), "units of {unit} bytes");
        }
    }
}

#[test]
fn gaps_between_rows_do_not_matter() {
    let (src, dst) = transpose(16, 24);
    let src: Vec<i64> = src.iter().map(|x| x / 24 * 36 + x % 24).collect();
    let dst: Vec<i64> = dst.iter().map(|x| x / 16 * 20 + x % 16).collect();
    for plan in plans(1, &src, &dst) {
        assert_eq!(moved(&plan), expected(1, &src, &dst));
    }
}

#[test]
fn dense_transposes_take_as_few_wavefronts_as_their_bytes() {
    let of_bytes = [(12, 20), (24, 40), (40, 24), (28, 20), (20, 28), (4, 12), (48, 64), (64, 96)];
    let of_halves = [(6, 10), (10, 14), (30, 34), (48, 64)];
    let tiles = of_bytes.map(|tile| (tile, 1)).into_iter().chain(of_halves.map(|tile| (tile, 2)));
    for ((rows, cols), bytes) in tiles {
        let (src, dst) = transpose(rows, cols);
        let plans = plans(bytes, &src, &dst);
        assert_eq!(wavefronts(&plans[0]), [tile_floor(rows * cols * bytes); 2], "{rows} x {cols} of {bytes} bytes");
    }
}

#[test]
fn where_the_fewest_steps_have_conflicts_others_are_offered() {
    let (src, dst) = transpose(8, 40);
    let plans = plans(1, &src, &dst);
    let steps = |plan: &Vec<Round>| plan.iter().map(|round| round.shape.steps()).sum::<usize>();
    assert_eq!(plans.iter().map(steps).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(wavefronts(&plans[1]), [4, 4]);
}
