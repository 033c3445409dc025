//! A schedule whose addresses are not given by an expression: each offset is looked up in a table, once.

use std::ops::Range;

use tilewright_expr::{Expr, Var};
use tilewright_ir::Handle;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Cond, Memory, RegArray, Stmt};
use tilewright_layout::access::LANES;

use super::context::{Context, MOST_REGISTERS, staged};
use super::entry::{HIGH, MOST_HIGH, pair, unpaired};
use super::listed::Listed;
use super::steps::Steps;
use crate::builder::{Builder, regs};

/// The most steps whose offsets are looked up together.
const TOGETHER: usize = 4;
/// The entry of an idle lane.
const IDLE: i64 = -1;

/// A schedule with its offsets.
pub(crate) struct OffsetPlan {
    steps: Steps,
    /// The positions of the source's elements.
    src: Listed,
    /// The positions of the destination's elements.
    dst: Listed,
    /// Steps that are read before any of them is written.
    chunk: usize,
}

/// Steps that are read before any of them is written.
struct StepRun {
    steps: Range<usize>,
    /// The offsets of every step.
    offsets: Vec<Offsets>,
    /// The registers of the elements.
    array: Handle<RegArray>,
}

/// Both offsets of a step, as expressions.
struct Offsets {
    src: Expr,
    dst: Expr,
}

/// Steps in groups of 4, and what is left in groups of 2 and 1.
fn groups(steps: Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut first = steps.start;
    for width in [TOGETHER, 2, 1] {
        while first + width <= steps.end {
            found.push(first..first + width);
            first += width;
        }
    }
    found
}

impl OffsetPlan {
    /// A plan. Error: data and offsets do not fit the registers, and operands that share storage cannot move in parts.
    pub(crate) fn new(context: &Context, steps: Steps, src: Listed, dst: Listed) -> Result<OffsetPlan, Vec<Reason>> {
        let far = src.positions.iter().chain(&dst.positions).find(|position| i32::try_from(**position).is_err());
        if let Some(far) = far {
            return Err(vec![Reason {
                text: format!("an element lies {far} elements from the first"),
                accepted: "tiles whose offsets fit 31 bits".to_string(),
            }]);
        }
        let count = steps.elements.len();
        let mut plan = OffsetPlan { steps, src, dst, chunk: count };
        let per_step = context.registers_of_element() + plan.entries_per_step();
        let registers = count as i64 * per_step;
        if registers > MOST_REGISTERS {
            if context.may_alias {
                return Err(vec![Reason {
                    text: format!("data and offsets take {registers} registers of each lane"),
                    accepted: format!("up to {MOST_REGISTERS}, or operands in two shared buffers"),
                }]);
            }
            plan.chunk = (MOST_REGISTERS / per_step) as usize / TOGETHER * TOGETHER;
        }
        Ok(plan)
    }

    /// Whether one entry holds both offsets, since they are small.
    fn is_packed(&self) -> bool {
        let most = |listed: &Listed| listed.positions.iter().copied().max().unwrap_or(0);
        most(&self.src) < HIGH && most(&self.dst) < MOST_HIGH
    }

    fn entries_per_step(&self) -> i64 {
        if self.is_packed() { 1 } else { 2 }
    }

    pub(crate) fn summary(&self) -> String {
        let entries = self.steps.elements.len() * LANES * self.entries_per_step() as usize;
        let parts = self.steps.elements.len().div_ceil(self.chunk);
        let parts = if parts > 1 { format!(", in {parts} parts") } else { String::new() };
        format!("offsets from a table of {entries} entries{parts}")
    }

    /// The entries of a table: for each group of steps, lane by lane.
    fn entries(&self, entry: impl Fn(usize) -> i64) -> Vec<i64> {
        let of_group = |steps: Range<usize>| {
            let of_lane = |lane: usize| {
                let group = &self.steps.elements[steps.clone()];
                group.iter().map(|step| step[lane].map_or(IDLE, &entry)).collect::<Vec<_>>()
            };
            (0..LANES).flat_map(of_lane).collect::<Vec<_>>()
        };
        groups(0..self.steps.elements.len()).into_iter().flat_map(of_group).collect()
    }

