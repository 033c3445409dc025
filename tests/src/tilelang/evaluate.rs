//! Evaluates a golden program: one block after the other, in 64-bit floats that are rounded when stored.
//!
//! Layouts and threads play no role here. Reads out of bounds of a tensor in global memory give zero; writes there are
//! dropped. Iterations of a parallel operation run in row-major order, which makes no difference to a program without
//! races.

use std::collections::BTreeMap;

use super::arithmetic::Number;
use super::boxes::{points, position, size};
use super::contents::{Contents, Piece};
use super::numbers::Dtype;
use super::program::{Buffer, Op, Parallel, Program, Scope};
use super::storage::storages;
use super::walk::Env;

/// The contents of the parameters after a run, and of the other buffers after the last block.
pub(crate) struct Evaluation {
    contents: BTreeMap<String, Contents>,
}

impl Evaluation {
    /// The contents of this buffer, which must not be a view.
    pub(crate) fn contents(&self, owner: &str) -> Result<&Contents, String> {
        self.contents.get(owner).ok_or_else(|| format!("`{owner}` has no contents"))
    }
}

/// Runs a program whose parameters hold these bytes.
pub(crate) fn evaluate(program: &Program, inputs: &BTreeMap<String, Vec<u8>>) -> Result<Evaluation, String> {
    let mut machine = Machine::new(program, inputs)?;
    if program.grid.len() > 3 {
        return Err(format!("the grid has {} dimensions", program.grid.len()));
    }
    let blocks = [2usize, 1, 0].map(|dimension| program.grid.get(dimension).copied().unwrap_or(1));
    for block in points(&blocks) {
        machine.begin_block();
        let mut env = Env::default();
        for (name, at) in ["bz", "by", "bx"].into_iter().zip(block) {
            env.bind(name, Some(at));
        }
        machine.ops(&program.body, &mut env)?;
    }
    Ok(machine.finished())
}

/// A buffer and its storage.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) buffer: &'a Buffer,
    pub(crate) dtype: Dtype,
    storage: usize,
}

impl Known<'_> {
    /// The index of an element in its storage; `None` out of bounds of a tensor in global memory, an error for other
    /// buffers.
    pub(crate) fn place(&self, index: &[i64]) -> Result<Option<usize>, String> {
        let place = position(index, &self.buffer.shape);
        let may_be_outside = self.buffer.scope == Scope::Global && index.len() == self.buffer.shape.len();
        if place.is_none() && !may_be_outside {
            return Err(format!("{}{index:?} is out of bounds", self.buffer.name));
        }
        Ok(place)
    }

    /// The number of elements.
    pub(crate) fn elements(&self) -> usize {
        size(&self.buffer.shape) as usize
    }
}

/// The state of an evaluation.
pub(crate) struct Machine<'a> {
    known: BTreeMap<&'a str, Known<'a>>,
    /// The buffers that are not views, in the order of their storages.
    owners: Vec<&'a Buffer>,
    storages: Vec<Contents>,
    /// True for statements outside of any tile operation.
    pub(crate) is_loose: bool,
}

impl<'a> Machine<'a> {
    fn new(program: &'a Program, inputs: &BTreeMap<String, Vec<u8>>) -> Result<Machine<'a>, String> {
        let roots: BTreeMap<&str, &str> =
            storages(program).into_iter().map(|(name, storage)| (name, storage.root)).collect();
        let buffers = || program.params.iter().chain(&program.buffers);
        let owners: Vec<&'a Buffer> = buffers().filter(|buffer| buffer.alias_of.is_none()).collect();
        let mut known = BTreeMap::new();
        for buffer in buffers() {
            if buffer.scope == Scope::Local {
                return Err(format!("`{}` is private to each thread", buffer.name));
            }
            let root = roots.get(buffer.name.as_str()).copied();
            let storage = owners.iter().position(|owner| Some(owner.name.as_str()) == root);
            let storage = storage.ok_or_else(|| format!("`{}` has no storage", buffer.name))?;
            known.insert(buffer.name.as_str(), Known { buffer, dtype: Dtype::named(&buffer.dtype)?, storage });
        }
        let storages = owners.iter().map(|owner| contents(owner, inputs)).collect::<Result<Vec<Contents>, String>>()?;
        Ok(Machine { known, owners, storages, is_loose: false })
    }

    /// Clears the block's buffers after the preceding block.
    fn begin_block(&mut self) {
        for (owner, contents) in self.owners.iter().zip(&mut self.storages) {
            if owner.scope != Scope::Global {
                *contents = Contents::unwritten(contents.size());
            }
        }
    }

    fn finished(self) -> Evaluation {
        let named = self.owners.iter().map(|owner| owner.name.clone());
        Evaluation { contents: named.zip(self.storages).collect() }
    }

    pub(crate) fn find(&self, name: &str) -> Result<Known<'a>, String> {
        self.known.get(name).copied().ok_or_else(|| format!("unknown buffer `{name}`"))
    }

