//! Sets of accesses, and the records that do not fit in a cell: several readers of one word, strong (atomic, volatile,
//! relaxed) accesses, and earlier writes.

use crate::shadow::access::Accessor;
use crate::shadow::cell::{Cell, NEVER, Reads};
use crate::shadow::stamp::{Newer, Sharing, Stamp};

/// Groups that a set keeps: beyond it, the oldest are forgotten, so that a race with one of them may go unseen.
const MOST_GROUPS: usize = 256;

/// Lanes of one record.
#[derive(Clone, Debug)]
struct Group {
    record: u32,
    /// Mask of the lanes.
    lanes: u32,
    /// In a set of strong accesses, when each lane was added last, counted for each word.
    serials: Option<Box<[u32; 32]>>,
    /// Its accesses read: a write that does is a read-modify-write.
    reads: bool,
}

impl Group {
    /// The number of the access of a lane.
    fn serial(&self, lane: u32) -> u32 {
        self.serials.as_ref().map_or(0, |serials| serials[lane as usize])
    }

    fn set_serial(&mut self, lane: u32, serial: u32) {
        if serial != 0 {
            self.serials.get_or_insert_default()[lane as usize] = serial;
        }
    }

    /// The lanes whose access is not ordered before `who`.
    fn unordered(&self, who: &Accessor<'_>) -> u32 {
        let record = who.by.records.get(self.record);
        lanes(self.lanes).filter(|lane| !who.knows_lane(&record, *lane)).fold(0, |all, lane| all | 1 << lane)
    }
}

fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    crate::lanes::lanes(mask).map(|lane| lane as u32)
}

/// Accesses of several threads, the last one of each.
#[derive(Clone, Debug, Default)]
pub(super) struct AccessSet {
    groups: Vec<Group>,
}

impl AccessSet {
    /// Adds the accesses of `stamp`, by threads of the CTA of `who`, as those with number `serial`.
    pub(super) fn add(&mut self, stamp: Stamp, serial: u32, who: &Accessor<'_>) {
        let own = stamp.record();
        let record = who.by.records.get(own);
        let (warp, added) = (record.warp, who.by.records.lanes(&record, stamp, who.size));
        let (mut placed, mut stale) = (false, false);
        for group in &mut self.groups {
            if group.record == own {
                group.lanes |= added;
                lanes(added).for_each(|lane| group.set_serial(lane, serial));
                placed = true;
            } else if group.lanes & added != 0 {
                let record = who.by.records.get(group.record);
                if record.cta == who.by.cta && record.warp == warp {
                    group.lanes &= !added;
                    stale |= group.lanes == 0;
                }
            }
        }
        if stale {
            self.groups.retain(|group| group.lanes != 0);
        }
        if !placed {
            if self.groups.len() == MOST_GROUPS {
                self.groups.remove(0);
            }
            let mut group = Group { record: own, lanes: added, serials: None, reads: who.by.reads };
            lanes(added).for_each(|lane| group.set_serial(lane, serial));
            self.groups.push(group);
        }
    }

    /// Adds the access of `who`. If that needs a new group, the accesses ordered before it are dropped first.
    fn add_after(&mut self, serial: u32, who: &Accessor<'_>) {
        if !self.groups.iter().any(|group| group.record == who.stamp.record()) {
            self.forget_before(who);
        }
        self.add(who.stamp, serial, who);
    }

    /// Drops the accesses that are ordered before `who`.
    pub(super) fn forget_before(&mut self, who: &Accessor<'_>) {
        for group in &mut self.groups {
            group.lanes = group.unordered(who);
        }
        self.groups.retain(|group| group.lanes != 0);
    }

    /// Drops the accesses of the threads of `who`.
    pub(super) fn forget_own(&mut self, who: &Accessor<'_>) {
        let lanes = match who.by.sharing {
            Sharing::Together { lanes } => lanes,
            Sharing::Alone | Sharing::Row { .. } => 1 << (who.thread % 32),
        };
        for group in &mut self.groups {
            let record = who.by.records.get(group.record);
            if record.cta == who.by.cta && u32::from(record.warp) == who.thread / 32 {
                group.lanes &= !lanes;
            }
        }
        self.groups.retain(|group| group.lanes != 0);
    }

