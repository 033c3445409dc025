//! Terminal output: diagnostics go to stderr; colours appear only on a terminal, and not if `NO_COLOR` is set.

use std::fmt::Display;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::{Path, PathBuf};

use console::Term;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use tilewright::diag::Diagnostic;
use tilewright::files::read_text;
use tilewright::runtime::Progress;
use tilewright::viz::layout::TextOptions;
use tilewright::viz::{Style, render_all};

use crate::errors;
use crate::exit::Exit;

/// Time between two frames of a spinner.
pub(crate) const TICK: std::time::Duration = std::time::Duration::from_millis(100);

/// Prints a line to stdout; exits quietly if the reader has closed the pipe, as in `| head -1`.
macro_rules! say {
    ($($argument:tt)*) => { $crate::terminal::print_text(format_args!("{}\n", format_args!($($argument)*))) };
}

/// Prints to stdout, as [`say`] does, without adding a newline.
pub(crate) fn print_text(text: std::fmt::Arguments<'_>) {
    if stdout().lock().write_fmt(text).is_err() {
        std::process::exit(0);
    }
}

/// The root of the workspace that this command was built from.
pub(crate) fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

fn wants_colour(is_terminal: bool) -> Style {
    let asked_not_to = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_terminal && !asked_not_to { Style::Coloured } else { Style::Plain }
}

/// How drawings are laid out for stdout: as wide as the terminal, or 120 columns and 60 rows if output is piped.
pub(crate) fn screen() -> TextOptions {
    let style = wants_colour(stdout().is_terminal());
    match Term::stdout().size_checked() {
        Some((rows, columns)) => TextOptions { width: usize::from(columns), height: usize::from(rows).max(24), style },
        None => TextOptions { width: 120, height: 60, style },
    }
}

/// Paints `text` on a terminal, for stdout.
pub(crate) fn paint(code: &str, text: &str) -> String {
    match wants_colour(stdout().is_terminal()) {
        Style::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        Style::Plain => text.to_string(),
    }
}

/// Diagnostics as text, with the user's lines.
pub(crate) fn rendered(diagnostics: &[Diagnostic], style: Style) -> String {
    let root = workspace();
    let source = |file: &str| read_text(Path::new(file)).or_else(|_| read_text(&root.join(file))).ok();
    render_all(diagnostics, &source, style)
}

/// Prints diagnostics on stderr, and records them for `--json`.
pub(crate) fn print_diagnostics(diagnostics: &[Diagnostic]) {
    errors::record(diagnostics);
    eprint!("{}", rendered(diagnostics, wants_colour(stderr().is_terminal())));
}

/// Prints one error on stderr, and records it for `--json`.
pub(crate) fn print_error(text: &str) {
    errors::record_text(text);
    let head = match wants_colour(stderr().is_terminal()) {
        Style::Coloured => "\x1b[1;31merror\x1b[0m",
        Style::Plain => "error",
    };
    eprintln!("{head}: {text}");
}

/// Prints why a command fails, and how it ends.
pub(crate) fn fail(exit: Exit, why: &dyn Display) -> Exit {
    print_error(&why.to_string());
    exit
}

/// A spinner on a terminal, or one line if output is piped.
pub(crate) fn spinner(text: &str) -> ProgressBar {
    if !stderr().is_terminal() {
        eprintln!("{text}");
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(text.to_string());
    bar.enable_steady_tick(TICK);
    bar
}

/// A progress bar over bytes on a terminal; nothing if output is piped.
pub(crate) fn byte_bar(text: &str, total: u64) -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} [{bar:30}] {bytes}/{total_bytes}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style).with_message(text.to_string())
}

/// A progress bar over counted items, shown at once on a terminal; nothing if output is piped.
pub(crate) fn count_bar(text: &str, total: u64) -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {msg} [{bar:30}] {pos}/{len}{left}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("left", time_left);
    let bar = ProgressBar::new(total).with_style(style).with_message(text.to_string());
    bar.enable_steady_tick(TICK);
    bar
}

/// The estimated time left; unknown until the first item is done.
fn time_left(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    if state.pos() > 0 {
        let _ = out.write_str(&format!(", {:#} left", HumanDuration(state.eta())));
    }
}

/// Shows what is measured, on a terminal; nothing if output is piped. It is redrawn only when it is updated, so that
/// nothing runs in parallel with the measurement.
pub(crate) fn measuring_bar() -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} measuring, {pos} so far: {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::no_length().with_style(style)
}

/// The progress of a launch on the virtual GPU, on a terminal; nothing if output is piped, or for launches too short to
/// report progress.
pub(crate) fn launch_bar() -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} CTAs")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::no_length().with_style(style)
}

/// Shows the progress of a launch on a [`launch_bar`].
pub(crate) fn show_launch(bar: &ProgressBar, progress: Progress) {
    bar.set_length(u64::from(progress.ctas));
    bar.set_position(u64::from(progress.ended));
    let millions = progress.thread_instructions / 1_000_000;
    bar.set_message(format!("virtual GPU: {millions} million instructions"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_shows_its_ctas_and_what_they_executed() {
        let bar = ProgressBar::hidden();
        show_launch(&bar, Progress { ctas: 8, ended: 3, thread_instructions: 120_016_384 });
        assert_eq!((bar.position(), bar.length()), (3, Some(8)));
        assert_eq!(bar.message(), "virtual GPU: 120 million instructions");
    }
}
