//! What of a launch depends on the sizes: evaluated and checked once, when the sizes are bound.

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::tile::{Buffer, Direction, DynamicShape, Space, element_index, index_title};
use tilewright_ir::{GLOBAL_ALIGNMENT, Handle, Kernel};
use tilewright_layout::{Iter, Layout, TileLayout};

use crate::parameter::Parameter;
use crate::sizes::{evaluate, greatest};

/// The help for sizes that do not go with a tensor's extents or strides.
const SIZES_HELP: &str = "launch with sizes for which every extent is at least 1, no stride is negative, and no two \
                          elements of an output share a position; `ceil_div` rounds up";

/// The grid and the parameters for values of the sizes.
#[derive(Clone, Debug)]
pub(crate) struct LaunchShape {
    /// The value of each size of the kernel; the greatest while they are not bound.
    values: Vec<i64>,
    is_bound: bool,
    /// CTAs along x, y and z.
    grid: [i64; 3],
    parameters: Vec<Parameter>,
    /// The buffer of each parameter.
    buffers: Vec<Handle<Buffer>>,
}

/// Shape and layout of a tensor.
type Placed = (Vec<i64>, Layout);

impl LaunchShape {
    /// The shape of a launch with the largest tensors that are allowed. A kernel without sizes has no other. Errors are
    /// defects.
    pub(crate) fn largest(kernel: &Kernel) -> Result<LaunchShape, Vec<Diagnostic>> {
        let placed = |buffer: &Buffer| declared(buffer).map_err(|finding| vec![finding]);
        LaunchShape::new(kernel, greatest(kernel), kernel.sizes.is_empty(), &placed)
    }

    /// The shape of a launch with these values of the sizes. Errors: a tensor that is empty, reaches below its first
    /// element or has two elements in one place for these sizes, and a view that is larger than its tensor.
    pub(crate) fn bound(kernel: &Kernel, values: Vec<i64>) -> Result<LaunchShape, Vec<Diagnostic>> {
        // A view that ends at what a CTA loads lies inside of its tensor for every launch.
        let of_launch = kernel.buffers.iter().filter(|(_, buffer)| kernel.loaded_end(buffer).is_none());
        let at_launch = of_launch.filter_map(|(_, buffer)| Some((buffer, buffer.dynamic_shape.as_ref()?)));
        let found: Vec<Diagnostic> =
            at_launch.filter_map(|(buffer, shape)| check(kernel, &values, buffer, shape).err()).collect();
        if !found.is_empty() {
            return Err(found);
        }
        let placed = |buffer: &Buffer| placed(kernel, &values, buffer).map_err(|finding| vec![finding]);
        check_views(kernel, &placed)?;
        LaunchShape::new(kernel, values.clone(), true, &placed)
    }

    fn new(
        kernel: &Kernel,
        values: Vec<i64>,
        is_bound: bool,
        placed: &dyn Fn(&Buffer) -> Result<Placed, Vec<Diagnostic>>,
    ) -> Result<LaunchShape, Vec<Diagnostic>> {
        let ctas = |expr: &Expr| evaluate(&kernel.sizes, &values, expr).map_err(|finding| vec![finding]);
        let [x, y, z] = kernel.grid.each_ref().map(ctas);
        let (mut parameters, mut buffers) = (Vec::new(), Vec::new());
        for (handle, buffer) in kernel.buffers.iter().filter(|(_, buffer)| buffer.view_of.is_none()) {
            let direction = match buffer.space {
                Space::Global(direction) => direction,
                Space::Shared | Space::Fragment | Space::Tensor => continue,
            };
            let (shape, layout) = placed(buffer)?;
            buffers.push(handle);
            parameters.push(Parameter {
                name: buffer.name.clone(),
                dtype: buffer.dtype,
                shape,
                layout,
                direction,
                alignment: GLOBAL_ALIGNMENT,
            });
        }
        Ok(LaunchShape { grid: [x?, y?, z?], values, is_bound, parameters, buffers })
    }

    pub(crate) fn values(&self) -> &[i64] {
        &self.values
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.is_bound
    }

    pub(crate) fn grid(&self) -> [i64; 3] {
        self.grid
    }

    pub(crate) fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The buffer of each parameter.
    pub(crate) fn buffers(&self) -> &[Handle<Buffer>] {
        &self.buffers
    }
}

/// Shape and layout of a buffer in memory as it was declared: for sizes known at launch, those of the largest tensor.
fn declared(buffer: &Buffer) -> Result<Placed, Diagnostic> {
    let missing =
        || Diagnostic::internal("R0618", format!("`{}` has no layout", buffer.name)).label(buffer.span, "this");
    Ok((buffer.shape.clone(), buffer.layout.clone().ok_or_else(missing)?))
}

