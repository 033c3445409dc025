//! Whether two groups of accesses conflict, and between which threads.

use tilewright_expr::Var;
use tilewright_ir::thread::{Memory, Program, Stmt, for_each_expr, for_each_stmt};
use tilewright_ir::{Handle, HwIndex};
use tilewright_layout::axis::Scope;

use super::accesses::AccessGroup;
use crate::trace::{Env, Touch, Trace, owner, trace};

/// The most assignments of loop variables and block indices that are compared, per side. Beyond, the widest conflict
/// is assumed.
const COMPARED: usize = 32;

/// The scope in which `later` has to be ordered after `earlier`, and why; `None` if program order suffices.
pub(super) fn conflict(
    program: &Program,
    earlier: &AccessGroup,
    later: &AccessGroup,
    widest: Scope,
) -> Option<(Scope, String)> {
    let common = common_memories(program, earlier, later);
    let memory = *common.first()?;
    let names: Vec<&str> = common.iter().map(|m| program.memories[*m].name.as_str()).collect();
    let (_, writes) = effects(program, &later.body, memory);
    let verb = if writes { "writes" } else { "reads" };
    let when = if earlier.earlier { " of an earlier iteration" } else { "" };
    let reason = |between: &str| {
        let (now, before) = (&later.title, &earlier.title);
        format!("{now} {verb} `{}` after {before}{when}, {between}", names.join("`, `"))
    };
    let found = match exact(program, earlier, later, &common, widest) {
        Some(scope) => scope?,
        None => widest,
    };
    Some(match found {
        Scope::Thread | Scope::Warp => (Scope::Warp, reason("by other lanes of the warp")),
        Scope::Warpgroup | Scope::Cta | Scope::Cluster | Scope::Grid | Scope::Mesh => {
            (Scope::Cta, reason("by other warps"))
        }
    })
}

/// The memories that both access and at least one writes.
fn common_memories(program: &Program, earlier: &AccessGroup, later: &AccessGroup) -> Vec<Handle<Memory>> {
    let owners = program.memories.iter().map(|(handle, _)| handle).filter(|handle| owner(program, *handle) == *handle);
    owners
        .filter(|memory| {
            let (a, b) = (effects(program, &earlier.body, *memory), effects(program, &later.body, *memory));
            (a.0 || a.1) && (b.0 || b.1) && (a.1 || b.1)
        })
        .collect()
}

/// Whether the statements (read, write) a memory or its views.
fn effects(program: &Program, body: &[Stmt], memory: Handle<Memory>) -> (bool, bool) {
    let (mut reads, mut writes) = (false, false);
    for_each_stmt(body, &mut |stmt| {
        for access in stmt.accesses().into_iter().filter(|access| owner(program, access.memory) == memory) {
            reads |= access.effect.reads();
            writes |= access.effect.writes();
        }
    });
    (reads, writes)
}

/// The exact answer, by comparing the touched bytes for all relevant values of loop variables and block indices.
/// `None` if there are too many of them, or if they do not determine the bytes.
fn exact(
    program: &Program,
    earlier: &AccessGroup,
    later: &AccessGroup,
    common: &[Handle<Memory>],
    widest: Scope,
) -> Option<Option<Scope>> {
    if [earlier, later].iter().any(|accesses| depends_on_more(program, &accesses.body, common)) {
        return None;
    }
    let shared: Vec<&Var> = earlier.loops.iter().filter(|l| later.loops.contains(l)).map(|l| &l.var).collect();
    let (a, b) = (Relevant::of(earlier), Relevant::of(later));
    let (before, after) = (assignments(&a.all())?, assignments(&b.all())?);
    let traced = |accesses: &AccessGroup, env: &Env| {
        let Trace { mut touches, is_whole } = trace(program, &accesses.body, 0..(program.threads + 31) / 32, env);
        touches.retain(|t| common.contains(&owner(program, t.memory)));
        is_whole.then_some(touches)
    };
    let earlier_touches: Vec<Vec<Touch>> = before.iter().map(|env| traced(earlier, env)).collect::<Option<_>>()?;
    let later_touches: Vec<Vec<Touch>> = after.iter().map(|env| traced(later, env)).collect::<Option<_>>()?;
    let all_relevant = shared.iter().all(|var| a.loops.contains(var) && b.loops.contains(var));
    let mut scope: Option<Scope> = None;
    for (env_a, touches_a) in before.iter().zip(&earlier_touches) {
        for (env_b, touches_b) in after.iter().zip(&later_touches) {
            let same_block = agree(env_a, env_b, &a.blocks);
            if same_block && related(env_a, env_b, &shared, earlier.earlier, all_relevant) {
                scope = scope.max(meet(program, touches_a, touches_b, widest));
                if scope >= Some(widest) {
                    return Some(scope);
                }
            }
        }
    }
    Some(scope)
}

