//! Cases for tilings and direct sums, compared with a brute-force definition.

use serde_json::Value;
use tilewright::layout::{LayoutError, TileLayout};

use super::table::{Table, axes_of, parsed, same_meaning, structured, table};
use super::{Agreement, integers, is_quirk, same};

type Checked = Result<Agreement, String>;

/// Whether the strides of the outer layout count spans of the inner one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scaled {
    Yes,
    No,
}

/// A layout and its shape.
type Shaped<'a> = (&'a TileLayout, &'a [i64]);

/// The interleaved table of `outer` over `inner`, directly from the definition: places are added, and outer steps are
/// multiplied by the spans of the inner tile if they are scaled.
fn interleaved(outer: Shaped<'_>, inner: Shaped<'_>, scaled: Scaled, axes: &[String]) -> Table {
    let (outer_table, inner_table) = (table(outer.0, axes), table(inner.0, axes));
    let spacing: Vec<i64> = (0..axes.len())
        .map(|axis| match scaled {
            Scaled::No => 1,
            Scaled::Yes => {
                let moves = inner_table.base.iter().any(|row| row[axis] != inner_table.base[0][axis]);
                if !moves {
                    return 1;
                }
                let most = |rows: &[Vec<i64>]| rows.iter().map(|row| row[axis]).max().unwrap_or(0);
                1 + most(&inner_table.base) + most(&inner_table.replicas)
            }
        })
        .collect();
    let offset: Vec<i64> = axes.iter().map(|axis| outer.0.offset_on(&tilewright::layout::Axis::named(axis))).collect();
    let mut base = Vec::new();
    let mut coordinate = vec![0; 2 * outer.1.len()];
    loop {
        let (mut x, mut y) = (0, 0);
        for rank in 0..outer.1.len() {
            x = x * outer.1[rank] + coordinate[2 * rank];
            y = y * inner.1[rank] + coordinate[2 * rank + 1];
        }
        let place = |axis: usize| {
            let step = outer_table.base[x as usize][axis] - offset[axis];
            step * spacing[axis] + offset[axis] + inner_table.base[y as usize][axis]
        };
        base.push((0..axes.len()).map(place).collect());
        if !next(&mut coordinate, outer.1, inner.1) {
            break;
        }
    }
    let add = |a: &Vec<i64>| {
        inner_table.replicas.iter().map(|b| a.iter().zip(b).map(|(a, b)| a + b).collect()).collect::<Vec<_>>()
    };
    let mut replicas: Vec<Vec<i64>> = outer_table.replicas.iter().flat_map(add).collect();
    replicas.sort();
    replicas.dedup();
    Table { base, replicas }
}

/// Advances the coordinate in row-major order; returns false at the end.
fn next(coordinate: &mut [i64], outer: &[i64], inner: &[i64]) -> bool {
    for at in (0..coordinate.len()).rev() {
        let extent = if at % 2 == 0 { outer[at / 2] } else { inner[at / 2] };
        coordinate[at] += 1;
        if coordinate[at] < extent {
            return true;
        }
        coordinate[at] = 0;
    }
    false
}

fn means(outer: Shaped<'_>, inner: Shaped<'_>, scaled: Scaled, whole: &TileLayout) -> bool {
    let axes = axes_of(&[outer.0, inner.0, whole]);
    interleaved(outer, inner, scaled, &axes) == table(whole, &axes)
}

fn rejected(case: &Value) -> bool {
    case.get("reject").is_some()
}

fn must_be_refused(got: Result<impl std::fmt::Debug, LayoutError>) -> Checked {
    match got {
        Err(_) => Ok(Agreement::Same),
        Ok(layout) => Err(format!("must be refused, but is {layout:?}")),
    }
}

/// Compares a result with the recorded one and with the definition.
fn judge(
    case: &Value,
    got: Result<TileLayout, LayoutError>,
    outer: Shaped<'_>,
    inner: Shaped<'_>,
    scaled: Scaled,
) -> Checked {
    if rejected(case) {
        return must_be_refused(got);
    }
    let got = got.map_err(|e| e.to_string())?;
    same("definition", means(outer, inner, scaled, &got), true)?;
    same("meaning of the reference's result", same_meaning(&got, &structured(&case["out"]["result"])?), true)?;
    Ok(Agreement::Same)
}

pub(crate) fn tile(case: &Value) -> Checked {
    let (inner, outer) = (parsed(&case["in"]["inner"])?, parsed(&case["in"]["outer"])?);
    let (outer_shape, inner_shape) = (integers(&case["in"]["outer_shape"])?, integers(&case["in"]["inner_shape"])?);
    let got = inner.tile(&inner_shape, &outer, &outer_shape);
    judge(case, got, (&outer, &outer_shape), (&inner, &inner_shape), Scaled::Yes)
}

