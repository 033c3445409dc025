//! A layout as JSON, for scripts.

use std::fmt::{self, Write};

use serde_json::{Map, Value, json};
use tilewright_layout::{Axis, LayoutError};

use crate::layout::view::{Cell, LayoutView, Place};

/// The member that lists the elements.
const CELLS: &str = "cells";
/// Elements are written in pieces of about this many bytes: one by one would be slow, all at once would fill memory.
const PIECE: usize = 1 << 16;

/// A layout as JSON text; see [`to_json`]. It is written element by element, so its size does not affect memory use.
#[derive(Clone, Debug)]
pub struct LayoutJson<'a> {
    view: &'a LayoutView,
    /// Members of the JSON object; the value of [`CELLS`] is only a placeholder.
    members: Map<String, Value>,
}

/// Notation, shape, size, bits of an element, axes (owners first) and every element with its places:
///
/// ```json
/// {"notation": "S[2:1@reg]", "shape": [2], "size": 2, "bits": 32, "axes": [{"name": "reg", "part": "slot"}],
///  "cells": [{"index": 0, "coordinate": [0], "places": [{"reg": 0}]}]}
/// ```
///
/// The members are written in the order of their names, without spaces. Error: more places than may be enumerated.
pub fn to_json(view: &LayoutView) -> Result<LayoutJson<'_>, LayoutError> {
    view.check_points()?;
    let axis = |part: &'static str| move |axis: &Axis| json!({"name": axis.name(), "part": part});
    let owners = view.owner_axes().iter().map(axis("owner"));
    let axes: Vec<Value> = owners.chain(view.slot_axes().iter().map(axis("slot"))).collect();
    let bare = LayoutJson { view, members: Map::new() };
    Ok(bare
        .with("notation", json!(view.notation()))
        .with("shape", json!(view.shape()))
        .with("size", json!(view.size()))
        .with("bits", json!(view.bits()))
        .with("axes", Value::from(axes))
        // This only reserves their position among the members: the elements are written from the view.
        .with(CELLS, Value::Null))
}

impl LayoutJson<'_> {
    /// The same with one more member. The elements, `cells`, cannot be replaced.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.members.insert(name.to_string(), value);
        self
    }

    fn write_cells(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = labels(self.view);
        let mut text = String::from("[");
        for index in 0..self.view.size() {
            // Only elements outside the view have no cell.
            let cell = self.view.cell(index).map_err(|_| fmt::Error)?;
            text.push_str(if index == 0 { "" } else { "," });
            write_cell(&mut text, &cell, &labels)?;
            if text.len() >= PIECE {
                f.write_str(&text)?;
                text.clear();
            }
        }
        text.push(']');
        f.write_str(&text)
    }
}

impl fmt::Display for LayoutJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (at, (name, value)) in self.members.iter().enumerate() {
            write!(f, "{}{}:", comma(at), quoted(name))?;
            if name == CELLS {
                self.write_cells(f)?;
            } else {
                write!(f, "{value}")?;
            }
        }
        f.write_str("}")
    }
}

/// The text in front of an axis's position, and the index of the axis, owners first. Sorted by name.
type Label = (String, usize);

fn labels(view: &LayoutView) -> Vec<Label> {
    let axes = view.owner_axes().iter().chain(view.slot_axes()).enumerate();
    let mut named: Vec<(&str, usize)> = axes.map(|(at, axis)| (axis.name(), at)).collect();
    named.sort_unstable();
    named.into_iter().map(|(name, at)| (format!("{}:", quoted(name)), at)).collect()
}

fn write_cell(text: &mut String, cell: &Cell, labels: &[Label]) -> fmt::Result {
    text.push_str("{\"coordinate\":[");
    for (at, position) in cell.coordinate.iter().enumerate() {
        write!(text, "{}{position}", comma(at))?;
    }
    write!(text, "],\"index\":{},\"places\":[", cell.index)?;
    for (at, place) in cell.places.iter().enumerate() {
        text.push_str(comma(at));
        write_place(text, place, labels)?;
    }
    text.push_str("]}");
    Ok(())
}

