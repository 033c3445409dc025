//! Values with a dtype that one statement uses several times get a name, so that they are computed once, and every text of
//! the kernel grows with what the user wrote and not with what that unfolds to. So do parts of values of many operations, so
//! that every later stage, which walks values by recursion, meets short ones. Integers that are made of indices alone have
//! no dtype and no name of this kind: their ranges double with every sum, so that they soon fit no dtype. What stays too long
//! without names is refused here.
//!
//! Nothing here recurses through operations: they may be nested as deeply as memory allows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tilewright_diag::{Diagnostic, Span};
use tilewright_layout::DType;

use crate::tile::element::Element;
use crate::tile::kernel::{Kernel, Space, Stmt};
use crate::tile::value::{Access, Coord, ElementOp, Narrowing, Value, op_dtype};

/// Operations from which on a value that is used several times is worth a name.
const WORTH_A_NAME: u64 = 2;
/// Operations from which on it gets one even if every use is under a condition.
const MOST_UNFOLDED: u64 = 1 << 4;
/// Operations from which on a part of a value gets a name even if it is used once.
const MOST_AT_ONCE: u64 = 1 << 6;
/// Operations from which on it gets one even if it reads memory in arms of `select` alone.
const MOST_IN_AN_ARM: u64 = 1 << 7;
/// Operations inside each other that later stages take.
const MOST_NESTED: u64 = 1 << 8;
/// Operations of one value, as often as it is unfolded to them, that later stages take.
const MOST_IN_ALL: u64 = 1 << 12;

/// What tells nodes apart: what they do, and where their operands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Op(ElementOp, usize),
    Cast(DType, u8, usize),
}

/// An operation of a statement's values.
type Operation<'v> = (Key, &'v Value);

/// What is known of a node.
#[derive(Clone, Debug)]
struct Node {
    uses: u64,
    /// Some use is not in an arm of a `select`.
    is_certain: bool,
    /// Some use is in another operation of the statement.
    is_part: bool,
    /// Some use is in a sum or a difference, which a product is fused with.
    is_term: bool,
    reads_memory: bool,
    /// It reads shared memory or a fragment at an index that may be outside, which only a condition keeps from being done.
    may_leave: bool,
    dtype: Option<DType>,
}

/// What is left of a value when its parts have names.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    operations: u64,
    /// How many are inside each other.
    nested: u64,
}

impl Left {
    /// Two values side by side.
    fn beside(self, other: Left) -> Left {
        let operations = self.operations.saturating_add(other.operations);
        Left { operations, nested: self.nested.max(other.nested) }
    }
}

/// Gives names to the values of a kernel that are used several times, and to parts of long ones.
pub fn name_shared(kernel: &mut Kernel) {
    let taken = kernel.taken_names().into_iter().map(str::to_string).collect();
    let mut parallels = std::mem::take(&mut kernel.parallels);
    let mut body = std::mem::take(&mut kernel.body);
    let mut naming = Naming { kernel, taken, dtypes: Vec::new(), found: Vec::new() };
    for parallel in parallels.iter_mut() {
        parallel.body = naming.elements(std::mem::take(&mut parallel.body));
    }
    naming.stmts(&mut body);
    let found = naming.found;
    kernel.parallels = parallels;
    kernel.body = body;
    kernel.mistakes.extend(found);
}

struct Naming<'a> {
    kernel: &'a Kernel,
    taken: BTreeSet<String>,
    /// Dtypes of the names in scope.
    dtypes: Vec<(String, Option<DType>)>,
    /// Statements that are too long.
    found: Vec<Diagnostic>,
}

