//! Atomic changes of elements.

use std::fmt;

use tilewright_diag::Span;
use tilewright_expr::Expr;

use crate::tile::attributes::ReduceKind;
use crate::tile::value::{Access, ElementOp, Value};

/// How an atomic operation combines an element with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AtomicOp {
    /// Their sum.
    Add,
    /// The lesser one.
    Min,
    /// The greater one.
    Max,
    /// The bits that both have.
    And,
    /// The bits that one of them has.
    Or,
    /// The bits that only one of them has.
    Xor,
}

impl AtomicOp {
    /// Every operation.
    pub const ALL: [AtomicOp; 6] =
        [AtomicOp::Add, AtomicOp::Min, AtomicOp::Max, AtomicOp::And, AtomicOp::Or, AtomicOp::Xor];

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            AtomicOp::Add => "atomic addition",
            AtomicOp::Min => "atomic minimum",
            AtomicOp::Max => "atomic maximum",
            AtomicOp::And => "atomic `and`",
            AtomicOp::Or => "atomic `or`",
            AtomicOp::Xor => "atomic `xor`",
        }
    }

    /// The method that adds it to a kernel: an op on tiles, or a statement on elements.
    pub fn function(self) -> &'static str {
        match self {
            AtomicOp::Add => "atomic_add",
            AtomicOp::Min => "atomic_min",
            AtomicOp::Max => "atomic_max",
            AtomicOp::And => "atomic_and",
            AtomicOp::Or => "atomic_or",
            AtomicOp::Xor => "atomic_xor",
        }
    }

    /// How the printed IR writes it, in front of `=`.
    pub fn symbol(self) -> &'static str {
        match self {
            AtomicOp::Add => "+",
            AtomicOp::Min => "min",
            AtomicOp::Max => "max",
            AtomicOp::And => "&",
            AtomicOp::Or => "|",
            AtomicOp::Xor => "^",
        }
    }

    /// The reduction of the same operation.
    pub fn reduction(self) -> ReduceKind {
        match self {
            AtomicOp::Add => ReduceKind::Sum,
            AtomicOp::Min => ReduceKind::Min,
            AtomicOp::Max => ReduceKind::Max,
            AtomicOp::And => ReduceKind::And,
            AtomicOp::Or => ReduceKind::Or,
            AtomicOp::Xor => ReduceKind::Xor,
        }
    }

    /// The operation on the old element and the value.
    pub fn element_op(self) -> ElementOp {
        match self {
            AtomicOp::Add => ElementOp::Add,
            AtomicOp::Min => ElementOp::Min,
            AtomicOp::Max => ElementOp::Max,
            AtomicOp::And => ElementOp::And,
            AtomicOp::Or => ElementOp::Or,
            AtomicOp::Xor => ElementOp::Xor,
        }
    }
}

/// How an atomic statement changes an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AtomicChange {
    /// It is combined with the value.
    Combine(AtomicOp),
    /// The value replaces it.
    Exchange,
    /// The value replaces it if it has the bits of another value.
    CompareExchange,
}

impl AtomicChange {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            AtomicChange::Combine(op) => op.name(),
            AtomicChange::Exchange => "atomic exchange",
            AtomicChange::CompareExchange => "atomic compare-and-exchange",
        }
    }
}

/// The order of an atomic operation and the other accesses of its thread, as other threads see them (PTX ISA, "Memory
/// Consistency Model").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryOrder {
    /// None.
    #[default]
    Relaxed,
    /// What the thread does after the operation sees what was released to it.
    Acquire,
    /// What the thread has done before the operation is seen by who acquires it.
    Release,
    /// Both.
    AcquireRelease,
}

impl MemoryOrder {
    /// Every order.
    pub const ALL: [MemoryOrder; 4] =
        [MemoryOrder::Relaxed, MemoryOrder::Acquire, MemoryOrder::Release, MemoryOrder::AcquireRelease];