    /// The bytes of an element; zero out of bounds of a tensor.
    pub(crate) fn get(&self, from: Known<'_>, place: Option<usize>) -> Result<Piece, String> {
        let Some(place) = place else { return Ok(Piece::ZERO) };
        let piece = self.storages[from.storage].get(from.dtype, place);
        piece.ok_or_else(|| format!("`{}` is longer than its storage", from.buffer.name))
    }

    /// The value of an element.
    pub(crate) fn number(&self, from: Known<'_>, place: Option<usize>) -> Result<Number, String> {
        Ok(self.get(from, place)?.number(from.dtype))
    }

    /// Writes an element, unless it is out of bounds of a tensor.
    pub(crate) fn put(&mut self, to: Known<'_>, place: Option<usize>, piece: &Piece) -> Result<(), String> {
        let Some(place) = place else { return Ok(()) };
        let is_there = self.storages[to.storage].put(to.dtype, place, piece);
        if is_there { Ok(()) } else { Err(format!("`{}` is longer than its storage", to.buffer.name)) }
    }

    fn ops(&mut self, ops: &'a [Op], env: &mut Env<'a>) -> Result<(), String> {
        for op in ops {
            self.op(op, env)?;
        }
        Ok(())
    }

    fn op(&mut self, op: &'a Op, env: &mut Env<'a>) -> Result<(), String> {
        match op {
            Op::Parallel(nest) => self.parallel(nest, env),
            Op::Loop(around) => {
                let depth = env.depth();
                for round in 0..around.extent {
                    env.bind(&around.var, Some(round));
                    self.ops(&around.body, env)?;
                    env.back_to(depth);
                }
                Ok(())
            }
            Op::If { cond, then, otherwise } => {
                let branch = if self.holds(cond, env)? { then } else { otherwise };
                self.ops(branch, env)
            }
            // All threads execute the same statements, so once is enough. An atomic addition would apply once per
            // thread: the judge checks only the owners of its destination, no golden program has one, and it is refused
            // here.
            Op::Scalar(body) => {
                self.is_loose = true;
                let outcome = self.elements(body, env);
                self.is_loose = false;
                outcome
            }
            Op::Copy { src, dst, .. } => self.copy(dst, src, env),
            Op::Fill { dst, value } => self.fill(dst, *value, env),
            Op::Reduce(reduce) => self.reduce(reduce),
            Op::Gemm(gemm) => self.gemm(gemm),
            Op::AtomicAdd { dst, src } => self.atomic_add(dst, src, env),
        }
    }

    fn parallel(&mut self, nest: &'a Parallel, env: &mut Env<'a>) -> Result<(), String> {
        let depth = env.depth();
        for at in points(&nest.extents) {
            for (var, value) in nest.vars.iter().zip(at) {
                env.bind(var, Some(value));
            }
            self.elements(&nest.body, env)?;
            env.back_to(depth);
        }
        Ok(())
    }
}

/// The initial contents of a buffer: the given bytes for a parameter, unwritten bytes for others.
fn contents(owner: &Buffer, inputs: &BTreeMap<String, Vec<u8>>) -> Result<Contents, String> {
    let bytes = size(&owner.shape) as usize * Dtype::named(&owner.dtype)?.bytes();
    if owner.scope != Scope::Global {
        return Ok(Contents::unwritten(bytes));
    }
    match inputs.get(&owner.name) {
        Some(given) if given.len() == bytes => Ok(Contents::given(given.clone())),
        Some(given) => Err(format!("{} bytes for `{}`, which has {bytes}", given.len(), owner.name)),
        None => Err(format!("no bytes for `{}`", owner.name)),
    }
}

/// Small programs for tests.
#[cfg(test)]
pub(crate) mod samples {
    use super::super::numbers::Plain;
    use super::super::program::Region;
    use super::*;

