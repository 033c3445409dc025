//! Copies that a thread starts and waits for later.

use super::Unit::Copies;
use super::{Row, one, row};
use crate::decode::copy::copy;
use crate::op::CopyOp;

pub(super) const ROWS: &[Row] = &[
    row(
        "cp.async",
        "9.7.9.25.3.1",
        Copies,
        &[
            "cp.async.ca.{shared,shared::cta}.global{.L2::64B,.L2::128B,.L2::256B} [s], [x], 4",
            "cp.async.{ca,cg}.shared.global [s], [x], 16",
            "cp.async.ca.shared.global [s], [x], 8, a",
            "cp.async.cg.shared.global [s], [x], 16, !p",
            "cp.async.cg.shared.global.L2::cache_hint [s], [x], 16, b",
        ],
        |d, m, o| one(d.start_copy(m, o)),
    ),
    row("cp.async.commit_group", "9.7.9.25.3.2", Copies, &["cp.async.commit_group"], |_, _, _| {
        Ok(vec![copy(CopyOp::Commit)])
    }),
    row("cp.async.wait_group", "9.7.9.25.3.3", Copies, &["cp.async.wait_group 1"], |d, _, o| one(d.wait_group(o))),
    row("cp.async.wait_all", "9.7.9.25.3.3", Copies, &["cp.async.wait_all"], |_, _, _| Ok(vec![copy(CopyOp::WaitAll)])),
];
