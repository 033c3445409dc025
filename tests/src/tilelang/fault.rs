//! The faults that an assignment can have, and their messages.

use std::fmt;
use std::mem::{Discriminant, discriminant};

use super::boxes::point;
use super::program::Program;

/// What is wrong with an assignment. Operations are numbered in program order, loops and conditions included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An operation names an unknown buffer.
    UnknownBuffer(At),
    /// An operation uses a fragment without a placement.
    NotPlaced(At),
    /// The shape of a placement differs from its fragment's.
    WrongShape {
        /// The fragment.
        buffer: String,
        /// The shape of the placement.
        shape: Vec<i64>,
    },
    /// An element has no owner.
    Unowned(Place),
    /// An element is on a thread outside of the block.
    OutsideBlock {
        /// The element.
        place: Place,
        /// The thread.
        thread: i64,
    },
    /// Two elements of a fragment are in the same register.
    SharedSlot {
        /// One of the elements.
        place: Place,
        /// The other one.
        other: Vec<i64>,
        /// Thread and slot.
        owner: (i64, i64),
    },
    /// A view is placed differently from the viewed buffer.
    AliasDiffers {
        /// An element of the view.
        place: Place,
        /// The other buffer of the same storage.
        of: String,
    },
    /// The number of placements differs from the number of parallel operations.
    WrongLoops {
        /// The number of parallel operations of the program.
        program: usize,
        /// The number of placements.
        assigned: usize,
    },
    /// A placement has other variables or extents than its loop, or unsorted executors.
    WrongLoop {
        /// The operation.
        op: usize,
    },
    /// No thread executes an iteration.
    NotExecuted(Iteration),
    /// A thread outside of the block executes an iteration.
    ExecutorOutside {
        /// The iteration.
        iteration: Iteration,
        /// The thread.
        thread: i64,
    },
    /// An iteration reads an element on a thread that does not own it.
    LoadElsewhere(Mismatch),
    /// An iteration writes an element on threads that are not exactly its owners.
    StoreElsewhere(Mismatch),
    /// No thread owns all that an iteration reads.
    NoReader(Iteration),
    /// All threads read or write an element that not all of them own.
    Floating {
        /// The operation.
        op: usize,
        /// The element.
        place: Place,
        /// Its owners.
        owners: Vec<i64>,
    },
    /// In a copy between fragments, an owner of a destination element does not own the source element.
    CopyElsewhere {
        /// The operation.
        op: usize,
        /// The element that is read.
        src: Place,
        /// Its owners.
        src_owners: Vec<i64>,
        /// The element that is written.
        dst: Place,
        /// Its owners.
        dst_owners: Vec<i64>,
    },
    /// A result of a reduction is on a thread that holds none of the reduced elements.
    ReduceElsewhere {
        /// The operation.
        op: usize,
        /// The result.
        dst: Place,
        /// Its owners.
        owners: Vec<i64>,
        /// The threads that hold reduced elements.
        holders: Vec<i64>,
    },
    /// An index is out of bounds of a fragment.
    OutOfBounds {
        /// The operation.
        op: usize,
        /// The fragment.
        buffer: String,
        /// The index; `None` for coordinates that depend on data.
        index: Vec<Option<i64>>,
    },
    /// The start of a region of a fragment depends on data.
    UnknownRegion(At),
    /// The shapes of an operation do not match.
    Shapes {
        /// The operation.
        op: usize,
        /// The shapes.
        shapes: Vec<Vec<i64>>,
    },
}

/// A buffer in an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The operation.
    pub op: usize,
    /// The buffer.
    pub buffer: String,
}

/// An element of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The buffer.
    pub buffer: String,
    /// One index per dimension.
    pub element: Vec<i64>,
}

impl Place {
    /// An element by its row-major position.
    pub(crate) fn of(program: &Program, buffer: &str, element: usize) -> Place {
        let shape = program.buffer(buffer).map(|buffer| buffer.shape.as_slice()).unwrap_or_default();
        Place { buffer: buffer.to_string(), element: point(element as i64, shape) }
    }
}

/// An iteration of a parallel operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iteration {
    /// The operation.
    pub op: usize,
    /// The values of the loop variables.
    pub at: Vec<i64>,
}

/// An access to an element by an iteration that runs on other threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The iteration.
    pub iteration: Iteration,
    /// The element.
    pub place: Place,
    /// The threads that execute the iteration.
    pub executors: Vec<i64>,
    /// The threads that own the element.
    pub owners: Vec<i64>,
}

