//! What the operands of chosen instructions were, each time a warp executed them.

use std::fmt;

/// Executions that are recorded: the first half and the last half of them, if there are more.
pub const MOST_TRACED: usize = 2_000;

/// The executions of the traced instructions, in the order of the run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// At most [`MOST_TRACED`] of them.
    pub executions: Vec<Traced>,
    /// Number of executions that are left out, after the first half of those here.
    pub omitted: u64,
}

/// One execution of an instruction by lanes of a warp.
#[derive(Clone, Debug)]
pub struct Traced {
    /// 1-based PTX line.
    pub ptx_line: u32,
    /// The instruction as written.
    pub ptx: String,
    /// Index of the CTA in the grid.
    pub cta: [u32; 3],
    /// Index of the warp in the CTA.
    pub warp: u32,
    /// The lanes that reached it, one bit each. Those whose predicate is false did not execute it.
    pub lanes: u32,
    /// The run ended here with a fault, so that the values after the instruction are not those of all lanes.
    pub has_faulted: bool,
    /// Its operands, in the order in which they are written.
    pub operands: Vec<TracedOperand>,
}

/// A register, a predicate or an address that an instruction names.
#[derive(Clone, Debug)]
pub struct TracedOperand {
    /// The operand as written.
    pub name: String,
    /// The values before the instruction, of the lanes that reached it.
    pub before: Vec<TracedValue>,
    /// The values after it. What an asynchronous operation writes is not there yet.
    pub after: Vec<TracedValue>,
}

/// The value of an operand in one lane.
#[derive(Clone, Debug)]
pub enum TracedValue {
    /// Some of its bits are undefined.
    Undefined,
    /// An integer, or bits of an unknown type.
    Integer(i128),
    /// A number of single precision, or of less.
    Single(f32),
    /// A number of double precision.
    Double(f64),
    /// A predicate.
    Flag(bool),
    /// A byte of a buffer or variable: its name, and the offset in bytes.
    At(String, i64),
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, execution) in self.executions.iter().enumerate() {
            if at == MOST_TRACED / 2 && self.omitted > 0 {
                writeln!(f, "({} executions are left out)", self.omitted)?;
            }
            writeln!(f, "{execution}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.cta;
        write!(f, "PTX line {} `{}`: ", self.ptx_line, self.ptx)?;
        write!(f, "cta ({x}, {y}, {z}) warp {} lanes {:#010x}", self.warp, self.lanes)?;
        if self.has_faulted {
            write!(f, ", with a fault")?;
        }
        let width = self.operands.iter().map(|operand| operand.name.len()).max().unwrap_or(0);
        for TracedOperand { name, before, after } in &self.operands {
            write!(f, "\n  {name:width$}  {}", all_text(after))?;
            if !are_same(before, after) {
                write!(f, "  (before: {})", all_text(before))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for TracedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TracedValue::Undefined => write!(f, "undefined"),
            TracedValue::Integer(value) if *value >= 1 << 24 => write!(f, "{value:#x}"),
            TracedValue::Integer(value) => write!(f, "{value}"),
            TracedValue::Single(value) => write!(f, "{value:?}"),
            TracedValue::Double(value) => write!(f, "{value:?}"),
            TracedValue::Flag(value) => write!(f, "{value}"),
            TracedValue::At(name, offset) => write!(f, "`{name}` + {offset}"),
        }
    }
}

/// Whether two values are the same; NaN is the same as NaN.
fn is_same(a: &TracedValue, b: &TracedValue) -> bool {
    match (a, b) {
        (TracedValue::Undefined, TracedValue::Undefined) => true,
        (TracedValue::Integer(a), TracedValue::Integer(b)) => a == b,
        (TracedValue::Single(a), TracedValue::Single(b)) => a.total_cmp(b).is_eq(),
        (TracedValue::Double(a), TracedValue::Double(b)) => a.total_cmp(b).is_eq(),
        (TracedValue::Flag(a), TracedValue::Flag(b)) => a == b,
        (TracedValue::At(name, a), TracedValue::At(other, b)) => (name, a) == (other, b),
        _ => false,
    }
}

fn are_same(a: &[TracedValue], b: &[TracedValue]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
}

/// The values of lanes: one if all are equal, the first two and the last of a sequence of equal steps, else runs of equal
/// values.
fn all_text(values: &[TracedValue]) -> String {
    let Some(first) = values.first() else { return String::new() };
    if values.iter().all(|value| is_same(value, first)) {
        return first.to_string();
    }
    let steps = values.windows(2).map(|pair| distance(&pair[0], &pair[1]));
    let step = steps.reduce(|all, step| if all == step { all } else { None });
    if let (Some(Some(_)), [first, second, .., last]) = (step, values)
        && values.len() > 3
    {
        return format!("{first}, {second}, .., {last}");
    }
    let mut runs: Vec<(&TracedValue, usize)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((last, count)) if is_same(last, value) => *count += 1,
            _ => runs.push((value, 1)),
        }
    }
    let run = |(value, count): (&TracedValue, usize)| match count {
        1 => value.to_string(),
        _ => format!("{value} in {count} lanes"),
    };
    runs.into_iter().map(run).collect::<Vec<String>>().join(", ")
}

/// How far one value is from another, if both are of one kind.
fn distance(a: &TracedValue, b: &TracedValue) -> Option<f64> {
    match (a, b) {
        (TracedValue::Integer(a), TracedValue::Integer(b)) => Some((b - a) as f64),
        (TracedValue::Single(a), TracedValue::Single(b)) => Some(f64::from(*b) - f64::from(*a)),
        (TracedValue::Double(a), TracedValue::Double(b)) => Some(b - a),
        (TracedValue::At(name, a), TracedValue::At(other, b)) if name == other => Some((b - a) as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_written_in_short() {
        let text =
            |values: &[i128]| all_text(&values.iter().map(|value| TracedValue::Integer(*value)).collect::<Vec<_>>());
        assert_eq!(text(&[7; 32]), "7");
        assert_eq!(text(&(0..32).map(|lane| lane * 4).collect::<Vec<_>>()), "0, 4, .., 124");
        assert_eq!(text(&[1, 1, 1, 2, 5]), "1 in 3 lanes, 2, 5");
        assert_eq!(text(&[1, 2]), "1, 2");
        assert_eq!(text(&[]), "");
        assert_eq!(all_text(&[TracedValue::Single(f32::NAN), TracedValue::Single(f32::NAN)]), "NaN");
    }
}
