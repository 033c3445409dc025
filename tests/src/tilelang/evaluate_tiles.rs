//! Evaluates copies, fills, additions of tiles, reductions and matrix products.

use super::arithmetic::{Number, apply, sum};
use super::boxes::{points, position};
use super::contents::Piece;
use super::evaluate::{Known, Machine};
use super::expr::ValueOp;
use super::program::{Gemm, Reduce, ReduceKind, Region};
use super::walk::Env;

/// A region with known bounds.
struct Window<'a> {
    of: Known<'a>,
    mins: Vec<i64>,
    extents: Vec<i64>,
}

impl Window<'_> {
    /// The element at this coordinate, which omits dimensions of extent 1; `None` out of bounds of a tensor.
    fn place(&self, at: &[i64]) -> Result<Option<usize>, String> {
        let mut along = at.iter().copied();
        let ranges = self.mins.iter().zip(&self.extents);
        let index = ranges.map(|(min, extent)| if *extent == 1 { *min } else { min + along.next().unwrap_or(0) });
        self.of.place(&index.collect::<Vec<i64>>())
    }
}

impl<'a> Machine<'a> {
    /// A copy, which converts between dtypes.
    pub(crate) fn copy(&mut self, dst: &Region, src: &Region, env: &Env<'a>) -> Result<(), String> {
        let (to, from) = (self.window(dst, env)?, self.window(src, env)?);
        for at in points(&common(&to, &from)?) {
            let piece = self.get(from.of, from.place(&at)?)?;
            let converts = to.of.dtype != from.of.dtype;
            let piece = if converts { Piece::of(piece.number(from.of.dtype), to.of.dtype) } else { piece };
            self.put(to.of, to.place(&at)?, &piece)?;
        }
        Ok(())
    }

    /// A copy that adds to its destination.
    pub(crate) fn atomic_add(&mut self, dst: &Region, src: &Region, env: &Env<'a>) -> Result<(), String> {
        let (to, from) = (self.window(dst, env)?, self.window(src, env)?);
        for at in points(&common(&to, &from)?) {
            let value = self.number(from.of, from.place(&at)?)?;
            self.add_to(to.of, to.place(&at)?, value)?;
        }
        Ok(())
    }

    pub(crate) fn fill(&mut self, dst: &Region, value: f64, env: &Env<'a>) -> Result<(), String> {
        let to = self.window(dst, env)?;
        let piece = Piece::of(Number::constant(value), to.of.dtype);
        for at in points(&long(&to.extents)) {
            self.put(to.of, to.place(&at)?, &piece)?;
        }
        Ok(())
    }

    pub(crate) fn reduce(&mut self, reduce: &Reduce) -> Result<(), String> {
        let (from, to) = (self.find(&reduce.src)?, self.find(&reduce.dst)?);
        let mut rest = from.buffer.shape.clone();
        let extent = if reduce.dim < rest.len() { rest.remove(reduce.dim) } else { 0 };
        if extent == 0 || long(&rest) != long(&to.buffer.shape) {
            let (from, to) = (&from.buffer.shape, &to.buffer.shape);
            return Err(format!("a reduction of dimension {} of {from:?} to {to:?}", reduce.dim));
        }
        for (result, at) in points(&rest).enumerate() {
            let mut terms = Vec::new();
            for part in 0..extent {
                let mut index = at.clone();
                index.insert(reduce.dim, part);
                let term = self.number(from, from.place(&index)?)?;
                let is_absolute = matches!(reduce.kind, ReduceKind::AbsMax | ReduceKind::AbsSum);
                terms.push(if is_absolute { term.abs() } else { term });
            }
            if !reduce.clear {
                terms.push(self.number(to, Some(result))?);
            }
            let reduced = match reduce.kind {
                ReduceKind::Sum | ReduceKind::AbsSum => sum(terms.into_iter(), from.dtype),
                ReduceKind::Max | ReduceKind::AbsMax => extreme(ValueOp::Max, terms)?,
                ReduceKind::Min => extreme(ValueOp::Min, terms)?,
            };
            self.put(to, Some(result), &Piece::of(reduced, to.dtype))?;
        }
        Ok(())
    }

    /// Operands are widened to the dtype of the accumulator, in which products of 16-bit floats are exact.
    pub(crate) fn gemm(&mut self, gemm: &Gemm) -> Result<(), String> {
        let [a, b, c] = [self.find(&gemm.a)?, self.find(&gemm.b)?, self.find(&gemm.c)?];
        let shape = |of: &Known<'_>, transposed: bool| {
            let mut shape = of.buffer.shape.clone();
            if transposed {
                shape.reverse();
            }
            shape
        };
        let (left, right) = (shape(&a, gemm.transpose_a), shape(&b, gemm.transpose_b));
        let ([m, k], [of_b, n]) = (&left[..], &right[..]) else { return Err("operands must be matrices".to_string()) };
        if k != of_b || c.buffer.shape != [*m, *n] {
            return Err(format!("a product of {left:?} and {right:?} in {:?}", c.buffer.shape));
        }
        let numbers = |of: Known<'_>| {
            let number = |at| self.number(of, Some(at)).map(|number| number.rounded(c.dtype));
            (0..of.elements()).map(number).collect::<Result<Vec<Number>, String>>()
        };
        let (of_a, of_b) = (numbers(a)?, numbers(b)?);
        let at = |numbers: &[Number], of: &Known<'_>, transposed: bool, [row, col]: [i64; 2]| {
            let index = if transposed { [col, row] } else { [row, col] };
            position(&index, &of.buffer.shape).and_then(|place| numbers.get(place).copied())
        };
        for (result, point) in points(&[*m, *n]).enumerate() {
            let [row, col] = point[..] else { continue };
            let mut terms = Vec::new();
            for step in 0..*k {
                let left = at(&of_a, &a, gemm.transpose_a, [row, step]);
                let right = at(&of_b, &b, gemm.transpose_b, [step, col]);
                let (Some(left), Some(right)) = (left, right) else { return Err("a short operand".to_string()) };
                terms.push(apply(ValueOp::Mul, &[left, right])?);
            }
            if !gemm.clear_accum {
                terms.push(self.number(c, Some(result))?);
            }
            self.put(c, Some(result), &Piece::of(sum(terms.into_iter(), c.dtype), c.dtype))?;
        }
        Ok(())
    }

    fn window(&self, region: &Region, env: &Env<'a>) -> Result<Window<'a>, String> {
        let of = self.find(&region.buffer)?;
        let Some(ranges) = &region.ranges else {
            let (mins, extents) = (vec![0; of.buffer.shape.len()], of.buffer.shape.clone());
            return Ok(Window { of, mins, extents });
        };
        let mins = ranges.iter().map(|range| self.index(&range.min, env)).collect::<Result<Vec<i64>, String>>()?;
        Ok(Window { of, mins, extents: ranges.iter().map(|range| range.extent).collect() })
    }
}

