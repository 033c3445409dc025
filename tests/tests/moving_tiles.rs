//! The pictures of `docs/moving-tiles.md` and the outputs of commands in pages are up to date;
//! `cargo xtask test --bless moving_tiles` rewrites both.

use std::path::Path;

use tilewright_tests::moving_tiles::{pictures, refreshed};
use tilewright_tests::toolchain::{is_blessing, skip, workspace};

/// Pages with blocks that show the output of a command.
const PAGES: [&str; 2] = ["docs/moving-tiles.md", "docs/kernel.md"];
const FOLDER: &str = "docs/moving-tiles";

/// Checks that a committed file has this text; writes it when blessing.
fn assert_committed(path: &str, text: &str) {
    let file = workspace().join(path);
    if is_blessing() {
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("the folder can be made");
        std::fs::write(&file, text).expect("the file can be written");
    }
    let committed = read(&file);
    let differing = committed.lines().zip(text.lines()).find(|(shown, fresh)| shown != fresh);
    assert!(committed == text, "{path}: shown and actual: {differing:?}; run `cargo xtask test --bless moving_tiles`");
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

#[test]
fn the_committed_pictures_of_moving_tiles_are_what_is_drawn() {
    for (name, svg) in pictures() {
        assert_committed(&format!("{FOLDER}/{name}.svg"), &svg);
    }
}

#[test]
fn no_picture_of_moving_tiles_is_left_over_or_not_shown() {
    let page = read(&workspace().join(PAGES[0]));
    let drawn: Vec<String> = pictures().into_iter().map(|(name, _)| format!("{name}.svg")).collect();
    for file in &drawn {
        assert!(page.contains(&format!("](moving-tiles/{file})")), "{file} is not on the page");
    }
    for entry in std::fs::read_dir(workspace().join(FOLDER)).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        assert!(drawn.contains(&file), "{FOLDER}/{file} is not drawn by any picture");
    }
}

#[test]
fn pages_such_as_moving_tiles_show_what_commands_print() {
    for path in PAGES {
        let (fresh, skipped) = refreshed(&read(&workspace().join(path)));
        for command in skipped {
            skip(&format!("{path}: {command}"));
        }
        assert_committed(path, &fresh);
    }
}
