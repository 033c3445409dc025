//! Cases for swizzles and swizzled layouts.

use std::ops::Range;

use serde_json::Value;
use tilewright::layout::axis::M;
use tilewright::layout::{ComposeLayout, Layout, LayoutError, SwizzleLayout};

use super::layouts::fnv;
use super::table::{parsed, parsed_layout, structured};
use super::{Agreement, integers, same};

type Checked = Result<Agreement, String>;

fn swizzle(value: &Value) -> Result<SwizzleLayout, LayoutError> {
    let number = |name: &str| value[name].as_i64().unwrap_or(-1);
    SwizzleLayout::new(number("M"), number("B"), number("S"), value["inner"].as_bool().unwrap_or(true))
}

fn bits_of(dtype: &str) -> Result<i64, String> {
    match dtype {
        "float8_e4m3fn" => Ok(8),
        "float16" | "bfloat16" => Ok(16),
        "float32" => Ok(32),
        "float64" => Ok(64),
        other => Err(format!("unknown dtype {other}")),
    }
}

/// The mode's parameters, addresses, banks and lines over one period.
pub(crate) fn mode(case: &Value) -> Checked {
    let input = &case["in"];
    let bits = bits_of(input["dtype"].as_str().unwrap_or(""))?;
    let listed = swizzle(input).map_err(|e| e.to_string())?;
    let mode: tilewright::layout::hardware::SwizzleMode =
        input["mode"].as_str().unwrap_or("").parse().map_err(|e: LayoutError| e.to_string())?;
    same("parameters", mode.swizzle(bits).map_err(|e| e.to_string())?, listed)?;
    let size = case["out"]["size"].as_i64().ok_or("no size")?;
    let addresses: Vec<i64> = (0..size).map(|x| listed.apply(x)).collect();
    same("addresses", addresses.clone(), integers(&case["out"]["addr"])?)?;
    let byte = |address: &i64| (address * bits / 8) as u64;
    let bank = |address: &i64| tilewright::layout::banks::bank_of(byte(address)) as i64;
    let line = |address: &i64| tilewright::layout::banks::line_of(byte(address)) as i64;
    same("banks", addresses.iter().map(bank).collect(), integers(&case["out"]["bank"])?)?;
    same("lines", addresses.iter().map(line).collect(), integers(&case["out"]["line"])?)?;
    Ok(Agreement::Same)
}

pub(crate) fn raw(case: &Value) -> Checked {
    match swizzle(&case["in"]) {
        Err(_) if case.get("reject").is_some() => Ok(Agreement::Same),
        Err(e) => Err(e.to_string()),
        Ok(swizzle) => {
            let n = case["out"]["n"].as_i64().ok_or("no n")?;
            let addresses: Vec<i64> = (0..n).map(|x| swizzle.apply(x)).collect();
            if case["out"]["addr"].is_array() {
                same("addresses", addresses.clone(), integers(&case["out"]["addr"])?)?;
            }
            let hash = fnv(addresses.iter().map(|a| vec![*a]));
            same("hash", format!("{hash:016x}"), case["out"]["fnv"].as_str().unwrap_or("").to_string())?;
            Ok(Agreement::Same)
        }
    }
}

fn compose_of(value: &Value) -> Result<ComposeLayout, String> {
    match parsed_layout(value)? {
        Layout::Compose(compose) => Ok(compose),
        other => Err(format!("{other} has no swizzle")),
    }
}

/// A recorded swizzled layout, from its parts.
fn recorded(value: &Value) -> Result<Layout, String> {
    let tile = structured(value)?;
    let Some(parts) = value["swizzle"].as_array() else { return Ok(Layout::Tile(tile)) };
    let number = |i: usize| parts[i].as_i64().unwrap_or(-1);
    let swizzle = SwizzleLayout::new(number(0), number(1), number(2), parts[3].as_bool().unwrap_or(true));
    let compose = swizzle.and_then(|swizzle| ComposeLayout::new(swizzle, tile));
    compose.map(Layout::Compose).map_err(|e| e.to_string())
}

/// The address of every element, without replicas, according to the definition.
fn addresses(layout: &Layout) -> Result<Vec<i64>, String> {
    let tile = layout.tile().map_err(|e| e.to_string())?;
    let plain = tile.positions(&M);
    Ok(match layout {
        Layout::Compose(compose) => plain.into_iter().map(|p| compose.swizzle().apply(p)).collect(),
        Layout::Tile(_) | Layout::Table(_) => plain,
    })
}

