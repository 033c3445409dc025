//! `setup`: fetches the pinned NVRTC with the user's own Python package client, checks its hash, unpacks it.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use sha2::{Digest, Sha256};
use tilewright::cuda::{PINNED_VERSION, SearchOptions, Verdict, nvrtc_cache_dir, probe};
use tilewright::files;
use tilewright::prelude::Target;
use tilewright_tests::machine_code;

use crate::cache_dir::{NO_CACHE_DIR, cache_dir};
use crate::exit::Exit;
use crate::terminal::{byte_bar, print_error, spinner};

/// Arguments of `setup`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Take this wheel instead of fetching one; its hash must be the pinned one.
    #[arg(long, value_name = "FILE")]
    wheel: Option<PathBuf>,
    /// Provision the disassembler too, for `emit --stage sass`.
    #[arg(long)]
    sass: bool,
}

/// A pinned wheel: what is fetched, its hash on this platform, and which of its files are kept.
struct Pinned {
    package: &'static str,
    /// The hash of the wheel for this platform; `None` if there is no wheel for it.
    sha256: Option<&'static str>,
    /// Prefixes of the names of the files that are needed.
    keeps: &'static [&'static str],
    /// What else the user can do if no client works, appended to the error.
    by_hand: &'static str,
    /// Whether the contents of a folder can be used.
    is_usable: fn(&Path) -> bool,
}

fn nvrtc() -> Pinned {
    let sha256 = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        Some("86b4d68058807988b7d9af5b44917a0601e9c337f35ccd657bfb3c759ff8d8bc")
    } else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
        Some("36e4fa2a8ada293f5693d308e531c196ab6f91cf7a0ff479bf96a537d43a6096")
    } else if cfg!(all(target_os = "windows", target_arch = "x86_64")) {
        Some("e8e6c10b251385707ae3abd7b4ee118de6736fd7678d0f0f4eab4d759f679c21")
    } else {
        None
    };
    Pinned {
        package: "nvidia-cuda-nvrtc",
        sha256,
        keeps: &["libnvrtc", "nvrtc"],
        by_hand: ", or download the wheel elsewhere and run `cargo xtask setup --wheel FILE`",
        is_usable: holds_nvrtc,
    }
}

/// Whether the library in this folder can be opened and used.
fn holds_nvrtc(folder: &Path) -> bool {
    let only = SearchOptions { nvrtc_dir: Some(folder.to_path_buf()), ..SearchOptions::default() };
    let found = probe(&only, Target::ALL[0].name());
    found.iter().any(|c| c.path.starts_with(folder) && c.verdict == Verdict::Accepted)
}

fn nvdisasm() -> Pinned {
    let sha256 = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        Some("d3fdbdd49fa53e2e4aacd3db8259d052bd2b049ececdcb69e92e083c6728e7ca")
    } else {
        None
    };
    Pinned {
        package: "nvidia-cuda-nvdisasm",
        sha256,
        keeps: &["nvdisasm"],
        by_hand: "",
        is_usable: |folder| folder.join("nvdisasm").is_file(),
    }
}

/// Why nothing was provisioned.
#[derive(Debug)]
pub(crate) enum SetupError {
    /// This machine lacks something: a package client, a network, a wheel for its platform.
    Missing(String),
    /// A file is damaged or not the expected one, or cannot be written.
    Bad(String),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (SetupError::Missing(text) | SetupError::Bad(text)) = self;
        f.write_str(text)
    }
}

/// The error for a step on a file that failed: `cannot unpack libnvrtc.so.13: no space left on device`.
fn cannot<E: fmt::Display>(what: &str, path: &Path) -> impl FnOnce(E) -> SetupError {
    let what = format!("cannot {what} {}", path.display());
    move |error| SetupError::Bad(format!("{what}: {error}"))
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    let nvrtc = provision_nvrtc(arguments.wheel.as_deref());
    let mut exit = say("NVRTC", nvrtc);
    if arguments.sass && exit == Exit::Done {
        exit = say("nvdisasm", provision_nvdisasm());
    }
    exit
}

