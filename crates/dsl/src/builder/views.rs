//! Other names for the storage of buffers.

use tilewright_diag::{Diagnostic, Span};
use tilewright_ir::tile::{self, Space};
use tilewright_layout::DType;

use super::KernelBuilder;
use crate::buffer::Buffer;
use crate::expr::Expr;
use crate::nodes;
use crate::shape::IntoLayout;
use crate::views::{flattened, placeholder, reordered, truncated};

impl KernelBuilder<'_> {
    /// Another name for the storage of a buffer, with another layout; for a fragment, with another shape.
    #[track_caller]
    pub fn view(&mut self, name: &str, of: Buffer, layout: impl IntoLayout) -> Buffer {
        let dtype = self.kernel.buffers.get(of.handle).map_or(DType::B8, |owner| owner.dtype);
        self.view_as(name, of, dtype, layout)
    }

    /// Another name for the storage of a buffer, with another dtype and layout; for a fragment, with another shape.
    #[track_caller]
    pub fn view_as(&mut self, name: &str, of: Buffer, dtype: DType, layout: impl IntoLayout) -> Buffer {
        let (is_own, span) = (of.is_own(), Span::here());
        let owner = self.kernel.buffers.get(of.handle).filter(|_| is_own);
        let as_shape = owner.filter(|_| layout.is_shape());
        if let Some(mistake) = as_shape.and_then(|owner| flattened(owner, name, span)) {
            nodes::mistake(mistake);
        }
        let space = owner.map_or(Space::Shared, |owner| owner.space);
        let view = self.buffer(name, dtype, space, layout);
        let buffer = &mut self.kernel.buffers[view.handle];
        (buffer.view_of, buffer.is_open) = (is_own.then_some(of.handle), false);
        view
    }

    /// Another name for a buffer in memory, with its dimensions in another order: dimension `i` of the view is dimension
    /// `order[i]` of the buffer. The view follows the buffer's layout, whatever the compiler chooses.
    #[track_caller]
    pub fn transposed<const N: usize>(&mut self, name: &str, of: Buffer, order: [usize; N]) -> Buffer {
        let span = Span::here();
        self.derived_view(name, of, span, |owner| reordered(owner, name, &order, span))
    }

    /// Another name for a tensor that ends earlier in one dimension: at a size, or at an [`KernelBuilder::index`]. What lies behind is
    /// beyond its edge, as what lies behind the tensor: it is not stored, and counts as zeros, although it may be in memory.
    #[track_caller]
    pub fn truncated(&mut self, name: &str, of: Buffer, dimension: usize, end: impl Into<Expr>) -> Buffer {
        let (span, end) = (Span::here(), end.into().resolved());
        self.derived_view(name, of, span, |owner| truncated(owner, name, (dimension, &end), span))
    }

    /// A view whose layout follows from that of its buffer.
    #[track_caller]
    fn derived_view(
        &mut self,
        name: &str,
        of: Buffer,
        span: Span,
        view: impl FnOnce(&tile::Buffer) -> Result<tile::Buffer, Box<Diagnostic>>,
    ) -> Buffer {
        let is_own = of.is_own();
        let owner = self.kernel.buffers.get(of.handle).filter(|_| is_own);
        let view = owner.map_or_else(|| Ok(placeholder(name, span)), view).unwrap_or_else(|mistake| {
            nodes::mistake(*mistake);
            placeholder(name, span)
        });
        let view_of = is_own.then_some(of.handle);
        let handle = self.kernel.buffers.push(tile::Buffer { view_of, ..view });
        Buffer { handle, kernel: self.nodes.identity() }
    }
}
