//! Loops over tiles that CTAs claim, or that roles execute in turns.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_diag::{Diagnostic, Span};

use crate::arena::Handle;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::element::ElementStmt;
use crate::tile::fills::for_each_loop;
use crate::tile::kernel::{Kernel, Loop, Stmt, Unroll};

pub(super) fn check(kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    if kernel.rings.iter().any(|(_, ring)| ring.claims()) {
        beside_claims(kernel, &kernel.body, found);
    }
    missing_turns(kernel, found);
}

/// Adds the errors for roles that take turns, where one is missing: nobody would visit its tiles.
fn missing_turns(kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    let mut known: BTreeMap<i64, (BTreeSet<i64>, Span)> = BTreeMap::new();
    for_each_loop(&kernel.body, &mut |inner: &Loop| {
        if let Some(part) = inner.part {
            known.entry(part.of).or_insert_with(|| (BTreeSet::new(), inner.span)).0.insert(part.index);
        }
    });
    for (of, (taken, span)) in known {
        if let Some(missing) = (0..of).find(|index| !taken.contains(index)) {
            let message = format!("no role takes turn {missing} of {of}");
            let finding = Diagnostic::error("K0292", message).label(span, "tiles are visited in turns here");
            found.push(
                finding.help(format!("let a role take each turn from 0 to {}: others visit no tile of it", of - 1)),
            );
        }
    }
}

/// Adds the errors for tensors that are written outside of the visits of claimed tiles: as often as CTAs start, which is not known.
fn beside_claims(kernel: &Kernel, body: &[Stmt], found: &mut Vec<Diagnostic>) {
    let of_elements = |elements: &[ElementStmt], found: &mut Vec<Diagnostic>| {
        for element in elements {
            element.for_each_access(&mut |access, writes| {
                found.extend(written_beside(kernel, access.buffer, access.span).filter(|_| writes));
            });
        }
    };
    for stmt in body {
        match stmt {
            Stmt::Op(op) => {
                let op = &kernel.ops[*op];
                let written = op.operands.iter().enumerate().filter(|(place, _)| op.effect(*place).writes());
                found.extend(written.filter_map(|(_, tile)| written_beside(kernel, tile.buffer, op.span)));
            }
            Stmt::Parallel(parallel) => of_elements(&kernel.parallels[*parallel].body, found),
            Stmt::EachThread(elements) => of_elements(elements, found),
            Stmt::Loop(inner) if inner.unroll == Unroll::Claimed => {}
            Stmt::Loop(inner) => beside_claims(kernel, &inner.body, found),
            Stmt::If(branches) => {
                beside_claims(kernel, &branches.then, found);
                beside_claims(kernel, &branches.otherwise, found);
            }
            Stmt::Begin(_) | Stmt::End(_) => {}
        }
    }
}

fn written_beside(kernel: &Kernel, buffer: Handle<Buffer>, span: Span) -> Option<Diagnostic> {
    let storage = &kernel.buffers[kernel.storage(buffer)];
    let message = format!("`{}` is written beside the visits of claimed tiles", storage.name);
    let finding = Diagnostic::error("K0291", message).label(span, "written here");
    let help = "each CTA that starts would write it, and how many do is not known: write it for a tile";
    matches!(storage.space, Space::Global(_)).then(|| finding.help(help))
}
