//! Runs a kernel under several schedules.

use std::fmt::Debug;

use tilewright_vgpu::{Arg, BufferId, Fault, FaultKind, Launch, Memory, Module, RunError};

/// Schedules that a test tries.
pub(crate) const SEEDS: u64 = 20;

/// How a kernel ended, and what it stored.
pub(crate) type Outcome<T = u32> = (Result<(), RunError>, Vec<T>);

pub(crate) fn module(text: &str) -> Module {
    Module::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// A launch of the kernel `k` by one CTA, with the addresses of buffers as arguments.
pub(crate) fn launch(threads: u32, buffers: &[BufferId]) -> Launch {
    Launch {
        kernel: "k".to_string(),
        grid: [1, 1, 1],
        block: [threads, 1, 1],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: 0,
        args: buffers.iter().map(|buffer| Arg::Buffer { buffer: *buffer, byte_offset: 0 }).collect(),
    }
}

/// The 32-bit words of a buffer.
pub(crate) fn words_of(memory: &Memory, buffer: BufferId) -> Vec<u32> {
    let bytes = memory.bytes(buffer);
    let words = bytes.chunks_exact(4);
    words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

/// What a kernel stores: the same in all schedules.
pub(crate) fn agreed<T: Debug + PartialEq>(execute: impl Fn(u64) -> Outcome<T>) -> Vec<T> {
    let of = |seed: u64| {
        let (result, words) = execute(seed);
        result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        words
    };
    let first = of(0);
    (1..SEEDS).for_each(|seed| assert_eq!(of(seed), first, "seed {seed}"));
    first
}

/// The fault that a run ended with.
pub(crate) fn fault_of<T>((result, _): Outcome<T>) -> Fault {
    match result {
        Err(RunError::Fault(fault)) => *fault,
        other => panic!("{other:?}"),
    }
}

/// The fault in the first schedule that has one.
pub(crate) fn first_fault(execute: impl Fn(u64) -> Outcome) -> Fault {
    let failed = (0..SEEDS).map(execute).find(|(result, _)| result.is_err());
    fault_of(failed.expect("a schedule with a fault"))
}

/// Whether a race, or an unwritten byte if the order hides the race, is found in every schedule.
pub(crate) fn always_races(execute: impl Fn(u64) -> Outcome) -> bool {
    let kinds = [FaultKind::Race, FaultKind::UninitializedRead];
    (0..SEEDS).all(|seed| matches!(execute(seed).0, Err(RunError::Fault(fault)) if kinds.contains(&fault.kind)))
}
