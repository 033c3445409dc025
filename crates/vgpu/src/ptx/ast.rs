//! PTX as written: directives, scopes and instructions, not yet resolved.

use std::collections::BTreeMap;

use crate::isa::{DType, Space};

/// One PTX file.
#[derive(Debug, Default)]
pub(crate) struct File {
    /// First word of `.target`, such as `sm_90a`.
    pub(crate) target: String,
    /// Names given by `.file`, by number.
    pub(crate) files: BTreeMap<u32, String>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) functions: Vec<Function>,
}

/// A declared variable or parameter.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    /// 1-based line of the name.
    pub(crate) line: u32,
    pub(crate) name: String,
    pub(crate) space: Space,
    /// Whether it is a `.reg` parameter of a function.
    pub(crate) is_register: bool,
    pub(crate) is_extern: bool,
    /// Alignment in bytes.
    pub(crate) align: u32,
    /// Size in bytes; 0 for an array of unspecified length.
    pub(crate) bytes: u32,
    /// Size of one scalar element in bytes.
    pub(crate) element_bytes: u32,
    /// Values of the initialiser; there may be fewer than elements.
    pub(crate) init: Vec<Initial>,
}

/// One element of an initialiser.
#[derive(Clone, Debug)]
pub(crate) enum Initial {
    Bits(u64),
    Address { symbol: String, offset: i64, generic: bool },
}

/// A kernel (`.entry`) or a device function (`.func`).
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) is_kernel: bool,
    pub(crate) params: Vec<Variable>,
    pub(crate) returns: Vec<Variable>,
    /// `None` for a declaration.
    pub(crate) body: Option<Vec<Statement>>,
    /// `.maxntid`.
    pub(crate) max_threads: Option<[u32; 3]>,
    /// `.reqntid`.
    pub(crate) required_threads: Option<[u32; 3]>,
    /// `.maxnreg`: registers of a thread.
    pub(crate) max_registers: Option<u32>,
    /// `.reqnctapercluster`: CTAs of a cluster in each dimension.
    pub(crate) required_cluster: Option<[u32; 3]>,
    /// Line and name of each directive that may change what the function computes, and that is not executed here.
    pub(crate) unsupported_directives: Vec<(u32, String)>,
}

/// A statement of a function body.
#[derive(Debug)]
pub(crate) enum Statement {
    Registers { dtype: DType, names: Vec<String> },
    Variable(Variable),
    Label(String),
    Targets { label: String, targets: Vec<String> },
    Block(Vec<Statement>),
    Instruction(Box<Instruction>),
}

/// A `.loc`: file number and line, and those of the call if the code was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loc {
    pub(crate) file: u32,
    pub(crate) line: u32,
    /// File number and line of the inlined call.
    pub(crate) inlined_at: Option<(u32, u32)>,
}

/// An instruction: `@p opcode.modifiers operands;`.
#[derive(Debug)]
pub(crate) struct Instruction {
    pub(crate) line: u32,
    /// The `.loc` in effect, if there is one.
    pub(crate) loc: Option<Loc>,
    /// Name of the predicate, and whether it is negated.
    pub(crate) guard: Option<(String, bool)>,
    /// Opcode with all modifiers.
    pub(crate) opcode: String,
    pub(crate) operands: Vec<Operand>,
    /// The source text, with white space normalized.
    pub(crate) text: String,
}

/// A literal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// Two's complement bits; a float operand may also be an integer literal.
    Integer(u64),
    /// `0f` literal.
    Single(u32),
    /// `0d` or decimal literal.
    Double(f64),
}

/// An operand as written.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Word(String),
    Number(Number),
    Sum(String, i64),
    Not(Box<Operand>),
    Pair(Box<Operand>, Box<Operand>),
    Vector(Vec<Operand>),
    List(Vec<Operand>),
    Address { base: Option<String>, offset: i64, extra: Vec<Operand> },
}
