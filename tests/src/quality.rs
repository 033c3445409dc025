//! The quality report: what the kernels of the library cost on the virtual GPU, against what they would cost at best. It is
//! committed as `docs/quality.json` and, for readers, `docs/quality.md`; a test compares every run with it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use tilewright::compile::Artifact;
use tilewright::prelude::Target;
use tilewright::runtime::{
    AccessCount, Built, CudaText, Device, Report, Run, Space, Toolchain, counted_instructions, run,
};

use crate::cases::Case;
use crate::machine_code::{disassemble, main_loop};

/// A figure that is more than this factor above the committed one is worse.
const WORSE: f64 = 1.02;

/// The figures of a kernel on a target, with their headings. Less is better for all of them.
pub const FIGURES: [(&str, &str); 9] = [
    ("registers", "registers of a thread"),
    ("spills", "bytes of a thread that are spilled"),
    ("shared", "bytes of shared memory"),
    ("barriers", "times that a warp passes a barrier of its CTA"),
    ("instructions", "instructions of warps, times 32, for each element of its tensors"),
    ("wavefronts", "wavefronts over the least for the same accesses"),
    ("sectors", "sectors over the least for the same accesses, those of the copy engine (TMA) among them"),
    ("bytes", "bytes moved from and to global memory, also by the copy engine, over the bytes of its tensors"),
    ("main loop", "machine instructions of its longest innermost loop; `-` if it has none"),
];

/// What a kernel costs, in the order of [`FIGURES`]. The last one is not there without a loop, or without a disassembler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures(pub [Option<f64>; 9]);

/// A figure that became worse.
#[derive(Clone, Debug, PartialEq)]
pub struct Worse {
    /// The kernel, its sizes and the target.
    pub case: String,
    /// The name of the figure.
    pub figure: String,
    /// The committed figure, and the new one.
    pub values: [f64; 2],
}

/// A figure that became worse, and the reason why that was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// What became worse.
    pub worse: Worse,
    /// Why.
    pub reason: String,
}

/// The committed report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quality {
    /// The figures of each kernel, by its sizes and target.
    pub figures: BTreeMap<String, Figures>,
    /// What became worse, and why.
    pub accepted: Vec<Accepted>,
}

/// The name of a case in the report.
pub fn title(case: &Case, target: Target) -> String {
    format!("{} {target}", case.name)
}

/// `docs/quality.json`, or with another ending the page.
pub fn path(ending: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/quality.{ending}"))
}

impl Figures {
    /// Compiles a case and runs it. Error: why it does not run.
    pub fn measure(toolchain: &Toolchain, case: &Case, target: Target) -> Result<Figures, String> {
        let artifact = case.compile(target).map_err(|found| format!("{found:?}"))?;
        let built = toolchain.build(&artifact, &CudaText::Generated).map_err(|failure| failure.to_string())?;
        let outcome = run(&artifact, &built, &case.inputs, &Device::Virtual).map_err(|failure| failure.to_string())?;
        Figures::of(case, &artifact, &built, &outcome).ok_or_else(|| "nothing was counted".to_string())
    }

