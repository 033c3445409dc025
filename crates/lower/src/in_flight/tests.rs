use tilewright_diag::Span;
use tilewright_ir::Arena;
use tilewright_ir::thread::MemorySpace;
use tilewright_layout::DType;

use super::*;

/// Handles of some memories.
fn memories<const N: usize>() -> [Handle<Memory>; N] {
    let mut arena = Arena::new();
    let memory = |at: usize| Memory {
        name: format!("m{at}"),
        dtype: DType::F32,
        elements: 1,
        stages: 1,
        space: MemorySpace::Shared,
        values: Vec::new(),
        alignment: 16,
        span: Span::here(),
    };
    std::array::from_fn(|at| arena.push(memory(at)))
}

fn filling(memory: Handle<Memory>) -> Group {
    Group { fills: BTreeMap::from([(memory, 0)]), ..Group::default() }
}

fn reading(memory: Handle<Memory>) -> Used {
    Used { reads: BTreeSet::from([memory]), ..Used::default() }
}

fn later(pending: &Pending, memory: Handle<Memory>) -> Option<usize> {
    pending.needed(&reading(memory)).map(|needed| needed.later)
}

#[test]
fn a_wait_leaves_later_groups_pending() {
    let [a, b] = memories();
    let mut pending = Pending::default();
    pending.commit(filling(a));
    pending.commit(filling(b));
    assert_eq!([later(&pending, a), later(&pending, b)], [Some(1), Some(0)]);
    pending.wait(Committers::All, 1);
    assert_eq!([later(&pending, a), later(&pending, b)], [None, Some(0)]);
}

/// The group is the latest on one path, and the one before on the other.
#[test]
fn where_paths_meet_the_fewest_later_groups_count() {
    let [a, b] = memories();
    let (mut one, mut other) = (Pending::default(), Pending::default());
    one.commit(filling(a));
    one.commit(filling(b));
    other.commit(filling(a));
    one.meet(other);
    assert_eq!([later(&one, a), later(&one, b)], [Some(0), Some(0)]);
}

#[test]
fn groups_beyond_the_most_that_are_distinguished_count_as_the_last_of_these() {
    let all = memories::<{ MOST_GROUPS + 3 }>();
    let mut pending = Pending::default();
    all.iter().for_each(|memory| pending.commit(filling(*memory)));
    assert_eq!(later(&pending, all[0]), Some(MOST_GROUPS - 1));
    assert_eq!(later(&pending, all[3]), Some(MOST_GROUPS - 1));
    assert_eq!(later(&pending, all[4]), Some(MOST_GROUPS - 2));
}

#[test]
fn what_a_copy_reads_may_be_read_but_not_written() {
    let [from] = memories();
    let mut pending = Pending::default();
    pending.commit(Group { reads: BTreeMap::from([(from, 0)]), ..Group::default() });
    assert_eq!(later(&pending, from), None);
    let writing = Used { writes: BTreeSet::from([from]), ..Used::default() };
    assert!(pending.needed(&writing).is_some());
}
