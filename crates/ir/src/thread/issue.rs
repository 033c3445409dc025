//! What warps are predicted to issue.

use tilewright_expr::Var;

use crate::thread::Cond;

/// Instructions of a warp under conditions: it issues them where some lane satisfies all of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The conditions, in terms of hardware indices, sizes and the variables of `loops`.
    pub guards: Vec<Cond>,
    /// The loops around on whose variables the conditions depend.
    pub loops: Vec<Var>,
    /// Instructions of one iteration of these loops.
    pub instructions: i64,
}

impl Issue {
    /// `instructions` of every iteration of the loops.
    pub fn times(&self, instructions: i64) -> i64 {
        let trips = |var: &Var| var.range().hi - var.range().lo + 1;
        self.loops.iter().map(trips).fold(instructions, i64::saturating_mul)
    }
}
