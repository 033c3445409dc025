//! How two tuples of values become one: the function that the user passes to `reduce_by`.

mod samples;

use tilewright_diag::Span;
use tilewright_layout::DType;

use crate::scalar::Scalar;
use crate::tile::value::{ElementOp, Value};

/// A function that combines two tuples of values into one. It is associative, and commutative: threads combine what they
/// have, in an order that the layouts decide.
#[derive(Clone, Debug)]
pub struct Combiner {
    /// What the function calls the values of both tuples, and their dtypes.
    pub parameters: Vec<Parameter>,
    /// Values that the results use, by name; each may use those before it.
    pub named: Vec<(String, Value)>,
    /// The combined tuple.
    pub results: Vec<Value>,
    /// The tuple that leaves any other as it is when they are combined: what elements beyond an edge count as.
    pub identity: Vec<Scalar>,
    /// Where the function was written.
    pub span: Span,
}

/// One value of the tuples.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name in the first tuple, and in the second.
    pub names: [String; 2],
    /// Its dtype in both.
    pub dtype: DType,
}

impl Combiner {
    /// Whether exchanging the two tuples changes no bit of the results, as far as the text of the function shows that: what
    /// the results are made of is then the same, apart from the order of operands that may be exchanged.
    pub fn is_symmetric(&self) -> bool {
        let mut known = Vec::new();
        for (name, value) in &self.named {
            if self.text(value, 0, &known) == self.text(value, 1, &known) {
                known.push(name.as_str());
            }
        }
        self.results.iter().all(|result| self.text(result, 0, &known) == self.text(result, 1, &known))
    }

    /// The value as text, with the operands of commutative operations in one order, for the tuples as they are (`turn` 0) or
    /// exchanged (1). Names that are not among those known to be `symmetric` have another text for each.
    fn text(&self, value: &Value, turn: usize, symmetric: &[&str]) -> String {
        let of = |value: &Value| self.text(value, turn, symmetric);
        match value {
            Value::Const(number) => format!("{number:?}"),
            Value::Index(index) => index.to_string(),
            Value::Named(name) => self.name(name, turn, symmetric),
            // The verifier rejects elements of buffers here.
            Value::Load(_) => format!("load {turn}"),
            Value::Cast(dtype, narrowing, inner) => format!("{}({})", narrowing.title(*dtype), of(inner)),
            Value::Op(op, operands) => {
                let mut texts: Vec<String> = operands.iter().map(of).collect();
                let exchangeable = op.exchangeable_operands().min(texts.len());
                texts[..exchangeable].sort_unstable();
                format!("{op}({})", texts.join(", "))
            }
        }
    }

    fn name(&self, name: &str, turn: usize, symmetric: &[&str]) -> String {
        let of_side = |side: usize| self.parameters.iter().position(|parameter| parameter.names[side] == name);
        match (of_side(0), of_side(1)) {
            (Some(at), _) => format!("{at} of {turn}"),
            (None, Some(at)) => format!("{at} of {}", 1 - turn),
            (None, None) if self.named.iter().any(|(known, _)| known == name) && !symmetric.contains(&name) => {
                format!("{name} {turn}")
            }
            (None, None) => name.to_string(),
        }
    }
}

impl ElementOp {
    /// How many of the first operands may be exchanged without changing a bit of the result.
    fn exchangeable_operands(self) -> usize {
        match self {
            ElementOp::Add | ElementOp::Mul | ElementOp::Fma | ElementOp::Max | ElementOp::Min => 2,
            ElementOp::And | ElementOp::Or | ElementOp::Xor | ElementOp::Eq | ElementOp::Ne => 2,
            ElementOp::Sub | ElementOp::Div | ElementOp::Rem | ElementOp::Shl | ElementOp::Shr => 0,
            ElementOp::Neg | ElementOp::Abs | ElementOp::Rounded | ElementOp::Not | ElementOp::Select => 0,
            ElementOp::Lt | ElementOp::Le | ElementOp::Gt | ElementOp::Ge | ElementOp::Function(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combiner(named: Vec<(String, Value)>, results: Vec<Value>) -> Combiner {
        let parameter = |name: &str| Parameter { names: [format!("a.{name}"), format!("b.{name}")], dtype: DType::F32 };
        let identity = vec![Scalar::Int(0); 2];
        Combiner { parameters: vec![parameter("m"), parameter("l")], named, results, identity, span: Span::here() }
    }

    fn named(name: &str) -> Value {
        Value::Named(name.to_string())
    }

    fn op(op: ElementOp, operands: [&Value; 2]) -> Value {
        Value::Op(op, operands.map(Value::clone).into())
    }

    #[test]
    fn a_sum_is_symmetric_and_a_difference_is_not() {
        let [a, b] = ["a.m", "b.m"].map(named);
        let of = |kind| combiner(Vec::new(), vec![op(kind, [&a, &b]), op(ElementOp::Max, [&b, &a])]).is_symmetric();
        assert_eq!([ElementOp::Add, ElementOp::Mul, ElementOp::Sub].map(of), [true, true, false]);
    }

    #[test]
    fn a_name_is_symmetric_if_its_value_is() {
        let [a, b, c, d] = ["a.m", "b.m", "a.l", "b.l"].map(named);
        let of = |kind| {
            let top = ("top".to_string(), op(kind, [&a, &b]));
            let parts = [&c, &d].map(|part| op(ElementOp::Mul, [part, &named("top")]));
            let sum = op(ElementOp::Add, [&parts[0], &parts[1]]);
            combiner(vec![top], vec![named("top"), sum]).is_symmetric()
        };
        assert_eq!([ElementOp::Max, ElementOp::Sub].map(of), [true, false]);
    }

    #[test]
    fn a_fused_sum_of_products_is_not_symmetric() {
        let [a, b] = ["a.m", "b.m"].map(named);
        let product = op(ElementOp::Mul, [&b, &b]);
        let fused = Value::Op(ElementOp::Fma, [a.clone(), a, product].into());
        assert!(!combiner(Vec::new(), vec![fused]).is_symmetric());
    }
}
