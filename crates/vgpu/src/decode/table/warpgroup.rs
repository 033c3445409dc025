//! Products of matrices by a warpgroup.

use super::Unit::Matrix;
use super::{Row, one, row};
use crate::op::WarpgroupOp;

pub(super) const ROWS: &[Row] = &[
    row(
        "wgmma.mma_async",
        "9.7.15.5.2",
        Matrix,
        &[
            "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {d0, d1}, a, b, p, 1, 1, 0, 0",
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.{f16.f16,bf16.bf16} {d0, d1, d2, d3}, a, b, p, 1, -1, 0, 1",
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.{f16.f16,bf16.bf16} {d0, d1, d2, d3}, {a0, a1, a2, a3}, b, p, 1, 1, 1",
            "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {d0, d1, d2, d3}, a, b, p, 1, 1",
            "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {d0, d1, d2, d3}, {a0, a1, a2, a3}, b, p, 1, 1",
            "wgmma.mma_async.sync.aligned.m64n8k32.f32.{e4m3,e5m2}.{e4m3,e5m2} {d0, d1, d2, d3}, a, b, p, 1, 1",
            "wgmma.mma_async.sync.aligned.m64n8k32.f16.{e4m3,e5m2}.{e4m3,e5m2} {d0, d1}, a, b, p, 1, 1",
            "wgmma.mma_async.sync.aligned.m64n8k32{.satfinite}.s32.{s8,u8}.{s8,u8} {d0, d1, d2, d3}, a, b, p",
        ],
        |d, m, o| one(d.warpgroup_mma(m, o)),
    ),
    row("wgmma.fence", "9.7.15.7.1", Matrix, &["wgmma.fence.sync.aligned"], |d, m, _| {
        one(d.warpgroup_plain(m, WarpgroupOp::Fence))
    }),
    row("wgmma.commit_group", "9.7.15.7.2", Matrix, &["wgmma.commit_group.sync.aligned"], |d, m, _| {
        one(d.warpgroup_plain(m, WarpgroupOp::Commit))
    }),
    row("wgmma.wait_group", "9.7.15.7.3", Matrix, &["wgmma.wait_group.sync.aligned 1"], |d, m, o| {
        one(d.warpgroup_wait(m, o))
    }),
];
