//! Blocks of words in rounds: moves of 1- and 2-byte elements by 32-bit accesses, where addresses are not linear over
//! bits, such as transposes of 24 x 40 bytes.
//!
//! A block is 1, 2 or 4 words of the source whose units make up as many words of the destination (see [`units`]). In a
//! step a warp accesses 32 words. A round has as many steps as a block has words: every lane reads a block, exchanges
//! its units (see [`recipe`]) and writes it. What is left over moves in rounds of fewer steps, in which neighbouring
//! lanes share a block. A search puts blocks into rounds such that no bank has more words than the round has steps (see
//! [`packing`]); then there are orders in which no two lanes of a step meet in a bank (see [`orders`]).

mod code;
mod orders;
mod packing;
mod recipe;
mod regular;
mod round;
mod search;
mod table;
mod units;

use std::ops::Range;

use tilewright_expr::Expr;
use tilewright_ir::plan::{MemoryKind, Reason};
use tilewright_layout::access::{AccessKind, LANES, tile_floor};

use self::packing::{Kind, choices, pack};
use self::round::Round;
use self::table::{Encoding, selector_entries};
use self::units::{Block, blocks_of};
use super::banks::inside_a_word;
use super::blocks::MOST_REGISTERS;
use super::listed::Listed;
use super::{Context, unknown_strides};
use crate::operand::MemoryTile;

/// Accesses of a lane on either side that are written out.
const MOST_STEPS: usize = 512;
/// Registers for bytes that are half-way; all rounds use the same.
const SCRATCH: i64 = 4;

/// A move in rounds.
pub(crate) struct RoundPlan {
    rounds: Vec<Round>,
    encoding: Encoding,
    /// Where both tiles begin, in elements.
    src: Expr,
    dst: Expr,
    /// Elements of a word.
    per_word: i64,
    /// Rounds that are read before any of them is written.
    chunks: Vec<Range<usize>>,
}

/// Plans for the move, of which the first takes the fewest accesses, or why there is none.
pub(crate) fn accept(context: &Context) -> Result<Vec<RoundPlan>, Vec<Reason>> {
    let (src, dst) = match (listed(&context.src), listed(&context.dst)) {
        (Ok(src), Ok(dst)) => (src, dst),
        (src, dst) => return Err([src.err(), dst.err()].into_iter().flatten().collect()),
    };
    let bytes = context.src.dtype.bytes();
    let blocks = blocks_of(bytes, &src.positions, &dst.positions).ok_or_else(|| vec![no_blocks()])?;
    let steps = (context.src.placed.size() * bytes / 4) as usize / LANES;
    if steps > MOST_STEPS {
        return Err(vec![Reason {
            text: format!("{} elements take {steps} accesses of each lane", context.src.placed.size()),
            accepted: format!("up to {MOST_STEPS}, which are written out"),
        }]);
    }
    let mut plans = Vec::new();
    let mut reasons = Vec::new();
    for rounds in candidates(&blocks) {
        match RoundPlan::new(context, rounds, (src.start.clone(), dst.start.clone())) {
            Ok(plan) => plans.push(plan),
            Err(found) => reasons = found,
        }
    }
    if plans.is_empty() { Err(reasons) } else { Ok(plans) }
}

