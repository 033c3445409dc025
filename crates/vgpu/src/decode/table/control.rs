//! Branches, calls, the end of a thread, and instructions that concern the whole grid.

use super::Unit::{Control, Synchronization};
use super::{Row, no_effect, one, row};
use crate::decode::copy::immediate;
use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::matrix::take_sync_aligned;
use crate::decode::mods::Mods;
use crate::decode::operand::nth;
use crate::isa::Scope;
use crate::op::{FenceOrder, Op};
use crate::ptx::ast::Operand;

pub(super) const ROWS: &[Row] = &[
    row("bra", "9.7.12.3", Control, &["bra{.uni} l"], |d, m, o| one(d.branch(m, o))),
    row("brx", "9.7.12.4", Control, &["brx.idx{.uni} a, t"], |d, m, o| one(d.branch_index(m, o))),
    row("call", "9.7.12.5", Control, &["call{.uni} (y), f, (z)"], |d, m, o| d.call(m, o)),
    row("ret", "9.7.12.6", Control, &["ret{.uni}"], |_, m, _| {
        m.take("uni");
        Ok(vec![Op::Ret])
    }),
    row("exit", "9.7.12.7", Control, &["exit"], |_, _, _| Ok(vec![Op::Exit])),
    row("trap", "9.7.19.4", Control, &["trap"], |_, _, _| Ok(vec![Op::Trap])),
    row("brkpt", "9.7.19.1", Control, &["brkpt"], |_, m, _| no_effect(m)),
    row("nanosleep", "9.7.19.2", Control, &["nanosleep.u32 a"], |_, m, _| no_effect(m)),
    row("pmevent", "9.7.19.3", Control, &["pmevent 1", "pmevent.mask 1"], |_, m, _| no_effect(m)),
    row("setmaxnreg", "9.7.19.5", Control, &["setmaxnreg.{inc,dec}.sync.aligned.u32 64"], set_registers),
    row("griddepcontrol", "9.7.13.13", Synchronization, &["griddepcontrol.{launch_dependents,wait}"], |_, m, _| {
        Ok(vec![if m.take("wait") { Op::WaitForLaunches } else { return no_effect(m) }])
    }),
    row(
        "clusterlaunchcontrol.try_cancel",
        "9.7.13.18.1",
        Synchronization,
        &[
            "clusterlaunchcontrol.try_cancel.async.{shared::cta}.mbarrier::complete_tx::bytes{.multicast::cluster::all}.b128 [s], [s]",
        ],
        |d, m, o| one(d.try_cancel(m, o)),
    ),
    row(
        "clusterlaunchcontrol.query_cancel",
        "9.7.13.18.2",
        Synchronization,
        &[
            "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, w",
            "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {a, b, c, _}, w",
            "clusterlaunchcontrol.query_cancel.{get_first_ctaid::x,get_first_ctaid::y,get_first_ctaid::z}.b32.b128 a, w",
        ],
        |d, m, o| one(d.query_cancel(m, o)),
    ),
    // The same as `fence.sc`.
    row("membar", "9.7.13.4", Synchronization, &["membar.{cta,gl,sys}"], |_, m, _| fence(m, FenceOrder::Sequential)),
    row(
        "fence",
        "9.7.13.4",
        Synchronization,
        &["fence{.sc,.acq_rel,.acquire,.release}.{cta,cluster,gpu,sys}"],
        |_, m, _| fence(m, FenceOrder::AcquireRelease),
    ),
];

fn set_registers(_: &mut Decoder<'_>, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Vec<Op>> {
    let grows = mods.take("inc");
    if grows == mods.take("dec") {
        return Err("`.inc` or `.dec` is missing".to_string());
    }
    take_sync_aligned(mods)?;
    mods.take("u32");
    let count = immediate(nth(operands, 0)?)?;
    if !(24..=256).contains(&count) || !count.is_multiple_of(8) {
        return Err(format!("a thread has 24, 32, .. 256 registers, not {count}"));
    }
    Ok(vec![Op::SetRegisters { count, grows }])
}

/// A fence, of this order unless a modifier gives another.
fn fence(mods: &mut Mods<'_>, order: FenceOrder) -> Decoded<Vec<Op>> {
    let given = mods.find(|part| {
        Some(match part {
            "sc" => FenceOrder::Sequential,
            "acq_rel" => FenceOrder::AcquireRelease,
            "acquire" => FenceOrder::Acquire,
            "release" => FenceOrder::Release,
            _ => return None,
        })
    });
    let order = given.unwrap_or(order);
    let scope = mods.find(Scope::parse).ok_or_else(|| "the scope is missing".to_string())?;
    Ok(vec![Op::Fence { scope, order }])
}
