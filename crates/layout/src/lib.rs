//! Layouts: where each element of a tile lives.
//!
//! A [`TileLayout`] is shard + replica + offset over named axes, `L(x) = { D(x) + r + O | r in R }`. It describes
//! memory tiles, register fragments, tensor memory and device meshes. The notation is the same in text and in Rust:
//!
//! ```
//! use tilewright_layout::axis::{LANEID, M, WARPID};
//! use tilewright_layout::{R, S, TileLayout};
//! let built = (S([8, 2, 4, 2], [4 * LANEID, 1 * WARPID, 1 * LANEID, 1 * M]) + R([2], [4 * WARPID]) + 5 * WARPID)
//!     .build()?;
//! let parsed: TileLayout = "S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)] + R[2:4@warpid] + 5@warpid".parse()?;
//! assert_eq!(built, parsed);
//! assert_eq!(built.to_string(), "S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1@m)] + R[2:4@warpid] + 5@warpid");
//! # Ok::<(), tilewright_layout::LayoutError>(())
//! ```
//!
//! Every question gets an exact answer, never "not provable": from the iters where the map is affine, otherwise by
//! enumeration.

pub mod access;
mod algebra;
pub mod axis;
pub mod banks;
pub mod conversion;
pub mod descriptor;
mod dtype;
mod error;
mod fix;
pub mod hardware;
mod index;
mod iter;
mod layout;
pub mod map;
pub mod mesh;
mod overlap;
mod parse;
mod placed;
mod print;
mod question;
mod scope;
mod spec;
mod swizzle;
mod table;
mod tile;
pub mod weights;

pub use algebra::{
    AxisInverse, Digit, Grouped, GroupedMany, Guard, Inverse, Piece, PlaceDigit, digits_of_list, refine_together,
};
pub use axis::Axis;
pub use dtype::DType;
pub use error::LayoutError;
pub use iter::Iter;
pub use layout::Layout;
pub use placed::{Pitch, PlacedTile, Placement};
pub use scope::{AxisRelation, RELATIONS};
pub use spec::{LayoutSpec, R, ReplicaSpec, S, Term};
pub use swizzle::{ComposeLayout, SwizzleLayout};
pub use table::TableLayout;
pub use tile::{Coord, TileLayout};

/// The maximum number of points that a question may enumerate; above it the result is [`LayoutError::TooLarge`].
pub const ENUMERATION_LIMIT: i64 = 1 << 22;
