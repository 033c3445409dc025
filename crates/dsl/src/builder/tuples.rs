//! Reductions and scans of tuples by a function of the user's.

use tilewright_diag::Span;
use tilewright_ir::tile::{self, Combiner, Dimensions, OpKind, Parameter, ReduceBy, ScanBy, ScanOrder};
use tilewright_ir::{Handle, Scalar};
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
        let dst = dst.map(Into::into);
        let combiner = self.combiner(Span::here(), &dst, identity, combine);
        let by = ReduceBy { combiner, values: N, dimensions: dimensions.into(), clear: true };
        self.on_tuples(OpKind::ReduceBy(by), dst, src)
    }

    /// Every tuple of elements of `dst` becomes that of `src` combined with all before it along `dimension`. `combine` makes one
    /// tuple of two, of which the first comes before the second:
    ///
    /// ```
    /// use tilewright_dsl::kernel;
    /// use tilewright_layout::DType::F32;
    ///
    /// // `h[i] = a[i]*h[i - 1] + x[i]`: steps of a recurrence are combined before it is known what they begin with.
    /// let recurrence = kernel("recurrence", |k| {
    ///     let (a, x) = (k.input("a", F32, [32, 64]), k.input("x", F32, [32, 64]));
    ///     let y = k.output("y", F32, [32, 64]);
    ///     let (decay, h) = (k.fragment("decay", F32, [32, 64]), k.fragment("h", F32, [32, 64]));
    ///     k.threads(128);
    ///     k.copy(decay, a);
    ///     k.copy(h, x);
    ///     k.scan_by([decay, h], [decay, h], 1, [1.0, 0.0], |[a0, h0], [a1, h1]| [a0 * a1, a1 * h0 + h1]);
    ///     k.copy(y, h);
    /// });
    /// ```
    ///
    /// The function must be associative, apart from rounding: threads combine neighbours first. Tuples stay in their order, so it
    /// need not be commutative. Combined with `identity`, a tuple stays as it is. Elements have 4 or 8 bytes, and the function
    /// uses its tuples, numbers and scalar parameters alone. A destination may be the source of the same value.
    #[track_caller]
    pub fn scan_by<const N: usize, D, S, I>(
        &mut self,
        dst: [D; N],
        src: [S; N],
        dimension: usize,
        identity: [I; N],
        combine: impl FnOnce([Value; N], [Value; N]) -> [Value; N],
    ) -> OpRef<'k>
    where
        D: Into<Region>,
        S: Into<Region>,
        I: Into<Scalar>,
    {
        let dst = dst.map(Into::into);
        let combiner = self.combiner(Span::here(), &dst, identity, combine);
        let by = ScanBy { combiner, values: N, order: ScanOrder::along(dimension) };
        self.on_tuples(OpKind::ScanBy(by), dst, src)
    }

    #[track_caller]
    fn on_tuples<const N: usize, S: Into<Region>>(&mut self, kind: OpKind, dst: [Region; N], src: [S; N]) -> OpRef<'k> {
        self.cta().op(kind, dst.into_iter().chain(src.map(Into::into)).collect())
    }

    /// The function of two tuples, whose values are called as the destinations.
    fn combiner<const N: usize, I: Into<Scalar>>(
        &mut self,
        span: Span,
        dst: &[Region; N],
        identity: [I; N],
        combine: impl FnOnce([Value; N], [Value; N]) -> [Value; N],
    ) -> Handle<Combiner> {
        let parameters = self.parameters(dst);
        let results = nodes::in_body(span, || {
            let tuple = |side: usize| {
                let named = |at: usize| tile::Value::Named(parameters[at].names[side].clone());
                std::array::from_fn(|at| Value::of(named(at), nodes::innermost()))
            };
            combine(tuple(0), tuple(1)).map(Value::resolved)
        });
        self.kernel.combiners.push(Combiner {
            parameters,
            named: Vec::new(),
            results: results.into(),
            identity: identity.map(Into::into).into(),
            span,
        })
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
