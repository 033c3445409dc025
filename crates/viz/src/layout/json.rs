//! A layout as JSON, for scripts.

use serde_json::{Map, Value, json};
use tilewright_layout::LayoutError;

use crate::layout::view::{LayoutView, Place};

/// Notation, shape, size, bits of an element, axes (owners first) and every element with its places:
///
/// ```json
/// {"notation": "S[2:1@reg]", "shape": [2], "size": 2, "bits": 32, "axes": [{"name": "reg", "part": "slot"}],
///  "cells": [{"index": 0, "coordinate": [0], "places": [{"reg": 0}]}]}
/// ```
///
/// Error: more places than may be enumerated.
pub fn to_json(view: &LayoutView) -> Result<Value, LayoutError> {
    let axis = |part: &'static str| move |axis: &tilewright_layout::Axis| json!({"name": axis.name(), "part": part});
    let owners = view.owner_axes().iter().map(axis("owner"));
    let axes: Vec<Value> = owners.chain(view.slot_axes().iter().map(axis("slot"))).collect();
    let mut cells = Vec::new();
    for cell in view.cells()? {
        let cell = cell?;
        let places: Vec<Value> = cell.places.iter().map(|one| place(view, one)).collect();
        cells.push(json!({"index": cell.index, "coordinate": cell.coordinate, "places": places}));
    }
    Ok(json!({
        "notation": view.notation(),
        "shape": view.shape(),
        "size": view.size(),
        "bits": view.bits(),
        "axes": axes,
        "cells": cells,
    }))
}

fn place(view: &LayoutView, place: &Place) -> Value {
    let positions = view.positions(place).map(|(axis, position)| (axis.name().to_string(), Value::from(position)));
    Value::Object(positions.collect::<Map<String, Value>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_all_its_places() {
        let layout: tilewright_layout::Layout = "S[2:1@reg] + R[2:16@laneid]".parse().unwrap();
        let view = LayoutView::new(&layout, &[1, 2], 16).unwrap();
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
        assert_eq!(to_json(&view), Ok(expected));
    }

    #[test]
    fn a_tensor_too_large_to_list_is_an_error() {
        let layout: tilewright_layout::Layout = "S[(8192,8192):(8192,1)]".parse().unwrap();
        let view = LayoutView::new(&layout, &[8192, 8192], 32).unwrap();
        assert_eq!(to_json(&view).unwrap_err().code(), "L0111");
    }
}
