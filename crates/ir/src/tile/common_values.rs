//! Values with a dtype that one statement uses several times get a name, so that they are computed once, and the text
//! of the kernel grows with what the user wrote and not with its expansion. So do parts of values with many operations,
//! so that later stages, which walk values recursively, see only short ones. Integers made of indices alone have no
//! dtype and get no such name: their ranges double with every sum, so that they soon fit no dtype. Values that stay too
//! long without names are rejected here.
//!
//! Nothing here recurses through operations: they may be nested as deeply as memory allows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;
use tilewright_diag::{Diagnostic, Span};
use tilewright_layout::DType;

use crate::tile::atomic::Atomic;
use crate::tile::buffer::Space;
use crate::tile::combiner::{Combiner, Parameter};
use crate::tile::element::ElementStmt;
use crate::tile::kernel::{Kernel, Stmt};
use crate::tile::value::{Access, Coord, ElementOp, Narrowing, Value, op_dtype};

/// From this number of operations on, a value that is used several times gets a name.
const WORTH_A_NAME: u64 = 2;
/// From this number of operations on, it gets a name even if it reads memory and every use is under a condition.
const MAX_UNFOLDED: u64 = 1 << 4;
/// From this number of operations on, a part of a value gets a name even if it is used once.
const MAX_AT_ONCE: u64 = 1 << 6;
/// From this number of operations on, it gets a name even if it reads memory and is used only in arms of `select`.
const MAX_IN_AN_ARM: u64 = 1 << 7;
/// The deepest nesting of operations that later stages accept.
const MAX_NESTED: u64 = 1 << 8;
/// The most operations in one value, fully expanded, that later stages accept.
const MAX_IN_ALL: u64 = 1 << 12;

/// The identity of a node: its operation, and the address of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    Op(ElementOp, usize),
    Cast(DType, u8, usize),
}

/// An operation of a statement's values.
type Operation<'v> = (Key, &'v Value);

/// What is known about a node.
#[derive(Clone, Debug)]
struct Node {
    /// Number of uses in the statement.
    uses: u64,
    /// Whether some use is not in an arm of a `select`.
    is_certain: bool,
    /// Whether some use is in another operation of the statement.
    is_part: bool,
    /// Whether some use is in a sum or a difference, with which a product is fused.
    is_term: bool,
    /// Whether it, or an operation inside it, has an element of a buffer as an operand.
    reads_memory: bool,
    /// Whether it reads shared memory or a fragment at an index that may be out of bounds, so that only a condition
    /// makes the read safe.
    may_leave: bool,
    /// Dtype of its result; `None` for truth values, and where the context decides it.
    dtype: Option<DType>,
}

/// The size of a value when its parts have names.
#[derive(Clone, Copy, Debug, Default)]
struct ValueSize {
    /// Number of operations.
    operations: u64,
    /// How deeply they are nested.
    depth: u64,
}

impl ValueSize {
    /// The size of two values side by side.
    fn beside(self, other: ValueSize) -> ValueSize {
        let operations = self.operations.saturating_add(other.operations);
        ValueSize { operations, depth: self.depth.max(other.depth) }
    }
}

/// Gives names to the values of a kernel that are used several times, and to parts of long ones.
pub fn name_common_values(kernel: &mut Kernel) {
    let taken = kernel.taken_names().into_iter().map(str::to_string).collect();
    let mut parallels = std::mem::take(&mut kernel.parallels);
    let mut combiners = std::mem::take(&mut kernel.combiners);
    let mut body = std::mem::take(&mut kernel.body);
    let dtypes = kernel.scalars.iter().map(|scalar| (scalar.name.clone(), Some(scalar.dtype))).collect();
    let mut naming = Naming { kernel, taken, dtypes, found: Vec::new() };
    for parallel in parallels.iter_mut() {
        parallel.body = naming.elements(std::mem::take(&mut parallel.body));
    }
    naming.stmts(&mut body);
    combiners.iter_mut().for_each(|combiner| naming.function(combiner));
    let found = naming.found;
    kernel.parallels = parallels;
    kernel.combiners = combiners;
    kernel.body = body;
    kernel.build_findings.extend(found);
}

