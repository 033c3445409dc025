//! Edge colouring: assigns a step to every word that one lane of a warp needs from another.
//!
//! In one step a lane receives once, and sends one word, to any number of lanes. Where every word goes to one lane this
//! is the edge colouring of a bipartite multigraph: exchanging two colours on the lanes that they connect always frees
//! a step, and there are as many steps as the greatest degree (Koenig's theorem). Where words go to several lanes, the
//! same exchange is tried and may fail; then one more step is added. Among open steps, those that already send the same
//! word, or receive for the same word of `b`, in some warp are preferred: that saves selects.

use std::ops::Range;

use crate::access::LANES;

use super::job::Job;
use super::needs::WordTransfer;
use super::schedule::Ranges;

/// The maximum number of steps in a plan: a thread has 255 registers (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability").
pub(crate) const STEP_LIMIT: usize = 256;
/// Failed exchanges after which a new step is opened.
const REPAIR_LIMIT: usize = 64;

/// The step of every edge of every warp.
pub(crate) struct Coloured {
    /// The step of each edge, warp by warp.
    pub(crate) colours: Vec<Vec<usize>>,
    /// How many steps there are in all.
    pub(crate) steps: usize,
}

/// Colours all warps in `count` steps or more; warps with the same edges get the same steps. `None` where more than
/// [`STEP_LIMIT`] would be needed.
pub(crate) fn colour_warps(
    job: &Job,
    warps: &[Vec<WordTransfer>],
    ranges: Option<&Ranges>,
    count: usize,
) -> Option<Coloured> {
    let mut palette = Palette { words: job.words, steps: Vec::new(), received_for: vec![0; job.targets] };
    (0..count).for_each(|_| palette.add_step());
    let mut colours: Vec<Vec<usize>> = Vec::with_capacity(warps.len());
    for edges in warps {
        let twin = warps.iter().position(|other| other == edges).and_then(|twin| colours.get(twin));
        let found = match twin {
            Some(twin) => twin.clone(),
            None => Colouring::new(edges, &mut palette).run(ranges)?,
        };
        colours.push(found);
    }
    Some(Coloured { colours, steps: palette.steps.len() })
}

/// What the steps do in all warps so far.
struct Palette {
    /// Words of a thread in `a`.
    words: usize,
    /// What each step does.
    steps: Vec<StepUse>,
    /// The number of edges so far for each word of `b`.
    received_for: Vec<i64>,
}

struct StepUse {
    /// The number of lanes that send each word.
    sent: Vec<i64>,
    /// The number of lanes that send any word.
    senders: i64,
    /// The number of lanes that receive for each word of `b`.
    received: Vec<i64>,
}

impl Palette {
    fn add_step(&mut self) {
        let received = vec![0; self.received_for.len()];
        self.steps.push(StepUse { sent: vec![0; self.words], senders: 0, received });
    }

    /// How poorly a step suits an edge: 0 if it already sends that word and already receives for that word of `b`.
    fn misfit(&self, at: usize, edge: &WordTransfer) -> u32 {
        let step = &self.steps[at];
        let send = match (step.sent[edge.word], step.senders) {
            (1.., _) => 0,
            (_, 0) => 1,
            _ => 2,
        };
        let receive = match (step.received[edge.target], self.received_for[edge.target]) {
            (1.., _) => 0,
            (_, 0) => 1,
            _ => 2,
        };
        send + receive
    }
}

/// One step of one warp.
#[derive(Clone)]
struct LaneStep {
    /// The edge over which each lane receives, as an index.
    edge: [Option<usize>; LANES],
    /// The lanes that each lane sends to, as bits.
    to: [u32; LANES],
    /// The word that each lane sends, if it sends.
    word: [usize; LANES],
}

impl LaneStep {
    fn idle() -> LaneStep {
        LaneStep { edge: [None; LANES], to: [0; LANES], word: [0; LANES] }
    }

    fn can_send(&self, edge: &WordTransfer) -> bool {
        self.to[edge.source] == 0 || self.word[edge.source] == edge.word
    }
}

