//! Distributed layouts: tensors over a mesh of devices.
//!
//! A layout whose axes are `gpuid_x`, `gpuid_y`, `gpuid_z` and `m` gives the device of each element, and its position
//! in the memory of that device. Replicas over the device axes are copies. A [`Mesh`] gives the number of devices on
//! each axis; it computes which devices hold an element, what one device holds ([`Mesh::local`]), and which collective
//! turns one distribution into another ([`Mesh::collective`]).
//!
//! ```
//! use tilewright_layout::TileLayout;
//! use tilewright_layout::axis::{GPUID_X, GPUID_Y};
//! use tilewright_layout::mesh::Mesh;
//! let mesh = Mesh::new([(GPUID_X, 2), (GPUID_Y, 2)])?;
//! let sharded: TileLayout = "S[(2,4,8):(1@gpuid_y,8@m,1@m)] + R[2:1@gpuid_x]".parse()?;
//! let everywhere: TileLayout = "S[64:1@m] + R[(2,2):(1@gpuid_x,1@gpuid_y)]".parse()?;
//! assert_eq!(mesh.devices_of(&sharded, 40)?, [1, 3]);
//! let plan = mesh.collective(&sharded, &everywhere, 16, &[])?;
//! assert_eq!(plan.to_string(), "all-gather over gpuid_y, 1 x 64 bytes received per device");
//! # Ok::<(), tilewright_layout::LayoutError>(())
//! ```

use crate::axis::{Axis, GPUID_X, GPUID_Y, GPUID_Z, M};
use crate::error::{LayoutError, tuple};
use crate::tile::TileLayout;

mod collective;
mod exchange;
mod local;
mod messages;
mod placement;
mod reduce;
mod runs;
mod step;

pub use collective::CollectivePlan;
pub use local::{LocalElement, LocalSlice};
pub use step::{Collective, Step, Transfer};

const AXES: [Axis; 3] = [GPUID_X, GPUID_Y, GPUID_Z];

/// A mesh of devices: the number of devices on each device axis.
///
/// Devices are numbered row-major over the axes in the order in which they were given, the last fastest. An axis that
/// was not given has one position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// The axes with their extents, slowest first.
    axes: Vec<(Axis, i64)>,
}

fn problem(problem: impl Into<String>, legal: impl Into<String>) -> LayoutError {
    LayoutError::Mesh { problem: problem.into(), legal: legal.into() }
}

impl Mesh {
    /// A mesh of these extents. Errors: an axis that does not count devices or is given twice, an extent below 1,
    /// more devices than [`crate::ENUMERATION_LIMIT`].
    pub fn new(extents: impl IntoIterator<Item = (Axis, i64)>) -> Result<Mesh, LayoutError> {
        let mut axes: Vec<(Axis, i64)> = Vec::new();
        let mut devices = 1i64;
        for (axis, extent) in extents {
            if !AXES.contains(&axis) {
                return Err(problem(format!("`{axis}` is not an axis of devices"), "gpuid_x, gpuid_y and gpuid_z"));
            }
            if axes.iter().any(|(earlier, _)| *earlier == axis) {
                return Err(problem(format!("`{axis}` is given twice"), "each axis of the mesh once"));
            }
            if extent < 1 {
                return Err(LayoutError::Extent { extent });
            }
            devices = devices.saturating_mul(extent);
            if devices > crate::ENUMERATION_LIMIT {
                return Err(LayoutError::TooLarge { points: devices });
            }
            axes.push((axis, extent));
        }
        Ok(Mesh { axes })
    }

    /// The axes and their extents, slowest first.
    pub fn axes(&self) -> &[(Axis, i64)] {
        &self.axes
    }

    /// How many devices there are.
    pub fn devices(&self) -> usize {
        self.axes.iter().map(|(_, extent)| *extent as usize).product()
    }

