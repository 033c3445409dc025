//! What the user asked about: a layout in notation, a hardware layout by name, or a table in a file.

use std::path::Path;

use tilewright::files::read_text;
use tilewright::layout::hardware::{MmaType, SwizzleMode, named};
use tilewright::layout::{Axis, ComposeLayout, DType, Layout, TableLayout};
use tilewright::viz::layout::default_shape;

use super::arguments::Arguments;
use super::failure::Failure;

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
            subject.shape = shape.clone();
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
        return Ok(plain(text, Layout::Table(TableLayout::from_text(&read)?)));
    }
    if !text.contains('[') && text.contains(':') {
        let named = named(text)?;
        let (about, shape, bits) = (Some(named.about), named.shape, named.bits);
        return Ok(Subject { name: named.name, about, layout: named.layout, shape, bits });
    }
    let own: Vec<Axis> = own.iter().map(|name| Axis::named(name)).collect();
    Ok(plain(text, Layout::parse_with_axes(text, &own)?))
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
            let hint = crate::request::suggestion(name, names.iter().copied());
            Err(Failure::Request(format!("`{name}` is not a dtype; the dtypes are {}{hint}", names.join(", "))))
        }
    }
}
