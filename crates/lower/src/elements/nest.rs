//! What is lowered element by element: iterations, who does them when, and what they do.

use tilewright_expr::Var;
use tilewright_ir::tile::{Claim, Element, Kernel, Op, OpKind, Parallel, Tile, Value};
use tilewright_layout::map::Map;

use crate::refusal::Refusal;

/// Iterations, who does them in which step, and what they do.
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    pub(crate) vars: Vec<Var>,
    pub(crate) body: Vec<Element>,
    /// The iteration that each thread does in each step.
    pub(crate) steps: Map,
    /// Elements that a thread takes together, at most, if the user says so.
    pub(crate) vector: Option<i64>,
}

impl Nest {
    /// A parallel loop that was laid out. Error: why its layout cannot be used.
    pub(crate) fn of_parallel(kernel: &Kernel, parallel: &Parallel) -> Result<Nest, Refusal> {
        let layout = parallel.layout.as_ref().ok_or("this loop has no layout")?;
        let steps =
            Map::of_layout(layout, kernel.threads as usize).map_err(|why| format!("the layout of this loop {why}"))?;
        let vector = parallel.vector;
        let Some((inner, body)) = parallel.inner_loop() else {
            return Ok(Nest { vars: parallel.vars.clone(), body: parallel.body.clone(), steps, vector });
        };
        // The turns of a loop that is all there is are steps of their own.
        let turns = inner.range().hi as usize + 1;
        let mut each = Map::empty(steps.threads(), steps.elements() * turns);
        for (thread, step, iteration) in steps.entries() {
            for turn in 0..turns {
                each.put(thread, step * turns + turn, iteration * turns + turn);
            }
        }
        let vars = parallel.vars.iter().chain([inner]).cloned().collect();
        Ok(Nest { vars, body: body.to_vec(), steps: each, vector })
    }

    /// Statements that every thread executes: the threads are the iterations.
    pub(crate) fn of_each_thread(kernel: &Kernel, body: &[Element]) -> Nest {
        let threads = kernel.threads as usize;
        let steps = Map::of_slots(threads, threads, |thread, _| Some(thread), 1);
        Nest { vars: vec![kernel.tid()], body: body.to_vec(), steps, vector: None }
    }

    /// A condition around ops, which every thread evaluates.
    pub(crate) fn of_condition(kernel: &Kernel) -> Nest {
        Nest { vars: Vec::new(), body: Vec::new(), steps: Map::replicated(kernel.threads as usize, 1), vector: None }
    }

    /// An op whose elements move one by one, if it was laid out; `None` for other ops.
    pub(crate) fn of_op(kernel: &Kernel, op: &Op) -> Option<Nest> {
        let steps = Map::of_layout(op.layout.as_ref()?, kernel.threads as usize).ok()?;
        let extents = op.operands.first()?.moving_extents();
        let vars: Vec<Var> = extents.iter().enumerate().map(|(at, e)| Var::new(format!("#{at}"), 0, e - 1)).collect();
        let access = |tile: &Tile| tile.access(&vars, op.span);
        let to = access(op.operands.first()?);
        let element = match (op.kind, op.operands.get(1)) {
            (OpKind::Copy, Some(src)) => Element::Store { to, value: Value::Load(access(src)), claim: Claim::None },
            (OpKind::AtomicAdd, Some(src)) => Element::AtomicAdd { to, value: Value::Load(access(src)) },
            (OpKind::Fill, _) => Element::Store { to, value: Value::Const(op.detail.constant()?), claim: Claim::None },
            _ => return None,
        };
        Some(Nest { vars, body: vec![element], steps, vector: None })
    }
}
