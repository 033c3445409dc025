//! The conversions embedded in the page.

use serde_json::{Value, json};
use tilewright::layout::conversion::find_conversion;
use tilewright::layout::hardware::MmaType;
use tilewright::layout::{DType, LayoutError};
use tilewright::viz::layout_page::PageConversion;

/// Pairs of fragments to convert, with the element width in bits: plans of every kind.
const PLANNED: [(&str, &str, i64); 10] = [
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
/// A conversion without steps: layouts, element width in bits, and its description.
const WITHOUT_STEPS: (&str, &str, i64, &str) =
    ("S[(4,512):(1@gpuid_x,1@m)]", "S[2048:1@m] + R[4:1@gpuid_x]", 16, "collective: all-gather over gpuid_x");
/// For every element width offered by the page, the type used in its commands.
const DTYPES: [&str; 6] = ["e2m1", "e4m3", "f16", "f32", "f64", "b128"];

/// All conversions, for the page.
pub(crate) fn on_page() -> Result<Vec<PageConversion>, LayoutError> {
    let (from, to, bits, summary) = WITHOUT_STEPS;
    let mut known = vec![PageConversion::without_steps(&from.parse()?, &to.parse()?, bits, summary)];
    for (from, to, bits) in PLANNED {
        known.push(PageConversion::between_fragments(&from.parse()?, &to.parse()?, bits)?);
    }
    Ok(known)
}

/// The conversions with a plan: `[from, to, bits, plan as text]`.
pub(crate) fn planned() -> Result<Vec<Value>, LayoutError> {
    let planned = |(a, b, bits): (&str, &str, i64)| {
        let plan = find_conversion(&a.parse()?, &b.parse()?, bits)?;
        Ok(json!([a, b, bits, plan.to_json_text()]))
    };
    PLANNED.into_iter().map(planned).collect()
}

/// The conversion without steps.
pub(crate) fn without_steps() -> Value {
    let (layout, to, bits, summary) = WITHOUT_STEPS;
    json!({ "layout": layout, "to": to, "bits": bits, "summary": summary })
}

/// Element widths in bits, each with the type used in the page's commands.
pub(crate) fn dtypes() -> Vec<Value> {
    DTYPES.iter().map(|name| json!([bits_of(name), name])).collect()
}

/// The element width of a type name accepted by the layout tool; `None` for an unknown name.
fn bits_of(name: &str) -> Option<i64> {
    let dtype = name.parse::<DType>().ok().map(|dtype| dtype.bytes() * 8);
    dtype.or_else(|| name.parse::<MmaType>().ok().map(MmaType::bits))
}
