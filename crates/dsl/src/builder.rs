use std::ops::Range;

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::{Expr, Var};
use tilewright_ir::tile::{
    self, Detail, Direction, Gemm, If, Kernel, Loop, OpKind, Origin, Parallel, Reduce, ReduceKind, Space, Stmt, Tile,
    Unroll, Value, WarpPolicy,
};
use tilewright_ir::{Arena, Handle, Scalar};
use tilewright_layout::axis::{M, REG, Scope};
use tilewright_layout::{DType, Layout, LayoutError, TileLayout};

use crate::buffer::Buffer;
use crate::elements::{Elements, reversed, variables};
use crate::foreign;
use crate::region::{Index, Region};
use crate::shape::IntoLayout;
use crate::size::{Size, Sizes};

/// Builds the kernel `name` by running `body` once.
#[track_caller]
pub fn kernel(name: &str, body: impl FnOnce(&mut KernelBuilder)) -> Kernel {
    let kernel = Kernel {
        name: name.to_string(),
        span: Span::here(),
        sizes: Vec::new(),
        grid: [1, 1, 1].map(Expr::constant),
        threads: 32,
        buffers: Arena::new(),
        ops: Arena::new(),
        parallels: Arena::new(),
        body: Vec::new(),
        allow_conversions: false,
        contracts: true,
        mistakes: Vec::new(),
    };
    let origin = Origin::new(kernel.span);
    let (open, loops, staged) = (Vec::new(), Vec::new(), Vec::new());
    let mut builder = KernelBuilder { kernel, origin, open, loops, sizes: Sizes::default(), staged };
    body(&mut builder);
    builder.finish()
}

/// A kernel being built.
#[derive(Debug)]
pub struct KernelBuilder {
    kernel: Kernel,
    origin: Origin,
    /// Bodies of the loops that are open, the innermost last.
    open: Vec<Vec<Stmt>>,
    /// Variables of the loops that are open.
    loops: Vec<String>,
    sizes: Sizes,
    /// Tiles that the user did not name, and what they are to be called; numbered where something else is called so.
    staged: Vec<(Handle<tile::Buffer>, String)>,
}

/// The scope in which the next op runs: `k.warp().permute_layout(..)`.
#[derive(Debug)]
pub struct ScopeRef<'k> {
    builder: &'k mut KernelBuilder,
    scope: Scope,
    warp: Option<i64>,
}

/// An op that was just added, to say more about it.
#[derive(Debug)]
pub struct OpRef<'k> {
    builder: &'k mut KernelBuilder,
    op: Handle<tile::Op>,
}

impl OpRef<'_> {
    /// Takes this variant or fails with its reasons; `emit --stage plan` lists the names.
    pub fn variant(self, name: &str) -> Self {
        self.builder.kernel.ops[self.op].variant = Some(name.to_string());
        self
    }

    /// Takes the variant if there is one, and the cheapest otherwise.
    pub fn variant_opt(self, name: Option<&str>) -> Self {
        self.builder.kernel.ops[self.op].variant = name.map(str::to_string);
        self
    }

    /// Of a reduction: the destination takes part. Else it is overwritten.
    #[track_caller]
    pub fn accumulate(self) -> Self {
        if let Detail::Reduce(reduce) = &mut self.builder.kernel.ops[self.op].detail {
            reduce.clear = false;
        } else {
            self.builder.not_taken(self.op, ".accumulate()", OpKind::Reduce);
        }
        self
    }

    /// Of a product: what is transposed, how warps share it, and whether the destination is overwritten.
    #[track_caller]
    pub fn with(self, gemm: Gemm) -> Self {
        if let Detail::Gemm(told) = &mut self.builder.kernel.ops[self.op].detail {
            *told = gemm;
        } else {
            self.builder.not_taken(self.op, ".with(..)", OpKind::Gemm);
        }
        self
    }

    /// Of a product of f32: its multiplicands are rounded to tf32, with 10 bits of mantissa. Else it is refused.
    #[track_caller]
    pub fn tf32(self) -> Self {
        if let Detail::Gemm(told) = &mut self.builder.kernel.ops[self.op].detail {
            told.tf32 = true;
        } else {
            self.builder.not_taken(self.op, ".tf32()", OpKind::Gemm);
        }
        self
    }

    /// What the op is called in plans and diagnostics.
    pub fn name(self, name: &str) -> Self {
        self.builder.kernel.ops[self.op].name = Some(name.to_string());
        self
    }
}

