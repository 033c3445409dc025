//! Names in CUDA: those of the program, with underscores appended to the ones that C++ or CUDA reserves, or that are
//! the same as a name that the emitter generates.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{MemorySpace, Program, RegArray, Stmt, for_each_stmt};

use crate::constants::PARAMETER;
use crate::registers::vector_names;
use crate::reserved::{Place, is_listed, is_of_the_language};
use crate::statements::lookup_name;

/// The window of dynamic shared memory.
pub(crate) const SHARED_WINDOW: &str = "shared_window";

/// The program with the names that it has in CUDA; the name of the kernel itself is not changed, see [`entry`].
pub(crate) fn in_cuda(program: &Program) -> Cow<'_, Program> {
    let definitions = definitions(program);
    let mut names = Names::of(program, &definitions);
    names.settle_all(program, &definitions);
    if names.changed.is_empty() {
        return Cow::Borrowed(program);
    }
    let mut renamed = program.clone();
    names.rename(&mut renamed);
    Cow::Owned(renamed)
}

/// The name of the entry point, if the text in front of it defines these functions.
pub(crate) fn entry(program: &Program, functions: &BTreeSet<&str>) -> String {
    let tables = program.memories.iter().filter(|(_, memory)| memory.space == MemorySpace::Table);
    let tables: BTreeSet<&str> = tables.map(|(_, table)| table.name.as_str()).collect();
    let is_taken = |name: &str| name == SHARED_WINDOW || functions.contains(name) || tables.contains(name);
    let mut name = first_choice(&program.name);
    while is_listed(&name, Place::Outside) || is_taken(&name) {
        name.push('_');
    }
    name
}

/// The name, with an underscore appended if it begins like names that are reserved for the implementation.
fn first_choice(name: &str) -> String {
    if is_of_the_language(name) { format!("{name}_") } else { name.to_string() }
}

/// The names of a program, and what they become in CUDA.
struct Names<'a> {
    /// Names that are in use, old and new.
    taken: BTreeSet<Cow<'a, str>>,
    /// Old names that are decided.
    settled: BTreeSet<&'a str>,
    /// The new name by the old one, where they differ.
    changed: BTreeMap<String, String>,
}

