//! `vgpu --gpu`: the same launches on a GPU.

use serde_json::{Value, json};
use tilewright::cuda::{Gpu, can_compile, gpus};
use tilewright::runtime::{BufferDifference, run_launches_on_gpu};
use tilewright::vgpu::launch_file::{Difference, LaunchFile};
use tilewright::vgpu::{BufferId, Memory};

use crate::exit::Exit;
use crate::terminal::print_error;
use crate::vgpu::Inputs;

/// What the launches did on a GPU.
pub(crate) struct OnGpu {
    /// The product name.
    device: String,
    /// The PTX version as which the driver compiled the text, if it does not know the one in the text.
    ptx_version: Option<(u32, u32)>,
    /// Each buffer with its name.
    buffers: Vec<(String, BufferDifference)>,
    /// The first element that differs from what is expected.
    difference: Option<Difference>,
    has_expectations: bool,
}

/// Opens the first GPU whose driver compiles for the target of the text.
pub(crate) fn open(target: &str) -> Result<Gpu, Exit> {
    let none = |why: String| {
        print_error(&format!("--gpu: no GPU here can run {target}: {why}"));
        Exit::Unsupported
    };
    let found = gpus().map_err(|error| none(error.to_string()))?;
    match found.iter().position(|info| can_compile(target, info.compute_capability)) {
        Some(ordinal) => Gpu::open(ordinal).map_err(|error| none(error.to_string())),
        None => {
            let names: Vec<String> = found.iter().map(|info| info.name.clone()).collect();
            Err(none(format!("there is {}", if names.is_empty() { "none".to_string() } else { names.join(", ") })))
        }
    }
}

/// Runs the launches on `gpu`, and compares its memory with `after`, that of the virtual GPU.
pub(crate) fn run(gpu: &Gpu, inputs: &Inputs, after: &Memory) -> Result<OnGpu, Exit> {
    let file = &inputs.file;
    let found = run_launches_on_gpu(gpu, &inputs.ptx, &file.launches, &file.memory, &file.maps).map_err(|error| {
        print_error(&format!("--gpu: {error}"));
        Exit::Fault
    })?;
    let name = |id| file.buffers.iter().find(|(_, known)| *known == id).map_or("", |(name, _)| name).to_string();
    let differences = found.differences(after, &file.maps).into_iter();
    let buffers = differences.map(|found| (name(found.buffer), found));
    Ok(OnGpu {
        device: gpu.info().name.clone(),
        ptx_version: found.ptx_version,
        buffers: buffers.collect(),
        difference: difference(file, &found.buffers),
        has_expectations: !file.expectations.is_empty(),
    })
}

fn difference(file: &LaunchFile, buffers: &[(BufferId, Vec<u8>)]) -> Option<Difference> {
    file.expectations.iter().find_map(|expectation| {
        let id = file.buffer(&expectation.buffer)?;
        let (_, bytes) = buffers.iter().find(|(known, _)| *known == id)?;
        expectation.difference(bytes)
    })
}

impl OnGpu {
    /// Whether the expectations hold on the GPU; without any, whether all bytes are those of the virtual GPU.
    pub(crate) fn is_right(&self) -> bool {
        match self.has_expectations {
            true => self.difference.is_none(),
            false => self.buffers.iter().all(|(_, buffer)| buffer.differing == 0),
        }
    }

    /// A line for each fact.
    pub(crate) fn print(&self) {
        match self.ptx_version {
            None => say!("on {}:", self.device),
            Some((major, minor)) => say!("on {}, whose driver compiles the text as PTX {major}.{minor}:", self.device),
        }
        for (name, BufferDifference { compared, differing, first, .. }) in &self.buffers {
            match first {
                None => say!("  `{name}`: the same bytes: {compared}"),
                Some(first) => say!("  `{name}`: {differing} of {compared} bytes differ, the first is byte {first}"),
            }
        }
        if let Some(difference) = &self.difference {
            say!("  differs: {difference}");
        }
    }

    pub(crate) fn json(&self) -> Value {
        let buffer = |(name, found): &(String, BufferDifference)| {
            json!({
                "name": name,
                "compared": found.compared,
                "differing": found.differing,
                "first": found.first,
            })
        };
        json!({
            "device": self.device,
            "ptx_version": self.ptx_version.map(|(major, minor)| format!("{major}.{minor}")),
            "buffers": self.buffers.iter().map(buffer).collect::<Vec<Value>>(),
            "difference": self.difference.as_ref().map(Difference::to_string),
        })
    }
}
