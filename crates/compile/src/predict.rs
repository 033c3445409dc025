//! How many instructions a launch is predicted to execute.

use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Cond, Issue, Program};

const LANES: usize = 32;

/// One warp of a launch, or one iteration of a loop in it.
struct Warp {
    cta: [i64; 3],
    index: i64,
    /// Sizes and the variables of loops.
    known: Vec<(Var, i64)>,
}

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
    let mut warp = Warp { cta: [0; 3], index: 0, known: sizes };
    for z in 0..grid[2] {
        for y in 0..grid[1] {
            for x in 0..grid[0] {
                for index in 0..warps {
                    (warp.cta, warp.index) = ([x, y, z], index);
                    sum = masked.iter().fold(sum, |sum, issue| sum.saturating_add(warp.instructions(issue)));
                }
            }
        }
    }
    sum
}

impl Warp {
    /// The share of the iterations in which some lane satisfies the conditions.
    fn instructions(&mut self, issue: &Issue) -> i64 {
        let (held, all) = self.iterations(issue, &issue.loops);
        issue.instructions * held / all.max(1)
    }

    /// Iterations in which the conditions hold, and all of them.
    fn iterations(&mut self, issue: &Issue, loops: &[Var]) -> (i64, i64) {
        let Some((var, inner)) = loops.split_first() else { return (i64::from(self.issues(&issue.guards)), 1) };
        let mut sum = (0, 0);
        for value in var.range().lo..=var.range().hi {
            self.known.push((var.clone(), value));
            let (held, all) = self.iterations(issue, inner);
            self.known.pop();
            sum = (sum.0 + held, sum.1 + all);
        }
        sum
    }

    /// Whether some lane satisfies all conditions.
    fn issues(&self, guards: &[Cond]) -> bool {
        let mut active = [true; LANES];
        for guard in guards {
            let (Cond::Less(a, b) | Cond::Equal(a, b)) = guard;
            // What depends on data is taken to hold.
            let (Some(a), Some(b)) = (self.values(a), self.values(b)) else { continue };
            for lane in 0..LANES {
                active[lane] &= match guard {
                    Cond::Less(..) => a[lane] < b[lane],
                    Cond::Equal(..) => a[lane] == b[lane],
                };
            }
        }
        active.contains(&true)
    }

    fn values(&self, expr: &Expr) -> Option<[i64; LANES]> {
        expr.eval_all(&|var| self.value(var)).ok()
    }

    fn value(&self, var: &Var) -> Option<[i64; LANES]> {
        if let Some((_, value)) = self.known.iter().rev().find(|(known, _)| known == var) {
            return Some([*value; LANES]);
        }
        let lane = std::array::from_fn(|lane| lane as i64);
        match var.name() {
            "lane" => Some(lane),
            "warp" => Some([self.index; LANES]),
            "tid" => Some(lane.map(|lane| self.index * LANES as i64 + lane)),
            "bx" => Some([self.cta[0]; LANES]),
            "by" => Some([self.cta[1]; LANES]),
            "bz" => Some([self.cta[2]; LANES]),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
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
