use std::fmt;
use std::str::FromStr;

use tilewright_emit::{Emitted, SourceMap};
use tilewright_ir::plan::OpPlan;
use tilewright_ir::tile::{Direction, Space};
use tilewright_ir::{Target, VerifiedKernel, VerifiedProgram};
use tilewright_layout::{DType, Layout};

/// A compiled kernel: CUDA text, launch shape, parameters, plans, and the stages it came through.
#[derive(Clone, Debug)]
pub struct Artifact {
    kernel: VerifiedKernel,
    program: VerifiedProgram,
    emitted: Emitted,
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
    /// Bytes to which its pointer must be aligned.
    pub alignment: i64,
}

impl Parameter {
    /// Elements of memory: one more than the greatest position.
    pub fn memory_elements(&self) -> i64 {
        self.layout.memory_span()
    }
}

/// A stage that can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The kernel as written.
    Tile,
    /// What one thread does.
    Thread,
    /// What was decided for each op, and against what.
    Plan,
    /// CUDA C++.
    Cuda,
}

impl Stage {
    /// Every stage, in the order of the pipeline.
    pub const ALL: &'static [Stage] = &[Stage::Tile, Stage::Thread, Stage::Plan, Stage::Cuda];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Tile => "tile",
            Stage::Thread => "thread",
            Stage::Plan => "plan",
            Stage::Cuda => "cuda",
        }
    }
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
            format!("`{text}` is no stage; there are {}", names.join(", "))
        })
    }
}

impl Artifact {
    pub(crate) fn new(kernel: VerifiedKernel, program: VerifiedProgram, emitted: Emitted) -> Artifact {
        Artifact { kernel, program, emitted }
    }

    /// The entry point's name.
    pub fn name(&self) -> &str {
        &self.kernel.kernel().name
    }

    /// What it was compiled for.
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
        self.kernel.kernel().grid
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
                Space::Global(direction) => Some(Parameter {
                    name: buffer.name.clone(),
                    dtype: buffer.dtype,
                    shape: buffer.shape.clone(),
                    layout: buffer.layout.clone(),
                    is_output: direction == Direction::Output,
                    alignment: 16,
                }),
                Space::Shared | Space::Fragment => None,
            })
            .collect()
    }

    /// What was decided for each op, in order.
    pub fn plans(&self) -> &[OpPlan] {
        &self.program.program().plans
    }

    /// A stage as text.
    pub fn stage(&self, stage: Stage) -> String {
        match stage {
            Stage::Tile => self.kernel.kernel().to_string(),
            Stage::Thread => self.program.program().to_string(),
            Stage::Plan => self.plans().iter().map(OpPlan::to_string).collect::<Vec<_>>().join("\n"),
            Stage::Cuda => self.cuda().to_string(),
        }
    }
}
