//! Parses the notation: `S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)] + R[2:4@warpid] + 5@warpid`,
//! optionally preceded by `swizzle(M=3,B=3,S=3) o`.

use std::ops::Range;
use std::str::FromStr;

use tilewright_diag::nearest;

use crate::axis::{Axis, AxisKind, HARDWARE, M};
use crate::error::LayoutError;
use crate::fix;
use crate::iter::Iter;
use crate::layout::Layout;
use crate::print;
use crate::swizzle::{ComposeLayout, SwizzleLayout};
use crate::tile::TileLayout;

const EXAMPLE: &str = "S[(8,4):(4@laneid,1@laneid)] + R[2:4@warpid] + 5@warpid";
const SWIZZLE_EXAMPLE: &str = "swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]";

impl FromStr for TileLayout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<TileLayout, LayoutError> {
        match text.parse::<Layout>()? {
            Layout::Tile(tile) => Ok(tile),
            Layout::Compose(_) | Layout::Table(_) => {
                let plain = text.split_once(" o ").map_or("", |(_, tile)| tile).to_string();
                let problem = "a plain layout is needed here, without a swizzle";
                Err(fix::with_fix(Parser::new(text).problem_fixed(0..text.len(), problem, plain), read))
            }
        }
    }
}

/// Errors say where the text is wrong, and suggest the nearest valid layout if there is an obvious one.
impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Layout, LayoutError> {
        read(text).map_err(|error| fix::with_fix(error, read))
    }
}

fn read(text: &str) -> Result<Layout, LayoutError> {
    let mut parser = Parser::new(text);
    let swizzle = if parser.word_ahead("swizzle") { Some(parser.swizzle()?) } else { None };
    let tile = parser.sum()?;
    let Some(swizzle) = swizzle else { return Ok(Layout::Tile(tile)) };
    if let Some(axis) = tile.axes().into_iter().find(|axis| *axis != M) {
        let problem = format!("a swizzle acts on linear memory `m`, not on `{axis}`");
        let fixed = text.replace(&format!("@{axis}"), "@m");
        return Err(parser.problem_fixed(fix::axis(text, axis.name()), problem, fixed));
    }
    let least = tile.least_on(&M);
    ComposeLayout::new(swizzle, tile).map(Layout::Compose).map_err(|error| {
        parser.problem_fixed(0..text.len(), error.to_string(), format!("{text} + {}", least.saturating_neg()))
    })
}

impl Layout {
    /// Reads a layout in which every axis is a hardware axis or one of `own`: a misspelt `lanid` is an error that
    /// suggests the nearest name, whereas [`str::parse`] takes it for a user-defined axis.
    pub fn parse_with_axes(text: &str, own: &[Axis]) -> Result<Layout, LayoutError> {
        let layout: Layout = text.parse()?;
        for axis in layout.axes() {
            if axis.kind() == AxisKind::Free && !own.contains(&axis) {
                return Err(unknown_axis(text, &axis, own));
            }
        }
        Ok(layout)
    }
}

