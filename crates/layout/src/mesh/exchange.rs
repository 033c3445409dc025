//! One exchange without sums: which device sends which elements to which, and the pattern that this forms.

use std::collections::{BTreeMap, BTreeSet};

use super::Mesh;
use super::messages::{Messages, axes, groups};
use super::runs::Run;
use super::step::{Collective, Step, Transfer};
use crate::error::LayoutError;

/// The step that gives every device the elements that it lacks.
pub(super) fn exchange(mesh: &Mesh, runs: &[Run]) -> Result<Step, LayoutError> {
    let transfers = fetch(mesh, runs)?;
    let groups = groups(&transfers);
    let collective = if transfers.is_empty() {
        if runs.iter().all(|run| run.before == run.after) { Collective::None } else { Collective::Slice }
    } else {
        classify(runs, &transfers, &groups)
    };
    Ok(Step { collective, axes: axes(mesh, &transfers), groups, transfers })
}

/// Each element that a device lacks comes from the nearest holder; if several are equally near, the receivers of the
/// element use them in turn, so that the copies share the work.
fn fetch(mesh: &Mesh, runs: &[Run]) -> Result<Vec<Transfer>, LayoutError> {
    let mut messages = Messages::default();
    let mut points = 0i64;
    for run in runs {
        let missing = run.missing();
        points = points.saturating_add((missing.len() as i64).saturating_mul(run.before.len() as i64));
        if points > crate::ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points });
        }
        for (turn, &to) in missing.iter().enumerate() {
            let near = nearest(mesh, &run.before, to);
            messages.add(near[turn % near.len()], to, run.elements.clone())?;
        }
    }
    Ok(messages.into_transfers(false))
}

/// The holders that differ from `to` on the fewest axes; there is at least one holder.
fn nearest(mesh: &Mesh, holders: &[usize], to: usize) -> Vec<usize> {
    let distance = |holder: &usize| mesh.differing(*holder, to).count();
    let least = holders.iter().map(distance).min();
    holders.iter().copied().filter(|holder| Some(distance(holder)) == least).collect()
}

/// The devices of one group that hold some elements, before and after; both sorted.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord)]
struct GroupDistribution {
    /// Members of the group that hold the elements before the exchange, sorted.
    before: Vec<usize>,
    /// Members of the group that must hold them afterwards, sorted.
    after: Vec<usize>,
}

impl GroupDistribution {
    fn moves(&self) -> bool {
        self.after.iter().any(|device| self.before.binary_search(device).is_err())
    }
}

/// The messages inside one group, and the devices of the group that hold elements before and after.
struct Traffic<'a> {
    /// Devices of the group, sorted.
    members: &'a [usize],
    /// The messages between members.
    transfers: Vec<&'a Transfer>,
    /// The distinct distributions of elements over the members.
    parts: BTreeSet<GroupDistribution>,
}

fn classify(runs: &[Run], transfers: &[Transfer], groups: &[Vec<usize>]) -> Collective {
    let traffic = traffic(runs, transfers, groups);
    if traffic.iter().all(Traffic::is_broadcast) {
        Collective::Broadcast
    } else if traffic.iter().all(Traffic::is_gather) {
        Collective::AllGather
    } else if traffic.iter().all(Traffic::is_all_to_all) {
        Collective::AllToAll
    } else if is_permutation(transfers) {
        Collective::CollectivePermute
    } else {
        Collective::Send
    }
}

/// No device sends twice or receives twice, and all messages are equally long.
fn is_permutation(transfers: &[Transfer]) -> bool {
    let senders: BTreeSet<usize> = transfers.iter().map(|transfer| transfer.from).collect();
    let receivers: BTreeSet<usize> = transfers.iter().map(|transfer| transfer.to).collect();
    let even = transfers.windows(2).all(|pair| pair[0].count() == pair[1].count());
    even && senders.len() == transfers.len() && receivers.len() == transfers.len()
}

fn traffic<'a>(runs: &[Run], transfers: &'a [Transfer], groups: &'a [Vec<usize>]) -> Vec<Traffic<'a>> {
    let mut traffic: Vec<Traffic<'a>> =
        groups.iter().map(|members| Traffic { members, transfers: Vec::new(), parts: BTreeSet::new() }).collect();
    let group_of: BTreeMap<usize, usize> =
        groups.iter().enumerate().flat_map(|(at, members)| members.iter().map(move |device| (*device, at))).collect();
    for transfer in transfers {
        traffic[group_of[&transfer.from]].transfers.push(transfer);
    }
    for run in runs {
        for (group, part) in parts(run, &group_of) {
            traffic[group].parts.insert(part);
        }
    }
    traffic
}

/// The part of a run inside each group that it touches.
fn parts(run: &Run, group_of: &BTreeMap<usize, usize>) -> BTreeMap<usize, GroupDistribution> {
    let mut parts: BTreeMap<usize, GroupDistribution> = BTreeMap::new();
    for device in run.before.iter() {
        if let Some(&group) = group_of.get(device) {
            parts.entry(group).or_default().before.push(*device);
        }
    }
    for device in run.after.iter() {
        if let Some(&group) = group_of.get(device) {
            parts.entry(group).or_default().after.push(*device);
        }
    }
    parts
}

impl Traffic<'_> {
    /// One device sends the same elements to all receivers, and these elements end up on several devices.
    fn is_broadcast(&self) -> bool {
        let Some(first) = self.transfers.first() else { return false };
        let same = self.transfers.iter().all(|t| t.from == first.from && t.elements == first.elements);
        same && self.parts.iter().all(|part| !part.moves() || part.after.len() > 1)
    }

    /// All members end up with everything that any of them held.
    fn is_gather(&self) -> bool {
        self.parts.iter().all(|part| part.after.len() == self.members.len())
    }

    /// Elements are on one device before and after, and every member sends to every other. Two devices that only swap
    /// everything they hold are a permutation, not an all-to-all.
    fn is_all_to_all(&self) -> bool {
        let n = self.members.len();
        let single = self.parts.iter().all(|part| part.before.len() == 1 && part.after.len() == 1);
        let keeps = self.parts.iter().any(|part| !part.moves());
        single && self.transfers.len() == n * (n - 1) && (n > 2 || keeps)
    }
}
