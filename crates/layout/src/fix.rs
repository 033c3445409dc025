//! Suggested fixes: the nearest valid layout to a text that is not one.

use std::ops::Range;

use crate::error::LayoutError;
use crate::layout::Layout;

/// No edits are tried on texts longer than this, in bytes.
const LONGEST: usize = 400;
/// Text that is often forgotten, tried as insertions.
const INSERTED: [&str; 9] = ["]", ")", ")]", ":", "(", "[", ",", "1", "o "];

/// The error with a checked fix: the parser's suggestion if it is a layout, otherwise the text with the brackets that
/// are missing, otherwise the first small edit at the error that gives a layout, otherwise none.
pub(crate) fn with_fix(error: LayoutError, read: fn(&str) -> Result<Layout, LayoutError>) -> LayoutError {
    let LayoutError::Notation { text, range, problem, legal, fix } = error else { return error };
    let is_layout = |candidate: &String| read(candidate).is_ok();
    let short = text.len() <= LONGEST;
    let candidates = || std::iter::once(bracketed(&text)).chain(edits(&text, &range)).filter(|_| short);
    let fix = fix.filter(is_layout).or_else(|| candidates().find(is_layout));
    LayoutError::Notation { text, range, problem, legal, fix }
}

/// The text with brackets around iters that are written without them: `S(8,4):(4,1)`, and `(8,4):(4,1)` as in CuTe.
fn bracketed(text: &str) -> String {
    let (before, sum) = text.split_once(" o ").map_or((None, text), |(swizzle, sum)| (Some(swizzle), sum));
    let term = |term: &str| {
        let term = term.trim();
        if term.contains('[') || !term.contains(['(', ':']) {
            return term.to_string();
        }
        match term.strip_prefix(['S', 'R']) {
            Some(iters) => format!("{}[{}]", &term[..1], iters.trim()),
            None => format!("S[{term}]"),
        }
    };
    let sum = sum.split('+').map(term).collect::<Vec<_>>().join(" + ");
    before.map_or(sum.clone(), |swizzle| format!("{swizzle} o {sum}"))
}

/// Small edits of the text at `range`.
fn edits(text: &str, range: &Range<usize>) -> Vec<String> {
    let (before, there, after) = (&text[..range.start], &text[range.clone()], &text[range.end..]);
    let mut edits = Vec::new();
    if there == "-" {
        edits.push(format!("{before}+ -{}", after.trim_start()));
    }
    edits.extend(INSERTED.iter().map(|inserted| format!("{before}{inserted}{there}{after}")));
    if !there.is_empty() {
        edits.extend(["[", "]", ")", "(", ":", "+", ",", ""].map(|other| format!("{before}{other}{after}")));
    }
    edits
}

/// The range of an axis name in a text: after an `@`, otherwise as a word; the whole text if it does not occur.
pub(crate) fn axis(text: &str, name: &str) -> Range<usize> {
    match word(text, &format!("@{name}")) {
        Range { start, end } if end - start == name.len() + 1 => start + 1..end,
        _ => word(text, name),
    }
}

/// The range of a whole word in a text; the whole text if it does not occur.
fn word(text: &str, word: &str) -> Range<usize> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let is_whole = |start: &usize| !text[..*start].ends_with(part) && !text[start + word.len()..].starts_with(part);
    let found = text.match_indices(word).map(|(start, _)| start).find(is_whole);
    found.map_or(0..text.len(), |start| start..start + word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(text: &str) -> Option<String> {
        match text.parse::<Layout>().unwrap_err() {
            LayoutError::Notation { fix, .. } => fix,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn every_fix_is_a_layout() {
        let wrong = [
            ("S[(8,4):(4@laneid)]", "S[(8,4):(4@laneid,1)]"),
            ("S[(8,4):(4,2,1)]", "S[(8,4):(4@m,2@m)]"),
            ("S[8:1] + S[4:8] + 5", "S[(8,4):(1@m,8@m)] + 5"),
            ("S[8:1] + R[2:8] + R[2:16@tx]", "S[8:1] + R[(2,2):(8@m,16@tx)]"),
            ("S[(0,4):(4,1)]", "S[(1,4):(4,1)]"),
            ("S[(8,4):(4,1)", "S[(8,4):(4,1)]"),
            ("S[(8,4:(4,1)]", "S[(8,4):(4,1)]"),
            ("S[8:1] - 3", "S[8:1] + -3"),
            ("S[8 1]", "S[8 :1]"),
            ("(8,4):(4,1)", "S[(8,4):(4,1)]"),
            ("S(8,4):(4,1)", "S[(8,4):(4,1)]"),
            ("8:1@laneid + R(2):(8) + 5", "S[8:1@laneid] + R[(2):(8)] + 5"),
            ("swizzle(M=3,B=3,S=3) o (8,64):(64,1)", "swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]"),
            ("swizzle(M=3,B=3,S=2) o S[64:1]", "swizzle(M=3,B=3,S=3) o S[64:1]"),
            ("swizzle(M=3,B=3,S=3) o S[64:1@laneid]", "swizzle(M=3,B=3,S=3) o S[64:1@m]"),
            ("swizzle(M=3,B=3,S=3) o S[8:-1]", "swizzle(M=3,B=3,S=3) o S[8:-1] + 7"),
        ];
        for (text, meant) in wrong {
            assert_eq!(fixed(text).as_deref(), Some(meant), "{text}");
        }
    }

    #[test]
    fn what_has_no_obvious_fix_has_none() {
        assert_eq!(fixed("a matrix"), None);
        assert_eq!(fixed("S[99999999999999999999:1]"), None);
    }
}
