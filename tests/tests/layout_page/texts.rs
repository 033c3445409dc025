//! Texts that the page parses, and the results of parsing them in Rust.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tilewright::diag::nearest;
use tilewright::layout::axis::HARDWARE;
use tilewright::layout::{Axis, Layout, LayoutError};

/// Texts with several mistakes.
const WRONG: [&str; 27] = [
    "",
    "  ",
    "S",
    "S[8:1] extra",
    "S[8:1] + ",
    "S[8:1] + S[4:2]",
    "R[2:1] + R[2:1]",
    "S[(0,4):(4,1)]",
    "S[(8,-4):(4,1)]",
    "S[(8,2):(4@)]",
    "S[(8,2):(4,)]",
    "S[8 1]",
    "(8,4):(4,1)",
    "\u{2003}S(8,4):(4,1) + R (2):(8)\u{85}",
    "swizzle(M=3,B=3,S=3) o (8,64):(64,1)",
    "S[8:1@3x]",
    "S[8:-]",
    "S[99999999999999999999:1]",
    "S[4611686018427387904,4:1,1]",
    "S[4611686018427387904,4]",
    "S[8:1] + 9223372036854775807@w + 1@w",
    "swizzle(M=3,B=3) o S[8:1]",
    "swizzle(M=3,B=3,S=2) o S[8:1]",
    "swizzle(M=63,B=0,S=0) o S[8:1]",
    "swizzle(M=3,B=3,S=3,outer) o S[8:1]",
    "swizzle(M=0,B=1,S=1) o S[(4,8):(1@laneid,1)]",
    "swizzle(M=0,B=1,S=1) o S[8:-1] + 3",
];
/// Texts with multi-byte characters.
const WIDE: [&str; 4] =
    ["S[8:1\u{e9}]", "\u{2003}S[8:1@\u{3b1}\u{3b2}]\u{85}", "S[8:1@\u{1d538}] \u{1f600}", "S[8:\u{bd}]"];
/// Texts whose mutations are parsed, too.
const RIGHT: [&str; 2] = [
    "S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)] + R[2:4@warpid] + 5@warpid",
    "swizzle(M=3,B=3,S=3,inner=false) o S[(8,64):(64@m,1@m)]",
];

/// These texts and others, valid and invalid, with the canonical text, or code, message and fix.
pub(crate) fn readings(texts: &BTreeSet<String>) -> Vec<Value> {
    let more = || WRONG.iter().chain(&WIDE).chain(&RIGHT);
    let mut all = texts.clone();
    all.extend(more().map(|text| text.to_string()));
    all.extend(more().flat_map(|text| mutations(text)));
    all.iter().map(|text| reading(text)).collect()
}

/// The text truncated at every position, and with a character deleted or inserted at every position.
fn mutations(text: &str) -> Vec<String> {
    let cut = |(at, c): (usize, char)| {
        let (before, after) = (&text[..at], &text[at + c.len_utf8()..]);
        [before.to_string(), format!("{before}{after}"), format!("{before}){c}{after}"), format!("{before}-{after}")]
    };
    text.char_indices().flat_map(cut).collect()
}

fn reading(text: &str) -> Value {
    match text.parse::<Layout>() {
        Ok(layout) => json!([text, layout.to_string()]),
        Err(error) => json!([text, [error.code(), error.to_string(), fix_of(&error)]]),
    }
}

fn fix_of(error: &LayoutError) -> Option<&str> {
    match error {
        LayoutError::Notation { fix, .. } => fix.as_deref(),
        _ => None,
    }
}

/// The names of the axes of hardware, in order.
pub(crate) fn axes() -> BTreeSet<&'static str> {
    HARDWARE.iter().map(Axis::name).collect()
}

/// Names similar to those of axes, and unrelated ones, each with the axis suggested by Rust.
pub(crate) fn meant() -> Vec<Value> {
    let axes = axes();
    let mut given: BTreeSet<String> = axes.iter().flat_map(|name| slips(name)).collect();
    given.extend(["partition", "lane", "warp", "thread", "tidx", "gpu", "zzzzzz"].map(str::to_string));
    given.extend(WIDE.map(str::to_string));
    given.iter().map(|given| json!([given, nearest(given, axes.iter().copied())])).collect()
}

/// Misspellings of a name: at every position, a character deleted, inserted, replaced or swapped with the next, and the
/// rest truncated; and the whole name reversed, and in capitals.
fn slips(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut slips = vec![name.chars().rev().collect(), name.to_uppercase()];
    for at in 0..characters.len() {
        let (before, after) = (&name[..at], &name[at + 1..]);
        slips.extend([before.to_string(), format!("{before}{after}"), format!("{before}_{after}")]);
        slips.push(format!("{before}_{}", &name[at..]));
        if let Some(next) = characters.get(at + 1) {
            slips.push(format!("{before}{next}{}{}", characters[at], &name[at + 2..]));
            slips.push(format!("{before}{next}_{}{}", characters[at], &name[at + 2..]));
        }
    }
    slips
}
