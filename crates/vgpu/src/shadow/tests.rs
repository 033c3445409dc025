use super::*;
use crate::clock::Far;
use crate::isa::Scope;

/// A shadow with its records.
#[derive(Clone, Default)]
struct Case {
    shadow: Shadow,
    records: Records,
    far: Far,
}

/// A thread that accesses memory; the program counter is that of the thread unless it is given.
#[derive(Clone, Copy)]
struct By<'a> {
    cta: u32,
    first_cta: u32,
    thread: u32,
    clock: u32,
    base: &'a [u32],
    pc: u32,
    scope: Option<Scope>,
    updates: bool,
}

fn weak(thread: u32, clock: u32, base: &[u32]) -> By<'_> {
    By { cta: 1, first_cta: 1, thread, clock, base, pc: thread, scope: None, updates: false }
}

fn strong(thread: u32, clock: u32, base: &[u32]) -> By<'_> {
    By { scope: Some(Scope::Gpu), ..weak(thread, clock, base) }
}

/// What a test compares of a conflict: its instruction, whether it is a write, strong, or of another CTA.
type Found = Option<(u32, bool, bool, bool)>;

fn first(result: &CheckResult) -> Found {
    let Conflict { pc, other_is_write, other_is_strong, other_cta, .. } = result.conflicts.first()?.conflict;
    Some((pc, other_is_write, other_is_strong, other_cta))
}

impl Case {
    fn access(&mut self, by: By<'_>, offset: usize, data: Option<(&[u8], &[u8])>, len: usize) -> CheckResult {
        let record = Record {
            cta: by.cta,
            warp: (by.thread / 32) as u16,
            scope: by.scope,
            clock: by.clock,
            pc: by.pc,
            sharing: Sharing::Alone,
        };
        let number = self.records.add(record).expect("there is room");
        let stamp = self.records.stamp(number, by.thread % 32);
        let By { cta, first_cta, thread, base, scope, .. } = by;
        let (records, far) = (&self.records, &self.far.join(&Far::of_launches(first_cta)));
        let reads = by.updates || data.is_none();
        let cluster = &[cta];
        let actor = Actor {
            records,
            sharing: Sharing::Alone,
            cta,
            first_cta,
            cluster,
            base,
            far,
            copies: 0,
            fenced: None,
            scope,
            reads,
            notes_reads: false,
            known: &KnownStamps::new(),
        };
        let who = Accessor { by: &actor, stamp, thread, size: len };
        match data {
            None => self.shadow.read(offset, len, &who),
            Some(values) => self.shadow.write(offset, len, Some(values), &who),
        }
    }

    fn read(&mut self, by: By<'_>) -> CheckResult {
        self.access(by, 0, None, 4)
    }

    fn write(&mut self, by: By<'_>, old: u8, new: u8) -> CheckResult {
        self.access(by, 0, Some((&[old; 4], &[new; 4])), 4)
    }

    /// CTA, thread and instruction of the last write.
    fn last(&self) -> Option<(u32, u32)> {
        let stamp = self.shadow.last_write(0, &self.records)?;
        let record = self.records.of(stamp);
        Some((record.cta, u32::from(record.warp) * 32 + self.records.lane(stamp)))
    }
}

#[test]
fn an_unordered_read_after_a_write_conflicts() {
    let mut case = Case::default();
    assert_eq!(case.write(weak(0, 1, &[0, 0]), 0, 1), CheckResult::default());
    assert_eq!(first(&case.read(weak(1, 1, &[0, 0]))), Some((0, true, false, false)));
    assert_eq!(first(&case.read(weak(1, 2, &[1, 0]))), None);
}

#[test]
fn a_write_conflicts_with_any_of_several_reads() {
    let mut case = Case::default();
    case.read(weak(0, 1, &[0, 0, 0]));
    case.read(weak(1, 1, &[0, 0, 0]));
    assert_eq!(first(&case.write(weak(2, 1, &[1, 0, 0]), 0, 1)), Some((1, false, false, false)));
}

