//! A choice by name: an enum, its names in notation, and the error that lists them.

use crate::error::LayoutError;

/// How many characters of an unknown name are compared with the known names, none of which is longer.
const COMPARED: usize = 32;

/// An enum whose variants are chosen by name.
pub(super) trait Choice: Copy + 'static {
    /// What is chosen, as named in errors.
    const WHAT: &'static str;

    /// Every choice.
    fn all() -> &'static [Self];

    /// Its name in notation.
    fn text(self) -> &'static str;
}

/// The choice called `text`; the error lists the names, those nearest to `text` first.
pub(super) fn choose<T: Choice>(text: &str) -> Result<T, LayoutError> {
    T::all().iter().copied().find(|choice| choice.text() == text).ok_or_else(|| {
        let mut names: Vec<&str> = T::all().iter().map(|choice| choice.text()).collect();
        let given = text.chars().take(COMPARED).collect::<String>().to_lowercase();
        names.sort_by_cached_key(|name| strsim::damerau_levenshtein(&given, &name.to_lowercase()));
        super::refused(T::WHAT, format!("`{text}`"), names.join(", "))
    })
}

/// All names, in order.
pub(super) fn names<T: Choice>() -> String {
    let names: Vec<&str> = T::all().iter().map(|choice| choice.text()).collect();
    names.join(", ")
}

/// An enum whose variants have names in notation: `choices! { pub Name, "what it is"; Variant = "v", }`, with docs.
macro_rules! choices {
    ($(#[$meta:meta])* $vis:vis $name:ident, $what:literal; $($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// Every choice.
            $vis const ALL: &'static [$name] = &[$($name::$variant),*];

            /// Its name in notation and on the command line.
            $vis fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }

        impl $crate::hardware::choice::Choice for $name {
            const WHAT: &'static str = $what;

            fn all() -> &'static [$name] {
                $name::ALL
            }

            fn text(self) -> &'static str {
                self.name()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::LayoutError;

            /// The choice of that name; the error lists the names, the nearest first.
            fn from_str(text: &str) -> Result<$name, $crate::LayoutError> {
                $crate::hardware::choice::choose(text)
            }
        }
    };
}

pub(super) use choices;

#[cfg(test)]
mod tests {
    use crate::error::LayoutError;
    use crate::hardware::{Datapath, MmaShape, MmaType};

    #[test]
    fn every_name_is_read_back() {
        assert!(MmaShape::ALL.iter().all(|shape| shape.name().parse::<MmaShape>() == Ok(*shape)));
        assert!(MmaType::ALL.iter().all(|element| element.to_string().parse::<MmaType>() == Ok(*element)));
        assert!(Datapath::ALL.iter().all(|datapath| datapath.name().parse::<Datapath>() == Ok(*datapath)));
    }

    #[test]
    fn a_wrong_name_is_quoted_and_the_nearest_comes_first() {
        let Err(LayoutError::Hardware { name, problem, legal }) = "bf61".parse::<MmaType>() else { unreachable!() };
        assert_eq!((name, problem.as_str()), ("element type", "`bf61`"));
        assert_eq!(legal.split(", ").next(), Some("bf16"));
        assert_eq!(legal.split(", ").count(), MmaType::ALL.len());
    }
}
