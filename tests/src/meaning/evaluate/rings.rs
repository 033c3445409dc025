//! Rings: queues of what their buffers have in a stage.

use tilewright::ir::Handle;
use tilewright::ir::tile::{Hold, Side};

use super::machine::{Machine, Outcome, unknown};

impl Machine<'_> {
    /// A role takes the next stage: one that it fills has nothing, one that it uses has what was published.
    pub(super) fn begin_hold(&mut self, handle: Handle<Hold>) -> Outcome<()> {
        let hold = &self.kernel.holds[handle];
        if self.kernel.rings[hold.ring].is_exchange() {
            return unknown("roles that wait for each other");
        }
        for buffer in &self.kernel.rings[hold.ring].buffers {
            if hold.side == Side::Produce {
                if let Some(bytes) = self.storages.get_mut(buffer) {
                    bytes.fill(None);
                }
                continue;
            }
            let place = self.places.entry((*buffer, hold.role)).or_default();
            let Some(stage) = self.published.get(buffer).and_then(|stages| stages.get(*place)) else {
                return unknown("a stage that a later statement fills");
            };
            *place += 1;
            self.storages.insert(*buffer, stage.clone());
        }
        Ok(())
    }

    /// A role gives a stage back. Of one that it fills, its own buffers are published.
    pub(super) fn end_hold(&mut self, handle: Handle<Hold>) {
        let hold = &self.kernel.holds[handle];
        if hold.side == Side::Consume {
            return;
        }
        for buffer in &self.kernel.rings[hold.ring].buffers {
            let bytes = &self.storages[buffer];
            if bytes.iter().any(Option::is_some) {
                self.published.entry(*buffer).or_default().push(bytes.clone());
            }
        }
    }
}
