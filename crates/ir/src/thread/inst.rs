//! The instruction table: what a thread can execute beside loads, stores and arithmetic.

use tilewright_layout::axis::Scope;

use crate::target::Target;

/// A row of the instruction table.
#[derive(Clone, Copy, Debug)]
pub struct InstInfo {
    /// Its name in the IR.
    pub name: &'static str,
    /// How CUDA C++ writes it; each `%` stands for an operand: the registers, then the arguments.
    pub cuda: &'static str,
    /// The PTX it stands for (PTX ISA, "Parallel Synchronization and Communication Instructions" and "Data
    /// Movement and Conversion Instructions").
    pub ptx: &'static str,
    /// How many 32-bit registers it reads. Such an instruction writes one.
    pub registers: usize,
    /// How many integers it takes beside.
    pub arguments: usize,
    /// The threads that must execute it together.
    pub collective: Scope,
    /// The scope in which it orders memory accesses.
    pub orders: Scope,
    /// Where it exists.
    pub targets: &'static [Target],
}

macro_rules! instructions {
    ($($(#[$doc:meta])* $inst:ident = $name:literal, $cuda:literal, $ptx:literal, $registers:literal, $arguments:literal, $collective:ident, $orders:ident, $targets:expr;)*) => {
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
                    $(Inst::$inst => InstInfo {
                        name: $name,
                        cuda: $cuda,
                        ptx: $ptx,
                        registers: $registers,
                        arguments: $arguments,
                        collective: Scope::$collective,
                        orders: Scope::$orders,
                        targets: $targets,
                    },)*
                }
            }
        }
    };
}

instructions! {
    /// The lanes of a warp wait for each other; their earlier accesses are visible to all of them.
    SyncWarp = "syncwarp", "__syncwarp()", "bar.warp.sync 0xffffffff", 0, 0, Warp, Warp, Target::ALL;
    /// The threads of a CTA wait for each other; their earlier accesses are visible to all of them.
    SyncThreads = "syncthreads", "__syncthreads()", "bar.sync 0", 0, 0, Cta, Cta, Target::ALL;
    /// Four of the eight bytes of two registers: byte `i` of the result is the byte that hexadecimal digit `i` of the
    /// selector names, 0 to 3 in the first register and 4 to 7 in the second.
    BytePermute = "byte_permute", "__byte_perm(%, %, %)", "prmt.b32", 2, 1, Thread, Thread, Target::ALL;
    /// The register of the lane whose number differs in the bits of the mask; all lanes of the warp take part.
    ShuffleXor = "shuffle_xor", "__shfl_xor_sync(0xffffffff, %, %)", "shfl.sync.bfly.b32", 1, 1, Warp, Thread, Target::ALL;
}
