//! Errors in PTX text, in a launch, and during the execution of a kernel.

use std::fmt;

use crate::isa::Space;

/// A PTX file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PtxError {
    /// The text is not PTX.
    Syntax {
        /// 1-based line.
        line: u32,
        /// 1-based column, in characters.
        column: u32,
        /// The line, if it can be shown.
        text: Option<String>,
        /// What is wrong.
        message: String,
    },
    /// The text is PTX with instructions this crate does not execute.
    Unsupported(Vec<Unsupported>),
}

impl fmt::Display for PtxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PtxError::Syntax { line, column, text, message } => {
                write!(f, "PTX line {line}, column {column}: {message}")?;
                let Some(text) = text else { return Ok(()) };
                write!(f, "\n  {text}\n  {:>1$}", '^', *column as usize)
            }
            PtxError::Unsupported(list) => write_unsupported(f, list),
        }
    }
}

impl PtxError {
    /// What is wrong at byte `at` of `source`. A line that is long, or has control characters, is not shown.
    pub(crate) fn syntax(source: &str, at: usize, message: impl Into<String>) -> PtxError {
        const LONGEST_SHOWN: usize = 160;
        let before = &source[..source.floor_char_boundary(at)];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let text = source[start..].lines().next().unwrap_or("").trim_end().replace('\t', " ");
        let is_shown = text.chars().count() <= LONGEST_SHOWN && !text.chars().any(char::is_control);
        PtxError::Syntax {
            line: before.matches('\n').count() as u32 + 1,
            column: before[start..].chars().count() as u32 + 1,
            text: Some(text).filter(|_| is_shown),
            message: message.into(),
        }
    }
}

impl std::error::Error for PtxError {}

/// An instruction, or a form of an instruction, that this crate does not execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// 1-based PTX line.
    pub line: u32,
    /// The instruction and the reason.
    pub text: String,
}

fn write_unsupported(f: &mut fmt::Formatter<'_>, list: &[Unsupported]) -> fmt::Result {
    write!(f, "PTX instructions that cannot be executed: {}", list.len())?;
    for item in list {
        write!(f, "\n  PTX line {}: {}", item.line, item.text)?;
    }
    Ok(())
}

/// Why a launch produced no report.
#[derive(Clone, Debug)]
pub enum RunError {
    /// The launch does not fit the kernel.
    BadLaunch(String),
    /// The kernel can reach instructions that are not supported; nothing ran.
    Unsupported(Vec<Unsupported>),
    /// The kernel faulted.
    Fault(Box<Fault>),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::BadLaunch(message) => write!(f, "bad launch: {message}"),
            RunError::Unsupported(list) => write_unsupported(f, list),
            RunError::Fault(fault) => write!(f, "{fault}"),
        }
    }
}

impl std::error::Error for RunError {}

/// The kinds of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// An access outside every buffer or variable.
    OutOfBounds,
    /// An address that is not a multiple of the access size.
    Misaligned,
    /// A use of bytes that were never written.
    UninitializedRead,
    /// Two unordered accesses to the same byte, at least one of them a write.
    Race,
    /// Two writes by one thread to the same byte, by stores that the launch declares disjoint.
    NotApart,
    /// A bulk copy of bytes that a thread has written without a proxy fence.
    MissingFence,
    /// A tensor map or another descriptor that does not fit its use.
    BadDescriptor,
    /// A use of tensor memory outside an allocation or outside the lanes of a warp, or of its allocations that the PTX ISA
    /// does not allow.
    TmemMisuse,
    /// A CTA that exits without having freed its tensor memory.
    TmemLeak,
    /// A use of registers that an asynchronous instruction still reads or writes.
    AsyncRegisterHazard,
    /// Every thread that has not exited is waiting.
    Deadlock,
    /// A write to a read-only buffer.
    ReadOnly,
    /// An `.aligned` instruction executed by only part of a warp.
    DivergentAligned,
    /// A barrier used in a way that the PTX ISA does not allow.
    BarrierMisuse,
    /// An instruction with invalid operands.
    IllegalInstruction,
    /// A `trap` instruction.
    Trap,
    /// A CTA executed more instructions than the options of the launch allow.
    StepLimit,
}

impl FaultKind {
    /// The name in messages and in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            FaultKind::OutOfBounds => "out_of_bounds",
            FaultKind::Misaligned => "misaligned",
            FaultKind::UninitializedRead => "uninitialized_read",
            FaultKind::Race => "race",
            FaultKind::NotApart => "not_apart",
            FaultKind::MissingFence => "missing_fence",
            FaultKind::BadDescriptor => "bad_descriptor",
            FaultKind::TmemMisuse => "tmem_misuse",
            FaultKind::TmemLeak => "tmem_leak",
            FaultKind::AsyncRegisterHazard => "async_register_hazard",
            FaultKind::Deadlock => "deadlock",
            FaultKind::ReadOnly => "read_only",
            FaultKind::DivergentAligned => "divergent_aligned",
            FaultKind::BarrierMisuse => "barrier_misuse",
            FaultKind::IllegalInstruction => "illegal_instruction",
            FaultKind::Trap => "trap",
            FaultKind::StepLimit => "step_limit",
        }
    }
}

