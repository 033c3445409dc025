//! How many elements of memory a thread moves at once. Inference uses this for the cost and the description of a
//! layout, and lowering for the code, so that the three agree.
//!
//! Neighbouring steps of a nest are executed together in chunks. An access is *movable* if every iteration executes it
//! once, without a condition, and nothing else in the nest accesses the same memory in a way that could conflict. The
//! elements of a movable access are moved in vectors, as wide as they are adjacent and aligned for all threads of the
//! chunk. Where a loop is unrolled, its variable is a constant, and the widths are determined for each iteration
//! separately.

mod gathered;
mod movable;

use std::ops::Range;
use std::sync::Arc;

use num_integer::Integer;
use tilewright_expr::Expr;
use tilewright_expr::linear::{Linear, linear};
use tilewright_expr::points::{Split, Splits};
use tilewright_layout::map::{Map, NONE, Owners};
use tilewright_layout::{DType, Layout, TileLayout};

pub use self::gathered::Gathered;
pub use self::movable::{Movable, StaticAccess};
use crate::arena::Handle;
use crate::tile::buffer::Buffer;
use crate::tile::kernel::Kernel;
use crate::tile::value::flat;

/// The most bytes that a thread moves at once from or to shared memory, and on targets before sm_100 from or to global
/// memory (PTX ISA, `ld` and `st` with `.v4.b32`).
pub const WIDEST: i64 = 16;

/// The most positions that are compared to find out whether a layout shifts all elements alike.
const MAX_COMPARED: i64 = 1 << 20;

/// The threads that take part in a step.
pub type Mask = Arc<Vec<bool>>;

/// The most elements of a dtype that a thread moves at once, in up to `bytes` bytes: a power of two, limited by `vector`
/// if the user set it.
pub fn widest(dtype: DType, bytes: i64, vector: Option<i64>) -> usize {
    let most = (bytes / dtype.bytes()).max(1);
    1 << vector.unwrap_or(most).clamp(1, most).ilog2()
}

/// Neighbouring steps that the same threads execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The steps.
    pub steps: Range<usize>,
    /// The threads.
    pub mask: Mask,
}

/// The steps of a nest in chunks of `together`. Where the threads differ between these steps, a chunk has a power of two
/// of the steps that the same threads execute, so that vectors fit.
pub fn chunks(steps: &Map, together: usize) -> Vec<Chunk> {
    if steps.columns().all(|column| !column.contains(&NONE)) {
        let everyone: Mask = Arc::new(vec![true; steps.threads()]);
        let ends = (0..steps.slots()).step_by(together).map(|step| step..(step + together).min(steps.slots()));
        return ends.map(|steps| Chunk { steps, mask: Arc::clone(&everyone) }).collect();
    }
    let takes_part = |step: usize| steps.column(step).iter().map(|iteration| *iteration != NONE);
    let (mut found, mut step) = (Vec::new(), 0);
    while step < steps.slots() {
        let mask: Mask = Arc::new(takes_part(step).collect());
        let most = together.min(steps.slots() - step);
        let alike = (0..most).take_while(|next| takes_part(step + next).eq(mask.iter().copied())).count();
        let count = if alike == most { most } else { 1 << alike.max(1).ilog2() };
        found.push(Chunk { steps: step..step + count, mask });
        step += count;
    }
    found
}

/// For each step, the threads that are the first owners of their iterations: these write memory. The owners are those
/// of `steps`.
pub fn firsts(steps: &Map, owners: &Owners) -> Vec<Mask> {
    let is_first = |(thread, iteration): (usize, &u32)| {
        *iteration != NONE && owners.of(*iteration as usize).first() == Some(&(thread as u32))
    };
    steps.columns().map(|column| Arc::new(column.iter().enumerate().map(is_first).collect())).collect()
}

