use std::fmt;
use std::str::FromStr;

use tilewright_diag::Diagnostic;
use tilewright_emit::{Emitted, SourceMap};
use tilewright_expr::{Expr, Var};
use tilewright_infer::{Alternative, Inferred, Link};
use tilewright_ir::plan::OpPlan;
use tilewright_ir::thread::Program;
use tilewright_ir::tile::{self, Buffer, Direction, Size, Space};
use tilewright_ir::{Handle, Kernel, Target, VerifiedKernel, VerifiedProgram};
use tilewright_layout::{DType, Iter, Layout, TileLayout};

/// A compiled kernel: CUDA text, launch shape, parameters, plans, and the stages it came through.
#[derive(Clone, Debug)]
pub struct Artifact {
    kernel: VerifiedKernel,
    /// The inferred layouts and their reasons; empty if all were declared.
    inferred: Inferred,
    program: VerifiedProgram,
    emitted: Emitted,
    /// The values of the sizes, if they are bound.
    sizes: Vec<i64>,
}

/// A parameter of the entry point: a pointer to a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Type of an element.
    pub dtype: DType,
    /// Logical shape.
    pub shape: Vec<i64>,
    /// Where each element is in the tensor's memory.
    pub layout: Layout,
    /// Whether the kernel writes it.
    pub is_output: bool,
    /// The alignment that its pointer must have, in bytes.
    pub alignment: i64,
}

impl Parameter {
    /// Elements of memory: one more than the greatest position.
    pub fn memory_elements(&self) -> i64 {
        self.layout.memory_span()
    }
}

/// A stage of the compiler that can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The kernel as written, with the layouts that were inferred.
    Tile,
    /// Which thread holds each element and executes each iteration, why, and at what cost.
    Layouts,
    /// The program of one thread.
    Thread,
    /// The variant chosen for each op, and the alternatives.
    Plan,
    /// CUDA C++.
    Cuda,
}

impl Stage {
    /// Every stage, in the order of the pipeline.
    pub const ALL: &'static [Stage] = &[Stage::Tile, Stage::Layouts, Stage::Thread, Stage::Plan, Stage::Cuda];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Tile => "tile",
            Stage::Layouts => "layouts",
            Stage::Thread => "thread",
            Stage::Plan => "plan",
            Stage::Cuda => "cuda",
        }
    }
}

/// The value of a size, if it is allowed for a launch.
fn check_size(size: &Size, value: Option<i64>) -> Result<i64, Diagnostic> {
    let (name, range, multiple) = (size.var.name(), size.var.range(), size.var.multiple());
    let Some(value) = value else {
        return Err(Diagnostic::error("R0611", format!("the size `{name}` has no value"))
            .label(size.span, "declared here")
            .help(format!("bind it: artifact.for_sizes(&[(\"{name}\", ..)])")));
    };
    if value < 1 || value > range.hi || value % multiple != 0 {
        let divides = if multiple > 1 { format!("a multiple of {multiple} ") } else { String::new() };
        let from = if multiple > 1 { "from " } else { "" };
        let wanted = format!("launch with {divides}{from}{multiple} to {}", range.hi / multiple * multiple);
        let help = if value < 1 { wanted } else { format!("{wanted}, or change the bounds of the size") };
        return Err(Diagnostic::error("R0612", format!("the kernel was not compiled for {name} = {value}"))
            .label(size.span, format!("{divides}from 1 to {}", range.hi))
            .help(help));
    }
    Ok(value)
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Stage {
    type Err = String;

    fn from_str(text: &str) -> Result<Stage, String> {
        Stage::ALL.iter().copied().find(|stage| stage.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Stage::ALL.iter().map(|stage| stage.name()).collect();
            format!("`{text}` is not a stage; the stages are {}", names.join(", "))
        })
    }
}

impl Artifact {
    pub(crate) fn new(
        kernel: VerifiedKernel,
        inferred: Inferred,
        program: VerifiedProgram,
        emitted: Emitted,
    ) -> Artifact {
        Artifact { kernel, inferred, program, emitted, sizes: Vec::new() }
    }

    /// The kernel, with the layouts that were inferred.
    pub(crate) fn kernel(&self) -> &Kernel {
        self.kernel.kernel()
    }

    pub(crate) fn program(&self) -> &Program {
        self.program.program()
    }

    /// The layouts that were inferred, and why.
    pub fn inferred(&self) -> &Inferred {
        &self.inferred
    }

