//! Golden cases for layout inference: small tile programs, the answers of TileLang's inference, and a judge that
//! decides by enumeration whether an answer is correct.
//!
//! The cases are the files in `tests/golden/tilelang`; a [`Program`] is plain data, independent of the compiler. An
//! [`Assignment`] contains the placement of elements and iterations as tables: that of the reference, of a witness, or
//! of the compiler under test. [`judge()`] finds faults in it, and [`races()`] finds races in the program itself.

mod accesses;
mod arithmetic;
mod assignment;
mod boxes;
mod case;
mod compare;
mod contents;
mod debug_stores;
mod evaluate;
mod evaluate_elements;
mod evaluate_tiles;
mod exceptions;
mod expr;
mod fault;
mod inferred;
mod inputs;
mod json;
mod judge;
mod judge_buffers;
mod judge_parallel;
mod judge_regions;
mod kernel;
mod kernel_elements;
mod numbers;
mod program;
mod quality;
mod races;
mod random;
mod read;
mod read_expr;
mod read_ops;
mod run;
mod storage;
mod verdicts;
mod walk;

#[cfg(test)]
mod tests;

pub use assignment::{Assignment, LoopPlacement, Placement};
pub use case::{Case, Class, Expected, ExpectedAccess, ExpectedLoop, Verdict};
pub use exceptions::reason;
pub use expr::{Index, IndexOp, Load, Value, ValueOp};
pub use fault::{At, Fault, Iteration, Mismatch, Place};
pub use inferred::assignment;
pub use judge::judge;
pub use kernel::kernel_of;
pub use program::{
    Buffer, Element, Gemm, Layout, Loop, LoopKind, Op, Parallel, Program, Reduce, ReduceKind, Region, RegionRange,
    Scope, Store, WarpPolicy,
};
pub use quality::{Comparison, Width};
pub use races::{Race, races};
pub use random::{ProgramReport, SlowProgram, accepted_programs, run_programs, slower, slowest_programs};
pub use read::{read_case, read_folder};
pub use run::{RunOutcome, run_case};
pub use verdicts::{Outcome, judge_case};
