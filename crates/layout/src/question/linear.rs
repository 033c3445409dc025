//! Bounded linear equations: `sum of stride * digit = target` with every digit between two bounds.

use num_integer::Integer;

use crate::error::LayoutError;

/// A digit and what one step of it adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// What one step of the digit adds.
    pub(crate) stride: i64,
    /// The least value of the digit.
    pub(crate) low: i64,
    /// The greatest value of the digit.
    pub(crate) high: i64,
    /// The caller's identifier for it.
    pub(crate) name: usize,
}

/// Called with each solution, as pairs of name and digit; returning true ends the search.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&[(usize, i64)]) -> bool;

/// The equation on one axis. Solved from the longest stride down: the shorter ones bound each digit to a short
/// interval, and their common divisor fixes its residue.
pub(crate) struct Equation {
    /// The unknowns, longest stride first.
    unknowns: Vec<Unknown>,
    /// For the unknowns from each position on: least sum, greatest sum, common divisor of the strides (0 if all are 0).
    rest: Vec<(i128, i128, i64)>,
}

impl Equation {
    /// Unknowns that can only be 0 are left out of the solutions.
    pub(crate) fn new(mut unknowns: Vec<Unknown>) -> Equation {
        unknowns.retain(|u| u.low != 0 || u.high != 0);
        unknowns.sort_by_key(|u| (std::cmp::Reverse(u.stride.unsigned_abs()), u.name));
        let mut rest = vec![(0i128, 0i128, 0i64)];
        for u in unknowns.iter().rev() {
            let (low, high, divisor) = rest[rest.len() - 1];
            let ends = [u.low, u.high].map(|digit| i128::from(u.stride) * i128::from(digit));
            rest.push((low + ends[0].min(ends[1]), high + ends[0].max(ends[1]), divisor.gcd(&u.stride)));
        }
        rest.reverse();
        Equation { unknowns, rest }
    }

    /// Shows every solution to `visit`, as pairs of name and digit, until it returns true. True if it did.
    /// `budget` counts down the digits tried, over all calls; at 0 the question is too large.
    pub(crate) fn solve(&self, target: i64, budget: &mut i64, visit: Visit<'_>) -> Result<bool, LayoutError> {
        let mut digits = Vec::with_capacity(self.unknowns.len());
        self.descend(i128::from(target), &mut digits, budget, visit)
    }

    fn descend(
        &self,
        left: i128,
        digits: &mut Vec<(usize, i64)>,
        budget: &mut i64,
        visit: Visit<'_>,
    ) -> Result<bool, LayoutError> {
        *budget -= 1;
        if *budget < 0 {
            return Err(LayoutError::TooLarge { points: crate::ENUMERATION_LIMIT + 1 });
        }
        let at = digits.len();
        let Some(unknown) = self.unknowns.get(at) else { return Ok(left == 0 && visit(digits)) };
        let (low, high, divisor) = self.rest[at + 1];
        let Some((first, last, step)) = candidates(unknown, left, low, high, divisor) else { return Ok(false) };
        let mut digit = first;
        while digit <= last {
            digits.push((unknown.name, digit));
            let stop = self.descend(left - i128::from(unknown.stride) * i128::from(digit), digits, budget, visit)?;
            digits.pop();
            if stop {
                return Ok(true);
            }
            digit += step;
        }
        Ok(false)
    }
}

