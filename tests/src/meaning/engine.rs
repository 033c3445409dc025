//! Copies of boxes, and the barriers in shared memory at which those to shared memory count.

use std::collections::BTreeMap;
use std::ops::Range;

use tilewright::expr::Expr;
use tilewright::ir::Handle;
use tilewright::ir::thread::{Call, EngineWay, Memory, Reach, TensorCopy, TensorMapRecipe, TensorPart};
use tilewright::layout::descriptor::SwizzlePattern;

use super::machine::{Machine, Order};
use super::pending::PendingCopy;
use super::stores::Bytes;

/// A barrier: its memory, and its first byte there.
pub(super) type Place = (usize, usize);

/// The barriers of a CTA.
#[derive(Default)]
pub(super) struct Barriers {
    of: BTreeMap<Place, Barrier>,
}

/// The state of a barrier.
struct Barrier {
    /// Arrivals that end a phase, and those of this phase.
    needed: i64,
    arrived: i64,
    /// Bytes that were announced and have not come.
    bytes: i64,
    /// Phases that have ended.
    ended: i64,
    /// Copies that have not arrived.
    copies: Vec<PendingCopy>,
}

impl Barrier {
    fn settle(&mut self) {
        if self.arrived == self.needed && self.bytes == 0 {
            (self.arrived, self.ended) = (0, self.ended + 1);
        }
    }
}

impl Barriers {
    pub(super) fn begin(&mut self, place: Place, needed: i64) -> Result<(), String> {
        let barrier = Barrier { needed, arrived: 0, bytes: 0, ended: 0, copies: Vec::new() };
        match self.of.insert(place, barrier) {
            None => Ok(()),
            Some(_) => Err("a barrier begins again before it has ended".to_string()),
        }
    }

    pub(super) fn end(&mut self, place: Place) -> Result<(), String> {
        match self.of.remove(&place) {
            Some(barrier) if barrier.copies.is_empty() => Ok(()),
            Some(_) => Err("a barrier ends while copies are on their way".to_string()),
            None => Err("a barrier ends that has not begun".to_string()),
        }
    }

    pub(super) fn arrive(&mut self, place: Place, bytes: i64) -> Result<(), String> {
        let barrier = self.at(place)?;
        barrier.bytes += bytes;
        barrier.arrived += 1;
        if barrier.arrived > barrier.needed {
            return Err("more arrivals than a barrier waits for".to_string());
        }
        barrier.settle();
        Ok(())
    }

    /// A copy whose bytes count at a barrier when they arrive.
    pub(super) fn start(&mut self, place: Place, copy: PendingCopy) -> Result<(), String> {
        self.at(place)?.copies.push(copy);
        Ok(())
    }

    /// The copies of a barrier that are on their way, which arrive now.
    pub(super) fn arrivals(&mut self, place: Place) -> Result<Vec<PendingCopy>, String> {
        let barrier = self.at(place)?;
        let copies = std::mem::take(&mut barrier.copies);
        for (.., bytes) in &copies {
            barrier.bytes -= bytes.len() as i64;
            barrier.settle();
        }
        Ok(copies)
    }

    /// An error if the phase of this parity has not ended: all threads have done what comes before.
    pub(super) fn wait(&mut self, place: Place, parity: i64) -> Result<(), String> {
        let barrier = self.at(place)?;
        if barrier.ended % 2 != parity { Ok(()) } else { Err("a wait for a barrier that never ends".to_string()) }
    }

    fn at(&mut self, place: Place) -> Result<&mut Barrier, String> {
        self.of.get_mut(&place).ok_or_else(|| "a barrier that has not begun".to_string())
    }
}

