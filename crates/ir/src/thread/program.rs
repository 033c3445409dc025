use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};
use tilewright_layout::DType;

use crate::arena::{Arena, Handle};
use crate::plan::OpPlan;
use crate::scalar::Scalar;
use crate::target::Target;
use crate::thread::inst::Inst;

/// What one thread of a kernel does.
#[derive(Clone, Debug)]
pub struct Program {
    /// The entry point's name.
    pub name: String,
    /// What it is for.
    pub target: Target,
    /// CTAs along x, y and z.
    pub grid: [i64; 3],
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
    /// Its name in CUDA.
    pub name: String,
    /// Type of an element.
    pub dtype: DType,
    /// Elements it holds.
    pub elements: i64,
    /// Where it is.
    pub space: MemorySpace,
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
}

/// An array of registers. It stays in registers because every index is a constant.
#[derive(Clone, Debug)]
pub struct RegArray {
    /// Its name in CUDA.
    pub name: String,
    /// Type of an element.
    pub dtype: DType,
    /// Elements.
    pub len: i64,
    /// Elements that are held, loaded and stored together: 1, or the width of a vector.
    pub vector: i64,
}

/// Adjacent registers of one array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regs {
    /// The array.
    pub array: Handle<RegArray>,
    /// The first; must be a constant, which the verifier checks.
    pub first: Expr,
    /// How many.
    pub count: i64,
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

impl Stmt {
    /// The statements inside it: of an op, a loop or a branch.
    pub fn inner(&self) -> &[Stmt] {
        match self {
            Stmt::Op { body, .. } | Stmt::For { body, .. } | Stmt::If { body, .. } => body,
            Stmt::Let { .. }
            | Stmt::Declare(_)
            | Stmt::Load { .. }
            | Stmt::Store { .. }
            | Stmt::Set { .. }
            | Stmt::Move { .. }
            | Stmt::Inst(_) => &[],
        }
    }
}

/// Calls `visit` on every named value, index and condition in `body`, in order.
pub fn for_each_expr(body: &[Stmt], visit: &mut dyn FnMut(&Expr)) {
    for stmt in body {
        match stmt {
            Stmt::Let { value, .. } => visit(value),
            Stmt::Load { index, .. } | Stmt::Store { index, .. } => visit(index),
            Stmt::If { cond: Cond::Less(a, b) | Cond::Equal(a, b), .. } => {
                visit(a);
                visit(b);
            }
            Stmt::Op { .. }
            | Stmt::For { .. }
            | Stmt::Declare(_)
            | Stmt::Set { .. }
            | Stmt::Move { .. }
            | Stmt::Inst(_) => {}
        }
        for_each_expr(stmt.inner(), visit);
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
    /// An instruction of the table.
    Inst(Inst),
}
