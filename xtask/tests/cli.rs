//! The commands as a user calls them: what they print, and how they exit.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tilewright_tests::toolchain::workspace;

fn xtask(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(arguments).current_dir(workspace());
    command
}

struct Said {
    status: i32,
    out: String,
    err: String,
}

fn said(command: &mut Command) -> Said {
    let Output { status, stdout, stderr } = command.output().expect("the command starts");
    Said {
        status: status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&stdout).into_owned(),
        err: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

fn say(arguments: &[&str]) -> Said {
    said(&mut xtask(arguments))
}

/// Whether CUDA text can be compiled. If not, the test is skipped, which fails if NVRTC is required.
fn has_nvrtc(test: &str) -> bool {
    let found = tilewright_tests::toolchain::toolchain().nvrtc("sm_100a").is_ok();
    if !found {
        tilewright_tests::toolchain::skip(&format!("cli: {test}"));
    }
    found
}

#[test]
fn run_kernel_ends_with_ok() {
    for kernel in ["sf_transpose", "sf_transpose_global", "warp_transpose"] {
        for target in ["sm_100a", "sm_90a"] {
            let said = say(&["run-kernel", kernel, "--target", target, "--device", "virtual"]);
            assert_eq!((said.status, said.out.lines().last()), (0, Some("ok")), "{}{}", said.out, said.err);
            assert!(
                said.out.contains("0 spills") && said.out.contains("virtual GPU (functional, not timed)"),
                "{}",
                said.out
            );
        }
    }
}

#[test]
fn piped_output_has_no_escape_sequences_and_json_is_one_object() {
    let said = say(&["run-kernel", "sf_transpose", "--device", "virtual", "--json"]);
    assert!(!said.out.contains('\x1b') && !said.err.contains('\x1b'));
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with('{') && lines[0].contains("\"ok\":true"), "{}", said.out);
}

#[test]
fn what_is_unknown_is_bad_input_with_a_hint() {
    let cases: &[(&[&str], &str)] = &[
        (&["run-kernel", "sf_transpos"], "did you mean `sf_transpose`?"),
        (&["run-kernel", "nothing_like_it"], "the kernels are adamw, argmax, attention, attention_decode"),
        (&["run-kernel", "sf_transpose", "--target", "sm_80"], "the targets are sm_100a and sm_90a"),
        (&["run-kernel", "warp_transpose", "--shape", "depth=3"], "it has rows, cols, tiles"),
        (&["run-kernel", "warp_transpose", "--shape", "rows"], "write it as rows=32"),
        (&["run-kernel", "warp_transpose", "--shape", "rows=0"], "a size must be between 1 and 2^30"),
        (&["run-kernel", "warp_transpose", "--dtype", "i64"], "it is built for b32, b8, b16, b64, b128, f32"),
        (&["run-kernel", "sf_transpose", "--dtype", "float"], "`float` is not a dtype"),
        (&["run-kernel", "sf_transpose", "--device", "tpu"], "the devices are auto, gpu and virtual"),
        (&["run-kernel", "sf_transpose", "--variant", "fastest"], "there is no variant `fastest`"),
        (&["run-kernel", "sf_transpose", "--cuda", "no/such/file.cu"], "cannot read no/such/file.cu"),
        (
            &["emit", "sf_transpose", "--stage", "tiles"],
            "the stages are tile, layouts, graph, thread, plan, cuda, ptx, sass",
        ),
        (&["why", "softmax", "vv"], "`softmax` has no buffer `vv`; did you mean `v`?"),
        (&["why", "softmax", "nothing_like_it"], "the buffers are x, y, v, max, sum"),
        (&["why", "softmaks", "v"], "did you mean `softmax`?"),
        (&["no-such-verb"], "unrecognized subcommand"),
    ];
    for (arguments, hint) in cases {
        let said = say(arguments);
        assert_eq!(said.status, 4, "{arguments:?}: {}", said.err);
        assert!(said.err.contains(hint), "{arguments:?}: {}", said.err);
    }
}

