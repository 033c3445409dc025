//! Which modifiers an instruction may have together.

use crate::decode::nearest::nearest;
use crate::decode::table::Row;
use crate::isa::DType;

/// A modifier of a form, or several words that belong together: one of the choices, or none of them.
struct Group<'a> {
    /// Separated by commas, and with or without a dot in front.
    choices: &'a str,
    is_optional: bool,
}

impl Row {
    /// Whether an opcode is one of the forms. The order of modifiers makes no difference, but that of types does.
    pub(crate) fn has_form(&self, opcode: &str) -> bool {
        let Some(modifiers) = opcode.strip_prefix(self.name) else { return false };
        self.forms.iter().any(|form| is_form(&form[self.name.len()..], modifiers))
    }

    /// All modifiers of its forms, in their order.
    fn modifiers(&self) -> Vec<&'static str> {
        let groups = self.forms.iter().flat_map(|form| groups(opcode_of(&form[self.name.len()..])));
        groups.flat_map(|group| group.choices.split([',', '.'])).filter(|word| !word.is_empty()).collect()
    }

    /// The first modifier of an opcode that no form has, and what was probably meant.
    pub(crate) fn slip<'a>(&self, opcode: &'a str) -> Option<(&'a str, &'static str)> {
        let known = self.modifiers();
        let mut words = opcode.strip_prefix(self.name)?.split('.').skip(1).filter(|word| !known.contains(word));
        words.find_map(|word| Some((word, nearest(word, known.iter().copied())?)))
    }

    /// The supported form that has the most modifiers of an opcode, and of these the most similar one.
    pub(crate) fn nearest_form(&self, opcode: &str) -> Option<String> {
        let distance = |text: &String| {
            let form = opcode_of(text);
            let missing = opcode.split('.').filter(|word| !form.split('.').any(|other| other == *word)).count();
            (missing, strsim::damerau_levenshtein(opcode, form))
        };
        self.forms.iter().flat_map(|form| expanded(form)).min_by_key(distance)
    }
}

fn opcode_of(form: &str) -> &str {
    form.split(' ').next().unwrap_or(form)
}

/// Whether `modifiers` are those of a form, the name of which is cut off.
fn is_form(form: &str, modifiers: &str) -> bool {
    let mut words: Vec<Option<&str>> = modifiers.split('.').skip(1).map(Some).collect();
    let mut types = 0;
    for group in groups(opcode_of(form)) {
        // The first of several types is that of the first group of types.
        let found = group.choices.split(',').filter_map(|choice| find(&words, types, choice)).min();
        for at in found.iter().flatten() {
            types = words[*at].take().filter(|word| is_type(word)).map_or(types, |_| at + 1);
        }
        if found.is_none() && !group.is_optional {
            return false;
        }
    }
    words.iter().all(Option::is_none)
}

/// The places of the words of a choice, if they are there: of types from the place `types`, since the order of types counts.
fn find(words: &[Option<&str>], mut types: usize, choice: &str) -> Option<Vec<usize>> {
    let mut places = Vec::new();
    for part in choice.trim_start_matches('.').split('.') {
        let first = if is_type(part) { types } else { 0 };
        let at = (first..words.len()).find(|at| words[*at] == Some(part) && !places.contains(at))?;
        places.push(at);
        types = if is_type(part) { at + 1 } else { types };
    }
    Some(places)
}

/// Whether a modifier is a type of elements, such as `u32`, `bf16x2` or `e4m3x2`.
fn is_type(modifier: &str) -> bool {
    let has_exponent = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    let is_narrow = modifier.trim_start_matches('u').strip_prefix('e').is_some_and(has_exponent);
    is_narrow || modifier == "tf32" || DType::parse(modifier).is_some()
}

/// The groups of a form without its name and its operands.
fn groups(form: &str) -> impl Iterator<Item = Group<'_>> {
    let mut rest = form;
    std::iter::from_fn(move || {
        let (is_optional, all) = match rest.strip_prefix(".{") {
            Some(all) => (false, all),
            None => (true, rest.strip_prefix('{').unwrap_or(rest)),
        };
        if all.len() < rest.len() {
            let (choices, after) = all.split_once('}')?;
            rest = after;
            return Some(Group { choices, is_optional });
        }
        let word = rest.strip_prefix('.')?;
        let end = word.find(['.', '{']).unwrap_or(word.len());
        rest = &word[end..];
        Some(Group { choices: &word[..end], is_optional: false })
    })
}

/// The texts that a form stands for.
pub(super) fn expanded(form: &str) -> Vec<String> {
    // Braces in operands are vectors.
    let opcode_end = form.find(' ').unwrap_or(form.len());
    let Some(open) = form.find('{').filter(|open| *open < opcode_end) else { return vec![form.to_string()] };
    let (before, rest) = form.split_at(open);
    let Some((choices, after)) = rest[1..].split_once('}') else { return vec![form.to_string()] };
    let mut choices: Vec<&str> = choices.split(',').collect();
    if !before.ends_with('.') {
        choices.push("");
    }
    let tails = expanded(after);
    choices.iter().flat_map(|choice| tails.iter().map(move |tail| format!("{before}{choice}{tail}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;

    #[test]
    fn a_form_stands_for_its_choices() {
        assert_eq!(expanded("add{.sat}.s32 d, a"), ["add.sat.s32 d, a", "add.s32 d, a"]);
        assert_eq!(expanded("ld.v2.{u8,u16} {d0, d1}, [x]"), ["ld.v2.u8 {d0, d1}, [x]", "ld.v2.u16 {d0, d1}, [x]"]);
    }

    #[test]
    fn every_text_of_a_form_has_a_form() {
        for row in rows() {
            let lost = |text: &String| !row.has_form(opcode_of(text));
            let lost: Vec<String> = row.forms.iter().flat_map(|form| expanded(form)).filter(lost).collect();
            assert_eq!(lost, [""; 0]);
        }
    }
}