/// The maximum or minimum of some numbers.
fn extreme(op: ValueOp, terms: Vec<Number>) -> Result<Number, String> {
    let mut terms = terms.into_iter();
    let first = terms.next().ok_or("a reduction of no elements")?;
    terms.try_fold(first, |found, term| apply(op, &[found, term]))
}

/// The extents other than 1, which must agree.
fn common(to: &Window<'_>, from: &Window<'_>) -> Result<Vec<i64>, String> {
    let extents = long(&to.extents);
    if extents == long(&from.extents) {
        Ok(extents)
    } else {
        Err(format!("extents {:?} do not match {:?}", from.extents, to.extents))
    }
}

/// The extents other than 1.
fn long(extents: &[i64]) -> Vec<i64> {
    extents.iter().copied().filter(|extent| *extent != 1).collect()
}

#[cfg(test)]
mod tests {
    use super::super::arithmetic::Trust;
    use super::super::evaluate::samples::{buffer, copy, left_in, program, values, whole};
    use super::super::expr::Index;
    use super::super::program::{Op, RegionRange, Scope, WarpPolicy};
    use super::*;

    fn reduced(kind: ReduceKind, clear: bool) -> Vec<Number> {
        let params = vec![buffer("A", Scope::Global, "float32", &[2, 3]), buffer("B", Scope::Global, "float32", &[2])];
        let fragments =
            vec![buffer("a", Scope::Fragment, "float32", &[2, 3]), buffer("s", Scope::Fragment, "float32", &[2])];
        let reduce = Op::Reduce(Reduce { kind, src: "a".to_string(), dst: "s".to_string(), dim: 1, clear });
        let fill = Op::Fill { dst: whole("s"), value: 5.0 };
        let body = vec![copy(whole("a"), whole("A")), fill, reduce, copy(whole("B"), whole("s"))];
        left_in(&program(params, fragments, body), "B")
    }

    #[test]
    fn reductions_overwrite_or_take_part() {
        assert_eq!(values(&reduced(ReduceKind::Sum, true)), [6.0, 15.0]);
        assert_eq!(values(&reduced(ReduceKind::AbsSum, false)), [11.0, 20.0]);
        assert_eq!(values(&reduced(ReduceKind::Max, true)), [3.0, 6.0]);
        assert_eq!(values(&reduced(ReduceKind::Max, false)), [5.0, 6.0]);
        assert_eq!(values(&reduced(ReduceKind::Min, false)), [1.0, 4.0]);
    }

    #[test]
    fn only_sums_of_floats_are_rounded() {
        assert!(reduced(ReduceKind::AbsMax, true).iter().all(|number| number.trust == Trust::Exact));
        assert!(reduced(ReduceKind::Sum, true).iter().all(|number| matches!(number.trust, Trust::Within(_))));
    }

    #[test]
    fn copies_over_an_edge_read_zero_and_drop_what_they_write() {
        let params = vec![buffer("A", Scope::Global, "float32", &[3]), buffer("B", Scope::Global, "float32", &[4])];
        let fragments = vec![buffer("a", Scope::Fragment, "float32", &[4])];
        let from = |name: &str, min| {
            let range = RegionRange { min: Index::Integer(min), extent: 4, point: false };
            Region { buffer: name.to_string(), ranges: Some(vec![range]) }
        };
        let body = vec![copy(whole("a"), from("A", 1)), copy(from("B", 1), whole("a"))];
        assert_eq!(values(&left_in(&program(params, fragments, body), "B")), [1.0, 2.0, 3.0, 0.0]);
    }

    #[test]
    fn products_add_to_the_accumulator() {
        let global = |name| buffer(name, Scope::Global, "float32", &[2, 2]);
        let gemm = |transpose_b, clear_accum| {
            Op::Gemm(Gemm {
                a: "A".to_string(),
                b: "B".to_string(),
                c: "C".to_string(),
                transpose_a: false,
                transpose_b,
                policy: WarpPolicy::Square,
                clear_accum,
            })
        };
        let product = |op| values(&left_in(&program(["A", "B", "C"].map(global).to_vec(), Vec::new(), vec![op]), "C"));
        assert_eq!(product(gemm(false, true)), [7.0, 10.0, 15.0, 22.0]);
        assert_eq!(product(gemm(true, false)), [6.0, 13.0, 14.0, 29.0]);
    }
}
