use tilewright_ir::tile::Direction;
use tilewright_layout::{DType, Layout};

/// A parameter of the entry point: a pointer to a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Type of an element.
    pub dtype: DType,
    /// Logical shape.
    pub shape: Vec<i64>,
    /// Where each element is in the tensor's memory.
    pub layout: Layout,
    /// What the kernel does with it.
    pub direction: Direction,
    /// The alignment that its pointer must have, in bytes.
    pub alignment: i64,
}

impl Parameter {
    /// Whether the kernel writes it, so that a launch returns it.
    pub fn is_output(&self) -> bool {
        self.direction.is_written()
    }

    /// Elements of memory: one more than the greatest position.
    pub fn memory_elements(&self) -> i64 {
        self.layout.memory_span()
    }
}
