//! Parallel nests in random programs.

use super::super::expr::{Index, Load, Value, ValueOp};
use super::super::program::{Element, LoopKind, Op, Parallel, Store};
use super::build::{Build, ROUND};
use super::layouts::layout;
use super::over::Over;
use super::patterns::{Serial, named};
use super::sketch::{Arrangement, Combine, Cond, Kind, NestSketch, Order, Pattern, Source, Target, Term};

/// The variable of a loop inside of an iteration.
const INNER: &str = "r";
/// The name of an index.
const NAMED: &str = "t";

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
