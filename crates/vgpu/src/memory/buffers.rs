//! Global memory: named buffers with gaps between them, so that an access past the end of one does not fall into the
//! next.

use std::borrow::Cow;
use std::sync::Arc;

use crate::clock::{cta_of, is_copy};
use crate::layout::{GlobalVariable, Layout};
use crate::memory::map;
use crate::memory::region::Region;
use crate::shadow::Records;

/// Identifies a buffer of a [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BufferId(usize);

impl BufferId {
    /// The buffer with this index.
    pub(crate) fn at(index: usize) -> BufferId {
        BufferId(index)
    }
}

/// Who last wrote a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The CTA's index in the grid.
    pub cta: [u32; 3],
    /// Linear index of the thread in its CTA; `None` for an asynchronous engine, such as that of bulk copies.
    pub thread: Option<u32>,
    /// 1-based PTX line of the instruction.
    pub ptx_line: u32,
}

/// What is recorded about a launch, to identify its writers later.
#[derive(Clone, Debug)]
pub(crate) struct LaunchRecord {
    /// Number of the launch's first CTA.
    pub(crate) first_cta: u32,
    pub(crate) grid: [u32; 3],
    /// Threads of a CTA.
    pub(crate) threads: u32,
    /// PTX lines by program counter.
    pub(crate) lines: Vec<u32>,
    /// The CTAs with smaller numbers are known to all threads from the start.
    pub(crate) known_from: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(crate) name: String,
    /// Address of the first byte.
    pub(crate) base: u64,
    pub(crate) region: Region,
    /// Whether a write by a kernel is a fault.
    pub(crate) is_read_only: bool,
}

/// Global memory of a device. The addresses of buffers are multiples of 256.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Sorted by address; an index is the number in a [`BufferId`].
    pub(crate) buffers: Vec<Buffer>,
    /// The global variables of the modules whose kernels were launched.
    variables: Vec<(Arc<Layout>, Vec<Buffer>)>,
    launches: Vec<LaunchRecord>,
    /// The accesses that the shadows of the buffers refer to.
    pub(crate) records: Records,
    /// Lowest address of the next buffer.
    next_base: u64,
    /// Number of the next launch's first CTA.
    next_cta: u32,
}

impl Memory {
    /// A memory without buffers.
    pub fn new() -> Memory {
        Memory {
            buffers: Vec::new(),
            variables: Vec::new(),
            launches: Vec::new(),
            records: Records::default(),
            next_base: map::GLOBAL_START,
            next_cta: 1,
        }
    }

    /// Adds a buffer that the host has initialized.
    pub fn allocate(&mut self, name: &str, bytes: Vec<u8>) -> BufferId {
        self.add(name, Region::filled(bytes), false)
    }

    /// Adds a buffer of `len` zero bytes, which takes no memory of the host where it is not written.
    pub fn allocate_zeros(&mut self, name: &str, len: usize) -> BufferId {
        self.add(name, Region::zeros(len), false)
    }

    /// Adds a read-only buffer that the host has initialized; a write by a kernel is a fault.
    pub fn allocate_read_only(&mut self, name: &str, bytes: Vec<u8>) -> BufferId {
        self.add(name, Region::filled(bytes), true)
    }

    /// Adds an uninitialized buffer of `len` bytes.
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

    /// Adds the global variables of a module, for one launch: as its last launch has left them, or as they are initialized. Their
    /// addresses are above every buffer.
    pub(crate) fn load_variables(&mut self, module: &Arc<Layout>) {
        let kept = self.variables.iter().position(|(kept, _)| Arc::ptr_eq(kept, module));
        let variables = match kept {
            Some(at) => self.variables.swap_remove(at).1,
            None => module.globals.iter().map(initial_variable).collect(),
        };
        self.buffers.extend(variables);
    }

    /// Keeps the global variables of a module, which follow the buffers, for its next launch.
    pub(crate) fn keep_variables(&mut self, module: &Arc<Layout>, buffers: usize) {
        let variables = self.buffers.split_off(buffers);
        if !variables.is_empty() {
            self.variables.push((Arc::clone(module), variables));
        }
    }

    /// The buffers and their names, in the order of their addresses.
    pub fn buffers(&self) -> impl Iterator<Item = (BufferId, &str)> {
        self.buffers.iter().enumerate().map(|(index, buffer)| (BufferId(index), buffer.name.as_str()))
    }

    /// The buffer that holds the byte at an address, and the byte's offset in it.
    pub fn buffer_at(&self, address: u64) -> Option<(BufferId, u64)> {
        let index = self.at_or_below(address)?;
        let (buffer, offset) = (&self.buffers[index], address - self.buffers[index].base);
        (offset < buffer.region.bytes.len() as u64).then_some((BufferId(index), offset))
    }

