use super::*;

/// A CTA that is a cluster by itself.
fn alone(cta: u32) -> Cluster {
    Cluster { own: cta, all: Arc::new([cta]) }
}

#[test]
fn a_meeting_orders_its_members_only() {
    let mut clocks = Clocks::new(alone(1), 3);
    let before = clocks.own(0);
    let all = [clocks.release(0), clocks.release(1)];
    clocks.acquire(&all, &[0, 1]);
    assert!(clocks.base(1)[0] >= before);
    assert!(clocks.base(2)[0] < before);
    assert!(clocks.base(1)[0] < clocks.own(0));
}

#[test]
fn knowledge_is_passed_on() {
    let mut clocks = Clocks::new(alone(1), 3);
    let before = clocks.own(0);
    let first = [clocks.release(0), clocks.release(1)];
    clocks.acquire(&first, &[0, 1]);
    let second = [clocks.release(1), clocks.release(2)];
    clocks.acquire(&second, &[1, 2]);
    assert!(clocks.base(2)[0] >= before);
}

#[test]
fn who_only_arrives_learns_nothing() {
    let mut clocks = Clocks::new(alone(1), 2);
    let waiter = clocks.own(1);
    let all = [clocks.release(0), clocks.release(1)];
    clocks.acquire(&all, &[1]);
    assert!(clocks.base(0)[1] < waiter);
}

/// Thread 0 of CTA 1 writes and releases with `scope`; thread 0 of CTA 2 reads with `scope`. Returns what the reader
/// knows of the writer.
fn handed_over(released: Scope, acquired: Scope) -> u32 {
    let (mut one, mut two) = (Clocks::new(alone(1), 2), Clocks::new(alone(2), 2));
    let mut flag = Flag::default();
    flag.add(one.written(0, released, true).expect("a release"));
    two.read(0, &flag, acquired, true);
    two.far(0).count(1, 0)
}

#[test]
fn a_release_is_observed_in_both_scopes_only() {
    assert_eq!(handed_over(Scope::Gpu, Scope::Sys), 1);
    assert_eq!(handed_over(Scope::Gpu, Scope::Cta), 0);
    assert_eq!(handed_over(Scope::Cta, Scope::Gpu), 0);
}

#[test]
fn fences_order_what_relaxed_accesses_hand_over() {
    let (mut one, mut two) = (Clocks::new(alone(1), 2), Clocks::new(alone(2), 2));
    let mut flag = Flag::default();
    assert!(one.written(0, Scope::Gpu, false).is_none());
    one.fence(0, Scope::Gpu, false, true);
    flag.add(one.written(0, Scope::Gpu, false).expect("a fence came before"));
    two.read(0, &flag, Scope::Gpu, false);
    assert_eq!(two.far(0).count(1, 0), 0);
    two.fence(0, Scope::Gpu, false, true);
    assert_eq!(two.far(0).count(1, 0), 0);
    two.fence(0, Scope::Gpu, true, false);
    assert_eq!(two.far(0).count(1, 0), 1);
    assert_eq!(one.own(0), 2);
}

#[test]
fn knowledge_of_other_ctas_passes_a_barrier_and_comes_back() {
    let (mut one, mut two) = (Clocks::new(alone(1), 2), Clocks::new(alone(2), 2));
    let mut flag = Flag::default();
    flag.add(one.written(0, Scope::Gpu, true).expect("a release"));
    two.read(0, &flag, Scope::Gpu, true);
    let all = [two.release(0), two.release(1)];
    two.acquire(&all, &[0, 1]);
    assert_eq!(two.far(1).count(1, 0), 1);
    let mut back = Flag::default();
    back.add(two.written(1, Scope::Gpu, true).expect("a release"));
    one.read(1, &back, Scope::Gpu, true);
    assert_eq!((one.base(1)[0], one.far(1).count(2, 0)), (1, 1));
}