/// The digits of `u` for which the later unknowns, whose sums lie in `low..=high` and are multiples of `divisor`, can
/// make up `left`: first, last and step.
fn candidates(u: &Unknown, left: i128, low: i128, high: i128, divisor: i64) -> Option<(i64, i64, i64)> {
    let stride = i128::from(u.stride);
    if stride == 0 {
        let possible = low <= left && left <= high && divides(divisor, left);
        return possible.then_some((u.low, u.high, 1));
    }
    if divisor == 0 {
        let exact = left / stride;
        let inside = left % stride == 0 && i128::from(u.low) <= exact && exact <= i128::from(u.high);
        return inside.then_some((exact as i64, exact as i64, 1));
    }
    // The later sums bound stride * digit to left - high ..= left - low.
    let (least, most) = if stride > 0 { (left - high, left - low) } else { (left - low, left - high) };
    let first = Integer::div_ceil(&least, &stride).max(i128::from(u.low));
    let last = Integer::div_floor(&most, &stride).min(i128::from(u.high));
    // stride * digit = left (mod divisor): solvable for one residue modulo divisor / common, or for none.
    let common = u.stride.gcd(&divisor);
    if left % i128::from(common) != 0 {
        return None;
    }
    let step = divisor / common;
    let modulus = i128::from(step);
    let residue = left / i128::from(common) % modulus * i128::from(inverse(u.stride / common, step)) % modulus;
    let first = first + (residue - first).rem_euclid(modulus);
    (first <= last).then_some((first as i64, last as i64, step))
}

fn divides(divisor: i64, value: i128) -> bool {
    if divisor == 0 { value == 0 } else { value % i128::from(divisor) == 0 }
}

/// The inverse of `value` modulo `modulus`; the two have no common divisor. 0 for the modulus 1.
fn inverse(value: i64, modulus: i64) -> i64 {
    i128::from(value).extended_gcd(&i128::from(modulus)).x.mod_floor(&i128::from(modulus)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solutions(unknowns: &[(i64, i64, i64)], target: i64) -> Vec<Vec<i64>> {
        let (named, count) = (unknowns.iter().enumerate(), unknowns.len());
        let unknowns: Vec<Unknown> =
            named.map(|(name, &(stride, low, high))| Unknown { stride, low, high, name }).collect();
        let mut found = Vec::new();
        let equation = Equation::new(unknowns);
        let visit = &mut |digits: &[(usize, i64)]| {
            let mut sorted = digits.to_vec();
            sorted.sort_unstable();
            let digit_of = |name: usize| sorted.iter().find(|(n, _)| *n == name).map_or(0, |(_, digit)| *digit);
            found.push((0..count).map(digit_of).collect::<Vec<_>>());
            false
        };
        equation.solve(target, &mut 100_000, visit).unwrap();
        found.sort();
        found
    }

    fn by_force(unknowns: &[(i64, i64, i64)], target: i64) -> Vec<Vec<i64>> {
        let mut points: Vec<Vec<i64>> = vec![Vec::new()];
        for &(_, low, high) in unknowns {
            let longer =
                |p: &Vec<i64>| (low..=high).map(|d| p.iter().copied().chain([d]).collect()).collect::<Vec<_>>();
            points = points.iter().flat_map(longer).collect();
        }
        points.retain(|p| p.iter().zip(unknowns).map(|(d, (stride, _, _))| d * stride).sum::<i64>() == target);
        points
    }

    #[test]
    fn all_solutions_are_found_and_no_others() {
        let cases: [&[(i64, i64, i64)]; 6] = [
            &[(3, 0, 4), (5, 0, 3)],
            &[(6, -2, 3), (-4, 0, 5), (10, 0, 1)],
            &[(0, 0, 2), (7, -1, 1)],
            &[(-3, -3, 3), (-2, 0, 4), (1, 0, 1)],
            &[(4, 0, 0), (6, 0, 9), (9, -5, 5)],
            &[],
        ];
        for unknowns in cases {
            for target in -40..40 {
                assert_eq!(solutions(unknowns, target), by_force(unknowns, target), "{unknowns:?} = {target}");
            }
        }
    }

    #[test]
    fn a_residue_spares_most_of_a_long_search() {
        let unknowns = [((1 << 30) + 1, 0, 1 << 20), (1 << 30, 0, 1 << 20)];
        let named = unknowns.map(|(stride, low, high)| Unknown { stride, low, high, name: 0 });
        let mut budget = 100;
        let found = Equation::new(named.to_vec()).solve((1 << 31) + 1, &mut budget, &mut |_| true);
        assert_eq!((found, budget > 90), (Ok(true), true));
    }
}
