//! Maps of layouts, and layouts of maps.

use std::collections::BTreeMap;

use super::Map;
use crate::algebra::Walk;
use crate::axis::{Axis, LANEID, REG, Scope, TX, WARPID};
use crate::{Iter, Layout, TableLayout, TileLayout};

/// Thread and slot.
type ThreadSlot = (i64, i64);

impl Map {
    /// The map of a layout on the thread axes of a CTA and registers, for this many threads. Errors, worded to follow
    /// "the layout of x": other axes, threads outside the block, more elements than can be listed.
    pub fn of_layout(layout: &Layout, threads: usize) -> Result<Map, String> {
        let layout = match layout {
            Layout::Tile(tile) => {
                Layout::Tile(tile.in_scope(Scope::Cta).map_err(|error| format!("is not valid in a CTA: {error}"))?)
            }
            other => other.clone(),
        };
        if let Some(axis) = layout.axes().into_iter().find(|axis| ![&TX, &WARPID, &LANEID, &REG].contains(&axis)) {
            return Err(format!("uses the axis `{axis}`; a table may use `tx`, or `warpid` and `laneid`, and `reg`"));
        }
        let mut map = Map::empty(threads, layout.size() as usize);
        for element in 0..layout.size() {
            for place in layout.apply(element).map_err(|error| format!("cannot be listed: {error}"))? {
                let on = |axis: &Axis| place.get(axis).copied().unwrap_or(0);
                let (thread, slot) = (on(&TX) + on(&WARPID) * 32 + on(&LANEID), on(&REG));
                if thread < 0 || thread >= threads as i64 {
                    return Err(format!("uses thread {thread}, outside 0..{threads}"));
                }
                if slot < 0 {
                    return Err(format!("uses register {slot}, which is negative"));
                }
                map.put(thread as usize, slot as usize, element as usize);
            }
        }
        Ok(map)
    }

    /// The layout on `tx` and `reg`: shard and replicas where iters describe it, else a table; `None` where an element
    /// has no place.
    pub fn to_layout(&self) -> Option<Layout> {
        let mut places: Vec<Vec<ThreadSlot>> = vec![Vec::new(); self.elements()];
        for (thread, slot, element) in self.entries() {
            places[element].push((thread as i64, slot as i64));
        }
        for list in &mut places {
            list.sort_unstable();
        }
        if let Some(tile) = as_iters(&places) {
            return Some(Layout::Tile(tile));
        }
        let coordinate = |(thread, slot): &ThreadSlot| BTreeMap::from([(TX, *thread), (REG, *slot)]);
        let rows: Vec<_> = places.iter().map(|list| list.iter().map(coordinate).collect()).collect();
        TableLayout::new(&rows).ok().map(Layout::Table)
    }
}

/// The iters of a layout in which every element has copies at the same distances from its first place.
fn as_iters(places: &[Vec<ThreadSlot>]) -> Option<TileLayout> {
    let origin = *places.first()?.first()?;
    let firsts: Vec<ThreadSlot> = places.iter().map(|list| list.first().copied()).collect::<Option<_>>()?;
    let copies: Vec<ThreadSlot> = places[0].iter().map(|place| minus(*place, origin)).collect();
    let is_alike = |(list, first): (&Vec<ThreadSlot>, &ThreadSlot)| {
        list.iter().map(|place| minus(*place, *first)).eq(copies.iter().copied())
    };
    if !places.iter().zip(&firsts).all(is_alike) {
        return None;
    }
    let shard: Vec<ThreadSlot> = firsts.iter().map(|first| minus(*first, origin)).collect();
    let offset = BTreeMap::from([(TX, origin.0), (REG, origin.1)]);
    let offset: BTreeMap<Axis, i64> = offset.into_iter().filter(|(_, at)| *at != 0).collect();
    let (mut shard, replica) = (iters(&shard)?, iters(&copies)?);
    // A layout always names a thread axis, even if there is only one thread.
    if shard.iter().chain(&replica).all(|iter| iter.axis != TX) {
        shard.insert(0, Iter { extent: 1, stride: 1, axis: TX });
    }
    if shard.is_empty() {
        shard.push(Iter { extent: 1, stride: 1, axis: REG });
    }
    TileLayout::new(shard, replica, offset).ok()
}

/// The iters, the fastest last, whose digits lead to these places in order.
fn iters(places: &[ThreadSlot]) -> Option<Vec<Iter>> {
    let at = |element: i64, axis: &Axis| {
        let (thread, slot) = places[element as usize];
        if *axis == TX { thread } else { slot }
    };
    Walk::new(vec![TX, REG], places.len() as i64, at).iters(places.len())
}

fn minus(a: ThreadSlot, b: ThreadSlot) -> ThreadSlot {
    (a.0 - b.0, a.1 - b.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Spread;

    fn layout(text: &str) -> Layout {
        text.parse().unwrap()
    }

    #[test]
    fn all_thread_axes_of_a_cta_count() {
        let map = Map::of_layout(&layout("S[(2,4,32,2):(1@wgid,1@wid_in_wg,1@laneid,1@reg)]"), 256).unwrap();
        assert_eq!((map.at(0, 1), map.at(128, 0), map.at(255, 1)), (Some(1), Some(256), Some(511)));
    }

    #[test]
    fn axes_beyond_the_cta_are_refused() {
        assert!(Map::of_layout(&layout("S[(2,32):(1@bx,1@laneid)]"), 32).is_err());
    }

    #[test]
    fn a_map_of_vectors_is_iters_again() {
        let map = Map::spread(32, 256, Spread { row: 256, group: 32, groups: 1, vector: 4 });
        assert_eq!(map.to_layout().unwrap().to_string(), "S[(2,32,4):(4@reg,1@tx,1@reg)]");
    }

    #[test]
    fn copies_are_replicas() {
        assert_eq!(Map::replicated(32, 4).to_layout().unwrap().to_string(), "S[4:1@reg] + R[32:1@tx]");
    }

    #[test]
    fn one_element_on_every_other_thread_is_a_replica() {
        let map = Map::of_slots(32, 1, |thread, _| (thread % 2 == 1).then_some(0), 1);
        assert_eq!(map.to_layout().unwrap().to_string(), "S[1:1@reg] + R[16:2@tx] + 1@tx");
    }

    #[test]
    fn elements_of_one_thread_say_so() {
        let map = Map::of_slots(32, 4, |thread, slot| (thread == 0).then_some(slot), 4);
        assert_eq!(map.to_layout().unwrap().to_string(), "S[(1,4):(1@tx,1@reg)]");
    }

    #[test]
    fn a_diagonal_is_a_table() {
        let map = Map::of_slots(4, 16, |thread, slot| Some(slot * 4 + (thread + slot) % 4), 4);
        let Some(Layout::Table(table)) = map.to_layout() else { panic!("not a table") };
        assert_eq!(Map::of_layout(&Layout::Table(table), 4).unwrap(), map);
    }

    #[test]
    fn a_layout_survives_its_map() {
        for text in ["S[(32,2):(1@tx,1@reg)]", "S[(3,4,5):(5@reg,8@tx,1@reg)] + R[2:4@tx] + 1@tx", "S[7:2@tx]"] {
            let layout = layout(text);
            assert_eq!(Map::of_layout(&layout, 64).unwrap().to_layout(), Some(layout));
        }
    }

    #[test]
    fn an_element_without_a_place_has_no_layout() {
        assert_eq!(Map::empty(4, 2).to_layout(), None);
    }
}
