//! Checks of indices that depend on data: they must be integers, and the kernel must keep them in bounds of shared
//! memory and of fragments.
//!
//! An access outside of a tensor in global memory is masked. An access outside of a shared buffer would reach another
//! one, and one outside of a fragment has no register. So the index must be kept in bounds by its dtype, by its
//! computation (`min`, `max`, a cast that saturates), or by the enclosing conditions. A condition on an element of
//! memory holds until something is stored to its buffer.

use tilewright_diag::Diagnostic;
use tilewright_layout::DType;

use super::values::Type;
use crate::arena::Handle;
use crate::scalar::Scalar;
use crate::tile::atomic::OldElement;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::element::ElementStmt;
use crate::tile::integers::{Comparison, IntegerRange};
use crate::tile::kernel::Kernel;
use crate::tile::print::{access_title, value_title};
use crate::tile::value::{Access, Coord, ElementOp, Narrowing, Value};

/// A range that contains the integers of every dtype.
const ALL: IntegerRange = (-(1 << 64), 1 << 64);

/// The error for a value of this type as an index; `None` for integers.
pub(super) fn no_index(kernel: &Kernel, value: &Value, kind: Type, access: &Access) -> Option<Diagnostic> {
    let truncate = "convert it with .cast(I32), which rounds towards zero";
    let (what, help) = match kind {
        Type::Integer(_) => return None,
        Type::Of(dtype) if dtype.is_integer() => return None,
        Type::Of(dtype) if dtype.is_opaque() => (dtype.to_string(), "take it from a buffer of integers, such as I32"),
        Type::Of(dtype) => (dtype.to_string(), truncate),
        Type::Real => ("a floating-point number".to_string(), truncate),
        Type::Truth => ("a truth value".to_string(), "choose between two integers with .select(1, 0)"),
    };
    let message = format!("the index `{}` is {what}, not an integer", value_title(kernel, value));
    let finding =
        Diagnostic::error("K0260", message).label(access.span, format!("in `{}`", access_title(kernel, access)));
    Some(finding.help(help))
}

/// Reports accesses to shared memory whose index depends on data and may be out of bounds; `around` are the enclosing
/// conditions.
pub(super) fn check(kernel: &Kernel, body: &[ElementStmt], around: &[(&Value, bool)], found: &mut Vec<Diagnostic>) {
    Walk::under(kernel, around, found).elements(body);
}

/// [`check`] for a condition around ops.
pub(super) fn check_value(kernel: &Kernel, value: &Value, around: &[(&Value, bool)], found: &mut Vec<Diagnostic>) {
    Walk::under(kernel, around, found).loads(value);
}

/// A named value.
struct Name<'a> {
    name: &'a str,
    /// `None` for the old element of an atomic operation.
    value: Option<&'a Value>,
    dtype: Option<DType>,
    /// Range of the value when it was named.
    range: IntegerRange,
    /// Whether nothing that it reads has been stored to since.
    is_current: bool,
}

/// The range to which an enclosing condition limits an integer, which is identified by its text.
struct Fact {
    /// The integer as text, which identifies it.
    title: String,
    /// The range to which the condition limits it.
    range: IntegerRange,
    /// The storages that the integer reads.
    reads: Vec<Handle<Buffer>>,
    /// Whether none of these has been stored to since.
    is_current: bool,
}

struct Walk<'a, 'f> {
    kernel: &'a Kernel,
    /// Named values in scope, the innermost last.
    names: Vec<Name<'a>>,
    /// Ranges implied by the enclosing conditions, the innermost last.
    facts: Vec<Fact>,
    found: &'f mut Vec<Diagnostic>,
}

impl<'a, 'f> Walk<'a, 'f> {
    fn under(kernel: &'a Kernel, around: &[(&Value, bool)], found: &'f mut Vec<Diagnostic>) -> Walk<'a, 'f> {
        let mut walk = Walk { kernel, names: Vec::new(), facts: Vec::new(), found };
        for (cond, holds) in around {
            walk.assume(cond, *holds);
        }
        walk
    }

    fn elements(&mut self, body: &'a [ElementStmt]) {
        let names = self.names.len();
        for element in body {
            self.element(element);
        }
        self.names.truncate(names);
    }

