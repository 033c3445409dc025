//! The table of instructions. Each has one row: its forms, its section in the PTX ISA, and the function that decodes it.
//! Dispatch, the coverage table of the documentation and the tests of the forms all read this table.

mod arithmetic;
mod bulk;
mod control;
mod copies;
mod floating;
mod forms;
mod mbarrier;
mod memory;
mod registers;
mod tensor;
mod warp;
mod warpgroup;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::mods::Mods;
use crate::decode::table::forms::expanded;
use crate::op::Op;
use crate::ptx::ast::Operand;

/// What kind of work an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Arithmetic on registers, and bit operations.
    Arithmetic,
    /// Comparisons, selections, moves and conversions.
    Register,
    /// Loads, stores, atomic operations and addresses.
    Memory,
    /// Copies that a thread starts and waits for later.
    Copies,
    /// Branches, calls and the end of a thread.
    Control,
    /// What the lanes of a warp do together.
    Warp,
    /// Barriers, fences and what concerns the whole grid.
    Synchronization,
    /// Products of matrices, and the moves of their operands.
    Matrix,
    /// Tensor memory.
    Tensor,
}

impl Unit {
    /// The name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Unit::Arithmetic => "arithmetic",
            Unit::Register => "registers",
            Unit::Memory => "memory",
            Unit::Copies => "asynchronous copies",
            Unit::Control => "control flow",
            Unit::Warp => "warp",
            Unit::Synchronization => "synchronization",
            Unit::Matrix => "matrices",
            Unit::Tensor => "tensor memory",
        }
    }
}

/// Decodes the operands of an instruction, whose remaining modifiers are in the second argument.
type Decode = fn(&mut Decoder<'_>, &mut Mods<'_>, &[Operand]) -> Decoded<Vec<Op>>;

/// An instruction.
pub(crate) struct Row {
    /// The opcode up to the modifiers that do not select another instruction.
    pub(crate) name: &'static str,
    /// Its sections in the PTX ISA.
    pub(crate) sections: &'static str,
    pub(crate) unit: Unit,
    /// The forms that are supported: `.{a,b}` stands for one of these modifiers, `{.a,.b}` for one of them or none.
    pub(crate) forms: &'static [&'static str],
    pub(crate) decode: Decode,
}

const fn row(
    name: &'static str,
    sections: &'static str,
    unit: Unit,
    forms: &'static [&'static str],
    decode: Decode,
) -> Row {
    Row { name, sections, unit, forms, decode }
}

/// The result of an instruction that is decoded to one operation.
fn one(op: Decoded<Op>) -> Decoded<Vec<Op>> {
    Ok(vec![op?])
}

/// An instruction that does not affect results.
fn no_effect(mods: &mut Mods<'_>) -> Decoded<Vec<Op>> {
    mods.drop_all(|_| true);
    Ok(vec![Op::Nop])
}

/// All rows, by unit.
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    let parts = [
        arithmetic::ROWS,
        floating::ROWS,
        registers::ROWS,
        memory::ROWS,
        copies::ROWS,
        bulk::ROWS,
        mbarrier::ROWS,
        control::ROWS,
        warp::ROWS,
        warpgroup::ROWS,
        tensor::ROWS,
    ];
    parts.into_iter().flatten()
}

static BY_NAME: LazyLock<BTreeMap<&'static str, &'static Row>> =
    LazyLock::new(|| rows().map(|row| (row.name, row)).collect());

/// The row with the longest name that `opcode` begins with, and the modifiers after that name.
pub(crate) fn find(opcode: &str) -> Option<(&'static Row, Mods<'_>)> {
    let ends = opcode.match_indices('.').map(|(at, _)| at).chain([opcode.len()]);
    let found = ends.take(MOST_WORDS).filter_map(|end| Some((*BY_NAME.get(&opcode[..end])?, end))).last();
    found.map(|(row, end)| (row, Mods::new(row.name, &opcode[end..])))
}

/// The most words in a name.
const MOST_WORDS: usize = 5;

/// What this crate knows of an instruction, for documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The opcode.
    pub name: &'static str,
    /// The sections of the PTX ISA that define it.
    pub sections: &'static str,
    /// What kind of work it does.
    pub unit: Unit,
    /// The supported forms: `.{a,b}` stands for one of these modifiers, `{.a,.b}` for one of them or none.
    pub forms: &'static [&'static str],
}

impl Instruction {
    /// The texts that the forms stand for, with each combination of their modifiers.
    pub fn texts(&self) -> Vec<String> {
        self.forms.iter().flat_map(|form| expanded(form)).collect()
    }
}

/// The instructions that are supported, by unit and in the order of the PTX ISA.
pub fn instructions() -> Vec<Instruction> {
    let instruction =
        |row: &Row| Instruction { name: row.name, sections: row.sections, unit: row.unit, forms: row.forms };
    let mut all: Vec<Instruction> = rows().map(instruction).collect();
    all.sort_by_key(|row| row.unit);
    all
}

#[cfg(test)]
mod tests;
