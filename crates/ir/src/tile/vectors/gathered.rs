//! Loads of rows that data chooses: steps with the same data make them together.

use tilewright_expr::{Expr, Var};

use super::StaticAccess;
use crate::tile::buffer::Space;
use crate::tile::kernel::Kernel;
use crate::tile::value::{Access, Coord, Value};

/// A load of which some indices are data.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// The load.
    access: Access,
    /// The variables that stand for data in the indices, with the data.
    pub data: Vec<(Var, Value)>,
}

impl Gathered {
    /// A load from memory at an index of which a part is data, `number` distinguishing it from others. Its data is known
    /// before the statements of the iterations are executed: it consists of elements that are, and of no names.
    pub(super) fn of(
        kernel: &Kernel,
        access: &Access,
        number: usize,
        is_known: &dyn Fn(&Access) -> bool,
    ) -> Option<StaticAccess> {
        if kernel.buffers[access.buffer].space == Space::Fragment {
            return None;
        }
        let mut data = Vec::new();
        let mut index = Vec::new();
        for coord in &access.index {
            index.push(match coord {
                Coord::At(expr) => expr.clone(),
                Coord::Data(value) => {
                    let mut is_before = has_no_names(value);
                    value.for_each_load(&mut |inner| is_before &= is_known(inner));
                    if !is_before {
                        return None;
                    }
                    let most = i64::from(i32::MAX);
                    let var = Var::new(format!("data{number}_{}", data.len()), -most, most);
                    data.push((var.clone(), value.clone()));
                    Expr::var(&var)
                }
            });
        }
        let gathered = Some(Gathered { access: access.clone(), data });
        Some(StaticAccess { buffer: access.buffer, elements: vec![index], gathered })
    }

    /// Whether an access is to the same element.
    pub(super) fn is_of(&self, access: &Access) -> bool {
        is_same_element(&self.access, access)
    }

    /// An index, with 0 in place of data.
    pub fn without_data(&self, index: &[Expr]) -> Vec<Expr> {
        let zero = |var: &Var| self.data.iter().any(|(data, _)| data == var).then(|| Expr::constant(0));
        index.iter().map(|coord| coord.substitute(&zero)).collect()
    }

    /// The variables among these that the data depends on.
    pub(super) fn depends_on<'v>(&self, vars: &'v [Var]) -> Vec<&'v Var> {
        let is_in = |var: &&Var| {
            let mut found = false;
            self.data.iter().for_each(|(_, value)| value.for_each_expr(&mut |expr| found |= expr.mentions(var)));
            found
        };
        vars.iter().filter(is_in).collect()
    }
}

/// Whether a value consists of constants, indices and elements, without named values.
fn has_no_names(value: &Value) -> bool {
    match value {
        Value::Const(_) | Value::Index(_) => true,
        Value::Named(_) => false,
        Value::Load(access) => access.index.iter().all(|coord| match coord {
            Coord::At(_) => true,
            Coord::Data(value) => has_no_names(value),
        }),
        Value::Op(_, operands) => operands.iter().all(has_no_names),
        Value::Cast(_, _, value) => has_no_names(value),
    }
}

fn is_same_element(one: &Access, other: &Access) -> bool {
    let same = |(one, other): (&Coord, &Coord)| match (one, other) {
        (Coord::At(one), Coord::At(other)) => one == other,
        (Coord::Data(one), Coord::Data(other)) => is_same(one, other),
        (Coord::At(_), Coord::Data(_)) | (Coord::Data(_), Coord::At(_)) => false,
    };
    one.buffer == other.buffer && one.index.len() == other.index.len() && one.index.iter().zip(&other.index).all(same)
}

/// Whether two values are the same expression of the same elements and names.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Const(one), Value::Const(other)) => one == other,
        (Value::Index(one), Value::Index(other)) => one == other,
        (Value::Named(one), Value::Named(other)) => one == other,
        (Value::Load(one), Value::Load(other)) => is_same_element(one, other),
        (Value::Op(one, of_one), Value::Op(other, of_other)) => {
            one == other && of_one.len() == of_other.len() && of_one.iter().zip(&**of_other).all(|(a, b)| is_same(a, b))
        }
        (Value::Cast(one, how, of_one), Value::Cast(other, other_how, of_other)) => {
            (one, how) == (other, other_how) && is_same(of_one, of_other)
        }
        (Value::Const(_) | Value::Index(_) | Value::Named(_) | Value::Load(_) | Value::Op(..) | Value::Cast(..), _) => {
            false
        }
    }
}
