//! Collectives over meshes: the final contents of every device, the bytes that it receives, and the name of each step.

use std::collections::{BTreeMap, BTreeSet};

use tilewright::layout::axis::{GPUID_X, GPUID_Y, M};
use tilewright::layout::mesh::{Collective, CollectivePlan, Mesh, Step};
use tilewright::layout::{Axis, Coord, Iter, TileLayout};

use super::random::{Rng, built, factors, position, same, turned};

/// The number of elements of a tensor, divisible by the size of every mesh.
const TENSOR: i64 = 48;
const BITS: i64 = 16;

/// A tensor over a mesh with these extents: on each axis it is split, replicated, or at one position.
fn distributed(rng: &mut Rng, mesh: [i64; 2]) -> TileLayout {
    let (mut shard, mut replica, mut offset) = (Vec::new(), Vec::new(), Vec::new());
    let mut left = TENSOR;
    for (axis, extent) in [(GPUID_X, mesh[0]), (GPUID_Y, mesh[1])] {
        match rng.below(4) {
            0 | 1 if extent > 1 => {
                let is_half = extent == 4 && rng.percent(30);
                let parts = if is_half { 2 } else { extent };
                let stride = if is_half { 1 + rng.below(2) } else { 1 };
                left /= parts;
                shard.push(turned(rng, Iter { extent: parts, stride, axis }, &mut offset));
            }
            2 => replica.push(Iter { extent, stride: 1, axis }),
            _ => offset.push((axis, rng.below(extent))),
        }
    }
    let mut next = 1;
    for extent in factors(rng, left) {
        shard.push(Iter::memory(extent, next));
        next *= extent;
    }
    rng.shuffle(&mut shard);
    if rng.percent(10) {
        replica.push(Iter::memory(2, next));
    }
    if rng.percent(20) {
        offset.push((M, rng.below(9)));
    }
    built(shard, replica, offset)
}

/// The devices of every element.
fn holders(mesh: [i64; 2], layout: &TileLayout) -> Vec<BTreeSet<usize>> {
    let device = |place: &Coord| (position(place, &GPUID_X) * mesh[1] + position(place, &GPUID_Y)) as usize;
    let places = (0..layout.size()).map(|element| layout.apply(element).expect("a small tensor"));
    places.map(|places| places.iter().map(device).collect()).collect()
}

/// The position of a device on the partial axes: devices at different positions hold different summands.
fn summand_of(mesh: [i64; 2], device: usize, partial: &[Axis]) -> i64 {
    let [x, y] = [device as i64 / mesh[1], device as i64 % mesh[1]];
    let on = |axis: &Axis, at: i64| if partial.contains(axis) { at } else { 0 };
    on(&GPUID_X, x) * mesh[1] + on(&GPUID_Y, y)
}

fn value_of(element: usize, summand: i64) -> i64 {
    1000 * (element as i64 + 1) + 7 * summand * summand + summand
}

/// The elements of each device, with values.
type Memories = Vec<BTreeMap<i64, i64>>;

/// Both sides of an exchange, according to `apply`.
struct Exchange {
    before: Memories,
    after: Memories,
}

impl Exchange {
    fn new(mesh: [i64; 2], from: &TileLayout, to: &TileLayout, partial: &[Axis]) -> Exchange {
        let devices = (mesh[0] * mesh[1]) as usize;
        let (mut before, mut after) = (vec![BTreeMap::new(); devices], vec![BTreeMap::new(); devices]);
        for (element, (old, new)) in holders(mesh, from).into_iter().zip(holders(mesh, to)).enumerate() {
            let summands: BTreeSet<i64> = old.iter().map(|device| summand_of(mesh, *device, partial)).collect();
            let sum: i64 = summands.iter().map(|summand| value_of(element, *summand)).sum();
            for device in old {
                before[device].insert(element as i64, value_of(element, summand_of(mesh, device, partial)));
            }
            for device in new {
                after[device].insert(element as i64, sum);
            }
        }
        Exchange { before, after }
    }

