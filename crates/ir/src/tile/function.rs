//! Functions of real numbers.

use std::fmt;

/// The table of functions of floating-point numbers: calls the macro `$with` with all rows. A row has the documentation
/// of the function, its kind, the method that computes it with the names of further operands, and for a fast form the
/// function of which it is one.
///
/// Accuracies are those of the CUDA C++ Programming Guide, "Mathematical Functions", in units in the last place (ulp), and
/// of the PTX ISA for instructions with `.approx`.
#[macro_export]
macro_rules! element_functions {
    ($with:ident) => {
        $with! {
            /// e raised to this value; within 2 ulp as f32, 1 as f64.
            Exp = exp [];
            /// e raised to this value, as f32 by `__expf`: within 2 + 1.173 |x| ulp.
            FastExp = fast_exp [] of Exp;
            /// 2 raised to this value; within 2 ulp as f32, 1 as f64.
            Exp2 = exp2 [];
            /// The same, but an f32 result below 2^-126 is 0: one machine instruction (`ex2.approx.ftz.f32`), where `exp2`
            /// takes four.
            FastExp2 = fast_exp2 [] of Exp2;
            /// 2 raised to this value, as f32 by multiplications and additions alone, which other units compute than `fast_exp2`: within
            /// a relative error of 2^-13.5. Below 2^-127 it is 0, and infinity for NaN.
            PolynomialExp2 = polynomial_exp2 [] of Exp2;
            /// e raised to this value, minus 1, without cancellation near 0; within 1 ulp.
            Expm1 = expm1 [];
            /// Its natural logarithm; within 1 ulp.
            Log = log [];
            /// Its natural logarithm, as f32 by `__logf`: within 3 ulp, or 2^-21.41 for values from 0.5 to 2.
            FastLog = fast_log [] of Log;
            /// Its logarithm to base 2; within 1 ulp.
            Log2 = log2 [];
            /// Its logarithm to base 2, as f32 by `__log2f`: within 2 ulp, or 2^-22 for values from 0.5 to 2.
            FastLog2 = fast_log2 [] of Log2;
            /// The natural logarithm of 1 + this value, without cancellation near 0; within 1 ulp.
            Log1p = log1p [];
            /// Its square root, rounded to nearest.
            Sqrt = sqrt [];
            /// Its square root, as f32 by `sqrt.approx.f32`: within a relative error of 2^-23.
            FastSqrt = fast_sqrt [] of Sqrt;
            /// One over its square root; within 2 ulp as f32, 1 as f64.
            Rsqrt = rsqrt [];
            /// Its sine, in radians; within 2 ulp. Values beyond 105615 take a slow path that uses local memory.
            Sin = sin [];
            /// Its sine, as f32 by `__sinf`: within 2^-21.41 for values from -pi to pi, worse elsewhere.
            FastSin = fast_sin [] of Sin;
            /// Its cosine, in radians; within 2 ulp. Values beyond 105615 take a slow path that uses local memory.
            Cos = cos [];
            /// Its cosine, as f32 by `__cosf`: within 2^-21.19 for values from -pi to pi, worse elsewhere.
            FastCos = fast_cos [] of Cos;
            /// Its hyperbolic tangent; within 2 ulp as f32, 1 as f64.
            Tanh = tanh [];
            /// Its hyperbolic tangent, as f32 by `tanh.approx.f32`: within a relative error of 2^-11.
            FastTanh = fast_tanh [] of Tanh;
            /// The error function; within 2 ulp.
            Erf = erf [];
            /// `1/(1 + exp(-x))`.
            Sigmoid = sigmoid [];
            /// The same with `fast_exp` and a fast quotient, as f32.
            FastSigmoid = fast_sigmoid [] of Sigmoid;
            /// `x/(1 + exp(-x))`, also called swish.
            Silu = silu [];
            /// The same with `fast_exp` and a fast quotient, as f32.
            FastSilu = fast_silu [] of Silu;
            /// `x/2*(1 + erf(x/sqrt(2)))`.
            Gelu = gelu [];
            /// `x/2*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x^3)))`.
            GeluTanh = gelu_tanh [];
            /// The same with `fast_tanh`, as f32.
            FastGeluTanh = fast_gelu_tanh [] of GeluTanh;
            /// This value raised to `exponent`; within 4 ulp as f32, 2 as f64. A negative value has a power only for
            /// exponents that are integers, otherwise the result is NaN.
            Pow = pow [exponent];
            /// This value, which is positive, raised to `exponent`, as f32 by `__powf`: `exp2(exponent*log2(x))` with the
            /// fast forms of both.
            FastPow = fast_pow [exponent] of Pow;
            /// This value divided by `divisor`, as f32 by `__fdividef`: within 2 ulp for divisors whose magnitude is from
            /// 2^-126 to 2^126; 0 for larger ones.
            FastDiv = fast_div [divisor];
            /// The greatest integer that is not greater.
            Floor = floor [];
            /// The least integer that is not less.
            Ceil = ceil [];
            /// The integer next to it towards zero.
            Trunc = trunc [];
            /// The nearest integer; of two, the one farther from zero.
            Round = round [];
            /// The nearest integer; of two, the even one.
            RoundTiesEven = round_ties_even [];
        }
    };
}

macro_rules! functions {
    ($($(#[$doc:meta])* $kind:ident = $name:ident [$($other:ident)?] $(of $exact:ident)?;)*) => {
        /// A function of floating-point numbers of one dtype, whose result is of that dtype. Halves are computed as f32, and
        /// the result is rounded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Function {
            $($(#[$doc])* $kind,)*
        }

        impl Function {
            /// Every function.
            pub const ALL: &'static [Function] = &[$(Function::$kind),*];

            /// The method that computes it; also its name in messages and in the printed IR.
            pub fn name(self) -> &'static str {
                match self { $(Function::$kind => stringify!($name),)* }
            }

            /// Number of operands.
            pub fn arity(self) -> usize {
                match self { $(Function::$kind => 1 $(+ { let _ = stringify!($other); 1 })?,)* }
            }

            /// The function of which this one is the fast form; f64 has no fast forms, and uses that function. `None` for
            /// the others.
            pub fn exact(self) -> Option<Function> {
                match self { $(Function::$kind => functions!(@ $($exact)?),)* }
            }
        }
    };
    (@) => { None };
    (@ $exact:ident) => { Some(Function::$exact) };
}

element_functions!(functions);

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
