//! The variants of every op.

use std::collections::BTreeSet;

use tilewright_ir::tile::{Op, OpKind};

use crate::elements::ByElements;
use crate::variant::Variants;
use crate::{convert, copy, fill, gemm, permute_layout, pipeline, reduce, scan};

macro_rules! variants_of_ops {
    ($($kind:pat => [$($list:expr),+];)*) => {
        /// The variants of an op, in order of preference: of two with the same cost the earlier is taken.
        pub(super) fn variants(op: &Op) -> Vec<&'static dyn Variants> {
            match op.kind {
                $($kind => vec![$($list as &'static dyn Variants),+],)*
            }
        }

        /// The names of the variants of all ops.
        pub(super) fn all_names() -> BTreeSet<&'static str> {
            let lists = [$($($list as &'static dyn Variants),+),*];
            lists.iter().flat_map(|list| list.names()).chain(pipeline::VARIANTS).chain([pipeline::BULK]).collect()
        }
    };
}

variants_of_ops! {
    OpKind::Copy | OpKind::CopyAsync => [&copy::VARIANTS, &ByElements];
    OpKind::Fill(_) => [&fill::VARIANTS, &ByElements];
    OpKind::PermuteLayout => [&permute_layout::VARIANTS];
    OpKind::ConvertLayout => [&convert::VARIANTS];
    OpKind::Reduce(_) => [&reduce::VARIANTS];
    OpKind::ReduceBy(_) => [&reduce::VARIANTS_OF_TUPLES];
    OpKind::Scan(_) | OpKind::ScanBy(_) => [&scan::VARIANTS];
    OpKind::Gemm(_) => [&gemm::VARIANTS];
    OpKind::GemmAsync(_) => [&gemm::WARPGROUP, &gemm::VARIANTS];
    OpKind::Atomic(_) => [&ByElements];
}
