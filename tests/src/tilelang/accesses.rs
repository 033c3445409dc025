//! The elements that statements read and write.

use super::expr::{Index, Load, Value};
use super::program::{Element, Store};
use super::walk::Env;

/// An access to one element.
pub(crate) struct Access<'a> {
    pub(crate) kind: Kind,
    pub(crate) buffer: &'a str,
    /// One index per dimension; `None` if it depends on data.
    pub(crate) index: Vec<Option<i64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Load,
    Store,
    AtomicAdd,
}

/// Adds the accesses of statements. If a condition depends on data, both branches count.
pub(crate) fn accesses<'a>(body: &'a [Element], env: &mut Env<'a>, found: &mut Vec<Access<'a>>) {
    let depth = env.depth();
    for element in body {
        match element {
            Element::Store(store) => stored(store, Kind::Store, env, found),
            Element::AtomicAdd(store) => stored(store, Kind::AtomicAdd, env, found),
            Element::Let { name, value } => {
                index_loads(value, env, found);
                let value = env.index(value);
                env.bind(name, value);
            }
            Element::If { cond, then, otherwise } => {
                value_loads(cond, env, found);
                let holds = env.holds(cond);
                if holds != Some(false) {
                    accesses(then, env, found);
                }
                if holds != Some(true) {
                    accesses(otherwise, env, found);
                }
            }
            Element::For { var, extent, body, .. } => {
                for value in 0..*extent {
                    let depth = env.depth();
                    env.bind(var, Some(value));
                    accesses(body, env, found);
                    env.back_to(depth);
                }
            }
        }
    }
    env.back_to(depth);
}

fn stored<'a>(store: &'a Store, kind: Kind, env: &Env<'a>, found: &mut Vec<Access<'a>>) {
    value_loads(&store.value, env, found);
    found_at(kind, &store.buffer, &store.index, env, found);
}

/// Adds the elements that a value reads.
pub(crate) fn value_loads<'a>(value: &'a Value, env: &Env<'a>, found: &mut Vec<Access<'a>>) {
    match value {
        Value::Const(_) | Value::Variable(_) => {}
        Value::Load(load) => loaded(load, env, found),
        Value::Op(_, arguments) => arguments.iter().for_each(|argument| value_loads(argument, env, found)),
        Value::Cast(_, argument) => value_loads(argument, env, found),
    }
}

/// Adds the elements that an index reads.
pub(crate) fn index_loads<'a>(index: &'a Index, env: &Env<'a>, found: &mut Vec<Access<'a>>) {
    match index {
        Index::Integer(_) | Index::Variable(_) => {}
        Index::Binary(_, left, right) => {
            index_loads(left, env, found);
            index_loads(right, env, found);
        }
        Index::Load(load) => loaded(load, env, found),
    }
}

fn loaded<'a>(load: &'a Load, env: &Env<'a>, found: &mut Vec<Access<'a>>) {
    found_at(Kind::Load, &load.buffer, &load.index, env, found);
}

fn found_at<'a>(kind: Kind, buffer: &'a str, index: &'a [Index], env: &Env<'a>, found: &mut Vec<Access<'a>>) {
    index.iter().for_each(|index| index_loads(index, env, found));
    found.push(Access { kind, buffer, index: index.iter().map(|index| env.index(index)).collect() });
}
