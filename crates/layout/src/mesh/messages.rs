//! The messages of a step, and the devices and axes that they connect.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::runs::push;
use super::step::Transfer;
use super::{Mesh, problem};
use crate::axis::Axis;
use crate::error::LayoutError;

/// Maximum number of pairs of devices that a step may connect: 1024 devices, each with every other.
const MAX_PAIRS: usize = 1 << 20;

/// Messages, gathered per pair of devices.
#[derive(Default)]
pub(super) struct Messages(BTreeMap<(usize, usize), Vec<Range<i64>>>);

impl Messages {
    /// Error: more than [`MAX_PAIRS`] pairs of devices.
    pub(super) fn add(&mut self, from: usize, to: usize, elements: Range<i64>) -> Result<(), LayoutError> {
        push(self.0.entry((from, to)).or_default(), elements);
        if self.0.len() > MAX_PAIRS {
            let said = format!("more than {MAX_PAIRS} messages between devices");
            return Err(problem(said, "fewer devices that exchange: if several groups do the same, plan for one"));
        }
        Ok(())
    }

    pub(super) fn into_transfers(self, adds: bool) -> Vec<Transfer> {
        self.0.into_iter().map(|((from, to), elements)| Transfer { from, to, elements, adds }).collect()
    }
}

/// The mesh axes on which sender and receiver of some message differ.
pub(super) fn axes(mesh: &Mesh, transfers: &[Transfer]) -> Vec<Axis> {
    let crossed: BTreeSet<&Axis> =
        transfers.iter().flat_map(|transfer| mesh.differing(transfer.from, transfer.to)).collect();
    mesh.axes().iter().map(|(axis, _)| axis).filter(|axis| crossed.contains(axis)).cloned().collect()
}

/// The groups of devices that messages connect: each group sorted, the groups in order of their first device.
pub(super) fn groups(transfers: &[Transfer]) -> Vec<Vec<usize>> {
    let mut parent: BTreeMap<usize, usize> = BTreeMap::new();
    for transfer in transfers {
        let (a, b) = (root(&mut parent, transfer.from), root(&mut parent, transfer.to));
        parent.insert(a.max(b), a.min(b));
    }
    let members: Vec<usize> = parent.keys().copied().collect();
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for device in members {
        groups.entry(root(&mut parent, device)).or_default().push(device);
    }
    groups.into_values().collect()
}

/// The lowest-numbered device of the group so far (union-find with path halving).
fn root(parent: &mut BTreeMap<usize, usize>, device: usize) -> usize {
    let mut at = device;
    loop {
        let above = *parent.entry(at).or_insert(at);
        if above == at {
            return at;
        }
        let next = parent.get(&above).copied().unwrap_or(above);
        parent.insert(at, next);
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::GPUID_X;

    #[test]
    fn more_messages_than_are_planned_with_are_refused() {
        let mesh = Mesh::new([(GPUID_X, 1025)]).unwrap();
        let layout = |text: &str| text.parse().unwrap();
        let (from, to) = (layout("S[1025:1@gpuid_x]"), layout("S[1025:1@m] + R[1025:1@gpuid_x]"));
        assert_eq!(mesh.collective(&from, &to, 16, &[]).unwrap_err().code(), "L0115");
    }
}
