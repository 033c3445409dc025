use tilewright_diag::Diagnostic;
use tilewright_emit::{Emitted, SourceMap};
use tilewright_expr::Expr;
use tilewright_infer::{Alternative, Inferred, Link};
use tilewright_ir::plan::OpPlan;
use tilewright_ir::thread::Program;
use tilewright_ir::tile::{self, Buffer, ScalarParameter};
use tilewright_ir::{Handle, Kernel, Target, VerifiedKernel, VerifiedProgram};
use tilewright_lower::serial_loops;

use crate::chosen::Chosen;
use crate::launch_shape::LaunchShape;
use crate::memory_map::memory_map;
use crate::parameter::Parameter;
use crate::sizes;
use crate::stage::Stage;
use crate::tensor_maps::{MapParameter, tensor_maps};

/// A compiled kernel: CUDA text, launch shape, parameters, plans, and the stages it came through.
#[derive(Clone, Debug)]
pub struct Artifact {
    kernel: VerifiedKernel,
    /// The layouts that were inferred or chosen, and why.
    chosen: Chosen,
    program: VerifiedProgram,
    emitted: Emitted,
    /// The numbers of a launch: for the sizes that are bound, or for the largest.
    launch: LaunchShape,
}

impl Artifact {
    pub(crate) fn new(
        kernel: VerifiedKernel,
        chosen: Chosen,
        program: VerifiedProgram,
        emitted: Emitted,
    ) -> Result<Artifact, Vec<Diagnostic>> {
        let launch = LaunchShape::largest(kernel.kernel())?;
        Ok(Artifact { kernel, chosen, program, emitted, launch })
    }

    /// The kernel, with the layouts that were inferred.
    pub(crate) fn kernel(&self) -> &Kernel {
        self.kernel.kernel()
    }

    pub(crate) fn launch(&self) -> &LaunchShape {
        &self.launch
    }

    pub(crate) fn program(&self) -> &Program {
        self.program.program()
    }

    /// The layouts that were inferred, and why.
    pub fn inferred(&self) -> &Inferred {
        &self.chosen.inferred
    }

