//! The instruction table: what a thread can execute beside loads, stores and arithmetic.

use tilewright_layout::axis::Scope;

use crate::target::Target;

/// A row of the instruction table.
#[derive(Clone, Copy, Debug)]
pub struct InstInfo {
    /// Its name in the IR.
    pub name: &'static str,
    /// How CUDA C++ writes it.
    pub cuda: &'static str,
    /// The PTX it stands for (PTX ISA, "Parallel Synchronization and Communication Instructions").
    pub ptx: &'static str,
    /// The threads that must execute it together.
    pub collective: Scope,
    /// The scope in which it orders memory accesses.
    pub orders: Scope,
    /// Where it exists.
    pub targets: &'static [Target],
}

macro_rules! instructions {
    ($($(#[$doc:meta])* $inst:ident = $name:literal, $cuda:literal, $ptx:literal, $collective:ident, $orders:ident, $targets:expr;)*) => {
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
    SyncWarp = "syncwarp", "__syncwarp()", "bar.warp.sync 0xffffffff", Warp, Warp, Target::ALL;
    /// The threads of a CTA wait for each other; their earlier accesses are visible to all of them.
    SyncThreads = "syncthreads", "__syncthreads()", "bar.sync 0", Cta, Cta, Target::ALL;
}
