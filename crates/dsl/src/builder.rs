mod grid;
mod map;
mod names;
mod refuse;
mod rings;
mod roles;
mod tile_loops;
mod tuples;
mod views;

pub(crate) use names::Names;

use std::cell::Cell;
use std::collections::BTreeSet;

use tilewright_diag::{Diagnostic, Span, in_op, is_in_op};
use tilewright_expr::Var;
use tilewright_ir::Handle;
use tilewright_ir::tile::{
    self, Direction, If, Kernel, LoadedIndex, Loop, OpKind, Overlap, Parallel, Part, Role, ScalarParameter, Space,
    Stmt, Unroll,
};
use tilewright_layout::axis::{M, REG, Scope};
use tilewright_layout::{DType, Layout, LayoutError, TileLayout};

use crate::buffer::Buffer;
use crate::elements::{Elements, variables};
use crate::expr::Expr;
use crate::known_size::KnownSize;
use crate::later::Later;
use crate::loop_range::LoopRange;
use crate::nodes::{self, BodyId, Ended, OpenKernel};
use crate::op_ref::OpRef;
use crate::region::Region;
use crate::shape::IntoLayout;
use crate::size::Size;
use crate::stages::Stages;
use crate::value::Value;

/// Builds the kernel `name` by running `body` once.
#[track_caller]
pub fn kernel<T>(name: &str, body: impl FnOnce(&mut KernelBuilder) -> T) -> Kernel {
    let kernel = Kernel::new(name, Span::here());
    let (nodes, later) = (nodes::open(kernel.span), Later::default());
    let mut builder = KernelBuilder {
        kernel,
        nodes,
        later: &later,
        loops: Vec::new(),
        role: None,
        has_grid: false,
        has_threads: false,
        warp_id_at: Cell::new(None),
    };
    body(&mut builder);
    builder.finish()
}

/// A kernel being built.
#[derive(Debug)]
pub struct KernelBuilder<'k> {
    /// The kernel; its body is that of the innermost loop or branch that is open.
    kernel: Kernel,
    /// The nodes that handles refer to.
    nodes: OpenKernel,
    /// Changes to its ops, loops and stores after they were added.
    later: &'k Later,
    /// Variables of the loops that are open.
    loops: Vec<String>,
    /// The role whose statements are being added.
    role: Option<Handle<Role>>,
    /// Whether [`KernelBuilder::grid`] was called.
    has_grid: bool,
    /// Whether [`KernelBuilder::threads`] was called.
    has_threads: bool,
    /// Where [`KernelBuilder::warp_id`] was called before [`KernelBuilder::threads`].
    warp_id_at: Cell<Option<Span>>,
}

/// The scope in which the next op runs: `k.warp().permute_layout(..)`.
#[derive(Debug)]
pub struct ScopeRef<'b, 'k> {
    builder: &'b mut KernelBuilder<'k>,
    scope: Scope,
    /// The warp that executes the op, if one was named.
    warp: Option<i64>,
}

/// How a loop is executed.
pub(crate) struct LoopKind {
    pub(crate) unroll: Unroll,
    /// The variant that the user asks for.
    pub(crate) variant: Option<String>,
    /// Which iterations its role executes, if not all.
    pub(crate) part: Option<Part>,
}

impl From<Unroll> for LoopKind {
    fn from(unroll: Unroll) -> LoopKind {
        LoopKind { unroll, variant: None, part: None }
    }
}

/// A parallel loop that was just added, to set more options of it.
#[derive(Clone, Copy, Debug)]
pub struct ParallelRef<'k> {
    later: &'k Later,
    parallel: Handle<Parallel>,
}

