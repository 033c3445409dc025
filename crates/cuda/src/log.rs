//! The NVRTC log as messages with lines of the CUDA text.
//!
//! The front end writes `k.cu(3): error: ...` with the source line and a caret below; the ptxas stage writes
//! `ptxas application ptx input, line 29; error   : ...` with a line of the PTX, which is mapped back. The report of
//! `-v` is left out here (see [`crate::Resources`]; it also holds compile times, which change from run to run), and so
//! are closing lines that only count messages.

use crate::ptx_lines::cuda_line;
use std::fmt;

/// The severity of a log message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The CUDA text was rejected.
    Error,
    /// It compiled, but something looks wrong.
    Warning,
    /// A remark of ptxas about code that it accepted, such as a performance loss.
    Info,
    /// A note that belongs to the message before it, or a remark of the front end.
    Remark,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
            Severity::Remark => "remark",
        })
    }
}

/// One message of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Its severity.
    pub severity: Severity,
    /// The line of the CUDA text, from 1, if known.
    pub line: Option<u32>,
    /// The message without location and severity, and without the source line that NVRTC repeats. More than one line if
    /// the front end adds context ("detected during instantiation of ...").
    pub text: String,
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "CUDA line {line}: ")?;
        }
        write!(f, "{}: {}", self.severity, self.text)
    }
}

/// Parses an NVRTC log. `name` is the name under which the CUDA text was compiled; `ptx`, if given, maps lines of the
/// ptxas stage back to it.
pub(crate) fn parse_log(log: &str, name: &str, ptx: Option<&str>) -> Vec<LogLine> {
    let mut messages: Vec<LogLine> = Vec::new();
    let mut below: Vec<&str> = Vec::new();
    for line in log.lines().map(str::trim_end) {
        let starts_here = !line.starts_with(char::is_whitespace);
        if line.is_empty() || is_left_out(line) || starts_here {
            append(&mut messages, &mut below);
        }
        if line.is_empty() || is_left_out(line) {
            continue;
        }
        if starts_here {
            messages.push(message(line, name, ptx));
        } else {
            below.push(line);
        }
    }
    append(&mut messages, &mut below);
    messages
}

/// Appends the lines below a message to its text, except for the source line and the caret. Without a message above
/// them, each line is one of its own.
fn append(messages: &mut Vec<LogLine>, below: &mut Vec<&str>) {
    let first = below.iter().position(|line| line.trim() == "^").map_or(0, |caret| caret + 1);
    match messages.last_mut() {
        Some(message) => {
            for line in &below[first..] {
                message.text.push('\n');
                message.text.push_str(line.trim());
            }
        }
        None => messages.extend(below.iter().map(|line| unknown(line.trim()))),
    }
    below.clear();
}

fn is_left_out(line: &str) -> bool {
    const REPORT: [&str; 5] =
        [": Compiling entry function '", ": Function properties for ", ": Used ", ": Compile time = ", " bytes gmem"];
    let is_report = line.starts_with("ptxas info") && REPORT.iter().any(|part| line.contains(part));
    is_report
        || line.contains(" bytes stack frame, ")
        || line.contains(" detected in the compilation of \"")
        || line.ends_with(" detected in this compilation.")
        || line == "Compilation terminated."
        || line.starts_with("Remark: The warnings can be suppressed with")
        || line.ends_with(": Ptx assembly aborted due to errors")
}

fn message(line: &str, name: &str, ptx: Option<&str>) -> LogLine {
    let known = front_end(line, name).or_else(|| ptxas(line, name, ptx)).or_else(|| option_error(line));
    known.unwrap_or_else(|| unknown(line))
}

/// A line of unknown form, kept as it is.
fn unknown(line: &str) -> LogLine {
    LogLine { severity: Severity::Info, line: None, text: line.to_string() }
}

/// `k.cu(3): error: text`, `k.cu(2): warning #177-D: text`.
fn front_end(line: &str, name: &str) -> Option<LogLine> {
    let (place, rest) = line.split_once("): ")?;
    let (file, number) = place.rsplit_once('(')?;
    let number: u32 = number.parse().ok()?;
    let (kind, text) = rest.split_once(": ")?;
    let (word, code) = kind.split_once(" #").map_or((kind, None), |(word, code)| (word, Some(code)));
    let severity = severity(word)?;
    let text = code.map_or_else(|| text.to_string(), |code| format!("#{code}: {text}"));
    let here = file == name;
    Some(LogLine {
        severity,
        line: here.then_some(number),
        text: if here { text } else { format!("{file}({number}): {text}") },
    })
}

/// `ptxas application ptx input, line 29; error   : text`, `ptxas warning : text`.
fn ptxas(line: &str, name: &str, ptx: Option<&str>) -> Option<LogLine> {
    let (head, text) = line.strip_prefix("ptxas ")?.split_once(':')?;
    let text = text.trim();
    let Some((place, kind)) = head.split_once(';') else {
        return Some(LogLine { severity: severity(head.trim())?, line: None, text: text.to_string() });
    };
    let severity = severity(kind.trim())?;
    let number = place.rsplit_once(" line ").and_then(|(_, number)| number.trim().parse::<u32>().ok());
    let Some(number) = number else {
        return Some(LogLine { severity, line: None, text: format!("{text} ({})", place.trim()) });
    };
    let line = ptx.and_then(|ptx| cuda_line(ptx, number, name));
    let text = match line {
        Some(_) => text.to_string(),
        None => format!("{text} (PTX line {number})"),
    };
    Some(LogLine { severity, line, text })
}