/// A parallel loop that was just added, to say more about it.
#[derive(Debug)]
pub struct ParallelRef<'k> {
    builder: &'k mut KernelBuilder,
    parallel: Handle<Parallel>,
}

impl ParallelRef<'_> {
    /// Which thread does which iteration: a layout on thread axes, and `m` or `reg` for a thread's own order.
    #[track_caller]
    pub fn layout(self, layout: impl IntoLayout) -> Self {
        match layout.into_layout().and_then(|(_, layout)| in_registers(layout)) {
            Ok(layout) => self.builder.kernel.parallels[self.parallel].layout = Some(layout),
            Err(error) => {
                let finding = error.diagnostic().label(Span::here(), "the layout of this loop");
                self.builder.mistake(finding);
            }
        }
        self
    }

    /// Elements that a thread takes together, at most.
    pub fn vector(self, elements: i64) -> Self {
        self.builder.kernel.parallels[self.parallel].vector = Some(elements);
        self
    }
}

/// A layout of registers, in which `m` means the register index.
fn in_registers(layout: Layout) -> Result<Layout, LayoutError> {
    match layout {
        Layout::Tile(tile) => tile.renamed(&M, &REG).map(Layout::Tile),
        other => Ok(other),
    }
}

impl KernelBuilder {
    /// A size that is known at launch only; it may stand in shapes and strides of parameters, and in the grid.
    #[track_caller]
    pub fn size(&mut self, name: &str) -> Size {
        Size::new(&self.sizes, name, Span::here())
    }

    /// CTAs along each dimension of the grid; returns the index of the CTA in each.
    pub fn grid<E: Into<Expr>, const N: usize>(&mut self, ctas: [E; N]) -> [Expr; N] {
        for (dimension, count) in ctas.into_iter().enumerate().take(3) {
            self.kernel.grid[dimension] = count.into();
        }
        if N > 3 {
            self.mistake(Diagnostic::error("K0203", format!("a grid of {N} dimensions")).help("a grid has up to 3"));
        }
        let kernel = &self.kernel;
        std::array::from_fn(|dimension| Expr::var(&kernel.block(dimension)))
    }

    /// Threads of one CTA.
    pub fn threads(&mut self, threads: i64) {
        self.kernel.threads = threads;
    }

    /// The index of the warp in its CTA; call after [`KernelBuilder::threads`].
    pub fn warp_id(&self) -> Expr {
        Expr::var(&self.kernel.warp())
    }

    /// A parameter that is only read.
    #[track_caller]
    pub fn input(&mut self, name: &str, dtype: DType, layout: impl IntoLayout) -> Buffer {
        self.buffer(name, dtype, Space::Global(Direction::Input), layout)
    }

    /// A parameter that is written.
    #[track_caller]
    pub fn output(&mut self, name: &str, dtype: DType, layout: impl IntoLayout) -> Buffer {
        self.buffer(name, dtype, Space::Global(Direction::Output), layout)
    }

    /// A buffer in shared memory.
    #[track_caller]
    pub fn shared(&mut self, name: &str, dtype: DType, layout: impl IntoLayout) -> Buffer {
        self.buffer(name, dtype, Space::Shared, layout)
    }

    /// A buffer in registers; its layout says which thread holds what, and `m` in it means the register index. Of a
    /// shape alone the layout is inferred.
    #[track_caller]
    pub fn fragment(&mut self, name: &str, dtype: DType, layout: impl IntoLayout) -> Buffer {
        self.buffer(name, dtype, Space::Fragment, layout)
    }

