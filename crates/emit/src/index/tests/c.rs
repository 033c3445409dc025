//! Evaluates C expressions of `int` and `long long`, with an error where C has undefined behaviour.

/// A value with its type.
#[derive(Clone, Copy)]
struct Typed {
    value: i64,
    is_long: bool,
}

/// The value of an expression, whose variables are of type `int`, and whether it is a `long long`. Error: what is wrong
/// with it.
pub(super) fn evaluate(text: &str, variable: &dyn Fn(&str) -> Option<i64>) -> Result<(i64, bool), String> {
    let tokens = tokens(text);
    let mut parser = Parser { tokens: &tokens, at: 0, variable };
    let Typed { value, is_long } = parser.binary(0)?;
    if parser.at < tokens.len() { Err(format!("`{}` is left", tokens[parser.at])) } else { Ok((value, is_long)) }
}

fn tokens(text: &str) -> Vec<String> {
    let text = text.replace("(long long)", " LONG ").replace(">>", " > ");
    let mut spaced = String::new();
    for c in text.chars() {
        if "+-*/%&^()".contains(c) { spaced.extend([' ', c, ' ']) } else { spaced.push(c) }
    }
    spaced.split_whitespace().map(str::to_string).collect()
}

/// Binary operators, weakest first.
const LEVELS: [&[&str]; 5] = [&["^"], &["&"], &[">"], &["+", "-"], &["*", "/", "%"]];

struct Parser<'a> {
    tokens: &'a [String],
    at: usize,
    variable: &'a dyn Fn(&str) -> Option<i64>,
}

impl Parser<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn binary(&mut self, level: usize) -> Result<Typed, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while operators.contains(&self.peek()) {
            let operator = self.peek().to_string();
            self.at += 1;
            left = applied(&operator, left, self.binary(level + 1)?)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Typed, String> {
        let token = self.peek().to_string();
        self.at += 1;
        match token.as_str() {
            "LONG" => Ok(Typed { is_long: true, ..self.unary()? }),
            "-" => {
                let Typed { value, is_long } = self.unary()?;
                typed(-i128::from(value), is_long)
            }
            "(" => {
                let inner = self.binary(0)?;
                self.at += 1;
                Ok(inner)
            }
            token if token.starts_with(|c: char| c.is_ascii_digit()) => {
                let (digits, is_long) = token.strip_suffix("ll").map_or((token, false), |digits| (digits, true));
                let value: i64 = digits.parse().map_err(|error| format!("`{token}`: {error}"))?;
                // A number that exceeds an `int` is a `long`.
                typed(i128::from(value), is_long || i32::try_from(value).is_err())
            }
            name => {
                let value = (self.variable)(name).ok_or(format!("there is no `{name}`"))?;
                typed(i128::from(value), false)
            }
        }
    }
}

fn applied(operator: &str, a: Typed, b: Typed) -> Result<Typed, String> {
    let (x, y) = (i128::from(a.value), i128::from(b.value));
    if y == 0 && ["/", "%"].contains(&operator) {
        return Err("division by 0".to_string());
    }
    let value = match operator {
        "+" => x + y,
        "-" => x - y,
        "*" => x * y,
        "/" => x / y,
        "%" => x % y,
        ">" if y < if a.is_long { 64 } else { 32 } => return typed(x >> y, a.is_long),
        ">" => return Err(format!("a shift by {y} bits")),
        "&" => x & y,
        _ => x ^ y,
    };
    typed(value, a.is_long || b.is_long)
}

fn typed(value: i128, is_long: bool) -> Result<Typed, String> {
    let fits = if is_long { i64::try_from(value).is_ok() } else { i32::try_from(value).is_ok() };
    let value = i64::try_from(value).unwrap_or_default();
    if fits { Ok(Typed { value, is_long }) } else { Err(format!("{value} overflows")) }
}
