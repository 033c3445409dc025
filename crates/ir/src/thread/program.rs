use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};
use tilewright_layout::DType;
use tilewright_layout::access::LANES;

use crate::arena::{Arena, Handle};
use crate::caching::Caching;
use crate::counter::Counter;
use crate::plan::OpPlan;
use crate::scalar::Scalar;
use crate::target::{Target, padded_shared_bytes};
use crate::thread::inst::Inst;
use crate::thread::mma::MmaInst;
use crate::thread::registers::{RegArray, Regs};
use crate::thread::ring::{Cursor, Ring, TensorCopy, TensorMapRecipe};
use crate::thread::tensor::{TensorMemory, TensorMma, TensorMove};
use crate::thread::value::Value;
use crate::thread::wgmma::WarpgroupMma;
use crate::tile::{MemoryOrdering, Role};

/// What one thread of a kernel does.
#[derive(Clone, Debug)]
pub struct Program {
    /// The entry point's name.
    pub name: String,
    /// The target it is compiled for.
    pub target: Target,
    /// Sizes known only at launch: integer parameters, after the pointers.
    pub sizes: Vec<Var>,
    /// Integers that the first statements load, the same for all threads of a CTA.
    pub loaded: Vec<Var>,
    /// Those of them at which tensors end: costs assume that a tensor is as large as it may be.
    pub ends: Vec<Var>,
    /// Numbers that are parameters, after the sizes: each a register that has its value from the beginning.
    pub scalars: Vec<Handle<RegArray>>,
    /// CTAs along x, y and z.
    pub grid: [Expr; 3],
    /// CTAs of a cluster; 1 if there are none.
    pub cluster: i64,
    /// Threads of one CTA.
    pub threads: i64,
    /// The roles of warps.
    pub roles: Arena<Role>,
    /// Parameters in order, then shared buffers.
    pub memories: Arena<Memory>,
    /// Register arrays.
    pub registers: Arena<RegArray>,
    /// Tensor maps: parameters, after the numbers.
    pub maps: Arena<TensorMapRecipe>,
    /// Rings of pipelined loops, and those between roles.
    pub rings: Vec<Ring>,
    /// Where warps are in the rings between roles.
    pub cursors: Arena<Cursor>,
    /// The tensor memory of a CTA, if it has some.
    pub tensor_memory: Option<TensorMemory>,
    /// The tile ops that the statements came from.
    pub notes: Arena<Note>,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// What lowering decided, one entry per op.
    pub plans: Vec<OpPlan>,
}

impl Program {
    /// The memory that owns the bytes of a memory: itself, or what it is a view of or inside of.
    pub fn owner(&self, memory: Handle<Memory>) -> Handle<Memory> {
        self.viewed(memory).last().unwrap_or(memory)
    }

    /// A memory, what it is a view of or inside of, and so on.
    pub fn viewed(&self, memory: Handle<Memory>) -> impl Iterator<Item = Handle<Memory>> {
        std::iter::successors(Some(memory), |memory| match self.memories[*memory].space {
            MemorySpace::SharedView { of } | MemorySpace::SharedInside { of } => Some(of),
            MemorySpace::Global { .. } | MemorySpace::Shared | MemorySpace::Table => None,
        })
    }

    /// The parameters that the program may write.
    pub fn written_tensors(&self) -> impl Iterator<Item = Handle<Memory>> {
        let is_written = |memory: &Memory| matches!(memory.space, MemorySpace::Global { read_only: false, .. });
        self.memories.iter().filter(move |(_, memory)| is_written(memory)).map(|(handle, _)| handle)
    }

    /// The buffer that a memory belongs to: itself, or what it is a view of.
    pub fn buffer(&self, memory: Handle<Memory>) -> Handle<Memory> {
        let is_view = |memory: &Handle<Memory>| matches!(self.memories[*memory].space, MemorySpace::SharedView { .. });
        self.viewed(memory).find(|memory| !is_view(memory)).unwrap_or(memory)
    }

    /// A program of one CTA without parameters and statements.
    pub fn new(name: &str, target: Target, threads: i64) -> Program {
        Program {
            name: name.to_string(),
            target,
            sizes: Vec::new(),
            loaded: Vec::new(),
            ends: Vec::new(),
            scalars: Vec::new(),
            grid: [1, 1, 1].map(Expr::constant),
            cluster: 1,
            threads,
            roles: Arena::new(),
            memories: Arena::new(),
            registers: Arena::new(),
            maps: Arena::new(),
            rings: Vec::new(),
            cursors: Arena::new(),
            tensor_memory: None,
            notes: Arena::new(),
            body: Vec::new(),
            plans: Vec::new(),
        }
    }

