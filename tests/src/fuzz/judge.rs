//! How the answer of an operation is judged.

use std::fmt::Debug;

use tilewright::layout::LayoutError;

/// How a case ended that is not wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// There was an answer, and it is right.
    Accepted,
    /// There was none, rightly as far as can be told; with the code, or what it was that was not found.
    Refused(&'static str),
}

/// How a case ended; the error is what is wrong, with all that is needed to see it again.
pub(crate) type Outcome = Result<Ended, String>;

/// Judges an answer: where the call is legal there must be one, and it must pass the check; else there must be none.
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

/// Judges an answer to a question that always has one.
pub(crate) fn answered<T: PartialEq + Debug>(
    call: &dyn Fn() -> String,
    answer: Result<T, LayoutError>,
    expected: &T,
) -> Outcome {
    judge(call, answer, true, |answer| equal(&answer, expected))
}

/// Judges the checks of an operation that cannot refuse.
pub(crate) fn accept(call: &dyn Fn() -> String, checked: Result<(), String>) -> Outcome {
    checked.map(|()| Ended::Accepted).map_err(|what| format!("{}: {what}", call()))
}

/// Fails with what is said where something does not hold.
pub(crate) fn ensure(holds: bool, said: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(said()) }
}

/// Fails with both values where they differ.
pub(crate) fn equal<T: PartialEq + Debug + ?Sized>(got: &T, expected: &T) -> Result<(), String> {
    ensure(got == expected, || format!("got {got:?}, expected {expected:?}"))
}

/// Text of an error, for checks that call on the library.
pub(crate) fn error_text(error: LayoutError) -> String {
    error.to_string()
}
