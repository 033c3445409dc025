//! How the statements of a program use its memories, registers and instructions, gathered in one walk: reading a large
//! program from memory takes longer than counting.

use std::collections::BTreeSet;

use tilewright_expr::Var;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Inst, Memory, MmaInst, Note, Program, RegArray, Resource, Stmt};

use crate::tensor::{MoveFunction, ProductFunction};
use crate::tensor_copies::EngineFunction;
use crate::values::products::Flows;
use crate::wgmma::WgmmaFunction;

/// What the statements of a program use, and how.
pub(crate) struct Uses<'a> {
    program: &'a Program,
    memories: Vec<MemoryUses>,
    arrays: Vec<ArrayUses>,
    /// The names of the kernel, sorted.
    names: Vec<&'a str>,
    /// Where products go, to be found in sums.
    flows: Flows<'a>,
    /// The instructions that it calls.
    pub(crate) insts: BTreeSet<Inst>,
    /// The products of a warp that it calls.
    pub(crate) products: BTreeSet<MmaInst>,
    /// The products of a warpgroup that it calls.
    pub(crate) warpgroup_products: BTreeSet<WgmmaFunction>,
    /// The kinds of products with sums in tensor memory.
    pub(crate) tensor_products: BTreeSet<ProductFunction>,
    /// The loads of tensor memory.
    pub(crate) tensor_moves: BTreeSet<MoveFunction>,
    /// The functions by which it tells the copy engine to copy.
    pub(crate) engine: BTreeSet<EngineFunction>,
    /// Whether it elects threads.
    pub(crate) elects: bool,
}

/// How a program uses a memory.
#[derive(Clone, Default)]
struct MemoryUses {
    /// Whether a statement touches it, or a view of it.
    is_mentioned: bool,
    is_read: bool,
    /// The ops that write to it.
    writers: BTreeSet<Option<Handle<Note>>>,
}

/// How many statements use an array of registers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ArrayUses {
    /// Reads of some of its registers.
    pub(crate) reads: usize,
    /// Writes to some of them.
    pub(crate) writes: usize,
    /// Those of the writes that give values to a whole vector, by loads or as pairs.
    pub(crate) loads: usize,
    /// Bytes of the widest vector that moves through it.
    pub(crate) widest: i64,
}

impl<'a> Uses<'a> {
    pub(crate) fn of(program: &'a Program) -> Uses<'a> {
        let memories = program.memories.iter().map(|(_, memory)| memory.name.as_str());
        let memories = memories.chain(program.maps.iter().map(|(_, map)| map.name.as_str()));
        let arrays = program.registers.iter().map(|(_, array)| array.name.as_str());
        let mut uses = Uses {
            program,
            names: memories.chain(arrays).chain(program.sizes.iter().map(Var::name)).collect(),
            flows: Flows::new(program),
            memories: vec![MemoryUses::default(); program.memories.len()],
            arrays: vec![ArrayUses::default(); program.registers.len()],
            insts: BTreeSet::new(),
            products: BTreeSet::new(),
            warpgroup_products: BTreeSet::new(),
            tensor_products: BTreeSet::new(),
            tensor_moves: BTreeSet::new(),
            engine: BTreeSet::new(),
            elects: false,
        };
        uses.body(&program.body, None);
        uses.names.sort_unstable();
        for (memory, _) in program.memories.iter() {
            let is_mentioned = uses.memories[memory.index()].is_mentioned;
            program.viewed(memory).for_each(|of| uses.memories[of.index()].is_mentioned |= is_mentioned);
        }
        uses
    }

    /// Whether statements touch a memory, or a view of it. Others are not declared: NVRTC warns about unused names.
    pub(crate) fn has_memory(&self, memory: Handle<Memory>) -> bool {
        self.memories[memory.index()].is_mentioned
    }

    /// Whether a program writes a memory, and also reads it or writes it again in another op. Threads may pass values to
    /// each other through such a parameter. It is not `__restrict__`: NVRTC takes a barrier for a call that does not touch
    /// what the parameter points to, and forwards a thread's own earlier value across it.
    pub(crate) fn is_exchanged(&self, memory: Handle<Memory>) -> bool {
        let MemoryUses { is_read, writers, .. } = &self.memories[memory.index()];
        writers.len() > 1 || *is_read && !writers.is_empty()
    }

    /// Whether statements use an array of registers.
    pub(crate) fn has_array(&self, array: Handle<RegArray>) -> bool {
        let ArrayUses { reads, writes, .. } = self.of_array(array);
        reads + writes > 0
    }

    /// How many statements use an array of registers.
    pub(crate) fn of_array(&self, array: Handle<RegArray>) -> ArrayUses {
        self.arrays[array.index()]
    }

    /// The register arrays whose values may become operands of sums.
    pub(crate) fn summed_arrays(&self) -> BTreeSet<Handle<RegArray>> {
        self.flows.summed_arrays()
    }

    /// The name of a function, with `::` if a name of the kernel hides it.
    pub(crate) fn visible(&self, function: &str) -> String {
        if self.names.binary_search(&function).is_ok() { format!("::{function}") } else { function.to_string() }
    }

    fn body(&mut self, body: &'a [Stmt], op: Option<Handle<Note>>) {
        for stmt in body {
            self.stmt(stmt, op);
            let op = match stmt {
                Stmt::Op { note, .. } => Some(*note),
                _ => op,
            };
            self.body(stmt.inner(), op);
        }
    }

    fn stmt(&mut self, stmt: &'a Stmt, op: Option<Handle<Note>>) {
        self.names.extend(stmt.defines().iter().map(Var::name));
        self.flows.stmt(stmt);
        let Program { registers, memories, .. } = self.program;
        stmt.for_each_vector(registers, memories, &mut |array, bytes| {
            let widest = &mut self.arrays[array.index()].widest;
            *widest = bytes.max(*widest);
        });
        stmt.for_each_resource(&mut |effect, resource| match resource {
            Resource::Registers(regs) => {
                let uses = &mut self.arrays[regs.array.index()];
                uses.reads += usize::from(effect.reads());
                uses.writes += usize::from(effect.writes());
            }
            Resource::Memory(access) => {
                let uses = &mut self.memories[access.memory.index()];
                uses.is_mentioned = true;
                uses.is_read |= effect.reads();
                if effect.writes() {
                    uses.writers.insert(op);
                }
            }
        });
        if let Some(array) = loaded(stmt) {
            self.arrays[array.index()].loads += 1;
        }
        match stmt {
            Stmt::Inst(call) => _ = self.insts.insert(call.inst),
            Stmt::Mma(product) => _ = self.products.insert(product.inst),
            Stmt::TensorMma(product) => _ = self.tensor_products.insert(ProductFunction::of(product)),
            Stmt::TensorMove(moved) => _ = self.tensor_moves.insert(MoveFunction::of(self.program, moved)),
            Stmt::WarpgroupMma(product) => _ = self.warpgroup_products.insert(WgmmaFunction::of(product)),
            Stmt::TensorCopy(copy) => {
                self.engine.insert(EngineFunction::of(self.program, copy));
                if copy.full().is_none() {
                    self.memories[copy.part.tensor(&self.program.maps).index()].writers.insert(op);
                }
            }
            Stmt::Elect { .. } => self.elects = true,
            _ => {}
        }
    }
}

/// The array to which a statement gives a whole vector of values.
pub(crate) fn loaded(stmt: &Stmt) -> Option<Handle<RegArray>> {
    match stmt {
        Stmt::Load { to, .. } | Stmt::AssignPair { to, .. } => Some(to.array),
        _ => None,
    }
}
