//! Parses PTX text into a syntax tree: tokens, statements, operands. Names are not resolved here.

pub(crate) mod ast;
mod directive;
mod lexer;
mod operand;
mod parser;
pub(crate) mod variable;

pub(crate) use parser::parse;
