//! Tests that the reader, the judge and the data agree.

use std::path::Path;

use super::assignment::nests;
use super::{
    Assignment, Case, Class, Element, Fault, Index, IndexOp, LoopPlacement, Op, Placement, Program, judge, races,
    read_case, read_folder,
};

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/tilelang"))
}

fn case(name: &str) -> Case {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    read_case(&text).unwrap()
}

fn expected(case: &Case) -> Assignment {
    Assignment::of_expected(&case.program, &case.expected).unwrap()
}

#[test]
fn the_judge_agrees_with_every_verdict() {
    let cases = read_folder(folder()).unwrap();
    assert_eq!(cases.len(), 147);
    let all: Vec<String> = cases.iter().flat_map(disagreements).collect();
    assert!(all.is_empty(), "{} disagreements:\n{}", all.len(), all.join("\n"));
}

/// The disagreements between judge and data.
fn disagreements(case: &Case) -> Vec<String> {
    let mut found = Vec::new();
    let met = races(&case.program);
    if met.is_empty() == (case.verdict.class == Class::AcceptsRacy) {
        found.push(format!("{} races, {:?}", met.len(), met.first()));
    }
    match answer(case).map(|answer| answer.map(|answer| judge(&case.program, &answer))) {
        Err(why) => found.push(why),
        Ok(Some(faults)) if case.verdict.class == Class::AcceptsSound => {
            found.extend(faults.iter().take(3).map(ToString::to_string));
        }
        Ok(Some(faults)) if faults.is_empty() && case.verdict.class != Class::AcceptsRacy => {
            found.push("no fault found".to_string());
        }
        Ok(_) => {}
    }
    match case.witness.as_ref().map(Assignment::of_layouts) {
        Some(Err(why)) => found.push(why),
        Some(Ok(witness)) => {
            let faults = judge(&case.program, &witness);
            found.extend(faults.iter().take(3).map(|fault| format!("witness: {fault}")));
        }
        None => {}
    }
    if case.verdict.class == Class::RejectsValid && case.witness.is_none() {
        found.push("no witness".to_string());
    }
    found.into_iter().map(|why| format!("{}: {why}", case.name)).collect()
}

/// The assignment that the verdict concerns: the reference's answer, or the program's own layouts if no valid layouts
/// exist.
fn answer(case: &Case) -> Result<Option<Assignment>, String> {
    match case.verdict.class {
        Class::AcceptsSound | Class::AcceptsWrong | Class::AcceptsRacy => {
            Assignment::of_expected(&case.program, &case.expected).map(Some)
        }
        Class::Rejects => annotated(&case.program).map(Some),
        Class::RejectsValid => Ok(None),
    }
}

/// The layouts specified by a program.
fn annotated(program: &Program) -> Result<Assignment, String> {
    let mut assignment = Assignment::of_layouts(&program.layouts)?;
    for nest in nests(&program.body) {
        let layout = nest.loop_layout.as_ref().and_then(|name| program.loop_layouts.get(name));
        assignment.loops.push(LoopPlacement::of_layout(nest, layout.ok_or("the loop has no layout")?)?);
    }
    Ok(assignment)
}

/// A sound case of two loops: one writes an 8x8 fragment of one element per thread, the other reads its left half.
const SOUND: &str = "sp_half_cols_2d";

fn faults_after(name: &str, change: impl FnOnce(&mut Assignment)) -> Vec<Fault> {
    let case = case(name);
    let mut assignment = expected(&case);
    let before = judge(&case.program, &assignment);
    assert!(before.is_empty(), "{before:?}");
    change(&mut assignment);
    judge(&case.program, &assignment)
}

fn placement<'a>(assignment: &'a mut Assignment, buffer: &str) -> &'a mut Placement {
    assignment.buffers.get_mut(buffer).unwrap()
}

fn with_owners(owners: &[(i64, i64)]) -> Vec<Fault> {
    faults_after(SOUND, |assignment| placement(assignment, "a").owners[1] = owners.to_vec())
}

fn with_executors(nest: usize, executors: &[i64]) -> Vec<Fault> {
    faults_after(SOUND, |assignment| assignment.loops[nest].executors[3] = executors.to_vec())
}

macro_rules! assert_found {
    ($faults:expr, $($kind:pat),+) => {
        let faults: Vec<Fault> = $faults;
        $(assert!(faults.iter().any(|fault| matches!(fault, $kind)), "{}: {faults:?}", stringify!($kind));)+
    };
}

#[test]
fn an_owner_on_a_wrong_thread_is_found() {
    assert_found!(with_owners(&[(9, 7)]), Fault::StoreElsewhere(_), Fault::LoadElsewhere(_));
}

#[test]
fn one_owner_too_many_is_not_written() {
    let faults = with_owners(&[(1, 0), (9, 7)]);
    assert!(!faults.is_empty() && faults.iter().all(|fault| matches!(fault, Fault::StoreElsewhere(_))), "{faults:?}");
}

#[test]
fn an_element_without_owners_is_found() {
    assert_found!(with_owners(&[]), Fault::Unowned(_), Fault::StoreElsewhere(_));
}

#[test]
fn a_thread_outside_of_the_block_is_found() {
    assert_found!(with_owners(&[(64, 0)]), Fault::OutsideBlock { thread: 64, .. });
    assert_found!(with_owners(&[(-1, 0)]), Fault::OutsideBlock { thread: -1, .. });
}

#[test]
fn two_elements_in_one_register_are_found() {
    assert_found!(with_owners(&[(0, 0)]), Fault::SharedSlot { owner: (0, 0), .. });
}

