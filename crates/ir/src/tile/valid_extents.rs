//! Which elements of a tile are those of a tensor: a tile that hangs over an edge is filled up with zeros, which are not
//! elements.
//!
//! What is copied from beyond an edge, and what is computed from it, is *invalid*. The [bounds](super::bounds) within which a
//! buffer is valid are followed through the kernel, as expressions of sizes, block indices and loop variables; beyond them its elements may
//! be anything. A buffer that is written where only some of the inputs are valid is valid where all of them are.
//!
//! Not followed: views, tiles of several stages, indices of a tile other than variables, indices of a tensor that decrease with
//! a variable, and what is under a condition of the user, who has then said what is to happen at the edge.

use std::collections::BTreeMap;

use num_integer::Integer;

use tilewright_diag::Span;
use tilewright_expr::linear::{linear, normalize};
use tilewright_expr::{Expr, Node, Var};

use crate::arena::Handle;
use crate::tile::bounds::{Bounds, Sum, value_of};
use crate::tile::buffer::{Buffer, Space};
use crate::tile::kernel::Kernel;
use crate::tile::tiles::Tile;
use crate::tile::value::{Access, Coord, ElementOp, Value};

/// Up to where a buffer is valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Valid {
    /// What the indices of a valid element obey; indices are known by their dimension.
    pub(super) bounds: Bounds<usize>,
    /// Whether the elements beyond are 0.
    pub(super) is_zero: bool,
    /// The statement after which more of it may be invalid than the bounds say.
    pub(super) lost: Option<Span>,
}

/// Up to where buffers are valid; those that are not listed are valid everywhere.
pub(super) type State = BTreeMap<Handle<Buffer>, Valid>;

/// For which values of the variables of a nest a value is valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// What the variables obey where the value is valid.
    pub(super) of: Bounds<Var>,
    /// Whether the value is 0 beyond.
    pub(super) is_zero: bool,
    /// The statement because of which it may be invalid for more values of the variables.
    pub(super) lost: Option<Span>,
}

/// A named value of a nest.
pub(super) struct Name {
    pub(super) name: String,
    pub(super) value: Value,
    /// For which values of the variables it is valid.
    pub(super) limits: Limits,
    /// Whether it [tests indices](tests_indices).
    pub(super) is_test: bool,
}

/// The latest of these names that is called so.
fn named<'a>(names: &'a [Name], name: &str) -> Option<&'a Name> {
    names.iter().rev().find(|known| known.name == name)
}

impl Limits {
    /// The limits of a value that depends on both.
    pub(super) fn and(self, other: &Limits) -> Limits {
        Limits { of: self.of.and(&other.of), lost: self.lost.or(other.lost), ..self }
    }

    /// Conditions that are all true where the value is valid.
    pub(super) fn conditions(&self) -> impl Iterator<Item = Value> {
        self.of.iter().map(|(sum, limit)| is_below(value_of(sum, Expr::var), limit))
    }
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
    let bounds = one.bounds.and(&other.bounds);
    Valid { bounds, is_zero: one.is_zero && other.is_zero, lost: one.lost.or(other.lost) }
}

impl Valid {
    /// Valid everywhere, so that nothing beyond differs from 0.
    pub(super) fn everywhere() -> Valid {
        Valid { bounds: Bounds::default(), is_zero: true, lost: None }
    }

    /// The same without some of its bounds.
    pub(super) fn without(&self, bounds: &Bounds<usize>) -> Valid {
        let is_left = |sum: &Sum<usize>, limit: &Expr| !bounds.iter().any(|(other, of)| (other, of) == (sum, limit));
        Valid { bounds: self.bounds.filtered(is_left), ..self.clone() }
    }

    pub(super) fn is_everywhere(&self) -> bool {
        self.bounds.is_empty() && self.lost.is_none()
    }
}

