//! Every public method for writing kernels, or of their results, occurs in a compiled example: in the language
//! reference, in another page, or in rustdoc.
//!
//! A method name shared by several types counts for a type only if the example is under a heading of `docs/language.md`
//! that names the type. Hidden lines do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tilewright_tests::toolchain::workspace;

/// Files and folders whose public functions are checked, and the types; all types if none is named.
const SOURCES: [(&str, &[&str]); 5] = [
    ("crates/dsl/src", &[]),
    ("crates/ir/src/tile/value.rs", &["Value"]),
    ("crates/expr/src", &["Expr"]),
    ("crates/compile/src/artifact.rs", &["Artifact"]),
    ("crates/runtime/src/tensor.rs", &["HostTensor"]),
];

/// The table of tile ops.
const OP_TABLE: &str = "crates/ir/src/tile/op.rs";

/// Pages whose examples `tests/src/docs.rs` compiles.
const PAGES: [&str; 3] = ["docs/language.md", "docs/kernel.md", "docs/recipes.md"];

/// Types with operators, the file that declares them, and the beginning of the declaring lines.
const OPERATORS: [(&str, &str, &str); 4] = [
    ("Value", "crates/ir/src/tile/value.rs", "    "),
    ("Value", "crates/ir/src/tile/value.rs", "impl std::ops::"),
    ("Expr", "crates/expr/src/ops.rs", "operator!("),
    ("Expr", "crates/expr/src/ops.rs", "impl "),
];

/// The traits of operators, and how they are written.
const SIGNS: [(&str, &str); 12] = [
    ("Add", " + "),
    ("Sub", " - "),
    ("Mul", " * "),
    ("Div", " / "),
    ("Rem", " % "),
    ("BitXor", " ^ "),
    ("BitAnd", " & "),
    ("BitOr", " | "),
    ("Shl", " << "),
    ("Shr", " >> "),
    ("Neg", "-"),
    ("Not", "!"),
];

/// A public function: the type whose method it is, if it is one, and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    of: Option<String>,
    name: String,
}

/// A compiled example, with the headings above it, the innermost last.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Example {
    headings: Vec<String>,
    code: String,
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|c| is_word(*c)).collect()
}

/// The type of an inherent `impl`, from the rest of its line after `impl`.
fn inherent(rest: &str) -> Option<String> {
    let rest = match rest.strip_prefix('<') {
        Some(generic) => generic.split_once("> ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    (!rest.contains(" for ")).then(|| first_word(rest))
}

/// The public functions of a source file formatted by rustfmt.
fn functions(text: &str) -> Vec<Function> {
    let mut found = Vec::new();
    let mut of = None;
    for line in text.lines().take_while(|line| *line != "#[cfg(test)]") {
        if let Some(rest) = line.strip_prefix("impl") {
            of = inherent(rest);
        } else if line == "}" {
            of = None;
        }
        let declared = |indent: &str| {
            let rest = line.strip_prefix(indent)?.strip_prefix("pub ")?;
            rest.strip_prefix("const ").unwrap_or(rest).strip_prefix("fn ").map(first_word)
        };
        if let Some(name) = declared("") {
            found.push(Function { of: None, name });
        } else if let (Some(name), Some(of)) = (declared("    "), &of) {
            found.push(Function { of: Some(of.clone()), name });
        }
    }
    found
}

/// The methods generated from the rows of the op table: each belongs to a scope, and to the builder if the CTA can
/// execute the op.
fn methods_of_rows(text: &str) -> Vec<Function> {
    let (mut found, mut name) = (Vec::new(), String::new());
    for line in text.lines().map(str::trim_start) {
        if let Some(builder) = line.strip_prefix("builder: ") {
            name = first_word(builder);
        } else if line == "each: tuple," {
            // That method is written by hand.
            name.clear();
        } else if let Some(scopes) = line.strip_prefix("scopes: [").filter(|_| !name.is_empty()) {
            let types = [Some("ScopeRef"), scopes.contains("Cta").then_some("KernelBuilder")];
            let method = |of: &str| Function { of: Some(of.to_string()), name: name.clone() };
            found.extend(types.into_iter().flatten().map(method));
        }
    }
    found
}

/// Whether rustdoc compiles a block with this info string.
fn is_compiled(info: &str, is_rustdoc: bool) -> bool {
    let mut words = info.split(',').map(str::trim).filter(|word| !word.is_empty());
    let is_rust = words.next().map_or(is_rustdoc, |word| word == "rust");
    is_rust && !info.contains("ignore") && !info.contains("compile_fail")
}

/// The examples of a Markdown text, without hidden lines.
fn examples(text: &str, is_rustdoc: bool) -> Vec<Example> {
    let (mut found, mut headings) = (Vec::new(), Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let visible: Vec<&str> =
                inside.into_iter().filter(|line| !line.starts_with("# ") && *line != "#").collect();
            if is_compiled(info, is_rustdoc) {
                found.push(Example { headings: headings.clone(), code: visible.join("\n") });
            }
        } else if line.starts_with('#') {
            let level = line.chars().take_while(|c| *c == '#').count();
            headings.truncate(level - 1);
            headings.push(line.to_string());
        }
    }
    found
}

/// The text of the doc comments of a source file.
fn doc_comments(text: &str) -> String {
    let comment = |line: &str| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        Some(text.strip_prefix(' ').unwrap_or(text).to_string())
    };
    text.lines().map(|line| comment(line).unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Whether code calls a function, or a method, of this name.
fn calls(code: &str, name: &str, is_method: bool) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let (before, behind) = (&code[..at], &code[at + name.len()..]);
        let is_whole = !behind.starts_with(is_word) && !before.ends_with(is_word);
        let is_called = behind.starts_with('(') || before.ends_with("::");
        is_whole && is_called && is_method == (before.ends_with('.') || before.ends_with("::"))
    })
}

