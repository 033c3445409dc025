//! The names used in a kernel, and unused names for what the compiler adds to it.

use std::collections::BTreeSet;

use crate::hw_index::HwIndex;
use crate::tile::atomic::Atomic;
use crate::tile::element::ElementStmt;
use crate::tile::kernel::{Kernel, Stmt};

impl Kernel {
    /// The first of `base`, `base2`, `base3` and so on that no buffer, parameter, loop or value in the kernel has.
    pub fn free_name(&self, base: &str) -> String {
        let taken = self.taken_names();
        let mut name = base.to_string();
        let mut number = 1;
        while taken.contains(name.as_str()) {
            number += 1;
            name = format!("{base}{number}");
        }
        name
    }

    /// Every name in use: those of the kernel, its buffers, sizes, variables and values, and of hardware indices.
    pub(crate) fn taken_names(&self) -> BTreeSet<&str> {
        let mut taken: BTreeSet<&str> =
            HwIndex::ALL.map(HwIndex::name).into_iter().chain([self.name.as_str()]).collect();
        taken.extend(self.buffers.iter().map(|(_, buffer)| buffer.name.as_str()));
        taken.extend(self.sizes.iter().map(|size| size.var.name()));
        taken.extend(self.scalars.iter().map(|scalar| scalar.name.as_str()));
        taken.extend(self.loaded.iter().map(|loaded| loaded.var.name()));
        for (_, parallel) in self.parallels.iter() {
            taken.extend(parallel.vars.iter().map(|var| var.name()));
            in_elements(&parallel.body, &mut taken);
        }
        in_body(&self.body, &mut taken);
        taken
    }
}

fn in_body<'a>(body: &'a [Stmt], taken: &mut BTreeSet<&'a str>) {
    for stmt in body {
        match stmt {
            Stmt::Op(_) | Stmt::Parallel(_) | Stmt::Begin(_) | Stmt::End(_) => {}
            Stmt::Loop(inner) => {
                taken.insert(inner.counter.var.name());
                in_body(&inner.body, taken);
            }
            Stmt::EachThread(elements) => in_elements(elements, taken),
            Stmt::If(branch) => {
                in_body(&branch.then, taken);
                in_body(&branch.otherwise, taken);
            }
        }
    }
}

fn in_elements<'a>(elements: &'a [ElementStmt], taken: &mut BTreeSet<&'a str>) {
    for element in elements {
        match element {
            ElementStmt::Let { name, .. } => {
                taken.insert(name);
            }
            ElementStmt::Atomic(Atomic { old, .. }) => taken.extend(old.iter().map(|old| old.name.as_str())),
            ElementStmt::For { counter, body, .. } => {
                taken.insert(counter.var.name());
                in_elements(body, taken);
            }
            ElementStmt::If { then, otherwise, .. } => {
                in_elements(then, taken);
                in_elements(otherwise, taken);
            }
            ElementStmt::Store { .. } => {}
        }
    }
}