impl Naming<'_> {
    fn stmts(&mut self, body: &mut [Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Op(_) | Stmt::Parallel(_) => {}
                Stmt::Loop(inner) => self.stmts(&mut inner.body),
                Stmt::Each(elements) => *elements = self.elements(std::mem::take(elements)),
                Stmt::If(branch) => {
                    // No name can stand in front of it.
                    let (_, [cond], _) = self.unfolded([&branch.cond], &[], (branch.span, false));
                    branch.cond = cond;
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
                let (before, [value], _) = self.unfolded([&value], &[], (span, true));
                let dtype = self.dtype(&value);
                self.dtypes.push((name.clone(), dtype));
                (before, Element::Let { name, value, span })
            }
            Element::Store { to, value, claim } => {
                let (before, [value], to) = self.unfolded([&value], std::slice::from_ref(&to), (to.span, true));
                (before, Element::Store { to: to[0].clone(), value, claim })
            }
            Element::AtomicAdd { to, value } => {
                let (before, [value], to) = self.unfolded([&value], std::slice::from_ref(&to), (to.span, true));
                (before, Element::AtomicAdd { to: to[0].clone(), value })
            }
            Element::If { cond, then, otherwise, span } => {
                let (before, [cond], _) = self.unfolded([&cond], &[], (span, true));
                let (then, otherwise) = (self.elements(then), self.elements(otherwise));
                (before, Element::If { cond, then, otherwise, span })
            }
            Element::For { var, body, span } => {
                let body = self.elements(body);
                (Vec::new(), Element::For { var, body, span })
            }
        }
    }

    /// The values and accesses of a statement with names in them, unless it is one that takes none, and the names.
    fn unfolded<const N: usize>(
        &mut self,
        values: [&Value; N],
        accesses: &[Access],
        (span, takes_names): (Span, bool),
    ) -> (Vec<Element>, [Value; N], Vec<Access>) {
        let mut roots = Vec::new();
        values.iter().for_each(|value| outermost(value, &mut roots));
        accesses.iter().for_each(|access| outermost_of(access, &mut roots));
        let order = in_order(&roots);
        let nodes = self.nodes(&roots, &order);
        if (order.len() as u64) < MOST_AT_ONCE && nodes.values().all(|node| node.uses < 2) {
            return (Vec::new(), values.map(Value::clone), accesses.to_vec());
        }
        let (mut made, mut named, mut longest) = (BTreeMap::new(), Vec::new(), Left::default());
        for (key, value) in order {
            let (value, left) = rebuilt_operation(&made, value);
            let node = nodes.get(&key).filter(|_| takes_names);
            let name = node.and_then(|node| self.name_for(node, key, left.operations));
            let is_too_long = left.nested > MOST_NESTED || left.operations > MOST_IN_ALL;
            let now = match name {
                Some(name) => {
                    named.push(Element::Let { name: name.clone(), value, span });
                    (Value::Named(name), Left::default())
                }
                // Stands in until the mistake is reported.
                None if is_too_long => {
                    longest = longest.beside(left);
                    (Value::from(0), Left::default())
                }
                None => (value, left),
            };
            made.insert(key, now);
        }
        self.found.extend(too_long(longest, span));
        let values = values.map(|value| rebuilt(&made, value).0);
        let accesses = accesses.iter().map(|access| rebuilt_access(&made, access).0).collect();
        (named, values, accesses)
    }

    /// What is known of the operations of a statement.
    fn nodes(&self, roots: &[Operation<'_>], order: &[Operation<'_>]) -> BTreeMap<Key, Node> {
        let mut nodes = BTreeMap::new();
        for (key, value) in order {
            let reads_memory = operands(value).iter().any(|operand| reads_memory(&nodes, operand));
            let may_leave = operands(value).iter().any(|operand| self.may_leave(&nodes, operand));
            let dtype = self.dtype_of(&nodes, value);
            let (uses, is_certain, is_part, is_term) = (0, false, false, false);
            nodes.insert(*key, Node { uses, is_certain, is_part, is_term, reads_memory, may_leave, dtype });
        }
        for (key, _) in roots {
            if let Some(node) = nodes.get_mut(key) {
                node.uses += 1;
                node.is_certain = true;
            }
        }
        // What uses an operation stands behind it.
        for (key, value) in order.iter().rev() {
            let is_certain = nodes.get(key).is_some_and(|node| node.is_certain);
            let is_choice = matches!(value, Value::Op(ElementOp::Select, _));
            let is_sum = matches!(value, Value::Op(ElementOp::Add | ElementOp::Sub, _));
            for (at, operand) in operands(value).iter().enumerate() {
                let mut parts = Vec::new();
                outermost(operand, &mut parts);
                for (part, _) in parts {
                    if let Some(node) = nodes.get_mut(&part) {
                        node.uses += 1;
                        node.is_certain |= is_certain && (at == 0 || !is_choice);
                        node.is_part = true;
                        node.is_term |= is_sum;
                    }
                }
            }
        }
        nodes
    }

    /// Whether a value, whose nodes are known, reads what only a condition keeps inside of its buffer.
    fn may_leave(&self, nodes: &BTreeMap<Key, Node>, value: &Value) -> bool {
        let Value::Load(access) = value else {
            return key(value).and_then(|key| nodes.get(&key)).is_some_and(|node| node.may_leave);
        };
        let Some(buffer) = self.kernel.buffers.get(access.buffer) else { return false };
        let is_masked = matches!(buffer.space, Space::Global(_));
        access.index.iter().zip(&buffer.shape).any(|(coord, extent)| match coord {
            Coord::At(index) => !is_masked && !index.range().within(0, *extent),
            Coord::Data(value) => self.may_leave(nodes, value),
        })
    }

    /// The dtype of a node whose operands are known.
    fn dtype_of(&self, nodes: &BTreeMap<Key, Node>, value: &Value) -> Option<DType> {
        let of = |operand: &Value| match key(operand) {
            Some(key) => nodes.get(&key).and_then(|node| node.dtype),
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

    /// A name for a node, if it gets one. A read of memory that stands in arms of `select` alone stays there, as far as the
    /// text does not grow beyond all measure; it does so in any case where the arm keeps it inside.
    fn name_for(&mut self, node: &Node, key: Key, operations: u64) -> Option<String> {
        let dtype = node.dtype?;
        let may = |most: u64| node.is_certain || (!node.may_leave && (!node.reads_memory || operations >= most));
        let is_shared = node.uses >= 2 && operations >= WORTH_A_NAME && may(MOST_UNFOLDED);
        // A product with a name would not be fused any more; the sum that it goes into gets the name.
        let is_fused = node.is_term && matches!(key, Key::Op(ElementOp::Mul, _));
        let is_long = node.is_part && !is_fused && operations >= MOST_AT_ONCE && may(MOST_IN_AN_ARM);
        if !is_shared && !is_long {
            return None;
        }
        let numbered = (1..).map(|number| format!("value{number}"));
        let name = std::iter::once("value".to_string()).chain(numbered).find(|name| !self.taken.contains(name))?;
        self.taken.insert(name.clone());
        self.dtypes.push((name.clone(), Some(dtype)));
        Some(name)
    }
}

/// What is wrong with a statement that has a value of so many operations without names.
fn too_long(left: Left, span: Span) -> Option<Diagnostic> {
    let message = if left.nested > MOST_NESTED {
        format!("a value of more than {MOST_NESTED} operations inside each other")
    } else if left.operations > MOST_IN_ALL {
        format!("a value that unfolds to more than {MOST_IN_ALL} operations")
    } else {
        return None;
    };
    let finding = Diagnostic::error("K0268", message).label(span, "in this statement");
    Some(finding.help("name parts of it, with k.named"))
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

/// Adds the operations of a value that stand in no other: the value itself, or those in the indices of an element.
fn outermost<'v>(value: &'v Value, found: &mut Vec<Operation<'v>>) {
    match value {
        Value::Load(access) => outermost_of(access, found),
        Value::Const(_) | Value::Index(_) | Value::Named(_) | Value::Op(..) | Value::Cast(..) => {
            found.extend(key(value).map(|key| (key, value)));
        }
    }
}

fn outermost_of<'v>(access: &'v Access, found: &mut Vec<Operation<'v>>) {
    for coord in &access.index {
        if let Coord::Data(value) = coord {
            outermost(value, found);
        }
    }
}