    /// How many positions an axis has; 1 if the mesh does not have it.
    pub fn extent(&self, axis: &Axis) -> i64 {
        self.axes.iter().find(|(own, _)| own == axis).map_or(1, |(_, extent)| *extent)
    }

    /// The position of a device on each axis of the mesh. Error: no such device.
    pub fn coordinate(&self, device: usize) -> Result<Vec<i64>, LayoutError> {
        self.check_device(device)?;
        Ok(self.strides().map(|(_, extent, stride)| device as i64 / stride % extent).collect())
    }

    /// The number of the device at these positions, one per axis of the mesh. Errors: wrong rank, outside the mesh.
    pub fn device(&self, coordinate: &[i64]) -> Result<usize, LayoutError> {
        let extents: Vec<i64> = self.axes.iter().map(|(_, extent)| *extent).collect();
        crate::tile::flatten(coordinate, &extents).map(|number| number as usize)
    }

    /// Checks that the layout lives on device axes and `m` only, and that every device is inside the mesh.
    pub fn check(&self, layout: &TileLayout) -> Result<(), LayoutError> {
        for axis in layout.axes().into_iter().filter(|axis| *axis != M) {
            if !AXES.contains(&axis) {
                let said = format!("a distributed layout lives on devices and in their memory, not on `{axis}`");
                return Err(problem(said, "the axes gpuid_x, gpuid_y, gpuid_z and m"));
            }
            let (low, high) = reach(layout, &axis);
            let extent = self.extent(&axis);
            if low < 0 || high >= extent {
                let position = if low < 0 { low } else { high };
                let said = format!("{layout} reaches {axis} {position}, outside {self}");
                return Err(problem(said, format!("positions 0 to {} on {axis}", extent - 1)));
            }
        }
        Ok(())
    }

    /// The devices that hold element `element` (a flat row-major index), in order, each once.
    /// Errors: those of [`Mesh::check`], an index outside the layout, too many replicas.
    pub fn devices_of(&self, layout: &TileLayout, element: i64) -> Result<Vec<usize>, LayoutError> {
        self.check(layout)?;
        if element < 0 || element >= layout.size() {
            return Err(LayoutError::OutOfRange { index: element, extent: layout.size() });
        }
        let base: i64 = self.strides().map(|(axis, _, stride)| layout.position(element, axis) * stride).sum();
        let mut devices: Vec<usize> =
            placement::copies(self, layout)?.into_iter().map(|copy| (base + copy.0) as usize).collect();
        devices.sort_unstable();
        devices.dedup();
        Ok(devices)
    }

    fn check_device(&self, device: usize) -> Result<(), LayoutError> {
        let devices = self.devices();
        if device >= devices {
            let legal = format!("devices 0 to {}", devices - 1);
            return Err(problem(format!("there is no device {device} in {self}"), legal));
        }
        Ok(())
    }

    /// Each axis with its extent and its stride (the difference in number of two neighbours on it); slowest first.
    fn strides(&self) -> impl Iterator<Item = (&Axis, i64, i64)> {
        self.axes.iter().enumerate().map(|(at, (axis, extent))| {
            let stride = self.axes[at + 1..].iter().map(|(_, later)| *later).product();
            (axis, *extent, stride)
        })
    }

    /// The axes on which two devices differ.
    fn differing(&self, a: usize, b: usize) -> impl Iterator<Item = &Axis> {
        let at = |device: usize, extent: i64, stride: i64| device as i64 / stride % extent;
        self.strides()
            .filter(move |(_, extent, stride)| at(a, *extent, *stride) != at(b, *extent, *stride))
            .map(|s| s.0)
    }
}

impl std::fmt::Display for Mesh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.axes.iter().map(|(axis, _)| axis.name()).collect();
        let extents: Vec<i64> = self.axes.iter().map(|(_, extent)| *extent).collect();
        write!(f, "the mesh {} of ({})", tuple(&extents), names.join(","))
    }
}

