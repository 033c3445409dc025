//! How many instructions a launch is predicted to execute.

use tilewright_expr::Var;
use tilewright_ir::thread::{Cond, Issue, Program, Warp};
use tilewright_layout::access::LANES;

/// Instructions of all warps of a launch. What masks leave out costs nothing.
pub(crate) fn predicted_instructions(program: &Program, grid: [i64; 3], sizes: Vec<(Var, i64)>) -> i64 {
    let warps = (program.threads + LANES as i64 - 1) / LANES as i64;
    of_launch(&program.issues, warps, grid, sizes)
}

fn of_launch(issues: &[Issue], warps: i64, grid: [i64; 3], sizes: Vec<(Var, i64)>) -> i64 {
    let (masked, always): (Vec<&Issue>, Vec<&Issue>) = issues.iter().partition(|issue| !issue.guards.is_empty());
    let all = grid.iter().fold(warps, |product, ctas| product.saturating_mul(*ctas));
    let mut sum = all.saturating_mul(always.iter().map(|issue| issue.instructions).sum());
    if masked.is_empty() {
        return sum;
    }
    let mut warp = Warp::first();
    sizes.iter().for_each(|(size, value)| warp.fix(size, *value));
    for z in 0..grid[2] {
        for y in 0..grid[1] {
            for x in 0..grid[0] {
                for position in 0..warps {
                    warp.place([x, y, z], position);
                    sum = masked.iter().fold(sum, |sum, issue| sum.saturating_add(instructions(&mut warp, issue)));
                }
            }
        }
    }
    sum
}

/// The share of the iterations in which some lane satisfies the conditions.
fn instructions(warp: &mut Warp, issue: &Issue) -> i64 {
    let (held, all) = iterations(warp, issue, &issue.loops);
    issue.instructions * held / all.max(1)
}

/// Iterations in which the conditions hold, and all of them.
fn iterations(warp: &mut Warp, issue: &Issue, loops: &[Var]) -> (i64, i64) {
    let Some((var, inner)) = loops.split_first() else { return (i64::from(issues(warp, &issue.guards)), 1) };
    let mut sum = (0, 0);
    let mark = warp.mark();
    for value in var.range().lo..=var.range().hi {
        warp.fix(var, value);
        let (held, all) = iterations(warp, issue, inner);
        warp.rewind(mark);
        sum = (sum.0 + held, sum.1 + all);
    }
    sum
}

/// Whether some lane satisfies all conditions. One that depends on data is taken to hold.
fn issues(warp: &Warp, guards: &[Cond]) -> bool {
    let known = guards.iter().filter_map(|guard| warp.holds(guard).ok());
    let all = known.fold([true; LANES], |all, holds| std::array::from_fn(|lane| all[lane] && holds[lane]));
    all.contains(&true)
}

#[cfg(test)]
mod tests {
    use tilewright_expr::Expr;

    use super::*;

    fn var(name: &str, hi: i64) -> Var {
        Var::new(name, 0, hi)
    }

    fn below(value: Expr, end: Expr) -> Cond {
        Cond::Less(value, end)
    }

    /// Instructions of two warps in each of three CTAs, for `n = 40`.
    fn launched(issue: Issue) -> i64 {
        of_launch(&[issue], 2, [3, 1, 1], vec![(var("n", 100), 40)])
    }

    #[test]
    fn what_nothing_masks_is_issued_by_every_warp() {
        assert_eq!(launched(Issue { guards: Vec::new(), loops: Vec::new(), instructions: 5 }), 2 * 3 * 5);
    }

    #[test]
    fn a_warp_of_which_no_lane_takes_part_issues_nothing() {
        let flat = Expr::var(&var("bx", 2)) * 64 + Expr::var(&var("tid", 63));
        let guards = vec![below(flat, Expr::var(&var("n", 100)))];
        assert_eq!(launched(Issue { guards, loops: Vec::new(), instructions: 5 }), 2 * 5);
    }

    #[test]
    fn conditions_hold_together() {
        let lane = Expr::var(&var("lane", 31));
        let guards = vec![below(lane.clone(), Expr::constant(8)), Cond::Equal(lane / 16, Expr::constant(1))];
        assert_eq!(launched(Issue { guards, loops: Vec::new(), instructions: 5 }), 0);
    }

    #[test]
    fn iterations_that_are_masked_do_not_count() {
        let i = var("i", 7);
        let guards = vec![below(Expr::var(&i) * 8, Expr::var(&var("n", 100)))];
        assert_eq!(launched(Issue { guards, loops: vec![i], instructions: 16 }), 2 * 3 * 10);
    }
}
