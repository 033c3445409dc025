use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};
use tilewright_layout::DType;

use crate::arena::{Arena, Handle};
use crate::plan::OpPlan;
use crate::scalar::Scalar;
use crate::target::Target;
use crate::thread::inst::Inst;
use crate::thread::mma::MmaInst;
use crate::thread::value::Value;

/// What one thread of a kernel does.
#[derive(Clone, Debug)]
pub struct Program {
    /// The entry point's name.
    pub name: String,
    /// What it is for.
    pub target: Target,
    /// Sizes that are known at launch only: integer parameters, after the pointers.
    pub sizes: Vec<Var>,
    /// CTAs along x, y and z.
    pub grid: [Expr; 3],
    /// Threads of one CTA.
    pub threads: i64,
    /// Parameters in order, then shared buffers.
    pub memories: Arena<Memory>,
    /// Register arrays.
    pub registers: Arena<RegArray>,
    /// The tile ops that the statements came from.
    pub notes: Arena<Note>,
    /// What happens.
    pub body: Vec<Stmt>,
    /// What lowering decided, one entry per op.
    pub plans: Vec<OpPlan>,
}

/// A memory that threads load from and store to.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Its name in CUDA, unless C++ or CUDA reserves it.
    pub name: String,
    /// Type of an element.
    pub dtype: DType,
    /// Elements it holds.
    pub elements: i64,
    /// Where it is.
    pub space: MemorySpace,
    /// What a table holds; empty for memories that threads may write.
    pub values: Vec<i64>,
    /// Bytes to which its first element is aligned.
    pub alignment: i64,
    /// Where the user declared it.
    pub span: Span,
}

/// Where a memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemorySpace {
    /// A pointer parameter.
    Global {
        /// Whether it is only read.
        read_only: bool,
    },
    /// Shared memory of the CTA.
    Shared,
    /// Another name for a shared memory, possibly of another dtype.
    SharedView {
        /// The memory it names.
        of: Handle<Memory>,
    },
    /// Constants that belong to the program.
    Table,
}

/// An array of registers. It stays in registers because every index is a constant.
#[derive(Clone, Debug)]
pub struct RegArray {
    /// Its name in CUDA, unless C++ or CUDA reserves it.
    pub name: String,
    /// Type of an element.
    pub dtype: DType,
    /// Elements.
    pub len: i64,
    /// Elements that are held, loaded and stored together: 1, or the width of a vector.
    pub vector: i64,
}

/// Registers of one array, adjacent ones if `step` is 1. Loads and stores move as many bytes as the registers hold: the
/// elements of a memory of 1- or 2-byte elements may be moved in registers of theirs, or as 32-bit words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regs {
    /// The array.
    pub array: Handle<RegArray>,
    /// The first; must be a constant, which the verifier checks.
    pub first: Expr,
    /// How many.
    pub count: i64,
    /// From one to the next; only what is read may have a step other than 1.
    pub step: i64,
}

/// The tile op that statements came from.
#[derive(Clone, Debug)]
pub struct Note {
    /// `permute_layout(b[s], a[s])`
    pub title: String,
    /// The plan in a line or two.
    pub details: Vec<String>,
    /// Where the user wrote it.
    pub span: Span,
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cond {
    /// `a < b`
    Less(Expr, Expr),
    /// `a == b`
    Equal(Expr, Expr),
}

impl Cond {
    /// Whether `var` occurs in it.
    pub fn mentions(&self, var: &Var) -> bool {
        let (Cond::Less(a, b) | Cond::Equal(a, b)) = self;
        a.mentions(var) || b.mentions(var)
    }
}

impl Stmt {
    /// The statements inside it: of an op, a loop or a branch.
    pub fn inner(&self) -> &[Stmt] {
        match self {
            Stmt::Op { body, .. } | Stmt::For { body, .. } | Stmt::If { body, .. } | Stmt::When { body, .. } => body,
            Stmt::Let { .. }
            | Stmt::Name { .. }
            | Stmt::Assign { .. }
            | Stmt::Declare(_)
            | Stmt::Load { .. }
            | Stmt::Store { .. }
            | Stmt::Lookup { .. }
            | Stmt::Set { .. }
            | Stmt::Move { .. }
            | Stmt::Mma { .. }
            | Stmt::Inst(_) => &[],
        }
    }