    fn element(&mut self, element: &'a ElementStmt) {
        match element {
            ElementStmt::Let { name, value, .. } => {
                self.loads(value);
                let (dtype, range) = (self.dtype(value), self.range(value));
                self.names.push(Name { name, value: Some(value), dtype, range, is_current: true });
            }
            ElementStmt::Store { to, value, .. } => {
                self.loads(value);
                self.written(to);
            }
            ElementStmt::Atomic(atomic) => {
                atomic.values().for_each(|value| self.loads(value));
                self.written(&atomic.to);
                if let Some(OldElement { name, .. }) = &atomic.old {
                    let dtype = self.kernel.buffers[atomic.to.buffer].dtype;
                    let (value, range) = (None, of_dtype(dtype));
                    self.names.push(Name { name, value, dtype: Some(dtype), range, is_current: true });
                }
            }
            ElementStmt::If { cond, then, otherwise, .. } => {
                self.loads(cond);
                // Only one of the branches is executed, so neither outdates what the other knows.
                let before = self.currency();
                self.branch(cond, true, then);
                let after_then = self.currency();
                self.set_currency(&before);
                self.branch(cond, false, otherwise);
                let both: Vec<bool> =
                    self.currency().iter().zip(&after_then).map(|(one, other)| *one && *other).collect();
                self.set_currency(&both);
            }
            ElementStmt::For { body, .. } => {
                // An iteration may read what an earlier one has stored.
                let mut stored = Vec::new();
                body.iter().for_each(|element| {
                    element.for_each_access(&mut |access, writes| stored.extend(writes.then_some(access.buffer)));
                });
                stored.into_iter().for_each(|buffer| self.forget(buffer));
                self.elements(body);
            }
        }
    }

    fn written(&mut self, to: &'a Access) {
        to.for_each_load(&mut |access| self.access(access));
        self.access(to);
        self.forget(to.buffer);
    }

    fn branch(&mut self, cond: &Value, holds: bool, body: &'a [ElementStmt]) {
        let known = self.facts.len();
        self.assume(cond, holds);
        self.elements(body);
        self.facts.truncate(known);
    }

    /// For each fact and each name, whether nothing that it reads has been stored to since.
    fn currency(&self) -> Vec<bool> {
        let facts = self.facts.iter().map(|fact| fact.is_current);
        facts.chain(self.names.iter().map(|name| name.is_current)).collect()
    }

    fn set_currency(&mut self, is_current: &[bool]) {
        let facts = self.facts.iter_mut().map(|fact| &mut fact.is_current);
        let all = facts.chain(self.names.iter_mut().map(|name| &mut name.is_current));
        all.zip(is_current).for_each(|(known, now)| *known = *now);
    }

    /// Marks everything known about elements of a buffer as outdated by a store. Facts stay in the list, since their
    /// position determines how long they hold.
    fn forget(&mut self, buffer: Handle<Buffer>) {
        let storage = self.kernel.storage(buffer);
        for fact in self.facts.iter_mut().filter(|fact| fact.reads.contains(&storage)) {
            fact.is_current = false;
        }
        let kernel = self.kernel;
        let is_outdated = |name: &&mut Name| name.value.is_some_and(|value| reads(kernel, value).contains(&storage));
        self.names.iter_mut().filter(is_outdated).for_each(|name| name.is_current = false);
    }

    /// Checks the loads of a value; those in both arms of a selection are executed.
    fn loads(&mut self, value: &Value) {
        value.for_each_load(&mut |access| self.access(access));
    }

    fn access(&mut self, access: &Access) {
        let buffer = &self.kernel.buffers[access.buffer];
        if matches!(buffer.space, Space::Global(_)) {
            return;
        }
        for (dimension, (coord, extent)) in access.index.iter().zip(&buffer.shape).enumerate() {
            let Coord::Data(value) = coord else { continue };
            let range = self.range(value);
            if range.0 < 0 || range.1 >= i128::from(*extent) {
                let finding = self.leaves(access, dimension, value, range);
                self.found.push(finding);
            }
        }
    }

