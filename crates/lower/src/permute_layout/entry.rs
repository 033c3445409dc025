//! Table entries of 32 bits that hold two values.

use tilewright_expr::Expr;

/// What the second value is multiplied by in an entry that holds two; first values are below it.
pub(crate) const HIGH: i64 = 1 << 16;
/// Second values below this keep a 32-bit entry non-negative.
pub(crate) const MOST_HIGH: i64 = 1 << 15;

/// The entry that holds two values.
pub(crate) fn pair(first: i64, second: i64) -> i64 {
    first + second * HIGH
}

/// The two values of an entry.
pub(crate) fn unpaired(entry: &Expr) -> [Expr; 2] {
    [entry % HIGH, entry / HIGH]
}