/// The error for an unknown axis, with its range in the text and the nearest known name.
fn unknown_axis(text: &str, axis: &Axis, own: &[Axis]) -> LayoutError {
    let known = HARDWARE.iter().chain(own).map(Axis::name);
    let parser = Parser::new(text);
    let (range, problem) = (fix::axis(text, axis.name()), format!("there is no axis `{axis}`"));
    match nearest(axis.name(), known) {
        Some(name) => {
            let fixed = format!("{}{name}{}", &text[..range.start], &text[range.end..]);
            fix::with_fix(parser.problem_fixed(range, format!("{problem}; did you mean `{name}`?"), fixed), read)
        }
        None => parser.problem(range, problem),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// The byte offset of the next character.
    at: usize,
}

/// The parts of a sum seen so far.
#[derive(Default)]
struct Terms {
    shard: Option<BracketIters>,
    replica: Option<BracketIters>,
    offset: Vec<(Axis, i64)>,
}

/// The iters of a bracket, and its range in the text.
struct BracketIters {
    iters: Vec<Iter>,
    range: Range<usize>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        Parser { text, at: 0 }
    }

    fn problem(&self, range: Range<usize>, problem: impl Into<String>) -> LayoutError {
        let legal = if self.text.trim_start().starts_with("swizzle") { SWIZZLE_EXAMPLE } else { EXAMPLE };
        LayoutError::Notation { text: self.text.to_string(), range, problem: problem.into(), legal, fix: None }
    }

    /// A problem whose fix is the text that was probably meant.
    fn problem_fixed(&self, range: Range<usize>, problem: impl Into<String>, meant: String) -> LayoutError {
        match self.problem(range, problem) {
            LayoutError::Notation { text, range, problem, legal, .. } => {
                LayoutError::Notation { text, range, problem, legal, fix: Some(meant) }
            }
            other => other,
        }
    }

    /// The text with `range` replaced by `part`.
    fn with(&self, range: Range<usize>, part: &str) -> String {
        format!("{}{part}{}", &self.text[..range.start], &self.text[range.end..])
    }

    /// A problem at the next character.
    fn problem_here(&mut self, expected: &str) -> LayoutError {
        self.skip_space();
        match self.peek() {
            Some(c) => self.problem(self.at..self.at + c.len_utf8(), format!("expected {expected}, not `{c}`")),
            None => self.problem(self.text.len()..self.text.len(), format!("expected {expected}, but the text ends")),
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn next_is(&mut self, wanted: char) -> bool {
        self.skip_space();
        self.peek() == Some(wanted)
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.next_is(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), LayoutError> {
        if self.take(wanted) { Ok(()) } else { Err(self.problem_here(&format!("`{wanted}`"))) }
    }

    fn word_ahead(&mut self, word: &str) -> bool {
        self.skip_space();
        self.text[self.at..].starts_with(word)
    }

    /// `[-]digits`
    fn integer(&mut self) -> Result<i64, LayoutError> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let sign = usize::from(rest.starts_with('-'));
        let digits = rest[sign..].len() - rest[sign..].trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits == 0 {
            return Err(self.problem_here("a number"));
        }
        let range = self.at..self.at + sign + digits;
        let value = self.text[range.clone()].parse();
        self.at = range.end;
        value.map_err(|_| self.problem(range, "this number does not fit in 64 bits"))
    }

    /// An axis name.
    fn name(&mut self) -> Result<Axis, LayoutError> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let length = rest.len() - rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').len();
        if length == 0 || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.problem_here("the name of an axis, such as `laneid` or `m`"));
        }
        let name = &rest[..length];
        self.at += length;
        Ok(Axis::named(name))
    }

    /// `4@laneid`, `4` (on `m`) or `laneid` (stride 1).
    fn stride(&mut self) -> Result<(i64, Axis), LayoutError> {
        self.skip_space();
        if self.peek().is_some_and(|c| c.is_alphabetic() || c == '_') {
            return Ok((1, self.name()?));
        }
        let value = self.integer()?;
        let axis = if self.take('@') { self.name()? } else { M };
        Ok((value, axis))
    }

    /// `x`, `x, y` or `(x, y)`, possibly empty inside parentheses.
    fn list<T>(&mut self, item: fn(&mut Parser<'a>) -> Result<T, LayoutError>) -> Result<Vec<T>, LayoutError> {
        let parenthesised = self.take('(');
        let mut items = Vec::new();
        if parenthesised && self.take(')') {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.take(',') || (parenthesised && self.next_is(')')) {
                break;
            }
        }
        if parenthesised {
            self.expect(')')?;
        }
        Ok(items)
    }

    fn extent(&mut self) -> Result<i64, LayoutError> {
        self.skip_space();
        let start = self.at;
        let extent = self.integer()?;
        if extent < 1 {
            let range = start..self.at;
            return Err(self.problem_fixed(range.clone(), "an extent must be at least 1", self.with(range, "1")));
        }
        Ok(extent)
    }

    /// `[extents : strides]` after `S` or `R`; without strides, row-major on `m`.
    fn bracket(&mut self) -> Result<Vec<Iter>, LayoutError> {
        let start = self.at;
        self.expect('[')?;
        let extents = self.list(Parser::extent)?;
        if !self.take(':') {
            if !self.next_is(']') {
                return Err(self.problem_here("`:` and strides, or `]`"));
            }
            self.expect(']')?;
            let tile = TileLayout::row_major(&extents);
            return tile.map(|t| t.shard().to_vec()).map_err(|e| self.problem(start..self.at, e.to_string()));
        }
        self.skip_space();
        let start = self.at;
        let strides = self.list(Parser::stride)?;
        if strides.len() != extents.len() {
            let problem = format!("stride count {} differs from extent count {}", strides.len(), extents.len());
            let given = strides.iter().map(|(stride, axis)| format!("{stride}@{axis}"));
            let as_many: Vec<String> = given.chain(std::iter::repeat("1".to_string())).take(extents.len()).collect();
            let range = start..self.at;
            let fixed = self.with(range.clone(), &format!("({})", as_many.join(",")));
            return Err(self.problem_fixed(range, problem, fixed));
        }
        if !self.next_is(']') {
            return Err(self.problem_here("`]`"));
        }
        self.expect(']')?;
        Ok(extents.into_iter().zip(strides).map(|(extent, (stride, axis))| Iter { extent, stride, axis }).collect())
    }

    fn term(&mut self, parts: &mut Terms) -> Result<(), LayoutError> {
        self.skip_space();
        match self.peek() {
            Some(letter @ 'S') => self.iters(letter, "shard", &mut parts.shard),
            Some(letter @ 'R') => self.iters(letter, "replica", &mut parts.replica),
            Some(c) if c.is_ascii_digit() || c == '-' => {
                let (value, axis) = self.stride()?;
                parts.offset.push((axis, value));
                Ok(())
            }
            _ => Err(self.problem_here("S[...], R[...] or an offset such as 5@warpid")),
        }
    }

    /// `S[...]` or `R[...]`; there may be at most one of each.
    fn iters(&mut self, letter: char, what: &str, part: &mut Option<BracketIters>) -> Result<(), LayoutError> {
        let start = self.at;
        self.at += letter.len_utf8();
        let iters = self.bracket()?;
        let range = start..self.at;
        let Some(first) = part else {
            *part = Some(BracketIters { iters, range });
            return Ok(());
        };
        let problem = format!("a second {letter}[...]: all {what} iters belong in one");
        let merged = print::bracketed(letter, &[first.iters.as_slice(), &iters].concat());
        let between = self.text[first.range.end..start].trim_end().trim_end_matches('+').trim_end();
        let (before, after) = (&self.text[..first.range.start], &self.text[self.at..]);
        Err(self.problem_fixed(range, problem, format!("{before}{merged}{between}{after}")))
    }

    fn sum(&mut self) -> Result<TileLayout, LayoutError> {
        let mut parts = Terms::default();
        self.term(&mut parts)?;
        while self.take('+') {
            self.term(&mut parts)?;
        }
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.problem_here("`+` or the end"));
        }
        let iters = |part: Option<BracketIters>| part.map_or(Vec::new(), |part| part.iters);
        TileLayout::new(iters(parts.shard), iters(parts.replica), parts.offset)
            .map_err(|error| self.problem(0..self.text.len(), error.to_string()))
    }

    /// `swizzle(M=3,B=3,S=3[,inner=false]) o`
    fn swizzle(&mut self) -> Result<SwizzleLayout, LayoutError> {
        let start = self.at;
        self.at += "swizzle".len();
        self.expect('(')?;
        let mut values = [0i64; 3];
        for (position, (name, value)) in ['M', 'B', 'S'].into_iter().zip(&mut values).enumerate() {
            if position > 0 {
                self.expect(',')?;
            }
            self.expect(name)?;
            self.expect('=')?;
            *value = self.integer()?;
        }
        let mut inner = true;
        if self.take(',') {
            if !self.word_ahead("inner=false") {
                return Err(self.problem_here("`inner=false`"));
            }
            self.at += "inner=false".len();
            inner = false;
        }
        self.expect(')')?;
        let range = start..self.at;
        self.expect('o')?;
        let [m, b, s] = values;
        SwizzleLayout::new(m, b, s, inner).map_err(|error| {
            let direction = if inner { "" } else { ",inner=false" };
            let fixed =
                self.with(range.clone(), &format!("swizzle(M={},B={},S={}{direction})", m.max(0), b.max(0), s.max(b)));
            self.problem_fixed(range, error.to_string(), fixed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> String {
        text.parse::<Layout>().map_or_else(|e| e.to_string(), |layout| layout.to_string())
    }

    #[test]
    fn short_forms_are_printed_in_full() {
        assert_eq!(printed("S[3, 5, 7]"), "S[(3,5,7):(35@m,7@m,1@m)]");
        assert_eq!(printed("512 + S[8:1] + R[4]"), "S[8:1@m] + R[4:1@m] + 512@m");
        assert_eq!(printed("R[2:4@warpid]"), "S[():()] + R[2:4@warpid]");
    }

    #[test]
    fn swizzles_are_read_back() {
        for text in ["swizzle(M=3,B=3,S=3) o S[(8,64):(64@m,1@m)]", "swizzle(M=4,B=2,S=3,inner=false) o S[64:1@m]"] {
            assert_eq!(printed(text), text);
        }
    }

    #[test]
    fn an_error_names_the_character() {
        assert_eq!(
            printed("S[(8,2):(4@)]"),
            "expected the name of an axis, such as `laneid` or `m`, not `)`, at character 12 of `S[(8,2):(4@)]`"
        );
        assert_eq!(
            printed("S[(8,2):(4,)]"),
            "stride count 1 differs from extent count 2, at character 9 of `S[(8,2):(4,)]`"
        );
        assert_eq!(
            printed("S[8:1] + S[4:2]"),
            "a second S[...]: all shard iters belong in one, at character 10 of `S[8:1] + S[4:2]`"
        );
        assert_eq!(printed("S[(0,4):(4,1)]"), "an extent must be at least 1, at character 4 of `S[(0,4):(4,1)]`");
    }

    #[test]
    fn a_misspelt_axis_is_named_with_the_nearest() {
        let said = |text: &str, own: &[Axis]| {
            Layout::parse_with_axes(text, own).map_or_else(|e| e.to_string(), |l| l.to_string())
        };
        let text = "S[(8,4):(4@lanid,1@laneid)]";
        assert_eq!(
            said(text, &[]),
            format!("there is no axis `lanid`; did you mean `laneid`?, at character 12 of `{text}`")
        );
        let text = "S[8:8@lane]";
        assert_eq!(
            said(text, &[]),
            format!("there is no axis `lane`; did you mean `laneid`?, at character 7 of `{text}`")
        );
        assert_eq!(said("S[4:1@pid]", &[Axis::named("pid")]), "S[4:1@pid]");
    }
}
