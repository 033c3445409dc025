//! What is known while a program is being checked.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::Var;
use tilewright_layout::DType;
use tilewright_layout::axis::Scope;

use crate::arena::Handle;
use crate::hw_index::HwIndex;
use crate::thread::program::Program;
use crate::thread::registers::{RegArray, Regs};

/// Which threads may have diverged at the current statement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Divergence {
    /// None: all threads of the CTA execute it together.
    None,
    /// Warpgroups may diverge from each other, the warps of one may not.
    Warpgroups,
    /// Warps may diverge from each other, the lanes of a warp may not.
    Warps,
    /// The lanes of a warp may diverge from each other.
    Lanes,
}

impl Divergence {
    /// How far a hardware index differs between the threads of a CTA.
    fn of(index: HwIndex) -> Divergence {
        match index.uniform_in() {
            Scope::Thread => Divergence::Lanes,
            Scope::Warp | Scope::Warpgroup => Divergence::Warps,
            Scope::Cta | Scope::Cluster | Scope::Grid | Scope::Mesh => Divergence::None,
        }
    }
}

/// An iteration of an unrolled loop.
pub(super) struct Iteration {
    pub(super) var: Var,
    pub(super) value: i64,
    /// Whether the variable is a constant in it, since the loop is unrolled completely.
    pub(super) is_constant: bool,
}

/// A program being checked, and what is known at the current statement.
pub(super) struct Checker<'a> {
    /// The program.
    pub(super) program: &'a Program,
    /// What is wrong with it.
    pub(super) found: Vec<Diagnostic>,
    /// Variables in scope, with the threads between which their values differ.
    pub(super) variables: Vec<(Var, Divergence)>,
    /// Declared arrays, with whether each element holds a value.
    pub(super) arrays: Vec<(Handle<RegArray>, Vec<bool>)>,
    /// The threads that execute the current statement: those of the CTA, or of a role.
    pub(super) threads: i64,
    /// Which threads may have diverged at the current statement.
    pub(super) divergence: Divergence,
    /// The current iterations of the unrolled loops around the current statement whose variables stand in indices.
    pub(super) iterations: Vec<Iteration>,
    /// Whether one elected thread of a warp executes the current statement.
    pub(super) is_elected: bool,
    /// Number of enclosing conditions on indices.
    pub(super) conditions: usize,
    /// Title and source line of the tile op whose statements are being checked.
    pub(super) place: Option<(String, Span)>,
}

impl<'a> Checker<'a> {
    /// Begins the check of a program.
    pub(super) fn new(program: &'a Program) -> Checker<'a> {
        let variable = |index: HwIndex| (index.var(program.threads, &program.grid), Divergence::of(index));
        let sizes = program.sizes.iter().map(|size| (size.clone(), Divergence::None));
        let cursors = program.cursors.iter().flat_map(|(_, cursor)| cursor.vars());
        let sizes = sizes.chain(cursors.map(|var| (var.clone(), Divergence::Warps)));
        Checker {
            program,
            found: Vec::new(),
            variables: HwIndex::ALL.into_iter().map(variable).chain(sizes).collect(),
            arrays: program.scalars.iter().map(|array| (*array, vec![true])).collect(),
            threads: program.threads,
            divergence: Divergence::None,
            iterations: Vec::new(),
            is_elected: false,
            conditions: 0,
            place: None,
        }
    }

    /// Reports a defect, at the tile op whose statements are being checked.
    pub(super) fn report(&mut self, code: &'static str, message: String) {
        let mut finding = Diagnostic::internal(code, message);
        if let Some((title, span)) = &self.place {
            finding = finding.label(*span, format!("while lowering {title}"));
        }
        self.found.push(finding);
    }

    /// The dtype of registers.
    pub(super) fn dtype_of(&self, regs: &Regs) -> DType {
        self.program.registers[regs.array].dtype
    }

    /// Registers as text: `r[0]`.
    pub(super) fn name_of(&self, regs: &Regs) -> String {
        format!("{}[{}]", self.program.registers[regs.array].name, regs.first)
    }
}
