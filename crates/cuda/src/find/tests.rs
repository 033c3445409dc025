//! The search order and its verdicts, on made-up folders.

use super::*;
use std::fs;

fn touch(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "not a library").unwrap();
}

fn library(origin: Origin, path: PathBuf) -> Place {
    Place { origin, content: Content::Library(path) }
}

fn loader() -> Place {
    Place { origin: Origin::LoaderPath, content: Content::Loader }
}

#[test]
fn places_come_in_the_documented_order() {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    let cache = nvrtc_cache_dir(&at("cache"));
    for file in [
        at("var/libnvrtc.so.13"),
        at("home/lib64/libnvrtc.so.12"),
        at("path/targets/x86_64-linux/lib/libnvrtc.so"),
        at("system/lib/libnvrtc.so.13"),
        cache.join("libnvrtc.so.13"),
        cache.join(".ok"),
    ] {
        touch(&file);
    }
    let options = SearchOptions {
        nvrtc_dir: Some(at("var")),
        cuda_homes: vec![at("home"), at("path")],
        disabled: false,
        cache_dir: Some(at("cache")),
        cache_mib: None,
    };
    assert_eq!(
        places(&options, &at("system")),
        [
            library(Origin::Variable, at("var/libnvrtc.so.13")),
            library(Origin::CudaHome, at("home/lib64/libnvrtc.so.12")),
            library(Origin::CudaHome, at("path/targets/x86_64-linux/lib/libnvrtc.so")),
            loader(),
            library(Origin::UsrLocalCuda, at("system/lib/libnvrtc.so.13")),
            library(Origin::Cache, cache.join("libnvrtc.so.13")),
        ]
    );
}

#[test]
fn empty_places_say_what_is_missing() {
    let root = tempfile::tempdir().unwrap();
    let options = SearchOptions {
        nvrtc_dir: Some(root.path().join("var")),
        cache_dir: Some(root.path().join("cache")),
        ..SearchOptions::default()
    };
    assert_eq!(
        places(&options, &root.path().join("system")),
        [
            nothing(Origin::Variable, root.path().join("var"), "no libnvrtc.so here"),
            loader(),
            nothing(Origin::UsrLocalCuda, root.path().join("system"), "no libnvrtc.so here"),
            nothing(
                Origin::Cache,
                nvrtc_cache_dir(&root.path().join("cache")),
                "`cargo xtask setup` has not filled it"
            ),
        ]
    );
}

#[test]
fn a_cache_without_its_marker_is_not_used() {
    let root = tempfile::tempdir().unwrap();
    touch(&nvrtc_cache_dir(root.path()).join("libnvrtc.so.13"));
    let options = SearchOptions { cache_dir: Some(root.path().to_path_buf()), ..SearchOptions::default() };
    let last = places(&options, &root.path().join("system")).pop().unwrap();
    assert!(matches!(last.content, Content::Nothing { .. }), "{last:?}");
}

#[test]
fn a_switched_off_search_looks_nowhere() {
    let options =
        SearchOptions { nvrtc_dir: Some(PathBuf::from("/somewhere")), disabled: true, ..SearchOptions::default() };
    assert!(probe(&options, "sm_100a").is_empty());
}

#[test]
fn a_broken_library_is_reported_and_not_fatal() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("libnvrtc.so.13");
    touch(&file);
    let options = SearchOptions { nvrtc_dir: Some(root.path().to_path_buf()), ..SearchOptions::default() };
    let candidates = probe(&options, "sm_100a");
    assert_eq!(candidates[0].path, file);
    assert_eq!(candidates[0].version, None);
    assert!(matches!(candidates[0].verdict, Verdict::Rejected(_)));
}

#[test]
fn version_and_target_decide() {
    assert_eq!(judge((12, 8), &[90, 100], "sm_100a"), Verdict::Accepted);
    let rejected = |version, target| match judge(version, &[80, 90], target) {
        Verdict::Rejected(why) => why,
        Verdict::Accepted => "accepted".to_string(),
    };
    assert_eq!(rejected((12, 6), "sm_90a"), "version 12.6 is older than 12.8");
    assert_eq!(rejected((13, 0), "sm_100a"), "version 13.0 does not support sm_100a, only sm_80, sm_90");
    assert_eq!(rejected((13, 0), "banana"), "`banana` is not a target: write sm_ and a number, such as sm_100a");
}

#[test]
fn a_library_that_lacks_the_target_is_named_before_missing_ones() {
    let candidate = |version, architectures: &[u32]| Candidate {
        origin: Origin::Variable,
        path: PathBuf::from("/a/libnvrtc.so"),
        version,
        architectures: architectures.to_vec(),
        verdict: Verdict::Rejected("why".to_string()),
    };
    let missing = candidate(None, &[]);
    let lacking = candidate(Some((12, 9)), &[90, 100]);
    assert_eq!(
        none_usable("sm_107a", vec![missing.clone(), lacking]),
        CudaError::UnsupportedTarget {
            target: "sm_107a".to_string(),
            nvrtc: PathBuf::from("/a/libnvrtc.so"),
            version: (12, 9),
            architectures: vec![90, 100],
        }
    );
    assert_eq!(none_usable("sm_107a", vec![missing.clone()]), CudaError::NvrtcNotFound { candidates: vec![missing] });
}

#[test]
fn the_environment_is_read_by_name() {
    let options = SearchOptions::from_lookup(|name| match name {
        "TILEWRIGHT_NVRTC" => Some("off".into()),
        "CUDA_HOME" | "CUDA_PATH" => Some("/opt/cuda".into()),
        "HOME" => Some("/home/me".into()),
        "XDG_CACHE_HOME" => Some("".into()),
        "TILEWRIGHT_CACHE_MIB" => Some("64".into()),
        _ => None,
    });
    assert_eq!(
        options,
        SearchOptions {
            nvrtc_dir: None,
            cuda_homes: vec![PathBuf::from("/opt/cuda")],
            disabled: true,
            cache_dir: Some(PathBuf::from("/home/me/.cache/tilewright")),
            cache_mib: Some("64".to_string()),
        }
    );
}

#[test]
fn the_cache_folder_follows_the_xdg_rules() {
    let path = |text: &str| Some(PathBuf::from(text));
    assert_eq!(cache_dir(path("/x"), path("/h")), path("/x/tilewright"));
    assert_eq!(cache_dir(path("relative"), path("/h")), path("/h/.cache/tilewright"));
    assert_eq!(cache_dir(None, None), None);
    assert_eq!(nvrtc_cache_dir(Path::new("/x/tilewright")), PathBuf::from("/x/tilewright/nvrtc/13.5.37"));
}