    /// Warps of one CTA; the last one may have fewer threads.
    pub fn warps(&self) -> i64 {
        (self.threads + LANES as i64 - 1) / LANES as i64
    }

    /// The most registers that a thread has: as many as fit for all threads, or what the warps of a role ask for.
    pub fn registers_of_a_thread(&self) -> i64 {
        let mut most = self.target.registers_of_a_thread(self.threads);
        super::for_each_stmt(&self.body, &mut |stmt| {
            if let Stmt::Inst(call) = stmt
                && call.inst == Inst::IncreaseRegisters
            {
                most = call.arguments.iter().filter_map(Expr::as_const).fold(most, i64::max);
            }
        });
        most
    }

    /// The ring whose barriers order all accesses to a memory.
    pub fn ring_of(&self, memory: Handle<Memory>) -> Option<&Ring> {
        let owner = self.owner(memory);
        self.rings.iter().find(|ring| ring.memories().any(|of_ring| of_ring == owner))
    }

    /// Bytes of shared memory that a CTA needs, with what aligns each buffer.
    pub fn shared_bytes(&self) -> i64 {
        self.memories.iter().map(|(_, memory)| memory.shared_bytes()).sum()
    }
}

/// A memory that threads load from and store to.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Its name in CUDA, unless C++ or CUDA reserves it.
    pub name: String,
    /// Type of an element.
    pub dtype: DType,
    /// Number of elements, of all stages together.
    pub elements: i64,
    /// The stages of a pipeline, each with the elements of one iteration; 1 for other memory.
    pub stages: i64,
    /// The kind of memory it is in.
    pub space: MemorySpace,
    /// The entries of a table; empty for other memories.
    pub values: Vec<i64>,
    /// Bytes to which its first element is aligned.
    pub alignment: i64,
    /// How accesses to it are cached, if the user says it.
    pub caching: Option<Caching>,
    /// Where the user declared it.
    pub span: Span,
}

impl Memory {
    /// Memory that is no table, of one stage, and cached as usual.
    pub fn new(
        name: impl Into<String>,
        dtype: DType,
        elements: i64,
        (space, alignment): (MemorySpace, i64),
        span: Span,
    ) -> Memory {
        let (name, values) = (name.into(), Vec::new());
        Memory { name, dtype, elements, stages: 1, space, values, alignment, caching: None, span }
    }

    /// Whether it is a parameter.
    pub fn is_global(&self) -> bool {
        matches!(self.space, MemorySpace::Global { .. })
    }

    /// Whether it is in shared memory, under whatever name.
    pub fn is_shared(&self) -> bool {
        match self.space {
            MemorySpace::Shared | MemorySpace::SharedView { .. } | MemorySpace::SharedInside { .. } => true,
            MemorySpace::Global { .. } | MemorySpace::Table => false,
        }
    }

    /// The elements from the beginning of a stage to that of the next.
    pub fn stage_elements(&self) -> i64 {
        self.elements / self.stages
    }

    /// Bytes of shared memory that it takes, with what aligns it; 0 for a view and for other memory.
    pub fn shared_bytes(&self) -> i64 {
        match self.space {
            MemorySpace::Shared => padded_shared_bytes(self.elements * self.dtype.bytes()),
            MemorySpace::SharedView { .. } | MemorySpace::SharedInside { .. } => 0,
            MemorySpace::Global { .. } | MemorySpace::Table => 0,
        }
    }
}

/// The kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemorySpace {
    /// A pointer parameter.
    Global {
        /// Whether it is only read.
        read_only: bool,
        /// Whether a caller may pass the memory of another parameter, or the launch before may write it meanwhile.
        may_alias: bool,
    },
    /// Shared memory of the CTA.
    Shared,
    /// Another name for a shared memory, possibly with another dtype.
    SharedView {
        /// The shared memory it is a view of.
        of: Handle<Memory>,
    },
    /// A shared buffer that has the storage of another one, while that one is not in use.
    SharedInside {
        /// The buffer that owns the storage.
        of: Handle<Memory>,
    },
    /// Constants that belong to the program.
    Table,
}

/// A tile op that statements came from.
#[derive(Clone, Debug)]
pub struct Note {
    /// The op as text: `permute_layout(b[s], a[s])`.
    pub title: String,
    /// The plan in a line or two.
    pub details: Vec<String>,
    /// Where the user wrote it.
    pub span: Span,
    /// Its place among the plans of the program.
    pub plan: usize,
}

/// With what the names of variables begin that count the turns in which threads execute a long nest.
pub const TURN: &str = "turn";

/// Whether a loop over turns is among statements.
pub fn has_turns(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| {
        let is_over_turns = matches!(stmt, Stmt::For { counter, .. } if counter.var.name().starts_with(TURN));
        is_over_turns || has_turns(stmt.inner())
    })
}

