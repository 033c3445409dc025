//! Finds conflicting accesses of two iterations by listing what each iteration touches.

use tilewright_diag::Diagnostic;
use tilewright_expr::linear::{Linear, linear, normalize};
use tilewright_expr::points::{extent, value, values};
use tilewright_expr::{Expr, Var};
use tilewright_layout::Layout;

use super::iterations::{Iterations, MOST_POINTS};
use super::report::{self, Visit};
use super::touches::{Touch, is_excused};
use crate::tile::buffer::Space;
use crate::tile::kernel::Kernel;
use crate::tile::value::flat;
use crate::tile::verify::conditions::Condition;

/// The error for a conflict among accesses with known indices, or for one that cannot be decided.
pub(super) fn find(kernel: &Kernel, iterations: &Iterations, touches: &[&Touch]) -> Option<Diagnostic> {
    let listing = Listing::of(kernel, iterations, touches);
    let (some, all) = (listing.tied(), listing.outer());
    if !listing.is_in_reach(&some) && are_apart_without_loops(kernel, iterations, touches) {
        return None;
    }
    // Variables that shift all accesses alike do not matter, and if nothing meets without them, neither do conditions
    // on them.
    let first = match listing.is_in_reach(&some) {
        true => listing.first(&some, some.len() < all.len())?,
        false => listing.undecided(),
    };
    if some.len() == all.len() {
        return Some(first);
    }
    match listing.is_in_reach(&all) {
        true => listing.first(&all, false),
        false => Some(listing.undecided()),
    }
}

/// Whether the dimensions whose indices do not depend on the loops inside iterations already keep all accesses to one
/// buffer apart: then it does not matter how long those loops are.
fn are_apart_without_loops(kernel: &Kernel, iterations: &Iterations, touches: &[&Touch]) -> bool {
    let is_one_buffer = touches.windows(2).all(|pair| pair[0].access.buffer == pair[1].access.buffer);
    let dimensions = touches[0].index.as_ref().map_or(0, Vec::len);
    let is_free = |touch: &&Touch, dimension: usize| {
        let index = touch.index.as_ref().map(|index| &index[dimension]);
        index.is_some_and(|index| !touch.inner.iter().any(|var| index.mentions(var)))
    };
    let free: Vec<usize> =
        (0..dimensions).filter(|dimension| touches.iter().all(|touch| is_free(touch, *dimension))).collect();
    if !is_one_buffer || free.is_empty() || touches.iter().all(|touch| touch.inner.is_empty()) {
        return false;
    }
    let reduced: Vec<Touch> = touches.iter().map(|touch| touch.in_dimensions(&free)).collect();
    let reduced: Vec<&Touch> = reduced.iter().collect();
    find(kernel, iterations, &reduced).is_none()
}

/// Where an access is, as numbers that are equal only for the same byte.
enum Place {
    /// One expression per dimension of the one buffer.
    Index(Vec<Expr>),
    /// The position in memory, in bytes, and the bytes of an element.
    Bytes(Expr, i64),
    /// The row-major number of an element, whose position the layout is evaluated for, and the bytes of an element.
    Listed(Expr, i64),
}

struct Listing<'a> {
    kernel: &'a Kernel,
    iterations: &'a Iterations<'a>,
    touches: &'a [&'a Touch<'a>],
    /// The place of each access, in the order of `touches`.
    places: Vec<Place>,
    /// Bytes of the smallest element; larger elements are several such units.
    unit: i64,
}

/// What one access touches: the numbers of its place for all points, column by column, and the points at which it is
/// executed.
struct Touched {
    /// By column of the place, its number at every point.
    columns: Vec<Vec<i64>>,
    /// The points at which the access is executed.
    points: Vec<usize>,
    /// Number of points per iteration.
    turns: usize,
}

/// Encodes each place as one number.
struct Keys {
    /// The least number in each column.
    least: Vec<i64>,
    /// How many numbers each column ranges over.
    extents: Vec<i64>,
}

