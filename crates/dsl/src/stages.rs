//! How far a pipelined loop runs ahead, and by what.

/// The stages of a pipelined loop: `3`, or one of these with a variant.
///
/// ```
/// use tilewright_dsl::Stages;
///
/// let of_copies = Stages::of(3).variant("cp_async");
/// let chosen = Stages::any();
/// # let _ = (of_copies, chosen);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stages {
    pub(crate) count: Option<i64>,
    pub(crate) variant: Option<String>,
}

impl Stages {
    /// So many stages: copies run one iteration less ahead.
    pub fn of(count: i64) -> Stages {
        Stages { count: Some(count), variant: None }
    }

    /// As many stages as keep the memory of the target busy; the compiler chooses.
    pub fn any() -> Stages {
        Stages { count: None, variant: None }
    }

    /// Takes this variant of the loop: `tma`, `tma_warp_specialised`, `cp_async`, `through_registers` or `serial`. It is an
    /// error if the loop cannot have it.
    pub fn variant(self, name: &str) -> Stages {
        Stages { variant: Some(name.to_string()), ..self }
    }
}

impl From<i64> for Stages {
    fn from(count: i64) -> Stages {
        Stages::of(count)
    }
}

impl From<i32> for Stages {
    fn from(count: i32) -> Stages {
        Stages::of(i64::from(count))
    }
}
