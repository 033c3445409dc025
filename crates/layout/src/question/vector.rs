//! The widest vectorized access: how many consecutive elements of the tile are consecutive on one axis.

use num_integer::Integer;

use crate::axis::Axis;
use crate::error::LayoutError;
use crate::layout::Layout;
use crate::tile::TileLayout;

impl TileLayout {
    /// The contiguous run on `axis`: the greatest `v` that divides the size such that the elements `v*k .. v*k + v`
    /// are consecutive on `axis`, at the same place on all other axes, from a multiple of `v` on, for every `k`.
    pub fn vector_width(&self, axis: &Axis) -> i64 {
        let canonical = self.canonicalize();
        let Some((last, outer)) = canonical.shard().split_last() else { return 1 };
        if last.stride != 1 || last.axis != *axis {
            return 1;
        }
        let others = outer.iter().chain(canonical.replica()).filter(|iter| iter.axis == *axis).map(|iter| iter.stride);
        others.chain([canonical.offset_on(axis)]).fold(last.extent, |width, step| width.gcd(&step))
    }
}

impl Layout {
    /// The contiguous run on `axis`; see [`TileLayout::vector_width`].
    pub fn vector_width(&self, axis: &Axis) -> Result<i64, LayoutError> {
        match self {
            Layout::Tile(tile) => Ok(tile.vector_width(axis)),
            Layout::Compose(_) | Layout::Table(_) => {
                let places = Places::of(self, axis)?;
                // Where runs of a and of b are whole, runs of their least common multiple are: grow prime by prime.
                let mut width = 1;
                for prime in prime_factors(self.size()) {
                    if places.are_runs_of((width * prime) as usize) {
                        width *= prime;
                    }
                }
                Ok(width)
            }
        }
    }
}

/// A place: its position on one axis, and where it is on the others.
struct SplitPlace {
    /// The nonzero positions on the other axes.
    elsewhere: Vec<(Axis, i64)>,
    /// The position on the axis in question.
    position: i64,
}

/// The places of every element, in order.
struct Places(Vec<Vec<SplitPlace>>);

impl Places {
    fn of(layout: &Layout, axis: &Axis) -> Result<Places, LayoutError> {
        layout.check_enumerable()?;
        let split = |mut place: crate::Coord| {
            let position = place.remove(axis).unwrap_or(0);
            SplitPlace { elsewhere: place.into_iter().filter(|(_, at)| *at != 0).collect(), position }
        };
        let element = |flat: i64| {
            let mut places: Vec<SplitPlace> = layout.apply(flat)?.into_iter().map(split).collect();
            places.sort_by(|a, b| (&a.elsewhere, a.position).cmp(&(&b.elsewhere, b.position)));
            Ok(places)
        };
        (0..layout.size()).map(element).collect::<Result<_, _>>().map(Places)
    }

    /// True when every aligned group of `width` elements is contiguous and aligned on the axis, copy by copy.
    fn are_runs_of(&self, width: usize) -> bool {
        self.0.chunks(width).all(|group| {
            group[0].iter().all(|place| place.position % width as i64 == 0)
                && group.iter().enumerate().all(|(step, places)| {
                    let moved = group[0].iter().map(|place| (&place.elsewhere, place.position + step as i64));
                    places.iter().map(|place| (&place.elsewhere, place.position)).eq(moved)
                })
        })
    }
}

/// The prime factors of a number, with repetition.
fn prime_factors(mut number: i64) -> Vec<i64> {
    let mut factors = Vec::new();
    let mut candidate = 2;
    while candidate * candidate <= number {
        while number % candidate == 0 {
            factors.push(candidate);
            number /= candidate;
        }
        candidate += 1;
    }
    if number > 1 {
        factors.push(number);
    }
    factors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{M, REG};

    fn width(text: &str) -> i64 {
        text.parse::<Layout>().unwrap().vector_width(&M).unwrap()
    }

    #[test]
    fn rows_are_runs() {
        assert_eq!(width("S[(8,12):(12,1)]"), 96);
        assert_eq!(width("S[(8,12):(16,1)]"), 4);
        assert_eq!(width("S[(8,12):(1,8)]"), 1);
    }

    #[test]
    fn an_offset_breaks_alignment() {
        assert_eq!(width("S[64:1] + 6"), 2);
    }

    #[test]
    fn a_swizzle_keeps_its_chunks_together() {
        assert_eq!(width("swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]"), 8);
    }

    #[test]
    fn registers_of_one_thread_run_too() {
        let fragment: TileLayout = "S[(8,4,2):(4@laneid,1@laneid,1@reg)]".parse().unwrap();
        assert_eq!(fragment.vector_width(&REG), 2);
    }
}
