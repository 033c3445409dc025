//! The passes in which shared memory serves one access of a warp.

use std::collections::BTreeMap;

use tilewright_layout::access::WarpAccess;

/// Banks of shared memory (CUDA C++ Programming Guide, "Shared Memory").
pub(crate) const BANKS: u64 = 32;
/// Bytes of a bank's word.
pub(crate) const WORD: u64 = 4;

/// One pass over the banks: each bank serves one word, to all lanes that request it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wavefront {
    /// Lanes that are served a word, in order.
    pub lanes: Vec<usize>,
    /// The words, as byte addresses divided by 4; no two in one bank.
    pub words: Vec<u64>,
}

/// The wavefronts of an access, in the model of [`tilewright_layout::access`]: as many as [`WarpAccess::wavefronts`].
///
/// Groups of lanes that are served together come one after another; within a group, each bank serves its words in the
/// order of the lanes that request them. A lane whose words are served in different passes is in several wavefronts.
pub fn wavefronts_of(access: &WarpAccess) -> Vec<Wavefront> {
    let group = access.group();
    let groups = access.addresses.chunks(group).enumerate();
    groups.flat_map(|(at, lanes)| of_group(lanes, at * group, access.width)).collect()
}

fn of_group(addresses: &[Option<u64>], first_lane: usize, width: u64) -> Vec<Wavefront> {
    let mut queues: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut wavefronts: Vec<Wavefront> = Vec::new();
    for (lane, address) in addresses.iter().enumerate() {
        let Some(address) = *address else { continue };
        for word in words(address, width) {
            let queue = queues.entry(word % BANKS).or_default();
            let turn = queue.iter().position(|waiting| *waiting == word).unwrap_or_else(|| {
                queue.push(word);
                queue.len() - 1
            });
            if turn == wavefronts.len() {
                wavefronts.push(Wavefront::default());
            }
            serve(&mut wavefronts[turn], first_lane + lane, word);
        }
    }
    wavefronts
}

fn words(address: u64, width: u64) -> std::ops::RangeInclusive<u64> {
    address / WORD..=address.saturating_add(width.saturating_sub(1)) / WORD
}

fn serve(wavefront: &mut Wavefront, lane: usize, word: u64) {
    if wavefront.lanes.last() != Some(&lane) {
        wavefront.lanes.push(lane);
    }
    if !wavefront.words.contains(&word) {
        wavefront.words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_layout::access::AccessKind;

    fn strided(width: u64, stride: u64) -> WarpAccess {
        WarpAccess::of(width, AccessKind::Store, |lane| Some(lane as u64 * stride))
    }

    #[test]
    fn there_are_as_many_as_the_model_counts() {
        for width in [1, 2, 4, 8, 16] {
            for step in 0..40 {
                let access = strided(width, width * step);
                assert_eq!(wavefronts_of(&access).len(), access.wavefronts() as usize, "{width} bytes, step {step}");
            }
        }
    }

    #[test]
    fn words_of_one_bank_take_turns() {
        let wavefronts = wavefronts_of(&strided(4, 64));
        assert_eq!(wavefronts.len(), 16);
        assert_eq!(wavefronts[1], Wavefront { lanes: vec![2, 3], words: vec![32, 48] });
    }

    #[test]
    fn lanes_of_one_word_are_served_together() {
        let wavefronts = wavefronts_of(&strided(2, 0));
        assert_eq!(wavefronts, [Wavefront { lanes: (0..32).collect(), words: vec![0] }]);
    }

    #[test]
    fn quarter_warps_follow_each_other() {
        let lanes: Vec<Vec<usize>> = wavefronts_of(&strided(16, 16)).into_iter().map(|w| w.lanes).collect();
        assert_eq!(lanes, [0, 8, 16, 24].map(|first| (first..first + 8).collect::<Vec<usize>>()));
    }

    #[test]
    fn an_idle_warp_has_none() {
        assert!(wavefronts_of(&WarpAccess::of(4, AccessKind::Load, |_| None)).is_empty());
    }
}