    fn leaves(&self, access: &Access, dimension: usize, value: &Value, range: IntegerRange) -> Diagnostic {
        let buffer = &self.kernel.buffers[access.buffer];
        let (title, extent) = (access_title(self.kernel, access), buffer.shape[dimension]);
        let reached = if range.0 < 0 { range.0 } else { range.1 };
        let message = format!("`{title}` may reach index {reached} of dimension {dimension} (extent {extent})");
        let bounds = [
            (range.0 < 0, ".max(0)".to_string(), ".ge(0)".to_string()),
            (range.1 >= i128::from(extent), format!(".min({})", extent - 1), format!(".lt({extent})")),
        ];
        let missing = || bounds.iter().filter(|(is_missing, ..)| *is_missing);
        let clamp: String = missing().map(|(_, clamp, _)| clamp.as_str()).collect();
        let asked: Vec<String> = missing().map(|(.., asked)| format!("`{asked}`")).collect();
        let of = value_title(self.kernel, value);
        let was_asked = self.facts.iter().any(|fact| !fact.is_current && fact.title == of);
        let (declared, note) = match buffer.space {
            Space::Fragment => {
                ("as a fragment", "fragments are not masked: no register holds an element that is out of bounds")
            }
            Space::Shared | Space::Global(_) | Space::Tensor => {
                ("in shared memory", "shared memory is not masked: an out-of-bounds access would reach another buffer")
            }
        };
        let finding = Diagnostic::error("K0261", message)
            .label(access.span, format!("nothing keeps `{of}` in bounds"))
            .label(buffer.span, format!("declared {declared} with shape {:?}", buffer.shape))
            .note(note);
        if was_asked {
            return finding
                .note(format!("what `{of}` reads was stored to after the enclosing condition was evaluated"))
                .help("name the index with k.named before the condition, and use the name in both places");
        }
        finding.help(format!("bound the index with `{clamp}`, or access it in k.if_ with {}", asked.join(" and ")))
    }

    fn dtype(&self, value: &Value) -> Option<DType> {
        let dtype = |name: &str| self.named(name).map_or_else(|| self.kernel.scalar_dtype(name), |known| known.dtype);
        value.dtype(&self.kernel.buffers, &dtype)
    }

    fn named(&self, name: &str) -> Option<&Name<'a>> {
        self.names.iter().rev().find(|known| known.name == name)
    }

    /// The range of a number: by its dtype, by its computation, and by the enclosing conditions.
    fn range(&mut self, value: &Value) -> IntegerRange {
        let range = self.computed(value);
        if self.facts.is_empty() {
            return range;
        }
        let title = value_title(self.kernel, value);
        let known = self.facts.iter().filter(|fact| fact.is_current && fact.title == title);
        known.fold(range, |range, Fact { range: fact, .. }| (range.0.max(fact.0), range.1.min(fact.1)))
    }

    fn computed(&mut self, value: &Value) -> IntegerRange {
        match value {
            Value::Const(Scalar::Int(number)) => ((*number).into(), (*number).into()),
            Value::Const(Scalar::Float(number)) => of_float(*number),
            Value::Index(expr) => (expr.range().lo.into(), expr.range().hi.into()),
            Value::Named(name) => match self.named(name) {
                Some(known) => known.range,
                None => self.kernel.scalar_dtype(name).map_or(ALL, of_dtype),
            },
            Value::Load(access) => of_dtype(self.kernel.buffers[access.buffer].dtype),
            Value::Cast(dtype, narrowing, of) => {
                let is_float = self.dtype(of).is_some_and(DType::is_float);
                let narrowing = if is_float { Narrowing::Saturates } else { *narrowing };
                cast(*dtype, narrowing, self.range(of))
            }
            Value::Op(ElementOp::Select, operands) => rounded(self.dtype(value), self.selected(operands)),
            Value::Op(op, operands) => {
                let ranges: Vec<IntegerRange> = operands.iter().map(|operand| self.range(operand)).collect();
                of_operation(*op, self.dtype(value), &ranges)
            }
        }
    }

    /// The range of a selection, where each arm is under the condition.
    fn selected(&mut self, operands: &[Value]) -> IntegerRange {
        let [cond, then, otherwise] = operands else { return ALL };
        let mut side = |value: &Value, holds: bool| {
            let known = self.facts.len();
            self.assume(cond, holds);
            let range = self.range(value);
            self.facts.truncate(known);
            range
        };
        let (then, otherwise) = (side(then, true), side(otherwise, false));
        (then.0.min(otherwise.0), then.1.max(otherwise.1))
    }

    /// Records what a comparison of integers says about both sides.
    fn assume(&mut self, cond: &Value, holds: bool) {
        match cond {
            Value::Named(name) => {
                if let Some(known) = self.named(name).filter(|known| known.is_current).and_then(|known| known.value) {
                    self.assume(known, holds);
                }
            }
            cond if cond.implied(holds).is_some() => {
                let parts = cond.implied(holds).into_iter().flatten();
                parts.for_each(|(part, holds)| self.assume(part, holds));
            }
            Value::Op(op, sides) => {
                let (Some(comparison), [a, b]) = (op.comparison(), &sides[..]) else { return };
                let is_real = |side: &Value| self.dtype(side).is_some_and(DType::is_float);
                if is_real(a) || is_real(b) {
                    return;
                }
                let comparison = if holds { comparison } else { comparison.opposite() };
                for (side, comparison, other) in [(a, comparison, b), (b, comparison.mirrored(), a)] {
                    let (title, range) = (value_title(self.kernel, side), bounded(comparison, self.range(other)));
                    self.facts.push(Fact { title, range, reads: reads(self.kernel, side), is_current: true });
                }
            }
            Value::Const(_) | Value::Index(_) | Value::Load(_) | Value::Cast(..) => {}
        }
    }
}

