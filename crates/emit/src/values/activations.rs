//! Activation functions, which CUDA does not have. `expf` ends in a product, which must not be fused with a sum.

use tilewright_ir::tile::Function;

use super::functions::function;

/// An activation function of floats or doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Activation {
    pub(super) function: Function,
    pub(super) is_double: bool,
}

impl Activation {
    /// The lines that define it, followed by an empty line; `None` for functions that CUDA has.
    pub(super) fn definition(self) -> Option<Vec<String>> {
        let Activation { function: kind, is_double } = self;
        let tanh_argument = "float z = 0.797884561f*fmaf(0.044715f*x*x, x, x);";
        let body: &[&str] = match (kind, is_double) {
            (Function::Sigmoid, false) => &["return 1.0f/__fadd_rn(1.0f, expf(-x));"],
            (Function::Sigmoid, true) => &["return 1.0/(1.0 + exp(-x));"],
            (Function::FastSigmoid, _) => &["return __fdividef(1.0f, 1.0f + __expf(-x));"],
            (Function::Silu, false) => &["return x/__fadd_rn(1.0f, expf(-x));"],
            (Function::Silu, true) => &["return x/(1.0 + exp(-x));"],
            (Function::FastSilu, _) => &["return __fdividef(x, 1.0f + __expf(-x));"],
            (Function::Gelu, false) => &["return 0.5f*x*(1.0f + erff(0.707106781f*x));"],
            (Function::Gelu, true) => &["return 0.5*x*(1.0 + erf(0.70710678118654752*x));"],
            (Function::GeluTanh, false) => &[tanh_argument, "return 0.5f*x*(1.0f + tanhf(z));"],
            (Function::GeluTanh, true) => &["return 0.5*x*(1.0 + tanh(0.79788456080286536*fma(0.044715*x*x, x, x)));"],
            (Function::FastGeluTanh, _) => {
                &[tanh_argument, "asm(\"tanh.approx.f32 %0, %0;\" : \"+f\"(z));", "return 0.5f*x*(1.0f + z);"]
            }
            _ => return None,
        };
        let c_type = if is_double { "double" } else { "float" };
        let body: Vec<String> = body.iter().map(|line| line.to_string()).collect();
        Some(function(&format!("{c_type} {}({c_type} x)", kind.name()), &body))
    }
}