/// The positions of an operand that begins at a whole word.
fn listed(operand: &MemoryTile) -> Result<Listed, Reason> {
    if operand.placed.pitches.iter().any(|pitch| pitch.stride.as_const().is_none()) {
        return Err(unknown_strides(&operand.title));
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

/// Rounds for these blocks: those with the fewest steps, and as long as there are bank conflicts, others with more.
fn candidates(blocks: &[Block]) -> Vec<Vec<Round>> {
    let width = blocks.first().map_or(1, |block| block.rows.len());
    let mut found = Vec::new();
    for kinds in choices(blocks.len(), width) {
        let packing = pack(blocks, &kinds);
        found.push(rounds(blocks, &kinds, &packing.round_of));
        if packing.conflicts == 0 {
            break;
        }
    }
    found
}

fn rounds(blocks: &[Block], kinds: &[Kind], round_of: &[usize]) -> Vec<Round> {
    let mut held: Vec<Vec<&Block>> = vec![Vec::new(); kinds.len()];
    blocks.iter().zip(round_of).for_each(|(block, round)| held[*round].push(block));
    kinds.iter().zip(held).map(|(kind, blocks)| Round::of(*kind, &blocks)).collect()
}

impl RoundPlan {
    /// The plan, or why its tables or registers are too many: operands that share storage cannot move in parts.
    fn new(context: &Context, rounds: Vec<Round>, (src, dst): (Expr, Expr)) -> Result<RoundPlan, Vec<Reason>> {
        let encoding = Encoding::of(&rounds).ok_or_else(|| {
            vec![Reason {
                text: "the tile reaches over too many bytes for a table of its offsets".to_string(),
                accepted: "tiles that lie within 1 GiB".to_string(),
            }]
        })?;
        let per_word = 4 / context.src.dtype.bytes();
        let mut plan = RoundPlan { rounds, encoding, src, dst, per_word, chunks: Vec::new() };
        plan.chunks = plan.parts();
        if context.may_alias && plan.chunks.len() > 1 {
            let registers = SCRATCH + plan.rounds.iter().map(|round| plan.registers(round)).sum::<i64>();
            return Err(vec![Reason {
                text: format!("data and offsets take {registers} registers of each lane"),
                accepted: format!("up to {MOST_REGISTERS}, or operands in two shared buffers"),
            }]);
        }
        Ok(plan)
    }

    /// Rounds that fit the registers together.
    fn parts(&self) -> Vec<Range<usize>> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut taken = 0;
        for (at, round) in self.rounds.iter().enumerate() {
            let registers = self.registers(round);
            taken += registers;
            match parts.last_mut() {
                Some(part) if taken <= MOST_REGISTERS => part.end = at + 1,
                _ => {
                    parts.push(at..at + 1);
                    taken = SCRATCH + registers;
                }
            }
        }
        parts
    }

    /// Registers of a lane that a round takes until it is written: words, and what was looked up.
    fn registers(&self, round: &Round) -> i64 {
        (round.kind.steps + self.entries(round)) as i64 + self.own_scratch()
    }

    /// Entries of a lane in all tables.
    fn entries(&self, round: &Round) -> usize {
        round.values() * self.encoding.names().len() + selector_entries(round)
    }

    /// Units of a word, which are also the rows of a block.
    fn width(&self) -> usize {
        self.rounds.first().map_or(1, |round| round.kind.steps * round.kind.sharing)
    }

    /// Registers that every round needs for itself beside its words: halves are written from there.
    fn own_scratch(&self) -> i64 {
        i64::from(self.width() == 2)
    }

    /// Words that a lane holds at once.
    fn most_words(&self) -> i64 {
        let words = |part: &Range<usize>| self.rounds[part.clone()].iter().map(|round| round.kind.steps).sum::<usize>();
        self.chunks.iter().map(words).max().unwrap_or(0) as i64
    }

    /// Registers for what is neither a word as it was read nor looked up.
    fn most_scratch(&self) -> i64 {
        let rounds = self.chunks.iter().map(|part| part.len() as i64).max().unwrap_or(0);
        if self.width() == 4 { SCRATCH } else { rounds * self.own_scratch() }
    }

    pub(crate) fn summary(&self, context: &Context) -> String {
        let what = match self.width() {
            4 => "bytes exchanged in blocks of 4 x 4",
            2 => "halves of words exchanged in blocks of 2 x 2",
            _ => "whole words",
        };
        let entries: usize = self.rounds.iter().map(|round| self.entries(round) * LANES).sum();
        let parts = if self.chunks.len() > 1 { format!(", in {} parts", self.chunks.len()) } else { String::new() };
        format!("{what}, {}; offsets from a table of {entries} entries{parts}", self.passes(context))
    }

    /// What both phases take, in words.
    fn passes(&self, context: &Context) -> String {
        let steps: usize = self.rounds.iter().map(|round| round.kind.steps).sum();
        if [&context.src, &context.dst].iter().any(|operand| operand.memory_kind != MemoryKind::Shared) {
            return format!("{steps} steps");
        }
        let reads: i64 = self.rounds.iter().map(|round| round.src.wavefronts(AccessKind::Load)).sum();
        let writes: i64 = self.rounds.iter().map(|round| round.dst.wavefronts(AccessKind::Store)).sum();
        let floor = tile_floor(context.src.placed.size() * context.src.dtype.bytes());
        if reads == writes {
            format!("{reads} wavefronts in each phase (floor {floor})")
        } else {
            format!("{reads} + {writes} wavefronts (floor {floor} in each phase)")
        }
    }
}

#[cfg(test)]
mod tests;
