//! Cases for `permute_layout`: the choice of the XOR, and whether the gate admits a pair of tiles.

use std::collections::BTreeMap;

use serde_json::Value;
use tilewright::dsl::{Index, kernel};
use tilewright::expr::Expr;
use tilewright::ir::{Target, tile};
use tilewright::layout::axis::M;
use tilewright::layout::{DType, Iter, Layout, PlacedTile, Placement, TileLayout};
use tilewright::lower::permute_layout::{Joint, XorChoice, XorRefusal, choose_xor, plan_xor};

use super::table::parsed_layout;
use super::{integers, is_quirk, same};

type Checked = Result<(), String>;

fn tile_of(extents: &[i64], strides: &[i64]) -> Result<TileLayout, String> {
    let shard = extents.iter().zip(strides).map(|(e, s)| Iter::memory(*e, *s)).collect();
    TileLayout::new(shard, Vec::new(), []).map_err(|e| e.to_string())
}

/// The recorded answer, or the correct one if the recorded one is odd.
fn answer(case: &Value) -> &Value {
    if is_quirk(case) { &case["right"] } else { &case["out"] }
}

fn check_choice(choice: &XorChoice, expected: &Value) -> Checked {
    same("k", choice.k.map(i64::from), expected["k"].as_i64())?;
    if expected["k"].is_i64() {
        same("shift", choice.shift().map(i64::from), expected["shift"].as_i64())?;
        same("mask", choice.mask(), expected["mask"].as_i64())?;
    }
    match expected["P"].as_i64() {
        Some(per_lane) => same("P", choice.per_lane, per_lane),
        None => Ok(()),
    }
}

/// `choose_xor_k`: k, shift, mask, which k are conflict-free on each side, and whether the maps are bijective.
pub(crate) fn choose_xor_k(case: &Value) -> Checked {
    let input = &case["in"];
    let extents = integers(&input["extent"])?;
    let (src, dst) =
        (tile_of(&extents, &integers(&input["src_strides"])?)?, tile_of(&extents, &integers(&input["dst_strides"])?)?);
    let bytes = input["dtype_bytes"].as_i64().ok_or("no width")?;
    for (name, layout) in [("src_bijective", &src), ("dst_bijective", &dst)] {
        same(name, layout.is_injective().ok(), case["out"][name].as_bool())?;
    }
    same("P", Some(src.size() / 32), case["out"]["P"].as_i64())?;
    let placed = |tile: &TileLayout| PlacedTile {
        shape: Placement::Iters(tile.clone()),
        start: Expr::constant(0),
        swizzle: None,
        pitches: Vec::new(),
    };
    match plan_xor(("dst", &placed(&dst)), ("src", &placed(&src)), bytes) {
        Ok(plan) => check_choice(&plan.choice, answer(case))?,
        Err(XorRefusal::NoXor { choice, .. }) => check_choice(&choice, answer(case))?,
        Err(XorRefusal::Gate(_)) => same("k", None, answer(case)["k"].as_i64())?,
    }
    check_flags(case, &src, &dst, bytes)
}

/// Which k are conflict-free, per side. The reference requires 32 lanes on 32 distinct banks; hardware merges accesses
/// to the same word and serves wide accesses by half and quarter warps. Both rules are computed here by brute force:
/// the reference's flags must follow its rule and ours the hardware's, which shows that this is the only difference.
fn check_flags(case: &Value, src: &TileLayout, dst: &TileLayout, bytes: i64) -> Checked {
    let per_lane = src.size() / 32;
    let positions = |t: &TileLayout| (0..t.size()).map(|e| t.position(e, &M)).collect::<Vec<_>>();
    let is_power_of_two = per_lane > 0 && per_lane & (per_lane - 1) == 0;
    let ours = is_power_of_two.then(|| choose_xor(per_lane, bytes, &positions(src), &positions(dst), &[0]));
    for (name, layout, is_load) in [("src_free", src, true), ("dst_free", dst, false)] {
        let listed: Vec<bool> = case["out"][name].as_array().into_iter().flatten().filter_map(Value::as_bool).collect();
        let by = |rule: &dyn Fn(&[i64]) -> bool| -> Vec<bool> {
            (0..listed.len() as u32).map(|k| (0..per_lane).all(|r| rule(&addresses(layout, bytes, r, k)))).collect()
        };
        same(&format!("{name} by the reference's rule"), by(&|lanes| banks_are_distinct(lanes)), listed.clone())?;
        if let Some(ours) = &ours {
            let got = if is_load { &ours.src_free } else { &ours.dst_free };
            same(
                &format!("{name} by the hardware's rule"),
                got.clone(),
                by(&|lanes| passes_are_free(lanes, bytes, is_load)),
            )?;
        }
    }
    Ok(())
}