/// Whether an example is under a heading that names a type: the innermost heading that names any type counts.
fn is_about(example: &Example, of: &str, types: &BTreeSet<String>) -> bool {
    let names = |heading: &String, name: &str| heading.contains(&format!("`{name}`"));
    let innermost = example.headings.iter().rev().find(|heading| types.iter().any(|name| names(heading, name)));
    innermost.is_some_and(|heading| names(heading, of))
}

/// The functions that do not occur in any example.
fn undocumented(functions: &[Function], examples: &[Example]) -> Vec<String> {
    let types: BTreeSet<String> = functions.iter().filter_map(|function| function.of.clone()).collect();
    let mut owners: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for function in functions {
        owners.entry(&function.name).or_default().extend(function.of.as_deref());
    }
    let is_shown = |function: &Function| {
        let is_shared = owners[function.name.as_str()].len() > 1;
        examples.iter().any(|example| match &function.of {
            Some(of) => calls(&example.code, &function.name, true) && (!is_shared || is_about(example, of, &types)),
            None => calls(&example.code, &function.name, false),
        })
    };
    let title = |function: &Function| match &function.of {
        Some(of) => format!("{of}::{}", function.name),
        None => function.name.clone(),
    };
    functions.iter().filter(|function| !is_shown(function)).map(title).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text of a file, or of all Rust files in a folder.
fn sources(path: &str) -> Vec<String> {
    let path = workspace().join(path);
    if path.is_file() {
        return vec![read(&path)];
    }
    let mut files: Vec<_> = std::fs::read_dir(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn all_functions() -> Vec<Function> {
    let mut found = Vec::new();
    for (path, types) in SOURCES {
        let is_meant =
            |function: &Function| types.is_empty() || function.of.as_deref().is_some_and(|of| types.contains(&of));
        found.extend(sources(path).iter().flat_map(|text| functions(text)).filter(is_meant));
    }
    found.extend(methods_of_rows(&read(&workspace().join(OP_TABLE))));
    found
}

fn all_examples() -> Vec<Example> {
    let pages = PAGES.iter().flat_map(|page| examples(&read(&workspace().join(page)), false));
    let comments = SOURCES.iter().flat_map(|(path, _)| sources(path));
    let of_rustdoc = comments.flat_map(|text| examples(&doc_comments(&text), true));
    // Headings of other pages do not count.
    let without = of_rustdoc.map(|example| Example { headings: Vec::new(), ..example });
    pages.chain(without).collect()
}

#[test]
fn every_public_method_stands_in_an_example() {
    let missing = undocumented(&all_functions(), &all_examples());
    assert!(missing.is_empty(), "no example uses {}; add one to docs/language.md", missing.join(", "));
}

#[test]
fn every_page_is_compiled() {
    let compiled = read(&workspace().join("tests/src/docs.rs"));
    for page in PAGES {
        assert!(compiled.contains(&format!("include_str!(\"../../{page}\")")), "{page} is not compiled");
    }
}

/// The traits of the operators of a type.
fn operators(of: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, path, start) in OPERATORS.iter().filter(|(name, ..)| *name == of) {
        for line in read(&workspace().join(path)).lines() {
            let Some(rest) = line.strip_prefix(*start) else { continue };
            let name = first_word(rest);
            // Rows of the table are `Add add Add;`, implementations `impl Neg for Expr`.
            let is_row = rest.starts_with(&format!("{name} {} {name};", name.to_lowercase()));
            let is_macro = *start == "operator!(";
            if is_row || is_macro || rest.starts_with(&format!("{name} for {of} ")) {
                found.insert(name);
            }
        }
    }
    found
}

/// Whether an operator occurs in code: between operands, or before one.
fn has_sign(code: &str, sign: &str) -> bool {
    let is_unary = !sign.starts_with(' ');
    code.match_indices(sign).any(|(at, _)| {
        let (before, behind) = (&code[..at], &code[at + sign.len()..]);
        !is_unary || (before.ends_with([' ', '(']) && behind.starts_with(|c: char| c.is_alphabetic() || c == '('))
    })
}

#[test]
fn every_operator_stands_in_an_example() {
    let types = ["Value", "Expr"].map(str::to_string);
    let examples = all_examples();
    for of in &types {
        let operators = operators(of);
        assert!(operators.len() >= 5, "operators of {of}: {operators:?}");
        for operator in operators {
            let known = SIGNS.iter().find(|(name, _)| *name == operator);
            let (_, sign) = known.unwrap_or_else(|| panic!("how is {operator} written?"));
            let is_shown = |example: &Example| {
                is_about(example, of, &BTreeSet::from(types.clone())) && has_sign(&example.code, sign)
            };
            assert!(examples.iter().any(is_shown), "no example of docs/language.md uses `{sign}` of {of}");
        }
    }
}

#[test]
fn methods_are_found_with_their_types() {
    let found = all_functions();
    let has =
        |of: Option<&str>, name: &str| found.contains(&Function { of: of.map(str::to_string), name: name.to_string() });
    let methods = [
        ("KernelBuilder", "copy"),
        ("ScopeRef", "copy"),
        ("ScopeRef", "permute_layout"),
        ("OpRef", "tf32"),
        ("ParallelRef", "vector"),
        ("StoreRef", "unique"),
        ("Elements", "store"),
        ("Buffer", "at"),
        ("Buffer", "sub"),
        ("Size", "max"),
        ("Value", "max"),
        ("Expr", "ceil_div"),
        ("Artifact", "why"),
        ("HostTensor", "from_fn"),
    ];
    for (of, name) in methods {
        assert!(has(Some(of), name), "{of}::{name}");
    }
    assert!(has(None, "kernel") && has(None, "at"));
    let of_private = found.iter().find(|function| function.name == "build" || function.name == "mistake");
    assert_eq!(of_private, None);
    assert!(!has(Some("KernelBuilder"), "permute_layout"), "a CTA cannot execute it");
}

const SOURCE: &str = "impl Door<'_> {\n    /// Opens.\n    pub fn open(\n    ) {}\n    pub fn max(self) {}\n    fn hidden() {}\n}\n\
                      impl<'k> Window<'k> {\n    pub fn max(self) {}\n}\nimpl From<Door> for Window {\n    pub fn from() {}\n}\n\
                      pub fn house() {}\n#[cfg(test)]\nmod tests {\n    pub fn other() {}\n}\n";

/// The functions that [`SOURCE`] declares but this page does not show.
fn missing(page: &str) -> Vec<String> {
    undocumented(&functions(SOURCE), &examples(page, false))
}

#[test]
fn a_method_without_an_example_is_named() {
    assert_eq!(missing(""), ["Door::open", "Door::max", "Window::max", "house"]);
    assert_eq!(missing("```rust\nhouse(); door.open();\n```\n"), ["Door::max", "Window::max"]);
}

#[test]
fn a_name_of_several_types_counts_under_the_heading_of_its_type() {
    let page = "## All: `Door`\n```rust\ndoor.max(); door.open(); house();\n```\n### More\n```rust\nx.max();\n```\n";
    assert_eq!(missing(page), ["Window::max"]);
    assert_eq!(missing(&format!("{page}### Of a `Window`\n```rust\nx.max()\n```\n")), [""; 0]);
}

#[test]
fn what_is_not_compiled_or_not_seen_does_not_count() {
    let all = ["Door::open", "Door::max", "Window::max", "house"];
    for page in [
        "```rust,ignore\ndoor.open(); house();\n```\n",
        "```text\ndoor.open(); house();\n```\n",
        "```rust\n# door.open(); house();\n```\n",
        "```rust\nreopen(); open(); x.house(); warehouse(); a.open_all();\n```\n",
        "door.open(); house();\n",
    ] {
        assert_eq!(missing(page), all, "{page}");
    }
    let comment = doc_comments("/// Text.\n///\n/// ```\n/// door.open();\n/// ```\npub fn f() {}\n");
    assert_eq!(undocumented(&functions(SOURCE), &examples(&comment, true)), ["Door::max", "Window::max", "house"]);
}
