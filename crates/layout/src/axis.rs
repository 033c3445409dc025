//! Named axes. The set is open: any identifier names an axis; hardware axes have a predefined meaning.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A level of the hardware hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// One thread.
    Thread,
    /// 32 threads.
    Warp,
    /// 4 warps.
    Warpgroup,
    /// A thread block.
    Cta,
    /// A cluster of CTAs.
    Cluster,
    /// All CTAs of a launch.
    Grid,
    /// Several devices.
    Mesh,
}

impl Scope {
    /// Its name, the same in all text output.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Thread => "thread",
            Scope::Warp => "warp",
            Scope::Warpgroup => "warpgroup",
            Scope::Cta => "cta",
            Scope::Cluster => "cluster",
            Scope::Grid => "grid",
            Scope::Mesh => "mesh",
        }
    }
}

/// What an axis means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisKind {
    /// Counts `unit`s inside one `scope`: `laneid` counts threads inside a warp.
    Unit {
        /// The level that contains the units.
        scope: Scope,
        /// The level that is counted.
        unit: Scope,
    },
    /// A position in memory or registers. With `elements` it counts elements of the dtype, and scales with their width.
    Memory {
        /// Whether positions on the axis are elements of the buffer's dtype.
        elements: bool,
    },
    /// A user-defined axis, without a predefined meaning.
    Free,
}

/// A hardware axis.
#[derive(Debug)]
pub struct AxisInfo {
    name: &'static str,
    kind: AxisKind,
    /// How many positions the hardware has on the axis, if it is fixed.
    extent: Option<i64>,
}

/// An axis, by name.
#[derive(Clone)]
pub struct Axis(Repr);

#[derive(Clone)]
enum Repr {
    Known(&'static AxisInfo),
    Free(Arc<str>),
}

macro_rules! hardware_axes {
    ($($constant:ident, $name:literal, $kind:expr, $extent:expr, $doc:literal;)*) => {
        $(#[doc = $doc]
        pub const $constant: Axis = Axis(Repr::Known(&AxisInfo { name: $name, kind: $kind, extent: $extent }));)*

        /// All hardware axes.
        pub const HARDWARE: &[Axis] = &[$($constant),*];
    };
}

const fn unit(scope: Scope, unit: Scope) -> AxisKind {
    AxisKind::Unit { scope, unit }
}

const ELEMENTS: AxisKind = AxisKind::Memory { elements: true };
const CELLS: AxisKind = AxisKind::Memory { elements: false };

hardware_axes! {
    BX, "bx", unit(Scope::Grid, Scope::Cta), None, "CTA index in the grid, x.";
    BY, "by", unit(Scope::Grid, Scope::Cta), None, "CTA index in the grid, y.";
    BZ, "bz", unit(Scope::Grid, Scope::Cta), None, "CTA index in the grid, z.";
    CBX, "cbx", unit(Scope::Cluster, Scope::Cta), None, "CTA index in the cluster, x.";
    CBY, "cby", unit(Scope::Cluster, Scope::Cta), None, "CTA index in the cluster, y.";
    CBZ, "cbz", unit(Scope::Cluster, Scope::Cta), None, "CTA index in the cluster, z.";
    TX, "tx", unit(Scope::Cta, Scope::Thread), None, "Thread index in the CTA.";
    WARPID, "warpid", unit(Scope::Cta, Scope::Warp), None, "Warp index in the CTA.";
    LANEID, "laneid", unit(Scope::Warp, Scope::Thread), Some(32), "Lane index in the warp.";
    WGID, "wgid", unit(Scope::Cta, Scope::Warpgroup), None, "Warpgroup index in the CTA.";
    TID_IN_WG, "tid_in_wg", unit(Scope::Warpgroup, Scope::Thread), Some(128), "Thread index in the warpgroup.";
    WID_IN_WG, "wid_in_wg", unit(Scope::Warpgroup, Scope::Warp), Some(4), "Warp index in the warpgroup.";
    REG, "reg", ELEMENTS, None, "Register index inside a thread, in elements.";
    M, "m", ELEMENTS, None, "Linear memory, in elements.";
    P, "P", CELLS, None, "Partition of a two-dimensional scratchpad.";
    F, "F", ELEMENTS, None, "Free dimension of a two-dimensional scratchpad, in elements.";
    BANK, "Bank", CELLS, Some(32), "Shared-memory bank.";
    TLANE, "TLane", CELLS, Some(128), "Lane of tensor memory.";
    TCOL, "TCol", ELEMENTS, None, "Column of tensor memory, in elements.";
    GPUID_X, "gpuid_x", unit(Scope::Mesh, Scope::Grid), None, "Device index in the mesh, x.";
    GPUID_Y, "gpuid_y", unit(Scope::Mesh, Scope::Grid), None, "Device index in the mesh, y.";
    GPUID_Z, "gpuid_z", unit(Scope::Mesh, Scope::Grid), None, "Device index in the mesh, z.";
}

impl Axis {
    /// The axis called `name`: the hardware axis of that name if there is one, otherwise a user-defined axis.
    pub fn named(name: &str) -> Axis {
        HARDWARE.iter().find(|axis| axis.name() == name).cloned().unwrap_or_else(|| Axis(Repr::Free(Arc::from(name))))
    }

