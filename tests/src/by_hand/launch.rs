//! Runs hand-written kernels on the virtual GPU.

use tilewright::cuda::Request;
use tilewright::prelude::Target;
use tilewright::runtime::{HostTensor, Toolchain};
use tilewright::vgpu::{self, Arg, Launch, MapAccess, MapElement, MapSwizzle, Memory, Module, Report, TensorMap};

use crate::toolchain::package;

/// The map of an input that is a matrix of 16-bit elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapByHand {
    /// The number of the input.
    pub input: usize,
    /// Elements of a row, and rows.
    pub dims: [u64; 2],
    /// Elements of a row of a box, and its rows.
    pub sides: [u64; 2],
    /// How its rows are permuted.
    pub swizzle: MapSwizzle,
}

/// A kernel of `fixtures/cuda`, and how it is launched. Its parameters are the inputs, the outputs, `sizes`, and `maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandWritten {
    /// The file.
    pub file: &'static str,
    /// The name of the kernel in the file.
    pub entry: &'static str,
    /// CTAs along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a CTA, along x.
    pub threads: u32,
    /// Parameters of type `int`.
    pub sizes: Vec<i32>,
    /// Tensor maps.
    pub maps: Vec<MapByHand>,
}

/// What a run of a hand-written kernel left.
pub struct HandWrittenRun {
    /// The outputs.
    pub outputs: Vec<HostTensor>,
    /// What the virtual GPU counted.
    pub report: Report,
    /// The machine code of all kernels of the file.
    pub cubin: Vec<u8>,
}

impl HandWritten {
    /// Runs the kernel; `outputs` have the shapes and dtypes of its outputs. Errors: no NVRTC, or a failure.
    pub fn run(
        &self,
        toolchain: &Toolchain,
        target: Target,
        inputs: &[HostTensor],
        outputs: &[HostTensor],
    ) -> Result<HandWrittenRun, String> {
        let path = package().join("fixtures/cuda").join(self.file);
        let source = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let nvrtc = toolchain.nvrtc(target.name()).map_err(|error| error.to_string())?;
        let request = Request { source: &source, name: "/tilewright/by_hand.cu", target: target.name(), options: &[] };
        let built = nvrtc.compile(&request).map_err(|error| error.to_string())?;
        let module = Module::parse(&built.ptx).map_err(|error| error.to_string())?;
        let mut memory = Memory::new();
        let read = inputs.iter().map(|tensor| memory.allocate("input", tensor.bytes().to_vec())).collect::<Vec<_>>();
        let written: Vec<_> =
            outputs.iter().map(|tensor| memory.allocate_poison("output", tensor.bytes().len())).collect();
        let pointers = read.iter().chain(&written).map(|buffer| Arg::Buffer { buffer: *buffer, byte_offset: 0 });
        let sizes = self.sizes.iter().map(|size| Arg::Bytes(size.to_le_bytes().to_vec()));
        let map = |MapByHand { input, dims, sides, swizzle }: &MapByHand| TensorMap {
            address: memory.address(read[*input]).unwrap_or(0),
            element: MapElement::F16,
            fills_nan: false,
            dims: dims.to_vec(),
            strides: vec![2 * dims[0]],
            access: MapAccess::Tiled(sides.to_vec()),
            element_strides: vec![1, 1],
            swizzle: *swizzle,
        };
        let maps: Vec<Arg> = self.maps.iter().map(map).map(Arg::TensorMap).collect();
        let launch = Launch {
            kernel: self.entry.to_string(),
            grid: self.grid,
            block: [self.threads, 1, 1],
            cluster: [1; 3],
            overlaps_previous: false,
            dynamic_shared_bytes: 0,
            args: pointers.chain(sizes).chain(maps).collect(),
        };
        let report = vgpu::run(&module, &launch, &mut memory, &vgpu::Options::default());
        let report = report.map_err(|error| error.to_string())?;
        let outputs = outputs.iter().zip(&written).map(|(tensor, buffer)| {
            HostTensor::from_bytes(tensor.dtype(), tensor.shape(), memory.bytes(*buffer).to_vec())
        });
        let outputs = outputs.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        Ok(HandWrittenRun { outputs, report, cubin: built.cubin })
    }
}
