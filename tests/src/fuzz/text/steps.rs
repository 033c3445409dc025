//! The operations that are run on a parsed layout, with bounded arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tilewright::expr::{Expr, Var};
use tilewright::layout::axis::{M, REG, Scope};
use tilewright::layout::{
    Axis, Coord, ENUMERATION_LIMIT, Iter, Layout, LayoutError, RELATIONS, TableLayout, TileLayout, refine_together,
};
use tilewright::viz::layout::Show;

use crate::fuzz::brute::{axes_of, extents_of};
use crate::fuzz::generate;
use crate::rng::Rng;

/// The maximum number of places, or of positions on an axis, of a layout whose places are enumerated.
const MOST_LISTED: i64 = 4096;
/// The maximum number of places of one element for which a layout is drawn.
const MOST_DRAWN: i64 = 64;

/// A parsed layout and the arguments for its steps.
pub(crate) struct Case<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) layout: &'a Layout,
    /// The tile of the layout.
    pub(crate) tile: &'a TileLayout,
    /// A second layout for binary operations.
    pub(crate) other: &'a TileLayout,
}

/// Whether a step was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tried {
    /// It was run.
    Answered,
    /// It was skipped, since it would enumerate too many places.
    TooLarge,
}

/// A step; a wrong answer panics, which the caller reports.
pub(crate) type Step = fn(&mut Case<'_>) -> Result<Tried, LayoutError>;

/// All steps, by name.
pub(crate) const STEPS: &[(&str, Step)] = &[
    ("print", print),
    ("show", show),
    ("apply", apply),
    ("canonicalize", canonicalize),
    ("sizes", sizes),
    ("group", group),
    ("tile", tile),
    ("sum", sum),
    ("slice", slice),
    ("pieces", pieces),
    ("place", place),
    ("rearrange", rearrange),
    ("recast", recast),
    ("compose", compose),
    ("complement", complement),
    ("inverse", inverse),
    ("right inverse", right_inverse),
    ("compare", compare),
    ("contains", contains),
    ("scope", scope),
    ("split axis", split_axis),
    ("injective", injective),
    ("cover", cover),
    ("owners", owners),
    ("vector width", vector_width),
    ("table", table),
    ("expression", expression),
];

use Tried::{Answered, TooLarge};

/// The number of copies of every element, as written.
fn copies(tile: &TileLayout) -> i64 {
    tile.replica().iter().fold(1i64, |copies, iter| copies.saturating_mul(iter.extent))
}

/// True if all places may be enumerated.
fn is_small(tile: &TileLayout) -> bool {
    tile.size().saturating_mul(copies(tile)) <= MOST_LISTED
}

impl Case<'_> {
    /// A random element of the layout.
    fn element(&mut self) -> i64 {
        self.rng.within(0..=self.tile.size() - 1)
    }

    fn axis(&mut self) -> Axis {
        generate::axis_of(self.rng, self.tile)
    }

    /// A shape that usually has the layout's size.
    fn shape(&mut self) -> Vec<i64> {
        let size = self.tile.size();
        match self.rng.below(5) {
            0 => vec![size],
            1 => vec![size, 1],
            2 => {
                let part = *self.rng.pick(&[2, 3, 4, 8, 32, 0]);
                vec![size / part.max(1), part]
            }
            _ => {
                let rank = self.rng.within(1..=4) as usize;
                generate::joined(self.rng, &extents_of(self.tile), rank)
            }
        }
    }

    /// A few indices of every dimension, or all of them.
    fn region(&mut self, shape: &[i64]) -> Vec<Range<i64>> {
        let mut region = Vec::new();
        for &extent in shape {
            let start = self.rng.within(0..=extent.max(1) - 1);
            let few = start..start + self.rng.within(1..=6);
            region.push(if self.rng.percent(30) { 0..extent } else { few });
        }
        region
    }

    /// A box as large as the span on every axis.
    fn sides(&self) -> Vec<(Axis, i64)> {
        axes_of(&[self.tile]).into_iter().map(|axis| (axis.clone(), self.tile.span_on(&axis).max(1))).collect()
    }

    /// True if the positions on every axis may be enumerated.
    fn is_narrow(&self) -> bool {
        axes_of(&[self.tile]).iter().all(|axis| self.tile.cosize_on(axis) <= MOST_LISTED)
    }
}

