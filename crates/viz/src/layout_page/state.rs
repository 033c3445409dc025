//! What a page shows first.

use serde_json::{Value, json};
use tilewright_layout::hardware::SwizzleMode;

/// Bits of an element unless specified.
const DEFAULT_BITS: i64 = 16;

/// The drawing that the page shows first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageView {
    /// Elements in their shape, each with its place.
    #[default]
    Tensor,
    /// Owners and slots, each with its element.
    Hardware,
    /// Lines and banks of shared memory, and the wavefronts of [`PageState::access`].
    Banks,
    /// This layout and [`PageState::to`], with the plan that converts one into the other.
    Conversion,
}

impl PageView {
    /// Every view.
    pub const ALL: [PageView; 4] = [PageView::Tensor, PageView::Hardware, PageView::Banks, PageView::Conversion];

    /// Its name in the page's address.
    pub fn name(self) -> &'static str {
        match self {
            PageView::Tensor => "tensor",
            PageView::Hardware => "hardware",
            PageView::Banks => "banks",
            PageView::Conversion => "conversion",
        }
    }
}

/// The state that a page starts in. Texts that are not layouts are accepted here; the page reports what is wrong with
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageState {
    /// The layout in notation.
    pub layout: String,
    /// The logical shape of the tile; empty to let the page choose one.
    pub shape: Vec<i64>,
    /// Bits of an element: 4, 8, 16, 32, 64 or 128; the page takes 16 for any other number.
    pub bits: i64,
    /// The view.
    pub view: PageView,
    /// A swizzle over the layout that replaces the one in its notation, if any; `None` leaves the layout as written.
    pub swizzle: Option<SwizzleMode>,
    /// For the bank view: a layout of lanes over the same elements, in notation.
    pub access: Option<String>,
    /// For the conversion view: the layout to convert to, in notation.
    pub to: Option<String>,
}

impl PageState {
    /// A layout in notation, seen as a tensor of elements of 16 bits, in a shape that the page chooses.
    pub fn new(layout: impl Into<String>) -> PageState {
        PageState {
            layout: layout.into(),
            shape: Vec::new(),
            bits: DEFAULT_BITS,
            view: PageView::default(),
            swizzle: None,
            access: None,
            to: None,
        }
    }

    /// The state as the fragment of the page's address, without the `#`.
    pub fn address(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(i64::to_string).collect();
        let mut said = vec![format!("l={}", escaped(&self.layout))];
        if !shape.is_empty() {
            said.push(format!("s={}", shape.join(",")));
        }
        said.push(format!("b={}", self.bits));
        said.extend(self.swizzle.and_then(row_bytes).map(|bytes| format!("w={bytes}")));
        said.extend(self.access.as_deref().map(|access| format!("a={}", escaped(access))));
        said.extend(self.to.as_deref().map(|to| format!("t={}", escaped(to))));
        said.push(format!("v={}", self.view.name()));
        said.join("&")
    }

    /// The state as the page reads it.
    pub(super) fn json(&self) -> Value {
        json!({
            "access": self.access.as_deref().unwrap_or(""),
            "bits": self.bits,
            "layout": self.layout,
            "shape": self.shape,
            "swizzle": self.swizzle.and_then(row_bytes),
            "to": self.to.as_deref().unwrap_or(""),
            "view": self.view.name(),
        })
    }
}

/// Text for an address: characters that would end a value or break a link are percent-encoded, byte by byte.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~()[]:,@+*/=".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Bytes of a swizzle's row; `None` without a swizzle.
fn row_bytes(mode: SwizzleMode) -> Option<i64> {
    (mode != SwizzleMode::None).then(|| mode.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swizzled(layout: &str) -> PageState {
        PageState {
            shape: vec![8, 16],
            view: PageView::Banks,
            swizzle: Some(SwizzleMode::B128),
            ..PageState::new(layout)
        }
    }

    #[test]
    fn every_field_is_in_the_json() {
        let expected =
            r#"{"access":"","bits":16,"layout":"S[8:1]","shape":[8,16],"swizzle":128,"to":"","view":"banks"}"#;
        assert_eq!(swizzled("S[8:1]").json().to_string(), expected);
    }

    #[test]
    fn the_address_says_the_state() {
        assert_eq!(swizzled("S[8:1] + 5@m").address(), "l=S[8:1]%20+%205@m&s=8,16&b=16&w=128&v=banks");
    }
}
