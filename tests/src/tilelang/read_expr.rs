//! Reads expressions and layouts.

use serde_json::Value as Json;

use super::expr::{Index, IndexOp, Load, Value, ValueOp};
use super::json::Node;
use super::program::Layout;

pub(crate) fn index(node: &Node<'_>) -> Result<Index, String> {
    match node.json {
        Json::Number(_) => node.integer().map(Index::Integer),
        Json::String(name) => Ok(Index::Variable(name.clone())),
        Json::Array(_) => binary(node),
        Json::Object(_) => load(node).map(Index::Load),
        Json::Null | Json::Bool(_) => Err(node.wrong("expected an index")),
    }
}

fn binary(node: &Node<'_>) -> Result<Index, String> {
    let parts = node.list()?;
    let [op, left, right] = &parts[..] else { return Err(node.wrong("not `[op, a, b]`")) };
    let name = op.text()?;
    let op = IndexOp::named(&name).ok_or_else(|| op.wrong(&format!("unknown operation `{name}`")))?;
    Ok(Index::Binary(op, Box::new(index(left)?), Box::new(index(right)?)))
}

pub(crate) fn indices(node: &Node<'_>) -> Result<Vec<Index>, String> {
    node.list()?.iter().map(index).collect()
}

fn load(node: &Node<'_>) -> Result<Load, String> {
    node.only(&["load", "index"])?;
    Ok(Load { buffer: node.need("load")?.text()?, index: indices(&node.need("index")?)? })
}

pub(crate) fn value(node: &Node<'_>) -> Result<Value, String> {
    if let Some(constant) = node.get("const") {
        node.only(&["const"])?;
        return constant.number().map(Value::Const);
    }
    if let Some(variable) = node.get("var") {
        node.only(&["var"])?;
        return variable.text().map(Value::Variable);
    }
    if node.get("load").is_some() {
        return load(node).map(Value::Load);
    }
    if let Some(op) = node.get("op") {
        node.only(&["op", "args"])?;
        return operation(&op, arguments(node)?);
    }
    let Some(dtype) = node.get("cast") else { return Err(node.wrong("expected a value")) };
    node.only(&["cast", "args"])?;
    match <[Value; 1]>::try_from(arguments(node)?) {
        Ok([argument]) => Ok(Value::Cast(dtype.text()?, Box::new(argument))),
        Err(_) => Err(node.wrong("a cast takes one argument")),
    }
}

fn arguments(node: &Node<'_>) -> Result<Vec<Value>, String> {
    node.need("args")?.list()?.iter().map(value).collect()
}

fn operation(op: &Node<'_>, arguments: Vec<Value>) -> Result<Value, String> {
    let name = op.text()?;
    let known = ValueOp::named(&name).ok_or_else(|| op.wrong(&format!("unknown operation `{name}`")))?;
    if arguments.len() != known.arguments() {
        return Err(op.wrong(&format!("`{name}`: {} expected, {} given", known.arguments(), arguments.len())));
    }
    Ok(Value::Op(known, arguments))
}

/// A layout in the form used by programs and witnesses.
pub(crate) fn layout(node: &Node<'_>) -> Result<Layout, String> {
    node.only(&["shape", "replicate", "thread", "index"])?;
    Ok(Layout {
        shape: node.need("shape")?.extents()?,
        replicate: node.need("replicate")?.positive()?,
        thread: index(&node.need("thread")?)?,
        index: index(&node.need("index")?)?,
    })
}

/// A fragment's layout in the form used by the reference's answer: threads are relative to the start of a range, and a
/// slot may have several coordinates.
pub(crate) fn expected_fragment(node: &Node<'_>) -> Result<Layout, String> {
    let thread = index(&node.need("thread_expr")?)?;
    let range: Vec<i64> = match node.get("thread_range") {
        Some(range) => range.list()?.iter().map(Node::integer).collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    Ok(Layout {
        shape: node.need("shape")?.extents()?,
        replicate: node.need("replicate")?.positive()?,
        thread: match range.first() {
            None | Some(0) => thread,
            Some(first) => sum(thread, Index::Integer(*first)),
        },
        index: flat_slot(node)?,
    })
}

/// The layout of a tile in shared memory.
pub(crate) fn expected_shared(node: &Node<'_>) -> Result<Layout, String> {
    let shape = node.need("shape")?.extents()?;
    Ok(Layout { shape, replicate: 1, thread: Index::Integer(0), index: flat_slot(node)? })
}

/// The coordinates of a slot, flattened row-major.
fn flat_slot(node: &Node<'_>) -> Result<Index, String> {
    let coordinates = indices(&node.need("index_expr")?)?;
    let extents = node.need("index_shape")?.extents()?;
    if coordinates.len() != extents.len() {
        return Err(node.wrong("`index_expr` and `index_shape` differ in length"));
    }
    let mut pairs = coordinates.into_iter().zip(extents);
    let first = pairs.next().map_or(Index::Integer(0), |(coordinate, _)| coordinate);
    Ok(pairs.fold(first, |flat, (coordinate, extent)| {
        sum(Index::Binary(IndexOp::Mul, Box::new(flat), Box::new(Index::Integer(extent))), coordinate)
    }))
}

fn sum(left: Index, right: Index) -> Index {
    Index::Binary(IndexOp::Add, Box::new(left), Box::new(right))
}