    /// Another name for the storage of a buffer, with another layout; of a fragment, with another shape.
    #[track_caller]
    pub fn view(&mut self, name: &str, of: Buffer, layout: impl IntoLayout) -> Buffer {
        let dtype = self.kernel.buffers.get(of.handle).map_or(DType::B8, |owner| owner.dtype);
        self.view_as(name, of, dtype, layout)
    }

    /// Another name for the storage of a buffer, with another dtype and layout; of a fragment, with another shape.
    #[track_caller]
    pub fn view_as(&mut self, name: &str, of: Buffer, dtype: DType, layout: impl IntoLayout) -> Buffer {
        let is_own = self.check_own(of);
        let space = self.kernel.buffers.get(of.handle).map_or(Space::Shared, |owner| owner.space);
        let view = self.buffer(name, dtype, space, layout);
        self.kernel.buffers[view.handle].view_of = is_own.then_some(of.handle);
        view
    }

    /// Whether a buffer is of this kernel; one of another is reported.
    #[track_caller]
    fn check_own(&mut self, buffer: Buffer) -> bool {
        let is_own = buffer.kernel == self.origin;
        if !is_own {
            self.mistake(foreign::buffer(Span::here(), buffer.kernel));
        }
        is_own
    }

    #[track_caller]
    fn buffer(&mut self, name: &str, dtype: DType, space: Space, layout: impl IntoLayout) -> Buffer {
        let span = Span::here();
        let run_time = layout.run_time();
        let is_open = space == Space::Fragment && layout.is_shape();
        let (shape, layout) = match layout.into_layout() {
            Ok(given) => given,
            Err(error) => {
                self.mistake(error.diagnostic().label(span, format!("the layout of `{name}`")));
                // Stands in until the mistake is reported.
                (vec![1], Layout::Tile(TileLayout::one()))
            }
        };
        let placed = if space == Space::Fragment { in_registers(layout.clone()) } else { Ok(layout.clone()) };
        let layout = placed.unwrap_or_else(|error| {
            self.mistake(error.diagnostic().label(span, format!("the layout of `{name}`")));
            layout
        });
        if run_time.is_some() && !matches!(space, Space::Global(_)) {
            self.mistake(
                Diagnostic::error("K0231", format!("`{name}` has a size that is known at launch only"))
                    .label(span, "declared here")
                    .help("only tensors in global memory may have such sizes; tiles are made of numbers"),
            );
        }
        let name = name.to_string();
        let layout = (!is_open).then_some(layout);
        let buffer = tile::Buffer { name, dtype, shape, space, layout, run_time, view_of: None, span };
        Buffer { handle: self.kernel.buffers.push(buffer), kernel: self.origin }
    }

    /// A loop that stays a loop in CUDA; one over an empty range such as `3..3` does nothing.
    #[track_caller]
    pub fn serial(&mut self, name: &str, range: Range<i64>, body: impl FnOnce(&mut KernelBuilder, Expr)) {
        self.repeat(name, range, Unroll::No, body);
    }

    /// A loop whose iterations are written out in CUDA.
    #[track_caller]
    pub fn unroll(&mut self, name: &str, range: Range<i64>, body: impl FnOnce(&mut KernelBuilder, Expr)) {
        self.repeat(name, range, Unroll::Full, body);
    }

    /// A loop whose loads may run `stages` iterations ahead of what uses them.
    #[track_caller]
    pub fn pipelined(
        &mut self,
        name: &str,
        range: Range<i64>,
        stages: i64,
        body: impl FnOnce(&mut KernelBuilder, Expr),
    ) {
        self.repeat(name, range, Unroll::Pipelined(stages), body);
    }

