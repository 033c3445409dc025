//! Names that C++ and CUDA have for themselves, which a kernel may use all the same.
//!
//! `reserved.txt` is the list, and says where it comes from; `cargo xtask validate` tries it on the NVRTC at hand. Beside
//! it C++ reserves every name that begins with two underscores, or with one and a capital letter.

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Where a name stands in CUDA text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the kernel: parameters, buffers, registers and variables.
    Inside,
    /// Outside of it: its own name, and those of tables.
    Outside,
}

/// The list, section by section.
struct Listed {
    /// Reserved wherever they stand.
    everywhere: BTreeSet<&'static str>,
    /// Reserved outside of the kernel only.
    outside: BTreeSet<&'static str>,
    /// Reserved outside of the kernel too: NVRTC does not come back from them.
    fatal: BTreeSet<&'static str>,
}

static LISTED: LazyLock<Listed> = LazyLock::new(|| {
    let text = include_str!("reserved.txt");
    Listed { everywhere: section(text, "everywhere"), outside: section(text, "outside"), fatal: section(text, "fatal") }
});

/// The words between the line `[title]` and the next such line; a line that begins with `#` is a remark.
fn section<'a>(text: &'a str, title: &str) -> BTreeSet<&'a str> {
    let head = format!("[{title}]");
    let lines = text.lines().skip_while(|line| *line != head).skip(1).take_while(|line| !line.starts_with('['));
    lines.filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace).collect()
}

/// Whether C++ or CUDA has this name for itself there.
pub fn is_reserved(name: &str, place: Place) -> bool {
    is_listed(name, place) || is_of_the_language(name)
}

/// Whether the list has this name for that place.
pub(crate) fn is_listed(name: &str, place: Place) -> bool {
    match place {
        Place::Inside => LISTED.everywhere.contains(name),
        Place::Outside => [&LISTED.everywhere, &LISTED.outside, &LISTED.fatal].iter().any(|list| list.contains(name)),
    }
}

/// The listed names that are reserved there and, if it is outside, not inside too; in order. Those that NVRTC does not
/// come back from are left out.
pub fn listed(place: Place) -> impl Iterator<Item = &'static str> {
    let list = match place {
        Place::Inside => &LISTED.everywhere,
        Place::Outside => &LISTED.outside,
    };
    list.iter().copied()
}

/// C++17, section 5.10: identifiers with two underscores, or one and a capital letter, are the implementation's. In fact it
/// has those that begin so, and none that has another underscore behind it.
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
