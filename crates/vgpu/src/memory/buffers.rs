//! Global memory: named buffers with gaps between them, so that an access past one never lands in the next.

use crate::memory::map;
use crate::memory::region::Region;

/// A buffer of one [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BufferId(usize);

/// Who last wrote a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The CTA's index in the grid.
    pub cta: [u32; 3],
    /// Linear index of the thread in its CTA.
    pub thread: u32,
    /// Its warp.
    pub warp: u32,
    /// Its lane.
    pub lane: u32,
    /// 1-based PTX line of the instruction.
    pub ptx_line: u32,
}

/// What is kept of a launch to name its writers later.
#[derive(Clone, Debug)]
pub(crate) struct LaunchRecord {
    pub(crate) first_cta: u32,
    pub(crate) grid: [u32; 3],
    /// PTX lines by program counter.
    pub(crate) lines: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(crate) name: String,
    pub(crate) base: u64,
    pub(crate) region: Region,
    /// Whether a write by a kernel is a fault.
    pub(crate) is_read_only: bool,
}

/// Global memory of a device. Bases are multiples of 256 bytes.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pub(crate) buffers: Vec<Buffer>,
    launches: Vec<LaunchRecord>,
    next_base: u64,
    next_cta: u32,
}

impl Memory {
    /// A memory without buffers.
    pub fn new() -> Memory {
        Memory { buffers: Vec::new(), launches: Vec::new(), next_base: map::GLOBAL_START, next_cta: 1 }
    }

    /// Adds a buffer whose bytes the host wrote.
    pub fn allocate(&mut self, name: &str, bytes: Vec<u8>) -> BufferId {
        self.add(name, Region::filled(bytes), false)
    }

    /// Adds a buffer whose bytes the host wrote, and which kernels may only read.
    pub fn allocate_read_only(&mut self, name: &str, bytes: Vec<u8>) -> BufferId {
        self.add(name, Region::filled(bytes), true)
    }

    /// Adds a buffer of `len` bytes that nobody wrote.
    pub fn allocate_poison(&mut self, name: &str, len: usize) -> BufferId {
        self.add(name, Region::poison(len), false)
    }

    fn add(&mut self, name: &str, region: Region, is_read_only: bool) -> BufferId {
        let base = self.next_base.max(map::GLOBAL_START);
        let end = base + region.bytes.len() as u64 + map::GUARD;
        self.next_base = crate::isa::align_up(end, map::BASE_ALIGN);
        self.buffers.push(Buffer { name: name.to_string(), base, region, is_read_only });
        BufferId(self.buffers.len() - 1)
    }

    /// Adds a variable of the module for one launch; its base is above every buffer's.
    pub(crate) fn push_module_variable(&mut self, name: &str, base: u64, region: Region) {
        self.buffers.push(Buffer { name: name.to_string(), base, region, is_read_only: false });
    }

    /// The buffer's bytes, empty if it is not of this memory.
    pub fn bytes(&self, id: BufferId) -> &[u8] {
        self.buffers.get(id.0).map_or(&[], |buffer| buffer.region.bytes.as_slice())
    }

    /// The address of the buffer's first byte.
    pub fn address(&self, id: BufferId) -> Option<u64> {
        self.buffers.get(id.0).map(|buffer| buffer.base)
    }

    /// Whether the host or a kernel wrote the byte.
    pub fn is_written(&self, id: BufferId, offset: usize) -> bool {
        self.buffers
            .get(id.0)
            .is_some_and(|buffer| offset < buffer.region.bytes.len() && buffer.region.is_written(offset, 1))
    }

    /// The thread that last wrote the byte; `None` for the host, and after runs that do not check races.
    pub fn last_writer(&self, id: BufferId, offset: usize) -> Option<Writer> {
        let write = self.buffers.get(id.0)?.region.shadow.last_write(offset)?;
        let launch = self.launches.iter().rev().find(|launch| launch.first_cta <= write.cta)?;
        let linear = write.cta - launch.first_cta;
        let [x, y, _] = launch.grid;
        let cta = [linear % x, linear / x % y, linear / x / y];
        let ptx_line = launch.lines.get(write.pc as usize).copied().unwrap_or(0);
        Some(Writer { cta, thread: write.thread, warp: write.thread / 32, lane: write.thread % 32, ptx_line })
    }

    /// Starts a launch of `ctas` CTAs and gives the number of its first.
    pub(crate) fn begin_launch(&mut self, grid: [u32; 3], ctas: u32, lines: Vec<u32>) -> u32 {
        let first_cta = self.next_cta.max(1);
        self.launches.push(LaunchRecord { first_cta, grid, lines });
        self.next_cta = first_cta.saturating_add(ctas);
        first_cta
    }

    /// The buffer that holds `address`, or else the nearest one below it.
    pub(crate) fn at_or_below(&self, address: u64) -> Option<usize> {
        self.buffers.partition_point(|buffer| buffer.base <= address).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_are_aligned_and_apart() {
        let mut memory = Memory::new();
        let a = memory.allocate("a", vec![0; 100]);
        let b = memory.allocate_poison("b", 10);
        let (a, b) = (memory.address(a).unwrap_or(1), memory.address(b).unwrap_or(1));
        assert_eq!((a % 256, b % 256), (0, 0));
        assert!(b >= a + 100 + map::GUARD);
    }

    #[test]
    fn poison_is_not_written() {
        let mut memory = Memory::new();
        let a = memory.allocate("a", vec![0; 4]);
        let b = memory.allocate_poison("b", 4);
        assert!(memory.is_written(a, 3));
        assert!(!memory.is_written(a, 4));
        assert!(!memory.is_written(b, 0));
    }
}
