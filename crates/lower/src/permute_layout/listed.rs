//! The positions of an operand's elements in a list, and their addresses as expressions of the lane.

use std::collections::BTreeMap;

use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Cond, Stmt};
use tilewright_layout::Pitch;

use super::linear::BitMap;
use crate::builder::Builder;
use crate::conditions::below;
use crate::operand::MemoryTile;

/// The positions of all elements of an operand, in the order of the tile.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    /// Position from which the others are counted: it is a multiple of one row of all banks if the operand's own start
    /// is.
    pub(crate) start: Expr,
    /// Positions relative to the start, in elements, none negative. Strides that are known only at launch count as powers
    /// of two, each beyond all positions without it.
    pub(crate) positions: Vec<i64>,
    /// The summands of the positions.
    pub(crate) parts: Vec<AddressTerm>,
}

/// A summand of positions.
#[derive(Clone, Debug)]
pub(crate) struct AddressTerm {
    /// The position of the first element, in strides.
    pub(crate) first: Expr,
    /// By element, the number of strides from the first.
    pub(crate) steps: Vec<i64>,
    /// The stride, in elements.
    pub(crate) stride: Expr,
    /// The number of strides from which on elements are outside of the tensor, if the tile may exceed it.
    pub(crate) edge: Option<Expr>,
}

/// The least number that stands for a stride that is known only at launch.
const FAR: i64 = 1 << 32;

impl Listed {
    /// The positions of an operand. Error: they are not known, since a swizzle acts on an unknown start.
    pub(crate) fn of(operand: &MemoryTile) -> Result<Listed, Reason> {
        let placed = &operand.placed;
        if !placed.pitches.is_empty() {
            return Listed::over_pitches(operand);
        }
        let relative = placed.positions();
        let (start, positions) = match placed.swizzle {
            None => (placed.start.clone(), relative),
            Some(swizzle) => match placed.start.as_const() {
                Some(start) => (Expr::constant(0), relative.iter().map(|p| swizzle.apply(start + p)).collect()),
                None if placed.start.multiple() % swizzle.block() == 0 => {
                    (placed.start.clone(), relative.iter().map(|p| swizzle.apply(*p)).collect())
                }
                None => {
                    return Err(Reason {
                        text: format!("`{}` is swizzled, and begins at {}", operand.title, placed.start),
                        accepted: format!("a start that is a multiple of the swizzle's {} elements", swizzle.block()),
                    });
                }
            },
        };
        let row = 128 / operand.dtype.bytes();
        let lowest = positions.iter().copied().min().unwrap_or(0).min(0).div_euclid(row) * row;
        let positions: Vec<i64> = positions.iter().map(|p| p - lowest).collect();
        let start = start + lowest;
        let part =
            AddressTerm { first: start.clone(), steps: positions.clone(), stride: Expr::constant(1), edge: None };
        Ok(Listed { start, parts: vec![part], positions })
    }

    /// The positions in a tensor whose sizes are known only at launch.
    fn over_pitches(operand: &MemoryTile) -> Result<Listed, Reason> {
        let (placed, tile) = (&operand.placed, operand.iters()?);
        let part = |pitch: &Pitch| AddressTerm {
            first: pitch.first.clone(),
            steps: tile.positions(&pitch.axis),
            stride: pitch.stride.clone(),
            edge: pitch.edge.clone(),
        };
        let parts: Vec<AddressTerm> = placed.pitches.iter().map(part).collect();
        let mut positions: Vec<i64> = vec![0; tile.size() as usize];
        let (known, unknown): (Vec<&AddressTerm>, Vec<&AddressTerm>) =
            parts.iter().partition(|part| part.stride.as_const().is_some());
        for AddressTerm { steps, stride, .. } in known.into_iter().chain(unknown) {
            let farthest = positions.iter().copied().max().unwrap_or(0).unsigned_abs();
            let stride = stride.as_const().unwrap_or(((farthest + 1).next_power_of_two() as i64).max(FAR));
            positions.iter_mut().zip(steps).for_each(|(position, step)| *position += step * stride);
        }
        Ok(Listed { start: placed.origin(), positions, parts })
    }

    /// True when all strides are constants.
    pub(crate) fn is_known(&self) -> bool {
        self.parts.iter().all(|part| part.stride.as_const().is_some())
    }
}

/// An address that is linear over the bits of the lane: a part that depends on the lane, and constants to XOR into it.
pub(crate) struct LinearAddress<'a> {
    parts: Vec<LaneSum<'a>>,
}

/// A summand of an address: a map over the bits of the element's index.
#[derive(Clone, Debug)]
pub(crate) struct LinearTerm {
    /// The position of the first element, in strides.
    pub(crate) first: Expr,
    /// The number of strides, linear over the bits of an element's index.
    pub(crate) map: BitMap,
    pub(crate) stride: Expr,
    /// The number of strides from which on elements are outside of the tensor, if the tile may exceed it.
    pub(crate) edge: Option<Expr>,
}

/// A summand of an address for one lane.
struct LaneSum<'a> {
    part: &'a LinearTerm,
    /// The lane's part, in units of `unit`.
    lane: Expr,
    unit: i64,
    /// The bits that may be set in the lane's part.
    used: i64,
}

