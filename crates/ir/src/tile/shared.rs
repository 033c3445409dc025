//! Values with a dtype that one statement uses several times get a name, so that they are computed once, and every text of
//! the kernel grows with what the user wrote and not with what that unfolds to. Integers that are made of indices alone
//! have no dtype and no name of this kind: their ranges double with every sum, so that they soon fit no dtype.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tilewright_diag::Span;
use tilewright_layout::DType;

use crate::tile::element::Element;
use crate::tile::kernel::{Kernel, Space, Stmt};
use crate::tile::value::{Access, Coord, ElementOp, Narrowing, Value, op_dtype};

/// Operations from which on a value that is used several times is worth a name.
const WORTH_A_NAME: u64 = 2;
/// Operations from which on it gets one even if every use is under a condition.
const MOST_UNFOLDED: u64 = 1 << 4;

/// What tells nodes apart: what they do, and where their operands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Op(ElementOp, usize),
    Cast(DType, u8, usize),
}

/// What is known of a node.
#[derive(Clone, Debug)]
struct Node {
    uses: u64,
    /// Some use is not in an arm of a `select`.
    is_certain: bool,
    reads_memory: bool,
    /// It reads shared memory or a fragment at an index that may be outside, which only a condition keeps from being done.
    may_leave: bool,
    dtype: Option<DType>,
}

/// Gives names to the values of a kernel that are used several times.
pub fn name_shared(kernel: &mut Kernel) {
    let taken = kernel.taken_names().into_iter().map(str::to_string).collect();
    let mut parallels = std::mem::take(&mut kernel.parallels);
    let mut body = std::mem::take(&mut kernel.body);
    let mut naming = Naming { kernel, taken, dtypes: Vec::new() };
    for parallel in parallels.iter_mut() {
        parallel.body = naming.elements(std::mem::take(&mut parallel.body));
    }
    naming.stmts(&mut body);
    kernel.parallels = parallels;
    kernel.body = body;
}

struct Naming<'a> {
    kernel: &'a Kernel,
    taken: BTreeSet<String>,
    /// Dtypes of the names in scope.
    dtypes: Vec<(String, Option<DType>)>,
}

/// Nodes of one statement, and what became of them.
#[derive(Default)]
struct Unfolding {
    nodes: BTreeMap<Key, Node>,
    rebuilt: BTreeMap<Key, (Value, u64)>,
    named: Vec<Element>,
}

