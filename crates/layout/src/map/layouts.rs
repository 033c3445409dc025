//! Maps of layouts, and layouts of maps.

use std::collections::BTreeMap;

use super::Map;
use crate::algebra::Walk;
use crate::axis::{Axis, LANEID, REG, Scope, TX, WARPID};
use crate::{Coord, Iter, Layout, TableLayout, TileLayout};

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
        for_each_place(&layout, &mut |element, (thread, slot)| {
            if thread < 0 || thread >= threads as i64 {
                return Err(format!("uses thread {thread}, outside 0..{threads}"));
            }
            if slot < 0 {
                return Err(format!("uses register {slot}, which is negative"));
            }
            map.put(thread as usize, slot as usize, element);
            Ok(())
        })?;
        Ok(map)
    }

    /// The layout on `tx` and `reg`: shard and replicas where iters describe it, else a table; `None` where an element
    /// has no place.
    pub fn to_layout(&self) -> Option<Layout> {
        let places = Places::of(self)?;
        if let Some(tile) = places.as_iters() {
            return Some(Layout::Tile(tile));
        }
        let coordinate = |(thread, slot): &ThreadSlot| BTreeMap::from([(TX, *thread), (REG, *slot)]);
        let rows: Vec<_> = places.lists().map(|list| list.iter().map(coordinate).collect()).collect();
        TableLayout::new(&rows).ok().map(Layout::Table)
    }
}

/// What a position on an axis adds to the thread.
fn threads_of(axis: &Axis) -> i64 {
    match axis {
        axis if *axis == WARPID => 32,
        axis if *axis == REG => 0,
        _ => 1,
    }
}

/// What a position on an axis adds to the slot.
fn slots_of(axis: &Axis) -> i64 {
    if *axis == REG { 1 } else { 0 }
}

/// Visits the places of all elements in order. Errors: more copies than can be listed, or the visitor's own.
fn for_each_place(
    layout: &Layout,
    visit: &mut dyn FnMut(usize, ThreadSlot) -> Result<(), String>,
) -> Result<(), String> {
    let tile = match layout {
        Layout::Tile(tile) => tile,
        // A swizzle does not act on threads and registers.
        Layout::Compose(compose) => compose.tile(),
        Layout::Table(table) => return for_each_row(table, visit),
    };
    let sum = |copy: &Coord, weight: fn(&Axis) -> i64| copy.iter().map(|(axis, at)| weight(axis) * at).sum();
    let copies = tile.copies().map_err(|error| format!("cannot be listed: {error}"))?;
    let copies: Vec<ThreadSlot> = copies.iter().map(|copy| (sum(copy, threads_of), sum(copy, slots_of))).collect();
    let (threads, slots) = (tile.digit_sums(threads_of), tile.digit_sums(slots_of));
    for (element, (thread, slot)) in threads.into_iter().zip(slots).enumerate() {
        copies.iter().try_for_each(|copy| visit(element, (thread + copy.0, slot + copy.1)))?;
    }
    Ok(())
}

/// As [`for_each_place`], of a table.
fn for_each_row(
    table: &TableLayout,
    visit: &mut dyn FnMut(usize, ThreadSlot) -> Result<(), String>,
) -> Result<(), String> {
    let weights: Vec<ThreadSlot> = table.axes().iter().map(|axis| (threads_of(axis), slots_of(axis))).collect();
    for element in 0..table.size() {
        for row in table.rows_of(element).into_iter().flatten() {
            let add =
                |sum: ThreadSlot, (at, weight): (&i64, &ThreadSlot)| (sum.0 + weight.0 * at, sum.1 + weight.1 * at);
            visit(element as usize, row.iter().zip(&weights).fold((0, 0), add))?;
        }
    }
    Ok(())
}

/// The places of every element.
struct Places {
    /// The places of element `x` begin at `starts[x]` and end at `starts[x + 1]`.
    starts: Vec<usize>,
    /// The places of all elements, those of one element in order.
    places: Vec<ThreadSlot>,
}

impl Places {
    /// The places in a map; `None` if an element has none.
    fn of(map: &Map) -> Option<Places> {
        let mut starts = vec![0; map.elements() + 1];
        for (_, _, element) in map.entries() {
            starts[element + 1] += 1;
        }
        for element in 0..map.elements() {
            if starts[element + 1] == 0 {
                return None;
            }
            starts[element + 1] += starts[element];
        }
        let (mut next, mut places) = (starts.clone(), vec![(0, 0); starts[map.elements()]]);
        for (thread, slot, element) in map.entries() {
            places[next[element]] = (thread as i64, slot as i64);
            next[element] += 1;
        }
        for element in 0..map.elements() {
            places[starts[element]..starts[element + 1]].sort_unstable();
        }
        Some(Places { starts, places })
    }

    /// The places of each element.
    fn lists(&self) -> impl Iterator<Item = &[ThreadSlot]> {
        self.starts.windows(2).map(|ends| &self.places[ends[0]..ends[1]])
    }

    /// The iters of a layout in which every element has copies at the same distances from its first place.
    fn as_iters(&self) -> Option<TileLayout> {
        let first = self.lists().next()?;
        let origin = first[0];
        let copies: Vec<ThreadSlot> = first.iter().map(|place| minus(*place, origin)).collect();
        let is_alike = |list: &[ThreadSlot]| list.iter().map(|place| minus(*place, list[0])).eq(copies.iter().copied());
        if !self.lists().all(is_alike) {
            return None;
        }
        let shard: Vec<ThreadSlot> = self.lists().map(|list| minus(list[0], origin)).collect();
        let offset = [(TX, origin.0), (REG, origin.1)];
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