/// The mask in `by_step` of the steps of a chunk, if it is the same for all of them.
pub fn common_mask<'a>(by_step: &'a [Mask], chunk: &Chunk) -> Option<&'a Mask> {
    let (first, others) = by_step.get(chunk.steps.clone())?.split_first()?;
    others.iter().all(|other| other == first).then_some(first)
}

/// The entries of `own` for the iterations that the threads of `mask` execute in a step; `None` for other threads.
pub fn in_step<'a>(
    own: &'a [i64],
    steps: &'a Map,
    step: usize,
    mask: &'a [bool],
) -> impl Iterator<Item = Option<i64>> + 'a {
    let takes_part = |(iteration, takes_part): (&u32, &bool)| *takes_part && *iteration != NONE;
    let threads = steps.column(step).iter().zip(mask);
    threads.map(move |thread| takes_part(thread).then(|| own[*thread.0 as usize]))
}

/// Where the iterations of a nest access memory, as far as needed to decide how many elements are moved at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Places {
    /// Position in elements for each iteration; `None` if it cannot be listed.
    position: Option<Listed>,
    /// The indices that may be outside of the tensor; `None` for those that cannot be listed.
    bounds: Vec<Option<Listed>>,
    /// What data in the index depends on: where these are the same, so is the data.
    data: Vec<Listed>,
}

/// How the steps of a chunk are moved in vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vectors {
    /// Elements of a vector, a power of two.
    pub width: usize,
    /// The steps of the chunk, vector by vector in the order of memory.
    pub steps: Vec<usize>,
}

/// A number for each iteration, plus a rest that is the same for all iterations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Listed {
    /// The number of each iteration.
    own: Arc<Vec<i64>>,
    /// For numbers that depend on sizes, a divisor of each of them whatever the sizes are.
    divisors: Option<Arc<Vec<i64>>>,
    /// A number that divides the rest and, for a bound, the extent that the sum must be below, or what strides that depend
    /// on sizes add to numbers; 0 if all are 0.
    rest: i64,
}

impl Places {
    /// The places of an access, by the variables of its nest. Those of several elements of an iteration follow each other,
    /// as the places of so many iterations.
    pub fn of(kernel: &Kernel, access: &StaticAccess, splits: &mut Splits<'_>) -> Places {
        let each = access.elements.iter().map(|index| Places::of_element(kernel, access.buffer, index, splits));
        let places = Places::joined(each.collect());
        let vars = splits.vars();
        let depends_on = access.gathered.iter().flat_map(|gathered| gathered.depends_on(vars));
        let data = depends_on.map(|var| {
            let split = splits.of(&Expr::var(var))?;
            Some(Listed { own: split.own, divisors: None, rest: 0 })
        });
        // Without a list of the data's variables, nothing is known of the access.
        match data.collect() {
            Some(data) => Places { data, ..places },
            None => Places::unknown(),
        }
    }

    fn of_element(kernel: &Kernel, buffer: Handle<Buffer>, index: &[Expr], splits: &mut Splits<'_>) -> Places {
        let buffer = &kernel.buffers[buffer];
        let position = match position(buffer, index, splits) {
            Some(split) => Some(Listed { rest: split.other.multiple(), own: split.own, divisors: None }),
            None => Strided::of(buffer, index, splits).and_then(|position| position.listed()),
        };
        let bounds = kernel.bounds(buffer, index, splits).into_iter().map(|bound| {
            let split = splits.of(&bound.index)?;
            let rest = split.other.multiple().gcd(&bound.extent.multiple());
            Some(Listed { rest, own: split.own, divisors: None })
        });
        Places { position, bounds: bounds.collect(), data: Vec::new() }
    }

    /// The places of several elements of each iteration, which have the same rests and the same number of bounds.
    fn joined(mut each: Vec<Places>) -> Places {
        if each.len() == 1 {
            return each.remove(0);
        }
        let bounds = each.first().map_or(0, |first| first.bounds.len());
        let of_bound = |at: usize| Listed::joined(each.iter().map(|places| places.bounds[at].as_ref()).collect());
        Places {
            position: Listed::joined(each.iter().map(|places| places.position.as_ref()).collect()),
            bounds: (0..bounds).map(of_bound).collect(),
            data: Vec::new(),
        }
    }