impl Machine<'_> {
    /// The memory of a barrier, and its first byte there.
    pub(super) fn barrier(&self, at: usize, place: &(Handle<Memory>, Expr)) -> Result<Place, String> {
        let (number, bytes) = self.bytes(at, place, 8)?;
        Ok((number, bytes.start))
    }

    /// Waits at a barrier. Copies on their way arrive now.
    pub(super) fn wait(&mut self, call: &Call, at: usize) -> Result<(), String> {
        let ([barrier], [parity]) = (&call.memory[..], &call.arguments[..]) else {
            return Err("a wait must have a barrier and a parity".to_string());
        };
        let (barrier, parity) = (self.barrier(at, barrier)?, self.expr(at, parity)?);
        self.arrivals(barrier)?;
        self.barriers.wait(barrier, parity)
    }

    fn arrivals(&mut self, barrier: Place) -> Result<(), String> {
        self.barriers.arrivals(barrier)?.into_iter().for_each(|copy| self.arrive(copy));
        Ok(())
    }

    /// Starts to copy a part of a tensor. Each of its elements goes to a place of its own.
    pub(super) fn tensor_copy(&mut self, copy: &TensorCopy, at: usize) -> Result<(), String> {
        let of_tensor = copy.part.tensor(&self.program.maps);
        let (number, bytes) = self.range(at, &copy.shared, copy.bytes)?;
        if bytes.start % 16 != 0 {
            return Err(format!(
                "misaligned: the copy engine moves bytes from byte {} of shared memory on",
                bytes.start
            ));
        }
        let (elements, swizzle) = self.elements_of(&copy.part, copy.bytes, at)?;
        let width = self.program.memories[of_tensor].dtype.bytes();
        let tensor = of_tensor.index();
        let in_tensor = |place: i64| place as usize..(place + width) as usize;
        let places = elements.into_iter().enumerate().map(|(element, of_tensor)| {
            let place = swizzled(swizzle, bytes.start as i64 + element as i64 * width) as usize;
            ((number, place..place + width as usize), of_tensor.map(in_tensor))
        });
        let places: Vec<(Bytes, Option<Range<usize>>)> = places.collect();
        let is_inside = |place: &Range<usize>| place.end <= self.memories[&tensor].len();
        if !places.iter().filter_map(|(_, of_tensor)| of_tensor.as_ref()).all(is_inside) {
            return Err("a copy is outside of the memory of its tensor".to_string());
        }
        let full = match &copy.way {
            EngineWay::ToShared { full, reach: Reach::Own } => full,
            EngineWay::ToShared { .. } => return Err("a copy to other CTAs of a cluster".to_string()),
            EngineWay::ToTensor { combined } => {
                let combined = combined.map(|by| (by, self.program.memories[of_tensor].dtype));
                let mut inside = places.into_iter().filter_map(|(shared, of_tensor)| Some((shared, of_tensor?)));
                return inside.try_for_each(|(from, to)| self.start_store(at, from, (tensor, to), combined));
            }
        };
        let barrier = self.barrier(at, full)?;
        for ((number, place), of_tensor) in places {
            let moved = match of_tensor {
                None => vec![Some(0); width as usize],
                Some(from) => self.memories[&tensor][from].to_vec(),
            };
            self.barriers.start(barrier, (number, place, moved))?;
        }
        match self.order {
            Order::Forwards => self.arrivals(barrier),
            Order::Backwards => Ok(()),
        }
    }

    /// The first byte of each element of a part of a tensor, in the memory of the tensor, and how they are swizzled in shared
    /// memory; `None` outside of the tensor.
    fn elements_of(
        &self,
        part: &TensorPart,
        bytes: i64,
        at: usize,
    ) -> Result<(Vec<Option<i64>>, SwizzlePattern), String> {
        let numbers = |exprs: &[Expr]| exprs.iter().map(|expr| self.expr(at, expr)).collect::<Result<Vec<_>, _>>();
        match part {
            TensorPart::Run { first } => {
                let width = self.program.memories[first.0].dtype.bytes();
                let first = self.expr(at, &first.1)?;
                let elements = (0..bytes / width).map(|element| Some((first + element) * width));
                Ok((elements.collect(), SwizzlePattern::None))
            }
            TensorPart::Box { map, coordinates } => {
                let map = &self.program.maps[*map];
                let (extents, strides) = (numbers(&map.extents)?, numbers(&map.strides)?);
                Ok((elements_of_box(map, &extents, &strides, &numbers(coordinates)?), map.boxes.swizzle))
            }
        }
    }
}

/// The first byte of each element of a box in the memory of its tensor, in order; `None` outside of the tensor.
fn elements_of_box(map: &TensorMapRecipe, extents: &[i64], strides: &[i64], coordinates: &[i64]) -> Vec<Option<i64>> {
    let width = map.boxes.bits / 8;
    let all: i64 = map.boxes.box_dims.iter().product();
    let element = |mut number: i64| {
        let mut index = vec![0; extents.len()];
        for (dimension, source) in map.boxes.sources.iter().enumerate() {
            let at = coordinates[dimension] + number % map.boxes.box_dims[dimension];
            number /= map.boxes.box_dims[dimension];
            if at < 0 {
                return None;
            }
            index[source.dimension] += at * source.step;
        }
        let is_inside = index.iter().zip(extents).all(|(at, extent)| (0..*extent).contains(at));
        let place: i64 = index.iter().zip(strides).map(|(at, stride)| at * stride).sum();
        is_inside.then_some((map.start + place) * width)
    };
    (0..all).map(element).collect()
}

/// Where a byte of shared memory goes: bits of its address by those of the row of 128 bytes (PTX ISA, "Swizzling modes").
fn swizzled(pattern: SwizzlePattern, byte: i64) -> i64 {
    let row = byte >> 7;
    match pattern {
        SwizzlePattern::None => byte,
        SwizzlePattern::B32 => byte ^ (row & 1) << 4,
        SwizzlePattern::B64 => byte ^ (row & 3) << 4,
        SwizzlePattern::B128 => byte ^ (row & 7) << 4,
        SwizzlePattern::B128Atom32 => byte ^ (row & 3) << 5,
    }
}
