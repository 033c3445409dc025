//! Loads, stores, atomic operations and addresses.

use super::Unit::Memory;
use super::{Row, no_effect, one, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "ld",
        "9.7.9.8, 9.7.9.9",
        Memory,
        &[
            "ld{.weak,.volatile}{.const,.global,.local,.shared,.shared::cta}.{b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64} d, [x]",
            "ld.param.{b8,b16,b32,b64,u32,f32} d, [y]",
            "ld.{relaxed,acquire}.{cta,cluster,gpu,sys}{.global,.shared}.{b32,u64} d, [x]",
            "ld{.global,.shared}{.ca,.cg,.cs,.lu,.cv}.v2.{b8,b16,b32,b64,f32,f64} {d0, d1}, [x]",
            "ld{.global,.shared}.v4.{b8,b16,b32,u32,f32} {d0, d1, d2, d3}, [x]",
            "ld.global.v4.{b64,f64} {d0, d1, d2, d3}, [x]",
            "ld.global.v8.{b32,f32} {d0, d1, d2, d3, d4, d5, d6, d7}, [x]",
            "ld.global.nc{.L1::no_allocate}{.L2::128B}.{b32,f32} d, [x]",
            "ld{.global}.L2::cache_hint.b32 d, [x], b",
            "ld{.global,.shared}.b128 w, [x]",
        ],
        |d, m, o| one(d.load(m, o)),
    ),
    row("ldu", "9.7.9.10", Memory, &["ldu{.global}.{b32,u64,f32} d, [x]"], |d, m, o| one(d.load(m, o))),
    row(
        "st",
        "9.7.9.11",
        Memory,
        &[
            "st{.weak,.volatile}{.global,.local,.shared,.shared::cta}.{b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64} [x], a",
            "st.param.{b8,b16,b32,b64,f32} [z], a",
            "st.{relaxed,release}.{cta,cluster,gpu,sys}{.global,.shared}.{b32,u64} [x], a",
            "st{.global,.shared}{.wb,.cg,.cs,.wt}.v2.{b8,b16,b32,b64,f32,f64} [x], {a0, a1}",
            "st{.global,.shared}.v4.{b8,b16,b32,u32,f32} [x], {a0, a1, a2, a3}",
            "st.global.v4.{b64,f64} [x], {a0, a1, a2, a3}",
            "st.global.v8.{b32,f32} [x], {a0, a1, a2, a3, a4, a5, a6, a7}",
            "st{.global}.L2::cache_hint.b32 [x], a, b",
            "st{.global,.shared}.b128 [x], w",
        ],
        |d, m, o| one(d.store(m, o)),
    ),
    row(
        "atom",
        "9.7.13.5",
        Memory,
        &[
            "atom{.relaxed,.acquire,.release,.acq_rel}{.cta,.cluster,.gpu,.sys}{.global,.shared}.{add,min,max}.{u32,u64,s32,s64} d, [x], a",
            "atom{.global,.shared}.{and,or,xor,exch}.{b32,b64} d, [x], a",
            "atom{.global,.shared}.{inc,dec}.u32 d, [x], a",
            "atom{.global,.shared}.cas.{b16,b32,b64} d, [x], a, b",
            "atom{.global,.shared}.add.{f32,f64} d, [x], a",
            "atom{.global,.shared}.add.noftz.{f16,f16x2,bf16,bf16x2} d, [x], a",
            "atom.global.v2.f32.add {d0, d1}, [x], {a0, a1}",
            "atom.global.v4.{f16x2,bf16x2}.{add,min,max}.noftz {d0, d1, d2, d3}, [x], {a0, a1, a2, a3}",
        ],
        |d, m, o| one(d.atomic(m, o, true)),
    ),
    row(
        "red",
        "9.7.13.6",
        Memory,
        &[
            "red{.relaxed,.release}{.cta,.cluster,.gpu,.sys}{.global,.shared}.{add,min,max}.{u32,u64,s32,s64} [x], a",
            "red{.global,.shared}.{and,or,xor}.{b32,b64} [x], a",
            "red{.global,.shared}.{inc,dec}.u32 [x], a",
            "red{.global,.shared}.add.{f32,f64} [x], a",
            "red{.global,.shared}.add.noftz.{f16,f16x2,bf16,bf16x2} [x], a",
            "red.global.v2.f32.add [x], {a0, a1}",
            "red.global.v4.f32.add [x], {a0, a1, a2, a3}",
        ],
        |d, m, o| one(d.atomic(m, o, false)),
    ),
    row("prefetch", "9.7.9.15", Memory, &["prefetch{.global}.{L1,L2} [x]"], |_, m, _| no_effect(m)),
    row("prefetchu", "9.7.9.15", Memory, &["prefetchu.L1 [x]"], |_, m, _| no_effect(m)),
    row("applypriority", "9.7.9.16", Memory, &["applypriority{.global}.L2::evict_normal [x], 128"], |_, m, _| {
        no_effect(m)
    }),
    row(
        "isspacep",
        "9.7.9.19",
        Memory,
        &["isspacep.{const,global,local,shared,shared::cta,shared::cluster,param} p, a"],
        |d, m, o| one(d.is_space(m, o)),
    ),
    row(
        "mapa",
        "9.7.9.23",
        Memory,
        &["mapa{.shared::cluster}.{u32,u64} d, a, b", "mapa.shared::cluster.u32 d, s, 1"],
        |d, m, o| one(d.map_to_rank(m, o)),
    ),
    row("getctarank", "9.7.9.24", Memory, &["getctarank{.shared::cluster}.{u32,u64} d, a"], |d, m, o| {
        one(d.rank_of(m, o))
    }),
    row("cvta", "9.7.9.20", Memory, &["cvta{.to}.{const,global,local,shared,param}.{u32,u64} d, a"], |d, m, o| {
        one(d.cvta(m, o))
    }),
];
