//! The layout part of `bench`: runs the criterion benches of the layout crate and reads their medians.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use crate::cargo::cargo;
use crate::exit::Exit;
use crate::figure::{Figure, Goal};
use crate::measuring::Measuring;
use crate::terminal::{fail, workspace};

/// The operations on the layouts of the documents; each figure is that of the slowest of them.
const OPERATIONS: [(&str, &str); 7] = [
    ("parse", "layouts: parse, slowest seed layout"),
    ("print", "layouts: print"),
    ("canonicalize", "layouts: canonicalize"),
    ("group", "layouts: group"),
    ("tile", "layouts: tile"),
    ("slice", "layouts: slice"),
    ("apply", "layouts: apply"),
];

/// Single questions: the bench's id, the figure's name, and the goal in microseconds.
const QUESTIONS: [(&str, &str, f64); 2] = [
    ("questions/contains_128x256", "layouts: contains, 2 x 128 x 256 over 128 threads", 1000.0),
    ("questions/find_conversion_64x64", "layouts: find_conversion, 64 x 64", 5000.0),
];

/// The value of a figure whose bench left no result: it misses its goal.
const UNMEASURED: f64 = f64::NAN;

pub(crate) fn figures(measuring: &Measuring) -> Result<Vec<Figure>, Exit> {
    let home = workspace().join("target").join("criterion");
    let mut command = cargo();
    command
        .args(["bench", "--quiet", "--package", "tilewright-layout", "--bench", "layouts"])
        .current_dir(workspace())
        .env("CRITERION_HOME", &home)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = measuring.elsewhere("the benches of the layout crate (some minutes)", || command.status());
    if !status.is_ok_and(|status| status.success()) {
        return Err(fail(Exit::Unsupported, &"the benches of the layout crate failed"));
    }
    let medians = medians(&home);
    let slowest = |operation: &str| {
        let of_operation = medians.iter().filter(|(id, _)| id.ends_with(&format!("/{operation}")));
        of_operation.map(|(_, median)| *median).reduce(f64::max)
    };
    let mut figures = Vec::new();
    for (operation, name) in OPERATIONS {
        let value = slowest(operation).unwrap_or(UNMEASURED);
        figures.push(measuring.figure(name, "us", Goal::Below(2.0), || Ok(value))?);
    }
    for (id, name, bound) in QUESTIONS {
        let value = medians.get(id).copied().unwrap_or(UNMEASURED);
        figures.push(measuring.figure(name, "us", Goal::Below(bound), || Ok(value))?);
    }
    Ok(figures)
}

/// The median of every bench in microseconds, by its id. Results that cannot be read are left out.
fn medians(home: &Path) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    for group in entries(home) {
        for bench in entries(&group) {
            let read = |file: &str| -> Option<serde_json::Value> {
                serde_json::from_str(&std::fs::read_to_string(bench.join("new").join(file)).ok()?).ok()
            };
            let id = read("benchmark.json").and_then(|json| json["full_id"].as_str().map(str::to_string));
            let nanoseconds = read("estimates.json").and_then(|json| json["median"]["point_estimate"].as_f64());
            found.extend(id.zip(nanoseconds.map(|ns| ns / 1e3)));
        }
    }
    found
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
