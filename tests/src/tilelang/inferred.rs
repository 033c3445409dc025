//! The layouts that Tilewright's inference finds for a golden program, as tables for the judge.

use std::collections::BTreeMap;

use tilewright::infer::{Inferred, Origin, Placed};
use tilewright::ir::tile::{Kernel, Space};
use tilewright::layout::map::Map;

use super::assignment::{Assignment, LoopPlacement, Placement};
use super::program::Program;

/// The answer for a kernel that was built from `program`.
pub fn assignment(kernel: &Kernel, program: &Program, inferred: &Inferred) -> Assignment {
    let mut buffers = BTreeMap::new();
    for (handle, buffer) in kernel.buffers.iter().filter(|(_, buffer)| buffer.space == Space::Fragment) {
        if let Some(placed) = inferred.fragments.get(&kernel.storage(handle)) {
            buffers.insert(buffer.name.clone(), placement(&buffer.shape, buffer.dtype.bytes(), placed));
        }
    }
    Assignment { buffers, loops: loops(kernel, program, inferred) }
}

/// The placement of a fragment's elements: several share a granule if a view has wider elements.
fn placement(shape: &[i64], bytes: i64, placed: &Placed) -> Placement {
    let elements = shape.iter().product::<i64>();
    let per_granule = (placed.bytes / bytes).max(1);
    let mut owners: Vec<Vec<(i64, i64)>> = vec![Vec::new(); elements as usize];
    for (thread, slot, granule) in placed.map.entries() {
        for lane in 0..per_granule {
            let element = granule as i64 * per_granule + lane;
            if let Some(list) = owners.get_mut(element as usize) {
                list.push((thread as i64, slot as i64 * per_granule + lane));
            }
        }
    }
    for list in &mut owners {
        list.sort_unstable();
        list.dedup();
    }
    Placement { shape: shape.to_vec(), owners }
}

/// The parallel loops, if the kernel has as many as the program; copies that convert are loops only in the kernel.
fn loops(kernel: &Kernel, program: &Program, inferred: &Inferred) -> Vec<LoopPlacement> {
    let wanted = super::assignment::nests(&program.body).len();
    let found: Vec<LoopPlacement> = inferred
        .loops
        .iter()
        .filter_map(|(origin, map)| match origin {
            Origin::Parallel(parallel) => {
                let parallel = &kernel.parallels[*parallel];
                let vars = parallel.vars.iter().map(|var| var.name().to_string()).collect();
                Some(LoopPlacement { vars, extents: parallel.extents(), executors: executors(map) })
            }
            Origin::Op(_) => None,
        })
        .collect();
    if found.len() == wanted { found } else { Vec::new() }
}

fn executors(map: &Map) -> Vec<Vec<i64>> {
    let owners = map.owners();
    (0..map.elements())
        .map(|iteration| owners.of(iteration).iter().map(|thread| i64::from(*thread)).collect())
        .collect()
}
