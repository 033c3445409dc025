//! `st.async` and `red.async` (PTX ISA, sections 9.7.9.13 and 9.7.13.8): stores to shared memory of the cluster that an
//! mbarrier counts. They are not accesses of the asynchronous proxy.

use crate::clock::Agent;
use crate::exec::bulk::Bulk;
use crate::exec::bulk::boxes::{Outside, Part};
use crate::exec::bulk::start::Route;
use crate::exec::machine::Machine;
use crate::exec::memory::put_little_endian;
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::op::BulkOp;

impl Machine<'_> {
    pub(super) fn start_async_store(&mut self, warp: &Warp, lane: usize, op: &BulkOp) -> ExecResult<()> {
        let BulkOp::Store { at, values, size, mbarrier, reduce } = op else { return Ok(()) };
        for operand in [at.base, mbarrier.base] {
            self.must_be_defined(warp, operand, 1 << lane, "decide where a value is stored")?;
        }
        for value in values {
            self.must_be_defined(warp, *value, 1 << lane, "are stored to another CTA")?;
        }
        let mut bytes = vec![0; *size as usize * values.len()];
        for (value, chunk) in values.iter().zip(bytes.chunks_exact_mut(*size as usize)) {
            put_little_endian(warp.regs[*value as usize][lane], chunk);
        }
        let len = bytes.len() as u64;
        let shared = self.shared_address(warp, lane, at)?;
        if !shared.is_multiple_of(len) {
            let message = format!("{len}-byte access at an address that is not a multiple of {len}");
            return Err(RaisedFault::new(FaultKind::Misaligned, 1 << lane, message));
        }
        let (reader, writer) = self.new_agents();
        let (reader, writer) = (Agent { is_engine: false, ..reader }, Agent { is_engine: false, ..writer });
        let read = self.bulk_access(warp, lane, 0, Some(reader));
        let route = Route { is_update: reduce.is_some(), ..Route::TO_SHARED };
        let part = Part { shared, outside: Outside::Fill, len, permuted: None };
        let moves = self.checked_moves((&read, writer), &route, &[(&part, shared)])?;
        let object = self.shared_address(warp, lane, mbarrier)?;
        let mbarriers = vec![(self.object(warp, lane, object, false)?, len as i64)];
        let before = self.cta.clocks.started(warp.thread(lane));
        let reduce = reduce.map(|f| (f, *size));
        self.start_engine(Bulk {
            warp: warp.id,
            read,
            writer,
            moves,
            fill: bytes,
            reduce,
            before,
            mbarriers,
            started_at: 0,
        });
        Ok(())
    }
}