    pub(crate) fn build(&self, context: &Context, builder: &mut Builder) -> Vec<Stmt> {
        let (from, to) = (&self.src.positions, &self.dst.positions);
        let tables = if self.is_packed() {
            vec![("offset", self.entries(|element| pair(from[element], to[element])))]
        } else {
            vec![("from", self.entries(|element| from[element])), ("to", self.entries(|element| to[element]))]
        };
        let base = format!("{}_offsets", builder.program.name);
        let tables: Vec<(&str, Handle<Memory>)> =
            tables.into_iter().map(|(name, entries)| (name, builder.table(&base, entries, context.span))).collect();
        let mut body = Vec::new();
        let array = builder.staging(context.src.dtype, self.chunk as i64, &mut body);
        let count = self.steps.elements.len();
        for first in (0..count).step_by(self.chunk) {
            let steps = first..(first + self.chunk).min(count);
            let offsets = self.lookups(context, builder, &tables, steps.clone(), &mut body);
            let part = StepRun { steps, offsets, array };
            let reads = self.phase(context, builder, &part, false);
            let writes = self.phase(context, builder, &part, true);
            body = staged(context, body, reads, writes);
        }
        body
    }

    /// Looks up the offsets of these steps, of which the first is a multiple of [`TOGETHER`].
    fn lookups(
        &self,
        context: &Context,
        builder: &mut Builder,
        tables: &[(&str, Handle<Memory>)],
        steps: Range<usize>,
        body: &mut Vec<Stmt>,
    ) -> Vec<Offsets> {
        let lane = Expr::var(&context.lane);
        let mut found: Vec<Vec<Expr>> = vec![Vec::new(); tables.len()];
        for group in groups(steps.clone()) {
            let (first, width) = (group.start, group.len());
            for ((name, table), found) in tables.iter().zip(&mut found) {
                let most = builder.program.memories[*table].values.iter().copied().max().unwrap_or(0);
                let vars: Vec<Var> = (0..width).map(|_| Var::new(builder.fresh(name), IDLE, most)).collect();
                found.extend(vars.iter().map(Expr::var));
                let index = &lane * width as i64 + (first * LANES) as i64;
                body.push(Stmt::Lookup { vars, table: *table, index });
            }
        }
        let of_step = |at: usize| match &found[..] {
            [packed] => {
                let [src, dst] = unpaired(&packed[at]);
                Offsets { src, dst }
            }
            separate => Offsets { src: separate[0][at].clone(), dst: separate[1][at].clone() },
        };
        steps.enumerate().map(|(at, _)| of_step(at)).collect()
    }

    /// All accesses of one side in the steps of a part.
    fn phase(&self, context: &Context, builder: &mut Builder, part: &StepRun, is_store: bool) -> Vec<Stmt> {
        let StepRun { steps, offsets, array } = part;
        let lane = Expr::var(&context.lane);
        let mut phase = Vec::new();
        for ((step, offsets), at) in steps.clone().zip(offsets).zip(0..) {
            let register = regs(*array, at, 1);
            let access = if is_store {
                let index = builder.simplifier.simplify(&(&self.dst.start + &offsets.dst));
                Stmt::Store { memory: context.dst.memory, index, from: register }
            } else {
                let index = builder.simplifier.simplify(&(&self.src.start + &offsets.src));
                Stmt::Load { to: register, memory: context.src.memory, index }
            };
            let busy: Vec<bool> = self.steps.elements[step].iter().map(Option::is_some).collect();
            let count = busy.iter().filter(|busy| **busy).count();
            let idle = |cond| Stmt::If { cond, body: vec![access.clone()] };
            phase.push(if count == LANES {
                access
            } else if busy[..count].iter().all(|busy| *busy) {
                idle(Cond::Less(lane.clone(), Expr::constant(count as i64)))
            } else {
                // The entry of an idle lane is negative, and so is its quotient.
                idle(Cond::Less(Expr::constant(IDLE), offsets.dst.clone()))
            });
        }
        phase
    }
}
