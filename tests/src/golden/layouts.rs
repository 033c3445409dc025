//! Cases for layouts: every field of the known answer is compared with the library's.

use std::ops::Range;

use serde_json::Value;
use tilewright::layout::{Axis, Coord, TileLayout};

use super::table::{axes_of, folded, parsed, same_meaning, structured, table};
use super::{integers, is_quirk, same};

type Checked = Result<(), String>;

/// `parse`: the value, its text, and that the text parses to the same value. Quirks are texts that must be refused.
pub(crate) fn parse(case: &Value) -> Checked {
    let text = case["in"]["text"].as_str().unwrap_or("");
    let got: Result<TileLayout, _> = text.parse();
    if is_quirk(case) {
        return match got {
            Err(_) => Ok(()),
            Ok(layout) => Err(format!("{text} must be refused, but is {layout}")),
        };
    }
    let layout = got.map_err(|e| e.to_string())?;
    let out = &case["out"];
    same("layout", &layout, &structured(out)?)?;
    same("text", layout.to_string(), out["text"].as_str().unwrap_or("").to_string())?;
    same("text parsed again", layout.to_string().parse(), Ok(layout))
}

/// `apply`: sizes, spans and the places of all elements.
pub(crate) fn apply(case: &Value) -> Checked {
    let layout = parsed(&case["in"]["layout"])?;
    let out = &case["out"];
    same("parsed", &layout, &structured(&out["parsed"])?)?;
    same("size", Some(layout.size()), out["size"].as_i64())?;
    per_axis("size", &out["axis_size"], |axis| layout.size_on(axis))?;
    per_axis("span", &out["axis_span"], |axis| layout.span_on(axis))?;
    if let Some(span) = out["span"].as_i64() {
        same("span", layout.span(), span)?;
    }
    if let Some(trivial) = out["is_trivial"].as_bool() {
        same("is_trivial", layout.is_trivial(), trivial)?;
    }
    full_table(&layout, &out["table"])
}

fn per_axis(what: &str, expected: &Value, got: impl Fn(&Axis) -> i64) -> Checked {
    for (axis, value) in expected.as_object().into_iter().flatten() {
        same(&format!("{what} on {axis}"), Some(got(&Axis::named(axis))), value.as_i64())?;
    }
    Ok(())
}

/// The table of places: the base of each element, the offset of each replica, and a hash over the whole base table.
pub(crate) fn full_table(layout: &TileLayout, expected: &Value) -> Checked {
    let axes: Vec<String> =
        expected["axes"].as_array().into_iter().flatten().filter_map(|a| a.as_str().map(str::to_string)).collect();
    let n = expected["n"].as_i64().unwrap_or(-1);
    same("n", layout.size(), n)?;
    let replicas: Vec<Vec<i64>> =
        expected["rep"].as_array().into_iter().flatten().map(integers).collect::<Result<_, _>>()?;
    let columns: Vec<Vec<i64>> =
        expected["base"].as_array().into_iter().flatten().map(integers).collect::<Result<_, _>>()?;
    let indices = match &expected["idx"] {
        Value::Null => (0..n).collect(),
        listed => integers(listed)?,
    };
    for (position, flat) in indices.iter().enumerate() {
        let base: Vec<i64> = columns.iter().map(|column| column[position]).collect();
        let mut places: Vec<Vec<i64>> =
            replicas.iter().map(|r| r.iter().zip(&base).map(|(r, b)| r + b).collect()).collect();
        places.sort();
        let mut got = coordinates(&layout.apply(*flat).map_err(|e| e.to_string())?, &axes);
        got.sort();
        same(&format!("places of element {flat}"), got, places)?;
    }
    if let Some(expected) = expected["fnv"].as_str() {
        let rows =
            (0..n).map(|flat| axes.iter().map(|axis| layout.position(flat, &Axis::named(axis))).collect::<Vec<_>>());
        same("hash of the table", format!("{:016x}", fnv(rows)), expected.to_string())?;
    }
    Ok(())
}

fn coordinates(places: &[Coord], axes: &[String]) -> Vec<Vec<i64>> {
    places
        .iter()
        .map(|place| axes.iter().map(|axis| place.get(&Axis::named(axis)).copied().unwrap_or(0)).collect())
        .collect()
}