    /// The number of bytes of the buffer; 0 if this memory has no such buffer.
    pub fn len(&self, id: BufferId) -> usize {
        self.buffers.get(id.0).map_or(0, |buffer| buffer.region.bytes.len())
    }

    /// The contents of the buffer; empty if this memory has no such buffer. Those of a large buffer are copied: they are kept in
    /// pages.
    pub fn bytes(&self, id: BufferId) -> Cow<'_, [u8]> {
        self.buffers
            .get(id.0)
            .map_or(Cow::Borrowed(&[]), |buffer| buffer.region.bytes.read(0..buffer.region.bytes.len()))
    }

    /// Writes bytes into a buffer, as the host; false if they do not fit, and nothing is written.
    pub fn write(&mut self, id: BufferId, offset: u64, data: &[u8]) -> bool {
        let Some(buffer) = self.buffers.get_mut(id.0) else { return false };
        let end = offset.checked_add(data.len() as u64);
        let fits = end.is_some_and(|end| end <= buffer.region.bytes.len() as u64);
        if fits {
            buffer.region.store(offset as usize, data);
        }
        fits
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

    /// The thread that last wrote the byte; `None` if the host wrote it, or if the run did not check for races.
    pub fn last_writer(&self, id: BufferId, offset: usize) -> Option<Writer> {
        let stamp = self.buffers.get(id.0)?.region.shadow.last_write(offset, &self.records)?;
        let write = self.records.of(stamp);
        let launch = self.launch_of(write.cta)?;
        let linear = cta_of(write.cta) - launch.first_cta;
        let [x, y, _] = launch.grid;
        let cta = [linear % x, linear / x % y, linear / x / y];
        let ptx_line = launch.lines[write.pc as usize];
        let thread = u32::from(write.warp) * 32 + self.records.lane(stamp);
        let is_engine = is_copy(write.cta) && thread >= launch.threads;
        Some(Writer { cta, thread: (!is_engine).then_some(thread), ptx_line })
    }

    /// Adds what was written in `other`, which was equal to this memory when it had `records` records. Returns false if a
    /// byte was written in one and accessed in the other; then this memory is of no use any more.
    pub(crate) fn join(&mut self, other: Memory, records: usize) -> bool {
        let known_from = self.launches.last().map_or(0, |launch| launch.known_from);
        let Some(newer) = self.records.join(&other.records, records, known_from) else { return false };
        let records = &self.records;
        self.buffers.iter_mut().zip(other.buffers).all(|(own, other)| own.region.join(other.region, newer, records))
    }

    /// Bytes in which the race checks record accesses to the buffers, so far.
    pub fn shadow_bytes(&self) -> usize {
        self.buffers.iter().map(|buffer| buffer.region.shadow.bytes()).sum()
    }

    /// The launch of a CTA.
    pub(crate) fn launch_of(&self, cta: u32) -> Option<&LaunchRecord> {
        self.launches.iter().rev().find(|launch| launch.first_cta <= cta_of(cta))
    }

    /// Starts a launch, which may overlap the one before; `None` if the numbers of its CTAs do not fit.
    pub(crate) fn begin_launch(
        &mut self,
        (grid, threads): ([u32; 3], u32),
        lines: Vec<u32>,
        overlaps: bool,
    ) -> Option<&LaunchRecord> {
        let first_cta = self.next_cta.max(1);
        let ctas = grid.iter().try_fold(1u32, |product, size| product.checked_mul(*size))?;
        self.next_cta = first_cta.checked_add(ctas)?;
        // What the one before did not wait for either is as unknown.
        let known_from = self.launches.last().filter(|_| overlaps).map_or(first_cta, |before| before.known_from);
        self.launches.push(LaunchRecord { first_cta, grid, threads, lines, known_from });
        self.launches.last()
    }

    /// The buffer that holds `address`, or else the nearest one below it.
    pub(crate) fn at_or_below(&self, address: u64) -> Option<usize> {
        self.buffers.partition_point(|buffer| buffer.base <= address).checked_sub(1)
    }
}

fn initial_variable(variable: &GlobalVariable) -> Buffer {
    let region = Region::filled(variable.bytes.clone());
    Buffer { name: variable.name.clone(), base: variable.base, region, is_read_only: false }
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

    #[test]
    fn every_cta_has_a_number_of_its_own() {
        let begin = |memory: &mut Memory, grid: [u32; 3]| {
            memory.begin_launch((grid, 32), Vec::new(), false).map(|launch| launch.first_cta)
        };
        let mut memory = Memory::new();
        let grid = [1 << 16, 1 << 15, 1];
        assert_eq!(begin(&mut memory, grid), Some(1));
        assert_eq!(begin(&mut memory, [(1 << 31) - 1, 1, 1]), None);
        assert_eq!(begin(&mut memory, [(1 << 31) - 2, 1, 1]), Some((1 << 31) + 1));
        assert_eq!(begin(&mut memory, [1, 1, 1]), None);
    }
}
