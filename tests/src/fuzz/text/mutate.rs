//! Small random changes to notation.

use crate::rng::Rng;

/// The tokens of the text: words, numbers, spaces, and single characters.
type Tokens = Vec<String>;

const AXES: [&str; 14] =
    ["m", "reg", "tx", "laneid", "warpid", "wgid", "tid_in_wg", "TLane", "TCol", "gpuid_x", "bx", "lanid", "mine", "S"];
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "2",
    "3",
    "32",
    "-1",
    "-4",
    "4096",
    "72057594037927935",
    "72057594037927936",
    "9223372036854775807",
    "99999999999999999999",
];
const CHARACTERS: [char; 16] = ['[', ']', '(', ')', ':', ',', '@', '+', '-', 'S', 'R', 'o', ' ', '\n', 'é', '²'];

/// A seed with a few changes; most of them keep it close to valid notation.
pub(crate) fn mutated(rng: &mut Rng, seeds: &[String]) -> String {
    let mut tokens = tokens(rng.pick::<String>(seeds));
    for _ in 0..*rng.pick(&[0, 1, 1, 1, 1, 1, 1, 2, 2, 3]) {
        match rng.below(20) {
            0..=6 => change_number(rng, &mut tokens),
            7 | 8 => swap(rng, &mut tokens, is_number),
            9 => swap(rng, &mut tokens, is_word),
            10 | 11 => rename(rng, &mut tokens),
            12 | 13 => tokens = spliced_terms(rng, &tokens, seeds),
            14 => tokens = spliced(rng, &tokens, seeds),
            15 => swap(rng, &mut tokens, |_| true),
            16 => duplicate(rng, &mut tokens),
            17 => truncate(rng, &mut tokens),
            18 => replace_character(rng, &mut tokens),
            _ => change_case(rng, &mut tokens),
        }
    }
    tokens.concat()
}

/// The kind of token that a character may belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Number,
    Space,
    /// A token by itself.
    Sign,
}

fn kind(c: char) -> Kind {
    if c.is_alphabetic() || c == '_' {
        Kind::Word
    } else if c.is_ascii_digit() {
        Kind::Number
    } else if c.is_whitespace() {
        Kind::Space
    } else {
        Kind::Sign
    }
}

/// Splits a text into words, numbers, spaces and signs; a word may end in digits.
fn tokens(text: &str) -> Tokens {
    let mut tokens: Tokens = Vec::new();
    for c in text.chars() {
        let joins = tokens.last().is_some_and(|token| goes_on(token, c));
        match tokens.last_mut() {
            Some(token) if joins => token.push(c),
            _ => tokens.push(c.to_string()),
        }
    }
    tokens
}

/// True if the character belongs to the preceding token.
fn goes_on(token: &str, c: char) -> bool {
    match (token.chars().next().map(kind), kind(c)) {
        (_, Kind::Sign) => false,
        (Some(Kind::Word), Kind::Number) => true,
        (before, here) => before == Some(here),
    }
}

fn is_number(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_digit())
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic())
}

/// The position of a random token of some kind, if any.
fn find(rng: &mut Rng, tokens: &[String], wanted: fn(&str) -> bool) -> Option<usize> {
    let found: Vec<usize> = (0..tokens.len()).filter(|&at| wanted(&tokens[at])).collect();
    if found.is_empty() { None } else { Some(*rng.pick(&found)) }
}

/// Replaces a number by an adjacent one, a multiple, a small one, or an extreme one.
fn change_number(rng: &mut Rng, tokens: &mut Tokens) {
    let Some(at) = find(rng, tokens, is_number) else { return };
    let value: i64 = tokens[at].parse().unwrap_or(1);
    tokens[at] = match rng.below(8) {
        0 => value.saturating_add(1).to_string(),
        1 => value.saturating_sub(1).to_string(),
        2 => value.saturating_mul(2).to_string(),
        3 => (value / 2).to_string(),
        4 | 5 => rng.within(1..=9).to_string(),
        6 => format!("-{value}"),
        _ => rng.pick(&NUMBERS).to_string(),
    };
}

/// Swaps two tokens of the same kind.
fn swap(rng: &mut Rng, tokens: &mut Tokens, wanted: fn(&str) -> bool) {
    if let (Some(a), Some(b)) = (find(rng, tokens, wanted), find(rng, tokens, wanted)) {
        tokens.swap(a, b);
    }
}

/// Replaces a word by an axis.
fn rename(rng: &mut Rng, tokens: &mut Tokens) {
    let is_axis =
        |token: &str| is_word(token) && !["S", "R", "o", "M", "B", "swizzle", "inner", "false"].contains(&token);
    if let Some(at) = find(rng, tokens, is_axis) {
        tokens[at] = rng.pick(&AXES).to_string();
    }
}

/// The terms of one sum up to some `+`, then those of another from some `+` on.
fn spliced_terms(rng: &mut Rng, tokens: &[String], seeds: &[String]) -> Tokens {
    let other = self::tokens(rng.pick::<String>(seeds));
    let is_sign = |token: &str| token == "+";
    let end = find(rng, tokens, is_sign).unwrap_or(tokens.len());
    let start = find(rng, &other, is_sign).unwrap_or(other.len());
    tokens[..end].iter().chain(&other[start..]).cloned().collect()
}

/// The beginning of one text followed by the end of another.
fn spliced(rng: &mut Rng, tokens: &[String], seeds: &[String]) -> Tokens {
    let other = self::tokens(rng.pick::<String>(seeds));
    let (end, start) = (rng.below(tokens.len() + 1), rng.below(other.len() + 1));
    tokens[..end].iter().chain(&other[start..]).cloned().collect()
}

fn duplicate(rng: &mut Rng, tokens: &mut Tokens) {
    if let Some(at) = find(rng, tokens, |_| true) {
        let token = tokens[at].clone();
        tokens.insert(at, token);
    }
}

fn truncate(rng: &mut Rng, tokens: &mut Tokens) {
    let length = rng.below(tokens.len() + 1);
    tokens.truncate(length);
}

/// Replaces one character anywhere.
fn replace_character(rng: &mut Rng, tokens: &mut Tokens) {
    let Some(at) = find(rng, tokens, |_| true) else { return };
    let mut characters: Vec<char> = tokens[at].chars().collect();
    if !characters.is_empty() {
        let position = rng.below(characters.len());
        characters[position] = *rng.pick(&CHARACTERS);
        tokens[at] = characters.into_iter().collect();
    }
}

fn change_case(rng: &mut Rng, tokens: &mut Tokens) {
    if let Some(at) = find(rng, tokens, is_word) {
        let token = &tokens[at];
        tokens[at] = if token.to_uppercase() == *token { token.to_lowercase() } else { token.to_uppercase() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_sum_of_its_tokens() {
        let text = "S[(8,2):(4@laneid,1@m2)] + -5@m";
        let cut = tokens(text);
        assert_eq!(cut.concat(), text);
        assert!(
            cut.contains(&"m2".to_string()) && cut.contains(&"laneid".to_string()) && cut.contains(&"8".to_string())
        );
    }

    #[test]
    fn a_mutated_text_is_the_same_for_the_same_case() {
        let seeds = ["S[(8,2):(4@laneid,1)]".to_string(), "S[4:1] + R[2:4] + 3".to_string()];
        let text = |case| mutated(&mut Rng::new(5, case), &seeds);
        assert!((0..50).all(|case| text(case) == text(case)));
        assert!((0..50).map(text).collect::<std::collections::BTreeSet<_>>().len() > 20);
    }
}