/// Every operation of which these are made, and these, once each: operands in their order, and behind them what they go into.
fn in_order<'v>(roots: &[Operation<'v>]) -> Vec<Operation<'v>> {
    let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
    // The next one is the last; with `true`, its operands are in the order.
    let mut open: Vec<(Operation<'v>, bool)> = roots.iter().rev().map(|root| (*root, false)).collect();
    while let Some(((key, value), is_next)) = open.pop() {
        if is_next {
            order.push((key, value));
        } else if seen.insert(key) {
            open.push(((key, value), true));
            let mut parts = Vec::new();
            operands(value).iter().for_each(|operand| outermost(operand, &mut parts));
            open.extend(parts.into_iter().rev().map(|part| (part, false)));
        }
    }
    order
}

fn reads_memory(nodes: &BTreeMap<Key, Node>, value: &Value) -> bool {
    let known = key(value).and_then(|key| nodes.get(&key));
    matches!(value, Value::Load(_)) || known.is_some_and(|node| node.reads_memory)
}

/// An operation on what was made of its operands, and the operations that are left in it.
fn rebuilt_operation(made: &BTreeMap<Key, (Value, Left)>, value: &Value) -> (Value, Left) {
    let (mut parts, mut all) = (Vec::with_capacity(operands(value).len()), Left::default());
    for operand in operands(value) {
        let (operand, left) = rebuilt(made, operand);
        parts.push(operand);
        all = all.beside(left);
    }
    let now = match value {
        Value::Op(op, _) => Value::Op(*op, parts.into()),
        Value::Cast(dtype, narrowing, _) => match parts.pop() {
            Some(operand) => Value::Cast(*dtype, *narrowing, Arc::new(operand)),
            None => value.clone(),
        },
        Value::Const(_) | Value::Index(_) | Value::Named(_) | Value::Load(_) => value.clone(),
    };
    (now, Left { operations: all.operations.saturating_add(1), nested: all.nested + 1 })
}

/// A value whose operations have all been rebuilt.
fn rebuilt(made: &BTreeMap<Key, (Value, Left)>, value: &Value) -> (Value, Left) {
    if let Value::Load(access) = value {
        let (access, left) = rebuilt_access(made, access);
        return (Value::Load(access), left);
    }
    let known = key(value).and_then(|key| made.get(&key)).cloned();
    known.unwrap_or_else(|| (value.clone(), Left::default()))
}

fn rebuilt_access(made: &BTreeMap<Key, (Value, Left)>, access: &Access) -> (Access, Left) {
    let (mut index, mut all) = (Vec::with_capacity(access.index.len()), Left::default());
    for coord in &access.index {
        index.push(match coord {
            Coord::At(expr) => Coord::At(expr.clone()),
            Coord::Data(value) => {
                let (value, left) = rebuilt(made, value);
                all = all.beside(Left { nested: left.nested + 1, ..left });
                Coord::Data(value)
            }
        });
    }
    (Access { index, ..access.clone() }, all)
}
