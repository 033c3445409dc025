//! Random kernels compiled with NVRTC and run on the virtual GPU or a real one.

use tilewright::compile::{Artifact, MapParameter, Options, compile};
use tilewright::ir::Handle;
use tilewright::ir::tile::{Buffer, prepare, verify};
use tilewright::prelude::{Kernel, Target};
use tilewright::runtime::{Built, CudaText, Device, HostTensor, Toolchain, run, tensor_map};
use tilewright::vgpu::{self, Arg, BufferId, Launch, Memory, Module};

use super::check::{Ended, Wrong, differs, inputs};
use super::evaluate::{Bytes, Meaningless, Rules, evaluate, size_at_launch};
use crate::rng::Rng;

fn wrong(class: &str, what: impl ToString) -> Wrong {
    Wrong { class: class.to_string(), what: what.to_string() }
}

/// Checks that a kernel that is accepted and has a meaning computes it on the device. Other kernels are not run.
pub fn check_on(
    kernel: &Kernel,
    rng: &mut Rng,
    toolchain: &Toolchain,
    (device, target): (&Device, Target),
) -> Result<Ended, Wrong> {
    let sizes: Vec<(&str, i64)> =
        kernel.sizes.iter().map(|size| (size.var.name(), size_at_launch(&size.var))).collect();
    let artifact = match compile(kernel.clone(), &Options::new(target)).and_then(|made| made.for_sizes(&sizes)) {
        Ok(artifact) => artifact,
        Err(found) => return Ok(Ended::Refused(found.first().map_or("no diagnostic", |finding| finding.code))),
    };
    let given = inputs(kernel, rng);
    let contracted = verify(kernel.clone(), target).map(prepare).map_err(|_| wrong("not verified twice", ""))?;
    let expected = match evaluate(&contracted, given.clone(), Rules::ALL) {
        Ok(expected) => expected,
        Err(Meaningless::Unknown(why)) => return Err(wrong("not supported by the reference", why)),
        Err(_) => return Ok(Ended::Undefined),
    };
    let built =
        toolchain.build(&artifact, &CudaText::Generated).map_err(|failure| wrong("NVRTC reports an error", failure))?;
    let left = match device {
        Device::Virtual => {
            let module = Module::parse(&built.ptx).map_err(|error| wrong("the PTX cannot be parsed", error))?;
            launched(kernel, &artifact, &module, &given)?
        }
        Device::Gpu(_) => on_gpu(kernel, &artifact, &built, &given, device)?,
    };
    for (handle, bytes) in &expected {
        let buffer = &kernel.buffers[*handle];
        if let Some((_, left)) = left.iter().find(|(known, _)| known == handle) {
            let known = |(wanted, got): (&Option<u8>, &Option<u8>)| wanted.and(*got);
            // A GPU does not report which bytes were never written.
            let left: Vec<Option<u8>> = match device {
                Device::Virtual => left.clone(),
                Device::Gpu(_) => bytes.iter().zip(left).map(known).collect(),
            };
            differs(buffer, bytes, &left)
                .map_err(|what| wrong("wrong result", format!("{what}\n{}", artifact.cuda())))?;
        }
    }
    Ok(Ended::Right)
}

type Left = Vec<(Handle<Buffer>, Vec<Option<u8>>)>;

/// The outputs of a run on a GPU; all parameters are row-major.
fn on_gpu(kernel: &Kernel, artifact: &Artifact, built: &Built, given: &Bytes, device: &Device) -> Result<Left, Wrong> {
    let all = |bytes: &[Option<u8>]| bytes.iter().copied().collect::<Option<Vec<u8>>>();
    let inputs: Option<Vec<HostTensor>> = given
        .iter()
        .filter_map(|(handle, bytes)| Some((&kernel.buffers[*handle], all(bytes)?)))
        .map(|(buffer, mut bytes)| {
            let parameter = artifact.parameters().iter().find(|parameter| parameter.name == buffer.name)?;
            bytes.truncate((parameter.shape.iter().product::<i64>() * buffer.dtype.bytes()) as usize);
            HostTensor::from_bytes(buffer.dtype, &parameter.shape, bytes).ok()
        })
        .collect();
    let inputs = inputs.ok_or_else(|| wrong("the inputs do not match the shapes of their tensors", ""))?;
    let run = run(artifact, built, &inputs, device).map_err(|failure| {
        let notes = failure.diagnostics.iter().flat_map(|finding| &finding.notes);
        let notes: Vec<&str> = notes.map(String::as_str).collect();
        wrong("the GPU reports an error", format!("{failure}: {}\n{}", notes.join("; "), artifact.cuda()))
    })?;
    let outputs = given.iter().filter(|(_, bytes)| all(bytes).is_none()).map(|(handle, _)| *handle);
    Ok(outputs
        .zip(run.outputs)
        .map(|(handle, left)| (handle, left.bytes().iter().copied().map(Some).collect()))
        .collect())
}

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
    let parameters = artifact.tensor_maps().map_err(|finding| wrong("no tensor maps", finding))?;
    let address = |tensor: usize| buffers.get(tensor).and_then(|(_, buffer)| memory.address(*buffer)).unwrap_or(0);
    let map = |one: &MapParameter| tensor_map(&one.map, one.dtype, address(one.tensor)).map(Arg::TensorMap);
    let maps: Vec<Arg> =
        parameters.iter().map(map).collect::<Result<_, _>>().map_err(|failure| wrong("no tensor maps", failure))?;
    let launch = Launch {
        kernel: artifact.entry().to_string(),
        grid: artifact.grid().map(|ctas| ctas as u32),
        block: [artifact.threads() as u32, 1, 1],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: artifact.dynamic_shared_bytes() as u32,
        args: buffers
            .iter()
            .map(|(_, buffer)| Arg::Buffer { buffer: *buffer, byte_offset: 0 })
            .chain(artifact.sizes().into_iter().flatten().map(|size| Arg::Bytes((*size as i32).to_le_bytes().to_vec())))
            .chain(maps)
            .collect(),
    };
    let report = vgpu::run(module, &launch, &mut memory, &vgpu::Options::default());
    report.map_err(|error| {
        let text = error.to_string();
        let kind: String = text.chars().take_while(|c| *c != ':' && *c != ' ').collect();
        wrong(&format!("the virtual GPU reports {kind}"), format!("{text}\n{}", artifact.cuda()))
    })?;
    let written = |buffer: BufferId| {
        let bytes = memory.bytes(buffer);
        bytes
            .iter()
            .enumerate()
            .map(|(at, byte)| memory.is_written(buffer, at).then_some(*byte))
            .collect::<Vec<Option<u8>>>()
    };
    Ok(buffers.into_iter().map(|(handle, buffer)| (handle, written(buffer))).collect())
}