struct Naming<'a> {
    kernel: &'a Kernel,
    /// Names that are in use in the kernel.
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
                Stmt::Op(_) | Stmt::Parallel(_) | Stmt::Begin(_) | Stmt::End(_) => {}
                Stmt::Loop(inner) => self.stmts(&mut inner.body),
                Stmt::EachThread(elements) => *elements = self.elements(std::mem::take(elements)),
                Stmt::If(branch) => {
                    // No statement that names a value can precede it.
                    branch.cond = self.one(&branch.cond, (branch.span, false)).1;
                    self.stmts(&mut branch.then);
                    self.stmts(&mut branch.otherwise);
                }
            }
        }
    }

    /// The function of an op that reduces tuples: names are for what its results share.
    fn function(&mut self, combiner: &mut Combiner) {
        let known = self.dtypes.len();
        for Parameter { names, dtype } in &combiner.parameters {
            self.dtypes.extend(names.iter().map(|name| (name.clone(), Some(*dtype))));
        }
        let results: Vec<&Value> = combiner.results.iter().collect();
        let (named, results, _) = self.unfolded(&results, &[], (combiner.span, true));
        for element in named {
            if let ElementStmt::Let { name, value, .. } = element {
                combiner.named.push((name, value));
            }
        }
        combiner.results = results;
        self.dtypes.truncate(known);
    }

    fn elements(&mut self, body: Vec<ElementStmt>) -> Vec<ElementStmt> {
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

    /// The statements that name values for a statement, and the statement rewritten to use the names.
    fn element(&mut self, element: ElementStmt) -> (Vec<ElementStmt>, ElementStmt) {
        match element {
            ElementStmt::Let { name, value, span } => {
                let (before, value) = self.one(&value, (span, true));
                let dtype = self.dtype(&value);
                self.dtypes.push((name.clone(), dtype));
                (before, ElementStmt::Let { name, value, span })
            }
            ElementStmt::Store { to, value, claim } => {
                let (before, value, to) = self.stored(&value, &to);
                (before, ElementStmt::Store { to, value, claim })
            }
            ElementStmt::Atomic(atomic) => self.atomic(atomic),
            ElementStmt::If { cond, then, otherwise, span } => {
                let (before, cond) = self.one(&cond, (span, true));
                let (then, otherwise) = (self.elements(then), self.elements(otherwise));
                (before, ElementStmt::If { cond, then, otherwise, span })
            }
            ElementStmt::For { counter, body, span } => {
                let body = self.elements(body);
                (Vec::new(), ElementStmt::For { counter, body, span })
            }
        }
    }

    fn atomic(&mut self, atomic: Atomic) -> (Vec<ElementStmt>, ElementStmt) {
        let dtype = self.kernel.buffers.get(atomic.to.buffer).map(|buffer| buffer.dtype);
        let values: Vec<&Value> = atomic.values().collect();
        let (before, values, mut to) = self.unfolded(&values, std::slice::from_ref(&atomic.to), (atomic.to.span, true));
        let mut values = values.into_iter();
        self.dtypes.extend(atomic.old.iter().map(|old| (old.name.clone(), dtype)));
        let atomic = atomic.map(&mut |value| values.next().unwrap_or(value), |access| to.pop().unwrap_or(access));
        (before, ElementStmt::Atomic(atomic))
    }

    /// [`Naming::unfolded`] of one value.
    fn one(&mut self, value: &Value, how: (Span, bool)) -> (Vec<ElementStmt>, Value) {
        let (before, mut values, _) = self.unfolded(&[value], &[], how);
        (before, values.swap_remove(0))
    }

    /// [`Naming::unfolded`] of a value and where it is stored.
    fn stored(&mut self, value: &Value, to: &Access) -> (Vec<ElementStmt>, Value, Access) {
        let (before, mut values, mut accesses) = self.unfolded(&[value], std::slice::from_ref(to), (to.span, true));
        (before, values.swap_remove(0), accesses.swap_remove(0))
    }

    /// The statements that name values, none unless `takes_names`, and the values and accesses rewritten to use the
    /// names.
    fn unfolded(
        &mut self,
        values: &[&Value],
        accesses: &[Access],
        (span, takes_names): (Span, bool),
    ) -> (Vec<ElementStmt>, Vec<Value>, Vec<Access>) {
        let mut roots = Vec::new();
        values.iter().for_each(|value| outermost(value, &mut roots));
        accesses.iter().for_each(|access| outermost_of(access, &mut roots));
        let order = in_order(&roots);
        let nodes = self.nodes(&roots, &order);
        if (order.len() as u64) < MAX_AT_ONCE && nodes.values().all(|node| node.uses < 2) {
            let values = values.iter().copied().cloned().collect();
            return (Vec::new(), values, accesses.to_vec());
        }
        let (mut made, mut named, mut longest) = (BTreeMap::new(), Vec::new(), ValueSize::default());
        for (key, value) in order {
            let (value, left) = rebuilt_operation(&made, value);
            let name = if takes_names { self.name_for(&nodes[&key], key, left.operations) } else { None };
            let is_too_long = left.depth > MAX_NESTED || left.operations > MAX_IN_ALL;
            let now = match name {
                Some(name) => {
                    named.push(ElementStmt::Let { name: name.clone(), value, span });
                    (Value::Named(name), ValueSize::default())
                }
                // A placeholder until the mistake is reported.
                None if is_too_long => {
                    longest = longest.beside(left);
                    (Value::from(0), ValueSize::default())
                }
                None => (value, left),
            };
            made.insert(key, now);
        }
        self.found.extend(too_long(longest, span));
        let values = values.iter().map(|value| rebuilt(&made, value).0).collect();
        let accesses = accesses.iter().map(|access| rebuilt_access(&made, access).0).collect();
        (named, values, accesses)
    }

    /// What is known about the operations of a statement.
    fn nodes(&self, roots: &[Operation<'_>], order: &[Operation<'_>]) -> IndexMap<Key, Node> {
        let mut nodes = IndexMap::new();
        for (key, value) in order {
            let reads_memory = operands(value).iter().any(|operand| reads_memory(&nodes, operand));
            let may_leave = operands(value).iter().any(|operand| self.may_leave(&nodes, operand));
            let dtype = self.dtype_of(&nodes, value);
            let (uses, is_certain, is_part, is_term) = (0, false, false, false);
            nodes.insert(*key, Node { uses, is_certain, is_part, is_term, reads_memory, may_leave, dtype });
        }
        for (key, _) in roots {
            nodes[key].uses += 1;
            nodes[key].is_certain = true;
        }
        // Users of an operation follow it in `order`.
        for (key, value) in order.iter().rev() {
            let is_certain = nodes[key].is_certain;
            let is_choice = matches!(value, Value::Op(ElementOp::Select, _));
            let is_sum = matches!(value, Value::Op(ElementOp::Add | ElementOp::Sub, _));
            for (at, operand) in operands(value).iter().enumerate() {
                let mut parts = Vec::new();
                outermost(operand, &mut parts);
                for (part, _) in parts {
                    let node = &mut nodes[&part];
                    node.uses += 1;
                    node.is_certain |= is_certain && (at == 0 || !is_choice);
                    node.is_part = true;
                    node.is_term |= is_sum;
                }
            }
        }
        nodes
    }

    /// Whether a value, whose nodes are known, reads a buffer at an index that only a condition keeps in bounds.
    fn may_leave(&self, nodes: &IndexMap<Key, Node>, value: &Value) -> bool {
        let Value::Load(access) = value else {
            return key(value).is_some_and(|key| nodes[&key].may_leave);
        };
        // A handle that is not valid has been reported.
        let Some(buffer) = self.kernel.buffers.get(access.buffer) else { return false };
        let is_masked = matches!(buffer.space, Space::Global(_));
        access.index.iter().zip(&buffer.shape).any(|(coord, extent)| match coord {
            Coord::At(index) => !is_masked && !index.range().within(0, *extent),
            Coord::Data(value) => self.may_leave(nodes, value),
        })
    }

    /// The dtype of a node whose operands are known.
    fn dtype_of(&self, nodes: &IndexMap<Key, Node>, value: &Value) -> Option<DType> {
        let of = |operand: &Value| match key(operand) {
            Some(key) => nodes[&key].dtype,
            None => self.dtype(operand),
        };
        match value {
            Value::Op(op, operands) => op_dtype(*op, operands, &of),
            Value::Cast(dtype, ..) => Some(*dtype),
            Value::Const(_) | Value::Index(_) | Value::Named(_) | Value::Load(_) => self.dtype(value),
        }
    }

    /// The dtype of a value, which must be small since this recurses.
    fn dtype(&self, value: &Value) -> Option<DType> {
        let known =
            |name: &str| self.dtypes.iter().rev().find(|(known, _)| known == name).and_then(|(_, dtype)| *dtype);
        value.dtype(&self.kernel.buffers, &known)
    }

    /// A name for a node, if it gets one. A read of memory that occurs only in arms of `select` stays there unless the
    /// text would grow too much; if only the arm keeps its index in bounds, it always stays.
    fn name_for(&mut self, node: &Node, key: Key, operations: u64) -> Option<String> {
        let dtype = node.dtype?;
        let may = |most: u64| node.is_certain || (!node.may_leave && (!node.reads_memory || operations >= most));
        let is_shared = node.uses >= 2 && operations >= WORTH_A_NAME && may(MAX_UNFOLDED);
        // A product with a name would not be fused any more; the sum around it gets the name.
        let is_fused = node.is_term && matches!(key, Key::Op(ElementOp::Mul, _));
        let is_long = node.is_part && !is_fused && operations >= MAX_AT_ONCE && may(MAX_IN_AN_ARM);
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

/// The error for a statement in which a value of this size is left without names.
fn too_long(left: ValueSize, span: Span) -> Option<Diagnostic> {
    let message = if left.depth > MAX_NESTED {
        format!("a value nests more than {MAX_NESTED} operations")
    } else if left.operations > MAX_IN_ALL {
        format!("a value expands to more than {MAX_IN_ALL} operations")
    } else {
        return None;
    };
    let finding = Diagnostic::error("K0268", message).label(span, "in this statement");
    Some(finding.help("name parts of it with k.named"))
}

/// The identity of a node; `None` for a value without operands.
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

/// Adds the outermost operations of a value: the value itself, or those in the indices of an element.
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

/// The roots and all operations inside them, once each, with operands before the operations that use them.
fn in_order<'v>(roots: &[Operation<'v>]) -> Vec<Operation<'v>> {
    let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
    // A stack; `true` means that the operands are already in the order.
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