/// Byte addresses of the lanes for register `r`. The first iter does not wrap around, as in the reference.
fn addresses(layout: &TileLayout, bytes: i64, r: i64, k: u32) -> Vec<i64> {
    let place = |lane: i64| {
        let mut rest = lane + (r ^ ((lane >> (5 - k)) & ((1 << k) - 1))) * 32;
        let mut position = 0;
        for (at, iter) in layout.shard().iter().enumerate().rev() {
            let digit = if at == 0 { rest } else { rest % iter.extent };
            position += digit * iter.stride;
            rest /= iter.extent;
        }
        position * bytes
    };
    (0..32).map(place).collect()
}

fn banks_are_distinct(lanes: &[i64]) -> bool {
    let mut banks: Vec<i64> = lanes.iter().map(|a| a.div_euclid(4).rem_euclid(32)).collect();
    banks.sort_unstable();
    banks.dedup();
    banks.len() == lanes.len()
}

/// True if every group of lanes that is served together accesses at most one word in each bank.
fn passes_are_free(lanes: &[i64], bytes: i64, is_load: bool) -> bool {
    let pairs = |step: usize| (0..32).all(|lane| lanes[lane] == lanes[lane ^ step]);
    let narrow = if bytes <= 4 { 32 } else { 128 / bytes as usize };
    let group = if bytes > 4 && is_load && (pairs(1) || pairs(2)) { narrow * 2 } else { narrow };
    lanes.chunks(group).all(|group| {
        let words = group.iter().flat_map(|a| (a.div_euclid(4)..=(a + bytes - 1).div_euclid(4)).collect::<Vec<_>>());
        let mut word_of_bank = BTreeMap::new();
        words.into_iter().all(|word| *word_of_bank.entry(word.rem_euclid(32)).or_insert(word) == word)
    })
}

fn dtype(name: &str) -> Result<DType, String> {
    match name {
        "float32" => Ok(DType::F32),
        "float16" => Ok(DType::F16),
        "float64" => Ok(DType::F64),
        "int8" => Ok(DType::I8),
        "int16" => Ok(DType::I16),
        "int32" => Ok(DType::I32),
        "int64" => Ok(DType::I64),
        "uint8" => Ok(DType::U8),
        "uint16" => Ok(DType::U16),
        "uint32" => Ok(DType::U32),
        other => Err(format!("unknown dtype {other}")),
    }
}

fn regions(value: &Value) -> Result<Vec<(i64, i64)>, String> {
    value.as_array().into_iter().flatten().map(|pair| integers(pair).map(|p| (p[0], p[1]))).collect()
}

fn placed(layout: &Layout, shape: &[i64], region: &[(i64, i64)]) -> Result<PlacedTile, String> {
    let starts: Vec<Expr> = region.iter().map(|(begin, _)| Expr::constant(*begin)).collect();
    let extents: Vec<i64> = region.iter().map(|(begin, end)| end - begin).collect();
    layout.place(shape, &starts, &extents).map_err(|e| e.to_string())
}