    /// Its name in the printed IR and in PTX.
    pub fn name(self) -> &'static str {
        match self {
            MemoryOrder::Relaxed => "relaxed",
            MemoryOrder::Acquire => "acquire",
            MemoryOrder::Release => "release",
            MemoryOrder::AcquireRelease => "acq_rel",
        }
    }

    /// Whether later accesses come after it.
    pub fn acquires(self) -> bool {
        matches!(self, MemoryOrder::Acquire | MemoryOrder::AcquireRelease)
    }

    /// Whether earlier accesses come before it.
    pub fn releases(self) -> bool {
        matches!(self, MemoryOrder::Release | MemoryOrder::AcquireRelease)
    }
}

/// The threads among which an operation is atomic and ordered (PTX ISA, "Scope").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryScope {
    /// Those of the CTA.
    Cta,
    /// Those of the CTA's cluster.
    Cluster,
    /// Those of the GPU.
    #[default]
    Gpu,
    /// Those of all GPUs, and the host.
    System,
}

impl MemoryScope {
    /// Every scope, the smallest first.
    pub const ALL: [MemoryScope; 4] = [MemoryScope::Cta, MemoryScope::Cluster, MemoryScope::Gpu, MemoryScope::System];

    /// Its name in the printed IR and in PTX.
    pub fn name(self) -> &'static str {
        match self {
            MemoryScope::Cta => "cta",
            MemoryScope::Cluster => "cluster",
            MemoryScope::Gpu => "gpu",
            MemoryScope::System => "sys",
        }
    }
}

/// How an atomic operation is ordered, and among which threads it is atomic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryOrdering {
    /// How it orders other accesses.
    pub order: MemoryOrder,
    /// The threads among which it is atomic and ordered.
    pub scope: MemoryScope,
}

/// What differs from the default: `, release, sys`.
impl fmt::Display for MemoryOrdering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.order != MemoryOrder::default() {
            write!(f, ", {}", self.order.name())?;
        }
        if self.scope != MemoryScope::default() {
            write!(f, ", {}", self.scope.name())?;
        }
        Ok(())
    }
}

/// The element as it was before an atomic operation, as a named value.
#[derive(Clone, Debug)]
pub struct OldElement {
    /// Its name.
    pub name: String,
    /// Where it was written.
    pub span: Span,
}

/// An atomic change of an element.
#[derive(Clone, Debug)]
pub struct Atomic {
    /// How.
    pub change: AtomicChange,
    /// The element.
    pub to: Access,
    /// The value.
    pub value: Value,
    /// The value that the element must have, for [`AtomicChange::CompareExchange`] alone.
    pub expected: Option<Value>,
    /// The name of the element as it was, if the statements behind it use it.
    pub old: Option<OldElement>,
    /// Where it happens; where it does not, the old element counts as 0.
    pub condition: Option<Value>,
    /// Its order and scope.
    pub ordering: MemoryOrdering,
}

impl Atomic {
    /// A change of which only the new element matters, relaxed, among the threads of the GPU.
    pub fn new(change: AtomicChange, to: Access, value: Value) -> Atomic {
        let ordering = MemoryOrdering::default();
        Atomic { change, to, value, expected: None, old: None, condition: None, ordering }
    }

    /// The values that it uses, other than those in its index.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.condition.iter().chain(&self.expected).chain([&self.value])
    }

    /// The same operation with other values and another element.
    pub fn map(self, to: &mut dyn FnMut(Value) -> Value, access: impl FnOnce(Access) -> Access) -> Atomic {
        let condition = self.condition.map(&mut *to);
        let expected = self.expected.map(&mut *to);
        Atomic { condition, expected, value: to(self.value), to: access(self.to), ..self }
    }

    /// The same operation with every index expression replaced.
    pub fn map_exprs(&self, to: &dyn Fn(&Expr) -> Expr) -> Atomic {
        self.clone().map(&mut |value| value.map_exprs(to), |access| access.map_exprs(to))
    }
}