fn say(what: &str, provisioned: Result<PathBuf, SetupError>) -> Exit {
    match provisioned {
        Ok(place) => {
            say!("{what} {PINNED_VERSION} is in {}", place.display());
            Exit::Done
        }
        Err(error) => {
            print_error(&error.to_string());
            match error {
                SetupError::Missing(_) => Exit::Unsupported,
                SetupError::Bad(_) => Exit::BadInput,
            }
        }
    }
}

/// Puts the pinned NVRTC into the cache, if it is not there yet; returns its folder.
pub(crate) fn provision_nvrtc(wheel: Option<&Path>) -> Result<PathBuf, SetupError> {
    let cache = cache_dir().map_err(SetupError::Missing)?;
    provision(&nvrtc(), nvrtc_cache_dir(&cache), wheel)
}

/// Puts the pinned disassembler into the cache, if it is not there yet; returns its folder.
pub(crate) fn provision_nvdisasm() -> Result<PathBuf, SetupError> {
    let place = machine_code::pinned().ok_or_else(|| SetupError::Missing(NO_CACHE_DIR.to_string()))?;
    provision(&nvdisasm(), place, None)
}

fn provision(pinned: &Pinned, place: PathBuf, wheel: Option<&Path>) -> Result<PathBuf, SetupError> {
    if wheel.is_none() && place.join(".ok").exists() && (pinned.is_usable)(&place) {
        return Ok(place);
    }
    let expected = pinned
        .sha256
        .ok_or_else(|| SetupError::Missing(format!("no {} is pinned for this platform", pinned.package)))?;
    let parent = place.parent().unwrap_or(Path::new(".")).to_path_buf();
    fs::create_dir_all(&parent).map_err(cannot("create", &parent))?;
    // Everything happens in a temporary folder next to the final one, which is replaced only if all went well.
    let aside = tempfile::tempdir_in(&parent).map_err(cannot("write to", &parent))?;
    let wheel = match wheel {
        Some(file) => {
            check_hash(file, expected)?;
            file.to_path_buf()
        }
        None => fetch(pinned, expected, aside.path())?,
    };
    let unpacked = aside.path().join("unpacked");
    unpack(&wheel, &unpacked, pinned)?;
    if place.exists() {
        fs::remove_dir_all(&place).map_err(cannot("replace", &place))?;
    }
    fs::rename(&unpacked, &place).map_err(cannot("move into", &place))?;
    if !(pinned.is_usable)(&place) {
        let text = format!("{} was unpacked into {}, but cannot be used", pinned.package, place.display());
        return Err(SetupError::Bad(text));
    }
    // Without this file the folder is not used, and is made again.
    fs::write(place.join(".ok"), PINNED_VERSION).map_err(cannot("write to", &place))?;
    Ok(place)
}

/// The size limit of a wheel, in bytes; the pinned ones are below 200 MB.
const MOST_WHEEL_BYTES: u64 = 4 << 30;

/// The package clients that are tried, in this order.
const CLIENTS: [&[&str]; 4] = [&["python3", "-m", "pip"], &["python", "-m", "pip"], &["pip3"], &["pip"]];

fn fetch(pinned: &Pinned, sha256: &str, folder: &Path) -> Result<PathBuf, SetupError> {
    let requirement = format!("{}=={PINNED_VERSION} --hash=sha256:{sha256}\n", pinned.package);
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, requirement).map_err(cannot("write to", folder))?;
    let fetched = first_of(&CLIENTS, |client| {
        let bar = spinner(&format!("fetching {} {PINNED_VERSION} with {}", pinned.package, client.join(" ")));
        // A folder for each client, so that none finds the wheel of another.
        let wheel = ask(client, &requirements, &folder.join(client.join("-")), sha256);
        bar.finish_and_clear();
        wheel
    });
    match fetched {
        Ok((wheel, passed_over)) => {
            for why in passed_over {
                eprintln!("note: skipped {why}");
            }
            Ok(wheel)
        }
        Err(tried) => Err(SetupError::Missing(format!(
            "no Python package client could fetch {} {PINNED_VERSION}; tried\n  {}\ninstall Python with pip{}",
            pinned.package,
            tried.join("\n  "),
            pinned.by_hand
        ))),
    }
}