    /// Warnings about a kernel that is right: reads beyond the edges of tensors, fragments of which every thread holds
    /// all elements, with their cost, and fragments that take more registers than a thread has.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        let mut found = tile::warnings(self.kernel.kernel());
        found.extend(self.inferred.warnings(self.kernel.kernel()));
        found.extend(self.too_many_registers());
        found
    }

    /// The names of all buffers, in the order in which they were declared.
    pub fn buffer_names(&self) -> Vec<&str> {
        self.kernel.kernel().buffers.iter().map(|(_, buffer)| buffer.name.as_str()).collect()
    }

    /// Why a buffer has its layout, traced back to a line that the user wrote; `None` if there is no such buffer.
    pub fn why(&self, buffer: &str) -> Option<String> {
        Some(self.inferred.why(self.kernel.kernel(), self.find(buffer)?))
    }

    /// The links of [`Artifact::why`]: each fragment's layout follows from the next. Empty for buffers in memory;
    /// `None` if there is no such buffer.
    pub fn chain(&self, buffer: &str) -> Option<Vec<Link>> {
        Some(self.inferred.chain(self.kernel.kernel(), self.find(buffer)?))
    }

    /// Alternative layouts of the fragment at the end of a buffer's chain, if its layout was chosen among several.
    pub fn alternatives(&self, buffer: &str) -> Vec<Alternative> {
        let last = self.chain(buffer).and_then(|mut chain| chain.pop());
        last.map_or_else(Vec::new, |link| self.inferred.alternatives(self.kernel.kernel(), link.fragment))
    }

    fn find(&self, name: &str) -> Option<Handle<Buffer>> {
        let mut buffers = self.kernel.kernel().buffers.iter();
        buffers.find(|(_, buffer)| buffer.name == name).map(|(handle, _)| handle)
    }

    /// The kernel for these values of its sizes. Errors: a size that is missing, unknown or given twice, and values
    /// that the kernel was not compiled for.
    pub fn for_sizes(mut self, given: &[(&str, i64)]) -> Result<Artifact, Vec<Diagnostic>> {
        let sizes = &self.kernel.kernel().sizes;
        let unknown = given.iter().filter(|(name, _)| !sizes.iter().any(|size| size.var.name() == *name));
        let mut found: Vec<Diagnostic> = unknown.map(|(name, _)| self.unknown_size(name)).collect();
        let mut values = Vec::with_capacity(sizes.len());
        for size in sizes {
            let name = size.var.name();
            let all: Vec<String> =
                given.iter().filter(|(of, _)| *of == name).map(|(_, value)| format!("{name} = {value}")).collect();
            if all.len() > 1 {
                found.push(
                    Diagnostic::error("R0616", format!("the size `{name}` is given {} times", all.len()))
                        .label(size.span, "this size")
                        .note(all.join(", "))
                        .help("give each size one value"),
                );
                continue;
            }
            let value = given.iter().find(|(name, _)| *name == size.var.name()).map(|(_, value)| *value);
            match check_size(size, value) {
                Ok(value) => values.push(value),
                Err(finding) => found.push(finding),
            }
        }
        self.sizes = values;
        if found.is_empty() {
            found.extend(self.check_views());
        }
        if found.is_empty() { Ok(self) } else { Err(found) }
    }

    /// Checks that views stay inside the tensors that they view, now that the sizes are bound.
    fn check_views(&self) -> Vec<Diagnostic> {
        let kernel = self.kernel.kernel();
        let views = kernel.buffers.iter().filter(|(_, buffer)| buffer.view_of.is_some());
        views.filter_map(|(handle, view)| self.too_far(view, &kernel.buffers[kernel.storage(handle)])).collect()
    }

    /// The error for a view that reaches beyond its tensor for these sizes. If neither depends on a size of the launch,
    /// the verifier has compared them.
    fn too_far(&self, view: &Buffer, owner: &Buffer) -> Option<Diagnostic> {
        if view.dynamic_shape.is_none() && owner.dynamic_shape.is_none() {
            return None;
        }
        let reach = |buffer: &Buffer| self.placed(buffer).1.memory_span();
        // In elements of the tensor, whose width may differ from the view's.
        let bytes = reach(view).saturating_mul(view.dtype.bytes());
        let (reached, there) = (bytes.saturating_add(owner.dtype.bytes() - 1) / owner.dtype.bytes(), reach(owner));
        if reached <= there {
            return None;
        }
        let (view_name, owner_name) = (&view.name, &owner.name);
        let message = format!(
            "for these sizes the view `{view_name}` reaches element {reached} of `{owner_name}`, which has {there}"
        );
        let help = match view.dynamic_shape {
            Some(_) => "give the view strides that follow from the sizes",
            None => "launch with larger sizes, or give the view extents and strides that follow from the sizes",
        };
        let finding = Diagnostic::error("R0613", message).label(view.span, "viewed here");
        Some(finding.label(owner.span, "declared here").help(help))
    }

    fn unknown_size(&self, name: &str) -> Diagnostic {
        let known: Vec<&str> = self.kernel.kernel().sizes.iter().map(|size| size.var.name()).collect();
        let known = if known.is_empty() { "it has none".to_string() } else { format!("it has {}", known.join(", ")) };
        Diagnostic::error("R0611", format!("`{}` has no size `{name}`", self.name())).help(known)
    }

    /// The values of the sizes in the order of the parameters; `None` while they are not bound.
    pub fn sizes(&self) -> Option<&[i64]> {
        (self.sizes.len() == self.kernel.kernel().sizes.len()).then_some(&self.sizes)
    }

    /// The value of an expression of the sizes; sizes that are not bound have their greatest value.
    pub fn value(&self, expr: &Expr) -> i64 {
        let sizes = &self.kernel.kernel().sizes;
        let value = |var: &Var| {
            let at = sizes.iter().position(|size| size.var == *var);
            let bound = at.and_then(|at| self.sizes.get(at).copied());
            bound.or(Some(var.range().hi - var.range().hi % var.multiple()))
        };
        expr.eval(&value).unwrap_or(i64::MAX)
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.kernel.kernel().name
    }

    /// The entry point's name in the CUDA text, by which the kernel is launched: the kernel's own, with an underscore
    /// appended if C++ or CUDA reserves it.
    pub fn entry(&self) -> &str {
        &self.emitted.entry
    }

    /// The target that it was compiled for.
    pub fn target(&self) -> Target {
        self.program.program().target
    }

    /// The CUDA C++ text.
    pub fn cuda(&self) -> &str {
        &self.emitted.cuda
    }

    /// Where each line of the CUDA text comes from.
    pub fn source_map(&self) -> &SourceMap {
        &self.emitted.source_map
    }

    /// CTAs along x, y and z.
    pub fn grid(&self) -> [i64; 3] {
        self.kernel.kernel().grid.each_ref().map(|ctas| self.value(ctas))
    }

    /// Threads of one CTA.
    pub fn threads(&self) -> i64 {
        self.kernel.kernel().threads
    }

    /// Bytes of dynamic shared memory.
    pub fn dynamic_shared_bytes(&self) -> i64 {
        self.emitted.dynamic_shared_bytes
    }

    /// The parameters, in order.
    pub fn parameters(&self) -> Vec<Parameter> {
        let owners = self.kernel.kernel().buffers.iter().filter(|(_, buffer)| buffer.view_of.is_none());
        owners
            .filter_map(|(_, buffer)| match buffer.space {
                Space::Global(direction) => {
                    let (shape, layout) = self.placed(buffer);
                    Some(Parameter {
                        name: buffer.name.clone(),
                        dtype: buffer.dtype,
                        shape,
                        layout,
                        is_output: direction == Direction::Output,
                        alignment: 16,
                    })
                }
                Space::Shared | Space::Fragment => None,
            })
            .collect()
    }

    /// Shape and layout of a buffer for the bound sizes.
    fn placed(&self, buffer: &Buffer) -> (Vec<i64>, Layout) {
        let whole = || Layout::Tile(TileLayout::one());
        let largest = || (buffer.shape.clone(), buffer.layout.clone().unwrap_or_else(whole));
        let Some(dynamic_shape) = &buffer.dynamic_shape else { return largest() };
        let values = |exprs: &[Expr]| exprs.iter().map(|expr| self.value(expr)).collect::<Vec<i64>>();
        let (extents, strides) = (values(&dynamic_shape.extents), values(&dynamic_shape.strides));
        let shard = extents.iter().zip(&strides).map(|(extent, stride)| Iter::memory(*extent, *stride)).collect();
        match TileLayout::new(shard, Vec::new(), []) {
            Ok(tile) => (extents, Layout::Tile(tile)),
            // Sizes within their limits give a layout within that of the largest.
            Err(_) => largest(),
        }
    }

    /// The plan of each op, in order.
    pub fn plans(&self) -> &[OpPlan] {
        &self.program.program().plans
    }

    /// A stage as text.
    pub fn stage(&self, stage: Stage) -> String {
        match stage {
            Stage::Tile => self.kernel.kernel().to_string(),
            Stage::Layouts => self.inferred.text(self.kernel.kernel()),
            Stage::Thread => self.program.program().to_string(),
            Stage::Plan => self.plans().iter().map(OpPlan::to_string).collect::<Vec<_>>().join("\n"),
            Stage::Cuda => self.cuda().to_string(),
        }
    }
}
