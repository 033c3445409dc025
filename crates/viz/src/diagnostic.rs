//! Diagnostics in the style of rustc.

use std::fmt::Write;

use tilewright_diag::{Diagnostic, Severity, Snippet};

/// How text is decorated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// No escape sequences.
    Plain,
    /// Colours for a terminal.
    Coloured,
}

impl Style {
    pub(crate) fn paint(self, code: &str, text: &str) -> String {
        match self {
            Style::Plain => text.to_string(),
            Style::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

const RED: &str = "1;31";
const YELLOW: &str = "1;33";
const BLUE: &str = "1;34";
const BOLD: &str = "1";

/// All diagnostics, separated by blank lines. `source` returns the text of a file, if it can be read.
pub fn render_all(diagnostics: &[Diagnostic], source: &dyn Fn(&str) -> Option<String>, style: Style) -> String {
    let texts: Vec<String> = diagnostics.iter().map(|d| render(d, source, style)).collect();
    texts.join("\n")
}

/// One diagnostic, ending in a newline.
pub fn render(diagnostic: &Diagnostic, source: &dyn Fn(&str) -> Option<String>, style: Style) -> String {
    let mut out = String::new();
    let colour = match diagnostic.severity {
        Severity::Error | Severity::Internal => RED,
        Severity::Warning => YELLOW,
    };
    let head = style.paint(colour, &format!("{}[{}]", diagnostic.severity.name(), diagnostic.code));
    let _ = writeln!(out, "{head}: {}", style.paint(BOLD, &diagnostic.message));
    if let Some(snippet) = &diagnostic.snippet {
        print_snippet(&mut out, snippet, style);
    }
    for label in &diagnostic.labels {
        let span = label.span;
        let line = source(span.file).and_then(|text| text.lines().nth(span.line as usize - 1).map(str::to_string));
        let file = span.file.replace('\\', "/");
        match line {
            Some(text) => {
                let column = (span.column as usize).saturating_sub(1).min(text.chars().count());
                let place = SourceLine {
                    origin: &format!("{file}:{}:{}", span.line, span.column),
                    number: span.line,
                    text: &text,
                };
                print_place(&mut out, &place, column, 1, &label.text, style);
            }
            None => {
                let _ = writeln!(
                    out,
                    "  {} {file}:{}:{}: {}",
                    style.paint(BLUE, "-->"),
                    span.line,
                    span.column,
                    label.text
                );
            }
        }
    }
    let notes = diagnostic.notes.iter().map(|note| ("note", note));
    for (kind, text) in notes.chain(diagnostic.help.iter().map(|help| ("help", help))) {
        // Further lines stand below the first one.
        let text = text.replace('\n', "\n          ");
        let _ = writeln!(out, "  {} {kind}: {text}", style.paint(BLUE, "="));
    }
    out
}

struct SourceLine<'a> {
    /// File with line and column, or the name of a text.
    origin: &'a str,
    /// Line number, from 1.
    number: u32,
    /// Text of the line.
    text: &'a str,
}

fn print_snippet(out: &mut String, snippet: &Snippet, style: Style) {
    let before = snippet.text.get(..snippet.range.start).unwrap_or("").chars().count();
    let marked = snippet.text.get(snippet.range.clone()).unwrap_or("").chars().count().max(1);
    let place = SourceLine { origin: &snippet.origin, number: 1, text: &snippet.text };
    print_place(out, &place, before, marked, &snippet.label, style);
}

fn print_place(out: &mut String, place: &SourceLine<'_>, column: usize, width: usize, label: &str, style: Style) {
    let number = place.number.to_string();
    let margin = " ".repeat(number.len());
    let bar = style.paint(BLUE, "|");
    let _ = writeln!(out, "{margin}{} {}", style.paint(BLUE, "-->"), place.origin);
    let _ = writeln!(out, "{margin} {bar}");
    let _ = writeln!(out, "{} {bar} {}", style.paint(BLUE, &number), place.text.trim_end());
    let marks = style.paint(RED, &format!("{} {label}", "^".repeat(width)));
    let _ = writeln!(out, "{margin} {bar} {}{marks}", " ".repeat(column));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_diag::Span;

    #[test]
    fn an_error_with_its_line() {
        let span = Span::at("k.rs", 2, 5);
        let diagnostic =
            Diagnostic::error("K0218", "the dtypes differ").label(span, "this op").note("a fact").help("do this");
        let text = render(&diagnostic, &|_| Some("fn k() {\n    k.copy(b, a);\n}".to_string()), Style::Plain);
        let expected = "\
error[K0218]: the dtypes differ
 --> k.rs:2:5
  |
2 |     k.copy(b, a);
  |     ^ this op
  = note: a fact
  = help: do this
";
        assert_eq!(text, expected);
    }

    #[test]
    fn text_that_the_user_gave_has_a_caret_under_the_character() {
        let snippet = Snippet {
            origin: "<layout>".into(),
            text: "S[(8,2):(4@)]".into(),
            range: 11..12,
            label: "expected an axis".into(),
        };
        let text = render(&Diagnostic::error("L0101", "no layout").snippet(snippet), &|_| None, Style::Plain);
        let expected = "\
error[L0101]: no layout
 --> <layout>
  |
1 | S[(8,2):(4@)]
  |            ^ expected an axis
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_source_that_cannot_be_read_is_named() {
        let span = Span::at("gone.rs", 7, 3);
        let text = render(&Diagnostic::error("K0201", "no name").label(span, "here"), &|_| None, Style::Plain);
        assert_eq!(text, "error[K0201]: no name\n  --> gone.rs:7:3: here\n");
    }
}
