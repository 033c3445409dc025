//! Names that C++ and CUDA reserve. A kernel may use them all the same: the emitter changes them.
//!
//! `reserved.txt` is the list, and says where it comes from; `cargo xtask validate` tests it on the installed NVRTC. In
//! addition C++ reserves every name that begins with two underscores, or with one and a capital letter.

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Where a name is declared in CUDA text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the kernel: parameters, buffers, registers and variables.
    Inside,
    /// Outside of the kernel: its name, and those of tables.
    Outside,
}

/// The list, section by section.
struct Listed {
    /// Reserved wherever they are declared.
    everywhere: BTreeSet<&'static str>,
    /// Reserved outside of the kernel only.
    outside: BTreeSet<&'static str>,
    /// Also reserved outside of the kernel only: they crash NVRTC.
    fatal: BTreeSet<&'static str>,
}

static LISTED: LazyLock<Listed> = LazyLock::new(|| {
    let text = include_str!("reserved.txt");
    Listed { everywhere: section(text, "everywhere"), outside: section(text, "outside"), fatal: section(text, "fatal") }
});

/// The words between the line `[title]` and the next such line; a line that begins with `#` is a comment.
fn section<'a>(text: &'a str, title: &str) -> BTreeSet<&'a str> {
    let head = format!("[{title}]");
    let lines = text.lines().skip_while(|line| *line != head).skip(1).take_while(|line| !line.starts_with('['));
    lines.filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace).collect()
}

/// Whether C++ or CUDA reserves this name there.
pub fn is_reserved(name: &str, place: Place) -> bool {
    is_listed(name, place) || is_of_the_language(name)
}

/// Whether the list reserves this name there.
pub(crate) fn is_listed(name: &str, place: Place) -> bool {
    match place {
        Place::Inside => LISTED.everywhere.contains(name),
        Place::Outside => [&LISTED.everywhere, &LISTED.outside, &LISTED.fatal].iter().any(|list| list.contains(name)),
    }
}

/// The listed names that are reserved there, in order; for the outside, without those that are reserved everywhere and
/// those that crash NVRTC.
pub fn listed(place: Place) -> impl Iterator<Item = &'static str> {
    let list = match place {
        Place::Inside => &LISTED.everywhere,
        Place::Outside => &LISTED.outside,
    };
    list.iter().copied()
}

/// C++17, section 5.10: identifiers with two underscores, or with one and a capital letter in front, are reserved for
/// the implementation. In practice it uses those that begin so, but none of them with another underscore appended.
pub(crate) fn is_of_the_language(name: &str) -> bool {
    let Some(rest) = name.strip_prefix('_') else { return false };
    rest.starts_with(|c: char| c == '_' || c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_reserved_everywhere_and_functions_outside() {
        let reserved = |name: &str| [Place::Inside, Place::Outside].map(|place| is_reserved(name, place));
        for name in ["float", "NULL", "char16_t", "threadIdx", "float4", "__syncthreads", "_Bool"] {
            assert_eq!(reserved(name), [true, true], "{name}");
        }
        for name in ["max", "exp", "main", "dim3", "printf", "remainder", "A7"] {
            assert_eq!(reserved(name), [false, true], "{name}");
        }
        for name in ["max_", "row", "n", "a__b", "_row", "char8_t"] {
            assert_eq!(reserved(name), [false, false], "{name}");
        }
    }

    #[test]
    fn the_list_is_in_order_and_names_nothing_twice() {
        let text = include_str!("reserved.txt");
        let sections: Vec<Vec<&str>> = text
            .split("\n[")
            .skip(1)
            .map(|part| {
                let lines = part.lines().skip(1).filter(|line| !line.starts_with('#'));
                lines.flat_map(str::split_whitespace).collect()
            })
            .collect();
        assert_eq!(sections.len(), 3);
        let mut all = BTreeSet::new();
        for names in sections {
            assert!(names.is_sorted(), "not in order");
            assert!(names.iter().all(|name| all.insert(*name) && !is_of_the_language(name)), "twice, or by the rule");
        }
    }
}
