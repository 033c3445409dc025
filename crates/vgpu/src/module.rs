//! A parsed file with its kernels decoded.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::decode;
use crate::fault::{PtxError, Unsupported};
use crate::layout::{Layout, ParamInfo, param_layout};
use crate::program::Program;
use crate::ptx;
use crate::ptx::ast::{File, Function, Statement};

/// What a launch needs to know about a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// The name of the `.entry`.
    pub name: String,
    /// Its parameters in order.
    pub params: Vec<ParamInfo>,
    /// Statically allocated shared memory, in bytes.
    pub static_shared_bytes: u32,
    /// Maximum number of threads in each dimension (`.maxntid`).
    pub max_threads: Option<[u32; 3]>,
    /// Required number of threads in each dimension (`.reqntid`).
    pub required_threads: Option<[u32; 3]>,
    /// Required number of CTAs of a cluster in each dimension (`.reqnctapercluster`).
    pub required_cluster: Option<[u32; 3]>,
    /// Local memory of one thread, in bytes.
    pub local_bytes: u32,
}

#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) info: KernelInfo,
    pub(crate) program: Program,
}

/// A PTX file, parsed and decoded. Unsupported instructions are reported only when a kernel that can reach them is
/// launched, unsupported initialisers when any kernel is.
#[derive(Debug)]
pub struct Module {
    target: String,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) layout: Arc<Layout>,
}

impl Module {
    /// Parses PTX text.
    ///
    /// # Errors
    /// [`PtxError::Syntax`] for text that is not PTX.
    pub fn parse(text: &str) -> Result<Module, PtxError> {
        Module::parse_traced(text, &BTreeSet::new())
    }

    /// Like [`Module::parse`]; [`run_traced`](crate::run_traced) then traces the instructions on these lines, numbered from
    /// 1.
    ///
    /// # Errors
    /// The same as for [`Module::parse`].
    pub fn parse_traced(text: &str, lines: &BTreeSet<u32>) -> Result<Module, PtxError> {
        let file = ptx::parse(text)?;
        let layout = Layout::new(&file);
        let kernels = file
            .functions
            .iter()
            .filter(|function| function.is_kernel)
            .filter_map(|function| Some(kernel(&file, &layout, function, function.body.as_deref()?, lines)))
            .collect();
        Ok(Module { target: file.target, kernels, layout: Arc::new(layout) })
    }

    /// The kernels in the order of the file.
    pub fn kernels(&self) -> impl Iterator<Item = &KernelInfo> {
        self.kernels.iter().map(|kernel| &kernel.info)
    }

    /// The kernel called `name`.
    pub fn kernel(&self, name: &str) -> Option<&KernelInfo> {
        self.kernels().find(|kernel| kernel.name == name)
    }

    /// The instructions that a kernel can reach and that are not supported; `None` if there is no such kernel.
    pub fn unsupported(&self, kernel: &str) -> Option<&[Unsupported]> {
        let found = self.kernels.iter().find(|found| found.info.name == kernel)?;
        Some(&found.program.unsupported)
    }

    /// The lines on which a kernel has instructions, in order; `None` if there is no such kernel.
    pub fn instruction_lines(&self, kernel: &str) -> Option<BTreeSet<u32>> {
        let found = self.kernels.iter().find(|found| found.info.name == kernel)?;
        Some(found.program.info.iter().map(|info| info.line).collect())
    }

    /// The target that the file names, such as `sm_90a`.
    pub fn target(&self) -> &str {
        &self.target
    }
}

fn kernel(file: &File, layout: &Layout, function: &Function, body: &[Statement], traced: &BTreeSet<u32>) -> Kernel {
    let params = param_layout(&function.params);
    let mut program = decode::decode(file, layout, function, body, &params, traced);
    program.unsupported.extend_from_slice(&layout.unsupported);
    let info = KernelInfo {
        name: function.name.clone(),
        params,
        static_shared_bytes: program.static_shared_bytes,
        max_threads: function.max_threads,
        required_threads: function.required_threads,
        required_cluster: function.required_cluster,
        local_bytes: program.local_bytes,
    };
    Kernel { info, program }
}
