//! Where the variables of a module and the parameters of a kernel are in memory.

use std::collections::BTreeMap;

use crate::fault::Unsupported;
use crate::isa::{Space, align_up};
use crate::memory::map;
use crate::ptx::ast::{File, Initial, Variable};

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

/// Lays out the parameters in order, each at its alignment (PTX ISA, section 5.1.6.1).
pub(crate) fn param_layout(params: &[Variable]) -> Vec<ParamInfo> {
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
    pub(crate) fn new(file: &File) -> Layout {
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
