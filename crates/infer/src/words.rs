//! Elements, places and layouts of a fragment in words, for messages and texts.

use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Kernel};
use tilewright_layout::map::Map;

use crate::granules::{lanes_of, layout_of};
use crate::steps::threads_title;
use crate::storage::Storages;

/// Thread and slot.
type Place = (usize, usize);

/// A fragment that owns its storage. Its maps count granules, each of one or more of its elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    buffer: &'a Buffer,
    /// Bytes of a granule.
    bytes: i64,
}

impl<'a> Words<'a> {
    pub(crate) fn of(kernel: &'a Kernel, storages: &Storages, storage: Handle<Buffer>) -> Words<'a> {
        Words { buffer: &kernel.buffers[storage], bytes: storages.get(storage).bytes }
    }

    pub(crate) fn name(&self) -> &'a str {
        &self.buffer.name
    }

    /// Elements of a granule.
    fn ratio(&self) -> usize {
        (self.bytes / self.buffer.dtype.bytes()).max(1) as usize
    }

    /// `element (0, 2)`: the first one of a granule.
    pub(crate) fn element(&self, granule: usize) -> String {
        format!("element {}", coordinates(&self.buffer.shape, granule * self.ratio()))
    }

    /// The layout of a map of granules, in notation.
    pub(crate) fn layout(&self, map: &Map) -> String {
        let layout = layout_of(map, lanes_of(self.bytes, self.buffer));
        layout.map_or_else(|| "no layout that covers all elements".to_string(), |layout| layout.to_string())
    }

    /// `thread 1 register 0`: where a map has a granule.
    pub(crate) fn place(&self, map: &Map, granule: usize) -> String {
        let of_granule = map.entries().filter(|(_, _, had)| *had == granule);
        let mut places: Vec<Place> = of_granule.map(|(thread, slot, _)| (thread, slot)).collect();
        places.sort_unstable();
        self.of_places(&places)
    }

    fn of_places(&self, places: &[Place]) -> String {
        let mut threads: Vec<u32> = places.iter().map(|(thread, _)| *thread as u32).collect();
        threads.dedup();
        let title = threads_title(&threads);
        match places.first() {
            Some((_, slot)) if places.iter().all(|(_, other)| other == slot) => {
                format!("{title} register {}", slot * self.ratio())
            }
            Some(_) | None => title,
        }
    }

    /// Where two maps differ first.
    pub(crate) fn difference(&self, map: &Map, wanted: &Map) -> Option<String> {
        let (here, there) = (places_of(map), places_of(wanted));
        let granule = here.iter().zip(&there).position(|(here, there)| here != there)?;
        let [is, should_be] = [&here[granule], &there[granule]].map(|places| self.of_places(places));
        Some(format!("first difference: {} is on {is}, wanted on {should_be}", self.element(granule)))
    }
}

/// The places of every granule, in order.
fn places_of(map: &Map) -> Vec<Vec<Place>> {
    let mut places: Vec<Vec<Place>> = vec![Vec::new(); map.elements()];
    for (thread, slot, granule) in map.entries() {
        places[granule].push((thread, slot));
    }
    places.iter_mut().for_each(|list| list.sort_unstable());
    places
}

/// The index in each dimension of the element with row-major number `flat`.
pub(crate) fn digits(shape: &[i64], flat: usize) -> Vec<i64> {
    let mut rest = flat as i64;
    let mut digits: Vec<i64> = Vec::with_capacity(shape.len());
    for extent in shape.iter().rev() {
        digits.push(rest % (*extent).max(1));
        rest /= (*extent).max(1);
    }
    digits.reverse();
    digits
}

/// `7`, or `(0, 3)` where there are several dimensions.
pub(crate) fn coordinates(shape: &[i64], flat: usize) -> String {
    let listed: Vec<String> = digits(shape, flat).iter().map(i64::to_string).collect();
    match &listed[..] {
        [only] => only.clone(),
        several => format!("({})", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use tilewright_diag::Span;
    use tilewright_layout::DType;

    use super::*;

    fn fragment(dtype: DType) -> Buffer {
        Buffer::fragment("a", dtype, &[2, 8], Span::here())
    }

    fn map(text: &str, threads: usize) -> Map {
        Map::of_layout(&text.parse().unwrap(), threads).unwrap()
    }

    #[test]
    fn indices_are_told_by_dimension() {
        assert_eq!([coordinates(&[2, 8], 11), coordinates(&[16], 11)], ["(1, 3)", "11"]);
    }

    #[test]
    fn the_first_difference_names_both_places() {
        let buffer = fragment(DType::F32);
        let words = Words { buffer: &buffer, bytes: 4 };
        let (pairs, rows) = (map("S[(8,2):(1@tx,1@reg)]", 8), map("S[(2,8):(1@tx,1@reg)]", 8));
        let told = "first difference: element (0, 2) is on thread 1 register 0, wanted on thread 0 register 2";
        assert_eq!(words.difference(&pairs, &rows).as_deref(), Some(told));
        assert_eq!(words.difference(&pairs, &pairs), None);
    }

    #[test]
    fn a_granule_of_two_elements_is_told_by_its_first() {
        let buffer = fragment(DType::F16);
        let words = Words { buffer: &buffer, bytes: 4 };
        let map = map("S[(4,2):(1@tx,1@reg)]", 4);
        assert_eq!([words.element(5), words.place(&map, 5)], ["element (1, 2)", "thread 2 register 2"]);
        assert_eq!(words.layout(&map), "S[(4,4):(1@tx,1@reg)]");
    }

    #[test]
    fn copies_in_one_register_are_told_together() {
        let buffer = fragment(DType::F32);
        let words = Words { buffer: &buffer, bytes: 4 };
        assert_eq!(words.place(&Map::replicated(8, 16), 3), "threads 0, 1, 2, 3, ... (8) register 3");
    }
}
