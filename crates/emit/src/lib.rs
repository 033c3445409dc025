//! Emission: prints verified thread programs as CUDA C++ that reads as if written by hand.
//!
//! Statements and expressions are printed by Rust; a Tera template has the skeleton around them. The text includes no
//! header. A source map leads from each of its lines to the tile op and the user's line that it came from.

mod asynchronous;
mod combined;
mod constants;
mod defect;
mod dtype;
mod immediates;
mod index;
mod mma;
mod names;
mod registers;
pub mod reserved;
mod source_map;
mod statements;
mod tensor;
mod tensor_copies;
mod uses;
mod values;
mod wgmma;
mod wrapped;

pub use source_map::{Origin, SourceMap, StoreLine};

use std::collections::BTreeSet;
use std::sync::LazyLock;

use indexmap::IndexMap;
use tera::{Context, Tera};
use tilewright_diag::Diagnostic;
use tilewright_ir::thread::{Memory, MemorySpace, Program, RegArray};
use tilewright_ir::{Handle, SHARED_ALIGNMENT, VerifiedProgram, padded_shared_bytes};

use crate::immediates::take_immediates;
use crate::names::SHARED_WINDOW;
use crate::statements::declarations::Declarations;
use crate::statements::{MOST_COLUMNS, Printer};
use crate::uses::Uses;

/// Shared memory that a kernel may declare statically; more has to be dynamic (CUDA C++ Programming Guide, "Shared
/// Memory" of compute capability 9.x and 10.x).
const STATIC_SHARED_BYTES: i64 = 48 * 1024;

/// The CUDA text of a kernel, with what launches and diagnostics need to know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The CUDA C++ text.
    pub cuda: String,
    /// The entry point's name in it.
    pub entry: String,
    /// Where each of its lines comes from.
    pub source_map: SourceMap,
    /// Bytes of dynamic shared memory that a launch must request.
    pub dynamic_shared_bytes: i64,
}

static TEMPLATES: LazyLock<Result<Tera, String>> = LazyLock::new(|| {
    let mut tera = Tera::default();
    // The usual delimiters collide with CUDA: {{1,2},{3,4}} and "{%0,%1}" are CUDA, not templates.
    let delimiters = tera::Delimiters {
        block_start: "<%".into(),
        block_end: "%>".into(),
        variable_start: "«".into(),
        variable_end: "»".into(),
        comment_start: "<#".into(),
        comment_end: "#>".into(),
    };
    tera.set_delimiters(delimiters).map_err(|e| e.to_string())?;
    tera.add_raw_template("kernel.cu", include_str!("../templates/kernel.cu.tera")).map_err(|e| e.to_string())?;
    Ok(tera)
});

