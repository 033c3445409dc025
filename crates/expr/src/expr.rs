use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{self, AtomicBool};
use std::sync::{Arc, LazyLock};

use rustc_hash::FxHasher;

use crate::facts::Facts;
use crate::range::ValueRange;

/// A variable: a name, and the values it can take. Two variables are the same if both agree.
#[derive(Clone, Debug)]
pub struct Var(Arc<Hashed<Known>>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Known {
    name: String,
    range: ValueRange,
    /// A number that divides every value.
    multiple: i64,
}

impl Var {
    /// A variable with values from `lo` to `hi`, both included; without values if `lo` is greater.
    pub fn new(name: impl Into<String>, lo: i64, hi: i64) -> Var {
        Var::multiple_of(name, lo, hi, 1)
    }

    /// A variable whose values are multiples of `multiple`. A number that is not positive says nothing about them.
    pub fn multiple_of(name: impl Into<String>, lo: i64, hi: i64, multiple: i64) -> Var {
        // 1 divides every value, so this is never wrong.
        let known = Known { name: name.into(), range: ValueRange::new(lo, hi), multiple: multiple.max(1) };
        Var(Arc::new(Hashed::new(known)))
    }

    fn known(&self) -> &Known {
        &self.0.of
    }

    /// Its name, as it is printed.
    pub fn name(&self) -> &str {
        &self.0.of.name
    }

    /// The values it can take.
    pub fn range(&self) -> ValueRange {
        self.0.of.range
    }

    /// A number that divides every value.
    pub fn multiple(&self) -> i64 {
        self.0.of.multiple
    }

    /// What is known about its values.
    pub fn facts(&self) -> Facts {
        Facts::new(self.range(), self.multiple())
    }
}

/// One operation of an index expression. Division and remainder are those of floor division.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A number.
    Const(i64),
    /// A variable.
    Var(Var),
    /// Sum.
    Add(Expr, Expr),
    /// Product.
    Mul(Expr, Expr),
    /// Floor division.
    Div(Expr, Expr),
    /// Remainder of floor division.
    Mod(Expr, Expr),
    /// Bitwise exclusive or.
    Xor(Expr, Expr),
    /// Bitwise and.
    And(Expr, Expr),
    /// The lesser of two.
    Min(Expr, Expr),
    /// The greater of two.
    Max(Expr, Expr),
}

/// An integer expression; cheap to clone and to compare. The facts about its values are computed once, when it is made.
#[derive(Clone)]
pub struct Expr(Arc<Hashed<Made>>);

/// The numbers from 0 on that all expressions share: most of those in a kernel, so that it takes less memory.
static SMALL_NUMBERS: LazyLock<[Expr; 257]> =
    LazyLock::new(|| std::array::from_fn(|value| Expr::from_node(Node::Const(value as i64))));

/// A node with what is known about its values.
#[derive(Debug)]
struct Made {
    node: Node,
    facts: Facts,
    /// Nodes in the expression, see [`Expr::weight`].
    weight: u32,
    /// Whether it is known to be a term of its canonical sum, the only one.
    is_term: AtomicBool,
}

/// A value stored with its hash, so that most unequal values are distinguished without a deep comparison.
#[derive(Debug)]
struct Hashed<T> {
    hash: u32,
    of: T,
}

impl<T: Hash> Hashed<T> {
    fn new(of: T) -> Hashed<T> {
        let mut hasher = FxHasher::default();
        of.hash(&mut hasher);
        Hashed { hash: hasher.finish() as u32, of }
    }
}

impl Hash for Made {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.node.hash(state);
    }
}

/// Equality by hash and address first, order by structure alone: neither depends on where nodes are in memory.
macro_rules! compared_by {
    ($name:ident, $by:expr) => {
        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                Arc::ptr_eq(&self.0, &other.0) || (self.0.hash == other.0.hash && $by(self) == $by(other))
            }
        }

        impl Eq for $name {}

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &$name) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &$name) -> Ordering {
                if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { $by(self).cmp($by(other)) }
            }
        }

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                state.write_u32(self.0.hash);
            }
        }
    };
}

