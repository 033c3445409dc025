//! Checks one random kernel: it must be correct, or correctly refused.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tilewright::diag::Diagnostic;
use tilewright::infer::{Inferred, is_laid_out, lay_out};
use tilewright::ir::thread::Program;
use tilewright::ir::tile::{
    Access, Buffer, Coord, Direction, ElementStmt, KernelsByRole, Space, Stmt, Value, prepare, verify, with_open_placed,
};
use tilewright::ir::{Handle, VerifiedKernel, VerifiedProgram, thread};
use tilewright::layout::DType;
use tilewright::layout::map::Map;
use tilewright::lower::{OpenAccesses, Options, Placement, lower};
use tilewright::prelude::{Kernel, Target};

use super::evaluate::{Bytes, Meaningless, Rules, evaluate, has_meaning};
use super::machine::{Copies, Memories, Order, execute};
use super::{numbers, widths};
use crate::fuzz::said;
use crate::rng::Rng;

/// The outcome of a kernel that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It computes the expected result.
    Right,
    /// It is refused; the text is the code of the first diagnostic.
    Refused(&'static str),
    /// Its behaviour is undefined: it depends on false claims or on unwritten memory.
    Undefined,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The kind of failure, in a few words shared by many kernels.
    pub class: String,
    /// The details.
    pub what: String,
}

fn wrong(class: &str, what: impl ToString) -> Wrong {
    Wrong { class: class.to_string(), what: what.to_string() }
}

/// The result of `check`; a panic is a failure.
pub fn caught(check: impl FnOnce() -> Result<Ended, Wrong>) -> Result<Ended, Wrong> {
    let outcome = catch_unwind(AssertUnwindSafe(check));
    outcome.unwrap_or_else(|panic| Err(wrong("a panic", said(panic.as_ref()))))
}

/// Checks a kernel on the interpreter for thread programs.
pub fn check(kernel: &Kernel, rng: &mut Rng, rules: Rules) -> Result<Ended, Wrong> {
    let given = inputs(kernel, rng);
    let compiled = compiled(kernel.clone());
    let meant = match &compiled {
        Ok((kernel, ..)) => evaluate(kernel.kernel(), given.clone(), rules),
        Err(_) => evaluate(kernel, given.clone(), rules),
    };
    match (compiled, meant) {
        (_, Err(Meaningless::Unknown(why))) => Err(wrong("not supported by the reference", why)),
        (Err(found), _) => refused(kernel, &found, || has_meaning(kernel, &given, rules)),
        (Ok(_), Err(Meaningless::Race(why))) => Err(wrong("accepted, but racy", why)),
        (Ok(_), Err(Meaningless::Divergent(why))) => Err(wrong("accepted, but threads diverge", why)),
        (Ok(_), Err(Meaningless::Outside(why))) => Err(wrong("accepted, but out of bounds", why)),
        (
            Ok(_),
            Err(Meaningless::Claim(_) | Meaningless::Chance(_) | Meaningless::Payload(_) | Meaningless::Unwritten(_)),
        ) => Ok(Ended::Undefined),
        (Ok((kernel, inferred, program)), Ok(expected)) => {
            if let Some(what) = widths::difference(kernel.kernel(), &inferred, program.program()) {
                return Err(wrong("vectors differ from the layout text", what));
            }
            for order in [Order::Forwards, Order::Backwards] {
                ran(&kernel, &program, &given, &expected, order)?;
            }
            Ok(Ended::Right)
        }
    }
}

/// The compiled kernel, the inferred layouts, and the thread program.
type Compiled = (VerifiedKernel, Inferred, VerifiedProgram);

/// The pipeline of `compile`, without emitting CUDA. Any layouts of open buffers that it would try have to be right,
/// whether they are cheaper or not.
fn compiled(kernel: Kernel) -> Result<Compiled, Vec<Diagnostic>> {
    let target = Target::Sm100a;
    let mut found = Err(Vec::new());
    for guess in with_open_placed(&prepare(verify(kernel, target)?), target) {
        let placed = verify(guess, target)?;
        found = lowered(placed.clone(), target).map(|lowered| (placed, lowered));
        if found.is_ok() {
            break;
        }
    }
    let (padded, (laid_out, inferred, program)) = found?;
    let trials = OpenAccesses::of(&laid_out, &program).trials(&laid_out, &program);
    let tried = trials.get(laid_out.kernel().threads as usize / 32 % trials.len().max(1));
    let tried = tried.and_then(|placement| lowered(placed(padded, placement)?, target).ok());
    let (laid_out, inferred, program) = tried.unwrap_or((laid_out, inferred, program));
    Ok((laid_out, inferred, thread::verify(program)?))
}

