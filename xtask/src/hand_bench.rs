//! The part of `bench` that compares what kernels of the library execute with hand-written ones, both on the virtual
//! GPU, and their machine code, where there is a disassembler.

use tilewright::prelude::*;
use tilewright::runtime::{AccessCount, Report, Space, counted_instructions};
use tilewright_tests::by_hand::{Compared, Pair, WIDTHS, pairs, transpose};
use tilewright_tests::machine_code;

use crate::exit::Exit;
use crate::figure::{Figure, Goal};
use crate::measuring::Measuring;
use crate::terminal::fail;
use crate::toolchain::provisioned;

/// The greatest number of instructions over those of the hand-written kernel.
const GOAL: f64 = 1.05;
/// The matrices that are transposed: whole vectors of every dtype, of some, and of none but the widest.
const MATRICES: [(i64, i64); 3] = [(4096, 4096), (1000, 1000), (1001, 1003)];

/// The counts of a kernel over those of the hand-written one.
struct Row {
    /// The kernel and its sizes.
    name: String,
    /// By column of [`COLUMNS`].
    ratios: [f64; 4],
    /// Machine instructions, if there is a disassembler.
    machine_code: Option<f64>,
}

/// What is counted, and the goal of its ratio.
const COLUMNS: [(&str, f64); 4] =
    [("instructions", GOAL), ("memory accesses", 1.0), ("sectors", GOAL), ("shared wavefronts", 1.0)];

/// A figure for each ratio.
pub(crate) fn figures(measuring: &Measuring) -> Result<Vec<Figure>, Exit> {
    let mut figures = Vec::new();
    for Row { name, ratios, machine_code } in rows(measuring)? {
        let goals = COLUMNS.iter().map(|(what, goal)| (*what, Goal::AtMost(*goal))).zip(ratios);
        let machine_code = machine_code.map(|value| (("machine code", Goal::Base), value));
        for ((what, goal), value) in goals.chain(machine_code) {
            figures.push(measuring.figure(format!("{name}: {what}"), "x by hand", goal, || Ok(value))?);
        }
    }
    Ok(figures)
}

/// All ratios as a Markdown table.
pub(crate) fn table(measuring: &Measuring) -> Result<String, Exit> {
    let columns: String = COLUMNS.iter().map(|(what, _)| format!(" {what} |")).collect();
    let mut table = format!("| kernel |{columns} machine code |\n|---|{}---|", "---|".repeat(COLUMNS.len()));
    for Row { name, ratios, machine_code } in rows(measuring)? {
        let ratios: String = ratios.iter().map(|ratio| format!(" {ratio:.2} |")).collect();
        let machine_code = machine_code.map_or_else(|| "-".to_string(), |ratio| format!("{ratio:.2}"));
        table += &format!("\n| `{name}` |{ratios} {machine_code} |");
    }
    Ok(table)
}

fn rows(measuring: &Measuring) -> Result<Vec<Row>, Exit> {
    let mut rows = Vec::new();
    for pair in pairs() {
        rows.push(compared(measuring, &pair, pair.to_string())?);
    }
    for (m, n) in MATRICES {
        for dtype in WIDTHS {
            let pair = transpose(dtype, m, n).ok_or_else(|| fail(Exit::Unsupported, &"no hand-written transpose"))?;
            rows.push(compared(measuring, &pair, format!("{pair} {dtype}"))?);
        }
    }
    Ok(rows)
}

fn compared(measuring: &Measuring, pair: &Pair, name: String) -> Result<Row, Exit> {
    let target = Target::Sm100a;
    let run = || pair.compare(&provisioned(target.name()), target).map_err(|why| fail(Exit::Unsupported, &why));
    let both = measuring.elsewhere("kernels beside hand-written ones", run)?;
    if !both.is_right {
        return Err(fail(Exit::Differs, &format!("{name}: a wrong result")));
    }
    let ratios =
        [ratio(&both, counted_instructions), ratio(&both, accesses), ratio(&both, sectors), ratio(&both, wavefronts)];
    Ok(Row { name, ratios, machine_code: machine_code(pair, &both) })
}

fn ratio(both: &Compared, count: impl Fn(&Report) -> u64) -> f64 {
    let (ours, by_hand) = (count(&both.ours), count(&both.by_hand));
    if ours == by_hand { 1.0 } else { ours as f64 / by_hand as f64 }
}

fn accesses(report: &Report) -> u64 {
    let is_in_memory = |access: &&AccessCount| access.space != Space::Param;
    report.accesses.iter().filter(is_in_memory).map(|access| access.executions).sum()
}

fn sectors(report: &Report) -> u64 {
    let by_threads = report.accesses.iter().filter(|access| access.space == Space::Global);
    by_threads.map(|access| access.sectors).sum::<u64>() + report.bulk.sectors
}

fn wavefronts(report: &Report) -> u64 {
    report.accesses.iter().filter(|access| access.space == Space::Shared).map(|access| access.wavefronts).sum()
}

/// The number of machine instructions, ours over hand-written; `None` without a disassembler.
fn machine_code(pair: &Pair, both: &Compared) -> Option<f64> {
    let (cubin, entry) = &both.our_cubin;
    let ours = machine_code::instructions(&machine_code::disassemble(cubin).ok()?, entry);
    let by_hand = machine_code::instructions(&machine_code::disassemble(&both.cubin_by_hand).ok()?, pair.by_hand.entry);
    Some(ours as f64 / by_hand as f64)
}
