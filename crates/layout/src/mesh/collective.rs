//! Which collective turns one distribution into another, as data: which device sends what to which.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use super::exchange::exchange;
use super::placement::{DevicePlacement, devices, on_device};
use super::reduce::reduce;
use super::runs::{Run, held_after, runs};
use super::step::{Collective, Step, Transfer};
use super::{Mesh, problem};
use crate::axis::Axis;
use crate::error::LayoutError;
use crate::tile::TileLayout;

/// How one distribution becomes another.
///
/// Bytes are counted message by message, each rounded up to whole bytes. A device receives each element that it lacks
/// once, from the holder that differs from it on the fewest mesh axes. For gathers and scatters of equal shards this
/// is what a ring moves too: `(n-1)/n` of the `b` bytes of a group per device for all-gather and reduce-scatter, and
/// `2(n-1)/n * b` for all-reduce, which is planned as a reduce-scatter and an all-gather.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectivePlan {
    /// The steps, in order; at least one. More than one if no single collective suffices, as for partial sums over one
    /// axis whose totals are needed on all devices of two axes.
    pub steps: Vec<Step>,
    /// Flat indices of the elements that each device holds at the end.
    pub after: Vec<Vec<Range<i64>>>,
    /// Whether a device must also move elements that it keeps to other addresses of its own memory.
    pub rearranges: bool,
    /// Bits of one element.
    pub bits: i64,
}

impl Mesh {
    /// The collective that turns a tensor distributed as `from` into one distributed as `to`.
    ///
    /// Devices that differ on the axes in `partial` hold summands in `from`, instead of copies. The collective is found
    /// by comparing the devices of every element, whatever the notation. `bits` is the width of an element.
    ///
    /// Errors: those of [`Mesh::check`], layouts of different sizes, more places than [`crate::ENUMERATION_LIMIT`],
    /// bits outside `1..=65536`, a partial axis that the mesh lacks, devices that change more than 2^20 times from
    /// element to element, more than 2^20 messages in a step.
    pub fn collective(
        &self,
        from: &TileLayout,
        to: &TileLayout,
        bits: i64,
        partial: &[Axis],
    ) -> Result<CollectivePlan, LayoutError> {
        if from.size() != to.size() {
            let said = format!("the layouts have different sizes, {} and {}", from.size(), to.size());
            return Err(problem(said, "two distributions of the same tensor"));
        }
        if !(1..=1 << 16).contains(&bits) {
            return Err(problem(format!("an element of {bits} bits"), "1 to 65536 bits"));
        }
        let (before, after) = (DevicePlacement::new(self, from)?, DevicePlacement::new(self, to)?);
        let runs = runs(&before, &after)?;
        let steps = self.steps(&runs, partial)?;
        let rearranges = rearranges(&before, &after);
        Ok(CollectivePlan { steps, after: held_after(self, &runs), rearranges, bits })
    }

    fn steps(&self, runs: &[Run], partial: &[Axis]) -> Result<Vec<Step>, LayoutError> {
        let Some((first, summed)) = reduce(self, partial, runs)? else {
            return Ok(vec![exchange(self, runs)?]);
        };
        let second = exchange(self, &summed)?;
        if second.transfers.is_empty() {
            return Ok(vec![first]);
        }
        let gathers = matches!(second.collective, Collective::AllGather | Collective::Broadcast);
        if gathers && first.groups == second.groups && runs.iter().all(|run| run.before == run.after) {
            let transfers = first.transfers.into_iter().chain(second.transfers).collect();
            return Ok(vec![Step { collective: Collective::AllReduce, transfers, ..first }]);
        }
        Ok(vec![first, second])
    }
}

/// True when some device keeps an element at different addresses than before.
fn rearranges(before: &DevicePlacement, after: &DevicePlacement) -> bool {
    before.elements().zip(after.elements()).any(|(old, new)| {
        devices(new).into_iter().any(|device| {
            let kept = on_device(old, device);
            !kept.is_empty() && on_device(new, device).iter().any(|place| kept.binary_search(place).is_err())
        })
    })
}

impl CollectivePlan {
    /// Bytes that a device receives in all steps.
    pub fn received(&self, device: usize) -> i64 {
        self.steps.iter().map(|step| step.received(device, self.bits)).sum()
    }

    /// Bytes that a device sends in all steps.
    pub fn sent(&self, device: usize) -> i64 {
        self.steps.iter().map(|step| step.sent(device, self.bits)).sum()
    }

