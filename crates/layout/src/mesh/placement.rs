//! Every element of a distributed layout with its devices and addresses, by enumeration.

use super::Mesh;
use crate::algebra::offsets_on;
use crate::axis::M;
use crate::error::LayoutError;
use crate::tile::TileLayout;

/// One place of an element: a device, and a position in its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DeviceAddress {
    /// Number of the device in the mesh.
    pub(super) device: usize,
    /// Position on `m`, in elements.
    pub(super) address: i64,
}

/// The places of all elements: `copies` per element, in order.
pub(super) struct DevicePlacement {
    /// `copies` places per element, sorted within each element.
    places: Vec<DeviceAddress>,
    /// Number of places of each element.
    copies: usize,
}

impl DevicePlacement {
    pub(super) fn new(mesh: &Mesh, layout: &TileLayout) -> Result<DevicePlacement, LayoutError> {
        mesh.check(layout)?;
        let copies = copies(mesh, layout)?;
        let points = layout.size().saturating_mul(copies.len() as i64);
        if points > crate::ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points });
        }
        let mut devices = vec![0i64; layout.size() as usize];
        for (axis, _, stride) in mesh.strides() {
            for (number, position) in devices.iter_mut().zip(layout.positions(axis)) {
                *number += position * stride;
            }
        }
        let mut places = Vec::with_capacity(points as usize);
        for (base, address) in devices.into_iter().zip(layout.positions(&M)) {
            let first = places.len();
            places.extend(
                copies.iter().map(|copy| DeviceAddress { device: (base + copy.0) as usize, address: address + copy.1 }),
            );
            places[first..].sort_unstable();
        }
        Ok(DevicePlacement { places, copies: copies.len() })
    }

    /// The places of each element, in order of device and address.
    pub(super) fn elements(&self) -> impl Iterator<Item = &[DeviceAddress]> {
        self.places.chunks(self.copies)
    }
}

/// The devices of an element, each once.
pub(super) fn devices(places: &[DeviceAddress]) -> Vec<usize> {
    let mut devices: Vec<usize> = places.iter().map(|place| place.device).collect();
    devices.dedup();
    devices
}

/// The places of an element on one device.
pub(super) fn on_device(places: &[DeviceAddress], device: usize) -> &[DeviceAddress] {
    let first = places.partition_point(|place| place.device < device);
    let end = places.partition_point(|place| place.device <= device);
    &places[first..end]
}

/// What the replicas add to the device number and to the address: every combination, each once. The layout must fit
/// the mesh.
pub(super) fn copies(mesh: &Mesh, layout: &TileLayout) -> Result<Vec<(i64, i64)>, LayoutError> {
    let memory = M;
    let devices = mesh.strides().map(|(axis, _, stride)| (axis, (stride, 0)));
    let mut copies = vec![(0i64, 0i64)];
    for (axis, step) in devices.chain([(&memory, (0, 1))]) {
        let limit = crate::ENUMERATION_LIMIT / copies.len() as i64;
        let too_many = |_| LayoutError::TooLarge { points: crate::ENUMERATION_LIMIT + 1 };
        let offsets = offsets_on(layout.replica(), axis, limit).map_err(too_many)?;
        copies =
            copies.iter().flat_map(|c| offsets.iter().map(move |k| (c.0 + k * step.0, c.1 + k * step.1))).collect();
    }
    Ok(copies)
}
