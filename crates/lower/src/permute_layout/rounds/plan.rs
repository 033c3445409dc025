//! A move in rounds: its registers, its tables, and its summary.

use std::ops::Range;

use tilewright_diag::counted;
use tilewright_expr::Expr;
use tilewright_ir::plan::{MemoryKind, Reason};
use tilewright_layout::access::{AccessKind, LANES, tile_floor};

use super::round::Round;
use super::table::{Encoding, selector_entries};
use crate::permute_layout::context::{Context, MOST_REGISTERS};

/// Registers for intermediate bytes; all rounds use the same.
const SCRATCH: i64 = 4;

/// A move in rounds.
pub(crate) struct RoundPlan {
    pub(super) rounds: Vec<Round>,
    pub(super) encoding: Encoding,
    /// Where the source begins, in elements.
    pub(super) src: Expr,
    /// Where the destination begins, in elements.
    pub(super) dst: Expr,
    /// Elements of a word.
    pub(super) per_word: i64,
    /// Rounds that are read before any of them is written.
    pub(super) chunks: Vec<Range<usize>>,
}

impl RoundPlan {
    /// The plan. Error: its tables are too large, or it needs too many registers and operands that share storage
    /// cannot move in parts.
    pub(super) fn new(
        context: &Context,
        rounds: Vec<Round>,
        (src, dst): (Expr, Expr),
    ) -> Result<RoundPlan, Vec<Reason>> {
        let encoding = Encoding::of(&rounds).ok_or_else(|| {
            vec![Reason {
                text: "the tile spans too many bytes for a table of its offsets".to_string(),
                accepted: "tiles that span at most 1 GiB".to_string(),
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

    /// The rounds in groups that fit the registers.
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

    /// Registers of a lane that a round takes until it is written: words, and the entries that were looked up.
    fn registers(&self, round: &Round) -> i64 {
        (round.shape.steps() + self.entries(round)) as i64 + self.own_scratch()
    }

    /// Entries that a lane looks up for a round, in all tables.
    fn entries(&self, round: &Round) -> usize {
        round.values() * self.encoding.names().len() + selector_entries(round)
    }

    /// Units of a word, which are also the rows of a block.
    fn width(&self) -> usize {
        self.rounds.first().map_or(1, |round| round.shape.width())
    }

    /// Registers that every round needs for itself besides its words: exchanged halves are written from there.
    pub(super) fn own_scratch(&self) -> i64 {
        i64::from(self.width() == 2)
    }

    /// The most words that a lane holds at once.
    pub(super) fn most_words(&self) -> i64 {
        let words =
            |part: &Range<usize>| self.rounds[part.clone()].iter().map(|round| round.shape.steps()).sum::<usize>();
        self.chunks.iter().map(words).max().unwrap_or(0) as i64
    }

    /// The most registers for intermediate values of the exchange.
    pub(super) fn most_scratch(&self) -> i64 {
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

    /// The cost of both phases, as text.
    fn passes(&self, context: &Context) -> String {
        let steps: usize = self.rounds.iter().map(|round| round.shape.steps()).sum();
        if [&context.src, &context.dst].iter().any(|operand| operand.memory_kind != MemoryKind::Shared) {
            return counted(steps, "step");
        }
        let reads: i64 = self.rounds.iter().map(|round| round.src.wavefronts(AccessKind::Load)).sum();
        let writes: i64 = self.rounds.iter().map(|round| round.dst.wavefronts(AccessKind::Store)).sum();
        let floor = tile_floor(context.src.placed.size() * context.src.dtype.bytes());
        if reads == writes {
            format!("{} in each phase (floor {floor})", counted(reads, "wavefront"))
        } else {
            format!("{reads} + {writes} wavefronts (floor {floor} in each phase)")
        }
    }
}
