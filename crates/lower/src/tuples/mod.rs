//! What ops on tuples of values share: the registers of tuples, and the user's function that combines two.

mod function;
mod function_registers;

use tilewright_ir::Handle;
use tilewright_ir::thread::{RegArray, Regs, Stmt, Value};

use crate::builder::regs;

pub(crate) use function::Function;
pub(crate) use function_registers::FunctionRegisters;

/// Registers of tuples, for each value an array with a register for each tuple.
pub(crate) type Arrays = Vec<Handle<RegArray>>;

/// The registers of a tuple.
pub(crate) fn registers(of: &Arrays, at: usize) -> Vec<Regs> {
    of.iter().map(|array| regs(*array, at as i64, 1)).collect()
}

/// What is in the registers of a tuple.
pub(crate) fn values(of: &Arrays, at: usize) -> Vec<Value> {
    of.iter().map(|array| Value::reg(*array, at as i64)).collect()
}

/// Assigns each value of a tuple.
pub(crate) fn assigned(to: Vec<Regs>, tuple: Vec<Value>) -> impl Iterator<Item = Stmt> {
    to.into_iter().zip(tuple).map(|(to, value)| Stmt::Assign { to, value })
}