fn write_place(text: &mut String, place: &Place, labels: &[Label]) -> fmt::Result {
    text.push('{');
    for (at, (label, axis)) in labels.iter().enumerate() {
        let position = place.owner.iter().chain(&place.slot).nth(*axis).unwrap_or(&0);
        write!(text, "{}{label}{position}", comma(at))?;
    }
    text.push('}');
    Ok(())
}

/// The comma in front of all items but the first.
fn comma(at: usize) -> &'static str {
    if at == 0 { "" } else { "," }
}

/// A text in JSON's quotes.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(notation: &str, shape: &[i64], bits: i64) -> LayoutView {
        LayoutView::new(&notation.parse().unwrap(), shape, bits).unwrap()
    }

    #[test]
    fn every_element_has_all_its_places() {
        let view = view("S[2:1@reg] + R[2:16@laneid]", &[1, 2], 16);
        let expected = json!({
            "notation": "S[2:1@reg] + R[2:16@laneid]",
            "shape": [1, 2],
            "size": 2,
            "bits": 16,
            "axes": [{"name": "laneid", "part": "owner"}, {"name": "reg", "part": "slot"}],
            "cells": [
                {"index": 0, "coordinate": [0, 0], "places": [{"laneid": 0, "reg": 0}, {"laneid": 16, "reg": 0}]},
                {"index": 1, "coordinate": [0, 1], "places": [{"laneid": 0, "reg": 1}, {"laneid": 16, "reg": 1}]},
            ],
        });
        assert_eq!(to_json(&view).unwrap().to_string(), expected.to_string());
    }

    /// The text equals that of a tree of values: members in order, no spaces between them.
    #[test]
    fn the_text_is_that_of_a_tree() {
        let layouts: [(&str, &[i64]); 4] = [
            ("S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1@m)] + R[2:4@warpid] + 5@warpid", &[8, 16]),
            ("S[(2,3):(1@gpuid_x,-2@m)]", &[6]),
            ("swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]", &[2, 4, 64]),
            ("S[1:0]", &[1]),
        ];
        for (notation, shape) in layouts {
            let view = view(notation, shape, 8);
            let told = to_json(&view).unwrap().with("to", Value::Null).with("a\"b", json!([1, "\n"]));
            let tree: Value = serde_json::from_str(&told.to_string()).unwrap();
            assert_eq!(told.to_string(), tree.to_string());
            assert_eq!(tree["cells"].as_array().unwrap().len() as i64, view.size());
            assert_eq!(tree["a\"b"], json!([1, "\n"]));
        }
    }

    /// The lengths of the pieces in which a text was written.
    #[derive(Default)]
    struct Pieces(Vec<usize>);

    impl Write for Pieces {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.push(text.len());
            Ok(())
        }
    }

    #[test]
    fn a_large_layout_is_never_all_in_memory() {
        let view = view("S[(256,256):(256,1)]", &[256, 256], 32);
        let told = to_json(&view).unwrap();
        let mut pieces = Pieces::default();
        write!(pieces, "{told}").unwrap();
        let (longest, all) = (pieces.0.iter().max().unwrap(), pieces.0.iter().sum::<usize>());
        assert!(*longest < 2 * PIECE && all > 40 * PIECE, "{longest} of {all}");
        assert_eq!(all, told.to_string().len());
        // Each piece is worth a call.
        assert!(pieces.0.len() < all / PIECE + 100, "{} pieces", pieces.0.len());
    }

    #[test]
    fn a_tensor_too_large_to_list_is_an_error() {
        assert_eq!(to_json(&view("S[(8192,8192):(8192,1)]", &[8192, 8192], 32)).unwrap_err().code(), "L0111");
    }
}