compared_by!(Var, Var::known);
compared_by!(Expr, Expr::node);

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// The environment has no value for this variable.
    Unbound(String),
    /// A divisor was zero or negative.
    Divisor(i64),
    /// A result does not fit in 64 bits.
    Overflow,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Unbound(name) => write!(f, "`{name}` has no value"),
            EvalError::Divisor(value) => write!(f, "division by {value}, which is not positive"),
            EvalError::Overflow => write!(f, "the value does not fit in 64 bits"),
        }
    }
}

impl std::error::Error for EvalError {}

/// The values of an expression for `N` threads. Most parts of most indices are the same for all of them, and computed once.
enum Values<const N: usize> {
    Same(i64),
    Each([i64; N]),
}

impl<const N: usize> Values<N> {
    fn of(each: [i64; N]) -> Values<N> {
        match each.split_first() {
            Some((first, rest)) if rest.iter().all(|value| value == first) => Values::Same(*first),
            _ => Values::Each(each),
        }
    }

    fn each(self) -> [i64; N] {
        match self {
            Values::Same(value) => [value; N],
            Values::Each(each) => each,
        }
    }
}

/// An operation on two numbers of each thread, and whether no result overflows.
fn each_of<const N: usize>(mut a: [i64; N], b: [i64; N], of: impl Fn(i64, i64) -> (i64, bool)) -> ([i64; N], bool) {
    let mut overflows = false;
    for (value, other) in a.iter_mut().zip(b) {
        let (result, is_over) = of(*value, other);
        *value = result;
        overflows |= is_over;
    }
    (a, !overflows)
}

impl Node {
    /// The two operands of an operation.
    fn operands(&self) -> Option<(&Expr, &Expr)> {
        match self {
            Node::Const(_) | Node::Var(_) => None,
            Node::Add(a, b)
            | Node::Mul(a, b)
            | Node::Div(a, b)
            | Node::Mod(a, b)
            | Node::Xor(a, b)
            | Node::And(a, b)
            | Node::Min(a, b)
            | Node::Max(a, b) => Some((a, b)),
        }
    }
}

impl Expr {
    /// A number.
    pub fn constant(value: i64) -> Expr {
        let small = usize::try_from(value).ok().and_then(|at| SMALL_NUMBERS.get(at));
        small.cloned().unwrap_or_else(|| Expr::from_node(Node::Const(value)))
    }

    /// A variable.
    pub fn var(var: &Var) -> Expr {
        Expr::from_node(Node::Var(var.clone()))
    }

    pub(crate) fn from_node(node: Node) -> Expr {
        let (facts, weight) = (facts_of(&node), weight_of(&node));
        Expr(Arc::new(Hashed::new(Made { node, facts, weight, is_term: AtomicBool::new(false) })))
    }

    /// Whether its canonical sum is known to be the expression itself.
    pub(crate) fn is_term(&self) -> bool {
        self.0.of.is_term.load(atomic::Ordering::Relaxed)
    }

    /// Remembers that its canonical sum is the expression itself.
    pub(crate) fn set_term(&self) {
        self.0.of.is_term.store(true, atomic::Ordering::Relaxed);
    }

    /// The operation at the root.
    pub fn node(&self) -> &Node {
        &self.0.of.node
    }

    /// The number, if this is one.
    pub fn as_const(&self) -> Option<i64> {
        match self.node() {
            Node::Const(value) => Some(*value),
            Node::Var(_)
            | Node::Add(..)
            | Node::Mul(..)
            | Node::Div(..)
            | Node::Mod(..)
            | Node::Xor(..)
            | Node::And(..)
            | Node::Min(..)
            | Node::Max(..) => None,
        }
    }

