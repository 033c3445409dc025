//! The random tile programs that take longest to compile.

use std::cmp::Reverse;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use proptest::strategy::ValueTree;
use tilewright::compile::{Options, compile};
use tilewright::prelude::Target;

use super::build::program;
use super::check::case;
use super::strategy::sketches;
use super::{drawn, shown};
use crate::tilelang::kernel::kernel_of;

/// A program, and how long it took.
#[derive(Clone, Debug)]
pub struct SlowProgram {
    /// Its number.
    pub number: u64,
    /// CPU time from the kernel to its CUDA text, or to the errors.
    pub time: Duration,
    /// The text of the kernel.
    pub text: String,
}

/// The `most` slowest of the programs with these numbers, the slowest first. Programs whose compilation panics are left
/// out. `clock`: the CPU time of this thread so far.
pub fn slowest_programs(seed: u64, programs: Range<u64>, most: usize, clock: fn() -> Duration) -> Vec<SlowProgram> {
    let strategy = sketches();
    let timed = programs.filter_map(|number| {
        let program = program(&drawn(&strategy, seed, number)?.current());
        let compiled = || {
            let kernel = kernel_of(&case("slow", program.clone())).ok()?;
            let start = clock();
            // How it ends does not matter here.
            let _ = compile(kernel, &Options::new(Target::Sm100a));
            Some(clock().saturating_sub(start))
        };
        let time = catch_unwind(AssertUnwindSafe(compiled)).ok()??;
        Some(SlowProgram { number, time, text: shown(&program) })
    });
    timed.fold(Vec::new(), |slowest, program| slower(slowest, vec![program], most))
}

/// The `most` slowest of two parts of a run.
pub fn slower(mut some: Vec<SlowProgram>, others: Vec<SlowProgram>, most: usize) -> Vec<SlowProgram> {
    some.extend(others);
    some.sort_by_key(|program| Reverse(program.time));
    some.truncate(most);
    some
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A clock that runs faster and faster.
    fn clock() -> Duration {
        static READ: AtomicU64 = AtomicU64::new(0);
        Duration::from_nanos(READ.fetch_add(1, Ordering::Relaxed).pow(2))
    }

    #[test]
    fn the_slowest_come_first() {
        let found = slowest_programs(1, 0..20, 3, clock);
        let numbers: Vec<u64> = found.iter().map(|program| program.number).collect();
        assert_eq!(numbers.len(), 3);
        assert!(numbers.is_sorted_by_key(|number| Reverse(*number)), "{numbers:?}");
        assert!(found.iter().all(|program| program.text.starts_with("kernel random")));
    }
}
