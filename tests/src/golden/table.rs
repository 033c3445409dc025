//! Layouts as tables: the place of every element, by brute force from shard, replica and offset.

use std::collections::BTreeMap;

use serde_json::Value;
use tilewright::layout::{Axis, Iter, Layout, TileLayout};

/// `{"shard": [[extent, stride, axis], ..], "replica": [..], "offset": {..}}` as a layout.
pub(crate) fn structured(value: &Value) -> Result<TileLayout, String> {
    let iters = |list: &Value| -> Result<Vec<Iter>, String> {
        let list = list.as_array().ok_or_else(|| format!("expected a list of iters: {list}"))?;
        list.iter()
            .map(|item| {
                let number = |i: usize| item[i].as_i64().ok_or_else(|| format!("expected a number in {item}"));
                let axis = item[2].as_str().ok_or_else(|| format!("expected an axis in {item}"))?;
                Ok(Iter { extent: number(0)?, stride: number(1)?, axis: Axis::named(axis) })
            })
            .collect()
    };
    let offset = value["offset"].as_object().ok_or("no offset")?;
    let offset = offset.iter().map(|(axis, v)| (Axis::named(axis), v.as_i64().unwrap_or(0)));
    TileLayout::new(iters(&value["shard"])?, iters(&value["replica"])?, offset).map_err(|e| e.to_string())
}

/// The place of every element, as one position per axis of `axes`; replicas are a sorted list of distinct offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) base: Vec<Vec<i64>>,
    pub(crate) replicas: Vec<Vec<i64>>,
}

/// Evaluates the parts independently of the library's `apply`.
pub(crate) fn table(layout: &TileLayout, axes: &[String]) -> Table {
    let base = (0..layout.size()).map(|flat| place(layout, flat, axes)).collect();
    let mut replicas = vec![vec![0; axes.len()]];
    for iter in layout.replica() {
        replicas = replicas
            .iter()
            .flat_map(|offset| {
                (0..iter.extent).map(|k| {
                    let mut moved = offset.clone();
                    if let Some(at) = axes.iter().position(|axis| axis == iter.axis.name()) {
                        moved[at] += k * iter.stride;
                    }
                    moved
                })
            })
            .collect();
        replicas.sort();
        replicas.dedup();
    }
    Table { base, replicas }
}

fn place(layout: &TileLayout, flat: i64, axes: &[String]) -> Vec<i64> {
    let mut sums: BTreeMap<&str, i64> = layout.offset().iter().map(|(axis, v)| (axis.name(), *v)).collect();
    let mut rest = flat;
    for iter in layout.shard().iter().rev() {
        *sums.entry(iter.axis.name()).or_insert(0) += rest % iter.extent * iter.stride;
        rest /= iter.extent;
    }
    axes.iter().map(|axis| sums.get(axis.as_str()).copied().unwrap_or(0)).collect()
}

/// The union of the axes of several layouts.
pub(crate) fn axes_of(layouts: &[&TileLayout]) -> Vec<String> {
    let mut names: Vec<String> = layouts.iter().flat_map(|l| l.axes()).map(|axis| axis.name().to_string()).collect();
    names.sort();
    names.dedup();
    names
}

/// True if two layouts map every element to the same set of places.
pub(crate) fn same_meaning(a: &TileLayout, b: &TileLayout) -> bool {
    let axes = axes_of(&[a, b]);
    table(a, &axes) == table(b, &axes)
}

/// Combines the thread axes into one thread index of the CTA; other axes are unchanged.
pub(crate) fn folded(layout: &TileLayout) -> Result<TileLayout, String> {
    let scale = |axis: &str| match axis {
        "laneid" | "tid_in_wg" | "tx" => Some(1),
        "warpid" | "wid_in_wg" => Some(32),
        "wgid" => Some(128),
        _ => None,
    };
    let fold = |iter: &Iter| match scale(iter.axis.name()) {
        Some(factor) => Iter { extent: iter.extent, stride: iter.stride * factor, axis: Axis::named("tx") },
        None => iter.clone(),
    };
    let offset = layout.offset().iter().map(|(axis, value)| match scale(axis.name()) {
        Some(factor) => (Axis::named("tx"), value * factor),
        None => (axis.clone(), *value),
    });
    let (shard, replica) = (layout.shard().iter().map(fold).collect(), layout.replica().iter().map(fold).collect());
    TileLayout::new(shard, replica, offset).map_err(|e| e.to_string())
}

/// Parses a layout.
pub(crate) fn parsed(value: &Value) -> Result<TileLayout, String> {
    let text = value.as_str().ok_or_else(|| format!("no layout: {value}"))?;
    text.parse().map_err(|e| format!("{text}: {e}"))
}

/// Parses a layout, possibly swizzled.
pub(crate) fn parsed_layout(value: &Value) -> Result<Layout, String> {
    let text = value.as_str().ok_or_else(|| format!("no layout: {value}"))?;
    text.parse().map_err(|e| format!("{text}: {e}"))
}
