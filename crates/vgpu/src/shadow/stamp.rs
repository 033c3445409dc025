//! Stamps: who made an access, and when. The accesses of one instruction by the lanes of a warp share a record, so that a
//! stamp has 32 bits: the number of the record, and a lane.

use crate::isa::Scope;

/// Records that can exist at once. The highest bit of a stamp is free for other uses.
const MOST_RECORDS: usize = (1 << 26) - 2;

/// An access by one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u32);

impl Stamp {
    /// No access.
    pub(crate) const NONE: Stamp = Stamp(0);

    fn new(record: usize, lane: u32) -> Stamp {
        Stamp((record as u32 + 1) << 5 | lane)
    }

    pub(crate) fn is_none(self) -> bool {
        self == Stamp::NONE
    }

    pub(super) fn bits(self) -> u32 {
        self.0
    }

    pub(super) fn of_bits(bits: u32) -> Stamp {
        Stamp(bits)
    }

    /// The number of its record; it is not [`Stamp::NONE`].
    pub(super) fn record(self) -> u32 {
        (self.0 >> 5) - 1
    }

    pub(super) fn lane(self) -> u32 {
        self.0 & 31
    }

    /// The access of another lane by the same instruction.
    pub(super) fn of_lane(record: u32, lane: u32) -> Stamp {
        Stamp::new(record as usize, lane)
    }
}

/// The accesses of a warp by one instruction between two of its releases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// Number of the CTA, counted over all launches on a memory, from 1.
    pub(crate) cta: u32,
    /// Index of the warp in the CTA.
    pub(crate) warp: u16,
    /// The scope of a strong access; `None` for a weak one.
    pub(crate) scope: Option<Scope>,
    /// The threads' counter.
    pub(crate) clock: u32,
    pub(crate) pc: u32,
}

/// All records of a memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records(Vec<Record>);

impl Records {
    /// Adds a record; `None` if there are too many.
    pub(crate) fn add(&mut self, record: Record) -> Option<u32> {
        let number = self.0.len();
        if number >= MOST_RECORDS {
            return None;
        }
        self.0.push(record);
        Some(number as u32)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds the records of `other` from number `first`, which is where it began to differ; `None` if there are too many.
    pub(crate) fn join(&mut self, other: &Records, first: usize) -> Option<Newer> {
        let newer = Newer { first: first as u32, shift: (self.0.len() - first) as u32 };
        self.0.extend_from_slice(&other.0[first..]);
        (self.0.len() <= MOST_RECORDS).then_some(newer)
    }

    pub(crate) fn get(&self, record: u32) -> Record {
        self.0[record as usize]
    }

    /// The record of a stamp that is not [`Stamp::NONE`].
    pub(crate) fn of(&self, stamp: Stamp) -> Record {
        self.get(stamp.record())
    }

    /// The lane of a stamp.
    pub(crate) fn lane(&self, stamp: Stamp) -> u32 {
        stamp.lane()
    }

    /// The stamp of `lane` in a record.
    pub(crate) fn stamp(&self, record: u32, lane: u32) -> Stamp {
        Stamp::new(record as usize, lane)
    }
}

/// The records that a copy of a memory has got since it was copied: those from `first`. Where they are joined with others,
/// their numbers grow by `shift`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newer {
    first: u32,
    shift: u32,
}

impl Newer {
    /// Whether a record is new.
    pub(super) fn has_record(self, record: u32) -> bool {
        record >= self.first
    }

    /// Whether the record of a stamp is new.
    pub(super) fn has(self, stamp: Stamp) -> bool {
        !stamp.is_none() && self.has_record(stamp.record())
    }

    /// The number of a record where it is joined.
    pub(super) fn shift_record(self, record: u32) -> u32 {
        if self.has_record(record) { record + self.shift } else { record }
    }

    /// The stamp for the same access where it is joined.
    pub(super) fn shift(self, stamp: Stamp) -> Stamp {
        if self.has(stamp) { Stamp::of_lane(stamp.record() + self.shift, stamp.lane()) } else { stamp }
    }
}

/// Number of instructions of a warp whose last record is remembered.
const REMEMBERED: usize = 32;

/// The last records of one warp, by instruction, so that an instruction that is executed again gets the same one.
#[derive(Clone, Debug)]
pub(crate) struct RecentRecords([Option<u32>; REMEMBERED]);

impl RecentRecords {
    pub(crate) fn new() -> RecentRecords {
        RecentRecords([None; REMEMBERED])
    }

    /// The number of this record; `None` if it is new and there are too many.
    pub(crate) fn number(&mut self, records: &mut Records, wanted: Record) -> Option<u32> {
        let slot = &mut self.0[wanted.pc as usize % REMEMBERED];
        let is_wanted = |number: &u32| {
            let found = records.get(*number);
            let place = |record: &Record| (record.pc, record.clock, record.cta, record.warp);
            place(&found) == place(&wanted)
        };
        if slot.filter(is_wanted).is_none() {
            *slot = Some(records.add(wanted)?);
        }
        *slot
    }
}
