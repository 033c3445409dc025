//! What statements have in common: everything but the numbers in their indices and the arrays of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use tilewright_expr::linear::{Linear, linear};
use tilewright_expr::{Expr, Node};
use tilewright_ir::thread::{Cond, RegArray, Resource, Stmt, TensorLeft, Unroll, Value, for_each_stmt};
use tilewright_ir::{Handle, Scalar};

/// How many statements mention each register array.
pub(super) struct Mentions(BTreeMap<Handle<RegArray>, usize>);

impl Mentions {
    pub(super) fn of(body: &[Stmt]) -> Mentions {
        let mut found = BTreeMap::new();
        for_each_stmt(body, &mut |stmt| {
            for array in of_statement(stmt) {
                *found.entry(array).or_insert(0) += 1;
            }
        });
        Mentions(found)
    }

    /// Counts `new` instead of `old`.
    pub(super) fn replace(&mut self, old: &[Stmt], new: &Stmt) {
        for (array, count) in Mentions::of(old).0 {
            let known = self.0.entry(array).or_insert(0);
            *known = known.saturating_sub(count);
        }
        for (array, count) in Mentions::of(std::slice::from_ref(new)).0 {
            *self.0.entry(array).or_insert(0) += count;
        }
    }

    pub(super) fn count(&self, array: Handle<RegArray>) -> usize {
        self.0.get(&array).copied().unwrap_or(0)
    }
}

/// The arrays that statements mention, also those inside.
pub(super) fn mentioned_arrays(body: &[Stmt]) -> BTreeSet<Handle<RegArray>> {
    let mut found = BTreeSet::new();
    for_each_stmt(body, &mut |stmt| found.extend(of_statement(stmt)));
    found
}

/// The arrays that a statement mentions, each once.
fn of_statement(stmt: &Stmt) -> Vec<Handle<RegArray>> {
    let mut found = Vec::new();
    let mut add = |resource: Resource<'_>| {
        if let Resource::Registers(regs) = resource
            && !found.contains(&regs.array)
        {
            found.push(regs.array);
        }
    };
    stmt.reads(&mut add);
    stmt.writes(&mut add);
    found
}

/// Where a number stands in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the index of a register of this array.
    Register(Handle<RegArray>),
    /// It is compared for equality. In a loop, NVRTC makes an index of a register of `if (x == i) a = r[i]`.
    Equality,
    Other,
}

/// A statement without its numbers and own arrays, and these.
pub(super) struct Shape {
    /// The statement with every index reduced to the part that is not constant, and own arrays replaced by the first
    /// one of the same kind.
    pub(super) frame: Stmt,
    /// The constant parts, in order.
    pub(super) numbers: Vec<i64>,
    /// For each number, where it stands.
    pub(super) places: Vec<Place>,
    /// A number that is the same for equal frames.
    pub(super) fingerprint: u64,
    /// The own arrays, in order; an array occurs as often as it is mentioned.
    pub(super) arrays: Vec<Handle<RegArray>>,
}

impl Shape {
    /// The shape of a statement. `representative` gives the first array of the kind of an own array, and `None` for other
    /// arrays.
    pub(super) fn of(stmt: &Stmt, representative: &dyn Fn(Handle<RegArray>) -> Option<Handle<RegArray>>) -> Shape {
        let mut frame = stmt.clone();
        let (mut numbers, mut arrays) = (Vec::new(), Vec::new());
        let (mut places, zero) = (Vec::new(), Expr::constant(0));
        let mut fingerprint = DefaultHasher::new();
        std::mem::discriminant(stmt).hash(&mut fingerprint);
        for_each_stmt(std::slice::from_ref(stmt), &mut |inner| constants(inner, &mut fingerprint));
        for_each_number(&mut frame, &mut |place, expr| {
            *expr = map_numbers(expr, &mut |number| {
                places.push(place);
                numbers.push(number);
                zero.clone()
            });
            expr.hash(&mut fingerprint);
        });
        for_each_array(&mut frame, &mut |array| {
            if let Some(first) = representative(*array) {
                arrays.push(*array);
                *array = first;
            }
            array.hash(&mut fingerprint);
        });
        Shape { frame, numbers, places, fingerprint: fingerprint.finish(), arrays }
    }
}

/// The expression with each number that is added in it, also in operands of its atoms, replaced. Factors, divisors and
/// numbers that bits are combined with stay.
pub(super) fn map_numbers(expr: &Expr, change: &mut dyn FnMut(i64) -> Expr) -> Expr {
    if let Some(number) = expr.as_const() {
        return change(number);
    }
    let Linear { terms, constant } = linear(expr);
    let of_terms =
        terms.into_iter().fold(Expr::constant(0), |sum, (factor, atom)| sum + map_atom(&atom, change) * factor);
    of_terms + change(constant)
}