pub(crate) fn apply(case: &Value) -> Checked {
    let parsed = parsed_layout(&case["in"]["layout"]);
    if case.get("reject").is_some() {
        return parsed.map_or(Ok(Agreement::Same), |layout| Err(format!("must be refused, but is {layout}")));
    }
    let (layout, out) = (parsed?, &case["out"]);
    let tile = layout.tile().map_err(|e| e.to_string())?;
    same("size", Some(layout.size()), out["size"].as_i64())?;
    same("span of the tile", Some(tile.span()), out["span"].as_i64())?;
    same("is_swizzle", Some(tile.is_trivial()), out["is_swizzle"].as_bool())?;
    let expected = integers(&out["addr"])?;
    same("addresses", addresses(&layout)?, expected.clone())?;
    for (flat, address) in expected.iter().enumerate() {
        let places = layout.apply(flat as i64).map_err(|e| e.to_string())?;
        same(&format!("element {flat} is at {address}"), places.iter().any(|place| place[&M] == *address), true)?;
    }
    if let Layout::Compose(compose) = &layout {
        same("canonical form", compose.canonicalize().same_places(&layout), Ok(true))?;
    }
    Ok(Agreement::Same)
}

fn judge(case: &Value, got: Result<Layout, LayoutError>) -> Checked {
    match got {
        Err(_) if case.get("reject").is_some() => Ok(Agreement::Same),
        Err(e) => Err(e.to_string()),
        Ok(layout) if case.get("reject").is_some() => Err(format!("must be refused, but is {layout}")),
        Ok(layout) => {
            let expected = recorded(&case["out"]["result"])?;
            same("addresses", addresses(&layout)?, addresses(&expected)?)?;
            Ok(Agreement::Same)
        }
    }
}

pub(crate) fn pack(case: &Value) -> Checked {
    let count = case["in"]["num"].as_i64().ok_or("no count")?;
    judge(case, compose_of(&case["in"]["layout"])?.pack(count).map(Layout::Compose))
}

pub(crate) fn unpack(case: &Value) -> Checked {
    let count = case["in"]["num"].as_i64().ok_or("no count")?;
    judge(case, compose_of(&case["in"]["layout"])?.unpack(count).map(Layout::Compose))
}

pub(crate) fn slice(case: &Value) -> Checked {
    let layout = parsed_layout(&case["in"]["layout"])?;
    let region = case["in"]["region"].as_array().into_iter().flatten();
    let region: Vec<Range<i64>> = region.map(|pair| integers(pair).map(|p| p[0]..p[1])).collect::<Result<_, _>>()?;
    judge(case, layout.slice(&integers(&case["in"]["shape"])?, &region))
}

pub(crate) fn tile_to(case: &Value) -> Checked {
    let (to, from) = (integers(&case["in"]["to_shape"])?, integers(&case["in"]["current_shape"])?);
    judge(case, compose_of(&case["in"]["layout"])?.tile_to(&from, &to).map(Layout::Compose))
}

pub(crate) fn is_tile_inner(case: &Value) -> Checked {
    let (inner, tiled) = (compose_of(&case["in"]["layout"])?, compose_of(&case["in"]["tiled"])?);
    let (tiled_shape, shape) = (integers(&case["in"]["tiled_shape"])?, integers(&case["in"]["inner_shape"])?);
    let got = inner.is_tile_inner(&shape, &tiled, &tiled_shape).map_err(|e| e.to_string())?;
    same("found", got.is_none(), case["out"]["result"].is_null())?;
    Ok(Agreement::Same)
}

pub(crate) fn is_tile_outer(case: &Value) -> Checked {
    let (outer, tiled) = (parsed(&case["in"]["layout"])?, compose_of(&case["in"]["tiled"])?);
    let (tiled_shape, shape) = (integers(&case["in"]["tiled_shape"])?, integers(&case["in"]["outer_shape"])?);
    let got = tiled.inner_tile(&tiled_shape, &outer, &shape).map_err(|e| e.to_string())?;
    judge(case, Ok(Layout::Compose(got.ok_or("no inner tile was found")?)))
}

pub(crate) fn direct_sum(case: &Value) -> Checked {
    let (right, left) = (compose_of(&case["in"]["right"])?, parsed(&case["in"]["left"])?);
    let (left_shape, right_shape) = (integers(&case["in"]["left_shape"])?, integers(&case["in"]["right_shape"])?);
    judge(case, right.direct_sum(&right_shape, &left, &left_shape).map(Layout::Compose))
}