/// Reading one of these would never end: an endless device, and a FIFO without a writer.
#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_not_read() {
    let folder = tempfile_folder();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo starts").success());
    let fifo = fifo.display().to_string();
    for (file, what) in [("/dev/zero", "a character device"), (fifo.as_str(), "a FIFO")] {
        let table = format!("@{file}");
        let cases: [&[&str]; 3] =
            [&["layout", &table], &["run-kernel", "sf_transpose", "--cuda", file], &["setup", "--wheel", file]];
        for arguments in cases {
            let said = said(xtask(arguments).env("XDG_CACHE_HOME", folder.path()));
            assert_eq!(said.status, 4, "{arguments:?}: {}", said.err);
            let told = format!("cannot read {file}: it is {what}; a regular file of at most ");
            assert!(said.err.contains(&told), "{arguments:?}: {}", said.err);
        }
    }
}

/// What `--json` prints for a command that fails: one object, and nothing else.
fn json_error(arguments: &[&str], status: i32) -> Value {
    let said = say(arguments);
    assert_eq!(said.status, status, "{arguments:?}: {}", said.err);
    assert!(!said.err.is_empty(), "{arguments:?}: the text is on stderr as well");
    assert_eq!(said.out.lines().count(), 1, "{arguments:?}: {}", said.out);
    let told: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(told["ok"], false, "{told}");
    told
}

#[test]
fn errors_are_json_too_for_every_verb_that_has_json() {
    let cases: &[(&[&str], &str)] = &[
        (&["run-kernel", "sf_transpos", "--json"], "did you mean `sf_transpose`?"),
        (&["run-kernel", "sf_transpose", "--device", "tpu", "--json"], "the devices are auto, gpu and virtual"),
        (&["run-kernel", "sf_transpose", "--max-instructions", "0", "--json"], "invalid value '0'"),
        (&["why", "softmax", "vv", "--json"], "did you mean `v`?"),
        (&["layout", "S[8:1]", "--dtype", "f33", "--json"], "f33"),
        (&["list", "--json", "everything"], "unexpected argument 'everything'"),
        (&["bench", "--json", "everything"], "unexpected argument 'everything'"),
        (&["fuzz", "--json", "--device", "virtual"], "required arguments were not provided"),
    ];
    for (arguments, message) in cases {
        let told = json_error(arguments, 4);
        assert_eq!(told["status"], "bad_input", "{told}");
        assert!(told["diagnostics"][0]["message"].as_str().is_some_and(|text| text.contains(message)), "{told}");
    }
}

#[test]
fn errors_with_codes_are_whole_in_json() {
    let told = json_error(&["layout", "S[(8,2):(4@)]", "--json"], 4);
    let notation = &told["diagnostics"][0];
    assert_eq!((&notation["code"], &notation["snippet"]["start"]), (&json!("L0101"), &json!(11)), "{notation}");
    assert!(notation["help"][0].as_str().is_some_and(|help| help.starts_with("legal, for example")), "{notation}");
    let tile = ["run-kernel", "warp_transpose", "--shape", "rows=120", "--shape", "cols=119", "--json"];
    let told = json_error(&tile, 4);
    let refused = &told["diagnostics"][0];
    assert_eq!(refused["code"], "P0402", "{refused}");
    let place = refused["labels"][0]["span"].as_str().unwrap_or_default();
    assert!(place.starts_with("kernels/src/warp_transpose.rs:"), "{refused}");
}

#[test]
fn a_result_has_no_errors_beside_it() {
    let said = say(&["why", "softmax", "max", "--json"]);
    assert_eq!((said.status, said.out.lines().count()), (0, 1));
    assert!(!said.out.contains("diagnostics"), "{}", said.out);
    // JSON was not requested.
    assert_eq!(say(&["why", "softmax", "vv"]).out, "");
}

