//! What can be wrong with an assignment, and how it is said.

use std::fmt;
use std::mem::{Discriminant, discriminant};

use super::boxes::point;
use super::program::Program;

/// What is wrong with an assignment. Operations are numbered in program order, loops and conditions included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An operation names a buffer that the program does not have.
    UnknownBuffer(At),
    /// An operation uses a fragment that is nowhere.
    NotPlaced(At),
    /// A placement has not its fragment's shape.
    WrongShape {
        /// The fragment.
        buffer: String,
        /// The shape of the placement.
        shape: Vec<i64>,
    },
    /// An element has no owner.
    Unowned(Place),
    /// An element is on a thread that the block does not have.
    OutsideBlock {
        /// The element.
        place: Place,
        /// The thread.
        thread: i64,
    },
    /// Two elements of one fragment are in one register.
    SharedSlot {
        /// One of the elements.
        place: Place,
        /// The other one.
        other: Vec<i64>,
        /// Thread and slot.
        owner: (i64, i64),
    },
    /// A view is elsewhere than what it is a view of.
    AliasDiffers {
        /// An element of the view.
        place: Place,
        /// The other buffer of the same storage.
        of: String,
    },
    /// Not one placement for every parallel operation.
    WrongLoops {
        /// The parallel operations of the program.
        program: usize,
        /// The placements.
        assigned: usize,
    },
    /// A placement has not its loop's variables and extents, or executors out of order.
    WrongLoop {
        /// The operation.
        op: usize,
    },
    /// No thread executes an iteration.
    NotExecuted(Iteration),
    /// A thread that the block does not have executes an iteration.
    ExecutorOutside {
        /// The iteration.
        iteration: Iteration,
        /// The thread.
        thread: i64,
    },
    /// An iteration reads an element on a thread that does not own it.
    LoadElsewhere(Mismatch),
    /// An iteration writes an element on other threads than exactly its owners.
    StoreElsewhere(Mismatch),
    /// No thread owns all that an iteration reads.
    NoReader(Iteration),
    /// Every thread reads or writes an element that not every thread owns.
    Floating {
        /// The operation.
        op: usize,
        /// The element.
        place: Place,
        /// Its owners.
        owners: Vec<i64>,
    },
    /// A copy between fragments, where an owner of the copy does not own what is copied.
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
    /// A result of a reduction on a thread that holds no part of what is reduced.
    ReduceElsewhere {
        /// The operation.
        op: usize,
        /// The result.
        dst: Place,
        /// Its owners.
        owners: Vec<i64>,
        /// The threads that hold a part.
        holders: Vec<i64>,
    },
    /// An index outside of a fragment.
    OutOfBounds {
        /// The operation.
        op: usize,
        /// The fragment.
        buffer: String,
        /// The index; `None` is what depends on data.
        index: Vec<Option<i64>>,
    },
    /// A region of a fragment begins where data says.
    UnknownRegion(At),
    /// The shapes of an operation do not fit.
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

/// An access to an element by an iteration that runs elsewhere.
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

/// The faults that are told: the first few of a kind in an operation.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) faults: Vec<Fault>,
    /// The operation that is judged; none while buffers are.
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
            Fault::WrongShape { buffer, shape } => write!(f, "{buffer}: a placement of the shape {shape:?}"),
            Fault::Unowned(place) => write!(f, "{place} has no owner"),
            Fault::OutsideBlock { place, thread } => write!(f, "{place} is on thread {thread}, outside of the block"),
            Fault::SharedSlot { place, other, owner: (thread, slot) } => {
                write!(f, "{place} and {other:?} are both in slot {slot} of thread {thread}")
            }
            Fault::AliasDiffers { place, of } => write!(f, "{place} is not where {of} has it"),
            Fault::WrongLoops { program, assigned } => {
                write!(f, "{program} parallel operations, {assigned} placements")
            }
            Fault::WrongLoop { op } => write!(f, "op {op}: the placement is not of this loop"),
            Fault::NotExecuted(iteration) => write!(f, "{iteration} is not executed"),
            Fault::ExecutorOutside { iteration, thread } => {
                write!(f, "{iteration} runs on thread {thread}, outside of the block")
            }
            Fault::LoadElsewhere(mismatch) => write!(f, "{mismatch} reads"),
            Fault::StoreElsewhere(mismatch) => write!(f, "{mismatch} writes"),
            Fault::NoReader(iteration) => write!(f, "{iteration}: no thread owns all that it reads"),
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
            Fault::OutOfBounds { op, buffer, index } => write!(f, "op {op}: {} is outside", indexed(buffer, index)),
            Fault::UnknownRegion(at) => write!(f, "{at}: the region begins where data says"),
            Fault::Shapes { op, shapes } => write!(f, "op {op}: the shapes {shapes:?} do not fit"),
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

/// A list of threads, long ones cut.
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
