//! The interactive page of a layout: one self-contained HTML file that needs no network and no framework.
//!
//! The page evaluates layouts itself, so that notation and shape can be edited in it; tests compare its parser,
//! its evaluator and its bank model with those in Rust. It does not plan conversions: those that it can show are passed
//! to it as data, and for others it shows the command that plans them.
//!
//! Its parts are in `assets/layout`; [`layout_page`] joins them with the data. A link to the page may carry another
//! state after `#`, which takes precedence: `l` layout, `s` shape, `b` bits, `w` swizzle, `a` access, `k` load or
//! store, `n` vector, `t` to, `p` pinned element, `v` view.

mod conversion;
mod examples;
mod state;

use serde_json::{Value, json};
use tilewright_layout::LayoutError;

pub use conversion::PageConversion;
pub use state::{PageState, PageView};

use examples::{conversion_of, examples};

const PAGE: &str = include_str!("../assets/layout/page.html");
const STYLE: &str = include_str!("../assets/layout/page.css");

/// The scripts, in order: each may use those before it.
const SCRIPTS: &[&str] = &[
    include_str!("../assets/layout/data.js"),
    include_str!("../assets/layout/error.js"),
    include_str!("../assets/layout/layouts.js"),
    include_str!("../assets/layout/fix.js"),
    include_str!("../assets/layout/notation.js"),
    include_str!("../assets/layout/axes.js"),
    include_str!("../assets/layout/shape.js"),
    include_str!("../assets/layout/model.js"),
    include_str!("../assets/layout/table.js"),
    include_str!("../assets/layout/fragment.js"),
    include_str!("../assets/layout/banks.js"),
    include_str!("../assets/layout/palette.js"),
    include_str!("../assets/layout/paint.js"),
    include_str!("../assets/layout/grid_view.js"),
    include_str!("../assets/layout/grids.js"),
    include_str!("../assets/layout/conversions.js"),
    include_str!("../assets/layout/plan_steps.js"),
    include_str!("../assets/layout/scene.js"),
    include_str!("../assets/layout/address.js"),
    include_str!("../assets/layout/stepper.js"),
    include_str!("../assets/layout/steps.js"),
    include_str!("../assets/layout/nearest.js"),
    include_str!("../assets/layout/facts.js"),
    include_str!("../assets/layout/forms.js"),
    include_str!("../assets/layout/main.js"),
];

/// The page, as the text of one HTML file. It starts in `state` and can show `conversions`, as well as those of its
/// examples. Error: an example whose conversion cannot be planned.
pub fn layout_page(state: &PageState, conversions: &[PageConversion]) -> Result<String, LayoutError> {
    let data = data(state, conversions)?;
    // The data is inserted last, so that a placeholder inside a layout's text is not replaced.
    let page = PAGE.replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", &SCRIPTS.concat());
    Ok(page.replace("/*DATA*/", &data))
}

/// The data of the page, as JSON. Every `<` is escaped, so that no text can end the script element that contains it.
fn data(state: &PageState, conversions: &[PageConversion]) -> Result<String, LayoutError> {
    let mut known: Vec<String> = conversions.iter().map(PageConversion::json_text).collect();
    let mut listed: Vec<Value> = Vec::new();
    for (name, example) in examples() {
        known.extend(conversion_of(&example)?.map(|conversion| conversion.json_text()));
        listed.push(json!({"name": name, "state": example.json()}));
    }
    let (known, listed, state) = (known.join(","), Value::from(listed), state.json());
    let data = format!(r#"{{"conversions":[{known}],"examples":{listed},"state":{state}}}"#);
    Ok(data.replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(layout: &str) -> String {
        layout_page(&PageState::new(layout), &[]).unwrap()
    }

    /// The data that is embedded in the page.
    fn data_in(page: &str) -> Value {
        let (_, rest) = page.split_once(r#"<script type="application/json" id="data">"#).unwrap();
        serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
    }

    #[test]
    fn every_part_is_in_the_page() {
        let page = page("S[(8,16):(16,1)]");
        assert!(SCRIPTS.iter().all(|script| page.contains(script)) && page.contains(STYLE));
        assert!(!["/*STYLE*/", "/*SCRIPT*/", "/*DATA*/"].iter().any(|placeholder| page.contains(placeholder)));
    }

    #[test]
    fn the_page_is_made_with_its_conversions_and_those_of_the_examples() {
        let (from, to) = ("S[8:1]".parse().unwrap(), "S[8:1] + 8".parse().unwrap());
        let conversion = PageConversion::without_steps(&from, &to, 8, "none: both are in memory");
        let data = data_in(&layout_page(&PageState::new("S[8:1]"), &[conversion]).unwrap());
        let summaries: Vec<&str> =
            data["conversions"].as_array().unwrap().iter().filter_map(|c| c["summary"].as_str()).collect();
        assert_eq!((summaries.len(), summaries[0]), (3, "none: both are in memory"));
        assert_eq!((&data["state"]["layout"], data["examples"].as_array().unwrap().len()), (&json!("S[8:1]"), 12));
    }

    #[test]
    fn no_text_of_the_data_ends_its_script() {
        let page = page("</script><script>/*STYLE*/");
        assert!(page.contains(r#""layout":"\u003c/script>\u003cscript>/*STYLE*/""#));
        assert_eq!(data_in(&page)["state"]["layout"], "</script><script>/*STYLE*/");
    }

    #[test]
    fn the_page_loads_nothing() {
        let page = page("S[8:1]");
        assert!(!["http:", "https:", "src=", "@import", "fetch("].iter().any(|sign| page.contains(sign)));
    }
}
