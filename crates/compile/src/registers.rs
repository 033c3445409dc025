//! Compares the registers that fragments take per thread with those that a thread has.

use std::collections::BTreeMap;

use tilewright_diag::{Diagnostic, Span};
use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, ElementStmt, Kernel, Space, Stmt};
use tilewright_layout::map::{Map, NONE};

use crate::Artifact;

/// Registers per thread that addresses, counters and temporary values take, besides fragments.
const SPARE: i64 = 16;

/// The most fragments that a warning names.
const MOST_TOLD: usize = 3;

/// A fragment, and the registers that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentRegisters {
    /// Its name.
    pub name: String,
    /// 32-bit registers that it takes per thread, including those that its layout leaves unused.
    pub registers: i64,
    /// Where it was declared.
    pub span: Span,
    /// The fragment in the kernel.
    handle: Handle<Buffer>,
}

impl Artifact {
    /// The fragments that are live at the statement where they take the most registers, the largest first. A fragment
    /// that a loop uses is live in all of it.
    pub fn live_fragments(&self) -> Vec<FragmentRegisters> {
        let kernel = self.kernel();
        let uses = Uses::of(kernel);
        let at = |place: usize| uses.places.iter().filter(move |(_, (first, last))| (*first..=*last).contains(&place));
        let total = |place: usize| at(place).map(|(handle, _)| registers(&kernel.buffers[*handle])).sum::<i64>();
        let fullest = (0..kernel.body.len()).max_by_key(|place| (total(*place), std::cmp::Reverse(*place)));
        let mut held: Vec<FragmentRegisters> = at(fullest.unwrap_or(0))
            .map(|(handle, _)| {
                let buffer = &kernel.buffers[*handle];
                FragmentRegisters {
                    name: buffer.name.clone(),
                    registers: registers(buffer),
                    span: buffer.span,
                    handle: *handle,
                }
            })
            .collect();
        held.sort_by_key(|held| std::cmp::Reverse(held.registers));
        held
    }

    /// The warning about fragments that take more registers than a thread has.
    pub(crate) fn register_pressure_warning(&self) -> Result<Option<Diagnostic>, Diagnostic> {
        let held = self.live_fragments();
        let (taken, threads) = (held.iter().map(|held| held.registers).sum::<i64>(), self.threads());
        let most = self.program().registers_of_a_thread();
        if taken + SPARE <= most {
            return Ok(None);
        }
        let message = format!(
            "fragments take {taken} registers per thread, but a thread of a CTA of {threads} threads has {most}, of which \
             about {SPARE} hold indices: some will spill to memory"
        );
        let mut finding = Diagnostic::warning("I0710", message);
        let mut has_holes = false;
        for held in held.iter().take(MOST_TOLD) {
            let used = Some(self.used_registers(held.handle)?).filter(|used| *used < held.registers);
            has_holes |= used.is_some();
            let holes = used.map_or_else(String::new, |used| format!(", of which its layout uses {used}"));
            finding = finding.label(held.span, format!("`{}` takes {}{holes}", held.name, held.registers));
        }
        let help = match has_holes {
            true => "write strides on `reg` that leave no holes, or omit the layout",
            false if self.kernel().roles.is_empty() || self.kernel().moves_registers.is_some() => {
                "share the tile among more threads, use a smaller one, or keep it in shared memory"
            }
            false => {
                "share the tile among more threads, use a smaller one, keep it in shared memory, or let roles that hold little give \
                 registers to the others: k.move_registers()"
            }
        };
        Ok(Some(finding.help(help)))
    }

    /// The number of registers of a fragment in which some thread has an element.
    fn used_registers(&self, fragment: Handle<Buffer>) -> Result<i64, Diagnostic> {
        let buffer = &self.kernel().buffers[fragment];
        let defect = |why: &str| {
            let message = format!("the layout of `{}` cannot be listed", buffer.name);
            Diagnostic::internal("I0710", message).label(buffer.span, "this fragment").note(why)
        };
        let layout = buffer.layout.as_ref().ok_or_else(|| defect("it has none"))?;
        let map = Map::of_layout(layout, self.threads() as usize).map_err(|why| defect(&why))?;
        let used = map.columns().filter(|column| column.iter().any(|element| *element != NONE)).count() as i64;
        Ok(in_registers(used, buffer))
    }
}

/// Registers that a fragment takes per thread.
fn registers(buffer: &Buffer) -> i64 {
    in_registers(buffer.span_elements(), buffer)
}

fn in_registers(elements: i64, buffer: &Buffer) -> i64 {
    (elements * buffer.dtype.bytes() + 3) / 4
}

/// The first and the last statement of the kernel's body that uses each fragment.
struct Uses<'a> {
    kernel: &'a Kernel,
    /// First and last use of each fragment's storage, as indices of statements of the kernel's body.
    places: BTreeMap<Handle<Buffer>, (usize, usize)>,
}

impl<'a> Uses<'a> {
    fn of(kernel: &'a Kernel) -> Uses<'a> {
        let mut uses = Uses { kernel, places: BTreeMap::new() };
        for (place, stmt) in kernel.body.iter().enumerate() {
            uses.stmt(stmt, place);
        }
        uses
    }

    fn stmt(&mut self, stmt: &Stmt, place: usize) {
        match stmt {
            Stmt::Op(op) => {
                let op = &self.kernel.ops[*op];
                op.operands.iter().for_each(|tile| self.used(tile.buffer, place));
            }
            Stmt::Loop(inner) => inner.body.iter().for_each(|stmt| self.stmt(stmt, place)),
            Stmt::Parallel(parallel) => self.elements(&self.kernel.parallels[*parallel].body, place),
            Stmt::EachThread(elements) => self.elements(elements, place),
            Stmt::Begin(_) | Stmt::End(_) => {}
            Stmt::If(branch) => {
                branch.cond.for_each_load(&mut |access| self.used(access.buffer, place));
                branch.then.iter().chain(&branch.otherwise).for_each(|stmt| self.stmt(stmt, place));
            }
        }
    }

    fn elements(&mut self, elements: &[ElementStmt], place: usize) {
        for element in elements {
            element.for_each_access(&mut |access, _| self.used(access.buffer, place));
        }
    }

    fn used(&mut self, buffer: Handle<Buffer>, place: usize) {
        let storage = self.kernel.storage(buffer);
        if self.kernel.buffers[storage].space == Space::Fragment {
            self.places.entry(storage).or_insert((place, place)).1 = place;
        }
    }
}