impl Kernel {
    /// Up to where a tile is valid; its dimensions are those whose extent is not 1, in order.
    pub(super) fn valid_tile(&self, state: &State, tile: &Tile) -> Valid {
        let buffer = &self.buffers[tile.buffer];
        let from_start = |sum: Sum<usize>, limit: &Expr| {
            let start = value_of(&sum, |dimension| tile.starts[*dimension].clone());
            let inside = sum.into_iter().filter_map(|(at, factor)| Some((tile.non_unit_place(at)?, factor)));
            (inside.collect(), normalize(&(limit - &start)))
        };
        if matches!(buffer.space, Space::Global(_)) {
            let ends = (0..tile.extents.len()).filter_map(|at| {
                let end = buffer.extent(at);
                let is_inside = self.lies_inside(&tile.starts[at], tile.extents[at], &end);
                (!is_inside).then(|| from_start(vec![(at, 1)], &end))
            });
            return Valid { bounds: Bounds::of(ends), is_zero: true, lost: None };
        }
        let known = self.valid_buffer(state, tile.buffer);
        let bounds = known.bounds.iter().map(|(sum, limit)| from_start(sum.clone(), limit));
        Valid { bounds: Bounds::of(bounds), ..known }
    }

    /// Up to where a shared buffer or a fragment is valid; a tensor has no entry. If a buffer was written under another name,
    /// that is not known.
    pub(super) fn valid_buffer(&self, state: &State, buffer: Handle<Buffer>) -> Valid {
        if let Some(known) = state.get(&buffer) {
            return known.clone();
        }
        let storage = self.storage(buffer);
        let named_otherwise = state.iter().find(|(other, _)| self.storage(**other) == storage);
        named_otherwise.map_or_else(Valid::everywhere, |(other, known)| Valid {
            bounds: Bounds::default(),
            lost: known.lost.or(Some(self.buffers[*other].span)),
            ..*known
        })
    }

    /// Up to where a value is valid, in a nest over these variables.
    pub(super) fn limits(&self, state: &State, vars: &[Var], names: &[Name], value: &Value) -> Limits {
        let of = |value: &Value| self.limits(state, vars, names, value);
        match value {
            Value::Const(_) | Value::Index(_) => Limits::default(),
            Value::Named(name) => named(names, name).map(|known| known.limits.clone()).unwrap_or_default(),
            Value::Load(access) => self.limits_of_load(state, vars, names, access),
            Value::Cast(_, _, of_value) => of(of_value),
            // The user decides what is chosen at the edge.
            Value::Op(ElementOp::Select, operands)
                if operands.first().is_some_and(|cond| tests_indices(cond, vars, names)) =>
            {
                Limits::default()
            }
            Value::Op(op, operands) => {
                let all: Vec<Limits> = operands.iter().map(of).collect();
                let is_zero = match (op, &all[..]) {
                    (ElementOp::Abs | ElementOp::Neg | ElementOp::Rounded, [of]) => of.is_zero,
                    (ElementOp::Mul, [a, b]) => is_zero_beyond(a) || is_zero_beyond(b),
                    _ => false,
                };
                let is_zero = is_zero && all.iter().all(|of| of.lost.is_none() || of.is_zero);
                Limits { is_zero, ..all.iter().fold(Limits::default(), |all, one| all.and(one)) }
            }
        }
    }

    fn limits_of_load(&self, state: &State, vars: &[Var], names: &[Name], access: &Access) -> Limits {
        let buffer = &self.buffers[access.buffer];
        let is_global = matches!(buffer.space, Space::Global(_));
        let known = self.valid_buffer(state, access.buffer);
        let mut found = Limits { is_zero: known.is_zero, lost: known.lost, ..Limits::default() };
        for coord in &access.index {
            if let Coord::Data(value) = coord {
                let limits = self.limits(state, vars, names, value);
                found.is_zero &= limits.of.is_empty() && limits.lost.is_none();
                found = found.and(&limits);
            }
        }
        let index = |sum: &Sum<usize>| {
            let known = |(at, factor): &(usize, i64)| match &access.index[*at] {
                Coord::At(index) => Some(index * *factor),
                Coord::Data(_) => None,
            };
            sum.iter().map(known).try_fold(Expr::constant(0), |all, one| Some(all + one?))
        };
        let ends = (0..access.index.len()).filter(|_| is_global && !access.or_zero);
        let ends = ends.map(|at| (vec![(at, 1)], buffer.extent(at)));
        let inside = known.bounds.iter().map(|(sum, limit)| (sum.clone(), limit.clone()));
        let bounds = ends.chain(inside);
        let mut of = Vec::new();
        for (sum, end) in bounds {
            match index(&sum).map(|index| self.bound(vars, &index, &end, is_global)) {
                Some(Followed::Within(sum, limit)) => of.push((sum, limit)),
                Some(Followed::Always) => {}
                Some(Followed::Unknown) => found.lost = found.lost.or(Some(access.span)),
                // Data that names no element of a tensor has the zero that the user gave it.
                None if is_global => {}
                None => found.lost = found.lost.or(Some(access.span)),
            }
        }
        found.and(&Limits { of: Bounds::of(of), ..Limits::default() })
    }

