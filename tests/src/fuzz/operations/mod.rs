//! All operations and queries, each with a check of its definition on random input.

mod compare;
mod compose;
mod cover;
mod form;
mod group;
mod inverse;
mod kinds;
mod owner;
mod parts;
mod rearrange;
mod recast;
mod scope;
mod slice;
mod sum;
mod swizzled;
mod table;
mod tiling;

use super::judge::Outcome;
use crate::rng::Rng;

/// An operation, and a function that checks it on one random input.
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) check: fn(&mut Rng) -> Outcome,
}

const fn operation(name: &'static str, check: fn(&mut Rng) -> Outcome) -> Operation {
    Operation { name, check }
}

/// All operations, in the order of the report.
pub(crate) const OPERATIONS: &[Operation] = &[
    operation("parse and print", form::parse_print),
    operation("apply", form::apply),
    operation("apply_in, apply_digits", form::apply_in),
    operation("positions, position_expr", form::positions),
    operation("canonicalize", form::canonicalize),
    operation("canonicalize, of a pair", form::canonical_pair),
    operation("renamed", form::renamed),
    operation("is_trivial", form::is_trivial),
    operation("group", group::group),
    operation("group_many", group::group_many),
    operation("refine_together", group::refine),
    operation("tile", tiling::tile),
    operation("tile_to", tiling::tile_to),
    operation("product", tiling::product),
    operation("is_tile_inner", tiling::is_tile_inner),
    operation("is_tile_outer", tiling::is_tile_outer),
    operation("direct_sum", sum::direct_sum),
    operation("concatenate", sum::concatenate),
    operation("is_direct_sum_left", sum::is_direct_sum_left),
    operation("is_direct_sum_right", sum::is_direct_sum_right),
    operation("slice", slice::slice),
    operation("pieces", slice::pieces),
    operation("place", slice::place),
    operation("permute_dims", rearrange::permute_dims),
    operation("permute_groups", rearrange::permute_groups),
    operation("broadcast", rearrange::broadcast),
    operation("storage", rearrange::storage),
    operation("pack", recast::pack),
    operation("unpack", recast::unpack),
    operation("compose", compose::compose),
    operation("compose, any kind", compose::compose_any),
    operation("complement", inverse::complement),
    operation("left_inverse", inverse::left_inverse),
    operation("pseudo_inverse", inverse::pseudo_inverse),
    operation("right_inverse", inverse::right_inverse),
    operation("scope", scope::scope),
    operation("in_scope", scope::in_scope),
    operation("same_places_in", scope::same_places_in),
    operation("join_axes", scope::join_axes),
    operation("split_axis", scope::split_axis),
    operation("same_places", compare::same_places),
    operation("same_up_to_replicas", compare::same_up_to_replicas),
    operation("first_difference", compare::first_difference),
    operation("contains", compare::contains),
    operation("spans and sizes", cover::spans),
    operation("is_injective", cover::is_injective),
    operation("is_onto", cover::is_onto),
    operation("is_bijective", cover::is_bijective),
    operation("is_onto, is_bijective, any kind", cover::cover_of_any),
    operation("replicated_over", cover::replicated_over),
    operation("vector_width, any kind", cover::vector_width),
    operation("elements_at", owner::elements_at),
    operation("elements_at, _of, swizzle and table", owner::elements_of_any),
    operation("elements_of", owner::elements_of),
    operation("table: apply", table::apply),
    operation("table: the answers of the tile", table::questions),
    operation("table: first_difference", table::difference),
    operation("table: text, select", table::text),
    operation("table: slice", table::slice),
    operation("swizzle: apply", swizzled::apply),
    operation("swizzle: canonicalize", swizzled::canonicalize),
    operation("swizzle: pack", swizzled::pack),
    operation("swizzle: unpack", swizzled::unpack),
    operation("swizzle: slice", swizzled::slice),
    operation("swizzle: tile_by, tile_to, sum", swizzled::tile),
    operation("swizzle: is_tile_inner, inner_tile", swizzled::parts),
    operation("swizzle: permute, broadcast", swizzled::rearranged),
];