fn reads_memory(nodes: &IndexMap<Key, Node>, value: &Value) -> bool {
    matches!(value, Value::Load(_)) || key(value).is_some_and(|key| nodes[&key].reads_memory)
}

/// An operation on its rebuilt operands, and its size.
fn rebuilt_operation(made: &BTreeMap<Key, (Value, ValueSize)>, value: &Value) -> (Value, ValueSize) {
    let (mut parts, mut all) = (Vec::with_capacity(operands(value).len()), ValueSize::default());
    for operand in operands(value) {
        let (operand, left) = rebuilt(made, operand);
        parts.push(operand);
        all = all.beside(left);
    }
    let now = match value {
        Value::Op(op, _) => Value::Op(*op, parts.into()),
        Value::Cast(dtype, narrowing, _) => Value::Cast(*dtype, *narrowing, Arc::new(parts.swap_remove(0))),
        Value::Const(_) | Value::Index(_) | Value::Named(_) | Value::Load(_) => value.clone(),
    };
    (now, ValueSize { operations: all.operations.saturating_add(1), depth: all.depth + 1 })
}

/// A value whose operations have all been rebuilt, and its size.
fn rebuilt(made: &BTreeMap<Key, (Value, ValueSize)>, value: &Value) -> (Value, ValueSize) {
    if let Value::Load(access) = value {
        let (access, left) = rebuilt_access(made, access);
        return (Value::Load(access), left);
    }
    match key(value) {
        Some(key) => made[&key].clone(),
        None => (value.clone(), ValueSize::default()),
    }
}

fn rebuilt_access(made: &BTreeMap<Key, (Value, ValueSize)>, access: &Access) -> (Access, ValueSize) {
    let (mut index, mut all) = (Vec::with_capacity(access.index.len()), ValueSize::default());
    for coord in &access.index {
        index.push(match coord {
            Coord::At(expr) => Coord::At(expr.clone()),
            Coord::Data(value) => {
                let (value, left) = rebuilt(made, value);
                all = all.beside(ValueSize { depth: left.depth + 1, ..left });
                Coord::Data(value)
            }
        });
    }
    (Access { index, ..access.clone() }, all)
}
