//! Swizzles over tiles: rearranging acts on the underlying tile, and every address is then swizzled.

use tilewright::expr::{Expr, Var};
use tilewright::layout::axis::M;
use tilewright::layout::{ComposeLayout, Layout, LayoutError, TileLayout};

use super::kinds::{Sets, sets_of, swizzle, swizzled, turned};
use super::parts::shaped;
use super::recast::{packable, packs};
use super::slice::{elements_of, is_inside};
use crate::fuzz::affine::is_affine;
use crate::fuzz::brute::{Places, axes_of, extents_of, first_places, groups, nest};
use crate::fuzz::generate;
use crate::fuzz::interleave::{Scaled, Shapes};
use crate::fuzz::judge::{Ended, Outcome, accept, ensure, equal, error_text, judge};
use crate::rng::Rng;

/// The addresses of each element.
fn addresses(layout: &ComposeLayout) -> Sets {
    sets_of(&Layout::Compose(layout.clone()), &[M])
}

/// The addresses of each element of a tile under the swizzle of `layout`.
fn under(layout: &ComposeLayout, tile: &Places) -> Sets {
    let turn = |place: &Vec<i64>| vec![turned(layout.swizzle(), place[0])];
    (0..tile.base.len()).map(|element| tile.set(element).iter().map(turn).collect()).collect()
}

/// Every place of the tile, swizzled; on linear memory, an expression gives the same.
pub(crate) fn apply(rng: &mut Rng) -> Outcome {
    let compose = swizzled(rng, 64);
    let layout = Layout::Compose(compose.clone());
    let element = rng.below(layout.size() as usize);
    let call = || format!("`{layout}`, element {element}");
    let check = || {
        let sets = addresses(&compose);
        let got: Vec<i64> = layout.apply(element as i64).map_err(error_text)?.iter().map(|place| place[&M]).collect();
        equal(&got, &sets[element].iter().map(|place| place[0]).collect())?;
        let first = first_places(compose.tile(), &[M]);
        let positions: Vec<i64> = first.iter().map(|place| turned(compose.swizzle(), place[0])).collect();
        equal(&layout.memory_positions(), &positions)?;
        equal(&layout.memory_position(element as i64), &positions[element])?;
        let var = Var::new("x", 0, layout.size() - 1);
        let expr = layout.memory_expr(&Expr::var(&var)).map_err(error_text)?;
        equal(&expr.eval(&|_| Some(element as i64)), &Ok(positions[element]))?;
        let end = sets.iter().flatten().map(|place| place[0] + 1).max().unwrap_or(0);
        ensure(end <= layout.memory_span(), || format!("{end} is beyond the span {}", layout.memory_span()))
    };
    accept(&call, check())
}

/// The normal form preserves all places and is idempotent.
pub(crate) fn canonicalize(rng: &mut Rng) -> Outcome {
    let compose = swizzled(rng, 64);
    let call = || format!("`{compose}`.canonicalize()");
    let canonical = compose.canonicalize();
    let check = || {
        equal(&sets_of(&canonical, &[M]), &addresses(&compose))?;
        match &canonical {
            Layout::Compose(again) => equal(&again.canonicalize(), &canonical),
            Layout::Tile(tile) => equal(&tile.canonicalize(), tile),
            Layout::Table(table) => Err(format!("{table}")),
        }
    };
    accept(&call, check())
}

/// `count * pack(n)(x) = self(n*x)`, if the swizzle keeps that many elements together.
pub(crate) fn pack(rng: &mut Rng) -> Outcome {
    let (swizzle, mut tile) = (swizzle(rng), generate::memory(rng, 48));
    let count = *rng.pick(&[1, 2, 2, 4, 8, 3]);
    if rng.percent(85) {
        tile = packable(rng, &tile, count, M);
    }
    let compose = ComposeLayout::new(swizzle, tile).map_err(error_text)?;
    let keeps = 1i64 << swizzle.per_element();
    let legal = [1, 2, 4, 8].contains(&count) && count <= keeps && packs(compose.tile(), count);
    judge(&|| format!("`{compose}`.pack({count})"), compose.pack(count), legal, |got| {
        let first = addresses(&compose).into_iter().step_by(count as usize);
        let wide = addresses(&got).into_iter().map(|set| set.iter().map(|place| vec![place[0] * count]).collect());
        equal(&wide.collect::<Sets>(), &first.collect())
    })
}

/// `unpack(n)(n*x + k) = n * self(x) + k`.
pub(crate) fn unpack(rng: &mut Rng) -> Outcome {
    let compose = swizzled(rng, 48);
    let count = *rng.pick(&[1, 2, 4, 8, 3, 0]);
    let legal = [1, 2, 4, 8].contains(&count);
    judge(&|| format!("`{compose}`.unpack({count})"), compose.unpack(count), legal, |got| {
        let wide = addresses(&compose);
        let part = |element: i64| {
            let set = &wide[(element / count) as usize];
            set.iter().map(|place| vec![place[0] * count + element % count]).collect()
        };
        equal(&addresses(&got), &(0..got.tile().size()).map(part).collect())
    })
}