    /// Places about which nothing is known.
    pub fn unknown() -> Places {
        Places { position: None, bounds: Vec::new(), data: Vec::new() }
    }

    /// The positions by iteration, without the rest that is the same for all iterations.
    pub fn positions(&self) -> Option<&Arc<Vec<i64>>> {
        self.position.as_ref().map(|position| &position.own)
    }

    /// The most elements, up to `widest`, that may be moved at once, given what divides the rest of the position.
    pub fn most(&self, widest: usize) -> usize {
        let Some(position) = &self.position else { return 1 };
        let mut most = widest;
        while most > 1 && position.rest % most as i64 != 0 {
            most /= 2;
        }
        most
    }

    /// The same, where neighbours in memory are `apart` iterations from each other: an index that changes from one to the next may be
    /// beyond its extent in the middle of wider vectors.
    pub fn most_along(&self, widest: usize, apart: usize) -> usize {
        let mut most = self.most(widest);
        for bound in self.bounds.iter().flatten().filter(|bound| bound.own.get(apart) != bound.own.first()) {
            while most > 1 && bound.rest % most as i64 != 0 {
                most /= 2;
            }
        }
        most
    }

    /// The vectors that the threads of `mask` move in all steps of a chunk, of at most `widest` elements each: of steps
    /// that follow each other, or of steps in the order of their places in memory, if these vectors are wider.
    pub fn vectors(&self, steps: &Map, chunk: &Range<usize>, mask: &[bool], widest: usize) -> Vectors {
        let own: Vec<usize> = chunk.clone().collect();
        let most = self.most(widest);
        let width = self.width(steps, &own, mask, most);
        if width < most
            && let Some(sorted) = self.sorted(steps, &own, mask)
        {
            let wider = self.width(steps, &sorted, mask, most);
            if wider > width {
                return Vectors { width: wider, steps: sorted };
            }
        }
        Vectors { width, steps: own }
    }

    /// Number of elements that the threads of `mask` move at once in all of these steps; at most `most`, a power of two.
    fn width(&self, steps: &Map, chunk: &[usize], mask: &[bool], most: usize) -> usize {
        let mut width = most;
        while width > 1 && !self.has_vectors(steps, chunk, mask, width) {
            width /= 2;
        }
        width
    }

    /// The steps in the order in which the first thread of `mask` has them in memory, if that is another order.
    fn sorted(&self, steps: &Map, chunk: &[usize], mask: &[bool]) -> Option<Vec<usize>> {
        let position = self.position.as_ref()?;
        let thread = mask.iter().position(|takes_part| *takes_part)?;
        let place = |step: &usize| {
            let iteration = steps.column(*step)[thread];
            (iteration != NONE).then(|| position.own[iteration as usize])
        };
        let places: Vec<i64> = chunk.iter().map(place).collect::<Option<_>>()?;
        if places.is_sorted() {
            return None;
        }
        let mut order: Vec<usize> = (0..chunk.len()).collect();
        order.sort_by_key(|at| places[*at]);
        Some(order.into_iter().map(|at| chunk[at]).collect())
    }

    fn has_vectors(&self, steps: &Map, chunk: &[usize], mask: &[bool], width: usize) -> bool {
        let Some(position) = &self.position else { return false };
        let is_vector = |vector: &[usize]| {
            position.is_vector(steps, vector, mask)
                && self.data.iter().all(|data| data.is_still(steps, vector, mask))
                && self.bounds.iter().all(|bound| {
                    bound.as_ref().is_some_and(|bound| {
                        bound.is_still(steps, vector, mask) || bound.is_vector(steps, vector, mask)
                    })
                })
        };
        chunk.len().is_multiple_of(width) && chunk.chunks(width).all(is_vector)
    }
}

