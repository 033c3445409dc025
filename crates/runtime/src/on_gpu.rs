//! Launches of the virtual GPU on a GPU: the same PTX, the same memory before it, and what differs after it.

use tilewright_cuda::{
    CudaError, Gpu, GpuArg, GpuBuffer, TensorAccess, TensorElement, TensorMapRequest, TensorSwizzle,
};
use tilewright_vgpu::launch_file::PlacedMap;
use tilewright_vgpu::{Arg, BufferId, Im2col, Launch, MapAccess, MapElement, MapSwizzle, Memory, TensorMap};

/// What bytes hold on a GPU that nobody has written: a value that few kernels compute, so that they are noticed.
pub(crate) const UNWRITTEN: u8 = 0xa5;

/// The buffers after launches on a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuMemory {
    /// The bytes of each buffer.
    pub buffers: Vec<(BufferId, Vec<u8>)>,
    /// The PTX version as which the driver has compiled the text, if it does not know the one in the text.
    pub ptx_version: Option<(u32, u32)>,
}

/// How a buffer of a GPU differs from that of the virtual GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferDifference {
    /// The buffer.
    pub buffer: BufferId,
    /// Bytes that are compared: those that have a value on the virtual GPU.
    pub compared: usize,
    /// Bytes that differ.
    pub differing: usize,
    /// Offset of the first of them.
    pub first: Option<usize>,
}

/// Runs launches of the kernels in `ptx` one after another, on a memory like `before`, in which `maps` are tensor maps.
///
/// # Errors
///
/// A text that the driver cannot compile, arguments that do not fit, and faults inside a kernel; after the last, the process
/// can no longer use this GPU.
pub fn run_launches_on_gpu(
    gpu: &Gpu,
    ptx: &str,
    launches: &[Launch],
    before: &Memory,
    maps: &[PlacedMap],
) -> Result<GpuMemory, CudaError> {
    let module = gpu.load_ptx(ptx)?;
    let mut buffers = Vec::new();
    for (id, _) in before.buffers() {
        let bytes = initial_bytes(before, id);
        let buffer = gpu.alloc(bytes.len() as u64)?;
        gpu.upload(&buffer, 0, &bytes)?;
        buffers.push((id, buffer));
    }
    let twins = Twins { gpu, before, buffers: &buffers };
    for PlacedMap { buffer, byte_offset, map } in maps {
        let encoded = twins.tensor_map(map)?;
        gpu.upload(twins.of(*buffer)?, *byte_offset, &encoded)?;
    }
    for launch in launches {
        let args = launch.args.iter().map(|arg| twins.arg(arg)).collect::<Result<Vec<GpuArg<'_>>, CudaError>>()?;
        let on_gpu = tilewright_cuda::Launch {
            kernel: &launch.kernel,
            grid: launch.grid,
            block: launch.block,
            cluster: (launch.cluster != [1; 3]).then_some(launch.cluster),
            dynamic_shared_bytes: launch.dynamic_shared_bytes,
            overlaps_previous: launch.overlaps_previous,
        };
        gpu.launch(&module, &on_gpu, &args)?;
    }
    gpu.synchronize()?;
    let download = |(id, buffer): &(BufferId, GpuBuffer)| Ok((*id, gpu.download(buffer, 0, buffer.size())?));
    let downloaded = buffers.iter().map(download).collect::<Result<Vec<_>, CudaError>>()?;
    Ok(GpuMemory { buffers: downloaded, ptx_version: module.ptx_version() })
}

fn initial_bytes(before: &Memory, id: BufferId) -> Vec<u8> {
    let mut bytes = before.bytes(id).into_owned();
    let unwritten = bytes.iter_mut().enumerate().filter(|(at, _)| !before.is_written(id, *at));
    unwritten.for_each(|(_, byte)| *byte = UNWRITTEN);
    bytes
}

impl GpuMemory {
    /// Compares each buffer with `after`, the memory of the virtual GPU after the same launches; `maps` hold addresses,
    /// which are not compared.
    pub fn differences(&self, after: &Memory, maps: &[PlacedMap]) -> Vec<BufferDifference> {
        let compare = |(id, bytes): &(BufferId, Vec<u8>)| {
            let is_map = |at: usize| {
                let holds = |map: &PlacedMap| (map.byte_offset..map.byte_offset + 128).contains(&(at as u64));
                maps.iter().any(|map| map.buffer == *id && holds(map))
            };
            let own = after.bytes(*id);
            let compared: Vec<usize> = (0..own.len()).filter(|at| after.is_written(*id, *at) && !is_map(*at)).collect();
            let differing: Vec<usize> = compared.iter().copied().filter(|at| own[*at] != bytes[*at]).collect();
            BufferDifference {
                buffer: *id,
                compared: compared.len(),
                differing: differing.len(),
                first: differing.first().copied(),
            }
        };
        self.buffers.iter().map(compare).collect()
    }
}

