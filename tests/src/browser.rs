//! Runs a page in headless Chromium: opens it from a file and returns what its script leaves in the document.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// No window, no sandbox (containers do not support it), no background traffic.
const FLAGS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,900",
    "--dump-dom",
];

/// A Chromium executable found in `PATH`.
pub struct Browser(PathBuf);

impl Browser {
    /// The first one in `PATH`, if any.
    pub fn find() -> Option<Browser> {
        let path = std::env::var_os("PATH")?;
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let file = |name| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file());
        NAMES.into_iter().find_map(file).map(Browser)
    }

    /// Opens `page` with `script` at its end, at an address that ends in `fragment`, and reads the JSON that the script
    /// leaves in an element `<pre id="verdict">`.
    pub fn run(&self, page: &str, script: &str, fragment: &str) -> Result<Value, String> {
        let page = page.replace("</body>", &format!("<script>{script}</script></body>"));
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let file = folder.path().join("page.html");
        std::fs::write(&file, page).map_err(|e| e.to_string())?;
        let output = Command::new(&self.0)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg(format!("file://{}{fragment}", file.display()))
            .output()
            .map_err(|e| format!("{}: {e}", self.0.display()))?;
        let document = String::from_utf8_lossy(&output.stdout);
        let verdict = document.split_once("<pre id=\"verdict\">").and_then(|(_, rest)| rest.split_once("</pre>"));
        let Some((verdict, _)) = verdict else {
            return Err(format!("the page left no verdict: {}", String::from_utf8_lossy(&output.stderr)));
        };
        let plain = verdict.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        serde_json::from_str(&plain).map_err(|e| format!("{e}: {plain}"))
    }
}
