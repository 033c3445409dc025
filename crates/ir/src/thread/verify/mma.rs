//! Checks of matrix products by a warp.

use tilewright_layout::DType;
use tilewright_layout::axis::Scope;

use super::checker::Checker;
use crate::target::Target;
use crate::thread::program::Mma;
use crate::thread::registers::Regs;
use crate::thread::tensor::{COLUMN_BYTES, MOST_MOVED, TensorMma, TensorMove};
use crate::thread::wgmma::{LeftMatrix, SharedMatrix, WarpgroupMma};

/// Bytes that addresses in descriptors count (PTX ISA, "Matrix Descriptor Format").
const DESCRIPTOR_UNIT: i64 = 16;

impl Checker<'_> {
    /// The operands of a product are as many adjacent registers as a lane holds, starting at a 32-bit boundary; and the
    /// warp executes it together.
    pub(super) fn mma(&mut self, product: &Mma) {
        let Mma { inst, sums, a, b } = product;
        let (info, program) = (inst.info(), self.program);
        let dtypes = [info.sum, info.multiplicand, info.multiplicand];
        let mut fits = true;
        for ((regs, dtype), held) in [sums, a, b].into_iter().zip(dtypes).zip(info.elements_per_lane()) {
            let array = &program.registers[regs.array];
            let in_word = (4 / dtype.bytes()).max(1);
            let is_whole = regs.count == held && regs.step == 1 && regs.first.multiple() % in_word == 0;
            fits &= array.dtype == dtype && array.vector == 1 && is_whole;
        }
        if !fits {
            self.report("V0317", format!("`{}` has operands that it does not accept", info.name));
        }
        self.executes(info.name, info.targets, Scope::Warp);
    }

    /// The operands of a product of a warpgroup are adjacent registers, and tiles in shared memory that begin where a descriptor
    /// can say; and the warpgroup executes it together.
    pub(super) fn warpgroup_mma(&mut self, product: &WarpgroupMma) {
        let WarpgroupMma { inst, n, sums, a, .. } = product;
        let (info, program) = (inst.info(), self.program);
        let is_whole = |regs: &Regs, dtype: DType, held: i64| {
            let (array, in_word) = (&program.registers[regs.array], (4 / dtype.bytes()).max(1));
            let is_run = regs.count == held && regs.step == 1 && regs.first.multiple() % in_word == 0;
            array.dtype == dtype && array.vector == 1 && is_run
        };
        let left = match a {
            LeftMatrix::Registers(regs) => is_whole(regs, info.multiplicand, info.k / 2),
            LeftMatrix::Shared(_) => true,
        };
        let describes = |part: &SharedMatrix| {
            let memory = &program.memories[part.memory];
            let unit = DESCRIPTOR_UNIT / memory.dtype.bytes();
            let begins = self.is_multiple(&part.first, unit) && self.is_multiple(&part.offset, unit);
            let is_right = memory.is_shared() && memory.dtype == info.multiplicand && begins;
            is_right && (!part.is_transposed || info.may_be_transposed())
        };
        let fits = info.has_columns(*n) && is_whole(sums, info.sum, n / 2) && left && product.shared().all(describes);
        if !fits {
            self.report("V0317", format!("`wgmma` of {} has operands that it does not accept", info.types));
        }
        self.executes("wgmma", info.targets(), Scope::Warpgroup);
    }

    /// One thread issues a product of tiles in shared memory that begin where a descriptor can say.
    pub(super) fn tensor_mma(&mut self, product: &TensorMma) {
        let describes = |part: &SharedMatrix| {
            let memory = &self.program.memories[part.memory];
            let unit = DESCRIPTOR_UNIT / memory.dtype.bytes();
            memory.is_shared() && self.is_multiple(&part.first, unit) && self.is_multiple(&part.offset, unit)
        };
        if !product.shared().all(describes) || self.program.tensor_memory.is_none() {
            self.report("V0317", "`tcgen05.mma` has operands that it does not accept".to_string());
        }
        if !self.is_elected {
            self.report("V0317", "more than one thread issues `tcgen05.mma`".to_string());
        }
        let allocated = self.program.tensor_memory.is_some_and(|tensor| tensor.is_of_pair);
        if product.is_of_pair != allocated {
            self.report(
                "V0317",
                "`tcgen05.mma` is one of a pair of CTAs, and its sums are not, or the other way round".to_string(),
            );
        }
        self.executes("tcgen05.mma", &[Target::Sm100a], Scope::Thread);
    }

    /// A warp moves up to as many columns as one statement may.
    pub(super) fn tensor_move(&mut self, moved: &TensorMove) {
        let Regs { array, count, step, .. } = moved.registers;
        let array = &self.program.registers[array];
        let bytes = array.dtype.bytes();
        let is_possible = bytes <= COLUMN_BYTES
            && count * bytes % COLUMN_BYTES == 0
            && (1..=MOST_MOVED).contains(&moved.columns(bytes));
        if array.vector != 1 || step != 1 || !is_possible {
            self.report("V0317", format!("`{}` has operands that it does not accept", moved.name()));
        }
        self.executes(moved.name(), &[Target::Sm100a], Scope::Warp);
    }
}

