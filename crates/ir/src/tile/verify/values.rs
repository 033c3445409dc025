//! The dtypes of values.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::ValueRange;
use tilewright_layout::DType;

use super::buffer_errors::no_buffer;
use super::index;
use crate::scalar::Scalar;
use crate::tile::kernel::Kernel;
use crate::tile::print::value_title;
use crate::tile::value::{ElementClass, ElementOp, Narrowing, Value};

/// What is known about the type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// An element of this dtype.
    Of(DType),
    /// An integer in this range without a dtype, which takes the one that its context requires.
    Integer(ValueRange),
    /// A floating-point number without a dtype, which takes the one that its context requires.
    Real,
    /// A truth value.
    Truth,
}

impl Type {
    /// What a diagnostic calls it: `f32`, `an integer`.
    pub(super) fn title(self) -> String {
        match self {
            Type::Of(dtype) => dtype.to_string(),
            Type::Integer(_) => "an integer".to_string(),
            Type::Real => "a floating-point number".to_string(),
            Type::Truth => "a truth value".to_string(),
        }
    }
}

/// The names in scope, and their types.
pub(super) type Names = Vec<(String, Type)>;

/// The type of a value, or what is wrong with it.
pub(super) fn type_of(kernel: &Kernel, value: &Value, names: &Names, span: Span) -> Result<Type, Diagnostic> {
    match value {
        Value::Const(Scalar::Int(number)) => Ok(Type::Integer(ValueRange::point(*number))),
        Value::Index(expr) => Ok(Type::Integer(expr.range())),
        Value::Const(Scalar::Float(_)) => Ok(Type::Real),
        Value::Named(name) => match names.iter().rev().find(|(known, _)| known == name) {
            Some((_, known)) => Ok(*known),
            None => Err(Diagnostic::error("K0217", format!("`{name}` is not defined where it is used"))
                .label(span, "used here")
                .help("define it first with k.named(\"x\", ..), in the same loop")),
        },
        Value::Load(access) => match kernel.buffers.get(access.buffer) {
            Some(buffer) => Ok(Type::Of(buffer.dtype)),
            None => Err(no_buffer(access.span)),
        },
        Value::Cast(dtype, narrowing, inner) => {
            let from = type_of(kernel, inner, names, span)?;
            if from == Type::Truth {
                let message = format!("`{}` is a truth value, which cannot be cast", value_title(kernel, inner));
                return Err(mismatch(message, span, "choose between two numbers with .select(1, 0)"));
            }
            if dtype.is_opaque() {
                return Err(opaque(kernel, value, *dtype, span));
            }
            check_cast(kernel, inner, from, (*dtype, *narrowing), span)?;
            Ok(Type::Of(*dtype))
        }
        Value::Op(op, arguments) => {
            if arguments.len() != op.arity() {
                let message = format!("`{op}` has arity {}, not {}", op.arity(), arguments.len());
                return Err(Diagnostic::error("K0211", message).label(span, "in this statement"));
            }
            let types: Result<Vec<Type>, Diagnostic> =
                arguments.iter().map(|argument| type_of(kernel, argument, names, span)).collect();
            of_op(kernel, value, (*op, arguments), &types?, span)
        }
    }
}

