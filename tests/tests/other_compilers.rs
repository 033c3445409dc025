//! Kernels that Triton compiled (`fixtures/triton`) run on the virtual GPU: right, without faults, in several schedules.

use std::path::PathBuf;

use tilewright::vgpu::launch_file::LaunchFile;
use tilewright::vgpu::{Module, Options, run};
use tilewright_tests::toolchain::package;

/// The launch files.
fn launches() -> Vec<PathBuf> {
    let folder = package().join("fixtures/triton");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    found.sort();
    found
}

#[test]
fn kernels_of_triton_are_right() {
    let all = launches();
    assert!(all.len() >= 25, "{}", all.len());
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
