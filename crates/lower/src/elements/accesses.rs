//! Accesses to one element of global or shared memory.

use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Memory, Stmt};
use tilewright_ir::tile::{Access, Bound, Buffer, Coord, Space};

use super::active_step::ActiveStep;
use super::lowering::Lowering;
use super::memory::{Address, inside};
use crate::conditions::under;
use crate::refusal::Refusal;

impl Lowering<'_> {
    /// The index of an access. Coordinates read from data are bound to variables.
    pub(super) fn coordinates(&mut self, access: &Access, place: &ActiveStep) -> Result<Vec<Expr>, Refusal> {
        let mut index = Vec::new();
        for coord in &access.index {
            index.push(match coord {
                Coord::At(expr) => expr.clone(),
                Coord::Data(value) => self.named_integer(value, place)?,
            });
        }
        Ok(index)
    }

    /// The bounds that an access checks. Accesses to shared memory check theirs only in an arm of `select`, which is
    /// computed even if it is not taken; elsewhere the conditions around the access are branches, and keep it in
    /// bounds.
    pub(super) fn limits(&mut self, access: &Access, index: &[Expr]) -> Vec<Bound> {
        let buffer = &self.kernel.buffers[access.buffer];
        if buffer.space != Space::Shared {
            return self.bounds(access.buffer, index);
        }
        if self.arms == 0 {
            return Vec::new();
        }
        // Coordinates read from data are kept in bounds by the kernel, which was verified.
        let known = |(coord, index): (&Coord, &Expr)| match coord {
            Coord::At(_) => index.clone(),
            Coord::Data(_) => Expr::constant(0),
        };
        let index: Vec<Expr> = access.index.iter().zip(index).map(known).collect();
        self.kernel.bounds(buffer, &index, &mut self.points.splits)
    }

    /// The dimensions of a buffer in which an index may be out of bounds here.
    pub(super) fn bounds(&mut self, buffer: Handle<Buffer>, index: &[Expr]) -> Vec<Bound> {
        let bounds = self.kernel.bounds(&self.kernel.buffers[buffer], index, &mut self.points.splits);
        bounds.into_iter().filter(|bound| !self.nest.inside.contains(bound)).collect()
    }

    /// Adds an access to one element of memory, under its bounds. False if the access is out of bounds of shared
    /// memory for all threads: then it never happens, and is not added.
    pub(super) fn at_memory(
        &mut self,
        access: &Access,
        (index, limits): (&[Expr], &[Bound]),
        place: &ActiveStep,
        make: impl FnOnce(Handle<Memory>, Expr) -> Stmt,
    ) -> bool {
        let buffer = &self.kernel.buffers[access.buffer];
        let memory = self.builder.memory(access.buffer);
        let mut conditions = Vec::new();
        for bound in limits {
            let more = inside(bound, place, &mut self.points, self.builder, &mut self.out);
            conditions.extend(more);
        }
        let address = self.address_of(access.buffer, index);
        let mut inner = Vec::new();
        let at = address.at(1, place, &mut self.points, self.builder, &mut inner);
        let elements = self.builder.program.memories[memory].elements;
        if buffer.space == Space::Shared && at.as_const().is_some_and(|at| !(0..elements).contains(&at)) {
            return false;
        }
        inner.push(make(memory, at));
        self.out.extend(under(&conditions, inner));
        true
    }

    pub(super) fn address_of(&mut self, handle: Handle<Buffer>, index: &[Expr]) -> Address {
        let known = self.addresses.iter().find(|(buffer, at, _)| *buffer == handle && at == index);
        if let Some((_, _, address)) = known {
            return address.clone();
        }
        let address = Address::of(&self.kernel.buffers[handle], index, &mut self.points);
        self.addresses.push((handle, index.to_vec(), address.clone()));
        address
    }
}
