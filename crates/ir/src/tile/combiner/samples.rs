//! Whether a function of tuples obeys its laws for sampled tuples. That finds mistakes; it proves nothing.

use tilewright_diag::Diagnostic;
use tilewright_layout::DType;

use super::{Combiner, Parameter};
use crate::scalar::Scalar;
use crate::tile::function::Function;
use crate::tile::op::{OpClass, OpKind};
use crate::tile::value::{ElementOp, Narrowing, Value};

/// A value of a sampled tuple. Floats are not rounded to their dtype: results are compared with a tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sample {
    Real(f64),
    Integer(i128),
    Truth(bool),
}

type Tuple = Vec<Sample>;

/// A number, and its dtype; `None` for truth values and numbers without one.
type Typed = (Sample, Option<DType>);

/// The most operations of a function that is sampled; it is evaluated some thousand times.
const MOST_OPERATIONS: usize = 128;

/// Numbers that all functions should accept, such as counts of at least one and sums of squares.
const POSITIVE: [f64; 6] = [1.0, 2.0, 4.0, 3.0, 1.5, 6.0];
/// Numbers that some functions do not accept.
const ANY: [f64; 6] = [-1.0, 2.0, -3.5, 0.0, -2.0, 5.0];

/// How far apart results may lie, relative to their size.
const TOLERANCE: f64 = 1e-4;

impl Combiner {
    /// Warnings where sampled tuples show that the function is not associative, that it is not commutative although it is that
    /// of a reduction, or that its identity changes tuples. There are none for a long function, and where a function of real
    /// numbers is not known here.
    pub(crate) fn broken_laws(&self, of: OpKind) -> Vec<Diagnostic> {
        let values = self.named.iter().map(|(_, value)| value).chain(&self.results);
        if values.map(operations).sum::<usize>() > MOST_OPERATIONS {
            return Vec::new();
        }
        let positive = self.tuples(&POSITIVE);
        if let Some(why) = self.depends_on_order(&positive, of) {
            let help = match of.info().class {
                OpClass::Scan => "threads combine neighbours first, in groups that depend on the layouts",
                _ => "threads combine tuples in an order that depends on the layouts: the result would depend on it",
            };
            return vec![self.warning(why, of).help(help)];
        }
        let any = self.tuples(&ANY);
        let takes_any = self.depends_on_order(&any, of).is_none();
        let identity: Option<Tuple> = self.parameters.iter().zip(&self.identity).map(in_dtype).collect();
        let Some(identity) = identity else { return Vec::new() };
        let others = if takes_any { any } else { Vec::new() };
        let all = [vec![identity.clone()], positive, others].concat();
        let changed = all.iter().find_map(|tuple| self.changed_by(&identity, tuple));
        let help = "elements beyond the edge of a tensor count as the identity, and so do threads without elements";
        let message = |shown: String| [format!("the identity of `{}` changes tuples", of.info().name), shown];
        changed.map(|shown| self.warning(message(shown), of).help(help)).into_iter().collect()
    }

    fn warning(&self, [what, shown]: [String; 2], of: OpKind) -> Diagnostic {
        let this = if of.info().class == OpClass::Scan { "this scan" } else { "this reduction" };
        Diagnostic::warning("K0278", what).label(self.span, this).note(shown)
    }

    /// How the function, applied to some of these tuples, depends on their order. A scan keeps it, and only the grouping may
    /// matter there.
    fn depends_on_order(&self, tuples: &[Tuple], of: OpKind) -> Option<[String; 2]> {
        let broken = |law: &str| format!("the function of `{}` is not {law}", of.info().name);
        for a in tuples {
            for b in tuples {
                let [ab, ba] = [self.apply(a, b)?, self.apply(b, a)?];
                if of.info().class != OpClass::Scan && differ(&ab, &ba) {
                    let shown =
                        format!("f(a, b) is {}, and f(b, a) is {}, for {}", text(&ab), text(&ba), named(&[a, b]));
                    return Some([broken("commutative"), shown]);
                }
                for c in tuples {
                    let [left, right] = [self.apply(&ab, c)?, self.apply(a, &self.apply(b, c)?)?];
                    if differ(&left, &right) {
                        let [left, right] = [text(&left), text(&right)];
                        let results = format!("f(f(a, b), c) is {left}, and f(a, f(b, c)) is {right}");
                        let shown = format!("{results}, for {}", named(&[a, b, c]));
                        return Some([broken("associative"), shown]);
                    }
                }
            }
        }
        None
    }

