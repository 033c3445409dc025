//! Parallel nests in random programs.

use super::super::expr::{Index, Load, Value, ValueOp};
use super::super::program::{Element, LoopKind, Op, Parallel, Store};
use super::build::{Build, ROUND};
use super::layouts::layout;
use super::patterns::{LoopVar, Room, Serial, named};
use super::sketch::{Arrangement, Combine, Cond, Kind, NestSketch, Order, Pattern, Source, Target, Term};

/// The variables of parallel loops.
const VARS: [&str; 3] = ["i", "j", "l"];
/// The variable of a loop inside an iteration.
const INNER: &str = "r";
/// The name of an index.
const NAMED: &str = "t";

/// The loops of a nest.
pub(crate) struct Over {
    vars: Vec<LoopVar>,
    /// For each dimension of the nest's fragment, its loop.
    own: Vec<usize>,
}

impl Over {
    /// All elements of a shape.
    pub(crate) fn all(shape: &[i64]) -> Over {
        Over::extents(shape.to_vec(), (0..shape.len()).collect())
    }

    fn extents(extents: Vec<i64>, own: Vec<usize>) -> Over {
        let var = |(name, extent): (&str, i64)| LoopVar { name: name.to_string(), extent };
        Over { vars: VARS.into_iter().zip(extents).map(var).collect(), own }
    }

    fn of(nest: &NestSketch, shape: &[i64]) -> Over {
        let mut extents: Vec<i64> = shape.iter().zip(nest.cut).map(|(extent, cut)| (extent - cut).max(1)).collect();
        let mut own: Vec<usize> = (0..extents.len()).collect();
        if nest.is_swapped {
            extents.reverse();
            own.reverse();
        }
        match nest.extra {
            Some(extra) if extra.is_first => {
                extents.insert(0, extra.extent);
                own.iter_mut().for_each(|at| *at += 1);
            }
            Some(extra) => extents.push(extra.extent),
            None => {}
        }
        Over::extents(extents, own)
    }

    /// The variable of a dimension, and the next one.
    fn var(&self, dimension: usize, is_turned: bool) -> (&LoopVar, &LoopVar) {
        let own = self.own.get(dimension).copied().unwrap_or(dimension);
        let (at, count) = (own + usize::from(is_turned), self.vars.len());
        (&self.vars[at % count], &self.vars[(at + 1) % count])
    }

    /// Indices into a buffer of this shape.
    pub(crate) fn indices(&self, patterns: &[Pattern; 2], shape: &[i64], serial: Serial) -> Vec<Index> {
        let index = |(dimension, extent): (usize, &i64)| {
            let pattern = patterns.get(dimension).copied().unwrap_or(Pattern::SAME);
            let (var, other) = self.var(dimension, pattern.is_turned);
            pattern.index(&Room { var, other, serial, extent: *extent, may_leave: false })
        };
        shape.iter().enumerate().map(index).collect()
    }

    /// Shape and indices of a tensor in global memory with dimensions for some of the loops.
    fn tensor(&self, order: Order, patterns: &[Pattern; 2], serial: Serial) -> (Vec<i64>, Vec<Index>) {
        let count = self.vars.len();
        let loops: Vec<usize> = match order {
            Order::Same => (0..count).collect(),
            Order::Turned => (0..count).rev().collect(),
            Order::First => vec![0],
            Order::Last => vec![count - 1],
        };
        let dimension = |(dimension, at): (usize, usize)| {
            let pattern = patterns.get(dimension).copied().unwrap_or(Pattern::SAME);
            let (var, other) = (&self.vars[at], &self.vars[(at + 1) % count]);
            (var.extent, pattern.index(&Room { var, other, serial, extent: var.extent, may_leave: true }))
        };
        loops.into_iter().enumerate().map(dimension).unzip()
    }

    fn shape(&self) -> Vec<i64> {
        self.vars.iter().map(|var| var.extent).collect()
    }

    /// The loops around statements.
    pub(crate) fn parallel(&self, body: Vec<Element>) -> Op {
        Op::Parallel(self.nest(body))
    }

    fn nest(&self, body: Vec<Element>) -> Parallel {
        let vars = self.vars.iter().map(|var| var.name.clone()).collect();
        Parallel { vars, extents: self.shape(), body, loop_layout: None, coalesced_width: None }
    }
}

impl NestSketch {
    /// A plain move of all elements of a fragment, in order.
    pub(crate) fn moving(target: Target, of: usize, term: Term) -> NestSketch {
        NestSketch {
            target,
            of,
            cut: [0; 2],
            is_swapped: false,
            extra: None,
            store: [Pattern::SAME; 2],
            terms: [term; 2],
            combine: Combine::Move,
            cond: None,
            inner: 1,
            is_named: false,
            width: None,
            is_laid_out: false,
        }
    }
}

/// The destination of a nest.
struct Place {
    buffer: String,
    kind: Kind,
    index: Vec<Index>,
}

