//! Declarations of register arrays, with their first values where the next statements give them.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use tilewright_diag::Diagnostic;
use tilewright_ir::Handle;
use tilewright_ir::thread::{RegArray, Stmt, Value};
use tilewright_layout::DType;

use super::{Loads, MOST_COLUMNS, Printer};
use crate::dtype::{c_type, literal, vector_type};
use crate::registers::{declarator, is_single, vector_name};

/// An array of up to this many registers is declared with its first values.
const MOST_INITIALIZERS: usize = 4;

impl Printer<'_> {
    /// Prints the declarations at the beginning of a list, in a block with these loads, and returns the statements after
    /// them.
    pub(super) fn declarations<'b>(&mut self, body: &'b [Stmt], loads: &Loads) -> Result<&'b [Stmt], Diagnostic> {
        let (mut declared, mut rest) = (Vec::new(), body);
        while let [Stmt::Declare(array), after @ ..] = rest {
            rest = after;
            if self.is_filled_by(*array, loads) {
                self.defined_by_load.insert(*array);
            } else if let Some((values, count)) = self.first_values(*array, after)? {
                self.declare(&std::mem::take(&mut declared))?;
                let declared = &self.program.registers[*array];
                let c_type = aligned(self.alignment(*array), declared.dtype, c_type(declared.dtype));
                let list = values.join(", ");
                let value = if is_single(declared) { list } else { format!("{{{list}}}") };
                self.line(format_args!("{c_type} {} = {value};", declarator(declared)));
                rest = &after[count..];
            } else {
                declared.push(*array);
            }
        }
        self.declare(&declared)?;
        Ok(rest)
    }

    /// The first values of all registers of an array, if the next statements give them, and how many statements do.
    fn first_values(
        &mut self,
        array: Handle<RegArray>,
        after: &[Stmt],
    ) -> Result<Option<(Vec<String>, usize)>, Diagnostic> {
        let RegArray { dtype, len, vector, .. } = self.program.registers[array];
        // A list of integers must not narrow any of them.
        let is_list = matches!(dtype, DType::F32 | DType::F64) && (1..=MOST_INITIALIZERS).contains(&(len as usize));
        let is_possible = vector == 1 && (len == 1 || is_list);
        let is_silent = |stmt: &&Stmt| matches!(stmt, Stmt::Declare(other) if self.is_combined(*other));
        let silent = after.iter().take_while(is_silent).count();
        let values = after[silent..].get(..len as usize).filter(|_| is_possible && self.uses.has_array(array));
        let Some(values) = values else { return Ok(None) };
        if let [Stmt::Set { to, value }] = values
            && to.array == array
        {
            return Ok(Some((vec![literal(dtype, *value)], silent + 1)));
        }
        let mut texts = Vec::new();
        for (at, stmt) in values.iter().enumerate() {
            let Stmt::Assign { to, value } = stmt else { return Ok(None) };
            let mut is_read = false;
            value.for_each(&mut |part| is_read |= matches!(part, Value::Reg(of, _) if *of == array));
            if to.array != array || to.first.as_const() != Some(at as i64) || is_read {
                return Ok(None);
            }
            texts.push(self.values.assigned(array, value)?);
        }
        Ok(Some((texts, silent + values.len())))
    }

    /// Prints the declarations of arrays, those of one type together.
    pub(super) fn declare(&mut self, arrays: &[Handle<RegArray>]) -> Result<(), Diagnostic> {
        let is_printed = |array: &&Handle<RegArray>| self.uses.has_array(**array) && !self.is_combined(**array);
        let arrays: Vec<Handle<RegArray>> = arrays.iter().filter(is_printed).copied().collect();
        // The widest alignment is the one of all: it costs nothing in registers.
        let mut alignments: BTreeMap<DType, i64> = BTreeMap::new();
        for array in &arrays {
            let most = alignments.entry(self.program.registers[*array].dtype).or_default();
            *most = (*most).max(self.alignment(*array));
        }
        let mut declarations = Declarations::default();
        for array in arrays {
            let RegArray { name, dtype, len, vector } = &self.program.registers[array];
            let c_type = vector_type(*dtype, *vector)?;
            if *vector > 1 {
                let names: Vec<String> = (0..len / vector).map(|at| vector_name(name, *len / vector, at)).collect();
                declarations.add(c_type, names.join(", "));
            } else {
                declarations
                    .add(aligned(alignments[dtype], *dtype, &c_type), declarator(&self.program.registers[array]));
            }
        }
        for line in declarations.lines(MOST_COLUMNS - self.depth * 2) {
            self.line(format_args!("{line}"));
        }
        Ok(())
    }

    /// Bytes to which an array has to be aligned; 0 if no vector of it moves.
    fn alignment(&self, array: Handle<RegArray>) -> i64 {
        self.uses.of_array(array).widest
    }
}

/// `alignas(8) float`
fn aligned(alignment: i64, dtype: DType, c_type: &str) -> String {
    if alignment > dtype.bytes() { format!("alignas({alignment}) {c_type}") } else { c_type.to_string() }
}

/// Declarations, by the types in front of them.
#[derive(Default)]
pub(crate) struct Declarations(IndexMap<String, Vec<String>>);

impl Declarations {
    pub(crate) fn add(&mut self, head: String, declarator: String) {
        self.0.entry(head).or_default().push(declarator);
    }

    /// A line for each type, or several if it would be longer than so many columns.
    pub(crate) fn lines(&self, columns: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for (head, declarators) in &self.0 {
            let mut line = head.clone();
            for (at, declarator) in declarators.iter().enumerate() {
                if at > 0 && line.len() + declarator.len() + 3 > columns {
                    lines.push(format!("{line};"));
                    line = format!("{head} {declarator}");
                } else {
                    let comma = if at > 0 { "," } else { "" };
                    line.push_str(&format!("{comma} {declarator}"));
                }
            }
            lines.push(format!("{line};"));
        }
        lines
    }
}
