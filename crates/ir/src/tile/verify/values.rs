//! The dtypes of values.

use tilewright_diag::{Diagnostic, Span};
use tilewright_layout::DType;

use crate::scalar::Scalar;
use crate::tile::kernel::Kernel;
use crate::tile::print::value_title;
use crate::tile::value::{ElementClass, Value};

/// What is known of the type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// An element of this dtype.
    Of(DType),
    /// A number without a dtype: whatever is needed, if it is an integer.
    Integer,
    /// A number without a dtype, for floating dtypes.
    Real,
    /// A truth value.
    Truth,
}

/// The names that are known, and their types.
pub(super) type Names = Vec<(String, Type)>;

/// The type of a value, or what is wrong with it.
pub(super) fn type_of(kernel: &Kernel, value: &Value, names: &Names, span: Span) -> Result<Type, Diagnostic> {
    match value {
        Value::Const(Scalar::Int(_)) | Value::Index(_) => Ok(Type::Integer),
        Value::Const(Scalar::Float(_)) => Ok(Type::Real),
        Value::Named(name) => match names.iter().rev().find(|(known, _)| known == name) {
            Some((_, known)) => Ok(*known),
            None => Err(Diagnostic::error("K0217", format!("`{name}` is not defined where it is used"))
                .label(span, "used here")
                .help("name a value with k.named(\"x\", ..) before, in the same loop")),
        },
        Value::Load(access) => Ok(Type::Of(kernel.buffers[access.buffer].dtype)),
        Value::Cast(dtype, inner) => match type_of(kernel, inner, names, span)? {
            Type::Truth => Err(mismatch(kernel, value, span, "a truth value has no dtype; use select")),
            _ if dtype.is_opaque() => Err(opaque(kernel, value, *dtype, span)),
            _ => Ok(Type::Of(*dtype)),
        },
        Value::Op(op, arguments) => {
            if arguments.len() != op.arity() {
                let message = format!("`{op}` takes {} values, not {}", op.arity(), arguments.len());
                return Err(Diagnostic::error("K0211", message).label(span, "in this statement"));
            }
            let types: Result<Vec<Type>, Diagnostic> =
                arguments.iter().map(|argument| type_of(kernel, argument, names, span)).collect();
            of_op(kernel, value, op.class(), &types?, span)
        }
    }
}

fn of_op(kernel: &Kernel, value: &Value, class: ElementClass, types: &[Type], span: Span) -> Result<Type, Diagnostic> {
    let numbers = match (class, types) {
        (ElementClass::Choice, [Type::Truth, numbers @ ..]) => numbers,
        (ElementClass::Choice, _) => {
            return Err(mismatch(kernel, value, span, "the first value of `select` is a comparison"));
        }
        _ => types,
    };
    let common = numbers.iter().try_fold(Type::Integer, |common, next| joined(common, *next));
    let Some(common) = common else {
        let help = "values of one op have one dtype; convert with value.cast(dtype)";
        return Err(mismatch(kernel, value, span, help));
    };
    if let Type::Of(dtype) = common
        && dtype.is_opaque()
    {
        return Err(opaque(kernel, value, dtype, span));
    }
    match class {
        ElementClass::Arithmetic | ElementClass::Choice => Ok(common),
        ElementClass::Comparison => Ok(Type::Truth),
        ElementClass::Floating => match common {
            Type::Of(dtype) if !dtype.is_float() => {
                Err(mismatch(kernel, value, span, "the op takes floating-point numbers; convert with value.cast(F32)"))
            }
            Type::Integer => Ok(Type::Real),
            other => Ok(other),
        },
    }
}

/// The type that both have, if there is one.
fn joined(one: Type, other: Type) -> Option<Type> {
    match (one, other) {
        (Type::Truth, _) | (_, Type::Truth) => None,
        (Type::Integer, other) => Some(other),
        (one, Type::Integer) => Some(one),
        (Type::Real, Type::Real) => Some(Type::Real),
        (Type::Real, Type::Of(dtype)) | (Type::Of(dtype), Type::Real) => dtype.is_float().then_some(Type::Of(dtype)),
        (Type::Of(one), Type::Of(other)) => (one == other).then_some(Type::Of(one)),
    }
}

/// Whether a value of this type may be stored in a buffer of this dtype.
pub(super) fn may_store(value: Type, dtype: DType) -> bool {
    match value {
        Type::Of(known) => known == dtype,
        Type::Integer => !dtype.is_opaque(),
        Type::Real => dtype.is_float(),
        Type::Truth => false,
    }
}

fn mismatch(kernel: &Kernel, value: &Value, span: Span, help: &str) -> Diagnostic {
    Diagnostic::error("K0233", format!("`{}` mixes types", value_title(kernel, value)))
        .label(span, "in this statement")
        .help(help)
}

fn opaque(kernel: &Kernel, value: &Value, dtype: DType, span: Span) -> Diagnostic {
    Diagnostic::error("K0233", format!("`{}` computes with {dtype}", value_title(kernel, value)))
        .label(span, "in this statement")
        .help("opaque elements move, nothing is computed with them")
}
