//! Conversion inside warps, by shuffles.

use crate::access::LANES;

use super::colouring::{Coloured, STEP_LIMIT, colour_warps};
use super::cost::Cost;
use super::job::Job;
use super::needs::Needs;
use super::renaming::{Picks, assembly};
use super::schedule::{Schedule, schedules};
use super::table::NONE;
use super::{Conversion, ConversionKind};

/// How the lanes of a step find their source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleMode {
    /// `shfl.sync.bfly`: every lane reads the lane whose number is its own XOR `mask`.
    Butterfly {
        /// The mask, 1 to 31.
        mask: usize,
    },
    /// `shfl.sync.idx` with a constant: every lane reads the same lane.
    Broadcast {
        /// The lane that all read.
        lane: usize,
    },
    /// `shfl.sync.idx`: every lane names its source.
    Indexed,
}

/// What the lanes of one warp do in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarpStep {
    /// The lane that each lane reads; `None` where what it receives is not used.
    pub source: [Option<usize>; LANES],
    /// The word of `a` that each lane sends; `None` where no lane uses it.
    pub word: [Option<usize>; LANES],
}

/// One shuffle of all warps, repeated for each 32 bits of a wider element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShuffleStep {
    /// How lanes find their source, in all warps.
    pub mode: ShuffleMode,
    /// What each warp does; one entry where all warps agree.
    pub warps: Vec<WarpStep>,
}

/// Words that travel inside warps, and where the registers of `b` find them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shuffles {
    /// The steps; all send words of `a`, so their order does not matter.
    pub steps: Vec<ShuffleStep>,
    /// Where each register of `b` comes from.
    pub picks: Picks,
}

impl WarpStep {
    fn idle() -> WarpStep {
        WarpStep { source: [None; LANES], word: [None; LANES] }
    }
}

impl ShuffleStep {
    /// What one warp does in this step, if there is such a warp.
    pub fn warp(&self, warp: usize) -> Option<&WarpStep> {
        if self.warps.len() == 1 { self.warps.first() } else { self.warps.get(warp) }
    }
}

/// The cheapest of the plans; the first among equals.
pub(crate) fn cheapest(plans: impl Iterator<Item = Conversion>) -> Option<Conversion> {
    plans.min_by_key(|plan| plan.cost.total())
}

/// The cheapest plan of shuffles; `None` where some element comes from another warp, or nothing leaves its thread.
pub(crate) fn plan(job: &Job) -> Option<Conversion> {
    if job.words.max(job.targets) > STEP_LIMIT {
        return None;
    }
    let mut best: Option<Conversion> = None;
    for spread in [false, true] {
        let needs = Needs::of(job, spread)?;
        if needs.warps.iter().all(Vec::is_empty) {
            return None;
        }
        for schedule in schedules(job, &needs.warps) {
            let least = Cost { shuffles: schedule.count as u64 * job.units, ..Cost::default() }.total();
            let is_hopeless = best.as_ref().is_some_and(|plan| least >= plan.cost.total());
            if schedule.count > STEP_LIMIT || is_hopeless {
                continue;
            }
            best = cheapest(best.into_iter().chain(plans_of(job, &needs, &schedule)));
        }
        if !needs.has_choice {
            break;
        }
    }
    best
}

/// The plans of one schedule: as it is, and with lanes that read along.
fn plans_of(job: &Job, needs: &Needs, schedule: &Schedule) -> Vec<Conversion> {
    let Some(coloured) = colour_warps(job, &needs.warps, schedule.ranges.as_ref(), schedule.count) else {
        return Vec::new();
    };
    let mut steps = steps_of(needs, &coloured);
    let mut picks = picks_by_step(job, needs, &coloured);
    let plain = plan_for(job, steps.clone(), picks.clone());
    read_along(job, &mut steps, &mut picks);
    vec![plain, plan_for(job, steps, picks)]
}

/// The warps of every step.
fn steps_of(needs: &Needs, coloured: &Coloured) -> Vec<Vec<WarpStep>> {
    let mut steps = vec![vec![WarpStep::idle(); needs.warps.len()]; coloured.steps];
    for (warp, (edges, colours)) in needs.warps.iter().zip(&coloured.colours).enumerate() {
        for (edge, colour) in edges.iter().zip(colours) {
            let step = &mut steps[*colour][warp];
            step.source[edge.lane] = Some(edge.source);
            step.word[edge.source] = Some(edge.word);
        }
    }
    steps
}

