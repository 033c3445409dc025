//! The tensor maps of a launch, made from their recipes.

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::Kernel;
use tilewright_ir::thread::{Program, TensorMapRecipe};
use tilewright_layout::DType;
use tilewright_layout::descriptor::TensorMap;

use crate::launch_shape::LaunchShape;
use crate::sizes::evaluate;

/// A tensor map that is a parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapParameter {
    /// The name of the parameter.
    pub name: String,
    /// The number of the tensor among the tensors that are parameters.
    pub tensor: usize,
    /// The map.
    pub map: TensorMap,
    /// What the elements are for the copy engine.
    pub dtype: DType,
}

/// The tensor maps of a launch, in the order of the parameters. Error: sizes for which there is no such map.
pub(crate) fn tensor_maps(
    kernel: &Kernel,
    program: &Program,
    launch: &LaunchShape,
) -> Result<Vec<MapParameter>, Diagnostic> {
    program.maps.iter().map(|(_, recipe)| tensor_map(kernel, program, launch, recipe)).collect()
}

fn tensor_map(
    kernel: &Kernel,
    program: &Program,
    launch: &LaunchShape,
    recipe: &TensorMapRecipe,
) -> Result<MapParameter, Diagnostic> {
    let TensorMapRecipe { name, tensor, start, extents, strides, boxes, elements } = recipe;
    let memory = &program.memories[*tensor];
    let numbers = |exprs: &[Expr]| -> Result<Vec<i64>, Diagnostic> {
        exprs.iter().map(|expr| evaluate(&kernel.sizes, launch.values(), expr)).collect()
    };
    let (extents, strides) = (numbers(extents)?, numbers(strides)?);
    let map = boxes.map(start * boxes.bits / 8, &extents, &strides).map_err(|error| {
        let message = format!("for these sizes the copy engine cannot copy tiles of `{}`", memory.name);
        Diagnostic::error("R0617", message)
            .label(memory.span, "declared here")
            .note(error.to_string())
            .help("launch with other sizes, or ask for another variant of the loop or of the copy")
    })?;
    let is_it = |parameter: &crate::Parameter| parameter.name == memory.name;
    let tensor = launch.parameters().iter().position(is_it).ok_or_else(|| {
        Diagnostic::internal("R0618", format!("`{name}` maps `{}`, which is not a parameter", memory.name))
    })?;
    Ok(MapParameter { name: name.clone(), tensor, map, dtype: *elements })
}