    /// The figures of a run; `None` if resources or counts are missing.
    pub fn of(case: &Case, artifact: &Artifact, built: &Built, outcome: &Run) -> Option<Figures> {
        let (resources, report) = (built.resources.as_ref()?, outcome.report.as_ref()?);
        let bulk = report.bulk;
        let tensors = || case.inputs.iter().chain(&case.expected);
        let elements: f64 = tensors().map(|tensor| tensor.len() as f64).sum();
        let least: f64 = tensors().map(|tensor| (tensor.len() * tensor.dtype().bytes()) as f64).sum();
        let sum = |space: Space, of: &dyn Fn(&AccessCount) -> u64| -> f64 {
            report.accesses.iter().filter(|access| access.space == space).map(of).sum::<u64>() as f64
        };
        let over = |of: f64, ideal: f64| if ideal > 0.0 { of / ideal } else { 1.0 };
        let spills = resources.spill_store_bytes + resources.spill_load_bytes;
        let text = disassemble(&built.cubin).ok();
        let main_loop = text.and_then(|text| main_loop(&text, artifact.entry()));
        let measured = [
            f64::from(resources.registers),
            f64::from(spills),
            f64::from(resources.shared_bytes) + artifact.dynamic_shared_bytes() as f64,
            barriers(report),
            rounded(counted_instructions(report) as f64 * 32.0 / elements),
            rounded(over(sum(Space::Shared, &|of| of.wavefronts), sum(Space::Shared, &|of| of.ideal_wavefronts))),
            rounded(over(
                sum(Space::Global, &|of| of.sectors) + bulk.sectors as f64,
                sum(Space::Global, &|of| of.ideal_sectors) + bulk.ideal_sectors as f64,
            )),
            rounded(over(sum(Space::Global, &|of| of.bytes) + bulk.bytes as f64, least)),
        ];
        let all: Vec<Option<f64>> =
            measured.into_iter().map(Some).chain([main_loop.map(|count| count as f64)]).collect();
        all.try_into().ok().map(Figures)
    }
}

