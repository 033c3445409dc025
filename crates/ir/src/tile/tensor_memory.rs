//! Tensor memory: which columns the sums of asynchronous products have.

use std::collections::BTreeMap;

use crate::arena::Handle;
use crate::thread::{COLUMN_BYTES, TENSOR_COLUMNS};
use crate::tile::buffer::{Buffer, Space};
use crate::tile::kernel::Kernel;
use crate::tile::op::Op;
use crate::tile::role::Role;

/// The fewest columns of an allocation (PTX ISA, "tcgen05.alloc").
const LEAST_COLUMNS: i64 = 32;

/// The columns of a CTA's tensor memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorColumns {
    /// The first column of each buffer, in its first stage.
    pub first: BTreeMap<Handle<Buffer>, i64>,
    /// Columns that buffers take, in all stages together.
    pub taken: i64,
}

impl TensorColumns {
    /// Columns that are allocated: a power of 2, 32 or more (PTX ISA, "tcgen05.alloc").
    pub fn allocated(&self) -> i64 {
        let least = u64::try_from(self.taken.max(LEAST_COLUMNS)).unwrap_or_default();
        least.checked_next_power_of_two().and_then(|columns| i64::try_from(columns).ok()).unwrap_or(i64::MAX)
    }

    /// Whether tensor memory has as many.
    pub fn fit(&self) -> bool {
        self.allocated() <= TENSOR_COLUMNS
    }
}

impl Buffer {
    /// Columns of tensor memory that it takes there: a column has 32 bits of a row.
    pub fn columns(&self) -> i64 {
        self.span_elements().saturating_mul(self.dtype.bytes()) / COLUMN_BYTES
    }
}

impl Kernel {
    /// Whether a buffer is in tensor memory.
    pub fn is_in_tensor_memory(&self, buffer: Handle<Buffer>) -> bool {
        self.buffers[buffer].space == Space::Tensor
    }

    /// Whether an op has an operand in tensor memory.
    pub fn uses_tensor_memory(&self, op: &Op) -> bool {
        op.operands.iter().any(|tile| self.buffers.get(tile.buffer).is_some_and(|of| of.space == Space::Tensor))
    }

    /// Whether a role has ops on tensor memory.
    pub fn role_uses_tensor_memory(&self, role: Option<Handle<Role>>) -> bool {
        self.ops.iter().any(|(_, op)| op.role == role && self.uses_tensor_memory(op))
    }

    /// The columns of the buffers in tensor memory, in their order; none if there is no such buffer.
    pub fn tensor_columns(&self) -> TensorColumns {
        let mut columns = TensorColumns::default();
        for (handle, buffer) in self.buffers.iter().filter(|(_, buffer)| buffer.space == Space::Tensor) {
            columns.first.insert(handle, columns.taken);
            let own = buffer.columns().saturating_mul(self.stages_of(handle));
            columns.taken = columns.taken.saturating_add(own);
        }
        columns
    }
}