/// Prints a program. An error is a defect of Tilewright.
pub fn emit(program: &VerifiedProgram) -> Result<Emitted, Diagnostic> {
    let own = program.program();
    let mut named = names::in_cuda(own);
    let immediates = take_immediates(&mut named);
    let program: &Program = &named;
    let uses = Uses::of(program);
    let shared = SharedPlan::of(program, &uses);
    let engine_names = [tensor_copies::names(program, &uses), wgmma::names(&uses), tensor::names(&uses)].concat();
    let mut printer = Printer::new(program, &uses, &immediates);
    printer.body(&program.body)?;
    let around_instructions = [
        tensor_copies::functions(program, &uses),
        wrapped::functions(&uses),
        asynchronous::functions(&printer.called),
        mma::functions(&uses),
        wgmma::functions(&uses),
        tensor::functions(&uses),
    ];
    let functions = together([printer.functions(), around_instructions.concat()].concat());
    let wrapped_names = wrapped::function_names(&uses)
        .chain(asynchronous::function_names(&printer.called))
        .chain(mma::function_names(&uses));
    let mut function_names: BTreeSet<&str> = printer.function_names().chain(wrapped_names).collect();
    function_names.extend(engine_names.iter().map(String::as_str));
    let locals = [shared.locals(program, &uses), printer.hardware_indices(), printer.cursors()].concat();
    let entry = names::entry(program, &function_names);
    let (mut cuda, lines) = printer.finish();
    let mut context = Context::new();
    context.insert("name", &program.name);
    context.insert("entry", &entry);
    context.insert("target", program.target.name());
    let cluster = (program.cluster > 1).then(|| format!("__cluster_dims__({}, 1, 1) ", program.cluster));
    context.insert("cluster", &cluster.unwrap_or_default());
    context.insert("threads", &program.threads);
    context.insert("parameters", &parameters(program, &uses));
    let tables = tables(program, &uses);
    let declarations: Vec<String> = shared.declarations().into_iter().chain(tables).chain(functions).collect();
    context.insert("declarations", &declarations);
    context.insert("locals", &locals);
    let templates = TEMPLATES.as_ref().map_err(|e| template_defect(e))?;
    // The template ends where the statements begin, since it would copy them several times.
    let head = templates.render("kernel.cu", &context).map_err(|e| template_defect(&e.to_string()))?;
    let before = head.lines().count();
    cuda.insert_str(0, &head);
    cuda.push_str("}\n");
    Ok(Emitted {
        cuda,
        entry,
        source_map: SourceMap::new(own, before, lines),
        dynamic_shared_bytes: shared.dynamic_bytes,
    })
}

/// The lines of functions, each followed by an empty line, without those between functions of one line.
fn together(functions: Vec<String>) -> Vec<String> {
    let is_between = |at: usize| {
        let is_function = |at: usize| functions[at].starts_with("__device__") && functions[at].ends_with('}');
        functions[at].is_empty() && at > 0 && is_function(at - 1) && at + 1 < functions.len() && is_function(at + 1)
    };
    (0..functions.len()).filter(|at| !is_between(*at)).map(|at| functions[at].clone()).collect()
}

fn template_defect(text: &str) -> Diagnostic {
    Diagnostic::internal("E0501", "a template does not render").note(text)
}

fn parameters(program: &Program, uses: &Uses) -> String {
    let parameter = |(handle, memory): (Handle<Memory>, &Memory)| match memory.space {
        MemorySpace::Global { read_only, may_alias } => {
            let qualifier = if read_only { "const " } else { "" };
            let restrict = if may_alias || uses.is_exchanged(handle) { "" } else { "__restrict__ " };
            Some(format!("{qualifier}{}* {restrict}{}", dtype::c_type(memory.dtype), memory.name))
        }
        MemorySpace::Shared | MemorySpace::SharedView { .. } | MemorySpace::SharedInside { .. } => None,
        MemorySpace::Table => None,
    };
    let pointers = program.memories.iter().filter_map(parameter);
    let sizes = program.sizes.iter().map(|size| format!("int {}", size.name()));
    let scalar = |array: &Handle<RegArray>| {
        let RegArray { name, dtype, .. } = &program.registers[*array];
        format!("{} {name}", dtype::c_type(*dtype))
    };
    let maps = program.maps.iter().map(|(_, map)| tensor_copies::parameter(map, uses));
    pointers.chain(sizes).chain(program.scalars.iter().map(scalar)).chain(maps).collect::<Vec<_>>().join(", ")
}

/// Entries of a table on one line.
const ENTRIES: usize = 16;

/// The definitions of the tables, in front of the kernel, one text for each: a table may have a million entries, and the
/// template engine needs many times the memory for as many lines.
fn tables(program: &Program, uses: &Uses) -> Vec<String> {
    let mut definitions = Vec::new();
    let tables = program.memories.iter().filter(|(_, memory)| memory.space == MemorySpace::Table);
    for (_, table) in tables.filter(|(handle, _)| uses.has_memory(*handle)) {
        let Memory { name, dtype, elements, alignment, .. } = table;
        let c_type = dtype::c_type(*dtype);
        let mut text = format!("__device__ alignas({alignment}) const {c_type} {name}[{elements}] = {{\n");
        for entries in table.values.chunks(ENTRIES) {
            let entries: Vec<String> = entries.iter().map(i64::to_string).collect();
            text += &format!("  {},\n", entries.join(", "));
        }
        text += "};\n";
        definitions.push(text);
    }
    definitions
}

