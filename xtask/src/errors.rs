//! Errors as JSON: with `--json`, a verb that fails prints one object on stdout, besides the text on stderr.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tilewright::diag::{Diagnostic, Severity};

use crate::exit::Exit;

/// The findings reported so far.
static RECORDED: Mutex<Vec<Value>> = Mutex::new(Vec::new());

fn recorded() -> MutexGuard<'static, Vec<Value>> {
    RECORDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records findings that are printed on stderr.
pub(crate) fn record(diagnostics: &[Diagnostic]) {
    recorded().extend(diagnostics.iter().map(finding));
}

/// Records an error that has no code.
pub(crate) fn record_text(message: &str) {
    recorded().push(text(message, &[]));
}

/// Records a message of the command-line parser.
pub(crate) fn record_usage(message: &str) {
    recorded().push(usage(message));
}

/// Prints what was recorded, if the command failed and JSON was requested.
pub(crate) fn print(exit: Exit) {
    let recorded = recorded();
    let is_wrong = recorded.iter().any(|one| one["severity"] != Severity::Warning.name());
    if exit != Exit::Done && is_wrong && wants_json() {
        say!("{}", object(exit, &recorded));
    }
}

/// Searches the raw words of the command line, since a command line that cannot be parsed is reported as JSON too.
fn wants_json() -> bool {
    std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json")
}

fn object(exit: Exit, said: &[Value]) -> Value {
    json!({"ok": false, "status": exit.name(), "diagnostics": said})
}

fn finding(diagnostic: &Diagnostic) -> Value {
    let labels: Vec<Value> = diagnostic
        .labels
        .iter()
        .map(|label| json!({"span": label.span.to_string(), "column": label.span.column, "text": label.text}))
        .collect();
    let snippet = diagnostic.snippet.as_ref().map(|snippet| {
        let (start, end) = (snippet.range.start, snippet.range.end);
        json!({"origin": snippet.origin, "text": snippet.text, "start": start, "end": end, "label": snippet.label})
    });
    json!({
        "code": diagnostic.code, "severity": diagnostic.severity.name(), "message": diagnostic.message,
        "labels": labels, "snippet": snippet, "notes": diagnostic.notes, "help": diagnostic.help,
    })
}

/// As [`finding`], for an error that has only a message and help.
fn text(message: &str, help: &[&str]) -> Value {
    json!({
        "code": null, "severity": "error", "message": message, "labels": [], "snippet": null, "notes": [], "help": help,
    })
}

/// The first paragraph of the parser's text is the message, its tips are the help.
fn usage(message: &str) -> Value {
    let first = message.split("\n\n").next().unwrap_or_default();
    let tips: Vec<&str> = message.lines().filter_map(|line| line.trim_start().strip_prefix("tip: ")).collect();
    text(first.strip_prefix("error: ").unwrap_or(first), &tips)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright::diag::{Snippet, Span};

    #[test]
    fn a_finding_is_told_whole() {
        let span = Span::at("src/k.rs", 3, 7);
        let snippet = Snippet { origin: "<layout>".into(), text: "S[8".into(), range: 1..2, label: "open".into() };
        let found = Diagnostic::error("L0101", "wrong").label(span, "here").snippet(snippet).note("a").help("b");
        let told = object(Exit::BadInput, &[finding(&found)]);
        let expected = json!({"ok": false, "status": "bad_input", "diagnostics": [{
            "code": "L0101", "severity": "error", "message": "wrong",
            "labels": [{"span": "src/k.rs:3", "column": 7, "text": "here"}],
            "snippet": {"origin": "<layout>", "text": "S[8", "start": 1, "end": 2, "label": "open"},
            "notes": ["a"], "help": ["b"],
        }]});
        assert_eq!(told, expected);
    }

    #[test]
    fn the_parsers_text_becomes_a_message_and_its_tips() {
        let said =
            "error: unexpected argument '--jsn' found\n\n  tip: a similar argument exists: '--json'\n\nUsage: x\n";
        let told = usage(said);
        assert_eq!(told["message"], "unexpected argument '--jsn' found");
        assert_eq!(told["help"], json!(["a similar argument exists: '--json'"]));
        assert_eq!((&told["code"], &told["severity"]), (&Value::Null, &json!("error")));
    }
}