    /// How a tuple changes when it is combined with the identity, on either side of it.
    fn changed_by(&self, identity: &Tuple, tuple: &Tuple) -> Option<String> {
        let is_nan = |sample: &Sample| matches!(sample, Sample::Real(real) if real.is_nan());
        [[identity, tuple], [tuple, identity]].into_iter().find_map(|[earlier, later]| {
            let result = self.apply(earlier, later)?;
            let is_lost = tuple.iter().zip(&result).any(|(old, new)| is_nan(old) != is_nan(new));
            let [identity, old, new] = [identity, tuple, &result].map(text);
            let shown = format!("combined with the identity {identity}, {old} becomes {new}");
            (is_lost || differ(tuple, &result)).then_some(shown)
        })
    }

    /// Tuples of these numbers: several have the same first value.
    fn tuples(&self, numbers: &[f64; 6]) -> Vec<Tuple> {
        let value = |at: usize, place: usize, parameter: &Parameter| {
            let number = numbers[match place {
                0 => at % 3,
                _ if place % 2 == 1 => (at + place) % numbers.len(),
                _ => (5 * at + place) % numbers.len(),
            }];
            match parameter.dtype.integers() {
                None => Sample::Real(number),
                Some((least, _)) => Sample::Integer((number as i128).max(least.min(0))),
            }
        };
        let tuple = |at: usize| {
            let parameters = self.parameters.iter().enumerate();
            parameters.map(|(place, parameter)| value(at, place, parameter)).collect()
        };
        (0..numbers.len()).map(tuple).collect()
    }

    /// What the function makes of two tuples; `None` if that is not known here.
    fn apply(&self, earlier: &Tuple, later: &Tuple) -> Option<Tuple> {
        let mut known: Vec<(&str, Typed)> = Vec::new();
        for (at, parameter) in self.parameters.iter().enumerate() {
            known.push((&parameter.names[0], (earlier[at], Some(parameter.dtype))));
            known.push((&parameter.names[1], (later[at], Some(parameter.dtype))));
        }
        for (name, value) in &self.named {
            known.push((name, evaluated(value, &known)?));
        }
        let results = self.parameters.iter().zip(&self.results);
        results.map(|(parameter, result)| converted(evaluated(result, &known)?.0, parameter.dtype)).collect()
    }
}

/// The number of operations in a value.
fn operations(value: &Value) -> usize {
    match value {
        Value::Op(_, operands) => 1 + operands.iter().map(operations).sum::<usize>(),
        Value::Cast(_, _, of) => 1 + operations(of),
        Value::Const(_) | Value::Index(_) | Value::Named(_) | Value::Load(_) => 0,
    }
}

fn in_dtype((parameter, number): (&Parameter, &Scalar)) -> Option<Sample> {
    let number = match *number {
        Scalar::Int(integer) => Sample::Integer(integer.into()),
        Scalar::Float(real) => Sample::Real(real),
    };
    converted(number, parameter.dtype)
}

/// A number in a dtype: integers keep their low bits.
fn converted(number: Sample, dtype: DType) -> Option<Sample> {
    match (number, dtype.integers()) {
        (Sample::Integer(integer), None) => Some(Sample::Real(integer as f64)),
        (Sample::Integer(integer), Some((least, most))) => {
            Some(Sample::Integer((integer - least).rem_euclid(most - least + 1) + least))
        }
        (Sample::Real(real), None) => Some(Sample::Real(real)),
        (Sample::Real(_), Some(_)) | (Sample::Truth(_), _) => None,
    }
}