fn lowered(kernel: VerifiedKernel, target: Target) -> Result<(VerifiedKernel, Inferred, Program), Vec<Diagnostic>> {
    let (laid_out, inferred) = match is_laid_out(kernel.kernel()) {
        true => (kernel, Inferred::default()),
        false => {
            let (laid_out, inferred) = lay_out(kernel.into_kernel())?;
            (verify(laid_out, target)?, inferred)
        }
    };
    let program = lower(&laid_out, target, &Options::default())?;
    Ok((laid_out, inferred, program))
}

fn placed(kernel: VerifiedKernel, placement: &Placement) -> Option<VerifiedKernel> {
    let mut placed = kernel.into_kernel();
    placement.iter().try_for_each(|(buffer, layout)| placed.place(*buffer, layout)).ok()?;
    verify(placed, Target::Sm100a).ok()
}

/// A refusal is correct if the kernel has no meaning; if it has one, only if layouts, limits or data are the reason.
fn refused(kernel: &Kernel, found: &[Diagnostic], has_meaning: impl FnOnce() -> bool) -> Result<Ended, Wrong> {
    let Some(first) = found.first() else { return Err(wrong("refused without a reason", "")) };
    let notes: String = first.notes.iter().map(|note| format!("; {note}")).collect();
    let asks_for_variants = kernel.ops.iter().any(|(_, op)| op.variant.is_some());
    let is_unmet = first.code == "P0402" && asks_for_variants;
    let is_internal = !is_unmet && ['V', 'E', 'P'].iter().any(|letter| first.code.starts_with(*letter));
    let is_about_meaning = matches!(first.code, "K0216" | "K0237" | "K0239");
    if is_internal || (is_about_meaning && !depends_on_data(kernel) && has_meaning()) {
        return Err(wrong(&format!("{} for a kernel that has a meaning", first.code), format!("{first}{notes}")));
    }
    Ok(Ended::Refused(first.code))
}

/// Whether conditions or indices depend on data, which may differ from the inputs used here.
fn depends_on_data(kernel: &Kernel) -> bool {
    let mut found = false;
    let mut each = |elements: &[ElementStmt]| {
        elements.iter().for_each(|element| in_element(element, &mut found));
    };
    kernel.parallels.iter().for_each(|(_, parallel)| each(&parallel.body));
    in_body(&kernel.body, &mut found);
    found
}

fn in_body(body: &[Stmt], found: &mut bool) {
    for stmt in body {
        match stmt {
            Stmt::Op(_) | Stmt::Parallel(_) | Stmt::Begin(_) | Stmt::End(_) => {}
            Stmt::Loop(inner) => in_body(&inner.body, found),
            Stmt::EachThread(elements) => elements.iter().for_each(|element| in_element(element, found)),
            Stmt::If(branch) => {
                branch.cond.for_each_load(&mut |_| *found = true);
                in_body(&branch.then, found);
                in_body(&branch.otherwise, found);
            }
        }
    }
}

fn in_element(element: &ElementStmt, found: &mut bool) {
    let mut note = |access: &Access| *found |= access.index.iter().any(|coord| matches!(coord, Coord::Data(_)));
    element.for_each_access(&mut |access, _| note(access));
    match element {
        ElementStmt::Let { value, .. } => in_value(value, found),
        ElementStmt::Store { value, .. } => in_value(value, found),
        ElementStmt::Atomic(atomic) => atomic.values().for_each(|value| in_value(value, found)),
        ElementStmt::If { cond, .. } => *found |= !is_known(cond),
        ElementStmt::For { .. } => {}
    }
    element.inner().for_each(|inner| in_element(inner, found));
}

fn in_value(value: &Value, found: &mut bool) {
    match value {
        Value::Op(op, operands) => {
            if *op == tilewright::ir::tile::ElementOp::Select {
                *found |= !is_known(&operands[0]);
            }
            operands.iter().for_each(|operand| in_value(operand, found));
        }
        Value::Cast(_, _, of) => in_value(of, found),
        // A name may stand for a comparison of data.
        Value::Named(_) => *found = true,
        Value::Const(_) | Value::Index(_) | Value::Load(_) => {}
    }
}

/// Whether a condition compares integers computed from variables, which the compiler can analyze.
fn is_known(cond: &Value) -> bool {
    let is_integer = |side: &Value| matches!(side, Value::Index(_) | Value::Const(_));
    matches!(cond, Value::Op(_, sides) if sides.iter().all(is_integer))
}

