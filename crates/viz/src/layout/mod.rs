//! Drawings of a layout: as text for a terminal, as SVG, as JSON.
//!
//! All of them are made from a [`LayoutView`], which only asks the layout where each element is. There are three
//! drawings: the *tensor view* (each element: its places), the *hardware view* (each place: its elements)
//! and, for linear memory, the *bank view*. What does not fit is folded, with a note that says so.
//!
//! ```
//! use tilewright_layout::Layout;
//! use tilewright_viz::layout::Show;
//!
//! let layout: Layout = "S[(2,2):(2,1)]".parse()?;
//! let expected = "\
//! S[(2,2):(2@m,1@m)], shape (2,2)
//! a number is an address on m, in elements
//!
//!    0  1
//! 0  0  1
//! 1  2  3
//! ";
//! assert_eq!(layout.show(), expected);
//! # Ok::<(), tilewright_layout::LayoutError>(())
//! ```

mod banks;
mod blocks;
mod compare;
mod fold;
mod gallery;
mod hardware;
mod json;
mod label;
mod palette;
pub(crate) mod sheet;
mod show;
pub(crate) mod svg;
mod tensor;
pub(crate) mod text;
mod view;
pub(crate) mod wavefront;

pub use banks::{banks_svg, banks_text};
pub use compare::{Difference, compare_text, first_difference};
pub use gallery::{GalleryEntry, gallery};
pub use hardware::{hardware_svg, hardware_text};
pub use json::{LayoutJson, to_json};
pub use show::{Show, default_shape};
pub use tensor::{tensor_svg, tensor_text};
pub use text::TextOptions;
pub use view::{Cell, LayoutView, Place};
pub use wavefront::{Wavefront, wavefronts_of};
