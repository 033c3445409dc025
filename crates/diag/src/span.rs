use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::Location;
use std::sync::Mutex;

/// A place in the user's Rust source: the line that built an op, a buffer or a layout.
///
/// Builder methods are `#[track_caller]` and call `Span::here()`, so no macro is needed to find it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Path as the Rust compiler saw it, relative to the crate's workspace.
    pub file: &'static str,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// Where in an op's definition it is, if the place is a call of an op that is defined as a [function](in_op).
    inside: Option<&'static Inside>,
}

/// A place in the definition of an op.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Inside {
    /// The op, after those whose definitions call it: `attention: softmax`.
    op: String,
    /// The place.
    file: &'static str,
    line: u32,
}

/// The places in definitions of ops so far. There are as many as lines in which statements are written, times the ops around
/// them; a span is a small copy because of it.
static PLACES: Mutex<BTreeSet<&'static Inside>> = Mutex::new(BTreeSet::new());

thread_local! {
    /// The ops whose definitions are running in this thread, the outermost first, and the place where that one was called.
    static OPEN: RefCell<Option<(Span, Vec<String>)>> = const { RefCell::new(None) };
}

/// Runs the definition of the op `name`, which is called at `place`: spans that are made in it are that place, and also say
/// where in the definition they were made.
pub fn in_op<T>(name: &str, place: Span, definition: impl FnOnce() -> T) -> T {
    /// Ends the op, also if its definition panics.
    struct End;

    impl Drop for End {
        fn drop(&mut self) {
            OPEN.with_borrow_mut(|open| {
                let names = open.as_mut().map(|(_, names)| names);
                if names.is_some_and(|names| names.pop().is_some() && names.is_empty()) {
                    *open = None;
                }
            });
        }
    }

    OPEN.with_borrow_mut(|open| {
        let (_, names) = open.get_or_insert_with(|| (place, Vec::new()));
        names.push(name.to_string());
    });
    let _end = End;
    definition()
}

/// Whether the definition of an op is running in this thread.
pub fn is_in_op() -> bool {
    OPEN.with_borrow(Option::is_some)
}

impl Span {
    /// The caller's place; inside `#[track_caller]` functions, the place of their caller. In the definition of an op, the
    /// place where the op was called.
    #[track_caller]
    pub fn here() -> Span {
        let at = Location::caller();
        OPEN.with_borrow(|open| match open {
            None => Span::at(at.file(), at.line(), at.column()),
            Some((place, ops)) => {
                let inside = Inside { op: ops.join(": "), file: at.file(), line: at.line() };
                Span { inside: interned(inside), ..*place }
            }
        })
    }

    /// A place with this line and column, both from 1.
    pub const fn at(file: &'static str, line: u32, column: u32) -> Span {
        Span { file, line, column, inside: None }
    }

    /// What is done at this place, with the op in whose definition it is done: `argmax: reduce(..)`.
    pub fn titled(self, title: &str) -> String {
        match self.inside {
            Some(Inside { op, .. }) => format!("{op}: {title}"),
            None => title.to_string(),
        }
    }

    /// A remark about this place, with the place in the definition of an op: `declared here, in `argmax` (lib.rs:12)`.
    pub(crate) fn remark(self, text: String) -> String {
        match self.inside {
            Some(Inside { op, file, line }) => format!("{text}, in `{op}` ({}:{line})", file.replace('\\', "/")),
            None => text,
        }
    }
}

/// The place that lives as long as the process. `None` if another thread panicked while it had the table.
fn interned(place: Inside) -> Option<&'static Inside> {
    let mut places = PLACES.lock().ok()?;
    if let Some(known) = places.get(&place) {
        return Some(*known);
    }
    let kept: &'static Inside = Box::leak(Box::new(place));
    places.insert(kept);
    Some(kept)
}

impl fmt::Display for Span {
    /// `file:line`, the form that generated code and diagnostics use.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.replace('\\', "/"), self.line)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}:{}", self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn builder_method() -> Span {
        Span::here()
    }

    #[test]
    fn a_tracked_method_reports_its_callers_line() {
        let span = builder_method();
        assert_eq!((span.file.ends_with("span.rs"), span.line), (true, line!() - 1));
    }

    #[test]
    fn a_place_in_a_definition_is_that_of_its_call() {
        let call = Span::at("user.rs", 7, 5);
        let (inner, nested, after) = (
            in_op("rope", call, builder_method),
            in_op("attention", call, || in_op("rope", Span::here(), builder_method)),
            builder_method(),
        );
        assert_eq!(inner.to_string(), "user.rs:7");
        assert_eq!(inner.titled("copy(a, b)"), "rope: copy(a, b)");
        assert!(inner.remark("this op".to_string()).starts_with("this op, in `rope` ("));
        assert_eq!(nested.titled("copy(a, b)"), "attention: rope: copy(a, b)");
        assert_eq!((after.titled("copy(a, b)"), nested.line), ("copy(a, b)".to_string(), 7));
        assert_ne!(inner, nested);
    }

    #[test]
    fn an_op_whose_definition_panics_has_ended() {
        let call = Span::at("user.rs", 7, 5);
        assert!(std::panic::catch_unwind(|| in_op("rope", call, || panic!("no"))).is_err());
        assert_eq!(builder_method().titled("fill(a)"), "fill(a)");
    }
}
