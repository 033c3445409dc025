//! Registers that warpgroups give to each other.
//!
//! A CTA begins with as many registers for each thread as fit for all. A role that loads, or that issues products into tensor memory,
//! holds little: its warpgroup keeps what it needs, and those with fragments share the rest. All warps of a warpgroup ask for the
//! same number, at the beginning of their roles, so that `ptxas` allocates as many in each branch.

use std::collections::BTreeSet;
use std::ops::Range;

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Inst, Program, RegArray, Resource, Stmt, for_each_stmt};
use tilewright_ir::tile::{Role, WARPS_OF_A_WARPGROUP};
use tilewright_layout::access::LANES;

use super::derived::{plan, titled};

/// Registers that a thread keeps if it holds no fragments, for indices, addresses and parities of several rings; as in CUTLASS's
/// kernels for Hopper.
const KEPT: i64 = 40;
/// The most registers that a thread asks for; those kernels ask for no more.
const MOST: i64 = 240;
/// `setmaxnreg` counts in these.
const UNIT: i64 = 8;
/// Registers in arrays that fit into those that are kept anyway: flags and parities.
const FEW: i64 = 8;
/// What a move is called in plans.
const SETMAXNREG: &str = "setmaxnreg";

/// Moves registers between the warpgroups of a program, if some hold fragments and others do not.
pub(super) fn move_registers(program: &mut Program, span: Span) -> Result<(), Diagnostic> {
    let begin = begin_of_roles(program)
        .map_err(|(found, legal)| Diagnostic::error("K0289", found).label(span, "asked for here").help(legal))?;
    let all = program.target.registers_of_a_thread(program.threads) / UNIT * UNIT;
    let needed = needed_by_warpgroups(program, all);
    // Who needs as many as a thread has at first may need more, and who needs fewer keeps what the others of its kind need.
    let most = needed.iter().copied().max().unwrap_or(KEPT);
    let holds: Vec<bool> = needed.iter().map(|needed| *needed >= all || *needed == most && most > KEPT).collect();
    let (groups, holding) = (holds.len() as i64, holds.iter().filter(|holds| **holds).count() as i64);
    let lighter = needed.iter().zip(&holds).filter(|(_, holds)| !**holds).map(|(needed, _)| *needed);
    let kept = lighter.max().unwrap_or(KEPT).min(all);
    let shared = all * groups - kept * (groups - holding);
    let asked = (shared / holding.max(1) / UNIT * UNIT).min(MOST);
    let moves = holding > 0 && holding < groups && asked > all;
    let summary = match (moves, holding == groups) {
        (true, _) => format!("{asked} registers for each thread with fragments, {kept} for others; {all} at first"),
        (false, true) => format!("no registers move: all warpgroups hold fragments, and each thread has {all}"),
        (false, false) => format!("no registers move: each thread has {all}"),
    };
    program.plans.push(plan("move_registers", span, SETMAXNREG, summary));
    if !moves {
        return Ok(());
    }
    name_idle_warps(program, span, &holds);
    let holds_of = |(handle, role): (Handle<Role>, &Role)| (handle, holds[groups_of(role).start]);
    let roles: Vec<(Handle<Role>, bool)> = program.roles.iter().map(holds_of).collect();
    for (role, holds) in roles {
        let (inst, count) = if holds { (Inst::IncreaseRegisters, asked) } else { (Inst::DecreaseRegisters, kept) };
        let title = format!("role {}: move_registers", program.roles[role].name);
        let call = Call { arguments: vec![Expr::constant(count)], ..Call::plain(inst) };
        let place = (span, program.plans.len() - 1);
        let stmt = titled(program, title, place, call);
        at_begin_of(program, begin, (role, stmt));
    }
    Ok(())
}

/// The place of the first role, or why registers cannot move, and what would be legal.
fn begin_of_roles(program: &Program) -> Result<usize, (String, &'static str)> {
    if program.threads % (WARPS_OF_A_WARPGROUP * LANES as i64) != 0 {
        let found = format!("registers move between warpgroups of 128 threads, and the CTA has {}", program.threads);
        return Err((found, "k.threads(..) with a multiple of 128; warps without a role give their registers"));
    }
    let begin = program.body.iter().position(|stmt| matches!(stmt, Stmt::Role { .. }));
    let found = "registers move between roles, and this kernel has none outside of loops and conditions";
    begin.ok_or((found.to_string(), "roles at the outermost level, with loops inside of them"))
}

