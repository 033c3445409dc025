use tilewright_diag::Span;
use tilewright_ir::Arena;
use tilewright_ir::thread::MemorySpace;
use tilewright_layout::DType;

use super::*;

/// Handles of some memories.
fn memories<const N: usize>() -> [Handle<Memory>; N] {
    let mut arena = Arena::new();
    let place = (MemorySpace::Shared, 16);
    let memory = |at: usize| Memory::new(format!("m{at}"), DType::F32, 1, place, Span::here());
    std::array::from_fn(|at| arena.push(memory(at)))
}

fn of_plan(memory: Handle<Memory>) -> OfPlans {
    BTreeMap::from([(memory, BTreeSet::from([0]))])
}

fn filling(memory: Handle<Memory>) -> Group {
    Group { fills: of_plan(memory), ..Group::default() }
}

fn reading(memory: Handle<Memory>) -> Used {
    Used { reads: BTreeSet::from([memory]), ..Used::default() }
}

fn later(pending: &Pending, memory: Handle<Memory>) -> Option<usize> {
    pending.needed(|group| group.met(&reading(memory), &[Threads::All])).map(|needed| needed.later)
}

#[test]
fn a_wait_leaves_later_groups_pending() {
    let [a, b] = memories();
    let mut pending = Pending::default();
    pending.commit(filling(a));
    pending.commit(filling(b));
    assert_eq!([later(&pending, a), later(&pending, b)], [Some(1), Some(0)]);
    pending.wait(Threads::All, 1);
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
    pending.commit(Group { reads: of_plan(from), ..Group::default() });
    assert_eq!(later(&pending, from), None);
    let writing = Used { writes: BTreeSet::from([from]), ..Used::default() };
    assert!(pending.needed(|group| group.met(&writing, &[Threads::All])).is_some());
}

/// A group that has read its memory still counts as a later one, and as one that fills.
#[test]
fn a_group_that_has_read_may_still_fill() {
    let [from, to, other] = memories();
    let mut pending = Pending::default();
    pending.commit(Group { reads: of_plan(from), fills: of_plan(to), ..Group::default() });
    pending.commit(Group { reads: of_plan(other), ..Group::default() });
    pending.finish_reading(1);
    let writing = |memory| Used { writes: BTreeSet::from([memory]), ..Used::default() };
    let read =
        |memory| pending.needed(|group| group.met_read(&writing(memory), &[Threads::All])).map(|needed| needed.later);
    assert_eq!([read(from), read(other)], [None, Some(0)]);
    assert_eq!(later(&pending, to), Some(1));
}

/// Of two groups that are needed, the thread with fewer later ones decides how many may be pending.
#[test]
fn all_groups_that_are_needed_have_to_arrive() {
    let [a, b, c] = memories();
    let mut roles = Arena::new();
    let role =
        |roles: &mut Arena<Role>| roles.push(Role { name: "r".to_string(), first: 0, warps: 1, span: Span::here() });
    let (one, other) = (role(&mut roles), role(&mut roles));
    let mut pending = Pending::default();
    pending.commit(Group { by: Threads::Of(other), ..filling(a) });
    pending.commit(Group { by: Threads::Of(one), ..filling(b) });
    pending.commit(Group { by: Threads::Of(one), ..filling(c) });
    let used = Used { reads: BTreeSet::from([a, b]), ..Used::default() };
    let needed = pending.needed(|group| group.met(&used, &[Threads::All])).expect("two groups");
    assert_eq!((needed.later, needed.by), (0, Threads::Some));
}

/// What one thread of a role commits is not later for the thread of the CTA.
#[test]
fn one_thread_has_only_its_own_groups() {
    let [a, b] = memories();
    let mut pending = Pending::default();
    pending.commit(Group { by: Threads::One(None), ..filling(a) });
    let role = Arena::new().push(Role { name: "r".to_string(), first: 0, warps: 1, span: Span::here() });
    pending.commit(Group { by: Threads::One(Some(role)), ..filling(b) });
    assert_eq!([later(&pending, a), later(&pending, b)], [Some(0), Some(0)]);
    pending.commit(Group { by: Threads::One(None), ..Group::default() });
    assert_eq!([later(&pending, a), later(&pending, b)], [Some(1), Some(0)]);
}

/// A wait of one role is not one of another, nor one of all threads; where another path has not waited, nobody has.
#[test]
fn a_wait_of_a_role_counts_for_the_role_alone() {
    let [a] = memories();
    let mut roles = Arena::new();
    let role =
        |roles: &mut Arena<Role>| roles.push(Role { name: "r".to_string(), first: 0, warps: 1, span: Span::here() });
    let [one, other] = [role(&mut roles), role(&mut roles)].map(Threads::Of);
    let mut pending = Pending::default();
    pending.commit(Group { by: one, ..filling(a) });
    let before = pending.clone();
    pending.wait_of(&[one], 0, false);
    let for_threads =
        |pending: &Pending, by| pending.needed(|group| group.met(&reading(a), &[by])).map(|needed| needed.later);
    assert_eq!([one, other, Threads::All].map(|by| for_threads(&pending, by)), [None, Some(0), Some(0)]);
    pending.meet(before);
    assert_eq!(for_threads(&pending, one), Some(0));
}

/// A group of all threads before a loop in which others commit: what may be pending becomes the same in each iteration.
#[test]
fn groups_of_other_threads_come_to_an_end_where_paths_meet() {
    let [a] = memories();
    let mut pending = Pending::default();
    pending.commit(filling(a));
    let known = (0..1000).find(|_| {
        let before = pending.clone();
        let mut after = pending.clone();
        after.commit(Group::without_memory(Threads::One(None)));
        pending.meet(after);
        pending == before
    });
    assert!(known.is_some());
    assert_eq!(later(&pending, a), Some(0));
}
