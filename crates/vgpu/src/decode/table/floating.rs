//! Instructions that exist for floating-point numbers only.

use super::Unit::Arithmetic;
use super::{Row, one, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "testp",
        "9.7.3.1",
        Arithmetic,
        &["testp.{finite,infinite,number,notanumber,normal,subnormal}.{f32,f64} p, a"],
        |d, m, o| one(d.testp(m, o)),
    ),
    row("copysign", "9.7.3.2", Arithmetic, &["copysign.{f32,f64} d, a, b"], |d, m, o| d.floating(m, o)),
    row(
        "fma",
        "9.7.3.6, 9.7.4.4, 9.7.5.3",
        Arithmetic,
        &[
            "fma.{rn,rz,rm,rp}{.ftz}{.sat}.f32 d, a, b, c",
            "fma.{rn,rz,rm,rp}{.ftz}.f32x2 d, a, b, c",
            "fma.{rn,rz,rm,rp}.f64 d, a, b, c",
            "fma.rn{.ftz}{.sat,.relu}.{f16,f16x2} d, a, b, c",
            "fma.rn{.relu}.{bf16,bf16x2} d, a, b, c",
            "fma.{rn,rz,rm,rp}{.sat}.f32.{f16,bf16} d, a, b, c",
        ],
        |d, m, o| d.floating(m, o),
    ),
    row(
        "rcp",
        "9.7.3.13, 9.7.3.14",
        Arithmetic,
        &["rcp.{approx,rn,rz,rm,rp}{.ftz}.f32 d, a", "rcp.{rn,rz,rm,rp}.f64 d, a", "rcp.approx.ftz.f64 d, a"],
        |d, m, o| d.floating(m, o),
    ),
    row(
        "sqrt",
        "9.7.3.15",
        Arithmetic,
        &["sqrt.{approx,rn,rz,rm,rp}{.ftz}.f32 d, a", "sqrt.{rn,rz,rm,rp}.f64 d, a"],
        |d, m, o| d.floating(m, o),
    ),
    row(
        "rsqrt",
        "9.7.3.16, 9.7.3.17",
        Arithmetic,
        &["rsqrt.approx{.ftz}.f32 d, a", "rsqrt.approx{.ftz}.f64 d, a"],
        |d, m, o| d.floating(m, o),
    ),
    row("sin", "9.7.3.18", Arithmetic, &["sin.approx{.ftz}.f32 d, a"], |d, m, o| d.floating(m, o)),
    row("cos", "9.7.3.19", Arithmetic, &["cos.approx{.ftz}.f32 d, a"], |d, m, o| d.floating(m, o)),
    row("lg2", "9.7.3.20", Arithmetic, &["lg2.approx{.ftz}.f32 d, a"], |d, m, o| d.floating(m, o)),
    row(
        "ex2",
        "9.7.3.21, 9.7.4.10",
        Arithmetic,
        &["ex2.approx{.ftz}.f32 d, a", "ex2.approx.{f16,f16x2} d, a", "ex2.approx.ftz.{bf16,bf16x2} d, a"],
        |d, m, o| d.floating(m, o),
    ),
    row("tanh", "9.7.3.22, 9.7.4.9", Arithmetic, &["tanh.approx.{f32,f16,f16x2,bf16,bf16x2} d, a"], |d, m, o| {
        d.floating(m, o)
    }),
];
