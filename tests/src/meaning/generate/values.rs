//! Random indices, conditions and values.

use tilewright::ir::Scalar;
use tilewright::ir::tile;
use tilewright::prelude::*;

use super::maker::{DTYPES, Held, Maker};

impl Maker<'_> {
    /// An index into a buffer: the plain variables with a probability of `same` percent.
    pub(super) fn index(&mut self, of: Held, same: u64) -> Vec<Value> {
        let dimensions = if of.is_flat { 1 } else { 2 };
        let is_plain = self.rng.percent(same);
        let stage = (of.stages > 0).then(|| Value::from(self.stage(of)));
        let coordinates =
            (0..dimensions).map(|at| self.coordinate(of.extents[2 - dimensions + at], dimensions - 1 - at, is_plain));
        stage.into_iter().chain(coordinates).collect()
    }

    /// An index into a dimension of this extent, using the variable `back` places before the last.
    pub(super) fn coordinate(&mut self, extent: i64, back: usize, is_plain: bool) -> Value {
        let count = self.scope.vars.len();
        let (var, span) = match count.checked_sub(1 + back) {
            Some(at) if is_plain || self.rng.percent(70) => self.scope.vars[at],
            _ => *self.rng.pick(&self.scope.vars.clone()),
        };
        let range = var.range();
        let fits = range.lo >= 0 && range.hi < extent;
        if is_plain && fits {
            return Value::from(var);
        }
        let by = self.rng.within(0..=extent);
        let wrapped = |expr: Expr| expr % extent;
        Value::from(match self.rng.below(10) {
            0 => wrapped(var * -1 + (extent - 1)),
            1 => wrapped(var + by),
            2 => wrapped(var * 2),
            3 => wrapped(var / 2),
            4 => wrapped(var ^ by),
            5 => Expr::from(by % extent),
            6 => wrapped(var * by),
            7 => {
                let other = self.rng.pick(&self.scope.vars.clone()).0;
                wrapped(var + other)
            }
            // A register index from data is compiled to a comparison per register, so the extent must be small.
            8 if extent <= 8 => {
                let at = self.indices.buffer.at((var % 64,));
                // The absolute value of the least integer is negative: the integer itself.
                return at.abs().max(0).min(extent - 1);
            }
            _ if span <= extent => wrapped(var),
            _ => wrapped(var + 1),
        })
    }

    /// A neighbour of an element if a condition says that it exists, otherwise a constant. Occasionally the condition
    /// is off by one.
    fn neighbour(&mut self, dtype: DType) -> Value {
        let all = [self.held(), self.shared.clone(), self.inputs.clone()].concat();
        let all: Vec<Held> = all.into_iter().filter(|from| from.storage != self.target).collect();
        if all.is_empty() {
            return Value::from(self.small(dtype));
        }
        let from = *self.rng.pick(&all);
        let mut index = self.index(from, 100);
        let dimension = index.len() - 1 - self.rng.below(if from.is_flat { 1 } else { 2 });
        let extent = from.extents[2 + dimension - index.len()];
        let (var, _) = *self.rng.pick(&self.scope.vars.clone());
        let at = var + self.rng.within(-3..=3);
        index[dimension] = Value::from(at);
        let wrong_by = if self.rng.percent(5) { 1 } else { 0 };
        let (begin, end) = (at.ge(-wrong_by), at.lt(extent + wrong_by));
        let element = self.converted(from.buffer.at(index), from.dtype, dtype).cast_to(dtype);
        let (before, behind) = (self.small(dtype), self.small(dtype));
        begin.select(end.select(element, behind), before)
    }

    pub(super) fn comparison(&mut self) -> Value {
        let (var, span) = *self.rng.pick(&self.scope.vars.clone());
        let bound = self.rng.within(0..=span.max(1));
        let var = Value::from(var);
        match self.rng.below(6) {
            0 => var.lt(bound),
            1 => var.le(bound),
            2 => var.gt(bound),
            3 => var.ge(bound),
            4 => var.eq(bound),
            _ => var.ne(bound),
        }
    }

    pub(super) fn condition(&mut self) -> Value {
        if self.rng.percent(15) {
            let (one, other) = (self.condition(), self.condition());
            return match self.rng.below(4) {
                0 => one & other,
                1 => one | other,
                2 => one ^ other,
                _ => !one,
            };
        }
        if self.rng.percent(70) {
            return self.comparison();
        }
        let dtype = self.dtype;
        let left = self.value(dtype, 1).cast_to(dtype);
        let right = self.value(dtype, 1);
        if self.rng.percent(50) { left.lt(right) } else { left.ne(right) }
    }

    /// A value of this dtype.
    pub(super) fn value(&mut self, dtype: DType, depth: usize) -> Value {
        if depth == 0 || self.rng.percent(25) {
            return self.leaf(dtype);
        }
        let one = self.value(dtype, depth - 1);
        match self.rng.below(17) {
            0 | 1 => one.cast_to(dtype) + self.value(dtype, depth - 1),
            2 => one.cast_to(dtype) - self.value(dtype, depth - 1),
            3 | 4 => one.cast_to(dtype) * self.value(dtype, depth - 1),
            5 => one.cast_to(dtype) / self.value(dtype, depth - 1),
            6 => one.cast_to(dtype).max(self.value(dtype, depth - 1)),
            7 => one.cast_to(dtype).min(self.value(dtype, depth - 1)),
            8 if dtype.is_float() => -one.cast_to(dtype),
            8 => one.cast_to(dtype).abs(),
            9 => {
                let other = self.value(dtype, depth - 1);
                self.condition().select(one.cast_to(dtype), other)
            }
            10 => {
                let through = *self.rng.pick(&DTYPES);
                self.converted(self.converted(one.cast_to(dtype), dtype, through), through, dtype)
            }
            11 => {
                let one = one.cast_to(dtype);
                one + one
            }
            12 => one.cast_to(dtype).rounded(),
            13 => one.cast_to(dtype) % self.value(dtype, depth - 1),
            14 | 15 if dtype.is_float() => self.whole(one.cast_to(dtype)),
            14 => self.bits(dtype, one.cast_to(dtype), depth),
            15 => !one.cast_to(dtype),
            _ => one,
        }
    }

    /// A whole number next to a float.
    fn whole(&mut self, of: Value) -> Value {
        match self.rng.below(5) {
            0 => of.floor(),
            1 => of.ceil(),
            2 => of.trunc(),
            3 => of.round(),
            _ => of.round_ties_even(),
        }
    }

    /// An operation on the bits of integers.
    fn bits(&mut self, dtype: DType, one: Value, depth: usize) -> Value {
        let other = self.value(dtype, depth - 1);
        let count = Value::from(self.rng.within(0..=8 * dtype.bytes() - 1));
        match self.rng.below(7) {
            0 => one & other,
            1 => one | other,
            2 => one ^ other,
            3 => one << count,
            4 => one >> count,
            5 => one << other,
            _ => one >> other,
        }
    }

    pub(super) fn converted(&self, value: Value, from: DType, to: DType) -> Value {
        match (from.is_integer() && to.is_integer(), self.names.is_multiple_of(2)) {
            _ if from == to => value,
            (true, true) => value.saturating_cast(to),
            (true, false) => value.wrapping_cast(to),
            (false, _) => value.cast(to),
        }
    }

    pub(super) fn leaf(&mut self, dtype: DType) -> Value {
        match self.rng.below(13) {
            12 => self.neighbour(dtype),
            0 => Value::from(self.edge(dtype)),
            1 => Value::from(self.small(dtype)),
            2 => {
                let (var, _) = *self.rng.pick(&self.scope.vars.clone());
                if dtype.is_integer() { Value::from(var).wrapping_cast(dtype) } else { Value::from(var) }
            }
            3 if self.scope.names.iter().any(|(_, known)| *known == dtype) => {
                let known: Vec<Value> =
                    self.scope.names.iter().filter(|(_, known)| *known == dtype).map(|(name, _)| *name).collect();
                *self.rng.pick(&known)
            }
            _ => {
                let all = [self.held(), self.held(), self.shared.clone(), self.inputs.clone()].concat();
                let from = *self.rng.pick(&all);
                // The storage that the statement writes is usually read at the same index: other reads have no meaning.
                let index = self.index(from, if from.storage == self.target { 93 } else { 60 });
                self.converted(from.buffer.at(index), from.dtype, dtype)
            }
        }
    }

    /// Extreme values of a dtype.
    pub(super) fn edge(&mut self, dtype: DType) -> Scalar {
        match dtype.integers() {
            Some((least, most)) => {
                let ends = [least, least + 1, most, most - 1, 0, 1, -1.max(least as i64) as i128];
                Scalar::Int((*self.rng.pick(&ends)).clamp(i64::MIN.into(), i64::MAX.into()) as i64)
            }
            None => {
                let ends = [0.0, -0.0, 1.0, -1.0, 0.1, 1e-3, 60000.0, -0.5, f64::INFINITY, f64::NEG_INFINITY];
                Scalar::Float(*self.rng.pick(&ends))
            }
        }
    }
}

/// Conversion of values where a dtype is required.
pub(super) trait CastTo {
    fn cast_to(self, dtype: DType) -> Value;
}

impl CastTo for Value {
    /// Constants and indices are cast to the dtype; all other values have it already.
    fn cast_to(self, dtype: DType) -> Value {
        match self.resolved() {
            tile::Value::Const(_) | tile::Value::Index(_) => self.cast(dtype),
            _ => self,
        }
    }
}