/// Where shared buffers are: a static array each, or parts of the dynamic window if static arrays are not enough.
struct SharedPlan {
    /// Byte offset in the dynamic window of every shared memory, in the order in which they were declared.
    offsets: IndexMap<Handle<Memory>, i64>,
    /// Bytes of the dynamic window; 0 if all arrays are static.
    dynamic_bytes: i64,
}

impl SharedPlan {
    fn of(program: &Program, uses: &Uses) -> SharedPlan {
        let mut offsets = IndexMap::new();
        let mut total = 0;
        let shared = program.memories.iter().filter(|(_, m)| m.space == MemorySpace::Shared);
        let mut shared: Vec<_> = shared.filter(|(handle, _)| uses.has_memory(*handle)).collect();
        // Each takes a multiple of the bytes to which it is aligned, so the widest alignments come first.
        shared.sort_by_key(|(_, memory)| std::cmp::Reverse(memory.alignment));
        let widest = shared.first().map_or(SHARED_ALIGNMENT, |(_, memory)| memory.alignment);
        for (handle, memory) in shared {
            offsets.insert(handle, total);
            total += padded_shared_bytes(memory.elements * memory.dtype.bytes());
        }
        // The CUDA compiler may leave gaps between static arrays of different alignments.
        let is_static = total + widest - SHARED_ALIGNMENT <= STATIC_SHARED_BYTES;
        let dynamic_bytes = if is_static { 0 } else { total };
        SharedPlan { offsets, dynamic_bytes }
    }

    fn declarations(&self) -> Vec<String> {
        if self.dynamic_bytes == 0 {
            return Vec::new();
        }
        vec![format!("extern __shared__ __align__(1024) unsigned char {SHARED_WINDOW}[];"), String::new()]
    }

    /// The lines that declare shared buffers and their views inside the kernel, if statements touch them.
    fn locals(&self, program: &Program, uses: &Uses) -> Vec<String> {
        let (mut declared, mut lines) = (Declarations::default(), Vec::new());
        for (handle, memory) in program.memories.iter().filter(|(handle, _)| uses.has_memory(*handle)) {
            let c_type = dtype::c_type(memory.dtype);
            let name = &memory.name;
            match memory.space {
                MemorySpace::Global { .. } | MemorySpace::Table => {}
                MemorySpace::Shared if self.dynamic_bytes == 0 => {
                    let head = format!("__shared__ alignas({}) {c_type}", memory.alignment);
                    declared.add(head, format!("{name}[{}]", memory.elements));
                }
                MemorySpace::Shared => {
                    let offset = self.offsets[&handle];
                    lines.push(format!(
                        "{c_type}* const {name} = reinterpret_cast<{c_type}*>({SHARED_WINDOW} + {offset});"
                    ));
                }
                MemorySpace::SharedView { of } | MemorySpace::SharedInside { of } => {
                    let owner = &program.memories[of];
                    let value = if owner.dtype == memory.dtype {
                        owner.name.clone()
                    } else {
                        format!("reinterpret_cast<{c_type}*>({})", owner.name)
                    };
                    lines.push(format!("{c_type}* const {name} = {value};"));
                }
            }
        }
        [declared.lines(MOST_COLUMNS - 2), lines].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_that_does_not_render_is_our_defect() {
        assert_eq!(template_defect("x").to_string(), "internal error[E0501]: a template does not render");
    }

    #[test]
    fn the_templates_parse() {
        assert!(TEMPLATES.is_ok());
    }
}
