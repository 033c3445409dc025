//! Which lane moves which element in which step, for any bijection.

use tilewright_diag::counted;
use tilewright_layout::access::{AccessKind, LANES, WarpAccess};

use super::colouring::balanced;
use super::words::{lower_bound, schedule_words};
use crate::refusal::Refusal;

/// A schedule: for every step and lane the element, or none.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    pub(crate) elements: Vec<[Option<usize>; LANES]>,
    /// Bytes of an element.
    bytes: i64,
    /// Wavefronts of reading and of writing.
    passes: [i64; 2],
    /// The most wavefronts that the schedule may take by construction, or for narrow elements the fewest that any
    /// schedule of so many steps could take.
    bounds: [i64; 2],
    /// Whether there are no bank conflicts on either side.
    is_even: bool,
}

impl Steps {
    /// Schedules elements of `bytes` bytes that are read and written at these positions. Error: the schedule would not
    /// move every element once.
    pub(crate) fn of(bytes: i64, src: &[i64], dst: &[i64]) -> Result<Steps, Refusal> {
        let found = if bytes < 4 { of_narrow(bytes, src, dst) } else { of_granules(bytes, src, dst) };
        let (elements, bounds, is_even) = found.ok_or("a schedule that does not move every element once")?;
        let passes = [(src, AccessKind::Load), (dst, AccessKind::Store)]
            .map(|(positions, kind)| elements.iter().map(|step| wavefronts(step, positions, bytes, kind)).sum());
        Ok(Steps { elements, bytes, passes, bounds, is_even })
    }

    /// The steps and wavefronts of the schedule, as text.
    pub(crate) fn quality(&self) -> String {
        let steps = counted(self.elements.len(), "step");
        let [reads, writes] = self.passes;
        let [most_reads, most_writes] = self.bounds;
        match (self.is_even, self.bytes < 4) {
            (true, _) => format!("even: {steps} without bank conflicts"),
            (false, true) => format!(
                "by words: {steps}, {reads} + {writes} wavefronts, {} + {} above the bound",
                reads - most_reads,
                writes - most_writes
            ),
            (false, false) => {
                format!("uneven: {steps}, {reads} + {writes} wavefronts, at most {most_reads} + {most_writes}")
            }
        }
    }
}

fn wavefronts(step: &[Option<usize>; LANES], positions: &[i64], bytes: i64, kind: AccessKind) -> i64 {
    let address = |lane: usize| step[lane].map(|element| (positions[element] * bytes) as u64);
    i64::from(WarpAccess::of(bytes as u64, kind, address).wavefronts())
}

type StepSchedule = (Vec<[Option<usize>; LANES]>, [i64; 2], bool);

/// Schedules elements of 4, 8 or 16 bytes: banks are grouped to the width of an element, and lanes as they are served
/// together.
fn of_granules(bytes: i64, src: &[i64], dst: &[i64]) -> Option<StepSchedule> {
    let granules = (128 / bytes) as usize;
    let turns = src.len().div_ceil(granules);
    let granule = |position: &i64| (position % granules as i64) as usize;
    let edges: Vec<(usize, usize)> = src.iter().zip(dst).map(|(from, to)| (granule(from), granule(to))).collect();
    // As many turns as hold all elements always suffice.
    let colours = balanced(&edges, turns, granules)?;
    let steps = in_lanes(&colours, granules, src)?;
    let bound = |side: &dyn Fn(&(usize, usize)) -> usize| {
        let mut degrees = vec![0usize; granules];
        edges.iter().for_each(|edge| degrees[side(edge)] += 1);
        let most = degrees.into_iter().max().unwrap_or(0);
        (turns * most.div_ceil(turns)) as i64
    };
    let bounds = [bound(&|edge| edge.0), bound(&|edge| edge.1)];
    let is_even = bounds == [turns as i64; 2];
    Some((steps, bounds, is_even))
}

