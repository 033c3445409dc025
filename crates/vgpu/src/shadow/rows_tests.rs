//! Rows of lanes against a list of all accesses to each byte.

use super::*;
use crate::clock::Far;
use crate::lanes::{IN_ORDER, LaneOrder};

const WARPS: usize = 3;
const BYTES: usize = 2048;

/// A small generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }
}

/// What the threads of a warp, which are alike, know and have counted.
#[derive(Clone)]
struct Warp {
    base: Vec<u32>,
    clock: u32,
}

/// An access to a byte.
#[derive(Clone, Copy)]
struct Access {
    warp: usize,
    lane: usize,
    clock: u32,
    is_write: bool,
}

struct World {
    shadow: Shadow,
    records: Records,
    warps: Vec<Warp>,
    /// All accesses to each byte.
    bytes: Vec<Vec<Access>>,
}

/// An access of lanes of a warp, each to so many bytes.
struct Step {
    warp: usize,
    /// The lanes, in the order in which their bytes are adjacent.
    lanes: Vec<usize>,
    order: LaneOrder,
    first: usize,
    each: usize,
    offset: usize,
    is_write: bool,
    is_together: bool,
}

impl World {
    fn new() -> World {
        let warp = Warp { base: vec![0; WARPS * 32], clock: 1 };
        World {
            shadow: Shadow::default(),
            records: Records::default(),
            warps: vec![warp; WARPS],
            bytes: vec![Vec::new(); BYTES],
        }
    }

    /// What one warp has done is ordered before what another one does next.
    fn synchronize(&mut self, from: usize, to: usize) {
        let released = self.warps[from].clone();
        self.warps[from].clock += 1;
        let base = &mut self.warps[to].base;
        base.iter_mut().zip(&released.base).for_each(|(own, other)| *own = (*own).max(*other));
        base[from * 32..from * 32 + 32].iter_mut().for_each(|own| *own = released.clock.max(*own));
    }

    /// Whether an earlier access to a byte conflicts with one by a lane.
    fn has_conflict(&self, byte: usize, warp: usize, lane: usize, is_write: bool) -> bool {
        self.bytes[byte].iter().any(|old| {
            let is_own = (old.warp, old.lane) == (warp, lane);
            let is_ordered = is_own || self.warps[warp].base[old.warp * 32 + old.lane] >= old.clock;
            (is_write || old.is_write) && !is_ordered
        })
    }