    /// What the variables obey where an index is less than `end`.
    fn bound(&self, vars: &[Var], index: &Expr, end: &Expr, is_global: bool) -> Followed {
        let own = |(factor, atom): &(i64, Expr)| match atom.node() {
            Node::Var(var) if vars.contains(var) => Some((var.clone(), *factor)),
            _ => None,
        };
        let of_vars: Sum<Var> = linear(index).terms.iter().filter_map(own).collect();
        let reached =
            of_vars.iter().map(|(var, factor)| var.range().hi.saturating_mul(*factor)).fold(0, i64::saturating_add);
        let rest = normalize(&(index - &value_of(&of_vars, Expr::var)));
        let is_sum = of_vars.iter().all(|(_, factor)| *factor > 0) && !vars.iter().any(|var| rest.mentions(var));
        // Before the first element there are zeros too.
        if is_global && index.range().lo < 0 {
            return Followed::Unknown;
        }
        if is_global && is_sum && self.lies_inside(&rest, reached.saturating_add(1), end) {
            return Followed::Always;
        }
        if !is_sum {
            let is_inside = if is_global { self.lies_inside(index, 1, end) } else { index.range().hi < end.range().lo };
            return if is_inside { Followed::Always } else { Followed::Unknown };
        }
        // Where the whole tile lies does not depend on the variables.
        if of_vars.is_empty() {
            return Followed::Always;
        }
        let common = of_vars.iter().fold(0, |common: i64, (_, factor)| common.gcd(factor));
        let sum = of_vars.into_iter().map(|(var, factor)| (var, factor / common)).collect();
        let limit = normalize(&(normalize(&(end - &rest + (common - 1))) / common));
        if limit.range().lo <= reached / common { Followed::Within(sum, limit) } else { Followed::Always }
    }
}

/// Where an index is less than a limit.
enum Followed {
    /// Where a sum of variables is below a limit.
    Within(Sum<Var>, Expr),
    /// Everywhere.
    Always,
    /// The index is not a sum of variables.
    Unknown,
}

/// Whether a condition tests indices of the nest: then it is the user's word on what happens at the edge. One on data alone
/// is not.
pub(super) fn tests_indices(cond: &Value, vars: &[Var], names: &[Name]) -> bool {
    match cond {
        Value::Index(index) => vars.iter().any(|var| index.mentions(var)),
        Value::Op(_, operands) => operands.iter().any(|operand| tests_indices(operand, vars, names)),
        Value::Cast(_, _, of) => tests_indices(of, vars, names),
        Value::Named(name) => named(names, name).is_some_and(|known| known.is_test),
        Value::Const(_) | Value::Load(_) => false,
    }
}

/// The condition that an index is less than a limit.
pub(super) fn is_below(index: Expr, limit: &Expr) -> Value {
    Value::Op(ElementOp::Lt, [Value::Index(index), Value::Index(limit.clone())].into())
}

/// Whether a value is known to be 0 where it is invalid, and is invalid somewhere.
fn is_zero_beyond(limits: &Limits) -> bool {
    limits.is_zero && !(limits.of.is_empty() && limits.lost.is_none())
}