#[test]
fn a_kernel_that_executes_too_much_is_stopped_with_its_line_and_a_way_on() {
    let run = |limit| say(&["run-kernel", "sf_transpose", "--device", "virtual", "--max-instructions", limit]);
    let stopped = run("20");
    assert_eq!(stopped.status, 2);
    for word in [
        "error[R0605]: step_limit: the CTA has not ended after 640 \
         thread instructions (block size 32, limit 20 per thread)",
        "--> kernels/src/sf_transpose.rs:",
        "here: CUDA line",
        "`run-kernel --max-instructions N`",
    ] {
        assert!(stopped.err.contains(word), "{word}: {}", stopped.err);
    }
    assert_eq!(run("500").status, 0);
    let told =
        json_error(&["run-kernel", "sf_transpose", "--device", "virtual", "--max-instructions", "20", "--json"], 2);
    assert_eq!((&told["status"], &told["diagnostics"][0]["code"]), (&json!("fault"), &json!("R0605")), "{told}");
}

#[test]
fn counted_lines_behind_the_first_40_are_summed_up_by_op() {
    let shape = ["--dtype", "b16", "--shape", "rows=30", "--shape", "cols=34"];
    let arguments = [&["run-kernel", "warp_transpose", "--device", "virtual"][..], &shape].concat();
    let summed = say(&arguments).out;
    let all = say(&[&arguments[..], &["--all"]].concat()).out;
    let counted = |out: &str| -> Vec<String> {
        out.lines().filter(|line| line.starts_with("counted ")).map(str::to_string).collect()
    };
    let (all_lines, lines) = (counted(&all), counted(&summed));
    assert!(all_lines.len() > 100 && lines.len() < 60, "{summed}");
    assert_eq!(all_lines[..40], lines[..40]);
    assert!(lines[40..].iter().any(|line| line.contains(" at kernels/src/warp_transpose.rs:")), "{summed}");
    let note = format!("note       lines after the first 40 ({} more) are summed up by op", all_lines.len() - 40);
    assert!(summed.contains(&note) && summed.contains("--all prints all"), "{summed}");
    assert!(!all.contains("summed up"), "{all}");
}

/// A command that starts `cargo VERB ...`, with a cargo that is this script.
fn say_with_cargo(arguments: &[&str], verb: &str, script: &str) -> Said {
    let folder = tempfile_folder();
    // `sh VERB ...` runs the file of this name in its folder.
    std::fs::write(folder.path().join(verb), script).expect("a file");
    let mut command = xtask(arguments);
    said(command.current_dir(folder.path()).env("CARGO", "sh").env("TILEWRIGHT_NVRTC", "off"))
}

fn test_with_cargo(script: &str) -> Said {
    say_with_cargo(&["test", "a_name"], "test", script)
}

#[test]
fn a_command_that_is_built_optimised_ends_as_it_ends_there() {
    // An optimised build would run the command itself.
    if !cfg!(debug_assertions) {
        return;
    }
    let fuzz = |script: &str| say_with_cargo(&["fuzz", "--seed", "7", "--json"], "run", script);
    let said = fuzz("echo \"$@\"");
    assert_eq!(
        (said.status, said.out.trim_end()),
        (0, "--quiet --profile fuzz --package xtask -- fuzz --seed 7 --json")
    );
    for status in [1, 2, 3, 4] {
        let said = fuzz(&format!("exit {status}"));
        assert_eq!((said.status, said.out.as_str()), (status, ""), "the error was reported there: {}", said.err);
    }
    let broken = fuzz("exit 101");
    assert_eq!(broken.status, 3, "{}", broken.err);
    assert!(broken.out.contains("cannot be built in the profile `fuzz`"), "{}", broken.out);
}

#[test]
fn a_name_that_no_test_has_is_bad_input() {
    let none = "echo 'test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s'";
    let said = test_with_cargo(none);
    assert_eq!(said.status, 4, "{}{}", said.out, said.err);
    assert!(said.err.contains("no test has `a_name` in its name"), "{}", said.err);
    assert!(said.out.contains("9 filtered out"), "cargo's output is forwarded: {}", said.out);
    for (script, status) in [
        ("echo 'test result: ok. 1 passed; 0 failed; 0 ignored'", 0),
        ("echo 'end to end: 0 passed (0 from committed PTX), 0 failed, 2 skipped'", 0),
        ("echo 'cli: a name' >> \"$TILEWRIGHT_SKIPPED\"", 0),
        ("echo 'test result: FAILED. 0 passed; 1 failed'; exit 101", 1),
        ("exit 101", 1),
    ] {
        let said = test_with_cargo(script);
        assert_eq!(said.status, status, "{script}: {}{}", said.out, said.err);
    }
}

