//! The layout to convert the first one to: where they differ, and the plan between them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tilewright::diag::{Diagnostic, Severity, counted};
use tilewright::layout::axis::{AxisKind, Scope};
use tilewright::layout::conversion::{Conversion, find_conversion};
use tilewright::layout::mesh::{CollectivePlan, Mesh};
use tilewright::layout::{Axis, Layout, LayoutError};
use tilewright::viz::layout::{TextOptions, compare_text};
use tilewright::viz::layout_page::PageConversion;

use super::arguments::Arguments;
use super::failure::Failure;
use super::positions;
use super::subject::Subject;

/// What the layout to convert to is called in messages.
pub(super) const NAME: &str = "the layout of --to";

/// The other layout, and how to get there.
pub(super) struct Target {
    /// The layout to convert to.
    layout: Layout,
    plan: Plan,
}

enum Plan {
    /// Between the registers of threads.
    Registers(Box<Conversion>),
    /// Between the memories of devices.
    Devices(Box<CollectivePlan>),
    /// No conversion is planned, for this reason.
    Nothing(&'static str),
}

pub(super) fn read(text: &str, subject: &Subject, arguments: &Arguments) -> Result<Target, Failure> {
    let layout = Subject::read(text, arguments)?.layout;
    let (given, needed) = (layout.size(), subject.layout.size());
    if given != needed {
        let sizes = format!("`--to {text}` has {}, but `{}` has {needed}", counted(given, "element"), subject.name);
        let help = format!("give --to a layout of {}", counted(needed, "element"));
        let found = Diagnostic::error("L0105", sizes).help(help);
        return Err(Failure::Option(Box::new(found)));
    }
    let plan = plan(&subject.layout, &layout, subject.bits).map_err(|failure| named(failure, subject, &layout))?;
    Ok(Target { layout, plan })
}

/// The failure, if it is about positions that the hardware does not have, with the layout that reaches them.
fn named(failure: Failure, subject: &Subject, to: &Layout) -> Failure {
    if !matches!(failure, Failure::Layout(LayoutError::Axes { .. })) {
        return failure;
    }
    let from = positions::beyond(&subject.layout, &format!("`{}`", subject.name));
    match from.into_iter().chain(positions::beyond(to, NAME)).next() {
        Some(found) => Failure::Option(Box::new(Diagnostic { severity: Severity::Error, ..found })),
        None => failure,
    }
}

fn plan(from: &Layout, to: &Layout, bits: i64) -> Result<Plan, Failure> {
    let (Layout::Tile(from), Layout::Tile(to)) = (from, to) else {
        return Ok(Plan::Nothing("conversions are planned only between plain fragments or tensors over a mesh"));
    };
    let axes: Vec<Axis> = from.axes().into_iter().chain(to.axes()).collect();
    let counts =
        |scope: Scope| axes.iter().any(|axis| matches!(axis.kind(), AxisKind::Unit { scope: s, .. } if s == scope));
    if counts(Scope::Mesh) {
        let mut extents: BTreeMap<Axis, i64> = BTreeMap::new();
        for axis in axes.iter().filter(|axis| axis.is_unit()) {
            extents.insert(axis.clone(), from.span_on(axis).max(to.span_on(axis)));
        }
        let plan = Mesh::new(extents)?.collective(from, to, bits, &[])?;
        return Ok(Plan::Devices(Box::new(plan)));
    }
    if axes.iter().any(Axis::is_thread) {
        return Ok(Plan::Registers(Box::new(find_conversion(from, to, bits)?)));
    }
    Ok(Plan::Nothing("both are in memory: a copy reads one and writes the other"))
}

impl Target {
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The conversion as the page shows it.
    pub(super) fn on_page(&self, subject: &Subject) -> Result<PageConversion, Failure> {
        let (from, to, bits) = (&subject.layout, &self.layout, subject.bits);
        Ok(match &self.plan {
            Plan::Registers(_) => PageConversion::between_fragments(from.tile()?, to.tile()?, bits)?,
            Plan::Devices(plan) => PageConversion::without_steps(from, to, bits, format!("collective: {plan}")),
            Plan::Nothing(why) => PageConversion::without_steps(from, to, bits, format!("none: {why}")),
        })
    }

    pub(super) fn compared(&self, subject: &Subject, screen: &TextOptions) -> Result<String, Failure> {
        Ok(compare_text(&subject.layout, &self.layout, &subject.shape, subject.bits, screen)?)
    }

    pub(super) fn text(&self) -> String {
        match &self.plan {
            Plan::Registers(conversion) => format!("conversion      {conversion}"),
            Plan::Devices(plan) => format!("collective      {plan}"),
            Plan::Nothing(why) => format!("conversion      none: {why}"),
        }
    }

    pub(super) fn json(&self) -> Result<Value, Failure> {
        let plan = match &self.plan {
            Plan::Registers(conversion) => serde_json::from_str(&conversion.to_json_text())
                .map_err(|error| Failure::Defect(format!("the text of a conversion is not JSON: {error}")))?,
            Plan::Devices(plan) => json!({"collective": plan.to_string()}),
            Plan::Nothing(why) => json!({"none": why}),
        };
        Ok(json!({"notation": self.layout.to_string(), "plan": plan}))
    }
}
