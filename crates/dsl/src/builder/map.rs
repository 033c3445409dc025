//! Whole buffers, computed element by element.

use tilewright_diag::{Diagnostic, Span, counted, counted_as};

use super::{KernelBuilder, ParallelRef};
use crate::buffer::Buffer;
use crate::elements::variables;
use crate::expr::Expr;
use crate::nodes;
use crate::value::Value;

impl<'k> KernelBuilder<'k> {
    /// Computes every element of a buffer from its index: `k.map(y, |[i, j]| x.at((i, j)) * 2.0)`. This is
    /// [`KernelBuilder::parallel`] over the extents of the buffer, with one store. Tensors with sizes known at launch have no
    /// such extents: map a fragment, and copy that.
    #[track_caller]
    pub fn map<const N: usize, T: Into<Value>>(
        &mut self,
        to: Buffer,
        element: impl FnOnce([Expr; N]) -> T,
    ) -> ParallelRef<'k> {
        let (shape, span) = (self.shape(to), Span::here());
        let buffer = self.kernel.buffers.get(to.handle);
        let (name, is_dynamic) = buffer.map_or(("", false), |of| (&of.name[..], of.dynamic_shape.is_some()));
        let extents = <[i64; N]>::try_from(shape.clone());
        if is_dynamic {
            let finding = Diagnostic::error("K0231", format!("`map` to `{name}`, whose size is known only at launch"));
            let help = "map a fragment of the size of a tile, and copy it";
            nodes::mistake(finding.label(span, "this op").help(help));
        } else if extents.is_err() {
            let dimensions = counted(shape.len(), "dimension");
            let message =
                format!("`map` with {} for `{name}`, which has {dimensions}", counted_as(N, "index", "indices"));
            let finding = Diagnostic::error("K0219", message).label(span, "this op");
            let names: Vec<String> = variables(&shape, &|_| false).iter().map(|var| var.name().to_string()).collect();
            let help = format!("the function takes one index for each dimension: |[{}]|", names.join(", "));
            nodes::mistake(finding.help(help));
        }
        let extents = extents.unwrap_or([1; N]);
        self.parallel(extents, |k, index| {
            let value = element(index).into();
            // What is wrong with the index was reported above.
            if shape.len() == N {
                k.store_at(span, to, index, value);
            }
        })
    }
}
