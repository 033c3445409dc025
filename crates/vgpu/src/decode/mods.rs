//! The modifiers of an opcode. Each must be taken while the instruction is decoded: a modifier that is left over makes
//! the form unsupported.

use crate::isa::{DType, Round};

/// `add.rn.ftz.f32` as `add` and its modifiers.
pub(crate) struct Mods<'a> {
    /// The name of the instruction in the table.
    base: &'static str,
    /// The modifiers that are not taken yet, without dots.
    parts: Vec<&'a str>,
}

impl<'a> Mods<'a> {
    /// The modifiers in `text`, which begins with a dot if it is not empty.
    pub(crate) fn new(base: &'static str, text: &'a str) -> Mods<'a> {
        Mods { base, parts: text.split('.').skip(1).collect() }
    }

    pub(crate) fn base(&self) -> &'static str {
        self.base
    }

    /// Takes `word` if it is present.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        match self.parts.iter().position(|part| *part == word) {
            Some(at) => {
                self.parts.remove(at);
                true
            }
            None => false,
        }
    }

    /// Takes the first modifier that `read` accepts.
    pub(crate) fn find<T>(&mut self, read: impl Fn(&'a str) -> Option<T>) -> Option<T> {
        for (at, part) in self.parts.iter().enumerate() {
            if let Some(value) = read(part) {
                self.parts.remove(at);
                return Some(value);
            }
        }
        None
    }

    /// Takes every modifier that `accept` accepts.
    pub(crate) fn drop_all(&mut self, accept: impl Fn(&str) -> bool) {
        self.parts.retain(|part| !accept(part));
    }

    /// Takes the first data type.
    pub(crate) fn dtype(&mut self) -> Result<DType, String> {
        self.find(DType::parse).ok_or_else(|| "the data type is missing".to_string())
    }

    /// Takes the rounding mode of arithmetic; to nearest even if there is none.
    pub(crate) fn round(&mut self) -> Round {
        self.find(|part| Round::parse(part).filter(|round| *round != Round::Away)).unwrap_or(Round::Nearest)
    }

    /// Fails unless every modifier was taken.
    pub(crate) fn finish(&self) -> Result<(), String> {
        match self.parts.first() {
            None => Ok(()),
            Some(part) => Err(format!("the modifier `.{part}` is not supported here")),
        }
    }
}
