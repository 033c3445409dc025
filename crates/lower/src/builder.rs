//! The thread program under construction.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tilewright_diag::Span;
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Simplifier, Var};
use tilewright_ir::thread::{Cond, Memory, MemorySpace, Program, RegArray, Regs, Stmt};
use tilewright_ir::tile::{
    Buffer, CopiedTiles, Direction, Kernel, OpKind, PAIR, Role, ScalarParameter, SharedStorage, Space,
};
use tilewright_ir::{Dim, GLOBAL_ALIGNMENT, Handle, HwIndex, SHARED_ALIGNMENT, Scalar, Target, tile};
use tilewright_layout::map::Map;
use tilewright_layout::{DType, Layout};

use crate::fragment_registers::FragmentRegisters;

pub(crate) struct Builder {
    /// The program built so far.
    pub(crate) program: Program,
    pub(crate) simplifier: Simplifier,
    /// Names that are taken.
    names: BTreeSet<String>,
    /// For each base name, the first numeric suffix that may be free.
    next: BTreeMap<String, usize>,
    /// The names that were added, in order.
    added: Vec<AddedName>,
    /// The memory of each buffer in global or shared memory.
    memories: BTreeMap<Handle<Buffer>, Handle<Memory>>,
    /// The register array of each fragment.
    fragments: BTreeMap<Handle<Buffer>, Handle<RegArray>>,
    /// What [`Builder::fragment_registers`] found so far.
    resolved: RefCell<BTreeMap<Handle<Buffer>, Arc<FragmentRegisters>>>,
    /// The maps of layouts on so many threads, each listed once: many fragments and loops share a layout.
    maps: RefCell<BTreeMap<(i64, Layout), Arc<Map>>>,
    /// What copies read of tiles in shared memory.
    pub(crate) copied_tiles: CopiedTiles,
    /// Shared memory that ops of a role, or of all threads, go through, one after the other.
    staged: Vec<(Option<Handle<Role>>, Handle<Memory>)>,
    /// The role of the op that is being lowered.
    pub(crate) role: Option<Handle<Role>>,
    /// The roles that run in the first CTA of a pair only.
    pub(crate) leading: BTreeSet<Handle<Role>>,
}

impl Builder {
    pub(crate) fn new(kernel: &Kernel, target: Target) -> Builder {
        let program = Program {
            sizes: kernel.sizes.iter().map(|size| size.var.clone()).collect(),
            grid: kernel.grid.clone(),
            cluster: kernel.cluster_ctas(),
            roles: kernel.roles.clone(),
            ..Program::new(&kernel.name, target, kernel.threads)
        };
        let mut names: BTreeSet<String> = HwIndex::ALL.iter().map(|index| index.name().to_string()).collect();
        names.extend(kernel.buffers.iter().map(|(_, b)| b.name.clone()));
        names.insert(kernel.name.clone());
        names.extend(kernel.sizes.iter().map(|size| size.var.name().to_string()));
        names.extend(kernel.scalars.iter().map(|scalar| scalar.name.clone()));
        names.extend(kernel.loaded.iter().map(|loaded| loaded.var.name().to_string()));
        loop_names(&kernel.body, &mut names);
        let mut builder = Builder {
            program,
            simplifier: Simplifier::new(),
            names,
            next: BTreeMap::new(),
            added: Vec::new(),
            memories: BTreeMap::new(),
            fragments: BTreeMap::new(),
            resolved: RefCell::default(),
            maps: RefCell::default(),
            copied_tiles: CopiedTiles::of(kernel),
            staged: Vec::new(),
            role: None,
            leading: kernel.roles.iter().map(|(role, _)| role).filter(|role| kernel.leads(*role)).collect(),
        };
        for ScalarParameter { name, dtype, .. } in &kernel.scalars {
            let array = RegArray { name: name.clone(), dtype: *dtype, len: 1, vector: 1 };
            let array = builder.program.registers.push(array);
            builder.program.scalars.push(array);
        }
        let touched = kernel.touched();
        let shared = kernel.shared_storage(target);
        // Buffers follow those in which they lie.
        let mut buffers: Vec<(Handle<Buffer>, &Buffer)> = kernel.buffers.iter().collect();
        buffers.sort_by_key(|(handle, _)| shared.inside.contains_key(&kernel.storage(*handle)));
        for (handle, buffer) in buffers {
            builder.declare_buffer(kernel, handle, buffer, (&touched, &shared));
        }
        builder
    }

