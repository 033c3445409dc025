//! Edge colouring of bipartite multigraphs: which elements a warp moves in the same step.
//!
//! An element is an edge between what it occupies on the source and on the destination side (for example two banks),
//! a step is a colour. A vertex of degree `d` is split into copies of at most `colours` edges each; the split graph has
//! a proper colouring (König), which alternating paths find one edge at a time. An alternating path of two colours can
//! be swapped without harm, and one of odd length changes how many edges the two colours have: so sizes are equalised.

/// Colours the edges (left vertex, right vertex) of a bipartite multigraph with `colours` colours, so that at every
/// vertex each colour occurs at most ceil(degree / `colours`) times and no colour has more than `most` edges.
///
/// Colours are filled from the first on, as far as swaps of two colours allow. The answer depends on the order of the
/// edges and on nothing else. `None` if `colours * most` edges are too few, or if the colouring breaks what it promises.
pub(crate) fn balanced(edges: &[(usize, usize)], colours: usize, most: usize) -> Option<Vec<usize>> {
    if edges.len() > colours.saturating_mul(most) {
        return None;
    }
    let mut colouring = Colouring::new(edges, colours);
    for edge in 0..edges.len() {
        colouring.insert(edge)?;
    }
    colouring.level(most);
    while colouring.fill(most) {}
    let fits = colouring.size.iter().all(|size| *size <= most);
    fits.then_some(colouring.colour)
}

/// A proper colouring of the split graph.
struct Colouring {
    colours: usize,
    /// Copies of left vertices; those of right vertices are numbered after them.
    left: usize,
    /// The left and the right copy that an edge joins.
    ends: Vec<[usize; 2]>,
    /// The edge of each colour at each copy: copy `v` has the places from `v * colours` on.
    at: Vec<Option<usize>>,
    colour: Vec<usize>,
    /// Edges of each colour.
    size: Vec<usize>,
}

impl Colouring {
    fn new(edges: &[(usize, usize)], colours: usize) -> Colouring {
        let (left_ends, left) = split(edges.iter().map(|(left, _)| *left), colours, 0);
        let (right_ends, copies) = split(edges.iter().map(|(_, right)| *right), colours, left);
        Colouring {
            colours,
            left,
            ends: left_ends.into_iter().zip(right_ends).map(|(left, right)| [left, right]).collect(),
            at: vec![None; copies * colours],
            colour: vec![0; edges.len()],
            size: vec![0; colours],
        }
    }

    fn row(&self, copy: usize) -> &[Option<usize>] {
        &self.at[copy * self.colours..(copy + 1) * self.colours]
    }

    /// A colour without an edge at this copy; there is one while not all edges of the copy are coloured.
    fn free(&self, copy: usize) -> Option<usize> {
        self.row(copy).iter().position(Option::is_none)
    }

    /// Colours an edge; `None` if one of its ends has no colour left.
    fn insert(&mut self, edge: usize) -> Option<()> {
        let [left, right] = self.ends[edge];
        let mut pairs = self.row(left).iter().zip(self.row(right));
        let colour = match pairs.position(|(left, right)| left.is_none() && right.is_none()) {
            Some(colour) => colour,
            None => {
                let (colour, other) = (self.free(left)?, self.free(right)?);
                // The path cannot end at `left`: it would arrive there by `colour`, which is free there.
                let path = self.path(right, colour, other);
                self.swap(&path, colour, other);
                colour
            }
        };
        self.put(edge, colour);
        Some(())
    }

    fn put(&mut self, edge: usize, colour: usize) {
        for copy in self.ends[edge] {
            self.at[copy * self.colours + colour] = Some(edge);
        }
        self.colour[edge] = colour;
        self.size[colour] += 1;
    }

    fn take(&mut self, edge: usize) {
        let colour = self.colour[edge];
        for copy in self.ends[edge] {
            self.at[copy * self.colours + colour] = None;
        }
        self.size[colour] -= 1;
    }

    /// The edges of the alternating path from a copy that has no edge of colour `second`, beginning with `first`.
    fn path(&self, mut copy: usize, first: usize, second: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let (mut here, mut next) = (first, second);
        while let Some(edge) = self.at[copy * self.colours + here] {
            path.push(edge);
            let [left, right] = self.ends[edge];
            copy = left + right - copy;
            std::mem::swap(&mut here, &mut next);
        }
        path
    }

    /// Exchanges two colours along a path of them.
    fn swap(&mut self, path: &[usize], first: usize, second: usize) {
        for edge in path {
            self.take(*edge);
        }
        for edge in path {
            self.put(*edge, first + second - self.colour[*edge]);
        }
    }

    /// Makes colour `from` smaller and `to` larger by at most `count` edges.
    ///
    /// A path with one edge more of `from` than of `to` has its ends on different sides, so left copies find them all.
    fn transfer(&mut self, from: usize, to: usize, mut count: usize) {
        for copy in 0..self.left {
            if count == 0 {
                return;
            }
            let row = self.row(copy);
            if row[from].is_none() || row[to].is_some() {
                continue;
            }
            let path = self.path(copy, from, to);
            if path.len() % 2 == 1 {
                self.swap(&path, from, to);
                count -= 1;
            }
        }
    }

    /// Brings every colour down to `most` edges. Between two colours there are always at least as many paths to swap
    /// as their sizes differ by.
    fn level(&mut self, most: usize) {
        for from in 0..self.colours {
            for to in 0..self.colours {
                let surplus = self.size[from].saturating_sub(most);
                if surplus == 0 {
                    break;
                }
                self.transfer(from, to, surplus.min(most.saturating_sub(self.size[to])));
            }
        }
    }