/// Shape and layout of a buffer in memory for these values of the sizes.
fn placed(kernel: &Kernel, values: &[i64], buffer: &Buffer) -> Result<Placed, Diagnostic> {
    let Some(DynamicShape { extents, strides }) = &buffer.dynamic_shape else { return declared(buffer) };
    let numbers = |exprs: &[Expr]| -> Result<Vec<i64>, Diagnostic> {
        exprs.iter().map(|expr| evaluate(&kernel.sizes, values, expr)).collect()
    };
    let (extents, strides) = (numbers(extents)?, numbers(strides)?);
    let shard = extents.iter().zip(&strides).map(|(extent, stride)| Iter::memory(*extent, *stride)).collect();
    let tile = TileLayout::new(shard, Vec::new(), []).map_err(|error| {
        let message = format!("`{}` has no layout for this launch", buffer.name);
        Diagnostic::internal("R0618", message).label(buffer.span, "this").note(error.to_string())
    })?;
    Ok((extents, Layout::Tile(tile)))
}

/// An error if a tensor of these sizes is empty, reaches below its first element, or is written and has two elements in
/// one place.
fn check(kernel: &Kernel, values: &[i64], buffer: &Buffer, shape: &DynamicShape) -> Result<(), Diagnostic> {
    let name = &buffer.name;
    let wrong = |message: String| {
        Diagnostic::error("R0617", format!("for these sizes {message}"))
            .label(buffer.span, "declared here")
            .help(SIZES_HELP)
    };
    for (dimension, (extent, stride)) in shape.extents.iter().zip(&shape.strides).enumerate() {
        let (extents, strides) = (evaluate(&kernel.sizes, values, extent)?, evaluate(&kernel.sizes, values, stride)?);
        if extents < 1 {
            let message = format!("`{name}` has extent {extents} in dimension {dimension}");
            return Err(wrong(message).note(format!("the extent is `{extent}`")));
        }
        if extents > 1 && strides < 0 {
            let message = format!("`{name}` has stride {strides} in dimension {dimension}");
            return Err(wrong(message).note(format!("the stride is `{stride}`")));
        }
    }
    let (shape, layout) = placed(kernel, values, buffer)?;
    let is_read_only = matches!(buffer.space, Space::Global(Direction::Input));
    match layout.collision() {
        Ok(Some((one, other))) if !is_read_only => {
            let [one, other] = [one, other].map(|element| index_title(&element_index(&shape, element)));
            let message = format!("two elements of `{name}` share a position");
            Err(wrong(message).note(format!("elements {one} and {other}")))
        }
        // What cannot be decided is accepted, as it is for layouts that are known when the kernel is compiled.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Checks that views stay inside the tensors that they view.
fn check_views(
    kernel: &Kernel,
    placed: &dyn Fn(&Buffer) -> Result<Placed, Vec<Diagnostic>>,
) -> Result<(), Vec<Diagnostic>> {
    let mut found = Vec::new();
    let is_of_launch = |buffer: &Buffer| buffer.view_of.is_some() && kernel.loaded_end(buffer).is_none();
    for (handle, view) in kernel.buffers.iter().filter(|(_, buffer)| is_of_launch(buffer)) {
        let owner = &kernel.buffers[kernel.storage(handle)];
        // If neither depends on a size of the launch, the verifier has compared them.
        if view.dynamic_shape.is_some() || owner.dynamic_shape.is_some() {
            let (reached, there) = (placed(view)?.1.memory_span(), placed(owner)?.1.memory_span());
            found.extend(out_of_bounds(view, reached, owner, there));
        }
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// The error for a view of `reached` elements, if its tensor has fewer: `there`.
fn out_of_bounds(view: &Buffer, reached: i64, owner: &Buffer, there: i64) -> Option<Diagnostic> {
    // In elements of the tensor, whose width may differ from the view's.
    let bytes = reached.saturating_mul(view.dtype.bytes());
    let reached = bytes.saturating_add(owner.dtype.bytes() - 1) / owner.dtype.bytes();
    if reached <= there {
        return None;
    }
    let (view_name, owner_name) = (&view.name, &owner.name);
    let message = format!(
        "for these sizes the view `{view_name}` reaches element {reached} of `{owner_name}`, which has {there}"
    );
    let help = match view.dynamic_shape {
        Some(_) => "give the view strides that follow from the sizes",
        None => "launch with larger sizes, or give the view extents and strides that follow from the sizes",
    };
    let finding = Diagnostic::error("R0613", message).label(view.span, "viewed here");
    Some(finding.label(owner.span, "declared here").help(help))
}
