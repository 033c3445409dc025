//! Kernels that Triton and TileLang compiled (`fixtures/triton`, `fixtures/tilelang`) run on the virtual GPU: right, without
//! faults, in several schedules.

use std::path::PathBuf;

use tilewright::runtime::run_launches_on_gpu;
use tilewright::vgpu::launch_file::LaunchFile;
use tilewright::vgpu::{Module, Options, run};
use tilewright_tests::gpu::gpu_for;
use tilewright_tests::toolchain::package;

/// The launch files of a compiler.
fn launches(compiler: &str) -> Vec<PathBuf> {
    let folder = package().join("fixtures").join(compiler);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    found.sort();
    found
}

/// Kernels of TileLang that free tensor memory in one warp without a barrier after the others have read it, and use what they
/// have loaded before the wait. On devices they may be right by chance.
const WITH_TENSOR_MEMORY: [&str; 3] =
    ["tensor_gemm.sm_100a", "tensor_gemm_pipelined.sm_100a", "tensor_gemm_roles.sm_100a"];

#[test]
fn kernels_of_triton_are_right() {
    let all = launches("triton");
    assert!(all.len() >= 25, "{}", all.len());
    are_right(all);
}

#[test]
fn kernels_of_tilelang_are_right() {
    let mut all = launches("tilelang");
    assert!(all.len() >= 10, "{}", all.len());
    all.retain(|path| !WITH_TENSOR_MEMORY.iter().any(|name| path.ends_with(format!("{name}.json"))));
    are_right(all);
}

#[test]
fn what_tilelang_misses_with_tensor_memory_is_found() {
    for (name, is_right_then) in WITH_TENSOR_MEMORY.into_iter().zip([true, false, false]) {
        let path = package().join("fixtures/tilelang").join(format!("{name}.json"));
        let read = |path: PathBuf| std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}"));
        let folder = path.parent().expect("a folder");
        let run_text = |ptx: &str, seed: u64| {
            let module = Module::parse(ptx).unwrap_or_else(|error| panic!("{error}"));
            let file = LaunchFile::parse(&read(path.clone()), folder, &module, 1 << 30);
            let file = file.unwrap_or_else(|error| panic!("{error}"));
            let mut memory = file.memory.clone();
            // All warps name lane 0 of tensor memory.
            let allowed = Options { needs_tensor_fences: false, needs_tensor_lanes: false, ..Options::default() };
            let options = file.options(Options { seed, ..allowed });
            let result = run(&module, &file.launches[0], &mut memory, &options);
            result.map(|_| file.difference(&memory).is_none()).map_err(|error| error.to_string())
        };
        let ptx = read(path.with_extension("ptx"));
        assert!(run_text(&ptx, 0).unwrap_err().starts_with("tmem_misuse: "));
        // A barrier before the branch to the instruction that frees it.
        let at = ptx.find("tcgen05.dealloc").and_then(|at| ptx[..at].rfind(" bra ")).expect("the branch");
        let at = ptx[..at].rfind('\n').expect("a line");
        let mended = format!("{}\nbar.sync 0;{}", &ptx[..at], &ptx[at..]);
        let found = run_text(&mended, 0).unwrap_err();
        assert!(found.starts_with("async_register_hazard: `tcgen05.wait::ld` has not waited"), "{found}");
        let at = mended.find("tcgen05.ld.").and_then(|at| Some(at + mended[at..].find(';')? + 1)).expect("the load");
        let mended = format!("{}\ntcgen05.wait::ld.sync.aligned;{}", &mended[..at], &mended[at..]);
        for seed in 0..5 {
            match run_text(&mended, seed) {
                Ok(is_right) => assert!(is_right && is_right_then, "{name}, seed {seed}"),
                // The stage that a product reads is overwritten before it is complete.
                Err(found) => assert!(found.starts_with("race: ") && !is_right_then, "{name}, seed {seed}: {found}"),
            }
        }
    }
}

#[test]
fn what_a_gpu_can_run_is_right_there_too() {
    for path in launches("triton").into_iter().chain(launches("tilelang")) {
        let name = path.display();
        let read = |path: PathBuf| std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let ptx = read(path.with_extension("ptx"));
        let module = Module::parse(&ptx).unwrap_or_else(|error| panic!("{name}: {error}"));
        let Some(gpu) = gpu_for(module.target()) else { continue };
        let file = LaunchFile::parse(&read(path.clone()), path.parent().expect("a folder"), &module, 1 << 30);
        let file = file.unwrap_or_else(|error| panic!("{name}: {error}"));
        let found = run_launches_on_gpu(&gpu, &ptx, &file.launches, &file.memory, &file.maps);
        let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        for expectation in &file.expectations {
            let id = file.buffer(&expectation.buffer);
            let (_, bytes) = found.buffers.iter().find(|(known, _)| Some(*known) == id).expect("the buffer");
            assert_eq!(expectation.difference(bytes), None, "{name}");
        }
    }
}

fn are_right(all: Vec<PathBuf>) {
    for path in all {
        let name = path.display();
        let read = |path: PathBuf| std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let module = Module::parse(&read(path.with_extension("ptx"))).unwrap_or_else(|error| panic!("{name}: {error}"));
        let folder = path.parent().expect("a folder");
        let file = LaunchFile::parse(&read(path.clone()), folder, &module, 1 << 30);
        let file = file.unwrap_or_else(|error| panic!("{name}: {error}"));
        for seed in 0..5 {
            let mut memory = file.memory.clone();
            // Triton relies on barriers alone between accesses to tensor memory.
            let options = Options { seed, needs_tensor_fences: false, ..Options::default() };
            let options = file.options(options);
            for launch in &file.launches {
                run(&module, launch, &mut memory, &options)
                    .unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
            }
            assert_eq!(file.difference(&memory), None, "{name}, seed {seed}");
            assert_eq!(file.unwritten(&memory), None, "{name}, seed {seed}");
        }
    }
}

#[test]
fn products_of_triton_lack_the_fences_that_the_isa_asks_for() {
    let path = package().join("fixtures/triton/mxf8.sm_100.ptx");
    let read = |path: PathBuf| std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}"));
    let module = Module::parse(&read(path.clone())).unwrap_or_else(|error| panic!("{error}"));
    let folder = path.parent().expect("a folder");
    let file = LaunchFile::parse(&read(path.with_extension("json")), folder, &module, 1 << 30);
    let file = file.unwrap_or_else(|error| panic!("{error}"));
    let options = file.options(Options::default());
    let found = run(&module, &file.launches[0], &mut file.memory.clone(), &options).unwrap_err().to_string();
    assert!(found.contains("`tcgen05.fence::before_thread_sync` and a barrier are missing between them"), "{found}");
}
