//! The registers between the loads and the stores of a copy, and the order of elements in them.

use tilewright_ir::Handle;
use tilewright_ir::thread::{RegArray, Regs, Stmt};
use tilewright_ir::tile::vectors::WIDEST;
use tilewright_layout::DType;

use crate::builder::{Builder, regs};
use crate::reorder::{Evenly, evenly_apart, reordered, word_of};

/// The registers of a thread between its loads and its stores.
pub(super) struct Staged {
    dtype: DType,
    /// Elements of a step.
    step: i64,
    order: Order,
}

/// In which registers elements are loaded, and from which they are stored.
enum Order {
    /// The order of both sides is the same. The array holds all steps.
    Same(Handle<RegArray>),
    /// Every store takes registers that are evenly apart. There is an array for each step if loads may follow stores, so
    /// that steps are equal text; else one.
    Apart { arrays: Vec<Handle<RegArray>>, per_register: i64, stores: Vec<Evenly> },
    /// Registers move from the order in which they are loaded to the one in which they are stored.
    Moved { loaded: Handle<RegArray>, stored: Handle<RegArray>, places: Vec<usize> },
}

impl Staged {
    /// Registers for `held` steps of `step` elements each. The destination is written, and the source read, in `widths`
    /// elements at a time; element `i` of a step, in the order of the destination, is element `order[i]` of the source.
    /// `by_step` says whether the loads of a step may follow the stores of another.
    pub(super) fn new(
        builder: &mut Builder,
        dtype: DType,
        (widths, held): ([i64; 2], i64),
        order: Option<&[usize]>,
        by_step: bool,
        body: &mut Vec<Stmt>,
    ) -> Staged {
        let step = widths[0].max(widths[1]);
        let Some(places) = order else {
            let vector = if widths[0] == widths[1] && step * dtype.bytes() <= WIDEST { step } else { 1 };
            return Staged {
                dtype,
                step,
                order: Order::Same(builder.staging_vectors(dtype, held * step, vector, body)),
            };
        };
        let (register, per_register) = word_of(dtype);
        let order = match evenly_apart(dtype, places, widths[0] as usize) {
            Some(stores) if widths[1] == step => {
                let (arrays, steps) = if by_step { (held, 1) } else { (1, held) };
                let mut array = |_| builder.staging_vectors(register, steps * step / per_register, 1, body);
                Order::Apart { arrays: (0..arrays).map(&mut array).collect(), per_register, stores }
            }
            _ => {
                let [loaded, stored] = [(); 2].map(|()| builder.staging_vectors(dtype, held * step, 1, body));
                Order::Moved { loaded, stored, places: places.to_vec() }
            }
        };
        Staged { dtype, step, order }
    }

    /// Whether each step has registers of its own.
    pub(super) fn is_by_step(&self) -> bool {
        matches!(&self.order, Order::Apart { arrays, .. } if arrays.len() > 1)
    }

    /// The registers to which access `part` of a step loads `width` elements.
    pub(super) fn loaded(&self, step: i64, part: i64, width: i64) -> Regs {
        match &self.order {
            Order::Same(array) | Order::Moved { loaded: array, .. } => {
                regs(*array, step * self.step + part * width, width)
            }
            Order::Apart { arrays, per_register, .. } => {
                let (array, first) = self.of_step(arrays, step);
                regs(array, (first + part * width) / per_register, width / per_register)
            }
        }
    }

    /// The registers from which access `part` of a step stores `width` elements.
    pub(super) fn stored(&self, step: i64, part: i64, width: i64) -> Regs {
        match &self.order {
            Order::Same(array) | Order::Moved { stored: array, .. } => {
                regs(*array, step * self.step + part * width, width)
            }
            Order::Apart { arrays, per_register, stores } => {
                let (array, first) = self.of_step(arrays, step);
                stores[part as usize].regs(array, first / per_register, width / per_register)
            }
        }
    }

    /// The array of a step, of those for each step or the one for all, and its first element there.
    fn of_step(&self, arrays: &[Handle<RegArray>], step: i64) -> (Handle<RegArray>, i64) {
        match arrays.get(step as usize) {
            Some(array) if arrays.len() > 1 => (*array, 0),
            _ => (arrays[0], step * self.step),
        }
    }

    /// The moves of registers between the loads and the stores of a step.
    pub(super) fn moves(&self, step: i64) -> Vec<Stmt> {
        match &self.order {
            Order::Moved { loaded, stored, places } => {
                reordered([*stored, *loaded], self.dtype, step * self.step, places).collect()
            }
            Order::Same(_) | Order::Apart { .. } => Vec::new(),
        }
    }
}
