use clap::{Args, ValueEnum};

/// Arguments of `layout`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A layout in notation, a hardware layout by name, `@FILE` with a table, or `list`.
    pub(super) layout: String,
    /// The logical shape of the tile, as in 8,16.
    #[arg(long, value_delimiter = ',')]
    pub(super) shape: Option<Vec<i64>>,
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
