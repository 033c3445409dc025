//! The values of a kernel's sizes for a launch, and of expressions of them.

use tilewright_diag::Diagnostic;
use tilewright_expr::{Expr, Var};
use tilewright_ir::Kernel;
use tilewright_ir::tile::Size;

/// The value of each size, in the order of the kernel. Errors: a size that is missing, unknown or given twice, and
/// values that the kernel was not compiled for.
pub(crate) fn values(kernel: &Kernel, given: &[(&str, i64)]) -> Result<Vec<i64>, Vec<Diagnostic>> {
    let unknown = given.iter().filter(|(name, _)| !kernel.sizes.iter().any(|size| size.var.name() == *name));
    let mut found: Vec<Diagnostic> = unknown.map(|(name, _)| unknown_size(kernel, name)).collect();
    let mut values = Vec::with_capacity(kernel.sizes.len());
    for size in &kernel.sizes {
        match value_of(size, given) {
            Ok(value) => values.push(value),
            Err(finding) => found.push(finding),
        }
    }
    if found.is_empty() { Ok(values) } else { Err(found) }
}

/// The greatest value of each size.
pub(crate) fn greatest(kernel: &Kernel) -> Vec<i64> {
    kernel.sizes.iter().map(|size| greatest_of(&size.var)).collect()
}

/// The value of an expression for these values of all sizes. The verifier admits no other variables, nor values that
/// do not fit, so an error is a defect.
pub(crate) fn evaluate(sizes: &[Size], values: &[i64], expr: &Expr) -> Result<i64, Diagnostic> {
    let value = |var: &Var| {
        let at = sizes.iter().position(|size| size.var == *var)?;
        values.get(at).copied()
    };
    expr.eval(&value).map_err(|error| {
        Diagnostic::internal("R0618", format!("`{expr}` has no value for this launch")).note(error.to_string())
    })
}

fn greatest_of(var: &Var) -> i64 {
    var.range().hi - var.range().hi % var.multiple()
}

fn unknown_size(kernel: &Kernel, name: &str) -> Diagnostic {
    let known: Vec<&str> = kernel.sizes.iter().map(|size| size.var.name()).collect();
    let known = if known.is_empty() { "it has none".to_string() } else { format!("it has {}", known.join(", ")) };
    Diagnostic::error("R0611", format!("`{}` has no size `{name}`", kernel.name)).help(known)
}

/// The error for a launch of a kernel whose sizes are not bound.
pub(crate) fn not_bound(kernel: &Kernel) -> Diagnostic {
    let values: Vec<String> = kernel.sizes.iter().map(|size| format!("(\"{}\", ..)", size.var.name())).collect();
    Diagnostic::error("R0611", format!("the sizes of `{}` have no values", kernel.name))
        .help(format!("bind them: artifact.for_sizes(&[{}])", values.join(", ")))
}

/// The value of a size among those that are given.
fn value_of(size: &Size, given: &[(&str, i64)]) -> Result<i64, Diagnostic> {
    let name = size.var.name();
    let values: Vec<i64> = given.iter().filter(|(of, _)| *of == name).map(|(_, value)| *value).collect();
    match values[..] {
        [] => Err(Diagnostic::error("R0611", format!("the size `{name}` has no value"))
            .label(size.span, "declared here")
            .help(format!("bind it: artifact.for_sizes(&[(\"{name}\", ..)])"))),
        [value] => check_value(size, value),
        _ => {
            let all: Vec<String> = values.iter().map(|value| format!("{name} = {value}")).collect();
            Err(Diagnostic::error("R0616", format!("the size `{name}` is given {} times", values.len()))
                .label(size.span, "this size")
                .note(all.join(", "))
                .help("give each size one value"))
        }
    }
}

/// The value of a size, if it is allowed for a launch.
fn check_value(size: &Size, value: i64) -> Result<i64, Diagnostic> {
    let (name, range, multiple) = (size.var.name(), size.var.range(), size.var.multiple());
    if value < 1 || value > range.hi || value % multiple != 0 {
        let divides = if multiple > 1 { format!("a multiple of {multiple} ") } else { String::new() };
        let from = if multiple > 1 { "from " } else { "" };
        let wanted = format!("launch with {divides}{from}{multiple} to {}", range.hi / multiple * multiple);
        let help = if value < 1 { wanted } else { format!("{wanted}, or change the bounds of the size") };
        return Err(Diagnostic::error("R0612", format!("the kernel was not compiled for {name} = {value}"))
            .label(size.span, format!("{divides}from {multiple} to {}", range.hi / multiple * multiple))
            .help(help));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_of_something_else_than_sizes_is_a_defect() {
        let block = Expr::var(&Var::new("x", 0, 7));
        let found = evaluate(&[], &[], &block).expect_err("`x` is not a size");
        assert_eq!(found.to_string(), "internal error[R0618]: `x` has no value for this launch");
        assert_eq!(found.notes.last().map(String::as_str), Some("`x` has no value"));
    }
}
