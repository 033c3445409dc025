//! The figures that `bench` measures, and whether they meet their goals.

use std::fmt;

use serde_json::{Value, json};

use crate::terminal::paint;

/// The factor up to which times still count as proportional.
const NEAR: f64 = 1.5;

/// The goal of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    /// Less than this.
    Below(f64),
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
    /// Near this value, which is in proportion to a smaller case.
    Linear(f64),
    /// No goal: other figures are compared with it.
    Base,
}

impl Goal {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Goal::Below(bound) => value < bound,
            Goal::AtMost(bound) => value <= bound,
            Goal::AtLeast(bound) => value >= bound,
            Goal::Linear(proportion) => value < NEAR * proportion,
            Goal::Base => true,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::Below(bound) => write!(f, "< {bound}"),
            Goal::AtMost(bound) => write!(f, "<= {bound}"),
            Goal::AtLeast(bound) => write!(f, ">= {bound}"),
            Goal::Linear(proportion) => write!(f, "near linear: < {:.3}", NEAR * proportion),
            Goal::Base => write!(f, "none"),
        }
    }
}

/// One figure, with its goal.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) name: String,
    /// The measured value, in `unit`; NaN if it could not be measured.
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) goal: Goal,
    /// The time on the wall clock in milliseconds, if `value` is CPU time.
    pub(crate) wall: Option<f64>,
}

impl Figure {
    /// Whether it misses its goal. One that could not be measured (NaN) does too.
    pub(crate) fn misses(&self) -> bool {
        !self.goal.is_met_by(self.value)
    }

    fn json(&self) -> Value {
        let goal = self.goal.to_string();
        let mut told =
            json!({"name": self.name, "value": self.value, "unit": self.unit, "goal": goal, "missed": self.misses()});
        if let Some(wall) = self.wall {
            told["wall"] = json!(wall);
        }
        told
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure { name, value, unit, goal, wall } = self;
        let unit = wall.map_or_else(|| unit.to_string(), |wall| format!("{unit}, {wall:.3} wall"));
        write!(f, "{name:<60} {value:>10.3} {unit:<22} goal: {goal}")?;
        if self.misses() { write!(f, "  {}", paint("1;31", "MISSED")) } else { Ok(()) }
    }
}

/// All figures, one JSON object each.
pub(crate) fn all_json(figures: &[Figure]) -> Value {
    figures.iter().map(Figure::json).collect()
}

/// All figures, a line each, and how many miss their goals.
pub(crate) fn all_text(figures: &[Figure]) -> String {
    let lines: String = figures.iter().map(|figure| format!("{figure}\n")).collect();
    let missed = figures.iter().filter(|figure| figure.misses()).count();
    let count = figures.len();
    let verdict = match missed {
        0 => format!("every figure meets its goal ({count} in total)"),
        1 => format!("1 of {count} figures misses its goal"),
        _ => format!("{missed} of {count} figures miss their goals"),
    };
    lines + &verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64, goal: Goal) -> Figure {
        Figure { name: "f".to_string(), value, unit: "ms", goal, wall: None }
    }

    #[test]
    fn goals_are_met_up_to_their_bounds() {
        let cases = [
            (Goal::Below(2.0), 1.9, 2.0, "< 2"),
            (Goal::AtMost(1.0), 1.0, 1.01, "<= 1"),
            (Goal::AtLeast(50.0), 50.0, 49.9, ">= 50"),
            (Goal::Linear(10.0), 14.9, 15.0, "near linear: < 15.000"),
        ];
        for (goal, right, wrong, text) in cases {
            assert_eq!((figure(right, goal).misses(), figure(wrong, goal).misses()), (false, true), "{goal}");
            assert!(figure(f64::NAN, goal).misses(), "{goal}");
            assert_eq!(goal.to_string(), text);
        }
        assert!(!figure(1e9, Goal::Base).misses());
    }

    #[test]
    fn what_misses_its_goal_is_marked_and_counted() {
        let figures = [figure(1.0, Goal::Below(2.0)), figure(3.0, Goal::Below(2.0)), figure(4.0, Goal::Base)];
        let text = all_text(&figures);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.iter().map(|line| line.contains("MISSED")).collect::<Vec<_>>(), [false, true, false, false]);
        assert_eq!(lines.last(), Some(&"1 of 3 figures misses its goal"));
        let told = all_json(&figures);
        let missed: Vec<&Value> = told.as_array().into_iter().flatten().map(|one| &one["missed"]).collect();
        assert_eq!(missed, [&json!(false), &json!(true), &json!(false)]);
        assert_eq!(told[1]["goal"], "< 2");
        assert!(all_text(&figures[..1]).ends_with("\nevery figure meets its goal (1 in total)"));
    }
}