    fn declare_buffer(
        &mut self,
        kernel: &Kernel,
        handle: Handle<Buffer>,
        buffer: &Buffer,
        (touched, shared): (&BTreeSet<Handle<Buffer>>, &SharedStorage),
    ) {
        let storage = kernel.storage(handle);
        let space = match buffer.space {
            Space::Fragment => return self.declare_fragment(kernel, handle, buffer, touched),
            Space::Tensor => return,
            Space::Global(direction) => {
                let may_alias = may_share_memory(kernel, storage);
                MemorySpace::Global { read_only: direction == Direction::Input, may_alias }
            }
            Space::Shared if storage == handle => match shared.inside.get(&handle) {
                Some(of) => MemorySpace::SharedInside { of: self.memories[of] },
                None => MemorySpace::Shared,
            },
            Space::Shared => MemorySpace::SharedView { of: self.memories[&storage] },
        };
        if matches!(buffer.space, Space::Global(_))
            && storage != handle
            && buffer.dtype == kernel.buffers[storage].dtype
        {
            // A view of a parameter is the parameter, read with another layout.
            let memory = self.memories[&storage];
            self.memories.insert(handle, memory);
            return;
        }
        let alignment = if matches!(buffer.space, Space::Shared) { SHARED_ALIGNMENT } else { GLOBAL_ALIGNMENT };
        let elements = buffer.span_elements();
        let memory = Memory::new(&buffer.name, buffer.dtype, elements, (space, alignment), buffer.span);
        let memory = in_stages(kernel, storage, Memory { caching: kernel.caching_of(handle), ..memory });
        let memory = self.program.memories.push(memory);
        self.memories.insert(handle, memory);
    }

    /// Declares one register array for a fragment and the views of it that statements use, with the widest of their
    /// dtypes. A fragment without a layout is not used, and gets none.
    fn declare_fragment(
        &mut self,
        kernel: &Kernel,
        handle: Handle<Buffer>,
        buffer: &Buffer,
        touched: &BTreeSet<Handle<Buffer>>,
    ) {
        let storage = kernel.storage(handle);
        if storage != handle {
            if let Some(array) = self.fragments.get(&storage) {
                self.fragments.insert(handle, *array);
            }
            return;
        }
        if buffer.layout.is_none() {
            return;
        }
        let is_used = |view: Handle<Buffer>| view == handle || touched.contains(&view);
        let views = kernel.buffers.iter().filter(|(view, _)| kernel.storage(*view) == handle && is_used(*view));
        let dtypes: Vec<DType> = views.map(|(_, view)| view.dtype).collect();
        let widest = dtypes.iter().map(|dtype| dtype.bytes()).max().unwrap_or(buffer.dtype.bytes());
        let dtype = dtypes.iter().copied().find(|dtype| dtype.bytes() == widest).unwrap_or(buffer.dtype);
        let len = (buffer.span_elements() * buffer.dtype.bytes() + widest - 1) / widest;
        let array = self.program.registers.push(RegArray { name: buffer.name.clone(), dtype, len, vector: 1 });
        self.program.body.push(Stmt::Declare(array));
        if dtypes.iter().any(|dtype| dtype.bytes() < widest) {
            // Writing part of a register reads the rest of it, so the array is initialized.
            self.program.body.push(Stmt::Set { to: regs(array, 0, len), value: Scalar::Int(0) });
        }
        self.fragments.insert(handle, array);
    }

    pub(crate) fn memory(&self, buffer: Handle<Buffer>) -> Handle<Memory> {
        self.memories[&buffer]
    }

    pub(crate) fn fragment(&self, buffer: Handle<Buffer>) -> Handle<RegArray> {
        self.fragments[&buffer]
    }