impl Naming<'_> {
    fn stmts(&mut self, body: &mut [Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Op(_) | Stmt::Parallel(_) => {}
                Stmt::Loop(inner) => self.stmts(&mut inner.body),
                Stmt::Each(elements) => *elements = self.elements(std::mem::take(elements)),
                Stmt::If(branch) => {
                    self.stmts(&mut branch.then);
                    self.stmts(&mut branch.otherwise);
                }
            }
        }
    }

    fn elements(&mut self, body: Vec<Element>) -> Vec<Element> {
        let known = self.dtypes.len();
        let mut out = Vec::with_capacity(body.len());
        for element in body {
            let (before, element) = self.element(element);
            out.extend(before);
            out.push(element);
        }
        self.dtypes.truncate(known);
        out
    }

    /// The names that stand in front of a statement, and the statement with them.
    fn element(&mut self, element: Element) -> (Vec<Element>, Element) {
        match element {
            Element::Let { name, value, span } => {
                let (before, [value], _) = self.unfolded([value], &[], span);
                let dtype = self.dtype(&value);
                self.dtypes.push((name.clone(), dtype));
                (before, Element::Let { name, value, span })
            }
            Element::Store { to, value, claim } => {
                let (before, [value], to) = self.unfolded([value], std::slice::from_ref(&to), to.span);
                (before, Element::Store { to: to[0].clone(), value, claim })
            }
            Element::AtomicAdd { to, value } => {
                let (before, [value], to) = self.unfolded([value], std::slice::from_ref(&to), to.span);
                (before, Element::AtomicAdd { to: to[0].clone(), value })
            }
            Element::If { cond, then, otherwise, span } => {
                let (before, [cond], _) = self.unfolded([cond], &[], span);
                let (then, otherwise) = (self.elements(then), self.elements(otherwise));
                (before, Element::If { cond, then, otherwise, span })
            }
            Element::For { var, body, span } => {
                let body = self.elements(body);
                (Vec::new(), Element::For { var, body, span })
            }
        }
    }

    fn unfolded<const N: usize>(
        &mut self,
        values: [Value; N],
        accesses: &[Access],
        span: Span,
    ) -> (Vec<Element>, [Value; N], Vec<Access>) {
        let mut unfolding = Unfolding::default();
        values.iter().for_each(|value| self.count(&mut unfolding, value));
        accesses.iter().for_each(|access| self.count_access(&mut unfolding, access));
        if unfolding.nodes.values().all(|node| node.uses < 2) {
            return (Vec::new(), values, accesses.to_vec());
        }
        values.iter().for_each(|value| mark_certain(&mut unfolding, value));
        accesses.iter().for_each(|access| mark_access(&mut unfolding, access));
        let values = values.map(|value| self.rebuilt(&mut unfolding, &value, span).0);
        let accesses = accesses.iter().map(|access| self.rebuilt_access(&mut unfolding, access, span).0).collect();
        (unfolding.named, values, accesses)
    }

    /// Counts the uses of every node.
    fn count(&self, unfolding: &mut Unfolding, value: &Value) {
        if let Value::Load(access) = value {
            return self.count_access(unfolding, access);
        }
        let Some(key) = key(value) else { return };
        if let Some(node) = unfolding.nodes.get_mut(&key) {
            node.uses += 1;
            return;
        }
        operands(value).iter().for_each(|operand| self.count(unfolding, operand));
        let reads_memory = operands(value).iter().any(|operand| reads_memory(unfolding, operand));
        let may_leave = operands(value).iter().any(|operand| self.may_leave(unfolding, operand));
        let dtype = self.dtype_of(unfolding, value);
        unfolding.nodes.insert(key, Node { uses: 1, is_certain: false, reads_memory, may_leave, dtype });
    }

    /// Whether a value, whose nodes are known, reads what only a condition keeps inside of its buffer.
    fn may_leave(&self, unfolding: &Unfolding, value: &Value) -> bool {
        let Value::Load(access) = value else {
            return key(value).and_then(|key| unfolding.nodes.get(&key)).is_some_and(|node| node.may_leave);
        };
        let Some(buffer) = self.kernel.buffers.get(access.buffer) else { return false };
        let is_masked = matches!(buffer.space, Space::Global(_));
        access.index.iter().zip(&buffer.shape).any(|(coord, extent)| match coord {
            Coord::At(index) => !is_masked && !index.range().within(0, *extent),
            Coord::Data(value) => self.may_leave(unfolding, value),
        })
    }

    fn count_access(&self, unfolding: &mut Unfolding, access: &Access) {
        for coord in &access.index {
            if let Coord::Data(value) = coord {
                self.count(unfolding, value);
            }
        }
    }

    /// The dtype of a node whose operands are known.
    fn dtype_of(&self, unfolding: &Unfolding, value: &Value) -> Option<DType> {
        let of = |operand: &Value| match key(operand) {
            Some(key) => unfolding.nodes.get(&key).and_then(|node| node.dtype),
            None => self.dtype(operand),
        };
        match value {
            Value::Op(op, operands) => op_dtype(*op, operands, &of),
            Value::Cast(dtype, ..) => Some(*dtype),
            Value::Const(_) | Value::Index(_) | Value::Named(_) | Value::Load(_) => self.dtype(value),
        }
    }

    /// The dtype of a value that is small.
    fn dtype(&self, value: &Value) -> Option<DType> {
        let known =
            |name: &str| self.dtypes.iter().rev().find(|(known, _)| known == name).and_then(|(_, dtype)| *dtype);
        value.dtype(&self.kernel.buffers, &known)
    }

    /// The value with names for what is used several times, and the operations that are left in it.
    fn rebuilt(&mut self, unfolding: &mut Unfolding, value: &Value, span: Span) -> (Value, u64) {
        if let Value::Load(access) = value {
            let (access, weight) = self.rebuilt_access(unfolding, access, span);
            return (Value::Load(access), weight);
        }
        let Some(key) = key(value) else { return (value.clone(), 0) };
        if let Some(known) = unfolding.rebuilt.get(&key) {
            return known.clone();
        }
        let (mut weight, mut rebuilt) = (1u64, Vec::new());
        for operand in operands(value) {
            let (operand, more) = self.rebuilt(unfolding, operand, span);
            rebuilt.push(operand);
            weight = weight.saturating_add(more);
        }
        let made = match value {
            Value::Op(op, _) => Value::Op(*op, rebuilt.into()),
            Value::Cast(dtype, narrowing, _) => match rebuilt.pop() {
                Some(operand) => Value::Cast(*dtype, *narrowing, Arc::new(operand)),
                None => value.clone(),
            },
            Value::Const(_) | Value::Index(_) | Value::Named(_) | Value::Load(_) => value.clone(),
        };
        let made = match self.name_for(unfolding, key, weight) {
            Some(name) => {
                unfolding.named.push(Element::Let { name: name.clone(), value: made, span });
                (Value::Named(name), 0)
            }
            None => (made, weight),
        };
        unfolding.rebuilt.insert(key, made.clone());
        made
    }

    fn rebuilt_access(&mut self, unfolding: &mut Unfolding, access: &Access, span: Span) -> (Access, u64) {
        let (mut weight, mut index) = (0u64, Vec::with_capacity(access.index.len()));
        for coord in &access.index {
            index.push(match coord {
                Coord::At(expr) => Coord::At(expr.clone()),
                Coord::Data(value) => {
                    let (value, more) = self.rebuilt(unfolding, value, span);
                    weight = weight.saturating_add(more);
                    Coord::Data(value)
                }
            });
        }
        (Access { index, ..access.clone() }, weight)
    }

    /// A name for a node, if it gets one. A read of memory that stands in arms of `select` alone stays there, as far as the
    /// text does not grow beyond all measure; it does so in any case where the arm keeps it inside.
    fn name_for(&mut self, unfolding: &Unfolding, key: Key, weight: u64) -> Option<String> {
        let node = unfolding.nodes.get(&key)?;
        let dtype = node.dtype?;
        let is_apart = !node.may_leave && (!node.reads_memory || weight >= MOST_UNFOLDED);
        let may = node.is_certain || is_apart;
        if node.uses < 2 || weight < WORTH_A_NAME || !may {
            return None;
        }
        let numbered = (1..).map(|number| format!("value{number}"));
        let name = std::iter::once("value".to_string()).chain(numbered).find(|name| !self.taken.contains(name))?;
        self.taken.insert(name.clone());
        self.dtypes.push((name.clone(), Some(dtype)));
        Some(name)
    }
}

