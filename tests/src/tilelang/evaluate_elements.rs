//! Evaluates statements on elements, and their values and indices.

use super::arithmetic::{Number, Trust, apply};
use super::contents::Piece;
use super::evaluate::{Known, Machine};
use super::expr::{Index, Load, Value, ValueOp};
use super::numbers::{Dtype, Plain};
use super::program::{Element, Store};
use super::walk::Env;

impl<'a> Machine<'a> {
    pub(crate) fn elements(&mut self, body: &'a [Element], env: &mut Env<'a>) -> Result<(), String> {
        let depth = env.depth();
        for element in body {
            self.element(element, env)?;
        }
        env.back_to(depth);
        Ok(())
    }

    fn element(&mut self, element: &'a Element, env: &mut Env<'a>) -> Result<(), String> {
        match element {
            Element::Store(store) => {
                let value = self.value(&store.value, env)?;
                let (to, place) = self.target(store, env)?;
                self.put(to, place, &Piece::of(value, to.dtype))
            }
            Element::AtomicAdd(store) if self.is_loose => {
                Err(format!("an atomic addition to `{}` by every thread", store.buffer))
            }
            Element::AtomicAdd(store) => {
                let value = self.value(&store.value, env)?;
                let (to, place) = self.target(store, env)?;
                self.add_to(to, place, value)
            }
            Element::Let { name, value } => {
                let value = self.index(value, env)?;
                env.bind(name, Some(value));
                Ok(())
            }
            Element::If { cond, then, otherwise } => {
                let branch = if self.holds(cond, env)? { then } else { otherwise };
                self.elements(branch, env)
            }
            Element::For { var, extent, body, .. } => {
                let depth = env.depth();
                for round in 0..*extent {
                    env.bind(var, Some(round));
                    self.elements(body, env)?;
                    env.back_to(depth);
                }
                Ok(())
            }
        }
    }

    /// Adds to an element, unless it is out of bounds of a tensor.
    pub(crate) fn add_to(&mut self, to: Known<'_>, place: Option<usize>, value: Number) -> Result<(), String> {
        let sum = apply(ValueOp::Add, &[self.number(to, place)?, value.rounded(to.dtype)])?;
        self.put(to, place, &Piece::of(sum, to.dtype))
    }

    /// Whether a condition holds. It is an error if its operands are not known precisely enough.
    pub(crate) fn holds(&self, cond: &Value, env: &Env<'a>) -> Result<bool, String> {
        let found = self.value(cond, env)?;
        if found.trust == Trust::Exact {
            Ok(found.plain.holds())
        } else {
            Err(format!("undecidable condition: {cond:?}"))
        }
    }

    pub(crate) fn index(&self, index: &Index, env: &Env<'a>) -> Result<i64, String> {
        match index {
            Index::Integer(value) => Ok(*value),
            Index::Variable(name) => env.get(name).ok_or_else(|| format!("unknown variable `{name}`")),
            Index::Binary(op, left, right) => {
                let (left, right) = (self.index(left, env)?, self.index(right, env)?);
                op.apply(left, right).ok_or_else(|| format!("{op:?} of {left} and {right} is undefined"))
            }
            Index::Load(load) => match self.load(load, env)? {
                Number { plain: Plain::Whole(value), trust: Trust::Exact, .. } => Ok(value),
                _ => Err(format!("an index from `{}` is not a known integer", load.buffer)),
            },
        }
    }

    fn target(&self, store: &Store, env: &Env<'a>) -> Result<(Known<'a>, Option<usize>), String> {
        self.access(&store.buffer, &store.index, env)
    }

    fn access(&self, buffer: &str, index: &[Index], env: &Env<'a>) -> Result<(Known<'a>, Option<usize>), String> {
        let known = self.find(buffer)?;
        let index = index.iter().map(|index| self.index(index, env)).collect::<Result<Vec<i64>, String>>()?;
        Ok((known, known.place(&index)?))
    }

    fn load(&self, load: &Load, env: &Env<'a>) -> Result<Number, String> {
        let (from, place) = self.access(&load.buffer, &load.index, env)?;
        self.number(from, place)
    }

    fn value(&self, value: &Value, env: &Env<'a>) -> Result<Number, String> {
        match value {
            Value::Const(value) => Ok(Number::constant(*value)),
            Value::Variable(name) => env.get(name).map(Number::whole).ok_or_else(|| format!("no variable `{name}`")),
            Value::Load(load) => self.load(load, env),
            Value::Op(op, arguments) => {
                let arguments = arguments.iter().map(|argument| self.value(argument, env));
                apply(*op, &arguments.collect::<Result<Vec<Number>, String>>()?)
            }
            Value::Cast(dtype, argument) => Ok(self.value(argument, env)?.rounded(Dtype::named(dtype)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::evaluate::samples::{buffer, left_in, program, values};
    use super::super::program::{Op, Parallel, Scope};
    use super::*;

    fn i() -> Index {
        Index::Variable("i".to_string())
    }

    fn load(name: &str, index: Index) -> Load {
        Load { buffer: name.to_string(), index: vec![index] }
    }

    fn over_i(extent: i64, body: Vec<Element>) -> Op {
        let vars = vec!["i".to_string()];
        Op::Parallel(Parallel { vars, extents: vec![extent], body, loop_layout: None, coalesced_width: None })
    }

    fn store(name: &str, index: Index, value: Value) -> Store {
        Store { buffer: name.to_string(), index: vec![index], value }
    }

    #[test]
    fn data_may_be_an_index() {
        let global = |name, dtype| buffer(name, Scope::Global, dtype, &[3]);
        let params = vec![global("I", "int32"), global("A", "float32"), global("B", "float32")];
        // I counts from 1, so its last element is out of bounds of B.
        let to_next = store("B", Index::Load(load("I", i())), Value::Load(load("A", i())));
        let left = left_in(&program(params, Vec::new(), vec![over_i(3, vec![Element::Store(to_next)])]), "B");
        assert_eq!(values(&left), [1.0, 1.0, 2.0]);
    }

    #[test]
    fn additions_to_one_element_add_up() {
        let params = vec![buffer("A", Scope::Global, "int32", &[4]), buffer("S", Scope::Global, "int32", &[1])];
        let add = store("S", Index::Integer(0), Value::Load(load("A", i())));
        let left = left_in(&program(params, Vec::new(), vec![over_i(4, vec![Element::AtomicAdd(add)])]), "S");
        assert_eq!(values(&left), [11.0]);
    }
}
