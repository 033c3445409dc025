//! The variant `elements`: every thread executes the elements that layout inference assigned to it, one by one.

use tilewright_diag::{Diagnostic, counted};
use tilewright_ir::thread::Stmt;
use tilewright_ir::tile::{Kernel, Op};

use super::nest::Nest;
use super::whole::lowered;
use crate::builder::Builder;
use crate::refusal::Refusal;
use crate::variant::{Candidate, Offer, Variants};

/// The variant's name in plans.
pub(crate) const ELEMENTS: &str = "elements";

/// The list with this variant alone. An op without an inferred layout does not have it.
pub(crate) struct ByElements;

impl Variants for ByElements {
    fn names(&self) -> Vec<&'static str> {
        vec![ELEMENTS]
    }

    fn offers<'a>(&self, builder: &Builder, kernel: &'a Kernel, op: &Op) -> Result<Vec<Offer<'a>>, Diagnostic> {
        let nest = Nest::of_op(builder, kernel, op);
        let offer = |nest: Nest| {
            let way: Box<dyn Candidate + 'a> = Box::new(NestByElements { kernel, nest });
            Offer { variant: ELEMENTS, floor: None, candidates: Ok(vec![way]) }
        };
        Ok(nest.into_iter().map(offer).collect())
    }
}

/// A nest, lowered element by element.
pub(crate) struct NestByElements<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) nest: Nest,
}

impl Candidate for NestByElements<'_> {
    fn summary(&self) -> String {
        let steps = &self.nest.steps;
        format!("{} of {}", counted(steps.slots(), "step"), counted(steps.threads(), "thread"))
    }

    fn build(&self, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        lowered(self.kernel, builder, &self.nest)
    }
}
