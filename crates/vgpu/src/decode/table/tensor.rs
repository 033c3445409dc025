//! Tensor memory and the products of the fifth generation of tensor cores.

use super::Unit::{Matrix, Synchronization, Tensor};
use super::{Row, one, row};
use crate::decode::tensor::tensor;
use crate::op::TensorOp;

pub(super) const ROWS: &[Row] = &[
    row(
        "tcgen05.alloc",
        "9.7.16.7.1",
        Tensor,
        &["tcgen05.alloc.{cta_group::1,cta_group::2}.sync.aligned{.shared::cta}.b32 [s], a"],
        |d, m, o| one(d.tensor_allocate(m, o)),
    ),
    row(
        "tcgen05.dealloc",
        "9.7.16.7.1",
        Tensor,
        &["tcgen05.dealloc.{cta_group::1,cta_group::2}.sync.aligned.b32 a, 64"],
        |d, m, o| one(d.tensor_free(m, o)),
    ),
    row(
        "tcgen05.relinquish_alloc_permit",
        "9.7.16.7.1",
        Tensor,
        &["tcgen05.relinquish_alloc_permit.{cta_group::1,cta_group::2}.sync.aligned"],
        |d, m, _| one(d.tensor_aligned(m, TensorOp::Relinquish)),
    ),
    row(
        "tcgen05.ld",
        "9.7.16.8.3",
        Tensor,
        &[
            "tcgen05.ld.sync.aligned.{32x32b,16x64b}.x1{.pack::16b}.b32 {d0}, [x]",
            "tcgen05.ld.sync.aligned.{32x32b,16x64b}.x2{.pack::16b}.b32 {d0, d1}, [x]",
            "tcgen05.ld.sync.aligned.16x128b.x1{.pack::16b}.b32 {d0, d1}, [x]",
            "tcgen05.ld.sync.aligned.16x256b.x1{.pack::16b}.b32 {d0, d1, d2, d3}, [x]",
            "tcgen05.ld.sync.aligned.16x32bx2.x1{.pack::16b}.b32 {d0}, [x], 16",
        ],
        |d, m, o| one(d.tensor_move(m, o, true)),
    ),
    row(
        "tcgen05.st",
        "9.7.16.8.4",
        Tensor,
        &[
            "tcgen05.st.sync.aligned.{32x32b,16x64b}.x1{.unpack::16b}.b32 [x], {a0}",
            "tcgen05.st.sync.aligned.{32x32b,16x64b}.x2{.unpack::16b}.b32 [x], {a0, a1}",
            "tcgen05.st.sync.aligned.16x128b.x1{.unpack::16b}.b32 [x], {a0, a1}",
            "tcgen05.st.sync.aligned.16x256b.x1{.unpack::16b}.b32 [x], {a0, a1, a2, a3}",
            "tcgen05.st.sync.aligned.16x32bx2.x1{.unpack::16b}.b32 [x], 16, {a0}",
        ],
        |d, m, o| one(d.tensor_move(m, o, false)),
    ),
    row("tcgen05.wait::ld", "9.7.16.8.5", Tensor, &["tcgen05.wait::ld.sync.aligned"], |d, m, _| {
        one(d.tensor_aligned(m, TensorOp::WaitLoads))
    }),
    row("tcgen05.wait::st", "9.7.16.8.5", Tensor, &["tcgen05.wait::st.sync.aligned"], |d, m, _| {
        one(d.tensor_aligned(m, TensorOp::WaitStores))
    }),
    row(
        "tcgen05.cp",
        "9.7.16.9.2",
        Tensor,
        &[
            "tcgen05.cp.{cta_group::1,cta_group::2}.{128x256b,4x256b,128x128b} [x], b",
            "tcgen05.cp.{cta_group::1,cta_group::2}.64x128b.{warpx2::02_13,warpx2::01_23} [x], b",
            "tcgen05.cp.{cta_group::1,cta_group::2}.32x128b.warpx4 [x], b",
        ],
        |d, m, o| one(d.tensor_copy_in(m, o)),
    ),
    row("tcgen05.shift", "9.7.16.9.3", Tensor, &["tcgen05.shift.{cta_group::1,cta_group::2}.down [x]"], |d, m, o| {
        one(d.tensor_shift(m, o))
    }),
    row(
        "tcgen05.mma",
        "9.7.16.10.9.1",
        Matrix,
        &[
            "tcgen05.mma.{cta_group::1,cta_group::2}.{kind::f16,kind::tf32,kind::f8f6f4,kind::i8} [x], a, b, c, p",
            "tcgen05.mma.{cta_group::1,cta_group::2}.{kind::f16,kind::tf32,kind::f8f6f4,kind::i8} [x], [y], b, c, p",
            "tcgen05.mma.cta_group::1.kind::f16{.collector::a::fill} [x], a, b, c, {a0, a1, a2, a3}, p, 3",
            "tcgen05.mma.{cta_group::1,cta_group::2}.kind::mxf8f6f4.block_scale{.scale_vec::1X,.block32} [x], a, b, c, [y], [z], p",
            "tcgen05.mma.{cta_group::1,cta_group::2}.kind::mxf4.block_scale{.scale_vec::2X,.block32} [x], a, b, c, [y], [z], p",
            "tcgen05.mma.{cta_group::1,cta_group::2}.kind::mxf4nvf4.block_scale.{scale_vec::2X,scale_vec::4X,block16,block32} [x], a, b, c, [y], [z], p",
        ],
        |d, m, o| one(d.tensor_mma(m, o, false)),
    ),
    row(
        "tcgen05.mma.ws",
        "9.7.16.10.9.3",
        Matrix,
        &[
            "tcgen05.mma.ws.cta_group::1.{kind::f16,kind::tf32,kind::f8f6f4,kind::i8}{.collector::b0::fill} [x], a, b, c, p",
            "tcgen05.mma.ws.cta_group::1.{kind::f16,kind::tf32,kind::f8f6f4,kind::i8} [x], [x], b, c, p",
        ],
        |d, m, o| one(d.tensor_mma(m, o, true)),
    ),
    row(
        "tcgen05.commit",
        "9.7.16.12.1",
        Synchronization,
        &[
            "tcgen05.commit.{cta_group::1,cta_group::2}.mbarrier::arrive::one{.shared::cluster}.b64 [s]",
            "tcgen05.commit.{cta_group::1,cta_group::2}.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [s], h",
        ],
        |d, m, o| one(d.tensor_commit(m, o)),
    ),
    row(
        "tcgen05.fence::before_thread_sync",
        "9.7.16.11.1",
        Synchronization,
        &["tcgen05.fence::before_thread_sync"],
        |_, _, _| Ok(vec![tensor(TensorOp::FenceBefore)]),
    ),
    row(
        "tcgen05.fence::after_thread_sync",
        "9.7.16.11.1",
        Synchronization,
        &["tcgen05.fence::after_thread_sync"],
        |_, _, _| Ok(vec![tensor(TensorOp::FenceAfter)]),
    ),
];