    /// The accesses in the set that are not ordered before `who`.
    pub(super) fn unordered<'a>(&'a self, who: &'a Accessor<'a>) -> impl Iterator<Item = Stamp> + 'a {
        self.groups.iter().flat_map(|group| lanes(group.unordered(who)).map(|lane| Stamp::of_lane(group.record, lane)))
    }

    /// As [`AccessSet::unordered`], of those added after `serial`.
    pub(super) fn unordered_after<'a>(
        &'a self,
        serial: u32,
        who: &'a Accessor<'a>,
    ) -> impl Iterator<Item = Stamp> + 'a {
        self.groups.iter().flat_map(move |group| {
            let later = lanes(group.unordered(who)).filter(move |lane| group.serial(*lane) > serial);
            later.map(|lane| Stamp::of_lane(group.record, lane))
        })
    }

    /// The serial of the last access in the set that reads and is ordered before `who`; 0 if there is none.
    fn last_known_read(&self, who: &Accessor<'_>) -> u32 {
        let known = |group: &Group| lanes(group.lanes & !group.unordered(who)).map(|lane| group.serial(lane)).max();
        self.groups.iter().filter(|group| group.reads).filter_map(known).max().unwrap_or(0)
    }

    /// A new access in the set, or none.
    pub(super) fn any_new(&self, newer: Newer) -> Stamp {
        let found = self.groups.iter().find(|group| newer.has_record(group.record));
        found.map_or(Stamp::NONE, |group| Stamp::of_lane(group.record, group.lanes.trailing_zeros()))
    }

    /// The set where it is joined.
    pub(super) fn shifted(&self, newer: Newer) -> AccessSet {
        let mut set = self.clone();
        set.groups.iter_mut().for_each(|group| group.record = newer.shift_record(group.record));
        set
    }

    /// Any access in the set.
    pub(super) fn first(&self) -> Option<Stamp> {
        let group = self.groups.first()?;
        Some(Stamp::of_lane(group.record, group.lanes.trailing_zeros()))
    }
}

/// Sets of unordered weak reads, reused after they are dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadSets {
    sets: Vec<AccessSet>,
    /// Indices of dropped sets.
    free: Vec<u32>,
}

impl ReadSets {
    pub(super) fn create(&mut self) -> u32 {
        if let Some(index) = self.free.pop() {
            return index;
        }
        self.sets.push(AccessSet::default());
        (self.sets.len() - 1) as u32
    }

    /// Drops all sets; what they have allocated is used again.
    fn clear(&mut self) {
        self.sets.iter_mut().for_each(|set| set.groups.clear());
        self.free.clear();
        self.free.extend(0..self.sets.len() as u32);
    }

    pub(super) fn drop_set(&mut self, index: u32) {
        self.sets[index as usize].groups.clear();
        self.free.push(index);
    }

    pub(super) fn get(&self, index: u32) -> &AccessSet {
        &self.sets[index as usize]
    }

    pub(super) fn get_mut(&mut self, index: u32) -> &mut AccessSet {
        &mut self.sets[index as usize]
    }
}

/// The strong accesses of a word or byte.
#[derive(Clone, Debug)]
pub(super) struct StrongAccesses {
    writes: AccessSet,
    reads: AccessSet,
    /// The last write, if it is strong.
    pub(super) last: Stamp,
    /// Number of strong accesses so far.
    serial: u32,
}

impl StrongAccesses {
    fn new() -> StrongAccesses {
        StrongAccesses { writes: AccessSet::default(), reads: AccessSet::default(), last: Stamp::NONE, serial: 0 }
    }