    /// Executes a plan transfer by transfer. Returns the bytes that each device received.
    fn carry_out(&self, plan: &CollectivePlan) -> Result<Vec<i64>, String> {
        let mut now = self.before.clone();
        let mut received = vec![0; now.len()];
        for step in &plan.steps {
            for transfer in &step.transfers {
                for element in transfer.elements.iter().cloned().flatten() {
                    let sent = *now[transfer.from].get(&element).ok_or("a device sends what it lacks")?;
                    let own = now[transfer.to].get(&element).copied().filter(|_| transfer.adds).unwrap_or(0);
                    now[transfer.to].insert(element, own + sent);
                    received[transfer.to] += BITS / 8;
                }
            }
        }
        for (device, wanted) in self.after.iter().enumerate() {
            let kept: BTreeMap<i64, i64> = wanted.keys().filter_map(|e| Some((*e, *now[device].get(e)?))).collect();
            same(&format!("device {device}"), &kept, wanted)?;
        }
        Ok(received)
    }

    fn check(&self, plan: &CollectivePlan, partial: &[Axis]) -> Result<(), String> {
        let end = plan.execute(&self.before).map_err(|e| e.to_string())?;
        same("execute", &end, &self.after)?;
        let received = self.carry_out(plan)?;
        for (device, bytes) in received.iter().enumerate() {
            same(&format!("bytes of device {device}"), plan.received(device), *bytes)?;
            let lacking = self.after[device].keys().filter(|element| !self.before[device].contains_key(element));
            let needed = lacking.count() as i64 * BITS / 8;
            if partial.is_empty() {
                same(&format!("bytes that device {device} needs"), *bytes, needed)?;
            }
        }
        plan.steps.iter().try_for_each(|step| self.check_name(step))
    }

    /// Checks that a step is the collective that its name says.
    fn check_name(&self, step: &Step) -> Result<(), String> {
        let stays = self.before.iter().zip(&self.after).all(|(old, new)| old.keys().eq(new.keys()));
        let senders: BTreeSet<usize> = step.transfers.iter().map(|transfer| transfer.from).collect();
        let receivers: BTreeSet<usize> = step.transfers.iter().map(|transfer| transfer.to).collect();
        let (count, groups) = (step.transfers.len(), &step.groups);
        let same_end = |group: &Vec<usize>| group.iter().all(|d| self.after[*d].keys().eq(self.after[group[0]].keys()));
        let is_right = match step.collective {
            Collective::None => count == 0 && stays,
            Collective::Slice => count == 0 && !stays,
            Collective::Broadcast => senders.len() == groups.len(),
            Collective::AllGather => count > 0 && groups.iter().all(same_end),
            Collective::AllToAll => count == groups.iter().map(|group| group.len() * (group.len() - 1)).sum::<usize>(),
            Collective::Reduce => receivers.len() == groups.len(),
            Collective::CollectivePermute => senders.len() == count && receivers.len() == count,
            Collective::ReduceScatter | Collective::AllReduce | Collective::Send => count > 0,
        };
        if is_right { Ok(()) } else { Err(format!("not a {}: {:?}", step.collective.name(), step.transfers)) }
    }
}

#[test]
fn collectives_over_random_meshes_leave_on_every_device_what_it_needs() {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for case in 0..600 {
        let mut rng = Rng::of_case(5, case);
        let extents = [[2, 2], [2, 3], [4, 1]][case as usize % 3];
        let from = distributed(&mut rng, extents);
        let to = if rng.percent(20) { from.clone() } else { distributed(&mut rng, extents) };
        let choices = [vec![], vec![], vec![GPUID_X], vec![GPUID_Y], vec![GPUID_X, GPUID_Y]];
        let partial = rng.pick(&choices);
        let mesh = Mesh::new([(GPUID_X, extents[0]), (GPUID_Y, extents[1])]).expect("a small mesh");
        let told = format!("{from} to {to} over {mesh}, partial {partial:?}");
        let plan = mesh.collective(&from, &to, BITS, &partial).unwrap_or_else(|e| panic!("{told}: {e}"));
        let exchange = Exchange::new(extents, &from, &to, &partial);
        exchange.check(&plan, &partial).unwrap_or_else(|e| panic!("{told}: {e}\n{plan}"));
        for step in &plan.steps {
            *names.entry(step.collective.name()).or_insert(0) += 1;
        }
    }
    println!("{names:?}");
    assert_eq!(names.len(), 10, "{names:?}");
}
