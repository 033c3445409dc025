//! Which buffers share storage, and the units in which they can be compared.

use std::collections::BTreeMap;

use super::program::{Buffer, Program};

/// The storage of a buffer.
pub(crate) struct Storage<'a> {
    /// The buffer that is not a view; it gives the storage its name.
    pub(crate) root: &'a str,
    /// The number of units of the storage per element. A unit is the narrowest element of any view.
    pub(crate) units: i64,
}

/// The storage of every parameter and buffer, by name.
pub(crate) fn storages(program: &Program) -> BTreeMap<&str, Storage<'_>> {
    let buffers = || program.params.iter().chain(&program.buffers);
    let mut narrowest: BTreeMap<&str, i64> = BTreeMap::new();
    for buffer in buffers() {
        let least = narrowest.entry(root(program, buffer)).or_insert(bits(buffer));
        *least = (*least).min(bits(buffer));
    }
    let storage = |buffer| {
        let root = root(program, buffer);
        let unit = narrowest.get(root).copied().unwrap_or(bits(buffer));
        Storage { root, units: bits(buffer) / unit }
    };
    buffers().map(|buffer| (buffer.name.as_str(), storage(buffer))).collect()
}

fn root<'a>(program: &'a Program, buffer: &'a Buffer) -> &'a str {
    let mut root = buffer;
    // Limits the length of a chain of views to the number of buffers, in case it is a cycle.
    for _ in &program.buffers {
        match root.alias_of.as_ref().and_then(|viewed| program.buffer(viewed)) {
            Some(viewed) => root = viewed,
            None => break,
        }
    }
    &root.name
}

/// The width of an element in bits; 8 for a dtype without a width, which readers reject.
fn bits(buffer: &Buffer) -> i64 {
    buffer.bits().unwrap_or(8)
}