fn of_op(
    kernel: &Kernel,
    value: &Value,
    (op, arguments): (ElementOp, &[Value]),
    types: &[Type],
    span: Span,
) -> Result<Type, Diagnostic> {
    let class = op.class();
    if class == ElementClass::Bitwise && types.iter().all(|kind| *kind == Type::Truth) {
        return Ok(Type::Truth);
    }
    let first = usize::from(class == ElementClass::Choice);
    let numbers = match (class, types) {
        (ElementClass::Choice, [Type::Truth, numbers @ ..]) => numbers,
        (ElementClass::Choice, _) => {
            let (what, given) = (titles(kernel, arguments.get(..1)), joined_titles(types.get(..1)));
            let message = format!("`select` needs a comparison; {what} is {given}");
            return Err(mismatch(message, span, "compare it, as in x.ne(0).select(a, b)"));
        }
        (ElementClass::Arithmetic | ElementClass::Floating | ElementClass::Comparison, types)
        | (ElementClass::Integral | ElementClass::Bitwise, types) => types,
    };
    let start = Type::Integer(ValueRange::point(0));
    let common = numbers.iter().try_fold(start, |common, next| joined(common, *next));
    let Some(common) = common else {
        let title = value_title(kernel, value);
        if numbers.contains(&Type::Truth) {
            let help = "choose between two numbers with .select(1, 0)";
            return Err(mismatch(format!("`{title}` computes with a truth value"), span, help));
        }
        let help = "the operands of an operation must have one dtype; convert with value.cast(dtype)";
        return Err(mismatch(format!("`{title}` mixes {}", joined_titles(Some(numbers))), span, help));
    };
    if let Type::Of(dtype) = common
        && dtype.is_opaque()
    {
        return Err(opaque(kernel, value, dtype, span));
    }
    if let Type::Of(dtype) = common {
        for (argument, known) in arguments[first..].iter().zip(numbers) {
            check_fits(kernel, argument, *known, dtype, span).map_or(Ok(()), Err)?;
        }
    }
    let is_zero = |kind: &Type| *kind == Type::Integer(ValueRange::point(0));
    if matches!(op, ElementOp::Div | ElementOp::Rem) && !is_real(common) && numbers.get(1).is_some_and(is_zero) {
        return Err(Diagnostic::error("K0244", format!("`{}` divides by zero", value_title(kernel, value)))
            .label(span, "in this statement")
            .help("a quotient of integers needs a divisor that is not 0"));
    }
    let ranges: Option<Vec<ValueRange>> = numbers
        .iter()
        .map(|kind| match kind {
            Type::Integer(range) => Some(*range),
            Type::Of(_) | Type::Real | Type::Truth => None,
        })
        .collect();
    if op == ElementOp::Fma && matches!(common, Type::Of(dtype) if dtype.is_narrow_float()) {
        let message = format!("`{}` is {}; `mul_add` needs f32 or f64", value_title(kernel, value), common.title());
        return Err(mismatch(message, span, "convert with value.cast(F32)"));
    }
    match class {
        ElementClass::Integral | ElementClass::Bitwise if is_real(common) => {
            let (title, sign) = (value_title(kernel, value), op.sign().unwrap_or(op.name()));
            let message = format!("`{title}` is {}; `{sign}` needs integers", common.title());
            Err(mismatch(message, span, "convert with value.cast(I32), or reinterpret the bits with k.view_as"))
        }
        ElementClass::Arithmetic | ElementClass::Choice | ElementClass::Integral | ElementClass::Bitwise => {
            let range = ranges.and_then(|ranges| op.integer_range(&ranges));
            let grows = matches!(
                op,
                ElementOp::Add | ElementOp::Sub | ElementOp::Mul | ElementOp::Neg | ElementOp::Not | ElementOp::Shl
            );
            match range {
                Some(range) if grows && !index::is_held(range) => {
                    let title = value_title(kernel, value);
                    Err(index::too_large_finding(&title, &title, span))
                }
                range => Ok(range.map_or(common, Type::Integer)),
            }
        }
        ElementClass::Comparison => Ok(Type::Truth),
        ElementClass::Floating => match common {
            Type::Of(dtype) if !dtype.is_float() => {
                let of = titles(kernel, arguments.get(..1));
                let message = format!("`{op}` needs a floating-point value; {of} is {dtype}");
                Err(mismatch(message, span, "convert with value.cast(F32)"))
            }
            Type::Integer(_) => Ok(Type::Real),
            other => Ok(other),
        },
    }
}

/// The common type of both, if there is one.
fn joined(one: Type, other: Type) -> Option<Type> {
    match (one, other) {
        (Type::Truth, _) | (_, Type::Truth) => None,
        (Type::Integer(_), other) => Some(other),
        (one, Type::Integer(_)) => Some(one),
        (Type::Real, Type::Real) => Some(Type::Real),
        (Type::Real, Type::Of(dtype)) | (Type::Of(dtype), Type::Real) => dtype.is_float().then_some(Type::Of(dtype)),
        (Type::Of(one), Type::Of(other)) => (one == other).then_some(Type::Of(one)),
    }
}

/// Whether a value of this type may be stored in a buffer of this dtype.
pub(super) fn may_store(value: Type, dtype: DType) -> bool {
    match value {
        Type::Of(known) => known == dtype,
        Type::Integer(_) => !dtype.is_opaque(),
        Type::Real => dtype.is_float(),
        Type::Truth => false,
    }
}

fn is_real(kind: Type) -> bool {
    match kind {
        Type::Of(dtype) => dtype.is_float(),
        Type::Real => true,
        Type::Integer(_) | Type::Truth => false,
    }
}

