//! Reductions of tuples by a function of the user's.

use tilewright_diag::Span;
use tilewright_ir::Scalar;
use tilewright_ir::tile::{self, Combiner, Dimensions, OpKind, Parameter, ReduceBy};
use tilewright_layout::DType;

use super::KernelBuilder;
use crate::nodes;
use crate::op_ref::OpRef;
use crate::region::Region;
use crate::value::Value;

impl<'k> KernelBuilder<'k> {
    /// Combines the tuples of elements that `src` has at one index, along one dimension or several, into one tuple of elements
    /// of `dst`, which are overwritten (or take part, with [`OpRef::accumulate`]). `combine` makes one tuple of two:
    ///
    /// ```
    /// use tilewright_dsl::kernel;
    /// use tilewright_layout::DType::F32;
    ///
    /// // The maximum of each row and the sum of the exponentials below it, in one pass.
    /// let log_sum_exp = kernel("log_sum_exp", |k| {
    ///     let (x, y) = (k.input("x", F32, [32, 64]), k.output("y", F32, [32]));
    ///     let (top, sum) = (k.fragment("top", F32, [32, 64]), k.fragment("sum", F32, [32, 64]));
    ///     let (m, l) = (k.fragment("m", F32, [32]), k.fragment("l", F32, [32]));
    ///     k.threads(128);
    ///     k.copy(top, x);
    ///     k.fill(sum, 1.0);
    ///     k.reduce_by([m, l], [top, sum], 1, [-1e30, 0.0], |[m0, l0], [m1, l1]| {
    ///         let m = m0.max(m1);
    ///         [m, l0 * (m0 - m).exp() + l1 * (m1 - m).exp()]
    ///     });
    ///     k.map(y, |[i]| m.at((i,)) + l.at((i,)).log());
    /// });
    /// ```
    ///
    /// The function must be associative and commutative, apart from rounding: threads combine what they have in an order that
    /// depends on the layouts. Combined with `identity`, a tuple stays as it is; elements beyond an edge count as the identity.
    /// Elements have 4 or 8 bytes, and the function uses its tuples, numbers and scalar parameters alone.
    #[track_caller]
    pub fn reduce_by<const N: usize, D, S, I>(
        &mut self,
        dst: [D; N],
        src: [S; N],
        dimensions: impl Into<Dimensions>,
        identity: [I; N],
        combine: impl FnOnce([Value; N], [Value; N]) -> [Value; N],
    ) -> OpRef<'k>
    where
        D: Into<Region>,
        S: Into<Region>,
        I: Into<Scalar>,
    {
        let span = Span::here();
        let (dst, src) = (dst.map(Into::into), src.map(Into::into));
        let parameters = self.parameters(&dst);
        let results = nodes::in_body(span, || {
            let tuple = |side: usize| {
                let named = |at: usize| tile::Value::Named(parameters[at].names[side].clone());
                std::array::from_fn(|at| Value::of(named(at), nodes::innermost()))
            };
            combine(tuple(0), tuple(1)).map(Value::resolved)
        });
        let combiner = Combiner {
            parameters,
            named: Vec::new(),
            results: results.into(),
            identity: identity.map(Into::into).into(),
            span,
        };
        let combiner = self.kernel.combiners.push(combiner);
        let by = ReduceBy { combiner, values: N, dimensions: dimensions.into(), clear: true };
        self.cta().op(OpKind::ReduceBy(by), dst.into_iter().chain(src).collect())
    }

    /// What the values of the tuples are called: as the destinations, `a.m` and `b.m`.
    fn parameters(&self, dst: &[Region]) -> Vec<Parameter> {
        let of = |(at, region): (usize, &Region)| {
            let buffer = self.kernel.buffers.get(region.buffer.handle);
            let name = buffer.map_or_else(|| at.to_string(), |buffer| buffer.name.clone());
            let dtype = buffer.map_or(DType::F32, |buffer| buffer.dtype);
            Parameter { names: ["a", "b"].map(|side| format!("{side}.{name}")), dtype }
        };
        dst.iter().enumerate().map(of).collect()
    }
}
