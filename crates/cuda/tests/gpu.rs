//! Running a kernel on a real GPU. Without a GPU or an NVRTC this says so and passes.

use tilewright_cuda::{Gpu, GpuArg, GpuModule, Launch, Nvrtc, Request, SearchOptions};

/// Reverses each CTA's 64 numbers through dynamic shared memory, and adds `shift`.
const SOURCE: &str = r#"
extern "C" __global__ void reverse(const int* in, int* out, int shift) {
  extern __shared__ int stage[];
  int at = blockIdx.x * blockDim.x;
  stage[threadIdx.x] = in[at + threadIdx.x];
  __syncthreads();
  out[at + threadIdx.x] = stage[blockDim.x - 1 - threadIdx.x] + shift;
}
"#;

const THREADS: u32 = 64;

/// More than a kernel may use without raising its limit.
const SHARED_BYTES: u32 = 64 * 1024;

fn loaded() -> Option<(Gpu, GpuModule)> {
    let gpu = Gpu::open(0).map_err(|why| eprintln!("skipped: {why}")).ok()?;
    let (major, minor) = gpu.info().compute_capability;
    let target = format!("sm_{major}{minor}");
    let nvrtc = Nvrtc::load(&SearchOptions::from_env(), &target);
    let nvrtc = nvrtc.map_err(|why| eprintln!("skipped: {why}")).ok()?;
    let request = Request { source: SOURCE, name: "/tilewright/reverse.cu", target: &target, options: &[] };
    let module = gpu.load(&nvrtc.compile(&request).unwrap().cubin).unwrap();
    Some((gpu, module))
}

fn to_bytes(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

#[test]
fn a_kernel_runs_and_is_timed() {
    let Some((gpu, module)) = loaded() else { return };
    let numbers: Vec<i32> = (0..2 * THREADS as i32).collect();
    let size = to_bytes(&numbers).len() as u64;
    let (input, output) = (gpu.alloc(size).unwrap(), gpu.alloc(size).unwrap());
    gpu.upload(&input, 0, &to_bytes(&numbers)).unwrap();
    gpu.fill(&output, 0xff).unwrap();

    for cluster in [None, Some([2, 1, 1])] {
        // Clusters came with compute capability 9.0.
        if cluster.is_some() && gpu.info().compute_capability.0 < 9 {
            continue;
        }
        let launch = Launch {
            kernel: "reverse",
            grid: [2, 1, 1],
            block: [THREADS, 1, 1],
            cluster,
            dynamic_shared_bytes: SHARED_BYTES,
            overlaps_previous: false,
        };
        let args =
            [GpuArg::Buffer(&input, 0), GpuArg::Buffer(&output, 0), GpuArg::Bytes(1000i32.to_ne_bytes().to_vec())];
        let milliseconds = gpu.time(3, || gpu.launch(&module, &launch, &args)).unwrap();
        assert!(milliseconds > 0.0);
        gpu.synchronize().unwrap();
    }

    let expected: Vec<i32> =
        numbers.chunks(THREADS as usize).flat_map(|part| part.iter().rev().map(|number| number + 1000)).collect();
    assert_eq!(gpu.download(&output, 0, size).unwrap(), to_bytes(&expected));
}

#[test]
fn what_does_not_fit_is_an_error() {
    let Some((gpu, module)) = loaded() else { return };
    let launch = Launch {
        kernel: "reverse",
        grid: [1, 1, 1],
        block: [1, 1, 1],
        cluster: None,
        dynamic_shared_bytes: 4,
        overlaps_previous: false,
    };
    assert_eq!(
        gpu.launch(&module, &launch, &[]).unwrap_err().to_string(),
        "kernel `reverse` cannot be launched: parameter count 3, but argument count 0"
    );
    assert_eq!(
        gpu.launch(&module, &Launch { kernel: "absent", ..launch }, &[]).unwrap_err().to_string(),
        "kernel `absent` cannot be launched: the cubin has no kernel of this name"
    );
    let buffer = gpu.alloc(8).unwrap();
    assert!(gpu.upload(&buffer, 4, &[0; 8]).is_err());
    assert!(gpu.load(b"not a cubin").is_err());
}
