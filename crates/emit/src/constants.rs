//! Constant parts of addresses. An instruction takes a constant offset from its address register for free, but inline
//! assembly takes only what C++ calls a constant: no variable of a `for` loop, unrolled or not. Where such variables
//! are in an offset, the loop calls a lambda with one constant after another.

use tilewright_expr::linear::{Linear, linear};
use tilewright_expr::{Expr, Var};
use tilewright_ir::Counter;
use tilewright_ir::thread::{Call, Memory, Program, Stmt, Unroll};

use crate::wrapped;

/// The function that calls a lambda with constants.
pub(crate) const UNROLL: &str = "unroll";
/// The parameter of the lambda.
pub(crate) const PARAMETER: &str = "constant";
/// The type of these constants.
pub(crate) const CONSTANT: &str = "Constant";

/// The lines that define both, followed by an empty line.
pub(crate) fn definitions() -> Vec<String> {
    let text = format!(
        "template <int kValue> struct {CONSTANT} {{ __device__ constexpr operator int() const {{ return kValue; }} }};

// Calls f with kCount constants from kFirst on.
template <int kCount, int kFirst = 0, class F> __device__ __forceinline__ void {UNROLL}(F f) {{
  if constexpr (kCount == 1) f({CONSTANT}<kFirst>());
  else {UNROLL}<kCount / 2, kFirst>(f), {UNROLL}<kCount - kCount / 2, kFirst + kCount / 2>(f);
}}
"
    );
    text.split('\n').map(str::to_string).collect()
}

/// The byte at which a call reads a memory: the part that consists of numbers and of these variables, and the rest.
pub(crate) fn split(program: &Program, call: &Call, constants: &[Var]) -> Option<[Expr; 2]> {
    let (memory, index) = call.memory.first()?;
    let Memory { dtype, .. } = &program.memories[*memory];
    let Linear { terms, constant } = linear(&(index * dtype.bytes()));
    let (fixed, rest) = terms.into_iter().partition(|(_, atom)| is_of(atom, constants));
    Some([Linear { terms: fixed, constant }, Linear { terms: rest, constant: 0 }].map(|part| part.to_expr()))
}

/// Whether the variable of an unrolled loop has to be a constant for some call in its body, inside of loops over these
/// constants.
pub(crate) fn has_to_be_constant(program: &Program, counter: &Counter, body: &[Stmt], constants: &[Var]) -> bool {
    let var = &counter.var;
    var.range().lo == 0
        && counter.step == 1
        && is_in_an_offset(program, var, body, &mut [constants, std::slice::from_ref(var)].concat())
}

/// Whether a loop inside of a body, which is inside of loops over these constants, is one over constants as well.
pub(crate) fn has_loops_over_constants(program: &Program, body: &[Stmt], constants: &[Var]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::For { counter, unroll: Unroll::Full, body } if has_to_be_constant(program, counter, body, constants) => {
            true
        }
        other => has_loops_over_constants(program, other.inner(), constants),
    })
}

fn is_in_an_offset(program: &Program, var: &Var, body: &[Stmt], constants: &mut Vec<Var>) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Inst(call) if wrapped::is_wrapped(&call.inst.info()) => {
            split(program, call, constants).is_some_and(|[fixed, _]| fixed.mentions(var))
        }
        Stmt::For { counter, unroll: Unroll::Full, body } if counter.var.range().lo == 0 => {
            constants.push(counter.var.clone());
            let found = is_in_an_offset(program, var, body, constants);
            constants.pop();
            found
        }
        other => is_in_an_offset(program, var, other.inner(), constants),
    })
}

fn is_of(expr: &Expr, constants: &[Var]) -> bool {
    let mut is_of = true;
    expr.for_each_var(&mut |var| is_of &= constants.contains(var));
    is_of
}