    /// Lets a memory and its views begin at multiples of so many bytes.
    pub(crate) fn align(&mut self, owner: Handle<Memory>, alignment: i64) {
        self.for_each_view(&[owner], &mut |memory| memory.alignment = memory.alignment.max(alignment));
    }

    /// Calls `visit` on memories and on all views of them.
    pub(crate) fn for_each_view(&mut self, owners: &[Handle<Memory>], visit: &mut dyn FnMut(&mut Memory)) {
        let program = &mut self.program;
        let all: Vec<Handle<Memory>> = program.memories.iter().map(|(handle, _)| handle).collect();
        for handle in all.into_iter().filter(|handle| owners.contains(&program.owner(*handle))).collect::<Vec<_>>() {
            visit(&mut program.memories[handle]);
        }
    }

    /// The map of a layout on the threads of the kernel, or of the role that is being lowered. Error: as of [`Map::of_layout`].
    pub(crate) fn map_of(&self, layout: &Layout) -> Result<Arc<Map>, String> {
        let key = (self.program.threads, layout.clone());
        if let Some(known) = self.maps.borrow().get(&key) {
            return Ok(Arc::clone(known));
        }
        let map = Arc::new(Map::of_layout(layout, self.program.threads.max(1) as usize)?);
        self.maps.borrow_mut().insert(key, Arc::clone(&map));
        Ok(map)
    }

    /// Who holds which elements of a fragment, and where. Error: why its layout cannot be used.
    pub(crate) fn fragment_registers(
        &self,
        kernel: &Kernel,
        buffer: Handle<Buffer>,
    ) -> Result<Arc<FragmentRegisters>, String> {
        if let Some(known) = self.resolved.borrow().get(&buffer) {
            return Ok(Arc::clone(known));
        }
        let array = self.fragment(buffer);
        let register = self.program.registers[array].dtype;
        let owner = &kernel.buffers[kernel.storage(buffer)];
        let layout = owner.layout.as_ref().ok_or_else(|| format!("`{}` has no layout", owner.name))?;
        let map = self.map_of(layout).map_err(|why| format!("the layout of `{}` {why}", owner.name))?;
        let resolved = Arc::new(FragmentRegisters::of(kernel, buffer, &map, (array, register)));
        self.resolved.borrow_mut().insert(buffer, Arc::clone(&resolved));
        Ok(resolved)
    }

    /// `base`, or `base1`, `base2`, ... if that is taken.
    pub(crate) fn fresh(&mut self, base: &str) -> String {
        let numbered = |n: usize| if n == 0 { base.to_string() } else { format!("{base}{n}") };
        let first = self.next.get(base).copied().unwrap_or(0);
        let mut next = first;
        while self.names.contains(&numbered(next)) {
            next += 1;
        }
        let name = numbered(next);
        self.next.insert(base.to_string(), next + 1);
        self.names.insert(name.clone());
        self.added.push(AddedName { name: name.clone(), base: base.to_string(), first });
        name
    }

    /// Gives the arrays of `left`, which are those of `declared` that are still in the program, the first free numbers
    /// behind their names.
    pub(crate) fn renumber(&mut self, declared: &BTreeSet<Handle<RegArray>>, left: &BTreeSet<Handle<RegArray>>) {
        if declared == left {
            return;
        }
        for array in declared {
            self.names.remove(&self.program.registers[*array].name);
        }
        self.next.clear();
        let base_of = |known: &AddedName| (known.name.clone(), known.base.clone());
        let bases: BTreeMap<String, String> = self.added.iter().map(base_of).collect();
        // Those that are left come first; the others keep names of their own.
        for array in left.iter().chain(declared.difference(left)) {
            if let Some(base) = bases.get(&self.program.registers[*array].name) {
                self.program.registers[*array].name = self.fresh(base);
            }
        }
    }

