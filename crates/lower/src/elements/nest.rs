//! Nests that are lowered element by element: the iterations, the thread and step that execute each, and the
//! statements.

use std::ops::Range;

use tilewright_expr::Var;
use tilewright_expr::points::extent;
use tilewright_ir::tile::vectors::firsts;
use tilewright_ir::tile::{Bound, ElementStmt, Kernel, Op, Parallel, Space};
use tilewright_layout::map::Map;

use crate::builder::Builder;
use crate::refusal::Refusal;

/// A nest of iterations that is lowered element by element.
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    /// The variables of the iteration, outermost first.
    pub(crate) vars: Vec<Var>,
    /// The statements of one iteration.
    pub(crate) body: Vec<ElementStmt>,
    /// The iteration that each thread does in each step.
    pub(crate) steps: Map,
    /// The most elements that a thread accesses at once, if the user says so.
    pub(crate) vector: Option<i64>,
    /// Indices that are known to be inside of their tensors here.
    pub(crate) inside: Vec<Bound>,
}

impl Nest {
    /// The nest of a parallel loop with a layout. Error: why the layout cannot be used.
    pub(crate) fn of_parallel(builder: &Builder, kernel: &Kernel, parallel: &Parallel) -> Result<Nest, Refusal> {
        let layout = parallel.layout.as_ref().ok_or("this loop has no layout")?;
        let steps = builder.map_of(layout).map_err(|why| format!("the layout of this loop {why}"))?;
        let (vars, body) = parallel.unfolded(kernel);
        let turns = parallel.inner_loop(kernel).map_or(1, |(inner, _)| extent(inner));
        let steps = steps.once_per_thread().with_turns(turns);
        let steps = if body.iter().any(gives_old) { by_one_thread(kernel, body, steps)? } else { steps };
        Ok(Nest { vars, body: body.to_vec(), steps, vector: parallel.vector, inside: Vec::new() })
    }

    /// The nest of statements that every thread executes: the threads are the iterations.
    pub(crate) fn of_each_thread(kernel: &Kernel, body: &[ElementStmt]) -> Nest {
        let threads = kernel.threads as usize;
        let steps = Map::of_slots(threads, threads, |thread, _| Some(thread), 1);
        Nest { vars: vec![kernel.tid()], body: body.to_vec(), steps, vector: None, inside: Vec::new() }
    }

    /// The part of the nest that is executed in these steps.
    pub(super) fn of_steps(&self, steps: Range<usize>) -> Nest {
        let at = |thread: usize, slot: usize| self.steps.at(thread, steps.start + slot);
        let steps = Map::of_slots(self.steps.threads(), self.steps.elements(), at, steps.len());
        Nest { steps, ..self.clone() }
    }

    /// The nest of a condition around ops, which every thread evaluates.
    pub(crate) fn of_condition(kernel: &Kernel) -> Nest {
        Nest {
            vars: Vec::new(),
            body: Vec::new(),
            steps: Map::replicated(kernel.threads as usize, 1),
            vector: None,
            inside: Vec::new(),
        }
    }

    /// The nest of an op whose elements move one by one, if the op has a layout; `None` for other ops.
    pub(crate) fn of_op(builder: &Builder, kernel: &Kernel, op: &Op) -> Option<Nest> {
        let steps = builder.map_of(op.layout.as_ref()?).ok()?.once_per_thread();
        let vars = op.vars();
        let element = kernel.op_element(op, &vars)?;
        Some(Nest { vars, body: vec![element], steps, vector: None, inside: Vec::new() })
    }
}

/// Whether it uses the old element of an atomic operation.
fn gives_old(element: &ElementStmt) -> bool {
    element.has_atomic(&|atomic| atomic.old.is_some())
}

/// The steps of the first thread of each iteration: only the thread that executes an atomic operation knows the old element.
/// Error: others hold copies of what the iterations write.
fn by_one_thread(kernel: &Kernel, body: &[ElementStmt], steps: Map) -> Result<Map, Refusal> {
    let firsts = firsts(&steps, &steps.owners());
    let at = |thread: usize, slot: usize| steps.at(thread, slot).filter(|_| firsts[slot][thread]);
    let of_firsts = Map::of_slots(steps.threads(), steps.elements(), at, steps.slots());
    let mut held = None;
    for element in body {
        element.for_each_access(&mut |access, writes| {
            let buffer = &kernel.buffers[access.buffer];
            if writes && buffer.space == Space::Fragment {
                held = Some(&buffer.name);
            }
        });
    }
    match held.filter(|_| of_firsts.entries().count() != steps.entries().count()) {
        None => Ok(of_firsts),
        Some(name) => Err(Refusal::Limit {
            text: format!(
                "several threads hold copies of the elements of `{name}`, and only one of them gets the old element of an \
                 atomic operation"
            ),
            help: "store it to shared memory instead, and read it from there in the next loop",
        }),
    }
}