/// Warps without a role get one, in which they ask for what the others of their warpgroups ask for.
fn name_idle_warps(program: &mut Program, span: Span, holds: &[bool]) {
    let is_idle = |warp: &i64| !program.roles.iter().any(|(_, role)| role.has_warp(*warp));
    let group = |warp: i64| holds[(warp / WARPS_OF_A_WARPGROUP) as usize];
    let idle: Vec<i64> = (0..program.warps()).filter(is_idle).collect();
    for run in idle.chunk_by(|a, b| a + 1 == *b && group(*a) == group(*b)) {
        program.roles.push(Role { name: "idle".to_string(), first: run[0], warps: run.len() as i64, span });
    }
}

/// Puts a statement at the beginning of the branch of a role, among the branches that begin at a place.
fn at_begin_of(program: &mut Program, begin: usize, (role, stmt): (Handle<Role>, Stmt)) {
    let mut end = begin;
    while let Some(Stmt::Role { role: known, body }) = program.body.get_mut(end) {
        if *known == role {
            body.insert(0, stmt);
            return;
        }
        end += 1;
    }
    program.body.insert(end, Stmt::Role { role, body: vec![stmt] });
}

/// The warpgroups in which a role has warps.
fn groups_of(role: &Role) -> Range<usize> {
    let of = |warp: i64| (warp / WARPS_OF_A_WARPGROUP) as usize;
    of(role.first)..of(role.end() - 1) + 1
}

/// How many registers a thread of each warpgroup needs, up to `all`, which it has at first: no fewer if it holds fragments, on whose
/// account it may need any number. All warpgroups of a role need as many as one of them.
fn needed_by_warpgroups(program: &Program, all: i64) -> Vec<i64> {
    let mut needed = vec![KEPT; (program.warps() / WARPS_OF_A_WARPGROUP) as usize];
    for stmt in &program.body {
        let groups = match stmt {
            Stmt::Role { role, .. } => groups_of(&program.roles[*role]),
            _ => 0..needed.len(),
        };
        let [fragments, others] = held_in(program, stmt);
        let own = match (fragments > FEW, others > FEW) {
            (true, _) => all,
            (false, true) => (KEPT + fragments + others + UNIT - 1) / UNIT * UNIT,
            (false, false) => KEPT,
        };
        needed[groups].iter_mut().for_each(|needed| *needed = own.max(*needed));
    }
    // Each pass settles a warpgroup at least.
    for _ in 0..needed.len() {
        for (_, role) in program.roles.iter() {
            let most = needed[groups_of(role)].iter().copied().max().unwrap_or(KEPT);
            needed[groups_of(role)].fill(most);
        }
    }
    needed
}

/// Registers of the arrays that a statement uses: of fragments, and of those that it declares itself, which are free again where nothing
/// uses them.
fn held_in(program: &Program, stmt: &Stmt) -> [i64; 2] {
    let mut own = BTreeSet::new();
    for_each_stmt(std::slice::from_ref(stmt), &mut |stmt| {
        if let Stmt::Declare(array) = stmt {
            own.insert(*array);
        }
    });
    let others = used_in(stmt).into_iter().filter(|array| !own.contains(array));
    [registers_of(program, others), held(program, std::slice::from_ref(stmt), &own)]
}

/// Registers of some arrays that statements hold at a time: those that several statements use, and the most that one of them uses.
fn held(program: &Program, body: &[Stmt], arrays: &BTreeSet<Handle<RegArray>>) -> i64 {
    let used: Vec<BTreeSet<Handle<RegArray>>> = body.iter().map(|stmt| &used_in(stmt) & arrays).collect();
    let is_shared = |array: &&Handle<RegArray>| used.iter().filter(|used| used.contains(*array)).count() > 1;
    let shared: BTreeSet<Handle<RegArray>> = arrays.iter().filter(is_shared).copied().collect();
    let of_one = body.iter().zip(&used).map(|(stmt, used)| match (stmt.inner(), used - &shared) {
        ([], rest) => registers_of(program, rest),
        (inner, rest) => held(program, inner, &rest),
    });
    let most = of_one.max().unwrap_or(0);
    registers_of(program, shared) + most
}

/// The arrays that a statement uses.
fn used_in(stmt: &Stmt) -> BTreeSet<Handle<RegArray>> {
    let mut used = BTreeSet::new();
    for_each_stmt(std::slice::from_ref(stmt), &mut |stmt| {
        stmt.for_each_resource(&mut |_, resource| {
            if let Resource::Registers(regs) = resource {
                used.insert(regs.array);
            }
        });
    });
    used
}

/// Registers of a thread that arrays take.
fn registers_of(program: &Program, arrays: impl IntoIterator<Item = Handle<RegArray>>) -> i64 {
    let of_one = |array: &RegArray| array.len * array.dtype.bytes() / 4;
    arrays.into_iter().map(|array| of_one(&program.registers[array])).sum()
}