/// The error where a number without a dtype takes one that cannot represent it.
pub(super) fn check_fits(kernel: &Kernel, value: &Value, kind: Type, dtype: DType, span: Span) -> Option<Diagnostic> {
    let (fits, values) = match (value, kind) {
        (_, Type::Integer(range)) => {
            let ends = [range.lo, range.hi];
            (ends.iter().all(|end| Scalar::Int(*end).fits(dtype)), between(range.lo.into(), range.hi.into()))
        }
        (Value::Const(number), Type::Real) => (number.fits(dtype), "".to_string()),
        (_, Type::Of(_) | Type::Real | Type::Truth) => return None,
    };
    if fits {
        return None;
    }
    let is_constant = matches!(value, Value::Const(_));
    let values = if is_constant { String::new() } else { format!(", which may be {values},") };
    let message = format!("`{}`{values} does not fit {dtype}", value_title(kernel, value));
    let finding = Diagnostic::error("K0243", message).label(span, "in this statement");
    Some(match dtype.integers() {
        Some((least, most)) if is_constant => {
            let finding = finding.note(format!("{dtype} holds {}", between(least, most)));
            match kind {
                Type::Integer(range) => {
                    let number = match i32::try_from(range.lo) {
                        Ok(number) => number.to_string(),
                        Err(_) => format!("{}i64", range.lo),
                    };
                    let low = format!("Value::from({number}).wrapping_cast({dtype:?})");
                    finding.help(format!("write a number that {dtype} holds, or take the low bits: {low}"))
                }
                Type::Of(_) | Type::Real | Type::Truth => finding,
            }
        }
        Some((least, most)) => finding
            .note(format!("{dtype} holds {}", between(least, most)))
            .help(format!("convert it with .saturating_cast({dtype:?}) or .wrapping_cast({dtype:?})")),
        None => finding
            .note(match dtype.saturation() {
                Some(most) => format!("{dtype} holds -{most} to {most}"),
                None => format!("{dtype} would round it to infinity"),
            })
            .help(format!("use a number that {dtype} holds, or a dtype with a wider range")),
    })
}

/// Checks that a cast between integers says how to convert those that the dtype cannot represent.
fn check_cast(
    kernel: &Kernel,
    inner: &Value,
    from: Type,
    (dtype, narrowing): (DType, Narrowing),
    span: Span,
) -> Result<(), Diagnostic> {
    let range = match from {
        Type::Of(known) => known.integers(),
        Type::Integer(range) => Some((range.lo.into(), range.hi.into())),
        Type::Real | Type::Truth => None,
    };
    let title = value_title(kernel, inner);
    match (range, dtype.integers(), narrowing) {
        (Some((lo, hi)), Some((least, most)), Narrowing::Fits) if lo < least || hi > most => {
            let message = format!("`{title}` may be {}, but {dtype} holds {}", between(lo, hi), between(least, most));
            Err(Diagnostic::error("K0243", message).label(span, "in this statement").help(format!(
                "choose how to convert the others: .saturating_cast({dtype:?}) or .wrapping_cast({dtype:?})"
            )))
        }
        (_, _, Narrowing::Fits) | (Some(_), Some(_), Narrowing::Saturates | Narrowing::Wraps) => Ok(()),
        (_, _, Narrowing::Saturates | Narrowing::Wraps) => {
            let message = format!("`{title}` as {dtype} is not a conversion between integers");
            let help = format!("use .cast({dtype:?}); floating-point numbers saturate when converted to integers");
            Err(Diagnostic::error("K0233", message).label(span, "in this statement").help(help))
        }
    }
}

/// `0 to 255`
fn between(least: i128, most: i128) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

fn mismatch(message: String, span: Span, help: &str) -> Diagnostic {
    Diagnostic::error("K0233", message).label(span, "in this statement").help(help)
}

/// The texts of values: `` `x[i]` ``.
fn titles(kernel: &Kernel, values: Option<&[Value]>) -> String {
    let values = values.unwrap_or_default().iter();
    values.map(|value| format!("`{}`", value_title(kernel, value))).collect::<Vec<_>>().join(", ")
}

/// Types, each once: `f32 and f16`.
fn joined_titles(types: Option<&[Type]>) -> String {
    let mut known: Vec<String> = Vec::new();
    for title in types.unwrap_or_default().iter().map(|kind| kind.title()) {
        if !known.contains(&title) {
            known.push(title);
        }
    }
    known.join(" and ")
}

fn opaque(kernel: &Kernel, value: &Value, dtype: DType, span: Span) -> Diagnostic {
    Diagnostic::error("K0233", format!("`{}` computes with {dtype}", value_title(kernel, value)))
        .label(span, "in this statement")
        .help("opaque elements can be moved, but not computed with")
}