    /// Executes the plan on a table: for each device, its elements with their values (or summands).
    ///
    /// Errors: a table for a different number of devices, an element that its sender lacks, a sum beyond 64 bits.
    pub fn execute(&self, table: &[BTreeMap<i64, i64>]) -> Result<Vec<BTreeMap<i64, i64>>, LayoutError> {
        if table.len() != self.after.len() {
            let said = format!("the table and the plan differ in size: {} and {}", table.len(), self.after.len());
            return Err(problem(said, "one entry per device"));
        }
        let mut now = table.to_vec();
        for step in &self.steps {
            add_up(&mut now, &step.transfers)?;
            copy(&mut now, &step.transfers)?;
        }
        self.after.iter().enumerate().map(|(device, ranges)| kept(&now, device, ranges)).collect()
    }
}

fn kept(table: &[BTreeMap<i64, i64>], device: usize, ranges: &[Range<i64>]) -> Result<BTreeMap<i64, i64>, LayoutError> {
    let elements = ranges.iter().cloned().flatten();
    elements.map(|element| value(table, device, element).map(|value| (element, value))).collect()
}

fn value(table: &[BTreeMap<i64, i64>], device: usize, element: i64) -> Result<i64, LayoutError> {
    let found = table.get(device).and_then(|elements| elements.get(&element));
    found.copied().ok_or_else(|| {
        problem(format!("device {device} lacks element {element}"), "a table distributed like the plan's first layout")
    })
}

fn add_up(now: &mut [BTreeMap<i64, i64>], transfers: &[Transfer]) -> Result<(), LayoutError> {
    for transfer in transfers.iter().filter(|transfer| transfer.adds) {
        for element in transfer.elements.iter().cloned().flatten() {
            let summand = value(now, transfer.from, element)?;
            let sum = value(now, transfer.to, element)?.checked_add(summand).ok_or(LayoutError::Overflow)?;
            now[transfer.to].insert(element, sum);
            now[transfer.from].remove(&element);
        }
    }
    Ok(())
}

fn copy(now: &mut [BTreeMap<i64, i64>], transfers: &[Transfer]) -> Result<(), LayoutError> {
    for transfer in transfers.iter().filter(|transfer| !transfer.adds) {
        for element in transfer.elements.iter().cloned().flatten() {
            let copied = value(now, transfer.from, element)?;
            now[transfer.to].insert(element, copied);
        }
    }
    Ok(())
}

