//! Reads case files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use tilewright::files::read_text;

use super::case::{Case, Class, Expected, ExpectedAccess, ExpectedLoop, Verdict};
use super::json::Node;
use super::program::{Buffer, Layout, Program, Scope, bits_of};
use super::read_expr::{expected_fragment, expected_shared, layout};
use super::read_ops::ops;

/// A case from its file's text. The error names the case and the place in the file.
pub fn read_case(text: &str) -> Result<Case, String> {
    let json: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let name = json.get("name").and_then(Json::as_str).unwrap_or("unnamed case");
    case(&Node::root(&json)).map_err(|why| format!("{name}: {why}"))
}

/// The cases of a folder, by file name. Files other than `.json` are skipped.
pub fn read_folder(folder: &Path) -> Result<Vec<Case>, String> {
    let unreadable = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: &PathBuf| {
        let text = read_text(path).map_err(|error| error.to_string())?;
        read_case(&text).map_err(|why| format!("{}: {why}", path.display()))
    };
    paths.iter().map(read).collect()
}

fn case(node: &Node<'_>) -> Result<Case, String> {
    let format = node.need("format")?;
    if format.integer()? != 1 {
        return Err(format.wrong("unknown format"));
    }
    Ok(Case {
        name: node.need("name")?.text()?,
        family: node.need("family")?.text()?,
        note: node.need("note")?.text()?,
        arch: node.need("target")?.need("arch")?.text()?,
        program: program(&node.need("program")?)?,
        expected: expected(&node.need("expected")?)?,
        verdict: verdict(&node.need("verdict")?)?,
        witness: node.get("witness").map(|witness| layouts(&witness)).transpose()?,
    })
}

fn program(node: &Node<'_>) -> Result<Program, String> {
    node.only(&["threads", "grid", "params", "buffers", "layouts", "loop_layouts", "body"])?;
    let params: Vec<Buffer> = node.need("params")?.list()?.iter().map(param).collect::<Result<_, _>>()?;
    let mut buffers: Vec<Buffer> = Vec::new();
    for declared in node.need("buffers")?.list()? {
        let buffer = buffer(&declared, &buffers)?;
        if params.iter().chain(&buffers).any(|known| known.name == buffer.name) {
            return Err(declared.wrong(&format!("duplicate `{}`", buffer.name)));
        }
        buffers.push(buffer);
    }
    Ok(Program {
        threads: node.need("threads")?.positive()?,
        grid: node.need("grid")?.extents()?,
        params,
        buffers,
        layouts: node.get("layouts").map_or(Ok(BTreeMap::new()), |node| layouts(&node))?,
        loop_layouts: node.get("loop_layouts").map_or(Ok(BTreeMap::new()), |node| layouts(&node))?,
        body: ops(&node.need("body")?)?,
    })
}

fn param(node: &Node<'_>) -> Result<Buffer, String> {
    node.only(&["name", "dtype", "shape"])?;
    declared(node, Scope::Global, None)
}

/// A buffer, or a view of a preceding one.
fn buffer(node: &Node<'_>, before: &[Buffer]) -> Result<Buffer, String> {
    if let Some(alias_of) = node.get("alias_of") {
        node.only(&["name", "alias_of", "dtype", "shape"])?;
        let viewed = alias_of.text()?;
        let scope = before.iter().find(|buffer| buffer.name == viewed).map(|buffer| buffer.scope);
        return declared(node, scope.ok_or_else(|| alias_of.wrong("no preceding buffer"))?, Some(viewed));
    }
    node.only(&["name", "scope", "dtype", "shape"])?;
    let scope = node.need("scope")?;
    let scope = match scope.text()?.as_str() {
        "fragment" => Scope::Fragment,
        "shared" => Scope::Shared,
        "local" => Scope::Local,
        _ => return Err(scope.wrong("unknown scope")),
    };
    declared(node, scope, None)
}

fn declared(node: &Node<'_>, scope: Scope, alias_of: Option<String>) -> Result<Buffer, String> {
    let dtype = node.need("dtype")?;
    if bits_of(&dtype.text()?).is_none() {
        return Err(dtype.wrong("the dtype has no width"));
    }
    let (name, shape) = (node.need("name")?.text()?, node.need("shape")?.extents()?);
    Ok(Buffer { name, scope, dtype: dtype.text()?, shape, alias_of })
}

fn layouts(node: &Node<'_>) -> Result<BTreeMap<String, Layout>, String> {
    node.entries()?.iter().map(|(name, node)| Ok((name.to_string(), layout(node)?))).collect()
}

fn expected(node: &Node<'_>) -> Result<Expected, String> {
    let (mut buffers, mut shared) = (BTreeMap::new(), BTreeMap::new());
    for (name, node) in node.get("buffers").map_or(Ok(Vec::new()), |node| node.entries())? {
        let kind = node.need("kind")?;
        match kind.text()?.as_str() {
            "fragment" => buffers.insert(name.to_string(), expected_fragment(&node)?),
            "layout" => shared.insert(name.to_string(), expected_shared(&node)?),
            _ => return Err(kind.wrong("unknown kind of layout")),
        };
    }
    let error = node.get("error").map(|error| error.need("class")?.text());
    Ok(Expected {
        stage: node.need("stage")?.text()?,
        accepted: node.need("accepted")?.flag()?,
        error: error.transpose()?,
        buffers,
        shared,
        loops: maybe_list(node, "loops")?.iter().map(expected_loop).collect::<Result<_, _>>()?,
        accesses: maybe_list(node, "accesses")?.iter().map(expected_access).collect::<Result<_, _>>()?,
        register_slots: node.get("register_slots").map(|slots| slots.integer()).transpose()?,
    })
}

fn expected_loop(node: &Node<'_>) -> Result<ExpectedLoop, String> {
    Ok(ExpectedLoop {
        vars: node.need("vars")?.texts()?,
        extents: node.need("extents")?.extents()?,
        layout: expected_fragment(node)?,
        predicate: node.get("predicate").map(|predicate| predicate.text()).transpose()?,
        padding_guard: node.need("padding_guard")?.flag()?,
    })
}

fn expected_access(node: &Node<'_>) -> Result<ExpectedAccess, String> {
    Ok(ExpectedAccess {
        buffer: node.need("buffer")?.text()?,
        scope: node.need("scope")?.text()?,
        kind: node.need("kind")?.text()?,
        lanes: node.get("lanes").map(|lanes| lanes.integer()).transpose()?,
    })
}

fn verdict(node: &Node<'_>) -> Result<Verdict, String> {
    let class = node.need("class")?;
    let class = match class.text()?.as_str() {
        "accepts_sound" => Class::AcceptsSound,
        "accepts_wrong" => Class::AcceptsWrong,
        "accepts_racy" => Class::AcceptsRacy,
        "rejects_valid" => Class::RejectsValid,
        "rejects" => Class::Rejects,
        _ => return Err(class.wrong("unknown class")),
    };
    let problems = node.get("problems").map_or(Ok(Vec::new()), |problems| problems.texts())?;
    let replicated = node.get("replicated_witness").map(|replicated| replicated.flag());
    Ok(Verdict { class, problems, replicated_witness: replicated.transpose()? })
}

fn maybe_list<'a>(node: &Node<'a>, key: &str) -> Result<Vec<Node<'a>>, String> {
    node.get(key).map_or(Ok(Vec::new()), |list| list.list())
}
