//! Rings: stages of shared memory that one role fills while others use what is in earlier ones.

use std::marker::PhantomData;

use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::tile::{self, Hold, Side, Stmt};
use tilewright_layout::DType;

use crate::buffer::Buffer;
use crate::builder::KernelBuilder;
use crate::nodes::{self, KernelId};
use crate::shape::IntoLayout;

/// A ring of the kernel being built: a queue of stages, each with the buffers of its payload. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Ring<P> {
    pub(crate) handle: Handle<tile::Ring>,
    /// The kernel it belongs to: a handle is not valid in another one.
    pub(crate) kernel: KernelId,
    pub(crate) payload: P,
}

/// Declares what a stage of a ring carries.
#[derive(Debug)]
pub struct RingBuffers<'b, 'k> {
    pub(crate) builder: &'b mut KernelBuilder<'k>,
    pub(crate) buffers: Vec<Handle<tile::Buffer>>,
}

impl RingBuffers<'_, '_> {
    /// A buffer in shared memory, with a copy in each stage; as of [`KernelBuilder::shared`].
    #[track_caller]
    pub fn shared(&mut self, name: &str, dtype: DType, layout: impl IntoLayout) -> Buffer {
        let buffer = self.builder.shared(name, dtype, layout);
        self.buffers.push(buffer.handle);
        buffer
    }

    /// Sums of asynchronous products in tensor memory, 128 rows of columns of 32 bits, with a copy in each stage (sm_100a). The
    /// role that fills the stage calls `gemm_async` on it, after `k.fill(sums, 0)`, which lets the first product replace what is
    /// there; a role of four warps that uses it copies it to fragments, some columns at a time. Or the left factor of products, to
    /// which such a role copies fragments; a column has 2 elements of 16 bits.
    #[track_caller]
    pub fn tensor(&mut self, name: &str, dtype: DType, [rows, columns]: [i64; 2]) -> Buffer {
        let buffer = self.builder.in_tensor_memory(name, dtype, [rows, columns]);
        self.buffers.push(buffer.handle);
        buffer
    }
}

/// A stage that a role fills: call [`Produced::publish`] when it has.
#[must_use = "a stage that is not published is an error: call `.publish(k)`"]
#[derive(Debug)]
pub struct Produced<'k, P> {
    hold: Handle<Hold>,
    kernel: KernelId,
    /// The buffers of the stage.
    pub buffers: P,
    of: PhantomData<&'k ()>,
}

/// A stage that a role uses: call [`Consumed::release`] when it has.
#[must_use = "a stage that is not released is an error: call `.release(k)`"]
#[derive(Debug)]
pub struct Consumed<'k, P> {
    hold: Handle<Hold>,
    kernel: KernelId,
    /// The buffers of the stage.
    pub buffers: P,
    of: PhantomData<&'k ()>,
}

impl<P: Clone> Ring<P> {
    /// Fills the next stage: waits until all roles that consume have released it, runs `body` on its buffers, and publishes it.
    /// Copies from tensors to its buffers are asynchronous; what else the role writes in it is visible to those that consume it.
    #[track_caller]
    pub fn produce<'k, T>(&self, k: &mut KernelBuilder<'k>, body: impl FnOnce(&mut KernelBuilder<'k>, P) -> T) -> T {
        let stage = self.acquire(k);
        let result = body(k, stage.buffers.clone());
        stage.publish(k);
        result
    }

    /// Uses the next stage: waits until it is filled, runs `body` on its buffers, and releases it.
    #[track_caller]
    pub fn consume<'k, T>(&self, k: &mut KernelBuilder<'k>, body: impl FnOnce(&mut KernelBuilder<'k>, P) -> T) -> T {
        let stage = self.wait(k);
        let result = body(k, stage.buffers.clone());
        stage.release(k);
        result
    }

    /// Takes the next stage to fill it; [`Ring::produce`] does so around a closure. Stages of several rings may be held at once, and
    /// end in any order.
    #[track_caller]
    pub fn acquire<'k>(&self, k: &mut KernelBuilder<'k>) -> Produced<'k, P> {
        let hold = self.begin(k, Side::Produce);
        Produced { hold, kernel: self.kernel, buffers: self.payload.clone(), of: PhantomData }
    }

    /// Takes the next stage to use it; [`Ring::consume`] does so around a closure. Stages of several rings may be held at once, and
    /// end in any order.
    #[track_caller]
    pub fn wait<'k>(&self, k: &mut KernelBuilder<'k>) -> Consumed<'k, P> {
        let hold = self.begin(k, Side::Consume);
        Consumed { hold, kernel: self.kernel, buffers: self.payload.clone(), of: PhantomData }
    }

    #[track_caller]
    fn begin(&self, k: &mut KernelBuilder<'_>, side: Side) -> Handle<Hold> {
        let span = Span::here();
        if nodes::current() != Some(self.kernel) {
            nodes::mistake(nodes::foreign("a ring", span, Some(self.kernel)));
        }
        k.begin_hold(self.handle, side, span)
    }
}

impl<P> Produced<'_, P> {
    /// Publishes the stage: roles that consume may use it once all copies to it have arrived.
    #[track_caller]
    pub fn publish(self, k: &mut KernelBuilder<'_>) {
        end(self.hold, self.kernel, k);
    }
}

impl<P> Consumed<'_, P> {
    /// Releases the stage: it may be filled again once all roles that consume have released it.
    #[track_caller]
    pub fn release(self, k: &mut KernelBuilder<'_>) {
        end(self.hold, self.kernel, k);
    }
}

#[track_caller]
fn end(hold: Handle<Hold>, kernel: KernelId, k: &mut KernelBuilder<'_>) {
    if nodes::current() == Some(kernel) {
        k.push(Stmt::End(hold));
    } else {
        nodes::mistake(nodes::foreign("a stage", Span::here(), Some(kernel)));
    }
}