    #[track_caller]
    fn repeat(&mut self, name: &str, range: Range<i64>, unroll: Unroll, body: impl FnOnce(&mut KernelBuilder, Expr)) {
        let span = Span::here();
        self.kernel.mistakes.extend(reversed(name, &range, span));
        if range.is_empty() {
            return;
        }
        let var = Var::new(name, range.start, range.end - 1);
        self.loops.push(name.to_string());
        let body = self.inside(|k| body(k, Expr::var(&var)));
        self.loops.pop();
        self.push(Stmt::Loop(Loop { var, unroll, body, span }));
    }

    /// Iterations over `extents` without an order, shared among the threads of the CTA.
    #[track_caller]
    pub fn parallel<const N: usize>(
        &mut self,
        extents: [i64; N],
        body: impl FnOnce(&mut Elements, [Expr; N]),
    ) -> ParallelRef<'_> {
        if extents.iter().any(|extent| *extent < 1) {
            let message = format!("a parallel loop over {extents:?}");
            let finding = Diagnostic::error("K0234", message).label(Span::here(), "this loop");
            self.mistake(finding.help("its extents begin at 1; leave a loop without iterations out"));
        }
        let vars = variables(&extents, &|name| self.is_taken(name));
        let exprs = std::array::from_fn(|at| Expr::var(&vars[at]));
        self.parallel_over(vars, |elements| body(elements, exprs))
    }

    /// [`KernelBuilder::parallel`] over variables of the caller, whose ranges begin at 0.
    #[track_caller]
    pub fn parallel_over(&mut self, vars: Vec<Var>, body: impl FnOnce(&mut Elements)) -> ParallelRef<'_> {
        let span = Span::here();
        let body = self.elements(body);
        let parallel = Parallel { vars, body, layout: None, vector: None, span };
        let parallel = self.kernel.parallels.push(parallel);
        self.push(Stmt::Parallel(parallel));
        ParallelRef { builder: self, parallel }
    }

    /// Statements on elements that every thread executes: the threads are the iterations. Every thread has a copy of the
    /// fragments in it, and all copies must get the same values.
    pub fn each_thread(&mut self, body: impl FnOnce(&mut Elements)) {
        let body = self.elements(body);
        self.push(Stmt::Each(body));
    }

    fn elements(&mut self, body: impl FnOnce(&mut Elements)) -> Vec<tile::Element> {
        let (body, mistakes) = Elements::build(self.origin, body);
        self.kernel.mistakes.extend(mistakes);
        body
    }

    /// Statements where a condition holds, which is the same for all threads.
    #[track_caller]
    pub fn if_(&mut self, cond: impl Into<Value>, then: impl FnOnce(&mut KernelBuilder)) {
        self.if_else(cond, then, |_| {});
    }

    /// Statements where a condition holds, which is the same for all threads, and others where it does not.
    #[track_caller]
    pub fn if_else(
        &mut self,
        cond: impl Into<Value>,
        then: impl FnOnce(&mut KernelBuilder),
        otherwise: impl FnOnce(&mut KernelBuilder),
    ) {
        let (cond, span): (Value, Span) = (cond.into(), Span::here());
        self.kernel.mistakes.extend(foreign::in_value(&cond, self.origin, span));
        let (then, otherwise) = (self.inside(then), self.inside(otherwise));
        self.push(Stmt::If(If { cond, then, otherwise, span }));
    }

    fn inside(&mut self, body: impl FnOnce(&mut KernelBuilder)) -> Vec<Stmt> {
        self.open.push(Vec::new());
        body(self);
        self.open.pop().unwrap_or_default()
    }

    fn is_taken(&self, name: &str) -> bool {
        let is_buffer = self.kernel.buffers.iter().any(|(_, buffer)| buffer.name == name);
        is_buffer
            || self.loops.iter().any(|known| known == name)
            || self.sizes.borrow().iter().any(|size| size.told.var.name() == name)
    }

    /// [`ScopeRef::reduce`] by the CTA.
    #[track_caller]
    pub fn reduce(
        &mut self,
        kind: ReduceKind,
        dst: impl Into<Region>,
        src: impl Into<Region>,
        dimension: usize,
    ) -> OpRef<'_> {
        self.cta().reduce(kind, dst, src, dimension)
    }

    /// [`ScopeRef::gemm`] by the CTA.
    #[track_caller]
    pub fn gemm(&mut self, c: impl Into<Region>, a: impl Into<Region>, b: impl Into<Region>) -> OpRef<'_> {
        self.cta().gemm(c, a, b)
    }

    /// [`ScopeRef::atomic_add`] by the CTA.
    #[track_caller]
    pub fn atomic_add(&mut self, dst: impl Into<Region>, src: impl Into<Region>) -> OpRef<'_> {
        self.cta().atomic_add(dst, src)
    }

    /// The warp that gets here: every warp of the CTA, each for itself.
    pub fn warp(&mut self) -> ScopeRef<'_> {
        ScopeRef { builder: self, scope: Scope::Warp, warp: None }
    }

    /// One warp of the CTA; the others pass by.
    pub fn warp_at(&mut self, warp: i64) -> ScopeRef<'_> {
        ScopeRef { builder: self, scope: Scope::Warp, warp: Some(warp) }
    }

    /// All threads of the CTA together.
    pub fn cta(&mut self) -> ScopeRef<'_> {
        ScopeRef { builder: self, scope: Scope::Cta, warp: None }
    }

    /// [`ScopeRef::copy`] by the CTA.
    #[track_caller]
    pub fn copy(&mut self, dst: impl Into<Region>, src: impl Into<Region>) -> OpRef<'_> {
        self.cta().copy(dst, src)
    }

    /// Copies a fragment to another that other threads may have, through shared memory: neither's layout depends on the
    /// other's.
    #[track_caller]
    pub fn convert_layout(&mut self, dst: Buffer, src: Buffer) {
        let (is_own_dst, is_own_src) = (self.check_own(dst), self.check_own(src));
        if !is_own_dst || !is_own_src {
            return;
        }
        let Some(from) = self.kernel.buffers.get(src.handle) else { return };
        let (name, dtype, shape) = (format!("{}_staged", from.name), from.dtype, from.shape.clone());
        let staged = self.shared(&name, dtype, shape);
        self.staged.push((staged.handle, name));
        self.copy(staged, src);
        self.copy(dst, staged);
    }

    /// Lets inference copy fragments through shared memory where their uses agree on no layout; else that is an error.
    pub fn allow_conversions(&mut self) {
        self.kernel.allow_conversions = true;
    }

    /// Rounds every product before it goes into a sum. Else `x*y + z` of f32 and f64 is one operation, `fma`, rounded once.
    pub fn no_contraction(&mut self) {
        self.kernel.contracts = false;
    }

    /// [`ScopeRef::fill`] by the CTA.
    #[track_caller]
    pub fn fill(&mut self, dst: impl Into<Region>, value: impl Into<Scalar>) -> OpRef<'_> {
        self.cta().fill(dst, value)
    }

    /// The kernel, when all of it is known.
    fn finish(self) -> Kernel {
        let mut kernel = self.kernel;
        for size in self.sizes.borrow().iter() {
            kernel.mistakes.extend(size.mistake());
            kernel.sizes.push(size.told.clone());
        }
        self.staged.iter().for_each(|(tile, _)| kernel.buffers[*tile].name.clear());
        for (tile, base) in self.staged {
            let name = kernel.free_name(&base);
            kernel.buffers[tile].name = name;
        }
        kernel
    }

    fn push(&mut self, stmt: Stmt) {
        match self.open.last_mut() {
            Some(body) => body.push(stmt),
            None => self.kernel.body.push(stmt),
        }
    }

    /// Reports what was said of an op and is meant for another one.
    #[track_caller]
    fn not_taken(&mut self, op: Handle<tile::Op>, said: &str, of: OpKind) {
        let name = self.kernel.ops[op].kind.info().name;
        let help = format!("leave it out: it is said of `{}`", of.info().name);
        let finding = Diagnostic::error("K0255", format!("`{name}` takes no `{said}`"));
        self.mistake(finding.label(Span::here(), "said here").help(help));
    }

    fn mistake(&mut self, diagnostic: Diagnostic) {
        self.kernel.mistakes.push(diagnostic);
    }

    /// Fills in what `..` stands for.
    fn tile(&self, region: Region) -> Tile {
        let shape = self.kernel.buffers.get(region.buffer.handle).map(|b| b.shape.clone()).unwrap_or_default();
        let indices = region.indices.unwrap_or_else(|| vec![Index::All; shape.len()]);
        let resolve = |(dimension, index): (usize, Index)| match index {
            Index::All => (Expr::constant(0), shape.get(dimension).copied().unwrap_or(1)),
            Index::From { start, extent } => (start, extent),
        };
        let (starts, extents) = indices.into_iter().enumerate().map(resolve).unzip();
        Tile { buffer: region.buffer.handle, starts, extents }
    }
}