fn print(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let text = case.layout.to_string();
    assert_eq!(&text.parse::<Layout>()?, case.layout, "`{text}` parsed again");
    assert!(!format!("{:?}", case.layout).is_empty());
    Ok(Answered)
}

fn show(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    if copies(case.tile) > MOST_DRAWN {
        return Ok(TooLarge);
    }
    let shown = case.layout.show();
    assert!(shown.lines().count() <= 40, "{} lines", shown.lines().count());
    Ok(Answered)
}

fn apply(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    // Beyond the limit, the call must be refused at once.
    if (MOST_LISTED + 1..=ENUMERATION_LIMIT).contains(&copies(case.tile)) {
        return Ok(TooLarge);
    }
    let element = case.element();
    let digits = case.tile.digits_in(&[element], &[case.tile.size()])?;
    let places = case.tile.apply(element)?;
    assert!(!places.is_empty() && places.is_sorted() && digits.iter().all(|digit| *digit >= 0));
    assert_eq!(case.layout.apply(element)?.len(), places.len(), "a swizzle preserves the number of places");
    assert!(case.layout.apply(case.tile.size()).is_err() && case.layout.apply(-1).is_err());
    Ok(Answered)
}

fn canonicalize(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let canonical = case.tile.canonicalize();
    assert_eq!(canonical.canonicalize(), canonical);
    assert_eq!(canonical.size(), case.tile.size());
    if let Layout::Compose(compose) = case.layout {
        assert_eq!(compose.canonicalize().size(), case.tile.size());
    }
    Ok(Answered)
}

fn sizes(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let axis = case.axis();
    let tile = case.tile;
    let (span, least, cosize) = (tile.span_on(&axis), tile.least_on(&axis), tile.cosize_on(&axis));
    assert_eq!(span - least, cosize);
    assert!(tile.size_on(&axis) <= tile.size() && tile.storage().size() <= tile.size());
    let _ = (tile.span(), tile.is_trivial(), tile.replicated_over(), case.layout.memory_span());
    tile.renamed(&axis, &REG)?.to_string().parse::<TileLayout>().map(|_| Answered)
}

fn group(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let (one, two) = (case.shape(), case.shape());
    let grouped = case.tile.group(&one)?;
    assert_eq!(grouped.separators.len(), one.len() + 1);
    case.tile.group_many(&[one, two])?;
    refine_together(&[case.tile, case.other]).map(|_| Answered)
}

fn tile(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let (shape, whole) = ([case.tile.size()], [case.tile.size() * 2]);
    if let Layout::Compose(compose) = case.layout {
        compose.tile_to(&shape, &whole)?;
    }
    let twice = case.tile.tile_to(&shape, &whole)?;
    assert_eq!(twice.size(), whole[0]);
    assert!(case.tile.is_tile_inner(&shape, &twice, &whole)?.is_some(), "the tile is found in its own tiling");
    let product = case.tile.product(case.other)?;
    case.other.is_tile_outer(&[case.other.size()], &product, &[product.size()]).map(|_| Answered)
}

fn sum(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let sum = case.tile.concatenate(case.other)?;
    let (left, right) = (case.tile.size(), case.other.size());
    assert_eq!(sum.size(), left * right);
    case.tile.is_direct_sum_left(&[left], &sum, &[left, right])?;
    case.other.is_direct_sum_right(&[right], &sum, &[left, right]).map(|_| Answered)
}

