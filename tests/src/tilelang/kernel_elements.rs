//! Converts statements on elements and regions of golden programs to those of tile kernels.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use tilewright::dsl::{self, Elements, at};
use tilewright::expr::{Expr, Var};
use tilewright::ir::tile::{self, Coord, ElementClass, ElementOp, Function};
use tilewright::ir::{HwIndex, Scalar};
use tilewright::layout::DType;

use super::expr::{Index, IndexOp, Load, Value, ValueOp};
use super::program::{Buffer, Element, Program, Region, RegionRange, Scope, Store};

/// The names of a program's variables, and the names used in its kernel.
#[derive(Clone)]
pub(crate) struct Names {
    /// The values bound to variables of the program.
    bound: BTreeMap<String, Coord>,
    /// Names that are taken: of buffers, enclosing variables, and hardware indices.
    used: BTreeSet<String>,
}

impl Names {
    pub(crate) fn new() -> Names {
        Names { bound: BTreeMap::new(), used: HwIndex::ALL.iter().map(|index| index.name().to_string()).collect() }
    }

    /// A free name for the kernel, the same if possible. It is then marked as used.
    pub(crate) fn free(&mut self, name: &str) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut free: String = name.chars().map(letter).collect();
        if !free.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') || free.starts_with("__") {
            free.insert(0, 'v');
        }
        while self.used.contains(&free) {
            free.push('_');
        }
        self.used.insert(free.clone());
        free
    }

    pub(crate) fn bind(&mut self, name: &str, value: Coord) {
        self.bound.insert(name.to_string(), value);
    }

    /// A variable with values in `0..extent`.
    pub(crate) fn variable(&mut self, name: &str, extent: i64) -> Var {
        let var = Var::new(self.free(name), 0, extent - 1);
        self.bind(name, Coord::At(Expr::var(&var)));
        var
    }

    fn get(&self, name: &str) -> Result<Coord, String> {
        self.bound.get(name).cloned().ok_or_else(|| format!("unknown variable `{name}`"))
    }
}

/// A buffer of the kernel.
pub(crate) struct Known<'a> {
    pub(crate) buffer: dsl::Buffer,
    pub(crate) dtype: DType,
    /// The program's buffer.
    pub(crate) told: &'a Buffer,
}

/// The buffers used by statements.
pub(crate) struct Translator<'a> {
    pub(crate) program: &'a Program,
    known: BTreeMap<&'a str, Known<'a>>,
    /// The dtypes of buffers by handle, in the order of declaration.
    dtypes: Vec<DType>,
    /// The first error inside the builder's closures.
    wrong: RefCell<Vec<String>>,
    /// Whether every thread executes the current statements, and all store the same value.
    is_of_all_threads: Cell<bool>,
}

impl<'a> Translator<'a> {
    pub(crate) fn new(program: &'a Program) -> Translator<'a> {
        Translator {
            program,
            known: BTreeMap::new(),
            dtypes: Vec::new(),
            wrong: RefCell::default(),
            is_of_all_threads: Cell::new(false),
        }
    }

    /// Registers a buffer that was just declared.
    pub(crate) fn declared(&mut self, buffer: dsl::Buffer, dtype: DType, told: &'a Buffer) {
        self.dtypes.push(dtype);
        self.known.insert(&told.name, Known { buffer, dtype, told });
    }

    pub(crate) fn find(&self, name: &str) -> Result<&Known<'a>, String> {
        self.known.get(name).ok_or_else(|| format!("unknown buffer `{name}`"))
    }

    /// A declared buffer.
    pub(crate) fn buffer(&self, name: &str) -> Result<dsl::Buffer, String> {
        Ok(self.find(name)?.buffer)
    }

    /// Records an error in a closure, from which it cannot be returned.
    pub(crate) fn note(&self, outcome: Result<(), String>) {
        if let Err(why) = outcome {
            self.wrong.borrow_mut().push(why);
        }
    }

    /// The first recorded error.
    pub(crate) fn outcome(self) -> Result<(), String> {
        self.wrong.into_inner().into_iter().next().map_or(Ok(()), Err)
    }

