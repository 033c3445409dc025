//! Sets of threads as conditions on the thread.

use tilewright_expr::Expr;
use tilewright_ir::thread::Cond;

/// Conditions that hold exactly for the threads of a set that is not empty; `None` if it takes a table.
pub(super) fn conditions(set: &[bool], thread: &Expr) -> Option<Vec<Cond>> {
    if let Some(bounds) = interval(set, thread) {
        return Some(bounds);
    }
    // The same threads of every group, in some of the groups.
    let groups = (2..set.len()).filter(|group| set.len().is_multiple_of(*group));
    groups.into_iter().find_map(|group| {
        let rows: Vec<bool> = (0..group).map(|at| set.iter().skip(at).step_by(group).any(|is_in| *is_in)).collect();
        let blocks: Vec<bool> = set.chunks(group).map(|threads| threads.contains(&true)).collect();
        let is_product = set.iter().enumerate().all(|(at, is_in)| *is_in == (rows[at % group] && blocks[at / group]));
        if !is_product {
            return None;
        }
        let mut found = interval(&blocks, &(thread / group as i64))?;
        found.extend(interval(&rows, &(thread % group as i64))?);
        Some(found)
    })
}

/// The bounds of an interval; `None` if the set is not an interval.
fn interval(set: &[bool], place: &Expr) -> Option<Vec<Cond>> {
    let first = set.iter().position(|is_in| *is_in)?;
    let end = set.iter().rposition(|is_in| *is_in)? + 1;
    if !set[first..end].iter().all(|is_in| *is_in) {
        return None;
    }
    if end == first + 1 && set.len() > 1 {
        return Some(vec![Cond::Equal(place.clone(), Expr::constant(first as i64))]);
    }
    let mut bounds = Vec::new();
    if first > 0 {
        bounds.push(Cond::Less(Expr::constant(first as i64 - 1), place.clone()));
    }
    if end < set.len() {
        bounds.push(Cond::Less(place.clone(), Expr::constant(end as i64)));
    }
    Some(bounds)
}

#[cfg(test)]
mod tests {
    use tilewright_expr::Var;

    use super::*;

    fn text(of: impl Fn(usize) -> bool) -> Option<String> {
        let set: Vec<bool> = (0..64).map(of).collect();
        let thread = Expr::var(&Var::new("tid", 0, 63));
        let found = conditions(&set, &thread)?;
        for (at, is_in) in set.iter().enumerate() {
            let value = |expr: &Expr| expr.eval(&|_| Some(at as i64)).unwrap();
            let holds = found.iter().all(|cond| match cond {
                Cond::Less(a, b) => value(a) < value(b),
                Cond::Equal(a, b) => value(a) == value(b),
            });
            assert_eq!(holds, *is_in, "{at}");
        }
        Some(found.iter().map(Cond::to_string).collect::<Vec<_>>().join(" && "))
    }

    #[test]
    fn all_threads_need_no_condition() {
        assert_eq!(text(|_| true), Some(String::new()));
    }

    #[test]
    fn an_interval_has_bounds() {
        assert_eq!(text(|t| t < 12), Some("tid < 12".to_string()));
        assert_eq!(text(|t| (8..12).contains(&t)), Some("7 < tid && tid < 12".to_string()));
    }

    #[test]
    fn every_sixteenth_thread_is_a_remainder() {
        assert_eq!(text(|t| t % 16 == 0), Some("tid%16 == 0".to_string()));
    }

    #[test]
    fn parts_of_some_groups_are_both() {
        assert_eq!(text(|t| t % 8 < 5 && t < 32), Some("tid/8 < 4 && tid%8 < 5".to_string()));
    }

    #[test]
    fn other_sets_take_a_table() {
        assert_eq!(text(|t| t.count_ones() % 2 == 0), None);
    }
}
