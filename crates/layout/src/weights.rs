//! The weights of a cost: what work of the hardware counts where layouts, variants of ops and conversions are compared.
//!
//! The unit is half an *issue slot*. An SM has four warp schedulers, each of which issues one instruction a clock (CUDA C++
//! Programming Guide, "Compute Capability 9.0" and "Compute Capability 10.0"), so a slot is a quarter of a clock of an SM.

/// Weights in halves of an issue slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// An instruction of a warp: one slot. Inference counts those of memory for all warps, and again for the busiest warp,
    /// since these follow each other.
    pub instruction: i64,
    /// A wavefront of shared memory, a sector of global memory, or a shuffle: 8 slots. They occupy units that all warps of
    /// an SM share: shared memory moves 128 bytes a clock and exchanges 32 lanes a clock (4 slots); an SM's part of the
    /// bandwidth of HBM is about half a sector a clock on H100 (3.35 TB/s by its data sheet, 132 SMs, taken at 1.75 GHz: 9
    /// slots).
    pub pass: i64,
    /// How many passes weigh one unit in inference, where they only break ties: the layouts of a fragment move the same
    /// bytes, and L1 serves the second instruction of a warp that touches a sector.
    pub passes_of_a_layout: i64,
    /// A step of a warp in registers: half a slot.
    pub step: i64,
    /// A register of a thread that holds a fragment, through the kernel: 10 slots. Fragments of real kernels fill the
    /// register file, and fewer registers let more warps run. Chosen by the layouts of the golden kernels.
    pub held_register: i64,
    /// How many registers that only one op uses weigh one unit: 8 weigh a slot.
    pub registers_of_an_op: i64,
    /// A choice among registers by thread: two instructions.
    pub selection: i64,
    /// Halving the threads that share a row of a reduction, for each row: half a slot, since rows overlap.
    pub halving: i64,
    /// What the way of a row through shared memory takes beyond halving: 6 slots.
    pub staging: i64,
    /// Waiting at a barrier of a warp: 16 slots.
    pub warp_barrier: i64,
    /// Waiting at a barrier of a CTA: 64 slots.
    pub cta_barrier: i64,
}

/// The weights for `sm_90a` and `sm_100a`, whose SMs issue and move alike. Barriers, halving and staging are estimates that
/// were not compared with a GPU.
pub const WEIGHTS: Weights = Weights {
    instruction: 2,
    pass: 16,
    passes_of_a_layout: 32,
    step: 1,
    held_register: 20,
    registers_of_an_op: 4,
    selection: 4,
    halving: 1,
    staging: 12,
    warp_barrier: 32,
    cta_barrier: 128,
};
