//! Operands and numbers.

use crate::fault::PtxError;
use crate::ptx::ast::{Number, Operand};
use crate::ptx::lexer::TokenKind;
use crate::ptx::parser::{MAX_NESTING, Parser};

impl Parser<'_> {
    /// One operand, without the comma after it.
    pub(crate) fn operand(&mut self, depth: u32) -> Result<Operand, PtxError> {
        if depth > MAX_NESTING {
            return self.fail("operands nest too deeply");
        }
        if self.take("{") {
            return Ok(Operand::Vector(self.operand_list("}", depth)?));
        }
        if self.take("(") {
            return Ok(Operand::List(self.operand_list(")", depth)?));
        }
        if self.take("[") {
            return self.address(depth);
        }
        if self.take("!") {
            return Ok(Operand::Not(Box::new(self.operand(depth + 1)?)));
        }
        match self.peek().map(|token| token.kind) {
            Some(TokenKind::Word) => self.word_operand(depth),
            _ => Ok(Operand::Number(self.number()?)),
        }
    }

    fn operand_list(&mut self, close: &str, depth: u32) -> Result<Vec<Operand>, PtxError> {
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(self.operand(depth + 1)?);
            if !self.take(",") && !self.is_punct(close) {
                return self.fail(format!("expected `,` or `{close}`"));
            }
        }
        Ok(items)
    }

    fn word_operand(&mut self, depth: u32) -> Result<Operand, PtxError> {
        let name = self.word()?.to_string();
        if self.take("|") {
            let second = self.operand(depth + 1)?;
            return Ok(Operand::Pair(Box::new(Operand::Word(name)), Box::new(second)));
        }
        let offset = self.offset()?;
        if offset == 0 { Ok(Operand::Word(name)) } else { Ok(Operand::Sum(name, offset)) }
    }

    /// `+4`, `-4`, `+-4`, or nothing.
    fn offset(&mut self) -> Result<i64, PtxError> {
        if self.take("+") {
            return Ok(self.integer()? as i64);
        }
        if self.is_punct("-") {
            return Ok(self.integer()? as i64);
        }
        Ok(0)
    }

    /// The contents of `[...]`, including the closing bracket.
    fn address(&mut self, depth: u32) -> Result<Operand, PtxError> {
        let is_word = self.peek().is_some_and(|token| token.kind == TokenKind::Word);
        let (base, offset) = if is_word {
            let name = self.word()?.to_string();
            (Some(name), self.offset()?)
        } else {
            (None, self.integer()? as i64)
        };
        let mut extra = Vec::new();
        while self.take(",") {
            extra.push(self.operand(depth + 1)?);
        }
        self.expect("]")?;
        Ok(Operand::Address { base, offset, extra })
    }

    /// An integer, with its sign, as two's complement bits.
    pub(crate) fn integer(&mut self) -> Result<u64, PtxError> {
        match self.number()? {
            Number::Integer(bits) => Ok(bits),
            Number::Single(_) | Number::Double(_) => self.fail("expected an integer"),
        }
    }

    /// A literal with its sign.
    pub(crate) fn number(&mut self) -> Result<Number, PtxError> {
        let negative = self.take("-");
        if !negative {
            self.take("+");
        }
        let Some(token) = self.peek() else { return self.fail("the file ends inside an operand") };
        if token.kind != TokenKind::Number {
            return self.fail(format!("expected an operand, found `{}`", token.text));
        }
        let Some(number) = literal(token.text) else {
            return self.fail(format!("`{}` is not a number", token.text));
        };
        self.advance();
        Ok(if negative { negated(number) } else { number })
    }
}

fn negated(number: Number) -> Number {
    match number {
        Number::Integer(bits) => Number::Integer(bits.wrapping_neg()),
        Number::Single(bits) => Number::Single(bits ^ 0x8000_0000),
        Number::Double(value) => Number::Double(-value),
    }
}

/// Reads a literal (PTX ISA, section 4.5).
fn literal(text: &str) -> Option<Number> {
    let lower = text.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0f").filter(|hex| hex.len() == 8) {
        return u32::from_str_radix(hex, 16).ok().map(Number::Single);
    }
    if let Some(hex) = lower.strip_prefix("0d").filter(|hex| hex.len() == 16) {
        return u64::from_str_radix(hex, 16).ok().map(|bits| Number::Double(f64::from_bits(bits)));
    }
    let digits = lower.trim_end_matches('u');
    if let Some(hex) = digits.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(Number::Integer);
    }
    if let Some(binary) = digits.strip_prefix("0b") {
        return u64::from_str_radix(binary, 2).ok().map(Number::Integer);
    }
    if digits.contains(['.', 'e']) {
        return digits.parse::<f64>().ok().map(Number::Double);
    }
    if digits.len() > 1 && digits.starts_with('0') {
        return u64::from_str_radix(digits, 8).ok().map(Number::Integer);
    }
    digits.parse::<u64>().ok().map(Number::Integer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_every_base() {
        assert_eq!(literal("0x1F"), Some(Number::Integer(31)));
        assert_eq!(literal("017"), Some(Number::Integer(15)));
        assert_eq!(literal("0b101"), Some(Number::Integer(5)));
        assert_eq!(literal("42U"), Some(Number::Integer(42)));
        assert_eq!(literal("0f3F800000"), Some(Number::Single(0x3f80_0000)));
        assert_eq!(literal("0d3FF0000000000000"), Some(Number::Double(1.0)));
        assert_eq!(literal("1.5e-3"), Some(Number::Double(0.0015)));
        assert_eq!(literal("0q"), None);
    }
}