/// A comparison of index expressions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cond {
    /// `a < b`
    Less(Expr, Expr),
    /// `a == b`
    Equal(Expr, Expr),
}

impl Cond {
    /// What is compared.
    pub fn sides(&self) -> [&Expr; 2] {
        let (Cond::Less(a, b) | Cond::Equal(a, b)) = self;
        [a, b]
    }

    /// What is compared, mutably.
    pub fn sides_mut(&mut self) -> [&mut Expr; 2] {
        let (Cond::Less(a, b) | Cond::Equal(a, b)) = self;
        [a, b]
    }

    /// Whether `var` occurs in it.
    pub fn mentions(&self, var: &Var) -> bool {
        self.sides().into_iter().any(|side| side.mentions(var))
    }
}

/// The conditions of branches nested directly in one another, outermost first, and the body of the innermost.
pub fn conjunction<'a>(cond: &'a Cond, body: &'a [Stmt]) -> (Vec<&'a Cond>, &'a [Stmt]) {
    let (mut conds, mut inner) = (vec![cond], body);
    while let [Stmt::If { cond, body }] = inner {
        conds.push(cond);
        inner = body;
    }
    (conds, inner)
}

impl Stmt {
    /// A warp goes on to the next stage of a ring.
    pub fn advance(cursor: Handle<Cursor>) -> Stmt {
        Stmt::Advance { cursor, by: Expr::constant(1) }
    }

    /// The statements inside it: of an op, a loop or a branch.
    pub fn inner(&self) -> &[Stmt] {
        match self {
            Stmt::Op { body, .. }
            | Stmt::For { body, .. }
            | Stmt::If { body, .. }
            | Stmt::Unless { body, .. }
            | Stmt::IfValue { body, .. }
            | Stmt::Role { body, .. }
            | Stmt::Elect { body } => body,
            Stmt::Let { .. }
            | Stmt::LetValue { .. }
            | Stmt::Assign { .. }
            | Stmt::AssignPair { .. }
            | Stmt::Declare(_)
            | Stmt::Load { .. }
            | Stmt::Store { .. }
            | Stmt::Lookup { .. }
            | Stmt::Set { .. }
            | Stmt::Move { .. }
            | Stmt::Mma(_)
            | Stmt::WarpgroupMma(_)
            | Stmt::TensorMma(_)
            | Stmt::TensorMove(_)
            | Stmt::TensorCopy(_)
            | Stmt::Advance { .. }
            | Stmt::Inst(_) => &[],
        }
    }

    /// The list of statements inside it, mutably; `None` if it cannot contain any.
    fn body_mut(&mut self) -> Option<&mut Vec<Stmt>> {
        match self {
            Stmt::Op { body, .. }
            | Stmt::For { body, .. }
            | Stmt::If { body, .. }
            | Stmt::Unless { body, .. }
            | Stmt::IfValue { body, .. }
            | Stmt::Role { body, .. }
            | Stmt::Elect { body } => Some(body),
            Stmt::Let { .. } | Stmt::LetValue { .. } | Stmt::Assign { .. } | Stmt::AssignPair { .. } => None,
            Stmt::Declare(_) | Stmt::Load { .. } | Stmt::Store { .. } | Stmt::Lookup { .. } => None,
            Stmt::Set { .. } | Stmt::Move { .. } | Stmt::Mma(_) | Stmt::TensorCopy(_) | Stmt::Inst(_) => None,
            Stmt::WarpgroupMma(_) | Stmt::TensorMma(_) | Stmt::TensorMove(_) | Stmt::Advance { .. } => None,
        }
    }

    /// The statements inside it, mutably.
    pub fn inner_mut(&mut self) -> &mut [Stmt] {
        self.body_mut().map_or(&mut [], Vec::as_mut_slice)
    }

    /// The statement with the list inside it replaced by what `change` makes of it.
    pub fn map_inner(mut self, change: impl FnOnce(Vec<Stmt>) -> Vec<Stmt>) -> Stmt {
        if let Some(body) = self.body_mut() {
            *body = change(std::mem::take(body));
        }
        self
    }
}

