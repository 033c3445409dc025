//! Which elements of a tile are those of a tensor: a tile that hangs over an edge is filled up with zeros, which are not
//! elements.
//!
//! What is copied from beyond an edge, and what is computed from it, is *invalid*. The extents up to which a buffer is valid
//! are followed through the kernel, as expressions of sizes, block indices and loop variables; beyond them its elements may
//! be anything. A buffer that is written where only some of the inputs are valid is valid where all of them are.
//!
//! Not followed: views, tiles of several stages, indices other than variables, and what is under a condition of the user,
//! who has then said what is to happen at the edge.

use std::collections::BTreeMap;

use tilewright_expr::linear::{linear, normalize};
use tilewright_expr::{Expr, Node, Var};

use crate::arena::Handle;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::kernel::Kernel;
use crate::tile::tiles::Tile;
use crate::tile::value::{Access, Coord, ElementOp, Value};

/// Up to where a buffer is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Valid {
    /// In each dimension, the number of indices that are valid; `None` for all.
    pub(super) extents: Vec<Option<Expr>>,
    /// Whether the elements beyond are 0.
    pub(super) is_zero: bool,
}

/// Up to where buffers are valid; those that are not listed are valid everywhere.
pub(super) type State = BTreeMap<Handle<Buffer>, Valid>;

/// Up to which value of its variables a value is valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// The variables of the nest, each with the number of its values for which the value is valid.
    pub(super) of: Vec<(Var, Expr)>,
    /// Whether the value is 0 beyond.
    pub(super) is_zero: bool,
}

impl Limits {
    /// The limit of a variable.
    pub(super) fn limit(&self, var: &Var) -> Option<&Expr> {
        self.of.iter().find(|(known, _)| known == var).map(|(_, limit)| limit)
    }

    /// The limits of a value that depends on both.
    pub(super) fn and(mut self, other: &Limits) -> Limits {
        for (var, limit) in &other.of {
            match self.of.iter_mut().find(|(known, _)| known == var) {
                Some((_, known)) => *known = lesser(known, limit),
                None => self.of.push((var.clone(), limit.clone())),
            }
        }
        self
    }
}

/// The most operations of an extent that is followed. Longer ones come from loops that shift a tile in every iteration.
const MOST_OPERATIONS: u32 = 64;

/// The lesser of two extents; the first alone where their difference cannot be kept short.
fn lesser(a: &Expr, b: &Expr) -> Expr {
    if a == b || a.weight().saturating_add(b.weight()) > MOST_OPERATIONS {
        return a.clone();
    }
    normalize(&a.clone().at_most(b.clone()))
}

/// What is valid whichever of two ways led here.
pub(super) fn joined(one: &State, other: &State) -> State {
    let mut state = one.clone();
    for (buffer, valid) in other {
        let known = state.get(buffer).map_or_else(|| valid.clone(), |known| both(known, valid));
        state.insert(*buffer, known);
    }
    state
}

/// What is valid in both.
pub(super) fn both(one: &Valid, other: &Valid) -> Valid {
    let extents = one.extents.iter().zip(&other.extents).map(|pair| match pair {
        (Some(a), Some(b)) => Some(lesser(a, b)),
        (a, b) => a.clone().or_else(|| b.clone()),
    });
    Valid { extents: extents.collect(), is_zero: one.is_zero && other.is_zero }
}

impl Valid {
    /// The same with every extent replaced.
    pub(super) fn map(&self, change: &dyn Fn(&Expr) -> Expr) -> Valid {
        let extents = self.extents.iter().map(|extent| extent.as_ref().map(|extent| normalize(&change(extent))));
        Valid { extents: extents.collect(), is_zero: self.is_zero }
    }

    pub(super) fn is_everywhere(&self) -> bool {
        self.extents.iter().all(Option::is_none)
    }
}

impl Kernel {
    /// Up to where a tile is valid: in each dimension whose extent is not 1, in order, the number of its indices.
    pub(super) fn valid_tile(&self, state: &State, tile: &Tile) -> Valid {
        let buffer = &self.buffers[tile.buffer];
        let is_global = matches!(buffer.space, Space::Global(_));
        let known = state.get(&tile.buffer);
        let extents = (0..tile.extents.len()).filter(|dimension| tile.extents[*dimension] != 1).map(|dimension| {
            let start = &tile.starts[dimension];
            let end = match is_global {
                true => {
                    let end = self.extent(buffer, dimension);
                    (!self.lies_inside(start, tile.extents[dimension], &end)).then_some(end)
                }
                false => known.and_then(|known| known.extents[dimension].clone()),
            };
            end.map(|end| normalize(&(end - start.clone())))
        });
        Valid { extents: extents.collect(), is_zero: is_global || known.is_none_or(|known| known.is_zero) }
    }

