//! What memory is called in the reasons of barriers and waits.

use tilewright_ir::Handle;
use tilewright_ir::thread::{Memory, Program, Stmt, for_each_stmt};

/// The buffers through which statements access a memory: `second`, or `second` in the storage of `first`.
pub(crate) fn name_in(program: &Program, body: &[Stmt], memory: Handle<Memory>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for_each_stmt(body, &mut |stmt| {
        for access in stmt.accesses().filter(|access| program.owner(access.memory) == memory) {
            let name = &program.memories[program.buffer(access.memory)].name;
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    });
    let owner = program.memories[memory].name.as_str();
    // The copy engine knows tensors by their maps.
    if program.memories[memory].is_global() {
        return format!("`{owner}`");
    }
    let quoted = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.contains(&owner) { quoted } else { format!("{quoted} in the storage of `{owner}`") }
}
