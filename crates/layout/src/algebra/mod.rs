//! Operations that make layouts from layouts. Each is defined by an equation on `apply`, checked by a property test.

mod axis_inverse;
mod canonical;
mod complement;
mod compose;
mod group;
mod inverse;
mod joint;
mod progression;
mod rearrange;
mod recast;
mod recognise;
mod replicas;
mod slice;
mod sum;
mod swizzled;
mod tiling;

pub use axis_inverse::{AxisInverse, Digit, Guard};
pub use group::{Grouped, GroupedMany};
pub use inverse::Inverse;
pub use joint::refine_together;
pub use recognise::{PlaceDigit, digits_of_list};
pub use slice::Piece;

pub(crate) use progression::{Progression, added, fuse};
pub(crate) use recognise::Walk;
pub(crate) use replicas::{copies_on, normal_form, offsets_on};
pub(crate) use slice::{cut, elements_of_region, places};
