//! Performs products, copies and shifts on the bytes of shared and tensor memory.

use crate::exec::access::RegionId;
use crate::exec::machine::Machine;
use crate::exec::product::{Shape, UNIT, Values, multiply, scale};
use crate::exec::tensor::engine::{Copy, Half, Product, QUARTER, SHIFTED_COLUMNS, Shift, Source};
use crate::exec::tensor::memory::{COLUMNS, LANES, split};
use crate::fault::{FaultKind, RaisedFault};
use crate::undefined::Undefined;

impl Machine<'_> {
    pub(super) fn perform_product(&mut self, product: &Product) {
        let Product { start, shape, .. } = product;
        let mut b = Values::default();
        for units in &product.b {
            let part =
                self.shared_values((start.warp, &start.read), units, &shape.b, (shape.n / product.b.len(), shape.k));
            b.elements.extend(part.elements);
            b.origins.extend(part.origins);
        }
        for half in &product.halves {
            self.perform_half(product, half, b.clone());
        }
    }

    fn perform_half(&mut self, product: &Product, half: &Half, mut b: Values) {
        let Product { start, shape, path, .. } = product;
        let (Shape { n, .. }, id) = (*shape, half.id);
        if let Some((_, of_b, factors)) = product.scales {
            self.read_scales((start.warp, start.read.pc), &mut b, (id, of_b, shape.b.scale_byte), factors, shape);
        }
        let (mut words, mut marks) = self.sums_before(product, id);
        match (&half.a, path.parts()) {
            (Source::Shared(_), _) | (Source::Tensor(_), 1) => {
                let a = self.left_values(product, half, 0);
                add_products(shape, (&a, &b), (&mut words, &mut marks), product.shift);
            }
            (Source::Tensor(_), parts) => {
                for part in 0..parts {
                    let a = self.left_values(product, half, part);
                    add_to_part(product, (&a, &b), (part, parts), (&mut words, &mut marks));
                }
            }
        }
        let memory = &mut self.owner_mut(id).tensor.memory;
        for (first, lane, column) in product.runs() {
            let run = first..first + path.columns(n);
            if half.disabled >> lane & 1 == 1 {
                continue;
            }
            memory.set_defined(lane, column, &words[run.clone()]);
            for (at, origin) in run.clone().zip(marks.get(run.clone()).into_iter().flatten()) {
                if origin.is_some() {
                    memory.set(lane, column + at - run.start, words[at], of_origin(*origin));
                }
            }
        }
    }

    /// The left multiplicand of a part of the columns, with its scale factors.
    fn left_values(&mut self, product: &Product, half: &Half, part: usize) -> Values {
        let Product { start, shape, path, .. } = product;
        let (Shape { m, k, .. }, id, by) = (*shape, half.id, (start.warp, start.read.pc));
        let mut a = match &half.a {
            Source::Shared(units) => self.shared_values((start.warp, &start.read), units, &shape.a, (m, k)),
            Source::Tensor(address) => self.tensor_values(by, (id, *address), &shape.a, (m, k), (*path, part)),
        };
        if let Some((of_a, _, factors)) = product.scales {
            self.read_scales(by, &mut a, (id, of_a, shape.a.scale_byte), factors, shape);
        }
        a
    }

    /// The sums that a CTA adds the products to, and where undefined bits of them come from: for each of them, or nothing if
    /// there are none.
    fn sums_before(&mut self, product: &Product, id: RegionId) -> (Vec<u32>, Vec<Option<u32>>) {
        let (Shape { m, n, .. }, run) = (product.shape, product.path.columns(product.shape.n));
        let (mut words, mut marks) = (vec![0u32; m * n], Vec::new());
        for (first, lane, column) in product.runs().filter(|_| product.accumulates) {
            let memory = &self.owner(id).tensor.memory;
            if let Some(found) = memory.defined_words(lane, column..column + run) {
                words[first..first + run].copy_from_slice(found);
                continue;
            }
            marks.resize(m * n, None);
            for at in 0..run {
                let (word, undefined) = self.owner(id).tensor.memory.get(lane, column + at);
                let undefined =
                    undefined.unwrap_or_else(|| self.unwritten_tensor(product.start.warp, product.start.read.pc));
                words[first + at] = word;
                marks[first + at] = undefined.is_some().then_some(undefined.origin);
            }
        }
        (words, marks)
    }

    /// Reads the scale factors of a multiplicand, from a byte of the words in their columns on.
    fn read_scales(
        &mut self,
        (warp, pc): (u32, u32),
        values: &mut Values,
        (id, address, first_byte): (RegionId, u32, u32),
        factors: usize,
        shape: &Shape,
    ) {
        for line in 0..values.origins.len() {
            let column = split(address).1 + line / 32;
            let bytes = first_byte as usize..first_byte as usize + factors;
            let used = bytes.clone().fold(0u32, |all, byte| all | 0xff << (8 * byte));
            let (word, undefined) = self.scale_word((warp, pc), id, (line % 32, column), used);
            if bytes.clone().any(|byte| undefined.bits >> (8 * byte) & 0xff != 0) {
                values.origins[line] = values.origins[line].or(Some(undefined.origin));
            }
            values.scales.extend(bytes.map(|byte| scale(word.to_le_bytes()[byte], shape.scale)));
        }
    }

    /// A word of scale factors; all quarters of the lanes have the same bits of it that are used.
    fn scale_word(
        &mut self,
        (warp, pc): (u32, u32),
        id: RegionId,
        (lane, column): (usize, usize),
        used: u32,
    ) -> (u32, Undefined) {
        let (word, mut undefined) = self.owner(id).tensor.memory.get(lane, column);
        for other in (lane + 32..LANES).step_by(32) {
            let (copy, of_copy) = self.owner(id).tensor.memory.get(other, column);
            if (copy ^ word) & used != 0 && of_copy.is_some() {
                let message = "the quarters of the lanes of tensor memory have different scale factors";
                let stop = RaisedFault::new(FaultKind::TmemMisuse, 1, message);
                let origin = self.origins.number(warp, pc, *stop);
                return (word, Undefined::new(u64::from(u32::MAX), origin));
            }
            undefined = undefined.zip(of_copy).map(|(one, other)| one.or(other));
        }
        (word, undefined.unwrap_or_else(|| self.unwritten_tensor(warp, pc)))
    }

    /// Moves the words of every lane but the last to the next lane; the first one keeps its own.
    pub(super) fn perform_shift(&mut self, shift: &Shift) {
        let Shift { start, first_lane, first_column, ids } = shift;
        for id in ids {
            for lane in (*first_lane..first_lane + QUARTER - 1).rev() {
                for column in *first_column..first_column + SHIFTED_COLUMNS {
                    let (word, undefined) = self.owner(*id).tensor.memory.get(lane, column);
                    let undefined = undefined.unwrap_or_else(|| self.unwritten_tensor(start.warp, start.read.pc));
                    self.owner_mut(*id).tensor.memory.set(lane + 1, column, word, undefined);
                }
            }
        }
    }

    pub(super) fn perform_tensor_copy(&mut self, copy: &Copy) {
        let Copy { start, first_column, shape, .. } = copy;
        let in_row = shape.bytes as usize / UNIT as usize;
        let lanes = (0..LANES).filter(|lane| lane % QUARTER < shape.lanes);
        for ((id, units), lane) in copy.parts.iter().flat_map(|part| lanes.clone().map(move |lane| (part, lane))) {
            let row = shape.quarters[lane / QUARTER] as usize + lane % QUARTER;
            for unit in 0..in_row {
                let (bytes, origin) =
                    self.unit_bytes(start.warp, &start.read, units, (row * in_row + unit, UNIT as usize));
                for (word, part) in bytes.chunks_exact(4).enumerate() {
                    let column = first_column + unit * 4 + word;
                    let value = u32::from_le_bytes([part[0], part[1], part[2], part[3]]);
                    self.owner_mut(*id).tensor.memory.set(lane, column % COLUMNS, value, of_origin(origin));
                }
            }
        }
    }
}