fn evaluated(value: &Value, known: &[(&str, Typed)]) -> Option<Typed> {
    match value {
        Value::Const(Scalar::Int(integer)) => Some((Sample::Integer((*integer).into()), None)),
        Value::Const(Scalar::Float(real)) => Some((Sample::Real(*real), None)),
        Value::Index(index) => index.as_const().map(|integer| (Sample::Integer(integer.into()), None)),
        Value::Named(name) => known.iter().rev().find(|(of, _)| of == name).map(|(_, typed)| *typed),
        Value::Load(_) => None,
        Value::Cast(dtype, narrowing, of) => Some((cast(evaluated(of, known)?.0, *dtype, *narrowing)?, Some(*dtype))),
        Value::Op(op, operands) => {
            let operands: Option<Vec<Typed>> = operands.iter().map(|operand| evaluated(operand, known)).collect();
            let operands = operands?;
            let dtype = operands.iter().find_map(|(_, dtype)| *dtype);
            let samples: Vec<Sample> = operands.into_iter().map(|(sample, _)| sample).collect();
            match (applied(*op, &samples)?, dtype) {
                (truth @ Sample::Truth(_), _) => Some((truth, None)),
                (number, Some(dtype)) => Some((converted(number, dtype)?, Some(dtype))),
                (number, None) => Some((number, None)),
            }
        }
    }
}

fn cast(number: Sample, dtype: DType, narrowing: Narrowing) -> Option<Sample> {
    let integers = dtype.integers();
    match (number, integers, narrowing) {
        (Sample::Real(real), Some((least, most)), _) => {
            Some(Sample::Integer((real.trunc() as i128).clamp(least, most)))
        }
        (Sample::Integer(integer), Some((least, most)), Narrowing::Saturates) => {
            Some(Sample::Integer(integer.clamp(least, most)))
        }
        (number, ..) => converted(number, dtype),
    }
}

fn applied(op: ElementOp, operands: &[Sample]) -> Option<Sample> {
    match (op, operands) {
        (ElementOp::Select, [Sample::Truth(holds), then, otherwise]) => Some(if *holds { *then } else { *otherwise }),
        (ElementOp::Not, [Sample::Truth(holds)]) => Some(Sample::Truth(!holds)),
        (ElementOp::And, [Sample::Truth(a), Sample::Truth(b)]) => Some(Sample::Truth(a & b)),
        (ElementOp::Or, [Sample::Truth(a), Sample::Truth(b)]) => Some(Sample::Truth(a | b)),
        (ElementOp::Xor, [Sample::Truth(a), Sample::Truth(b)]) => Some(Sample::Truth(a ^ b)),
        _ => {
            let integers: Option<Vec<i128>> = operands.iter().map(|operand| integer(*operand)).collect();
            match integers {
                Some(integers) => of_integers(op, &integers),
                None => of_reals(op, &operands.iter().map(|operand| real(*operand)).collect::<Option<Vec<f64>>>()?),
            }
        }
    }
}

fn integer(number: Sample) -> Option<i128> {
    match number {
        Sample::Integer(integer) => Some(integer),
        Sample::Real(_) | Sample::Truth(_) => None,
    }
}

fn real(number: Sample) -> Option<f64> {
    match number {
        Sample::Integer(integer) => Some(integer as f64),
        Sample::Real(real) => Some(real),
        Sample::Truth(_) => None,
    }
}

/// An op on integers, before its result is wrapped. `None` for one that does not take integers, or whose result would need
/// more bits than are kept here.
fn of_integers(op: ElementOp, operands: &[i128]) -> Option<Sample> {
    let result = match (op, operands) {
        (ElementOp::Add, [a, b]) => a.checked_add(*b)?,
        (ElementOp::Sub, [a, b]) => a.checked_sub(*b)?,
        (ElementOp::Mul, [a, b]) => a.checked_mul(*b)?,
        (ElementOp::Div, [a, b]) => a.checked_div(*b).unwrap_or(0),
        (ElementOp::Rem, [a, b]) => a.checked_rem(*b).unwrap_or(*a),
        (ElementOp::Max, [a, b]) => *a.max(b),
        (ElementOp::Min, [a, b]) => *a.min(b),
        (ElementOp::Neg, [a]) => -a,
        (ElementOp::Abs, [a]) => a.abs(),
        (ElementOp::Rounded, [a]) => *a,
        (ElementOp::And, [a, b]) => a & b,
        (ElementOp::Or, [a, b]) => a | b,
        (ElementOp::Xor, [a, b]) => a ^ b,
        (ElementOp::Not, [a]) => !a,
        (ElementOp::Shl, [a, b]) if (0..64).contains(b) => a.checked_mul(1 << b)?,
        (ElementOp::Shr, [a, b]) if (0..64).contains(b) => a >> b,
        (_, [a, b]) => return compared(op, a.cmp(b)),
        _ => return None,
    };
    Some(Sample::Integer(result))
}

