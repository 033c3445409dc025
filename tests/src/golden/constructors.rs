//! Cases for hardware layouts: the constructor's layout is compared with the recorded table of places.

use std::collections::BTreeMap;

use serde_json::Value;
use tilewright::layout::axis::{LANEID, M, TCOL, WID_IN_WG};
use tilewright::layout::hardware::{
    CtaGroup, Datapath, ScaleFactors, SwizzleMode, Tcgen05Shape, TmemMma, TmemOperand, mma_shared_layout,
    sf_smem_layout, sf_tmem_layout, tcgen05_atom_layout, tmem_datapath_layout, tmem_mma_operand_layout,
    wg_local_layout,
};
use tilewright::layout::{Axis, Coord, Layout, LayoutError, TileLayout};

use super::layouts::{fnv, full_table};
use super::table::parsed;
use super::{Agreement, integers, same};

type Checked = Result<Agreement, String>;

/// `tcgen05_atom_layout`: the register tile of `tcgen05.ld`.
pub(crate) fn tcgen05_atom(case: &Value) -> Checked {
    let given = &case["in"];
    let (Ok((rows, cols)), Ok(bits)) = (matrix(&given["tensor_shape"]), bits(&given["dtype"])) else {
        return refusal(case, "the shape has no rows and columns, or the dtype has no width");
    };
    let shape = text(&given["instr_shape"])?.parse::<Tcgen05Shape>();
    let got = shape.and_then(|shape| tcgen05_atom_layout(shape, rows, cols, bits));
    match got {
        Ok(layout) if given["instr_shape"] == "16x32bx2" && is_refused(case) => {
            two_halves(&layout, rows, cols, bits)?;
            Ok(Agreement::Proved("PTX has this shape, but the reference does not; every place is as the ISA specifies"))
        }
        got => tile(case, got),
    }
}

/// Every element of `16x32bx2` according to the ISA's figure: lanes 0..16 of a warp hold the left half of the columns
/// of 16 rows, lanes 16..32 the right half; with 32 rows per warp, the upper 16 are in the second half of the
/// registers.
fn two_halves(layout: &TileLayout, rows: i64, cols: i64, bits: i64) -> Result<(), String> {
    let of_warp = rows / 4;
    let width = cols / 2;
    for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
        let expected = [row / of_warp, row % 16 + 16 * (col / width), row % of_warp / 16 * width + col % width];
        let got = [WID_IN_WG, LANEID, M].map(|axis| layout.position(row * cols + col, &axis));
        same(&format!("place of ({row}, {col}) in {bits} bits"), got, expected)?;
    }
    Ok(())
}

/// `tmem_datapath_layout`: an accumulator in tensor memory.
pub(crate) fn tmem_datapath(case: &Value) -> Checked {
    let given = &case["in"];
    let (rows, cols) = (integer(&given["rows"])?, integer(&given["cols"])?);
    let sub_slab = given["sub_slab"].as_i64().unwrap_or(0);
    let datapath = text(&given["datapath"])?.parse::<Datapath>();
    tile(case, datapath.and_then(|datapath| tmem_datapath_layout(datapath, rows, cols, sub_slab)))
}

/// `tmem_mma_operand_layout`: an operand in tensor memory. A `group` of the columns is expressed here as additional
/// dimensions.
pub(crate) fn tmem_operand(case: &Value) -> Checked {
    let given = &case["in"];
    let mut shape = integers(&given["shape"])?;
    if given["group"].is_array() {
        let group = integers(&given["group"])?;
        if shape.len() != 2 || shape.pop() != Some(group.iter().product()) {
            return refusal(case, &format!("the group {group:?} of {}", given["shape"]));
        }
        shape.extend(group);
    }
    let cta_group = match given["cta_group"].as_i64() {
        Some(1) => CtaGroup::One,
        Some(2) => CtaGroup::Two,
        _ => return refusal(case, &format!("cta_group {}", given["cta_group"])),
    };
    let operand = match given["operand"].as_str() {
        Some("A") => TmemOperand::A,
        Some("D") => TmemOperand::D,
        _ => return refusal(case, &format!("operand {}", given["operand"])),
    };
    let mma = TmemMma { m: integer(&given["M"])?, cta_group, ws: given["ws"].as_bool().unwrap_or(false) };
    tile(case, tmem_mma_operand_layout(operand, &shape, mma))
}

