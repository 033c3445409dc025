//! The conversions that a page can show.

use serde_json::json;
use tilewright_layout::conversion::{Conversion, find_conversions};
use tilewright_layout::{Layout, LayoutError, TileLayout};

/// The longest plan that a page includes, in bytes of JSON: stepping through a longer one would be slow.
const MAX_PLAN_BYTES: usize = 1 << 21;

/// How one layout is converted into another. The page itself does no planning: it shows this conversion if its layouts
/// and the width of its elements equal the ones here, however the layouts are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageConversion {
    /// The layout to convert from, in canonical notation.
    from: String,
    /// The layout to convert to, in canonical notation.
    to: String,
    /// Bits of an element.
    bits: i64,
    /// The line above the drawing.
    summary: String,
    /// The plan that can be stepped through, as [`Conversion::to_json_text`] writes it.
    plan: Option<String>,
}

impl PageConversion {
    /// A conversion between register fragments, for elements of `bits` bits: the steps of the cheapest plan, and the
    /// costs of other kinds of plan. Of a plan too long for a page, only the cost. Errors: as [`find_conversions`].
    pub fn between_fragments(from: &TileLayout, to: &TileLayout, bits: i64) -> Result<PageConversion, LayoutError> {
        let plans = find_conversions(from, to, bits)?;
        let (summary, plan) = summary_and_steps(&plans, MAX_PLAN_BYTES);
        Ok(PageConversion { from: from.to_string(), to: to.to_string(), bits, summary, plan })
    }

    /// A conversion without steps, such as a collective over devices: only `summary` is shown.
    pub fn without_steps(from: &Layout, to: &Layout, bits: i64, summary: impl Into<String>) -> PageConversion {
        PageConversion { from: from.to_string(), to: to.to_string(), bits, summary: summary.into(), plan: None }
    }

    /// The conversion as the page reads it.
    pub(super) fn json_text(&self) -> String {
        let PageConversion { from, to, bits, summary, plan } = self;
        let (from, to, summary) = (json!(from), json!(to), json!(summary));
        let plan = plan.as_deref().unwrap_or("null");
        format!(r#"{{"from":{from},"to":{to},"bits":{bits},"summary":{summary},"plan":{plan}}}"#)
    }
}

/// The kind of the first plan with its cost, and the costs of the other kinds; then the first plan as JSON, if that has
/// at most `most_bytes` bytes.
fn summary_and_steps(plans: &[Conversion], most_bytes: usize) -> (String, Option<String>) {
    let first = plans.iter().take(1).map(|plan| format!("{}: {}", plan.kind.name(), plan.cost));
    let others: Vec<String> =
        plans.iter().skip(1).map(|plan| format!("{} {}", plan.kind.name(), plan.cost.total())).collect();
    let others = (!others.is_empty()).then(|| format!("also possible: {}", others.join(", ")));
    let steps = plans.first().map(Conversion::to_json_text).filter(|text| text.len() <= most_bytes);
    let left_out = steps.is_none().then(|| "it has too many steps for a page".to_string());
    (first.chain(others).chain(left_out).collect::<Vec<_>>().join("; "), steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAGMENT: &str = "S[(8,4,2):(4@laneid,1@laneid,1)]";
    const TRANSPOSE: &str = "S[(4,2,8):(1@laneid,1,4@laneid)]";

    #[test]
    fn fragments_have_the_cheapest_plan_and_what_the_others_cost() {
        let (from, to) = (FRAGMENT.parse().unwrap(), TRANSPOSE.parse().unwrap());
        let text = PageConversion::between_fragments(&from, &to, 32).unwrap().json_text();
        let begin = concat!(
            r#"{"from":"S[(8,4,2):(4@laneid,1@laneid,1@m)]","to":"S[(4,2,8):(1@laneid,1@m,4@laneid)]","bits":32,"#,
            r#""summary":"shuffles: cost 44 a warp (2 shuffles, 2 computed source lanes, 4 selects); "#,
            "also possible: staging ",
        );
        assert!(text.starts_with(begin), "{text}");
        let plan = find_conversions(&from, &to, 32).unwrap()[0].to_json_text();
        assert!(text.ends_with(&format!(r#","plan":{plan}}}"#)), "{text}");
    }

    #[test]
    fn of_a_plan_that_is_too_long_only_the_cost_is_kept() {
        let plans = find_conversions(&FRAGMENT.parse().unwrap(), &FRAGMENT.parse().unwrap(), 32).unwrap();
        let (summary, steps) = summary_and_steps(&plans[..1], 100);
        assert_eq!((summary.as_str(), steps), ("nothing: cost 0 a warp; it has too many steps for a page", None));
    }

    #[test]
    fn layouts_that_cannot_be_converted_are_refused() {
        let refused = PageConversion::between_fragments(&FRAGMENT.parse().unwrap(), &"S[32:1@tx]".parse().unwrap(), 32);
        assert_eq!(refused.unwrap_err().code(), "L0105");
    }

    #[test]
    fn a_conversion_without_steps_has_a_summary_only() {
        let (from, to) = ("S[8:1]".parse().unwrap(), "S[(4,2):(1,4)]".parse().unwrap());
        let expected = r#"{"from":"S[8:1@m]","to":"S[(4,2):(1@m,4@m)]","bits":16,"summary":"a \"copy\"","plan":null}"#;
        assert_eq!(PageConversion::without_steps(&from, &to, 16, "a \"copy\"").json_text(), expected);
    }
}
