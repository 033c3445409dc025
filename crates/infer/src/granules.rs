//! Between maps of elements and maps of granules, which are one or more neighbouring elements.

use std::fmt;

use tilewright_ir::tile::Buffer;
use tilewright_layout::Layout;
use tilewright_layout::map::Map;

/// Elements of one granule that are not adjacent, aligned and on one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Torn {
    /// The first granule with such elements.
    pub(crate) granule: usize,
    /// Elements of a granule.
    pub(crate) ratio: usize,
}

impl fmt::Display for Torn {
    /// Continues a message that begins with "the layout of x".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.granule * self.ratio, (self.granule + 1) * self.ratio - 1);
        write!(f, "does not fit a view of it: elements {first} to {last} are not adjacent, aligned and on one thread")
    }
}

/// The map of granules of `ratio` elements each. Error: a granule that is not adjacent, aligned and on one thread.
pub(crate) fn granules(map: &Map, ratio: usize) -> Result<Map, Torn> {
    let lane = |thread, slot| map.at(thread, slot).map(|element| (element / ratio, element % ratio));
    let mut granules = Map::empty(map.threads(), map.elements() / ratio);
    for (thread, slot, element) in map.entries() {
        let (granule, first) = (element / ratio, slot / ratio * ratio);
        if (0..ratio).any(|at| lane(thread, first + at) != Some((granule, at))) {
            return Err(Torn { granule, ratio });
        }
        granules.put(thread, slot / ratio, granule);
    }
    Ok(granules)
}

/// The elements of a buffer in a granule of `bytes` bytes: more than one if a view of it has wider elements.
pub(crate) fn lanes_of(bytes: i64, buffer: &Buffer) -> usize {
    (bytes / buffer.dtype.bytes()).max(1) as usize
}

/// The layout of elements, of which a granule of the map has `lanes`.
pub(crate) fn layout_of(map: &Map, lanes: usize) -> Option<Layout> {
    if lanes == 1 {
        return map.to_layout();
    }
    let mut of_elements = Map::empty(map.threads(), map.elements() * lanes);
    for (thread, slot, granule) in map.entries() {
        for lane in 0..lanes {
            of_elements.put(thread, slot * lanes + lane, granule * lanes + lane);
        }
    }
    of_elements.to_layout()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> Layout {
        text.parse().unwrap()
    }

    #[test]
    fn a_wider_view_takes_adjacent_elements_of_one_thread() {
        let pairs = Map::of_layout(&layout("S[(4,2):(1@tx,1@reg)]"), 4).unwrap();
        assert_eq!(granules(&pairs, 2).unwrap().at(3, 0), Some(3));
        let apart = Map::of_layout(&layout("S[(2,4):(1@reg,1@tx)]"), 4).unwrap();
        assert_eq!(granules(&apart, 2), Err(Torn { granule: 0, ratio: 2 }));
    }
}
