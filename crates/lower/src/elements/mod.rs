//! Lowers statements on elements to thread statements: every thread executes its iterations, one step after the other.
//!
//! Numbers that depend on the iteration are listed for all threads, and become expressions of the thread, or tables
//! where no expression fits. Threads that are idle in a step are excluded by exact conditions ([`crate::threads`]).
//! Neighbouring steps whose accesses are adjacent in memory share one access ([`chunk`]).

mod accesses;
mod active_step;
mod atomic_vectors;
mod cases;
mod chunk;
mod known_slots;
mod lowering;
mod matrices;
mod memory;
mod moved;
mod names;
mod nest;
mod points;
mod repeated;
mod statements;
mod values;
mod variant;
mod whole;

pub(crate) use lowering::lower_value;
pub(crate) use nest::Nest;
pub(crate) use values::with_product;
pub(crate) use variant::{ByElements, ELEMENTS, NestByElements};