fn of_reals(op: ElementOp, operands: &[f64]) -> Option<Sample> {
    let result = match (op, operands) {
        (ElementOp::Add, [a, b]) => a + b,
        (ElementOp::Sub, [a, b]) => a - b,
        (ElementOp::Mul, [a, b]) => a * b,
        (ElementOp::Div, [a, b]) => a / b,
        (ElementOp::Rem, [a, b]) => a % b,
        (ElementOp::Max, [a, b]) => a.max(*b),
        (ElementOp::Min, [a, b]) => a.min(*b),
        (ElementOp::Neg, [a]) => -a,
        (ElementOp::Abs, [a]) => a.abs(),
        (ElementOp::Rounded, [a]) => *a,
        (ElementOp::Fma, [a, b, c]) => a * b + c,
        (ElementOp::Function(function), operands) => of_function(function.exact().unwrap_or(function), operands)?,
        // Nothing compares with NaN, but it is unequal to everything.
        (_, [a, b]) => match a.partial_cmp(b) {
            Some(order) => return compared(op, order),
            None => return op.comparison().map(|_| Sample::Truth(op == ElementOp::Ne)),
        },
        _ => return None,
    };
    Some(Sample::Real(result))
}

fn compared(op: ElementOp, order: std::cmp::Ordering) -> Option<Sample> {
    op.comparison().map(|comparison| Sample::Truth(comparison.holds(order as i64, 0)))
}

fn of_function(function: Function, operands: &[f64]) -> Option<f64> {
    Some(match (function, operands) {
        (Function::Exp, [x]) => x.exp(),
        (Function::Exp2, [x]) => x.exp2(),
        (Function::Expm1, [x]) => x.exp_m1(),
        (Function::Log, [x]) => x.ln(),
        (Function::Log2, [x]) => x.log2(),
        (Function::Log1p, [x]) => x.ln_1p(),
        (Function::Sqrt, [x]) => x.sqrt(),
        (Function::Rsqrt, [x]) => 1.0 / x.sqrt(),
        (Function::Sin, [x]) => x.sin(),
        (Function::Cos, [x]) => x.cos(),
        (Function::Tanh, [x]) => x.tanh(),
        (Function::Sigmoid, [x]) => 1.0 / (1.0 + (-x).exp()),
        (Function::Silu, [x]) => x / (1.0 + (-x).exp()),
        (Function::Pow, [x, exponent]) => x.powf(*exponent),
        (Function::FastDiv, [x, divisor]) => x / divisor,
        (Function::Floor, [x]) => x.floor(),
        (Function::Ceil, [x]) => x.ceil(),
        (Function::Trunc, [x]) => x.trunc(),
        (Function::Round, [x]) => x.round(),
        (Function::RoundTiesEven, [x]) => x.round_ties_even(),
        _ => return None,
    })
}

/// Whether results differ by more than rounding. NaN, where a function does not accept a sample, says nothing.
fn differ(a: &Tuple, b: &Tuple) -> bool {
    let apart = |(a, b): (&Sample, &Sample)| match (a, b) {
        (Sample::Real(a), Sample::Real(b)) if a.is_nan() || b.is_nan() => false,
        (Sample::Real(a), Sample::Real(b)) => {
            let is_near = (a - b).abs() <= TOLERANCE * (1.0 + a.abs().max(b.abs()));
            a != b && !(is_near && a.is_finite() && b.is_finite())
        }
        (a, b) => a != b,
    };
    a.iter().zip(b).any(apart)
}

/// `(1, 2.5)`
fn text(tuple: &Tuple) -> String {
    let value = |sample: &Sample| match sample {
        Sample::Real(real) => real.to_string(),
        Sample::Integer(integer) => integer.to_string(),
        Sample::Truth(holds) => holds.to_string(),
    };
    match &tuple.iter().map(value).collect::<Vec<_>>()[..] {
        [only] => only.clone(),
        several => format!("({})", several.join(", ")),
    }
}

/// `a = (1, 2), b = (2, 0)`
fn named(tuples: &[&Tuple]) -> String {
    let all = ["a", "b", "c"].into_iter().zip(tuples);
    all.map(|(name, tuple)| format!("{name} = {}", text(tuple))).collect::<Vec<_>>().join(", ")
}
