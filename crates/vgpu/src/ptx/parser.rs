//! Statements: module directives, functions, scopes, instructions.

use std::collections::{BTreeMap, BTreeSet};

use crate::fault::PtxError;
use crate::isa::DType;
use crate::ptx::ast::{File, Function, Instruction, Loc, Statement};
use crate::ptx::lexer::{Token, TokenKind, lex};

/// Maximum nesting depth of scopes and operands.
pub(crate) const MAX_NESTING: u32 = 64;

/// Parses a whole file.
pub(crate) fn parse(source: &str) -> Result<File, PtxError> {
    let (tokens, file, located) = (lex(source)?, File::default(), BTreeMap::new());
    let mut parser = Parser { source, tokens, at: 0, loc: None, file, located, declared: Vec::new() };
    while parser.at < parser.tokens.len() {
        parser.module_item()?;
    }
    // `.file` may follow the `.loc` that refers to it.
    let undeclared = parser.located.iter().find(|(number, _)| !parser.file.files.contains_key(number));
    match undeclared {
        Some((number, at)) => Err(parser.error_at(*at, format!("no `.file` declares the file {number}"))),
        None => Ok(parser.file),
    }
}

pub(crate) struct Parser<'a> {
    pub(super) source: &'a str,
    pub(super) tokens: Vec<Token<'a>>,
    /// Index of the next token.
    pub(super) at: usize,
    /// The `.loc` in effect, if there is one.
    pub(super) loc: Option<Loc>,
    pub(super) file: File,
    /// The files that `.loc` refers to, each with the token of its first `.loc`.
    pub(super) located: BTreeMap<u32, usize>,
    /// The names that are declared in each open block so far.
    declared: Vec<BTreeSet<String>>,
}

impl<'a> Parser<'a> {
    pub(crate) fn line(&self) -> u32 {
        let last = self.tokens.last().map_or(1, |token| token.line);
        self.tokens.get(self.at).map_or(last, |token| token.line)
    }

    pub(crate) fn fail<T>(&self, message: impl Into<String>) -> Result<T, PtxError> {
        Err(self.error_at(self.at, message))
    }

    /// What is wrong at the token `at`, or at the end of the text.
    pub(super) fn error_at(&self, at: usize, message: impl Into<String>) -> PtxError {
        let end = self.tokens.last().map_or(0, |token| token.start + token.text.len());
        PtxError::syntax(self.source, self.tokens.get(at).map_or(end, |token| token.start), message)
    }

