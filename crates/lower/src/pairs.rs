//! Joins assignments to adjacent registers whose values one instruction computes: sums and products of two floats,
//! where the target has them, of two halves, and roundings of two floats to narrower ones.

use std::collections::BTreeSet;

use tilewright_ir::thread::{Packed, RegArray, Regs, Stmt, Value, are_rounded, halves, is_pair, widest_accesses};
use tilewright_ir::tile::{ElementOp, Function};
use tilewright_ir::{Handle, Scalar};
use tilewright_layout::DType;

use crate::builder::{Builder, regs};

/// The statements with neighbouring assignments joined where that takes no more instructions.
pub(crate) fn paired(builder: &mut Builder, body: Vec<Stmt>) -> Vec<Stmt> {
    let widest = widest_accesses(&builder.program.registers, &builder.program.memories, &body);
    let words = widest.into_iter().filter(|(_, bytes)| *bytes >= 4).map(|(array, _)| array).collect();
    Pairing { builder, words }.body(body)
}

struct Pairing<'a> {
    builder: &'a mut Builder,
    /// Arrays that also move as whole words.
    words: BTreeSet<Handle<RegArray>>,
}

impl Pairing<'_> {
    fn body(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(body.len());
        let mut rest = self.with_neighbours(body).into_iter().peekable();
        while let Some(stmt) = rest.next() {
            match rest.peek().and_then(|next| self.joined(&stmt, next)) {
                Some(joined) => {
                    rest.next();
                    out.extend(joined);
                }
                None => out.push(stmt.map_inner(|body| self.body(body))),
            }
        }
        out
    }

    /// The statements, with assignments to parts of words that follow each other in the order of their registers.
    fn with_neighbours(&self, body: Vec<Stmt>) -> Vec<Stmt> {
        let mut body = body;
        for run in body.chunk_by_mut(|stmt, next| {
            self.array_of_parts(stmt).is_some_and(|array| self.array_of_parts(next) == Some(array))
        }) {
            let Some(array) = self.array_of_parts(&run[0]) else { continue };
            // The values do not depend on the order.
            if !run.iter().flat_map(Stmt::values).any(|value| reads_array(value, array)) {
                run.sort_by_key(first_register);
            }
        }
        body
    }

    /// The array of narrow floats that a statement assigns to, if it also moves as whole words.
    fn array_of_parts(&self, stmt: &Stmt) -> Option<Handle<RegArray>> {
        let Stmt::Assign { to, .. } = stmt else { return None };
        let RegArray { dtype, vector, .. } = self.builder.program.registers[to.array];
        let are_parts = dtype.is_narrow_float() && vector == 1;
        let is_known = to.first.as_const().is_some();
        (are_parts && is_known && self.words.contains(&to.array)).then_some(to.array)
    }

    /// The statements instead of two neighbouring ones; `None` if they stay as they are.
    fn joined(&mut self, stmt: &Stmt, next: &Stmt) -> Option<Vec<Stmt>> {
        let (Stmt::Assign { to, value: low }, Stmt::Assign { to: other, value: high }) = (stmt, next) else {
            return None;
        };
        let is_one = to.array == other.array && self.builder.program.registers[to.array].vector == 1;
        if !is_one || !is_pair(&to.first, &other.first) || reads(high, to) {
            return None;
        }
        match self.builder.program.registers[to.array].dtype {
            DType::F32 => self.joined_floats([to, other], [low, high]),
            dtype if dtype.is_narrow_float() => self.joined_parts(to, [low, high]),
            _ => None,
        }
    }

    fn joined_floats(&mut self, to: [&Regs; 2], values: [&Value; 2]) -> Option<Vec<Stmt>> {
        if !self.builder.program.target.has_pairs_of_f32() {
            return None;
        }
        let packed = Packed::of(&self.builder.program.registers, values);
        if packed.operations() > 0 && packed.operations() >= packed.joined() {
            return Some(vec![pair(to[0], values.map(Value::clone))]);
        }
        let mut out = Vec::new();
        let [low, high] = self.with_pairs(values, &mut out);
        if out.is_empty() {
            return None;
        }
        out.push(pair(to[0], [low, high]));
        Some(out)
    }

    fn joined_parts(&mut self, to: &Regs, values: [&Value; 2]) -> Option<Vec<Stmt>> {
        if Packed::of(&self.builder.program.registers, values).operations() > 0 {
            return Some(vec![pair(to, values.map(Value::clone))]);
        }
        if !self.words.contains(&to.array) || !are_rounded(&self.builder.program.registers, values) {
            return None;
        }
        let Some(floats) = halves(&self.builder.program.registers, values) else {
            return Some(vec![pair(to, values.map(Value::clone))]);
        };
        let mut out = Vec::new();
        let mut both = values.map(Value::clone);
        if self.builder.program.target.has_pairs_of_f32() {
            let floats = self.with_pairs(floats, &mut out);
            for (value, float) in both.iter_mut().zip(floats) {
                if let Value::Cast(_, _, of) = value {
                    **of = float;
                }
            }
        }
        out.push(pair(to, both));
        Some(out)
    }

    /// The exponentials of two floats, as `__expf` computes them: with the products as a pair.
    fn exponentials(&mut self, of: [&Value; 2], out: &mut Vec<Stmt>) -> [Value; 2] {
        let factor = Value::Const(DType::F32, Scalar::Float(LOG2_E));
        let products = of.map(|of| Value::Op(ElementOp::Mul, vec![of.clone(), factor.clone()]));
        let packed = Packed::of(&self.builder.program.registers, products.each_ref());
        if packed.operations() > packed.joined() {
            let powers = self.with_pairs(products.each_ref(), out);
            return powers.map(|power| Value::Op(ElementOp::Function(Function::Exp2), vec![power]));
        }
        self.with_pairs(of, out).map(|of| Value::Op(ElementOp::Function(Function::FastExp), vec![of]))
    }

    /// Two values of the same form, with the parts that are sums and products computed as pairs by statements that are
    /// added to `out`.
    fn with_pairs(&mut self, values: [&Value; 2], out: &mut Vec<Stmt>) -> [Value; 2] {
        let unchanged = values.map(Value::clone);
        if values[0] == values[1] || values[0].dtype(&self.builder.program.registers) != Some(DType::F32) {
            return unchanged;
        }
        let packed = Packed::of(&self.builder.program.registers, values);
        // Taking a pair apart is one more instruction.
        if packed.operations() > packed.joined() {
            let array = self.builder.registers("both", DType::F32, 2, 2, out);
            out.push(pair(&regs(array, 0, 2), unchanged));
            return [0, 1].map(|at| Value::reg(array, at));
        }
        let (Value::Op(op, operands), Value::Op(other, others)) = (values[0], values[1]) else { return unchanged };
        if op != other || operands.len() != others.len() {
            return unchanged;
        }
        if let (ElementOp::Function(Function::FastExp), [low], [high]) = (op, &operands[..], &others[..]) {
            return self.exponentials([low, high], out);
        }
        let pairs = operands.iter().zip(others).map(|(low, high)| self.with_pairs([low, high], out));
        let (lows, highs) = pairs.map(|[low, high]| (low, high)).unzip();
        [Value::Op(*op, lows), Value::Op(*op, highs)]
    }
}

/// The number that `__expf` multiplies its argument by, log2(e), before it raises 2 to the product.
const LOG2_E: f64 = std::f64::consts::LOG2_E;

fn pair(to: &Regs, values: [Value; 2]) -> Stmt {
    Stmt::AssignPair { to: Regs { count: 2, ..to.clone() }, values }
}

fn first_register(stmt: &Stmt) -> Option<i64> {
    let Stmt::Assign { to, .. } = stmt else { return None };
    to.first.as_const()
}

fn reads_array(value: &Value, array: Handle<RegArray>) -> bool {
    let mut found = false;
    value.for_each(&mut |part| found |= matches!(part, Value::Reg(read, _) if *read == array));
    found
}

fn reads(value: &Value, register: &Regs) -> bool {
    let mut found = false;
    value.for_each(&mut |part| {
        found |= matches!(part, Value::Reg(array, at) if *array == register.array && *at == register.first);
    });
    found
}