    /// The extent of a dimension.
    fn extent(&self, buffer: &Buffer, dimension: usize) -> Expr {
        match &buffer.dynamic_shape {
            Some(shape) => shape.extents[dimension].clone(),
            None => Expr::constant(buffer.shape[dimension]),
        }
    }

    /// Up to where a value is valid, in a nest over these variables; `names` has the limits of named values.
    pub(super) fn limits(&self, state: &State, vars: &[Var], names: &[(String, Limits)], value: &Value) -> Limits {
        let of = |value: &Value| self.limits(state, vars, names, value);
        match value {
            Value::Const(_) | Value::Index(_) => Limits::default(),
            Value::Named(name) => {
                let known = names.iter().rev().find(|(known, _)| known == name);
                known.map(|(_, limits)| limits.clone()).unwrap_or_default()
            }
            Value::Load(access) => self.limits_of_load(state, vars, names, access),
            Value::Cast(_, _, of_value) => of(of_value),
            // The user decides what is chosen at the edge.
            Value::Op(ElementOp::Select, _) => Limits::default(),
            Value::Op(op, operands) => {
                let all: Vec<Limits> = operands.iter().map(of).collect();
                let is_zero = match (op, &all[..]) {
                    (ElementOp::Abs | ElementOp::Neg | ElementOp::Rounded, [of]) => of.is_zero,
                    (ElementOp::Mul, [a, b]) => is_zero_beyond(a) || is_zero_beyond(b),
                    _ => false,
                };
                Limits { is_zero, ..all.iter().fold(Limits::default(), |all, one| all.and(one)) }
            }
        }
    }

    fn limits_of_load(&self, state: &State, vars: &[Var], names: &[(String, Limits)], access: &Access) -> Limits {
        let buffer = &self.buffers[access.buffer];
        let is_global = matches!(buffer.space, Space::Global(_));
        let known = state.get(&access.buffer);
        let mut found = Limits { of: Vec::new(), is_zero: is_global || known.is_none_or(|known| known.is_zero) };
        for (dimension, coord) in access.index.iter().enumerate() {
            match coord {
                Coord::Data(value) => {
                    let limits = self.limits(state, vars, names, value);
                    found.is_zero &= limits.of.is_empty();
                    found = found.and(&limits);
                }
                Coord::At(index) => {
                    let end = match is_global {
                        true => Some(self.extent(buffer, dimension)).filter(|_| !access.or_zero),
                        false => known.and_then(|known| known.extents[dimension].clone()),
                    };
                    found = found.and(&Limits { of: self.limit(vars, index, end, is_global), is_zero: false });
                }
            }
        }
        found
    }

    /// Up to which value of the only variable in an index the index is less than `end`.
    fn limit(&self, vars: &[Var], index: &Expr, end: Option<Expr>, is_global: bool) -> Vec<(Var, Expr)> {
        let (Some(end), sum) = (end, linear(index)) else { return Vec::new() };
        let own = |(_, atom): &&(i64, Expr)| vars.iter().any(|var| atom.mentions(var));
        let mut of_vars = sum.terms.iter().filter(own);
        let (Some((factor, atom)), None) = (of_vars.next(), of_vars.next()) else { return Vec::new() };
        let Node::Var(var) = atom.node() else { return Vec::new() };
        let rest = normalize(&(index - &(atom * *factor)));
        let reached = var.range().hi.saturating_mul(*factor).saturating_add(1);
        if *factor < 1 || (is_global && self.lies_inside(&rest, reached, &end)) {
            return Vec::new();
        }
        let limit = normalize(&(normalize(&(&end - &rest + (factor - 1))) / *factor));
        if limit.range().lo > var.range().hi { Vec::new() } else { vec![(var.clone(), limit)] }
    }
}

/// Whether a value is known to be 0 where it is invalid, and is invalid somewhere.
fn is_zero_beyond(limits: &Limits) -> bool {
    limits.is_zero && !limits.of.is_empty()
}
