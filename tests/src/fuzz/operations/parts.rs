//! Wholes made of two layouts, true ones and perturbed ones, and how a part that is found in them is judged.

use tilewright::layout::{Axis, LayoutError, TileLayout};

use crate::fuzz::brute::extents_of;
use crate::fuzz::generate;
use crate::fuzz::interleave::{Part, Scaled};
use crate::fuzz::judge::{Ended, Outcome, accept, error_text};
use crate::fuzz::vary::{perturbed, respelled};
use crate::rng::Rng;

/// Two layouts and what they make together, or something a little different.
pub(crate) struct Built {
    pub(crate) outer: TileLayout,
    pub(crate) inner: TileLayout,
    pub(crate) outer_shape: Vec<i64>,
    pub(crate) inner_shape: Vec<i64>,
    pub(crate) whole: TileLayout,
    /// The whole is what the two make.
    pub(crate) is_true: bool,
}

/// A layout on these axes with a shape of `rank` dimensions; few shapes cannot be cut from the iters.
pub(crate) fn shaped(rng: &mut Rng, axes: &[Axis], rank: usize, budget: i64) -> (TileLayout, Vec<i64>) {
    let extents = generate::extents(rng, budget);
    let layout = generate::with_extents(rng, &extents, axes);
    let given = if rng.percent(10) { generate::factors(rng, layout.size()) } else { extents_of(&layout) };
    let shape = generate::joined(rng, &given, rank);
    (layout, shape)
}

/// A whole and the two it was made of: a tiling or a sum.
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

/// Judges a part that was looked for. It may be refused only where the whole does not group, must be found where the
/// whole was made of parts, and may be missed only where brute force does not say that there is one.
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
        Ok(None) if is_true => Err(format!("{}: none found, but it was made of one", call())),
        Ok(None) => match part() {
            Part::Certain => Err(format!("{}: none found, but there is one", call())),
            Part::Possible => Ok(Ended::Refused("none (copies)")),
            Part::Impossible => Ok(Ended::Refused("none")),
        },
        Err(error) if groups => Err(format!("{}: refused: {error}", call())),
        Err(error) => Ok(Ended::Refused(error.code())),
    }
}
