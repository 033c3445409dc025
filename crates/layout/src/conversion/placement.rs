//! Where a tile may lie in shared memory: the placements that are tried to avoid bank conflicts.

use std::collections::BTreeSet;

use crate::access::LANES;
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::layout::Layout;
use crate::swizzle::{ComposeLayout, SwizzleLayout};
use crate::tile::TileLayout;

use super::job::Job;
use super::table::{FragmentTable, NONE};
use super::vectors::VectorAccesses;

/// Bits in one row of all banks.
const LINE: usize = 1024;

/// Placements in the order in which they are tried: row-major; XOR swizzles over it, the widest first; padded after
/// rows as long as the steps between lanes. `chunk` elements, a power of two, stay together and aligned in all.
pub(crate) fn placements(job: &Job, parts: &[VectorAccesses; 2], chunk: usize) -> Result<Vec<Layout>, LayoutError> {
    let linear = TileLayout::row_major(&[job.size as i64])?;
    let mut found = vec![Layout::Tile(linear.clone())];
    let stay = i64::from(chunk.ilog2());
    let bits = i64::from(usize::BITS - (job.size - 1).leading_zeros());
    let chunks = i64::from((LINE / (chunk * parts[0].cell)).ilog2());
    for turned in (1..=chunks).rev() {
        for apart in turned..=bits - stay - turned {
            let swizzle = SwizzleLayout::new(stay, turned, apart, true)?;
            found.push(Layout::Compose(ComposeLayout::new(swizzle, linear.clone())?));
        }
    }
    for row in rows(job, parts, chunk) {
        let padded = vec![Iter::memory((job.size / row) as i64, (row + chunk) as i64), Iter::memory(row as i64, 1)];
        found.push(Layout::Tile(TileLayout::new(padded, Vec::new(), [])?));
    }
    Ok(found)
}

/// The lengths of rows after which padding may help.
fn rows(job: &Job, parts: &[VectorAccesses; 2], chunk: usize) -> BTreeSet<usize> {
    let steps = parts.iter().flat_map(|part| lane_steps(part.table));
    steps
        .filter(|row| *row > 1 && *row < job.size && row.is_multiple_of(chunk) && job.size.is_multiple_of(*row))
        .collect()
}

/// How far apart in the tile the first registers of lane 0 and lanes 1, 2, 4, 8, 16 are.
fn lane_steps(table: &FragmentTable) -> Vec<usize> {
    let first = table.at(0, 0);
    let lanes = (0..LANES.ilog2()).map(|bit| table.at(1 << bit, 0));
    lanes.filter(|element| first != NONE && *element != NONE).map(|element| element.abs_diff(first) as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AccessKind;

    #[test]
    fn every_placement_is_injective_and_keeps_chunks_together() {
        let (a, b) = ("S[(16,12):(1@laneid,1@reg)]".parse().unwrap(), "S[(12,16):(1@reg,1@laneid)]".parse().unwrap());
        let job = Job::new(&a, &b, 32).unwrap();
        let part = |table, kind| VectorAccesses::widest(table, kind, 4, 32).unwrap();
        let parts = [part(&job.a, AccessKind::Store), part(&job.b, AccessKind::Load)];
        let found = placements(&job, &parts, 4).unwrap();
        for layout in &found {
            let positions = layout.memory_positions();
            let distinct: BTreeSet<i64> = positions.iter().copied().collect();
            assert_eq!(distinct.len(), job.size, "{layout}");
            for chunk in positions.chunks(4) {
                assert!(chunk[0] % 4 == 0 && chunk.windows(2).all(|pair| pair[1] == pair[0] + 1), "{layout}");
            }
        }
        assert!(found.len() > 3, "{found:?}");
    }
}
