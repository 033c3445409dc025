//! Reads operations on tiles and statements on elements.

use super::json::Node;
use super::program::{
    Element, Gemm, Loop, LoopKind, Op, Parallel, Reduce, ReduceKind, Region, RegionRange, Store, WarpPolicy,
};
use super::read_expr::{index, indices, value};

pub(crate) fn ops(node: &Node<'_>) -> Result<Vec<Op>, String> {
    node.list()?.iter().map(op).collect()
}

fn op(node: &Node<'_>) -> Result<Op, String> {
    let name = node.need("op")?.text()?;
    match name.as_str() {
        "parallel" => parallel(node),
        "loop" => serial(node),
        "if" => {
            node.only(&["op", "cond", "then", "else"])?;
            let (cond, then) = (value(&node.need("cond")?)?, ops(&node.need("then")?)?);
            Ok(Op::If { cond, then, otherwise: node.get("else").map_or(Ok(Vec::new()), |node| ops(&node))? })
        }
        "scalar" => {
            node.only(&["op", "body"])?;
            elements(&node.need("body")?).map(Op::Scalar)
        }
        "copy" => {
            node.only(&["op", "src", "dst", "coalesced_width"])?;
            let (src, dst) = (region(&node.need("src")?)?, region(&node.need("dst")?)?);
            Ok(Op::Copy { src, dst, coalesced_width: maybe_positive(node, "coalesced_width")? })
        }
        "fill" => {
            node.only(&["op", "dst", "value"])?;
            Ok(Op::Fill { dst: region(&node.need("dst")?)?, value: node.need("value")?.number()? })
        }
        "reduce" => reduce(node),
        "gemm" => gemm(node),
        "atomic_add" => {
            node.only(&["op", "dst", "src"])?;
            Ok(Op::AtomicAdd { dst: region(&node.need("dst")?)?, src: region(&node.need("src")?)? })
        }
        _ => Err(node.wrong(&format!("unknown op `{name}`"))),
    }
}

fn parallel(node: &Node<'_>) -> Result<Op, String> {
    node.only(&["op", "vars", "extents", "body", "loop_layout", "coalesced_width"])?;
    let (vars, extents) = (node.need("vars")?.texts()?, node.need("extents")?.extents()?);
    if vars.len() != extents.len() {
        return Err(node.wrong("`vars` and `extents` differ in length"));
    }
    Ok(Op::Parallel(Parallel {
        vars,
        extents,
        body: elements(&node.need("body")?)?,
        loop_layout: node.get("loop_layout").map(|name| name.text()).transpose()?,
        coalesced_width: maybe_positive(node, "coalesced_width")?,
    }))
}

fn serial(node: &Node<'_>) -> Result<Op, String> {
    node.only(&["op", "kind", "var", "extent", "num_stages", "body"])?;
    Ok(Op::Loop(Loop {
        kind: loop_kind(node)?,
        var: node.need("var")?.text()?,
        extent: node.need("extent")?.positive()?,
        num_stages: maybe_positive(node, "num_stages")?,
        body: ops(&node.need("body")?)?,
    }))
}

fn loop_kind(node: &Node<'_>) -> Result<LoopKind, String> {
    let kind = node.need("kind")?;
    match kind.text()?.as_str() {
        "serial" => Ok(LoopKind::Serial),
        "unroll" => Ok(LoopKind::Unroll),
        "pipelined" => Ok(LoopKind::Pipelined),
        _ => Err(kind.wrong("unknown kind of loop")),
    }
}

fn reduce(node: &Node<'_>) -> Result<Op, String> {
    node.only(&["op", "kind", "src", "dst", "dim", "clear"])?;
    let (kind, dim) = (node.need("kind")?, node.need("dim")?);
    let kind = match kind.text()?.as_str() {
        "sum" => ReduceKind::Sum,
        "max" => ReduceKind::Max,
        "min" => ReduceKind::Min,
        "absmax" => ReduceKind::AbsMax,
        "abssum" => ReduceKind::AbsSum,
        _ => return Err(kind.wrong("unknown kind of reduction")),
    };
    Ok(Op::Reduce(Reduce {
        kind,
        src: node.need("src")?.text()?,
        dst: node.need("dst")?.text()?,
        dim: usize::try_from(dim.integer()?).map_err(|_| dim.wrong("invalid dimension"))?,
        clear: node.need("clear")?.flag()?,
    }))
}

