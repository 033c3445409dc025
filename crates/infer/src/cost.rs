//! What a placement costs: memory instructions by vector width, steps, registers.
//!
//! `cost = sum over nests of (4 * memory instructions of all warps + steps of all warps) + registers of a thread`, where
//! a memory instruction moves a vector of each thread of a warp. A register that several slots share by thread, so that
//! its index is no number, costs as many selections as there are slots.

use tilewright_layout::map::Map;

use crate::nest::{MemoryTouch, Nest};

const LANES: usize = 32;
/// Bytes that a thread moves at once, at most.
const WIDEST: i64 = 16;

/// Elements that a thread moves at once: the most such that adjacent steps are adjacent in memory, aligned, for all
/// threads.
pub(crate) fn vector_width(nest: &Nest, touch: &MemoryTouch, steps: &Map) -> usize {
    let Some(positions) = &touch.positions else { return 1 };
    let cap = nest.vector.unwrap_or(WIDEST).clamp(1, WIDEST / touch.bytes.min(WIDEST));
    let mut width = 1 << cap.ilog2();
    while width > 1 && !fits(touch, positions, steps, width as usize) {
        width /= 2;
    }
    width as usize
}

fn fits(touch: &MemoryTouch, positions: &[i64], steps: &Map, width: usize) -> bool {
    if !steps.slots().is_multiple_of(width) || touch.aligned % width as i64 != 0 {
        return false;
    }
    (0..steps.threads()).all(|thread| {
        (0..steps.slots()).step_by(width).all(|first| {
            let at = |lane: usize| steps.at(thread, first + lane).map(|iteration| positions[iteration]);
            match at(0) {
                None => (1..width).all(|lane| at(lane).is_none()),
                Some(start) => {
                    start % width as i64 == 0 && (1..width).all(|lane| at(lane) == Some(start + lane as i64))
                }
            }
        })
    })
}

/// The cost of a nest.
pub(crate) fn of_nest(nest: &Nest, steps: &Map) -> u64 {
    let active = |step: usize| {
        let warps = (0..steps.threads()).step_by(LANES);
        warps.filter(|first| (*first..first + LANES).any(|thread| steps.at(thread, step).is_some())).count() as u64
    };
    let issued: u64 = (0..steps.slots()).map(active).sum();
    let memory: u64 = nest.memory.iter().map(|touch| issued.div_ceil(vector_width(nest, touch, steps) as u64)).sum();
    4 * memory + issued
}

/// The cost of keeping fragments in registers: slots in words.
pub(crate) fn of_registers(map: &Map, bytes: i64) -> u64 {
    (map.slots() as u64 * bytes as u64).div_ceil(4)
}
