//! PTX text to a tree: tokens, statements, operands. Nothing is resolved here.

pub(crate) mod ast;
mod lexer;
mod operand;
mod parser;
pub(crate) mod variable;

pub(crate) use parser::parse;
