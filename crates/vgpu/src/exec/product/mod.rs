//! Products of matrices that lie in shared memory: what `wgmma` and `tcgen05.mma` have in common.

mod shape;
mod shared_matrix;
mod sums;
mod units;

pub(crate) use shape::{Element, Multiplier, Scale, Shape, Sum};
pub(crate) use shared_matrix::{Major, SharedMatrix, UNIT};
pub(crate) use sums::{Values, are_products_exact, element, extend_with_unit, multiply, scale};
pub(crate) use units::{Units, units_of};
