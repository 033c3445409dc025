//! The state of decoding one kernel.

use std::collections::{BTreeMap, BTreeSet};

use crate::decode::symbol::Symbol;
use crate::layout::Layout;
use crate::op::Reg;
use crate::program::{Preset, Program};
use crate::ptx::ast::File;

/// A result, or the reason why an instruction is not supported.
pub(super) type Decoded<T> = Result<T, String>;

/// The entry label of a called function and the storage of its parameters.
#[derive(Clone)]
pub(super) struct Frame {
    /// Label of the function's first instruction.
    pub(super) label: u32,
    /// Offset in local memory and size of each parameter, in bytes.
    pub(super) params: Vec<(u32, u32)>,
    /// Offset in local memory and size of each return value, in bytes.
    pub(super) returns: Vec<(u32, u32)>,
}

pub(super) struct Decoder<'a> {
    pub(super) file: &'a File,
    /// Addresses of the module's global and constant variables.
    pub(super) layout: &'a Layout,
    pub(super) program: Program,
    /// The module's shared variables that are in use.
    pub(super) module_scope: BTreeMap<String, Symbol>,
    /// Symbols of the open scopes, the innermost last.
    pub(super) scopes: Vec<BTreeMap<String, Symbol>>,
    /// Program counter of each label, once it is placed.
    pub(super) labels: Vec<Option<u32>>,
    /// Register of each preset value in use.
    pub(super) presets: BTreeMap<Preset, Reg>,
    /// Storage of the called functions, by index in `file.functions`.
    pub(super) frames: BTreeMap<usize, Frame>,
    /// Called functions that are not decoded yet, by index.
    pub(super) queue: Vec<usize>,
    /// Caller (`None` for the kernel), callee and PTX line of each call.
    pub(super) calls: Vec<(Option<usize>, usize, u32)>,
    /// Index of the function being decoded; `None` for the kernel.
    pub(super) current: Option<usize>,
    /// PTX line of the instruction being decoded.
    pub(super) line: u32,
    /// Opcodes of which it is known that they are forms of the table.
    pub(super) known_forms: BTreeSet<String>,
    /// Lines whose instructions are traced.
    pub(super) traced: &'a BTreeSet<u32>,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(file: &'a File, layout: &'a Layout, traced: &'a BTreeSet<u32>) -> Decoder<'a> {
        let program = Program { files: file.files.clone(), ..Program::default() };
        Decoder {
            file,
            layout,
            program,
            module_scope: BTreeMap::new(),
            scopes: Vec::new(),
            labels: Vec::new(),
            presets: BTreeMap::new(),
            frames: BTreeMap::new(),
            queue: Vec::new(),
            calls: Vec::new(),
            current: None,
            line: 0,
            known_forms: BTreeSet::new(),
            traced,
        }
    }
}
