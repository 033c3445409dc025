//! One exchange without sums: which device sends which elements to which, and the pattern that this forms.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use super::placement::{Placement, devices};
use super::{Collective, Mesh, Step, Transfer, problem};
use crate::axis::Axis;
use crate::error::LayoutError;

/// Maximum number of runs of elements in a plan.
const MOST_RUNS: usize = 1 << 20;
/// Maximum number of pairs of devices that a step may connect: 1024 devices, each with every other.
const MOST_PAIRS: usize = 1 << 20;

/// Consecutive elements with the same devices before and the same devices after. Runs share their lists of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Flat indices of the elements.
    pub(super) elements: Range<i64>,
    /// Devices that hold the elements before the exchange, sorted.
    pub(super) before: Rc<[usize]>,
    /// Devices that must hold the elements afterwards, sorted.
    pub(super) after: Rc<[usize]>,
}

impl Run {
    fn missing(&self) -> Vec<usize> {
        self.after.iter().copied().filter(|device| self.before.binary_search(device).is_err()).collect()
    }
}

/// Lists of devices, each stored once: a distribution has few distinct lists, however many runs it has.
#[derive(Default)]
struct Lists(BTreeSet<Rc<[usize]>>);

impl Lists {
    fn shared(&mut self, devices: Vec<usize>) -> Rc<[usize]> {
        if let Some(known) = self.0.get(&devices[..]) {
            return Rc::clone(known);
        }
        let list: Rc<[usize]> = devices.into();
        self.0.insert(Rc::clone(&list));
        list
    }
}

/// The elements of both distributions in runs. Error: more than [`MOST_RUNS`].
pub(super) fn runs(before: &Placement, after: &Placement) -> Result<Vec<Run>, LayoutError> {
    let mut lists = Lists::default();
    let mut runs: Vec<Run> = Vec::new();
    for (element, (old, new)) in (0..).zip(before.elements().zip(after.elements())) {
        let (old, new) = (devices(old), devices(new));
        if let Some(run) = runs.last_mut()
            && *run.before == old[..]
            && *run.after == new[..]
        {
            run.elements.end = element + 1;
            continue;
        }
        if runs.len() == MOST_RUNS {
            let said = format!("the devices change more than {MOST_RUNS} times from element to element");
            return Err(problem(said, "fewer changes: plan one period of the distribution and repeat it"));
        }
        runs.push(Run { elements: element..element + 1, before: lists.shared(old), after: lists.shared(new) });
    }
    Ok(runs)
}

/// The elements that each device holds at the end.
pub(super) fn held_after(mesh: &Mesh, runs: &[Run]) -> Vec<Vec<Range<i64>>> {
    let mut held = vec![Vec::new(); mesh.devices()];
    for run in runs {
        for &device in run.after.iter() {
            push(&mut held[device], run.elements.clone());
        }
    }
    held
}

/// Appends a range that begins at or after the end of the last one; the two are merged if they touch.
fn push(ranges: &mut Vec<Range<i64>>, range: Range<i64>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

/// Messages, gathered per pair of devices.
#[derive(Default)]
pub(super) struct Messages(BTreeMap<(usize, usize), Vec<Range<i64>>>);

impl Messages {
    /// Error: more than [`MOST_PAIRS`] pairs of devices.
    pub(super) fn add(&mut self, from: usize, to: usize, elements: Range<i64>) -> Result<(), LayoutError> {
        push(self.0.entry((from, to)).or_default(), elements);
        if self.0.len() > MOST_PAIRS {
            let said = format!("more than {MOST_PAIRS} messages between devices");
            return Err(problem(said, "fewer devices that exchange: if several groups do the same, plan for one"));
        }
        Ok(())
    }

    pub(super) fn into_transfers(self, adds: bool) -> Vec<Transfer> {
        self.0.into_iter().map(|((from, to), elements)| Transfer { from, to, elements, adds }).collect()
    }
}

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

/// The devices of one group that hold some elements, before and after; both sorted.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// Members of the group that hold the elements before the exchange, sorted.
    before: Vec<usize>,
    /// Members of the group that must hold them afterwards, sorted.
    after: Vec<usize>,
}

impl Part {
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
    parts: BTreeSet<Part>,
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
        if let Some(&group) = group_of.get(&transfer.from) {
            traffic[group].transfers.push(transfer);
        }
    }
    for run in runs {
        for (group, part) in parts(run, &group_of) {
            traffic[group].parts.insert(part);
        }
    }
    traffic
}

/// The part of a run inside each group that it touches.
fn parts(run: &Run, group_of: &BTreeMap<usize, usize>) -> BTreeMap<usize, Part> {
    let mut parts: BTreeMap<usize, Part> = BTreeMap::new();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::GPUID_X;

    fn runs_of(text: &str) -> Result<usize, LayoutError> {
        let mesh = Mesh::new([(GPUID_X, 2)]).unwrap();
        let placement = || Placement::new(&mesh, &text.parse().unwrap());
        runs(&placement()?, &placement()?).map(|runs| runs.len())
    }

    #[test]
    fn elements_that_follow_each_other_on_a_device_are_one_run() {
        let layouts = ["S[(2,8):(1@gpuid_x,1@m)]", "S[(8,2):(1@m,1@gpuid_x)]", "S[16:1@m] + R[2:1@gpuid_x]"];
        assert_eq!(layouts.map(|text| runs_of(text).unwrap()), [2, 16, 1]);
    }

    #[test]
    fn more_runs_than_are_planned_with_are_refused() {
        assert_eq!(runs_of("S[(524288,2):(1@m,1@gpuid_x)]"), Ok(MOST_RUNS));
        let said = runs_of("S[(524289,2):(1@m,1@gpuid_x)]").unwrap_err().to_string();
        assert_eq!(said, "the devices change more than 1048576 times from element to element");
    }

    #[test]
    fn more_messages_than_are_planned_with_are_refused() {
        let mesh = Mesh::new([(GPUID_X, 1025)]).unwrap();
        let layout = |text: &str| text.parse().unwrap();
        let (from, to) = (layout("S[1025:1@gpuid_x]"), layout("S[1025:1@m] + R[1025:1@gpuid_x]"));
        assert_eq!(mesh.collective(&from, &to, 16, &[]).unwrap_err().code(), "L0115");
    }
}
