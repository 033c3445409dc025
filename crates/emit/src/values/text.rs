//! Expressions with their precedence.

use tilewright_diag::Diagnostic;

use crate::index::Level;

/// A value as C++. Error: it has no text.
pub(super) type Printed = Result<Text, Diagnostic>;

/// A C++ expression.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) text: String,
    /// The strength of its outermost operator.
    level: Level,
}

impl Text {
    pub(super) fn new(text: impl Into<String>, level: Level) -> Text {
        Text { text: text.into(), level }
    }

    pub(super) fn call(function: &str, arguments: &str) -> Text {
        Text::new(format!("{function}({arguments})"), Level::Postfix)
    }

    pub(super) fn cast(c_type: &str, of: Text) -> Text {
        Text::new(format!("({c_type}){}", of.at(Level::Unary)), Level::Unary)
    }

    pub(super) fn constant(text: String) -> Text {
        let level = if text.starts_with('-') { Level::Unary } else { Level::Postfix };
        Text { text, level }
    }

    /// `cond ? then : otherwise`
    pub(super) fn choice(cond: Text, then: Text, otherwise: Text) -> Text {
        let (cond, then) = (cond.above(Level::Choice), then.above(Level::Choice));
        Text::new(format!("{cond} ? {then} : {}", otherwise.text), Level::Choice)
    }

    /// The expression, in parentheses if it binds less tightly than `least`.
    pub(super) fn at(self, least: Level) -> String {
        if self.level < least { format!("({})", self.text) } else { self.text }
    }

    /// The expression, in parentheses unless it binds more tightly than `level`.
    pub(super) fn above(self, level: Level) -> String {
        if self.level <= level { format!("({})", self.text) } else { self.text }
    }
}
