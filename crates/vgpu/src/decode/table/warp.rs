//! What the lanes of a warp or the warps of a CTA do together.

use super::Unit::{Matrix, Synchronization, Warp};
use super::{Row, one, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "bar",
        "9.7.13.1",
        Synchronization,
        &[
            "bar{.cta}.sync 0",
            "bar{.cta}.sync a, b",
            "bar{.cta}.arrive 1, 64",
            "bar{.cta}.red.popc.u32 d, 1, q",
            "bar{.cta}.red.{and,or}.pred p, 1, 64, !q",
        ],
        |d, m, o| one(d.barrier(m, o, true)),
    ),
    row(
        "barrier",
        "9.7.13.1",
        Synchronization,
        &[
            "barrier{.cta}.sync{.aligned} 0",
            "barrier{.cta}.sync{.aligned} a, b",
            "barrier{.cta}.arrive{.aligned} 1, 64",
            "barrier{.cta}.red.popc{.aligned}.u32 d, 1, q",
            "barrier{.cta}.red.{and,or}{.aligned}.pred p, 1, 64, !q",
        ],
        |d, m, o| {
            let aligned = m.take("aligned");
            one(d.barrier(m, o, aligned))
        },
    ),
    row(
        "barrier.cluster",
        "9.7.13.3",
        Synchronization,
        &["barrier.cluster.arrive{.release,.relaxed}{.aligned}", "barrier.cluster.wait{.acquire}{.aligned}"],
        |d, m, o| one(d.cluster_barrier(m, o)),
    ),
    row("bar.warp.sync", "9.7.13.2", Warp, &["bar.warp.sync a"], |d, _, o| one(d.warp_barrier(o))),
    row(
        "shfl",
        "9.7.9.6",
        Warp,
        &["shfl.sync.{up,down,bfly,idx}.b32 d|p, a, b, c, m", "shfl.sync.{up,down,bfly,idx}.b32 d, a, b, c, m"],
        |d, m, o| one(d.shuffle(m, o)),
    ),
    row(
        "vote",
        "9.7.13.9",
        Warp,
        &["vote.sync.{all,any,uni}.pred p, !q, m", "vote.sync.ballot.b32 d, q, m"],
        |d, m, o| one(d.vote(m, o)),
    ),
    row(
        "match",
        "9.7.13.10",
        Warp,
        &["match.any.sync.{b32,b64} d, a, m", "match.all.sync.{b32,b64} d|p, a, m"],
        |d, m, o| one(d.match_sync(m, o)),
    ),
    row("activemask", "9.7.13.11", Warp, &["activemask.b32 d"], |d, m, o| one(d.active_mask(m, o))),
    row(
        "redux",
        "9.7.13.12",
        Warp,
        &[
            "redux.sync.{add,min,max}.{u32,s32} d, a, m",
            "redux.sync.{and,or,xor}.b32 d, a, m",
            "redux.sync.{min,max}{.abs}{.NaN}.f32 d, a, m",
        ],
        |d, m, o| one(d.redux(m, o)),
    ),
    row("elect", "9.7.13.14", Warp, &["elect.sync d|p, m", "elect.sync _|p, m"], |d, m, o| one(d.elect(m, o))),
    row(
        "mma",
        "9.7.14.5",
        Matrix,
        &[
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {d0, d1}, {a0}, {b0}, {c0, c1}",
            "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {d0, d1}, {a0, a1}, {b0}, {c0, c1}",
            "mma.sync.aligned.m16n8k8.row.col.f32.{f16.f16,bf16.bf16}.f32 {d0, d1, d2, d3}, {a0, a1}, {b0}, {c0, c1, c2, c3}",
            "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {d0, d1}, {a0, a1, a2, a3}, {b0, b1}, {c0, c1}",
            "mma.sync.aligned.m16n8k16.row.col.f32.{f16.f16,bf16.bf16}.f32 {d0, d1, d2, d3}, {a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3}",
            "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {d0, d1, d2, d3}, {a0, a1}, {b0}, {c0, c1, c2, c3}",
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {d0, d1, d2, d3}, {a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3}",
            "mma.sync.aligned.m16n8k16.row.col.f32.{e4m3,e5m2}.{e4m3,e5m2}.f32 {d0, d1, d2, d3}, {a0, a1}, {b0}, {c0, c1, c2, c3}",
            "mma.sync.aligned.m16n8k32.row.col.f32.{e4m3,e5m2}.{e4m3,e5m2}.f32 {d0, d1, d2, d3}, {a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3}",
            "mma.sync.aligned.m16n8k32.row.col.f16.{e4m3,e5m2}.{e4m3,e5m2}.f16 {d0, d1}, {a0, a1, a2, a3}, {b0, b1}, {c0, c1}",
            "mma.sync.aligned.m16n8k16.row.col{.satfinite}.s32.{s8,u8}.{s8,u8}.s32 {d0, d1, d2, d3}, {a0, a1}, {b0}, {c0, c1, c2, c3}",
            "mma.sync.aligned.m16n8k32.row.col{.satfinite}.s32.{s8,u8}.{s8,u8}.s32 {d0, d1, d2, d3}, {a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3}",
        ],
        |d, m, o| one(d.mma(m, o)),
    ),
    row(
        "ldmatrix",
        "9.7.14.5",
        Matrix,
        &[
            "ldmatrix.sync.aligned.m8n8.x1{.trans}{.shared}.b16 {d0}, [x]",
            "ldmatrix.sync.aligned.m8n8.x2{.trans}{.shared}.b16 {d0, d1}, [x]",
            "ldmatrix.sync.aligned.m8n8.x4{.trans}{.shared}.b16 {d0, d1, d2, d3}, [x]",
        ],
        |d, m, o| one(d.load_matrix(m, o)),
    ),
    row(
        "stmatrix",
        "9.7.14.5",
        Matrix,
        &[
            "stmatrix.sync.aligned.m8n8.x1{.trans}{.shared}.b16 [x], {a0}",
            "stmatrix.sync.aligned.m8n8.x2{.trans}{.shared}.b16 [x], {a0, a1}",
            "stmatrix.sync.aligned.m8n8.x4{.trans}{.shared}.b16 [x], {a0, a1, a2, a3}",
        ],
        |d, m, o| one(d.store_matrix(m, o)),
    ),
    row("movmatrix", "9.7.14.5", Matrix, &["movmatrix.sync.aligned.m8n8.trans.b16 d, a"], |d, m, o| {
        one(d.move_matrix(m, o))
    }),
];