    fn actor<'a>(&'a self, step: &Step, far: &'a Far, known: &'a KnownStamps, sharing: Sharing) -> Actor<'a> {
        Actor {
            records: &self.records,
            sharing,
            cta: 1,
            first_cta: 1,
            cluster: &[1],
            base: &self.warps[step.warp].base,
            far,
            copies: 0,
            fenced: None,
            scope: None,
            reads: !step.is_write,
            notes_reads: false,
            known,
        }
    }

    /// Records a step as rows, and lane by lane where that is refused. Returns the conflicting bytes that were found.
    fn record(&mut self, step: &Step) -> Vec<(usize, usize)> {
        let sharing = match step.is_together {
            true => Sharing::Together { lanes: step.lanes.iter().fold(0, |all, lane| all | 1 << lane) },
            false => {
                let order = self.records.order(&step.order).expect("there is room");
                Sharing::Row { bytes: step.each as u8, order }
            }
        };
        let record = |sharing| Record {
            cta: 1,
            warp: step.warp as u16,
            scope: None,
            clock: self.warps[step.warp].clock,
            pc: 0,
            sharing,
        };
        let (all, alone) = (record(sharing), record(Sharing::Alone));
        let (all, alone) = (self.records.add(all).expect("room"), self.records.add(alone).expect("room"));
        let (far, known) = (Far::of_launches(1), KnownStamps::new());
        let mut shadow = std::mem::take(&mut self.shadow);
        let len = if step.is_together { step.each } else { step.each * step.lanes.len() };
        let position = if step.is_together { step.lanes[0] } else { step.first };
        let stamp = self.records.stamp(all, position as u32);
        let thread = |lane: usize| (step.warp * 32 + lane) as u32;
        let actor = self.actor(step, &far, &known, sharing);
        let who = Accessor { by: &actor, stamp, thread: thread(step.lanes[0]), size: len };
        let is_recorded = shadow.record_simple(step.offset, len, step.is_write, &who)
            || step.is_together && shadow.read(step.offset, len, &who).conflicts.is_empty();
        let mut found = Vec::new();
        if !is_recorded {
            for (at, lane) in step.lanes.iter().enumerate() {
                let known = KnownStamps::new();
                let actor = self.actor(step, &far, &known, Sharing::Alone);
                let stamp = self.records.stamp(alone, *lane as u32);
                let who = Accessor { by: &actor, stamp, thread: thread(*lane), size: step.each };
                let offset = if step.is_together { step.offset } else { step.offset + at * step.each };
                let result = match step.is_write {
                    true => shadow.write(offset, step.each, None, &who),
                    false => shadow.read(offset, step.each, &who),
                };
                let bytes = result.conflicts.iter().flat_map(|range| range.offset..range.offset + range.len);
                found.extend(bytes.map(|byte| (*lane, byte)));
            }
        }
        self.shadow = shadow;
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Adds a step to the lists. Returns the conflicting bytes.
    fn expect(&mut self, step: &Step) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (at, lane) in step.lanes.iter().enumerate() {
            let offset = if step.is_together { step.offset } else { step.offset + at * step.each };
            for byte in offset..offset + step.each {
                if self.has_conflict(byte, step.warp, *lane, step.is_write) {
                    found.push((*lane, byte));
                }
                let clock = self.warps[step.warp].clock;
                self.bytes[byte].push(Access { warp: step.warp, lane: *lane, clock, is_write: step.is_write });
            }
        }
        found.sort_unstable();
        found
    }
}

fn step(numbers: &mut Numbers) -> Step {
    let each = 1 << numbers.below(6);
    let mut order = IN_ORDER;
    if numbers.below(2) == 0 {
        let (shift, flip) = (numbers.below(5), numbers.below(32));
        order = std::array::from_fn(|at| ((at << shift | at >> (5 - shift)) & 31 ^ flip) as u8);
    }
    let first = [0, 0, 0, 8, 5][numbers.below(5)];
    let count = [32, 16, 8, 3, 1][numbers.below(5)].min(32 - first);
    let is_write = numbers.below(3) == 0;
    let is_together = !is_write && count > 1 && numbers.below(4) == 0;
    let lanes = order[first..first + count].iter().map(|lane| usize::from(*lane));
    let mut lanes: Vec<usize> = lanes.collect();
    if is_together {
        lanes.sort_unstable();
    }
    // Often where others are; and single accesses close together, so that words are split.
    if numbers.below(3) == 0 {
        let (each, lanes) = (1 << numbers.below(3), vec![usize::from(order[first])]);
        let offset = 64 + numbers.below(16 / each) * each;
        return Step { warp: numbers.below(WARPS), lanes, order, first, each, offset, is_write, is_together: false };
    }
    let room = (BYTES - each * count) / each;
    let offset = [0, room / 2, numbers.below(room + 1), 1024 / each][numbers.below(4)].min(room) * each;
    Step { warp: numbers.below(WARPS), lanes, order, first, each, offset, is_write, is_together }
}

/// Up to its first conflict, a run finds what a list of all accesses has.
#[test]
fn rows_find_what_a_list_of_accesses_has() {
    let (mut conflicts, mut steps) = (0, 0);
    for seed in 0..4000 {
        let mut numbers = Numbers(seed);
        let mut world = World::new();
        for _ in 0..40 {
            if numbers.below(2) == 0 {
                let (from, to) = (numbers.below(WARPS), numbers.below(WARPS));
                world.synchronize(from, to);
            }
            let step = step(&mut numbers);
            let (found, expected) = (world.record(&step), world.expect(&step));
            assert_eq!(found, expected, "seed {seed}");
            steps += 1;
            if !expected.is_empty() {
                conflicts += 1;
                break;
            }
        }
    }
    assert!(conflicts > 1000 && steps > 8000, "{conflicts} conflicts in {steps} steps");
}
