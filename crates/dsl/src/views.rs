//! Views of a buffer with its dimensions in another order, or with an earlier end.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::Expr;
use tilewright_ir::tile::{self, DynamicShape, Space};
use tilewright_layout::{DType, Iter, Layout, LayoutError, TileLayout};

/// What stands for a buffer until the mistake in its declaration is reported.
pub(crate) fn placeholder(name: &str, span: Span) -> tile::Buffer {
    tile::Buffer {
        name: name.to_string(),
        dtype: DType::B8,
        shape: vec![1],
        space: Space::Shared,
        layout: Some(Layout::Tile(TileLayout::one())),
        dynamic_shape: None,
        view_of: None,
        order: None,
        is_open: false,
        span,
    }
}

/// A buffer with its dimensions in another order. Errors: a fragment, which has no memory to view; an order that is not
/// one of the dimensions.
pub(crate) fn reordered(
    owner: &tile::Buffer,
    name: &str,
    order: &[usize],
    span: Span,
) -> Result<tile::Buffer, Box<Diagnostic>> {
    let Some(layout) = owner.layout.as_ref().filter(|_| owner.space != Space::Fragment) else {
        return Err(Box::new(
            Diagnostic::error("K0225", format!("`{name}` is a transposed view of a fragment"))
                .label(span, "viewed here")
                .label(owner.span, "declared here")
                .help("read the fragment with its indices in another order"),
        ));
    };
    let wrong = |error: LayoutError| {
        let rank = owner.shape.len();
        let known = if rank == 1 { "dimension 0".to_string() } else { format!("dimensions 0 to {}", rank - 1) };
        let help = format!("`{}` has {known}: give each of them once", owner.name);
        Box::new(error.diagnostic().label(span, format!("the order of the dimensions of `{name}`")).help(help))
    };
    let layout = layout.reorder(&owner.shape, order).map_err(wrong)?;
    let pick = |exprs: &[Expr]| order.iter().map(|&from| exprs[from].clone()).collect();
    let dynamic_shape = owner.dynamic_shape.as_ref();
    Ok(tile::Buffer {
        name: name.to_string(),
        shape: order.iter().map(|&from| owner.shape[from]).collect(),
        layout: Some(layout),
        dynamic_shape: dynamic_shape
            .map(|known| DynamicShape { extents: pick(&known.extents), strides: pick(&known.strides) }),
        order: Some(order.to_vec()),
        is_open: false,
        span,
        ..owner.clone()
    })
}

/// A tensor that ends earlier in one dimension. Errors: a buffer that is not in global memory, or a dimension that it does not have.
pub(crate) fn truncated(
    owner: &tile::Buffer,
    name: &str,
    (dimension, end): (usize, &Expr),
    span: Span,
) -> Result<tile::Buffer, Box<Diagnostic>> {
    let wrong = |message: String| {
        Box::new(Diagnostic::error("K0225", message).label(span, "viewed here").label(owner.span, "declared here"))
    };
    if !matches!(owner.space, Space::Global(_)) {
        let found = wrong(format!("`{name}` is a truncated view of `{}`, which is not a tensor", owner.name));
        return Err(Box::new(found.help("take a part of it, with .sub(..)")));
    }
    let Some((0, strides)) = owner.strides() else {
        let found = wrong(format!("`{name}` truncates `{}`, whose dimensions have no single stride", owner.name));
        return Err(Box::new(found.help("declare the tensor with one stride for each dimension")));
    };
    if dimension >= owner.shape.len() {
        let found = wrong(format!("`{}` has no dimension {dimension}", owner.name));
        return Err(Box::new(found.help(format!("its dimensions are 0 to {}", owner.shape.len() - 1))));
    }
    let mut extents: Vec<Expr> = (0..owner.shape.len()).map(|at| owner.extent(at)).collect();
    extents[dimension] = end.clone();
    let mut shape = owner.shape.clone();
    shape[dimension] = end.range().hi.clamp(1, shape[dimension]);
    let sides = shape.iter().zip(&strides).map(|(extent, stride)| Iter::memory(*extent, stride.range().hi));
    let layout = TileLayout::new(sides.collect(), Vec::new(), [])
        .map_err(|error| Box::new(error.diagnostic().label(span, format!("the layout of `{name}`"))))?;
    Ok(tile::Buffer {
        name: name.to_string(),
        shape,
        layout: Some(Layout::Tile(layout)),
        dynamic_shape: Some(DynamicShape { extents, strides }),
        order: None,
        is_open: false,
        span,
        ..owner.clone()
    })
}

/// The mistake of a view that has only a shape: `owner` is a transposed view, whose elements are not in that order.
pub(crate) fn flattened(owner: &tile::Buffer, name: &str, span: Span) -> Option<Diagnostic> {
    owner.order.as_ref()?;
    let message = format!("`{name}` views `{}` as a shape, but its dimensions are in another order", owner.name);
    Some(
        Diagnostic::error("K0225", message)
            .label(span, "viewed here")
            .label(owner.span, "transposed here")
            .help("view the buffer that was transposed, or give a layout with strides"),
    )
}
