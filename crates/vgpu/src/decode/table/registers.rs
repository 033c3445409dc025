//! Comparisons, selections, moves and conversions between registers.

use super::Unit::Register;
use super::{Row, one, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "set",
        "9.7.6.1, 9.7.7.1",
        Register,
        &[
            "set.{eq,ne,lt,le,gt,ge}.{u32,s32,f32}.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f64} d, a, b",
            "set.lt.{and,or,xor}.{u32,s32,f32}.{u32,s64,f32} d, a, b, !p",
            "set.{eq,lt,equ,ltu,num,nan}{.ftz}.{u32,s32,f32}.f32 d, a, b",
            "set.{eq,lt,equ,ltu,num,nan}{.ftz}.{f16,u16,u32}.f16 d, a, b",
            "set.{eq,lt,equ,ltu,num,nan}.{bf16,u16,u32}.bf16 d, a, b",
            "set.{eq,lt,equ,ltu,num,nan}{.ftz}.{f16x2,u32}.f16x2 d, a, b",
            "set.{eq,lt,equ,ltu,num,nan}.{bf16x2,u32}.bf16x2 d, a, b",
        ],
        |d, m, o| one(d.set(m, o)),
    ),
    row(
        "setp",
        "9.7.6.2, 9.7.7.2",
        Register,
        &[
            "setp.{eq,ne,lt,le,gt,ge,lo,ls,hi,hs}.{b16,b32,b64,u16,u32,u64,s16,s32,s64} p|q, a, b",
            "setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}{.ftz}.f32 p, a, b",
            "setp.{eq,lt,equ,ltu,num,nan}.f64 p, a, b",
            "setp.{eq,lt,equ,ltu,num,nan}{.ftz}.{f16,f16x2} p|q, a, b",
            "setp.{eq,lt,equ,ltu,num,nan}.{bf16,bf16x2} p|q, a, b",
            "setp.lt.{and,or,xor}.u32 p, a, b, !r",
        ],
        |d, m, o| one(d.setp(m, o)),
    ),
    row("selp", "9.7.6.3", Register, &["selp.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64} d, a, b, p"], |d, m, o| {
        one(d.selp(m, o))
    }),
    row(
        "slct",
        "9.7.6.4",
        Register,
        &[
            "slct.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64}.s32 d, a, b, c",
            "slct{.ftz}.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64}.f32 d, a, b, c",
        ],
        |d, m, o| one(d.slct(m, o)),
    ),
    row(
        "mov",
        "9.7.9.3, 9.7.9.4",
        Register,
        &[
            "mov.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64} d, a",
            "mov.pred p, q",
            "mov.b128 w, v",
            "mov.b128 w, {a0, a1}",
            "mov.{b32,b64} d, {a0, a1}",
            "mov.{b32,b64} {d0, d1}, a",
            "mov.{b32,b64} d, {a0, a1, a2, a3}",
            "mov.u32 d, %clock",
            "mov.u64 d, %globaltimer",
        ],
        |d, m, o| one(d.mov(m, o)),
    ),
    row(
        "cvt",
        "9.7.9.21",
        Register,
        &[
            "cvt.rs{.relu}{.satfinite}.{f16x2,bf16x2}.f32 d, a, b, c",
            "cvt.rs{.relu}.satfinite.{e4m3x4,e5m2x4,e2m3x4,e3m2x4,e2m1x4}.f32 d, {a0, a1, a2, a3}, b",
            "cvt{.sat}.{u8,u16,u32,u64,s8,s16,s32,s64}.{u8,u16,u32,u64,s8,s16,s32,s64} d, a",
            "cvt.{rni,rzi,rmi,rpi}{.sat}.{u8,u16,u32,u64,s8,s16,s32,s64}.{f16,bf16,f64} d, a",
            "cvt.{rni,rzi,rmi,rpi}{.ftz}{.sat}.{u8,u16,u32,u64,s8,s16,s32,s64}.f32 d, a",
            "cvt.{rn,rz,rm,rp}.{f16,bf16,f32,f64}.{u8,u16,u32,u64,s8,s16,s32,s64} d, a",
            "cvt.{rn,rz,rm,rp}{.sat}.{f16,f32}.f64 d, a",
            "cvt.{rn,rz}{.relu}{.satfinite}.{f16,bf16}.f32 d, a",
            "cvt{.ftz}{.sat}.f32.{f16,bf16} d, a",
            "cvt.f64.{f16,bf16,f32} d, a",
            "cvt.{rni,rzi,rmi,rpi}.{f16.f16,bf16.bf16,f32.f32,f64.f64} d, a",
            "cvt.{rn,rz}{.relu}{.satfinite}.{f16x2,bf16x2}.f32 d, a, b",
            "cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2,e2m3x2,e3m2x2,e2m1x2}.f32 d, a, b",
            "cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2,e2m3x2,e3m2x2,e2m1x2}.{f16x2,bf16x2} d, a",
            "cvt.rn{.relu}.f16x2.{e4m3x2,e5m2x2,e2m3x2,e3m2x2,e2m1x2} d, a",
            "cvt.{rz,rp}{.satfinite}.ue8m0x2.f32 d, a, b",
            "cvt.{rz,rp}{.satfinite}.ue8m0x2.bf16x2 d, a",
            "cvt.rn.bf16x2.ue8m0x2 d, a",
            "cvt.{rn,rz,rna}{.relu}{.satfinite}.tf32.f32 d, a",
        ],
        |d, m, o| one(d.convert(m, o)),
    ),
];