/// FNV-1a-64 over values as 8 little-endian bytes.
pub(crate) fn fnv(rows: impl Iterator<Item = Vec<i64>>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in rows.flatten().flat_map(i64::to_le_bytes) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// `apply_shape`: places of coordinates in a shape, without replicas, and the digits of the grouped iters.
pub(crate) fn apply_shape(case: &Value) -> Checked {
    let layout = parsed(&case["in"]["layout"])?;
    let shape = integers(&case["in"]["shape"])?;
    let axes: Vec<String> =
        case["out"]["axes"].as_array().into_iter().flatten().filter_map(|a| a.as_str().map(str::to_string)).collect();
    let base = layout.shard_only();
    for (position, coordinate) in case["in"]["coords"].as_array().into_iter().flatten().enumerate() {
        let coordinate = integers(coordinate)?;
        let places = base.apply_in(&coordinate, &shape).map_err(|e| e.to_string())?;
        let expected = integers(&case["out"]["points"][position])?;
        same(&format!("place of {coordinate:?}"), coordinates(&places, &axes), vec![expected])?;
        if let Some(digits) = case["out"]["apply_to_shape"].as_array() {
            let got = layout.digits_in(&coordinate, &shape).map_err(|e| e.to_string())?;
            same(&format!("digits of {coordinate:?}"), got, integers(&digits[position])?)?;
        }
    }
    Ok(())
}

/// `apply_raw`: one coordinate per iter, or in a shape; coordinates out of range must be errors.
pub(crate) fn apply_raw(case: &Value) -> Checked {
    let layout = parsed(&case["in"]["layout"])?.shard_only();
    let coordinate = integers(&case["in"]["coord"])?;
    let got = match &case["in"]["shape"] {
        Value::Null if coordinate.len() == 1 => layout.apply(coordinate[0]),
        Value::Null => layout.apply_digits(&coordinate),
        shape => layout.apply_in(&coordinate, &integers(shape)?),
    };
    let must_fail = case.get("reject").is_some() || case["right"].get("error").is_some();
    match (got, must_fail) {
        (Err(_), true) => Ok(()),
        (Ok(places), true) => Err(format!("must be refused, but gives {places:?}")),
        (Err(e), false) => Err(e.to_string()),
        (Ok(places), false) => {
            let expected = case["out"].as_object().ok_or("the case has no answer")?;
            for (axis, value) in expected {
                let got = places[0].get(&Axis::named(axis)).copied().unwrap_or(0);
                same(axis, Some(got), value.as_i64())?;
            }
            same("number of places", places.len(), 1)
        }
    }
}

/// `canonicalize`: preserves the meaning, is idempotent, and agrees in meaning with the reference's form under a CUDA
/// target.
pub(crate) fn canonicalize(case: &Value) -> Checked {
    let layout = parsed(&case["in"]["layout"])?;
    let canonical = layout.canonicalize();
    let out = &case["out"];
    same("meaning kept", same_meaning(&layout, &canonical), true)?;
    same("idempotent", canonical.canonicalize(), canonical.clone())?;
    if out["result"].is_object() {
        let reference = structured(&out["result"])?;
        same("meaning of the reference's form", same_meaning(&canonical, &reference), true)?;
        same("iters at most as many as the reference's", canonical.shard().len() <= reference.shard().len(), true)?;
    }
    let folds = out["cuda_semantics_kept"].as_bool() == Some(true);
    if folds && out["cuda_result"].is_object() {
        let reference = folded(&structured(&out["cuda_result"])?)?;
        same("meaning under a CUDA target", same_meaning(&folded(&canonical)?, &reference), true)?;
    }
    Ok(())
}

/// `group`: same meaning, and the same runs of iters.
pub(crate) fn group(case: &Value) -> Checked {
    let layout = parsed(&case["in"]["layout"])?;
    let got = layout.group(&integers(&case["in"]["shape"])?);
    let rejected = case.get("reject").is_some();
    match (got, rejected) {
        (Err(_), true) => Ok(()),
        (Ok(grouped), true) => Err(format!("must be refused, but is {}", grouped.layout)),
        (Err(e), false) => Err(e.to_string()),
        (Ok(grouped), false) => {
            let expected = structured(&case["out"]["result"])?;
            let extents = |l: &TileLayout| l.shard().iter().map(|iter| iter.extent).collect::<Vec<_>>();
            same("extents", extents(&grouped.layout), extents(&expected))?;
            same("meaning", same_meaning(&grouped.layout, &expected), true)?;
            same("meaning kept", same_meaning(&grouped.layout, &layout), true)?;
            let separators: Vec<i64> = grouped.separators.iter().map(|s| *s as i64).collect();
            same("seps", separators, integers(&case["out"]["seps"])?)
        }
    }
}

/// `group_many`: same meaning, and the same runs for every shape.
pub(crate) fn group_many(case: &Value) -> Checked {
    let layout = parsed(&case["in"]["layout"])?;
    let shapes: Vec<Vec<i64>> =
        case["in"]["shapes"].as_array().into_iter().flatten().map(integers).collect::<Result<_, _>>()?;
    let got = layout.group_many(&shapes).map_err(|e| e.to_string())?;
    let expected = structured(&case["out"]["result"])?;
    let extents = |l: &TileLayout| l.shard().iter().map(|iter| iter.extent).collect::<Vec<_>>();
    same("extents", extents(&got.layout), extents(&expected))?;
    same("meaning", same_meaning(&got.layout, &expected), true)?;
    same("meaning kept", same_meaning(&got.layout, &layout), true)?;
    let separators: Vec<Vec<i64>> = got.separators.iter().map(|s| s.iter().map(|s| *s as i64).collect()).collect();
    let expected: Vec<Vec<i64>> =
        case["out"]["seps"].as_array().into_iter().flatten().map(integers).collect::<Result<_, _>>()?;
    same("seps", separators, expected)
}

/// `slice`: the parent's places over the region, by brute force, and the reference's result if it is correct.
pub(crate) fn slice(case: &Value) -> Checked {
    let layout = parsed(&case["in"]["layout"])?;
    let shape = integers(&case["in"]["shape"])?;
    let region: Vec<Range<i64>> = case["in"]["region"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|pair| integers(pair).map(|p| p[0]..p[1]))
        .collect::<Result<_, _>>()?;
    let got = layout.slice(&shape, &region);
    let inside = region.iter().zip(&shape).all(|(r, e)| r.start >= 0 && r.start < r.end && r.end <= *e);
    let groups = layout.group(&shape).is_ok();
    if !inside || !groups {
        return match got {
            Err(_) => Ok(()),
            Ok(l) => Err(format!("must be refused, but is {l}")),
        };
    }
    let truth = parent_places(&layout, &shape, &region)?;
    check_truth(case, &layout, &truth)?;
    match got {
        Err(e) if e.code() != "L0109" => Err(e.to_string()),
        // The refusal must be justified: no mixed-radix layout has these places.
        Err(_) if case["out"]["result"].is_object() && case["out"]["matches_parent"] != false => {
            Err("refused, but the reference has a correct layout".to_string())
        }
        Err(_) => Ok(()),
        Ok(sliced) => {
            let axes = axes_of(&[&layout, &sliced]);
            same("places", table(&sliced, &axes).base, table_rows(&truth, &axes))?;
            same("replicas", table(&sliced, &axes).replicas, table(&layout, &axes).replicas)?;
            if case["out"]["matches_parent"] == true {
                let reference = structured(&case["out"]["result"])?;
                same("meaning of the reference's result", same_meaning(&sliced, &reference), true)?;
            }
            Ok(())
        }
    }
}

/// Places of the region's elements in the parent, in row-major order of the region.
fn parent_places(layout: &TileLayout, shape: &[i64], region: &[Range<i64>]) -> Result<Vec<Coord>, String> {
    let mut coordinates: Vec<Vec<i64>> = vec![Vec::new()];
    for range in region {
        coordinates = coordinates
            .iter()
            .flat_map(|c| range.clone().map(|i| c.iter().copied().chain([i]).collect::<Vec<_>>()))
            .collect();
    }
    let base = layout.shard_only();
    let place = |c: &Vec<i64>| base.apply_in(c, shape).map(|mut p| p.remove(0)).map_err(|e| e.to_string());
    coordinates.iter().map(place).collect()
}

fn table_rows(places: &[Coord], axes: &[String]) -> Vec<Vec<i64>> {
    coordinates(places, axes)
}

/// Compares the recorded places (the first 256) with our brute force, including replicas.
fn check_truth(case: &Value, layout: &TileLayout, truth: &[Coord]) -> Checked {
    let recorded = &case["out"]["truth"];
    if recorded.is_null() {
        return Ok(());
    }
    let axes: Vec<String> =
        recorded["axes"].as_array().into_iter().flatten().filter_map(|a| a.as_str().map(str::to_string)).collect();
    let columns: Vec<Vec<i64>> =
        recorded["base"].as_array().into_iter().flatten().map(integers).collect::<Result<_, _>>()?;
    let rows: Vec<Vec<i64>> =
        (0..columns.first().map_or(0, Vec::len)).map(|i| columns.iter().map(|c| c[i]).collect()).collect();
    let ours = table_rows(truth, &axes);
    same("recorded places", &ours[..rows.len().min(ours.len())], &rows[..])?;
    let replicas: Vec<Vec<i64>> =
        recorded["rep"].as_array().into_iter().flatten().map(integers).collect::<Result<_, _>>()?;
    same("recorded replicas", table(layout, &axes).replicas, replicas)
}