    /// True if the name is valid in the notation: letters, digits and `_`, not starting with a digit.
    pub(crate) fn is_valid_name(&self) -> bool {
        match &self.0 {
            Repr::Known(_) => true,
            Repr::Free(name) => {
                let part = |c: char| c.is_alphanumeric() || c == '_';
                !name.is_empty() && name.chars().all(part) && !name.starts_with(|c: char| c.is_ascii_digit())
            }
        }
    }

    /// Its name in notation.
    pub fn name(&self) -> &str {
        match &self.0 {
            Repr::Known(info) => info.name,
            Repr::Free(name) => name,
        }
    }

    /// What it means.
    pub fn kind(&self) -> AxisKind {
        match &self.0 {
            Repr::Known(info) => info.kind,
            Repr::Free(_) => AxisKind::Free,
        }
    }

    /// The number of positions that the hardware has on this axis, if it is fixed.
    pub fn extent(&self) -> Option<i64> {
        match &self.0 {
            Repr::Known(info) => info.extent,
            Repr::Free(_) => None,
        }
    }

    /// Which positions there are on this axis, and one of `least` and `greatest` that is not among them; `None` if both
    /// are. Only an axis with a fixed extent has a greatest position.
    pub fn beyond(&self, least: i64, greatest: i64) -> Option<(String, i64)> {
        let reached = if least < 0 { least } else { greatest };
        let (is_beyond, positions) = match self.extent() {
            Some(extent) => (reached >= extent, format!("`{self}` has {extent} positions (0 to {})", extent - 1)),
            None => (false, format!("positions on `{self}` begin at 0")),
        };
        (least < 0 || is_beyond).then_some((positions, reached))
    }

    /// True for axes of memory or registers.
    pub fn is_memory(&self) -> bool {
        matches!(self.kind(), AxisKind::Memory { .. })
    }

    /// True for axes that count elements of the dtype: their positions scale with the element's width.
    pub fn counts_elements(&self) -> bool {
        matches!(self.kind(), AxisKind::Memory { elements: true })
    }

    /// True for axes that count threads, groups of threads, CTAs or devices.
    pub fn is_unit(&self) -> bool {
        matches!(self.kind(), AxisKind::Unit { .. })
    }

    /// True for threads, warps and warpgroups inside a CTA.
    pub fn is_thread(&self) -> bool {
        match self.kind() {
            AxisKind::Unit { scope, .. } => scope <= Scope::Cta,
            AxisKind::Memory { .. } | AxisKind::Free => false,
        }
    }
}

impl PartialEq for Axis {
    fn eq(&self, other: &Axis) -> bool {
        match (&self.0, &other.0) {
            (Repr::Known(a), Repr::Known(b)) if std::ptr::eq(*a, *b) => true,
            _ => self.name() == other.name(),
        }
    }
}

impl Eq for Axis {}

impl PartialOrd for Axis {
    fn partial_cmp(&self, other: &Axis) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Axis {
    fn cmp(&self, other: &Axis) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Known(a), Repr::Known(b)) if std::ptr::eq(*a, *b) => Ordering::Equal,
            _ => self.name().cmp(other.name()),
        }
    }
}

impl Hash for Axis {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_hardware_axis_is_the_constant() {
        assert_eq!((Axis::named("laneid"), Axis::named("laneid").extent()), (LANEID, Some(32)));
    }

    #[test]
    fn any_other_name_is_an_axis_too() {
        assert_eq!((Axis::named("pid").name(), Axis::named("pid").kind()), ("pid", AxisKind::Free));
    }
}
