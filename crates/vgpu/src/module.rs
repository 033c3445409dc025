//! A parsed file with its kernels decoded.

use std::collections::BTreeMap;

use crate::decode;
use crate::fault::{PtxError, Unsupported};
use crate::isa::{Space, align_up};
use crate::memory::map;
use crate::program::Program;
use crate::ptx;
use crate::ptx::ast::{File, Function, Initial, Statement, Variable};

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// The name in the PTX.
    pub name: String,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// Offset in the parameter block, in bytes.
    pub offset: u32,
}

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
    /// Local memory of one thread, in bytes.
    pub local_bytes: u32,
}

#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) info: KernelInfo,
    pub(crate) program: Program,
}

/// A variable of the module in global memory, with its initial contents.
#[derive(Debug)]
pub(crate) struct GlobalVariable {
    pub(crate) name: String,
    /// Address of the first byte.
    pub(crate) base: u64,
    /// Initial contents.
    pub(crate) bytes: Vec<u8>,
}

/// Addresses of the module's variables.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// State space and address of each global and constant variable, by name.
    pub(crate) addresses: BTreeMap<String, (Space, u64)>,
    /// Global variables with their initial contents.
    pub(crate) globals: Vec<GlobalVariable>,
    /// The contents of constant memory.
    pub(crate) constants: Vec<u8>,
    /// Initialisers that cannot be evaluated.
    pub(crate) unsupported: Vec<Unsupported>,
}

/// A PTX file, parsed and decoded. Unsupported instructions are reported only when a kernel that can reach them is
/// launched, unsupported initialisers when any kernel is: every launch initialises all variables.
#[derive(Debug)]
pub struct Module {
    target: String,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) layout: Layout,
}

impl Module {
    /// Parses PTX text.
    ///
    /// # Errors
    /// [`PtxError::Syntax`] for text that is not PTX.
    pub fn parse(text: &str) -> Result<Module, PtxError> {
        let file = ptx::parse(text)?;
        let layout = Layout::new(&file);
        let kernels = file
            .functions
            .iter()
            .filter(|function| function.is_kernel)
            .filter_map(|function| Some(kernel(&file, &layout, function, function.body.as_deref()?)))
            .collect();
        Ok(Module { target: file.target, kernels, layout })
    }

    /// The kernels in the order of the file.
    pub fn kernels(&self) -> impl Iterator<Item = &KernelInfo> {
        self.kernels.iter().map(|kernel| &kernel.info)
    }

    /// The kernel called `name`.
    pub fn kernel(&self, name: &str) -> Option<&KernelInfo> {
        self.kernels().find(|kernel| kernel.name == name)
    }

    /// The target that the file names, such as `sm_90a`.
    pub fn target(&self) -> &str {
        &self.target
    }
}

fn kernel(file: &File, layout: &Layout, function: &Function, body: &[Statement]) -> Kernel {
    let params = param_layout(&function.params);
    let mut program = decode::decode(file, layout, function, body, &params);
    program.unsupported.extend_from_slice(&layout.unsupported);
    let info = KernelInfo {
        name: function.name.clone(),
        params,
        static_shared_bytes: program.static_shared_bytes,
        max_threads: function.max_threads,
        required_threads: function.required_threads,
        local_bytes: program.local_bytes,
    };
    Kernel { info, program }
}

/// Lays out the parameters in order, each at its alignment (PTX ISA, section 5.1.6.1).
fn param_layout(params: &[Variable]) -> Vec<ParamInfo> {
    let mut next = 0u64;
    let mut found = Vec::new();
    for param in params {
        let offset = align_up(next, u64::from(param.align));
        next = offset + u64::from(param.bytes);
        let name = param.name.clone();
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        found.push(ParamInfo { name, size: param.bytes, align: param.align, offset });
    }
    found
}

impl Layout {
    fn new(file: &File) -> Layout {
        let mut layout = Layout::default();
        let mut next_global = map::MODULE_START;
        let mut next_constant = 0u64;
        let placed = |variable: &&Variable| !variable.is_extern;
        for variable in file.variables.iter().filter(placed) {
            let align = u64::from(variable.align);
            let address = match variable.space {
                Space::Global => {
                    let base = align_up(next_global, align.max(map::BASE_ALIGN));
                    next_global = base + u64::from(variable.bytes) + map::GUARD;
                    base
                }
                Space::Const => {
                    let base = align_up(next_constant, align);
                    next_constant = base + u64::from(variable.bytes);
                    base
                }
                Space::Generic | Space::Shared | Space::Local | Space::Param => continue,
            };
            layout.addresses.insert(variable.name.clone(), (variable.space, address));
        }
        layout.constants = vec![0; next_constant as usize];
        for variable in file.variables.iter().filter(placed) {
            layout.fill(variable);
        }
        layout
    }

    fn fill(&mut self, variable: &Variable) {
        let Some((space, address)) = self.addresses.get(&variable.name).copied() else { return };
        let bytes = match self.contents(variable) {
            Ok(bytes) => bytes,
            Err(reason) => {
                let text = format!("`{}`: {reason}", variable.name);
                return self.unsupported.push(Unsupported { line: variable.line, text });
            }
        };
        if space == Space::Const {
            let start = address as usize;
            self.constants[start..start + bytes.len()].copy_from_slice(&bytes);
        } else {
            self.globals.push(GlobalVariable { name: variable.name.clone(), base: address, bytes });
        }
    }

    /// The initialiser as bytes; elements that it omits are zero. Fails with the reason why it cannot be evaluated.
    fn contents(&self, variable: &Variable) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0u8; variable.bytes as usize];
        let width = (variable.element_bytes as usize).clamp(1, 8);
        for (chunk, item) in bytes.chunks_mut(variable.element_bytes.max(1) as usize).zip(&variable.init) {
            let source = self.initial_value(item)?.to_le_bytes();
            let count = width.min(chunk.len());
            chunk[..count].copy_from_slice(&source[..count]);
        }
        Ok(bytes)
    }

    fn initial_value(&self, item: &Initial) -> Result<u64, String> {
        match item {
            Initial::Bits(bits) => Ok(*bits),
            Initial::Address { symbol, offset, generic } => {
                // Functions, shared and external variables have none.
                let Some((space, address)) = self.addresses.get(symbol) else {
                    return Err(format!("the initialiser refers to `{symbol}`, which has no address here"));
                };
                let window = if *generic { map::window(*space) } else { 0 };
                Ok(address.wrapping_add(window).wrapping_add(*offset as u64))
            }
        }
    }
}