    pub(crate) fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    pub(crate) fn peek_text(&self) -> &'a str {
        self.peek().map_or("", |token| token.text)
    }

    pub(crate) fn advance(&mut self) {
        self.at += 1;
    }

    pub(crate) fn is_punct(&self, mark: &str) -> bool {
        self.peek().is_some_and(|token| token.kind == TokenKind::Punct && token.text == mark)
    }

    /// Takes `mark` if it comes next.
    pub(crate) fn take(&mut self, mark: &str) -> bool {
        let found = self.is_punct(mark);
        if found {
            self.at += 1;
        }
        found
    }

    pub(crate) fn expect(&mut self, mark: &str) -> Result<(), PtxError> {
        if self.take(mark) {
            return Ok(());
        }
        self.fail(format!("expected `{mark}`, found `{}`", self.peek_text()))
    }

    pub(crate) fn word(&mut self) -> Result<&'a str, PtxError> {
        match self.peek() {
            Some(token) if token.kind == TokenKind::Word => {
                self.at += 1;
                Ok(token.text)
            }
            Some(token) => self.fail(format!("expected a name, found `{}`", token.text)),
            None => self.fail("the file ends inside a declaration"),
        }
    }

    fn module_item(&mut self) -> Result<(), PtxError> {
        let mut is_extern = false;
        loop {
            let line = self.line();
            if self.take(";") {
                return Ok(());
            }
            let word = self.word()?;
            match word {
                ".visible" | ".weak" | ".common" => continue,
                ".extern" => is_extern = true,
                ".entry" => return self.function(true),
                ".func" => return self.function(false),
                ".global" | ".const" | ".shared" | ".local" | ".param" => {
                    let found = self.variables(word, is_extern)?;
                    self.file.variables.extend(found);
                    return Ok(());
                }
                ".target" => {
                    self.file.target = self.word()?.to_string();
                    while self.take(",") {
                        self.word()?;
                    }
                    return Ok(());
                }
                ".version" => {
                    self.advance();
                    return Ok(());
                }
                ".address_size" => {
                    return match self.small_number()? {
                        64 => Ok(()),
                        _ => {
                            Err(self.error_at(self.at - 1, "addresses have 64 bits on all targets of this virtual GPU"))
                        }
                    };
                }
                ".reg" => return self.fail("a register is declared outside a function"),
                _ => return self.common_directive(word, line),
            }
        }
    }

    fn function(&mut self, is_kernel: bool) -> Result<(), PtxError> {
        let returns = if self.is_punct("(") { self.parameters()? } else { Vec::new() };
        let name = self.word()?.to_string();
        let params = if self.is_punct("(") { self.parameters()? } else { Vec::new() };
        let mut names = BTreeSet::new();
        if let Some(twice) = params.iter().find(|param| !names.insert(param.name.as_str())) {
            return Err(self.error_at(self.at - 1, format!("two parameters have the name `{}`", twice.name)));
        }
        let mut function = Function {
            name,
            is_kernel,
            params,
            returns,
            body: None,
            max_threads: None,
            required_threads: None,
            max_registers: None,
            required_cluster: None,
            unsupported_directives: Vec::new(),
        };
        self.function_directives(&mut function)?;
        self.loc = None;
        if !self.take(";") {
            self.expect("{")?;
            function.body = Some(self.block(0)?);
            let is_other = |other: &Function| other.name == function.name && other.body.is_some();
            if self.file.functions.iter().any(is_other) {
                return Err(self.error_at(self.at - 1, format!("`{}` is defined twice", function.name)));
            }
        }
        self.file.functions.push(function);
        Ok(())
    }

    /// The statements up to the closing brace, which is taken.
    fn block(&mut self, depth: u32) -> Result<Vec<Statement>, PtxError> {
        if depth > MAX_NESTING {
            return self.fail("scopes nest too deeply");
        }
        let mut statements = Vec::new();
        self.declared.push(BTreeSet::new());
        while !self.take("}") {
            if self.at >= self.tokens.len() {
                return self.fail("the closing brace of a scope is missing");
            }
            self.statement(depth, &mut statements)?;
        }
        self.declared.pop();
        Ok(statements)
    }

    /// Declares a name, which the token `at` has, in the innermost block.
    fn declare(&mut self, name: String, at: usize) -> Result<(), PtxError> {
        match self.declared.last_mut().is_none_or(|names| names.insert(name.clone())) {
            true => Ok(()),
            false => Err(self.error_at(at, format!("`{name}` is declared twice in this block"))),
        }
    }

    fn statement(&mut self, depth: u32, out: &mut Vec<Statement>) -> Result<(), PtxError> {
        if self.take(";") {
            return Ok(());
        }
        if self.take("{") {
            let inner = self.block(depth + 1)?;
            out.push(Statement::Block(inner));
            return Ok(());
        }
        let line = self.line();
        let text = self.peek_text();
        if text.starts_with('.') {
            self.advance();
            return self.body_directive(text, line, out);
        }
        let next = self.tokens.get(self.at + 1);
        let labelled = next.is_some_and(|token| token.kind == TokenKind::Punct && token.text == ":");
        if labelled {
            return self.label(out);
        }
        let instruction = self.instruction()?;
        out.push(Statement::Instruction(Box::new(instruction)));
        Ok(())
    }

    fn body_directive(&mut self, word: &str, line: u32, out: &mut Vec<Statement>) -> Result<(), PtxError> {
        match word {
            ".reg" => out.push(self.registers()?),
            ".local" | ".shared" | ".param" | ".global" | ".const" => {
                let at = self.at;
                let found = self.variables(word, false)?;
                for variable in &found {
                    self.declare(variable.name.clone(), at)?;
                }
                out.extend(found.into_iter().map(Statement::Variable));
            }
            _ => self.common_directive(word, line)?,
        }
        Ok(())
    }

    fn label(&mut self, out: &mut Vec<Statement>) -> Result<(), PtxError> {
        let label = self.word()?.to_string();
        self.declare(label.clone(), self.at - 1)?;
        self.expect(":")?;
        if self.peek_text() != ".branchtargets" {
            out.push(Statement::Label(label));
            return Ok(());
        }
        self.advance();
        let mut targets = Vec::new();
        loop {
            targets.push(self.word()?.to_string());
            if !self.take(",") {
                break;
            }
        }
        self.expect(";")?;
        out.push(Statement::Targets { label, targets });
        Ok(())
    }

    /// `.reg .b32 %r<42>, %x;` after `.reg`.
    fn registers(&mut self) -> Result<Statement, PtxError> {
        let word = self.word()?;
        let Some(dtype) = DType::parse(word.trim_start_matches('.')) else {
            return self.fail(format!("unknown register type `{word}`"));
        };
        let mut names = Vec::new();
        loop {
            let name = self.word()?;
            let (at, first) = (self.at - 1, names.len());
            if self.take("<") {
                let count = self.small_number()?;
                self.expect(">")?;
                if count > 1 << 20 {
                    return self.fail("too many registers in one declaration");
                }
                names.extend((0..count).map(|index| format!("{name}{index}")));
            } else {
                names.push(name.to_string());
            }
            for name in &names[first..] {
                self.declare(name.clone(), at)?;
            }
            if !self.take(",") {
                break;
            }
        }
        self.expect(";")?;
        Ok(Statement::Registers { dtype, names })
    }

    fn instruction(&mut self) -> Result<Instruction, PtxError> {
        let start = self.peek().map_or(0, |token| token.start);
        let line = self.line();
        let mut guard = None;
        if self.take("@") {
            let negate = self.take("!");
            guard = Some((self.word()?.to_string(), negate));
        }
        let opcode = self.word()?.to_string();
        let mut operands = Vec::new();
        while !self.is_punct(";") {
            operands.push(self.operand(0)?);
            if !self.take(",") {
                break;
            }
        }
        let end = self.peek().map_or(self.source.len(), |token| token.start);
        self.expect(";")?;
        let text = self.source.get(start..end).unwrap_or("");
        let text = text.split_whitespace().collect::<Vec<&str>>().join(" ");
        Ok(Instruction { line, loc: self.loc, guard, opcode, operands, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::ast::Operand;

    fn kernel(body: &str) -> Vec<Statement> {
        let source = format!(".version 8.0\n.file 1 \"k.cu\"\n.entry k()\n{{\n{body}\n}}\n");
        let mut file = parse(&source).unwrap_or_default();
        file.functions.pop().and_then(|function| function.body).unwrap_or_default()
    }

    #[test]
    fn parameters_and_sizes_are_read() {
        let source = ".target sm_100a, debug\n.visible .entry k(.param .u64 .ptr .align 1 a, .param .align 8 .b8 s[12])\n\
                      .maxntid 128\n.minnctapersm 2\n{ ret; }";
        let file = parse(source).unwrap_or_default();
        assert_eq!(file.target, "sm_100a");
        let function = &file.functions[0];
        let sizes: Vec<u32> = function.params.iter().map(|param| param.bytes).collect();
        assert_eq!(sizes, [8, 12]);
        assert_eq!(function.max_threads, Some([128, 1, 1]));
    }

    #[test]
    fn directives_of_a_kernel_are_read() {
        let source = ".entry k()\n.pragma \"nounroll\";\n.explicitcluster\n.reqnctapercluster 2, 1\n.reqntid 32\n\
                      { ret; }";
        let file = parse(source).unwrap_or_default();
        let function = &file.functions[0];
        assert_eq!(function.required_cluster, Some([2, 1, 1]));
        assert_eq!(function.required_threads, Some([32, 1, 1]));
        assert_eq!(function.body.as_ref().map(Vec::len), Some(1));
    }

    #[test]
    fn locations_reach_instructions() {
        let body = kernel(".loc 1 7 3, function_name $L__info, inlined_at 1 9 2\n@!%p bra.uni $L1;\n$L1:\nret;");
        let Some(Statement::Instruction(first)) = body.first() else { panic!("an instruction comes first") };
        assert_eq!(first.loc, Some(Loc { file: 1, line: 7, inlined_at: Some((1, 9)) }));
        assert_eq!(first.guard, Some(("%p".to_string(), true)));
        assert_eq!(first.line, 6);
    }

    #[test]
    fn addresses_take_negative_offsets() {
        let body = kernel("ld.global.b32 %r1, [ %rd1+-16 ];");
        let Some(Statement::Instruction(first)) = body.first() else { panic!("an instruction comes first") };
        let Operand::Address { base, offset, .. } = &first.operands[1] else { panic!("an address") };
        assert_eq!((base.as_deref(), *offset), (Some("%rd1"), -16));
    }

    #[test]
    fn a_syntax_error_shows_its_place() {
        let error = parse(".target sm_90\n.entry k()\n{\n\tadd.s32 %r1 %r2;\n}").err();
        let shown = error.map(|error| error.to_string());
        assert_eq!(
            shown.as_deref(),
            Some("PTX line 4, column 14: expected `;`, found `%r2`\n   add.s32 %r1 %r2;\n               ^")
        );
    }

    #[test]
    fn a_missing_end_is_shown_at_the_end() {
        let error = parse(".target sm_90\n.entry k()\n{\n  ret;\n").err();
        assert_eq!(
            error.map(|error| error.to_string()).as_deref(),
            Some("PTX line 4, column 7: the closing brace of a scope is missing\n    ret;\n        ^")
        );
    }

    #[test]
    fn names_are_declared_once_in_a_block() {
        let said = |body: &str| {
            let text = format!(".entry k() {{\n{body}\nret;\n}}\n");
            parse(&text).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(said("L:\nL:"), "PTX line 3, column 1: `L` is declared twice in this block\n  L:\n  ^");
        assert!(said(".reg .f32 %f<5>;\n.reg .f32 %f<6>;").contains("`%f0` is declared twice"));
        assert!(said(".reg .pred %p<4>;\n.reg .pred %p1;").contains("`%p1` is declared twice"));
        assert!(said(".shared .b32 s;\n.shared .b32 s;").contains("`s` is declared twice"));
        // A block has names of its own.
        assert_eq!(said(".reg .b32 %r<5>, %r;\nL:\n{ .reg .b32 %r<5>;\nL: }"), "");
        let twice = parse(".entry k() { ret; }\n.entry k() { ret; }\n").err().map(|error| error.to_string());
        assert!(twice.unwrap_or_default().contains("`k` is defined twice"));
        assert!(parse(".func f();\n.func f() { ret; }\n").is_ok());
    }

    #[test]
    fn a_long_line_is_not_shown() {
        let text = format!(".target sm_90\n{} é", "x".repeat(200));
        let Some(PtxError::Syntax { column, text, .. }) = parse(&text).err() else { panic!("a syntax error") };
        assert_eq!((column, text), (202, None));
    }
}
