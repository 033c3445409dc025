//! Canonical text: axes always explicit, one `R[...]`, offsets in order of axis name.

use std::fmt;

use crate::error::tuple;
use crate::iter::Iter;
use crate::layout::Layout;
use crate::swizzle::{ComposeLayout, SwizzleLayout};
use crate::tile::TileLayout;

fn bracket(f: &mut fmt::Formatter<'_>, letter: char, iters: &[Iter]) -> fmt::Result {
    if let [Iter { extent, stride, axis }] = iters {
        return write!(f, "{letter}[{extent}:{stride}@{axis}]");
    }
    let extents: Vec<i64> = iters.iter().map(|iter| iter.extent).collect();
    let strides: Vec<String> = iters.iter().map(|iter| format!("{}@{}", iter.stride, iter.axis)).collect();
    write!(f, "{letter}[{}:({})]", tuple(&extents), strides.join(","))
}

/// `S[...]` or `R[...]` with these iters.
pub(crate) fn bracketed(letter: char, iters: &[Iter]) -> String {
    struct Bracket<'a>(char, &'a [Iter]);
    impl fmt::Display for Bracket<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            bracket(f, self.0, self.1)
        }
    }
    Bracket(letter, iters).to_string()
}

impl fmt::Display for TileLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bracket(f, 'S', self.shard())?;
        if !self.replica().is_empty() {
            write!(f, " + ")?;
            bracket(f, 'R', self.replica())?;
        }
        for (axis, value) in self.offset() {
            write!(f, " + {value}@{axis}")?;
        }
        Ok(())
    }
}

/// Prints the notation, so that a failed test shows what a person would write.
impl fmt::Debug for TileLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SwizzleLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "swizzle(M={},B={},S={}", self.per_element(), self.swizzle_len(), self.atom_len())?;
        write!(f, "{})", if self.inner() { "" } else { ",inner=false" })
    }
}

impl fmt::Display for ComposeLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} o {}", self.swizzle(), self.tile())
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Tile(tile) => write!(f, "{tile}"),
            Layout::Table(table) => fmt::Display::fmt(table, f),
            Layout::Compose(compose) => write!(f, "{compose}"),
        }
    }
}
