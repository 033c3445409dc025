//! The layouts that are known so far, and why.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::tile::Buffer;
use tilewright_layout::map::{Map, Owners};

/// The rule of a layout that the user wrote.
pub(crate) const WRITTEN: &str = "written by the user";

/// The pass in which a layout was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Before any choice: the user wrote it, an instruction dictates it, or a statement outside of ops demands it.
    Strict,
    /// It follows from layouts that are known.
    Common,
    /// The search chose it.
    Free,
}

/// Why a fragment has its layout.
#[derive(Clone, Debug)]
pub struct Reason {
    /// In which pass it was found.
    pub pass: Pass,
    /// The rule that gave it, in words.
    pub rule: &'static str,
    /// The op that gave it, as text.
    pub op: String,
    /// Where that op was written.
    pub span: Span,
    /// The fragment that it follows from.
    pub parent: Option<Handle<Buffer>>,
}

impl Pass {
    /// The name of the pass, in every text.
    pub fn name(self) -> &'static str {
        match self {
            Pass::Strict => "strict",
            Pass::Common => "common",
            Pass::Free => "free",
        }
    }
}

impl Reason {
    /// Whether the user wrote the layout.
    pub fn is_written(&self) -> bool {
        self.rule == WRITTEN
    }
}

impl fmt::Display for Reason {
    /// `each element is on the threads that use it (common pass), kernels/src/softmax.rs:39, parallel i, j`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} pass), {}", self.rule, self.pass.name(), self.span)?;
        if self.is_written() { Ok(()) } else { write!(f, ", {}", self.op) }
    }
}

/// The known map of a fragment.
#[derive(Debug)]
pub(crate) struct Fixed {
    pub(crate) map: Map,
    /// The owners of `map`.
    pub(crate) owners: Owners,
    pub(crate) reason: Reason,
}

/// The maps of fragments, by storage. Cheap to copy, so that a choice can be tried and undone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known(BTreeMap<Handle<Buffer>, Arc<Fixed>>);

impl Known {
    pub(crate) fn get(&self, storage: Handle<Buffer>) -> Option<&Arc<Fixed>> {
        self.0.get(&storage)
    }

    pub(crate) fn set(&mut self, storage: Handle<Buffer>, map: Map, reason: Reason) {
        let owners = map.owners();
        self.0.insert(storage, Arc::new(Fixed { map, owners, reason }));
    }

    /// A copy without the map of `storage`.
    pub(crate) fn without(&self, storage: Handle<Buffer>) -> Known {
        let mut rest = self.clone();
        rest.0.remove(&storage);
        rest
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Handle<Buffer>, &Arc<Fixed>)> {
        self.0.iter().map(|(storage, fixed)| (*storage, fixed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_rule_pass_line_and_op() {
        let span = Span::at("k.rs", 7, 3);
        let reason = |pass, rule| Reason { pass, rule, op: "fill(a, 0)".to_string(), span, parent: None };
        let common = reason(Pass::Common, "each element is on the threads that use it");
        assert_eq!(common.to_string(), "each element is on the threads that use it (common pass), k.rs:7, fill(a, 0)");
        assert_eq!(reason(Pass::Strict, WRITTEN).to_string(), "written by the user (strict pass), k.rs:7");
    }
}