    /// Whether something in the kernel has this name.
    pub(crate) fn is_taken(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// A state to return to with [`Builder::rewind`].
    pub(crate) fn mark(&self) -> Mark {
        Mark { names: self.added.len(), registers: self.program.registers.len(), memories: self.program.memories.len() }
    }

    /// Removes the names, register arrays and tables added since `mark`.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        for AddedName { name, base, first } in self.added.drain(mark.names..).rev() {
            self.names.remove(&name);
            self.next.insert(base, first);
        }
        self.program.registers.truncate(mark.registers);
        self.program.memories.truncate(mark.memories);
        self.staged.retain(|(_, memory)| memory.index() < mark.memories);
    }

    /// Shared memory of at least this many elements, for one op to go through: that of an earlier op of the same role if it is
    /// large enough. Ops of other roles run at the same time.
    pub(crate) fn staged(&mut self, dtype: DType, elements: i64, span: Span) -> Handle<Memory> {
        let memories = &self.program.memories;
        let fits = |(role, memory): &&(Option<Handle<Role>>, Handle<Memory>)| {
            *role == self.role && memories[*memory].dtype == dtype && memories[*memory].elements >= elements
        };
        if let Some((_, known)) = self.staged.iter().find(fits) {
            return *known;
        }
        let place = (MemorySpace::Shared, SHARED_ALIGNMENT);
        let memory = Memory::new(self.fresh("staged"), dtype, elements, place, span);
        let memory = self.program.memories.push(memory);
        self.staged.push((self.role, memory));
        memory
    }

    /// Shared memory for one op, with a name of its own.
    pub(crate) fn scratch(
        &mut self,
        base: &str,
        dtype: DType,
        (elements, alignment): (usize, i64),
        span: Span,
    ) -> Handle<Memory> {
        let place = (MemorySpace::Shared, alignment);
        let memory = Memory::new(self.fresh(base), dtype, elements as i64, place, span);
        self.program.memories.push(memory)
    }

    /// Whether no element of two memories is the same, whatever is passed to the kernel.
    pub(crate) fn are_apart(&self, a: Handle<Memory>, b: Handle<Memory>) -> bool {
        let may_alias = |memory: Handle<Memory>| match self.program.memories[memory].space {
            MemorySpace::Global { may_alias, .. } => may_alias,
            MemorySpace::Shared | MemorySpace::SharedInside { .. } | MemorySpace::SharedView { .. } => false,
            MemorySpace::Table => false,
        };
        self.program.owner(a) != self.program.owner(b) && !may_alias(a) && !may_alias(b)
    }

    /// Holds in the first CTA of a cluster.
    pub(crate) fn is_first_of_cluster(&self) -> Cond {
        Cond::Equal(self.rank(), Expr::constant(0))
    }

    /// Holds in the first CTA of a pair, which has an even rank.
    pub(crate) fn is_first_of_pair(&self) -> Cond {
        Cond::Equal(normalize(&(self.rank() % PAIR)), Expr::constant(0))
    }

    /// The rank of the first CTA of the pair of a CTA.
    pub(crate) fn first_of_pair(&self) -> Expr {
        normalize(&(self.rank() / PAIR * PAIR))
    }

    /// The rank of a CTA in its cluster.
    fn rank(&self) -> Expr {
        Expr::var(&HwIndex::Block(Dim::X).var(self.program.threads, &self.program.grid))
    }

    /// A new array of staging registers, one element each, and its declaration.
    pub(crate) fn staging(&mut self, dtype: DType, len: i64, body: &mut Vec<Stmt>) -> Handle<RegArray> {
        self.staging_vectors(dtype, len, 1, body)
    }

    /// A new array of staging registers that hold vectors of `vector` elements, and its declaration.
    pub(crate) fn staging_vectors(
        &mut self,
        dtype: DType,
        len: i64,
        vector: i64,
        body: &mut Vec<Stmt>,
    ) -> Handle<RegArray> {
        self.registers("r", dtype, len, vector, body)
    }

    /// A new array of registers called `base`, in vectors of `vector` elements, and its declaration.
    pub(crate) fn registers(
        &mut self,
        base: &str,
        dtype: DType,
        len: i64,
        vector: i64,
        body: &mut Vec<Stmt>,
    ) -> Handle<RegArray> {
        let name = self.fresh(base);
        let array = self.program.registers.push(RegArray { name, dtype, len, vector });
        body.push(Stmt::Declare(array));
        array
    }

    /// A table of constants, aligned to 16 bytes for lookups of several entries. Equal tables are one.
    pub(crate) fn table(&mut self, base: &str, values: Vec<i64>, span: Span) -> Handle<Memory> {
        let is_equal = |memory: &Memory| memory.space == MemorySpace::Table && memory.values == values;
        if let Some((known, _)) = self.program.memories.iter().find(|(_, memory)| is_equal(memory)) {
            return known;
        }
        let name = self.fresh(base);
        let is_narrow = values.iter().all(|value| i32::try_from(*value).is_ok());
        let dtype = if is_narrow { DType::I32 } else { DType::I64 };
        let table = Memory::new(name, dtype, values.len() as i64, (MemorySpace::Table, 16), span);
        self.program.memories.push(Memory { values, ..table })
    }

    /// Binds `value` to a variable. Constants are returned as they are; a value that `body` already binds keeps its
    /// variable.
    pub(crate) fn name(&mut self, base: &str, value: Expr, body: &mut Vec<Stmt>) -> Expr {
        if value.as_const().is_some() {
            return value;
        }
        for stmt in body.iter() {
            if let Stmt::Let { var, value: known } = stmt
                && *known == value
            {
                return Expr::var(var);
            }
        }
        let range = value.range();
        let var = Var::multiple_of(self.fresh(base), range.lo, range.hi, value.multiple());
        body.push(Stmt::Let { var: var.clone(), value });
        Expr::var(&var)
    }
}