    /// Warnings about a kernel that is right: reads beyond the edges of tensors, fragments of which every thread holds
    /// all elements, with their cost, fragments that take more registers than a thread has, and pipelined loops in which
    /// nothing runs ahead. A defect that prevents one of these is among them.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        let mut found = tile::warnings(self.kernel.kernel());
        found.extend(self.inferred().warnings(self.kernel.kernel()));
        found.extend(self.register_pressure_warning().unwrap_or_else(Some));
        found.extend(serial_loops(self.program()));
        found
    }

    /// Whether a launch may begin before the one before has ended: the kernel calls `k.overlap_previous`.
    pub fn overlaps_previous(&self) -> bool {
        self.kernel().overlap.is_some()
    }

    /// The names of all buffers, in the order in which they were declared.
    pub fn buffer_names(&self) -> Vec<&str> {
        self.kernel.kernel().buffers.iter().map(|(_, buffer)| buffer.name.as_str()).collect()
    }

    /// Why a buffer has its layout, traced back to a line that the user wrote; `None` if there is no such buffer.
    pub fn why(&self, buffer: &str) -> Option<String> {
        Some(self.chosen.why(self.kernel.kernel(), self.find(buffer)?))
    }

    /// The links of [`Artifact::why`]: each fragment's layout follows from the next. Empty for buffers in memory;
    /// `None` if there is no such buffer.
    pub fn chain(&self, buffer: &str) -> Option<Vec<Link>> {
        Some(self.inferred().chain(self.kernel.kernel(), self.find(buffer)?))
    }

    /// Alternative layouts of the fragment at the end of a buffer's chain, if its layout was chosen among several.
    pub fn alternatives(&self, buffer: &str) -> Vec<Alternative> {
        let last = self.chain(buffer).and_then(|mut chain| chain.pop());
        last.map_or_else(Vec::new, |link| self.inferred().alternatives(self.kernel.kernel(), link.fragment))
    }

    fn find(&self, name: &str) -> Option<Handle<Buffer>> {
        let mut buffers = self.kernel.kernel().buffers.iter();
        buffers.find(|(_, buffer)| buffer.name == name).map(|(handle, _)| handle)
    }

    /// The kernel for these values of its sizes. Errors: a size that is missing, unknown or given twice, values that the
    /// kernel was not compiled for, and values that make a tensor empty or put two of its elements in one place.
    pub fn for_sizes(mut self, given: &[(&str, i64)]) -> Result<Artifact, Vec<Diagnostic>> {
        let values = sizes::values(self.kernel.kernel(), given)?;
        self.launch = LaunchShape::bound(self.kernel.kernel(), values)?;
        self.tensor_maps().map_err(|finding| vec![finding])?;
        Ok(self)
    }

    /// The values of the sizes in the order of the parameters; `None` while they are not bound.
    pub fn sizes(&self) -> Option<&[i64]> {
        self.launch.is_bound().then(|| self.launch.values())
    }

    /// The values of the sizes, as [`Artifact::sizes`]. Error: they are not bound.
    pub fn bound_sizes(&self) -> Result<&[i64], Diagnostic> {
        self.sizes().ok_or_else(|| sizes::not_bound(self.kernel.kernel()))
    }

    /// The numbers that are parameters, in their order; they follow the sizes.
    pub fn scalars(&self) -> &[ScalarParameter] {
        &self.kernel().scalars
    }

    /// The tensor maps that are parameters, in their order; they follow the numbers. Error: sizes for which there is no such
    /// map. Those of a launch are checked by [`Artifact::for_sizes`].
    pub fn tensor_maps(&self) -> Result<Vec<MapParameter>, Diagnostic> {
        tensor_maps(self.kernel(), self.program(), &self.launch)
    }

    /// The value of an expression of the sizes; sizes that are not bound have their greatest value. An error is a defect.
    pub fn value(&self, expr: &Expr) -> Result<i64, Diagnostic> {
        sizes::evaluate(&self.kernel().sizes, self.launch.values(), expr)
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

    /// CTAs of a cluster, along x; 1 if there are no clusters.
    pub fn cluster_ctas(&self) -> i64 {
        self.program().cluster
    }

    /// CTAs along x, y and z.
    pub fn grid(&self) -> [i64; 3] {
        self.launch.grid()
    }

    /// Threads of one CTA.
    pub fn threads(&self) -> i64 {
        self.kernel.kernel().threads
    }

    /// Bytes of dynamic shared memory.
    pub fn dynamic_shared_bytes(&self) -> i64 {
        self.emitted.dynamic_shared_bytes
    }

    /// The parameters, in order; tensors whose sizes are not bound are the largest that are allowed.
    pub fn parameters(&self) -> &[Parameter] {
        self.launch.parameters()
    }

    /// The plan of each op, in order.
    pub fn plans(&self) -> &[OpPlan] {
        &self.program.program().plans
    }

    /// A stage as text.
    pub fn stage(&self, stage: Stage) -> String {
        match stage {
            Stage::Tile => self.kernel.kernel().to_string(),
            Stage::Layouts => self.chosen.text(self.kernel.kernel()),
            Stage::Graph => self.inferred().dot(self.kernel.kernel()),
            Stage::Thread => self.program.program().to_string(),
            Stage::Plan => {
                let map = memory_map(self.kernel.kernel(), self.program.program());
                let storage = self.chosen.storage_text(self.kernel.kernel());
                storage
                    .into_iter()
                    .chain(map)
                    .chain(self.plans().iter().map(OpPlan::to_string))
                    .collect::<Vec<_>>()
                    .join("\n")
            }
            Stage::Cuda => self.cuda().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared_between_threads<T: Send + Sync>() {}

    /// What it is made of may not contain an `Rc`: this is checked when the test is compiled.
    #[test]
    fn an_artifact_may_be_launched_by_several_threads() {
        shared_between_threads::<Artifact>();
    }
}