impl Listed {
    /// The numbers of several elements of each iteration; `None` if there are none for one of them.
    fn joined(each: Vec<Option<&Listed>>) -> Option<Listed> {
        let each: Vec<&Listed> = each.into_iter().collect::<Option<_>>()?;
        let in_turn = |lists: Vec<&Arc<Vec<i64>>>| {
            let iterations = lists.iter().map(|list| list.len()).min().unwrap_or(0);
            Arc::new((0..iterations).flat_map(|at| lists.iter().map(move |list| list[at])).collect())
        };
        let divisors: Option<Vec<_>> = each.iter().map(|listed| listed.divisors.as_ref()).collect();
        Some(Listed {
            own: in_turn(each.iter().map(|listed| &listed.own).collect()),
            divisors: divisors.map(in_turn),
            rest: each.iter().fold(0, |rest, listed| rest.gcd(&listed.rest)),
        })
    }

    /// Whether the numbers of these steps are consecutive, starting at a multiple of their count, for all threads.
    fn is_vector(&self, steps: &Map, vector: &[usize], mask: &[bool]) -> bool {
        let (first, width) = (steps.column(vector[0]), vector.len());
        let follows = |lane: usize, first: u32, here: u32| {
            let start = self.own[first as usize];
            let divisor = self.divisors.as_ref().map_or(start, |divisors| divisors[first as usize]);
            let is_aligned = lane > 0 || divisor % width as i64 == 0;
            is_aligned && here != NONE && self.own[here as usize] == start + lane as i64
        };
        self.rest % width as i64 == 0
            && vector.iter().enumerate().all(|(lane, step)| {
                let threads = mask.iter().zip(first).zip(steps.column(*step));
                threads
                    .filter(|((takes_part, first), _)| **takes_part && **first != NONE)
                    .all(|((_, first), here)| follows(lane, *first, *here))
            })
    }

    /// Whether they are the same in all of these steps.
    fn is_still(&self, steps: &Map, vector: &[usize], mask: &[bool]) -> bool {
        let of = |step: usize| in_step(&self.own, steps, step, mask);
        vector[1..].iter().all(|step| of(vector[0]).eq(of(*step)))
    }
}

/// The position of an element of a tensor whose strides depend on sizes: for each dimension, the index and the stride.
#[derive(Clone, Debug)]
pub struct Strided {
    /// The index, as a number for each iteration plus a rest, and the stride in elements.
    pub parts: Vec<(Split, Expr)>,
}

impl Strided {
    /// The position at an index; `None` if its strides are numbers, or an index cannot be listed.
    pub fn of(buffer: &Buffer, index: &[Expr], splits: &mut Splits<'_>) -> Option<Strided> {
        let shape = buffer.dynamic_shape.as_ref()?;
        let parts = index.iter().zip(&shape.strides).map(|(index, stride)| Some((splits.of(index)?, stride.clone())));
        Some(Strided { parts: parts.collect::<Option<_>>()? })
    }

    /// The positions for strides that stand for all others: each exceeds all distances along the dimensions before it, so
    /// that two positions differ by 1 only if they do so whatever the sizes are. `None` if the numbers grow too large.
    fn listed(&self) -> Option<Listed> {
        let count = self.parts.first()?.0.own.len();
        let (mut own, mut divisors, mut rest) = (vec![0i64; count], vec![0i64; count], 0);
        let is_fixed = |part: &&(Split, Expr)| part.1.as_const().is_some();
        let ordered = self.parts.iter().filter(is_fixed).chain(self.parts.iter().rev().filter(|part| !is_fixed(part)));
        for (split, stride) in ordered {
            let multiple = stride.multiple();
            let factor = match stride.as_const() {
                Some(number) => number,
                None => {
                    let span = own.iter().max()?.checked_sub(*own.iter().min()?)?.checked_add(1)?;
                    multiple.checked_mul((2 * span / multiple.max(1) + 1) | 1)?
                }
            };
            for ((own, divisor), index) in own.iter_mut().zip(&mut divisors).zip(split.own.iter()) {
                *own = own.checked_add(index.checked_mul(factor)?).filter(|own| own.abs() < MOST_LISTED)?;
                *divisor = divisor.gcd(&index.checked_mul(multiple)?);
                if stride.as_const().is_none() {
                    rest = rest.gcd(&index.checked_mul(multiple)?);
                }
            }
            rest = rest.gcd(&(split.other.clone() * stride.clone()).multiple());
        }
        Some(Listed { own: Arc::new(own), divisors: Some(Arc::new(divisors)), rest })
    }
}