    /// The writes that `who` is not ordered after. A write is also ordered before everything that comes after a strong
    /// read of it (causality order: PTX ISA, section 8.8).
    pub(super) fn unordered_writes<'a>(&'a self, who: &'a Accessor<'a>) -> impl Iterator<Item = Stamp> + 'a {
        let observed = self.reads.last_known_read(who).max(self.writes.last_known_read(who));
        self.writes.unordered_after(observed, who)
    }

    /// Whether `who` is in the scope of all writes, and they in its own.
    pub(super) fn are_writes_in_scope(&self, who: &Accessor<'_>) -> bool {
        self.writes.groups.iter().all(|group| who.is_in_scope(&who.by.records.get(group.record)))
    }

    /// Whether `who` is in the scope of all reads, and they in its own.
    pub(super) fn are_reads_in_scope(&self, who: &Accessor<'_>) -> bool {
        self.reads.groups.iter().all(|group| who.is_in_scope(&who.by.records.get(group.record)))
    }

    /// The reads that `who` is not ordered after.
    pub(super) fn unordered_reads<'a>(&'a self, who: &'a Accessor<'a>) -> impl Iterator<Item = Stamp> + 'a {
        self.reads.unordered(who)
    }

    /// Whether one of the accesses is new.
    pub(super) fn has_news(&self, newer: Newer) -> bool {
        newer.has(self.last) || [&self.writes, &self.reads].into_iter().any(|set| !set.any_new(newer).is_none())
    }

    /// The accesses where they are joined.
    fn shifted(&self, newer: Newer) -> StrongAccesses {
        let (writes, reads) = (self.writes.shifted(newer), self.reads.shifted(newer));
        StrongAccesses { writes, reads, last: newer.shift(self.last), serial: self.serial }
    }

    /// Records a weak write, which replaces the accesses ordered before it; the others are kept.
    pub(super) fn weak_write(&mut self, who: &Accessor<'_>) {
        self.writes.forget_before(who);
        self.reads.forget_before(who);
        self.last = Stamp::NONE;
    }

    pub(super) fn strong_read(&mut self, who: &Accessor<'_>) {
        self.serial += 1;
        self.reads.add_after(self.serial, who);
    }

    pub(super) fn strong_write(&mut self, who: &Accessor<'_>) {
        self.serial += 1;
        self.writes.add_after(self.serial, who);
        // The write replaces an earlier read by the same thread.
        self.reads.forget_own(who);
        self.last = who.stamp;
    }
}

/// What a cell refers to by its `extra`.
#[derive(Clone, Debug)]
struct Extra {
    strong: Option<Box<StrongAccesses>>,
    /// An earlier write that the last one is not ordered after.
    earlier: Stamp,
}

/// The records that cells refer to by index.
#[derive(Clone, Debug, Default)]
pub(super) struct SideTables {
    pub(super) reads: ReadSets,
    extras: Vec<Extra>,
}

impl SideTables {
    pub(super) fn clear(&mut self) {
        self.reads.clear();
        self.extras.clear();
    }

    fn extra(&mut self, cell: &mut Cell) -> &mut Extra {
        if cell.extra == NEVER {
            cell.extra = self.extras.len() as u32;
            self.extras.push(Extra { strong: None, earlier: Stamp::NONE });
        }
        &mut self.extras[cell.extra as usize]
    }

    /// The strong accesses of a cell, if there were any.
    pub(super) fn strong(&self, cell: &Cell) -> Option<&StrongAccesses> {
        self.extras.get(cell.extra as usize)?.strong.as_deref()
    }

    pub(super) fn strong_mut(&mut self, cell: &Cell) -> Option<&mut StrongAccesses> {
        self.extras.get_mut(cell.extra as usize)?.strong.as_deref_mut()
    }

    /// The strong accesses of a cell, for adding one; created if there are none.
    pub(super) fn strong_for(&mut self, cell: &mut Cell) -> &mut StrongAccesses {
        self.extra(cell).strong.get_or_insert_with(|| Box::new(StrongAccesses::new()))
    }

    /// The earlier write that is kept beside the last one.
    pub(super) fn earlier(&self, cell: &Cell) -> Stamp {
        self.extras.get(cell.extra as usize).map_or(Stamp::NONE, |extra| extra.earlier)
    }

    pub(super) fn set_earlier(&mut self, cell: &mut Cell, stamp: Stamp) {
        if cell.extra != NEVER || !stamp.is_none() {
            self.extra(cell).earlier = stamp;
        }
    }

    /// Gives `own` the further records of a cell of another shadow.
    pub(super) fn adopt_extra(&mut self, other: &SideTables, cell: &Cell, own: &mut Cell, newer: Newer) {
        if let Some(Extra { strong, earlier }) = other.extras.get(cell.extra as usize) {
            let strong = strong.as_ref().map(|strong| Box::new(strong.shifted(newer)));
            own.extra = self.extras.len() as u32;
            self.extras.push(Extra { strong, earlier: newer.shift(*earlier) });
        }
    }

    /// A copy of a cell, with its own copies of the records that it refers to.
    pub(super) fn copy(&mut self, cell: Cell) -> Cell {
        let mut copy = cell;
        if let Reads::Several(index) = cell.reads() {
            let set = self.reads.get(index).clone();
            let own = self.reads.create();
            *self.reads.get_mut(own) = set;
            copy.set_reads(Reads::Several(own));
        }
        if let Some(extra) = self.extras.get(cell.extra as usize).cloned() {
            copy.extra = self.extras.len() as u32;
            self.extras.push(extra);
        }
        copy
    }
}