fn slice(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let shape = case.shape();
    let region = case.region(&shape);
    let sliced = case.layout.slice(&shape, &region)?;
    assert_eq!(sliced.size(), region.iter().map(|range| range.end - range.start).product::<i64>());
    Ok(Answered)
}

fn pieces(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let shape = case.shape();
    let region = case.region(&shape);
    let pieces = case.tile.pieces(&shape, &region)?;
    let elements: i64 = pieces.iter().map(|piece| piece.layout.size()).sum();
    assert_eq!(elements, region.iter().map(|range| range.end - range.start).product::<i64>());
    Ok(Answered)
}

fn place(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let shape = case.shape();
    let region = case.region(&shape);
    let extents: Vec<i64> = region.iter().map(|range| range.end - range.start).collect();
    let starts: Vec<Expr> = region.iter().map(|range| Expr::constant(range.start)).collect();
    case.layout.place(&shape, &starts, &extents).map(|_| Answered)
}

fn rearrange(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let rank = case.tile.shard().len();
    let permutation = generate::permutation(case.rng, rank);
    assert_eq!(case.tile.permute_dims(&permutation)?.size(), case.tile.size());
    let (extent, position) = (case.rng.within(0..=5), case.rng.below(rank + 2));
    case.tile.permute_groups(&[0, rank], &[0])?;
    case.tile.broadcast(extent, position).map(|_| Answered)
}

fn recast(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let count = *case.rng.pick(&[1, 2, 2, 2, 3, 4, 0, -1, i64::MAX]);
    if let Layout::Compose(compose) = case.layout {
        compose.unpack(count)?;
        return compose.pack(count).map(|_| Answered);
    }
    let narrower = case.tile.unpack(count)?;
    assert_eq!(narrower.pack(count)?.canonicalize(), case.tile.canonicalize());
    case.tile.pack(count).map(|_| Answered)
}

fn compose(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    if !is_small(case.tile) || !is_small(case.other) || copies(case.tile) > MOST_DRAWN {
        return Ok(TooLarge);
    }
    let start = case.element();
    let count = case.rng.within(1..=case.tile.size() - start).min(24);
    let walk = TileLayout::new(vec![Iter::memory(count, 1)], Vec::new(), [(M, start)])?;
    let composed = case.layout.compose(&Layout::Tile(walk))?;
    assert_eq!(moved(composed.apply(0)?), moved(case.layout.apply(start)?));
    case.layout.compose(&Layout::Tile(case.other.clone())).map(|_| Answered)
}

/// Places without the axes on which they are at 0.
fn moved(places: Vec<Coord>) -> BTreeSet<Coord> {
    let without_zeros = |place: Coord| place.into_iter().filter(|(_, position)| *position != 0).collect();
    places.into_iter().map(without_zeros).collect()
}

fn complement(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let axis = case.axis();
    let span = case.tile.span_on(&axis);
    let bound = if case.rng.percent(70) { span * case.rng.within(1..=3) } else { case.rng.within(-1..=4096) };
    case.tile.complement(&axis, bound).map(|_| Answered)
}

fn inverse(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    if !is_small(case.tile) {
        return Ok(TooLarge);
    }
    let element = case.element();
    let place = case.tile.apply(element)?.remove(0);
    let pseudo = case.tile.pseudo_inverse()?;
    assert!(pseudo.element_at(&place).is_some_and(|least| least <= element), "{pseudo} at {place:?}");
    let left = case.tile.left_inverse()?;
    assert_eq!(left.element_at(&place), Some(element), "{left} at {place:?}");
    Ok(Answered)
}

fn right_inverse(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let sides = case.sides();
    let places = sides.iter().fold(1i64, |places, (_, side)| places.saturating_mul(*side));
    if places > MOST_LISTED || !is_small(case.tile) || !case.is_narrow() {
        return Ok(TooLarge);
    }
    let inverse = case.tile.right_inverse(&sides)?;
    assert_eq!(inverse.size(), places);
    Ok(Answered)
}

