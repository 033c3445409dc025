//! Blocks of words in rounds: moves of 1- and 2-byte elements by 32-bit accesses, where addresses are not linear over
//! bits, such as transposes of 24 x 40 bytes.
//!
//! A block is 1, 2 or 4 words of the source whose units make up as many words of the destination (see [`units`]). In a
//! step a warp accesses 32 words. A round has as many steps as a block has words: every lane reads a block, exchanges
//! its units (see [`recipe`]) and writes it. What is left over moves in rounds of fewer steps, in which neighbouring
//! lanes share a block. A search puts blocks into rounds such that no bank has more words than the round has steps (see
//! [`packing`]); then there are orders in which no two lanes of a step meet in a bank (see [`orders`]).

mod code;
mod loads;
#[cfg(test)]
mod machine;
mod orders;
mod packing;
mod plan;
mod recipe;
mod regular;
mod round;
mod search;
mod selectors;
mod shape;
mod table;
mod units;

pub(crate) use plan::RoundPlan;

use tilewright_ir::plan::Reason;
use tilewright_layout::access::LANES;

use self::packing::pack;
use self::round::Round;
use self::shape::{RoundShape, choices};
use self::units::{WordBlock, blocks_of};
use super::banks::inside_a_word;
use super::context::Context;
use super::listed::Listed;
use super::reasons::{over_an_edge, unknown_strides};
use crate::operand::MemoryTile;
use crate::refusal::{Against, Refusal};

/// The most accesses of a lane on either side; all are unrolled.
const MOST_STEPS: usize = 512;

/// Plans for the move, the first with the fewest accesses. Error: the reasons why there is none.
pub(crate) fn accept(context: &Context) -> Result<Vec<RoundPlan>, Against> {
    let (src, dst) = match (listed(&context.src), listed(&context.dst)) {
        (Ok(src), Ok(dst)) => (src, dst),
        (src, dst) => return Err(Against::Reasons([src.err(), dst.err()].into_iter().flatten().collect())),
    };
    let bytes = context.src.dtype.bytes();
    let blocks = blocks_of(bytes, &src.positions, &dst.positions).ok_or_else(|| vec![no_blocks()])?;
    let steps = (context.src.placed.size() * bytes / 4) as usize / LANES;
    if steps > MOST_STEPS {
        return Err(Against::Reasons(vec![Reason {
            text: format!("{} elements take {steps} accesses of each lane", context.src.placed.size()),
            accepted: format!("up to {MOST_STEPS}, since they are unrolled"),
        }]));
    }
    let mut plans = Vec::new();
    let mut reasons = Vec::new();
    for rounds in candidates(&blocks)? {
        match RoundPlan::new(context, rounds, (src.start.clone(), dst.start.clone())) {
            Ok(plan) => plans.push(plan),
            Err(found) => reasons = found,
        }
    }
    if plans.is_empty() { Err(Against::Reasons(reasons)) } else { Ok(plans) }
}

/// The positions of an operand that begins at a whole word.
fn listed(operand: &MemoryTile) -> Result<Listed, Reason> {
    if operand.placed.pitches.iter().any(|pitch| pitch.stride.as_const().is_none()) {
        return Err(unknown_strides(&operand.title));
    }
    if !operand.is_inside() {
        return Err(over_an_edge(&operand.title));
    }
    let listed = Listed::of(operand)?;
    match inside_a_word(operand, &listed) {
        None => Ok(listed),
        Some(reason) => Err(reason),
    }
}

fn no_blocks() -> Reason {
    Reason {
        text: "no blocks of whole words on both sides".to_string(),
        accepted: "runs of 4 aligned bytes on both sides, along different directions of the tile".to_string(),
    }
}

/// Rounds for these blocks: those with the fewest steps, and while these have bank conflicts, others with more steps. Error:
/// blocks that do not fit their rounds.
fn candidates(blocks: &[WordBlock]) -> Result<Vec<Vec<Round>>, Refusal> {
    let width = blocks.first().map_or(1, |block| block.rows.len());
    let mut found = Vec::new();
    let choices = choices(blocks.len(), width).ok_or_else(|| format!("blocks of {width} words"))?;
    for shapes in choices {
        let packing = pack(blocks, &shapes).ok_or("rounds without room for all blocks")?;
        found.push(rounds(blocks, &shapes, &packing.round_of));
        if packing.conflicts == 0 {
            break;
        }
    }
    Ok(found)
}

fn rounds(blocks: &[WordBlock], shapes: &[RoundShape], round_of: &[usize]) -> Vec<Round> {
    let mut held: Vec<Vec<&WordBlock>> = vec![Vec::new(); shapes.len()];
    blocks.iter().zip(round_of).for_each(|(block, round)| held[*round].push(block));
    shapes.iter().zip(held).map(|(shape, blocks)| Round::of(*shape, &blocks)).collect()
}

#[cfg(test)]
mod tests;
