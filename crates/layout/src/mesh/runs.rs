//! Elements of two distributions, gathered in runs on the same devices.

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use super::placement::{DevicePlacement, devices};
use super::{Mesh, problem};
use crate::error::LayoutError;

/// Maximum number of runs of elements in a plan.
const MAX_RUNS: usize = 1 << 20;

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
    pub(super) fn missing(&self) -> Vec<usize> {
        self.after.iter().copied().filter(|device| self.before.binary_search(device).is_err()).collect()
    }
}

/// Lists of devices, each stored once: a distribution has few distinct lists, however many runs it has.
#[derive(Default)]
struct DeviceListInterner(BTreeSet<Rc<[usize]>>);

impl DeviceListInterner {
    fn intern(&mut self, devices: Vec<usize>) -> Rc<[usize]> {
        if let Some(known) = self.0.get(&devices[..]) {
            return Rc::clone(known);
        }
        let list: Rc<[usize]> = devices.into();
        self.0.insert(Rc::clone(&list));
        list
    }
}

/// The elements of both distributions in runs. Error: more than [`MAX_RUNS`].
pub(super) fn runs(before: &DevicePlacement, after: &DevicePlacement) -> Result<Vec<Run>, LayoutError> {
    let mut lists = DeviceListInterner::default();
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
        if runs.len() == MAX_RUNS {
            let said = format!("the devices change more than {MAX_RUNS} times from element to element");
            return Err(problem(said, "fewer changes: plan one period of the distribution and repeat it"));
        }
        runs.push(Run { elements: element..element + 1, before: lists.intern(old), after: lists.intern(new) });
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
pub(super) fn push(ranges: &mut Vec<Range<i64>>, range: Range<i64>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::GPUID_X;

    fn runs_of(text: &str) -> Result<usize, LayoutError> {
        let mesh = Mesh::new([(GPUID_X, 2)]).unwrap();
        let placement = || DevicePlacement::new(&mesh, &text.parse().unwrap());
        runs(&placement()?, &placement()?).map(|runs| runs.len())
    }

    #[test]
    fn elements_that_follow_each_other_on_a_device_are_one_run() {
        let layouts = ["S[(2,8):(1@gpuid_x,1@m)]", "S[(8,2):(1@m,1@gpuid_x)]", "S[16:1@m] + R[2:1@gpuid_x]"];
        assert_eq!(layouts.map(|text| runs_of(text).unwrap()), [2, 16, 1]);
    }

    #[test]
    fn more_runs_than_are_planned_with_are_refused() {
        assert_eq!(runs_of("S[(524288,2):(1@m,1@gpuid_x)]"), Ok(MAX_RUNS));
        let said = runs_of("S[(524289,2):(1@m,1@gpuid_x)]").unwrap_err().to_string();
        assert_eq!(said, "the devices change more than 1048576 times from element to element");
    }
}
