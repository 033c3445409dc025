//! Expressions of tile programs and layouts, and their values.

/// An integer expression: an index, an offset, a thread or a slot.
#[derive(Clone, Debug, PartialEq)]
pub enum Index {
    /// A constant.
    Integer(i64),
    /// A loop variable, a block variable, a `let` or an input of a layout. A name that starts with `?` is foreign.
    Variable(String),
    /// An operation on two integers.
    Binary(IndexOp, Box<Index>, Box<Index>),
    /// An integer read from memory: the index depends on data.
    Load(Load),
}

/// An operation on integers. Division rounds down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexOp {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// The quotient, rounded down.
    FloorDiv,
    /// The remainder of [`IndexOp::FloorDiv`], which has the divisor's sign.
    FloorMod,
    /// Bitwise XOR.
    Xor,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// Bitwise AND.
    BitwiseAnd,
    /// `a` times two to the power of `b`.
    ShiftLeft,
    /// `a` divided by two to the power of `b`, rounded down.
    ShiftRight,
}

/// An element of a buffer that is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The buffer's name.
    pub buffer: String,
    /// One index per dimension.
    pub index: Vec<Index>,
}

/// An expression on elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A constant.
    Const(f64),
    /// An integer variable.
    Variable(String),
    /// An element of a buffer.
    Load(Load),
    /// An operation on its arguments, whose number is given by [`ValueOp::arguments`].
    Op(ValueOp, Vec<Value>),
    /// The argument, converted to the dtype.
    Cast(String, Box<Value>),
}

/// An operation on elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueOp {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`
    Div,
    /// The larger one.
    Max,
    /// The smaller one.
    Min,
    /// `-a`
    Neg,
    /// The exponential function.
    Exp,
    /// The natural logarithm.
    Log,
    /// The square root.
    Sqrt,
    /// The reciprocal of the square root.
    Rsqrt,
    /// The absolute value.
    Abs,
    /// The hyperbolic tangent.
    Tanh,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// `a > b`
    Gt,
    /// `a >= b`
    Ge,
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `select(condition, then, else)`
    Select,
}

const INDEX_OPS: [(&str, IndexOp); 11] = [
    ("add", IndexOp::Add),
    ("sub", IndexOp::Sub),
    ("mul", IndexOp::Mul),
    ("floordiv", IndexOp::FloorDiv),
    ("floormod", IndexOp::FloorMod),
    ("xor", IndexOp::Xor),
    ("min", IndexOp::Min),
    ("max", IndexOp::Max),
    ("bitwise_and", IndexOp::BitwiseAnd),
    ("shift_left", IndexOp::ShiftLeft),
    ("shift_right", IndexOp::ShiftRight),
];

const VALUE_OPS: [(&str, ValueOp, usize); 20] = [
    ("add", ValueOp::Add, 2),
    ("sub", ValueOp::Sub, 2),
    ("mul", ValueOp::Mul, 2),
    ("div", ValueOp::Div, 2),
    ("max", ValueOp::Max, 2),
    ("min", ValueOp::Min, 2),
    ("neg", ValueOp::Neg, 1),
    ("exp", ValueOp::Exp, 1),
    ("log", ValueOp::Log, 1),
    ("sqrt", ValueOp::Sqrt, 1),
    ("rsqrt", ValueOp::Rsqrt, 1),
    ("abs", ValueOp::Abs, 1),
    ("tanh", ValueOp::Tanh, 1),
    ("lt", ValueOp::Lt, 2),
    ("le", ValueOp::Le, 2),
    ("gt", ValueOp::Gt, 2),
    ("ge", ValueOp::Ge, 2),
    ("eq", ValueOp::Eq, 2),
    ("ne", ValueOp::Ne, 2),
    ("select", ValueOp::Select, 3),
];