impl fmt::Display for CollectivePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: Vec<String> = self.steps.iter().map(|step| step.describe(self.bits)).collect();
        let is_local = self.steps.iter().all(|step| step.transfers.is_empty());
        let copy = if is_local && self.rearranges { ", but a copy to other addresses inside devices" } else { "" };
        write!(f, "{}{copy}", steps.join(", then "))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::axis::{GPUID_X, GPUID_Y};

    const SHARDED: &str = "S[(4,512):(1@gpuid_x,1@m)]";
    const REPLICATED: &str = "S[2048:1@m] + R[4:1@gpuid_x]";
    const EVERYWHERE: &str = "S[64:1@m] + R[(2,2):(1@gpuid_x,1@gpuid_y)]";

    fn line() -> Mesh {
        Mesh::new([(GPUID_X, 4)]).unwrap()
    }

    fn square() -> Mesh {
        Mesh::new([(GPUID_X, 2), (GPUID_Y, 2)]).unwrap()
    }

    fn layout(text: &str) -> TileLayout {
        text.parse().unwrap()
    }

    /// The summand of an element at a position of the partial axes.
    fn summand(element: i64, position: &[i64]) -> i64 {
        position.iter().fold(element + 1, |value, p| value * 10 + p)
    }

    fn partial_position(mesh: &Mesh, device: usize, partial: &[Axis]) -> Vec<i64> {
        let axes = mesh.axes().iter().zip(mesh.coordinate(device).unwrap());
        axes.filter(|((axis, _), _)| partial.contains(axis)).map(|(_, position)| position).collect()
    }

    /// What each device holds: summands at its position of the partial axes.
    fn table(mesh: &Mesh, layout: &TileLayout, partial: &[Axis]) -> Vec<BTreeMap<i64, i64>> {
        let mut table = vec![BTreeMap::new(); mesh.devices()];
        for element in 0..layout.size() {
            for device in mesh.devices_of(layout, element).unwrap() {
                table[device].insert(element, summand(element, &partial_position(mesh, device, partial)));
            }
        }
        table
    }

    /// The whole value of an element: the sum of all different summands that some device holds.
    fn whole(mesh: &Mesh, from: &TileLayout, element: i64, partial: &[Axis]) -> i64 {
        let holders = mesh.devices_of(from, element).unwrap();
        let positions: Vec<Vec<i64>> = holders.into_iter().map(|d| partial_position(mesh, d, partial)).collect();
        let distinct: BTreeSet<Vec<i64>> = positions.into_iter().collect();
        distinct.iter().map(|position| summand(element, position)).sum()
    }

    /// Makes the plan, carries it out, and compares every device with what it should hold.
    fn plan(mesh: &Mesh, from: &str, to: &str, partial: &[Axis]) -> CollectivePlan {
        let (from, to) = (layout(from), layout(to));
        let plan = mesh.collective(&from, &to, 16, partial).unwrap();
        let end = plan.execute(&table(mesh, &from, partial)).unwrap();
        for (device, held) in end.iter().enumerate() {
            let wanted = (0..to.size()).filter(|element| mesh.devices_of(&to, *element).unwrap().contains(&device));
            let wanted: BTreeMap<i64, i64> = wanted.map(|e| (e, whole(mesh, &from, e, partial))).collect();
            assert_eq!(*held, wanted, "device {device}: {from} to {to}");
        }
        plan
    }

    #[test]
    fn sharded_to_replicated_is_an_all_gather() {
        let said = plan(&line(), SHARDED, REPLICATED, &[]).to_string();
        assert_eq!(said, "all-gather over gpuid_x, 3 x 1024 bytes received per device");
    }

    #[test]
    fn partial_sums_to_shards_are_a_reduce_scatter() {
        let said = plan(&line(), REPLICATED, SHARDED, &[GPUID_X]).to_string();
        assert_eq!(said, "reduce-scatter over gpuid_x, 3 x 1024 bytes received per device");
    }

    #[test]
    fn partial_sums_to_replicas_are_an_all_reduce_with_the_bytes_of_a_ring() {
        let plan = plan(&line(), REPLICATED, REPLICATED, &[GPUID_X]);
        assert_eq!(plan.to_string(), "all-reduce over gpuid_x, 3 x 2048 bytes received per device");
        let ring = 2 * 3 * 4096 / 4;
        assert!((0..4).all(|device| plan.received(device) == ring && plan.sent(device) == ring));
    }

    #[test]
    fn partial_sums_to_one_device_are_a_reduce() {
        let said = plan(&line(), REPLICATED, "S[2048:1@m] + 2@gpuid_x", &[GPUID_X]).to_string();
        assert_eq!(said, "reduce over gpuid_x, 3 x 4096 bytes received by one device");
    }

    #[test]
    fn row_shards_to_column_shards_are_an_all_to_all() {
        let rows = "S[(4,2,8):(1@gpuid_x,8@m,1@m)]";
        let columns = "S[(8,4,2):(2@m,1@gpuid_x,1@m)]";
        let said = plan(&line(), rows, columns, &[]).to_string();
        assert_eq!(said, "all-to-all over gpuid_x, 3 x 8 bytes received per device");
    }

    #[test]
    fn one_device_to_all_is_a_broadcast() {
        let plan = plan(&square(), "S[64:1@m]", EVERYWHERE, &[]);
        let said = "broadcast over gpuid_x, gpuid_y, 1 x 128 bytes received by each of 3 devices";
        assert_eq!((plan.to_string().as_str(), plan.sent(0), plan.received(0)), (said, 384, 0));
    }

    #[test]
    fn the_same_distribution_needs_nothing_or_a_local_copy() {
        assert_eq!(plan(&line(), SHARDED, SHARDED, &[]).to_string(), "none, no traffic");
        let moved = plan(&line(), SHARDED, "S[(4,512):(1@gpuid_x,1@m)] + 64@m", &[]);
        assert_eq!(moved.to_string(), "none, no traffic, but a copy to other addresses inside devices");
    }

    #[test]
    fn many_copies_on_one_device_are_compared_in_order() {
        let copied = line().collective(&layout("S[1:1] + R[262144:1]"), &layout("S[1:1] + R[262144:1] + 1"), 8, &[]);
        assert!(copied.unwrap().rearranges);
    }

    #[test]
    fn replicated_to_sharded_only_drops() {
        let plan = plan(&line(), REPLICATED, "S[(4,512):(1@gpuid_x,1@m)]", &[]);
        assert_eq!((plan.steps[0].collective, plan.received(3)), (Collective::Slice, 0));
    }

    #[test]
    fn shard_and_replica_gather_in_one_group_per_copy() {
        let plan = plan(&square(), "S[(2,4,8):(1@gpuid_y,8@m,1@m)] + R[2:1@gpuid_x]", EVERYWHERE, &[]);
        assert_eq!(plan.to_string(), "all-gather over gpuid_y, 1 x 64 bytes received per device");
        assert_eq!(plan.steps[0].groups, [[0, 1], [2, 3]]);
    }

    #[test]
    fn a_shard_with_an_offset_is_permuted_or_broadcast() {
        let at = |x: i64| format!("S[(2,4,8):(1@gpuid_y,8@m,1@m)] + {x}@gpuid_x");
        let moved = plan(&square(), &at(1), &at(0), &[]);
        assert_eq!(moved.to_string(), "collective-permute over gpuid_x, 1 x 64 bytes received by each of 2 devices");
        let copied = plan(&square(), &at(1), "S[(2,4,8):(1@gpuid_y,8@m,1@m)] + R[2:1@gpuid_x]", &[]);
        assert_eq!(copied.to_string(), "broadcast over gpuid_x, 1 x 64 bytes received by each of 2 devices");
    }

    #[test]
    fn two_devices_that_swap_all_they_have_are_a_permutation() {
        let mesh = Mesh::new([(GPUID_X, 2)]).unwrap();
        let swapped = plan(&mesh, "S[(2,8):(1@gpuid_x,1@m)]", "S[(2,8):(-1@gpuid_x,1@m)] + 1@gpuid_x", &[]);
        assert_eq!(swapped.to_string(), "collective-permute over gpuid_x, 1 x 16 bytes received per device");
    }

    #[test]
    fn sums_that_must_spread_further_take_a_second_step() {
        let plan = plan(&square(), "S[(2,32):(1@gpuid_y,1@m)] + R[2:1@gpuid_x]", EVERYWHERE, &[GPUID_X]);
        assert_eq!(
            plan.to_string(),
            "reduce-scatter over gpuid_x, 1 x 32 bytes received per device, \
             then all-gather over gpuid_x, gpuid_y, 3 x 32 bytes received per device"
        );
    }

    #[test]
    fn parts_of_bytes_are_rounded_up_per_message() {
        let mesh = Mesh::new([(GPUID_X, 2)]).unwrap();
        let (from, to) = (layout("S[(2,3):(1@gpuid_x,1@m)]"), layout("S[6:1@m] + R[2:1@gpuid_x]"));
        assert_eq!(mesh.collective(&from, &to, 4, &[]).unwrap().received(0), 2);
    }

    #[test]
    fn every_pair_of_distributions_executes_and_receives_what_each_device_lacks() {
        let all = [
            "S[(2,4,8):(1@gpuid_y,8@m,1@m)] + R[2:1@gpuid_x]",
            "S[(2,2,16):(1@gpuid_x,1@gpuid_y,1@m)]",
            "S[(8,2,2,2):(2@m,1@gpuid_x,1@m,1@gpuid_y)]",
            "S[(2,32):(1@gpuid_y,1@m)] + 1@gpuid_x",
            "S[(2,32):(1@gpuid_x,1@m)] + R[2:1@gpuid_y] + 5@m",
            "S[(32,2):(1@m,-1@gpuid_y)] + 1@gpuid_y",
            "S[64:1@m] + 1@gpuid_y",
            "S[64:1@m] + R[2:1@gpuid_x]",
            EVERYWHERE,
        ];
        let mesh = square();
        for (from, to) in all.iter().flat_map(|from| all.iter().map(move |to| (*from, *to))) {
            let copied = plan(&mesh, from, to, &[]);
            let (old, new) = (table(&mesh, &layout(from), &[]), table(&mesh, &layout(to), &[]));
            for device in 0..4 {
                let lacking = new[device].keys().filter(|element| !old[device].contains_key(element)).count();
                assert_eq!(copied.received(device), 2 * lacking as i64, "device {device}: {from} to {to}");
            }
            let sent: i64 = (0..4).map(|device| copied.sent(device)).sum();
            assert_eq!(sent, (0..4).map(|device| copied.received(device)).sum::<i64>());
            for partial in [vec![GPUID_X], vec![GPUID_Y], vec![GPUID_X, GPUID_Y]] {
                plan(&mesh, from, to, &partial);
            }
        }
    }

    #[test]
    fn wrong_questions_are_errors() {
        let ask = |from: &str, to: &str, bits, partial: &[Axis]| {
            line().collective(&layout(from), &layout(to), bits, partial).unwrap_err().to_string()
        };
        assert_eq!(ask("S[8:1]", "S[4:1]", 16, &[]), "the layouts have different sizes, 8 and 4");
        assert_eq!(ask("S[8:1]", "S[8:1]", 0, &[]), "an element of 0 bits");
        let said = "partial sums over gpuid_y, which the mesh (4) of (gpuid_x) lacks";
        assert_eq!(ask("S[8:1]", "S[8:1]", 16, &[GPUID_Y]), said);
        assert_eq!(
            line().collective(&layout("S[8388608:1]"), &layout("S[8388608:1]"), 8, &[]).unwrap_err().code(),
            "L0111"
        );
    }
}