/// Lanes that the edges of two steps connect, as bits.
#[derive(Clone, Copy)]
struct Component {
    /// Lanes that receive, one bit per lane.
    receivers: u32,
    /// Lanes that send, one bit per lane.
    senders: u32,
}

fn lanes_of(bits: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| (bits >> lane) & 1 == 1)
}

struct Colouring<'a> {
    edges: &'a [WordTransfer],
    palette: &'a mut Palette,
    /// What the lanes of this warp do in each step.
    steps: Vec<LaneStep>,
    /// The step of each edge that has one so far: a step is assigned to one edge after the other.
    step_of: Vec<usize>,
}

impl<'a> Colouring<'a> {
    fn new(edges: &'a [WordTransfer], palette: &'a mut Palette) -> Colouring<'a> {
        let steps = vec![LaneStep::idle(); palette.steps.len()];
        Colouring { edges, palette, steps, step_of: Vec::with_capacity(edges.len()) }
    }

    fn run(mut self, ranges: Option<&Ranges>) -> Option<Vec<usize>> {
        for edge in self.edges {
            let range = ranges.map_or(0..self.steps.len(), |ranges| ranges.of(edge));
            let open = self.best_open(edge, range).or_else(|| self.repair(edge));
            let at = match open {
                Some(at) => at,
                None => self.add_step()?,
            };
            self.place_next(edge, at);
        }
        Some(self.step_of)
    }

    fn add_step(&mut self) -> Option<usize> {
        let at = self.steps.len();
        if at == STEP_LIMIT {
            return None;
        }
        self.palette.add_step();
        self.steps.push(LaneStep::idle());
        Some(at)
    }

    /// The open step that suits the edge best: one that already sends the word from that lane, then the least misfit.
    fn best_open(&self, edge: &WordTransfer, range: Range<usize>) -> Option<usize> {
        let is_open = |at: &usize| self.steps[*at].edge[edge.lane].is_none() && self.steps[*at].can_send(edge);
        let rank = |at: &usize| (self.steps[*at].to[edge.source] == 0, self.palette.misfit(*at, edge));
        range.filter(is_open).min_by_key(rank)
    }

    /// Assigns a step to the first edge that has none.
    fn place_next(&mut self, edge: &WordTransfer, at: usize) {
        let WordTransfer { source, word, lane, target } = *edge;
        let (step, shared) = (&mut self.steps[at], &mut self.palette.steps[at]);
        if step.to[source] == 0 {
            shared.sent[word] += 1;
            shared.senders += 1;
        }
        step.edge[lane] = Some(self.step_of.len());
        self.step_of.push(at);
        step.to[source] |= 1 << lane;
        step.word[source] = word;
        shared.received[target] += 1;
        self.palette.received_for[target] += 1;
    }

    /// Opens a step for the edge: one where its source can send, by exchanging it with one where its lane is free.
    fn repair(&mut self, edge: &WordTransfer) -> Option<usize> {
        let mut tries = 0;
        for free in 0..self.steps.len() {
            if self.steps[free].edge[edge.lane].is_some() {
                continue;
            }
            for at in 0..self.steps.len() {
                if !self.steps[at].can_send(edge) {
                    continue;
                }
                let lanes = self.component(free, at, edge.lane);
                if (lanes.senders >> edge.source) & 1 == 0 {
                    self.exchange(free, at, lanes);
                    return Some(at);
                }
                tries += 1;
                if tries == REPAIR_LIMIT {
                    return None;
                }
            }
        }
        None
    }

    /// The lanes that the edges of two steps connect with the receiver `lane`.
    fn component(&self, p: usize, q: usize, lane: usize) -> Component {
        let (x, y) = (&self.steps[p], &self.steps[q]);
        let mut lanes = Component { receivers: 1 << lane, senders: 0 };
        loop {
            for receiver in lanes_of(lanes.receivers) {
                for index in [x.edge[receiver], y.edge[receiver]].into_iter().flatten() {
                    lanes.senders |= 1 << self.edges[index].source;
                }
            }
            let reached = lanes_of(lanes.senders).fold(lanes.receivers, |bits, lane| bits | x.to[lane] | y.to[lane]);
            if reached == lanes.receivers {
                return lanes;
            }
            lanes.receivers = reached;
        }
    }

    fn exchange(&mut self, p: usize, q: usize, lanes: Component) {
        self.count(p, lanes, -1);
        self.count(q, lanes, -1);
        let (low, high) = (p.min(q), p.max(q));
        let (before, after) = self.steps.split_at_mut(high);
        let (x, y) = (&mut before[low], &mut after[0]);
        for lane in lanes_of(lanes.receivers) {
            std::mem::swap(&mut x.edge[lane], &mut y.edge[lane]);
            x.edge[lane].into_iter().for_each(|edge| self.step_of[edge] = low);
            y.edge[lane].into_iter().for_each(|edge| self.step_of[edge] = high);
        }
        for lane in lanes_of(lanes.senders) {
            std::mem::swap(&mut x.to[lane], &mut y.to[lane]);
            std::mem::swap(&mut x.word[lane], &mut y.word[lane]);
        }
        self.count(p, lanes, 1);
        self.count(q, lanes, 1);
    }

    /// Adds what these lanes do in a step to the palette, or removes it if `sign` is -1.
    fn count(&mut self, at: usize, lanes: Component, sign: i64) {
        let (step, shared) = (&self.steps[at], &mut self.palette.steps[at]);
        for lane in lanes_of(lanes.senders).filter(|lane| step.to[*lane] != 0) {
            shared.sent[step.word[lane]] += sign;
            shared.senders += sign;
        }
        for index in lanes_of(lanes.receivers).filter_map(|lane| step.edge[lane]) {
            shared.received[self.edges[index].target] += sign;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::TileLayout;

    fn job(registers: i64) -> Job {
        let layout = TileLayout::row_major(&[registers]).unwrap();
        Job::new(&layout, &layout, 32).unwrap()
    }

    /// Checks that no lane receives twice or sends two words in one step, and gives the number of steps.
    fn steps(edges: Vec<WordTransfer>, count: usize) -> usize {
        let coloured = colour_warps(&job(128), std::slice::from_ref(&edges), None, count).unwrap();
        for (i, x) in edges.iter().enumerate() {
            for (j, y) in edges.iter().enumerate().skip(i + 1) {
                if coloured.colours[0][i] == coloured.colours[0][j] {
                    assert!(x.lane != y.lane && (x.source != y.source || x.word == y.word), "{x:?} {y:?}");
                }
            }
        }
        coloured.steps
    }

    /// Edges between random lanes; every word goes to one lane.
    fn random_edges(seed: u64, count: usize) -> (Vec<WordTransfer>, usize) {
        let mut state = seed;
        let mut lane = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 59) as usize
        };
        let (mut sends, mut receives) = ([0usize; LANES], [0usize; LANES]);
        let mut edges = Vec::new();
        for target in 0..count {
            let (source, lane) = (lane(), lane());
            edges.push(WordTransfer { source, word: sends[source], lane, target: target % 8 });
            sends[source] += 1;
            receives[lane] += 1;
        }
        let degree = sends.iter().chain(&receives).copied().max().unwrap_or(0);
        (edges, degree)
    }

    #[test]
    fn words_for_one_lane_each_take_as_many_steps_as_the_greatest_degree() {
        for seed in 0..50 {
            let (edges, degree) = random_edges(seed, 120);
            assert_eq!(steps(edges, degree), degree, "seed {seed}");
        }
    }

    #[test]
    fn one_word_goes_to_all_lanes_in_one_step() {
        let edges = (1..32).map(|lane| WordTransfer { source: 0, word: 3, lane, target: 0 }).collect();
        assert_eq!(steps(edges, 1), 1);
    }

    #[test]
    fn an_exchange_frees_a_step() {
        let edge = |source, lane| WordTransfer { source, word: lane, lane, target: 0 };
        assert_eq!(steps(vec![edge(0, 1), edge(1, 2), edge(1, 0), edge(0, 2)], 2), 2);
    }
}
