//! How the accesses of threads to a tensor are cached.

/// What the user says of the accesses to a tensor; without it, caches keep what was used last (PTX ISA, "Cache Operators").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Caching {
    /// Elements are used once: caches evict them first (`.cs`).
    Streamed,
    /// Elements are cached in L2 only, not in the L1 cache of an SM (`.cg`).
    InL2,
}

impl Caching {
    /// What a tensor is called that is cached so.
    pub fn name(self) -> &'static str {
        match self {
            Caching::Streamed => "streamed",
            Caching::InL2 => "cached in L2 only",
        }
    }

    /// The method that says so of a tensor.
    pub fn method(self) -> &'static str {
        match self {
            Caching::Streamed => "streamed",
            Caching::InL2 => "in_l2",
        }
    }

    /// The functions of CUDA that load and store with it (CUDA C++ Programming Guide, "Load Functions Using Cache Hints").
    pub fn functions(self) -> [&'static str; 2] {
        match self {
            Caching::Streamed => ["__ldcs", "__stcs"],
            Caching::InL2 => ["__ldcg", "__stcg"],
        }
    }
}