    pub(crate) fn elements(&self, e: &mut Elements, body: &[Element], names: &Names) -> Result<(), String> {
        let mut names = names.clone();
        body.iter().try_for_each(|element| self.element(e, element, &mut names))
    }

    /// Statements that every thread executes.
    pub(crate) fn elements_of_all_threads(
        &self,
        e: &mut Elements,
        body: &[Element],
        names: &Names,
    ) -> Result<(), String> {
        self.is_of_all_threads.set(true);
        let outcome = self.elements(e, body, names);
        self.is_of_all_threads.set(false);
        outcome
    }

    fn element(&self, e: &mut Elements, element: &Element, names: &mut Names) -> Result<(), String> {
        match element {
            Element::Store(store) => self.store(e, store, names)?,
            Element::AtomicAdd(store) => {
                let (to, value) = (self.find(&store.buffer)?, self.value(&store.value, names)?);
                e.atomic_add(to.buffer, self.coords(&store.index, names)?, self.converted(value, to.dtype));
            }
            Element::Let { name, value } => {
                let value = self.index(value, names)?;
                names.bind(name, value);
            }
            Element::If { cond, then, otherwise } => {
                let (cond, names) = (self.value(cond, names)?, &*names);
                e.if_else(
                    cond,
                    |e| self.note(self.elements(e, then, names)),
                    |e| self.note(self.elements(e, otherwise, names)),
                );
            }
            Element::For { var, extent, body, .. } => {
                let mut names = names.clone();
                let name = names.free(var);
                e.serial(&name, 0..*extent, |e, at| {
                    names.bind(var, Coord::At(at.resolved()));
                    self.note(self.elements(e, body, &names));
                });
            }
        }
        Ok(())
    }

    fn store(&self, e: &mut Elements, store: &Store, names: &Names) -> Result<(), String> {
        let (to, value) = (self.find(&store.buffer)?, self.value(&store.value, names)?);
        let index = self.coords(&store.index, names)?;
        let depends = index.iter().any(|coord| matches!(coord, Coord::Data(_)));
        let stored = e.store(to.buffer, index, self.converted(value, to.dtype));
        let is_memory = to.told.scope != Scope::Fragment;
        if depends {
            stored.unique();
        } else if self.is_of_all_threads.get() && is_memory {
            stored.any_wins();
        }
        Ok(())
    }

    pub(crate) fn index(&self, index: &Index, names: &Names) -> Result<Coord, String> {
        match index {
            Index::Integer(value) => Ok(Coord::At(Expr::constant(*value))),
            Index::Variable(name) => names.get(name),
            Index::Load(load) => self.load(load, names).map(Coord::Data),
            Index::Binary(op, left, right) => match (self.index(left, names)?, self.index(right, names)?) {
                (Coord::At(left), Coord::At(right)) => expression(*op, left, right).map(Coord::At),
                (left, right) => data_index(*op, number(left), number(right)).map(Coord::Data),
            },
        }
    }

    fn coords(&self, index: &[Index], names: &Names) -> Result<Vec<Coord>, String> {
        index.iter().map(|index| self.index(index, names)).collect()
    }

    fn load(&self, load: &Load, names: &Names) -> Result<tile::Value, String> {
        Ok(self.buffer(&load.buffer)?.at(self.coords(&load.index, names)?).resolved())
    }

    pub(crate) fn value(&self, value: &Value, names: &Names) -> Result<tile::Value, String> {
        match value {
            Value::Const(value) => Ok(tile::Value::from(constant(*value))),
            Value::Variable(name) => names.get(name).map(number),
            Value::Load(load) => self.load(load, names),
            Value::Op(op, arguments) => {
                let arguments = arguments.iter().map(|argument| self.value(argument, names));
                self.operation(*op, arguments.collect::<Result<_, _>>()?)
            }
            Value::Cast(dtype, argument) => Ok(self.cast(self.value(argument, names)?, self::dtype(dtype)?)),
        }
    }