fn gemm(node: &Node<'_>) -> Result<Op, String> {
    node.only(&["op", "a", "b", "c", "transpose_a", "transpose_b", "policy", "clear_accum"])?;
    let policy = node.need("policy")?;
    let policy = match policy.text()?.as_str() {
        "square" => WarpPolicy::Square,
        "full_row" => WarpPolicy::FullRow,
        "full_col" => WarpPolicy::FullCol,
        _ => return Err(policy.wrong("unknown policy")),
    };
    Ok(Op::Gemm(Gemm {
        a: node.need("a")?.text()?,
        b: node.need("b")?.text()?,
        c: node.need("c")?.text()?,
        transpose_a: node.need("transpose_a")?.flag()?,
        transpose_b: node.need("transpose_b")?.flag()?,
        policy,
        clear_accum: node.need("clear_accum")?.flag()?,
    }))
}

fn region(node: &Node<'_>) -> Result<Region, String> {
    node.only(&["buffer", "region"])?;
    let ranges = node.get("region").map(|node| ranges(&node)).transpose()?;
    Ok(Region { buffer: node.need("buffer")?.text()?, ranges })
}

fn ranges(node: &Node<'_>) -> Result<Vec<RegionRange>, String> {
    node.list()?.iter().map(range).collect()
}

fn range(node: &Node<'_>) -> Result<RegionRange, String> {
    node.only(&["min", "extent", "point"])?;
    let extent = node.need("extent")?;
    let point = node.get("point").map_or(Ok(false), |point| point.flag())?;
    if point && extent.integer()? != 1 {
        return Err(extent.wrong("the extent of a point must be 1"));
    }
    Ok(RegionRange { min: index(&node.need("min")?)?, extent: extent.positive()?, point })
}

fn elements(node: &Node<'_>) -> Result<Vec<Element>, String> {
    node.list()?.iter().map(element).collect()
}

fn element(node: &Node<'_>) -> Result<Element, String> {
    let name = node.need("stmt")?.text()?;
    match name.as_str() {
        "store" => store(node).map(Element::Store),
        "atomic_add" => store(node).map(Element::AtomicAdd),
        "let" => {
            node.only(&["stmt", "name", "value"])?;
            Ok(Element::Let { name: node.need("name")?.text()?, value: index(&node.need("value")?)? })
        }
        "if" => {
            node.only(&["stmt", "cond", "then", "else"])?;
            let (cond, then) = (value(&node.need("cond")?)?, elements(&node.need("then")?)?);
            let otherwise = node.get("else").map_or(Ok(Vec::new()), |node| elements(&node))?;
            Ok(Element::If { cond, then, otherwise })
        }
        "for" => {
            node.only(&["stmt", "kind", "var", "extent", "body"])?;
            let (var, extent) = (node.need("var")?.text()?, node.need("extent")?.positive()?);
            Ok(Element::For { kind: loop_kind(node)?, var, extent, body: elements(&node.need("body")?)? })
        }
        _ => Err(node.wrong(&format!("unknown statement `{name}`"))),
    }
}

fn store(node: &Node<'_>) -> Result<Store, String> {
    node.only(&["stmt", "buffer", "index", "value"])?;
    Ok(Store {
        buffer: node.need("buffer")?.text()?,
        index: indices(&node.need("index")?)?,
        value: value(&node.need("value")?)?,
    })
}

fn maybe_positive(node: &Node<'_>, key: &str) -> Result<Option<i64>, String> {
    node.get(key).map(|node| node.positive()).transpose()
}