/// True when the bytes of these memories that are touched depend on data, or on a size that is known only at launch.
fn depends_on_more(program: &Program, body: &[Stmt], memories: &[Handle<Memory>]) -> bool {
    let mut unknown = program.sizes.clone();
    for_each_stmt(body, &mut |stmt| {
        if stmt.names_data() {
            unknown.extend(stmt.defines().iter().cloned());
        }
    });
    let mentions = |body: &[Stmt]| {
        let mut found = false;
        for_each_expr(body, &mut |expr| found |= unknown.iter().any(|var| expr.mentions(var)));
        found
    };
    body.iter().any(|stmt| {
        let touches =
            memories.iter().any(|memory| effects(program, std::slice::from_ref(stmt), *memory) != (false, false));
        touches && mentions(std::slice::from_ref(stmt))
    })
}

fn value(env: &Env, var: &Var) -> Option<i64> {
    env.iter().find(|(known, _)| known == var).map(|(_, value)| *value)
}

/// True when both assign the same values to those of these variables that both contain.
fn agree(a: &Env, b: &Env, vars: &[Var]) -> bool {
    vars.iter().all(|var| match (value(a, var), value(b, var)) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    })
}

/// Whether accesses with these values can happen in this order: in the same iteration, or with the first in an earlier
/// one.
fn related(a: &Env, b: &Env, shared: &[&Var], earlier: bool, all_relevant: bool) -> bool {
    let pairs: Vec<(i64, i64)> = shared.iter().filter_map(|var| Some((value(a, var)?, value(b, var)?))).collect();
    let (of_a, of_b): (Vec<i64>, Vec<i64>) = pairs.into_iter().unzip();
    if earlier { !all_relevant || of_a < of_b } else { of_a == of_b }
}

/// The variables other than the thread's that the touched bytes depend on.
struct Relevant {
    /// Loop variables.
    loops: Vec<Var>,
    /// Block indices.
    blocks: Vec<Var>,
}

impl Relevant {
    fn of(accesses: &AccessGroup) -> Relevant {
        let mut relevant = Relevant { loops: Vec::new(), blocks: Vec::new() };
        for_each_expr(&accesses.body, &mut |expr| {
            expr.for_each_var(&mut |var| {
                let list = if accesses.loops.iter().any(|l| l.var == *var) {
                    &mut relevant.loops
                } else if matches!(HwIndex::of(var), Some(HwIndex::Block(_))) {
                    &mut relevant.blocks
                } else {
                    return;
                };
                if !list.contains(var) {
                    list.push(var.clone());
                }
            });
        });
        relevant
    }

    fn all(&self) -> Vec<Var> {
        self.loops.iter().chain(&self.blocks).cloned().collect()
    }
}

/// Every combination of values; `None` if there are more than [`COMPARED`].
fn assignments(vars: &[Var]) -> Option<Vec<Env>> {
    let mut all: Vec<Env> = vec![Vec::new()];
    for var in vars {
        let range = var.range();
        let count = usize::try_from(range.hi - range.lo + 1).ok()?;
        if all.len().saturating_mul(count) > COMPARED {
            return None;
        }
        let extended = all.iter().flat_map(|env| {
            (range.lo..=range.hi).map(|value| env.iter().cloned().chain([(var.clone(), value)]).collect::<Env>())
        });
        all = extended.collect();
    }
    Some(all)
}

/// The widest scope of two threads that touch a common byte, at least one of them writing; `None` if there are none.
fn meet(program: &Program, before: &[Touch], after: &[Touch], widest: Scope) -> Option<Scope> {
    let earlier = units(program, before);
    let mut scope: Option<Scope> = None;
    for (place, thread, writes) in units(program, after) {
        let first = earlier.partition_point(|(known, ..)| *known < place);
        for (_, other, wrote) in earlier[first..].iter().take_while(|(known, ..)| *known == place) {
            if (*wrote || writes) && *other != thread {
                let between = if other / 32 == thread / 32 { Scope::Warp } else { Scope::Cta };
                scope = scope.max(Some(between));
                if scope >= Some(widest) {
                    return scope;
                }
            }
        }
    }
    scope
}

/// A touched unit of memory (memory and unit index), the thread, and whether it writes.
type Unit = ((Handle<Memory>, i64), i64, bool);

/// Every touched unit, in order of address. A unit is as wide as the narrowest element of the program.
fn units(program: &Program, touches: &[Touch]) -> Vec<Unit> {
    let unit = program.memories.iter().map(|(_, m)| m.dtype.bytes()).min().unwrap_or(1);
    let mut all: Vec<Unit> = Vec::with_capacity(touches.len());
    for touch in touches {
        let memory = owner(program, touch.memory);
        let (first, count) = (touch.first_byte / unit, touch.bytes / unit);
        all.extend((first..first + count).map(|place| ((memory, place), touch.thread, touch.writes)));
    }
    all.sort_unstable();
    all
}
