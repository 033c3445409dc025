//! The instruction table: what a thread can execute besides loads, stores and arithmetic.

use tilewright_layout::access::LANES;
use tilewright_layout::axis::Scope;

use crate::target::Target;
use crate::tile::Effect;

/// A row of the instruction table.
#[derive(Clone, Copy, Debug)]
pub struct InstInfo {
    /// Its name in the IR.
    pub name: &'static str,
    /// Its form in CUDA C++; each `%` stands for an operand: memory, then registers, then arguments. Where CUDA has none, it
    /// is empty, or a call of `name`: the emitter then writes a function called `name` around `ptx`.
    pub cuda: &'static str,
    /// The PTX it stands for (PTX ISA, "Parallel Synchronization and Communication Instructions" and "Data
    /// Movement and Conversion Instructions").
    pub ptx: &'static str,
    /// The register that it writes. A predicate is a word that is 0 or 1.
    pub result: Option<RegisterOperand>,
    /// Whether a register may get the element as it was before the instruction, as wide as the element.
    pub gives_old: bool,
    /// The registers that it reads.
    pub registers: &'static [RegisterOperand],
    /// The elements of memory that it accesses.
    pub memory: &'static [MemoryOperand],
    /// Number of integer operands.
    pub arguments: usize,
    /// Whether lanes may give different integers, where several threads execute it together.
    pub takes_any_argument: bool,
    /// The threads that must execute it together.
    pub issued_by: Scope,
    /// The scope in which it orders memory accesses.
    pub orders: Scope,
    /// The targets that have it.
    pub targets: &'static [Target],
    /// The function that the emitter writes around `ptx` as it stands, in lines; empty where operands determine it.
    pub function: &'static [&'static str],
}

impl InstInfo {
    /// The defaults of a row: each thread executes the instruction independently, and it has no operands.
    const PLAIN: InstInfo = InstInfo {
        name: "",
        cuda: "",
        ptx: "",
        result: None,
        gives_old: false,
        registers: &[],
        memory: &[],
        arguments: 0,
        takes_any_argument: false,
        issued_by: Scope::Thread,
        orders: Scope::Thread,
        targets: Target::ALL,
        function: &[],
    };
}

/// A register that an instruction reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterOperand {
    /// 32 bits.
    Word,
    /// 32 bits, or 64 that CUDA passes in two halves.
    WordOrPair,
    /// As wide as an element of the memory operand.
    Element,
    /// So many adjacent registers of 32 bits, which may hold several elements each.
    Words(i64),
}

/// Memory that an instruction accesses.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOperand {
    /// Whether it may be in global memory; all may be in shared memory.
    pub may_be_global: bool,
    /// Bytes that each lane accesses, from a multiple of as many on; `None` for an element.
    pub bytes: Option<i64>,
    /// How many lanes access it, from lane 0 on; the operands of the others do not count.
    pub lanes: usize,
    /// What is done to it.
    pub effect: Effect,
}

impl MemoryOperand {
    /// Whether it is a barrier: an element in shared memory alone.
    pub fn is_barrier(&self) -> bool {
        self.bytes.is_none() && !self.may_be_global
    }
}