#[test]
fn wrong_executors_are_found() {
    assert_found!(with_executors(0, &[]), Fault::NotExecuted(_));
    assert_found!(with_executors(1, &[64]), Fault::ExecutorOutside { thread: 64, .. });
    assert_found!(with_executors(1, &[5]), Fault::LoadElsewhere(_));
    assert_found!(with_executors(1, &[5, 3]), Fault::WrongLoop { .. });
}

#[test]
fn placements_that_are_not_of_the_program_are_found() {
    let without_fragment = |assignment: &mut Assignment| assignment.buffers.clear();
    assert_found!(faults_after(SOUND, without_fragment), Fault::NotPlaced(_));
    let other_shape = |assignment: &mut Assignment| placement(assignment, "a").shape = vec![64];
    assert_found!(faults_after(SOUND, other_shape), Fault::WrongShape { .. });
    let without_loop = |assignment: &mut Assignment| assignment.loops.truncate(1);
    assert_found!(faults_after(SOUND, without_loop), Fault::WrongLoops { program: 2, assigned: 1 });
}

/// Moves every owner to another thread.
fn moved(assignment: &mut Assignment, buffer: &str, to: impl Fn((i64, i64)) -> (i64, i64)) {
    for owners in &mut placement(assignment, buffer).owners {
        owners.iter_mut().for_each(|owner| *owner = to(*owner));
        owners.sort_unstable();
    }
}

#[test]
fn a_view_elsewhere_is_found() {
    let next_slots = |(thread, slot): (i64, i64)| (thread, slot + 8);
    assert_found!(
        faults_after("al_view_f32_as_f16", |assignment| moved(assignment, "v", next_slots)),
        Fault::AliasDiffers { .. }
    );
}

#[test]
fn a_result_away_from_its_row_is_found() {
    let next_row = |(thread, slot): (i64, i64)| ((thread + 8) % 64, slot);
    assert_found!(
        faults_after("red_row_8x32_t64", |assignment| moved(assignment, "s", next_row)),
        Fault::ReduceElsewhere { .. }
    );
}

#[test]
fn a_copy_across_threads_is_found() {
    let next_row = |(thread, slot): (i64, i64)| ((thread + 4) % 128, slot + 5);
    assert_found!(
        faults_after("gemm_flash_attention_sm_80", |assignment| moved(assignment, "mp", next_row)),
        Fault::CopyElsewhere { .. }
    );
}

#[test]
fn an_access_of_all_threads_to_what_one_lacks_is_found() {
    assert_found!(
        faults_after("seed_floating_if", |assignment| {
            placement(assignment, "m").owners[3].pop();
        }),
        Fault::Floating { .. }
    );
}

#[test]
fn a_read_that_no_thread_can_do_is_found() {
    let case = case("rej_shifted_read");
    let owners = (0..65).map(|element| vec![(element % 64, element / 64)]).collect();
    let mut assignment = Assignment::default();
    assignment.buffers.insert("a".to_string(), Placement { shape: vec![65], owners });
    assert_found!(judge(&case.program, &assignment), Fault::NoReader(_));
}

#[test]
fn iterations_that_write_one_element_are_found() {
    let mut program = case(SOUND).program;
    assert!(races(&program).is_empty());
    let Some(Op::Parallel(nest)) = program.body.first_mut() else { panic!("no loop") };
    let Some(Element::Store(store)) = nest.body.first_mut() else { panic!("no store") };
    store.index[1] = Index::Binary(IndexOp::Min, Box::new(store.index[1].clone()), Box::new(Index::Integer(6)));
    let found = races(&program);
    assert_eq!(found.len(), 8);
    assert_eq!(found[0].to_string(), "op 0: iterations [0, 6] and [0, 7] both write a[0, 6]");
}

#[test]
fn indices_round_down() {
    let apply = |op: IndexOp, left, right| op.apply(left, right);
    assert_eq!(apply(IndexOp::FloorDiv, -7, 2), Some(-4));
    assert_eq!(apply(IndexOp::FloorDiv, 7, -2), Some(-4));
    assert_eq!(apply(IndexOp::FloorMod, -7, 2), Some(1));
    assert_eq!(apply(IndexOp::FloorMod, 7, -2), Some(-1));
    assert_eq!(apply(IndexOp::ShiftRight, -7, 1), Some(-4));
    assert_eq!(apply(IndexOp::ShiftLeft, 3, 4), Some(48));
    assert_eq!(apply(IndexOp::FloorDiv, 7, 0), None);
    assert_eq!(apply(IndexOp::FloorMod, 7, 0), None);
    assert_eq!(apply(IndexOp::Mul, i64::MAX, 2), None);
    assert_eq!(apply(IndexOp::ShiftLeft, 1, 63), None);
}

#[test]
fn errors_name_the_case_and_the_place() {
    let text = std::fs::read_to_string(folder().join(format!("{SOUND}.json"))).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["program"]["body"][1]["body"][0]["speed"] = serde_json::Value::from(1);
    let why = read_case(&json.to_string()).unwrap_err();
    assert_eq!(why, "sp_half_cols_2d: program.body[1].body[0]: unknown key `speed`");
    json["program"]["body"][1]["op"] = serde_json::Value::from("jump");
    let why = read_case(&json.to_string()).unwrap_err();
    assert_eq!(why, "sp_half_cols_2d: program.body[1]: unknown op `jump`");
    assert!(read_case("[1]").is_err() && read_case("").is_err());
}
