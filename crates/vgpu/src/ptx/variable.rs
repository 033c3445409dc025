//! Declarations of variables and parameters, with their initialisers.

use crate::fault::PtxError;
use crate::isa::{DType, Space};
use crate::ptx::ast::{Initial, Number, Variable};
use crate::ptx::lexer::TokenKind;
use crate::ptx::parser::{MAX_NESTING, Parser};

/// The part of a declaration before the names.
struct Prefix {
    space: Space,
    is_register: bool,
    /// Alignment in bytes; 0 if none is given.
    align: u32,
    element: DType,
    /// Number of vector elements; 1 for a scalar.
    vector: u32,
}

impl Parser<'_> {
    /// `.align 4 .b8 name[16] = {...}, other;` after the state space.
    pub(crate) fn variables(&mut self, space: &str, is_extern: bool) -> Result<Vec<Variable>, PtxError> {
        let prefix = self.prefix(space)?;
        let mut found = Vec::new();
        loop {
            found.push(self.declarator(&prefix, is_extern)?);
            if !self.take(",") {
                break;
            }
        }
        self.expect(";")?;
        Ok(found)
    }

    /// `(.param .u64 a, .param .align 8 .b8 b[12])`
    pub(crate) fn parameters(&mut self) -> Result<Vec<Variable>, PtxError> {
        self.expect("(")?;
        let mut found = Vec::new();
        while !self.take(")") {
            let space = self.word()?;
            let prefix = self.prefix(space)?;
            found.push(self.declarator(&prefix, false)?);
            if !self.take(",") && !self.is_punct(")") {
                return self.fail("expected `,` or `)`");
            }
        }
        Ok(found)
    }

    fn prefix(&mut self, space: &str) -> Result<Prefix, PtxError> {
        let is_register = space == ".reg";
        let Some(space) = Space::parse(space.trim_start_matches('.')).or(is_register.then_some(Space::Local)) else {
            return self.fail(format!("`{space}` is not a state space"));
        };
        let mut prefix = Prefix { space, is_register, align: 0, element: DType::B8, vector: 1 };
        let mut typed = false;
        let mut pointer = false;
        while self.peek_text().starts_with('.') {
            let word = self.word()?;
            match word {
                ".align" => {
                    let align = self.integer()?;
                    if !(1..=1 << 20).contains(&align) {
                        return self.fail("an alignment must be from 1 to 2^20");
                    }
                    // After `.ptr`, it is the alignment of the memory that the pointer refers to.
                    if !pointer {
                        prefix.align = align as u32;
                    }
                }
                ".ptr" => pointer = true,
                ".v2" => prefix.vector = 2,
                ".v4" => prefix.vector = 4,
                ".v8" => prefix.vector = 8,
                ".global" | ".const" | ".local" | ".shared" => {}
                ".attribute" => {
                    while !self.take(")") && self.peek().is_some() {
                        self.advance();
                    }
                }
                _ => match DType::parse(word.trim_start_matches('.')) {
                    Some(dtype) => {
                        prefix.element = dtype;
                        typed = true;
                    }
                    None => return self.fail(format!("unknown type or attribute `{word}`")),
                },
            }
        }
        if !typed {
            return self.fail("the declaration has no type");
        }
        Ok(prefix)
    }

    fn declarator(&mut self, prefix: &Prefix, is_extern: bool) -> Result<Variable, PtxError> {
        let line = self.line();
        let name = self.word()?.to_string();
        let element = prefix.element.bytes().max(1);
        let mut count = u64::from(prefix.vector);
        let mut open = false;
        while self.take("[") {
            if self.take("]") {
                open = true;
                continue;
            }
            count = count.saturating_mul(self.integer()?);
            self.expect("]")?;
        }
        let mut init = Vec::new();
        if self.take("=") {
            self.initialiser(prefix.element, 0, &mut init)?;
        }
        if open {
            count = init.len() as u64;
        }
        let bytes = count.saturating_mul(u64::from(element));
        if bytes > 1 << 31 {
            return self.fail(format!("`{name}` is larger than 2 GiB"));
        }
        let natural = element.saturating_mul(prefix.vector);
        Ok(Variable {
            line,
            name,
            space: prefix.space,
            is_register: prefix.is_register,
            is_extern,
            align: if prefix.align == 0 { natural } else { prefix.align },
            bytes: bytes as u32,
            element_bytes: element,
            init,
        })
    }

    fn initialiser(&mut self, element: DType, depth: u32, out: &mut Vec<Initial>) -> Result<(), PtxError> {
        if depth > MAX_NESTING {
            return self.fail("initialisers nest too deeply");
        }
        if !self.take("{") {
            let item = self.initial(element)?;
            out.push(item);
            return Ok(());
        }
        while !self.take("}") {
            self.initialiser(element, depth + 1, out)?;
            if !self.take(",") && !self.is_punct("}") {
                return self.fail("expected `,` or `}`");
            }
        }
        Ok(())
    }

    fn initial(&mut self, element: DType) -> Result<Initial, PtxError> {
        if self.peek().is_some_and(|token| token.kind == TokenKind::Word) {
            let name = self.word()?;
            if name == "generic" && self.take("(") {
                let symbol = self.word()?.to_string();
                let inner = self.symbol_offset()?;
                self.expect(")")?;
                let offset = inner.wrapping_add(self.symbol_offset()?);
                return Ok(Initial::Address { symbol, offset, generic: true });
            }
            let offset = self.symbol_offset()?;
            return Ok(Initial::Address { symbol: name.to_string(), offset, generic: false });
        }
        let number = self.number()?;
        Ok(Initial::Bits(number_bits(number, element)))
    }

    fn symbol_offset(&mut self) -> Result<i64, PtxError> {
        if self.take("+") || self.is_punct("-") { Ok(self.integer()? as i64) } else { Ok(0) }
    }
}

/// The bits of a literal where a value of type `dtype` is expected.
pub(crate) fn number_bits(number: Number, dtype: DType) -> u64 {
    let wide = dtype.is_float() && dtype.bits == 64;
    match number {
        Number::Integer(bits) if wide => (bits as i64 as f64).to_bits(),
        Number::Integer(bits) if dtype.is_float() && dtype.bits == 32 && dtype.count == 1 => {
            u64::from((bits as i64 as f32).to_bits())
        }
        Number::Integer(bits) => bits,
        Number::Single(bits) if wide => f64::from(f32::from_bits(bits)).to_bits(),
        Number::Single(bits) => u64::from(bits),
        Number::Double(value) if dtype.width() == 64 => value.to_bits(),
        Number::Double(value) => u64::from((value as f32).to_bits()),
    }
}
