//! The interactive page in headless Chromium: its parser, evaluator and bank model against those in Rust, the plans that
//! it is made with, and what it does when it is pointed at, edited, swizzled and stepped through.
//!
//! Chromium is looked for on the path. Without it the test is listed as skipped; `TILEWRIGHT_REQUIRE_CHROMIUM=1` makes
//! that a failure.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use tilewright::diag::nearest;
use tilewright::files::read_text;
use tilewright::layout::access::{AccessKind, LANES, WarpAccess};
use tilewright::layout::axis::HARDWARE;
use tilewright::layout::conversion::find_conversion;
use tilewright::layout::hardware::{MmaType, SwizzleMode};
use tilewright::layout::{Axis, DType, Layout, LayoutError};
use tilewright::viz::layout_page::{PageConversion, PageState, PageView, layout_page};
use tilewright_tests::browser::Browser;
use tilewright_tests::golden::FILES;
use tilewright_tests::toolchain::package;

/// Layouts with more elements are left out of the comparison, which asks Rust for them one by one.
const MOST_ELEMENTS: i64 = 1024;
/// Fragments to convert into each other, and bits of an element: plans of every kind.
const CONVERSIONS: [(&str, &str, i64); 10] = [
    ("S[(8,4,8):(4@laneid,1@laneid,1@reg)]", "S[(4,8,8):(1@laneid,1@reg,4@laneid)]", 4),
    ("S[(4,32,8):(1@warpid,1@laneid,1@reg)]", "S[(8,32,4):(1@reg,1@laneid,1@warpid)]", 4),
    ("S[(8,4):(4@laneid,1@laneid)]", "S[32:1@tx]", 32),
    ("S[(32,4):(1@laneid,1@reg)]", "S[(32,2,2):(1@laneid,1@reg,2@reg)]", 32),
    ("S[(32,4):(1@laneid,1@reg)]", "S[(32,2,2):(1@laneid,1@reg,2@reg)]", 16),
    ("S[(8,4,2):(4@laneid,1@laneid,1@reg)]", "S[(4,2,8):(1@laneid,1@reg,4@laneid)]", 32),
    ("S[(2,16,2):(16@laneid,1@laneid,1@reg)]", "S[(2,16,2):(1@reg,1@laneid,16@laneid)]", 64),
    ("S[4:1@reg]", "S[4:1@reg] + R[32:1@laneid]", 32),
    ("S[(4,32,4):(1@warpid,1@laneid,1@reg)]", "S[(4,32,4):(1@reg,1@laneid,1@warpid)]", 32),
    ("S[(24,5):(1@laneid,1@reg)]", "S[(5,24):(1@reg,1@laneid)]", 16),
];
/// A conversion that has no steps to go through: layouts, bits of an element, and what there is to say about it.
const WITHOUT_STEPS: (&str, &str, i64, &str) =
    ("S[(4,512):(1@gpuid_x,1@m)]", "S[2048:1@m] + R[4:1@gpuid_x]", 16, "collective: all-gather over gpuid_x");
