//! `clusterlaunchcontrol.try_cancel` (PTX ISA, section 9.7.13.18.1): takes over the work of a cluster that has not started.

use crate::clock::copies_of;
use crate::exec::bulk::Bulk;
use crate::exec::bulk::boxes::{Outside, Part};
use crate::exec::bulk::start::Route;
use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::lanes::lanes;
use crate::memory::map;
use crate::op::MemRef;

/// Bytes of a response.
pub(super) const RESPONSE_BYTES: usize = 16;

/// The response to a cancellation, as three words of the first CTA of the cluster, and one that is 1 if there is a cluster.
fn response_of(first: Option<[u32; 3]>) -> [u8; RESPONSE_BYTES] {
    let [x, y, z] = first.unwrap_or_default();
    let words = [x, y, z, u32::from(first.is_some())];
    let mut bytes = [0; RESPONSE_BYTES];
    bytes.chunks_exact_mut(4).zip(words).for_each(|(chunk, word)| chunk.copy_from_slice(&word.to_le_bytes()));
    bytes
}

impl Machine<'_> {
    pub(super) fn start_cancel(
        &mut self,
        warp: &Warp,
        lane: usize,
        (at, mbarrier): (&MemRef, &MemRef),
        is_multicast: bool,
    ) -> ExecResult<()> {
        for operand in [at.base, mbarrier.base] {
            self.must_be_defined(warp, operand, 1 << lane, "decide where a response is written")?;
        }
        let thread = warp.thread(lane);
        if let Some(agent) = self.cta.canceled_nothing
            && self.cta.clocks.far(thread).count(copies_of(self.cta.number), agent.thread) >= agent.number
        {
            let message =
                "an earlier `try_cancel` found no cluster, and this thread knows it: another one is undefined";
            return Err(RaisedFault::new(FaultKind::IllegalInstruction, 1 << lane, message));
        }
        let (to, object) = (self.shared_address(warp, lane, at)?, self.shared_address(warp, lane, mbarrier)?);
        if !to.is_multiple_of(RESPONSE_BYTES as u64) {
            let message = "the address of a response is not a multiple of 16 bytes";
            return Err(RaisedFault::new(FaultKind::Misaligned, 1 << lane, message));
        }
        let ranks = if is_multicast { (1u64 << self.launch.cluster_size()) as u32 - 1 } else { 1 << self.cta.rank };
        let (reader, writer) = self.new_agents();
        let read = self.bulk_access(warp, lane, 0, Some(reader));
        let (mut moves, mut mbarriers) = (Vec::new(), Vec::new());
        for rank in lanes(ranks) {
            let shared = map::with_rank(to, rank as u32);
            let part = Part { shared, outside: Outside::Response, len: RESPONSE_BYTES as u64, permuted: None };
            moves.extend(self.checked_moves((&read, writer), &Route::TO_SHARED, &[(&part, shared)])?);
            let object = self.object(warp, lane, map::with_rank(object, rank as u32), false)?;
            mbarriers.push((object, RESPONSE_BYTES as i64));
        }
        let before = self.cta.clocks.started(thread);
        let fill = Vec::new();
        self.start_engine(Bulk {
            warp: warp.id,
            read,
            writer,
            moves,
            fill,
            reduce: None,
            before,
            mbarriers,
            started_at: 0,
        });
        Ok(())
    }

    /// Cancels a cluster that has not started, if there is one, and returns the response.
    pub(super) fn cancel_cluster(&mut self, bulk: &Bulk) -> [u8; RESPONSE_BYTES] {
        let found = self.starts.next();
        match found {
            Some(_) => self.completed.ended += self.launch.cluster_size(),
            None => self.cta.canceled_nothing = Some(bulk.writer),
        }
        response_of(found.map(|linear| self.first_index(linear)))
    }
}
