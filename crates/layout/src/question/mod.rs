//! Questions about layouts, each with an exact answer.
//!
//! For tiles the answer comes from the iters: every iter moves on one axis, so a question about places splits into one
//! bounded linear equation per axis in the digits of the iters, whatever the size of the tile. For swizzles and tables
//! it comes from enumeration, up to [`crate::ENUMERATION_LIMIT`] points.

mod compare;
mod contain;
mod cover;
mod injective;
mod linear;
mod owner;
mod vector;

pub(crate) use linear::{Equation, Unknown};
