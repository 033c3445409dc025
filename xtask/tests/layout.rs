//! The layout tool from outside: what it prints, what it writes, and what it says about wrong input.

use std::path::Path;
use std::process::{Command, Output};

use insta::assert_snapshot;
use tilewright_tests::toolchain::workspace;

fn layout_in(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("layout").args(arguments).current_dir(folder).env("NO_COLOR", "1");
    command.output().expect("the tool starts")
}

fn layout(arguments: &[&str]) -> Output {
    layout_in(Path::new(env!("CARGO_MANIFEST_DIR")), arguments)
}

fn printed(arguments: &[&str]) -> String {
    let output = layout(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_fragment_shows_lanes_and_registers() {
    assert_snapshot!("fragment", printed(&["S[(8,4,2):(4@laneid,1@laneid,1)]"]));
}

#[test]
fn replicas_and_offsets_are_shown() {
    let text = "S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1@m)] + R[2:4@warpid] + 5@warpid";
    assert_snapshot!("replicas", printed(&[text, "--shape", "8,16"]));
}

#[test]
fn the_hardware_view_shows_what_a_lane_holds() {
    assert_snapshot!("hardware", printed(&["mma:m16n8k16:a:f16", "--view", "hardware"]));
}

#[test]
fn an_access_shows_banks_and_wavefronts_and_a_better_swizzle() {
    assert_snapshot!("access", printed(&["S[(8,64):(64,1)]", "--dtype", "f16", "--access", "column:0"]));
    let swizzled = ["S[(8,64):(64,1)]", "--dtype", "f16", "--access", "column:0", "--swizzle", "128B"];
    assert!(printed(&swizzled).contains("column 0: 1 instruction of 2 B per lane, wavefronts 1, ideal 1"));
}

#[test]
fn two_fragments_show_their_difference_and_the_plan() {
    let arguments = ["S[(8,4,2):(4@laneid,1@laneid,1@reg)]", "--to", "S[(4,2,8):(1@laneid,1@reg,4@laneid)]"];
    assert_snapshot!("conversion", printed(&arguments));
}

#[test]
fn two_distributed_tensors_show_the_collective() {
    let from = "S[(2,4,2,4):(1@gpuid_y,4@m,1@gpuid_x,1@m)]";
    let text = printed(&[from, "--to", "S[(2,4,8):(1@gpuid_y,8@m,1@m)] + R[2:1@gpuid_x]"]);
    assert!(text.ends_with("collective      all-gather over gpuid_x, 1 x 64 bytes received per device\n"), "{text}");
}

#[test]
fn every_family_of_the_list_can_be_shown() {
    let list = printed(&["list"]);
    let examples = list.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(' ').next());
    for example in examples {
        assert!(layout(&[example]).status.success(), "{example}");
    }
}

#[test]
fn json_holds_cells_and_facts() {
    let text = printed(&["S[2:1@reg] + R[2:16@laneid]", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(told.to_string(), text.trim_end(), "members are in order, without spaces");
    assert_eq!(told["cells"][1]["places"][1], serde_json::json!({"laneid": 16, "reg": 1}));
    assert_eq!(told["facts"]["replicated_over"], serde_json::json!(["laneid"]));
}

#[test]
fn drawings_are_written_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = layout_in(folder.path(), &["tmem:D:128x256", "--svg", "a.svg", "--html", "a.html"]);
    assert!(done.status.success());
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("written");
    assert!(read("a.svg").trim_end().ends_with("</svg>") && read("a.html").trim_end().ends_with("</html>"));
}

/// A file of mode 0600, as `tempfile` creates it, cannot be served by a web server.
#[cfg(unix)]
#[test]
fn drawings_have_the_mode_of_ordinary_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    assert!(layout_in(folder.path(), &["S[8:1]", "--svg", "a.svg", "--html", "a.html"]).status.success());
    std::fs::write(folder.path().join("ordinary"), "").expect("written");
    let mode = |name: &str| std::fs::metadata(folder.path().join(name)).expect("written").permissions().mode();
    assert_eq!([mode("a.svg"), mode("a.html")], [mode("ordinary"); 2]);
}

#[test]
fn positions_that_the_hardware_does_not_have_are_drawn_with_a_warning() {
    let shown: [&[&str]; 4] = [
        &["S[64:1@laneid]"],
        &["S[(256):(1@tid_in_wg)]"],
        &["S[4:-1@wid_in_wg]"],
        &["S[64:1@m]", "--to", "S[64:1@TLane] + 100@TLane"],
    ];
    let mut said = String::new();
    for arguments in shown {
        let output = layout(arguments);
        assert!(output.status.success() && !output.stdout.is_empty(), "{output:?}");
        said += &format!("$ layout {}\n{}\n", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    assert_snapshot!("positions", said);
}

#[test]
fn the_picture_of_the_readme_is_what_its_command_draws() {
    let readme = std::fs::read_to_string(workspace().join("README.md")).expect("the README");
    let command = readme.lines().find_map(|line| line.strip_prefix("$ cargo xtask layout \"")).expect("a command");
    let (notation, file) = command.split_once("\" --svg ").expect("a layout and a file");
    assert!(readme.contains(&format!("]({file})")), "the README does not show {file}");
    let folder = tempfile::tempdir().expect("a folder");
    let done = layout_in(folder.path(), &[notation, "--svg", "drawn.svg"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let read = |path: &Path| std::fs::read_to_string(path).expect("a picture");
    let (shown, drawn) = (read(&workspace().join(file)), read(&folder.path().join("drawn.svg")));
    assert!(shown == drawn, "{file} is not what the command draws; run `cargo xtask test --bless gallery`");
}

#[test]
fn a_table_is_read_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("rotated.txt"), "tilewright table 1\naxes m\n1\n2\n0\n").expect("written");
    let shown = layout_in(folder.path(), &["@rotated.txt"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("table(3 -> m, "), "{shown:?}");
}

#[test]
fn wrong_input_is_explained() {
    let wrong: [&[&str]; 41] = [
        &["S[(8,4):(4@lanid,1@laneid)]"],
        &["S[(8,4):(4@laneid)]"],
        &["S[8:1] + S[4:2]"],
        &["S[8:1] + R[2:8] + R[2:16]"],
        &["S[(0,4):(4,1)]"],
        &["S[(-2,4):(4,1)]"],
        &["S[(8,4):(4,1)"],
        &["S(8,4)"],
        &["S[(8,4):(4,1)] - 3"],
        &["S[(99999999999999999999,4):(4,1)]"],
        &["S[(1099511627776,1099511627776):(1,1)]"],
        &["swizzle(M=3,B=3,S=2) o S[64:1]"],
        &["swizzle(M=3,B=3,S=3) o S[64:1@laneid]"],
        &["swizzle(M=3,B=3,S=3) o S[8:-1]"],
        &["mma:m16n8k16:q:f16"],
        &["mma:m16n8k17:a:f16"],
        &["tmem:D:64x256"],
        &["shared:128B:f16:8x60"],
        &["S[(8,4):(4,1)]", "--shape", "5,7"],
        &["S[(8,4):(4,1)]", "--dtype", "f17"],
        &["S[(8,4):(4,1)]", "--swizzle", "127B"],
        &["S[(8,4):(4,1)]", "--access", "col:1"],
        &["S[32:1@laneid]", "--to", "S[64:1@tx]"],
        &["S[(8,4):(4@laneid,1@laneid)]", "--view", "banks"],
        &["(8,4):(4,1)"],
        &["S(8,4):(4,1)"],
        &["8:1"],
        &["((8,2),4):((4,32),1)"],
        &["S[(8,4):(4,1)]", "--dtype", "foo"],
        &["S[(8,4):(4,1)]", "--dtype", "float"],
        &["S[(8,64):(64,1)]", "--dtype", "f16", "--access", "ldmatrix:4"],
        &["S[(8,64):(64,1)]", "--dtype", "f16", "--access", "ldmatrix:3"],
        &["S[(8,8):(8,1)]", "--access", "column:9"],
        &["S[(8,8):(8,1)]", "--access", "row:-1"],
        &["S[(8,8):(8,1)]", "--access", "vectors:5"],
        &["S[(8,8):(8,1)]", "--access", "S[32:1@laneid]"],
        &["S[(8,4):(4,1)]", "--shape", "8x4"],
        &["S[64:1@laneid]", "--to", "S[64:1@tx]"],
        &["S[34:1@tx]", "--to", "S[34:1@laneid]"],
        &["@Cargo.toml"],
        &["S[(8,4):(4,1)]", "--svg", "missing/drawn.svg"],
    ];
    let mut said = String::new();
    for arguments in wrong {
        let output = layout(arguments);
        assert_eq!(output.status.code(), Some(4), "{arguments:?} is wrong input");
        said += &format!("$ layout {}\n{}\n", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    assert_snapshot!("wrong_input", said);
}