/// Schedules elements of 1 or 2 bytes: lanes may access the same word.
fn of_narrow(bytes: i64, src: &[i64], dst: &[i64]) -> Option<StepSchedule> {
    let word = |position: &i64| position * bytes / 4;
    let words: Vec<(i64, i64)> = src.iter().zip(dst).map(|(from, to)| (word(from), word(to))).collect();
    let count = src.len().div_ceil(LANES);
    // As many steps as hold all elements always suffice.
    let step_of = schedule_words(&words, count)?;
    let bounds =
        [lower_bound(words.iter().map(|(from, _)| *from), count), lower_bound(words.iter().map(|(_, to)| *to), count)];
    let steps = in_lanes(&step_of, LANES, src)?;
    let total =
        |positions: &[i64], kind| steps.iter().map(|step| wavefronts(step, positions, bytes, kind)).sum::<i64>();
    let is_even = [total(src, AccessKind::Load), total(dst, AccessKind::Store)] == [count as i64; 2];
    Some((steps, bounds, is_even))
}

/// Puts turns of `group` lanes side by side into the steps of a warp; in a turn, lanes are in the order of their
/// addresses. `None` if a turn has more elements than lanes, or an element has no turn.
fn in_lanes(turn_of: &[usize], group: usize, src: &[i64]) -> Option<Vec<[Option<usize>; LANES]>> {
    if turn_of.len() != src.len() {
        return None;
    }
    let turns = turn_of.iter().map(|turn| turn + 1).max().unwrap_or(0);
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); turns];
    for (element, turn) in turn_of.iter().enumerate() {
        members[*turn].push(element);
    }
    if members.iter().any(|elements| elements.len() > group) {
        return None;
    }
    let mut steps = vec![[None; LANES]; (turns * group).div_ceil(LANES)];
    for (turn, mut elements) in members.into_iter().enumerate() {
        elements.sort_by_key(|element| src[*element]);
        let first = turn * group;
        for (at, element) in elements.into_iter().enumerate() {
            steps[(first + at) / LANES][(first + at) % LANES] = Some(element);
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shuffled(count: usize, seed: u64) -> Vec<i64> {
        let mut state = seed;
        let mut positions: Vec<i64> = (0..count as i64).collect();
        for at in (1..count).rev() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            positions.swap(at, (state >> 33) as usize % (at + 1));
        }
        positions
    }

    #[test]
    fn every_element_moves_once() {
        for bytes in [1, 2, 4, 8, 16] {
            let src: Vec<i64> = (0..200).collect();
            let steps = Steps::of(bytes, &src, &shuffled(200, bytes as u64)).unwrap();
            let mut moved: Vec<usize> = steps.elements.iter().flatten().flatten().copied().collect();
            moved.sort_unstable();
            assert_eq!(moved, (0..200).collect::<Vec<_>>(), "{bytes} bytes");
        }
    }

    #[test]
    fn turns_with_more_elements_than_lanes_are_refused() {
        let src: Vec<i64> = (0..33).collect();
        assert_eq!(in_lanes(&[0; 33], LANES, &src), None);
        assert_eq!(in_lanes(&[], LANES, &src), None);
        assert!(in_lanes(&[0; 32], LANES, &src[..32]).is_some());
    }

    #[test]
    fn a_shuffle_of_whole_rows_of_banks_is_even() {
        for bytes in [4, 8, 16] {
            let src: Vec<i64> = (0..256).collect();
            let steps = Steps::of(bytes, &src, &shuffled(256, 7)).unwrap();
            let ideal = 256 * bytes / 128;
            assert_eq!((steps.is_even, steps.passes), (true, [ideal; 2]), "{bytes} bytes");
        }
    }

    #[test]
    fn crowded_granules_stay_within_the_bound() {
        let src: Vec<i64> = (0..128).map(|x| x / 8 * 32 + x % 8).collect();
        let steps = Steps::of(4, &src, &shuffled(128, 3)).unwrap();
        assert!(
            !steps.is_even && steps.passes[0] <= steps.bounds[0] && steps.passes[1] <= steps.bounds[1],
            "{steps:?}"
        );
    }
}
