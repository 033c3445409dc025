//! In which order the lanes of a round access their words, so that no step meets a bank twice.

use tilewright_layout::access::LANES;

use crate::permute_layout::banks::bank;
use crate::permute_layout::colouring::balanced;

/// For every lane, which of its words it accesses in each step. All lanes have as many words as there are steps: 1, 2
/// or 4. Turned orders are preferred, in which a lane accesses word `step ^ turn`.
pub(crate) fn orders(words: &[Vec<i64>]) -> Vec<Vec<usize>> {
    turned(words).unwrap_or_else(|| coloured(words))
}

/// Turns without conflicts, if some are found.
fn turned(words: &[Vec<i64>]) -> Option<Vec<Vec<usize>>> {
    let steps = words.first()?.len();
    let mut search = Turns::new(words, steps);
    if !search.complete() {
        return None;
    }
    let order = |turn: &Option<usize>| turn.map(|turn| (0..steps).map(|step| step ^ turn).collect::<Vec<usize>>());
    search.turns.iter().map(order).collect()
}

/// Steps by an edge colouring of lanes and banks: as few conflicts as there can be.
fn coloured(words: &[Vec<i64>]) -> Vec<Vec<usize>> {
    let steps = words.first().map_or(0, Vec::len);
    let edges: Vec<(usize, usize)> =
        words.iter().flatten().enumerate().map(|(at, word)| (at / steps, bank(*word))).collect();
    // As many colours as a lane has words always suffice.
    let step_of = balanced(&edges, steps, LANES).unwrap_or_default();
    let order = |lane: usize| {
        let mut order: Vec<usize> = (0..steps).collect();
        order.sort_by_key(|at| step_of.get(lane * steps + at));
        order
    };
    (0..words.len()).map(order).collect()
}

/// Assignments after which the search for turns gives up.
const MOST_PLACES: usize = 2000;

/// A search for turns, the lane with the fewest possible ones first.
struct Turns {
    /// By lane, turn and step: the bit of the bank.
    banks: Vec<Vec<Vec<u32>>>,
    /// By step: the banks that are taken, as a bit mask.
    taken: Vec<u32>,
    /// By lane: its turn, if it has one already.
    turns: Vec<Option<usize>>,
    /// Assignments that are left before the search gives up.
    places_left: usize,
}

impl Turns {
    fn new(words: &[Vec<i64>], steps: usize) -> Turns {
        let turned = |words: &[i64], turn: usize| -> Vec<u32> {
            (0..steps).map(|step| 1u32 << bank(words[step ^ turn])).collect()
        };
        Turns {
            banks: words.iter().map(|words| (0..steps).map(|turn| turned(words, turn)).collect()).collect(),
            taken: vec![0; steps],
            turns: vec![None; words.len()],
            places_left: MOST_PLACES,
        }
    }

    /// Completes the turns; false if they are left as they were.
    fn complete(&mut self) -> bool {
        let open = (0..self.turns.len()).filter(|lane| self.turns[*lane].is_none());
        let possible = open.map(|lane| (lane, self.possible(lane))).min_by_key(|(_, turns)| turns.len());
        let Some((lane, possible)) = possible else { return true };
        for turn in possible {
            if self.places_left == 0 {
                return false;
            }
            self.places_left -= 1;
            self.flip(lane, turn);
            self.turns[lane] = Some(turn);
            if self.complete() {
                return true;
            }
            self.flip(lane, turn);
            self.turns[lane] = None;
        }
        false
    }

    fn possible(&self, lane: usize) -> Vec<usize> {
        let is_free = |banks: &[u32]| banks.iter().zip(&self.taken).all(|(bank, taken)| bank & taken == 0);
        let turns = self.banks[lane].iter().enumerate();
        turns.filter(|(_, banks)| is_free(banks)).map(|(turn, _)| turn).collect()
    }

    /// Takes the banks of a lane with this turn, or gives them back.
    fn flip(&mut self, lane: usize, turn: usize) {
        for (taken, bank) in self.taken.iter_mut().zip(&self.banks[lane][turn]) {
            *taken ^= bank;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_free(words: &[Vec<i64>], orders: &[Vec<usize>]) -> bool {
        (0..words[0].len()).all(|step| {
            let mut banks: Vec<usize> =
                words.iter().zip(orders).map(|(words, order)| bank(words[order[step]])).collect();
            banks.sort_unstable();
            banks.windows(2).all(|pair| pair[0] != pair[1])
        })
    }

    #[test]
    fn words_in_order_need_no_turn() {
        let words: Vec<Vec<i64>> = (0..32).map(|lane| (0..4).map(|row| lane + 40 * row).collect()).collect();
        assert_eq!(orders(&words), vec![vec![0, 1, 2, 3]; 32]);
    }

    #[test]
    fn lanes_that_begin_in_the_same_bank_turn() {
        let words: Vec<Vec<i64>> = (0..32).map(|lane| (0..4).map(|row| lane % 8 + 8 * row).collect()).collect();
        let orders = orders(&words);
        assert!(is_free(&words, &orders), "{orders:?}");
        assert!(orders.iter().all(|order| (0..4).all(|step| order[step] == order[0] ^ step)), "{orders:?}");
    }

    #[test]
    fn orders_that_are_no_turns_are_found_too() {
        // However the second lane turns, it meets the first in a bank.
        let words = vec![vec![0, 1, 2, 3], vec![0, 3, 1, 2]];
        assert_eq!(turned(&words), None);
        let orders = orders(&words);
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
        }
        assert!(is_free(&words, &orders), "{orders:?}");
    }
}
