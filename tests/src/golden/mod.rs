//! Golden vectors: operations on layouts with known answers, one JSON file per group of operations.

mod constructors;
mod descriptors;
mod layouts;
mod misc;
mod permute;
mod swizzles;
mod table;
mod tiling;

use std::path::Path;

use serde_json::Value;
use tilewright::files::read_text;

/// The verdict on a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer agrees with the recorded one in every field, or a stated reason explains the difference.
    Passed(Agreement),
    /// The answer is wrong; the text says what differs.
    Failed(String),
    /// The case is for other hardware; the text says which.
    OutOfScope(&'static str),
    /// The case is for an operation that this project does not implement.
    NotCovered(String),
}

/// How an answer agrees with the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The answers are the same.
    Same,
    /// The recorded answer is odd or wrong, and ours is the correct one given in the case. The text is the reason.
    Right(String),
    /// The answers differ, and a brute-force check in the test shows that ours is correct. The text is the reason.
    Proved(&'static str),
}

/// The golden files, in the order in which they are read.
pub const FILES: [&str; 12] = [
    "notation",
    "apply",
    "canonicalize",
    "group",
    "tile",
    "direct_sum",
    "slice",
    "misc",
    "swizzle",
    "constructors",
    "descriptors",
    "permute_layout",
];

/// A case and its verdict.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The id of the case.
    pub id: String,
    /// The verdict.
    pub verdict: Verdict,
}

/// Checks all cases of `<folder>/tirx/<file>.json`. The error says which file cannot be read.
pub fn judge_folder(folder: &Path) -> Result<Vec<Judged>, String> {
    let mut judged = Vec::new();
    for file in FILES {
        let path = folder.join("tirx").join(format!("{file}.json"));
        let text = read_text(&path).map_err(|error| error.to_string())?;
        let data: Value = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        let cases = data["cases"].as_array().ok_or_else(|| format!("{}: no cases", path.display()))?;
        judged.extend(
            cases
                .iter()
                .map(|case| Judged { id: case["id"].as_str().unwrap_or("?").to_string(), verdict: judge(case) }),
        );
    }
    Ok(judged)
}

fn judge(case: &Value) -> Verdict {
    let op = case["op"].as_str().unwrap_or("");
    let plain = |checked: Result<(), String>| checked.map(|()| Agreement::Same);
    let result = match op {
        "parse" => plain(layouts::parse(case)),
        "apply" => plain(layouts::apply(case)),
        "apply_shape" => plain(layouts::apply_shape(case)),
        "apply_raw" => plain(layouts::apply_raw(case)),
        "canonicalize" => plain(layouts::canonicalize(case)),
        "group" => plain(layouts::group(case)),
        "group_many" => plain(layouts::group_many(case)),
        "tile" => tiling::tile(case),
        "tile_to" => tiling::tile_to(case),
        "is_tile_inner" => tiling::is_tile_inner(case),
        "is_tile_outer" => tiling::is_tile_outer(case),
        "direct_sum" => tiling::direct_sum(case),
        "is_direct_sum_left" => tiling::is_direct_sum_left(case),
        "is_direct_sum_right" => tiling::is_direct_sum_right(case),
        "slice" => plain(layouts::slice(case)),
        "permute_dims" => misc::permute_dims(case),
        "permute_by_groups" => misc::permute_by_groups(case),
        "pack" => misc::pack(case),
        "unpack" => misc::unpack(case),
        "broadcast" => misc::broadcast(case),
        "storage" => misc::storage(case),
        "axis" => misc::axis(case),
        "get_scope" => misc::get_scope(case),
        "swizzle_mode" => swizzles::mode(case),
        "swizzle_raw" => swizzles::raw(case),
        "compose_apply" => swizzles::apply(case),
        "compose_pack" => swizzles::pack(case),
        "compose_unpack" => swizzles::unpack(case),
        "compose_slice" => swizzles::slice(case),
        "compose_tile_to" => swizzles::tile_to(case),
        "compose_is_tile_inner" => swizzles::is_tile_inner(case),
        "compose_is_tile_outer" => swizzles::is_tile_outer(case),
        "compose_direct_sum" => swizzles::direct_sum(case),
        "choose_xor_k" => plain(permute::choose_xor_k(case)),
        "dispatch" => plain(permute::dispatch(case)),
        "instr_desc_dense" => plain(descriptors::instr_desc_dense(case)),
        "instr_desc_block_scaled" => plain(descriptors::instr_desc_block_scaled(case)),
        "smem_desc_base" => plain(descriptors::smem_desc_base(case)),
        "mma_shared_layout" => {
            constructors::mma_shared(case).and_then(|agreement| descriptors::derived(case).map(|()| agreement))
        }
        "tcgen05_atom_layout" => constructors::tcgen05_atom(case),
        "tmem_datapath_layout" => constructors::tmem_datapath(case),
        "tmem_mma_operand_layout" => constructors::tmem_operand(case),
        "wg_local_layout" => constructors::wg_local(case),
        "sf_tmem_layout" => constructors::sf_tmem(case),
        "sf_smem_layout" => constructors::sf_smem(case),
        "trainium" => return Verdict::OutOfScope("layouts of another vendor's scratchpad"),
        other => return Verdict::NotCovered(format!("the operation `{other}`")),
    };
    match result {
        Ok(Agreement::Same) if is_quirk(case) => Verdict::Passed(Agreement::Right(reason(case))),
        Ok(agreement) => Verdict::Passed(agreement),
        Err(why) => Verdict::Failed(why),
    }
}

/// Why the recorded answer of a quirk must not be reproduced: the tag after `quirk`.
fn reason(case: &Value) -> String {
    let mut tags = case["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
    tags.rfind(|tag| !["quirk", "edge", "mismatched"].contains(tag)).unwrap_or("no reason recorded").to_string()
}

/// True for a case whose known answer is odd or wrong.
pub(crate) fn is_quirk(case: &Value) -> bool {
    case["tags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == "quirk"))
}

/// Returns an error with both values if they differ.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what}: got {got:?}, expected {expected:?}")) }
}

pub(crate) fn integers(value: &Value) -> Result<Vec<i64>, String> {
    let list = value.as_array().ok_or_else(|| format!("expected a list: {value}"))?;
    list.iter().map(|v| v.as_i64().ok_or_else(|| format!("expected an integer: {v}"))).collect()
}