/// What the first client that works returns, and the errors of those before it; or the errors of all.
fn first_of<T>(
    clients: &[&[&str]],
    mut attempt: impl FnMut(&[&str]) -> Result<T, String>,
) -> Result<(T, Vec<String>), Vec<String>> {
    let mut tried = Vec::new();
    for client in clients {
        match attempt(client) {
            Ok(brought) => return Ok((brought, tried)),
            Err(why) => tried.push(format!("{}: {why}", client.join(" "))),
        }
    }
    Err(tried)
}

/// Fetches the pinned wheel with one client. The error says what happened instead.
fn ask(client: &[&str], requirements: &Path, folder: &Path, sha256: &str) -> Result<PathBuf, String> {
    let output = Command::new(client[0])
        .args(&client[1..])
        .args(["download", "--quiet", "--retries", "2", "--no-deps", "--only-binary=:all:", "--require-hashes", "-r"])
        .arg(requirements)
        .arg("-d")
        .arg(folder)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(text.lines().rfind(|line| line.starts_with("ERROR")).unwrap_or("it failed").to_string());
    }
    let wheel = only_wheel(folder).ok_or("it ended without an error and left no wheel")?;
    let got = digest(&wheel).map_err(|error| error.to_string())?;
    if got == sha256 { Ok(wheel) } else { Err(format!("it left another wheel: sha256 {got}, but {sha256} is pinned")) }
}

fn only_wheel(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|extension| extension == "whl"))
}

fn check_hash(wheel: &Path, expected: &str) -> Result<(), SetupError> {
    let got = digest(wheel)?;
    if got == expected {
        return Ok(());
    }
    let text =
        format!("{} is damaged or a different file: sha256 mismatch\n  want {expected}\n  got  {got}", wheel.display());
    Err(SetupError::Bad(text))
}