/// How often warps pass barriers of their CTAs.
fn barriers(report: &Report) -> f64 {
    let is_barrier = |opcode: &str| opcode.starts_with("bar.sync") || opcode.starts_with("barrier.");
    report.opcodes.iter().filter(|(opcode, _)| is_barrier(opcode)).map(|(_, (warps, _))| warps).sum::<u64>() as f64
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

impl Quality {
    /// The committed report. Error: why it cannot be read.
    pub fn committed() -> Result<Quality, String> {
        let text = std::fs::read_to_string(path("json")).map_err(|error| format!("docs/quality.json: {error}"))?;
        Quality::read(&text).ok_or_else(|| "docs/quality.json is not a quality report".to_string())
    }

    /// Reads a report; `None` if it is none.
    pub fn read(text: &str) -> Option<Quality> {
        let json: Value = serde_json::from_str(text).ok()?;
        let figures = json["figures"].as_object()?.iter().map(|(case, figures)| {
            let is_known = |(name, _): &(&str, &str)| figures[name].is_number() || figures[name].is_null();
            let is_report = figures.is_object() && FIGURES.iter().all(is_known);
            is_report.then(|| (case.clone(), Figures(FIGURES.map(|(name, _)| figures[name].as_f64()))))
        });
        let accepted = json["accepted"].as_array()?.iter().map(|one| {
            let text = |name: &str| Some(one[name].as_str()?.to_string());
            let values = [one["was"].as_f64()?, one["is"].as_f64()?];
            let worse = Worse { case: text("case")?, figure: text("figure")?, values };
            Some(Accepted { worse, reason: text("reason")? })
        });
        Some(Quality { figures: figures.collect::<Option<_>>()?, accepted: accepted.collect::<Option<_>>()? })
    }

    /// The report as JSON, one case in a line.
    pub fn json(&self) -> String {
        let case = |(name, Figures(values)): (&String, &Figures)| {
            let figures: Vec<String> = FIGURES
                .iter()
                .zip(values)
                .map(|((name, _), value)| format!("{}: {}", json!(name), text(value, "null")))
                .collect();
            format!("    {}: {{{}}}", json!(name), figures.join(", "))
        };
        let accepted = |Accepted { worse: Worse { case, figure, values: [was, is] }, reason }: &Accepted| {
            let line = json!({"case": case, "figure": figure, "was": was, "is": is, "reason": reason});
            format!("    {line}")
        };
        let figures: Vec<String> = self.figures.iter().map(case).collect();
        let accepted: Vec<String> = self.accepted.iter().map(accepted).collect();
        format!(
            "{{\n  \"figures\": {{\n{}\n  }},\n  \"accepted\": [\n{}\n  ]\n}}\n",
            figures.join(",\n"),
            accepted.join(",\n")
        )
    }

    /// The report as a page of the book.
    pub fn page(&self) -> String {
        let heading: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
        let mut page = "# Quality\n\n".to_string();
        page += "What each kernel of [the library](kernels.md) costs on the virtual GPU, in all sizes that the tests run. \
                 `cargo xtask report` writes\nthis page and `docs/quality.json`. A test fails where a figure becomes worse by \
                 more than 2%, unless the report tells why.\n\n";
        for (name, about) in FIGURES {
            page += &format!("- **{name}**: {about}\n");
        }
        for target in Target::ALL {
            page += &format!(
                "\n## {target}\n\n| kernel | {} |\n|---|{}\n",
                heading.join(" | "),
                "---|".repeat(heading.len())
            );
            let ending = format!(" {target}");
            for (name, Figures(values)) in &self.figures {
                let Some(name) = name.strip_suffix(&ending) else { continue };
                let values: Vec<String> = values.iter().map(|value| text(value, "-")).collect();
                page += &format!("| `{name}` | {} |\n", values.join(" | "));
            }
        }
        if !self.accepted.is_empty() {
            page += "\n## What became worse\n\n";
        }
        for Accepted { worse, reason } in &self.accepted {
            page += &format!("- {worse}: {reason}\n");
        }
        page
    }

    /// The figures of `new` that are worse than here. A case that is not here is not worse.
    pub fn worse(&self, case: &str, new: &Figures) -> Vec<Worse> {
        let Some(known) = self.figures.get(case) else { return Vec::new() };
        let told = |at: usize| {
            let values @ [was, is] = [known.0[at]?, new.0[at]?];
            let figure = FIGURES[at].0.to_string();
            (is > was * WORSE).then(|| Worse { case: case.to_string(), figure, values })
        };
        (0..FIGURES.len()).filter_map(told).collect()
    }
}

/// A figure as text.
fn text(value: &Option<f64>, missing: &str) -> String {
    value.map_or_else(|| missing.to_string(), |value| value.to_string())
}

impl std::fmt::Display for Worse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [was, is] = self.values;
        write!(f, "{} of `{}`: {was}, now {is}", self.figure, self.case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(instructions: f64) -> Figures {
        Figures([32.0, 0.0, 0.0, 4.0, instructions, 1.0, 1.0, 1.0, 20.0].map(Some))
    }

    fn quality() -> Quality {
        let worse = Worse { case: "copy sm_90a".to_string(), figure: "instructions".to_string(), values: [1.0, 1.5] };
        Quality {
            figures: BTreeMap::from([("copy sm_90a".to_string(), one(1.5))]),
            accepted: vec![Accepted { worse, reason: "a \"test\"".to_string() }],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(Quality::read(&quality().json()), Some(quality()));
        let nothing = Quality::default();
        assert_eq!(Quality::read(&nothing.json()), Some(nothing));
        assert_eq!(Quality::read("{}"), None);
        let without = quality().json().replace("\"main loop\": 20", "\"main loop\": null");
        assert_eq!(Quality::read(&without).map(|quality| quality.figures["copy sm_90a"].0[8]), Some(None));
    }

    #[test]
    fn more_by_two_percent_is_not_worse() {
        let worse = |instructions| quality().worse("copy sm_90a", &one(instructions)).len();
        assert_eq!([worse(1.0), worse(1.53), worse(1.54)], [0, 0, 1]);
        assert_eq!(quality().worse("another", &one(9.0)), []);
        let spilled = Figures([32.0, 4.0, 0.0, 4.0, 1.5, 1.0, 1.0, 1.0, 20.0].map(Some));
        assert_eq!(quality().worse("copy sm_90a", &spilled)[0].figure, "spills");
    }

    #[test]
    fn a_figure_that_is_not_there_is_not_worse() {
        let Figures(mut values) = one(1.0);
        values[8] = Some(30.0);
        assert_eq!(quality().worse("copy sm_90a", &Figures(values))[0].figure, "main loop");
        values[8] = None;
        assert_eq!(quality().worse("copy sm_90a", &Figures(values)), []);
    }

    #[test]
    fn the_page_tells_what_became_worse() {
        assert!(quality().page().ends_with("- instructions of `copy sm_90a`: 1, now 1.5: a \"test\"\n"));
    }
}
