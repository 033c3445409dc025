//! Canonical form: the unique way to write a map.

use crate::algebra::replicas;
use crate::axis::M;
use crate::iter::Iter;
use crate::tile::TileLayout;

impl TileLayout {
    /// The normal form: two layouts place every element at the same set of places exactly if their
    /// normal forms are equal.
    ///
    /// Shard iters of extent 1 are dropped; an iter of stride 0 moves nothing, so its axis is written `m`; neighbours
    /// `a, b` on one axis fuse when `b.extent * b.stride == a.stride`. Replicas are written as the fewest iters that
    /// make the set of their offsets, shifted so that the least is 0 (the shift moves into the layout's offset); of
    /// several such lists, as the first in order of (stride, extent). A layout of one element keeps one unit iter.
    ///
    /// Why shards are unique: the extent of the last iter is where the first run of equal steps ends, which the map
    /// alone decides; then the same holds for the map of every extent-th element.
    ///
    /// Replica sets of more than 4096 offsets on an axis, or whose shortest list takes too long to find (a fixed count of
    /// sums), stay as fused and sorted iters; [`TileLayout::same_places`] decides equality for these too.
    pub fn canonicalize(&self) -> TileLayout {
        let mut shard = fused(self.shard());
        if shard.is_empty() {
            shard.push(Iter::memory(1, 1));
        }
        let (replica, shift) = replicas::normal_form(self.replica());
        let offset = self.offset().clone().into_iter().chain(shift);
        TileLayout::from_valid_parts(shard, replica, offset)
    }
}

/// The same walk with the fewest iters.
pub(crate) fn fused(iters: &[Iter]) -> Vec<Iter> {
    let mut list: Vec<Iter> = Vec::new();
    for iter in iters.iter().filter(|iter| iter.extent > 1) {
        push_fused(&mut list, without_idle_axis(iter));
    }
    list
}

fn without_idle_axis(iter: &Iter) -> Iter {
    if iter.stride == 0 { Iter { axis: M, ..iter.clone() } } else { iter.clone() }
}

fn push_fused(iters: &mut Vec<Iter>, inner: Iter) {
    match iters.last_mut() {
        Some(outer) if outer.axis == inner.axis && inner.extent * inner.stride == outer.stride => {
            outer.extent *= inner.extent;
            outer.stride = inner.stride;
        }
        _ => iters.push(inner),
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::TileLayout;

    fn canonical(text: &str) -> String {
        text.parse::<TileLayout>().unwrap().canonicalize().to_string()
    }

    #[test]
    fn neighbours_that_walk_on_fuse() {
        assert_eq!(canonical("S[(4,1,4):(4,77,1)]"), "S[16:1@m]");
        assert_eq!(canonical("S[(4,4):(1,4)]"), "S[(4,4):(1@m,4@m)]");
    }

    #[test]
    fn replicas_that_add_nothing_go() {
        assert_eq!(canonical("S[2:1] + R[(1,2,2,5):(9@tx,4@warpid,8@warpid,0@m)]"), "S[2:1@m] + R[4:4@warpid]");
    }

    #[test]
    fn one_element_keeps_one_iter_and_no_axis() {
        assert_eq!(canonical("S[(1,1):(5@tx,3)]"), "S[1:1@m]");
        assert_eq!(canonical("S[():()]"), "S[1:1@m]");
    }

    #[test]
    fn a_layout_at_the_edge_of_56_bits_has_a_normal_form_too() {
        let text = "S[(6,1):(1@warpid,2@laneid)] + R[2:-72057594037927935@warpid] + 16@warpid";
        assert_eq!(canonical(text), "S[6:1@warpid] + R[2:72057594037927935@warpid] + -72057594037927919@warpid");
    }
}