/// A value, with its dtype if it has one.
type Typed = (Value, Option<Kind>);

impl Build {
    pub(crate) fn nest(&mut self, nest: &NestSketch) {
        let base = self.known(nest.of);
        let over = Over::of(nest, &base.shape);
        let serial = Serial { inner: (nest.inner > 1).then_some(INNER), ..self.serial() };
        let mut place = match nest.target {
            Target::Fragment => {
                let index = over.indices(&nest.store, &base.shape, serial);
                Place { buffer: base.name, kind: base.kind, index }
            }
            Target::Global => {
                let order = if nest.store[0].is_turned { Order::Turned } else { Order::Same };
                let (shape, index) = over.tensor(order, &nest.store, serial);
                Place { buffer: self.param("O", base.kind.name(), &shape), kind: base.kind, index }
            }
        };
        let mut body = Vec::new();
        if nest.is_named
            && let Some(first) = place.index.first_mut()
        {
            let value = std::mem::replace(first, named(NAMED));
            body.push(Element::Let { name: NAMED.to_string(), value });
        }
        let value = self.value(nest, &place, &over, serial);
        let store = |value| Element::Store(Store { buffer: place.buffer.clone(), index: place.index.clone(), value });
        body.push(match nest.cond {
            Some(told) => {
                let otherwise = if told.has_otherwise { vec![store(Value::Const(0.0))] } else { Vec::new() };
                Element::If { cond: condition(told, &over, serial), then: vec![store(value)], otherwise }
            }
            None => store(value),
        });
        if nest.inner > 1 {
            body = vec![Element::For { kind: LoopKind::Serial, var: INNER.to_string(), extent: nest.inner, body }];
        }
        let mut parallel = Parallel { coalesced_width: nest.width, ..over.nest(body) };
        if nest.is_laid_out {
            let name = self.name("L");
            self.loop_layouts.insert(name.clone(), layout(Arrangement::InOrder(1), &parallel.extents, self.threads));
            parallel.loop_layout = Some(name);
        }
        self.ops.push(Op::Parallel(parallel));
    }

    fn value(&mut self, nest: &NestSketch, place: &Place, over: &Over, serial: Serial) -> Value {
        let (one, kind) = self.term(&nest.terms[0], place, over, serial);
        let with_two = |op, one| Value::Op(op, vec![one, Value::Const(2.0)]);
        let op = match nest.combine {
            Combine::Move => return one,
            Combine::Twice => return with_two(ValueOp::Mul, one),
            Combine::Exp if kind.is_some_and(Kind::is_float) => {
                return Value::Op(ValueOp::Exp, vec![with_two(ValueOp::Min, one)]);
            }
            Combine::Exp => return one,
            Combine::Sum => ValueOp::Add,
            Combine::Difference => ValueOp::Sub,
            Combine::Product => ValueOp::Mul,
            Combine::Greatest => ValueOp::Max,
            Combine::Choice => ValueOp::Select,
        };
        let (other, _) = self.term(&nest.terms[1], place, over, serial);
        let mut arguments = vec![one, other];
        if op == ValueOp::Select {
            let cond = Cond { is_turned: false, op: ValueOp::Lt, by: 3, by_round: false, has_otherwise: false };
            arguments.insert(0, condition(cond, over, serial));
        }
        Value::Op(op, arguments)
    }

    /// A fragment that the nest also writes is read at the index that is written, since iterations are not ordered.
    fn term(&mut self, term: &Term, place: &Place, over: &Over, serial: Serial) -> Typed {
        let (kind, order) = match term.source {
            Source::Variable => return (Value::Variable(over.var(0, term.patterns[0].is_turned).0.name.clone()), None),
            Source::Constant(value) => return (Value::Const(value as f64), None),
            Source::Global(kind, order) => (kind, order),
            Source::Fragment(number) => {
                let from = self.known(number);
                if from.kind.may_become(place.kind) {
                    let index = if from.name == place.buffer {
                        place.index.clone()
                    } else {
                        over.indices(&term.patterns, &from.shape, serial)
                    };
                    return (Value::Load(Load { buffer: from.name, index }), Some(from.kind));
                }
                (place.kind, Order::Same)
            }
        };
        let kind = if kind.may_become(place.kind) { kind } else { place.kind };
        let (shape, index) = over.tensor(order, &term.patterns, serial);
        let buffer = self.param("I", kind.name(), &shape);
        (Value::Load(Load { buffer, index }), Some(kind))
    }
}

/// A comparison of a loop variable.
fn condition(told: Cond, over: &Over, serial: Serial) -> Value {
    let variable = Value::Variable(over.var(0, told.is_turned).0.name.clone());
    let bound = match serial.round {
        Some(_) if told.by_round => Value::Variable(ROUND.to_string()),
        _ => Value::Const(told.by as f64),
    };
    Value::Op(told.op, vec![variable, bound])
}