/// A slice has the addresses of its region; refused only if those of the tile are not affine.
pub(crate) fn slice(rng: &mut Rng) -> Outcome {
    let compose = swizzled(rng, 64);
    let layout = Layout::Compose(compose.clone());
    let shape = generate::any_shape(rng, compose.tile());
    let region = generate::region(rng, &shape);
    let legal = is_inside(&region, &shape) && nest(&[&extents_of(compose.tile()), &shape]);
    let call = || format!("`{layout}`.slice({shape:?}, {region:?})");
    match layout.slice(&shape, &region) {
        Err(error @ LayoutError::NotAffine { .. }) if legal => {
            let places = Places::of(compose.tile(), &[M]).select(&elements_of(&region, &shape));
            ensure(!is_affine(&places.base), || format!("{}: {error}", call()))?;
            Ok(Ended::Refused(error.code()))
        }
        answer => judge(&call, answer, legal, |got| {
            let all = addresses(&compose);
            let expected: Sets = elements_of(&region, &shape).iter().map(|&element| all[element].clone()).collect();
            equal(&sets_of(&got, &[M]), &expected)
        }),
    }
}

/// Checks a tiling or a sum under a swizzle; it must stay on linear memory, at non-negative positions.
fn judge_whole(
    call: &dyn Fn() -> String,
    got: Result<ComposeLayout, LayoutError>,
    (compose, outer): (&ComposeLayout, &TileLayout),
    shapes: Shapes<'_>,
    scaled: Scaled,
) -> Outcome {
    let groups = groups(outer, shapes.outer) && groups(compose.tile(), shapes.inner);
    let (outer_places, inner) = (Places::of(outer, &[M]), Places::of(compose.tile(), &[M]));
    let expected = groups.then(|| shapes.combined(&outer_places, &inner, scaled));
    let legal = expected.as_ref().is_some_and(|places| places.least(0) >= 0);
    let stays = axes_of(&[&outer.canonicalize()]).iter().all(|axis| *axis == M);
    judge(call, got, legal && stays, |got| {
        equal(&Some(addresses(&got)), &expected.map(|places| under(compose, &places)))
    })
}

/// [`TileLayout::tile`], `tile_to` and `direct_sum` of the underlying tile; the result is swizzled as a whole.
pub(crate) fn tile(rng: &mut Rng) -> Outcome {
    let rank = rng.within(1..=3) as usize;
    let (compose, (outer, outer_shape)) = (swizzled(rng, 24), shaped(rng, &[M], rank, 12));
    let shape = generate::joined(rng, &extents_of(compose.tile()), rank);
    let shapes = Shapes { outer: &outer_shape, inner: &shape };
    match rng.below(3) {
        0 => {
            let call = || format!("`{compose}`.tile_by({shape:?}, `{outer}`, {outer_shape:?})");
            let got = compose.tile_by(&shape, &outer, &outer_shape);
            judge_whole(&call, got, (&compose, &outer), shapes, Scaled::Yes)
        }
        1 => {
            let outer = TileLayout::row_major(&outer_shape).map_err(error_text)?;
            let call = || format!("`{compose}`.tile_to({shape:?}, {:?})", shapes.whole());
            let got = compose.tile_to(&shape, &shapes.whole());
            judge_whole(&call, got, (&compose, &outer), shapes, Scaled::Yes)
        }
        _ => {
            let call = || format!("`{compose}`.direct_sum({shape:?}, `{outer}`, {outer_shape:?})");
            let got = compose.direct_sum(&shape, &outer, &outer_shape);
            judge_whole(&call, got, (&compose, &outer), shapes, Scaled::No)
        }
    }
}

/// In a tiling of a swizzled tile, the outer layout and the swizzled tile are found, and they make the same tiling.
pub(crate) fn parts(rng: &mut Rng) -> Outcome {
    let rank = rng.within(1..=3) as usize;
    let (compose, outer) = (swizzled(rng, 24), generate::memory(rng, 12));
    let shape = generate::joined(rng, &extents_of(compose.tile()), rank);
    let outer_shape = generate::joined(rng, &extents_of(&outer), rank);
    let shapes = Shapes { outer: &outer_shape, inner: &shape };
    let whole = match compose.tile_by(&shape, &outer, &outer_shape) {
        Ok(whole) => whole,
        Err(error) => return Ok(Ended::Refused(error.code())),
    };
    let call = || format!("the parts {outer_shape:?} of {shape:?} in `{whole}`, made of `{compose}` at `{outer}`");
    let check = || {
        let found =
            compose.is_tile_inner(&shape, &whole, &shapes.whole()).map_err(error_text)?.ok_or("no outer part")?;
        let again = compose.tile_by(&shape, &found, &outer_shape).map_err(error_text)?;
        equal(&addresses(&again), &addresses(&whole))?;
        let found =
            whole.inner_tile(&shapes.whole(), &outer, &outer_shape).map_err(error_text)?.ok_or("no inner part")?;
        let again = found.tile_by(&shape, &outer, &outer_shape).map_err(error_text)?;
        equal(&addresses(&again), &addresses(&whole))
    };
    accept(&call, check())
}

/// `permute_dims` and `broadcast` act on the underlying tile; addresses are swizzled as before.
pub(crate) fn rearranged(rng: &mut Rng) -> Outcome {
    let compose = swizzled(rng, 48);
    let rank = compose.tile().shard().len();
    let permutation = generate::permutation(rng, rank);
    let (extent, position) = (rng.within(1..=3), rng.below(rank + 1));
    let call = || format!("`{compose}`.permute_dims({permutation:?}), .broadcast({extent}, {position})");
    let check = || {
        let permuted = compose.permute_dims(&permutation).map_err(error_text)?;
        let tile = compose.tile().permute_dims(&permutation).map_err(error_text)?;
        equal(&addresses(&permuted), &under(&compose, &Places::of(&tile, &[M])))?;
        let repeated = compose.broadcast(extent, position).map_err(error_text)?;
        let tile = compose.tile().broadcast(extent, position).map_err(error_text)?;
        equal(&addresses(&repeated), &under(&compose, &Places::of(&tile, &[M])))
    };
    accept(&call, check())
}