/// Adds the products to sums, and where undefined bits of the multiplicands come from to the origins of the sums, of which there
/// are none if all are defined.
fn add_products(
    shape: &Shape,
    (a, b): (&Values, &Values),
    (words, origins): (&mut [u32], &mut Vec<Option<u32>>),
    shift: u32,
) {
    let Shape { m, n, .. } = *shape;
    if a.origins.iter().chain(&b.origins).any(Option::is_some) {
        origins.resize(m * n, None);
        let of_multiplicands = (0..m * n).map(|at| a.origins[at / n].or(b.origins[at % n]));
        origins.iter_mut().zip(of_multiplicands).for_each(|(origin, other)| *origin = origin.or(other));
    }
    multiply(shape, a, b, words, shift);
}

/// Adds the products to the sums of a part of the columns.
fn add_to_part(
    product: &Product,
    (a, b): (&Values, &Values),
    (part, parts): (usize, usize),
    (words, origins): (&mut [u32], &mut Vec<Option<u32>>),
) {
    let Shape { m, n, .. } = product.shape;
    let shape = Shape { n: n / parts, ..product.shape };
    let place = |at: usize| at / shape.n * n + part * shape.n + at % shape.n;
    let of_part = || (0..m * shape.n).map(place);
    let mut sums: Vec<u32> = of_part().map(|at| words[at]).collect();
    let mut own: Vec<Option<u32>> = of_part().filter_map(|at| origins.get(at).copied()).collect();
    add_products(&shape, (a, &b.part(part, parts)), (&mut sums, &mut own), product.shift);
    of_part().zip(sums).for_each(|(at, sum)| words[at] = sum);
    if !own.is_empty() {
        origins.resize(m * n, None);
        of_part().zip(own).for_each(|(at, origin)| origins[at] = origin);
    }
}

/// The undefined bits of a word that is undefined because of something.
fn of_origin(origin: Option<u32>) -> Undefined {
    origin.map_or(Undefined::default(), |origin| Undefined::new(u64::from(u32::MAX), origin))
}
