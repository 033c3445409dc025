//! Random pairs of layouts of every element width, moved by `permute_layout` on the virtual GPU: correct, with as few
//! bank conflicts as the layouts allow, and as predicted.
//!
//! Pairs are not committed as PTX, so all of this needs NVRTC.

use std::ops::Range;
use std::process::ExitCode;

use tilewright::prelude::DType;
use tilewright_tests::fuzz::spread;
use tilewright_tests::permute::{Summary, TARGET, WIDTHS, judge_width, title};
use tilewright_tests::toolchain::{skip, toolchain};

fn main() -> ExitCode {
    let filter: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_asked = |dtype: &DType| filter.iter().all(|word| title(*dtype).contains(word.as_str()));
    let widths: Vec<DType> = WIDTHS.into_iter().filter(is_asked).collect();
    if widths.is_empty() {
        return ExitCode::SUCCESS;
    }
    if toolchain().nvrtc(TARGET.name()).is_err() {
        for dtype in widths {
            skip(&title(dtype));
            println!("skipped {}: no NVRTC", title(dtype));
        }
        return ExitCode::SUCCESS;
    }
    let judge =
        |part: Range<u64>| -> Vec<Summary> { part.map(|at| judge_width(&toolchain(), widths[at as usize])).collect() };
    let summaries: Vec<Summary> = spread(widths.len() as u64, 1, &judge, &|_| ()).into_iter().flatten().collect();
    let (mut pairs, mut failed) = (0, 0);
    for summary in &summaries {
        for failure in &summary.failures {
            println!("failed {failure}");
        }
        println!("{}", summary.line);
        pairs += summary.pairs;
        failed += summary.failed;
    }
    println!("permute: {pairs} pairs, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
