//! Constants that only atomic operations take: they are printed as operands, and have no registers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tilewright_ir::thread::{Program, RegArray, Regs, Resource, Stmt, Value, for_each_stmt};
use tilewright_ir::{Handle, Scalar};
use tilewright_layout::DType;

use crate::dtype::literal;

/// The text of each constant, by the register that held it.
pub(crate) type Immediates = BTreeMap<Handle<RegArray>, String>;

/// How an array of registers is used.
#[derive(Default)]
struct Use {
    /// Statements that write to it, and what the last one writes if that is a constant.
    writes: usize,
    constant: Option<Scalar>,
    reads: usize,
    /// The reads by atomic operations.
    atomic: usize,
}

/// Takes the constants out of a program.
pub(crate) fn take_immediates(program: &mut Cow<'_, Program>) -> Immediates {
    let mut uses: BTreeMap<Handle<RegArray>, Use> = BTreeMap::new();
    for_each_stmt(&program.body, &mut |stmt| note(stmt, &mut uses));
    let text = |(array, found): (Handle<RegArray>, Use)| {
        let RegArray { dtype, len, .. } = program.registers[array];
        let is_typed = matches!(dtype, DType::I32 | DType::U32 | DType::I64 | DType::U64 | DType::F32 | DType::F64);
        let is_immediate = is_typed && len == 1 && found.writes == 1 && found.atomic > 0 && found.atomic == found.reads;
        found.constant.filter(|_| is_immediate).map(|value| (array, operand(dtype, value)))
    };
    let immediates: Immediates = uses.into_iter().filter_map(text).collect();
    if !immediates.is_empty() {
        let program = program.to_mut();
        program.body = without(std::mem::take(&mut program.body), &immediates);
    }
    immediates
}

/// The constant as an expression of exactly this type. C++ has no literal for the least integer: `-2147483648` negates a literal of
/// a wider type.
fn operand(dtype: DType, value: Scalar) -> String {
    match (dtype, value) {
        (DType::I32, Scalar::Int(value)) if value == i64::from(i32::MIN) => format!("{} - 1", i32::MIN + 1),
        (DType::I64, Scalar::Int(i64::MIN)) => format!("{}ll - 1", i64::MIN + 1),
        _ => literal(dtype, value),
    }
}

fn note(stmt: &Stmt, uses: &mut BTreeMap<Handle<RegArray>, Use>) {
    stmt.reads(&mut |resource| {
        if let Resource::Registers(regs) = resource {
            uses.entry(regs.array).or_default().reads += 1;
        }
    });
    stmt.writes(&mut |resource| {
        if let Resource::Registers(regs) = resource {
            let found = uses.entry(regs.array).or_default();
            found.writes += 1;
            found.constant = assigned(stmt).map(|(_, value)| value);
        }
    });
    if let Stmt::Inst(call) = stmt
        && call.inst.info().gives_old
    {
        call.from.iter().for_each(|regs| uses.entry(regs.array).or_default().atomic += 1);
    }
}

/// The register to which a statement assigns a constant.
fn assigned(stmt: &Stmt) -> Option<(&Regs, Scalar)> {
    match stmt {
        Stmt::Set { to, value } => Some((to, *value)),
        Stmt::Assign { to, value: Value::Const(_, value) } => Some((to, *value)),
        _ => None,
    }
}

fn without(body: Vec<Stmt>, immediates: &Immediates) -> Vec<Stmt> {
    let is_left = |stmt: &Stmt| match stmt {
        Stmt::Declare(array) => !immediates.contains_key(array),
        stmt => assigned(stmt).is_none_or(|(to, _)| !immediates.contains_key(&to.array)),
    };
    body.into_iter().filter(is_left).map(|stmt| stmt.map_inner(|inner| without(inner, immediates))).collect()
}
