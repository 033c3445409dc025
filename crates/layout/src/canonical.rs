//! Canonical form: unit iters gone, neighbours that walk on as one fused, replicas reduced and sorted.

use crate::axis::M;
use crate::tile::{Iter, TileLayout};

impl TileLayout {
    /// A layout that places every element exactly where this one does, with as few iters as fusing gives.
    ///
    /// Shard iters of extent 1 go; an iter of stride 0 moves nothing, so its axis is written `m`; neighbours `a, b` on
    /// one axis fuse when `b.extent * b.stride == a.stride`. Replicas are a set of offsets: iters that add nothing go,
    /// the rest is sorted and fused. A layout of one element keeps one unit iter.
    pub fn canonicalize(&self) -> TileLayout {
        let mut shard: Vec<Iter> = Vec::new();
        for iter in self.shard().iter().filter(|iter| iter.extent > 1) {
            push_fused(&mut shard, without_idle_axis(iter));
        }
        if shard.is_empty() {
            let axis = self.shard().first().map_or(M, |iter| iter.axis.clone());
            shard.push(Iter { extent: 1, stride: 1, axis });
        }
        let mut moving: Vec<Iter> = self.replica().iter().filter(|r| r.extent > 1 && r.stride != 0).cloned().collect();
        moving.sort_by(|a, b| {
            let key = |iter: &Iter| (iter.axis.clone(), std::cmp::Reverse(iter.stride.abs()), iter.extent);
            key(a).cmp(&key(b))
        });
        let mut replica: Vec<Iter> = Vec::new();
        for iter in moving {
            push_fused(&mut replica, iter);
        }
        // The parts come from a valid layout and only shrink, so this cannot fail; the layout itself is the fallback.
        TileLayout::new(shard, replica, self.offset().clone()).unwrap_or_else(|_| self.clone())
    }
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
    fn replicas_are_a_set() {
        assert_eq!(canonical("S[2:1] + R[(1,2,2,5):(9@tx,4@warpid,8@warpid,0@m)]"), "S[2:1@m] + R[4:4@warpid]");
    }

    #[test]
    fn one_element_keeps_one_iter() {
        assert_eq!(canonical("S[(1,1):(5@tx,3)]"), "S[1:1@tx]");
    }
}