#[test]
fn a_tile_that_no_variant_takes_is_told_with_all_reasons() {
    let said = say(&["run-kernel", "warp_transpose", "--shape", "rows=120", "--shape", "cols=119"]);
    assert_eq!(said.status, 4);
    assert!(said.err.contains("warp_xor_swizzle: 14280 elements do not divide among 32 lanes"), "{}", said.err);
    assert!(said.err.contains("warp_scheduled: 14280 elements take 447 registers of each lane"), "{}", said.err);
}

#[test]
fn list_names_every_kernel() {
    let said = say(&["list"]);
    for name in ["sf_transpose:", "sf_transpose_global:", "warp_transpose:", "--shape rows=32"] {
        assert!(said.out.contains(name), "{}", said.out);
    }
    assert!(say(&["list", "--json"]).out.starts_with("[{"));
}

#[test]
fn tune_ranks_configurations_of_a_product() {
    let shape = ["--shape", "m=4096", "--shape", "n=4096", "--shape", "k=4096"];
    let said = say(&[&["tune", "matmul", "--best", "3"], &shape[..]].concat());
    let ranked: Vec<f64> =
        said.out.lines().skip(2).take(3).filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    assert!(ranked.len() == 3 && ranked.is_sorted(), "{}", said.out);
    let last = said.out.lines().last().unwrap_or_default();
    assert!(last.starts_with("cargo xtask run-kernel matmul --target sm_100a --dtype bf16 --shape batch=1"), "{last}");
    assert!(say(&["tune", "copy"]).err.contains("the kernel `copy` has no model of its costs"));
}

#[test]
fn emit_shows_the_documented_scheme() {
    let said = say(&["emit", "sf_transpose_global", "--stage", "cuda"]);
    let lines: Vec<&str> = said.out.lines().map(str::trim).collect();
    let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    assert!(said.out.contains("k = 2 (shift 3, mask 3)") && said.out.contains("lane >> 3 & 3"), "{}", said.out);
    assert_eq!((count("r["), count("b["), count("__syncwarp();")), (4, 4, 2), "{}", said.out);
}

#[test]
fn several_stages_have_headings() {
    let said = say(&["emit", "sf_transpose", "--stage", "tile,plan,thread"]);
    let headings: Vec<&str> = said.out.lines().filter(|line| line.starts_with("== ")).collect();
    assert_eq!((said.status, headings), (0, vec!["== tile", "== plan", "== thread"]));
}

/// The number of the first line of a kernel's source with this text.
fn line_of(file: &str, text: &str) -> usize {
    let source = std::fs::read_to_string(workspace().join(file)).expect("the kernel's source");
    1 + source.lines().position(|line| line.contains(text)).expect("the text is there")
}

/// As a new user would ask: which line fixed the layout of each fragment?
#[test]
fn why_and_layouts_name_the_line_that_fixed_each_layout() {
    let file = "kernels/src/softmax.rs";
    let (shared, reduced) = (line_of(file, "k.parallel("), line_of(file, "k.reduce(Max"));
    let max = say(&["why", "softmax", "max"]).out;
    assert!(max.starts_with("max: S["), "{max}");
    assert!(max.contains(&format!("(common pass), {file}:{reduced}, reduce(max, v, max, dimension 1)")), "{max}");
    assert!(max.contains("  from: v\nv: S["), "{max}");
    assert!(max.contains("  total cost: "), "{max}");
    assert!(max.ends_with(&format!("fixed by: {file}:{shared}, parallel i, j\n")), "{max}");
    let layouts = say(&["emit", "softmax", "--stage", "layouts"]).out;
    for fragment in ["v", "max", "sum"] {
        let block = layouts.split("\n\n").find(|block| block.starts_with(&format!("fragment {fragment}: f32(")));
        let block = block.unwrap_or_else(|| panic!("{fragment}: {layouts}"));
        assert!(block.contains("of each thread, ") && block.contains(&format!("{file}:{shared}, ")), "{block}");
    }
    assert_eq!(layouts.matches("\nparallel i, j = S[").count(), 3, "{layouts}");
    assert!(layouts.contains("  read x: 8 elements at once, 32 bytes: the widest vector possible"), "{layouts}");
    assert!(layouts.lines().last().is_some_and(|line| line.starts_with("cost ")), "{layouts}");
}