fn compare(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    if copies(case.tile) > MOST_LISTED || copies(case.other) > MOST_LISTED {
        return Ok(TooLarge);
    }
    let same = case.tile.same_places(case.other)?;
    assert!(case.tile.same_places(&case.tile.canonicalize())?, "the normal form has the same places");
    assert!(!same || case.tile.same_up_to_replicas(case.other));
    case.tile.first_difference(case.other).map(|_| Answered)
}

fn contains(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let sizes = [case.tile.size(), copies(case.tile), copies(case.other)];
    if sizes.iter().any(|size| *size > MOST_LISTED) {
        return Ok(TooLarge);
    }
    assert!(case.tile.contains(case.tile)?, "itself");
    case.tile.contains(case.other).map(|_| Answered)
}

fn scope(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let scope = *case.rng.pick(&[Scope::Cta, Scope::Cta, Scope::Warpgroup, Scope::Warp, Scope::Mesh]);
    let _ = case.tile.scope()?;
    let relation = case.rng.pick(&RELATIONS).clone();
    assert_eq!(case.tile.join_axes(&relation)?.size(), case.tile.size());
    case.tile.in_scope(scope).map(|_| Answered)
}

fn split_axis(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let relation = case.rng.pick(&RELATIONS).clone();
    let split = case.tile.split_axis(&relation)?;
    assert_eq!(split.size(), case.tile.size());
    Ok(Answered)
}

fn injective(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    if !is_small(case.tile) && !case.rng.percent(5) {
        return Ok(TooLarge);
    }
    case.layout.is_injective().map(|_| Answered)
}

fn cover(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    if !is_small(case.tile) || !case.is_narrow() {
        return Ok(TooLarge);
    }
    let sides: BTreeMap<Axis, i64> = case.sides().into_iter().collect();
    let (onto, bijective) = (case.layout.is_onto(&sides)?, case.layout.is_bijective(&sides)?);
    assert!(onto || !bijective);
    Ok(Answered)
}

fn owners(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    if !is_small(case.tile) {
        return Ok(TooLarge);
    }
    let element = case.element();
    let mut place = case.layout.apply(element)?.remove(0);
    assert!(case.layout.elements_at(&place)?.contains(&element), "the element is missing at {place:?}");
    let mut owner = place.clone();
    owner.retain(|_, _| case.rng.percent(50));
    assert!(case.layout.elements_of(&owner)?.contains(&element), "the element is missing for {owner:?}");
    let axis = case.axis();
    place.insert(axis, case.rng.within(-2..=2));
    case.layout.elements_at(&place).map(|_| Answered)
}

fn vector_width(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let axis = case.axis();
    assert_eq!(case.tile.size() % case.tile.vector_width(&axis), 0);
    if !is_small(case.tile) {
        return Ok(TooLarge);
    }
    case.layout.vector_width(&axis).map(|_| Answered)
}

fn table(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    if !is_small(case.tile) {
        return Ok(TooLarge);
    }
    let elements = (0..case.tile.size()).map(|element| case.layout.apply(element));
    let table = TableLayout::new(&elements.collect::<Result<Vec<_>, _>>()?)?;
    assert!(case.layout.same_places(&Layout::Table(table.clone()))?, "the table has the same places");
    assert_eq!(TableLayout::from_text(&table.to_text())?, table);
    Ok(Answered)
}

fn expression(case: &mut Case<'_>) -> Result<Tried, LayoutError> {
    let (axis, element) = (case.axis(), case.element());
    let var = Var::new("x", 0, case.tile.size() - 1);
    let position = case.tile.position_expr(&Expr::var(&var), &axis).eval(&|_| Some(element));
    assert_eq!(position, Ok(case.tile.position(element, &axis)), "element {element} on {axis}");
    let memory = case.layout.memory_expr(&Expr::var(&var))?.eval(&|_| Some(element));
    assert_eq!(memory, Ok(case.layout.memory_position(element)), "element {element}");
    Ok(Answered)
}
