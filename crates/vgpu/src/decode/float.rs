//! Floating-point arithmetic.

use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::memory::{element, number_type};
use crate::decode::mods::Mods;
use crate::decode::operand::expect_count;
use crate::isa::{DType, Kind, Round};
use crate::op::{Convert, FloatFn, FloatMode, FloatType, MinMaxMode, Op, ScalarOp};
use crate::ptx::ast::Operand;

impl Decoder<'_> {
    /// An instruction that exists for floating-point numbers only.
    pub(crate) fn floating(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Vec<Op>> {
        let dtype = mods.dtype()?;
        self.float_arithmetic(mods, operands, dtype)
    }

    /// Arithmetic on the floating-point type `dtype`.
    pub(crate) fn float_arithmetic(
        &mut self,
        mods: &mut Mods<'_>,
        operands: &[Operand],
        dtype: DType,
    ) -> Decoded<Vec<Op>> {
        let f = float_fn(mods.base(), mods, operands.len())?;
        let round = mods.round();
        mods.drop_all(|part| matches!(part, "approx" | "full" | "noftz"));
        let mode = FloatMode {
            element: element(dtype)?,
            packed: dtype.count == 2,
            round,
            ftz: mods.take("ftz"),
            sat: mods.take("sat"),
            relu: mods.take("relu"),
        };
        check_form(f, &mode)?;
        let narrow = mods.find(DType::parse);
        expect_count(operands, f.arity() + 1)?;
        let mut ops = Vec::new();
        let mut s = [0; 3];
        for (at, slot) in s.iter_mut().enumerate().take(f.arity()) {
            let from = if at < f.arity() - 1 { narrow.unwrap_or(dtype) } else { dtype };
            *slot = self.source(&operands[at + 1], from)?;
            if from != dtype {
                // Mixed precision: the narrow sources are widened first (PTX ISA, section 9.7.5).
                let (op, wide) = self.widen(*slot, from, dtype)?;
                ops.push(op);
                *slot = wide;
            }
        }
        let d = self.dest(&operands[0])?;
        ops.push(Op::Scalar(ScalarOp::Float { f, mode, d, s }));
        Ok(ops)
    }

    fn widen(&mut self, a: u32, from: DType, to: DType) -> Decoded<(Op, u32)> {
        let d = self.new_register();
        let convert = Convert {
            d,
            a,
            from: number_type(from)?,
            to: number_type(to)?,
            width: to.width(),
            round: Round::Nearest,
            integral: false,
            ftz: false,
            sat: false,
            relu: false,
            limit: None,
        };
        Ok((Op::Scalar(ScalarOp::Convert(Box::new(convert))), d))
    }
}

fn float_fn(base: &str, mods: &mut Mods<'_>, operands: usize) -> Decoded<FloatFn> {
    Ok(match base {
        "add" => FloatFn::Add,
        "sub" => FloatFn::Sub,
        "mul" => FloatFn::Mul,
        "fma" | "mad" => FloatFn::Fma,
        "div" if mods.take("approx") => FloatFn::DivApprox,
        "div" => FloatFn::Div,
        "rcp" => FloatFn::Rcp,
        "sqrt" => FloatFn::Sqrt,
        "rsqrt" => FloatFn::Rsqrt,
        "ex2" => FloatFn::Ex2,
        "lg2" => FloatFn::Lg2,
        "sin" => FloatFn::Sin,
        "cos" => FloatFn::Cos,
        "tanh" => FloatFn::Tanh,
        "min" if operands == 4 => FloatFn::Min3(min_max_mode(mods)),
        "max" if operands == 4 => FloatFn::Max3(min_max_mode(mods)),
        "min" => FloatFn::Min(min_max_mode(mods)),
        "max" => FloatFn::Max(min_max_mode(mods)),
        "neg" => FloatFn::Neg,
        "abs" => FloatFn::Abs,
        "copysign" => FloatFn::CopySign,
        _ => return Err(format!("`{base}` is not supported for floating-point types")),
    })
}

fn min_max_mode(mods: &mut Mods<'_>) -> MinMaxMode {
    MinMaxMode { nan: mods.take("NaN"), abs: mods.take("abs"), xorsign: mods.take("xorsign") }
}

/// Rejects forms that the executing code does not implement.
fn check_form(f: FloatFn, mode: &FloatMode) -> Decoded<()> {
    if mode.element == FloatType::F64 && mode.ftz && !matches!(f, FloatFn::Rcp | FloatFn::Rsqrt) {
        return Err("`.ftz` is not supported for f64".to_string());
    }
    if mode.element == FloatType::F64 && (mode.sat || mode.relu) {
        return Err("`.sat` and `.relu` are not supported for f64".to_string());
    }
    if f == FloatFn::Fma && mode.relu && !matches!(mode.element, FloatType::Half(_)) {
        return Err("`.relu` is not supported for this type".to_string());
    }
    Ok(())
}

/// Whether `dtype` is f32 with one element.
pub(crate) fn is_f32(dtype: DType) -> bool {
    dtype.kind == Kind::Float && dtype.bits == 32 && dtype.count == 1
}
