//! What is lowered element by element: iterations, who does them when, and what they do.

use tilewright_expr::Var;
use tilewright_expr::points::extent;
use tilewright_ir::tile::{ElementStmt, Kernel, Op, Parallel};
use tilewright_layout::map::Map;

use crate::refusal::Refusal;

/// Iterations, who does them in which step, and what they do.
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    pub(crate) vars: Vec<Var>,
    pub(crate) body: Vec<ElementStmt>,
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
        let (vars, body) = parallel.unfolded();
        let turns = parallel.inner_loop().map_or(1, |(inner, _)| extent(inner));
        Ok(Nest { vars, body: body.to_vec(), steps: steps.with_turns(turns), vector: parallel.vector })
    }

    /// Statements that every thread executes: the threads are the iterations.
    pub(crate) fn of_each_thread(kernel: &Kernel, body: &[ElementStmt]) -> Nest {
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
        let vars = op.vars();
        let element = kernel.op_element(op, &vars)?;
        Some(Nest { vars, body: vec![element], steps, vector: None })
    }
}