    /// The two operands, if this is an operation.
    pub fn operands(&self) -> Option<(&Expr, &Expr)> {
        self.node().operands()
    }

    /// Calls `visit` on every variable, once per occurrence, left to right.
    pub fn for_each_var(&self, visit: &mut dyn FnMut(&Var)) {
        if let Node::Var(var) = self.node() {
            visit(var);
        }
        if let Some((a, b)) = self.operands() {
            a.for_each_var(visit);
            b.for_each_var(visit);
        }
    }

    /// True when `var` occurs.
    pub fn mentions(&self, var: &Var) -> bool {
        let mut found = false;
        self.for_each_var(&mut |v| found |= v == var);
        found
    }

    /// Its value where `env` gives the values of the variables.
    pub fn eval(&self, env: &dyn Fn(&Var) -> Option<i64>) -> Result<i64, EvalError> {
        let Some((a, b)) = self.operands() else {
            return match self.node() {
                Node::Var(var) => env(var).ok_or_else(|| EvalError::Unbound(var.name().to_string())),
                _ => self.apply(0, 0),
            };
        };
        self.apply(a.eval(env)?, b.eval(env)?)
    }

    /// Its values for `N` threads at once, where `env` gives the values of the variables for all of them.
    pub fn eval_all<const N: usize>(&self, env: &dyn Fn(&Var) -> Option<[i64; N]>) -> Result<[i64; N], EvalError> {
        self.values(env).map(Values::each)
    }

    fn values<const N: usize>(&self, env: &dyn Fn(&Var) -> Option<[i64; N]>) -> Result<Values<N>, EvalError> {
        let Some((a, b)) = self.operands() else {
            return match self.node() {
                Node::Var(var) => env(var).map(Values::of).ok_or_else(|| EvalError::Unbound(var.name().to_string())),
                _ => self.apply(0, 0).map(Values::Same),
            };
        };
        match (a.values(env)?, b.values(env)?) {
            (Values::Same(a), Values::Same(b)) => self.apply(a, b).map(Values::Same),
            (a, b) => self.apply_each(a.each(), b.each()).map(Values::Each),
        }
    }

    /// The root operation on two numbers of each thread.
    fn apply_each<const N: usize>(&self, mut a: [i64; N], b: [i64; N]) -> Result<[i64; N], EvalError> {
        let exact = |(a, is_exact): ([i64; N], bool)| if is_exact { Ok(a) } else { Err(EvalError::Overflow) };
        let divisor = b.first().copied().filter(|divisor| *divisor > 0 && b.iter().all(|other| other == divisor));
        match (self.node(), divisor) {
            (Node::Add(..), _) => exact(each_of(a, b, i64::overflowing_add)),
            (Node::Mul(..), _) => exact(each_of(a, b, i64::overflowing_mul)),
            (Node::Div(..), Some(divisor)) if divisor.count_ones() == 1 => {
                Ok(a.map(|value| value >> divisor.trailing_zeros()))
            }
            (Node::Mod(..), Some(divisor)) if divisor.count_ones() == 1 => Ok(a.map(|value| value & (divisor - 1))),
            _ => {
                for (value, other) in a.iter_mut().zip(b) {
                    *value = self.apply(*value, other)?;
                }
                Ok(a)
            }
        }
    }

    /// The root operation on two numbers.
    fn apply(&self, a: i64, b: i64) -> Result<i64, EvalError> {
        match self.node() {
            Node::Const(value) => Ok(*value),
            Node::Var(var) => Err(EvalError::Unbound(var.name().to_string())),
            Node::Add(..) => a.checked_add(b).ok_or(EvalError::Overflow),
            Node::Mul(..) => a.checked_mul(b).ok_or(EvalError::Overflow),
            Node::Div(..) if b <= 0 => Err(EvalError::Divisor(b)),
            Node::Div(..) => Ok(a.div_euclid(b)),
            Node::Mod(..) if b <= 0 => Err(EvalError::Divisor(b)),
            Node::Mod(..) => Ok(a.rem_euclid(b)),
            Node::Xor(..) => Ok(a ^ b),
            Node::And(..) => Ok(a & b),
            Node::Min(..) => Ok(a.min(b)),
            Node::Max(..) => Ok(a.max(b)),
        }
    }