/// The picks, with each edge replaced by the step that carries it.
fn picks_by_step(job: &Job, needs: &Needs, coloured: &Coloured) -> Vec<i32> {
    let mut picks = needs.picks.clone();
    for (warp, picks) in picks.chunks_mut(LANES * job.b.registers()).enumerate() {
        for pick in picks {
            let Some(piece) = received_piece(job, *pick) else { continue };
            let step = coloured.colours[warp][piece / job.per_word];
            *pick = (job.own() + step * job.per_word + piece % job.per_word) as i32;
        }
    }
    picks
}

/// The number of a received piece; `None` for a register of `a` or nothing.
fn received_piece(job: &Job, pick: i32) -> Option<usize> {
    usize::try_from(pick).ok()?.checked_sub(job.own())
}

fn plan_for(job: &Job, steps: Vec<Vec<WarpStep>>, picks: Vec<i32>) -> Conversion {
    let mut cost = assembly(job, &picks);
    cost.shuffles = steps.len() as u64 * job.units;
    let mut planned = Vec::with_capacity(steps.len());
    for mut warps in steps {
        let mode = mode_of(&warps);
        let words = words_of(job, &warps).into_iter().filter(|sent| *sent).count() as u64;
        cost.selects += words.saturating_sub(1) * job.units;
        cost.indices += u64::from(mode == ShuffleMode::Indexed);
        if warps.iter().all(|warp| *warp == warps[0]) {
            warps.truncate(1);
        }
        planned.push(ShuffleStep { mode, warps });
    }
    let shuffles = Shuffles { steps: planned, picks: Picks::of(job, picks) };
    Conversion::new(job, ConversionKind::Shuffles(shuffles), cost)
}

fn mode_of(warps: &[WarpStep]) -> ShuffleMode {
    let (mut masks, mut sources) = (0u32, 0u32);
    for warp in warps {
        for (lane, source) in warp.source.iter().enumerate() {
            if let Some(source) = *source {
                masks |= 1 << (source ^ lane);
                sources |= 1 << source;
            }
        }
    }
    match (masks.count_ones(), sources.count_ones()) {
        (1, _) => ShuffleMode::Butterfly { mask: masks.trailing_zeros() as usize },
        (_, 1) => ShuffleMode::Broadcast { lane: sources.trailing_zeros() as usize },
        _ => ShuffleMode::Indexed,
    }
}

/// Which words of `a` some lane sends.
fn words_of(job: &Job, warps: &[WarpStep]) -> Vec<bool> {
    let mut sent = vec![false; job.words];
    for word in warps.iter().flat_map(|warp| &warp.word).flatten() {
        sent[*word] = true;
    }
    sent
}

/// What a step did before lanes began to read along.
struct StepFact {
    /// How lanes found their source.
    mode: ShuffleMode,
    /// Whether some lane sent each word of `a`.
    words: Vec<bool>,
}

/// Lets lanes receive elements that they hold themselves from a step that brings these to others for the same word of
/// `b`, so that no select is needed only because of them.
fn read_along(job: &Job, steps: &mut [Vec<WarpStep>], picks: &mut [i32]) {
    let fact = |warps: &Vec<WarpStep>| StepFact { mode: mode_of(warps), words: words_of(job, warps) };
    let facts: Vec<StepFact> = steps.iter().map(fact).collect();
    let servers = servers(job, picks, steps.len());
    let registers = job.b.registers();
    for (place, pick) in picks.iter_mut().enumerate() {
        if *pick == NONE || received_piece(job, *pick).is_some() {
            continue;
        }
        let (thread, register) = (place / registers, place % registers);
        let reader = Reader {
            warp: thread / LANES,
            lane: thread % LANES,
            word: *pick as usize / job.per_word,
            element: job.b.at(thread, register),
        };
        for &step in &servers[register / job.per_word] {
            let Some((source, word, slot)) = reader.readable(job, &steps[step], &facts[step]) else { continue };
            steps[step][reader.warp].source[reader.lane] = Some(source);
            steps[step][reader.warp].word[source] = Some(word);
            *pick = (job.own() + step * job.per_word + slot) as i32;
            break;
        }
    }
}

/// The steps that serve each word of `b`, ascending.
fn servers(job: &Job, picks: &[i32], steps: usize) -> Vec<Vec<usize>> {
    let mut serves = vec![vec![false; steps]; job.targets];
    for (place, pick) in picks.iter().enumerate() {
        if let Some(piece) = received_piece(job, *pick) {
            serves[place % job.b.registers() / job.per_word][piece / job.per_word] = true;
        }
    }
    serves.iter().map(|steps| (0..steps.len()).filter(|step| steps[*step]).collect()).collect()
}