/// `dispatch`: builds and compiles a kernel with this op and a requested variant, and compares the plan.
pub(crate) fn dispatch(case: &Value) -> Checked {
    let input = &case["in"];
    let expected = answer(case);
    let shape = integers(&input["shape"])?;
    let (src, dst) = (parsed_layout(&input["src"])?, parsed_layout(&input["dst"])?);
    let region = regions(&input["region"])?;
    let dst_region = if input["dst_region"].is_null() { region.clone() } else { regions(&input["dst_region"])? };
    let src_dtype = dtype(input["dtype"].as_str().unwrap_or(""))?;
    let dst_dtype =
        if input["dst_dtype"].is_null() { src_dtype } else { dtype(input["dst_dtype"].as_str().unwrap_or(""))? };
    let scope = input["scope"].as_str().unwrap_or("");
    let accepted = compiles(&shape, (&dst, dst_dtype, &dst_region), (&src, src_dtype, &region), scope);
    same("accept", accepted, expected["accept"].as_bool().unwrap_or(false))?;
    if case["out"]["stage"] == "predicate" {
        return Ok(());
    }
    let (dst_tile, src_tile) = (placed(&dst, &shape, &dst_region)?, placed(&src, &shape, &region)?);
    match plan_xor(("dst", &dst_tile), ("src", &src_tile), src_dtype.bytes()) {
        Ok(plan) => {
            check_joint(&plan.joint, &case["out"])?;
            check_choice(&plan.choice, expected)
        }
        Err(XorRefusal::NoXor { joint, choice }) => {
            same("stage", case["out"]["stage"].as_str(), Some("choose_xor_k"))?;
            check_joint(&joint, &case["out"])?;
            check_choice(&choice, expected)
        }
        Err(XorRefusal::Gate(reasons)) => Err(format!("the gate refuses: {reasons:?}")),
    }
}

fn check_joint(joint: &Joint, out: &Value) -> Checked {
    let extents: Vec<i64> = joint.dst.shard().iter().map(|iter| iter.extent).collect();
    let strides = |layout: &TileLayout| layout.shard().iter().map(|iter| iter.stride).collect::<Vec<_>>();
    same("extent", extents, integers(&out["extent"])?)?;
    same("src_strides", strides(&joint.src), integers(&out["src_strides"])?)?;
    same("dst_strides", strides(&joint.dst), integers(&out["dst_strides"])?)
}

type Side<'a> = (&'a Layout, DType, &'a [(i64, i64)]);

/// Whether a kernel with this op and the requested variant compiles.
fn compiles(shape: &[i64], dst: Side<'_>, src: Side<'_>, scope: &str) -> bool {
    let index = |region: &[(i64, i64)]| -> Vec<Index> {
        region.iter().map(|(begin, end)| Index::From { start: (*begin).into(), extent: end - begin }).collect()
    };
    let mut built = kernel("dispatch", |k| {
        let a = k.input("a", src.1, Shaped(shape, src.0));
        let b = k.output("b", dst.1, Shaped(shape, dst.0));
        k.warp().permute_layout(b.sub(index(dst.2)), a.sub(index(src.2))).variant("warp_xor_swizzle");
    });
    let scope = match scope {
        "warp" => tilewright::layout::axis::Scope::Warp,
        "wg" => tilewright::layout::axis::Scope::Warpgroup,
        "cta" => tilewright::layout::axis::Scope::Cta,
        _ => tilewright::layout::axis::Scope::Thread,
    };
    let handles: Vec<_> = built.ops.iter().map(|(handle, _)| handle).collect();
    for handle in handles {
        built.ops[handle].scope = scope;
    }
    let Ok(verified) = tile::verify(built, Target::Sm100a) else { return false };
    tilewright::lower::lower(&verified, Target::Sm100a, &tilewright::lower::Options::default()).is_ok()
}

/// A shape whose dimensions may each consist of several iters of a layout, swizzled or not.
struct Shaped<'a>(&'a [i64], &'a Layout);

impl tilewright::dsl::IntoLayout for Shaped<'_> {
    fn into_layout(self) -> Result<(Vec<i64>, Layout), tilewright::layout::LayoutError> {
        self.1.tile()?.group(self.0)?;
        Ok((self.0.to_vec(), self.1.clone()))
    }
}
