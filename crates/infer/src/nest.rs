//! Every op and loop as a nest: iterations without an order, and which elements each of them touches.

use std::sync::Arc;

use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::tile::vectors::Places;
use tilewright_ir::tile::{Buffer, Effect, Kernel};
use tilewright_layout::DType;

use crate::pattern::Pattern;

/// An access of a fragment by the iterations of a nest.
#[derive(Clone, Debug)]
pub(crate) struct Touch {
    /// The fragment that owns the storage.
    pub(crate) storage: Handle<Buffer>,
    pub(crate) effect: Effect,
    /// The granules that each iteration touches.
    pub(crate) pattern: Arc<Pattern>,
    pub(crate) span: Span,
    /// The access as text: `fragment[i, 0]`.
    pub(crate) title: String,
}

impl Touch {
    /// Whether every iteration touches exactly one granule, and no two the same.
    pub(crate) fn is_own(&self) -> bool {
        self.pattern.is_own()
    }
}

/// An access of global or shared memory by the iterations of a nest.
#[derive(Clone, Debug)]
pub(crate) struct MemoryTouch {
    pub(crate) buffer: Handle<Buffer>,
    pub(crate) writes: bool,
    pub(crate) is_shared: bool,
    /// Where each iteration accesses the buffer.
    pub(crate) places: Arc<Places>,
    pub(crate) dtype: DType,
    /// The most bytes that a thread moves at once.
    pub(crate) widest: i64,
    /// Whether every iteration does it once, without a condition.
    pub(crate) is_plain: bool,
    /// Whether neighbouring iterations may do it together.
    pub(crate) is_movable: bool,
    /// Elements of an iteration, which are neighbours in memory.
    pub(crate) elements: usize,
    /// How often an iteration does it: the turns of the inner loops around it, other than those of [`Nest::turns`].
    pub(crate) turns: usize,
}

/// The rows of a scan, whose elements are the iterations of a nest.
#[derive(Clone, Debug)]
pub(crate) struct Scanned {
    /// The row of each element.
    pub(crate) rows: Arc<Pattern>,
    /// The elements row by row, each row in the order of the scan.
    pub(crate) in_order: Vec<u32>,
    /// The number of elements of a row.
    pub(crate) extent: usize,
}

/// Iterations, and what they touch.
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    /// The loop or op as text: `parallel i, j`.
    pub(crate) title: String,
    pub(crate) span: Span,
    /// Iterations along each dimension, the last fastest.
    pub(crate) extents: Vec<i64>,
    /// Accesses of fragments; those with the same pattern are one.
    pub(crate) touches: Vec<Touch>,
    /// Accesses of global and shared memory.
    pub(crate) memory: Vec<MemoryTouch>,
    /// The most elements that a thread takes together, if the user set a limit.
    pub(crate) vector: Option<i64>,
    /// Turns of the inner loop that is the whole body, which count as iterations of accesses; 1 if there is none.
    pub(crate) turns: usize,
    /// The number of neighbouring steps that are done together.
    pub(crate) together: usize,
    /// How often it is executed: the iterations of the serial loops around it.
    pub(crate) executions: u64,
    /// For a scan, its rows.
    pub(crate) scanned: Option<Scanned>,
    /// Whether only one thread may do an iteration: the nest reads memory that it writes, and another thread could read
    /// what the first has written.
    pub(crate) is_alone: bool,
}

impl Nest {
    pub(crate) fn iterations(&self) -> usize {
        self.extents.iter().product::<i64>().max(0) as usize
    }

    /// A nest that touches nothing yet.
    pub(crate) fn empty(title: String, span: Span, extents: Vec<i64>) -> Nest {
        Nest {
            title,
            span,
            extents,
            touches: Vec::new(),
            memory: Vec::new(),
            vector: None,
            turns: 1,
            together: 1,
            executions: 1,
            scanned: None,
            is_alone: false,
        }
    }

    /// Whether it reads memory that it writes.
    pub(crate) fn reads_what_it_writes(&self, kernel: &Kernel) -> bool {
        let (written, read): (Vec<_>, Vec<_>) = self.memory.iter().partition(|touch| touch.writes);
        let is_read = |storage| read.iter().any(|touch| kernel.storage(touch.buffer) == storage);
        written.iter().any(|touch| is_read(kernel.storage(touch.buffer)))
    }
}
