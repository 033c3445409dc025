//! Layouts composed of two parts, exactly or slightly perturbed, and checks of the parts found in them.

use tilewright::layout::{Axis, LayoutError, TileLayout};

use crate::fuzz::brute::extents_of;
use crate::fuzz::generate;
use crate::fuzz::interleave::{Part, Scaled};
use crate::fuzz::judge::{Ended, Outcome, accept, error_text};
use crate::fuzz::vary::{perturbed, respelled};
use crate::rng::Rng;

/// Two layouts and the whole that they make, or a slightly different one.
pub(crate) struct Built {
    pub(crate) outer: TileLayout,
    pub(crate) inner: TileLayout,
    pub(crate) outer_shape: Vec<i64>,
    pub(crate) inner_shape: Vec<i64>,
    pub(crate) whole: TileLayout,
    /// Whether the whole is exactly what the two parts make.
    pub(crate) is_true: bool,
}

/// A layout on these axes with a shape of `rank` dimensions; a few of the shapes do not group the iters.
pub(crate) fn shaped(rng: &mut Rng, axes: &[Axis], rank: usize, budget: i64) -> (TileLayout, Vec<i64>) {
    let extents = generate::extents(rng, budget);
    let layout = generate::with_extents(rng, &extents, axes);
    let given = if rng.percent(10) { generate::factors(rng, layout.size()) } else { extents_of(&layout) };
    let shape = generate::joined(rng, &given, rank);
    (layout, shape)
}

/// A whole, a tiling or a sum, and the two parts that it was made from.
pub(crate) fn built(rng: &mut Rng, scaled: Scaled) -> Result<Built, String> {
    let (axes, rank) = (generate::axes(rng), rng.within(1..=3) as usize);
    let (outer_extents, inner_extents) = (generate::extents(rng, 12), generate::extents(rng, 24));
    let outer = generate::with_extents(rng, &outer_extents, &axes);
    let inner = generate::with_extents(rng, &inner_extents, &axes);
    let outer_shape = generate::joined(rng, &outer_extents, rank);
    let inner_shape = generate::joined(rng, &inner_extents, rank);
    let whole = match scaled {
        Scaled::Yes => inner.tile(&inner_shape, &outer, &outer_shape),
        Scaled::No => inner.direct_sum(&inner_shape, &outer, &outer_shape),
    };
    let whole = whole.map_err(error_text)?;
    let is_true = rng.percent(50);
    let whole = if is_true { respelled(rng, &whole) } else { perturbed(rng, &whole) };
    Ok(Built { outer, inner, outer_shape, inner_shape, whole, is_true })
}

/// Checks the result of a search for a part. It may be refused only if the whole does not group, it must succeed if the
/// whole was made of parts, and it may find nothing only if brute force does not prove that a part exists.
pub(crate) fn judge_part(
    call: &dyn Fn() -> String,
    found: Result<Option<TileLayout>, LayoutError>,
    groups: bool,
    is_true: bool,
    part: impl FnOnce() -> Part,
    makes: impl FnOnce(&TileLayout) -> Result<(), String>,
) -> Outcome {
    match found {
        Ok(Some(part)) => accept(call, makes(&part).map_err(|what| format!("found {part}, which makes {what}"))),
        Ok(None) if is_true => Err(format!("{}: none found, but the whole was made of one", call())),
        Ok(None) => match part() {
            Part::Certain => Err(format!("{}: none found, but one exists", call())),
            Part::Possible => Ok(Ended::Refused("none (copies)")),
            Part::Impossible => Ok(Ended::Refused("none")),
        },
        Err(error) if groups => Err(format!("{}: refused: {error}", call())),
        Err(error) => Ok(Ended::Refused(error.code())),
    }
}
