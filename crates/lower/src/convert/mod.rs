//! `convert_layout`: the elements of a fragment move to the threads and registers of another. The plans are those of
//! [`tilewright_layout::conversion`].

mod exchange;
mod staging;

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Stmt, Value};
use tilewright_ir::tile::{Kernel, Op};
use tilewright_layout::conversion::{Conversion, ConversionKind, FragmentTable, convert_tables};
use tilewright_layout::map::Map;
use tilewright_layout::{DType, LayoutError};

use crate::builder::{Builder, regs};
use crate::conditions::under;
use crate::elements::Held;
use crate::operand::other_operands;
use crate::refusal::Refusal;
use crate::threads::members;
use crate::variant::{Schedule, Variant, VariantList};

/// What the variants look at.
pub(crate) struct Context {
    source: Held,
    result: Held,
    /// Which element each slot of the destination holds.
    wanted: Map,
    threads: usize,
    /// The index of a thread in its CTA.
    thread: Expr,
    dtype: DType,
    /// Plans in which each element takes one register or more.
    in_registers: Result<Vec<Conversion>, LayoutError>,
    /// Plans in which narrow elements are packed, as in shared memory.
    packed: Result<Vec<Conversion>, LayoutError>,
    op: Op,
}

pub(crate) static VARIANTS: VariantList<Context, Conversion> = VariantList {
    context: Context::new,
    floor: |_| None,
    variants: &[
        Variant { name: "renaming", accept: accept_renaming },
        Variant { name: "shuffles", accept: accept_shuffles },
        Variant { name: "staging", accept: accept_staging },
    ],
};

fn accept_renaming(context: &Context) -> Result<Vec<Conversion>, Vec<Reason>> {
    let is_renaming = |kind: &ConversionKind| matches!(kind, ConversionKind::Renaming(_));
    found(&context.in_registers, is_renaming, || Reason {
        text: "some elements are on other threads in the destination".to_string(),
        accepted: "fragments in which every element stays on its thread".to_string(),
    })
}

fn accept_shuffles(context: &Context) -> Result<Vec<Conversion>, Vec<Reason>> {
    let refused = |text: String, accepted: &str| Err(vec![Reason { text, accepted: accepted.to_string() }]);
    if !context.threads.is_multiple_of(32) {
        let text = format!("{} threads are not a whole number of warps", context.threads);
        return refused(text, "a multiple of 32 threads");
    }
    if context.dtype.bytes() > 8 {
        return refused(format!("elements of {} bytes", context.dtype.bytes()), "elements of up to 8 bytes");
    }
    let is_shuffles = |kind: &ConversionKind| matches!(kind, ConversionKind::Shuffles(_));
    found(&context.in_registers, is_shuffles, || Reason {
        text: "some elements change warps, or none leaves its thread".to_string(),
        accepted: "fragments in which every element stays in its warp, and some change lanes".to_string(),
    })
}

fn accept_staging(context: &Context) -> Result<Vec<Conversion>, Vec<Reason>> {
    let is_staging = |kind: &ConversionKind| matches!(kind, ConversionKind::Staging(_));
    found(&context.packed, is_staging, || Reason {
        text: "the tile does not fit in shared memory".to_string(),
        accepted: "tiles of up to 227 KiB".to_string(),
    })
}

/// The plan of one kind, or why there is none.
fn found(
    plans: &Result<Vec<Conversion>, LayoutError>,
    is_meant: impl Fn(&ConversionKind) -> bool,
    reason: impl Fn() -> Reason,
) -> Result<Vec<Conversion>, Vec<Reason>> {
    match plans {
        Ok(plans) => match plans.iter().find(|plan| is_meant(&plan.kind)) {
            Some(plan) => Ok(vec![plan.clone()]),
            None => Err(vec![reason()]),
        },
        Err(why) => Err(vec![Reason { text: why.to_string(), accepted: "other layouts".to_string() }]),
    }
}

impl Context {
    /// The operands of a `convert_layout`. Error: one whose layout cannot be used.
    fn new(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<Context, Diagnostic> {
        let [dst, src] = &op.operands[..] else { return Err(other_operands(kernel, op)) };
        let refused = |why: String| Refusal::from(why).diagnostic(&kernel.op_title(op), op.span);
        let held = |handle| Held::of(kernel, builder, handle).map_err(refused);
        let (result, source) = (held(dst.buffer)?, held(src.buffer)?);
        let elements = src.elements() as usize;
        let (dtype, wanted) = (kernel.buffers[src.buffer].dtype, result.map(elements));
        let bits = 8 * dtype.bytes() as usize;
        let tables = || [&source.map(elements), &wanted].map(FragmentTable::of_map);
        let plans = |bits: usize| {
            let [from, to] = tables();
            convert_tables(from?, to?, elements, bits)
        };
        Ok(Context {
            in_registers: plans(bits.max(32)),
            packed: plans(bits),
            threads: kernel.threads as usize,
            thread: Expr::var(&kernel.thread()),
            source,
            result,
            wanted,
            dtype,
            op: op.clone(),
        })
    }

    /// Whether a thread holds nothing in a slot of the destination, so that anything may be written there.
    fn may_write(&self, thread: usize, slot: usize) -> bool {
        self.wanted.at(thread, slot).is_none()
    }
}

impl Schedule<Context> for Conversion {
    fn summary(&self, _: &Context) -> String {
        match &self.kind {
            ConversionKind::Nothing | ConversionKind::Renaming(_) => "every element stays on its thread".to_string(),
            ConversionKind::Shuffles(shuffles) => {
                let steps = shuffles.steps.len();
                format!("{steps} shuffle{}", if steps == 1 { "" } else { "s" })
            }
            ConversionKind::Staging(staging) => {
                let (bytes, layout) = (staging.bytes, &staging.layout);
                format!("through {bytes} bytes of shared memory, {layout}")
            }
        }
    }

    fn build(&self, context: &Context, builder: &mut Builder) -> Vec<Stmt> {
        let mut make = Make { context, builder, out: Vec::new() };
        match &self.kind {
            // The verifier and `accept` leave no plan that does nothing: the destination has registers of its own.
            ConversionKind::Nothing => {}
            ConversionKind::Renaming(picks) => make.picked(picks, None),
            ConversionKind::Shuffles(shuffles) => make.shuffled(shuffles),
            ConversionKind::Staging(staging) => make.staged(staging),
        }
        make.out
    }
}

/// The statements of a conversion while they are made.
struct Make<'a> {
    context: &'a Context,
    builder: &'a mut Builder,
    out: Vec<Stmt>,
}

impl Make<'_> {
    /// Statements that only the threads of `set` execute, or also those that `may` execute them without effect.
    fn by(&mut self, set: &[bool], may: impl Fn(usize) -> bool, body: Vec<Stmt>) {
        if set.iter().enumerate().all(|(thread, is_in)| *is_in || may(thread)) {
            self.out.extend(body);
            return;
        }
        let conditions = members(set, &self.context.thread, self.builder, &mut self.out);
        self.out.extend(under(&conditions, body));
    }

    /// A slot of the destination becomes a value.
    fn written(&self, slot: usize, value: Value) -> Stmt {
        let (place, result) = (self.context.result.place(slot), &self.context.result);
        Stmt::Assign { to: regs(result.array, place.register, 1), value: result.written(place, value) }
    }
}
