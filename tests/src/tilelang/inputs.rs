//! The initial contents of the parameters of a golden program: the same for a case on every machine.

use std::collections::{BTreeMap, BTreeSet};

use super::boxes::size;
use super::case::Case;
use super::expr::{Index, Load, Value};
use super::numbers::{Dtype, Plain};
use super::program::{Buffer, Element, Op, Program, Region};
use crate::rng::Rng;

/// The bytes of every parameter: floats from -1 to 1, small integers, and for integers used as indices, a permutation
/// of the valid indices.
pub(crate) fn inputs(case: &Case) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let indices = Uses::of(&case.program).params();
    let seed = seed(&case.name);
    let mut inputs = BTreeMap::new();
    for (number, param) in (0u64..).zip(&case.program.params) {
        let dtype = Dtype::named(&param.dtype)?;
        let extent = indices.get(param.name.as_str()).copied().filter(|_| !dtype.is_float());
        let values = values(param, dtype, extent, &mut Rng::new(seed, number));
        let bytes = |value: &Plain| dtype.bits(*value).to_le_bytes().into_iter().take(dtype.bytes());
        inputs.insert(param.name.clone(), values.iter().flat_map(bytes).collect());
    }
    Ok(inputs)
}

/// A hash of the case's name (FNV-1a).
fn seed(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn values(param: &Buffer, dtype: Dtype, extent: Option<i64>, rng: &mut Rng) -> Vec<Plain> {
    let count = size(&param.shape);
    if let Some(extent) = extent.filter(|extent| *extent > 0) {
        let mut indices: Vec<i64> = (0..extent).collect();
        rng.shuffle(&mut indices);
        // If there are more elements than indices, some elements are equal.
        return indices.into_iter().cycle().take(count as usize).map(Plain::Whole).collect();
    }
    let value = |_| match dtype {
        Dtype::Bool => Plain::Whole(rng.within(0..=1)),
        _ if dtype.is_float() => Plain::Real((rng.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0),
        _ if dtype.is_signed() => Plain::Whole(rng.within(-8..=8)),
        _ => Plain::Whole(rng.within(0..=8)),
    };
    (0..count).map(value).collect()
}

/// The buffers that hold indices, and the sources of each buffer.
struct Uses<'a> {
    program: &'a Program,
    /// For a buffer whose data are used as indices, the least extent of the dimensions that they index.
    extents: BTreeMap<&'a str, i64>,
    /// The buffers from which a buffer is written.
    sources: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// The buffers from which a named value is computed.
    lets: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Uses<'a> {
    fn of(program: &'a Program) -> Uses<'a> {
        let (extents, lets) = (BTreeMap::new(), BTreeMap::new());
        let mut uses = Uses { program, extents, sources: BTreeMap::new(), lets };
        for view in &program.buffers {
            if let Some(viewed) = &view.alias_of {
                uses.flow(&view.name, viewed);
            }
        }
        uses.ops(&program.body);
        uses
    }

    /// The parameters whose data are used as indices, with the extent.
    fn params(&self) -> BTreeMap<&'a str, i64> {
        let mut params = BTreeMap::new();
        for (name, extent) in &self.extents {
            let (mut reached, mut open) = (BTreeSet::from([*name]), vec![*name]);
            while let Some(next) = open.pop() {
                let sources = self.sources.get(next).into_iter().flatten().copied();
                open.extend(sources.filter(|source| reached.insert(*source)));
            }
            let is_param = |name: &&str| self.program.params.iter().any(|param| param.name == **name);
            for param in reached.into_iter().filter(is_param) {
                let least = params.entry(param).or_insert(*extent);
                *least = (*least).min(*extent);
            }
        }
        params
    }

    fn flow(&mut self, dst: &'a str, src: &'a str) {
        self.sources.entry(dst).or_default().insert(src);
    }

    fn ops(&mut self, ops: &'a [Op]) {
        for op in ops {
            match op {
                Op::Parallel(nest) => self.elements(&nest.body),
                Op::Scalar(body) => self.elements(body),
                Op::Loop(around) => self.ops(&around.body),
                Op::If { cond, then, otherwise } => {
                    self.value(cond, &mut BTreeSet::new());
                    self.ops(then);
                    self.ops(otherwise);
                }
                Op::Copy { src, dst, .. } | Op::AtomicAdd { dst, src } => {
                    self.region(src);
                    self.region(dst);
                    self.flow(&dst.buffer, &src.buffer);
                }
                Op::Fill { dst, .. } => self.region(dst),
                Op::Reduce(_) | Op::Gemm(_) => {}
            }
        }
    }

    fn region(&mut self, region: &'a Region) {
        for (dimension, range) in region.ranges.iter().flatten().enumerate() {
            self.used(&region.buffer, dimension, &range.min);
        }
    }

    fn elements(&mut self, body: &'a [Element]) {
        for element in body {
            match element {
                Element::Store(store) | Element::AtomicAdd(store) => {
                    let mut loaded = BTreeSet::new();
                    self.value(&store.value, &mut loaded);
                    self.access(&store.buffer, &store.index);
                    loaded.into_iter().for_each(|src| self.flow(&store.buffer, src));
                }
                Element::Let { name, value } => {
                    let made_of = self.data(value);
                    self.lets.insert(name, made_of);
                }
                Element::If { cond, then, otherwise } => {
                    self.value(cond, &mut BTreeSet::new());
                    self.elements(then);
                    self.elements(otherwise);
                }
                Element::For { body, .. } => self.elements(body),
            }
        }
    }

    /// Adds the buffers that a value loads.
    fn value(&mut self, value: &'a Value, loaded: &mut BTreeSet<&'a str>) {
        match value {
            Value::Const(_) | Value::Variable(_) => {}
            Value::Load(load) => {
                loaded.insert(&load.buffer);
                self.access(&load.buffer, &load.index);
            }
            Value::Op(_, arguments) => arguments.iter().for_each(|argument| self.value(argument, loaded)),
            Value::Cast(_, argument) => self.value(argument, loaded),
        }
    }

    fn access(&mut self, buffer: &'a str, index: &'a [Index]) {
        for (dimension, index) in index.iter().enumerate() {
            self.used(buffer, dimension, index);
        }
    }

    /// Records the index of one dimension of a buffer.
    fn used(&mut self, buffer: &str, dimension: usize, index: &'a Index) {
        let extent = self.program.buffer(buffer).and_then(|buffer| buffer.shape.get(dimension).copied());
        for name in self.data(index) {
            let extent = extent.unwrap_or(1);
            let least = self.extents.entry(name).or_insert(extent);
            *least = (*least).min(extent);
        }
    }

    /// The buffers from which an index is computed.
    fn data(&mut self, index: &'a Index) -> BTreeSet<&'a str> {
        match index {
            Index::Integer(_) => BTreeSet::new(),
            Index::Variable(name) => self.lets.get(name.as_str()).cloned().unwrap_or_default(),
            Index::Binary(_, left, right) => {
                let mut names = self.data(left);
                names.append(&mut self.data(right));
                names
            }
            Index::Load(Load { buffer, index }) => {
                self.access(buffer, index);
                BTreeSet::from([buffer.as_str()])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::read_case;
    use super::*;

    fn case(name: &str) -> Case {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/tilelang"));
        read_case(&std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap()).unwrap()
    }

    fn numbers(bytes: &[u8], dtype: Dtype) -> Vec<f64> {
        let number = |bytes: &[u8]| {
            let mut wide = [0; 8];
            wide[..bytes.len()].copy_from_slice(bytes);
            dtype.number(u64::from_le_bytes(wide)).real()
        };
        bytes.chunks(dtype.bytes()).map(number).collect()
    }

    #[test]
    fn indices_are_a_permutation() {
        let inputs = inputs(&case("rej_data_dependent")).unwrap();
        let mut indices = numbers(&inputs["I"], Dtype::I32);
        assert!(indices.windows(2).any(|pair| pair[0] > pair[1]));
        indices.sort_by(f64::total_cmp);
        assert_eq!(indices, (0..64).map(f64::from).collect::<Vec<f64>>());
    }

    #[test]
    fn other_numbers_are_small() {
        let inputs = inputs(&case("seed_floating_if")).unwrap();
        assert!(numbers(&inputs["M"], Dtype::I32).iter().all(|value| value.abs() <= 8.0));
        let floats = numbers(&inputs["A"], Dtype::F32);
        assert!(floats.iter().all(|value| value.abs() <= 1.0) && floats.iter().any(|value| *value < -0.5));
    }

    #[test]
    fn a_case_is_the_same_every_time_and_its_parameters_differ() {
        let once = inputs(&case("ew_add3_mixed")).unwrap();
        assert_eq!(once, inputs(&case("ew_add3_mixed")).unwrap());
        assert!(once["B"] != once["C"]);
    }
}
