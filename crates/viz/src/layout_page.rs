//! The interactive page of a layout: one HTML file that needs nothing else, no network and no framework.
//!
//! The page evaluates layouts itself, so that notation and shape can be edited in it; tests hold its evaluator, its
//! bank model and its plans to the ones in Rust. Its parts lie in `assets/layout`; [`layout_page`] joins them with the
//! state to begin with. A link to the page may carry another state behind `#`, which then wins:
//! `l` layout, `s` shape, `b` bits, `w` swizzle, `a` access, `k` load or store, `n` vector, `t` to, `p` pinned element,
//! `v` view.

use serde_json::json;
use tilewright_layout::hardware::SwizzleMode;

const PAGE: &str = include_str!("../assets/layout/page.html");
const STYLE: &str = include_str!("../assets/layout/page.css");

/// In order: a script may use those before it.
const SCRIPTS: &[&str] = &[
    include_str!("../assets/layout/notation.js"),
    include_str!("../assets/layout/model.js"),
    include_str!("../assets/layout/banks.js"),
    include_str!("../assets/layout/palette.js"),
    include_str!("../assets/layout/draw.js"),
    include_str!("../assets/layout/grids.js"),
    include_str!("../assets/layout/plan_fragments.js"),
    include_str!("../assets/layout/plan_colouring.js"),
    include_str!("../assets/layout/plan_shuffles.js"),
    include_str!("../assets/layout/plan_staging.js"),
    include_str!("../assets/layout/plan.js"),
    include_str!("../assets/layout/conversion.js"),
    include_str!("../assets/layout/scene.js"),
    include_str!("../assets/layout/address.js"),
    include_str!("../assets/layout/examples.js"),
    include_str!("../assets/layout/stepper.js"),
    include_str!("../assets/layout/steps.js"),
    include_str!("../assets/layout/facts.js"),
    include_str!("../assets/layout/forms.js"),
    include_str!("../assets/layout/main.js"),
];

/// What the page shows first.
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

/// The state that a page begins with. Texts that are no layouts are not refused: the page says what is wrong with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageState {
    /// The layout in notation.
    pub layout: String,
    /// The logical shape of the tile; empty where the page shall choose one.
    pub shape: Vec<i64>,
    /// Bits of an element: 4, 8, 16, 32, 64 or 128; the page takes 16 for any other number.
    pub bits: i64,
    /// The view.
    pub view: PageView,
    /// A swizzle over the layout, in place of one that its notation has; `None` leaves the layout as written.
    pub swizzle: Option<SwizzleMode>,
    /// For the bank view: a layout of lanes over the same elements, in notation.
    pub access: Option<String>,
    /// For the conversion view: the layout to convert to, in notation.
    pub to: Option<String>,
}

impl PageState {
    /// The state as the page's address says it, without the `#`: what follows it in a link to the page.
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

    /// The state as the page reads it. Every `<` is escaped, so that no text can end the script that holds it.
    fn json(&self) -> String {
        let state = json!({
            "access": self.access.as_deref().unwrap_or(""),
            "bits": self.bits,
            "layout": self.layout,
            "shape": self.shape,
            "swizzle": self.swizzle.and_then(row_bytes),
            "to": self.to.as_deref().unwrap_or(""),
            "view": self.view.name(),
        });
        state.to_string().replace('<', "\\u003c")
    }
}

/// Text for an address: what would end a value or break a link is percent-encoded, byte by byte.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~()[]:,@+*/=".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Bytes of a swizzle's row; `None` where nothing is swizzled.
fn row_bytes(mode: SwizzleMode) -> Option<i64> {
    (mode != SwizzleMode::None).then(|| mode.bytes())
}

/// The page, as the text of one HTML file.
pub fn layout_page(state: &PageState) -> String {
    // The state comes last: a layout that happens to contain a placeholder stays what it is.
    let page = PAGE.replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", &SCRIPTS.concat());
    page.replace("/*STATE*/", &state.json())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(layout: &str) -> PageState {
        PageState {
            layout: layout.to_string(),
            shape: vec![8, 16],
            bits: 16,
            view: PageView::Banks,
            swizzle: Some(SwizzleMode::B128),
            access: None,
            to: None,
        }
    }

    #[test]
    fn every_part_is_in_the_page() {
        let page = layout_page(&state("S[(8,16):(16,1)]"));
        assert!(SCRIPTS.iter().all(|script| page.contains(script)) && page.contains(STYLE));
        assert!(!["/*STYLE*/", "/*SCRIPT*/", "/*STATE*/"].iter().any(|placeholder| page.contains(placeholder)));
    }

    #[test]
    fn the_state_is_json_in_the_page() {
        let expected =
            r#"{"access":"","bits":16,"layout":"S[8:1]","shape":[8,16],"swizzle":128,"to":"","view":"banks"}"#;
        assert!(layout_page(&state("S[8:1]")).contains(expected));
    }

    #[test]
    fn the_address_says_the_state() {
        let address = state("S[8:1] + 5@m").address();
        assert_eq!(address, "l=S[8:1]%20+%205@m&s=8,16&b=16&w=128&v=banks");
    }

    #[test]
    fn no_text_of_the_state_ends_its_script() {
        let page = layout_page(&state("</script><script>/*STYLE*/"));
        assert!(page.contains(r#""layout":"\u003c/script>\u003cscript>/*STYLE*/""#));
    }

    #[test]
    fn the_page_loads_nothing() {
        let page = layout_page(&state("S[8:1]"));
        assert!(!["http:", "https:", "src=", "@import", "fetch("].iter().any(|sign| page.contains(sign)));
    }
}
