//! Contraction: an assembler may fuse a `mul` and an `add` or `sub` of its result that have no rounding modifier into one `fma`,
//! which rounds once (PTX ISA, section 9.7.3: `add`, `sub`, `mul`).

use crate::op::{FloatFn, FloatMode, Op, Reg, ScalarOp};
use crate::program::Program;

/// An `add` or `sub` that may be fused with the `mul` before it.
#[derive(Clone, Debug)]
pub(crate) struct Contraction {
    /// The `add` or `sub`.
    pub(crate) pc: u32,
    /// The fused function.
    pub(crate) f: FloatFn,
    pub(crate) mode: FloatMode,
    pub(crate) d: Reg,
    pub(crate) s: [Reg; 3],
}

/// A product whose operands and result have not been written since.
struct Product<'a> {
    d: Reg,
    s: [Reg; 3],
    mode: FloatMode,
    /// The names of its registers.
    names: Vec<&'a str>,
}

/// All of a program. Both instructions are in one basic block, without a guard.
pub(crate) fn contractions(program: &Program) -> Vec<Contraction> {
    let leaders = leaders(program);
    let mut found = Vec::new();
    let mut products: Vec<Product<'_>> = Vec::new();
    for (pc, (inst, info)) in program.code.iter().zip(&program.info).enumerate() {
        if leaders[pc] {
            products.clear();
        }
        let plain = match &inst.op {
            Op::Scalar(ScalarOp::Float { f, mode, d, s }) if inst.guard.is_none() && !has_rounding(&info.opcode) => {
                Some((*f, *mode, *d, *s))
            }
            _ => None,
        };
        let contraction = plain.and_then(|(f, mode, d, s)| {
            let product = |reg: Reg| products.iter().find(|product| product.d == reg && is_alike(&product.mode, &mode));
            let (left, right) = (product(s[0]), product(s[1]));
            let (f, [a, b, c]) = match (f, left, right) {
                (FloatFn::Add, Some(product), _) => (FloatFn::Fma, [product.s[0], product.s[1], s[1]]),
                (FloatFn::Add, None, Some(product)) => (FloatFn::Fma, [product.s[0], product.s[1], s[0]]),
                (FloatFn::Sub, Some(product), _) => (FloatFn::FmaSub, [product.s[0], product.s[1], s[1]]),
                (FloatFn::Sub, None, Some(product)) => (FloatFn::FmaFrom, [product.s[0], product.s[1], s[0]]),
                _ => return None,
            };
            Some(Contraction { pc: pc as u32, f, mode, d, s: [a, b, c] })
        });
        found.extend(contraction);
        let written = first_operand(&info.text);
        products.retain(|product| !product.names.iter().any(|name| written.contains(name)));
        if let Some((FloatFn::Mul, mode, d, s)) = plain {
            // A product that overwrites its own operand cannot be computed again.
            if s[..2].iter().all(|source| *source != d) {
                products.push(Product { d, s, mode, names: names_of(&info.text) });
            }
        }
    }
    found
}

fn is_alike(a: &FloatMode, b: &FloatMode) -> bool {
    (a.element, a.packed, a.ftz) == (b.element, b.packed, b.ftz) && !a.sat
}

fn has_rounding(opcode: &str) -> bool {
    opcode.split('.').any(|part| matches!(part, "rn" | "rz" | "rm" | "rp"))
}

/// Which instructions begin a basic block.
fn leaders(program: &Program) -> Vec<bool> {
    let mut leaders = vec![false; program.code.len()];
    let end = program.code.len() as u32;
    for (pc, inst) in program.code.iter().enumerate() {
        let next = inst.op.successors(pc as u32, end);
        if next != [pc as u32 + 1] {
            let after = next.into_iter().chain([pc as u32 + 1]);
            after.filter(|pc| *pc < end).for_each(|pc| leaders[pc as usize] = true);
        }
    }
    leaders
}

/// The names in an instruction's text.
fn names_of(text: &str) -> Vec<&str> {
    let operands = text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest);
    names_in(operands)
}

/// The names in the first operand, which is what an instruction writes.
fn first_operand(text: &str) -> Vec<&str> {
    let operands = text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest);
    let end = match operands.strip_prefix('{') {
        Some(_) => operands.find('}'),
        None => operands.find(','),
    };
    names_in(&operands[..end.unwrap_or(operands.len())])
}

fn names_in(text: &str) -> Vec<&str> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '%' | '_' | '$');
    text.split(|letter: char| !is_part(letter)).filter(|name| !name.is_empty()).collect()
}
