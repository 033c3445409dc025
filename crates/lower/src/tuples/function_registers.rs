//! The registers that all uses of a function of tuples share.

use std::collections::BTreeMap;

use tilewright_ir::Handle;
use tilewright_ir::thread::{RegArray, Regs, Stmt, Value};
use tilewright_layout::DType;

use super::function::{Function, Known};
use crate::builder::{Builder, regs};
use crate::refusal::Refusal;

/// Registers for what a function names, and for results that have to wait until others are computed.
pub(crate) struct FunctionRegisters {
    named: Vec<(Handle<RegArray>, DType)>,
    waiting: BTreeMap<usize, Handle<RegArray>>,
}

impl FunctionRegisters {
    /// Declares the registers; `titles` are what the values of a tuple are called.
    pub(crate) fn declare(
        function: &Function,
        titles: &[&str],
        builder: &mut Builder,
        out: &mut Vec<Stmt>,
    ) -> FunctionRegisters {
        let combiner = &function.combiner;
        let mut known: Vec<Known> = function.known([&[], &[]]);
        for parameter in &combiner.parameters {
            let number = Value::Const(parameter.dtype, 0.into());
            known.extend(parameter.names.iter().map(|name| (name.clone(), number.clone(), parameter.dtype)));
        }
        let mut named = Vec::with_capacity(combiner.named.len());
        for (name, value) in &combiner.named {
            let dtype = function.dtype(value, &known).unwrap_or(combiner.parameters[0].dtype);
            let array = builder.registers(name, dtype, 1, 1, out);
            named.push((array, dtype));
            known.push((name.clone(), Value::reg(array, 0), dtype));
        }
        let mut waiting = BTreeMap::new();
        for at in &function.waiting {
            let (name, dtype) = (format!("{}_next", titles[*at]), combiner.parameters[*at].dtype);
            waiting.insert(*at, builder.registers(&name, dtype, 1, 1, out));
        }
        FunctionRegisters { named, waiting }
    }

    /// `to = function(left, right)`, where `left` may be `to`, and `right` is something else.
    pub(crate) fn combined(
        &self,
        function: &Function,
        to: &[Regs],
        left: &[Value],
        right: &[Value],
    ) -> Result<Vec<Stmt>, Refusal> {
        let (mut out, mut known) = (Vec::new(), function.known([left, right]));
        for ((name, value), (array, dtype)) in function.combiner.named.iter().zip(&self.named) {
            out.push(Stmt::Assign { to: regs(*array, 0, 1), value: function.value(value, *dtype, &known)? });
            known.push((name.clone(), Value::reg(*array, 0), *dtype));
        }
        for at in &function.order {
            let (result, dtype) = (&function.combiner.results[*at], function.combiner.parameters[*at].dtype);
            let value = function.value(result, dtype, &known)?;
            let to = self.waiting.get(at).map_or_else(|| to[*at].clone(), |array| regs(*array, 0, 1));
            out.push(Stmt::Assign { to, value });
        }
        for (at, array) in &self.waiting {
            out.push(Stmt::Assign { to: to[*at].clone(), value: Value::reg(*array, 0) });
        }
        Ok(out)
    }
}