    /// An operation whose operands are converted to the widest of their dtypes.
    fn operation(&self, op: ValueOp, mut arguments: Vec<tile::Value>) -> Result<tile::Value, String> {
        let functions = Function::ALL.iter().map(|function| ElementOp::Function(*function));
        let known = ElementOp::PLAIN.iter().copied().chain(functions).find(|known| known.name() == op.name());
        let known = known.ok_or_else(|| format!("unknown operation `{}`", op.name()))?;
        let common = arguments.iter().filter_map(|argument| self.dtype_of(argument)).reduce(wider);
        if let Some(common) = common {
            arguments = arguments.into_iter().map(|argument| self.converted(argument, common)).collect();
        }
        Ok(tile::Value::Op(known, arguments.into()))
    }

    /// The value converted to this dtype. A number without a dtype adapts to any.
    pub(crate) fn converted(&self, value: tile::Value, dtype: DType) -> tile::Value {
        let is_index = match &value {
            tile::Value::Index(_) => true,
            tile::Value::Op(op, _) => op.class() != ElementClass::Comparison,
            _ => false,
        } && dtype.is_integer()
            && dtype.bytes() < 4;
        match self.dtype_of(&value) {
            Some(known) if known != dtype => self.cast(value, dtype),
            // The range of an index is not checked here: values that do not fit in the dtype wrap.
            None if is_index => value.wrapping_cast(dtype),
            _ => value,
        }
    }

    /// Integers wrap in these programs.
    fn cast(&self, value: tile::Value, dtype: DType) -> tile::Value {
        let is_integer = match (&value, self.dtype_of(&value)) {
            (_, Some(known)) => known.is_integer(),
            (tile::Value::Const(number), None) => matches!(number, Scalar::Int(_)),
            (_, None) => true,
        };
        if is_integer && dtype.is_integer() { value.wrapping_cast(dtype) } else { value.cast(dtype) }
    }

    /// The dtype of a value; `None` for constants, indices and truth values.
    fn dtype_of(&self, value: &tile::Value) -> Option<DType> {
        match value {
            tile::Value::Const(_) | tile::Value::Index(_) | tile::Value::Named(_) => None,
            tile::Value::Load(access) => self.dtypes.get(access.buffer.index()).copied(),
            tile::Value::Cast(dtype, ..) => Some(*dtype),
            tile::Value::Op(op, _) if op.class() == ElementClass::Comparison => None,
            tile::Value::Op(_, arguments) => arguments.iter().find_map(|argument| self.dtype_of(argument)),
        }
    }

    /// A box of a buffer.
    pub(crate) fn part(&self, region: &Region, names: &Names) -> Result<Part<'_>, String> {
        let of = self.find(&region.buffer)?;
        let Some(ranges) = &region.ranges else {
            let starts = vec![Expr::constant(0); of.told.shape.len()];
            return Ok(Part { of, starts, extents: of.told.shape.clone() });
        };
        let starts = ranges.iter().map(|range| self.start(range, names)).collect::<Result<_, _>>()?;
        Ok(Part { of, starts, extents: ranges.iter().map(|range| range.extent).collect() })
    }

    fn start(&self, range: &RegionRange, names: &Names) -> Result<Expr, String> {
        match self.index(&range.min, names)? {
            Coord::At(start) => Ok(start),
            Coord::Data(_) => Err("the region depends on data".to_string()),
        }
    }
}

/// A box of a buffer.
pub(crate) struct Part<'a> {
    pub(crate) of: &'a Known<'a>,
    starts: Vec<Expr>,
    extents: Vec<i64>,
}