impl<'a> Names<'a> {
    fn of(program: &'a Program, definitions: &[&'a [Var]]) -> Names<'a> {
        let mut taken = BTreeSet::from([Cow::Borrowed(SHARED_WINDOW)]);
        taken.extend(program.memories.iter().map(|(_, memory)| Cow::Borrowed(memory.name.as_str())));
        taken.extend(program.maps.iter().map(|(_, map)| Cow::Borrowed(map.name.as_str())));
        taken.extend(program.registers.iter().map(|(_, array)| Cow::Borrowed(array.name.as_str())));
        taken.extend(program.sizes.iter().map(|size| Cow::Borrowed(size.name())));
        taken.extend(cursors(program).map(|var| Cow::Borrowed(var.name())));
        taken.extend(definitions.iter().copied().flatten().map(|var| Cow::Borrowed(var.name())));
        Names { taken, settled: BTreeSet::new(), changed: BTreeMap::new() }
    }

    fn settle_all(&mut self, program: &'a Program, definitions: &[&'a [Var]]) {
        for (_, memory) in program.memories.iter() {
            let is_table = memory.space == MemorySpace::Table;
            self.settle(&memory.name, if is_table { Place::Outside } else { Place::Inside }, &|_| Vec::new());
        }
        for (_, map) in program.maps.iter() {
            self.settle(&map.name, Place::Inside, &|_| Vec::new());
        }
        for var in program.sizes.iter().chain(cursors(program)) {
            self.settle(var.name(), Place::Inside, &|_| Vec::new());
        }
        for (_, array) in program.registers.iter() {
            self.settle(&array.name, Place::Inside, &|name| vector_names(&RegArray { name, ..array.clone() }));
        }
        for vars in definitions {
            let [first, rest @ ..] = vars else { continue };
            rest.iter().for_each(|var| self.settle(var.name(), Place::Inside, &|_| Vec::new()));
            let rest: Vec<String> = rest.iter().map(|var| self.new_name(var.name()).to_string()).collect();
            let whole = |name: String| match rest.is_empty() {
                true => Vec::new(),
                false => vec![lookup_name(std::iter::once(&name).chain(&rest).map(String::as_str))],
            };
            self.settle(first.name(), Place::Inside, &whole);
        }
    }

    /// Decides what a name becomes; `parts` gives the other names that the emitter derives from it.
    fn settle(&mut self, name: &'a str, place: Place, parts: &dyn Fn(String) -> Vec<String>) {
        if !self.settled.insert(name) {
            return;
        }
        let mut new = first_choice(name);
        while !self.is_free(&new, name, place, parts) {
            new.push('_');
        }
        self.taken.extend(parts(new.clone()).into_iter().map(Cow::Owned));
        if new != name {
            self.taken.insert(Cow::Owned(new.clone()));
            self.changed.insert(name.to_string(), new);
        }
    }

    /// Whether the name `old` can become `new`.
    fn is_free(&self, new: &str, old: &str, place: Place, parts: &dyn Fn(String) -> Vec<String>) -> bool {
        let is_own = new == old || !self.taken.contains(new);
        let is_free = |part: &String| !self.taken.contains(part.as_str()) && !is_listed(part, Place::Inside);
        is_own
            && ![SHARED_WINDOW, PARAMETER].contains(&new)
            && !is_listed(new, place)
            && parts(new.to_string()).iter().all(is_free)
    }

    fn new_name<'n>(&'n self, name: &'n str) -> &'n str {
        self.changed.get(name).map_or(name, String::as_str)
    }

    fn rename(&self, program: &mut Program) {
        let memories: Vec<_> = program.memories.iter().map(|(handle, _)| handle).collect();
        for handle in memories {
            self.text(&mut program.memories[handle].name);
        }
        let maps: Vec<_> = program.maps.iter().map(|(handle, _)| handle).collect();
        for handle in maps {
            self.text(&mut program.maps[handle].name);
        }
        let arrays: Vec<_> = program.registers.iter().map(|(handle, _)| handle).collect();
        for handle in arrays {
            self.text(&mut program.registers[handle].name);
        }
        program.sizes.iter_mut().for_each(|size| self.var(size));
        for cursor in program.cursors.iter_mut() {
            [&mut cursor.stage, &mut cursor.phase].into_iter().for_each(|var| self.var(var));
        }
        program.grid.iter_mut().for_each(|ctas| self.expr(ctas));
        self.body(&mut program.body);
    }

    fn text(&self, name: &mut String) {
        if let Some(new) = self.changed.get(name.as_str()) {
            name.clone_from(new);
        }
    }

    fn var(&self, var: &mut Var) {
        if let Some(new) = self.changed.get(var.name()) {
            let range = var.range();
            *var = Var::multiple_of(new.clone(), range.lo, range.hi, var.multiple());
        }
    }

    fn expr(&self, expr: &mut Expr) {
        *expr = expr.substitute(&|known| {
            let mut var = known.clone();
            self.var(&mut var);
            Some(Expr::var(&var))
        });
    }

    fn body(&self, body: &mut [Stmt]) {
        for stmt in body {
            stmt.defines_mut().iter_mut().for_each(|var| self.var(var));
            stmt.exprs_mut(&mut |expr| self.expr(expr));
            self.body(stmt.inner_mut());
        }
    }
}

/// The variables that say where warps are in rings.
fn cursors(program: &Program) -> impl Iterator<Item = &Var> {
    program.cursors.iter().flat_map(|(_, cursor)| [&cursor.stage, &cursor.phase])
}

