//! Directives that generate no code: source locations, and the attributes of a function.

use crate::fault::PtxError;
use crate::ptx::ast::{Function, Loc};
use crate::ptx::lexer::{Token, TokenKind};
use crate::ptx::parser::Parser;

/// Directives of a function that do not change what it computes: they guide the register allocation and the schedule.
const HARMLESS_DIRECTIVES: [&str; 7] = [
    ".minnctapersm",
    ".maxnctapersm",
    ".explicitcluster",
    ".maxclusterrank",
    ".noreturn",
    ".abi_preserve",
    ".abi_preserve_control",
];

impl<'a> Parser<'a> {
    pub(super) fn small_number(&mut self) -> Result<u32, PtxError> {
        match self.integer()? {
            value if value <= u64::from(u32::MAX) => Ok(value as u32),
            _ => self.fail("the number does not fit in 32 bits"),
        }
    }

    /// Takes the remaining tokens of the current line.
    pub(super) fn rest_of_line(&mut self, line: u32) -> Vec<Token<'a>> {
        let mut found = Vec::new();
        while let Some(token) = self.peek() {
            if token.line != line {
                break;
            }
            found.push(token);
            self.at += 1;
        }
        found
    }

    fn skip_to_semicolon(&mut self) {
        while self.at < self.tokens.len() && !self.take(";") {
            self.at += 1;
        }
    }

    fn skip_braces(&mut self) {
        let mut depth = 0u32;
        while self.at < self.tokens.len() {
            if self.is_punct("{") {
                depth += 1;
            } else if self.is_punct("}") {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    self.at += 1;
                    return;
                }
            }
            self.at += 1;
        }
    }

    /// Directives that are allowed in a module and in a body, and that generate no code.
    pub(super) fn common_directive(&mut self, word: &str, line: u32) -> Result<(), PtxError> {
        match word {
            ".loc" => self.location(line)?,
            ".file" => self.file_name(line)?,
            ".section" => {
                while self.at < self.tokens.len() && !self.is_punct("{") {
                    self.at += 1;
                }
                self.skip_braces();
            }
            ".pragma" | ".alias" | ".callprototype" | ".calltargets" => self.skip_to_semicolon(),
            _ => {
                self.at = self.at.saturating_sub(1);
                return self.fail(format!("unknown directive `{word}`"));
            }
        }
        Ok(())
    }

    /// `.loc file line column {, function_name name, inlined_at file line column}`
    fn location(&mut self, line: u32) -> Result<(), PtxError> {
        let directive = self.at - 1;
        let rest = self.rest_of_line(line);
        let number = |at: usize| rest.get(at).and_then(|token| token.text.parse::<u32>().ok());
        let file_and_line = |at: usize| number(at).zip(number(at + 1));
        let inlined_at = match rest.iter().position(|token| token.text == "inlined_at") {
            Some(at) => file_and_line(at + 1).map(Some),
            None => Some(None),
        };
        let Some(((file, source_line), inlined_at)) = file_and_line(0).zip(inlined_at) else {
            return Err(self.error_at(directive, "`.loc` must name a file and a line, and so must its `inlined_at`"));
        };
        // Line 0 means that the code has no source line.
        self.loc = (source_line > 0).then_some(Loc { file, line: source_line, inlined_at });
        if let Some(loc) = self.loc {
            let caller = loc.inlined_at.map(|(file, _)| file);
            for file in [loc.file].into_iter().chain(caller) {
                self.located.entry(file).or_insert(directive);
            }
        }
        Ok(())
    }

    /// `.file number "name"`, and a time and a size, which are not needed.
    fn file_name(&mut self, line: u32) -> Result<(), PtxError> {
        let directive = self.at - 1;
        let rest = self.rest_of_line(line);
        let number = rest.first().and_then(|token| token.text.parse::<u32>().ok());
        let name = rest.get(1).filter(|token| token.kind == TokenKind::Text);
        let Some((number, name)) = number.zip(name) else {
            return Err(self.error_at(directive, "`.file` must have a number and a name"));
        };
        self.file.files.insert(number, name.text.to_string());
        Ok(())
    }

    pub(super) fn function_directives(&mut self, function: &mut Function) -> Result<(), PtxError> {
        while !self.is_punct("{") && !self.is_punct(";") {
            let line = self.line();
            let word = self.word()?;
            match word {
                ".pragma" => self.skip_to_semicolon(),
                ".reqnctapercluster" => function.required_cluster = Some(self.extent()?),
                ".maxntid" => function.max_threads = Some(self.extent()?),
                ".maxnreg" => function.max_registers = Some(self.small_number()?),
                ".reqntid" => function.required_threads = Some(self.extent()?),
                _ if HARMLESS_DIRECTIVES.contains(&word) => self.directive_arguments(),
                _ => {
                    function.unsupported_directives.push((line, word.to_string()));
                    self.directive_arguments();
                }
            }
        }
        Ok(())
    }

    /// One to three numbers; the missing ones are 1.
    fn extent(&mut self) -> Result<[u32; 3], PtxError> {
        let mut extent = [1u32; 3];
        for (index, slot) in extent.iter_mut().enumerate() {
            if index > 0 && !self.take(",") {
                break;
            }
            *slot = self.small_number()?;
        }
        Ok(extent)
    }

    /// Skips the arguments of a directive, such as `.minnctapersm 2`.
    fn directive_arguments(&mut self) {
        while let Some(token) = self.peek() {
            let stop = token.kind == TokenKind::Word || self.is_punct("{") || self.is_punct(";");
            if stop {
                return;
            }
            let open = self.take("(");
            if open {
                while self.at < self.tokens.len() && !self.take(")") {
                    self.at += 1;
                }
            } else {
                self.at += 1;
            }
        }
    }
}
