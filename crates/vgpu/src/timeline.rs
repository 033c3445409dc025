//! What the warps of a launch and the asynchronous engines did, when, and what they waited for.
//!
//! A recorded run takes a schedule of its own: in every tick, each warp of the resident CTAs that can run executes one
//! instruction, and asynchronous operations take a number of ticks. That is not the timing of a device, but it shows what can
//! happen at the same time and what cannot.

/// Ticks that are recorded; a run goes on without a record after them.
pub const MOST_TICKS: u64 = 20_000;
/// Waits and operations that are recorded.
pub const MOST_EVENTS: usize = 20_000;
/// CTAs that are recorded: the first ones that start.
pub const MOST_CTAS: usize = 8;

/// A warp of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WarpPlace {
    /// Index of the CTA in the grid.
    pub cta: [u32; 3],
    /// Index of the warp in the CTA.
    pub warp: u32,
}

/// Lines of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// 1-based PTX lines, the first and the last.
    pub ptx: (u32, u32),
    /// 1-based CUDA lines, the first and the last, where the PTX has them.
    pub cuda: Option<(u32, u32)>,
}

/// Ticks in which a warp executes instructions without a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// The warp.
    pub at: WarpPlace,
    /// The first tick, and the one after the last.
    pub ticks: (u64, u64),
    /// The lowest and the highest line.
    pub lines: Lines,
}

/// Who does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A warp.
    Warp(WarpPlace),
    /// The asynchronous operation with this index.
    Operation(usize),
}

/// Lanes of a warp wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waited {
    /// The warp.
    pub at: WarpPlace,
    /// Mask of the lanes.
    pub lanes: u32,
    /// The tick in which they begin to wait.
    pub from: u64,
    /// The tick in which they go on, and who released them; `None` if they still wait at the end.
    pub until: Option<(u64, Actor)>,
    /// What they wait for.
    pub what: String,
    /// The mbarrier, if it is one: its variable, and the offset in it.
    pub mbarrier: Option<String>,
    /// Whether that is other lanes of their own warp.
    pub is_for_own_warp: bool,
    /// The instruction.
    pub lines: Lines,
}

impl Waited {
    /// Whether it is for the mbarrier of which a phase ended.
    pub(crate) fn is_for(&self, end: &PhaseEnd) -> bool {
        self.mbarrier.as_ref() == Some(&end.name)
    }
}

/// What performs an asynchronous operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Copies of many bytes, and of tensors.
    Copies,
    /// Products and copies of `tcgen05`.
    Tensor,
}

/// An asynchronous operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The warp that started it.
    pub by: WarpPlace,
    /// What performs it.
    pub engine: Engine,
    /// The opcode.
    pub opcode: String,
    /// The tick in which it was started.
    pub from: u64,
    /// The tick in which it was complete; `None` if it was not at the end.
    pub until: Option<u64>,
    /// The instruction.
    pub lines: Lines,
}

/// The completion of a phase of an mbarrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseEnd {
    /// Index of its CTA in the grid.
    pub cta: [u32; 3],
    /// Its variable, and the offset in it.
    pub name: String,
    /// How many phases have been completed before.
    pub phase: u64,
    /// The tick.
    pub tick: u64,
    /// Whose arrival or bytes completed it.
    pub by: Actor,
}

/// A record of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Number of ticks.
    pub ticks: u64,
    /// The indices of the CTAs that were recorded, in the order of their start, each with its number of warps.
    pub ctas: Vec<([u32; 3], u32)>,
    /// By warp and time.
    pub busy: Vec<Busy>,
    /// By their beginning.
    pub waits: Vec<Waited>,
    /// By their start.
    pub operations: Vec<Operation>,
    /// By time.
    pub phases: Vec<PhaseEnd>,
    /// Whether more happened than is recorded.
    pub is_cut: bool,
}