impl Index {
    /// The value; `None` if it depends on data or on a variable unknown to `env`, or is undefined.
    pub fn eval(&self, env: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        match self {
            Index::Integer(value) => Some(*value),
            Index::Variable(name) => env(name),
            Index::Binary(op, left, right) => op.apply(left.eval(env)?, right.eval(env)?),
            Index::Load(_) => None,
        }
    }
}

impl IndexOp {
    /// The operation by its name in the case files.
    pub fn named(name: &str) -> Option<IndexOp> {
        INDEX_OPS.iter().find(|(known, _)| *known == name).map(|(_, op)| *op)
    }

    /// The result; `None` for a division by zero, an overflow, or a shift that is too large.
    pub fn apply(self, left: i64, right: i64) -> Option<i64> {
        match self {
            IndexOp::Add => left.checked_add(right),
            IndexOp::Sub => left.checked_sub(right),
            IndexOp::Mul => left.checked_mul(right),
            IndexOp::FloorDiv => floor_div(left, right),
            IndexOp::FloorMod => floor_mod(left, right),
            IndexOp::Xor => Some(left ^ right),
            IndexOp::Min => Some(left.min(right)),
            IndexOp::Max => Some(left.max(right)),
            IndexOp::BitwiseAnd => Some(left & right),
            IndexOp::ShiftLeft => left.checked_mul(power_of_two(right)?),
            IndexOp::ShiftRight => floor_div(left, power_of_two(right)?),
        }
    }
}

impl Value {
    /// The value, if it depends only on constants and known variables. Functions that do not occur in conditions on
    /// loop variables are not evaluated.
    pub fn eval(&self, env: &dyn Fn(&str) -> Option<i64>) -> Option<f64> {
        match self {
            Value::Const(value) => Some(*value),
            Value::Variable(name) => env(name).map(|value| value as f64),
            Value::Op(op, arguments) => {
                let arguments: Option<Vec<f64>> = arguments.iter().map(|argument| argument.eval(env)).collect();
                op.apply(&arguments?)
            }
            Value::Load(_) | Value::Cast(..) => None,
        }
    }
}

impl ValueOp {
    /// The operation by its name in the case files.
    pub fn named(name: &str) -> Option<ValueOp> {
        VALUE_OPS.iter().find(|(known, ..)| *known == name).map(|(_, op, _)| *op)
    }

    /// The name in the case files.
    pub fn name(self) -> &'static str {
        VALUE_OPS.iter().find(|(_, op, _)| *op == self).map_or("", |(name, ..)| *name)
    }

    /// The number of arguments.
    pub fn arguments(self) -> usize {
        VALUE_OPS.iter().find(|(_, op, _)| *op == self).map_or(0, |(.., count)| *count)
    }

    fn apply(self, arguments: &[f64]) -> Option<f64> {
        let [left, right] = arguments else { return None };
        match self {
            ValueOp::Add => Some(left + right),
            ValueOp::Sub => Some(left - right),
            ValueOp::Mul => Some(left * right),
            ValueOp::Lt => truth(left < right),
            ValueOp::Le => truth(left <= right),
            ValueOp::Gt => truth(left > right),
            ValueOp::Ge => truth(left >= right),
            ValueOp::Eq => truth(left == right),
            ValueOp::Ne => truth(left != right),
            _ => None,
        }
    }
}

fn truth(holds: bool) -> Option<f64> {
    Some(f64::from(u8::from(holds)))
}

fn floor_div(left: i64, right: i64) -> Option<i64> {
    let (quotient, rest) = (left.checked_div(right)?, left.checked_rem(right)?);
    Some(if rest != 0 && (rest < 0) != (right < 0) { quotient - 1 } else { quotient })
}

fn floor_mod(left: i64, right: i64) -> Option<i64> {
    let rest = left.checked_rem(right)?;
    Some(if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest })
}

fn power_of_two(exponent: i64) -> Option<i64> {
    u32::try_from(exponent).ok().filter(|exponent| *exponent < 63).map(|exponent| 1i64 << exponent)
}