/// The bytes of all parameters: values for inputs, unwritten bytes for outputs.
pub fn inputs(kernel: &Kernel, rng: &mut Rng) -> Bytes {
    let mut given = Bytes::new();
    for (handle, buffer) in kernel.buffers.iter().filter(|(_, buffer)| buffer.view_of.is_none()) {
        let bytes = buffer.dtype.bytes() as usize;
        let count = buffer.span_elements() as usize;
        match buffer.space {
            Space::Global(Direction::Accumulator) => {
                given.insert(handle, vec![Some(0); count * bytes]);
            }
            Space::Global(Direction::Input | Direction::InOut) => {
                let is_index = buffer.name == "at";
                let element = |rng: &mut Rng| element(buffer.dtype, is_index, rng).to_le_bytes()[..bytes].to_vec();
                let held = (0..count).flat_map(|_| element(rng)).map(Some).collect();
                given.insert(handle, held);
            }
            Space::Global(Direction::Output) => {
                given.insert(handle, vec![None; count * bytes]);
            }
            Space::Shared | Space::Fragment | Space::Tensor => {}
        }
    }
    given
}

fn element(dtype: DType, is_index: bool, rng: &mut Rng) -> u64 {
    match dtype.integers() {
        _ if is_index => rng.within(0..=40) as u64,
        Some(_) if rng.percent(70) => numbers::wrapped(dtype, i128::from(rng.within(-9..=99))),
        Some(_) => numbers::wrapped(dtype, i128::from(rng.bits() as i64)),
        None => numbers::rounded(dtype, rng.within(-400..=400) as f64 / 16.0),
    }
}

/// Checks that the program, run with this order of threads, gives the expected result.
fn ran(
    kernel: &VerifiedKernel,
    program: &VerifiedProgram,
    given: &Bytes,
    expected: &Bytes,
    order: Order,
) -> Result<(), Wrong> {
    let (kernel, program) = (kernel.kernel(), program.program());
    let named = |handle: &Handle<Buffer>| {
        let name = &kernel.buffers[*handle].name;
        program.memories.iter().find(|(_, memory)| memory.name == *name).map(|(memory, _)| memory.index())
    };
    let mut memories: Memories =
        given.iter().filter_map(|(handle, bytes)| Some((named(handle)?, bytes.clone()))).collect();
    let kernels = KernelsByRole::of(kernel);
    let copies: Vec<Copies> =
        kernel.buffers.iter().filter_map(|(handle, buffer)| copies(&kernels, handle, buffer)).collect();
    execute(program, &mut memories, order, &copies)
        .map_err(|why| wrong("the program fails", format!("{order:?}: {why}")))?;
    for (handle, bytes) in expected {
        let Some(left) = named(handle).and_then(|number| memories.get(&number)) else { continue };
        differs(&kernel.buffers[*handle], bytes, left)
            .map_err(|what| wrong("wrong result", format!("{order:?}: {what}")))?;
    }
    Ok(())
}

fn copies(kernels: &KernelsByRole<'_>, handle: Handle<Buffer>, buffer: &Buffer) -> Option<Copies> {
    let is_owner = buffer.space == Space::Fragment && buffer.view_of.is_none();
    let layout = buffer.layout.as_ref().filter(|_| is_owner)?;
    let first = kernels.role_of(handle).map_or(0, |role| kernels.whole().roles[role].first as usize * 32);
    let map = Map::of_layout(layout, kernels.seen_by_user_of(handle).threads as usize).ok()?;
    let bytes = buffer.dtype.bytes() as usize;
    let mut places: Vec<Vec<(usize, usize)>> = vec![Vec::new(); map.elements()];
    for (thread, slot, element) in map.entries() {
        let thread = thread + first;
        // Of several registers of a thread, ops use the first.
        if places[element].iter().all(|(known, _)| *known != thread) {
            places[element].push((thread, slot * bytes));
        }
    }
    Some(Copies { name: buffer.name.clone(), places, bytes })
}

/// Returns an error for the first element that differs from the expected one.
pub fn differs(buffer: &Buffer, expected: &[Option<u8>], left: &[Option<u8>]) -> Result<(), String> {
    let bytes = buffer.dtype.bytes() as usize;
    let bits =
        |held: &[Option<u8>]| held.iter().rev().try_fold(0u64, |bits, byte| Some(bits << 8 | u64::from((*byte)?)));
    for (at, (wanted, got)) in expected.chunks(bytes).zip(left.chunks(bytes)).enumerate() {
        let is_right = match (bits(wanted), bits(got)) {
            (Some(wanted), Some(got)) => numbers::same(buffer.dtype, wanted, got),
            (wanted, got) => wanted == got,
        };
        if !is_right {
            let text = |held: &[Option<u8>]| match bits(held) {
                Some(bits) if buffer.dtype.is_float() => format!("{} ({bits:#x})", numbers::real(buffer.dtype, bits)),
                Some(bits) => numbers::integer(buffer.dtype, bits).to_string(),
                None => "never written".to_string(),
            };
            return Err(format!("`{}` at {at} is {}, expected {}", buffer.name, text(got), text(wanted)));
        }
    }
    Ok(())
}

/// Counts by kind.
pub type Tally = BTreeMap<String, u64>;
