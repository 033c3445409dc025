//! The committed gallery is up to date; `cargo xtask test --bless gallery` rewrites it.

use tilewright_tests::gallery::files;
use tilewright_tests::toolchain::workspace;

#[test]
fn the_committed_gallery_is_what_is_drawn() {
    let docs = workspace().join("docs");
    let blessing = std::env::var_os("TILEWRIGHT_BLESS").is_some();
    for (path, text) in files().expect("every entry can be drawn") {
        let file = docs.join(&path);
        if blessing {
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("the folder can be made");
            std::fs::write(&file, &text).expect("the file can be written");
        }
        let committed = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(committed == text, "docs/{path} is out of date; run `cargo xtask test --bless gallery`");
    }
}

#[test]
fn no_file_of_the_gallery_is_left_over() {
    let written: Vec<String> = files().expect("drawn").into_iter().map(|(path, _)| path).collect();
    for entry in std::fs::read_dir(workspace().join("docs/layouts")).expect("the gallery").flatten() {
        let path = format!("layouts/{}", entry.file_name().to_string_lossy());
        assert!(written.contains(&path), "docs/{path} does not belong to any entry");
    }
}
