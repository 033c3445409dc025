//! The layouts that are known so far, and why.

use std::collections::BTreeMap;
use std::rc::Rc;

use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::tile::Buffer;
use tilewright_layout::map::{Map, Owners};

/// In which pass a layout was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Before any choice: what the user wrote, and what loose statements demand.
    Strict,
    /// It follows from layouts that are known.
    Common,
    /// It was chosen.
    Free,
}

/// Why a fragment has its layout.
#[derive(Clone, Debug)]
pub struct Reason {
    /// In which pass it was found.
    pub pass: Pass,
    /// By which rule, in words.
    pub rule: &'static str,
    /// The op that says it.
    pub op: String,
    /// Where that was written.
    pub span: Span,
    /// The fragment that it follows from.
    pub parent: Option<Handle<Buffer>>,
}

/// A fragment's map.
#[derive(Debug)]
pub(crate) struct Fixed {
    pub(crate) map: Map,
    pub(crate) owners: Owners,
    pub(crate) reason: Reason,
}

/// The maps of fragments, by storage. Cheap to copy, so that a choice can be tried and taken back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known(BTreeMap<Handle<Buffer>, Rc<Fixed>>);

impl Known {
    pub(crate) fn get(&self, storage: Handle<Buffer>) -> Option<&Rc<Fixed>> {
        self.0.get(&storage)
    }

    pub(crate) fn set(&mut self, storage: Handle<Buffer>, map: Map, reason: Reason) {
        let owners = map.owners();
        self.0.insert(storage, Rc::new(Fixed { map, owners, reason }));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Handle<Buffer>, &Rc<Fixed>)> {
        self.0.iter().map(|(storage, fixed)| (*storage, fixed))
    }
}