/// The variables that each statement defines, where it defines any.
fn definitions(program: &Program) -> Vec<&[Var]> {
    let mut definitions = Vec::new();
    for_each_stmt(&program.body, &mut |stmt| {
        if !stmt.defines().is_empty() {
            definitions.push(stmt.defines());
        }
    });
    definitions
}

#[cfg(test)]
mod tests {
    use tilewright_diag::Span;
    use tilewright_ir::thread::{Memory, Value};
    use tilewright_ir::{Arena, Target};
    use tilewright_layout::DType;

    use super::*;

    fn memory(name: &str, space: MemorySpace) -> Memory {
        Memory::new(name, DType::I32, 8, (space, 16), Span::here())
    }

    /// A program with these parameters, a table, eight registers in two vectors, and a lookup of two entries.
    fn program(parameters: &[&str], registers: &str, entries: [&str; 2]) -> Program {
        let mut memories = Arena::new();
        for name in parameters {
            memories.push(memory(name, MemorySpace::Global { read_only: true, may_alias: false }));
        }
        let table = memories.push(memory("of_lane", MemorySpace::Table));
        let mut arrays = Arena::new();
        arrays.push(RegArray { name: registers.to_string(), dtype: DType::F32, len: 8, vector: 4 });
        let vars = entries.map(|name| Var::new(name, 0, 7)).to_vec();
        let sum = Value::Index(DType::I32, Expr::var(&vars[0]) + Expr::var(&vars[1]));
        Program {
            memories,
            registers: arrays,
            body: vec![
                Stmt::Lookup { vars, table, index: Expr::constant(0) },
                Stmt::LetValue { var: Var::new("sum", 0, 14), value: sum },
            ],
            ..Program::new("max", Target::Sm100a, 32)
        }
    }

    #[test]
    fn a_program_without_such_names_is_as_it_was() {
        let program = program(&["x", "max"], "r", ["a", "b"]);
        assert!(matches!(in_cuda(&program), Cow::Borrowed(_)));
    }

    #[test]
    fn what_the_text_makes_of_a_name_is_free_too() {
        let program = program(&["r_1", "first_while_"], "r", ["first", "while"]);
        let renamed = in_cuda(&program);
        let arrays: Vec<&str> = renamed.registers.iter().map(|(_, array)| array.name.as_str()).collect();
        assert_eq!(arrays, ["r_"]);
        let [Stmt::Lookup { vars, .. }, Stmt::LetValue { value, .. }] = &renamed.body[..] else {
            panic!("{renamed:?}")
        };
        let names: Vec<&str> = vars.iter().map(Var::name).collect();
        assert_eq!(names, ["first_", "while_"]);
        let Value::Index(_, sum) = value else { panic!("{value:?}") };
        assert_eq!(sum.to_string(), "first_ + while_");
    }

    #[test]
    fn names_of_the_implementation_get_one_underscore() {
        let kernel = Program { name: "__syncthreads".to_string(), ..program(&[], "r", ["a", "b"]) };
        assert_eq!(entry(&kernel, &BTreeSet::new()), "__syncthreads_");
        let program = program(&["__x"], "__r", ["_A", "__b"]);
        let renamed = in_cuda(&program);
        let memories: Vec<&str> = renamed.memories.iter().map(|(_, memory)| memory.name.as_str()).collect();
        assert_eq!(memories, ["__x_", "of_lane"]);
        let arrays: Vec<&str> = renamed.registers.iter().map(|(_, array)| array.name.as_str()).collect();
        assert_eq!(arrays, ["__r_"]);
    }

    #[test]
    fn an_entry_point_leaves_names_to_what_stands_in_front_of_it() {
        let mut program = program(&["max_"], "r", ["a", "b"]);
        assert_eq!(entry(&program, &BTreeSet::new()), "max_");
        assert_eq!(entry(&program, &BTreeSet::from(["max_"])), "max__");
        program.name = "of_lane".to_string();
        assert_eq!(entry(&program, &BTreeSet::new()), "of_lane_");
    }
}
