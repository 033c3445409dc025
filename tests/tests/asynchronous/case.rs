//! A kernel with what it runs on.

use tilewright::cuda::{CudaError, Gpu, Request};
use tilewright::runtime::run_launches_on_gpu;
use tilewright::vgpu::{
    Arg, BufferId, Launch, MapAccess, MapElement, MapSwizzle, Memory, Module, Options, RunError, TensorMap, run,
};
use tilewright_tests::toolchain::{package, toolchain};

/// A kernel with its inputs, and how its results are checked.
pub(crate) struct Case {
    pub(crate) file: &'static str,
    pub(crate) entry: &'static str,
    pub(crate) grid: [u32; 3],
    pub(crate) threads: u32,
    /// CTAs of a cluster in x.
    pub(crate) cluster: u32,
    /// What stands for `KIND` in the text.
    pub(crate) kind: &'static str,
    /// CTAs that run at once, if not as many as fit.
    pub(crate) resident: Option<u32>,
    pub(crate) memory: Memory,
    pub(crate) args: Vec<Arg>,
    /// The buffer of the results, and the numbers in it.
    pub(crate) results: (BufferId, Vec<f32>),
}

pub(crate) fn floats(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

pub(crate) fn number(value: i32) -> Arg {
    Arg::Bytes(value.to_le_bytes().to_vec())
}

pub(crate) fn pointer(buffer: BufferId) -> Arg {
    Arg::Buffer { buffer, byte_offset: 0 }
}

/// A tensor map of two dimensions in boxes of `sides`, whose rows have 128 bytes in shared memory.
pub(crate) fn rows_map(
    memory: &Memory,
    buffer: BufferId,
    element: MapElement,
    dims: [usize; 2],
    (row_bytes, sides): (usize, [u64; 2]),
) -> Arg {
    let map = TensorMap {
        address: memory.address(buffer).expect("a buffer"),
        element,
        fills_nan: false,
        dims: dims.map(|size| size as u64).to_vec(),
        strides: vec![row_bytes as u64],
        access: MapAccess::Tiled(sides.to_vec()),
        element_strides: vec![1, 1],
        swizzle: MapSwizzle::B128,
    };
    encoded(&map)
}

pub(crate) fn encoded(map: &TensorMap) -> Arg {
    map.check().expect("the map is right");
    Arg::TensorMap(map.clone())
}

impl Case {
    /// The targets that have its instructions.
    pub(crate) fn targets(&self) -> &'static [&'static str] {
        match self.file {
            "cp_async_gemm.cu" | "tma_roles.cu" | "split_sum.cu" | "cluster_sum.cu" => &["sm_90a", "sm_100a"],
            "wgmma_gemm.cu" => &["sm_90a"],
            _ => &["sm_100a"],
        }
    }

    /// The CUDA of the kernel, with what it includes.
    pub(crate) fn source(&self) -> String {
        let read = |file: &str| {
            let path = package().join("fixtures/cuda").join(file);
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let mut text = read(self.file);
        for file in ["async.cuh", "tensor.cuh"] {
            text = text.replace(&format!("#include \"{file}\"\n"), &read(file));
        }
        text.replace("<KIND>", &format!("<{}>", self.kind))
    }

    pub(crate) fn launch(&self) -> Launch {
        Launch {
            kernel: self.entry.to_string(),
            grid: self.grid,
            block: [self.threads, 1, 1],
            cluster: [self.cluster, 1, 1],
            overlaps_previous: false,
            dynamic_shared_bytes: 0,
            args: self.args.clone(),
        }
    }

    /// Runs the kernel in `module` with a seed. Whether the results are right, or what went wrong.
    pub(crate) fn run(&self, module: &Module, seed: u64) -> Result<bool, RunError> {
        let mut memory = self.memory.clone();
        run(
            module,
            &self.launch(),
            &mut memory,
            &Options {
                seed,
                max_instructions_per_thread: 50_000,
                sms: self.resident,
                ctas_per_sm: self.resident.map(|_| 1),
                ..Options::default()
            },
        )?;
        Ok(memory.bytes(self.results.0) == floats(self.results.1.iter().copied()))
    }
}

impl Case {
    /// Runs the kernel on a GPU. Whether the results are right, or why it could not run.
    pub(crate) fn run_on(&self, gpu: &Gpu, ptx: &str) -> Result<bool, CudaError> {
        let found = run_launches_on_gpu(gpu, ptx, &[self.launch()], &self.memory, &[])?;
        let results = found.buffers.iter().find(|(id, _)| *id == self.results.0);
        Ok(results.is_some_and(|(_, bytes)| *bytes == floats(self.results.1.iter().copied())))
    }
}

/// The PTX of a text; `None` without NVRTC.
pub(crate) fn compiled(source: &str, target: &str) -> Option<String> {
    let nvrtc = toolchain().nvrtc(target).ok()?;
    let request = Request { source, name: "/tilewright/asynchronous.cu", target, options: &[] };
    Some(nvrtc.compile(&request).unwrap_or_else(|error| panic!("{error}\n{source}")).ptx)
}

pub(crate) fn parsed(ptx: &str) -> Module {
    Module::parse(ptx).unwrap_or_else(|error| panic!("{error}"))
}