pub(crate) fn tile_to(case: &Value) -> Checked {
    let layout = parsed(&case["in"]["layout"])?;
    let (to, from) = (integers(&case["in"]["to_shape"])?, integers(&case["in"]["current_shape"])?);
    let got = layout.tile_to(&from, &to);
    if is_quirk(case) {
        return must_be_refused(got);
    }
    let outer_shape: Vec<i64> = to.iter().zip(&from).map(|(to, from)| to / from).collect();
    let outer = TileLayout::row_major(&outer_shape).map_err(|e| e.to_string())?;
    judge(case, got, (&outer, &outer_shape), (&layout, &from), Scaled::Yes)
}

pub(crate) fn direct_sum(case: &Value) -> Checked {
    let (right, left) = (parsed(&case["in"]["right"])?, parsed(&case["in"]["left"])?);
    let (left_shape, right_shape) = (integers(&case["in"]["left_shape"])?, integers(&case["in"]["right_shape"])?);
    let got = right.direct_sum(&right_shape, &left, &left_shape);
    judge(case, got, (&left, &left_shape), (&right, &right_shape), Scaled::No)
}

/// Compares the part found with the reference's; `makes` tests whether a part makes the whole, by the definition.
fn judge_part(
    case: &Value,
    got: Result<Option<TileLayout>, LayoutError>,
    makes: impl Fn(&TileLayout) -> bool,
) -> Checked {
    if rejected(case) {
        return must_be_refused(got);
    }
    if let (Err(LayoutError::Indivisible { .. }), Value::Null) = (&got, &case["out"]["result"]) {
        return Ok(Agreement::Proved("a shape that is not divisible is an error, as in the other cases of this kind"));
    }
    let got = got.map_err(|e| e.to_string())?;
    let known = match &case["out"]["result"] {
        Value::Null => None,
        result => Some(structured(result)?),
    };
    match (got, known) {
        (None, None) => Ok(Agreement::Same),
        (Some(got), _) if !makes(&got) => Err(format!("{got} does not make the whole")),
        (Some(got), Some(known)) if same_meaning(&got, &known) => Ok(Agreement::Same),
        (Some(_), Some(known)) if makes(&known) => Ok(Agreement::Proved("another part makes the same whole")),
        (Some(_), Some(_)) => Ok(Agreement::Proved("the reference's part does not make the whole, but ours does")),
        (Some(_), None) => Ok(Agreement::Proved("the reference finds no part, but ours makes the whole")),
        (None, Some(known)) if makes(&known) => Err(format!("none found, but {known} makes the whole")),
        (None, Some(_)) => Ok(Agreement::Proved("the reference's part does not make the whole, and no part does")),
    }
}

fn quotient(whole: &[i64], part: &[i64]) -> Vec<i64> {
    whole.iter().zip(part).map(|(whole, part)| whole / part.max(&1)).collect()
}

pub(crate) fn is_tile_inner(case: &Value) -> Checked {
    let (inner, tiled) = (parsed(&case["in"]["layout"])?, parsed(&case["in"]["tiled"])?);
    let (tiled_shape, shape) = (integers(&case["in"]["tiled_shape"])?, integers(&case["in"]["inner_shape"])?);
    let outer_shape = quotient(&tiled_shape, &shape);
    judge_part(case, inner.is_tile_inner(&shape, &tiled, &tiled_shape), |outer| {
        means((outer, &outer_shape), (&inner, &shape), Scaled::Yes, &tiled)
    })
}

pub(crate) fn is_tile_outer(case: &Value) -> Checked {
    let (outer, tiled) = (parsed(&case["in"]["layout"])?, parsed(&case["in"]["tiled"])?);
    let (tiled_shape, shape) = (integers(&case["in"]["tiled_shape"])?, integers(&case["in"]["outer_shape"])?);
    let inner_shape = quotient(&tiled_shape, &shape);
    judge_part(case, outer.is_tile_outer(&shape, &tiled, &tiled_shape), |inner| {
        means((&outer, &shape), (inner, &inner_shape), Scaled::Yes, &tiled)
    })
}

fn every_other(shape: &[i64], from: usize) -> Vec<i64> {
    shape.iter().skip(from).step_by(2).copied().collect()
}

pub(crate) fn is_direct_sum_right(case: &Value) -> Checked {
    let (right, sum) = (parsed(&case["in"]["layout"])?, parsed(&case["in"]["sum"])?);
    let (interleaved, shape) = (integers(&case["in"]["interleaved_shape"])?, integers(&case["in"]["right_shape"])?);
    let left_shape = every_other(&interleaved, 0);
    judge_part(case, right.is_direct_sum_right(&shape, &sum, &interleaved), |left| {
        means((left, &left_shape), (&right, &shape), Scaled::No, &sum)
    })
}

pub(crate) fn is_direct_sum_left(case: &Value) -> Checked {
    let (left, sum) = (parsed(&case["in"]["layout"])?, parsed(&case["in"]["sum"])?);
    let (interleaved, shape) = (integers(&case["in"]["interleaved_shape"])?, integers(&case["in"]["left_shape"])?);
    let right_shape = every_other(&interleaved, 1);
    judge_part(case, left.is_direct_sum_left(&shape, &sum, &interleaved), |right| {
        means((&left, &shape), (right, &right_shape), Scaled::No, &sum)
    })
}
