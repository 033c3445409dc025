//! Checks of the results of operations.

use std::fmt::Debug;

use tilewright::layout::LayoutError;

/// The outcome of a case that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The operation returned a result, and it is correct.
    Accepted,
    /// The operation refused, justifiably as far as can be determined. The text is the error code, or what was not
    /// found.
    Refused(&'static str),
}

/// The outcome of a case; the error says what is wrong, with all that is needed to reproduce it.
pub(crate) type Outcome = Result<Ended, String>;

/// Checks a result: if the call is legal, it must succeed and pass the check; otherwise it must be refused.
pub(crate) fn judge<T>(
    call: &dyn Fn() -> String,
    answer: Result<T, LayoutError>,
    legal: bool,
    check: impl FnOnce(T) -> Result<(), String>,
) -> Outcome {
    match answer {
        Ok(answer) if legal => accept(call, check(answer)),
        Ok(_) => Err(format!("{}: accepted, but must be refused", call())),
        Err(error) if legal => Err(format!("{}: refused: {error}", call())),
        Err(error) => Ok(Ended::Refused(error.code())),
    }
}

/// Checks the result of a query that never refuses.
pub(crate) fn answered<T: PartialEq + Debug>(
    call: &dyn Fn() -> String,
    answer: Result<T, LayoutError>,
    expected: &T,
) -> Outcome {
    judge(call, answer, true, |answer| equal(&answer, expected))
}

/// The outcome of the checks of an operation that cannot refuse.
pub(crate) fn accept(call: &dyn Fn() -> String, checked: Result<(), String>) -> Outcome {
    checked.map(|()| Ended::Accepted).map_err(|what| format!("{}: {what}", call()))
}

/// Fails with a message if a condition does not hold.
pub(crate) fn ensure(holds: bool, said: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(said()) }
}

/// Fails with both values if they differ.
pub(crate) fn equal<T: PartialEq + Debug + ?Sized>(got: &T, expected: &T) -> Result<(), String> {
    ensure(got == expected, || format!("got {got:?}, expected {expected:?}"))
}

/// The text of an error, for checks that call the library.
pub(crate) fn error_text(error: LayoutError) -> String {
    error.to_string()
}
