//! PTX as written: directives, scopes and instructions, not yet resolved.

use std::collections::BTreeMap;

use crate::isa::{DType, Space};

/// One PTX file.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) target: String,
    pub(crate) files: BTreeMap<u32, String>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) functions: Vec<Function>,
}

/// A variable or parameter with a place in memory.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) space: Space,
    pub(crate) is_register: bool,
    pub(crate) is_extern: bool,
    pub(crate) align: u32,
    pub(crate) bytes: u32,
    pub(crate) element_bytes: u32,
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
    pub(crate) body: Option<Vec<Statement>>,
    pub(crate) max_threads: Option<[u32; 3]>,
    pub(crate) required_threads: Option<[u32; 3]>,
    /// The line of `.reqnctapercluster` and its CTAs in each dimension.
    pub(crate) required_cluster: Option<(u32, [u32; 3])>,
}

/// A line of a body.
#[derive(Debug)]
pub(crate) enum Statement {
    Registers { dtype: DType, names: Vec<String> },
    Variable(Variable),
    Label(String),
    Targets { label: String, targets: Vec<String> },
    Block(Vec<Statement>),
    Instruction(Box<Instruction>),
}

/// A `.loc`: file number and line, and the same for the place the code was inlined at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loc {
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) inlined_at: Option<(u32, u32)>,
}

/// An instruction: `@p opcode.modifiers operands;`.
#[derive(Debug)]
pub(crate) struct Instruction {
    pub(crate) line: u32,
    pub(crate) loc: Option<Loc>,
    pub(crate) guard: Option<(String, bool)>,
    pub(crate) opcode: String,
    pub(crate) operands: Vec<Operand>,
    pub(crate) text: String,
}

/// A literal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// Two's complement bits; a float operand may also be written so.
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
