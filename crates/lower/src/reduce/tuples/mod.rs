//! `reduce_by`: as `reduce`, with a tuple of values for each part of a row, and a function of the user's.

mod context;
mod gathered;
mod make;

pub(crate) use context::TupleContext;
pub(super) use make::MakeTuples;