/// `wg_local_layout`: rows of a register tile on the threads of a warpgroup.
pub(crate) fn wg_local(case: &Value) -> Checked {
    let rows = case["in"]["rows"].as_i64().unwrap_or(128);
    tile(case, wg_local_layout(integer(&case["in"]["cols"])?, rows))
}

/// `mma_shared_layout`: the address of every element of a swizzled tile, and a hash over all addresses.
pub(crate) fn mma_shared(case: &Value) -> Checked {
    let (given, out) = (&case["in"], &case["out"]);
    let mode = text(&given["swizzle_mode"])?.parse::<SwizzleMode>();
    let (bits, shape) = (bits(&given["dtype"])?, integers(&given["shape"])?);
    let got = mode.and_then(|mode| mma_shared_layout(bits, mode, &shape));
    let Some(layout) = accepted(case, got)? else { return Ok(Agreement::Same) };
    let addresses = addresses(&layout)?;
    let listed = match &out["idx"] {
        Value::Null => addresses.clone(),
        indices => integers(indices)?.iter().filter_map(|i| addresses.get(*i as usize).copied()).collect(),
    };
    same("addresses", listed, integers(&out["addr"])?)?;
    same_hash(&out["fnv"], addresses.iter().map(|address| vec![*address]))?;
    Ok(Agreement::Same)
}

/// The address of every element, by [`Layout::apply`].
fn addresses(layout: &Layout) -> Result<Vec<i64>, String> {
    let address = |flat| -> Result<i64, String> {
        let places = layout.apply(flat).map_err(|error| error.to_string())?;
        same("number of places of an element", places.len(), 1)?;
        Ok(places[0].get(&M).copied().unwrap_or(0))
    };
    (0..layout.size()).map(address).collect()
}

/// `sf_tmem_layout`: scale factors in tensor memory.
pub(crate) fn sf_tmem(case: &Value) -> Checked {
    let factors = scale_factors(case)?;
    match (sf_tmem_layout(&factors), factors.stages) {
        (Ok(layout), Some(stages)) if !is_refused(case) => staged(case, layout, stages),
        (got, _) => tile(case, got),
    }
}

/// Scale factors in stages: the recorded table, or a proof that its stages overlap, that ours do not, and that each of
/// our stages is the recorded one shifted by a number of columns.
fn staged(case: &Value, layout: TileLayout, stages: i64) -> Checked {
    let recorded = parsed(&case["out"]["result"]["text"])?;
    tile(case, Ok(recorded.clone()))?;
    let (ours, theirs) = (places_by_stage(&layout, stages)?, places_by_stage(&recorded, stages)?);
    if ours == theirs {
        return Ok(Agreement::Same);
    }
    same("recorded stages share a place", overlap(&theirs), true)?;
    same("stages share a place", overlap(&ours), false)?;
    for (stage, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        let column = |places: &[Vec<Coord>]| places[0][0].get(&TCOL).copied().unwrap_or(0);
        let further = column(ours) - column(theirs);
        let moved = |place: &Coord| {
            let mut place = place.clone();
            *place.entry(TCOL).or_insert(0) += further;
            place
        };
        let shifted: Vec<Vec<Coord>> = theirs.iter().map(|places| places.iter().map(moved).collect()).collect();
        same(&format!("places of stage {stage}"), *ours == shifted, true)?;
    }
    Ok(Agreement::Proved(
        "recorded stages overwrite each other; ours do not, and each alone is the recorded one shifted",
    ))
}