/// Positions are below this, so that their distances and bytes can be counted.
const MOST_LISTED: i64 = 1 << 56;

/// The position of an element in memory as a number for each iteration plus a rest; `None` if it cannot be listed.
pub fn position(buffer: &Buffer, index: &[Expr], splits: &mut Splits<'_>) -> Option<Split> {
    if let Some(shape) = &buffer.dynamic_shape {
        return splits.of(&shape.position(index));
    }
    let is_countable = |own: &i64| (-MOST_LISTED..MOST_LISTED).contains(own);
    let split = splits.of(&flat(index, &buffer.shape)).filter(|split| split.ends.iter().flatten().all(is_countable))?;
    let layout = buffer.layout.as_ref()?;
    let is_row_major = TileLayout::row_major(&buffer.shape).is_ok_and(|tile| *layout == Layout::Tile(tile));
    if is_row_major { Some(split) } else { through(layout, split) }
}

/// The positions that a layout gives to elements. The rest, which shifts all elements alike by multiples of `period`,
/// must also shift all positions alike: by `stride` for each `period`.
fn through(layout: &Layout, elements: Split) -> Option<Split> {
    let inside = 0..layout.size();
    // Elements outside of the layout are not accessed.
    let position = |element: &i64| if inside.contains(element) { layout.memory_position(*element) } else { 0 };
    let own: Vec<i64> = elements.own.iter().map(position).collect();
    if elements.other.as_const() == Some(0) {
        return Some(Split::new(own, elements.other));
    }
    let period = elements.other.multiple();
    let is_few = elements.own.len() as i64 <= MAX_COMPARED / (layout.size() / period.max(1) + 1);
    if period <= 0 || !is_few || elements.other.range().lo < 0 || !elements.own.iter().all(|own| inside.contains(own)) {
        return None;
    }
    let moved = |own: i64| {
        let first = layout.memory_position(own);
        let others = (1..).map(move |turn| (turn, own + turn * period)).take_while(|(_, at)| inside.contains(at));
        others.map(move |(turn, at)| (turn, layout.memory_position(at) - first))
    };
    let stride = elements.own.iter().find_map(|own| moved(*own).next()).map_or(period, |(_, stride)| stride);
    let is_alike = elements.own.iter().all(|own| moved(*own).all(|(turn, moved)| moved == turn * stride));
    let scaled = |(factor, atom): (i64, Expr)| (factor % period == 0).then(|| (factor / period * stride, atom));
    let terms: Option<Vec<(i64, Expr)>> = linear(&elements.other).terms.into_iter().map(scaled).collect();
    let other = Linear { terms: terms.filter(|_| is_alike)?, constant: 0 }.to_expr();
    Some(Split::new(own, other))
}

#[cfg(test)]
mod tests {
    use tilewright_expr::Var;
    use tilewright_layout::map::Spread;

    use super::*;

    fn places(own: impl IntoIterator<Item = i64>, rest: i64) -> Places {
        let listed = Listed { own: Arc::new(own.into_iter().collect()), divisors: None, rest };
        Places { position: Some(listed), bounds: Vec::new(), data: Vec::new() }
    }