    /// The statements inside it, to be changed.
    pub fn inner_mut(&mut self) -> &mut [Stmt] {
        match self {
            Stmt::Op { body, .. } | Stmt::For { body, .. } | Stmt::If { body, .. } | Stmt::When { body, .. } => body,
            Stmt::Let { .. } | Stmt::Name { .. } | Stmt::Assign { .. } => &mut [],
            Stmt::Declare(_) | Stmt::Load { .. } | Stmt::Store { .. } | Stmt::Lookup { .. } => &mut [],
            Stmt::Set { .. } | Stmt::Move { .. } | Stmt::Mma { .. } => &mut [],
            Stmt::Inst(_) => &mut [],
        }
    }
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// The statements of one tile op.
    Op {
        /// Which.
        note: Handle<Note>,
        /// What it does.
        body: Vec<Stmt>,
    },
    /// A named value.
    Let {
        /// The name.
        var: Var,
        /// The value.
        value: Expr,
    },
    /// Declares a register array.
    Declare(Handle<RegArray>),
    /// Registers from adjacent elements of memory.
    Load {
        /// Where to.
        to: Regs,
        /// Where from.
        memory: Handle<Memory>,
        /// First element.
        index: Expr,
    },
    /// Adjacent elements of memory from registers.
    Store {
        /// Where to.
        memory: Handle<Memory>,
        /// First element.
        index: Expr,
        /// Where from.
        from: Regs,
    },
    /// Named values from adjacent entries of a table.
    Lookup {
        /// The names: 1, 2 or 4.
        vars: Vec<Var>,
        /// The table.
        table: Handle<Memory>,
        /// First entry.
        index: Expr,
    },
    /// Registers from a constant.
    Set {
        /// Which registers.
        to: Regs,
        /// The constant.
        value: Scalar,
    },
    /// Registers from registers.
    Move {
        /// Where to.
        to: Regs,
        /// Where from.
        from: Regs,
    },
    /// `for var in its range`
    For {
        /// The loop variable.
        var: Var,
        /// The compiler is asked to write it out, so that registers are indexed by numbers; else it decides.
        is_written_out: bool,
        /// What is repeated.
        body: Vec<Stmt>,
    },
    /// Statements under a condition.
    If {
        /// The condition.
        cond: Cond,
        /// What happens if it holds.
        body: Vec<Stmt>,
    },
    /// Statements under a condition on data.
    When {
        /// A truth value.
        cond: Value,
        /// It is the same for all threads of a CTA, as the user says.
        is_uniform: bool,
        /// What happens if it holds.
        body: Vec<Stmt>,
    },
    /// A register from values.
    Assign {
        /// Which register.
        to: Regs,
        /// What it becomes.
        value: Value,
    },
    /// An integer from data, for use in indices.
    Name {
        /// The name; what lies outside its range is not used as an index.
        var: Var,
        /// The integer.
        value: Value,
    },
    /// A product of matrices that lie spread over the warp is added to such a matrix.
    Mma {
        /// The instruction.
        inst: MmaInst,
        /// The matrix that is added to.
        sums: Regs,
        /// The left multiplicand.
        a: Regs,
        /// The right multiplicand.
        b: Regs,
    },
    /// An instruction of the table.
    Inst(Call),
}

/// An instruction with the operands of its row.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which instruction.
    pub inst: Inst,
    /// The register that it writes.
    pub to: Option<Regs>,
    /// The registers that it reads.
    pub from: Vec<Regs>,
    /// The elements of memory that it accesses.
    pub memory: Vec<(Handle<Memory>, Expr)>,
    /// Its other operands.
    pub arguments: Vec<Expr>,
}

impl Call {
    /// An instruction without operands.
    pub fn plain(inst: Inst) -> Call {
        Call { inst, to: None, from: Vec::new(), memory: Vec::new(), arguments: Vec::new() }
    }
}
