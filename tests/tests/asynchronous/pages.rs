//! The page of a pipeline with four roles, and of the same one with a deadlock.

use tilewright::vgpu::timeline::{Actor, Engine, Timeline};
use tilewright::vgpu::{FaultKind, Options, RunError, run_recorded};
use tilewright::viz::timeline_page;
use tilewright_tests::browser::Browser;
use tilewright_tests::toolchain::skip;

use super::case::{compiled, parsed};
use super::cases::tcgen05_gemm;

/// The timeline of the pipeline, with a change of its PTX, and how it ended; `None` without NVRTC.
fn recorded(change: impl Fn(&str) -> String) -> Option<(Timeline, Result<(), RunError>)> {
    let case = tcgen05_gemm();
    let module = parsed(&change(&compiled(&case.source(), "sm_100a")?));
    let (mut memory, mut timeline) = (case.memory.clone(), Timeline::default());
    let result = run_recorded(&module, &case.launch(), &mut memory, &Options::default(), &mut timeline);
    Some((timeline, result.map(|_| ())))
}

/// The same text without the arrival of the warps that have stored a tile.
fn without_arrival(ptx: &str) -> String {
    let dropped = |line: &str| line.trim_start().starts_with("mbarrier.arrive.shared::cta");
    assert_eq!(ptx.lines().filter(|line| dropped(line)).count(), 1);
    ptx.lines().map(|line| if dropped(line) { "\n" } else { line }).collect::<Vec<&str>>().join("\n")
}

#[test]
fn the_roles_of_a_pipeline_work_at_the_same_time() {
    let Some((timeline, result)) = recorded(str::to_string) else { return skip("asynchronous kernels") };
    assert!(result.is_ok(), "{result:?}");
    assert!(!timeline.is_cut && timeline.waits.iter().all(|wait| wait.until.is_some()));
    assert_eq!(timeline.ctas, [([0, 0, 0], 7)]);
    let runs = |engine: Engine, tick: u64| {
        let mut of_engine = timeline.operations.iter().filter(|found| found.engine == engine);
        of_engine.any(|found| found.from <= tick && found.until.is_some_and(|until| tick < until))
    };
    // The tiles are stored while copies and products of the next ones run.
    let stores =
        |tick: u64| timeline.busy.iter().any(|busy| busy.at.warp == 2 && (busy.ticks.0..busy.ticks.1).contains(&tick));
    let all_at_once = |tick: &u64| runs(Engine::Copies, *tick) && runs(Engine::Tensor, *tick) && stores(*tick);
    assert!((300..timeline.ticks).any(|tick| all_at_once(&tick)));
    // The warp that multiplies is released by copies, and those that store by products.
    let released_by = |warp: u32, engine: Engine| {
        timeline.waits.iter().any(|wait| match wait.until {
            Some((_, Actor::Operation(index))) => wait.at.warp == warp && timeline.operations[index].engine == engine,
            _ => false,
        })
    };
    assert!(released_by(5, Engine::Copies) && released_by(1, Engine::Tensor));
}

#[test]
fn a_deadlock_is_seen_on_the_page() {
    let Some((timeline, result)) = recorded(without_arrival) else { return skip("asynchronous kernels") };
    let Err(RunError::Fault(fault)) = result else { panic!("{result:?}") };
    assert_eq!(fault.kind, FaultKind::Deadlock);
    let stuck = |warp: u32| {
        let mut waits = timeline.waits.iter().filter(|wait| wait.at.warp == warp && wait.until.is_none());
        waits.any(|wait| wait.what.starts_with("the mbarrier at `barriers`"))
    };
    assert_eq!((0..7).filter(|warp| stuck(*warp)).collect::<Vec<u32>>(), [0, 1, 2, 3, 4, 5]);
    let page = timeline_page("pipeline", &timeline, Some(&fault.to_string()));
    assert!(!page.contains("http"), "the page needs no network");
    let Some(browser) = Browser::find() else { return skip("the page of a launch") };
    // Pointing at a wait lights its arrow.
    let script = "
        const stuck = [...document.querySelectorAll('.stuck title')].map((title) => title.textContent);
        const wait = document.querySelector('rect.wait[data-arrows=\"' + document.querySelector('.arrow').id + '\"]');
        wait.dispatchEvent(new Event('mouseenter'));
        const lit = document.querySelectorAll('.lit').length;
        wait.dispatchEvent(new Event('mouseleave'));
        const verdict = document.createElement('pre');
        verdict.id = 'verdict';
        const rows = document.querySelectorAll('svg text').length;
        const summary = document.querySelector('summary').textContent;
        verdict.textContent = JSON.stringify({ stuck, lit, rows, summary, dark: document.querySelectorAll('.lit').length });
        document.body.append(verdict);";
    let found = browser.run(&page, script, "").unwrap_or_else(|why| panic!("{why}"));
    assert_eq!((found["lit"].as_u64(), found["dark"].as_u64()), (Some(1), Some(0)));
    let waits: Vec<&str> = found["stuck"].as_array().expect("a list").iter().filter_map(|text| text.as_str()).collect();
    let wanted = "warp 5, lanes 0x00000001 wait for the mbarrier at `barriers` + 64, phase 0 (parity 0), which lacks 128 of 128 arrivals";
    assert!(waits.iter().any(|text| text.starts_with(wanted)), "{waits:#?}");
    assert!(found["summary"].as_str().is_some_and(|text| text.starts_with("deadlock: ")), "{found}");
}
