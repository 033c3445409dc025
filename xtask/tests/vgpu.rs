//! The verb `vgpu` from outside: a launch file, its statuses, and its JSON.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use tilewright::vgpu::launch_file::{Array, ElementType};

/// Multiplies 32 numbers by a factor, through shared memory and a barrier.
const KERNEL: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n\
    .visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 factor)\n{\n.reg .b32 %r<4>;\n.reg .f32 %f<4>;\n\
    .reg .b64 %rd<8>;\n.shared .align 4 .b8 tile[128];\nld.param.u64 %rd1, [x];\nld.param.u64 %rd2, [y];\n\
    ld.param.f32 %f1, [factor];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, 4;\nadd.u64 %rd4, %rd1, %rd3;\n\
    ld.global.f32 %f2, [%rd4];\nshl.b32 %r2, %r1, 2;\nmov.u32 %r3, tile;\nadd.u32 %r2, %r2, %r3;\n\
    mul.f32 %f2, %f2, %f1;\nst.shared.f32 [%r2], %f2;\nbar.sync 0;\nld.shared.f32 %f3, [%r2];\nadd.u64 %rd5, %rd2, %rd3;\n\
    st.global.f32 [%rd5], %f3;\nret;\n}\n";

const LAUNCH: &str = r#"{
  "kernel": "scale", "grid": [1, 1, 1], "block": [32, 1, 1],
  "buffers": {"x": {"npy": "x.npy"}, "y": {"poison": {"dtype": "f32", "shape": [32]}}},
  "args": [{"buffer": "x"}, {"buffer": "y"}, {"f32": 2.5}],
  "expect": [{"buffer": "y", "dtype": "f32", "npy": "y.npy"}]
}"#;

/// A folder with the kernel, the launch file, and its arrays.
fn folder(kernel: &str, launch: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let floats = |factor: f32| (0..32u8).flat_map(|at| (f32::from(at) * factor).to_le_bytes()).collect();
    for (name, factor) in [("x.npy", 1.0), ("y.npy", 2.5)] {
        let array = Array { dtype: ElementType::F32, shape: vec![32], bytes: floats(factor) };
        std::fs::write(folder.path().join(name), array.to_file()).expect("it is written");
    }
    std::fs::write(folder.path().join("k.ptx"), kernel).expect("it is written");
    std::fs::write(folder.path().join("launch.json"), launch).expect("it is written");
    folder
}

fn vgpu(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["vgpu", "k.ptx", "--launch", "launch.json"]).args(arguments);
    command.current_dir(folder).env("NO_COLOR", "1").output().expect("the tool starts")
}