fn map_atom(atom: &Expr, change: &mut dyn FnMut(i64) -> Expr) -> Expr {
    let mut operand = |of: &Expr| if of.as_const().is_some() { of.clone() } else { map_numbers(of, change) };
    match atom.node() {
        // With other numbers, one of the two operands may be known to be the lesser one.
        Node::Const(_) | Node::Var(_) | Node::Min(..) | Node::Max(..) => atom.clone(),
        Node::Add(a, b) => operand(a) + operand(b),
        Node::Mul(a, b) => operand(a) * operand(b),
        Node::Div(a, b) => operand(a) / operand(b),
        Node::Mod(a, b) => operand(a) % operand(b),
        Node::Xor(a, b) => operand(a) ^ operand(b),
        Node::And(a, b) => operand(a) & operand(b),
    }
}

/// Hashes the constants of a statement, in which many statements differ.
fn constants(stmt: &Stmt, hasher: &mut DefaultHasher) {
    let mut number = |value: Scalar| match value {
        Scalar::Int(value) => value.hash(hasher),
        Scalar::Float(value) => value.to_bits().hash(hasher),
    };
    if let Stmt::Set { value, .. } = stmt {
        number(*value);
    }
    for value in stmt.values() {
        value.for_each(&mut |part| {
            if let Value::Const(_, value) = part {
                number(*value);
            }
        });
    }
}

/// Calls `visit` on every index in a statement and inside it: of registers of an array, of memory, in values and in
/// conditions.
pub(super) fn for_each_number(stmt: &mut Stmt, visit: &mut dyn FnMut(Place, &mut Expr)) {
    stmt.for_each_regs_mut(&mut |array, index| visit(Place::Register(*array), index));
    let mut plain = |index: &mut Expr| visit(Place::Other, index);
    match stmt {
        Stmt::Load { index, .. } | Stmt::Store { index, .. } => plain(index),
        Stmt::Inst(call) => call.memory.iter_mut().for_each(|(_, index)| plain(index)),
        Stmt::If { cond, .. } => {
            let place = if matches!(cond, Cond::Equal(..)) { Place::Equality } else { Place::Other };
            cond.sides_mut().into_iter().for_each(|side| visit(place, side));
        }
        Stmt::TensorCopy(copy) => copy.exprs_mut().for_each(plain),
        Stmt::TensorMma(product) => {
            plain(&mut product.sums);
            if let TensorLeft::Tensor(a) = &mut product.a {
                plain(a);
            }
            product.shared_mut().flat_map(|part| [&mut part.first, &mut part.offset]).for_each(plain);
        }
        Stmt::TensorMove(moved) => plain(&mut moved.address),
        Stmt::Unless { conds, .. } => conds.iter_mut().flat_map(Cond::sides_mut).for_each(plain),
        Stmt::Assign { .. } | Stmt::AssignPair { .. } | Stmt::IfValue { .. } => {
            stmt.values_mut().iter_mut().for_each(|value: &mut Value| value.for_each_index_mut(&mut plain));
        }
        Stmt::Op { .. } | Stmt::Let { .. } | Stmt::Declare(_) | Stmt::Lookup { .. } | Stmt::Set { .. } => {}
        Stmt::Move { .. } | Stmt::For { .. } | Stmt::LetValue { .. } | Stmt::Mma(_) => {}
        Stmt::WarpgroupMma(product) => {
            product.shared_mut().flat_map(|part| [&mut part.first, &mut part.offset]).for_each(plain);
        }
        Stmt::Role { .. } | Stmt::Elect { .. } | Stmt::Advance { .. } => {}
    }
    stmt.inner_mut().iter_mut().for_each(|inner| for_each_number(inner, visit));
}

/// Calls `visit` on every register array that a statement or one inside it mentions or declares.
fn for_each_array(stmt: &mut Stmt, visit: &mut dyn FnMut(&mut Handle<RegArray>)) {
    if let Stmt::Declare(array) = stmt {
        visit(array);
    }
    stmt.for_each_regs_mut(&mut |array, _| visit(array));
    stmt.inner_mut().iter_mut().for_each(|inner| for_each_array(inner, visit));
}

/// Whether a statement can stand in a loop as it is: it defines no variable.
pub(super) fn is_repeatable(stmt: &Stmt) -> bool {
    let defines = match stmt {
        Stmt::Let { .. } | Stmt::LetValue { .. } | Stmt::Lookup { .. } | Stmt::Op { .. } => true,
        Stmt::For { unroll, .. } => *unroll != Unroll::Full,
        _ => false,
    };
    !defines && stmt.inner().iter().all(is_repeatable)
}