impl<'k> ScopeRef<'k> {
    /// Moves every element of `src` to the same index of `dst`. Layouts may differ; dtypes and extents agree.
    #[track_caller]
    pub fn copy(self, dst: impl Into<Region>, src: impl Into<Region>) -> OpRef<'k> {
        self.op(OpKind::Copy, vec![dst.into(), src.into()], Detail::Nothing)
    }

    /// Sets every element of `dst` to one value.
    #[track_caller]
    pub fn fill(self, dst: impl Into<Region>, value: impl Into<Scalar>) -> OpRef<'k> {
        self.op(OpKind::Fill, vec![dst.into()], Detail::Constant(value.into()))
    }

    /// A warp moves `src` to the same indices of `dst`, whose layout differs; both may be the same storage.
    #[track_caller]
    pub fn permute_layout(self, dst: impl Into<Region>, src: impl Into<Region>) -> OpRef<'k> {
        self.op(OpKind::PermuteLayout, vec![dst.into(), src.into()], Detail::Nothing)
    }

    /// Elements of `src` along `dimension` become one element of `dst`, which is overwritten.
    #[track_caller]
    pub fn reduce(
        self,
        kind: ReduceKind,
        dst: impl Into<Region>,
        src: impl Into<Region>,
        dimension: usize,
    ) -> OpRef<'k> {
        let told = Reduce { kind, dimension, clear: true };
        self.op(OpKind::Reduce, vec![dst.into(), src.into()], Detail::Reduce(told))
    }

    /// `c += a * b`: M x K times K x N.
    #[track_caller]
    pub fn gemm(self, c: impl Into<Region>, a: impl Into<Region>, b: impl Into<Region>) -> OpRef<'k> {
        let told =
            Gemm { transpose_a: false, transpose_b: false, policy: WarpPolicy::Square, clear: false, tf32: false };
        self.op(OpKind::Gemm, vec![c.into(), a.into(), b.into()], Detail::Gemm(told))
    }

    /// `dst += src`, element by element, whoever else adds to it.
    #[track_caller]
    pub fn atomic_add(self, dst: impl Into<Region>, src: impl Into<Region>) -> OpRef<'k> {
        self.op(OpKind::AtomicAdd, vec![dst.into(), src.into()], Detail::Nothing)
    }

    #[track_caller]
    fn op(self, kind: OpKind, operands: Vec<Region>, detail: Detail) -> OpRef<'k> {
        let ScopeRef { builder, scope, warp } = self;
        for region in &operands {
            builder.check_own(region.buffer);
        }
        let operands = operands.into_iter().map(|region| builder.tile(region)).collect();
        let span = Span::here();
        let op = tile::Op { kind, scope, warp, operands, detail, variant: None, name: None, layout: None, span };
        let op = builder.kernel.ops.push(op);
        builder.push(Stmt::Op(op));
        OpRef { builder, op }
    }
}
