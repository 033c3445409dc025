//! How many elements the loops of a kernel move at once, as lowered.
//!
//! Inference counts on vectors step by step. A long nest that becomes a loop over turns takes the same vectors in all of them, so
//! it may move fewer elements at once than in some of the steps that inference saw.

use std::collections::BTreeMap;

use tilewright_infer::{Inferred, Origin};
use tilewright_ir::thread::{Program, Stmt, for_each_stmt, has_turns};
use tilewright_ir::tile::Parallel;
use tilewright_ir::{Handle, Kernel};

/// Why a loop over turns moves fewer elements at once than some steps could.
const IN_TURNS: &str = "the loop over its turns takes the same vectors in all of them";

/// The most elements at once in loops over turns, by parallel loop, memory and whether it is written.
type Widest<'a> = BTreeMap<(Handle<Parallel>, &'a str, bool), usize>;

/// What was inferred, with the vectors that parallel loops have in the program.
pub(crate) fn as_lowered(mut inferred: Inferred, kernel: &Kernel, program: &Program) -> Inferred {
    let widest = widest(program);
    for access in &mut inferred.accesses {
        let Origin::Parallel(parallel) = access.origin else { continue };
        let owner = &kernel.buffers[kernel.storage(access.buffer)];
        let known =
            [&kernel.buffers[access.buffer], owner].map(|buffer| (parallel, buffer.name.as_str(), access.writes));
        let widest = known.iter().find_map(|key| widest.get(key));
        if let Some(most) = widest.filter(|most| **most < access.widths.1) {
            access.widths = (access.widths.0.min(*most), *most);
            access.limit = IN_TURNS;
        }
    }
    inferred
}

/// The widest accesses of parallel loops that have become loops over turns.
fn widest(program: &Program) -> Widest<'_> {
    let mut found = Widest::new();
    for_each_stmt(&program.body, &mut |stmt| {
        let Stmt::Op { note, body } = stmt else { return };
        let Some(parallel) = program.plans[program.notes[*note].plan].parallel.filter(|_| has_turns(body)) else {
            return;
        };
        for_each_stmt(body, &mut |stmt| {
            let (memory, registers, writes) = match stmt {
                Stmt::Load { to, memory, .. } => (*memory, to, false),
                Stmt::Store { from, memory, .. } => (*memory, from, true),
                _ => return,
            };
            let most = found.entry((parallel, program.memories[memory].name.as_str(), writes)).or_default();
            *most = registers.count.max(*most as i64) as usize;
        });
    });
    found
}