/// The places of every element, stage by stage.
fn places_by_stage(layout: &TileLayout, stages: i64) -> Result<Vec<Vec<Vec<Coord>>>, String> {
    let of_stage = layout.size() / stages;
    let places = |flat: i64| layout.apply(flat).map_err(|error| error.to_string());
    let of = |stage: i64| (stage * of_stage..(stage + 1) * of_stage).map(places).collect::<Result<Vec<_>, String>>();
    (0..stages).map(of).collect()
}

/// True if an element of one stage has the same place as an element of another.
fn overlap(stages: &[Vec<Vec<Coord>>]) -> bool {
    let mut taken = BTreeMap::new();
    let all =
        stages.iter().enumerate().flat_map(|(stage, elements)| elements.iter().flatten().map(move |p| (p, stage)));
    for (place, stage) in all {
        if *taken.entry(place).or_insert(stage) != stage {
            return true;
        }
    }
    false
}

/// `sf_smem_layout`: scale factors in shared memory.
pub(crate) fn sf_smem(case: &Value) -> Checked {
    tile(case, sf_smem_layout(&scale_factors(case)?))
}

fn scale_factors(case: &Value) -> Result<ScaleFactors, String> {
    let given = &case["in"];
    Ok(ScaleFactors {
        rows: integer(&given["rows"])?,
        k: integer(&given["sf_k"])?,
        per_mma: integer(&given["sf_per_mma"])?,
        reuse: given["sf_reuse"].as_i64().unwrap_or(1),
        stages: given["pipe_depth"].as_i64(),
    })
}

/// Compares the layout with the recorded table and its hash; if a refusal is expected, there must be no layout.
fn tile(case: &Value, got: Result<TileLayout, LayoutError>) -> Checked {
    let Some(layout) = accepted(case, got)? else { return Ok(Agreement::Same) };
    let table = &case["out"]["table"];
    full_table(&layout, table)?;
    let axes: Vec<Axis> =
        table["axes"].as_array().into_iter().flatten().filter_map(Value::as_str).map(Axis::named).collect();
    let places = (0..layout.size()).map(|flat| axes.iter().map(|axis| layout.position(flat, axis)).collect());
    same_hash(&table["fnv"], places)?;
    Ok(Agreement::Same)
}

/// The layout, if one is expected; `None` if it is correctly refused.
fn accepted<T: std::fmt::Display>(case: &Value, got: Result<T, LayoutError>) -> Result<Option<T>, String> {
    match got {
        Err(error) => refusal(case, &error.to_string()).map(|_| None),
        Ok(layout) if is_refused(case) => Err(format!("must be refused, but is {layout}")),
        Ok(layout) => Ok(Some(layout)),
    }
}

fn refusal(case: &Value, why: &str) -> Checked {
    if is_refused(case) { Ok(Agreement::Same) } else { Err(format!("refused: {why}")) }
}

fn is_refused(case: &Value) -> bool {
    case.get("reject").is_some()
}

fn same_hash(expected: &Value, rows: impl Iterator<Item = Vec<i64>>) -> Result<(), String> {
    match expected.as_str() {
        None => Ok(()),
        Some(expected) => same("hash", format!("{:016x}", fnv(rows)), expected.to_string()),
    }
}

/// The width in bits given by the name of a dtype: its first number.
fn bits(dtype: &Value) -> Result<i64, String> {
    let name = text(dtype)?;
    let digits = name.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit);
    digits.collect::<String>().parse().map_err(|_| format!("the dtype {name} gives no width"))
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("expected a string: {value}"))
}

fn integer(value: &Value) -> Result<i64, String> {
    value.as_i64().ok_or_else(|| format!("expected an integer: {value}"))
}

fn matrix(shape: &Value) -> Result<(i64, i64), String> {
    match integers(shape)?[..] {
        [rows, cols] => Ok((rows, cols)),
        _ => Err(format!("expected rows and columns: {shape}")),
    }
}