/// For every width of an element that the page offers, the type that its commands name.
const DTYPES: [&str; 6] = ["e2m1", "e4m3", "f16", "f32", "f64", "b128"];
/// Texts that are no layouts in more than one way.
const WRONG: [&str; 24] = [
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
/// Texts with characters of more than one byte.
const WIDE: [&str; 4] =
    ["S[8:1\u{e9}]", "\u{2003}S[8:1@\u{3b1}\u{3b2}]\u{85}", "S[8:1@\u{1d538}] \u{1f600}", "S[8:\u{bd}]"];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_asked = |name: &str| words.iter().all(|word| format!("layout_page: {name}").contains(word.as_str()));
    let pages =
        [("the page as it is", String::new()), ("the page behind a link", format!("#{}&p=3", linked().address()))];
    let pages: Vec<(&str, String)> = pages.into_iter().filter(|(name, _)| is_asked(name)).collect();
    if pages.is_empty() {
        return ExitCode::SUCCESS;
    }
    let Some(browser) = Browser::find() else { return without_browser() };
    let mut failed = 0;
    for (name, fragment) in pages {
        match drive(&browser, &begin(), &fragment) {
            Ok(verdict) => failed += told(name, &verdict),
            Err(why) => {
                failed += 1;
                println!("failed {name}: {why}");
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn without_browser() -> ExitCode {
    const NAME: &str = "layout page: no Chromium on the path";
    if std::env::var_os("TILEWRIGHT_REQUIRE_CHROMIUM").is_some_and(|value| value == "1") {
        println!("failed {NAME}, and TILEWRIGHT_REQUIRE_CHROMIUM=1 asks for it");
        return ExitCode::FAILURE;
    }
    println!("skipped {NAME}");
    if let Some(list) = std::env::var_os("TILEWRIGHT_SKIPPED")
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(list)
    {
        // One write, so that tests side by side do not mix their lines.
        let _ = file.write_all(format!("{NAME}\n").as_bytes());
    }
    ExitCode::SUCCESS
}

/// Prints what the page said of itself; the number of failures.
fn told(name: &str, verdict: &Value) -> usize {
    let list = |field: &str| verdict[field].as_array().cloned().unwrap_or_default();
    let (passed, failures) = (list("passed"), list("failures"));
    for failure in &failures {
        println!("failed {name}: {}", failure.as_str().unwrap_or("?"));
    }
    println!("{name}: {} passed, {} failed; {}", passed.len(), failures.len(), verdict["timings"]);
    if passed.is_empty() { failures.len().max(1) } else { failures.len() }
}

/// The state that the pages of this test begin with.
fn begin() -> PageState {
    let layout = "S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)] + R[2:4@warpid] + 5@warpid";
    PageState { shape: vec![8, 16], ..PageState::new(layout) }
}

/// The state that a link gives in its place.
fn linked() -> PageState {
    PageState {
        shape: vec![8, 4],
        bits: 32,
        view: PageView::Banks,
        swizzle: Some(SwizzleMode::B64),
        access: Some("S[(4,8):(8@laneid,1@laneid)]".to_string()),
        ..PageState::new("S[(4,8):(8,1)] + 5")
    }
}

/// Opens the page at an address and reads what its harness leaves in the document.
fn drive(browser: &Browser, state: &PageState, fragment: &str) -> Result<Value, String> {
    let (layout, to, bits, summary) = WITHOUT_STEPS;
    let given = json!({
        "texts": texts()?,
        "layouts": layouts()?,
        "axes": axes(),
        "meant": meant(),
        "accesses": accesses(),
        "conversions": conversions().map_err(|e| e.to_string())?,
        "withoutSteps": { "layout": layout, "to": to, "bits": bits, "summary": summary },
        "dtypes": DTYPES.map(|name| json!([bits_of(name), name])),
        "linked": !fragment.is_empty(),
    });
    let given = given.to_string().replace('<', "\\u003c");
    let harness = include_str!("layout_page/harness.js");
    let page = page_conversions().and_then(|known| layout_page(state, &known)).map_err(|e| e.to_string())?;
    browser.run(&page, &format!("const GIVEN = {given};\n{harness}"), fragment)
}

/// Every text in the golden vectors that has the look of a layout.
fn golden_texts() -> Result<BTreeSet<String>, String> {
    let folder = std::env::var_os("TILEWRIGHT_GOLDEN_DIR").map_or_else(|| package().join("golden"), PathBuf::from);
    let mut texts = BTreeSet::new();
    for name in FILES {
        let file = folder.join("tirx").join(format!("{name}.json"));
        let text = read_text(&file).map_err(|error| error.to_string())?;
        collect(&serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?, &mut texts);
    }
    Ok(texts)
}

fn collect(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if ["S[", "R[", "swizzle("].iter().any(|sign| text.contains(sign)) => {
            texts.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, texts)),
        _ => {}
    }
}

/// Texts with what Rust makes of them: canonical text, or code, message and fix.
fn texts() -> Result<Vec<Value>, String> {
    let mut texts = golden_texts()?;
    texts.extend(WRONG.iter().chain(&WIDE).map(|text| text.to_string()));
    let broken: Vec<String> = WRONG.iter().chain(&WIDE).flat_map(|text| mutations(text)).collect();
    texts.extend(mutations(&begin().layout));
    texts.extend(mutations("swizzle(M=3,B=3,S=3,inner=false) o S[(8,64):(64@m,1@m)]"));
    texts.extend(broken);
    Ok(texts.iter().map(|text| reading(text)).collect())
}

/// The text cut off at, and with a character lost or another put in at, every place.
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

/// Golden layouts with the digest of all their places as Rust evaluates them.
fn layouts() -> Result<Vec<Value>, String> {
    let parsed =
        golden_texts()?.into_iter().filter_map(|text| text.parse::<Layout>().ok().map(|layout| (text, layout)));
    let small = parsed.filter(|(_, layout)| layout.size() <= MOST_ELEMENTS);
    small.map(|(text, layout)| Ok(json!([text, digest(&layout).map_err(|e| e.to_string())?]))).collect()
}

/// The names of the axes of hardware, in order.
fn axes() -> BTreeSet<&'static str> {
    HARDWARE.iter().map(Axis::name).collect()
}

/// Names near to those of axes, and far from all, with the axis that Rust takes each for.
fn meant() -> Vec<Value> {
    let axes = axes();
    let mut given: BTreeSet<String> = axes.iter().flat_map(|name| slips(name)).collect();
    given.extend(["partition", "lane", "warp", "thread", "tidx", "gpu", "zzzzzz"].map(str::to_string));
    given.extend(WIDE.iter().map(|text| text.to_string()));
    given.iter().map(|given| json!([given, nearest(given, axes.iter().copied())])).collect()
}

/// What a slip makes of a name: at every place a character lost, put in, replaced or exchanged with the next, and the
/// rest lost; and all characters turned round.
fn slips(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut slips = vec![characters.iter().rev().collect(), name.to_uppercase()];
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

/// Conversions with the plan that Rust makes, as text.
fn conversions() -> Result<Vec<Value>, LayoutError> {
    let planned = |(a, b, bits): (&str, &str, i64)| {
        let plan = find_conversion(&a.parse()?, &b.parse()?, bits)?;
        Ok(json!([a, b, bits, plan.to_json_text()]))
    };
    CONVERSIONS.into_iter().map(planned).collect()
}

/// What the page is made with.
fn page_conversions() -> Result<Vec<PageConversion>, LayoutError> {
    let (from, to, bits, summary) = WITHOUT_STEPS;
    let mut known = vec![PageConversion::without_steps(&from.parse()?, &to.parse()?, bits, summary)];
    for (from, to, bits) in CONVERSIONS {
        known.push(PageConversion::between_fragments(&from.parse()?, &to.parse()?, bits)?);
    }
    Ok(known)
}

/// Bits of an element, as the layout tool takes the name; `None` for a name that it does not know.
fn bits_of(name: &str) -> Option<i64> {
    let dtype = name.parse::<DType>().ok().map(|dtype| dtype.bytes() * 8);
    dtype.or_else(|| name.parse::<MmaType>().ok().map(MmaType::bits))
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

/// Accesses of a warp with their wavefronts: of all widths, strided, paired, scattered, with idle lanes.
fn accesses() -> Vec<Value> {
    let mut random = 1u64;
    let mut next = move |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut accesses = Vec::new();
    for width in [1, 2, 4, 8, 16] {
        for case in 0..60 {
            let (stride, merged, idle) = (next(40), [0, 1, 2, 3][case % 4], case % 5 == 4);
            let scattered: Vec<u64> = (0..LANES).map(|_| next(64)).collect();
            let address = |lane: usize| {
                let leader = lane & !merged;
                let unit = if case.is_multiple_of(3) { scattered[leader] } else { leader as u64 * stride };
                (!idle || !lane.is_multiple_of(3)).then_some(unit * width)
            };
            for (kind, name) in [(AccessKind::Load, "load"), (AccessKind::Store, "store")] {
                let access = WarpAccess::of(width, kind, address);
                let cost = [access.wavefronts(), access.ideal_wavefronts()];
                accesses.push(json!({ "addresses": access.addresses, "width": width, "kind": name, "cost": cost }));
            }
        }
    }
    accesses
}
