//! Rings between roles.

use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::tile::{self, Hold, RingKind, Side, Space, Stmt};
use tilewright_layout::axis::{TCOL, TLANE};
use tilewright_layout::{DType, S};

use super::KernelBuilder;
use crate::buffer::Buffer;
use crate::ring::{Ring, RingBuffers};

impl<'k> KernelBuilder<'k> {
    /// A ring of stages between roles: a queue whose elements are shared buffers. Some roles fill stages and others use them, each
    /// at its own pace: the barriers between them are those of the ring, in shared memory, and are derived, as are the bytes that
    /// they expect and how many threads arrive at them.
    ///
    /// ```
    /// use tilewright_dsl::kernel;
    /// use tilewright_layout::DType::{BF16, F32};
    /// use tilewright_dsl::at;
    ///
    /// let product = kernel("product", |k| {
    ///     let (a, b) = (k.input("a", BF16, [64, 1024]), k.input("b", BF16, [1024, 64]));
    ///     let c = k.output("c", F32, [64, 64]);
    ///     k.threads(160);
    ///     let ab = k.ring("ab", 3, |r| (r.shared("sa", BF16, [64, 64]), r.shared("sb", BF16, [64, 64])));
    ///     k.role("load", 1, |k| {
    ///         k.serial("t", 0..16, |k, t| {
    ///             ab.produce(k, |k, (sa, sb)| {
    ///                 k.copy(sa, a.sub((.., at(t * 64, 64))));
    ///                 k.copy(sb, b.sub((at(t * 64, 64), ..)));
    ///             });
    ///         });
    ///     });
    ///     let sums = k.fragment("sums", F32, [64, 64]);
    ///     k.role("math", 4, |k| {
    ///         k.fill(sums, 0.0);
    ///         k.serial("t", 0..16, |k, _| ab.consume(k, |k, (sa, sb)| k.gemm(sums, sa, sb)));
    ///         k.copy(c, sums);
    ///     });
    /// });
    /// assert!(product.build_findings.is_empty());
    /// ```
    ///
    /// What a stage carries is what `payload` returns: a buffer, a tuple of them, or a structure of your own. With `stages` of 2 or more, stages
    /// are filled while earlier ones are used. All roles of a ring go through the same number of stages, in the same loops.
    #[track_caller]
    pub fn ring<P: Clone>(
        &mut self,
        name: &str,
        stages: i64,
        payload: impl FnOnce(&mut RingBuffers<'_, 'k>) -> P,
    ) -> Ring<P> {
        self.staged((name, stages, RingKind::Queue, Span::here()), payload)
    }

    /// Sums in tensor memory that two roles have in turn (sm_100a): a ring of one stage, in whose tensor memory both roles read and write
    /// what the other one has left. The role that calls [`Ring::produce`] has it first, and the one that calls [`Ring::consume`] next.
    /// Shared buffers in it are as in other rings: the first role fills them, and the other one reads them.
    ///
    /// ```
    /// use tilewright_dsl::{at, kernel};
    /// use tilewright_layout::DType::{BF16, F32};
    /// use tilewright_ir::tile::Gemm;
    ///
    /// let product = kernel("product", |k| {
    ///     let (a, b) = (k.input("a", BF16, [128, 64]), k.input("b", BF16, [64, 64]));
    ///     let begin = k.input("begin", F32, [128, 64]);
    ///     let c = k.output("c", F32, [128, 64]);
    ///     k.threads(192);
    ///     let ab = k.ring("ab", 1, |r| (r.shared("sa", BF16, [128, 64]), r.shared("sb", BF16, [64, 64])));
    ///     let sums = k.exchange("sums", |r| r.tensor("o", F32, [128, 64]));
    ///     k.role("load", 1, |k| {
    ///         ab.produce(k, |k, (sa, sb)| {
    ///             k.copy(sa, a);
    ///             k.copy(sb, b);
    ///         });
    ///     });
    ///     k.role("multiply", 1, |k| {
    ///         ab.consume(k, |k, (sa, sb)| {
    ///             sums.consume(k, |k, o| k.gemm_async(o, sa, sb).with(Gemm { transpose_b: true, ..Gemm::PLAIN }));
    ///         });
    ///         sums.consume(k, |_, _| ());
    ///     });
    ///     k.role("begin_and_store", 4, |k| {
    ///         let held = k.fragment("held", F32, [128, 64]);
    ///         k.copy(held, begin);
    ///         sums.produce(k, |k, o| k.copy(o, held));
    ///         sums.produce(k, |k, o| k.copy(held, o));
    ///         k.copy(c, held);
    ///     });
    /// });
    /// assert!(product.build_findings.is_empty());
    /// ```
    ///
    /// Each role takes the same number of turns, as with the stages of a ring.
    #[track_caller]
    pub fn exchange<P: Clone>(&mut self, name: &str, payload: impl FnOnce(&mut RingBuffers<'_, 'k>) -> P) -> Ring<P> {
        self.staged((name, 1, RingKind::Exchange, Span::here()), payload)
    }

    fn staged<P: Clone>(
        &mut self,
        (name, stages, kind, span): (&str, i64, RingKind, Span),
        payload: impl FnOnce(&mut RingBuffers<'_, 'k>) -> P,
    ) -> Ring<P> {
        let mut declared = RingBuffers { builder: self, buffers: Vec::new() };
        let payload = payload(&mut declared);
        let buffers = declared.buffers;
        let handle = self.kernel.rings.push(tile::Ring { name: name.to_string(), stages, buffers, kind, span });
        Ring { handle, kernel: self.nodes.identity(), payload }
    }

    /// The current role takes the next stage of a ring.
    pub(crate) fn begin_hold(&mut self, ring: Handle<tile::Ring>, side: Side, span: Span) -> Handle<Hold> {
        let hold = self.kernel.holds.push(Hold { ring, side, role: self.role, span });
        self.push(Stmt::Begin(hold));
        hold
    }

    /// A buffer in tensor memory: a lane for each row, a column for each column.
    #[track_caller]
    pub(crate) fn in_tensor_memory(&mut self, name: &str, dtype: DType, [rows, columns]: [i64; 2]) -> Buffer {
        self.buffer(name, dtype, Space::Tensor, S([rows, columns], [1 * TLANE, 1 * TCOL]))
    }

    /// Adds a statement to the innermost open body.
    pub(crate) fn push(&mut self, stmt: Stmt) {
        self.kernel.body.push(stmt);
    }
}