#[test]
fn neighbouring_bytes_do_not_conflict() {
    let mut case = Case::default();
    case.access(weak(0, 1, &[0, 0]), 0, Some((&[0], &[1])), 1);
    assert_eq!(case.access(weak(1, 1, &[0, 0]), 1, Some((&[0], &[1])), 1), CheckResult::default());
    assert!(first(&case.read(weak(1, 1, &[0, 0]))).is_some());
}

#[test]
fn equal_values_are_benign() {
    let mut case = Case::default();
    case.write(weak(0, 1, &[0, 0]), 0, 7);
    let found = case.write(weak(1, 1, &[0, 0]), 7, 7);
    assert!(found.benign.is_some_and(|conflict| conflict.other_is_write));
    assert_eq!(found, CheckResult { benign: found.benign, ..CheckResult::default() });
    assert_eq!(case.last(), Some((1, 1)));
}

/// The last writer is ordered before its own next write, but the other writer of the same value is not.
#[test]
fn an_equal_value_does_not_hide_an_earlier_write() {
    let mut case = Case::default();
    case.write(weak(0, 1, &[0, 0]), 0, 7);
    assert!(case.write(weak(1, 1, &[0, 0]), 7, 7).benign.is_some());
    assert_eq!(first(&case.write(weak(1, 1, &[0, 0]), 7, 8)), Some((0, true, false, false)));
    // Nor does the conflicting write: the earlier one may still be the last.
    assert_eq!(first(&case.write(weak(1, 1, &[0, 0]), 8, 9)), Some((0, true, false, false)));
}

#[test]
fn a_write_after_a_barrier_is_ordered_after_all_writers_of_an_equal_value() {
    let mut case = Case::default();
    case.write(weak(0, 1, &[0, 0]), 0, 7);
    case.write(weak(1, 1, &[0, 0]), 7, 7);
    assert_eq!(first(&case.write(weak(1, 2, &[1, 1]), 7, 8)), None);
}

#[test]
fn an_equal_value_of_another_cta_is_remembered_through_several() {
    let mut case = Case::default();
    let of_cta = |cta: u32, pc: u32| By { cta, pc, ..weak(0, 1, &[0, 0]) };
    case.write(of_cta(1, 5), 0, 1);
    assert!(case.write(of_cta(2, 5), 1, 1).benign.is_some());
    assert!(case.write(of_cta(3, 5), 1, 1).benign.is_some());
    assert_eq!(first(&case.write(of_cta(3, 6), 1, 2)), Some((5, true, false, true)));
}

#[test]
fn a_thread_writes_another_value_again_until_its_next_barrier() {
    let mut case = Case::default();
    let by = |pc: u32, clock: u32| By { pc, ..weak(1, clock, &[0, 0]) };
    assert_eq!(case.write(by(7, 1), 0, 1), CheckResult::default());
    assert_eq!(case.write(by(8, 1), 1, 1), CheckResult::default());
    let again = CheckResult { own_previous_write: Some(8), ..CheckResult::default() };
    assert_eq!(case.write(by(9, 1), 1, 2), again);
    assert_eq!(case.write(by(7, 2), 2, 3), CheckResult::default());
}

#[test]
fn a_strong_write_does_not_hide_a_weak_one() {
    let mut case = Case::default();
    case.write(weak(0, 1, &[0, 0]), 0, 1);
    assert_eq!(case.write(strong(0, 1, &[0, 0]), 1, 2), CheckResult::default());
    assert_eq!(first(&case.write(strong(1, 1, &[0, 0]), 2, 3)), Some((0, true, false, false)));
    assert_eq!(case.last(), Some((1, 1)));
}

