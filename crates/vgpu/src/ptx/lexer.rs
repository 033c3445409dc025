//! Splits PTX text into tokens. A word keeps its dots, so `ld.global.v2.b64` and `%tid.x` are one token each.

use crate::fault::PtxError;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word,
    Number,
    Text,
    Punct,
}

/// A token with its 1-based line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    pub(crate) line: u32,
    /// Byte offset in the source.
    pub(crate) start: usize,
}

struct Lexer<'a> {
    source: &'a str,
    bytes: &'a [u8],
    /// Byte offset of the next character.
    at: usize,
    /// 1-based line of the next character.
    line: u32,
    tokens: Vec<Token<'a>>,
}

/// Splits `source` into tokens; comments and white space are dropped.
pub(crate) fn lex(source: &str) -> Result<Vec<Token<'_>>, PtxError> {
    let mut lexer = Lexer { source, bytes: source.as_bytes(), at: 0, line: 1, tokens: Vec::new() };
    while lexer.at < lexer.bytes.len() {
        lexer.next_token()?;
    }
    Ok(lexer.tokens)
}

fn starts_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}

fn continues_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'%')
}

impl<'a> Lexer<'a> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn next_token(&mut self) -> Result<(), PtxError> {
        let byte = self.peek(0);
        match byte {
            b'\n' => {
                self.line += 1;
                self.at += 1;
            }
            b' ' | b'\t' | b'\r' | 0 => self.at += 1,
            b'/' if self.peek(1) == b'/' => self.skip_line(),
            b'/' if self.peek(1) == b'*' => self.skip_comment()?,
            // `@@DWARF` lines of old compilers contain debug data.
            b'@' if self.peek(1) == b'@' => self.skip_line(),
            b'"' => self.text()?,
            _ if byte.is_ascii_digit() => self.number(),
            _ if starts_word(byte) => self.word(),
            _ if byte.is_ascii_punctuation() => {
                let start = self.at;
                self.at += 1;
                self.push(TokenKind::Punct, start);
            }
            _ => return Err(self.error("invalid character")),
        }
        Ok(())
    }

    fn error(&self, message: &str) -> PtxError {
        PtxError::syntax(self.source, self.at, message)
    }

    fn push(&mut self, kind: TokenKind, start: usize) {
        let text: &'a str = self.source.get(start..self.at).unwrap_or("");
        self.tokens.push(Token { kind, text, line: self.line, start });
    }

    fn skip_line(&mut self) {
        while self.at < self.bytes.len() && self.peek(0) != b'\n' {
            self.at += 1;
        }
    }

    fn skip_comment(&mut self) -> Result<(), PtxError> {
        if !self.source[self.at + 2..].contains("*/") {
            return Err(self.error("the end of a comment is missing"));
        }
        self.at += 2;
        while self.at < self.bytes.len() && !(self.peek(0) == b'*' && self.peek(1) == b'/') {
            if self.peek(0) == b'\n' {
                self.line += 1;
            }
            self.at += 1;
        }
        self.at += 2;
        Ok(())
    }

    fn text(&mut self) -> Result<(), PtxError> {
        self.at += 1;
        let start = self.at;
        while self.at < self.bytes.len() && self.peek(0) != b'"' && self.peek(0) != b'\n' {
            self.at += if self.peek(0) == b'\\' { 2 } else { 1 };
        }
        if self.peek(0) != b'"' {
            return Err(self.error("the closing quote of a string is missing"));
        }
        self.push(TokenKind::Text, start);
        self.at += 1;
        Ok(())
    }

    fn number(&mut self) {
        let start = self.at;
        let hex = self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X' | b'f' | b'F' | b'd' | b'D');
        while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == b'.' {
            let exponent = !hex && matches!(self.peek(0), b'e' | b'E');
            self.at += 1;
            if exponent && matches!(self.peek(0), b'+' | b'-') {
                self.at += 1;
            }
        }
        self.push(TokenKind::Number, start);
    }

    fn word(&mut self) {
        let start = self.at;
        self.at += 1;
        loop {
            if continues_word(self.peek(0)) {
                self.at += 1;
            } else if self.peek(0) == b':' && self.peek(1) == b':' && self.peek(2).is_ascii_alphanumeric() {
                self.at += 2;
            } else {
                break;
            }
        }
        self.push(TokenKind::Word, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        lex(source).map(|tokens| tokens.iter().map(|token| token.text).collect()).unwrap_or_default()
    }

    #[test]
    fn words_keep_their_dots_and_double_colons() {
        assert_eq!(
            texts("st.shared::cta.b32 [%r1+-4], 0f3F800000;"),
            ["st.shared::cta.b32", "[", "%r1", "+", "-", "4", "]", ",", "0f3F800000", ";"]
        );
    }

    #[test]
    fn a_label_is_a_word_and_a_colon() {
        assert_eq!(texts("$L__BB0_1:\n ret;"), ["$L__BB0_1", ":", "ret", ";"]);
    }

    #[test]
    fn lines_count_through_comments() {
        let tokens = lex("/* a\n b */ // c\n ret;").unwrap_or_default();
        assert_eq!(tokens.first().map(|token| token.line), Some(3));
    }

    #[test]
    fn an_open_string_is_an_error() {
        assert!(lex(".pragma \"nounroll\n").is_err());
    }
}
