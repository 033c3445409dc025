//! Declarations of register arrays, with their first values where the next statements give them.

use tilewright_diag::Diagnostic;
use tilewright_ir::Handle;
use tilewright_ir::thread::{RegArray, Stmt, Value};
use tilewright_layout::DType;

use super::Printer;
use crate::dtype::vector_type;
use crate::registers::vector_name;

/// An array of up to this many registers is declared with its first values.
const MOST_INITIALIZERS: usize = 4;

impl Printer<'_> {
    /// The declaration of an array with its values, if the next statements give them; how many statements do.
    pub(super) fn initialized(&mut self, array: Handle<RegArray>, after: &[Stmt]) -> Result<usize, Diagnostic> {
        let RegArray { dtype, len, vector, .. } = self.program.registers[array];
        let is_possible = matches!(dtype, DType::F32 | DType::F64)
            && vector == 1
            && (1..=MOST_INITIALIZERS).contains(&(len as usize));
        let is_silent = |stmt: &&Stmt| matches!(stmt, Stmt::Declare(other) if self.is_combined(*other));
        let silent = after.iter().take_while(is_silent).count();
        let values = after[silent..].get(..len as usize).filter(|_| is_possible && self.mentioned.has_array(array));
        let Some(values) = values else { return Ok(0) };
        let mut texts = Vec::new();
        for (at, stmt) in values.iter().enumerate() {
            let Stmt::Assign { to, value } = stmt else { return Ok(0) };
            let mut is_read = false;
            value.for_each(&mut |part| is_read |= matches!(part, Value::Reg(of, _) if *of == array));
            if to.array != array || to.first.as_const() != Some(at as i64) || is_read {
                return Ok(0);
            }
            texts.push(self.values.assigned(array, value)?);
        }
        let declaration = self.declaration(array)?;
        self.line(format_args!("{declaration} = {{{}}};", texts.join(", ")));
        Ok(silent + values.len())
    }

    pub(super) fn declare(&mut self, array: Handle<RegArray>) -> Result<(), Diagnostic> {
        if !self.mentioned.has_array(array) || self.is_combined(array) {
            return Ok(());
        }
        let RegArray { name, dtype, len, vector } = &self.program.registers[array];
        let c_type = vector_type(*dtype, *vector)?;
        if *vector > 1 {
            let names: Vec<String> = (0..len / vector).map(|at| vector_name(name, *len / vector, at)).collect();
            self.line(format_args!("{c_type} {};", names.join(", ")));
            return Ok(());
        }
        let declaration = self.declaration(array)?;
        self.line(format_args!("{declaration};"));
        Ok(())
    }

    /// `alignas(8) float held[32]`
    fn declaration(&self, array: Handle<RegArray>) -> Result<String, Diagnostic> {
        let RegArray { name, dtype, len, vector } = &self.program.registers[array];
        let align = match self.widest.get(&array) {
            Some(bytes) if *bytes > dtype.bytes() => format!("alignas({bytes}) "),
            _ => String::new(),
        };
        Ok(format!("{align}{} {name}[{len}]", vector_type(*dtype, *vector)?))
    }
}
