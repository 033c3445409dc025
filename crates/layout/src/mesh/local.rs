//! The part of a distributed tensor that one device holds.

use std::fmt;
use std::ops::Range;

use tilewright_diag::counted;

use super::Mesh;
use super::placement::{DeviceAddress, DevicePlacement, on_device};
use crate::algebra::Walk;
use crate::axis::M;
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::tile::TileLayout;

/// What one device holds of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalSlice {
    /// A box of the tensor.
    Region {
        /// The indices of each dimension of the tensor.
        ranges: Vec<Range<i64>>,
        /// Where in the device's memory (axis `m`) the elements of the box are, in row-major order of the box.
        layout: TileLayout,
    },
    /// The elements one by one, if they do not form a box or if no layout describes their addresses.
    Elements(Vec<LocalElement>),
}

/// One element of a tensor on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalElement {
    /// Its flat row-major index in the tensor.
    pub element: i64,
    /// Its positions in the device's memory, in order.
    pub addresses: Vec<i64>,
}

impl Mesh {
    /// What `device` holds of a tensor of this `shape`; `None` if it holds nothing.
    ///
    /// Errors: those of [`Mesh::check`], a shape of another size, no such device, more places than
    /// [`crate::ENUMERATION_LIMIT`].
    pub fn local(&self, layout: &TileLayout, shape: &[i64], device: usize) -> Result<Option<LocalSlice>, LayoutError> {
        layout.check_shape(shape)?;
        self.check_device(device)?;
        let placement = DevicePlacement::new(self, layout)?;
        let places = placement.elements().map(|places| on_device(places, device));
        let held: Vec<(i64, &[DeviceAddress])> = (0..).zip(places).filter(|(_, places)| !places.is_empty()).collect();
        if held.is_empty() {
            return Ok(None);
        }
        Ok(Some(as_region(shape, &held)?.unwrap_or_else(|| LocalSlice::Elements(held.iter().map(listed).collect()))))
    }
}

fn addresses(places: &[DeviceAddress]) -> Vec<i64> {
    let mut addresses: Vec<i64> = places.iter().map(|place| place.address).collect();
    addresses.dedup();
    addresses
}

fn listed((element, places): &(i64, &[DeviceAddress])) -> LocalElement {
    LocalElement { element: *element, addresses: addresses(places) }
}

/// The slice as a box with a layout, if it has that form.
fn as_region(shape: &[i64], held: &[(i64, &[DeviceAddress])]) -> Result<Option<LocalSlice>, LayoutError> {
    let ranges = bounding_box(shape, held.iter().map(|(element, _)| *element));
    let extents: Vec<i64> = ranges.iter().map(|range| range.end - range.start).collect();
    if extents.iter().product::<i64>() != held.len() as i64 {
        return Ok(None);
    }
    let Some(layout) = as_layout(held)? else { return Ok(None) };
    let layout = layout.group(&extents).map_or(layout, |grouped| grouped.layout);
    Ok(Some(LocalSlice::Region { ranges, layout }))
}

fn bounding_box(shape: &[i64], elements: impl Iterator<Item = i64>) -> Vec<Range<i64>> {
    let mut ranges: Vec<Range<i64>> = shape.iter().map(|extent| *extent..0).collect();
    for element in elements {
        let mut rest = element;
        for (range, extent) in ranges.iter_mut().zip(shape).rev() {
            let index = rest % extent;
            *range = range.start.min(index)..range.end.max(index + 1);
            rest /= extent;
        }
    }
    ranges
}

/// The layout on `m` that places the listed elements, in order, at their addresses; `None` if there is none.
fn as_layout(held: &[(i64, &[DeviceAddress])]) -> Result<Option<TileLayout>, LayoutError> {
    let Some((_, first)) = held.first() else { return Ok(None) };
    let starts: Vec<i64> = held.iter().map(|(_, places)| places[0].address).collect();
    let copies = from_first(&addresses(first));
    if held.iter().any(|(_, places)| from_first(&addresses(places)) != copies) {
        return Ok(None);
    }
    match (iters_of(&starts), iters_of(&copies)) {
        (Some(shard), Some(replica)) => TileLayout::new(shard, replica, [(M, starts[0])]).map(Some),
        _ => Ok(None),
    }
}

fn from_first(values: &[i64]) -> Vec<i64> {
    values.iter().map(|value| value - values[0]).collect()
}

/// Iters whose positions are these, in order; the first position is 0. `None` if there are no such iters.
fn iters_of(positions: &[i64]) -> Option<Vec<Iter>> {
    Walk::new(vec![M], positions.len() as i64, |t, _| positions[t as usize]).iters(positions.len())
}

