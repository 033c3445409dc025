//! Kernels that move pairs, one after another, and their expected outputs.

use tilewright::prelude::{DType, Kernel, KernelBuilder, kernel};
use tilewright::runtime::HostTensor;

use super::pairs::Pair;
use super::subject::TARGET;

/// The maximum number of pairs per kernel. Each kernel is compiled with NVRTC and launched once.
const MOST_PAIRS: usize = 1;
/// Bytes of one row of all banks. Sizes of buffers are multiples of it, so that they are copied in wide vectors.
const ROW: usize = 128;

impl Pair {
    /// The sizes of the source's and the destination's buffer, in elements.
    fn rooms(&self) -> [usize; 2] {
        let [src, dst] = [&self.src, &self.dst].map(|side| side.span().next_multiple_of(ROW / self.bytes()));
        if self.in_place { [src.max(dst); 2] } else { [src, dst] }
    }

    /// Bytes of shared memory that the pair needs.
    fn shared_bytes(&self) -> usize {
        let [src, dst] = self.rooms();
        self.bytes() * if self.in_place { src } else { src + dst }
    }

    /// The contents of the source's buffer. The bytes are those of a pattern of 16-byte elements, since a pattern of
    /// bytes would repeat after 256.
    pub(crate) fn input(&self) -> HostTensor {
        let [room, _] = self.rooms();
        let pattern = HostTensor::pattern(DType::B128, &[(room * self.bytes() / 16) as i64]);
        HostTensor::from_bytes(self.dtype, &[room as i64], pattern.bytes().to_vec()).expect("whole rows of banks")
    }

    /// The expected contents of the destination's buffer: places without an element hold zero, or keep their value in
    /// place.
    pub(crate) fn expected(&self) -> HostTensor {
        let ([_, room], width, input) = (self.rooms(), self.bytes(), self.input());
        let mut bytes = if self.in_place { input.bytes().to_vec() } else { vec![0; room * width] };
        for (from, to) in self.src.positions.iter().zip(&self.dst.positions) {
            bytes[to * width..][..width].copy_from_slice(&input.bytes()[from * width..][..width]);
        }
        HostTensor::from_bytes(self.dtype, &[room as i64], bytes).expect("as many bytes as the buffer has")
    }

    /// Adds the move through shared memory, with the requested variant.
    fn add_to(&self, k: &mut KernelBuilder, at: usize, variant: Option<&str>) {
        let named = |what: &str| format!("{what}{at}");
        let [from_room, to_room] = self.rooms().map(|room| [room as i64]);
        let a = k.input(&named("a"), self.dtype, from_room);
        let b = k.output(&named("b"), self.dtype, to_room);
        let from = k.shared(&named("from"), self.dtype, from_room);
        let to = if self.in_place { from } else { k.shared(&named("to"), self.dtype, to_room) };
        let src = k.view(&named("src"), from, self.src.layout.clone());
        let dst = k.view(&named("dst"), to, self.dst.layout.clone());
        k.warp().copy(from, a);
        if !self.in_place {
            k.warp().fill(to, 0);
        }
        k.warp().permute_layout(dst, src).name(&self.title()).variant_opt(variant);
        k.warp().copy(b, to);
    }
}

/// A kernel of one warp that moves these pairs with the requested variant.
pub(crate) fn kernel_of(name: &str, pairs: &[&Pair], variant: Option<&str>) -> Kernel {
    kernel(name, |k| {
        k.threads(32);
        for (at, pair) in pairs.iter().enumerate() {
            pair.add_to(k, at, variant);
        }
    })
}

/// Groups the pairs into kernels of similar size, which fit in shared memory.
pub(crate) fn batches<'p>(pairs: &[&'p Pair]) -> Vec<Vec<&'p Pair>> {
    let size = pairs.len().div_ceil(pairs.len().div_ceil(MOST_PAIRS).max(1));
    let most_bytes = TARGET.shared_bytes() as usize;
    let mut batches: Vec<Vec<&Pair>> = Vec::new();
    let mut taken = 0;
    for &pair in pairs {
        let bytes = pair.shared_bytes();
        match batches.last_mut().filter(|batch| batch.len() < size && taken + bytes <= most_bytes) {
            Some(batch) => {
                batch.push(pair);
                taken += bytes;
            }
            None => {
                batches.push(vec![pair]);
                taken = bytes;
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permute::{PAIRS, WIDTHS};
    use tilewright::ir::tile::verify;

    #[test]
    fn every_pair_is_in_one_batch_and_every_batch_is_a_kernel() {
        for dtype in WIDTHS {
            let pairs: Vec<Pair> = (0..PAIRS).map(|number| Pair::of(dtype, number)).collect();
            let batches = batches(&pairs.iter().collect::<Vec<_>>());
            let numbers: Vec<usize> = batches.iter().flatten().map(|pair| pair.number).collect();
            assert_eq!(numbers, (0..PAIRS).collect::<Vec<_>>());
            for batch in batches {
                let found = verify(kernel_of("pairs", &batch, None), TARGET).err();
                assert!(batch.len() <= MOST_PAIRS && found.is_none(), "{dtype}: {found:?}");
            }
        }
    }

    #[test]
    fn a_pair_in_place_keeps_what_no_element_reaches() {
        let in_place = (0..PAIRS).map(|number| Pair::of(DType::B32, number)).find(|pair| {
            let last = pair.rooms()[1] - 1;
            pair.in_place && !pair.dst.positions.contains(&last)
        });
        let pair = in_place.expect("a pair with gaps");
        let last = pair.rooms()[1] as i64 - 1;
        assert_eq!(pair.expected().element(last), pair.input().element(last));
    }
}