impl<'a> Listing<'a> {
    fn of(kernel: &'a Kernel, iterations: &'a Iterations<'a>, touches: &'a [&'a Touch<'a>]) -> Listing<'a> {
        let is_one_buffer = touches.windows(2).all(|pair| pair[0].access.buffer == pair[1].access.buffer);
        let place = |touch: &&Touch| {
            let index = touch.index.as_deref().unwrap_or_default();
            if is_one_buffer {
                Place::Index(index.iter().map(normalize).collect())
            } else {
                place(kernel, touch, index)
            }
        };
        let bytes = touches.iter().map(|touch| kernel.buffers[touch.access.buffer].dtype.bytes());
        Listing {
            kernel,
            iterations,
            touches,
            places: touches.iter().map(place).collect(),
            unit: bytes.min().unwrap_or(1),
        }
    }

    fn own(&self, touch: &Touch) -> Vec<Var> {
        self.iterations.vars.iter().chain(&touch.inner).cloned().collect()
    }

    fn sums(&self, at: usize) -> Vec<Linear> {
        match &self.places[at] {
            Place::Index(index) => index.iter().map(linear).collect(),
            Place::Bytes(position, _) | Place::Listed(position, _) => vec![linear(position)],
        }
    }

    /// The terms that do not depend on the iteration, per expression.
    fn others(&self, at: usize) -> Vec<Linear> {
        let own = self.own(self.touches[at]);
        let is_other = |atom: &Expr| !own.iter().any(|var| atom.mentions(var));
        let other = |sum: Linear| {
            let terms = sum.terms.into_iter().filter(|(_, atom)| is_other(atom)).collect();
            Linear { terms, constant: 0 }
        };
        self.sums(at).into_iter().map(other).collect()
    }

    /// Enclosing variables that, conditions aside, determine which places differ.
    fn tied(&self) -> Vec<Var> {
        let first = self.others(0);
        let moves_alike = (1..self.touches.len()).all(|at| self.others(at) == first)
            && !self.places.iter().any(|place| matches!(place, Place::Listed(..)));
        let mut found = Vec::new();
        for (at, touch) in self.touches.iter().enumerate() {
            let own = self.own(touch);
            for (_, atom) in self.sums(at).iter().flat_map(|sum| &sum.terms) {
                if !moves_alike || own.iter().any(|var| atom.mentions(var)) {
                    note_outer(atom, &own, &mut found);
                }
            }
        }
        found
    }

    /// All enclosing variables that indices and conditions mention.
    fn outer(&self) -> Vec<Var> {
        let mut found = self.tied();
        for touch in self.touches {
            let own = self.own(touch);
            let sides = touch.conditions.iter().flat_map(|condition| &condition.sides);
            touch.index.iter().flatten().chain(sides).for_each(|expr| note_outer(expr, &own, &mut found));
        }
        found
    }

    fn is_in_reach(&self, around: &[Var]) -> bool {
        let settings = around.iter().map(|var| extent(var) as i64).fold(1, i64::saturating_mul);
        let points = |touch: &&Touch| self.own(touch).iter().map(|var| extent(var) as i64).fold(1, i64::saturating_mul);
        let all = self.touches.iter().map(points).fold(0, i64::saturating_add);
        settings.saturating_mul(all) <= MOST_POINTS
    }

    /// The first conflict over all values of the variables `around`; `is_partial` if there are others, which are
    /// unknown.
    fn first(&self, around: &[Var], is_partial: bool) -> Option<Diagnostic> {
        let settings: usize = around.iter().map(extent).product();
        (0..settings).find_map(|setting| {
            let mut rest = setting;
            let mut known = Vec::with_capacity(around.len());
            for var in around {
                known.push((var, value(var, (rest % extent(var)) as i64)));
                rest /= extent(var);
            }
            let touched: Option<Vec<Touched>> =
                (0..self.touches.len()).map(|at| self.list(at, &known, is_partial)).collect();
            let Some((touched, keys)) = touched.and_then(|touched| Keys::of(&touched).map(|keys| (touched, keys)))
            else {
                return Some(self.undecided());
            };
            let pair = self.first_pair(&keys, &touched)?;
            let is_index = matches!(self.places.first(), Some(Place::Index(_)));
            Some(report::meeting(self.kernel, self.iterations, self.touches, pair, &known, is_index))
        })
    }

    /// Lists what one access touches in all iterations; `None` if an index cannot be listed.
    fn list(&self, at: usize, known: &[(&Var, i64)], is_partial: bool) -> Option<Touched> {
        let touch = self.touches[at];
        let own = self.own(touch);
        let vars: Vec<&Var> = own.iter().collect();
        let set = |expr: &Expr| known.iter().fold(expr.clone(), |expr, (var, value)| expr.with(var, *value));
        let listed = |expr: &Expr| {
            let mut sum = linear(&set(expr));
            // Terms without a variable of the iterations are the same in all of them: they move every access alike.
            sum.terms.retain(|(_, atom)| vars.iter().any(|var| atom.mentions(var)));
            values(&sum, &vars)
        };
        let index: Option<Vec<Vec<i64>>> = touch.index.iter().flatten().map(listed).collect();
        let index = index?;
        let mut happens = vec![true; vars.iter().map(|var| extent(var)).product()];
        for condition in &touch.conditions {
            keep_where(condition, &set, &vars, &mut happens);
        }
        let buffer = &self.kernel.buffers[touch.access.buffer];
        if matches!(buffer.space, Space::Global(_)) && !is_partial {
            for (values, extent) in index.iter().zip(&buffer.shape) {
                happens.iter_mut().zip(values).for_each(|(happens, at)| *happens &= (0..*extent).contains(at));
            }
        }
        let points: Vec<usize> = (0..happens.len()).filter(|point| happens[*point]).collect();
        let columns = match &self.places[at] {
            Place::Index(_) => index,
            Place::Bytes(position, _) => vec![listed(position)?],
            Place::Listed(flat, bytes) => {
                let (mut positions, layout) = (listed(flat)?, buffer.layout.as_ref());
                for point in &points {
                    positions[*point] = layout.map_or(0, |layout| layout.memory_position(positions[*point])) * bytes;
                }
                vec![positions]
            }
        };
        Some(Touched { columns, points, turns: touch.inner.iter().map(extent).product() })
    }

    /// The conflict whose later iteration comes first.
    fn first_pair(&self, keys: &Keys, touched: &[Touched]) -> Option<[Visit; 2]> {
        let mut visits: Vec<(i64, u32, u32)> = Vec::new();
        for (at, list) in touched.iter().enumerate() {
            let units = match &self.places[at] {
                Place::Index(_) => 1,
                Place::Bytes(_, bytes) | Place::Listed(_, bytes) => bytes / self.unit,
            };
            for point in &list.points {
                let (key, iteration) = (keys.key(list, *point), (point / list.turns) as u32);
                visits.extend((0..units).map(|part| (key + part * self.unit, iteration, at as u32)));
            }
        }
        visits.sort_unstable();
        let mut best: Option<[Visit; 2]> = None;
        for group in visits.chunk_by(|one, other| one.0 == other.0) {
            // The first visit by every access; its other visits are of later iterations.
            let mut firsts: Vec<(u32, u32)> = Vec::new();
            for (key, iteration, touch) in group {
                if best.as_ref().is_some_and(|[_, later]| later.iteration <= *iteration as usize) {
                    break;
                }
                let meets = |(other, earlier): &&(u32, u32)| {
                    let [earlier, touch] = [*earlier, *touch].map(|at| self.touches[at as usize]);
                    other != iteration && !is_excused(self.kernel, earlier, touch)
                };
                if let Some((other, earlier)) = firsts.iter().find(meets) {
                    let visit = |iteration: u32, touch: u32| Visit {
                        iteration: iteration as usize,
                        touch: touch as usize,
                        place: keys.place(*key),
                    };
                    best = Some([visit(*other, *earlier), visit(*iteration, *touch)]);
                    break;
                }
                if !firsts.iter().any(|(_, known)| known == touch) {
                    firsts.push((*iteration, *touch));
                }
            }
        }
        best
    }

    fn undecided(&self) -> Diagnostic {
        report::undecided(self.kernel, self.iterations, self.touches)
    }
}

