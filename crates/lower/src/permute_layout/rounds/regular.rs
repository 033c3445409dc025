//! Rounds in which every bank begins exactly one block, on either side.

use crate::permute_layout::banks::BANKS;
use crate::permute_layout::colouring::balanced;

/// As many such rounds as there are, `most` at most: how many, and the round of each block that is in one. `starts` has
/// the banks in which every block begins on either side.
pub(crate) fn regular_rounds(starts: &[(usize, usize)], most: usize) -> (usize, Vec<Option<usize>>) {
    let coloured = |rounds: usize| {
        let chosen = RegularSubgraph::of(starts, rounds)?;
        let edges: Vec<(usize, usize)> = chosen.iter().map(|block| starts[*block]).collect();
        let colours = balanced(&edges, rounds, BANKS)?;
        let mut round_of = vec![None; starts.len()];
        chosen.iter().zip(colours).for_each(|(block, colour)| round_of[*block] = Some(colour));
        Some((rounds, round_of))
    };
    (1..=most).rev().find_map(coloured).unwrap_or_else(|| (0, vec![None; starts.len()]))
}

/// The search for a regular subgraph of a bipartite graph: a set of edges that gives every vertex the same degree.
struct RegularSubgraph<'a> {
    edges: &'a [(usize, usize)],
    /// The degree that every vertex must have.
    degree: usize,
    /// Edges of every vertex on the left.
    from: Vec<Vec<usize>>,
    /// Edges of every vertex on the right.
    to: Vec<Vec<usize>>,
    /// Whether each edge is chosen.
    chosen: Vec<bool>,
    /// Chosen edges of every vertex on the right.
    filled: Vec<usize>,
}

impl RegularSubgraph<'_> {
    /// The edges of such a subgraph, if there is one.
    fn of(edges: &[(usize, usize)], degree: usize) -> Option<Vec<usize>> {
        let (mut from, mut to) = (vec![Vec::new(); BANKS], vec![Vec::new(); BANKS]);
        for (edge, (left, right)) in edges.iter().enumerate() {
            from[*left].push(edge);
            to[*right].push(edge);
        }
        if from.iter().chain(&to).any(|edges| edges.len() < degree) {
            return None;
        }
        let mut part =
            RegularSubgraph { edges, degree, from, to, chosen: vec![false; edges.len()], filled: vec![0; BANKS] };
        for left in 0..BANKS {
            for _ in 0..degree {
                let path = part.path(left)?;
                part.take(&path);
            }
        }
        Some((0..edges.len()).filter(|edge| part.chosen[*edge]).collect())
    }

    /// An augmenting path, from the last edge to the first: from `left` to a vertex with too few edges, every second
    /// edge chosen.
    fn path(&self, left: usize) -> Option<Vec<usize>> {
        let mut reached_by: Vec<Option<usize>> = vec![None; BANKS];
        let mut left_by: Vec<Option<usize>> = vec![None; BANKS];
        let mut queue = vec![left];
        let mut at = 0;
        while let Some(here) = queue.get(at).copied() {
            at += 1;
            for edge in self.from[here].iter().copied().filter(|edge| !self.chosen[*edge]) {
                let right = self.edges[edge].1;
                if reached_by[right].is_some() {
                    continue;
                }
                reached_by[right] = Some(edge);
                if self.filled[right] < self.degree {
                    return self.back(right, &reached_by, &left_by);
                }
                for taken in self.to[right].iter().copied().filter(|taken| self.chosen[*taken]) {
                    let next = self.edges[taken].0;
                    if next != left && left_by[next].is_none() {
                        left_by[next] = Some(taken);
                        queue.push(next);
                    }
                }
            }
        }
        None
    }

    /// The path that ends at `right`, given the edges by which vertices were reached.
    fn back(&self, right: usize, reached_by: &[Option<usize>], left_by: &[Option<usize>]) -> Option<Vec<usize>> {
        let mut path = vec![reached_by[right]?];
        let mut edge = path[0];
        while let Some(taken) = left_by[self.edges[edge].0] {
            edge = reached_by[self.edges[taken].1]?;
            path.extend([taken, edge]);
        }
        Some(path)
    }

    fn take(&mut self, path: &[usize]) {
        for edge in path {
            self.chosen[*edge] = !self.chosen[*edge];
        }
        if let Some(last) = path.first() {
            self.filled[self.edges[*last].1] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn degrees(edges: &[(usize, usize)], chosen: &[usize]) -> [Vec<usize>; 2] {
        let mut degrees = [vec![0; BANKS], vec![0; BANKS]];
        for edge in chosen {
            degrees[0][edges[*edge].0] += 1;
            degrees[1][edges[*edge].1] += 1;
        }
        degrees
    }

    /// Every left vertex has edges to `reach` right vertices from its own number on, and one more to vertex 0.
    fn banded(reach: usize) -> Vec<(usize, usize)> {
        let band = |left: usize| (0..reach).map(move |step| (left, (left + step) % BANKS)).chain([(left, 0)]);
        (0..BANKS).flat_map(band).collect()
    }

    #[test]
    fn a_regular_part_has_the_degree_everywhere() {
        let edges = banded(5);
        for degree in 1..=5 {
            let chosen = RegularSubgraph::of(&edges, degree).expect("the band is regular");
            assert_eq!(degrees(&edges, &chosen), [vec![degree; BANKS], vec![degree; BANKS]]);
        }
        assert_eq!(RegularSubgraph::of(&edges, 6), None);
    }

    #[test]
    fn every_round_begins_one_block_in_every_bank() {
        let edges = banded(3);
        let (rounds, round_of) = regular_rounds(&edges, 9);
        assert_eq!(rounds, 3);
        for round in 0..rounds {
            let blocks: Vec<usize> = (0..edges.len()).filter(|block| round_of[*block] == Some(round)).collect();
            assert_eq!(degrees(&edges, &blocks), [vec![1; BANKS], vec![1; BANKS]], "round {round}");
        }
    }

    #[test]
    fn a_bank_that_begins_no_block_leaves_no_such_round() {
        assert_eq!(regular_rounds(&[(0, 0), (1, 1)], 2), (0, vec![None, None]));
    }
}
