//! The virtual GPU and a GPU: every form of the decode table that works on registers gives the same bits. Without a GPU only the
//! virtual one runs.

use tilewright::cuda::{CudaError, Gpu};
use tilewright::runtime::run_launches_on_gpu;
use tilewright::vgpu::{Module, Options, run};
use tilewright_tests::forms::{ELEMENTS, Form, forms};
use tilewright_tests::gpu::gpu_for;

/// Seeds of the operands on a GPU.
const SEEDS: u64 = 8;

/// Forms that are not approximate and exist on sm_90.
const FEWEST_COMPARED: usize = 1600;

/// The text for the architecture of a GPU.
fn targeted(ptx: &str, gpu: &Gpu) -> String {
    let (major, minor) = gpu.info().compute_capability;
    ptx.replacen("sm_100a", &format!("sm_{major}{minor}a"), 1)
}

#[test]
fn every_form_on_registers_runs() {
    let all = forms();
    assert!(all.len() >= 1900, "{}", all.len());
    for form in all {
        let module = Module::parse(&form.kernel()).unwrap_or_else(|error| panic!("{}: {error}", form.text));
        let (launch, mut memory, _) = form.launch(0);
        run(&module, &launch, &mut memory, &Options::default())
            .unwrap_or_else(|error| panic!("{}: {error}", form.text));
    }
}

#[test]
fn a_gpu_computes_the_same_bits() {
    let Some(gpu) = gpu_for("sm_90") else { return println!("no GPU: nothing is compared") };
    let (mut compared, mut refused, mut different) = (0, Vec::new(), Vec::new());
    for form in forms().into_iter().filter(|form| !form.is_approximate()) {
        match (0..SEEDS).try_for_each(|seed| compare(&gpu, &form, seed)) {
            Ok(()) => compared += 1,
            Err(Outcome::Refused(why)) => refused.push(format!("{}: {why}", form.text)),
            Err(Outcome::Differs(what)) => different.push(format!("{}: {what}", form.text)),
        }
    }
    println!("{}: {compared} forms agree\nnot compiled: {}", gpu.info().name, refused.join("\n  "));
    assert!(compared >= FEWEST_COMPARED, "{compared}");
    assert!(different.is_empty(), "{} forms differ:\n{}", different.len(), different.join("\n"));
}

enum Outcome {
    /// The driver does not compile it.
    Refused(String),
    Differs(String),
}

fn compare(gpu: &Gpu, form: &Form, seed: u64) -> Result<(), Outcome> {
    let text = form.kernel();
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", form.text));
    let (launch, before, [from, to]) = form.launch(seed);
    let mut after = before.clone();
    let launches = std::slice::from_ref(&launch);
    let found =
        run_launches_on_gpu(gpu, &targeted(&text, gpu), launches, &before, &[]).map_err(|error| match error {
            CudaError::Driver { call: "cuModuleLoadDataEx", reason } => Outcome::Refused(reason),
            error => panic!("{}: {error}", form.text),
        })?;
    run(&module, &launch, &mut after, &Options::default()).unwrap_or_else(|error| panic!("{}: {error}", form.text));
    let Some(first) = found.differences(&after, &[]).iter().find_map(|found| found.first) else { return Ok(()) };
    let word = |bytes: &[u8], at: usize| {
        bytes
            .get(8 * at..8 * at + 8)
            .map_or(0, |word| word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    let (at, count) = (first / 8, before.len(from) / 8 / ELEMENTS);
    let operands: Vec<String> = (0..count)
        .map(|operand| format!("{:#x}", word(&before.bytes(from), operand * ELEMENTS + at % ELEMENTS)))
        .collect();
    let on_gpu = found.buffers.iter().find(|(id, _)| *id == to).map_or(0, |(_, bytes)| word(bytes, at));
    let own = word(&after.bytes(to), at);
    Err(Outcome::Differs(format!("({}): {own:#x} here, {on_gpu:#x} there", operands.join(", "))))
}