/// The storages that a value reads.
fn reads(kernel: &Kernel, value: &Value) -> Vec<Handle<Buffer>> {
    let mut found = Vec::new();
    value.for_each_load(&mut |access| found.push(kernel.storage(access.buffer)));
    found
}

/// The integers next to a number, clamped to [`ALL`]; all of them for NaN.
fn of_float(number: f64) -> IntegerRange {
    if number.is_nan() {
        return ALL;
    }
    let whole = |number: f64| (number as i128).clamp(ALL.0, ALL.1);
    (whole(number.floor()), whole(number.ceil()))
}

/// The range of an integer dtype; [`ALL`] for other dtypes.
fn of_dtype(dtype: DType) -> IntegerRange {
    dtype.integers().unwrap_or(ALL)
}

/// The range when rounded to a floating-point dtype: rounding keeps the order, so only the ends are rounded. Numbers
/// that are too large become infinite, or the greatest number of an 8-bit float.
fn rounded(dtype: Option<DType>, (least, most): IntegerRange) -> IntegerRange {
    let Some((digits, greatest)) = dtype.and_then(float_format) else { return (least, most) };
    let nearest = |number: i128| {
        let magnitude = number.abs();
        let step = 1 << (i128::BITS - magnitude.leading_zeros()).saturating_sub(digits);
        let (count, rest) = (magnitude / step, magnitude % step);
        let is_up = 2 * rest > step || (2 * rest == step && count % 2 == 1);
        let magnitude = (count + i128::from(is_up)) * step;
        let too_large = if dtype.is_some_and(|dtype| dtype.saturation().is_some()) { greatest } else { ALL.1 };
        (if magnitude > greatest { too_large } else { magnitude }) * number.signum()
    };
    (nearest(least), nearest(most))
}

/// The significant digits of a floating-point dtype and its greatest integer, as far as ranges of integers reach; `None`
/// for other dtypes.
fn float_format(dtype: DType) -> Option<(u32, i128)> {
    match dtype {
        DType::F16 => Some((11, 65504)),
        DType::BF16 => Some((8, ALL.1)),
        DType::E4M3 => Some((4, 448)),
        DType::E5M2 => Some((3, 57344)),
        DType::F32 => Some((24, ALL.1)),
        DType::F64 => Some((53, ALL.1)),
        DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::B8
        | DType::B16
        | DType::B32
        | DType::B64
        | DType::B128 => None,
    }
}

fn is_inside(range: IntegerRange, whole: IntegerRange) -> bool {
    whole.0 <= range.0 && range.1 <= whole.1
}

