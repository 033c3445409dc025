//! Buffers: tensors in global memory, shared memory, fragments, and views of them.

use tilewright_diag::Span;
use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_layout::axis::{M, REG, TCOL};
use tilewright_layout::descriptor::tensor_strides;
use tilewright_layout::{DType, Layout};

use crate::arena::Handle;

/// Shape and strides of a tensor, some of which are known only at launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicShape {
    /// Extents of its dimensions.
    pub extents: Vec<Expr>,
    /// Distance in elements from one index to the next, per dimension.
    pub strides: Vec<Expr>,
}

impl DynamicShape {
    /// The position of the element at an index.
    pub fn position(&self, index: &[Expr]) -> Expr {
        let terms = index.iter().zip(&self.strides).map(|(index, stride)| index.clone() * stride.clone());
        normalize(&terms.fold(Expr::constant(0), |sum, term| sum + term))
    }
}

/// Where a buffer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Global memory, a parameter of the kernel.
    Global(Direction),
    /// Shared memory of the CTA.
    Shared,
    /// Registers: every thread holds its part of the buffer.
    Fragment,
    /// Tensor memory: sums of asynchronous products, 128 rows of columns of 32 bits.
    Tensor,
}

/// What a kernel does with a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Only reads it.
    Input,
    /// Writes every element; their values before the launch do not matter.
    Output,
    /// Reads and writes it: a tensor that is updated in place.
    InOut,
    /// Adds to it: the launch sets every element to 0 first.
    Accumulator,
}

impl Direction {
    /// Whether the caller gives values.
    pub fn takes_values(self) -> bool {
        match self {
            Direction::Input | Direction::InOut => true,
            Direction::Output | Direction::Accumulator => false,
        }
    }

    /// Whether the kernel may write it.
    pub fn is_written(self) -> bool {
        match self {
            Direction::Input => false,
            Direction::Output | Direction::InOut | Direction::Accumulator => true,
        }
    }

    /// What it is called in the printed IR.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Input => "input",
            Direction::Output => "output",
            Direction::InOut => "inout",
            Direction::Accumulator => "accumulator",
        }
    }
}

/// A buffer, or another name for one.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its name, unchanged in CUDA unless C++ or CUDA reserves it.
    pub name: String,
    /// Type of an element.
    pub dtype: DType,
    /// Extents of its dimensions.
    pub shape: Vec<i64>,
    /// Where it lives.
    pub space: Space,
    /// Where each element is stored: memory axes for global and shared buffers, thread axes and `reg` for fragments.
    /// `None` for a fragment whose layout is to be inferred.
    pub layout: Option<Layout>,
    /// For a tensor with sizes known only at launch. `shape` and `layout` are then those of the largest allowed.
    pub dynamic_shape: Option<DynamicShape>,
    /// The buffer whose storage this one shares, if it is a view.
    pub view_of: Option<Handle<Buffer>>,
    /// For a view that only reorders dimensions: the dimension of its owner that each of its own is. It follows the
    /// layout of the owner.
    pub order: Option<Vec<usize>>,
    /// Whether the compiler may choose the layout: a shared buffer for which only a shape was written. `layout` is
    /// row-major until then.
    pub is_open: bool,
    /// Where it was written.
    pub span: Span,
}

impl Buffer {
    /// The extent of a dimension, in terms of sizes known at launch.
    pub fn extent(&self, dimension: usize) -> Expr {
        match &self.dynamic_shape {
            Some(shape) => shape.extents[dimension].clone(),
            None => Expr::constant(self.shape[dimension]),
        }
    }

    /// The position of the first element of a tensor, and the distance in elements from one index to the next, per dimension; `None`
    /// if a dimension has no single one.
    pub fn strides(&self) -> Option<(i64, Vec<Expr>)> {
        if let Some(shape) = &self.dynamic_shape {
            return Some((0, shape.strides.clone()));
        }
        let Some(Layout::Tile(layout)) = &self.layout else { return None };
        let strides = tensor_strides(layout, &self.shape, self.dtype.bytes() * 8).ok()?;
        Some((layout.offset_on(&M), strides.into_iter().map(Expr::constant).collect()))
    }

    /// The shape as it was declared: `[rows, 64]`.
    pub fn shape_title(&self) -> String {
        let extents: Vec<String> = (0..self.shape.len()).map(|at| self.extent(at).to_string()).collect();
        format!("[{}]", extents.join(", "))
    }

    /// A fragment whose layout is to be inferred.
    pub fn fragment(name: impl Into<String>, dtype: DType, shape: &[i64], span: Span) -> Buffer {
        Buffer {
            name: name.into(),
            dtype,
            shape: shape.to_vec(),
            space: Space::Fragment,
            layout: None,
            dynamic_shape: None,
            view_of: None,
            order: None,
            is_open: false,
            span,
        }
    }

    /// Elements of storage: one more than the greatest position; 0 where no layout is known.
    pub fn span_elements(&self) -> i64 {
        let Some(layout) = &self.layout else { return 0 };
        match self.space {
            Space::Global(_) | Space::Shared => layout.memory_span(),
            Space::Fragment => layout.span_on(&REG),
            Space::Tensor => layout.span_on(&TCOL),
        }
    }

    /// Its dtype and shape: `f32(4,16)`.
    pub fn type_text(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(i64::to_string).collect();
        format!("{}({})", self.dtype, shape.join(","))
    }

    /// Its layout as text for messages: `laid out as ...`.
    pub fn laid_out(&self) -> String {
        match &self.layout {
            Some(layout) => format!("laid out as {layout}"),
            None => "declared without a layout".to_string(),
        }
    }
}
