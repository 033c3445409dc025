//! Options of lowering.

/// Options of lowering.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Forces this variant for every op that has it, unless the kernel forces another.
    pub variant: Option<String>,
}