/// `nvrtc: error: text`, `Command-line error: text`.
fn option_error(line: &str) -> Option<LogLine> {
    let (kind, text) = line.strip_prefix("nvrtc: ").or_else(|| line.strip_prefix("Command-line "))?.split_once(": ")?;
    Some(LogLine { severity: severity(kind)?, line: None, text: text.to_string() })
}

fn severity(word: &str) -> Option<Severity> {
    match word {
        "error" | "catastrophic error" | "fatal error" | "internal error" | "fatal" => Some(Severity::Error),
        "warning" => Some(Severity::Warning),
        "info" => Some(Severity::Info),
        "remark" | "note" => Some(Severity::Remark),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "/tilewright/k.cu";

    fn line(severity: Severity, line: Option<u32>, text: &str) -> LogLine {
        LogLine { severity, line, text: text.to_string() }
    }

    #[test]
    fn front_end_messages_keep_line_and_text_only() {
        let log = r#"/tilewright/k.cu(3): error: identifier "undefined_thing" is undefined
    p[0] = undefined_thing;
           ^

/tilewright/k.cu(2): warning #177-D: variable "unused" was declared but never referenced
    int unused = 3;
        ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

2 errors detected in the compilation of "/tilewright/k.cu".
"#;
        assert_eq!(
            parse_log(log, NAME, None),
            [
                line(Severity::Error, Some(3), r#"identifier "undefined_thing" is undefined"#),
                line(Severity::Warning, Some(2), r#"#177-D: variable "unused" was declared but never referenced"#),
            ]
        );
    }

    #[test]
    fn notes_and_instantiations_are_kept() {
        let log = r#"/tilewright/k.cu(3): error: static assertion failed with "ints are small"
    static_assert(sizeof(int)==8, "ints are small"); }
    ^
/tilewright/k.cu(3): note #3453-D: the final comparison was 4 == 8
    static_assert(sizeof(int)==8, "ints are small"); }
                             ^

/tilewright/k.cu(1): error: expression must have class type but it has type "float"
  template<class T> __device__ T f(T x){ return x.foo; }
                                                ^
          detected during instantiation of "T f(T) [with T=float]" at line 2

"#;
        assert_eq!(
            parse_log(log, NAME, None),
            [
                line(Severity::Error, Some(3), r#"static assertion failed with "ints are small""#),
                line(Severity::Remark, Some(3), "#3453-D: the final comparison was 4 == 8"),
                line(
                    Severity::Error,
                    Some(1),
                    "expression must have class type but it has type \"float\"\n\
                     detected during instantiation of \"T f(T) [with T=float]\" at line 2"
                ),
            ]
        );
    }

    #[test]
    fn a_message_about_another_file_names_it() {
        let log = "/include/h.h(33): catastrophic error: cannot open source file \"x.h\"\nCompilation terminated.\n";
        assert_eq!(
            parse_log(log, NAME, None),
            [line(Severity::Error, None, "/include/h.h(33): cannot open source file \"x.h\"")]
        );
    }

    #[test]
    fn ptxas_errors_are_mapped_to_the_cuda_line() {
        let log = "\
ptxas application ptx input, line 5; error   : Unknown modifier '.bogus'
ptxas application ptx input, line 1; error   : Unknown symbol 'nowhere'
ptxas fatal   : Ptx assembly aborted due to errors
";
        let ptx = ".version 9.5\n.visible .entry k()\n{\n\t.loc\t1 2 3\n\tmov.bogus.b32 %r1, %r1;\n}\n\t.file\t1 \"/tilewright/k.cu\"\n";
        assert_eq!(
            parse_log(log, NAME, Some(ptx)),
            [
                line(Severity::Error, Some(2), "Unknown modifier '.bogus'"),
                line(Severity::Error, None, "Unknown symbol 'nowhere' (PTX line 1)"),
            ]
        );
    }

    #[test]
    fn the_resource_report_is_left_out_and_other_information_kept() {
        let log = "\
ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_100a'
ptxas info    : Function properties for k
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 1024 bytes smem
ptxas info    : Compile time = 3.678 ms
";
        assert_eq!(
            parse_log(log, NAME, None),
            [line(
                Severity::Info,
                None,
                "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry."
            )]
        );
    }

    #[test]
    fn a_ptxas_message_without_a_line_keeps_its_severity() {
        assert_eq!(
            parse_log("ptxas application ptx input; warning : Something is odd\n", NAME, None),
            [line(Severity::Warning, None, "Something is odd (application ptx input)")]
        );
    }

    #[test]
    fn lines_below_no_message_are_kept() {
        let log = "    an indented line\n    and another\n";
        let kept = ["an indented line", "and another"].map(|text| line(Severity::Info, None, text));
        assert_eq!(parse_log(log, NAME, None), kept);
    }

    #[test]
    fn unknown_lines_and_option_errors_are_not_lost() {
        assert_eq!(
            parse_log("nvrtc: error: unrecognized option --nope found\nsomething else\n", NAME, None),
            [
                line(Severity::Error, None, "unrecognized option --nope found"),
                line(Severity::Info, None, "something else"),
            ]
        );
    }
}