impl fmt::Display for LocalSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LocalSlice::Region { ranges, layout } => {
                let ranges: Vec<String> =
                    ranges.iter().map(|range| format!("{}..{}", range.start, range.end)).collect();
                write!(f, "[{}] at {layout}", ranges.join(", "))
            }
            LocalSlice::Elements(elements) => write!(f, "{}", counted(elements.len(), "separate element")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{GPUID_X, GPUID_Y};

    fn local(text: &str, shape: &[i64], device: usize) -> String {
        let mesh = Mesh::new([(GPUID_X, 2), (GPUID_Y, 2)]).unwrap();
        match mesh.local(&text.parse().unwrap(), shape, device) {
            Ok(None) => "nothing".to_string(),
            Ok(Some(slice)) => slice.to_string(),
            Err(e) => e.code().to_string(),
        }
    }

    #[test]
    fn a_shard_is_a_box_of_the_tensor() {
        let text = "S[(2,4,2,4):(1@gpuid_x,4@m,1@gpuid_y,1@m)]";
        assert_eq!(local(text, &[8, 8], 0), "[0..4, 0..4] at S[(4,4):(4@m,1@m)]");
        assert_eq!(local(text, &[8, 8], 3), "[4..8, 4..8] at S[(4,4):(4@m,1@m)]");
    }

    #[test]
    fn a_replica_is_the_same_box_on_another_device() {
        let text = "S[(2,4,8):(1@gpuid_y,8@m,1@m)] + R[2:1@gpuid_x]";
        assert_eq!(local(text, &[8, 8], 1), "[4..8, 0..8] at S[(4,8):(8@m,1@m)]");
        assert_eq!(local(text, &[8, 8], 1), local(text, &[8, 8], 3));
    }

    #[test]
    fn an_offset_leaves_the_other_devices_empty() {
        let text = "S[(2,4,8):(1@gpuid_y,8@m,1@m)] + 1@gpuid_x + 100@m";
        assert_eq!(local(text, &[8, 8], 0), "nothing");
        assert_eq!(local(text, &[8, 8], 2), "[0..4, 0..8] at S[(4,8):(8@m,1@m)] + 100@m");
    }

    #[test]
    fn copies_on_one_device_are_replicas_of_its_layout() {
        assert_eq!(local("S[(2,4):(1@gpuid_x,1@m)] + R[2:64@m]", &[8], 0), "[0..4] at S[4:1@m] + R[2:64@m]");
    }

    #[test]
    fn a_shape_that_cuts_through_the_iters_gives_a_box_where_there_is_one() {
        assert_eq!(local("S[(2,6):(1@gpuid_x,1@m)]", &[3, 4], 0), "6 separate elements");
        assert_eq!(local("S[(2,6):(1@gpuid_x,1@m)]", &[4, 3], 2), "[2..4, 0..3] at S[(2,3):(3@m,1@m)]");
        assert_eq!(local("S[(2,6):(1@gpuid_x,1@m)]", &[4, 4], 1), "L0105");
    }

    #[test]
    fn a_box_needs_no_shape_that_groups() {
        let mesh = Mesh::new([(GPUID_X, 3)]).unwrap();
        let layout: TileLayout = "S[(3,4):(1@gpuid_x,1@m)]".parse().unwrap();
        let first = mesh.local(&layout, &[2, 6], 0).unwrap().unwrap();
        assert_eq!(first.to_string(), "[0..1, 0..4] at S[(1,4):(4@m,1@m)]");
        assert_eq!(mesh.local(&layout, &[2, 6], 1).unwrap().unwrap().to_string(), "4 separate elements");
    }

    #[test]
    fn elements_in_no_box_are_listed_with_their_addresses() {
        let mesh = Mesh::new([(GPUID_X, 2)]).unwrap();
        let layout: TileLayout = "S[(2,2):(1@m,1@gpuid_x)]".parse().unwrap();
        let list = [(1, 0), (3, 1)].map(|(element, address)| LocalElement { element, addresses: vec![address] });
        assert_eq!(mesh.local(&layout, &[4], 1).unwrap(), Some(LocalSlice::Elements(list.to_vec())));
    }

    #[test]
    fn the_slices_of_all_devices_place_every_element_where_the_layout_does() {
        let mesh = Mesh::new([(GPUID_X, 2), (GPUID_Y, 2)]).unwrap();
        let layout: TileLayout = "S[(4,2,3):(2@m,1@gpuid_y,9@m)] + R[2:1@gpuid_x] + 3@m".parse().unwrap();
        for device in 0..4 {
            let Some(LocalSlice::Region { ranges, layout: local }) = mesh.local(&layout, &[4, 6], device).unwrap()
            else {
                panic!("device {device} holds a box");
            };
            let indices = ranges[0].clone().flat_map(|i| ranges[1].clone().map(move |j| i * 6 + j));
            for (at, element) in indices.enumerate() {
                assert_eq!(local.position(at as i64, &M), layout.position(element, &M), "{device} {element}");
            }
        }
    }
}
