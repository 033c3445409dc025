//! Builds programs from sketches.

use std::collections::BTreeMap;
use std::mem::{replace, take};

use super::super::boxes::size;
use super::super::expr::{Load, Value, ValueOp};
use super::super::program::{Buffer, Element, Layout, Loop, LoopKind, Op, Program, Reduce, Region, Scope, Store};
use super::layouts::layout;
use super::over::Over;
use super::patterns::Serial;
use super::sketch::{
    Around, FragmentSketch, Kind, NestSketch, Order, Pattern, Sketch, Source, Start, Step, Target, Term,
};

/// The variable of the enclosing loop.
pub(crate) const ROUND: &str = "k";

/// The program of a sketch.
pub(crate) fn program(sketch: &Sketch) -> Program {
    let mut build = Build::new(sketch.threads);
    for fragment in &sketch.fragments {
        build.fragment(fragment);
    }
    let own = build.known.clone();
    build.steps(sketch);
    for (known, fragment) in own.iter().zip(&sketch.fragments) {
        if fragment.is_stored {
            build.store(known);
        }
    }
    let mut layouts = BTreeMap::new();
    if let Some((of, arrangement)) = sketch.laid_out {
        let known = &own[of % own.len()];
        layouts.insert(known.name.clone(), layout(arrangement, &known.shape, sketch.threads));
    }
    build.before.append(&mut build.ops);
    Program {
        threads: sketch.threads,
        grid: vec![1],
        params: build.params,
        buffers: build.buffers,
        layouts,
        loop_layouts: build.loop_layouts,
        body: build.before,
    }
}

/// A fragment that steps can use.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) shape: Vec<i64>,
    pub(crate) kind: Kind,
}

/// A program that is being built.
pub(crate) struct Build {
    pub(crate) threads: i64,
    params: Vec<Buffer>,
    buffers: Vec<Buffer>,
    /// The fragments that are not views.
    known: Vec<Known>,
    /// The operations at the start of the program.
    before: Vec<Op>,
    pub(crate) ops: Vec<Op>,
    pub(crate) loop_layouts: BTreeMap<String, Layout>,
    /// The extent of the enclosing loop, inside a loop.
    pub(crate) rounds: Option<i64>,
    count: usize,
}

impl Build {
    fn new(threads: i64) -> Build {
        Build {
            threads,
            params: Vec::new(),
            buffers: Vec::new(),
            known: Vec::new(),
            before: Vec::new(),
            ops: Vec::new(),
            loop_layouts: BTreeMap::new(),
            rounds: None,
            count: 0,
        }
    }

    /// A unique name.
    pub(crate) fn name(&mut self, letter: &str) -> String {
        self.count += 1;
        format!("{letter}{}", self.count)
    }

    /// A new parameter.
    pub(crate) fn param(&mut self, letter: &str, dtype: &str, shape: &[i64]) -> String {
        let name = self.name(letter);
        self.params.push(buffer(&name, Scope::Global, dtype, shape));
        name
    }

    /// Selects one of the fragments.
    pub(crate) fn known(&self, number: usize) -> Known {
        self.known[number % self.known.len()].clone()
    }

    pub(crate) fn serial(&self) -> Serial {
        Serial { inner: None, round: self.rounds.map(|_| ROUND) }
    }

    fn declare(&mut self, name: String, kind: Kind, shape: Vec<i64>) -> Known {
        self.buffers.push(buffer(&name, Scope::Fragment, kind.name(), &shape));
        self.known.push(Known { name, shape, kind });
        self.known(self.known.len() - 1)
    }

    fn fragment(&mut self, fragment: &FragmentSketch) {
        let number = self.known.len();
        let name = char::from(b'a' + number as u8).to_string();
        let known = self.declare(name, fragment.kind, fragment.shape.clone());
        match fragment.start {
            Start::Fill => self.ops.push(Op::Fill { dst: whole(&known.name), value: 1.0 }),
            Start::Load => {
                let param = self.param("I", known.kind.name(), &known.shape);
                self.ops.push(copy(whole(&known.name), whole(&param)));
            }
            Start::Turned => {
                let patterns = [Pattern::SAME; 2];
                let term = Term { source: Source::Global(known.kind, Order::Turned), patterns };
                self.nest(&NestSketch::moving(Target::Fragment, number, term));
            }
            Start::Staged => {
                let param = self.param("I", known.kind.name(), &known.shape);
                let shared = self.shared(&known);
                self.ops.push(copy(whole(&shared), whole(&param)));
                self.ops.push(copy(whole(&known.name), whole(&shared)));
            }
        }
    }

    fn store(&mut self, known: &Known) {
        let param = self.param("O", known.kind.name(), &known.shape);
        self.ops.push(copy(whole(&param), whole(&known.name)));
    }

