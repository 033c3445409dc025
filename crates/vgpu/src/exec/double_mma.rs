//! `mma.sync` of m8n8k4 in f64 (PTX ISA, section "Matrix Fragments for mma.m8n8k4 with .f64 floating point type").
//!
//! The ISA does not specify the order of summation. Here a sum starts with the element of C and adds one product after
//! another, in the order of k; each step is a fused multiply-add, rounded to nearest, ties to even.

use crate::lanes::Lanes;
use crate::op::DoubleMma;

/// Rows of B, and columns of A.
const DEPTH: usize = 4;

/// Executes the product in all lanes: lane `l` holds element `(l / 4, l % 4)` of A, `(l % 4, l / 4)` of B, and two
/// adjacent elements in row `l / 4` of C and D.
pub(crate) fn execute(regs: &mut [Lanes], op: &DoubleMma) {
    let (a, b) = (regs[op.a as usize], regs[op.b as usize]);
    let sums: [Lanes; 2] = [0usize, 1].map(|at| {
        let c = regs[op.c[at] as usize];
        let sum = |lane: usize| {
            let (row, column) = (lane / 4, lane % 4 * 2 + at);
            let pairs = (0..DEPTH).map(|k| (a[row * DEPTH + k], b[column * DEPTH + k]));
            pairs.fold(f64::from_bits(c[lane]), |sum, (a, b)| f64::from_bits(a).mul_add(f64::from_bits(b), sum))
        };
        std::array::from_fn(|lane| sum(lane).to_bits())
    });
    for (reg, sums) in op.d.iter().zip(sums) {
        regs[*reg as usize] = sums;
    }
}
