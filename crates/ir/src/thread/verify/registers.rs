//! Checks of registers: they are declared, inside their array, and hold a value where they are read.

use tilewright_expr::Var;

use super::checker::{Checker, Iteration};
use crate::thread::registers::{RegArray, Regs};

impl Checker<'_> {
    /// The elements `regs` stands for, if its index is a constant inside a declared array.
    fn elements(&mut self, regs: &Regs) -> Option<(usize, Vec<usize>)> {
        let name = self.program.registers[regs.array].name.clone();
        let Some(position) = self.arrays.iter().rposition(|(array, _)| *array == regs.array) else {
            self.report("V0310", format!("the register array `{name}` is used before it is declared"));
            return None;
        };
        let is_constant = |known: &&Iteration, var: &Var| known.is_constant && known.var == *var;
        let value = |var: &Var| self.iterations.iter().find(|known| is_constant(known, var)).map(|known| known.value);
        let Ok(first) = regs.first.eval(&value) else {
            self.report("V0311", format!("`{name}[{}]`: a register index must be a constant", regs.first));
            return None;
        };
        let len = self.arrays[position].1.len() as i64;
        let last = first.saturating_add(regs.step.saturating_mul(regs.count - 1));
        if first < 0 || regs.count < 1 || regs.step < 1 || last >= len {
            self.report("V0312", format!("`{name}[{first}]` of width {} is outside an array of {len}", regs.count));
            return None;
        }
        Some((position, (first..=last).step_by(regs.step as usize).map(|at| at as usize).collect()))
    }

    /// True for exactly one vector of an array of vectors, and for adjacent elements of other arrays.
    fn is_whole(&self, regs: &Regs) -> bool {
        let vector = self.program.registers[regs.array].vector;
        regs.step == 1 && (vector == 1 || (regs.count == vector && regs.first.multiple() % vector == 0))
    }

    pub(super) fn write(&mut self, regs: &Regs) {
        let Some((array, elements)) = self.elements(regs) else { return };
        if !self.is_whole(regs) {
            self.report_parts(regs);
        }
        for element in elements {
            self.arrays[array].1[element] = true;
        }
    }

    pub(super) fn read(&mut self, regs: &Regs) {
        let Some((array, elements)) = self.elements(regs) else { return };
        let RegArray { name, dtype, vector, .. } = &self.program.registers[regs.array];
        // CUDA cannot access parts of a vector of narrower elements.
        if !self.is_whole(regs) && *vector > 1 && dtype.bytes() < 4 {
            return self.report_parts(regs);
        }
        if !elements.iter().all(|element| self.arrays[array].1[*element]) {
            let message = format!("`{name}[{}]` is read before it holds a value", regs.first);
            self.report("V0313", message);
        }
    }

    fn report_parts(&mut self, regs: &Regs) {
        let RegArray { name, vector, .. } = &self.program.registers[regs.array];
        let message = format!("`{name}[{}]` of width {} is not a whole vector of {vector}", regs.first, regs.count);
        self.report("V0316", message);
    }
}
