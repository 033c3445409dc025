//! Random kernels through NVRTC and the virtual GPU.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::ir::Handle;
use tilewright::ir::tile::{Buffer, contract, verify};
use tilewright::prelude::{Kernel, Target};
use tilewright::runtime::{CudaText, Toolchain};
use tilewright::vgpu::{self, Arg, BufferId, Launch, Memory, Module};

use super::check::{Ended, Wrong, differs, inputs};
use super::evaluate::{Bytes, Meaningless, Rules, evaluate};
use crate::rng::Rng;

fn wrong(class: &str, what: impl ToString) -> Wrong {
    Wrong { class: class.to_string(), what: what.to_string() }
}

/// A kernel that is accepted and has a meaning computes it on the virtual GPU; other kernels are not run.
pub fn check_virtual(kernel: &Kernel, rng: &mut Rng, toolchain: &Toolchain) -> Result<Ended, Wrong> {
    let target = Target::Sm100a;
    let artifact = match compile(kernel.clone(), &Options::new(target)) {
        Ok(artifact) => artifact,
        Err(found) => return Ok(Ended::Refused(found.first().map_or("nothing said", |finding| finding.code))),
    };
    let given = inputs(kernel, rng);
    let contracted = verify(kernel.clone(), target).map(contract).map_err(|_| wrong("verified once only", ""))?;
    let expected = match evaluate(&contracted, given.clone(), Rules::ALL) {
        Ok(expected) => expected,
        Err(Meaningless::Unknown(why)) => return Err(wrong("the judge does not know", why)),
        Err(_) => return Ok(Ended::Undefined),
    };
    let built =
        toolchain.build(&artifact, &CudaText::Generated).map_err(|failure| wrong("NVRTC refuses it", failure))?;
    let module = Module::parse(&built.ptx).map_err(|error| wrong("PTX that cannot be read", error))?;
    let left = launched(kernel, &artifact, &module, &given)?;
    for (handle, bytes) in &expected {
        let buffer = &kernel.buffers[*handle];
        if let Some((_, left)) = left.iter().find(|(known, _)| known == handle) {
            differs(buffer, bytes, left)
                .map_err(|what| wrong("another result", format!("{what}\n{}", artifact.cuda())))?;
        }
    }
    Ok(Ended::Right)
}

type Left = Vec<(Handle<Buffer>, Vec<Option<u8>>)>;

fn launched(kernel: &Kernel, artifact: &Artifact, module: &Module, given: &Bytes) -> Result<Left, Wrong> {
    let mut memory = Memory::new();
    let buffers: Vec<(Handle<Buffer>, BufferId)> = given
        .iter()
        .map(|(handle, bytes)| {
            let name = &kernel.buffers[*handle].name;
            let known: Option<Vec<u8>> = bytes.iter().copied().collect();
            let buffer = match known {
                Some(bytes) => memory.allocate(name, bytes),
                None => memory.allocate_poison(name, bytes.len()),
            };
            (*handle, buffer)
        })
        .collect();
    let launch = Launch {
        kernel: artifact.name().to_string(),
        grid: artifact.grid().map(|ctas| ctas as u32),
        block: [artifact.threads() as u32, 1, 1],
        dynamic_shared_bytes: artifact.dynamic_shared_bytes() as u32,
        args: buffers.iter().map(|(_, buffer)| Arg::Buffer { buffer: *buffer, byte_offset: 0 }).collect(),
    };
    let report = vgpu::run(module, &launch, &mut memory, &vgpu::Options::default());
    report.map_err(|error| {
        let text = error.to_string();
        let kind: String = text.chars().take_while(|c| *c != ':' && *c != ' ').collect();
        wrong(&format!("the virtual GPU finds {kind}"), format!("{text}\n{}", artifact.cuda()))
    })?;
    let written = |buffer: BufferId| {
        let bytes = memory.bytes(buffer).iter().enumerate();
        bytes.map(|(at, byte)| memory.is_written(buffer, at).then_some(*byte)).collect::<Vec<Option<u8>>>()
    };
    Ok(buffers.into_iter().map(|(handle, buffer)| (handle, written(buffer))).collect())
}
