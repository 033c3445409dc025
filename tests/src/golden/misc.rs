//! Cases for rearranging, recasting, axes and scopes.

use serde_json::Value;
use tilewright::layout::axis::{AxisKind, HARDWARE, Scope};
use tilewright::layout::{LayoutError, TileLayout};

use super::table::{parsed, same_meaning, structured};
use super::{Agreement, integers, is_quirk, same};

type Checked = Result<Agreement, String>;

/// Compares the result with the recorded layout: same places, same extents.
fn judge(case: &Value, got: Result<TileLayout, LayoutError>) -> Checked {
    let right = &case["right"];
    let expected = if right.is_object() { right } else { &case["out"]["result"] };
    let must_fail = right.get("error").is_some() || (case.get("reject").is_some() && !right.is_object());
    match got {
        Err(_) if must_fail => Ok(Agreement::Same),
        Ok(layout) if must_fail => Err(format!("must be refused, but is {layout}")),
        Err(e) => Err(e.to_string()),
        Ok(layout) => {
            let expected = structured(expected)?;
            let extents = |l: &TileLayout| l.shard().iter().map(|iter| iter.extent).collect::<Vec<_>>();
            same("extents", extents(&layout), extents(&expected))?;
            same("meaning", same_meaning(&layout, &expected), true)?;
            Ok(Agreement::Same)
        }
    }
}

fn indices(value: &Value) -> Result<Vec<usize>, String> {
    integers(value)?.into_iter().map(|i| usize::try_from(i).map_err(|e| e.to_string())).collect()
}

pub(crate) fn permute_dims(case: &Value) -> Checked {
    let layout = parsed(&case["in"]["layout"])?;
    judge(case, layout.permute_dims(&indices(&case["in"]["perm"])?))
}

pub(crate) fn permute_by_groups(case: &Value) -> Checked {
    let layout = parsed(&case["in"]["layout"])?;
    judge(case, layout.permute_groups(&indices(&case["in"]["seps"])?, &indices(&case["in"]["perm"])?))
}

/// `num`, or the only element of `args`.
fn count(case: &Value) -> Result<i64, String> {
    case["in"]["num"].as_i64().or_else(|| case["in"]["args"][0].as_i64()).ok_or_else(|| "no count".to_string())
}

pub(crate) fn pack(case: &Value) -> Checked {
    judge(case, parsed(&case["in"]["layout"])?.pack(count(case)?))
}

pub(crate) fn unpack(case: &Value) -> Checked {
    judge(case, parsed(&case["in"]["layout"])?.unpack(count(case)?))
}

/// A negative position counts from the end: -1 is after the last iter.
pub(crate) fn broadcast(case: &Value) -> Checked {
    let layout = parsed(&case["in"]["layout"])?;
    let given = case["in"]["position"].as_i64().ok_or("no position")?;
    let position = if given < 0 { layout.shard().len() as i64 + given + 1 } else { given };
    judge(case, layout.broadcast(count(case)?, usize::try_from(position).map_err(|e| e.to_string())?))
}

pub(crate) fn storage(case: &Value) -> Checked {
    judge(case, Ok(parsed(&case["in"]["layout"])?.storage()))
}

/// The scopes between which a hardware axis counts. Axes that the reference does not define are defined by this
/// library.
pub(crate) fn axis(case: &Value) -> Checked {
    let name = case["in"]["axis"].as_str().unwrap_or("");
    let axis = HARDWARE.iter().find(|axis| axis.name() == name).ok_or_else(|| format!("no axis `{name}`"))?;
    if case.get("reject").is_some() {
        return Ok(Agreement::Proved("this axis is not defined in the reference"));
    }
    let out = &case["out"];
    let (scope, unit) = match axis.kind() {
        AxisKind::Unit { scope, unit } => (Some(scope.name()), Some(unit.name())),
        AxisKind::Memory { .. } | AxisKind::Free => (None, None),
    };
    same("thread", Some(axis.is_unit()), out["thread"].as_bool())?;
    same("memory", Some(axis.is_memory()), out["memory"].as_bool())?;
    same("scope", scope, out["scope"].as_str())?;
    same("subscope", unit, out["subscope"].as_str())?;
    Ok(Agreement::Same)
}

/// The scopes that the axes connect. The reference does not terminate on a CTA in a grid; this library returns an
/// answer.
pub(crate) fn get_scope(case: &Value) -> Checked {
    let layout = parsed(&case["in"]["layout"])?;
    let got = layout.scope();
    if is_quirk(case) {
        same("scope", got.map_err(|e| e.to_string())?, Some((Scope::Thread, Scope::Grid)))?;
        return Ok(Agreement::Same);
    }
    match got {
        Err(_) if case.get("reject").is_some() => Ok(Agreement::Same),
        Err(e) => Err(e.to_string()),
        Ok(scope) => {
            let names = scope.map(|(inner, outer)| vec![inner.name(), outer.name()]);
            let expected = case["out"]["scope"].as_array();
            let expected = expected.map(|pair| pair.iter().filter_map(Value::as_str).collect::<Vec<_>>());
            same("scope", names, expected)?;
            Ok(Agreement::Same)
        }
    }
}