    pub(crate) fn buffer(name: &str, scope: Scope, dtype: &str, shape: &[i64]) -> Buffer {
        Buffer { name: name.to_string(), scope, dtype: dtype.to_string(), shape: shape.to_vec(), alias_of: None }
    }

    pub(crate) fn whole(name: &str) -> Region {
        Region { buffer: name.to_string(), ranges: None }
    }

    pub(crate) fn copy(dst: Region, src: Region) -> Op {
        Op::Copy { src, dst, coalesced_width: None }
    }

    pub(crate) fn program(params: Vec<Buffer>, buffers: Vec<Buffer>, body: Vec<Op>) -> Program {
        let (layouts, loop_layouts) = (BTreeMap::new(), BTreeMap::new());
        Program { threads: 32, grid: vec![1], params, buffers, layouts, loop_layouts, body }
    }

    /// The contents of a parameter after a run in which every parameter initially counts up from 1.
    pub(crate) fn left_in(program: &Program, name: &str) -> Vec<Number> {
        let counted = |param: &Buffer| -> (String, Vec<u8>) {
            let dtype = Dtype::named(&param.dtype).unwrap();
            let element = |at: i64| dtype.bits(Plain::Whole(at + 1)).to_le_bytes()[..dtype.bytes()].to_vec();
            (param.name.clone(), (0..size(&param.shape)).flat_map(element).collect())
        };
        let evaluation = evaluate(program, &program.params.iter().map(counted).collect()).unwrap();
        let (contents, buffer) = (evaluation.contents(name).unwrap(), program.buffer(name).unwrap());
        let dtype = Dtype::named(&buffer.dtype).unwrap();
        (0..size(&buffer.shape) as usize).map(|at| contents.get(dtype, at).unwrap().number(dtype)).collect()
    }

    pub(crate) fn values(numbers: &[Number]) -> Vec<f64> {
        numbers.iter().map(|number| number.plain.real()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::arithmetic::Trust;
    use super::super::expr::{Index, Value};
    use super::super::program::{Element, Store};
    use super::samples::{buffer, copy, left_in, program, values, whole};
    use super::*;

    #[test]
    fn views_of_another_dtype_see_the_bits() {
        let params = vec![buffer("A", Scope::Global, "float32", &[2]), buffer("B", Scope::Global, "int32", &[2])];
        let a = buffer("a", Scope::Fragment, "float32", &[2]);
        let view = Buffer { alias_of: Some("a".to_string()), ..buffer("v", Scope::Fragment, "int32", &[2]) };
        let body = vec![copy(whole("a"), whole("A")), copy(whole("B"), whole("v"))];
        let left = left_in(&program(params, vec![a, view], body), "B");
        assert_eq!(values(&left), [f64::from(0x3f80_0000), f64::from(0x4000_0000)]);
        assert!(left.iter().all(|number| number.trust == Trust::Exact));
    }

    #[test]
    fn what_was_never_written_is_not_known() {
        let params = vec![buffer("B", Scope::Global, "float32", &[2])];
        let a = buffer("a", Scope::Fragment, "float32", &[2]);
        let left = left_in(&program(params, vec![a], vec![copy(whole("B"), whole("a"))]), "B");
        assert!(left.iter().all(|number| number.trust == Trust::Unknown));
    }

    #[test]
    fn a_fragment_is_that_of_the_last_block() {
        let params = vec![buffer("B", Scope::Global, "float32", &[2])];
        let value = Value::Variable("by".to_string());
        let store = Store { buffer: "a".to_string(), index: vec![Index::Variable("i".to_string())], value };
        let (vars, body) = (vec!["i".to_string()], vec![Element::Store(store)]);
        let nest = Parallel { vars, extents: vec![1], body, loop_layout: None, coalesced_width: None };
        let fragment = buffer("a", Scope::Fragment, "float32", &[2]);
        let mut program = program(params, vec![fragment], vec![Op::Parallel(nest)]);
        program.grid = vec![2, 3];
        let left = left_in(&program, "a");
        assert_eq!((values(&left)[0], left[1].trust), (2.0, Trust::Unknown));
    }

    #[test]
    fn every_parameter_needs_its_bytes() {
        let program = program(vec![buffer("B", Scope::Global, "float32", &[2])], Vec::new(), Vec::new());
        assert_eq!(evaluate(&program, &BTreeMap::new()).err(), Some("no bytes for `B`".to_string()));
    }
}
