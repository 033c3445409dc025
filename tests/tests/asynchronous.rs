//! CUDA kernels with asynchronous copies, barriers and flags, compiled by NVRTC, on the virtual GPU: right in every
//! schedule, and each wait, fence, barrier and count that is dropped or changed is found.

use tilewright::cuda::Request;
use tilewright::vgpu::{
    Arg, BufferId, Launch, MapAccess, MapElement, MapSwizzle, Memory, Module, Options, RunError, TensorMap, run,
};
use tilewright_tests::mutants::{MutationReport, ending, mutants};
use tilewright_tests::toolchain::{package, skip, toolchain};

/// A kernel with its inputs, and how its results are checked.
struct Case {
    file: &'static str,
    entry: &'static str,
    grid: [u32; 3],
    threads: u32,
    memory: Memory,
    args: Vec<Arg>,
    /// The buffer of the results, and the numbers in it.
    results: (BufferId, Vec<f32>),
}

fn floats(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

fn number(value: i32) -> Arg {
    Arg::Bytes(value.to_le_bytes().to_vec())
}

fn pointer(buffer: BufferId) -> Arg {
    Arg::Buffer { buffer, byte_offset: 0 }
}

/// A product of small integers, so that sums are exact.
fn gemm() -> Case {
    let (m, n, k) = (128usize, 64usize, 160usize);
    let a: Vec<i32> = (0..m * k).map(|at| (at * 7 % 11) as i32 - 5).collect();
    let b: Vec<i32> = (0..k * n).map(|at| (at * 5 % 13) as i32 - 6).collect();
    let halves = |values: &[i32]| values.iter().flat_map(|v| half::f16::from_f32(*v as f32).to_le_bytes()).collect();
    let mut memory = Memory::new();
    let (left, right) = (memory.allocate("a", halves(&a)), memory.allocate("b", halves(&b)));
    let c = memory.allocate_poison("c", m * n * 4);
    let product = |at: usize| (0..k).map(|i| a[at / n * k + i] * b[i * n + at % n]).sum::<i32>() as f32;
    Case {
        file: "cp_async_gemm.cu",
        entry: "cp_async_gemm",
        grid: [1, 2, 1],
        threads: 128,
        memory,
        args: vec![pointer(left), pointer(right), pointer(c), number(n as i32), number(k as i32)],
        results: (c, (0..m * n).map(product).collect()),
    }
}

/// 19 tiles by 2 CTAs, so that every stage is used three times.
fn roles() -> Case {
    let rows = 19 * 16;
    let x = |at: usize| (at % 1000) as f32;
    let mut memory = Memory::new();
    let from = memory.allocate("x", floats((0..rows * 32).map(x)));
    let to = memory.allocate_poison("y", rows * 128);
    let map = |memory: &Memory, buffer: BufferId| {
        let map = TensorMap {
            address: memory.address(buffer).expect("a buffer"),
            element: MapElement::F32,
            fills_nan: false,
            dims: vec![32, rows as u64],
            strides: vec![128],
            access: MapAccess::Tiled(vec![32, 16]),
            element_strides: vec![1, 1],
            swizzle: MapSwizzle::B128,
        };
        map.check().expect("the map is right");
        Arg::Bytes(map.encode().to_vec())
    };
    let args = vec![map(&memory, from), map(&memory, to), number(19)];
    let results = (to, (0..rows * 32).map(|at| 2.0 * x(at) + 1.0).collect());
    Case { file: "tma_roles.cu", entry: "tma_roles", grid: [2, 1, 1], threads: 96, memory, args, results }
}

fn split_sum() -> Case {
    let n = 3000;
    let mut memory = Memory::new();
    let x = memory.allocate("x", floats((0..n).map(|at| (at % 17) as f32)));
    let parts = memory.allocate_poison("parts", 5 * 4);
    let arrived = memory.allocate("arrived", vec![0; 4]);
    let sum = memory.allocate_poison("sum", 4);
    let want = (0..n).map(|at| (at % 17) as f32).sum();
    let args = vec![pointer(x), pointer(parts), pointer(arrived), pointer(sum), number(n)];
    Case {
        file: "split_sum.cu",
        entry: "split_sum",
        grid: [5, 1, 1],
        threads: 128,
        memory,
        args,
        results: (sum, vec![want]),
    }
}

/// A product of bf16 by TMA and a matrix engine: A is (m, k) and B is (n, k), in boxes of `rows` and `columns` times 64.
fn bf16_product(
    memory: &mut Memory,
    [m, n, k]: [usize; 3],
    [rows, columns]: [u64; 2],
) -> (Vec<Arg>, (BufferId, Vec<f32>)) {
    let a: Vec<i32> = (0..m * k).map(|at| (at * 7 % 11) as i32 - 5).collect();
    let b: Vec<i32> = (0..n * k).map(|at| (at * 5 % 13) as i32 - 6).collect();
    let bytes = |values: &[i32]| values.iter().flat_map(|v| half::bf16::from_f32(*v as f32).to_le_bytes()).collect();
    let (left, right) = (memory.allocate("a", bytes(&a)), memory.allocate("b", bytes(&b)));
    let c = memory.allocate_poison("c", m * n * 4);
    let map = |buffer: BufferId, lines: usize, height: u64| {
        let map = TensorMap {
            address: memory.address(buffer).expect("a buffer"),
            element: MapElement::Bf16,
            fills_nan: false,
            dims: vec![k as u64, lines as u64],
            strides: vec![2 * k as u64],
            access: MapAccess::Tiled(vec![64, height]),
            element_strides: vec![1, 1],
            swizzle: MapSwizzle::B128,
        };
        map.check().expect("the map is right");
        Arg::Bytes(map.encode().to_vec())
    };
    let args = vec![map(left, m, rows), map(right, n, columns), pointer(c), number(n as i32), number(k as i32)];
    let product = |at: usize| (0..k).map(|i| a[at / n * k + i] * b[at % n * k + i]).sum::<i32>() as f32;
    (args, (c, (0..m * n).map(product).collect()))
}

/// Five tiles by one CTA, with seven steps of k: stages and accumulators are used several times.
fn tcgen05_gemm() -> Case {
    let mut memory = Memory::new();
    let (mut args, results) = bf16_product(&mut memory, [128, 320, 448], [128, 64]);
    args.push(number(5));
    Case { file: "tcgen05_gemm.cu", entry: "tcgen05_gemm", grid: [1, 1, 1], threads: 224, memory, args, results }
}

fn wgmma_gemm() -> Case {
    let mut memory = Memory::new();
    let (args, results) = bf16_product(&mut memory, [64, 128, 448], [64, 64]);
    Case { file: "wgmma_gemm.cu", entry: "wgmma_gemm", grid: [2, 1, 1], threads: 160, memory, args, results }
}

impl Case {
    /// The targets that have its instructions.
    fn targets(&self) -> &'static [&'static str] {
        match self.file {
            "tcgen05_gemm.cu" => &["sm_100a"],
            "wgmma_gemm.cu" => &["sm_90a"],
            _ => &["sm_90a", "sm_100a"],
        }
    }

    /// The CUDA of the kernel, with what it includes.
    fn source(&self) -> String {
        let read = |file: &str| {
            let path = package().join("fixtures/cuda").join(file);
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        read(self.file).replace("#include \"async.cuh\"\n", &read("async.cuh"))
    }

    /// Runs the kernel in `module` with a seed. Whether the results are right, or what went wrong.
    fn run(&self, module: &Module, seed: u64) -> Result<bool, RunError> {
        let launch = Launch {
            kernel: self.entry.to_string(),
            grid: self.grid,
            block: [self.threads, 1, 1],
            cluster: [1; 3],
            overlaps_previous: false,
            dynamic_shared_bytes: 0,
            args: self.args.clone(),
        };
        let mut memory = self.memory.clone();
        run(
            module,
            &launch,
            &mut memory,
            &Options { seed, max_instructions_per_thread: 50_000, ..Options::default() },
        )?;
        Ok(memory.bytes(self.results.0) == floats(self.results.1.iter().copied()))
    }
}

/// The PTX of a text; `None` without NVRTC.
fn compiled(source: &str, target: &str) -> Option<String> {
    let nvrtc = toolchain().nvrtc(target).ok()?;
    let request = Request { source, name: "/tilewright/asynchronous.cu", target, options: &[] };
    Some(nvrtc.compile(&request).unwrap_or_else(|error| panic!("{error}\n{source}")).ptx)
}

fn parsed(ptx: &str) -> Module {
    Module::parse(ptx).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn they_are_right_in_every_schedule() {
    for case in [gemm(), roles(), split_sum(), tcgen05_gemm(), wgmma_gemm()] {
        for target in case.targets() {
            let Some(ptx) = compiled(&case.source(), target) else { return skip("asynchronous kernels") };
            let module = parsed(&ptx);
            for seed in 0..20 {
                let found =
                    case.run(&module, seed).unwrap_or_else(|error| panic!("{} {target} {seed}: {error}", case.file));
                assert!(found, "{} {target} {seed}: the results differ", case.file);
            }
        }
    }
}

/// A text of a kernel, and what stands in its place.
type Change = (&'static str, &'static str);

/// Whether one of 20 schedules finds a change of a kernel: by a fault or by a wrong result.
fn is_found(case: &Case, (from, to): Change) -> Option<bool> {
    let source = case.source();
    assert!(source.contains(from), "{}: {from}", case.file);
    let module = parsed(&compiled(&source.replacen(from, to, 1), "sm_100a")?);
    Some((0..20).any(|seed| !matches!(case.run(&module, seed), Ok(true))))
}

#[test]
fn what_is_dropped_or_changed_is_found() {
    let of_gemm: [Change; 5] = [
        ("asm volatile(\"cp.async.wait_group %0;\" ::\"n\"(kStages - 2) : \"memory\");", ""),
        ("\"n\"(kStages - 2)", "\"n\"(kStages - 1)"),
        ("    __syncthreads();\n    if (step + kStages", "    if (step + kStages"),
        ("    asm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n    const unsigned", "    const unsigned"),
        ("kStages = 3", "kStages = 1"),
    ];
    let of_roles: [Change; 12] = [
        ("if (step >= kStages) wait(", "if (false) wait("),
        ("(step / kStages - 1) & 1", "(step / kStages) & 1"),
        ("step / kStages & 1);\n    // Each", "(step / kStages + 1) & 1);\n    // Each"),
        ("expect(&barriers.full[stage], kTileBytes)", "expect(&barriers.full[stage], kTileBytes + 16)"),
        ("expect(&barriers.full[stage], kTileBytes)", "expect(&barriers.full[stage], kTileBytes - 16)"),
        ("asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");", ""),
        ("asm volatile(\"bar.sync 1, 64;\" ::: \"memory\");", ""),
        ("asm volatile(\"cp.async.bulk.wait_group.read 0;\" ::: \"memory\");", ""),
        ("asm volatile(\"cp.async.bulk.commit_group;\" ::: \"memory\");", ""),
        ("      arrive(&barriers.empty[stage]);", ""),
        ("init(&barriers.empty[stage], 1)", "init(&barriers.empty[stage], 2)"),
        ("  __syncthreads();\n\n  if (warp == 0)", "  if (warp == 0)"),
    ];
    let of_split: [Change; 4] = [
        ("    __threadfence();\n    is_last", "    is_last"),
        ("1;\n    __threadfence();\n  }", "1;\n  }"),
        ("  }\n  __syncthreads();\n  if (is_last", "  }\n  if (is_last"),
        ("  partial[threadIdx.x] = own;\n  __syncthreads();", "  partial[threadIdx.x] = own;"),
    ];
    for (case, changes) in [(gemm(), &of_gemm[..]), (roles(), &of_roles[..]), (split_sum(), &of_split[..])] {
        for change in changes {
            match is_found(&case, *change) {
                None => return skip("asynchronous kernels"),
                Some(found) => assert!(found, "{}: `{}` is not found", case.file, change.0),
            }
        }
    }
}

#[test]
fn mechanical_changes_of_their_ptx_are_found() {
    let mut report = MutationReport::default();
    for case in [gemm(), roles(), split_sum(), tcgen05_gemm(), wgmma_gemm()] {
        let target = case.targets().last().expect("a target");
        let Some(ptx) = compiled(&case.source(), target) else { return skip("asynchronous kernels") };
        for mutant in mutants(&ptx) {
            report.add(&mutant, &ending(&mutant, 10, &|module, seed| case.run(module, seed)));
        }
    }
    assert!(report.mutants() >= 380, "{report:#?}");
    let opcode = |text: &str| text.split_whitespace().next().unwrap_or_default().trim_end_matches(';').to_string();
    let mut survived: Vec<(&str, String)> =
        report.survivors.iter().map(|(kind, _, text)| (*kind, opcode(text))).collect();
    survived.sort_unstable();
    survived.dedup();
    let equivalent = [
        // The last release of a stage, for which nobody waits.
        ("drop arrival", "mbarrier.arrive.shared::cta.b64"),
        // The last step of the sum in shared memory, whose result its own thread reads.
        ("drop barrier", "bar.sync"),
        // The barrier behind it makes the objects visible; that the engine needs more is not modelled.
        ("drop fence", "fence.mbarrier_init.release.cluster"),
        // Around the barrier after the allocation, which accesses no tensor memory.
        ("drop fence", "tcgen05.fence::after_thread_sync"),
        ("drop fence", "tcgen05.fence::before_thread_sync"),
        // Between products of one accumulator, which nothing else accesses.
        ("drop fence", "wgmma.fence.sync.aligned"),
        // Without one thread of 128: the others of its warp have waited for what the warp reads.
        ("one arrival less", "mbarrier.init.shared::cta.b64"),
    ];
    let equivalent = equivalent.map(|(kind, opcode)| (kind, opcode.to_string()));
    assert_eq!(survived, equivalent, "{report:#?}");
    // Of each kind there may be more that are found: only so many are not.
    assert_eq!(report.survivors.len(), 14, "{report:#?}");
}
