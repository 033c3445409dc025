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
    assert!(all.len() >= 14, "{}", all.len());
    for path in all {
        let name = path.display();
        let read = |path: PathBuf| std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let module = Module::parse(&read(path.with_extension("ptx"))).unwrap_or_else(|error| panic!("{name}: {error}"));
        let folder = path.parent().expect("a folder");
        let file = LaunchFile::parse(&read(path.clone()), folder, &module, 1 << 30);
        let file = file.unwrap_or_else(|error| panic!("{name}: {error}"));
        for seed in 0..5 {
            let mut memory = file.memory.clone();
            let options = file.options(Options { seed, ..Options::default() });
            for launch in &file.launches {
                run(&module, launch, &mut memory, &options)
                    .unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
            }
            assert_eq!(file.difference(&memory), None, "{name}, seed {seed}");
            assert_eq!(file.unwritten(&memory), None, "{name}, seed {seed}");
        }
    }
}
