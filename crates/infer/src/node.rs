//! What inference knows about each op and loop.

use std::collections::BTreeMap;

use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Effect, Op, Parallel};

use crate::dictation::Dictation;
use crate::effect::both;
use crate::nest::Nest;
use crate::pattern::Pattern;

/// Where a node comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A tile op.
    Op(Handle<Op>),
    /// A parallel loop.
    Parallel(Handle<Parallel>),
}

/// What inference knows about an op.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Iterations without an order.
    Nest(Nest),
    /// A reduction.
    Reduce(Reduction),
    /// A product.
    Gemm(Dictation),
}

/// A reduction from one fragment to another.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    pub(crate) title: String,
    pub(crate) span: Span,
    /// The storage of the destination.
    pub(crate) dst: Handle<Buffer>,
    /// What it does to the destination.
    pub(crate) effect: Effect,
    /// The storage of the source.
    pub(crate) src: Handle<Buffer>,
    /// The granules of the destination that each granule of the source goes to: several if a granule has several
    /// elements.
    pub(crate) rows: Pattern,
    /// How often it is executed: the iterations of the serial loops around it.
    pub(crate) executions: u64,
    /// How often the threads exchange their parts: once for several executions, if it is spread over a loop.
    pub(crate) exchanges: u64,
}

impl Node {
    /// The storages that it uses, and how.
    pub(crate) fn uses(&self) -> BTreeMap<Handle<Buffer>, Effect> {
        let mut uses: BTreeMap<Handle<Buffer>, Effect> = BTreeMap::new();
        let mut add = |storage, effect| {
            uses.entry(storage).and_modify(|known| *known = both(*known, effect)).or_insert(effect);
        };
        match self {
            Node::Nest(nest) => nest.touches.iter().for_each(|touch| add(touch.storage, touch.effect)),
            Node::Reduce(reduction) => {
                add(reduction.dst, reduction.effect);
                add(reduction.src, Effect::Read);
            }
            Node::Gemm(dictation) => {
                dictation.fragments.iter().for_each(|dictated| add(dictated.storage, dictated.effect));
            }
        }
        uses
    }

    /// Whether several iterations or elements meet in one granule, so that it matters how rows are shared.
    pub(crate) fn has_rows(&self) -> bool {
        match self {
            Node::Nest(nest) => nest.scanned.is_some() || nest.touches.iter().any(|touch| !touch.is_own()),
            Node::Reduce(_) => true,
            Node::Gemm(_) => false,
        }
    }

    pub(crate) fn title(&self) -> &str {
        match self {
            Node::Nest(nest) => &nest.title,
            Node::Reduce(reduction) => &reduction.title,
            Node::Gemm(dictation) => &dictation.title,
        }
    }

    pub(crate) fn span(&self) -> Span {
        match self {
            Node::Nest(nest) => nest.span,
            Node::Reduce(reduction) => reduction.span,
            Node::Gemm(dictation) => dictation.span,
        }
    }
}
