//! Why no swizzle frees a list of patterns: pairs of lanes that cannot all be kept apart.

use std::fmt;

use super::tile_banks::TileBanks;
use super::{BANK_BYTES, Case};
use crate::access::{LANES, WAVEFRONT_BYTES};
use crate::swizzle::SwizzleLayout;

/// Two lanes that are served together and meet in a bank, in different words, under some of the swizzles tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The name of their pattern.
    pub pattern: String,
    /// The lanes.
    pub lanes: [usize; 2],
    /// The first element that each lane accesses, as a flat index in the tile.
    pub elements: [i64; 2],
    /// How far apart these elements are in the plain tile, in bytes.
    pub bytes_apart: u64,
    /// The number of swizzles under which they meet, not counting those under which an earlier pair does.
    pub swizzles: usize,
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Witness { pattern, lanes: [a, b], elements: [x, y], bytes_apart, swizzles } = self;
        write!(f, "{pattern}: lanes {a} and {b} (elements {x} and {y}, {bytes_apart} bytes apart) ")?;
        write!(f, "share a bank under {swizzles} of the candidates")
    }
}

/// Pairs of lanes such that under each of `swizzles`, all of which have a conflict, at least one pair meets. Each step
/// takes the first swizzle still open and the first pattern with a conflict there, and of its pairs that meet the one
/// that meets under the most open swizzles. So at most 496 pairs are compared for each swizzle.
pub(super) fn witnesses(memory: &TileBanks<'_>, swizzles: &[Option<SwizzleLayout>]) -> Vec<Witness> {
    let mut open = swizzles.to_vec();
    let mut found = Vec::new();
    while let Some(&first) = open.first() {
        let meeting = memory.cases.iter().map(|case| pairs(memory, case, first)).find(|pairs| !pairs.is_empty());
        let mut best: Option<(usize, Pair<'_>)> = None;
        for pair in meeting.into_iter().flatten() {
            let settled = open.iter().filter(|swizzle| pair.meets(memory, **swizzle)).count();
            if best.as_ref().is_none_or(|(most, _)| settled > *most) {
                best = Some((settled, pair));
            }
        }
        let Some((settled, pair)) = best else { break };
        open.retain(|swizzle| !pair.meets(memory, *swizzle));
        found.push(pair.witness(memory, settled));
    }
    found
}

/// Two lanes of one instruction.
struct Pair<'a> {
    case: &'a Case<'a>,
    /// The two lanes.
    lanes: [usize; 2],
    /// The first element that each lane accesses, as a flat index in the tile.
    elements: [i64; 2],
}

impl Pair<'_> {
    /// True when the two lanes access different words in one bank. Both accesses have the same width and are aligned to
    /// it.
    fn meets(&self, memory: &TileBanks<'_>, swizzle: Option<SwizzleLayout>) -> bool {
        let unit = self.case.width().max(BANK_BYTES);
        let [a, b] = self.elements.map(|element| memory.byte(element, swizzle) / unit);
        let units = WAVEFRONT_BYTES as u64 / unit;
        a != b && a % units == b % units
    }

    fn witness(&self, memory: &TileBanks<'_>, swizzles: usize) -> Witness {
        let [x, y] = self.elements.map(|element| memory.byte(element, None));
        Witness {
            pattern: self.case.pattern.name().to_string(),
            lanes: self.lanes,
            elements: self.elements,
            bytes_apart: x.abs_diff(y),
            swizzles,
        }
    }
}

/// The pairs that meet in the first instruction of a pattern that has a conflict under `swizzle`.
///
/// Lanes of a quarter or half warp are always served together. Where none of these meet, the conflict is between two
/// such groups, of a load whose pairs of lanes agree and are served together (see [`crate::access`]).
fn pairs<'a>(memory: &TileBanks<'_>, case: &'a Case<'a>, swizzle: Option<SwizzleLayout>) -> Vec<Pair<'a>> {
    let conflicting = case.instructions.iter().find(|lanes| !memory.access(case, lanes, swizzle).is_conflict_free());
    let Some(lanes) = conflicting else { return Vec::new() };
    let served = match case.width() {
        0..=4 => LANES,
        5..=8 => LANES / 2,
        _ => LANES / 4,
    };
    let near = meeting(memory, case, lanes, served, swizzle);
    if near.is_empty() { meeting(memory, case, lanes, 2 * served, swizzle) } else { near }
}

fn meeting<'a>(
    memory: &TileBanks<'_>,
    case: &'a Case<'a>,
    lanes: &[Option<i64>; LANES],
    served: usize,
    swizzle: Option<SwizzleLayout>,
) -> Vec<Pair<'a>> {
    let together =
        (0..LANES).flat_map(|a| (a + 1..LANES).map(move |b| [a, b])).filter(|[a, b]| a / served == b / served);
    let pairs = together.filter_map(|[a, b]| Some(Pair { case, lanes: [a, b], elements: [lanes[a]?, lanes[b]?] }));
    pairs.filter(|pair| pair.meets(memory, swizzle)).collect()
}
