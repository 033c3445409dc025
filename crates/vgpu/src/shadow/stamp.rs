//! Stamps: who made an access, and when. The accesses of one instruction by the lanes of a warp share a record, so that a
//! stamp has 32 bits: the number of the record, and a lane. Where several lanes access a cell by one instruction, the record
//! says which bytes each of them accesses.

use crate::isa::Scope;
use crate::lanes::LaneOrder;
use crate::shadow::orders::{OrderNumber, Orders};

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

    /// The lane, or its position in a row.
    pub(super) fn position(self) -> u32 {
        self.0 & 31
    }

    /// The stamp of the part of a cell that begins `offset` bytes after it, by the sharing of its record.
    pub(super) fn part(self, offset: usize, sharing: Sharing) -> Stamp {
        match sharing {
            Sharing::Row { bytes, .. } => {
                Stamp::of_lane(self.record(), self.position() + offset as u32 / u32::from(bytes))
            }
            Sharing::Alone | Sharing::Together { .. } => self,
        }
    }

    /// The access of another lane by the same instruction, or at another position.
    pub(super) fn of_lane(record: u32, lane: u32) -> Stamp {
        Stamp::new(record as usize, lane)
    }
}

/// How the bytes of a cell are shared by the lanes of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// One lane accesses all of them.
    Alone,
    /// The lanes access adjacent bytes, in this order and so many each, a power of two: the stamp names the position of the
    /// first lane. A cell of fewer bytes has one lane.
    Row { bytes: u8, order: OrderNumber },
    /// Each of these lanes accesses all of them.
    Together { lanes: u32 },
}

/// The accesses of a warp by one instruction between two of its releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub(crate) sharing: Sharing,
}

impl Sharing {
    /// Whether a cell of `size` bytes has bytes of different lanes.
    pub(super) fn is_row(self, size: usize) -> bool {
        matches!(self, Sharing::Row { bytes, .. } if size > bytes.into())
    }

    /// Whether only one lane accesses a cell of `size` bytes.
    pub(super) fn is_alone(self, size: usize) -> bool {
        match self {
            Sharing::Alone => true,
            Sharing::Row { bytes, .. } => size <= bytes.into(),
            Sharing::Together { .. } => false,
        }
    }
}

/// All records of a memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    all: Vec<Record>,
    orders: Orders,
}

impl Records {
    /// Adds a record; `None` if there are too many.
    pub(crate) fn add(&mut self, record: Record) -> Option<u32> {
        let number = self.all.len();
        if number >= MOST_RECORDS {
            return None;
        }
        self.all.push(record);
        Some(number as u32)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds the records of `other` from number `first`, which is where it began to differ; `None` if there are too many.
    /// The CTAs with numbers below `known_from` are known to all threads.
    pub(crate) fn join(&mut self, other: &Records, first: usize, known_from: u32) -> Option<Newer> {
        let newer = Newer { first: first as u32, shift: (self.all.len() - first) as u32, known_from };
        for record in &other.all[first..] {
            let mut record = *record;
            if let Sharing::Row { order, .. } = &mut record.sharing {
                *order = self.orders.number(other.orders.get(*order))?;
            }
            self.all.push(record);
        }
        (self.all.len() <= MOST_RECORDS).then_some(newer)
    }

    pub(crate) fn get(&self, record: u32) -> Record {
        self.all[record as usize]
    }

    /// The record of a stamp that is not [`Stamp::NONE`].
    pub(crate) fn of(&self, stamp: Stamp) -> Record {
        self.get(stamp.record())
    }

    /// Whether the bytes of a cell of `size` bytes with this stamp were accessed by different lanes.
    pub(super) fn is_row(&self, stamp: Stamp, size: usize) -> bool {
        !stamp.is_none() && self.of(stamp).sharing.is_row(size)
    }

    /// The lane of a stamp, the first one of several.
    pub(crate) fn lane(&self, stamp: Stamp) -> u32 {
        self.lane_of(&self.of(stamp), stamp)
    }

    /// The lane of a stamp, of which this is the record.
    pub(super) fn lane_of(&self, record: &Record, stamp: Stamp) -> u32 {
        match record.sharing {
            Sharing::Alone => stamp.position(),
            Sharing::Together { lanes } => lanes.trailing_zeros(),
            Sharing::Row { order, .. } => u32::from(self.orders.get(order)[stamp.position() as usize]),
        }
    }

    /// The lanes that access a cell of `size` bytes with a stamp, of which this is the record.
    pub(super) fn lanes(&self, record: &Record, stamp: Stamp, size: usize) -> u32 {
        match record.sharing {
            Sharing::Alone => 1 << stamp.position(),
            Sharing::Together { lanes } => lanes,
            Sharing::Row { bytes, order } => {
                let (first, count) = (stamp.position() as usize, (size / usize::from(bytes)).max(1));
                let row = &self.orders.get(order)[first..first + count];
                row.iter().fold(0, |lanes, lane| lanes | 1 << lane)
            }
        }
    }

    /// The number of an order of lanes; `None` if there are too many.
    pub(crate) fn order(&mut self, order: &LaneOrder) -> Option<OrderNumber> {
        self.orders.number(order)
    }

    /// The stamp of a lane in a record, or of a position.
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
    /// The CTAs with smaller numbers are known to all threads.
    pub(super) known_from: u32,
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
        if self.has(stamp) { Stamp::of_lane(stamp.record() + self.shift, stamp.position()) } else { stamp }
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
            found == wanted
        };
        if slot.filter(is_wanted).is_none() {
            *slot = Some(records.add(wanted)?);
        }
        *slot
    }
}
