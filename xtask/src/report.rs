//! `report`: what the kernels of the library cost on the virtual GPU, as a page of the book and as JSON.

use std::ops::Range;

use clap::Args;
use tilewright::files;
use tilewright::prelude::Target;
use tilewright_tests::cases::{Case, library};
use tilewright_tests::fuzz::spread;
use tilewright_tests::quality::{Accepted, Figures, Quality, Worse, path, title};

use crate::exit::Exit;
use crate::setup::provision_nvdisasm;
use crate::terminal::{count_bar, fail, print_error};
use crate::toolchain::provisioned;

/// Arguments of `report`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Why figures became worse; without it, a report in which some did is not written.
    #[arg(long)]
    reason: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    if let Err(why) = provision_nvdisasm() {
        return fail(Exit::Unsupported, &format!("the report needs the disassembler: {why}"));
    }
    let new = match measured() {
        Ok(new) => new,
        Err(why) => return fail(Exit::Unsupported, &why),
    };
    // Without a report there is nothing that could be worse; one that cannot be read may have reasons that would be lost.
    let old = if path("json").exists() { Quality::committed() } else { Ok(Quality::default()) };
    let old = match old {
        Ok(old) => old,
        Err(why) => return fail(Exit::BadInput, &format!("{why}; restore it, or delete it to begin anew")),
    };
    let worse: Vec<Worse> = new.iter().flat_map(|(case, figures)| old.worse(case, figures)).collect();
    worse.iter().for_each(|worse| say!("worse: {worse}"));
    let accepted = match (&arguments.reason, worse.is_empty()) {
        (_, true) => Vec::new(),
        (Some(reason), false) => worse.into_iter().map(|worse| Accepted { worse, reason: reason.clone() }).collect(),
        (None, false) => {
            print_error("the report is not written; --reason \"..\" accepts these figures and keeps the reason");
            return Exit::Differs;
        }
    };
    let quality =
        Quality { figures: new.into_iter().collect(), accepted: old.accepted.into_iter().chain(accepted).collect() };
    for (ending, text) in [("json", quality.json()), ("md", quality.page())] {
        if let Err(error) = files::write(&path(ending), text.as_bytes()) {
            return fail(Exit::BadInput, &format!("docs/quality.{ending}: {error}"));
        }
    }
    say!("wrote docs/quality.md and docs/quality.json: {} kernels in sizes and targets", quality.figures.len());
    Exit::Done
}

/// The figures of all kernels. Error: the first that does not run.
fn measured() -> Result<Vec<(String, Figures)>, String> {
    let toolchain = provisioned(Target::ALL[0].name());
    let cases: Vec<(Case, Target)> =
        Target::ALL.iter().flat_map(|target| library().into_iter().map(|case| (case, *target))).collect();
    let bar = count_bar("kernels", cases.len() as u64);
    let one = |(case, target): &(Case, Target)| {
        let figures = Figures::measure(&toolchain, case, *target);
        figures.map(|figures| (title(case, *target), figures)).map_err(|why| format!("{}: {why}", title(case, *target)))
    };
    let work = |part: Range<u64>| -> Vec<_> { part.map(|at| one(&cases[at as usize])).collect() };
    let measured = spread(cases.len() as u64, 1, &work, &|count| bar.inc(count));
    bar.finish_and_clear();
    measured.into_iter().flatten().collect()
}