#[test]
fn why_says_of_memory_that_it_is_as_written_and_gives_json() {
    let memory = say(&["why", "softmax", "x"]);
    assert!(memory.out.contains("it is in global memory, and is laid out as written, kernels/src/softmax.rs:"));
    let json = say(&["why", "softmax", "max", "--json"]);
    assert_eq!((json.status, json.out.lines().count()), (0, 1), "{}", json.err);
    assert!(json.out.contains(r#""pass":"common""#) && json.out.contains(r#""parent":"v""#), "{}", json.out);
}

/// Two processes, two folders: the same bytes.
#[test]
fn emission_depends_on_neither_process_nor_folder() {
    let elsewhere = tempfile_folder();
    for stage in ["cuda", "ptx"] {
        let here = say(&["emit", "warp_transpose", "--stage", stage]);
        let there = said(xtask(&["emit", "warp_transpose", "--stage", stage]).current_dir(elsewhere.path()));
        assert_eq!((here.status, there.status), (0, 0), "{}", there.err);
        assert_eq!(here.out, there.out);
    }
}

fn tempfile_folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Generated CUDA with one text replaced, in a file.
fn edited(folder: &Path, from: &str, to: &str) -> String {
    let text = say(&["emit", "sf_transpose"]).out;
    assert!(text.contains(from), "`{from}` is not in the text");
    let path = folder.join("edited.cu");
    std::fs::write(&path, text.replace(from, to)).expect("a file");
    path.display().to_string()
}

#[test]
fn edited_cuda_decides_the_exit_status() {
    if !has_nvrtc("edited_cuda_decides_the_exit_status") {
        return;
    }
    let folder = tempfile_folder();
    let run = |from, to| {
        say(&["run-kernel", "sf_transpose", "--device", "virtual", "--cuda", &edited(folder.path(), from, to)])
    };
    let same = run("r1[i] = tile[i*32 + lane];", "r1[i] = tile[i*32 + lane]; ");
    assert_eq!((same.status, same.out.lines().last()), (0, Some("ok")), "{}", same.err);
    let wrong = run("r1[i] = tile[i*32 + lane];", "r1[i] = tile[i*32 + lane] + (i == 0 ? 1.0f : 0.0f);");
    assert_eq!((wrong.status, wrong.out.lines().last()), (1, Some("wrong")));
    assert!(
        wrong.out.contains("b[0, 0, 0]: expected -6.75, got -5.75\n  written by CTA (0,0,0), warp 0, lane 0"),
        "{}",
        wrong.out
    );
    let race = run("__syncwarp();", "");
    assert_eq!(race.status, 2);
    assert!(
        race.err.contains("race") && race.err.contains("sf_transpose.rs:32") && race.err.contains("sf_transpose.rs:31"),
        "{}",
        race.err
    );
    assert_eq!(run("r1[i] = tile[i*32 + lane];", "r1[i] = tyle[i*32 + lane];").status, 4);
    let endless =
        run("r1[i] = tile[i*32 + lane];", "{ volatile int again = 1; while (again) {} r1[i] = tile[i*32 + lane]; }");
    assert_eq!(endless.status, 2);
    for word in ["deadlock", "here, in permute_layout(transposed, tile)", "a loop in which nothing changes any more"] {
        assert!(endless.err.contains(word), "{word}: {}", endless.err);
    }
}

#[test]
fn doctor_builds_nothing_and_names_what_is_missing() {
    let empty = tempfile_folder();
    let said = said(
        xtask(&["doctor"])
            .env("XDG_CACHE_HOME", empty.path())
            .env_remove("CUDA_HOME")
            .env_remove("CUDA_PATH")
            .env_remove("TILEWRIGHT_NVRTC_DIR")
            .env_remove("TILEWRIGHT_NVRTC"),
    );
    assert_eq!(said.status, 0);
    for word in ["GPU", "NVRTC for sm_100a", "NVRTC for sm_90a", "nvdisasm", "cache folder", "Python package client"] {
        assert!(said.out.contains(word), "{}", said.out);
    }
    assert_eq!(std::fs::read_dir(empty.path()).expect("the folder").count(), 0, "doctor leaves nothing behind");
}

#[test]
fn a_damaged_wheel_is_refused_and_leaves_nothing() {
    let cache = tempfile_folder();
    let wheel = cache.path().join("damaged.whl");
    std::fs::write(&wheel, b"PK\x03\x04 not all of it").expect("a file");
    let said = said(xtask(&["setup", "--wheel", &wheel.display().to_string()]).env("XDG_CACHE_HOME", cache.path()));
    assert_eq!(said.status, 4);
    assert!(said.err.contains("sha256 mismatch"), "{}", said.err);
    let left = std::fs::read_dir(cache.path().join("tilewright/nvrtc")).into_iter().flatten().count();
    assert_eq!(left, 0, "nothing half-written is left");
}

#[test]
fn setup_without_a_client_says_what_was_tried() {
    let cache = tempfile_folder();
    let said = said(xtask(&["setup"]).env("XDG_CACHE_HOME", cache.path()).env("PATH", cache.path()));
    assert_eq!(said.status, 3);
    assert!(said.err.contains("python3 -m pip") && said.err.contains("setup --wheel FILE"), "{}", said.err);
}

/// The first bytes of a library of 2 MiB. The loader would map all of it, and kill the process by reading the dynamic
/// section in the middle, which the file does not have.
#[cfg(target_os = "linux")]
fn cut_library() -> Vec<u8> {
    let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let mut bytes = vec![0; 64 + 2 * 56];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    // Version, kind, machine, version, where the program headers are, sizes of both headers, two segments.
    for (at, value) in [(6, 1), (16, 3), (18, machine), (20, 1), (32, 64), (52, 64), (54, 56), (56, 2)] {
        bytes[at] = value;
    }
    let segments: [(usize, u64, u64, u64, u64); 2] = [(64, 1, 0, 1 << 21, 1 << 12), (120, 2, 1 << 20, 256, 8)];
    for (start, kind, offset, size, alignment) in segments {
        // Readable and writable.
        let flags: u64 = 6 << 32;
        let fields: [u64; 7] = [kind | flags, offset, offset, offset, size, size, alignment];
        let all: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
        bytes[start..start + 56].copy_from_slice(&all);
    }
    bytes
}

#[cfg(target_os = "linux")]
#[test]
fn a_library_that_is_cut_short_does_not_end_the_command() {
    let (cache, libraries, nothing) = (tempfile_folder(), tempfile_folder(), tempfile_folder());
    for name in ["libnvrtc.so", "libcuda.so"] {
        std::fs::write(libraries.path().join(name), cut_library()).expect("a file");
    }
    let run = |arguments: &[&str], variable: &str| {
        let mut command = xtask(arguments);
        for unset in ["TILEWRIGHT_NVRTC", "TILEWRIGHT_NVRTC_DIR", "CUDA_HOME", "CUDA_PATH"] {
            command.env_remove(unset);
        }
        // Without a client on the path nothing is fetched.
        command.env("XDG_CACHE_HOME", cache.path()).env("PATH", nothing.path());
        said(command.env(variable, libraries.path()))
    };
    let cut = "segment 0 ends at byte 2097152, and the file has 176 bytes";
    for (variable, damaged) in [("TILEWRIGHT_NVRTC_DIR", 1), ("LD_LIBRARY_PATH", 2)] {
        let doctor = run(&["doctor"], variable);
        assert_eq!(doctor.status, 0, "{variable}: {}", doctor.err);
        let told = ["libnvrtc.so", "libcuda.so"].iter().filter(|name| {
            let file = libraries.path().join(name).display().to_string();
            doctor.out.lines().any(|line| line.contains(&file) && line.contains(cut))
        });
        assert_eq!(told.count(), damaged, "{variable}: {}", doctor.out);
        let kernel = run(&["run-kernel", "sf_transpose", "--device", "virtual"], variable);
        assert_eq!((kernel.status, kernel.out.lines().last()), (0, Some("ok")), "{variable}: {}", kernel.err);
    }
}

/// A program that does what the script says.
#[cfg(unix)]
fn program(folder: &Path, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it can be made executable");
}

#[cfg(unix)]
#[test]
fn setup_goes_on_after_a_client_that_leaves_nothing_and_says_what_each_did() {
    let (cache, programs) = (tempfile_folder(), tempfile_folder());
    program(programs.path(), "python3", "exit 0");
    program(programs.path(), "python", "echo 'ERROR: no network' >&2\nexit 1");
    // The last argument is the folder for the wheel.
    let damaged = "for folder; do :; done\n/bin/mkdir -p \"$folder\"\necho damaged > \"$folder/nvrtc.whl\"";
    program(programs.path(), "pip3", damaged);
    let said = said(xtask(&["setup"]).env("XDG_CACHE_HOME", cache.path()).env("PATH", programs.path()));
    assert_eq!(said.status, 3, "{}", said.err);
    for told in [
        "\n  python3 -m pip: it ended without an error and left no wheel\n",
        "\n  python -m pip: ERROR: no network\n",
        "\n  pip3: it left another wheel: sha256 ",
        "\n  pip: ",
    ] {
        assert!(said.err.contains(told), "{told}: {}", said.err);
    }
}

#[test]
fn a_truncated_cache_entry_is_ignored_with_a_note() {
    if !has_nvrtc("a_truncated_cache_entry_is_ignored_with_a_note") {
        return;
    }
    let nvrtc = tilewright_tests::toolchain::toolchain().nvrtc("sm_100a").expect("NVRTC");
    let folder = nvrtc.path().parent().expect("a folder").to_path_buf();
    let cache = tempfile_folder();
    let run = || {
        let mut command = xtask(&["run-kernel", "sf_transpose", "--device", "virtual"]);
        said(command.env("XDG_CACHE_HOME", cache.path()).env("TILEWRIGHT_NVRTC_DIR", &folder))
    };
    assert_eq!(run().status, 0);
    for entry in std::fs::read_dir(cache.path().join("tilewright/kernels")).expect("entries").flatten() {
        let bytes = std::fs::read(entry.path()).expect("an entry");
        std::fs::write(entry.path(), &bytes[..bytes.len() / 2]).expect("it can be cut");
    }
    let again = run();
    assert_eq!((again.status, again.out.lines().last()), (0, Some("ok")));
    assert!(again.err.contains("cannot be used"), "{}", again.err);
}

#[test]
fn a_gpu_that_is_not_there_is_an_ordinary_answer() {
    if tilewright_tests::toolchain::has_gpu_for("sm_100a") {
        return;
    }
    let said = say(&["run-kernel", "sf_transpose", "--device", "gpu"]);
    assert_eq!(said.status, 3);
    assert!(said.err.contains("no GPU here can run sm_100a"), "{}", said.err);
}

#[test]
fn leave_to_spill_changes_nothing_for_a_kernel_that_does_not() {
    let said = say(&["run-kernel", "sf_transpose", "--device", "virtual", "--allow-spills"]);
    assert_eq!((said.status, said.out.lines().last()), (0, Some("ok")), "{}{}", said.out, said.err);
}