/// The range of a number of this range after a cast.
fn cast(dtype: DType, narrowing: Narrowing, range: IntegerRange) -> IntegerRange {
    let whole = of_dtype(dtype);
    match narrowing {
        _ if is_inside(range, whole) => rounded(Some(dtype), range),
        Narrowing::Saturates => (range.0.clamp(whole.0, whole.1), range.1.clamp(whole.0, whole.1)),
        Narrowing::Fits | Narrowing::Wraps => whole,
    }
}

/// The range of the result of an operation on numbers of these ranges. Integers of a dtype wrap; for floats, only
/// operations that keep the order are evaluated, since sums are rounded.
fn of_operation(op: ElementOp, dtype: Option<DType>, operands: &[IntegerRange]) -> IntegerRange {
    let whole = dtype.map_or(ALL, of_dtype);
    let keeps_order =
        matches!(op, ElementOp::Max | ElementOp::Min | ElementOp::Abs | ElementOp::Neg | ElementOp::Rounded);
    let is_known = keeps_order || dtype.is_none_or(|dtype| !dtype.is_float());
    let range = op.exact_range(operands).filter(|_| is_known);
    rounded(dtype, range.filter(|range| is_inside(*range, whole)).unwrap_or(whole))
}

/// The range of a number for which this comparison with a number of range `other` holds.
fn bounded(comparison: Comparison, other: IntegerRange) -> IntegerRange {
    match comparison {
        Comparison::Lt => (ALL.0, other.1.saturating_sub(1)),
        Comparison::Le => (ALL.0, other.1),
        Comparison::Gt => (other.0.saturating_add(1), ALL.1),
        Comparison::Ge => (other.0, ALL.1),
        Comparison::Eq => other,
        Comparison::Ne => ALL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_bound_both_sides() {
        let to_31 = (0, 31);
        assert_eq!(bounded(Comparison::Lt, to_31).1, 30);
        assert_eq!(bounded(Comparison::Le.mirrored(), to_31).0, 0);
        assert_eq!(bounded(Comparison::Lt.opposite(), to_31).0, 0);
        assert_eq!(bounded(Comparison::Ne, to_31), ALL);
    }

    #[test]
    fn ends_are_rounded_to_the_dtype() {
        assert_eq!(rounded(Some(DType::BF16), (0, 383)), (0, 384));
        assert_eq!(rounded(Some(DType::BF16), (-257, 255)), (-256, 255));
        assert_eq!(rounded(Some(DType::F16), (0, 2079)), (0, 2080));
        assert_eq!(rounded(Some(DType::F16), (2049, 70000)), (2048, ALL.1));
        assert_eq!(rounded(Some(DType::F32), (0, (1 << 24) + 1)), (0, 1 << 24));
        assert_eq!(rounded(Some(DType::E4M3), (17, 70)), (16, 72));
        assert_eq!(rounded(Some(DType::E4M3), (-1000, 1000)), (-448, 448));
        assert_eq!(rounded(None, (0, 383)), (0, 383));
        assert_eq!(of_operation(ElementOp::Min, Some(DType::BF16), &[ALL, of_float(383.0)]).1, 384);
    }

    #[test]
    fn integers_of_a_dtype_wrap_and_floats_saturate() {
        let sum = of_operation(ElementOp::Add, Some(DType::U8), &[(0, 200), (100, 100)]);
        assert_eq!(sum, (0, 255));
        assert_eq!(cast(DType::U8, Narrowing::Saturates, (-5, 300)), (0, 255));
        assert_eq!(cast(DType::U8, Narrowing::Wraps, (3, 300)), (0, 255));
        assert_eq!(cast(DType::U8, Narrowing::Wraps, (3, 30)), (3, 30));
        // 64-bit integers wrap too; their ranges are computed in more than 64 bits.
        let next = of_operation(ElementOp::Add, Some(DType::U64), &[of_dtype(DType::U64), (1, 1)]);
        assert_eq!(next, of_dtype(DType::U64));
        assert_eq!(cast(DType::I64, Narrowing::Wraps, of_dtype(DType::U64)), of_dtype(DType::I64));
        let positive = of_operation(ElementOp::Max, Some(DType::F32), &[ALL, of_float(0.0)]);
        assert_eq!(cast(DType::I32, Narrowing::Saturates, positive), (0, i32::MAX.into()));
    }
}
