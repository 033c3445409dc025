//! Golden vectors: small questions about layouts with known answers, one JSON file per group of operations.

mod layouts;
mod permute;
mod table;

use std::path::Path;

use serde_json::Value;

/// What a case came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every field of the answer was compared and agrees.
    Passed,
    /// Something differs.
    Failed(String),
    /// The case is about something this project does not have.
    NotCovered(String),
}

/// The files that are read, in this order.
pub const FILES: [&str; 6] = ["notation", "apply", "canonicalize", "group", "slice", "permute_layout"];

/// A case and its verdict.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The case's id.
    pub id: String,
    /// What it came to.
    pub verdict: Verdict,
}

/// Judges all cases of `<folder>/tirx/<file>.json`. The error says which file cannot be read.
pub fn judge_folder(folder: &Path) -> Result<Vec<Judged>, String> {
    let mut judged = Vec::new();
    for file in FILES {
        let path = folder.join("tirx").join(format!("{file}.json"));
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
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
    let result = match op {
        "parse" => layouts::parse(case),
        "apply" => layouts::apply(case),
        "apply_shape" => layouts::apply_shape(case),
        "apply_raw" => layouts::apply_raw(case),
        "canonicalize" => layouts::canonicalize(case),
        "get_scope" => {
            return Verdict::NotCovered(
                "get_scope: scopes are the primitives' business, layouts have none".to_string(),
            );
        }
        "group" => layouts::group(case),
        "group_many" => layouts::group_many(case),
        "slice" => layouts::slice(case),
        "choose_xor_k" => permute::choose_xor_k(case),
        "dispatch" => permute::dispatch(case),
        other => return Verdict::NotCovered(format!("the operation `{other}`")),
    };
    match result {
        Ok(()) => Verdict::Passed,
        Err(why) => Verdict::Failed(why),
    }
}

/// True for a case whose known answer is odd or wrong.
pub(crate) fn is_quirk(case: &Value) -> bool {
    case["tags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == "quirk"))
}

/// Fails with both values where they differ.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what}: got {got:?}, expected {expected:?}")) }
}

pub(crate) fn integers(value: &Value) -> Result<Vec<i64>, String> {
    let list = value.as_array().ok_or_else(|| format!("no list: {value}"))?;
    list.iter().map(|v| v.as_i64().ok_or_else(|| format!("no integer: {v}"))).collect()
}