impl Keys {
    /// `None` if the numbers would overflow.
    fn of(touched: &[Touched]) -> Option<Keys> {
        let columns = touched.iter().map(|list| list.columns.len()).max().unwrap_or(0);
        let (mut least, mut extents) = (Vec::new(), Vec::new());
        for column in 0..columns {
            let listed =
                || touched.iter().flat_map(|list| list.points.iter().map(|point| list.columns[column][*point]));
            let (lo, hi) = (listed().min().unwrap_or(0), listed().max().unwrap_or(0));
            least.push(lo);
            extents.push(hi.checked_sub(lo)?.checked_add(1)?);
        }
        extents.iter().try_fold(1i64, |all, extent| all.checked_mul(*extent))?;
        Some(Keys { least, extents })
    }

    fn key(&self, list: &Touched, point: usize) -> i64 {
        let digits = list.columns.iter().zip(&self.least).map(|(column, least)| column[point] - least);
        digits.zip(&self.extents).fold(0, |key, (digit, extent)| key * extent + digit)
    }

    fn place(&self, key: i64) -> Vec<i64> {
        let mut rest = key;
        let digits = self.extents.iter().zip(&self.least).rev().map(|(extent, least)| {
            let digit = rest % extent;
            rest /= extent;
            digit + least
        });
        let mut place: Vec<i64> = digits.collect();
        place.reverse();
        place
    }
}