#[test]
fn a_weak_read_conflicts_with_any_of_several_strong_writes() {
    let mut case = Case::default();
    case.write(strong(0, 1, &[0, 0]), 0, 1);
    assert_eq!(case.write(strong(1, 1, &[0, 0]), 1, 2), CheckResult::default());
    assert_eq!(first(&case.read(weak(1, 1, &[0, 0]))), Some((0, true, true, false)));
    let mut case = Case::default();
    case.write(strong(0, 1, &[0, 0]), 0, 1);
    case.write(strong(1, 1, &[0, 0]), 1, 2);
    assert_eq!(first(&case.read(weak(1, 2, &[1, 1]))), None);
    assert_eq!(case.write(weak(1, 2, &[1, 1]), 2, 3), CheckResult::default());
    assert_eq!(case.last(), Some((1, 1)));
}

#[test]
fn a_strong_read_does_not_hide_a_weak_one() {
    let mut case = Case::default();
    case.read(weak(0, 1, &[0, 0]));
    case.read(strong(0, 1, &[0, 0]));
    assert_eq!(first(&case.write(strong(1, 1, &[0, 0]), 0, 1)), Some((0, false, false, false)));
    let mut case = Case::default();
    case.read(strong(0, 1, &[0, 0]));
    assert_eq!(case.write(strong(1, 1, &[0, 0]), 0, 1), CheckResult::default());
    assert_eq!(first(&case.write(weak(1, 1, &[0, 0]), 1, 2)), Some((0, false, true, false)));
}

#[test]
fn strong_accesses_of_other_ctas_conflict_with_weak_ones() {
    let mut case = Case::default();
    case.write(strong(0, 1, &[0, 0]), 0, 1);
    let second = By { cta: 2, ..weak(0, 1, &[0, 0]) };
    assert_eq!(case.write(By { scope: Some(Scope::Sys), ..second }, 1, 2), CheckResult::default());
    assert_eq!(first(&case.read(second)), Some((0, true, true, true)));
    assert_eq!(first(&case.read(By { cta: 3, first_cta: 3, ..second })), None);
}

#[test]
fn a_strong_access_outside_the_scope_conflicts() {
    let mut case = Case::default();
    case.write(strong(0, 1, &[0, 0]), 0, 1);
    let narrow = By { cta: 2, scope: Some(Scope::Cta), ..weak(0, 1, &[0, 0]) };
    assert_eq!(first(&case.read(narrow)), Some((0, true, true, true)));
    assert_eq!(first(&case.write(By { cta: 1, ..narrow }, 1, 2)), None);
}

#[test]
fn what_a_thread_knows_of_another_cta_is_ordered() {
    let mut case = Case::default();
    case.write(weak(1, 3, &[0, 0]), 0, 1);
    let other = By { cta: 2, ..weak(0, 1, &[0, 0]) };
    case.far = Far::of(1, &[0, 2]);
    assert_eq!(first(&case.read(other)), Some((1, true, false, true)));
    case.far = Far::of(1, &[0, 3]);
    assert_eq!(first(&case.read(other)), None);
    assert_eq!(first(&case.write(other, 1, 2)), None);
}

#[test]
fn a_read_by_another_cta_is_remembered_with_its_thread() {
    let mut case = Case::default();
    case.read(weak(1, 3, &[0, 0]));
    let other = By { cta: 2, ..weak(0, 1, &[0, 0]) };
    case.read(other);
    assert_eq!(first(&case.write(other, 0, 1)), Some((1, false, false, true)));
    let mut case = Case { far: Far::of(1, &[0, 3]), ..Case::default() };
    case.read(weak(1, 3, &[0, 0]));
    case.read(other);
    assert_eq!(first(&case.write(other, 0, 1)), None);
}

#[test]
fn a_strong_write_is_ordered_before_what_follows_a_strong_read_of_it() {
    let mut case = Case::default();
    case.write(strong(0, 2, &[0, 0]), 0, 1);
    let second = By { cta: 2, ..strong(0, 1, &[0, 0]) };
    assert_eq!(first(&case.write(By { scope: None, ..second }, 1, 2)), Some((0, true, true, true)));
    let mut case = Case::default();
    case.write(strong(0, 2, &[0, 0]), 0, 1);
    assert_eq!(case.write(By { updates: true, ..second }, 1, 2), CheckResult::default());
    assert_eq!(first(&case.write(By { scope: None, ..second }, 2, 0)), None);
    // A plain strong store observes nothing.
    let mut case = Case::default();
    case.write(strong(0, 2, &[0, 0]), 0, 1);
    assert_eq!(case.write(second, 1, 2), CheckResult::default());
    assert_eq!(first(&case.write(By { scope: None, ..second }, 2, 0)), Some((0, true, true, true)));
}