#[cfg(test)]
mod tests {
    use tilewright_expr::Expr;
    use tilewright_layout::DType;

    use crate::arena::{Arena, Handle};
    use crate::scalar::Scalar;
    use crate::target::Target;
    use crate::thread::mma::MmaInst;
    use crate::thread::program::{Cond, Mma, Program, Stmt};
    use crate::thread::registers::{RegArray, Regs};
    use crate::thread::verify::verify;

    struct Fixture {
        program: Program,
        c: Handle<RegArray>,
        a: Handle<RegArray>,
    }

    fn fixture() -> Fixture {
        let mut registers = Arena::new();
        let mut array =
            |name: &str, dtype| registers.push(RegArray { name: name.to_string(), dtype, len: 16, vector: 1 });
        let (c, a) = (array("c", DType::F32), array("a", DType::F16));
        let program = Program { registers, ..Program::new("k", Target::Sm100a, 64) };
        Fixture { program, c, a }
    }

    fn regs(array: Handle<RegArray>, first: i64, count: i64) -> Regs {
        Regs { array, first: Expr::constant(first), count, step: 1 }
    }

    /// The codes that the verifier reports for a product of registers that hold values.
    fn said(a: (i64, i64), cond: Option<&str>) -> Vec<&'static str> {
        let mut f = fixture();
        let product =
            Mma { inst: MmaInst::F16K16F32, sums: regs(f.c, 4, 4), a: regs(f.a, a.0, a.1), b: regs(f.a, 8, 4) }.into();
        let product = match cond {
            None => product,
            Some(name) => {
                let var = Expr::var(&tilewright_expr::Var::new(name, 0, if name == "warp" { 1 } else { 31 }));
                Stmt::If { cond: Cond::Less(var, Expr::constant(1)), body: vec![product] }
            }
        };
        let set = |array| Stmt::Set { to: regs(array, 0, 16), value: Scalar::Int(0) };
        f.program.body = vec![Stmt::Declare(f.c), Stmt::Declare(f.a), set(f.c), set(f.a), product];
        verify(f.program).err().unwrap_or_default().iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn whole_registers_of_a_whole_warp_pass() {
        assert!(said((0, 8), None).is_empty());
        assert!(said((2, 8), Some("warp")).is_empty());
    }

    #[test]
    fn other_operands_and_parts_of_a_warp_are_found() {
        assert_eq!(said((0, 4), None), ["V0317"]);
        assert_eq!(said((1, 8), None), ["V0317"]);
        assert_eq!(said((0, 8), Some("lane")), ["V0315"]);
    }
}
