//! Instructions on mbarrier objects.

use super::Unit::{Copies, Synchronization};
use super::{Row, one, row};
use crate::decode::operand::nth;
use crate::op::MbarrierFn;

pub(super) const ROWS: &[Row] = &[
    row(
        "mbarrier.init",
        "9.7.13.15.9",
        Synchronization,
        &["mbarrier.init{.shared,.shared::cta}.b64 [s], 1"],
        |d, m, o| one(d.mbarrier_init(m, o)),
    ),
    row(
        "mbarrier.inval",
        "9.7.13.15.10",
        Synchronization,
        &["mbarrier.inval{.shared,.shared::cta}.b64 [s]"],
        |d, m, o| one(nth(o, 0).and_then(|at| d.mbarrier_at(m, at, MbarrierFn::Invalidate))),
    ),
    row(
        "mbarrier.expect_tx",
        "9.7.13.15.11",
        Synchronization,
        &["mbarrier.expect_tx{.relaxed}{.cta,.cluster}{.shared::cta}.b64 [s], a"],
        |d, m, o| one(d.mbarrier_bytes(m, o, |bytes| MbarrierFn::Expect { bytes })),
    ),
    row(
        "mbarrier.complete_tx",
        "9.7.13.15.12",
        Synchronization,
        &["mbarrier.complete_tx{.relaxed}{.cta,.cluster}{.shared::cta}.b64 [s], a"],
        |d, m, o| one(d.mbarrier_bytes(m, o, |bytes| MbarrierFn::Complete { bytes })),
    ),
    row(
        "mbarrier.arrive",
        "9.7.13.15.13",
        Synchronization,
        &[
            "mbarrier.arrive{.release,.relaxed}{.cta,.cluster}{.shared,.shared::cta}.b64 d, [s]",
            "mbarrier.arrive{.release,.relaxed}.cluster.shared::cluster.b64 _, [s]",
            "mbarrier.arrive{.shared,.shared::cta}.b64 _, [s], a",
            "mbarrier.arrive.expect_tx{.release,.relaxed}{.cta,.cluster}{.shared,.shared::cta}.b64 _, [s], a",
            "mbarrier.arrive.noComplete.shared.b64 d, [s], 3",
        ],
        |d, m, o| one(d.mbarrier_arrive(m, o, false)),
    ),
    row(
        "mbarrier.arrive_drop",
        "9.7.13.15.14",
        Synchronization,
        &[
            "mbarrier.arrive_drop{.shared,.shared::cta}.b64 d, [s]",
            "mbarrier.arrive_drop.expect_tx{.shared,.shared::cta}.b64 _, [s], a",
            "mbarrier.arrive_drop.noComplete.shared.b64 d, [s], 3",
        ],
        |d, m, o| one(d.mbarrier_arrive(m, o, true)),
    ),
    row(
        "mbarrier.test_wait",
        "9.7.13.15.16",
        Synchronization,
        &[
            "mbarrier.test_wait{.acquire,.relaxed}{.cta,.cluster}{.shared,.shared::cta}.b64 p, [s], a",
            "mbarrier.test_wait.parity{.shared,.shared::cta}.b64 p, [s], a",
        ],
        |d, m, o| one(d.mbarrier_wait(m, o, false)),
    ),
    row(
        "mbarrier.try_wait",
        "9.7.13.15.16",
        Synchronization,
        &[
            "mbarrier.try_wait{.acquire,.relaxed}{.cta,.cluster}{.shared,.shared::cta}.b64 p, [s], a",
            "mbarrier.try_wait.parity{.shared,.shared::cta}.b64 p, [s], a",
            "mbarrier.try_wait.parity.shared::cta.b64 p, [s], a, b",
        ],
        |d, m, o| one(d.mbarrier_wait(m, o, true)),
    ),
    row("mbarrier.pending_count", "9.7.13.15.17", Synchronization, &["mbarrier.pending_count.b64 d, a"], |d, m, o| {
        one(d.mbarrier_pending(m, o))
    }),
    row(
        "cp.async.mbarrier.arrive",
        "9.7.13.15.15",
        Copies,
        &["cp.async.mbarrier.arrive{.noinc}{.shared,.shared::cta}.b64 [s]"],
        |d, m, o| one(d.arrive_after_copies(m, o)),
    ),
];
