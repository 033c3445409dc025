//! Valid notation from which mutations start.

use serde_json::Value;
use tilewright::layout::hardware::{catalogue, named};
use tilewright::viz::layout::gallery;

use crate::toolchain::package;

/// Swizzles, which are missing from the golden notation.
const SWIZZLES: [&str; 5] = [
    "swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]",
    "swizzle(M=4,B=2,S=3,inner=false) o S[64:1@m]",
    "swizzle(M=2,B=3,S=3) o S[(4,32,32):(1024,32,1)] + R[2:4096] + 64",
    "swizzle(M=0,B=1,S=1) o S[(2,3,5):(15,5,1)]",
    "swizzle(M=3,B=0,S=3) o S[():()]",
];

/// Every layout of the golden notation and of the documents, swizzles, and a hardware layout of each family.
pub(crate) fn seeds() -> Vec<String> {
    let mut seeds = golden("notation", "text");
    seeds.extend(golden("apply", "layout"));
    seeds.extend(gallery().iter().map(|entry| entry.notation.to_string()));
    seeds.extend(SWIZZLES.map(str::to_string));
    seeds
        .extend(catalogue().iter().filter_map(|entry| named(entry.example).ok()).map(|named| named.layout.to_string()));
    seeds
}

/// The field `field` of the input of every case of a golden file.
fn golden(file: &str, field: &str) -> Vec<String> {
    let path = package().join("golden/tirx").join(format!("{file}.json"));
    let text = std::fs::read_to_string(path).expect("the golden data are committed");
    let data: Value = serde_json::from_str(&text).expect("the golden data are JSON");
    let cases = data["cases"].as_array().into_iter().flatten();
    cases.filter_map(|case| case["in"][field].as_str()).map(str::to_string).collect()
}
