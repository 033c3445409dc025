//! What the user asked about: a layout in notation, a hardware layout by name, or a table in a file.

use std::path::Path;

use tilewright::diag::Diagnostic;
use tilewright::files::read_text;
use tilewright::layout::hardware::{MmaType, SwizzleMode, named};
use tilewright::layout::{Axis, ComposeLayout, DType, Layout, LayoutError, TableLayout};
use tilewright::viz::layout::default_shape;

use super::arguments::Arguments;
use super::failure::Failure;
use crate::request::suggestion;

/// Bits of an element by default.
const DEFAULT_BITS: i64 = 32;

/// A layout, and the tile that it lays out.
pub(super) struct Subject {
    pub(super) name: String,
    /// What a named hardware layout is.
    pub(super) about: Option<String>,
    pub(super) layout: Layout,
    pub(super) shape: Vec<i64>,
    /// Bits of an element.
    pub(super) bits: i64,
}

impl Subject {
    pub(super) fn read(text: &str, arguments: &Arguments) -> Result<Subject, Failure> {
        let mut subject = read_any(text, &arguments.axis)?;
        if let Some(dtype) = &arguments.dtype {
            subject.bits = bits_of(dtype)?;
        }
        if let Some(shape) = &arguments.shape {
            subject.shape = shape.0.clone();
        }
        Ok(subject)
    }

    /// Applies a swizzle mode to a plain tile. [`SwizzleMode::None`] removes the swizzle.
    pub(super) fn swizzle(&mut self, mode: SwizzleMode) -> Result<(), Failure> {
        let tile = self.layout.tile()?.clone();
        self.layout = match mode {
            SwizzleMode::None => Layout::Tile(tile),
            SwizzleMode::B32 | SwizzleMode::B64 | SwizzleMode::B128 => {
                Layout::Compose(ComposeLayout::new(mode.swizzle(self.bits)?, tile)?)
            }
        };
        Ok(())
    }
}

fn read_any(text: &str, own: &[String]) -> Result<Subject, Failure> {
    if let Some(path) = text.strip_prefix('@') {
        let read = read_text(Path::new(path)).map_err(|error| Failure::Request(error.to_string()))?;
        let table = TableLayout::from_text(&read).map_err(|error| not_a_table(path, &error))?;
        return Ok(plain(text, Layout::Table(table)));
    }
    if text.contains(':') && !is_notation(text) {
        let named = named(text)?;
        let (about, shape, bits) = (Some(named.about), named.shape, named.bits);
        return Ok(Subject { name: named.name, about, layout: named.layout, shape, bits });
    }
    let own: Vec<Axis> = own.iter().map(|name| Axis::named(name)).collect();
    Ok(plain(text, Layout::parse_with_axes(text, &own)?))
}

/// Whether a text is notation rather than a name, even if it lacks its brackets. A name begins with a letter and does
/// not contain parentheses.
fn is_notation(text: &str) -> bool {
    text.contains(['[', '(']) || text.trim_start().starts_with(|c: char| c.is_ascii_digit())
}

fn not_a_table(path: &str, error: &LayoutError) -> Failure {
    let found = Diagnostic::error(error.code(), format!("{path} is not a valid table: {error}"));
    Failure::Option(Box::new(found.help("name a file that TableLayout::to_text wrote")))
}

fn plain(name: &str, layout: Layout) -> Subject {
    let shape = default_shape(&layout);
    Subject { name: name.to_string(), about: None, layout, shape, bits: DEFAULT_BITS }
}

/// Bits of an element, by the name of a dtype or of an operand type of a matrix instruction.
fn bits_of(name: &str) -> Result<i64, Failure> {
    match (name.parse::<DType>(), name.parse::<MmaType>()) {
        (Ok(dtype), _) => Ok(dtype.bytes() * 8),
        (_, Ok(operand)) => Ok(operand.bits()),
        (Err(_), Err(_)) => {
            let mut names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
            names.extend(
                MmaType::ALL.iter().map(|operand| operand.name()).filter(|name| name.parse::<DType>().is_err()),
            );
            let hint = match usual_name(name) {
                Some(meant) => format!("; did you mean `{meant}`?"),
                None => suggestion(name, names.iter().copied()),
            };
            Err(Failure::Request(format!("`{name}` is not a dtype; the dtypes are {}{hint}", names.join(", "))))
        }
    }
}

/// The dtype that another language calls `name`.
fn usual_name(name: &str) -> Option<DType> {
    let short = match name {
        "float" => "f32".to_string(),
        "double" => "f64".to_string(),
        "half" => "f16".to_string(),
        "int" => "i32".to_string(),
        _ => {
            let prefixes = [("bfloat", "bf"), ("float", "f"), ("fp", "f"), ("uint", "u"), ("int", "i")];
            let named = |(long, short)| Some(format!("{short}{}", name.strip_prefix(long)?));
            prefixes.into_iter().find_map(named)?
        }
    };
    short.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_languages_find_their_dtype() {
        let meant = ["float", "half", "bfloat16", "fp16", "uint8", "int64", "foo"].map(usual_name);
        let expected = [DType::F32, DType::F16, DType::BF16, DType::F16, DType::U8, DType::I64].map(Some);
        assert_eq!((&meant[..6], meant[6]), (&expected[..], None));
    }
}