/// A memory with a copy for each stage of the ring that its storage is a part of, if it is one.
fn in_stages(kernel: &Kernel, storage: Handle<Buffer>, memory: Memory) -> Memory {
    if kernel.ring_of(storage).is_none() {
        return memory;
    }
    let stages = kernel.stages_of(storage);
    let elements = stages * (kernel.stage_bytes(storage) / memory.dtype.bytes());
    Memory { stages, elements, alignment: kernel.stage_alignment(storage), ..memory }
}

fn loop_names(body: &[tile::Stmt], names: &mut BTreeSet<String>) {
    for stmt in body {
        match stmt {
            tile::Stmt::Loop(inner) => {
                names.insert(inner.counter.var.name().to_string());
                loop_names(&inner.body, names);
            }
            tile::Stmt::If(branch) => {
                loop_names(&branch.then, names);
                loop_names(&branch.otherwise, names);
            }
            tile::Stmt::Op(_) | tile::Stmt::Parallel(_) | tile::Stmt::EachThread(_) => {}
            tile::Stmt::Begin(_) | tile::Stmt::End(_) => {}
        }
    }
}

/// A name that was added.
struct AddedName {
    name: String,
    /// The base that it was made from.
    base: String,
    /// The suffix that might have been free before.
    first: usize,
}

/// The state of a [`Builder`], to which [`Builder::rewind`] returns.
pub(crate) struct Mark {
    /// Number of names added.
    names: usize,
    /// Number of register arrays.
    registers: usize,
    /// Number of memories.
    memories: usize,
}

/// `count` consecutive registers from the constant index `first` on.
pub(crate) fn regs(array: Handle<RegArray>, first: i64, count: i64) -> Regs {
    Regs { array, first: Expr::constant(first), count, step: 1 }
}

/// Whether a caller may pass the memory of another parameter for this one: both are operands of a `permute_layout`.
fn may_share_memory(kernel: &Kernel, parameter: Handle<Buffer>) -> bool {
    let is_global = |storage: &Handle<Buffer>| matches!(kernel.buffers[*storage].space, Space::Global(_));
    kernel.ops.iter().any(|(_, op)| {
        let storages: Vec<_> = op.operands.iter().map(|tile| kernel.storage(tile.buffer)).collect();
        op.kind == OpKind::PermuteLayout && storages.iter().all(is_global) && storages.contains(&parameter)
    })
}
