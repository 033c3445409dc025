//! The text of a defect report.

use std::fmt::Write;

use tilewright_diag::Diagnostic;

use crate::Options;

/// The text of a report, if a defect of Tilewright is among the findings: the version, the options, the findings, and
/// the kernel as `kernel` prints it. The caller decides where to keep it.
pub fn defect_report(kernel: impl FnOnce() -> String, options: &Options, found: &[Diagnostic]) -> Option<String> {
    if !found.iter().any(Diagnostic::is_internal) {
        return None;
    }
    let mut text = format!("Tilewright {} for {}\n", env!("CARGO_PKG_VERSION"), options.target);
    if let Some(variant) = &options.lower.variant {
        let _ = writeln!(text, "variant {variant}");
    }
    for finding in found {
        let _ = writeln!(text, "\n{finding}");
        for label in &finding.labels {
            let _ = writeln!(text, "  {}: {}", label.span, label.text);
        }
        for note in &finding.notes {
            let _ = writeln!(text, "  note: {note}");
        }
    }
    let _ = write!(text, "\n{}", kernel());
    Some(text)
}

#[cfg(test)]
mod tests {
    use tilewright_diag::Span;
    use tilewright_ir::Target;

    use super::*;

    fn report(found: &[Diagnostic]) -> Option<String> {
        let mut options = Options::new(Target::Sm90a);
        options.lower.variant = Some("vectorized".to_string());
        defect_report(|| "kernel k\n".to_string(), &options, found)
    }

    #[test]
    fn a_report_has_the_version_the_options_what_was_said_and_the_kernel() {
        let span = Span::at("src/k.rs", 3, 7);
        let defect = Diagnostic::internal("V0305", "`x` is used before it is defined").label(span, "while lowering");
        let expected = format!(
            "Tilewright {} for sm_90a\nvariant vectorized\n\n\
             internal error[V0305]: `x` is used before it is defined\n  src/k.rs:3: while lowering\n  \
             note: this is a defect of Tilewright, not of the kernel\n\nkernel k\n",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(report(&[defect]), Some(expected));
    }

    #[test]
    fn a_mistake_of_the_kernel_needs_no_report() {
        assert_eq!(report(&[Diagnostic::error("K0218", "the dtypes differ")]), None);
    }
}