/// Status, standard output and standard error.
fn ran(kernel: &str, launch: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = vgpu(folder(kernel, launch).path(), arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_launch_that_is_right_ends_with_0() {
    let (status, out, _) = ran(KERNEL, LAUNCH, &["--schedules", "5"]);
    assert_eq!(status, Some(0));
    assert_eq!(
        out,
        "scale: 544 thread instructions, 17 warp instructions\nok: expectations that hold: 1, in 5 schedules\n"
    );
}

#[test]
fn an_element_that_differs_ends_with_1() {
    let (status, out, _) = ran(KERNEL, &LAUNCH.replace("2.5}", "2.25}"), &[]);
    assert_eq!(status, Some(1));
    assert!(
        out.ends_with("differs: `y`[1] is 2.25; expected: 2.5; elements that differ: 31 of 32 (seed 0)\n"),
        "{out}"
    );
}

#[test]
fn a_fault_ends_with_2() {
    let kernel = KERNEL.replace("ld.shared.f32 %f3, [%r2];", "ld.shared.f32 %f3, [tile];");
    let (status, out, _) = ran(&kernel.replace("bar.sync 0;\n", ""), LAUNCH, &[]);
    assert_eq!(status, Some(2));
    assert!(out.contains("fault: race: ") && out.contains("PTX line 22 `ld.shared"), "{out}");
    let (status, out, _) = ran(&KERNEL.replace("st.global.f32 [%rd5], %f3;\n", ""), LAUNCH, &[]);
    assert_eq!(status, Some(2));
    assert!(out.ends_with("fault: uninitialized_read: byte 0 of `y` is expected and was never written\n"), "{out}");
}

#[test]
fn unsupported_instructions_end_with_3_and_are_all_named() {
    let kernel = KERNEL
        .replace("bar.sync 0;\n", "tex.1d.v4.f32.f32 {%f1, %f1, %f1, %f1}, [x, {%f1}];\nsuq.width.b32 %r1, [x];\n");
    let (status, _, error) = ran(&kernel, LAUNCH, &[]);
    assert_eq!(status, Some(3));
    assert!(error.contains("PTX line 22: `tex.1d") && error.contains("PTX line 23: `suq.width"), "{error}");
}

#[test]
fn bad_input_ends_with_4_and_its_path() {
    let (status, _, error) = ran(KERNEL, &LAUNCH.replace("{\"buffer\": \"y\"}, {", "{\"buffer\": \"z\"}, {"), &[]);
    assert_eq!(status, Some(4));
    assert!(error.contains("launch.json: args[1].buffer: there is no buffer `z`"), "{error}");
    let (status, _, error) = ran(&KERNEL.replace("%r1, 2;", "%r1 2;"), LAUNCH, &[]);
    assert_eq!(status, Some(4));
    let place = "k.ptx: PTX line 17, column 18: expected `;`, found `2`\n  shl.b32 %r2, %r1 2;\n                   ^\n";
    assert!(error.contains(place), "{error}");
    let (status, _, error) = ran(KERNEL, LAUNCH, &["--dump", "z"]);
    assert_eq!(status, Some(4));
    assert!(error.contains("--dump: there is no buffer `z`; the launch file has `x`, `y`"), "{error}");
}

#[test]
fn nothing_is_written_over_an_input() {
    let folder = folder(KERNEL, LAUNCH);
    let expected = std::fs::read(folder.path().join("y.npy")).expect("it is there");
    let refused = vgpu(folder.path(), &["--dump", "y"]);
    assert_eq!(refused.status.code(), Some(4));
    let said = "error: y.npy is an array that the launch file reads; name another file: `--dump y=FILE.npy`\n";
    assert_eq!(String::from_utf8_lossy(&refused.stderr), said);
    let others: [(&[&str], &str); 5] = [
        (&["--dump", "y=k.ptx"], "k.ptx is the PTX file"),
        (&["--dump", "y=./launch.json"], "./launch.json is the launch file"),
        (&["--html", "k.ptx"], "k.ptx is the PTX file"),
        (&["--html", "x.npy"], "x.npy is an array that the launch file reads"),
        (&["--dump", "y=z.npy", "--dump", "x=./z.npy"], "./z.npy is written by another flag"),
    ];
    for (flags, said) in others {
        let refused = vgpu(folder.path(), flags);
        assert_eq!(refused.status.code(), Some(4), "{flags:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains(said), "{refused:?}");
    }
    assert_eq!(std::fs::read(folder.path().join("y.npy")).expect("it is there"), expected);
    let written = vgpu(folder.path(), &["--dump", "y=got.npy"]);
    assert!(String::from_utf8_lossy(&written.stdout).contains("wrote got.npy\n"), "{written:?}");
}

#[test]
fn the_operands_of_an_instruction_are_traced() {
    let (status, out, _) = ran(KERNEL, LAUNCH, &["--trace", "20,21"]);
    assert_eq!(status, Some(0));
    let wanted = "PTX line 20 `mul.f32 %f2, %f2, %f1`: cta (0, 0, 0) warp 0 lanes 0xffffffff\n  \
                  %f2  0.0, 2.5, .., 77.5  (before: 0.0, 1.0, .., 31.0)\n  %f1  2.5\n\
                  PTX line 21 `st.shared.f32 [%r2], %f2`: cta (0, 0, 0) warp 0 lanes 0xffffffff\n  \
                  [%r2]  `tile` + 0, `tile` + 4, .., `tile` + 124\n  %f2    0.0, 2.5, .., 77.5\nscale: ";
    assert!(out.starts_with(wanted), "{out}");
    // A reduction has its result when the barrier completes.
    let kernel = KERNEL.replace("bar.sync 0;", "bar.red.popc.u32 %r3, 0, 1;");
    let (_, out, _) = ran(&kernel, LAUNCH, &["--trace", "22"]);
    assert!(out.contains("  %r3  32  (before: "), "{out}");
    // The instruction that faults is the last one.
    let (status, out, _) = ran(&KERNEL.replace("[%rd5], %f3", "[%rd5+256], %f3"), LAUNCH, &["--trace", "25"]);
    assert_eq!(status, Some(2));
    assert!(
        out.contains("lanes 0xffffffff, with a fault\n  [%rd5+256]  `y` + 256, `y` + 260, .., `y` + 380\n")
            && out.contains("fault: out_of_bounds"),
        "{out}"
    );
    let (status, _, error) = ran(KERNEL, LAUNCH, &["--trace", "3"]);
    assert_eq!(status, Some(4));
    let said = "--trace: PTX line 3 has no instruction of a kernel that is launched; the nearest lines with one: 10";
    assert!(error.contains(said), "{error}");
}

#[test]
fn notes_are_faults_if_asked() {
    let kernel = KERNEL.replace("bar.sync 0;", "mov.f32 %f2, 0f3f800000;\nst.shared.f32 [tile], %f2;\nbar.sync 0;");
    let kernel = kernel
        .replace("st.shared.f32 [%r2], %f2;\n", "")
        .replace("ld.shared.f32 %f3, [%r2];", "mul.f32 %f3, %f1, 0f3f800000;");
    let launch = LAUNCH.split(",\n  \"expect\"").next().map(|start| format!("{start}\n}}")).expect("the start");
    let (status, out, _) = ran(&kernel, &launch, &[]);
    assert_eq!(status, Some(0), "{out}");
    assert!(out.contains("note: benign_race at PTX line"), "{out}");
    assert_eq!(ran(&kernel, &launch, &["--strict"]).0, Some(2));
}

#[test]
fn without_a_gpu_nothing_is_compared_with_one() {
    if !tilewright::cuda::gpus().is_ok_and(|found| !found.is_empty()) {
        let (status, _, error) = ran(KERNEL, LAUNCH, &["--gpu"]);
        assert_eq!(status, Some(3));
        assert!(error.starts_with("error: --gpu: no GPU here can run sm_"), "{error}");
    }
}

#[test]
fn a_buffer_is_written_as_it_is_expected() {
    let folder = folder(KERNEL, LAUNCH);
    assert!(vgpu(folder.path(), &["--dump", "y=out.npy", "--dump", "x=x_out.npy"]).status.success());
    let read = |name: &str| std::fs::read(folder.path().join(name)).expect("it is there");
    assert_eq!(read("out.npy"), read("y.npy"));
    assert_eq!(Array::parse(&read("x_out.npy")).expect("an array").shape, [128]);
}

/// The keys of an object.
fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn the_json_has_the_keys_of_the_documentation() {
    let (_, out, _) = ran(KERNEL, LAUNCH, &["--json"]);
    let done: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(
        keys(&done),
        BTreeSet::from(["status", "fault", "difference", "seed", "launches", "traces", "wall_seconds", "gpu"])
    );
    let launch = &done["launches"][0];
    assert_eq!(keys(launch), BTreeSet::from(["kernel", "counts", "barriers", "notes"]));
    let counts = ["thread_instructions", "warp_instructions", "opcodes", "accesses", "bulk"];
    assert_eq!(keys(&launch["counts"]), BTreeSet::from(counts));
    let access = [
        "ptx_line",
        "cuda_line",
        "space",
        "buffer",
        "executions",
        "wavefronts",
        "ideal_wavefronts",
        "sectors",
        "ideal_sectors",
        "bytes",
    ];
    assert_eq!(keys(&launch["counts"]["accesses"][0]), BTreeSet::from(access));
    assert_eq!(launch["barriers"][0], serde_json::json!({"id": 0, "phases": 1, "arrivals": 32, "waits": 32}));
    let (_, out, _) = ran(&KERNEL.replace("[%rd5]", "[%rd5+4]"), LAUNCH, &["--json"]);
    let fault: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(fault["status"], "fault");
    let of_fault = ["kind", "message", "at", "cta", "warp", "lanes", "address", "location", "related", "waiting"];
    assert_eq!(keys(&fault["fault"]), BTreeSet::from(of_fault));
    assert_eq!(fault["fault"]["kind"], "out_of_bounds");
    assert_eq!(keys(&fault["fault"]["at"]), BTreeSet::from(["ptx_line", "ptx", "cuda", "inlined_at"]));
    let (_, out, _) = ran(KERNEL, LAUNCH, &["--json", "--trace", "20"]);
    let traced: Value = serde_json::from_str(&out).expect("JSON");
    let of_trace = ["executions", "omitted"];
    assert_eq!(keys(&traced["traces"][0]), BTreeSet::from(of_trace));
    let of_execution = ["ptx_line", "ptx", "cta", "warp", "lanes", "has_faulted", "operands"];
    assert_eq!(keys(&traced["traces"][0]["executions"][0]), BTreeSet::from(of_execution));
    let of_operand = ["name", "before", "after"];
    assert_eq!(keys(&traced["traces"][0]["executions"][0]["operands"][0]), BTreeSet::from(of_operand));
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/vgpu.md")).expect("the page");
    for key in counts.into_iter().chain(access).chain(of_fault).chain(of_trace).chain(of_execution).chain(of_operand) {
        assert!(page.contains(&format!("`{key}`")), "{key} is not documented");
    }
}

#[test]
fn mutants_that_nothing_finds_are_named() {
    let mutate = |kernel: &str| {
        let folder = folder(kernel, LAUNCH);
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.args(["vgpu-mutate", "k.ptx", "--launch", "launch.json"]).current_dir(folder.path());
        let output = command.env("NO_COLOR", "1").output().expect("the tool starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    // Each thread reads its own word, so that the barrier is not needed.
    let (status, text) = mutate(KERNEL);
    assert_eq!(status, Some(1));
    assert!(text.ends_with("mutants 1, survived 1\n  survived: drop barrier at PTX line 22: bar.sync 0;\n"), "{text}");
    // Here it reads that of its neighbour.
    let other = KERNEL.replace("ld.shared.f32 %f3, [%r2];", "xor.b32 %r2, %r2, 4;\nld.shared.f32 %f3, [%r2];");
    let other = other.replace("add.u64 %rd5, %rd2, %rd3;", "xor.b64 %rd3, %rd3, 4;\nadd.u64 %rd5, %rd2, %rd3;");
    let (status, text) = mutate(&other);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("drop barrier             ") && text.ends_with("mutants 1, survived 0\n"), "{text}");
}