macro_rules! instructions {
    ($($(#[$doc:meta])* $inst:ident { $($field:ident: $value:expr,)* })*) => {
        /// An instruction of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Inst {
            $($(#[$doc])* $inst,)*
        }

        impl Inst {
            /// Every instruction.
            pub const ALL: &'static [Inst] = &[$(Inst::$inst),*];

            /// Its row of the table.
            pub fn info(self) -> InstInfo {
                match self {
                    $(Inst::$inst => InstInfo { $($field: $value,)* ..InstInfo::PLAIN },)*
                }
            }
        }
    };
}

impl Inst {
    /// The instruction that combines one register with one element of memory in an atomic step as this one does, itself or
    /// one for several elements; `None` if this one does nothing of the kind.
    pub fn atomic(self) -> Option<Inst> {
        match self {
            Inst::AtomicAddX2 | Inst::AtomicAddX4 => Some(Inst::AtomicAdd),
            Inst::AtomicAddF16X2 | Inst::AtomicAddF16X4 | Inst::AtomicAddF16X8 => Some(Inst::AtomicAdd),
            Inst::AtomicAddBf16X2 | Inst::AtomicAddBf16X4 | Inst::AtomicAddBf16X8 => Some(Inst::AtomicAdd),
            _ => {
                matches!(self.info().memory, [one] if one.effect == Effect::Update && one.may_be_global).then_some(self)
            }
        }
    }

    /// Whether several of these at one element have the same result in any order.
    pub fn is_commutative(self) -> bool {
        self.atomic().is_some_and(|atomic| !matches!(atomic, Inst::AtomicExchange | Inst::AtomicCompareExchange))
    }

    /// The function in its CUDA text: what stands before the parenthesis.
    pub fn cuda_function(self) -> &'static str {
        self.info().cuda.split('(').next().unwrap_or_default()
    }
}

/// The 8 rows of each of `matrices` matrices, whose addresses as many lanes give.
const fn rows_of(matrices: usize, effect: Effect) -> MemoryOperand {
    MemoryOperand { may_be_global: false, bytes: Some(16), lanes: 8 * matrices, effect }
}

/// What a thread writes in shared memory.
const fn filled(bytes: i64) -> MemoryOperand {
    MemoryOperand { may_be_global: false, bytes: Some(bytes), lanes: LANES, effect: Effect::Write }
}

/// What a thread copies to shared memory, and what it reads for that.
const fn copied(bytes: i64) -> [MemoryOperand; 2] {
    let to = filled(bytes);
    [to, MemoryOperand { may_be_global: true, effect: Effect::Move, ..to }]
}

/// An element in any memory that is combined with a register.
const ATOMIC: MemoryOperand = MemoryOperand { may_be_global: true, bytes: None, lanes: LANES, effect: Effect::Update };

/// So many bytes of adjacent elements, each of which is combined with a register.
const fn adjacent(bytes: i64) -> MemoryOperand {
    MemoryOperand { bytes: Some(bytes), ..ATOMIC }
}

/// Bytes of the response to a claim (PTX ISA, "clusterlaunchcontrol.try_cancel").
pub const RESPONSE_BYTES: i64 = 16;

/// A barrier in shared memory: an element of 8 bytes.
const BARRIER: MemoryOperand = MemoryOperand { may_be_global: false, ..ATOMIC };

/// A barrier in shared memory at which threads wait.
const AWAITED: MemoryOperand = MemoryOperand { effect: Effect::Read, ..BARRIER };

instructions! {
    /// The lanes of a warp wait for each other; their earlier accesses are visible to all of them.
    SyncWarp {
        name: "syncwarp",
        cuda: "__syncwarp()",
        ptx: "bar.warp.sync 0xffffffff",
        issued_by: Scope::Warp,
        orders: Scope::Warp,
    }
    /// The threads of a CTA wait for each other; their earlier accesses are visible to all of them.
    SyncThreads {
        name: "syncthreads",
        cuda: "__syncthreads()",
        ptx: "bar.sync 0",
        issued_by: Scope::Cta,
        orders: Scope::Cta,
    }
    /// So many threads, those of whole warps, wait for each other at a barrier with this number, 1 to 15; their earlier accesses
    /// are visible to all of them (PTX ISA, `barrier`). Barrier 0 is that of the CTA.
    SyncWarps {
        name: "sync_warps",
        cuda: "sync_warps<%, %>()",
        ptx: "bar.sync",
        arguments: 2,
        issued_by: Scope::Warp,
        orders: Scope::Cta,
        function: &[
            "template <int Barrier, int Threads> __device__ __forceinline__ void sync_warps() {",
            "  asm volatile(\"bar.sync %0, %1;\" :: \"n\"(Barrier), \"n\"(Threads) : \"memory\");",
            "}",
        ],
    }
    /// Four of the eight bytes of two registers: byte `i` of the result is the byte that hexadecimal digit `i` of the
    /// selector names, 0 to 3 in the first register and 4 to 7 in the second.
    BytePermute {
        name: "byte_permute",
        cuda: "__byte_perm(%, %, %)",
        ptx: "prmt.b32",
        result: Some(RegisterOperand::Word),
        registers: &[RegisterOperand::Word, RegisterOperand::Word],
        arguments: 1,
    }
    /// The register of the lane whose number is that of this lane XOR the mask; all lanes of the warp take part.
    ShuffleXor {
        name: "shuffle_xor",
        cuda: "__shfl_xor_sync(0xffffffff, %, %)",
        ptx: "shfl.sync.bfly.b32",
        result: Some(RegisterOperand::WordOrPair),
        registers: &[RegisterOperand::WordOrPair],
        arguments: 1,
        issued_by: Scope::Warp,
    }
    /// The register of another lane, which each lane names; all lanes of the warp take part.
    Shuffle {
        name: "shuffle",
        cuda: "__shfl_sync(0xffffffff, %, %)",
        ptx: "shfl.sync.idx.b32",
        result: Some(RegisterOperand::WordOrPair),
        registers: &[RegisterOperand::WordOrPair],
        arguments: 1,
        issued_by: Scope::Warp,
        takes_any_argument: true,
    }
    /// The register of the lane with the first number in groups of as many lanes as the second says, a power of 2; all lanes of the
    /// warp take part.
    ShuffleWithin {
        name: "shuffle_within",
        cuda: "__shfl_sync(0xffffffff, %, %, %)",
        ptx: "shfl.sync.idx.b32",
        result: Some(RegisterOperand::WordOrPair),
        registers: &[RegisterOperand::WordOrPair],
        arguments: 2,
        issued_by: Scope::Warp,
    }
    /// A register is added to an element of memory, atomically (`atom.add` and `red.add`): relaxed and in the scope of the GPU,
    /// unless the [`Call`](crate::thread::Call) has another order or scope.
    AtomicAdd {
        name: "atomic_add",
        cuda: "atomicAdd(&%, %)",
        ptx: "red.relaxed.gpu.add",
        gives_old: true,
        registers: &[RegisterOperand::Element],
        memory: &[ATOMIC],
    }
    /// Two registers are added to two adjacent elements of f32 in global memory, each atomically (PTX ISA, `red`, vectors
    /// from sm_90 on).
    AtomicAddX2 {
        name: "atomic_add_x2",
        cuda: "atomic_add_x2(&%, %, %)",
        ptx: "red.global.add.v2.f32",
        registers: &[RegisterOperand::Element; 2],
        memory: const { &[adjacent(8)] },
        function: &[
            "__device__ __forceinline__ void atomic_add_x2(float* to, float a, float b) {",
            "  asm volatile(\"red.global.add.v2.f32 [%0], {%1, %2};\"",
            "               :: \"l\"(__cvta_generic_to_global(to)), \"f\"(a), \"f\"(b) : \"memory\");",
            "}",
        ],
    }
    /// As [`AtomicAddX2`](Inst::AtomicAddX2), for four elements.
    AtomicAddX4 {
        name: "atomic_add_x4",
        cuda: "atomic_add_x4(&%, %, %, %, %)",
        ptx: "red.global.add.v4.f32",
        registers: &[RegisterOperand::Element; 4],
        memory: const { &[adjacent(16)] },
        function: &[
            "__device__ __forceinline__ void atomic_add_x4(float* to, float a, float b, float c, float d) {",
            "  asm volatile(\"red.global.add.v4.f32 [%0], {%1, %2, %3, %4};\"",
            "               :: \"l\"(__cvta_generic_to_global(to)), \"f\"(a), \"f\"(b), \"f\"(c), \"f\"(d) : \"memory\");",
            "}",
        ],
    }
    /// Two registers are added to two adjacent elements of f16 in global memory, each atomically (PTX ISA, `red`, packed types).
    AtomicAddF16X2 {
        name: "atomic_add_f16x2",
        cuda: "atomic_add_f16x2(&%, %, %)",
        ptx: "red.global.add.noftz.f16x2",
        registers: &[RegisterOperand::Element; 2],
        memory: const { &[adjacent(4)] },
        function: &[
            "__device__ __forceinline__ void atomic_add_f16x2(unsigned short* to, unsigned short a, unsigned short b) {",
            "  asm volatile(\"red.global.add.noftz.f16x2 [%0], %1;\"",
            "               :: \"l\"(__cvta_generic_to_global(to)), \"r\"(a | b << 16) : \"memory\");",
            "}",
        ],
    }
    /// As [`AtomicAddF16X2`](Inst::AtomicAddF16X2), for four elements (PTX ISA, `red`, vectors from sm_90 on).
    AtomicAddF16X4 {
        name: "atomic_add_f16x4",
        cuda: "atomic_add_f16x4(&%, %, %, %, %)",
        ptx: "red.global.add.noftz.v2.f16x2",
        registers: &[RegisterOperand::Element; 4],
        memory: const { &[adjacent(8)] },
        function: &[
            "__device__ __forceinline__ void atomic_add_f16x4(unsigned short* to, unsigned short a, unsigned short b, unsigned short c, unsigned short d) {",
            "  asm volatile(\"red.global.add.noftz.v2.f16x2 [%0], {%1, %2};\"",
            "               :: \"l\"(__cvta_generic_to_global(to)), \"r\"(a | b << 16), \"r\"(c | d << 16) : \"memory\");",
            "}",
        ],
    }
    /// As [`AtomicAddF16X2`](Inst::AtomicAddF16X2), for eight elements (PTX ISA, `red`, vectors from sm_90 on).
    AtomicAddF16X8 {
        name: "atomic_add_f16x8",
        cuda: "atomic_add_f16x8(&%, %, %, %, %, %, %, %, %)",
        ptx: "red.global.add.noftz.v4.f16x2",
        registers: &[RegisterOperand::Element; 8],
        memory: const { &[adjacent(16)] },
        function: &[
            "__device__ __forceinline__ void atomic_add_f16x8(unsigned short* to, unsigned short a, unsigned short b, unsigned short c, unsigned short d,",
            "                                                 unsigned short e, unsigned short f, unsigned short g, unsigned short h) {",
            "  asm volatile(\"red.global.add.noftz.v4.f16x2 [%0], {%1, %2, %3, %4};\"",
            "               :: \"l\"(__cvta_generic_to_global(to)), \"r\"(a | b << 16), \"r\"(c | d << 16), \"r\"(e | f << 16), \"r\"(g | h << 16) : \"memory\");",
            "}",
        ],
    }
    /// Two registers are added to two adjacent elements of bf16 in global memory, each atomically (PTX ISA, `red`, packed types).
    AtomicAddBf16X2 {
        name: "atomic_add_bf16x2",
        cuda: "atomic_add_bf16x2(&%, %, %)",
        ptx: "red.global.add.noftz.bf16x2",
        registers: &[RegisterOperand::Element; 2],
        memory: const { &[adjacent(4)] },
        function: &[
            "__device__ __forceinline__ void atomic_add_bf16x2(unsigned short* to, unsigned short a, unsigned short b) {",
            "  asm volatile(\"red.global.add.noftz.bf16x2 [%0], %1;\"",
            "               :: \"l\"(__cvta_generic_to_global(to)), \"r\"(a | b << 16) : \"memory\");",
            "}",
        ],
    }
    /// As [`AtomicAddBf16X2`](Inst::AtomicAddBf16X2), for four elements (PTX ISA, `red`, vectors from sm_90 on).
    AtomicAddBf16X4 {
        name: "atomic_add_bf16x4",
        cuda: "atomic_add_bf16x4(&%, %, %, %, %)",
        ptx: "red.global.add.noftz.v2.bf16x2",
        registers: &[RegisterOperand::Element; 4],
        memory: const { &[adjacent(8)] },
        function: &[
            "__device__ __forceinline__ void atomic_add_bf16x4(unsigned short* to, unsigned short a, unsigned short b, unsigned short c, unsigned short d) {",
            "  asm volatile(\"red.global.add.noftz.v2.bf16x2 [%0], {%1, %2};\"",
            "               :: \"l\"(__cvta_generic_to_global(to)), \"r\"(a | b << 16), \"r\"(c | d << 16) : \"memory\");",
            "}",
        ],
    }
    /// As [`AtomicAddBf16X2`](Inst::AtomicAddBf16X2), for eight elements (PTX ISA, `red`, vectors from sm_90 on).
    AtomicAddBf16X8 {
        name: "atomic_add_bf16x8",
        cuda: "atomic_add_bf16x8(&%, %, %, %, %, %, %, %, %)",
        ptx: "red.global.add.noftz.v4.bf16x2",
        registers: &[RegisterOperand::Element; 8],
        memory: const { &[adjacent(16)] },
        function: &[
            "__device__ __forceinline__ void atomic_add_bf16x8(unsigned short* to, unsigned short a, unsigned short b, unsigned short c, unsigned short d,",
            "                                                 unsigned short e, unsigned short f, unsigned short g, unsigned short h) {",
            "  asm volatile(\"red.global.add.noftz.v4.bf16x2 [%0], {%1, %2, %3, %4};\"",
            "               :: \"l\"(__cvta_generic_to_global(to)), \"r\"(a | b << 16), \"r\"(c | d << 16), \"r\"(e | f << 16), \"r\"(g | h << 16) : \"memory\");",
            "}",
        ],
    }
    /// As [`AtomicAdd`](Inst::AtomicAdd), with the lesser of both.
    AtomicMin {
        name: "atomic_min",
        cuda: "atomicMin(&%, %)",
        ptx: "red.relaxed.gpu.min",
        gives_old: true,
        registers: &[RegisterOperand::Element],
        memory: &[ATOMIC],
    }
    /// The same with the greater of both.
    AtomicMax {
        name: "atomic_max",
        cuda: "atomicMax(&%, %)",
        ptx: "red.relaxed.gpu.max",
        gives_old: true,
        registers: &[RegisterOperand::Element],
        memory: &[ATOMIC],
    }
    /// The same with the bits that both have.
    AtomicAnd {
        name: "atomic_and",
        cuda: "atomicAnd(&%, %)",
        ptx: "red.relaxed.gpu.and",
        gives_old: true,
        registers: &[RegisterOperand::Element],
        memory: &[ATOMIC],
    }
    /// The same with the bits that one of them has.
    AtomicOr {
        name: "atomic_or",
        cuda: "atomicOr(&%, %)",
        ptx: "red.relaxed.gpu.or",
        gives_old: true,
        registers: &[RegisterOperand::Element],
        memory: &[ATOMIC],
    }
    /// The same with the bits that only one of them has.
    AtomicXor {
        name: "atomic_xor",
        cuda: "atomicXor(&%, %)",
        ptx: "red.relaxed.gpu.xor",
        gives_old: true,
        registers: &[RegisterOperand::Element],
        memory: &[ATOMIC],
    }
    /// The register replaces the element.
    AtomicExchange {
        name: "atomic_exchange",
        cuda: "atomicExch(&%, %)",
        ptx: "atom.relaxed.gpu.exch",
        gives_old: true,
        registers: &[RegisterOperand::Element],
        memory: &[ATOMIC],
    }
    /// The second register replaces the element if it has the bits of the first.
    AtomicCompareExchange {
        name: "atomic_compare_exchange",
        cuda: "atomicCAS(&%, %, %)",
        ptx: "atom.relaxed.gpu.cas",
        gives_old: true,
        registers: &[RegisterOperand::Element, RegisterOperand::Element],
        memory: &[ATOMIC],
    }
    /// Four matrices of 8 rows of 16 bytes, one in each word of the result: lane `l` gets word `l % 4` of row `l / 4`. Lane
    /// `8 * m + r` gives the address of row `r` of matrix `m` (PTX ISA, "Warp-level matrix load instruction: ldmatrix").
    LoadMatrixX4 {
        name: "ldmatrix_x4",
        ptx: "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
        result: Some(RegisterOperand::Words(4)),
        memory: const { &[rows_of(4, Effect::Read)] },
        issued_by: Scope::Warp,
        takes_any_argument: true,
    }
    /// As [`LoadMatrixX4`](Inst::LoadMatrixX4), for two matrices: only the addresses of the first 16 lanes count.
    LoadMatrixX2 {
        name: "ldmatrix_x2",
        ptx: "ldmatrix.sync.aligned.m8n8.x2.shared.b16",
        result: Some(RegisterOperand::Words(2)),
        memory: const { &[rows_of(2, Effect::Read)] },
        issued_by: Scope::Warp,
        takes_any_argument: true,
    }
    /// As [`LoadMatrixX4`](Inst::LoadMatrixX4), for one matrix: only the addresses of the first 8 lanes count.
    LoadMatrixX1 {
        name: "ldmatrix_x1",
        ptx: "ldmatrix.sync.aligned.m8n8.x1.shared.b16",
        result: Some(RegisterOperand::Words(1)),
        memory: const { &[rows_of(1, Effect::Read)] },
        issued_by: Scope::Warp,
        takes_any_argument: true,
    }
    /// As [`LoadMatrixX4`](Inst::LoadMatrixX4), with each matrix of 16-bit elements transposed: lane `l` gets column `l / 4` of
    /// rows `2 * (l % 4)` and `2 * (l % 4) + 1`.
    LoadMatrixTransX4 {
        name: "ldmatrix_x4_trans",
        ptx: "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
        result: Some(RegisterOperand::Words(4)),
        memory: const { &[rows_of(4, Effect::Read)] },
        issued_by: Scope::Warp,
        takes_any_argument: true,
    }
    /// As [`LoadMatrixX2`](Inst::LoadMatrixX2), with each matrix of 16-bit elements transposed: lane `l` gets column `l / 4` of
    /// rows `2 * (l % 4)` and `2 * (l % 4) + 1`.
    LoadMatrixTransX2 {
        name: "ldmatrix_x2_trans",
        ptx: "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
        result: Some(RegisterOperand::Words(2)),
        memory: const { &[rows_of(2, Effect::Read)] },
        issued_by: Scope::Warp,
        takes_any_argument: true,
    }
    /// As [`LoadMatrixX1`](Inst::LoadMatrixX1), with each matrix of 16-bit elements transposed: lane `l` gets column `l / 4` of
    /// rows `2 * (l % 4)` and `2 * (l % 4) + 1`.
    LoadMatrixTransX1 {
        name: "ldmatrix_x1_trans",
        ptx: "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16",
        result: Some(RegisterOperand::Words(1)),
        memory: const { &[rows_of(1, Effect::Read)] },
        issued_by: Scope::Warp,
        takes_any_argument: true,
    }
    /// Word `m` of each lane is stored in matrix `m`: lane `l` has word `l % 4` of row `l / 4`. Lane `8 * m + r` gives the
    /// address of row `r` of matrix `m`, 16 bytes (PTX ISA, "Warp-level matrix store instruction: stmatrix").
    StoreMatrixX4 {
        name: "stmatrix_x4",
        ptx: "stmatrix.sync.aligned.m8n8.x4.shared.b16",
        registers: &[RegisterOperand::Words(4)],
        memory: const { &[rows_of(4, Effect::Write)] },
        issued_by: Scope::Warp,
        takes_any_argument: true,
    }
    /// As [`StoreMatrixX4`](Inst::StoreMatrixX4), for two matrices: only the addresses of the first 16 lanes count.
    StoreMatrixX2 {
        name: "stmatrix_x2",
        ptx: "stmatrix.sync.aligned.m8n8.x2.shared.b16",
        registers: &[RegisterOperand::Words(2)],
        memory: const { &[rows_of(2, Effect::Write)] },
        issued_by: Scope::Warp,
        takes_any_argument: true,
    }
    /// As [`StoreMatrixX4`](Inst::StoreMatrixX4), for one matrix: only the addresses of the first 8 lanes count.
    StoreMatrixX1 {
        name: "stmatrix_x1",
        ptx: "stmatrix.sync.aligned.m8n8.x1.shared.b16",
        registers: &[RegisterOperand::Words(1)],
        memory: const { &[rows_of(1, Effect::Write)] },
        issued_by: Scope::Warp,
        takes_any_argument: true,
    }
    /// As [`StoreMatrixX4`](Inst::StoreMatrixX4), with each matrix of 16-bit elements transposed: lane `l` has column
    /// `l / 4` of rows `2 * (l % 4)` and `2 * (l % 4) + 1`.
    StoreMatrixTransX4 {
        name: "stmatrix_x4_trans",
        ptx: "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
        registers: &[RegisterOperand::Words(4)],
        memory: const { &[rows_of(4, Effect::Write)] },
        issued_by: Scope::Warp,
        takes_any_argument: true,
    }
    /// As [`StoreMatrixX2`](Inst::StoreMatrixX2), with each matrix of 16-bit elements transposed: lane `l` has column
    /// `l / 4` of rows `2 * (l % 4)` and `2 * (l % 4) + 1`.
    StoreMatrixTransX2 {
        name: "stmatrix_x2_trans",
        ptx: "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
        registers: &[RegisterOperand::Words(2)],
        memory: const { &[rows_of(2, Effect::Write)] },
        issued_by: Scope::Warp,
        takes_any_argument: true,
    }
    /// As [`StoreMatrixX1`](Inst::StoreMatrixX1), with each matrix of 16-bit elements transposed: lane `l` has column
    /// `l / 4` of rows `2 * (l % 4)` and `2 * (l % 4) + 1`.
    StoreMatrixTransX1 {
        name: "stmatrix_x1_trans",
        ptx: "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16",
        registers: &[RegisterOperand::Words(1)],
        memory: const { &[rows_of(1, Effect::Write)] },
        issued_by: Scope::Warp,
        takes_any_argument: true,
    }
    /// A thread starts to copy 4 bytes from global to shared memory. They have arrived when the thread has waited for the
    /// group of the copy ([`CopyAsyncWait`](Inst::CopyAsyncWait); PTX ISA, "cp.async").
    CopyAsync4 {
        name: "cp_async_4",
        cuda: "cp_async_4(&%, &%)",
        ptx: "cp.async.ca.shared.global",
        memory: const { &copied(4) },
        takes_any_argument: true,
    }
    /// As [`CopyAsync4`](Inst::CopyAsync4), 8 bytes.
    CopyAsync8 {
        name: "cp_async_8",
        cuda: "cp_async_8(&%, &%)",
        ptx: "cp.async.ca.shared.global",
        memory: const { &copied(8) },
        takes_any_argument: true,
    }
    /// As [`CopyAsync4`](Inst::CopyAsync4), 16 bytes.
    CopyAsync16 {
        name: "cp_async_16",
        cuda: "cp_async_16(&%, &%)",
        ptx: "cp.async.cg.shared.global",
        memory: const { &copied(16) },
        takes_any_argument: true,
    }
    /// A thread stores 4 bytes of zeros to shared memory. Where one branch is an asynchronous copy to the same place and the
    /// other is this, both are one instruction: a copy that reads nothing fills with zeros (PTX ISA, "cp.async").
    ZeroFill4 {
        name: "zero_fill_4",
        cuda: "zero_fill_4(&%)",
        ptx: "st.shared.b32",
        memory: const { &[filled(4)] },
        takes_any_argument: true,
    }
    /// As [`ZeroFill4`](Inst::ZeroFill4), 8 bytes.
    ZeroFill8 {
        name: "zero_fill_8",
        cuda: "zero_fill_8(&%)",
        ptx: "st.shared.v2.b32",
        memory: const { &[filled(8)] },
        takes_any_argument: true,
    }
    /// As [`ZeroFill4`](Inst::ZeroFill4), 16 bytes.
    ZeroFill16 {
        name: "zero_fill_16",
        cuda: "zero_fill_16(&%)",
        ptx: "st.shared.v4.b32",
        memory: const { &[filled(16)] },
        takes_any_argument: true,
    }
    /// The copies that a thread has started since the last commit become a group (PTX ISA, "cp.async.commit_group").
    CopyAsyncCommit {
        name: "cp_async_commit",
        cuda: "cp_async_commit()",
        ptx: "cp.async.commit_group",
    }
    /// A thread waits until at most so many of its latest groups are pending: the copies of the others have arrived, and the
    /// thread sees them (PTX ISA, "cp.async.wait_group").
    CopyAsyncWait {
        name: "cp_async_wait",
        cuda: "cp_async_wait<%>()",
        ptx: "cp.async.wait_group",
        arguments: 1,
    }
    /// A thread arrives at a barrier once all of its copies so far have arrived in shared memory (PTX ISA,
    /// "cp.async.mbarrier.arrive"). The arrival is one of those that the barrier expects.
    CopyAsyncArrive {
        name: "cp_async_arrive",
        cuda: "cp_async_arrive(&%)",
        ptx: "cp.async.mbarrier.arrive.noinc.shared::cta.b64",
        memory: const { &[BARRIER] },
        takes_any_argument: true,
        function: &[
            "// Arrives when the copies of this thread have.",
            "__device__ __forceinline__ void cp_async_arrive(unsigned long long* barrier) {",
            "  asm volatile(\"cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];\"",
            "               :: \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier))) : \"memory\");",
            "}",
        ],
    }
    /// A barrier in shared memory begins its first phase, which ends after so many arrivals (PTX ISA, "mbarrier.init").
    BarrierInit {
        name: "mbarrier_init",
        cuda: "mbarrier_init(&%, %)",
        ptx: "mbarrier.init.shared::cta.b64",
        memory: const { &[BARRIER] },
        arguments: 1,
        takes_any_argument: true,
        function: &[
            "__device__ __forceinline__ void mbarrier_init(unsigned long long* barrier, int arrivals) {",
            "  asm volatile(\"mbarrier.init.shared::cta.b64 [%0], %1;\"",
            "               :: \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier))), \"r\"(arrivals) : \"memory\");",
            "}",
        ],
    }
    /// A barrier ends: its memory may become another one (PTX ISA, "mbarrier.inval").
    BarrierInvalidate {
        name: "mbarrier_inval",
        cuda: "mbarrier_inval(&%)",
        ptx: "mbarrier.inval.shared::cta.b64",
        memory: const { &[BARRIER] },
        takes_any_argument: true,
        function: &[
            "__device__ __forceinline__ void mbarrier_inval(unsigned long long* barrier) {",
            "  asm volatile(\"mbarrier.inval.shared::cta.b64 [%0];\"",
            "               :: \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier))) : \"memory\");",
            "}",
        ],
    }
    /// The copy engine sees the barriers that this thread has initialised (PTX ISA, "membar / fence").
    BarrierInitFence {
        name: "fence_mbarrier_init",
        cuda: "fence_mbarrier_init()",
        ptx: "fence.mbarrier_init.release.cluster",
        function: &[
            "__device__ __forceinline__ void fence_mbarrier_init() {",
            "  asm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\");",
            "}",
        ],
    }
    /// A thread arrives at a barrier, and announces bytes that copies will bring before the phase ends (PTX ISA,
    /// "mbarrier.arrive", "expect-tx operation").
    BarrierExpect {
        name: "mbarrier_expect",
        cuda: "mbarrier_expect(&%, %)",
        ptx: "mbarrier.arrive.expect_tx.shared::cta.b64",
        memory: const { &[BARRIER] },
        arguments: 1,
        takes_any_argument: true,
        function: &[
            "// Arrives, and announces bytes that copies bring.",
            "__device__ __forceinline__ void mbarrier_expect(unsigned long long* barrier, int bytes) {",
            "  asm volatile(\"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\"",
            "               :: \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier))), \"r\"(bytes) : \"memory\");",
            "}",
        ],
    }
    /// A thread claims a tile: the work of a CTA that has not started, which then does not start. The response, 16 bytes, counts at
    /// a barrier when it is there (PTX ISA, "clusterlaunchcontrol.try_cancel").
    ClaimTile {
        name: "claim_tile",
        cuda: "claim_tile(&%, &%)",
        ptx: "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128",
        memory: const { &[filled(RESPONSE_BYTES), BARRIER] },
        takes_any_argument: true,
        targets: &[Target::Sm100a],
        function: &[
            "// Claims the tile of a CTA that has not started.",
            "__device__ __forceinline__ void claim_tile(void* response, unsigned long long* barrier) {",
            "  asm volatile(\"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];\"",
            "               :: \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(response))),",
            "                  \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier))) : \"memory\");",
            "}",
        ],
    }
    /// A thread claims a tile: the work of a cluster that has not started, which then does not start. All CTAs of the cluster of the
    /// thread get the response at the same place, and count it at the barriers at the same place (PTX ISA,
    /// "clusterlaunchcontrol.try_cancel", `.multicast::cluster::all`).
    ClaimTileOfCluster {
        name: "claim_tile_of_cluster",
        cuda: "claim_tile_of_cluster(&%, &%)",
        ptx: "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128",
        memory: const { &[filled(RESPONSE_BYTES), BARRIER] },
        takes_any_argument: true,
        targets: &[Target::Sm100a],
        function: &[
            "// Claims the tile of a cluster that has not started, for all CTAs of this one.",
            "__device__ __forceinline__ void claim_tile_of_cluster(void* response, unsigned long long* barrier) {",
            "  asm volatile(\"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes\"",
            "               \".multicast::cluster::all.b128 [%0], [%1];\"",
            "               :: \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(response))),",
            "                  \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier))) : \"memory\");",
            "}",
        ],
    }
    /// The tile in a response: the index along x of the CTA whose work was claimed, or the argument if none was left (PTX ISA,
    /// "clusterlaunchcontrol.query_cancel").
    ClaimedTile {
        name: "claimed_tile",
        cuda: "claimed_tile(&%, %)",
        ptx: "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128",
        result: Some(RegisterOperand::Word),
        memory: const { &[MemoryOperand { effect: Effect::Read, ..filled(RESPONSE_BYTES) }] },
        arguments: 1,
        takes_any_argument: true,
        issued_by: Scope::Warp,
        targets: &[Target::Sm100a],
        function: &[
            "// The tile that a warp has claimed, or `none`.",
            "__device__ __forceinline__ int claimed_tile(const void* response, int none) {",
            "  int tile;",
            "  asm volatile(\"{ .reg .b128 response;\\n\"",
            "               \"  .reg .pred is_claimed;\\n\"",
            "               \"  ld.shared.b128 response, [%1];\\n\"",
            "               \"  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 is_claimed, response;\\n\"",
            "               \"  mov.b32 %0, %2;\\n\"",
            "               \"  @is_claimed clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, response; }\"",
            "               : \"=&r\"(tile)",
            "               : \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(response))), \"r\"(none) : \"memory\");",
            "  // All lanes have read the same: this tells the compiler.",
            "  return __shfl_sync(0xffffffff, tile, 0);",
            "}",
        ],
    }
    /// The tile in a response: the index along y and z of the cluster whose work was claimed, where the first argument is the number
    /// of clusters along y, or the second one if none was left (PTX ISA, "clusterlaunchcontrol.query_cancel").
    ClaimedTileOfCluster {
        name: "claimed_tile_of_cluster",
        cuda: "claimed_tile_of_cluster(&%, %, %)",
        ptx: "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128",
        result: Some(RegisterOperand::Word),
        memory: const { &[MemoryOperand { effect: Effect::Read, ..filled(RESPONSE_BYTES) }] },
        arguments: 2,
        takes_any_argument: true,
        issued_by: Scope::Warp,
        targets: &[Target::Sm100a],
        function: &[
            "// The tile that a warp has claimed, in rows of so many columns, or `none`.",
            "__device__ __forceinline__ int claimed_tile_of_cluster(const void* response, int columns, int none) {",
            "  int tile;",
            "  asm volatile(\"{ .reg .b128 response;\\n\"",
            "               \"  .reg .pred is_claimed;\\n\"",
            "               \"  .reg .b32 column, row;\\n\"",
            "               \"  ld.shared.b128 response, [%1];\\n\"",
            "               \"  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 is_claimed, response;\\n\"",
            "               \"  mov.b32 %0, %3;\\n\"",
            "               \"  @is_claimed clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 column, response;\\n\"",
            "               \"  @is_claimed clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 row, response;\\n\"",
            "               \"  @is_claimed mad.lo.s32 %0, row, %2, column; }\"",
            "               : \"=&r\"(tile)",
            "               : \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(response))), \"r\"(columns), \"r\"(none) : \"memory\");",
            "  // All lanes have read the same: this tells the compiler.",
            "  return __shfl_sync(0xffffffff, tile, 0);",
            "}",
        ],
    }
    /// A thread arrives at a barrier: those that wait for the end of its phase see what the thread did before (PTX ISA,
    /// "mbarrier.arrive").
    BarrierArrive {
        name: "mbarrier_arrive",
        cuda: "mbarrier_arrive(&%)",
        ptx: "mbarrier.arrive.shared::cta.b64",
        memory: const { &[BARRIER] },
        takes_any_argument: true,
        function: &[
            "__device__ __forceinline__ void mbarrier_arrive(unsigned long long* barrier) {",
            "  asm volatile(\"mbarrier.arrive.shared::cta.b64 _, [%0];\"",
            "               :: \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier))) : \"memory\");",
            "}",
        ],
    }
    /// A thread waits until the phase of this parity has ended at a barrier (PTX ISA, "mbarrier.test_wait / try_wait").
    BarrierWait {
        name: "mbarrier_wait",
        cuda: "mbarrier_wait(&%, %)",
        ptx: "mbarrier.try_wait.parity.shared::cta.b64",
        memory: const { &[AWAITED] },
        arguments: 1,
        takes_any_argument: true,
        function: &[
            "__device__ __forceinline__ void mbarrier_wait(unsigned long long* barrier, int parity) {",
            "  asm volatile(\"{\\n\"",
            "               \"  .reg .pred over;\\n\"",
            "               \"again:\\n\"",
            "               \"  mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\\n\"",
            "               \"  @!over bra again;\\n\"",
            "               \"}\"",
            "               :",
            "               : \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier))), \"r\"(parity)",
            "               : \"memory\");",
            "}",
        ],
    }
    /// The threads of all CTAs of a cluster wait for each other; their earlier accesses are visible to all of them (PTX ISA,
    /// "barrier.cluster").
    SyncCluster {
        name: "sync_cluster",
        cuda: "sync_cluster()",
        ptx: "barrier.cluster.arrive.release.aligned",
        issued_by: Scope::Cta,
        orders: Scope::Cta,
        function: &[
            "// The threads of all CTAs of the cluster wait for each other.",
            "__device__ __forceinline__ void sync_cluster() {",
            "  asm volatile(\"barrier.cluster.arrive.release.aligned;\\n\"",
            "               \"barrier.cluster.wait.acquire.aligned;\" ::: \"memory\");",
            "}",
        ],
    }
    /// A thread arrives at the barrier at the same place in the CTA of the cluster with this rank (PTX ISA, "mbarrier.arrive", "mapa").
    BarrierArriveAt {
        name: "mbarrier_arrive_at",
        cuda: "mbarrier_arrive_at(&%, %)",
        ptx: "mbarrier.arrive.release.cluster.shared::cluster.b64",
        memory: const { &[BARRIER] },
        arguments: 1,
        takes_any_argument: true,
        function: &[
            "// Arrives at the barrier at this place in another CTA of the cluster.",
            "__device__ __forceinline__ void mbarrier_arrive_at(unsigned long long* barrier, int rank) {",
            "  asm volatile(\"{ .reg .b32 there;\\n\"",
            "               \"  mapa.shared::cluster.u32 there, %0, %1;\\n\"",
            "               \"  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }\"",
            "               :: \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier))), \"r\"(rank) : \"memory\");",
            "}",
        ],
    }
    /// As [`BarrierWait`](Inst::BarrierWait), for a barrier at which threads of other CTAs of the cluster arrive.
    BarrierWaitCluster {
        name: "mbarrier_wait_cluster",
        cuda: "mbarrier_wait_cluster(&%, %)",
        ptx: "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64",
        memory: const { &[AWAITED] },
        arguments: 1,
        takes_any_argument: true,
        function: &[
            "// Waits for what all CTAs of the cluster have done before they arrive.",
            "__device__ __forceinline__ void mbarrier_wait_cluster(unsigned long long* barrier, int parity) {",
            "  asm volatile(\"{\\n\"",
            "               \"  .reg .pred over;\\n\"",
            "               \"again:\\n\"",
            "               \"  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%0], %1;\\n\"",
            "               \"  @!over bra again;\\n\"",
            "               \"}\"",
            "               :",
            "               : \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier))), \"r\"(parity)",
            "               : \"memory\");",
            "}",
        ],
    }
    /// Products of the warpgroup that follow see what its threads have written to registers before (PTX ISA, "wgmma.fence").
    WarpgroupFence {
        name: "wgmma_fence",
        cuda: "wgmma_fence()",
        ptx: "wgmma.fence.sync.aligned",
        issued_by: Scope::Warpgroup,
        targets: &[Target::Sm90a],
        function: &[
            "__device__ __forceinline__ void wgmma_fence() {",
            "  asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");",
            "}",
        ],
    }
    /// The products of the warpgroup since the last commit become a group (PTX ISA, "wgmma.commit_group").
    WarpgroupCommit {
        name: "wgmma_commit",
        cuda: "wgmma_commit()",
        ptx: "wgmma.commit_group.sync.aligned",
        issued_by: Scope::Warpgroup,
        targets: &[Target::Sm90a],
        function: &[
            "__device__ __forceinline__ void wgmma_commit() {",
            "  asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");",
            "}",
        ],
    }
    /// The warpgroup waits until at most so many of its latest groups of products are pending (PTX ISA, "wgmma.wait_group").
    WarpgroupWait {
        name: "wgmma_wait",
        cuda: "wgmma_wait<%>()",
        ptx: "wgmma.wait_group.sync.aligned",
        arguments: 1,
        issued_by: Scope::Warpgroup,
        targets: &[Target::Sm90a],
        function: &[
            "// Waits until all but kPending of the latest groups of products are done.",
            "template <int kPending> __device__ __forceinline__ void wgmma_wait() {",
            "  asm volatile(\"wgmma.wait_group.sync.aligned %0;\" :: \"n\"(kPending) : \"memory\");",
            "}",
        ],
    }
    /// So many registers from one on have their values at this place: factors and sums that threads have computed before the fence of a
    /// product, and sums behind the wait for it. Without this, the CUDA compiler may compute them behind the fence, or read them before
    /// the wait. It emits no instruction.
    WarpgroupSettle {
        name: "wgmma_settle",
        cuda: "wgmma_settle(&%, %)",
        ptx: "",
        registers: &[RegisterOperand::Words(1)],
        arguments: 1,
        targets: &[Target::Sm90a],
        function: &[
            "// The compiler has the values of registers here: computed before a fence, or read behind a wait.",
            "template <typename T> __device__ __forceinline__ void wgmma_settle(T* values, int count) {",
            "  unsigned int* const words = reinterpret_cast<unsigned int*>(values);",
            "  #pragma unroll",
            "  for (int i = 0; i < count * static_cast<int>(sizeof(T)) / 4; ++i) asm volatile(\"\" : \"+r\"(words[i]) :: \"memory\");",
            "}",
            "__device__ __forceinline__ void wgmma_settle(float* sums, int count) {",
            "  #pragma unroll",
            "  for (int i = 0; i < count; ++i) asm volatile(\"\" : \"+f\"(sums[i]) :: \"memory\");",
            "}",
        ],
    }
    /// The next launch may begin, if it overlaps this one, once all CTAs have said so or ended (PTX ISA, "griddepcontrol").
    LaunchDependents {
        name: "launch_dependents",
        cuda: "launch_dependents()",
        ptx: "griddepcontrol.launch_dependents",
        issued_by: Scope::Thread,
        function: &[
            "// The next launch may begin, if it overlaps this one.",
            "__device__ __forceinline__ void launch_dependents() {",
            "  asm volatile(\"griddepcontrol.launch_dependents;\" ::: \"memory\");",
            "}",
        ],
    }
    /// A thread waits until the launch before has ended, and sees what it wrote (PTX ISA, "griddepcontrol").
    WaitForPreviousLaunch {
        name: "wait_for_previous_launch",
        cuda: "wait_for_previous_launch()",
        ptx: "griddepcontrol.wait",
        issued_by: Scope::Thread,
        function: &[
            "// Waits until the launch before has ended.",
            "__device__ __forceinline__ void wait_for_previous_launch() {",
            "  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");",
            "}",
        ],
    }
    /// The threads of a warp wait until they have so many registers, a multiple of 8 from 24 to 256, which other warps have released
    /// (PTX ISA, "setmaxnreg"). All warps of a warpgroup do the same.
    IncreaseRegisters {
        name: "increase_registers",
        cuda: "increase_registers<%>()",
        ptx: "setmaxnreg.inc.sync.aligned.u32",
        arguments: 1,
        issued_by: Scope::Warp,
        function: &[
            "// Waits until each thread of the warp has kCount registers.",
            "template <int kCount> __device__ __forceinline__ void increase_registers() {",
            "  asm volatile(\"setmaxnreg.inc.sync.aligned.u32 %0;\" :: \"n\"(kCount));",
            "}",
        ],
    }
    /// The threads of a warp release all but so many registers (PTX ISA, "setmaxnreg").
    DecreaseRegisters {
        name: "decrease_registers",
        cuda: "decrease_registers<%>()",
        ptx: "setmaxnreg.dec.sync.aligned.u32",
        arguments: 1,
        issued_by: Scope::Warp,
        function: &[
            "// Releases all registers of each thread of the warp but kCount.",
            "template <int kCount> __device__ __forceinline__ void decrease_registers() {",
            "  asm volatile(\"setmaxnreg.dec.sync.aligned.u32 %0;\" :: \"n\"(kCount));",
            "}",
        ],
    }
    /// A warp allocates so many columns of tensor memory, and writes their address to shared memory (PTX ISA, "tcgen05.alloc").
    TensorAlloc {
        name: "tensor_alloc",
        cuda: "tensor_alloc(&%, %)",
        ptx: "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32",
        memory: const { &[filled(4)] },
        arguments: 1,
        issued_by: Scope::Warp,
        targets: &[Target::Sm100a],
        function: &[
            "// Allocates columns of tensor memory, and lets other CTAs do so.",
            "__device__ __forceinline__ void tensor_alloc(unsigned int* address, int columns) {",
            "  asm volatile(\"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;\"",
            "               :: \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(address))), \"r\"(columns) : \"memory\");",
            "  asm volatile(\"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\" ::: \"memory\");",
            "}",
        ],
    }
    /// A warp frees the columns of tensor memory at an address (PTX ISA, "tcgen05.dealloc").
    TensorDealloc {
        name: "tensor_dealloc",
        cuda: "tensor_dealloc(%, %)",
        ptx: "tcgen05.dealloc.cta_group::1.sync.aligned.b32",
        registers: &[RegisterOperand::Word],
        arguments: 1,
        issued_by: Scope::Warp,
        targets: &[Target::Sm100a],
        function: &[
            "__device__ __forceinline__ void tensor_dealloc(unsigned int address, int columns) {",
            "  asm volatile(\"tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;\" :: \"r\"(address), \"r\"(columns) : \"memory\");",
            "}",
        ],
    }
    /// As [`TensorAlloc`](Inst::TensorAlloc), by a warp of each CTA of a pair.
    TensorAllocPair {
        name: "tensor_alloc_pair",
        cuda: "tensor_alloc_pair(&%, %)",
        ptx: "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32",
        memory: const { &[filled(4)] },
        arguments: 1,
        issued_by: Scope::Warp,
        targets: &[Target::Sm100a],
        function: &[
            "// Allocates columns of the tensor memory of both CTAs of the pair, and lets others do so.",
            "__device__ __forceinline__ void tensor_alloc_pair(unsigned int* address, int columns) {",
            "  asm volatile(\"tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;\"",
            "               :: \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(address))), \"r\"(columns) : \"memory\");",
            "  asm volatile(\"tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\" ::: \"memory\");",
            "}",
        ],
    }
    /// As [`TensorDealloc`](Inst::TensorDealloc), by a warp of each CTA of a pair.
    TensorDeallocPair {
        name: "tensor_dealloc_pair",
        cuda: "tensor_dealloc_pair(%, %)",
        ptx: "tcgen05.dealloc.cta_group::2.sync.aligned.b32",
        registers: &[RegisterOperand::Word],
        arguments: 1,
        issued_by: Scope::Warp,
        targets: &[Target::Sm100a],
        function: &[
            "__device__ __forceinline__ void tensor_dealloc_pair(unsigned int address, int columns) {",
            "  asm volatile(\"tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;\" :: \"r\"(address), \"r\"(columns) : \"memory\");",
            "}",
        ],
    }
    /// What a thread has done with tensor memory comes before the barriers that follow (PTX ISA, "tcgen05.fence").
    TensorFenceBefore {
        name: "tensor_fence_before_barrier",
        cuda: "tensor_fence_before_barrier()",
        ptx: "tcgen05.fence::before_thread_sync",
        targets: &[Target::Sm100a],
        function: &[
            "__device__ __forceinline__ void tensor_fence_before_barrier() {",
            "  asm volatile(\"tcgen05.fence::before_thread_sync;\" ::: \"memory\");",
            "}",
        ],
    }
    /// What a thread does with tensor memory comes after the barriers before (PTX ISA, "tcgen05.fence").
    TensorFenceAfter {
        name: "tensor_fence_after_barrier",
        cuda: "tensor_fence_after_barrier()",
        ptx: "tcgen05.fence::after_thread_sync",
        targets: &[Target::Sm100a],
        function: &[
            "__device__ __forceinline__ void tensor_fence_after_barrier() {",
            "  asm volatile(\"tcgen05.fence::after_thread_sync;\" ::: \"memory\");",
            "}",
        ],
    }
    /// The tensor core arrives at a barrier when all products are done that this thread has issued (PTX ISA, "tcgen05.commit").
    TensorCommit {
        name: "tensor_commit",
        cuda: "tensor_commit(&%)",
        ptx: "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64",
        memory: const { &[BARRIER] },
        takes_any_argument: true,
        targets: &[Target::Sm100a],
        function: &[
            "// Arrives when the products that this thread has issued are done.",
            "__device__ __forceinline__ void tensor_commit(unsigned long long* barrier) {",
            "  asm volatile(\"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];\"",
            "               :: \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier))) : \"memory\");",
            "}",
        ],
    }
    /// As [`TensorCommit`](Inst::TensorCommit), for products of a pair of CTAs: it arrives at the barrier at the same place in both (PTX ISA,
    /// "tcgen05.commit", `.multicast::cluster`).
    TensorCommitPair {
        name: "tensor_commit_pair",
        cuda: "tensor_commit_pair(&%)",
        ptx: "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64",
        memory: const { &[BARRIER] },
        takes_any_argument: true,
        targets: &[Target::Sm100a],
        function: &[
            "// Arrives in both CTAs of the pair when the products that this thread has issued are done.",
            "__device__ __forceinline__ void tensor_commit_pair(unsigned long long* barrier) {",
            "  asm volatile(\"tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;\"",
            "               :: \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier))),",
            "                  \"h\"(static_cast<unsigned short>(3)) : \"memory\");",
            "}",
        ],
    }
    /// As [`TensorCommit`](Inst::TensorCommit), in the CTAs of the cluster whose ranks are bits of a mask (PTX ISA, "tcgen05.commit",
    /// `.multicast::cluster`).
    TensorCommitCluster {
        name: "tensor_commit_cluster",
        cuda: "tensor_commit_cluster(&%, %)",
        ptx: "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64",
        memory: const { &[BARRIER] },
        arguments: 1,
        takes_any_argument: true,
        targets: &[Target::Sm100a],
        function: &[
            "// Arrives in the CTAs of a mask when the products that this thread has issued are done.",
            "__device__ __forceinline__ void tensor_commit_cluster(unsigned long long* barrier, int ctas) {",
            "  asm volatile(\"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;\"",
            "               :: \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier))),",
            "                  \"h\"(static_cast<unsigned short>(ctas)) : \"memory\");",
            "}",
        ],
    }
    /// As [`TensorCommitPair`](Inst::TensorCommitPair), in the CTAs of the cluster whose ranks are bits of a mask, counted from a first
    /// one.
    TensorCommitPairs {
        name: "tensor_commit_pairs",
        cuda: "tensor_commit_pairs(&%, %, %)",
        ptx: "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64",
        memory: const { &[BARRIER] },
        arguments: 2,
        takes_any_argument: true,
        targets: &[Target::Sm100a],
        function: &[
            "// Arrives in the CTAs of a mask, counted from `first`, when the products that this thread has issued are done.",
            "__device__ __forceinline__ void tensor_commit_pairs(unsigned long long* barrier, int ctas, int first) {",
            "  asm volatile(\"tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;\"",
            "               :: \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier))),",
            "                  \"h\"(static_cast<unsigned short>(ctas << first)) : \"memory\");",
            "}",
        ],
    }
    /// Copies by the copy engine that are ordered after this fence see what the thread has written to shared memory before it
    /// (PTX ISA, "membar / fence", "fence.proxy.async").
    ProxyFenceShared {
        name: "fence_proxy_async_shared",
        cuda: "fence_proxy_async_shared()",
        ptx: "fence.proxy.async.shared::cta",
        function: &[
            "// The copy engine sees what this thread has written to shared memory.",
            "__device__ __forceinline__ void fence_proxy_async_shared() {",
            "  asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");",
            "}",
        ],
    }
    /// As [`ProxyFenceShared`](Inst::ProxyFenceShared), for all memory.
    ProxyFence {
        name: "fence_proxy_async",
        cuda: "fence_proxy_async()",
        ptx: "fence.proxy.async",
        function: &[
            "// The copy engine sees what this thread has written.",
            "__device__ __forceinline__ void fence_proxy_async() {",
            "  asm volatile(\"fence.proxy.async;\" ::: \"memory\");",
            "}",
        ],
    }
    /// The copies to tensors that a thread has started since the last commit become a bulk group (PTX ISA,
    /// "cp.async.bulk.commit_group").
    BulkCommit {
        name: "bulk_commit",
        cuda: "bulk_commit()",
        ptx: "cp.async.bulk.commit_group",
        function: &[
            "__device__ __forceinline__ void bulk_commit() {",
            "  asm volatile(\"cp.async.bulk.commit_group;\" ::: \"memory\");",
            "}",
        ],
    }
    /// A thread waits until at most so many of its latest bulk groups are pending: the copies of the others have arrived (PTX
    /// ISA, "cp.async.bulk.wait_group").
    BulkWait {
        name: "bulk_wait",
        cuda: "bulk_wait<%>()",
        ptx: "cp.async.bulk.wait_group",
        arguments: 1,
        function: &[
            "// Waits until all but kPending of the latest bulk groups have arrived.",
            "template <int kPending> __device__ __forceinline__ void bulk_wait() {",
            "  asm volatile(\"cp.async.bulk.wait_group %0;\" :: \"n\"(kPending) : \"memory\");",
            "}",
        ],
    }
    /// As [`BulkWait`](Inst::BulkWait), but the copies of the others have only read what they copy.
    BulkWaitRead {
        name: "bulk_wait_read",
        cuda: "bulk_wait_read<%>()",
        ptx: "cp.async.bulk.wait_group.read",
        arguments: 1,
        function: &[
            "// Waits until all but kPending of the latest bulk groups have read what they copy.",
            "template <int kPending> __device__ __forceinline__ void bulk_wait_read() {",
            "  asm volatile(\"cp.async.bulk.wait_group.read %0;\" :: \"n\"(kPending) : \"memory\");",
            "}",
        ],
    }
}
