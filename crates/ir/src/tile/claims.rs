//! Tiles that CTAs claim from each other, on targets that have no such thing.

use crate::arena::{Arena, Handle};
use crate::counter::Counter;
use crate::tile::kernel::{Kernel, Loop, Stmt, Unroll};
use crate::tile::ring::Hold;

impl Kernel {
    /// The kernel in which each CTA computes its own tile alone: a launch has one for each. The rings of claimed tiles are left out.
    pub fn without_claims(self) -> Kernel {
        let (mut rings, mut kept, mut unclaimed) = (Arena::new(), Vec::new(), self.unclaimed);
        for (_, ring) in self.rings.iter() {
            if ring.claims() {
                unclaimed.push(ring.clone());
                kept.push(None);
            } else {
                kept.push(Some(rings.push(ring.clone())));
            }
        }
        let mut holds = Arena::new();
        let moved =
            |(_, hold): (_, &Hold)| kept[hold.ring.index()].map(|ring| holds.push(Hold { ring, ..hold.clone() }));
        let moved: Vec<Option<Handle<Hold>>> = self.holds.iter().map(moved).collect();
        let body = own_tiles(self.body, &moved);
        Kernel { rings, holds, body, unclaimed, ..self }
    }
}

/// Statements with other holds, and with the first iterations of loops over claimed tiles.
fn own_tiles(body: Vec<Stmt>, holds: &[Option<Handle<Hold>>]) -> Vec<Stmt> {
    let stmt = |stmt| match stmt {
        Stmt::Begin(hold) => holds[hold.index()].map(Stmt::Begin),
        Stmt::End(hold) => holds[hold.index()].map(Stmt::End),
        Stmt::Loop(inner) => {
            let body = own_tiles(inner.body, holds);
            let (unroll, counter) = match inner.unroll {
                Unroll::Claimed => (Unroll::Once, Counter { end: &inner.counter.begin + 1, ..inner.counter }),
                other => (other, inner.counter),
            };
            Some(Stmt::Loop(Loop { unroll, counter, body, ..inner }))
        }
        other @ (Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) | Stmt::If(_)) => Some(other),
    };
    body.into_iter().filter_map(stmt).collect()
}
