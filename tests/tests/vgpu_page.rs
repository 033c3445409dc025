//! The table of instructions in `docs/vgpu.md` is that of the decode table.
//! `cargo xtask test --bless decode_table` rewrites it.

use tilewright::vgpu::{Instruction, Unit, instructions};
use tilewright_tests::toolchain::{is_blessing, workspace};

const PAGE: &str = "docs/vgpu.md";

fn read() -> String {
    std::fs::read_to_string(workspace().join(PAGE)).unwrap_or_else(|error| panic!("{PAGE}: {error}"))
}

/// The forms of an instruction, without its name.
fn forms(instruction: &Instruction) -> String {
    let forms = instruction.forms.iter().map(|form| format!("`{}`", form.replace('|', "\\|")));
    forms.collect::<Vec<String>>().join("<br>")
}

/// The tables, one for each unit.
fn tables() -> String {
    let all = instructions();
    let mut units: Vec<Unit> = all.iter().map(|found| found.unit).collect();
    units.dedup();
    let table = |unit: &Unit| {
        let own = all.iter().filter(|found| found.unit == *unit);
        let rows = own.map(|found| format!("| `{}` | {} | {} |\n", found.name, found.sections, forms(found)));
        let (head, rows) = ("| instruction | section | forms |\n|---|---|---|\n", rows.collect::<String>());
        format!("### {}\n\n{head}{rows}\n", unit.as_str())
    };
    units.iter().map(table).collect()
}

#[test]
fn the_page_has_every_instruction_of_the_decode_table() {
    let page = read();
    let (before, rest) = page.split_once("<!-- instructions -->\n").expect("the start of the tables");
    let (_, after) = rest.split_once("<!-- end -->").expect("the end of the tables");
    let fresh = format!("{before}<!-- instructions -->\n\n{}<!-- end -->{after}", tables());
    if is_blessing() {
        std::fs::write(workspace().join(PAGE), &fresh).expect("the page can be written");
    }
    assert!(read() == fresh, "the table is out of date; run `cargo xtask test --bless decode_table`");
}