/// The reported faults: the first few of each kind per operation.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) faults: Vec<Fault>,
    /// The operation that is being checked; `None` while buffers are checked.
    pub(crate) op: Option<usize>,
    told: Vec<(Option<usize>, Discriminant<Fault>, usize)>,
}

const MOST_OF_A_KIND: usize = 8;

impl Report {
    pub(crate) fn add(&mut self, fault: Fault) {
        let (op, kind) = (self.op, discriminant(&fault));
        let told = match self.told.iter().position(|told| (told.0, told.1) == (op, kind)) {
            Some(at) => at,
            None => {
                self.told.push((op, kind, 0));
                self.told.len() - 1
            }
        };
        if let Some((.., count)) = self.told.get_mut(told).filter(|told| told.2 < MOST_OF_A_KIND) {
            *count += 1;
            self.faults.push(fault);
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::UnknownBuffer(at) => write!(f, "{at}: no such buffer"),
            Fault::NotPlaced(at) => write!(f, "{at}: the fragment has no placement"),
            Fault::WrongShape { buffer, shape } => write!(f, "{buffer}: the placement has shape {shape:?}"),
            Fault::Unowned(place) => write!(f, "{place} has no owner"),
            Fault::OutsideBlock { place, thread } => write!(f, "{place} is on thread {thread}, outside of the block"),
            Fault::SharedSlot { place, other, owner: (thread, slot) } => {
                write!(f, "{place} and {other:?} are both in slot {slot} of thread {thread}")
            }
            Fault::AliasDiffers { place, of } => write!(f, "{place} is placed differently in {of}"),
            Fault::WrongLoops { program, assigned } => {
                write!(f, "{program} parallel operations, {assigned} placements")
            }
            Fault::WrongLoop { op } => write!(f, "op {op}: the placement is of another loop"),
            Fault::NotExecuted(iteration) => write!(f, "{iteration} is not executed"),
            Fault::ExecutorOutside { iteration, thread } => {
                write!(f, "{iteration} runs on thread {thread}, outside of the block")
            }
            Fault::LoadElsewhere(mismatch) => write!(f, "{mismatch} reads"),
            Fault::StoreElsewhere(mismatch) => write!(f, "{mismatch} writes"),
            Fault::NoReader(iteration) => write!(f, "{iteration}: no thread owns all it reads"),
            Fault::Floating { op, place, owners } => {
                write!(f, "op {op}: every thread accesses {place}, owned by {}", Threads(owners))
            }
            Fault::CopyElsewhere { op, src, src_owners, dst, dst_owners } => {
                let (src_owners, dst_owners) = (Threads(src_owners), Threads(dst_owners));
                write!(f, "op {op}: {dst} is owned by {dst_owners}, but {src} by {src_owners}")
            }
            Fault::ReduceElsewhere { op, dst, owners, holders } => {
                let (owners, holders) = (Threads(owners), Threads(holders));
                write!(f, "op {op}: {dst} is owned by {owners}, but parts of it are on {holders}")
            }
            Fault::OutOfBounds { op, buffer, index } => write!(f, "op {op}: {} out of bounds", indexed(buffer, index)),
            Fault::UnknownRegion(at) => write!(f, "{at}: the region's start depends on data"),
            Fault::Shapes { op, shapes } => write!(f, "op {op}: the shapes {shapes:?} do not match"),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op {}, {}", self.op, self.buffer)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.buffer, self.element)
    }
}

impl fmt::Display for Iteration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op {}, iteration {:?}", self.op, self.at)
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (executors, owners) = (Threads(&self.executors), Threads(&self.owners));
        write!(f, "{} runs on {executors}, but {} is owned by {owners}, which it", self.iteration, self.place)
    }
}

/// A list of threads; long ones are truncated.
struct Threads<'a>(&'a [i64]);

impl fmt::Display for Threads<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        match self.0.get(..SHOWN) {
            Some(first) if self.0.len() > SHOWN => write!(f, "{first:?} and {} more threads", self.0.len() - SHOWN),
            _ => write!(f, "{:?}", self.0),
        }
    }
}

fn indexed(buffer: &str, index: &[Option<i64>]) -> String {
    let index: Vec<String> =
        index.iter().map(|index| index.map_or("?".to_string(), |index| index.to_string())).collect();
    format!("{buffer}[{}]", index.join(", "))
}
