//! Every form of the table is decoded.

use super::{MOST_WORDS, instructions, rows};
use crate::Module;

/// What the module says about a kernel with this instruction.
fn refusals(instruction: &str) -> String {
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n\
         .func (.param .b32 r) f(.param .b32 x) {{ ret; }}\n\
         .entry k() {{\n.reg .b64 a, b, c, d, e, m, x, n;\n.reg .b16 h;\n.reg .b64 d<8>, a<8>, b<8>, c<8>;\n.reg .b128 w, v;\n.reg .pred p, q, r;\n\
         .shared .align 16 .b8 s[64];\n.param .b32 y;\n.param .b32 z;\nt: .branchtargets l;\nl:\n{instruction};\nret;\n}}\n"
    );
    match Module::parse(&text) {
        Err(error) => error.to_string(),
        Ok(module) => module.unsupported("k").unwrap_or_default().iter().map(|found| found.text.clone()).collect(),
    }
}

#[test]
fn every_form_is_decoded() {
    let mut wrong = Vec::new();
    for row in instructions() {
        for text in row.texts() {
            let found = refusals(&text);
            if !found.is_empty() {
                wrong.push(format!("{}: {found}", row.name));
            }
            assert!(text.starts_with(row.name), "{text} is not {}", row.name);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_instruction_has_a_form_and_one_row() {
    let mut names: Vec<&str> = rows().map(|row| row.name).collect();
    assert!(rows().all(|row| !row.forms.is_empty()));
    assert!(names.iter().all(|name| name.split('.').count() <= MOST_WORDS));
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}