/// Accesses by one thread of a CTA to up to 16 bytes of 48: offset, length, and whether it writes.
fn accesses(state: &mut u64, count: usize) -> Vec<(usize, usize, bool)> {
    let mut below = |bound: usize| {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 33) as usize % bound
    };
    let access = |_| {
        let len = 1 << below(5);
        (below(48 / len) * len, len, below(2) == 0)
    };
    (0..count).map(access).collect()
}

/// Two copies on which CTAs have made single accesses of all sizes: whether they can be joined, and who wrote and read last.
#[test]
fn copies_are_joined_as_their_accesses_say() {
    let (mut joined, mut state) = (0, 1);
    let by = |cta: u32, pc: u32| By { cta, first_cta: if cta == 1 { 1 } else { 2 }, pc, ..weak(0, 1, &[0; 32]) };
    for run in 0..6000 {
        let mut before = Case::default();
        let mut written = [0; 48];
        for (offset, len, is_write) in accesses(&mut state, run % 6) {
            before.access(by(1, 1), offset, is_write.then_some((&[0; 16][..len], &[1; 16][..len])), len);
            written[offset..offset + len].iter_mut().for_each(|last| {
                if is_write {
                    *last = 1
                }
            });
        }
        let first = before.records.len();
        // Of each CTA, which bytes it has written, and which it has read.
        let mut touched = [[[false; 48]; 2]; 2];
        let mut copies = [before.clone(), before];
        for (at, copy) in copies.iter_mut().enumerate() {
            for (offset, len, is_write) in accesses(&mut state, 1 + run % 4) {
                let by = by(2 + at as u32, 2 + at as u32);
                let found = copy.access(by, offset, is_write.then_some((&[0; 16][..len], &[1; 16][..len])), len);
                assert_eq!(found.conflicts, [], "run {run}");
                touched[at][usize::from(!is_write)][offset..offset + len].fill(true);
            }
        }
        let [[own_writes, own_reads], [their_writes, their_reads]] = touched;
        let [mut own, other] = copies;
        let newer = own.records.join(&other.records, first, 2).expect("there is room");
        let found = own.shadow.join(other.shadow, newer, &own.records);
        let is_apart = (0..48).all(|byte| {
            !(own_writes[byte] && (their_writes[byte] || their_reads[byte])) && !(their_writes[byte] && own_reads[byte])
        });
        assert_eq!(found.is_some(), is_apart, "run {run}");
        let Some(found) = found else { continue };
        joined += 1;
        for byte in 0..48 {
            assert_eq!(found.iter().any(|range| range.contains(&byte)), their_writes[byte], "run {run}, byte {byte}");
            let writer = if their_writes[byte] {
                3
            } else if own_writes[byte] {
                2
            } else {
                written[byte]
            };
            let last = own.shadow.last_write(byte, &own.records).map_or(0, |stamp| own.records.of(stamp).cta);
            assert_eq!(last, writer, "run {run}, byte {byte}");
            let is_write_unordered = own_writes[byte] || their_writes[byte];
            let mut later = own.clone();
            let read = later.access(by(4, 4), byte, None, 1);
            assert_eq!(!read.conflicts.is_empty(), is_write_unordered, "run {run}, byte {byte}");
            let mut later = own.clone();
            let write = later.access(by(4, 4), byte, Some((&[0], &[1])), 1);
            let is_unordered = is_write_unordered || own_reads[byte] || their_reads[byte];
            assert_eq!(!write.conflicts.is_empty(), is_unordered, "run {run}, byte {byte}");
        }
    }
    assert!(joined > 1000, "{joined}");
}
