//! The layouts of the golden vectors, and the places of their elements.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};
use tilewright::files::read_text;
use tilewright::layout::{Layout, LayoutError};
use tilewright_tests::golden::FILES;
use tilewright_tests::toolchain::package;

/// Every layout of the golden vectors as text, including those that must be refused.
pub(crate) fn texts() -> Result<BTreeSet<String>, String> {
    let folder = std::env::var_os("TILEWRIGHT_GOLDEN_DIR").map_or_else(|| package().join("golden"), PathBuf::from);
    let mut texts = BTreeSet::new();
    for name in FILES {
        let file = folder.join("tirx").join(format!("{name}.json"));
        let text = read_text(&file).map_err(|error| error.to_string())?;
        let data: Value = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
        collect(&data, &mut texts);
        let cases = data["cases"].as_array().ok_or_else(|| format!("{}: no cases", file.display()))?;
        texts.extend(cases.iter().flat_map(in_parts));
    }
    Ok(texts)
}

/// Every string that looks like a layout.
fn collect(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if ["S[", "R[", "swizzle("].iter().any(|sign| text.contains(sign)) => {
            texts.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, texts)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The layouts of a case that specifies them by parts: extents and strides, or the parameters of a swizzle.
fn in_parts(case: &Value) -> Vec<String> {
    let (input, out) = (&case["in"], &case["out"]);
    match case["op"].as_str().unwrap_or("") {
        "choose_xor_k" => {
            let strided = |side| format!("S[{}:{}]", tuple(&input["extent"]), tuple(&input[side]));
            vec![strided("src_strides"), strided("dst_strides")]
        }
        "swizzle_mode" | "swizzle_raw" => {
            // A swizzle that must be refused has no size.
            let size = out["size"].as_i64().or(out["n"].as_i64()).unwrap_or(1);
            let inner = if input["inner"] == false { ",inner=false" } else { "" };
            vec![format!("swizzle(M={},B={},S={}{inner}) o S[{size}:1]", input["M"], input["B"], input["S"])]
        }
        _ => Vec::new(),
    }
}

/// `(4,32)` for `[4,32]`.
fn tuple(list: &Value) -> String {
    list.to_string().replace('[', "(").replace(']', ")")
}

/// The texts that parse as layouts.
pub(crate) fn layouts(texts: &BTreeSet<String>) -> impl Iterator<Item = (&String, Layout)> {
    texts.iter().filter_map(|text| Some((text, text.parse().ok()?)))
}

/// Layouts with the digest of all their places.
pub(crate) fn places(texts: &BTreeSet<String>) -> Result<Vec<Value>, LayoutError> {
    layouts(texts).map(|(text, layout)| Ok(json!([text, digest(&layout)?]))).collect()
}

/// FNV-1a over the places of every element as text, positions in order of axis name.
fn digest(layout: &Layout) -> Result<u32, LayoutError> {
    let mut hash = 0x811c_9dc5u32;
    for flat in 0..layout.size() {
        for place in layout.apply(flat)? {
            let positions: Vec<String> = place.values().map(i64::to_string).collect();
            hash = fold(hash, &format!("{};", positions.join(",")));
        }
        hash = fold(hash, "\n");
    }
    Ok(hash)
}

fn fold(hash: u32, text: &str) -> u32 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
