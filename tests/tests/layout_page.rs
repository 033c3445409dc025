//! The interactive page in headless Chromium: its parser, evaluator and bank model are compared with those in Rust on
//! all golden vectors. The embedded plans, and pointing, editing, swizzling and stepping, are tested too.
//!
//! Chromium is searched for in `PATH`. Without it, the test is listed as skipped; with `TILEWRIGHT_REQUIRE_CHROMIUM=1`,
//! that is a failure.

#[path = "layout_page/banks.rs"]
mod banks;
#[path = "layout_page/conversions.rs"]
mod conversions;
#[path = "layout_page/golden.rs"]
mod golden;
#[path = "layout_page/texts.rs"]
mod texts;

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use serde_json::{Value, json};
use tilewright::layout::LayoutError;
use tilewright::layout::hardware::SwizzleMode;
use tilewright::viz::layout_page::{PageState, PageView, layout_page};
use tilewright_tests::browser::Browser;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_asked = |name: &str| words.iter().all(|word| format!("layout_page: {name}").contains(word.as_str()));
    let pages = [("the page as it is", String::new()), ("the page at a link", format!("#{}&p=3", linked().address()))];
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
        println!("failed {NAME}, required by TILEWRIGHT_REQUIRE_CHROMIUM=1");
        return ExitCode::FAILURE;
    }
    println!("skipped {NAME}");
    if let Some(list) = std::env::var_os("TILEWRIGHT_SKIPPED")
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(list)
    {
        // One write, so that lines of tests that run in parallel do not interleave.
        let _ = file.write_all(format!("{NAME}\n").as_bytes());
    }
    ExitCode::SUCCESS
}

/// Prints the results of the page's checks. Returns the number of failures.
fn told(name: &str, verdict: &Value) -> usize {
    let list = |field: &str| verdict[field].as_array().cloned().unwrap_or_default();
    let (passed, failures) = (list("passed"), list("failures"));
    for failure in &failures {
        println!("failed {name}: {}", failure.as_str().unwrap_or("?"));
    }
    println!("{name}: {} passed, {} failed; {}", passed.len(), failures.len(), verdict["timings"]);
    if passed.is_empty() { failures.len().max(1) } else { failures.len() }
}

/// The initial state of the pages of this test.
fn begin() -> PageState {
    let layout = "S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)] + R[2:4@warpid] + 5@warpid";
    PageState { shape: vec![8, 16], ..PageState::new(layout) }
}

/// The state given by a link instead.
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

/// Opens the page at an address and reads the results that its harness leaves in the document.
fn drive(browser: &Browser, state: &PageState, fragment: &str) -> Result<Value, String> {
    let known = conversions::on_page().map_err(|e| e.to_string())?;
    let page = layout_page(state, &known).map_err(|e| e.to_string())?;
    // For a link, only the address is checked.
    let given = if fragment.is_empty() {
        expected(&golden::texts()?).map_err(|e| e.to_string())?
    } else {
        json!({ "linked": true })
    };
    let given = given.to_string().replace('<', "\\u003c");
    let harness = include_str!("layout_page/harness.js");
    browser.run(&page, &format!("const GIVEN = {given};\n{harness}"), fragment)
}

/// The expected answers, computed in Rust; `texts` are the layouts of the golden vectors.
fn expected(texts: &BTreeSet<String>) -> Result<Value, LayoutError> {
    Ok(json!({
        "linked": false,
        "texts": texts::readings(texts),
        "layouts": golden::places(texts)?,
        "axes": texts::axes(),
        "meant": texts::meant(),
        "accesses": banks::warp_accesses(),
        "goldenAccesses": banks::golden_accesses(texts),
        "addresses": banks::addresses(),
        "modes": banks::modes()?,
        "conversions": conversions::planned()?,
        "withoutSteps": conversions::without_steps(),
        "dtypes": conversions::dtypes(),
    }))
}
