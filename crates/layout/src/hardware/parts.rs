//! Reads the parts of a layout's name, which are separated by colons.

use std::str::Split;

use super::choice::{Choice, choose, names};
use super::refused;
use crate::error::LayoutError;

const NAME: &str = "named layout";
const SIZES: &str = "up to 8 sizes of 1 or more, as in 128x64";

/// Maximum number of dimensions of a named shape.
const MAX_RANK: usize = 8;

/// A name, and the parts of it that are still to be read.
pub(super) struct NameParser<'a> {
    /// The whole name, for errors.
    text: &'a str,
    /// The parts that are still to be read.
    rest: Split<'a, char>,
}

impl<'a> NameParser<'a> {
    /// All parts of `text`.
    pub(super) fn new(text: &'a str) -> NameParser<'a> {
        NameParser { text, rest: text.split(':') }
    }

    /// The next part; the error says what is missing.
    fn part(&mut self, what: &str, legal: impl FnOnce() -> String) -> Result<&'a str, LayoutError> {
        self.rest
            .next()
            .ok_or_else(|| refused(NAME, format!("`{}` ends where the {what} is expected", self.text), legal()))
    }

    /// The next part as a choice by name.
    pub(super) fn choice<T: Choice>(&mut self) -> Result<T, LayoutError> {
        choose(self.part(T::WHAT, names::<T>)?)
    }

    /// Like [`NameParser::choice`], if there is another part.
    pub(super) fn optional<T: Choice>(&mut self) -> Result<Option<T>, LayoutError> {
        self.rest.next().map(choose).transpose()
    }

    /// The next part as a number.
    pub(super) fn number(&mut self, what: &str) -> Result<i64, LayoutError> {
        let part = self.part(what, || "a number".to_string())?;
        number(part, what)
    }

    /// Like [`NameParser::number`], if there is another part.
    pub(super) fn optional_number(&mut self, what: &str) -> Result<Option<i64>, LayoutError> {
        self.rest.next().map(|part| number(part, what)).transpose()
    }

    /// The next part as sizes joined by `x`.
    pub(super) fn sizes(&mut self) -> Result<Vec<i64>, LayoutError> {
        let part = self.part("shape", || SIZES.to_string())?;
        let rank = part.split('x').count();
        if rank > MAX_RANK {
            return Err(refused(NAME, format!("a shape of {rank} dimensions"), SIZES));
        }
        let size = |text: &str| integer(text).filter(|size| *size >= 1);
        let sizes: Option<Vec<i64>> = part.split('x').map(size).collect();
        sizes.ok_or_else(|| refused(NAME, format!("the shape `{part}`"), SIZES))
    }

    /// The next part as rows and columns.
    pub(super) fn rows_and_columns(&mut self) -> Result<(i64, i64), LayoutError> {
        let sizes = self.sizes()?;
        let &[rows, cols] = &sizes[..] else {
            let problem = format!("a shape of rank {} in `{}`", sizes.len(), self.text);
            return Err(refused(NAME, problem, "rows and columns, as in 128x64"));
        };
        Ok((rows, cols))
    }

    /// The next part as `m64n<N>k<K>`.
    pub(super) fn wgmma_shape(&mut self) -> Result<(i64, i64), LayoutError> {
        let legal = "m64n<N>k<K>, as in m64n128k16";
        let part = self.part("wgmma shape", || legal.to_string())?;
        let sizes = part.strip_prefix("m64n").and_then(|rest| rest.split_once('k'));
        let read = sizes.and_then(|(n, k)| Some((integer(n)?, integer(k)?)));
        read.ok_or_else(|| refused(NAME, format!("the wgmma shape `{part}`"), legal))
    }

    /// The next part as a number of matrices: `x1`, `x2` or `x4`.
    pub(super) fn count(&mut self) -> Result<i64, LayoutError> {
        let legal = "x1, x2 or x4, preceded by the shape if it is not m8n8";
        let part = self.part("number of matrices", || legal.to_string())?;
        let count = part.strip_prefix('x').and_then(integer);
        count.ok_or_else(|| refused(NAME, format!("the number of matrices `{part}`"), legal))
    }

    /// True if there is another part and it is `flag`; an error if it is something else.
    pub(super) fn flag(&mut self, flag: &str) -> Result<bool, LayoutError> {
        match self.rest.next() {
            None => Ok(false),
            Some(part) if part == flag => Ok(true),
            Some(part) => Err(refused(NAME, format!("`{part}` at the end of `{}`", self.text), flag)),
        }
    }

    /// Checks that no part is left.
    pub(super) fn end(mut self) -> Result<(), LayoutError> {
        match self.rest.next() {
            None => Ok(()),
            Some(part) => Err(refused(NAME, format!("`{part}` at the end of `{}`", self.text), "nothing more")),
        }
    }

    /// True if the next part is the name of a choice; it is not consumed.
    pub(super) fn next_is<T: Choice>(&self) -> bool {
        self.rest.clone().next().is_some_and(|part| T::all().iter().any(|choice| choice.text() == part))
    }
}

fn number(part: &str, what: &str) -> Result<i64, LayoutError> {
    integer(part).ok_or_else(|| refused(NAME, format!("the {what} `{part}`"), "a number"))
}

/// A number, written without a leading `+`.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}
