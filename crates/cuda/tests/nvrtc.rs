//! Compiling with a real NVRTC. Without one these tests say so and pass, unless `TILEWRIGHT_REQUIRE_NVRTC=1`.

use std::io::Write;

use tilewright_cuda::{
    CompileCache, CudaError, LogLine, Nvrtc, Request, SearchOptions, Severity, compile_cached, probe,
};

/// Records a skipped test in the file that `TILEWRIGHT_SKIPPED` names, for `cargo xtask test` to list.
fn tell_skipped() {
    let Some(path) = std::env::var_os("TILEWRIGHT_SKIPPED") else { return };
    let name = std::thread::current().name().unwrap_or("a test").to_string();
    if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path) {
        // One write, so that parallel tests do not interleave their lines.
        let _ = file.write_all(format!("cuda: {name}\n").as_bytes());
    }
}

fn nvrtc() -> Option<Nvrtc> {
    match Nvrtc::load(&SearchOptions::from_env(), "sm_100a") {
        Ok(nvrtc) => Some(nvrtc),
        Err(error) => {
            let required = std::env::var_os("TILEWRIGHT_REQUIRE_NVRTC").is_some_and(|text| text == "1");
            assert!(!required, "{error}");
            tell_skipped();
            None
        }
    }
}

fn request(source: &str) -> Request<'_> {
    Request { source, name: "/tilewright/k.cu", target: "sm_100a", options: &[] }
}

const GOOD: &str = r#"
extern "C" __global__ void k(float* p) {
  __shared__ float a[256];
  a[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = a[threadIdx.x ^ 1];
}
"#;

fn rejection(nvrtc: &Nvrtc, source: &str) -> (Vec<LogLine>, Option<String>) {
    match nvrtc.compile(&request(source)) {
        Err(CudaError::Compile { log, ptx }) => (log, ptx),
        other => panic!("expected a rejection, got {other:?}"),
    }
}

#[test]
fn a_kernel_compiles_to_ptx_cubin_and_resources() {
    let Some(nvrtc) = nvrtc() else { return };
    let compiled = nvrtc.compile(&request(GOOD)).unwrap();
    assert!(compiled.ptx.contains(".target sm_100a"));
    assert!(compiled.ptx.contains("\"/tilewright/k.cu\""));
    assert!(compiled.cubin.starts_with(b"\x7fELF"));
    assert!(compiled.log.is_empty(), "{:?}", compiled.log);
    let [kernel] = &compiled.resources[..] else {
        panic!("one kernel, got {:?}", compiled.resources);
    };
    assert_eq!((kernel.kernel.as_str(), kernel.shared_bytes, kernel.barriers), ("k", 1024, 1));
    assert!(kernel.registers > 0);
}

#[test]
fn the_same_text_gives_the_same_bytes() {
    let Some(nvrtc) = nvrtc() else { return };
    assert_eq!(nvrtc.compile(&request(GOOD)), nvrtc.compile(&request(GOOD)));
}

#[test]
fn a_front_end_error_has_its_line_and_no_ptx() {
    let Some(nvrtc) = nvrtc() else { return };
    let (log, ptx) = rejection(&nvrtc, "__global__ void k(float* p) {\n  p[0] = nothing;\n}\n");
    assert_eq!(
        log,
        [LogLine { severity: Severity::Error, line: Some(2), text: "identifier \"nothing\" is undefined".to_string() }]
    );
    assert_eq!(ptx, None);
}

#[test]
fn an_error_in_inline_assembly_has_the_line_of_the_cuda_text() {
    let Some(nvrtc) = nvrtc() else { return };
    let source = "extern \"C\" __global__ void k() {\n\n  asm volatile(\"mov.bogus.b32 %r1, %r1;\");\n}\n";
    let (log, ptx) = rejection(&nvrtc, source);
    assert!(log.iter().any(|line| line.line == Some(3) && line.text == "Unknown modifier '.bogus'"), "{log:?}");
    assert!(ptx.is_some_and(|text| text.contains("mov.bogus.b32")));
}

#[test]
fn bad_targets_and_options_are_told_apart() {
    let Some(nvrtc) = nvrtc() else { return };
    for target in ["sm_10", "sm_80a", "compute_100a", "banana"] {
        let result = nvrtc.compile(&Request { target, ..request(GOOD) });
        assert!(matches!(result, Err(CudaError::UnsupportedTarget { .. })), "{target}: {result:?}");
    }
    let options = ["--nope".to_string()];
    let result = nvrtc.compile(&Request { options: &options, ..request(GOOD) });
    assert_eq!(result, Err(CudaError::BadOption { message: "unrecognized option --nope found".to_string() }));
}

#[test]
fn the_cache_answers_the_second_time_and_recovers_from_damage() {
    let Some(nvrtc) = nvrtc() else { return };
    let root = tempfile::tempdir().unwrap();
    let cache = CompileCache::new(root.path().to_path_buf());
    let (first, notes) = compile_cached(&nvrtc, Some(&cache), &request(GOOD)).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let (second, _) = compile_cached(&nvrtc, Some(&cache), &request(GOOD)).unwrap();
    assert_eq!(first, second);

    let entry = std::fs::read_dir(root.path()).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&entry, "damaged").unwrap();
    let (third, notes) = compile_cached(&nvrtc, Some(&cache), &request(GOOD)).unwrap();
    assert_eq!(first, third);
    assert_eq!(notes.len(), 1);
}

#[test]
fn what_is_loaded_is_among_what_was_probed() {
    let Some(nvrtc) = nvrtc() else { return };
    let candidates = probe(&SearchOptions::from_env(), "sm_100a");
    assert!(candidates.iter().any(|candidate| candidate.version == Some(nvrtc.version())));
    assert!(nvrtc.architectures().contains(&100));
}

#[test]
fn a_target_no_library_knows_is_named() {
    if nvrtc().is_none() {
        return;
    }
    let error = Nvrtc::load(&SearchOptions::from_env(), "sm_10").expect_err("sm_10 is long gone");
    assert!(matches!(error, CudaError::UnsupportedTarget { .. }), "{error}");
}