impl ParallelRef<'_> {
    /// Sets which thread executes which iteration: a layout on thread axes, with `m` or `reg` for the order within a
    /// thread.
    #[track_caller]
    pub fn layout(self, layout: impl IntoLayout) -> Self {
        match layout.into_layout().and_then(|(_, layout)| in_registers(layout)) {
            Ok(layout) => self.edit(|parallel| parallel.layout = Some(layout)),
            Err(error) => {
                nodes::mistake(error.diagnostic().label(Span::here(), "the layout of this loop"));
                self
            }
        }
    }

    /// Sets the most elements that a thread moves at once.
    pub fn vector(self, elements: i64) -> Self {
        self.edit(move |parallel| parallel.vector = Some(elements))
    }

    fn edit(self, change: impl FnOnce(&mut Parallel) + 'static) -> Self {
        let parallel = self.parallel;
        self.later.edit(move |kernel| change(&mut kernel.parallels[parallel]));
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

impl<'k> KernelBuilder<'k> {
    /// A size known only at launch; it may be used in shapes and strides of parameters, and in the grid.
    #[track_caller]
    pub fn size(&mut self, name: &str) -> Size {
        Size::new(name, Span::here())
    }

    /// A number that is a parameter of the kernel, passed by value. Use it in statements on elements and in conditions; it
    /// is given at launch behind the input tensors, as a tensor of one element.
    #[track_caller]
    pub fn scalar(&mut self, name: &str, dtype: DType) -> Value {
        self.kernel.scalars.push(ScalarParameter { name: name.to_string(), dtype, span: Span::here() });
        Value::of(tile::Value::Named(name.to_string()), BodyId::KERNEL)
    }

    /// Names an integer made of elements of inputs, from 0 to `most`, for use in indices, in bounds of loops, and as the end of a
    /// [truncated](KernelBuilder::truncated) tensor. Every CTA computes it before all else; a value below 0 counts as 0, and one beyond
    /// `most` as `most`, so that no data makes the kernel access memory that it does not have.
    #[track_caller]
    pub fn index(&mut self, name: &str, value: impl Into<Value>, most: impl Into<Expr>) -> Expr {
        let (of, most, span) = (value.into().resolved(), most.into().resolved(), Span::here());
        let var = Var::new(self.own_name(name), 0, most.range().hi.max(0));
        self.kernel.loaded.push(LoadedIndex { var: var.clone(), of, most, span });
        Expr::from(&var)
    }

    /// Threads of one CTA. Call it once.
    #[track_caller]
    pub fn threads(&mut self, threads: i64) {
        let span = Span::here();
        if self.has_threads {
            let finding = Diagnostic::error("K0202", "`k.threads` is called twice")
                .label(span, "called again here")
                .label(self.kernel.threads_span, "first called here");
            nodes::mistake(finding.help("call it once, before anything that depends on it"));
        }
        if let Some(called) = self.warp_id_at.take().filter(|_| threads != self.kernel.threads) {
            let finding = Diagnostic::error("K0217", "`k.warp_id()` is called before `k.threads`")
                .label(called, "called here")
                .label(span, "the number of warps is known from here on");
            nodes::mistake(finding.help("call k.threads first"));
        }
        (self.kernel.threads, self.kernel.threads_span, self.has_threads) = (threads, span, true);
    }

    /// The index of the warp in its CTA; call after [`KernelBuilder::threads`].
    #[track_caller]
    pub fn warp_id(&self) -> Expr {
        if !self.has_threads {
            self.warp_id_at.set(Some(self.warp_id_at.get().unwrap_or(Span::here())));
        }
        Expr::from(&self.kernel.warp())
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

    /// A parameter that is updated in place: the caller gives its values, and a launch returns them as the kernel leaves
    /// them.
    #[track_caller]
    pub fn inout(&mut self, name: &str, dtype: DType, layout: impl IntoLayout) -> Buffer {
        self.buffer(name, dtype, Space::Global(Direction::InOut), layout)
    }

    /// A parameter that begins at 0, to which CTAs add: a launch sets every element to 0 first.
    #[track_caller]
    pub fn accumulator(&mut self, name: &str, dtype: DType, layout: impl IntoLayout) -> Buffer {
        self.buffer(name, dtype, Space::Global(Direction::Accumulator), layout)
    }

    /// A buffer in shared memory. If only a shape of several rows is given, the compiler chooses where the rows are, by
    /// what the accesses cost; `shape.row_major()` puts them one after the other. It does so too for a buffer that has
    /// a view with a layout.
    #[track_caller]
    pub fn shared(&mut self, name: &str, dtype: DType, layout: impl IntoLayout) -> Buffer {
        self.buffer(name, dtype, Space::Shared, layout)
    }

    /// A buffer in registers; its layout says which thread holds what, and `m` in it means the register index. If only
    /// a shape is given, the layout is inferred.
    #[track_caller]
    pub fn fragment(&mut self, name: &str, dtype: DType, layout: impl IntoLayout) -> Buffer {
        self.buffer(name, dtype, Space::Fragment, layout)
    }

    #[track_caller]
    fn buffer(&mut self, name: &str, dtype: DType, space: Space, layout: impl IntoLayout) -> Buffer {
        let span = Span::here();
        let dynamic_shape = layout.dynamic_shape();
        let is_shape = layout.is_shape();
        let (shape, layout) = match layout.into_layout() {
            Ok(given) => given,
            Err(error) => {
                nodes::mistake(error.diagnostic().label(span, format!("the layout of `{name}`")));
                // A placeholder until the mistake is reported.
                (vec![1], Layout::Tile(TileLayout::one()))
            }
        };
        let placed = if space == Space::Fragment { in_registers(layout.clone()) } else { Ok(layout.clone()) };
        let layout = placed.unwrap_or_else(|error| {
            nodes::mistake(error.diagnostic().label(span, format!("the layout of `{name}`")));
            layout
        });
        if dynamic_shape.is_some() && !matches!(space, Space::Global(_)) {
            nodes::mistake(
                Diagnostic::error("K0231", format!("`{name}` has a size that is known only at launch"))
                    .label(span, "declared here")
                    .help("only tensors in global memory may have such sizes; other buffers need constant extents"),
            );
        }
        let name = self.own_name(name);
        let layout = (space != Space::Fragment || !is_shape).then_some(layout);
        let (view_of, order) = (None, None);
        let is_open = space == Space::Shared && is_shape;
        let buffer = tile::Buffer { name, dtype, shape, space, layout, dynamic_shape, view_of, order, is_open, span };
        Buffer { handle: self.kernel.buffers.push(buffer), kernel: self.nodes.identity() }
    }

    /// A loop that stays a loop in CUDA; one over an empty range such as `3..3` does nothing. The bounds may be numbers, or
    /// expressions of sizes, block indices and variables of outer loops: `k.serial("t", ..n.ceil_div(64), |k, t| ..)`.
    #[track_caller]
    pub fn serial<T>(
        &mut self,
        name: &str,
        range: impl LoopRange,
        body: impl FnOnce(&mut KernelBuilder<'k>, Expr) -> T,
    ) {
        self.repeat(name, range, Unroll::No.into(), body);
    }

    /// A loop that is fully unrolled in CUDA.
    #[track_caller]
    pub fn unroll<T>(
        &mut self,
        name: &str,
        range: impl LoopRange,
        body: impl FnOnce(&mut KernelBuilder<'k>, Expr) -> T,
    ) {
        self.repeat(name, range, Unroll::Full.into(), body);
    }

    /// A loop whose copies from tensors to shared buffers run ahead of what uses them: each buffer has `stages` stages, a
    /// number or [`Stages`], so copies are asynchronous and up to `stages - 1` iterations ahead. The results are those of a
    /// serial loop. The plan of the loop says what runs ahead, and by what, or why nothing does.
    #[track_caller]
    pub fn pipelined<T>(
        &mut self,
        name: &str,
        range: impl LoopRange,
        stages: impl Into<Stages>,
        body: impl FnOnce(&mut KernelBuilder<'k>, Expr) -> T,
    ) {
        let Stages { count, variant } = stages.into();
        self.repeat(name, range, LoopKind { variant, ..Unroll::Pipelined(count).into() }, body);
    }

    #[track_caller]
    fn repeat<T>(
        &mut self,
        name: &str,
        range: impl LoopRange,
        kind: LoopKind,
        body: impl FnOnce(&mut KernelBuilder<'k>, Expr) -> T,
    ) {
        self.repeat_at(Span::here(), name, range, kind, body);
    }

    fn repeat_at<T>(
        &mut self,
        span: Span,
        name: &str,
        range: impl LoopRange,
        LoopKind { unroll, variant, part }: LoopKind,
        body: impl FnOnce(&mut KernelBuilder<'k>, Expr) -> T,
    ) {
        let Some((counter, first)) = range.bounds().counter(name, span) else { return };
        self.loops.push(name.to_string());
        let body = self.inside(span, |k| body(k, Expr::of_loop(&counter.var) + first));
        self.loops.pop();
        self.kernel.body.push(Stmt::Loop(Loop { counter, unroll, variant, part, place: Vec::new(), body, span }));
    }

    /// Unordered iterations over `extents`, divided among the threads of the CTA.
    #[track_caller]
    pub fn parallel<const N: usize, T>(
        &mut self,
        extents: [i64; N],
        body: impl FnOnce(&mut Elements<'k>, [Expr; N]) -> T,
    ) -> ParallelRef<'k> {
        if extents.iter().any(|extent| *extent < 1) {
            let message = format!("a parallel loop over {extents:?}");
            let finding = Diagnostic::error("K0234", message).label(Span::here(), "this loop");
            nodes::mistake(finding.help("its extents are at least 1; omit a loop without iterations"));
        }
        let vars = variables(&extents, &|name| self.is_taken(name));
        let named = vars.clone();
        self.parallel_over(vars, |elements| body(elements, std::array::from_fn(|at| Expr::of_loop(&named[at]))))
    }

    /// [`KernelBuilder::parallel`] over the caller's variables, whose ranges begin at 0.
    #[track_caller]
    pub fn parallel_over<T>(&mut self, vars: Vec<Var>, body: impl FnOnce(&mut Elements<'k>) -> T) -> ParallelRef<'k> {
        let span = Span::here();
        let body = Elements::build(self.later, span, body);
        let parallel = Parallel { vars, body, layout: None, vector: None, role: self.role, span };
        let parallel = self.kernel.parallels.push(parallel);
        self.kernel.body.push(Stmt::Parallel(parallel));
        ParallelRef { later: self.later, parallel }
    }

    /// Statements on elements that every thread executes: the threads are the iterations. Every thread has a copy of the
    /// fragments in it, and all copies must get the same values.
    #[track_caller]
    pub fn each_thread<T>(&mut self, body: impl FnOnce(&mut Elements<'k>) -> T) {
        let span = Span::here();
        let body = Elements::build(self.later, span, body);
        if let Some(role) = self.role {
            let message = format!("`each_thread` in the role `{}`", self.kernel.roles[role].name);
            let finding = Diagnostic::error("K0275", message).label(span, "all threads of the CTA would execute this");
            nodes::mistake(finding.help("write it outside of the role, or use k.parallel, which the role executes"));
        }
        self.kernel.body.push(Stmt::EachThread(body));
    }

    /// Statements under a condition, which must be the same for all threads.
    #[track_caller]
    pub fn if_<T>(&mut self, cond: impl Into<Value>, then: impl FnOnce(&mut KernelBuilder<'k>) -> T) {
        self.if_else(cond, then, |_| {});
    }

    /// Statements under a condition, which must be the same for all threads, and others where it does not hold.
    #[track_caller]
    pub fn if_else<T, U>(
        &mut self,
        cond: impl Into<Value>,
        then: impl FnOnce(&mut KernelBuilder<'k>) -> T,
        otherwise: impl FnOnce(&mut KernelBuilder<'k>) -> U,
    ) {
        let (span, cond) = (Span::here(), cond.into().resolved());
        let (then, otherwise) = (self.inside(span, then), self.inside(span, otherwise));
        self.kernel.body.push(Stmt::If(If { cond, then, otherwise, span }));
    }

    /// Statements that make up an op of your own, under a name: plans and CUDA comments show it in front of each statement, with
    /// the line that called it. Diagnostics show that line too, and mention the line in the definition.
    ///
    /// Write `#[track_caller]` on the function that calls this method, so that its callers' lines are shown. The name consists of
    /// letters, digits and underscores. Buffers that the definition declares get a number if their names are taken, so that an op
    /// may be used several times.
    #[track_caller]
    pub fn op<T>(&mut self, name: &str, definition: impl FnOnce(&mut KernelBuilder<'k>) -> T) -> T {
        let span = Span::here();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_plain) {
            let message = format!("`{}` cannot be the name of an op", name.escape_debug());
            let finding = Diagnostic::error("K0201", message).label(span, "named here");
            nodes::mistake(finding.help("letters, digits and underscores"));
            return definition(self);
        }
        in_op(name, span, || definition(self))
    }

    /// The extents of a buffer. A size that is known only at launch counts as its greatest value.
    #[track_caller]
    pub fn shape(&self, of: Buffer) -> Vec<i64> {
        let is_own = of.is_own();
        let owner = self.kernel.buffers.get(of.handle).filter(|_| is_own);
        owner.map(|owner| owner.shape.clone()).unwrap_or_default()
    }

    /// The dtype of a buffer.
    #[track_caller]
    pub fn dtype(&self, of: Buffer) -> DType {
        let is_own = of.is_own();
        let owner = self.kernel.buffers.get(of.handle).filter(|_| is_own);
        owner.map_or(DType::B8, |owner| owner.dtype)
    }

    /// The name of a buffer. In the definition of an op, which may be called several times, one that is taken gets a number.
    fn own_name(&self, name: &str) -> String {
        if is_in_op() { self.free_name(name) } else { name.to_string() }
    }

    /// The name, with a number if it is taken.
    pub(crate) fn free_name(&self, name: &str) -> String {
        let mut names = (0..).map(|number| if number == 0 { name.to_string() } else { format!("{name}{number}") });
        names.find(|name| !self.is_taken(name)).unwrap_or_default()
    }

    fn inside<T>(&mut self, begins: Span, body: impl FnOnce(&mut KernelBuilder<'k>) -> T) -> Vec<Stmt> {
        let outer = std::mem::take(&mut self.kernel.body);
        nodes::in_body(begins, || body(self));
        std::mem::replace(&mut self.kernel.body, outer)
    }

    pub(crate) fn is_taken(&self, name: &str) -> bool {
        let is_buffer = self.kernel.buffers.iter().any(|(_, buffer)| buffer.name == name);
        is_buffer
            || self.kernel.scalars.iter().any(|scalar| scalar.name == name)
            || self.loops.iter().any(|known| known == name)
            || nodes::size_names().iter().any(|known| known == name)
    }

    /// Every warp of the CTA, each by itself.
    pub fn warp(&mut self) -> ScopeRef<'_, 'k> {
        ScopeRef { builder: self, scope: Scope::Warp, warp: None }
    }

    /// One warp of the CTA; the others skip the op.
    pub fn warp_at(&mut self, warp: i64) -> ScopeRef<'_, 'k> {
        ScopeRef { builder: self, scope: Scope::Warp, warp: Some(warp) }
    }

    /// All threads of the CTA together.
    pub fn cta(&mut self) -> ScopeRef<'_, 'k> {
        ScopeRef { builder: self, scope: Scope::Cta, warp: None }
    }

    /// Lets inference convert fragments whose uses do not agree on one layout, as `convert_layout` does: by renaming
    /// registers, by shuffles or through shared memory. Without it, such uses are an error.
    pub fn allow_conversions(&mut self) {
        self.kernel.allow_conversions = true;
    }

    /// Gives shared buffers whose lives do not meet the same storage, also where no more CTAs run on an SM then. Without it, they
    /// have storage of their own there, which may save a barrier. A buffer that is [`alone`](Buffer::alone) always has.
    pub fn share_storage(&mut self) {
        self.kernel.always_shares = true;
    }

    /// Lets the warpgroups whose roles hold no fragments, such as those that load and issue products, give registers to the others
    /// (`setmaxnreg`). The CTA has whole warpgroups; warps that are in no role do as the others of their warpgroup.
    #[track_caller]
    pub fn move_registers(&mut self) {
        self.kernel.moves_registers = Some(Span::here());
    }

    /// Lets the kernel begin before the launch before it has ended, if that one lets it, and lets the next launch do the same
    /// (CUDA programming guide, "Programmatic Dependent Launch"; `griddepcontrol`). What it does until it first touches a tensor overlaps
    /// the end of the launch before; there each role waits. Inputs in `unchanged`, such as weights, are written by no launch before,
    /// and are read without a wait; those of several calls add up.
    ///
    /// ```
    /// use tilewright_dsl::kernel;
    /// use tilewright_layout::DType::F32;
    ///
    /// let scaled = kernel("scaled", |k| {
    ///     let (x, scale) = (k.input("x", F32, [4096]), k.input("scale", F32, [4096]));
    ///     let y = k.output("y", F32, [4096]);
    ///     k.threads(128);
    ///     k.overlap_previous(&[scale]);
    ///     let held = k.fragment("held", F32, [4096]);
    ///     k.copy(held, scale);
    ///     k.map(y, |[i]| x.at((i,)) * held.at((i,)));
    /// });
    /// ```
    #[track_caller]
    pub fn overlap_previous(&mut self, unchanged: &[Buffer]) {
        let own = unchanged.iter().filter(|buffer| buffer.is_own());
        let unchanged: Vec<_> = own.map(|buffer| self.kernel.storage(buffer.handle)).collect();
        let span = Span::here();
        let none = || Overlap { unchanged: BTreeSet::new(), span };
        self.kernel.overlap.get_or_insert_with(none).unchanged.extend(unchanged);
    }

    /// Rounds every product before it is added. By default, `x*y + z` of f32 and f64 is one operation, `fma`, rounded
    /// once.
    pub fn no_contraction(&mut self) {
        self.kernel.contracts = false;
    }

    fn finish(self) -> Kernel {
        let KernelBuilder { mut kernel, nodes, later, .. } = self;
        match nodes.close() {
            Some(Ended { sizes, mistakes, read_again, alone, caching }) => {
                let warnings: Vec<Diagnostic> = read_again.iter().map(|again| again.warning(&kernel)).collect();
                let mistakes = sizes.iter().filter_map(KnownSize::mistake).chain(mistakes);
                kernel.build_findings.extend(mistakes.chain(warnings));
                kernel.sizes = sizes.into_iter().map(|size| size.parameter).collect();
                kernel.alone = alone;
                kernel.caching =
                    caching.into_iter().map(|(handle, caching)| (kernel.storage(handle), caching)).collect();
            }
            None => {
                let defect = Diagnostic::internal("K0213", "the handles of a kernel are lost while it is being built");
                kernel.build_findings.push(defect.label(kernel.span, "this kernel"));
            }
        }
        later.apply(&mut kernel);
        kernel.pack_roles();
        tile::name_common_values(&mut kernel);
        kernel
    }
}

impl<'k> ScopeRef<'_, 'k> {
    /// Adds an op. The methods in [`crate::ops`], generated from the rows of the op table, call it.
    #[track_caller]
    pub(crate) fn op(self, kind: OpKind, operands: Vec<Region>) -> OpRef<'k> {
        let ScopeRef { builder, scope, warp } = self;
        for region in &operands {
            region.buffer.is_own();
        }
        let mut tiles = Vec::with_capacity(operands.len());
        for region in operands {
            tiles.push(region.resolved().tile(&builder.kernel));
        }
        let span = Span::here();
        let role = builder.role;
        let op = tile::Op { kind, scope, warp, role, operands: tiles, variant: None, name: None, layout: None, span };
        let op = builder.kernel.ops.push(op);
        builder.kernel.body.push(Stmt::Op(op));
        OpRef { later: builder.later, op, kind }
    }
}