    /// Moves edges from later to earlier colours; whether any moved.
    fn fill(&mut self, most: usize) -> bool {
        let before = self.size.clone();
        for to in 0..self.colours {
            for from in (to + 1..self.colours).rev() {
                if self.size[to] >= most {
                    break;
                }
                self.transfer(from, to, most - self.size[to]);
            }
        }
        self.size != before
    }
}

/// The copy that each edge ends at, where copies have at most `most` edges and are numbered from `first` on; and the
/// number after the last copy.
fn split(vertices: impl Iterator<Item = usize>, most: usize, first: usize) -> (Vec<usize>, usize) {
    let mut next = first;
    let mut copies = Vec::new();
    // Edges so far and the latest copy, by vertex.
    let mut seen: Vec<(usize, usize)> = Vec::new();
    for vertex in vertices {
        if vertex >= seen.len() {
            seen.resize(vertex + 1, (0, 0));
        }
        let (degree, copy) = &mut seen[vertex];
        if degree.is_multiple_of(most) {
            *copy = next;
            next += 1;
        }
        *degree += 1;
        copies.push(*copy);
    }
    (copies, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, count: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((self.0 >> 33) % count as u64) as usize
        }

        fn permutation(&mut self, count: usize) -> Vec<usize> {
            let mut order: Vec<usize> = (0..count).collect();
            for last in (1..count).rev() {
                order.swap(last, self.below(last + 1));
            }
            order
        }
    }

    fn sizes(colour_of: &[usize], colours: usize) -> Vec<usize> {
        (0..colours).map(|colour| colour_of.iter().filter(|c| **c == colour).count()).collect()
    }

    /// How often each colour occurs at a vertex, for all vertices of one side (0 or 1).
    fn occurrences(edges: &[(usize, usize)], colour_of: &[usize], colours: usize, side: usize) -> Vec<Vec<usize>> {
        let end = |edge: &(usize, usize)| if side == 0 { edge.0 } else { edge.1 };
        let vertices = edges.iter().map(end).max().map_or(0, |last| last + 1);
        let mut counts = vec![vec![0; colours]; vertices];
        for (edge, colour) in edges.iter().zip(colour_of) {
            counts[end(edge)][*colour] += 1;
        }
        counts
    }

    fn assert_promises(edges: &[(usize, usize)], colours: usize, most: usize) {
        let colour_of = balanced(edges, colours, most).unwrap();
        assert!(sizes(&colour_of, colours).iter().all(|size| *size <= most), "{edges:?} {colours} {most}");
        for side in [0, 1] {
            for counts in occurrences(edges, &colour_of, colours, side) {
                let bound = counts.iter().sum::<usize>().div_ceil(colours);
                assert!(counts.iter().all(|count| *count <= bound), "{edges:?} {colours} {most}: {colour_of:?}");
            }
        }
    }

    #[test]
    fn irregular_multigraphs_keep_both_promises() {
        let mut numbers = Numbers(1);
        for _ in 0..500 {
            let (left, right, colours) = (numbers.below(8) + 1, numbers.below(8) + 1, numbers.below(7) + 1);
            let count = numbers.below(60);
            let edges: Vec<_> = (0..count).map(|_| (numbers.below(left), numbers.below(right))).collect();
            assert_promises(&edges, colours, count.div_ceil(colours) + numbers.below(4));
        }
    }

    #[test]
    fn a_regular_multigraph_has_every_colour_equally_often_at_every_vertex() {
        let mut numbers = Numbers(2);
        let mut edges = Vec::new();
        for _ in 0..6 {
            edges.extend((0..9).zip(numbers.permutation(9)));
        }
        let colour_of = balanced(&edges, 3, 18).unwrap();
        let equal = |side| occurrences(&edges, &colour_of, 3, side).iter().flatten().all(|count| *count == 2);
        assert!(equal(0) && equal(1));
    }

    #[test]
    fn the_elements_of_a_shuffled_dense_tile_meet_no_bank_twice_in_a_step() {
        let places = Numbers(3).permutation(1024);
        let edges: Vec<_> = places.iter().enumerate().map(|(src, dst)| (src % 32, dst % 32)).collect();
        let colour_of = balanced(&edges, 32, 32).unwrap();
        let once = |side| occurrences(&edges, &colour_of, 32, side).iter().flatten().all(|count| *count == 1);
        assert!(once(0) && once(1));
    }

    #[test]
    fn a_crowded_colour_is_relieved() {
        let edges: Vec<_> = (0..10).map(|vertex| (vertex, vertex)).collect();
        assert_eq!(sizes(&balanced(&edges, 4, 3).unwrap(), 4), [3, 3, 3, 1]);
    }

    #[test]
    fn only_the_last_colours_of_a_transpose_are_partial() {
        let edges: Vec<_> = (0..1000).map(|e| (e % 32, (e % 2 * 500 + e / 2) % 32)).collect();
        let sizes = sizes(&balanced(&edges, 32, 32).unwrap(), 32);
        assert_eq!((sizes[..31].iter().all(|size| *size == 32), sizes[31]), (true, 8));
    }

    #[test]
    fn too_many_edges_are_refused() {
        assert_eq!((balanced(&[(0, 0), (0, 1), (1, 0)], 2, 1), balanced(&[], 0, 0)), (None, Some(Vec::new())));
    }

    #[test]
    fn the_same_edges_have_the_same_colours() {
        let mut numbers = Numbers(4);
        let edges: Vec<_> = (0..300).map(|_| (numbers.below(32), numbers.below(32))).collect();
        assert_eq!(balanced(&edges, 10, 32), balanced(&edges, 10, 32));
    }
}
