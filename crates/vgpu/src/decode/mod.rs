//! Turns a kernel and the functions it calls into a [`Program`].
//!
//! Names, labels and modifiers are resolved once. An unsupported form is recorded with its line, and decoding
//! continues, so that a launch can report all of them. The registers and local variables of a function exist once per
//! kernel: since recursion is not supported, no thread has two active calls of the same function.

mod arith;
mod bulk;
mod call;
mod cancel;
mod control;
mod convert;
mod copy;
mod decoder;
mod float;
mod instruction;
mod kernel;
mod matrix;
mod mbarrier;
mod memory;
mod mods;
mod nearest;
mod operand;
mod scalar;
mod scope;
mod storage;
mod symbol;
mod table;
mod tensor;
mod traced;
mod warpgroup;

pub(crate) use kernel::decode;
pub(crate) use memory::atomic_of_element;
pub use table::{Instruction, Unit, instructions};
