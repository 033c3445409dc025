//! How many elements the loops of a kernel move at once, as lowered.
//!
//! Inference counts on vectors step by step. A long nest that becomes a loop over turns takes the same vectors in all of them, so
//! it may move fewer elements at once than in some of the steps that inference saw.

use std::collections::BTreeMap;

use tilewright_infer::{Inferred, Origin};
use tilewright_ir::thread::{Program, Stmt, for_each_stmt};
use tilewright_ir::tile::Parallel;
use tilewright_ir::{Handle, Kernel};

/// Why a loop over turns moves fewer elements at once than some steps could.
const IN_TURNS: &str = "the loop over its turns takes the same vectors in all of them";

/// The least and the most elements at once, by loop, memory and whether it is written.
type Vectors<'a> = BTreeMap<(Handle<Parallel>, &'a str, bool), (usize, usize)>;

/// What was inferred, with the vectors that parallel loops have in the program.
pub(crate) fn as_lowered(mut inferred: Inferred, kernel: &Kernel, program: &Program) -> Inferred {
    let vectors = vectors(program);
    for access in &mut inferred.accesses {
        let Origin::Parallel(parallel) = access.origin else { continue };
        // What is out of bounds is not executed.
        let key = (parallel, kernel.buffers[access.buffer].name.as_str(), access.writes);
        let Some(&(least, most)) = vectors.get(&key) else { continue };
        if most < access.widths.1 {
            access.limit = IN_TURNS;
        }
        access.widths = (least, most);
    }
    inferred
}

/// The vectors of all parallel loops.
fn vectors(program: &Program) -> Vectors<'_> {
    let mut found = Vectors::new();
    for_each_stmt(&program.body, &mut |stmt| {
        let Stmt::Op { note, body } = stmt else { return };
        let Some(parallel) = program.plans[program.notes[*note].plan].parallel else { return };
        for_each_stmt(body, &mut |stmt| {
            let (memory, registers, writes) = match stmt {
                Stmt::Load { to, memory, .. } => (*memory, to, false),
                Stmt::Store { from, memory, .. } => (*memory, from, true),
                _ => return,
            };
            let width = registers.count as usize;
            let key = (parallel, program.memories[memory].name.as_str(), writes);
            let known = found.entry(key).or_insert((width, width));
            *known = (known.0.min(width), known.1.max(width));
        });
    });
    found
}
