use clap::{Args, ValueEnum};

/// Arguments of `layout`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A layout in notation, a hardware layout by name, `@FILE` with a table, or `list`.
    pub(super) layout: String,
    /// The logical shape of the tile, as in 8,16.
    #[arg(long, value_parser = read_shape)]
    pub(super) shape: Option<Shape>,
    /// Type of an element: f16, bf16, f32, e4m3, e2m1, ...
    #[arg(long)]
    pub(super) dtype: Option<String>,
    /// What to draw [default: tensor, or banks with --access].
    #[arg(long, value_enum)]
    pub(super) view: Option<View>,
    /// Apply a swizzle mode: none, 32B, 64B, 128B.
    #[arg(long)]
    pub(super) swizzle: Option<String>,
    /// An access of a warp: a layout of lanes over the tile, row:3, column:0, ldmatrix:4 or vectors:16.
    #[arg(long)]
    pub(super) access: Option<String>,
    /// Compare with another layout, and plan the conversion to it.
    #[arg(long)]
    pub(super) to: Option<String>,
    /// A user-defined axis that the notation may name; may be repeated.
    #[arg(long)]
    pub(super) axis: Vec<String>,
    /// Write the drawing to a file as SVG.
    #[arg(long)]
    pub(super) svg: Option<std::path::PathBuf>,
    /// Write the interactive page to a file.
    #[arg(long)]
    pub(super) html: Option<std::path::PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// The extents of a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape(pub(super) Vec<i64>);

/// Reads `8,16`.
fn read_shape(text: &str) -> Result<Shape, String> {
    let extents = text.split(',').map(|extent| extent.trim().parse::<i64>());
    extents.collect::<Result<_, _>>().map(Shape).map_err(|_| {
        // Any other text with numbers in it, such as 8x16 or (8,16).
        let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
        match numbers.collect::<Vec<_>>()[..] {
            [] => "a shape is extents separated by commas, as in 8,16".to_string(),
            ref numbers => format!("a shape is extents separated by commas; write {}", numbers.join(",")),
        }
    })
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum View {
    /// Each element, with its places.
    Tensor,
    /// Each place, with its elements.
    Hardware,
    /// Lines and banks of shared memory.
    Banks,
}
