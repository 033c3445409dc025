use tilewright_layout::map::Spread;

use super::*;

fn digits(extents: &[i64], adjacent: i64) -> Option<(Vec<String>, Vec<usize>)> {
    let vars: Vec<Var> =
        ["i", "j", "k"].iter().zip(extents).map(|(name, extent)| Var::new(*name, 0, extent - 1)).collect();
    let digits = Digits::of(&vars, adjacent, &Var::new("at", 0, 4095))?;
    let shown = |expr: &Expr| normalize(expr).to_string();
    Some((digits.indices.iter().map(shown).collect(), digits.inner.iter().map(extent).collect()))
}

#[test]
fn variables_are_digits_of_the_number() {
    let (indices, inner) = digits(&[32, 17, 31], 1).unwrap();
    assert_eq!((indices, inner), (["at/527", "at/31%17", "at%31"].map(str::to_string).to_vec(), vec![1, 1, 1]));
}

#[test]
fn a_group_may_be_part_of_a_row_or_several_rows() {
    assert_eq!(
        digits(&[8, 6, 4], 2).unwrap(),
        (["at/12", "at/2%6", "at%2*2 + k"].map(str::to_string).to_vec(), vec![1, 1, 2])
    );
    assert_eq!(digits(&[8, 6, 4], 12).unwrap().1, [1, 3, 4]);
}

#[test]
fn a_group_that_ends_inside_a_row_has_no_digits() {
    assert_eq!(digits(&[8, 6], 4), None);
}

#[test]
fn threads_take_turns_with_as_many_iterations_each() {
    let plain = |elements, vector| Map::spread(4, elements, Spread { row: elements, group: 4, groups: 1, vector });
    let turns = |adjacent, whole| Some(Turns { adjacent, of_turn: 4, of_thread: 1, whole });
    let found = [1, 2, 4].map(|vector| Turns::of(&plain(32, vector), || None));
    assert_eq!(found, [turns(1, 8), turns(2, 4), turns(4, 2)]);
    assert_eq!(Turns::of(&plain(33, 2), || None), turns(2, 4));
}

#[test]
fn iterations_of_a_thread_may_all_be_adjacent() {
    let blocks = Map::of_slots(4, 48, |thread, slot| Some(thread * 12 + slot), 12);
    assert_eq!(Turns::of(&blocks, || Some(4)), Some(Turns { adjacent: 4, of_turn: 1, of_thread: 3, whole: 3 }));
    let alone = Map::of_slots(1, 45, |_, slot| Some(slot), 45);
    assert_eq!(Turns::of(&alone, || Some(1)), Some(Turns { adjacent: 1, of_turn: 1, of_thread: 0, whole: 45 }));
}

#[test]
fn other_distributions_are_not_taken_in_turns() {
    let rows = Map::spread(4, 24, Spread { row: 6, group: 4, groups: 1, vector: 1 });
    assert_eq!((Turns::of(&rows, || None), Turns::of(&Map::replicated(4, 8), || Some(1))), (None, None));
}