/// A lane that holds an element in one of its own words.
struct Reader {
    warp: usize,
    lane: usize,
    /// The word of `a` that contains the element.
    word: usize,
    element: i32,
}

impl Reader {
    /// The source, the word and the slot from which the lane can read its element in a step at no cost.
    fn readable(&self, job: &Job, step: &[WarpStep], fact: &StepFact) -> Option<(usize, usize, usize)> {
        let WarpStep { source, word: sent } = &step[self.warp];
        let from = match fact.mode {
            ShuffleMode::Butterfly { mask } => self.lane ^ mask,
            ShuffleMode::Broadcast { lane } => lane,
            ShuffleMode::Indexed => self.lane,
        };
        if source[self.lane].is_some_and(|reads| reads != from) {
            return None;
        }
        let own = (from == self.lane && fact.words[self.word]).then_some(self.word);
        let word = sent[from].or(own)?;
        let slot = job.pieces(self.warp * LANES + from, word).position(|element| element == self.element)?;
        Some((from, word, slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shuffled(a: &str, b: &str, bits: i64) -> Conversion {
        plan(&Job::new(&a.parse().unwrap(), &b.parse().unwrap(), bits).unwrap()).unwrap()
    }

    fn modes(plan: &Conversion) -> Vec<ShuffleMode> {
        match &plan.kind {
            ConversionKind::Shuffles(shuffles) => shuffles.steps.iter().map(|step| step.mode).collect(),
            other => panic!("{}", other.name()),
        }
    }

    #[test]
    fn a_lane_bit_that_swaps_with_a_register_bit_is_a_butterfly() {
        let plan = shuffled("S[(2,16,2):(16@laneid,1@laneid,1@reg)]", "S[(2,16,2):(1@reg,1@laneid,16@laneid)]", 32);
        assert_eq!(modes(&plan), [ShuffleMode::Butterfly { mask: 16 }]);
        assert_eq!(plan.cost, Cost { shuffles: 1, selects: 3, ..Cost::default() });
    }

    #[test]
    fn an_element_of_64_bits_takes_two_shuffles() {
        let plan = shuffled("S[(2,16,2):(16@laneid,1@laneid,1@reg)]", "S[(2,16,2):(1@reg,1@laneid,16@laneid)]", 64);
        assert_eq!(plan.cost, Cost { shuffles: 2, selects: 6, ..Cost::default() });
    }

    #[test]
    fn the_registers_of_one_lane_are_broadcast_to_all() {
        let plan = shuffled("S[4:1@reg]", "S[4:1@reg] + R[32:1@laneid]", 32);
        assert_eq!((modes(&plan), plan.cost.total()), (vec![ShuffleMode::Broadcast { lane: 0 }; 4], 64));
        assert_eq!(shuffled("S[4:1@reg]", "S[4:1@reg] + R[32:1@laneid]", 16).cost.total(), 32);
    }

    #[test]
    fn all_lanes_gather_from_all() {
        let plan = shuffled("S[32:1@laneid]", "S[32:1@reg] + R[32:1@laneid]", 32);
        assert_eq!(plan.cost, Cost { shuffles: 32, ..Cost::default() });
    }

    #[test]
    fn copies_in_a_warp_are_used_where_that_saves_steps() {
        let plan = shuffled("S[8:1@laneid] + R[4:8@laneid]", "S[8:1@reg] + R[32:1@laneid]", 32);
        assert_eq!(plan.cost, Cost { shuffles: 8, ..Cost::default() });
    }

    #[test]
    fn halves_transposed_in_a_warp_travel_in_two_steps() {
        let plan = shuffled("S[(8,4,2):(4@laneid,1@laneid,1@reg)]", "S[(4,2,8):(1@laneid,1@reg,4@laneid)]", 16);
        assert_eq!(modes(&plan), [ShuffleMode::Indexed; 2]);
        assert_eq!(plan.cost, Cost { shuffles: 2, indices: 2, permutes: 1, ..Cost::default() });
    }

    #[test]
    fn warps_that_agree_are_told_once() {
        let plan = shuffled(
            "S[(4,2,16,2):(1@warpid,16@laneid,1@laneid,1@reg)]",
            "S[(4,2,16,2):(1@warpid,1@reg,1@laneid,16@laneid)]",
            32,
        );
        let ConversionKind::Shuffles(shuffles) = &plan.kind else { panic!("{}", plan.kind.name()) };
        assert_eq!((shuffles.steps[0].warps.len(), shuffles.picks.warps), (1, 1));
    }
}
