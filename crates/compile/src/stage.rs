use std::fmt;
use std::str::FromStr;

/// A stage of the compiler that can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The kernel as written, with the layouts that were inferred.
    Tile,
    /// Which thread holds each element and executes each iteration, why, and at what cost.
    Layouts,
    /// Which op uses which fragment, and in which pass each layout was fixed: a graph in DOT, the language of Graphviz.
    Graph,
    /// The program of one thread.
    Thread,
    /// The variant chosen for each op, and the alternatives.
    Plan,
    /// CUDA C++.
    Cuda,
}

impl Stage {
    /// Every stage, in the order of the pipeline.
    pub const ALL: &'static [Stage] =
        &[Stage::Tile, Stage::Layouts, Stage::Graph, Stage::Thread, Stage::Plan, Stage::Cuda];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Tile => "tile",
            Stage::Layouts => "layouts",
            Stage::Graph => "graph",
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
            format!("`{text}` is not a stage; the stages are {}", names.join(", "))
        })
    }
}
