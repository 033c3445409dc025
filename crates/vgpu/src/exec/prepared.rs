//! What a launch needs to run, and the machine that runs it.

use std::collections::BTreeMap;

use crate::banks::Banks;
use crate::clock::Flag;
use crate::contract::{Contraction, contractions};
use crate::exec::cluster::ClusterState;
use crate::exec::cta::{Cta, CtaPlace};
use crate::exec::machine::Machine;
use crate::exec::resident::Starts;
use crate::exec::undefined::{KnownRaces, Origins};
use crate::lanes::IN_ORDER;
use crate::launch::{Launch, Options, Progress};
use crate::memory::Memory;
use crate::op::ScalarOp;
use crate::program::{InstInfo, Program};
use crate::ptx::ast::Loc;
use crate::report::Stats;

/// A kernel that is prepared to run, with its parameters and options.
pub(crate) struct PreparedLaunch<'a> {
    pub(crate) program: &'a Program,
    pub(crate) launch: &'a Launch,
    /// Number of the launch's first CTA.
    pub(crate) first_cta: u32,
    /// What the CTAs with smaller numbers did is known to all threads from the start.
    pub(crate) known_from: u32,
    /// The parameter block.
    pub(crate) params: &'a [u8],
    /// The constant memory of the module.
    pub(crate) constants: &'a [u8],
    pub(crate) options: &'a Options,
    /// Most CTAs that are resident at once.
    pub(crate) most_resident: u32,
}

impl<'a> PreparedLaunch<'a> {
    /// A machine that has not started. It is given the races that are known, and whether no other run will follow.
    pub(super) fn machine(
        &self,
        memory: &'a mut Memory,
        (known_races, is_last): (&'a KnownRaces, bool),
        watch: &'a mut dyn FnMut(Progress),
    ) -> Machine<'a> {
        let PreparedLaunch { program, launch, first_cta, known_from, params, constants, options, .. } = *self;
        let contractions = contractions(program);
        let [x, y, z] = launch.grid;
        let ctas = x.saturating_mul(y).saturating_mul(z);
        let place = CtaPlace { index: [0; 3], rank: 0, cluster: [first_cta].into(), known_from };
        Machine {
            program,
            launch,
            options,
            params,
            constants,
            memory,
            stats: Stats::new(program.code.len(), contractions.iter().map(|found| found.pc)),
            banks: Banks::new(),
            cta: Cta::new(program, launch, options, &place),
            peers: Vec::new(),
            cluster: ClusterState::default(),
            apart: by_line(program, |line| options.apart.get(&line).copied()),
            any_wins: by_line(program, |line| options.any_wins.contains(&line)),
            fused: contractions.iter().filter(|_| options.contract).map(fused).collect(),
            spare_registers: Vec::new(),
            spare_shadows: Vec::new(),
            orders: vec![IN_ORDER; program.code.len()],
            starts: Starts::default(),
            first_cta,
            known_from,
            random: None,
            effects: 0,
            changes: 0,
            fences: 0,
            sequence: Flag::default(),
            strong_reads: 0,
            last_buffer: 0,
            origins: Origins::default(),
            control_flow: None,
            passed: BTreeMap::new(),
            known_races,
            new_races: KnownRaces::default(),
            takes_unwritten_bytes: false,
            has_met: false,
            is_last,
            recorder: None,
            tracer: None,
            completed: Progress { ctas, ended: 0, thread_instructions: 0 },
            last_report: 0,
            watch,
        }
    }
}

/// A fused instruction, with the program counter of the one that it replaces.
fn fused(found: &Contraction) -> (u32, ScalarOp) {
    (found.pc, ScalarOp::Float { f: found.f, mode: found.mode, d: found.d, s: found.s })
}

/// The value of `of_line` for the CUDA line of each instruction. The lines are those of the kernel's file; code from
/// another file and inlined code, whose line belongs to the inlined function, have the default.
fn by_line<T: Default>(program: &Program, of_line: impl Fn(u32) -> T) -> Vec<T> {
    let is_own = |loc: &Loc| loc.inlined_at.is_none() && Some(loc.file) == program.source_file;
    let value = |info: &InstInfo| info.loc.filter(is_own).map(|loc| of_line(loc.line)).unwrap_or_default();
    program.info.iter().map(value).collect()
}