/// The sha256 of a wheel, in hexadecimal digits.
fn digest(wheel: &Path) -> Result<String, SetupError> {
    let mut file = open_wheel(wheel)?;
    let mut hasher = Sha256::new();
    let mut block = vec![0u8; 1 << 20];
    loop {
        let read = file.read(&mut block).map_err(cannot("read", wheel))?;
        if read == 0 {
            break;
        }
        hasher.update(&block[..read]);
    }
    let digest: [u8; 32] = hasher.finalize().into();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn open_wheel(wheel: &Path) -> Result<File, SetupError> {
    files::open(wheel, MOST_WHEEL_BYTES).map_err(|error| SetupError::Bad(error.to_string()))
}

/// Unpacks the files that are needed, and the licence, into one flat folder.
fn unpack(wheel: &Path, folder: &Path, pinned: &Pinned) -> Result<(), SetupError> {
    let mut archive = zip::ZipArchive::new(open_wheel(wheel)?).map_err(cannot("unpack the wheel file", wheel))?;
    fs::create_dir_all(folder).map_err(cannot("create", folder))?;
    let wanted = wanted_entries(&mut archive, pinned).map_err(cannot("unpack the wheel file", wheel))?;
    let bar = byte_bar("unpacking", wanted.iter().map(|(_, _, size)| size).sum());
    for (index, name, size) in wanted {
        write_entry(&mut archive, index, &folder.join(&name)).map_err(cannot("unpack", Path::new(&name)))?;
        name_any_version(folder, &name).map_err(cannot("unpack", Path::new(&name)))?;
        bar.inc(size);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Index, name and size of each entry of a wheel that is unpacked.
fn wanted_entries<R: Read + Seek>(
    archive: &mut zip::ZipArchive<R>,
    pinned: &Pinned,
) -> Result<Vec<(usize, String, u64)>, String> {
    let mut wanted = Vec::new();
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| error.to_string())?;
        let path = entry.name().map_err(|error| error.to_string())?;
        let name = path.rsplit('/').next().unwrap_or("").to_string();
        let is_needed = pinned.keeps.iter().any(|start| name.starts_with(start)) && !name.contains(".alt");
        let is_licence = name.starts_with("License") || name.starts_with("LICENSE");
        let is_code = name.contains(".so") || name.ends_with(".dll") || name == "nvdisasm" || name == "nvdisasm.exe";
        if (is_needed && is_code) || is_licence {
            wanted.push((index, name, entry.size()));
        }
    }
    Ok(wanted)
}

fn write_entry<R: Read + Seek>(archive: &mut zip::ZipArchive<R>, index: usize, path: &Path) -> Result<(), String> {
    let mut entry = archive.by_index(index).map_err(|e| e.to_string())?;
    let mode = entry.unix_mode();
    let mut file = File::create(path).map_err(|e| e.to_string())?;
    io::copy(&mut entry, &mut file).map_err(|e| e.to_string())?;
    make_executable(path, mode).map_err(|e| e.to_string())
}

/// Gives NVRTC also the name by which the loader looks for any version of it, so that it is found before another one if its
/// folder comes first in LD_LIBRARY_PATH.
#[cfg(unix)]
fn name_any_version(folder: &Path, name: &str) -> Result<(), String> {
    match name.split_once(".so.") {
        Some(("libnvrtc", _)) => {
            std::os::unix::fs::symlink(name, folder.join("libnvrtc.so")).map_err(|error| error.to_string())
        }
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn name_any_version(_: &Path, _: &str) -> Result<(), String> {
    Ok(())
}

#[cfg(unix)]
fn make_executable(path: &Path, mode: Option<u32>) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let executable = path.file_name().is_some_and(|name| name == "nvdisasm") || mode.is_some_and(|m| m & 0o111 != 0);
    fs::set_permissions(path, fs::Permissions::from_mode(if executable { 0o755 } else { 0o644 }))
}

#[cfg(not(unix))]
fn make_executable(_: &Path, _: Option<u32>) -> io::Result<()> {
    Ok(())
}

/// The first package client that responds, with its version.
pub(crate) fn client() -> Option<String> {
    CLIENTS.iter().find_map(|client| {
        let output = Command::new(client[0]).args(&client[1..]).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_string();
        let version = text.split(" from ").next().unwrap_or("").to_string();
        output.status.success().then(|| format!("{} ({version})", client.join(" ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: [&[&str]; 3] = [&["one"], &["two", "-m", "pip"], &["three"]];

    #[test]
    fn a_client_that_brings_nothing_is_not_the_end() {
        let attempt = |client: &[&str]| if client[0] == "three" { Ok(3) } else { Err("nothing".to_string()) };
        let before = vec!["one: nothing".to_string(), "two -m pip: nothing".to_string()];
        assert_eq!(first_of(&THREE, attempt), Ok((3, before)));
    }

    #[test]
    fn where_no_client_works_each_is_told() {
        let attempt = |client: &[&str]| -> Result<(), String> { Err(format!("{} of three", client.len())) };
        let tried = ["one: 1 of three", "two -m pip: 3 of three", "three: 1 of three"];
        assert_eq!(first_of(&THREE, attempt), Err(tried.map(str::to_string).to_vec()));
    }

    #[test]
    fn a_folder_that_a_client_did_not_make_holds_no_wheel() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(only_wheel(&folder.path().join("absent")), None);
        assert_eq!(only_wheel(folder.path()), None);
    }
}
