//! Partial sums: which devices add up which elements.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use super::messages::{Messages, axes, groups};
use super::runs::Run;
use super::step::{Collective, Step};
use super::{Mesh, problem};
use crate::axis::Axis;
use crate::error::LayoutError;

/// The step that adds partial sums up, and where the sums are afterwards; `None` if no element has several summands.
///
/// The holders of an element that agree on all other axes are one *class*: together they hold every summand. Each
/// class with devices that need the sum adds up on those, dividing the elements evenly among them. If no class has such
/// a device, the first class adds up, dividing the elements among all its devices.
pub(super) fn reduce(mesh: &Mesh, partial: &[Axis], runs: &[Run]) -> Result<Option<(Step, Vec<Run>)>, LayoutError> {
    if partial.is_empty() {
        return Ok(None);
    }
    if let Some(axis) = partial.iter().find(|axis| mesh.axes().iter().all(|(own, _)| own != *axis)) {
        let axes: Vec<&str> = mesh.axes().iter().map(|(axis, _)| axis.name()).collect();
        return Err(problem(format!("partial sums over {axis}, which {mesh} lacks"), axes.join(", ")));
    }
    let mut shares = RunTotals::of(runs);
    let mut messages = Messages::default();
    let mut summed = Vec::new();
    for run in runs {
        let classes = classes(mesh, partial, run);
        if classes.iter().all(|members| members.len() == 1) {
            summed.push(run.clone());
            continue;
        }
        let adding = summing_classes(classes, &run.after);
        for (elements, owners) in shares.divide(run, &adding) {
            for (class, owner) in adding.iter().zip(&owners) {
                for from in class.members.iter().filter(|member| *member != owner) {
                    messages.add(*from, *owner, elements.clone())?;
                }
            }
            let before: BTreeSet<usize> = owners.into_iter().collect();
            summed.push(Run { elements, before: before.into_iter().collect(), after: Rc::clone(&run.after) });
        }
    }
    let transfers = messages.into_transfers(true);
    if transfers.is_empty() {
        return Ok(None);
    }
    let groups = groups(&transfers);
    let receivers: BTreeSet<usize> = transfers.iter().map(|transfer| transfer.to).collect();
    let collective = if receivers.len() == groups.len() { Collective::Reduce } else { Collective::ReduceScatter };
    Ok(Some((Step { collective, axes: axes(mesh, &transfers), groups, transfers }, summed)))
}

/// The holders of one run, grouped so that members of a class differ only on the partial axes. A replica moves on one
/// axis, so the holders are a product of positions per axis and every class has the same summands.
fn classes(mesh: &Mesh, partial: &[Axis], run: &Run) -> Vec<Vec<usize>> {
    let mut classes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &device in run.before.iter() {
        let summand: usize = mesh
            .strides()
            .filter(|(axis, _, _)| partial.contains(axis))
            .map(|(_, extent, stride)| (device as i64 / stride % extent * stride) as usize)
            .sum();
        classes.entry(device - summand).or_default().push(device);
    }
    classes.into_values().collect()
}

/// A class that adds up, and those of its members that receive the sums.
struct Class {
    /// All devices of the class; together they hold every summand.
    members: Vec<usize>,
    /// The members that receive the sums.
    owners: Vec<usize>,
}

fn summing_classes(classes: Vec<Vec<usize>>, after: &[usize]) -> Vec<Class> {
    let needing = |members: &Vec<usize>| -> Vec<usize> {
        members.iter().copied().filter(|member| after.binary_search(member).is_ok()).collect()
    };
    let mut adding: Vec<Class> =
        classes.iter().map(|members| Class { members: members.clone(), owners: needing(members) }).collect();
    adding.retain(|class| !class.owners.is_empty());
    if adding.is_empty() {
        adding.extend(classes.into_iter().take(1).map(|members| Class { owners: members.clone(), members }));
    }
    adding
}

/// Counts over all runs with the same devices before and the same devices after.
struct RunTotal {
    /// Number of elements.
    total: i64,
    /// How many of them have been assigned to owners so far.
    divided: i64,
}

/// Divides elements evenly among owners, in order; all runs on the same devices are divided together.
struct RunTotals<'a>(BTreeMap<(&'a [usize], &'a [usize]), RunTotal>);

impl<'a> RunTotals<'a> {
    fn of(runs: &'a [Run]) -> RunTotals<'a> {
        let mut shares = BTreeMap::new();
        for run in runs {
            let share = shares.entry((&run.before[..], &run.after[..])).or_insert(RunTotal { total: 0, divided: 0 });
            share.total += run.elements.end - run.elements.start;
        }
        RunTotals(shares)
    }

    /// The pieces of a run, each with its owner in each class.
    fn divide(&mut self, run: &'a Run, classes: &[Class]) -> Vec<(Range<i64>, Vec<usize>)> {
        let length = run.elements.end - run.elements.start;
        let whole = RunTotal { total: length, divided: 0 };
        let share = self.0.entry((&run.before[..], &run.after[..])).or_insert(whole);
        let (total, from) = (share.total, share.divided);
        share.divided += length;
        let mut cuts = BTreeSet::from([from, from + length]);
        for owners in classes.iter().map(|class| class.owners.len() as i64) {
            let first_of = |owner: i64| (owner * total + owners - 1) / owners;
            cuts.extend((1..owners).map(first_of).filter(|cut| (from..from + length).contains(cut)));
        }
        let cuts: Vec<i64> = cuts.into_iter().collect();
        let owner = |class: &Class, at: i64| class.owners[(at * class.owners.len() as i64 / total) as usize];
        let piece = |pair: &[i64]| {
            let elements = run.elements.start + pair[0] - from..run.elements.start + pair[1] - from;
            (elements, classes.iter().map(|class| owner(class, pair[0])).collect())
        };
        cuts.windows(2).map(piece).collect()
    }
}