impl Part<'_> {
    pub(crate) fn region(&self) -> dsl::Region {
        let ranges = self.starts.iter().zip(&self.extents);
        self.of.buffer.sub(ranges.map(|(start, extent)| at(start, *extent)).collect::<Vec<dsl::Index>>())
    }

    /// The extents that are not 1.
    pub(crate) fn moving(&self) -> Vec<i64> {
        self.extents.iter().copied().filter(|extent| *extent != 1).collect()
    }

    /// True if part of it may be out of bounds of a tensor in global memory.
    pub(crate) fn hangs_over(&self) -> bool {
        let is_outside = |((start, extent), size): ((&Expr, &i64), &i64)| {
            let range = start.range();
            range.lo < 0 || range.hi > size.saturating_sub(*extent)
        };
        let mut ranges = self.starts.iter().zip(&self.extents).zip(&self.of.told.shape);
        self.of.told.scope == Scope::Global && ranges.any(is_outside)
    }

    /// The element with these indices in the dimensions whose extent is not 1.
    pub(crate) fn element(&self, vars: &[Var]) -> Vec<Coord> {
        let mut vars = vars.iter();
        let index = |(start, extent): (&Expr, &i64)| {
            let var = if *extent == 1 { None } else { vars.next() };
            Coord::At(var.map_or_else(|| start.clone(), |var| start.clone() + Expr::var(var)))
        };
        self.starts.iter().zip(&self.extents).map(index).collect()
    }
}

/// The dtype of elements.
pub(crate) fn dtype(name: &str) -> Result<DType, String> {
    match name {
        "float64" => Ok(DType::F64),
        "float32" => Ok(DType::F32),
        "float16" => Ok(DType::F16),
        "bfloat16" => Ok(DType::BF16),
        "int32" => Ok(DType::I32),
        "int8" => Ok(DType::I8),
        "float8_e4m3fn" => Ok(DType::E4M3),
        _ => Err(format!("unknown dtype {name}")),
    }
}

/// The wider of two dtypes. A float is wider than an integer; for two different 16-bit floats, it is `f32`.
fn wider(one: DType, other: DType) -> DType {
    match (one.is_float(), other.is_float()) {
        (true, false) => one,
        (false, true) => other,
        (true, true) if one != other && one.bytes() == other.bytes() => DType::F32,
        _ if one.bytes() < other.bytes() => other,
        _ => one,
    }
}

/// A constant; integral values become integers, which adapt to any dtype.
pub(crate) fn constant(value: f64) -> Scalar {
    let is_negative_zero = value == 0.0 && value.is_sign_negative();
    if value.fract() == 0.0 && value.abs() < 1e15 && !is_negative_zero {
        Scalar::Int(value as i64)
    } else {
        Scalar::Float(value)
    }
}

fn number(coord: Coord) -> tile::Value {
    match coord {
        Coord::At(expr) => tile::Value::Index(expr),
        Coord::Data(value) => value,
    }
}

/// An operation on indices computed from variables.
fn expression(op: IndexOp, left: Expr, right: Expr) -> Result<Expr, String> {
    match op {
        IndexOp::Add => Ok(left + right),
        IndexOp::Sub => Ok(left - right),
        IndexOp::Mul => Ok(left * right),
        IndexOp::FloorDiv => Ok(left / right),
        IndexOp::FloorMod => Ok(left % right),
        IndexOp::Xor => Ok(left ^ right),
        IndexOp::BitwiseAnd => Ok(left & right),
        IndexOp::ShiftLeft => Ok(left * power_of_two(&right)?),
        IndexOp::ShiftRight => Ok(left / power_of_two(&right)?),
        IndexOp::Min | IndexOp::Max => Err(format!("unsupported: {op:?} in an index")),
    }
}

fn power_of_two(exponent: &Expr) -> Result<i64, String> {
    let known = exponent.as_const().filter(|exponent| (0..62).contains(exponent));
    known.map(|exponent| 1i64 << exponent).ok_or_else(|| format!("unsupported shift by {exponent}"))
}

/// An operation on indices, one of which depends on data.
fn data_index(op: IndexOp, left: tile::Value, right: tile::Value) -> Result<tile::Value, String> {
    match op {
        IndexOp::Add => Ok(left + right),
        IndexOp::Sub => Ok(left - right),
        IndexOp::Mul => Ok(left * right),
        IndexOp::Min => Ok(left.min(right)),
        IndexOp::Max => Ok(left.max(right)),
        _ => Err(format!("unsupported: {op:?} in an index that depends on data")),
    }
}
