//! The layouts of a kernel, as data.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_ir::Handle;
use tilewright_ir::tile::Buffer;
use tilewright_layout::map::Map;

use crate::cost::Cost;
use crate::known::Reason;
use crate::node::Origin;
use crate::uses::Uses;

/// A fragment that has a layout.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The granule that each thread has in each slot.
    pub map: Arc<Map>,
    /// Bytes of a granule, which is an element of the widest dtype among the fragment and its views.
    pub bytes: i64,
    /// Why the fragment has this layout.
    pub reason: Reason,
    /// What it costs in registers, if the search chose to give threads all of the fragment.
    pub note: Option<String>,
}

/// How a nest accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// The op or loop.
    pub origin: Origin,
    /// The buffer in global or shared memory.
    pub buffer: Handle<Buffer>,
    /// Whether the access is a write.
    pub writes: bool,
    /// Elements that a thread moves at once: the least and the most.
    pub widths: (usize, usize),
    /// Why a thread does not move more elements at once.
    pub limit: &'static str,
}

/// A connected component of fragments and ops, whose layouts were found together.
#[derive(Clone, Debug)]
pub struct Component {
    /// The fragments, each named by the one that owns the storage.
    pub fragments: Vec<Handle<Buffer>>,
    /// The ops and loops, in program order.
    pub ops: Vec<Origin>,
    /// The cost of the component.
    pub cost: Cost,
}

/// The layouts of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Inferred {
    /// The layout of each fragment, by the fragment that owns the storage.
    pub fragments: BTreeMap<Handle<Buffer>, Placed>,
    /// For each op or loop, which iteration each thread does in each step; in program order.
    pub loops: Vec<(Origin, Arc<Map>)>,
    /// Why each entry of `loops` has its steps.
    pub loop_reasons: Vec<Reason>,
    /// The memory accesses of all loops, component by component.
    pub accesses: Vec<MemoryAccess>,
    /// The connected components.
    pub components: Vec<Component>,
    /// The cost of all components.
    pub cost: Cost,
    /// Which op uses which fragment.
    pub(crate) uses: Uses,
}