    /// Operations, variables and numbers in it, up to the greatest `u32`; a part that is used several times counts each
    /// time.
    pub fn weight(&self) -> u32 {
        self.0.of.weight
    }

    /// Its address, which distinguishes it from all other expressions that are alive.
    pub(crate) fn place(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// What is known about its values.
    pub(crate) fn facts(&self) -> Facts {
        self.0.of.facts
    }

    /// An interval that holds every value.
    pub fn range(&self) -> ValueRange {
        self.facts().range
    }

    /// A number that divides every value (0 if the only value is 0).
    pub fn multiple(&self) -> i64 {
        self.facts().multiple
    }

    /// `self / divisor`, rounded up; `self` is not negative and `divisor` is positive.
    pub fn ceil_div(&self, divisor: i64) -> Expr {
        if divisor > 0 && self.multiple() % divisor == 0 { self / divisor } else { (self + (divisor - 1)) / divisor }
    }

    /// The lesser of both.
    pub fn at_most(self, other: impl Into<Expr>) -> Expr {
        let other = other.into();
        match (self.range(), other.range()) {
            (a, b) if a.hi <= b.lo || self == other => self,
            (a, b) if b.hi <= a.lo => other,
            _ => Expr::from_node(Node::Min(self, other)),
        }
    }

    /// The greater of both.
    pub fn at_least(self, other: impl Into<Expr>) -> Expr {
        let other = other.into();
        match (self.range(), other.range()) {
            (a, b) if a.lo >= b.hi || self == other => self,
            (a, b) if b.lo >= a.hi => other,
            _ => Expr::from_node(Node::Max(self, other)),
        }
    }

    /// The same expression with variables replaced where `replace` gives an expression; only constants are simplified.
    pub fn substitute(&self, replace: &dyn Fn(&Var) -> Option<Expr>) -> Expr {
        self.replace(&mut |part| match part.node() {
            Node::Var(var) => replace(var),
            _ => None,
        })
    }

    /// The same expression with parts replaced where `replace` gives an expression, the largest ones first; only constants are
    /// simplified.
    pub fn replace(&self, replace: &mut dyn FnMut(&Expr) -> Option<Expr>) -> Expr {
        if let Some(replaced) = replace(self) {
            return replaced;
        }
        let Some((a, b)) = self.node().operands() else { return self.clone() };
        let (of_a, of_b) = (a.replace(replace), b.replace(replace));
        // What stays the same remains one expression, of which much may be known.
        if of_a.place() == a.place() && of_b.place() == b.place() {
            return self.clone();
        }
        match self.node() {
            Node::Const(_) | Node::Var(_) => self.clone(),
            Node::Add(..) => of_a + of_b,
            Node::Mul(..) => of_a * of_b,
            Node::Div(..) => of_a / of_b,
            Node::Mod(..) => of_a % of_b,
            Node::Xor(..) => of_a ^ of_b,
            Node::And(..) => of_a & of_b,
            Node::Min(..) => of_a.at_most(of_b),
            Node::Max(..) => of_a.at_least(of_b),
        }
    }
}

fn weight_of(node: &Node) -> u32 {
    node.operands().map_or(1, |(a, b)| a.weight().saturating_add(b.weight()).saturating_add(1))
}

fn facts_of(node: &Node) -> Facts {
    match node {
        Node::Const(value) => Facts::of_number(*value),
        Node::Var(var) => var.facts(),
        Node::Add(a, b) => a.facts().add(b.facts()),
        Node::Mul(a, b) => a.facts().mul(b.facts()),
        Node::Div(a, b) => a.facts().div(b.facts()),
        Node::Mod(a, b) => a.facts().rem(b.facts()),
        Node::Xor(a, b) => a.facts().xor(b.facts()),
        Node::And(a, b) => a.facts().and(b.facts()),
        Node::Min(a, b) => a.facts().min(b.facts()),
        Node::Max(a, b) => a.facts().max(b.facts()),
    }
}

impl From<i64> for Expr {
    fn from(value: i64) -> Expr {
        Expr::constant(value)
    }
}

impl From<i32> for Expr {
    fn from(value: i32) -> Expr {
        Expr::constant(i64::from(value))
    }
}

impl From<&Expr> for Expr {
    fn from(expr: &Expr) -> Expr {
        expr.clone()
    }
}

impl From<&Var> for Expr {
    fn from(var: &Var) -> Expr {
        Expr::var(var)
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// How tightly an operation binds when printed; the order of C, with `^` and `&` weaker than sums.
fn precedence(node: &Node) -> u8 {
    match node {
        Node::Const(value) if *value < 0 => 2,
        Node::Const(_) | Node::Var(_) | Node::Min(..) | Node::Max(..) => 4,
        Node::Mul(..) | Node::Div(..) | Node::Mod(..) => 3,
        Node::Add(..) => 2,
        Node::And(..) => 1,
        Node::Xor(..) => 0,
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = self.node();
        let level = precedence(node);
        let (a, symbol, b) = match node {
            Node::Const(value) => return write!(f, "{value}"),
            Node::Var(var) => return write!(f, "{}", var.name()),
            Node::Add(a, b) => return print_sum(f, a, b),
            Node::Mul(a, b) => (a, "*", b),
            Node::Div(a, b) => (a, "/", b),
            Node::Mod(a, b) => (a, "%", b),
            Node::Xor(a, b) => (a, " ^ ", b),
            Node::And(a, b) => (a, " & ", b),
            Node::Min(a, b) => return write!(f, "min({a}, {b})"),
            Node::Max(a, b) => return write!(f, "max({a}, {b})"),
        };
        print_operand(f, a, level)?;
        write!(f, "{symbol}")?;
        print_operand(f, b, level + 1)
    }
}

fn print_operand(f: &mut fmt::Formatter<'_>, operand: &Expr, least: u8) -> fmt::Result {
    if precedence(operand.node()) < least { write!(f, "({operand})") } else { write!(f, "{operand}") }
}

fn print_sum(f: &mut fmt::Formatter<'_>, a: &Expr, b: &Expr) -> fmt::Result {
    print_operand(f, a, 2)?;
    match b.as_const() {
        Some(value) if value < 0 => write!(f, " - {}", value.unsigned_abs()),
        _ => {
            write!(f, " + ")?;
            print_operand(f, b, 2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x() -> Expr {
        Expr::var(&Var::new("x", -5, 9))
    }

    #[test]
    fn division_is_floor_division() {
        let e = x() / 4 * 10 + x() % 4;
        assert_eq!(e.eval(&|_| Some(-3)), Ok(-10 + 1));
    }

    #[test]
    fn division_by_zero_is_an_error_not_a_panic() {
        let zero = Expr::var(&Var::new("z", 0, 0));
        assert_eq!((x() / zero).eval(&|v| Some(if v.name() == "z" { 0 } else { 1 })), Err(EvalError::Divisor(0)));
    }

    #[test]
    fn printing_keeps_the_meaning_with_few_parentheses() {
        let e = (x() + 1) * 3 + (x() ^ (x() / 8 % 4)) - 7;
        assert_eq!(e.to_string(), "(x + 1)*3 + (x ^ x/8%4) - 7");
    }

    #[test]
    fn multiple_of_a_sum_is_the_common_divisor() {
        assert_eq!((x() * 12 + 8).multiple(), 4);
    }
}
