//! The operations of a program in order, with their enclosing loops and conditions.

use std::collections::BTreeSet;

use super::boxes::points;
use super::expr::{Index, Load, Value};
use super::program::{Element, Op, Program, Region, Store};

/// Known numbers by name. The last entry for a name is valid; `None` is a number that depends on data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Env<'a> {
    bound: Vec<(&'a str, Option<i64>)>,
}

/// An operation with its context.
pub(crate) struct Step<'a> {
    /// Its number in program order, including loops and conditions.
    pub(crate) number: usize,
    pub(crate) op: &'a Op,
    /// Enclosing block and loop variables, with their extents.
    around: Vec<(&'a str, i64)>,
    /// Enclosing conditions, with the outcome for which it is executed.
    guards: Vec<(&'a Value, bool)>,
}

impl<'a> Env<'a> {
    pub(crate) fn bind(&mut self, name: &'a str, value: Option<i64>) {
        self.bound.push((name, value));
    }

    pub(crate) fn get(&self, name: &str) -> Option<i64> {
        self.bound.iter().rfind(|(known, _)| *known == name).and_then(|(_, value)| *value)
    }

    pub(crate) fn depth(&self) -> usize {
        self.bound.len()
    }

    /// Removes all bindings above this depth.
    pub(crate) fn back_to(&mut self, depth: usize) {
        self.bound.truncate(depth);
    }

    pub(crate) fn index(&self, index: &Index) -> Option<i64> {
        index.eval(&|name| self.get(name))
    }

    /// Whether a condition holds; `None` if it depends on data.
    pub(crate) fn holds(&self, cond: &Value) -> Option<bool> {
        cond.eval(&|name| self.get(name)).map(|value| value != 0.0)
    }
}

impl<'a> Step<'a> {
    /// The values of enclosing variables for which the operation is executed. Variables that do not affect it are
    /// omitted.
    pub(crate) fn settings(&self) -> Vec<Env<'a>> {
        let mut mentioned = BTreeSet::new();
        mention_op(self.op, &mut mentioned);
        for &(cond, _) in &self.guards {
            mention_value(cond, &mut mentioned);
        }
        let used: Vec<(&'a str, i64)> =
            self.around.iter().copied().filter(|(name, _)| mentioned.contains(name)).collect();
        let extents: Vec<i64> = used.iter().map(|(_, extent)| *extent).collect();
        let setting = |point: Vec<i64>| Env {
            bound: used.iter().zip(point).map(|((name, _), value)| (*name, Some(value))).collect(),
        };
        let executed = |env: &Env<'a>| {
            self.guards.iter().all(|(cond, outcome)| env.holds(cond).is_none_or(|holds| holds == *outcome))
        };
        points(&extents).map(setting).filter(executed).collect()
    }
}

/// All operations of a program.
pub(crate) fn steps(program: &Program) -> Vec<Step<'_>> {
    let grid = ["bx", "by", "bz"].into_iter().zip(program.grid.iter().copied()).collect();
    let mut walk = Walk { steps: Vec::new(), around: grid, guards: Vec::new() };
    walk.ops(&program.body);
    walk.steps
}

struct Walk<'a> {
    steps: Vec<Step<'a>>,
    around: Vec<(&'a str, i64)>,
    guards: Vec<(&'a Value, bool)>,
}

impl<'a> Walk<'a> {
    fn ops(&mut self, ops: &'a [Op]) {
        for op in ops {
            let (number, around, guards) = (self.steps.len(), self.around.clone(), self.guards.clone());
            self.steps.push(Step { number, op, around, guards });
            match op {
                Op::Loop(serial) => {
                    self.around.push((serial.var.as_str(), serial.extent));
                    self.ops(&serial.body);
                    self.around.pop();
                }
                Op::If { cond, then, otherwise } => {
                    self.branch(cond, true, then);
                    self.branch(cond, false, otherwise);
                }
                _ => {}
            }
        }
    }

    fn branch(&mut self, cond: &'a Value, outcome: bool, ops: &'a [Op]) {
        self.guards.push((cond, outcome));
        self.ops(ops);
        self.guards.pop();
    }
}

/// The variables that an operation uses; for loops and conditions, only those of their heads.
fn mention_op<'a>(op: &'a Op, names: &mut BTreeSet<&'a str>) {
    match op {
        Op::Parallel(nest) => mention_elements(&nest.body, names),
        Op::Scalar(body) => mention_elements(body, names),
        Op::If { cond, .. } => mention_value(cond, names),
        Op::Copy { src, dst, .. } | Op::AtomicAdd { dst, src } => {
            mention_region(src, names);
            mention_region(dst, names);
        }
        Op::Fill { dst, .. } => mention_region(dst, names),
        Op::Loop(_) | Op::Reduce(_) | Op::Gemm(_) => {}
    }
}

fn mention_elements<'a>(body: &'a [Element], names: &mut BTreeSet<&'a str>) {
    for element in body {
        match element {
            Element::Store(store) | Element::AtomicAdd(store) => mention_store(store, names),
            Element::Let { value, .. } => mention_index(value, names),
            Element::If { cond, then, otherwise } => {
                mention_value(cond, names);
                mention_elements(then, names);
                mention_elements(otherwise, names);
            }
            Element::For { body, .. } => mention_elements(body, names),
        }
    }
}

fn mention_store<'a>(store: &'a Store, names: &mut BTreeSet<&'a str>) {
    store.index.iter().for_each(|index| mention_index(index, names));
    mention_value(&store.value, names);
}

fn mention_region<'a>(region: &'a Region, names: &mut BTreeSet<&'a str>) {
    region.ranges.iter().flatten().for_each(|range| mention_index(&range.min, names));
}

fn mention_value<'a>(value: &'a Value, names: &mut BTreeSet<&'a str>) {
    match value {
        Value::Const(_) => {}
        Value::Variable(name) => {
            names.insert(name);
        }
        Value::Load(load) => mention_load(load, names),
        Value::Op(_, arguments) => arguments.iter().for_each(|argument| mention_value(argument, names)),
        Value::Cast(_, argument) => mention_value(argument, names),
    }
}

fn mention_index<'a>(index: &'a Index, names: &mut BTreeSet<&'a str>) {
    match index {
        Index::Integer(_) => {}
        Index::Variable(name) => {
            names.insert(name);
        }
        Index::Binary(_, left, right) => {
            mention_index(left, names);
            mention_index(right, names);
        }
        Index::Load(load) => mention_load(load, names),
    }
}

fn mention_load<'a>(load: &'a Load, names: &mut BTreeSet<&'a str>) {
    load.index.iter().for_each(|index| mention_index(index, names));
}