/// What tells a node from others; `None` for what has no operands of its own.
fn key(value: &Value) -> Option<Key> {
    match value {
        Value::Op(op, operands) => Some(Key::Op(*op, operands.as_ptr() as usize)),
        Value::Cast(dtype, narrowing, of) => {
            let how = match narrowing {
                Narrowing::Fits => 0,
                Narrowing::Saturates => 1,
                Narrowing::Wraps => 2,
            };
            Some(Key::Cast(*dtype, how, Arc::as_ptr(of) as usize))
        }
        Value::Const(_) | Value::Index(_) | Value::Named(_) | Value::Load(_) => None,
    }
}

fn operands(value: &Value) -> &[Value] {
    match value {
        Value::Op(_, operands) => operands,
        Value::Cast(_, _, of) => std::slice::from_ref(of),
        Value::Const(_) | Value::Index(_) | Value::Named(_) | Value::Load(_) => &[],
    }
}

fn reads_memory(unfolding: &Unfolding, value: &Value) -> bool {
    let known = key(value).and_then(|key| unfolding.nodes.get(&key));
    matches!(value, Value::Load(_)) || known.is_some_and(|node| node.reads_memory)
}

/// Marks the nodes that are used whatever conditions say.
fn mark_certain(unfolding: &mut Unfolding, value: &Value) {
    if let Value::Load(access) = value {
        return mark_access(unfolding, access);
    }
    let node = key(value).and_then(|key| unfolding.nodes.get_mut(&key));
    let Some(node) = node.filter(|node| !node.is_certain) else { return };
    node.is_certain = true;
    let is_choice = matches!(value, Value::Op(ElementOp::Select, _));
    operands(value).iter().take(if is_choice { 1 } else { usize::MAX }).for_each(|o| mark_certain(unfolding, o));
}

fn mark_access(unfolding: &mut Unfolding, access: &Access) {
    for coord in &access.index {
        if let Coord::Data(value) = coord {
            mark_certain(unfolding, value);
        }
    }
}