    /// Elements moved at once by 32 threads that divide the iterations in vectors of 4.
    fn width(places: &Places) -> usize {
        let iterations = places.positions().unwrap().len();
        let steps = Map::spread(32, iterations, Spread { row: iterations, group: 32, groups: 1, vector: 4 });
        let chunks = chunks(&steps, 8);
        chunks.iter().map(|chunk| places.vectors(&steps, &chunk.steps, &chunk.mask, 8).width).min().unwrap()
    }

    #[test]
    fn vectors_are_adjacent_and_aligned() {
        assert_eq!(width(&places(0..256, 0)), 4);
        assert_eq!(width(&places(1..257, 0)), 1);
        assert_eq!(width(&places((0..256).map(|at| at * 2), 0)), 1);
        assert_eq!(width(&places(0..256, 6)), 2);
    }

    #[test]
    fn steps_in_another_order_than_memory_are_sorted() {
        // 16 elements in 4 pairs of words, all first words in front of all second words.
        let turned = places((0..16).map(|at| at / 4 * 2 + at / 2 % 2 * 8 + at % 2), 0);
        let steps = Map::spread(1, 16, Spread { row: 16, group: 1, groups: 1, vector: 16 });
        let found = turned.vectors(&steps, &(0..16), &[true], 8);
        assert_eq!(found, Vectors { width: 8, steps: vec![0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15] });
        // The order is that of all threads.
        let steps = Map::of_slots(2, 2, |thread, step| Some(thread * 2 + step), 2);
        assert_eq!(places([1, 0, 2, 3], 0).vectors(&steps, &(0..2), &[true, true], 2).width, 1);
        assert_eq!(places([1, 0, 3, 2], 0).vectors(&steps, &(0..2), &[true, true], 2).steps, [1, 0]);
    }

    #[test]
    fn a_vector_is_inside_or_outside_as_a_whole() {
        let bound = |own: Vec<i64>, rest| Some(Listed { own: Arc::new(own), divisors: None, rest });
        let within = |bound| Places { bounds: vec![bound], ..places(0..256, 0) };
        assert_eq!(width(&within(bound((0..256).collect(), 100))), 4);
        assert_eq!(width(&within(bound((0..256).collect(), 102))), 2);
        assert_eq!(width(&within(bound((0..256).map(|at| at / 4).collect(), 1))), 4);
        assert_eq!(width(&within(None)), 1);
    }

    #[test]
    fn steps_of_other_threads_are_other_chunks() {
        let steps = Map::of_slots(2, 7, |thread, step| Some(step * 2 + thread).filter(|at| *at < 7), 4);
        let found: Vec<Range<usize>> = chunks(&steps, 4).into_iter().map(|chunk| chunk.steps).collect();
        assert_eq!(found, [0..2, 2..3, 3..4]);
        assert_eq!(chunks(&steps, 3)[0].steps, 0..3);
    }

    #[test]
    fn the_first_of_several_threads_writes() {
        let steps = Map::replicated(2, 2);
        assert_eq!(firsts(&steps, &steps.owners()), [Arc::new(vec![true, false]), Arc::new(vec![true, false])]);
    }

    #[test]
    fn a_layout_may_move_all_elements_of_a_stage_alike() {
        let (stage, other) = (Var::new("stage", 0, 2), |stage: &Var| Expr::var(stage) * 32);
        let moved = |layout: &str| {
            let elements = Split::new((0..32).collect(), other(&stage));
            let split = through(&layout.parse().unwrap(), elements)?;
            Some((split.own.to_vec(), split.other.to_string()))
        };
        let turned: Vec<i64> = (0..32).map(|at| at % 8 * 4 + at / 8).collect();
        assert_eq!(moved("S[(3,4,8):(40,1,4)]"), Some((turned, "stage*40".to_string())));
        let swizzled = moved("swizzle(M=2,B=1,S=2) o S[96:1]").unwrap();
        assert_eq!((swizzled.0[16], swizzled.0[17], swizzled.1.as_str()), (20, 21, "stage*32"));
        assert_eq!(moved("swizzle(M=2,B=1,S=4) o S[96:1]"), None);
    }
}