/// How far the CUDA compiler unrolls a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unroll {
    /// As far as it decides: there is no directive.
    Auto,
    /// By a factor: `#pragma unroll 4`.
    By(i64),
    /// Completely: `#pragma unroll`. The loop variable is a constant in each iteration, so it may stand in the index of
    /// a register.
    Full,
    /// Not at all: at the end of an iteration, this register has the next value, or the end of the loop.
    Claimed(Handle<RegArray>),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// The statements of one tile op.
    Op {
        /// The op.
        note: Handle<Note>,
        /// Its statements.
        body: Vec<Stmt>,
    },
    /// Defines a variable.
    Let {
        /// The name.
        var: Var,
        /// The value.
        value: Expr,
    },
    /// Declares a register array.
    Declare(Handle<RegArray>),
    /// Loads adjacent elements of memory into registers.
    Load {
        /// Where to.
        to: Regs,
        /// Where from.
        memory: Handle<Memory>,
        /// First element.
        index: Expr,
    },
    /// Stores registers to adjacent elements of memory.
    Store {
        /// Where to.
        memory: Handle<Memory>,
        /// First element.
        index: Expr,
        /// Where from.
        from: Regs,
    },
    /// Defines variables from adjacent entries of a table.
    Lookup {
        /// The variables: 1, 2 or 4.
        vars: Vec<Var>,
        /// The table.
        table: Handle<Memory>,
        /// First entry.
        index: Expr,
    },
    /// Sets registers to a constant.
    Set {
        /// Which registers.
        to: Regs,
        /// The constant.
        value: Scalar,
    },
    /// Copies registers to registers.
    Move {
        /// Where to.
        to: Regs,
        /// Where from.
        from: Regs,
    },
    /// A loop.
    For {
        /// What it counts through.
        counter: Counter,
        /// How far the CUDA compiler unrolls it.
        unroll: Unroll,
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
    /// Statements for threads for which not all conditions hold.
    Unless {
        /// The conditions.
        conds: Vec<Cond>,
        /// What happens if one of them does not hold.
        body: Vec<Stmt>,
    },
    /// Statements under a condition on data.
    IfValue {
        /// A truth value.
        cond: Value,
        /// Whether it is the same for all threads of a CTA.
        is_uniform: bool,
        /// What happens if it holds.
        body: Vec<Stmt>,
    },
    /// Statements of the warps of a role. In them, warps and threads are counted from the first of the role.
    Role {
        /// The role.
        role: Handle<Role>,
        /// What its warps do.
        body: Vec<Stmt>,
    },
    /// Statements of one thread of the warp, which the hardware elects.
    Elect {
        /// What that thread does.
        body: Vec<Stmt>,
    },
    /// Assigns a value to a register.
    Assign {
        /// Which register.
        to: Regs,
        /// The value.
        value: Value,
    },
    /// Assigns values to two adjacent registers, at once: neither is assigned before both are computed.
    AssignPair {
        /// Which registers: the first index is even.
        to: Regs,
        /// The values.
        values: [Value; 2],
    },
    /// Defines a variable from data, for use in indices.
    LetValue {
        /// The variable; values outside its range are not used as an index.
        var: Var,
        /// The integer.
        value: Value,
    },
    /// Multiplies two matrices that are distributed over the warp and adds the product to a third.
    Mma(Box<Mma>),
    /// A warpgroup multiplies two matrices, and adds the product to a third in its registers.
    WarpgroupMma(Box<WarpgroupMma>),
    /// One thread lets the tensor core multiply, with sums in tensor memory.
    TensorMma(Box<TensorMma>),
    /// A warp loads or stores columns of tensor memory.
    TensorMove(Box<TensorMove>),
    /// The copy engine copies a box of a tensor to shared memory.
    TensorCopy(Box<TensorCopy>),
    /// A warp goes on by some stages of a ring.
    Advance {
        /// Where it is.
        cursor: Handle<Cursor>,
        /// How many stages.
        by: Expr,
    },
    /// An instruction of the table.
    Inst(Box<Call>),
}

impl From<Mma> for Stmt {
    fn from(product: Mma) -> Stmt {
        Stmt::Mma(Box::new(product))
    }
}

impl From<Call> for Stmt {
    fn from(call: Call) -> Stmt {
        Stmt::Inst(Box::new(call))
    }
}

/// A product of two matrices that are distributed over the warp, which is added to a third.
#[derive(Clone, Debug, PartialEq)]
pub struct Mma {
    /// The instruction.
    pub inst: MmaInst,
    /// The matrix that is added to.
    pub sums: Regs,
    /// The left multiplicand.
    pub a: Regs,
    /// The right multiplicand.
    pub b: Regs,
}

/// An instruction of the table, with the operands that its row demands.
#[derive(Clone, Debug, PartialEq)]
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
    /// The order and scope of an atomic operation.
    pub ordering: MemoryOrdering,
}

impl Call {
    /// An instruction without operands.
    pub fn plain(inst: Inst) -> Call {
        let (from, memory, arguments) = (Vec::new(), Vec::new(), Vec::new());
        Call { inst, to: None, from, memory, arguments, ordering: MemoryOrdering::default() }
    }
}
