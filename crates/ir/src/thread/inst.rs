//! The instruction table: what a thread can execute besides loads, stores and arithmetic.

use tilewright_layout::axis::Scope;

use crate::target::Target;
use crate::tile::Effect;

/// A row of the instruction table.
#[derive(Clone, Copy, Debug)]
pub struct InstInfo {
    /// Its name in the IR.
    pub name: &'static str,
    /// Its form in CUDA C++; each `%` stands for an operand: memory, then registers, then arguments.
    pub cuda: &'static str,
    /// The PTX it stands for (PTX ISA, "Parallel Synchronization and Communication Instructions" and "Data
    /// Movement and Conversion Instructions").
    pub ptx: &'static str,
    /// The register that it writes. A predicate is a word that is 0 or 1.
    pub result: Option<RegisterOperand>,
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
}

impl InstInfo {
    /// The defaults of a row: each thread executes the instruction independently, and it has no operands.
    const PLAIN: InstInfo = InstInfo {
        name: "",
        cuda: "",
        ptx: "",
        result: None,
        registers: &[],
        memory: &[],
        arguments: 0,
        takes_any_argument: false,
        issued_by: Scope::Thread,
        orders: Scope::Thread,
        targets: Target::ALL,
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
}

/// An element of memory that an instruction accesses.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOperand {
    /// Whether it may be in global memory; all may be in shared memory.
    pub may_be_global: bool,
    /// What is done to it.
    pub effect: Effect,
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
    /// A register is added to an element of memory, atomically and without order (`atom.add` and `red.add`, relaxed, in the
    /// scope of the GPU).
    AtomicAdd {
        name: "atomic_add",
        cuda: "atomicAdd(&%, %)",
        ptx: "red.relaxed.gpu.add",
        registers: &[RegisterOperand::Element],
        memory: &[MemoryOperand { may_be_global: true, effect: Effect::Update }],
    }
}
