//! What inference knows about each op and loop.

use std::collections::BTreeSet;

use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Op, Parallel};

use crate::dictation::Dictation;
use crate::nest::Nest;

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
    /// The storage of the source.
    pub(crate) src: Handle<Buffer>,
    /// The granule of the destination that each granule of the source goes to.
    pub(crate) row_of: Vec<u32>,
    /// Granules of the destination.
    pub(crate) rows: usize,
}

impl Node {
    /// The storages it touches.
    pub(crate) fn storages(&self) -> BTreeSet<Handle<Buffer>> {
        match self {
            Node::Nest(nest) => nest.touches.iter().map(|touch| touch.storage).collect(),
            Node::Reduce(reduction) => [reduction.dst, reduction.src].into_iter().collect(),
            Node::Gemm(dictation) => dictation.fragments.iter().map(|(storage, _)| *storage).collect(),
        }
    }

    /// Whether several iterations or elements meet in one granule, so that it matters how rows are shared.
    pub(crate) fn has_rows(&self) -> bool {
        match self {
            Node::Nest(nest) => nest.touches.iter().any(|touch| !touch.is_own()),
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