/// The place in its memory of an access at this index.
fn place(kernel: &Kernel, touch: &Touch, index: &[Expr]) -> Place {
    let buffer = &kernel.buffers[touch.access.buffer];
    let bytes = buffer.dtype.bytes();
    let flat = flat(index, &buffer.shape);
    let position = match (buffer.space, &buffer.layout) {
        (Space::Fragment | Space::Tensor, _) | (_, None) => Ok(flat.clone()),
        (Space::Global(_) | Space::Shared, Some(layout)) => Layout::memory_expr(layout, &flat),
    };
    match position {
        Ok(position) => Place::Bytes(normalize(&(position * bytes)), bytes),
        Err(_) => Place::Listed(normalize(&flat), bytes),
    }
}

fn note_outer(expr: &Expr, own: &[Var], found: &mut Vec<Var>) {
    expr.for_each_var(&mut |var| {
        if !own.contains(var) && !found.contains(var) {
            found.push(var.clone());
        }
    });
}

/// Excludes the points where a condition is known not to hold.
fn keep_where(condition: &Condition, set: &dyn Fn(&Expr) -> Expr, vars: &[&Var], happens: &mut [bool]) {
    let sides = [0, 1].map(|side| set(&condition.sides[side]));
    let own: Vec<Var> = vars.iter().map(|var| (*var).clone()).collect();
    let mut unknown = Vec::new();
    sides.iter().for_each(|side| note_outer(side, &own, &mut unknown));
    if !unknown.is_empty() {
        return;
    }
    let [Some(a), Some(b)] = sides.map(|side| values(&linear(&side), vars)) else { return };
    for (happens, (a, b)) in happens.iter_mut().zip(a.into_iter().zip(b)) {
        *happens &= condition.comparison.holds(a, b) == condition.holds;
    }
}