    fn shared(&mut self, of: &Known) -> String {
        let name = self.name("S");
        self.buffers.push(buffer(&name, Scope::Shared, of.kind.name(), &of.shape));
        name
    }

    fn steps(&mut self, sketch: &Sketch) {
        let count = sketch.steps.len();
        let (first, last) = match &sketch.around {
            Some(around) => (around.first.min(count), (around.first + around.steps).min(count)),
            None => (count, count),
        };
        sketch.steps[..first].iter().for_each(|step| self.step(step));
        if let Some(around) = sketch.around.filter(|_| first < last) {
            self.repeat(&around, &sketch.steps[first..last]);
        }
        sketch.steps[last..].iter().for_each(|step| self.step(step));
    }

    fn repeat(&mut self, around: &Around, steps: &[Step]) {
        let outside = take(&mut self.ops);
        self.rounds = Some(around.extent);
        steps.iter().for_each(|step| self.step(step));
        self.rounds = None;
        let mut body = replace(&mut self.ops, outside);
        if let (Some(from), Some(last)) = (around.from, body.last_mut()) {
            let cond = Value::Op(ValueOp::Ge, vec![Value::Variable(ROUND.to_string()), Value::Const(from as f64)]);
            let op = replace(last, Op::Scalar(Vec::new()));
            *last = Op::If { cond, then: vec![op], otherwise: Vec::new() };
        }
        let kind = if around.is_unrolled { LoopKind::Unroll } else { LoopKind::Serial };
        let (var, extent) = (ROUND.to_string(), around.extent);
        self.ops.push(Op::Loop(Loop { kind, var, extent, num_stages: None, body }));
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Nest(nest) => self.nest(nest),
            Step::Copy(told) => self.copy(told),
            Step::Fill { of, part, value } => {
                let known = self.known(*of);
                let dst = self.part(&known, part, false).region(&known.name);
                self.ops.push(Op::Fill { dst, value: *value as f64 });
            }
            Step::Reduce { src, dim, kind, clear, keeps } => {
                let src = self.known(*src);
                let dim = dim % src.shape.len();
                let mut shape = src.shape.clone();
                if *keeps || shape.len() == 1 {
                    shape[dim] = 1;
                } else {
                    shape.remove(dim);
                }
                let name = self.name("s");
                let dst = self.declare(name, src.kind, shape).name;
                if !clear {
                    self.before.push(Op::Fill { dst: whole(&dst), value: 0.0 });
                }
                self.ops.push(Op::Reduce(Reduce { kind: *kind, src: src.name, dst, dim, clear: *clear }));
            }
            Step::Stage { of, back } => self.stage(&self.known(*of), back),
            Step::View { of, halves, is_flat, writes } => self.view(&self.known(*of), *halves, *is_flat, *writes),
        }
    }

    fn stage(&mut self, of: &Known, back: &[Pattern; 2]) {
        let shared = self.shared(of);
        self.ops.push(copy(whole(&shared), whole(&of.name)));
        let over = Over::all(&of.shape);
        let index = over.indices(back, &of.shape, self.serial());
        let value = Value::Load(Load { buffer: shared, index });
        let index = over.indices(&[Pattern::SAME; 2], &of.shape, self.serial());
        let store = Store { buffer: of.name.clone(), index, value };
        self.ops.push(over.parallel(vec![Element::Store(store)]));
    }

    fn view(&mut self, of: &Known, halves: bool, is_flat: bool, writes: bool) {
        let (dtype, times) = match (of.kind, halves) {
            (Kind::F32 | Kind::I32, true) => ("float16", 2),
            (Kind::F16, true) => ("int8", 2),
            (Kind::F32, false) => ("int32", 1),
            (Kind::I32, false) => ("float32", 1),
            (Kind::F16, false) => ("bfloat16", 1),
            (Kind::I8, _) => ("float8_e4m3fn", 1),
        };
        let mut shape = if is_flat { vec![size(&of.shape)] } else { of.shape.clone() };
        if let Some(last) = shape.last_mut() {
            *last *= times;
        }
        let name = self.name("v");
        let alias_of = Some(of.name.clone());
        self.buffers.push(Buffer { alias_of, ..buffer(&name, Scope::Fragment, dtype, &shape) });
        let param = self.param(if writes { "I" } else { "O" }, dtype, &shape);
        let (dst, src) = if writes { (name, param) } else { (param, name) };
        self.ops.push(copy(whole(&dst), whole(&src)));
    }
}

fn buffer(name: &str, scope: Scope, dtype: &str, shape: &[i64]) -> Buffer {
    Buffer { name: name.to_string(), scope, dtype: dtype.to_string(), shape: shape.to_vec(), alias_of: None }
}

pub(crate) fn whole(name: &str) -> Region {
    Region { buffer: name.to_string(), ranges: None }
}

pub(crate) fn copy(dst: Region, src: Region) -> Op {
    Op::Copy { src, dst, coalesced_width: None }
}