/// The least and the greatest position on `axis`. Both occur, because the digits are independent.
fn reach(layout: &TileLayout, axis: &Axis) -> (i64, i64) {
    let offset = layout.offset_on(axis);
    let iters = layout.shard().iter().chain(layout.replica()).filter(|iter| iter.axis == *axis);
    iters
        .map(|iter| (iter.extent - 1) * iter.stride)
        .fold((offset, offset), |(low, high), far| (low + far.min(0), high + far.max(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::LANEID;

    fn square() -> Mesh {
        Mesh::new([(GPUID_X, 2), (GPUID_Y, 2)]).unwrap()
    }

    fn said(result: Result<(), LayoutError>) -> String {
        result.map_or_else(|e| e.to_string(), |()| "fits".to_string())
    }

    fn check(text: &str) -> String {
        said(square().check(&text.parse().unwrap()))
    }

    #[test]
    fn devices_are_numbered_row_major() {
        let mesh = Mesh::new([(GPUID_X, 2), (GPUID_Y, 3)]).unwrap();
        assert_eq!((mesh.devices(), mesh.device(&[1, 2]).unwrap(), mesh.coordinate(4).unwrap()), (6, 5, vec![1, 1]));
        assert_eq!(mesh.coordinate(6).unwrap_err().code(), "L0115");
        assert_eq!(mesh.device(&[2, 0]).unwrap_err().code(), "L0106");
    }

    #[test]
    fn a_mesh_has_device_axes_only_and_each_once() {
        let codes = [
            Mesh::new([(LANEID, 2)]).unwrap_err().code(),
            Mesh::new([(GPUID_X, 2), (GPUID_X, 2)]).unwrap_err().code(),
            Mesh::new([(GPUID_X, 0)]).unwrap_err().code(),
            Mesh::new([(GPUID_X, i64::MAX), (GPUID_Y, i64::MAX)]).unwrap_err().code(),
        ];
        assert_eq!(codes, ["L0115", "L0115", "L0102", "L0111"]);
    }

    #[test]
    fn the_layouts_of_the_seed_document_fit_a_2x2_mesh() {
        assert_eq!(check("S[(2,4,8):(1@gpuid_y,8@m,1@m)] + R[2:1@gpuid_x]"), "fits");
        assert_eq!(check("S[(2,2,4,4):(1@gpuid_x,1@gpuid_y,4@m,1@m)]"), "fits");
        assert_eq!(check("S[(2,4,8):(1@gpuid_y,8@m,1@m)] + 1@gpuid_x"), "fits");
    }

    #[test]
    fn a_device_outside_the_mesh_is_named_by_axis_and_position() {
        assert_eq!(
            check("S[(2,4):(1@gpuid_y,1@m)] + 1@gpuid_y"),
            "S[(2,4):(1@gpuid_y,1@m)] + 1@gpuid_y reaches gpuid_y 2, outside the mesh (2,2) of (gpuid_x,gpuid_y)"
        );
        assert_eq!(
            check("S[(2,4):(1@gpuid_z,1@m)]"),
            "S[(2,4):(1@gpuid_z,1@m)] reaches gpuid_z 1, outside the mesh (2,2) of (gpuid_x,gpuid_y)"
        );
        assert!(check("S[(2,4):(-1@gpuid_y,1@m)]").contains("reaches gpuid_y -1"));
        assert!(check("S[(2,4):(1@laneid,1@m)]").contains("not on `laneid`"));
    }

    #[test]
    fn the_devices_of_an_element_are_those_of_its_replicas() {
        let layout: TileLayout = "S[(2,4,8):(1@gpuid_y,8@m,1@m)] + R[2:1@gpuid_x]".parse().unwrap();
        assert_eq!(square().devices_of(&layout, 31).unwrap(), [0, 2]);
        assert_eq!(square().devices_of(&layout, 32).unwrap(), [1, 3]);
        assert_eq!(square().devices_of(&layout, 64).unwrap_err().code(), "L0106");
    }
}
