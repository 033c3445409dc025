//! How far loops are unrolled. A loop whose variable stands in the index of a register is unrolled completely, since
//! registers have no addresses. Others are unrolled as far as it helps: for thousands of unrolled statements, NVRTC takes
//! seconds, and it begins so many of them early that their addresses fill the registers.

use tilewright_expr::Var;
use tilewright_ir::thread::{Resource, Stmt, Unroll, for_each_stmt};

/// The most statements, repetitions counted, of a loop that is unrolled completely though it need not be.
const MOST_WHOLE: i64 = 512;
/// The most statements that one iteration of a partly unrolled loop has, if it unrolls at all.
const MOST_PART: i64 = 128;
/// How many statements a condition counts as, since it begins two basic blocks.
const CONDITION: i64 = 4;

/// The most statements of a program in which loops are unrolled so far. In a longer one they have to be shorter to be
/// unrolled completely.
const MOST_OF_ALL: i64 = 8192;

/// The statements, with their loops unrolled no further than it helps.
pub(super) fn unrolled_in_bounds(body: Vec<Stmt>) -> Vec<Stmt> {
    let most = std::iter::successors(Some(MOST_WHOLE), |most| Some(most / 2)).take_while(|most| *most > MOST_PART);
    for most in most {
        let (unrolled, count) = bounded(body.clone(), most);
        if count <= MOST_OF_ALL {
            return unrolled;
        }
    }
    bounded(body, MOST_PART).0
}

/// The statements, and how many they are once unrolled. Loops of at most `most` statements are unrolled completely.
fn bounded(body: Vec<Stmt>, most: i64) -> (Vec<Stmt>, i64) {
    let mut total: i64 = 0;
    let body = body.into_iter().map(|stmt| {
        let (stmt, count) = bounded_stmt(stmt, most);
        total = total.saturating_add(count);
        stmt
    });
    (body.collect(), total)
}

fn bounded_stmt(stmt: Stmt, most: i64) -> (Stmt, i64) {
    match stmt {
        Stmt::For { counter, unroll, body } => {
            let (body, count) = bounded(body, most);
            let trips = counter.most_trips();
            let unroll = match unroll {
                Unroll::Full if !is_in_a_register_index(&body, &counter.var) => unrolled(trips, count, most),
                other => other,
            };
            let copies = match unroll {
                Unroll::Auto | Unroll::Claimed(_) => 1,
                Unroll::By(factor) => factor,
                Unroll::Full => trips,
            };
            (Stmt::For { counter, unroll, body }, count.saturating_mul(copies))
        }
        stmt => {
            let own = match stmt {
                Stmt::If { .. } | Stmt::Unless { .. } | Stmt::IfValue { .. } => CONDITION,
                Stmt::Op { .. } | Stmt::Declare(_) => 0,
                _ => 1,
            };
            let mut inner = 0;
            let stmt = stmt.map_inner(|body| {
                let (body, count) = bounded(body, most);
                inner = count;
                body
            });
            (stmt, own.saturating_add(inner))
        }
    }
}

/// How far a loop of `trips` iterations of `count` statements is unrolled: completely up to `most`. A factor that divides the iterations is
/// preferred, so that none remain.
fn unrolled(trips: i64, count: i64, most: i64) -> Unroll {
    if trips.saturating_mul(count) <= most {
        return Unroll::Full;
    }
    let factor = (MOST_PART / count).clamp(1, trips);
    let divisor = (factor / 2 + 1..=factor).rev().find(|factor| trips % factor == 0);
    Unroll::By(divisor.unwrap_or(factor))
}

fn is_in_a_register_index(body: &[Stmt], var: &Var) -> bool {
    let mut found = false;
    for_each_stmt(body, &mut |stmt| {
        stmt.for_each_resource(&mut |_, resource| {
            found |= matches!(resource, Resource::Registers(regs) if regs.first.mentions(var));
        });
    });
    found
}

#[cfg(test)]
mod tests;