/// A line of CUDA source, from `.loc`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CudaLine {
    /// The name that `.file` gives.
    pub file: String,
    /// 1-based line.
    pub line: u32,
}

/// The source location of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// 1-based PTX line.
    pub ptx_line: u32,
    /// The CUDA line, when the PTX carries line information.
    pub cuda: Option<CudaLine>,
    /// The CUDA line of the call, if the instruction comes from an inlined function.
    pub inlined_at: Option<CudaLine>,
    /// The instruction's text.
    pub ptx: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PTX line {} `{}`", self.ptx_line, self.ptx)?;
        match (&self.cuda, &self.inlined_at) {
            (Some(cuda), Some(call)) => {
                write!(f, " ({}:{}, in a function that is called at line {})", cuda.file, cuda.line, call.line)
            }
            (Some(cuda), None) => write!(f, " ({}:{})", cuda.file, cuda.line),
            (None, _) => Ok(()),
        }
    }
}

/// The memory that a fault concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The state space, never generic.
    pub space: Space,
    /// The buffer or variable.
    pub name: String,
    /// Offset from its start in bytes; negative before the start.
    pub offset: i64,
    /// Size of the access in bytes.
    pub length: u32,
}

/// Lanes of one warp that wait in a deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Index of the warp in its CTA.
    pub warp: u32,
    /// Its waiting lanes, one bit each.
    pub lanes: u32,
    /// What they wait for.
    pub what: String,
    /// The instruction at which they wait.
    pub at: Place,
}

/// The first fault of a kernel.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// The instruction that faulted.
    pub at: Place,
    /// The CTA's index in the grid.
    pub cta: [u32; 3],
    /// Index of the warp in the CTA.
    pub warp: u32,
    /// The lanes concerned, one bit each.
    pub lanes: u32,
    /// The address that the first of these lanes accessed, if the fault concerns memory.
    pub address: Option<u64>,
    /// The buffer or variable, if the fault concerns memory.
    pub location: Option<Location>,
    /// Description of the fault.
    pub message: String,
    /// The other access of a race, or the first write of [`FaultKind::NotApart`].
    pub related: Option<Place>,
    /// Whether the other access of a race is by another CTA.
    pub is_between_ctas: bool,
    /// The waiting lanes, in a deadlock.
    pub waiting: Vec<Waiting>,
}

impl Fault {
    /// The waiting lanes of a deadlock, those of warps that wait for the same at the same instruction together: the names of
    /// the warps, such as "warp 0" or "warps 1, 2", and the first of them.
    pub fn waiting_together(&self) -> Vec<(String, &Waiting)> {
        let mut groups: Vec<(Vec<u32>, &Waiting)> = Vec::new();
        for item in &self.waiting {
            let key = |item: &Waiting| (item.lanes, item.at.ptx_line);
            let found = groups.iter_mut().find(|(_, first)| key(first) == key(item) && first.what == item.what);
            match found {
                Some((warps, _)) => warps.push(item.warp),
                None => groups.push((vec![item.warp], item)),
            }
        }
        let name = |warps: &[u32]| match warps {
            [warp] => format!("warp {warp}"),
            _ => format!("warps {}", warps.iter().map(u32::to_string).collect::<Vec<String>>().join(", ")),
        };
        groups.into_iter().map(|(warps, item)| (name(&warps), item)).collect()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.cta;
        write!(f, "{}: {}", self.kind.as_str(), self.message)?;
        write!(f, "; cta ({x}, {y}, {z}) warp {} lanes {:#010x}; {}", self.warp, self.lanes, self.at)?;
        if let Some(related) = &self.related {
            write!(f, "; other access: {related}")?;
        }
        for (warps, item) in self.waiting_together() {
            write!(f, "\n  {warps} lanes {:#010x} at {} wait for {}", item.lanes, item.at, item.what)?;
        }
        Ok(())
    }
}

/// A fault as raised by the executing code; the scheduler adds the source location.
#[derive(Clone, Debug)]
pub(crate) struct RaisedFault {
    pub(crate) kind: FaultKind,
    /// The lanes concerned, one bit each.
    pub(crate) lanes: u32,
    pub(crate) address: Option<u64>,
    pub(crate) location: Option<Location>,
    pub(crate) message: String,
    /// Program counter and warp, where they are not those of the instruction being executed.
    pub(crate) pc: Option<u32>,
    pub(crate) warp: Option<u32>,
    /// Program counter of the other access.
    pub(crate) related: Option<u32>,
    /// Whether the other access is by another CTA.
    pub(crate) is_between_ctas: bool,
    pub(crate) waiting: Vec<Waiting>,
}

impl RaisedFault {
    pub(crate) fn new(kind: FaultKind, lanes: u32, message: impl Into<String>) -> Box<RaisedFault> {
        let message = message.into();
        Box::new(RaisedFault {
            kind,
            lanes,
            address: None,
            location: None,
            message,
            pc: None,
            warp: None,
            related: None,
            is_between_ctas: false,
            waiting: Vec::new(),
        })
    }
}

/// The result of executing something that can fault.
pub(crate) type ExecResult<T> = Result<T, Box<RaisedFault>>;