/// The buffers of a GPU that stand for those of a memory.
struct Twins<'a> {
    gpu: &'a Gpu,
    before: &'a Memory,
    buffers: &'a [(BufferId, GpuBuffer)],
}

impl<'a> Twins<'a> {
    fn of(&self, id: BufferId) -> Result<&'a GpuBuffer, CudaError> {
        let found = self.buffers.iter().find(|(known, _)| *known == id);
        found.map(|(_, buffer)| buffer).ok_or_else(|| missing("a buffer that is not in this memory"))
    }

    fn arg(&self, arg: &Arg) -> Result<GpuArg<'a>, CudaError> {
        match arg {
            Arg::Buffer { buffer, byte_offset } => Ok(GpuArg::Buffer(self.of(*buffer)?, *byte_offset)),
            Arg::Bytes(bytes) => Ok(GpuArg::Bytes(bytes.clone())),
            Arg::TensorMap(map) => self.tensor_map(map).map(GpuArg::Bytes),
        }
    }

    fn tensor_map(&self, map: &TensorMap) -> Result<Vec<u8>, CudaError> {
        let Some((id, offset)) = self.before.buffer_at(map.address) else {
            return Err(missing("a tensor map of no buffer"));
        };
        self.gpu.tensor_map(self.of(id)?, offset, &request(map))
    }
}

fn missing(why: &str) -> CudaError {
    CudaError::BadLaunch { kernel: String::new(), why: why.to_string() }
}

/// Numbers that [`TensorMap::check`] has bounded.
pub(crate) fn request(map: &TensorMap) -> TensorMapRequest {
    let access = match &map.access {
        MapAccess::Tiled(sides) => TensorAccess::Tiled(sides.iter().map(|side| *side as u32).collect()),
        MapAccess::Im2col(Im2col { lower, upper, channels, pixels }) => TensorAccess::Im2col {
            lower: lower.iter().map(|corner| *corner as i32).collect(),
            upper: upper.iter().map(|corner| *corner as i32).collect(),
            channels: *channels as u32,
            pixels: *pixels as u32,
        },
    };
    TensorMapRequest {
        element: element(map.element),
        dims: map.dims.clone(),
        strides: map.strides.clone(),
        access,
        element_strides: map.element_strides.iter().map(|stride| *stride as u32).collect(),
        swizzle: swizzle(map.swizzle),
        fills_nan: map.fills_nan,
    }
}

fn element(element: MapElement) -> TensorElement {
    match element {
        MapElement::U8 => TensorElement::Uint8,
        MapElement::U16 => TensorElement::Uint16,
        MapElement::U32 => TensorElement::Uint32,
        MapElement::S32 => TensorElement::Int32,
        MapElement::U64 => TensorElement::Uint64,
        MapElement::S64 => TensorElement::Int64,
        MapElement::F16 => TensorElement::Float16,
        MapElement::F32 => TensorElement::Float32,
        MapElement::F64 => TensorElement::Float64,
        MapElement::Bf16 => TensorElement::Bfloat16,
        MapElement::Tf32 => TensorElement::Tfloat32,
        MapElement::B4x16 => TensorElement::Uint4x16Align8,
        MapElement::B4x16P64 => TensorElement::Uint4x16Align16,
        MapElement::B6x16P32 => TensorElement::Uint6x16Align16,
    }
}

fn swizzle(swizzle: MapSwizzle) -> TensorSwizzle {
    match swizzle {
        MapSwizzle::None => TensorSwizzle::None,
        MapSwizzle::B32 => TensorSwizzle::B32,
        MapSwizzle::B64 => TensorSwizzle::B64,
        MapSwizzle::B128 => TensorSwizzle::B128,
        MapSwizzle::B128Atom32 => TensorSwizzle::B128Atom32,
        MapSwizzle::B128Atom32Flip8 => TensorSwizzle::B128Atom32Flip8,
        MapSwizzle::B128Atom64 => TensorSwizzle::B128Atom64,
    }
}