impl<'a> LinearAddress<'a> {
    /// The address of the lane whose bits stand for the indices `lanes`. The lane's part is bound to a variable called
    /// `base` unless it is simple.
    pub(crate) fn new(
        builder: &mut Builder,
        (base, lane): (&str, &Expr),
        parts: &'a [LinearTerm],
        lanes: &[i64],
        body: &mut Vec<Stmt>,
    ) -> LinearAddress<'a> {
        // With run-time strides, offsets that include their scale take fewer instructions. Otherwise the address has to
        // show that it is a multiple of a vector: NVRTC 13.5 splits vectors for `sm_90a` if it has to find that out.
        let has_scale = parts.iter().any(|part| part.stride.as_const().is_none());
        let part = |part| LaneSum::new(builder, (base, lane), (part, has_scale), lanes, body);
        LinearAddress { parts: parts.iter().map(part).collect() }
    }

    /// The position of the element whose index differs by `step`.
    pub(crate) fn at(&self, step: i64) -> Expr {
        let moved = |lane: &LaneSum<'_>| (&lane.part.first + &lane.at(step)) * lane.part.stride.clone();
        let sum = self.parts.iter().fold(Expr::constant(0), |sum, lane| sum + moved(lane));
        normalize(&sum)
    }

    /// Conditions under which the element whose index differs by `step` is inside the tensor.
    pub(crate) fn inside(&self, step: i64) -> Vec<Cond> {
        let cond = |lane: &LaneSum<'_>| {
            let edge = lane.part.edge.as_ref()?;
            Some(below(&(&lane.part.first + &lane.at(step)), edge))
        };
        self.parts.iter().filter_map(cond).collect()
    }
}

impl<'a> LaneSum<'a> {
    fn new(
        builder: &mut Builder,
        (base, lane): (&str, &Expr),
        (part, has_scale): (&'a LinearTerm, bool),
        lanes: &[i64],
        body: &mut Vec<Stmt>,
    ) -> LaneSum<'a> {
        let map = &part.map;
        let images: Vec<i64> = lanes.iter().map(|index| map.image(*index)).collect();
        let used = images.iter().fold(map.base(), |bits, image| bits | image);
        let unit = if used == 0 { 1 } else { used & -used };
        let scaled: Vec<i64> = images.iter().map(|image| image / unit).collect();
        let value = lane_image(lane, &scaled) ^ Expr::constant(map.base() / unit);
        let value = builder.simplifier.simplify(&value);
        let is_simple = value.operands().is_none_or(|(a, b)| a.operands().is_none() && b.operands().is_none());
        if is_simple {
            return LaneSum { part, lane: value, unit, used };
        }
        if !has_scale {
            return LaneSum { part, lane: builder.name(base, value, body), unit, used };
        }
        let value = builder.simplifier.simplify(&(lane_image(lane, &images) ^ Expr::constant(map.base())));
        LaneSum { part, lane: builder.name(base, value, body), unit: 1, used }
    }

    /// The position where the bits of the index `step` are flipped.
    fn at(&self, step: i64) -> Expr {
        let step = self.part.map.image(step);
        // Bits that the lane never sets are added as a constant, which becomes part of the access.
        let (met, apart) = (step & self.used, step & !self.used);
        if met == 0 {
            return &self.lane * self.unit + apart;
        }
        (&self.lane ^ &Expr::constant(met / self.unit)) * self.unit + apart
    }
}

/// The exclusive or of the images of the bits that are set in the lane.
pub(crate) fn lane_image(lane: &Expr, images: &[i64]) -> Expr {
    let mut by_shift: BTreeMap<i64, i64> = BTreeMap::new();
    for (bit, image) in (0..).zip(images) {
        for target in (0..63).filter(|target| image >> target & 1 == 1) {
            *by_shift.entry(target - bit).or_insert(0) |= 1 << bit;
        }
    }
    let mut used = 0;
    let mut sum = Expr::constant(0);
    for (shift, mask) in by_shift {
        for (low, len) in runs(mask) {
            let term = lane / (1i64 << low) % (1i64 << len) * (1i64 << (low + shift));
            let bits = ((1i64 << len) - 1) << (low + shift);
            sum = if used & bits == 0 { sum + term } else { sum ^ term };
            used |= bits;
        }
    }
    sum
}

/// The runs of ones in a mask: (lowest bit, length).
fn runs(mask: i64) -> Vec<(i64, i64)> {
    let mut found: Vec<(i64, i64)> = Vec::new();
    for bit in (0..63).filter(|bit| mask >> bit & 1 == 1) {
        match found.last_mut() {
            Some((low, len)) if *low + *len == bit => *len += 1,
            _ => found.push((bit, 1)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_expr::Var;

    #[test]
    fn the_image_of_a_lane_is_the_sum_or_exclusive_or_of_its_bits() {
        let var = Var::new("lane", 0, 31);
        for images in [vec![1, 2, 4, 8, 16], vec![32, 64, 1 | 32, 2, 4], vec![3, 3, 5, 0, 8], vec![16, 1, 2, 4, 8]] {
            let expr = lane_image(&Expr::var(&var), &images);
            for lane in 0..32i64 {
                let set = (0..5).filter(|bit| lane >> bit & 1 == 1);
                let expected = set.fold(0, |image, bit| image ^ images[bit as usize]);
                assert_eq!(expr.eval(&|_| Some(lane)), Ok(expected), "{images:?} lane {lane}: {expr}");
            }
        }
    }
}
