//! Do two different elements ever share a place? Decided on the digits of the iters, exactly.

use crate::axis::Axis;
use crate::error::LayoutError;
use crate::tile::{Iter, TileLayout};

impl TileLayout {
    /// True when different elements never share a place, replicas included.
    ///
    /// Two elements share a place exactly if some non-zero difference of shard digits, together with some difference
    /// of replica digits, adds to zero on every axis: a bounded linear equation per axis. It is solved by walking the
    /// iters from the longest stride down and pruning by what the shorter ones can still reach.
    pub fn is_injective(&self) -> Result<bool, LayoutError> {
        let mut moves: Vec<Move> = self.shard().iter().map(|iter| Move::new(iter, true)).collect();
        moves.extend(self.replica().iter().map(|iter| Move::new(iter, false)));
        moves.retain(|m| m.reach > 0);
        moves.sort_by(|a, b| a.axis.cmp(&b.axis).then(b.stride.abs().cmp(&a.stride.abs())));
        let mut search = Search { moves: &moves, visited: 0 };
        let collision = search.collides(0, 0, false)?;
        Ok(!collision)
    }
}

/// A difference of one digit: from `-reach` to `reach` steps of `stride`.
struct Move {
    axis: Axis,
    stride: i64,
    reach: i64,
    is_shard: bool,
}

impl Move {
    fn new(iter: &Iter, is_shard: bool) -> Move {
        Move { axis: iter.axis.clone(), stride: iter.stride, reach: iter.extent - 1, is_shard }
    }
}

struct Search<'a> {
    moves: &'a [Move],
    visited: i64,
}

impl Search<'_> {
    /// True when the moves from `at` on can bring `sum` to zero on this axis and zero on all later ones, with a
    /// non-zero shard digit somewhere.
    fn collides(&mut self, at: usize, sum: i64, moved: bool) -> Result<bool, LayoutError> {
        self.visited += 1;
        if self.visited > crate::ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points: self.visited });
        }
        let Some(m) = self.moves.get(at) else { return Ok(moved && sum == 0) };
        if at > 0 && self.moves[at - 1].axis != m.axis && sum != 0 {
            return Ok(false);
        }
        let rest: i64 = self.rest_of_axis(at).map(|later| later.stride.abs() * later.reach).sum();
        if m.stride == 0 {
            let moved = moved || m.is_shard;
            return self.collides(at + 1, sum, moved);
        }
        // |sum + d*stride| <= rest bounds d to a short interval.
        let (a, b) = ((-rest - sum) as f64 / m.stride as f64, (rest - sum) as f64 / m.stride as f64);
        let low = (a.min(b).floor() as i64 - 1).max(-m.reach);
        let high = (a.max(b).ceil() as i64 + 1).min(m.reach);
        for d in low..=high {
            let next = sum + d * m.stride;
            if next.abs() <= rest && self.collides(at + 1, next, moved || (m.is_shard && d != 0))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn rest_of_axis(&self, at: usize) -> impl Iterator<Item = &Move> {
        let axis = &self.moves[at].axis;
        self.moves[at + 1..].iter().take_while(move |m| m.axis == *axis)
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::TileLayout;

    fn injective(text: &str) -> bool {
        text.parse::<TileLayout>().unwrap().is_injective().unwrap()
    }

    #[test]
    fn nested_strides_are_injective_however_large() {
        assert!(injective("S[(8192,8192):(8192,1)]"));
        assert!(injective("S[(8192,8192):(1,8192)]"));
    }

    #[test]
    fn strides_that_meet_are_not() {
        assert!(!injective("S[(4,4):(3,1)]"));
        assert!(injective("S[(4,3):(3,1)]"));
        assert!(injective("S[(2,2):(2,3)]"));
        assert!(!injective("S[(4,3):(2,3)]"));
    }

    #[test]
    fn a_stride_of_zero_repeats_an_element() {
        assert!(!injective("S[(4,2):(0,1)]"));
    }

    #[test]
    fn replicas_may_run_into_other_elements() {
        assert!(injective("S[4:1] + R[2:4]"));
        assert!(!injective("S[4:1] + R[2:3]"));
        assert!(injective("S[4:1] + R[2:0]"));
    }

    #[test]
    fn axes_are_independent() {
        assert!(injective("S[(4,4):(1@tx,1@m)]"));
        assert!(!injective("S[(4,2,4):(1@tx,2@tx,1@m)]"));
    }
}
