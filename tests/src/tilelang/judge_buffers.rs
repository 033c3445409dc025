//! Checks the placement of elements: owners are in the block, each register holds one element, and views agree with the
//! viewed elements.

use std::collections::BTreeMap;

use super::assignment::{Assignment, Placement};
use super::boxes::size;
use super::fault::{Fault, Place, Report};
use super::program::{Buffer, Program, Scope};
use super::storage::storages;

/// Threads and slots.
type Owners = Vec<(i64, i64)>;

/// The threads that own the elements of a fragment.
pub(crate) struct Held {
    threads: Vec<Vec<i64>>,
}

impl Held {
    /// The owners of an element, in order.
    pub(crate) fn owners(&self, element: usize) -> Option<&[i64]> {
        self.threads.get(element).map(Vec::as_slice)
    }
}

/// Checks the placements of a program's fragments, and returns those that have the fragment's shape.
pub(crate) fn held<'a>(program: &'a Program, assignment: &Assignment, report: &mut Report) -> BTreeMap<&'a str, Held> {
    let mut placed: Vec<(&'a Buffer, &Placement)> = Vec::new();
    for buffer in program.buffers.iter().filter(|buffer| buffer.scope == Scope::Fragment) {
        let Some(placement) = assignment.buffers.get(&buffer.name) else { continue };
        if placement.shape != buffer.shape || placement.owners.len() as i64 != size(&buffer.shape) {
            let (buffer, shape) = (buffer.name.clone(), placement.shape.clone());
            report.add(Fault::WrongShape { buffer, shape });
            continue;
        }
        elements(program, buffer, placement, report);
        placed.push((buffer, placement));
    }
    views(program, &placed, report);
    placed.into_iter().map(|(buffer, placement)| (buffer.name.as_str(), threads(placement))).collect()
}

fn elements(program: &Program, buffer: &Buffer, placement: &Placement, report: &mut Report) {
    let at = |element| Place::of(program, &buffer.name, element);
    let mut slots: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    for (element, owners) in placement.owners.iter().enumerate() {
        if owners.is_empty() {
            report.add(Fault::Unowned(at(element)));
        }
        for &owner in owners {
            let thread = owner.0;
            if !(0..program.threads).contains(&thread) {
                report.add(Fault::OutsideBlock { place: at(element), thread });
            }
            let first = *slots.entry(owner).or_insert(element);
            if first != element {
                report.add(Fault::SharedSlot { place: at(first), other: at(element).element, owner });
            }
        }
    }
}

/// Compares the views of each storage with the first of them, unit by unit. This implies that all parts of a wider
/// element are on the same thread.
fn views(program: &Program, placed: &[(&Buffer, &Placement)], report: &mut Report) {
    let storages = storages(program);
    let mut first: BTreeMap<&str, (&str, Vec<Owners>)> = BTreeMap::new();
    for (buffer, placement) in placed {
        let Some(storage) = storages.get(buffer.name.as_str()) else { continue };
        let here = units(placement, storage.units);
        let Some((of, there)) = first.get(storage.root) else {
            first.insert(storage.root, (buffer.name.as_str(), here));
            continue;
        };
        let longest = here.len().max(there.len());
        for unit in (0..longest).filter(|unit| here.get(*unit) != there.get(*unit)) {
            let element = unit.min(here.len().saturating_sub(1)) / storage.units.max(1) as usize;
            let place = Place::of(program, &buffer.name, element);
            report.add(Fault::AliasDiffers { place, of: of.to_string() });
        }
    }
}

/// The owners of every unit; the slots of a thread are counted in units, too.
fn units(placement: &Placement, per_element: i64) -> Vec<Owners> {
    let mut units = Vec::new();
    for owners in &placement.owners {
        for part in 0..per_element {
            let unit = |(thread, slot): &(i64, i64)| (*thread, slot.saturating_mul(per_element).saturating_add(part));
            units.push(owners.iter().map(unit).collect());
        }
    }
    units
}

fn threads(placement: &Placement) -> Held {
    let of = |owners: &Owners| {
        let mut threads: Vec<i64> = owners.iter().map(|(thread, _)| *thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    };
    Held { threads: placement.owners.iter().map(of).collect() }
}
