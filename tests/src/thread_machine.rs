//! A small interpreter for thread programs, which executes the IR directly to check lowering without NVRTC.
//!
//! Between barriers, threads run one after the other, which is one of the orders that hardware may use.

use std::collections::BTreeMap;

use tilewright::expr::{Expr, Var};
use tilewright::ir::thread::{Call, Cond, Inst, Memory, Program, Regs, Stmt};
use tilewright::ir::{Handle, HwIndex, Scalar};

/// The contents of memory: element values by buffer and position.
pub type Contents = BTreeMap<(usize, i64), i64>;

/// `(value, part)`: byte `part` of an element with the opaque value `value`.
type Byte = (i64, u8);

/// The location of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Memory { number: usize, byte: i64 },
    Register { thread: usize, array: usize, byte: i64 },
}

/// Runs a program of one CTA; `contents` holds the inputs and receives the outputs. Elements are opaque numbers whose
/// bytes move individually. Errors: a read of a byte that was never written; a written element whose bytes are not, in
/// the end, those of a single value in order.
pub fn execute(program: &Program, contents: &mut Contents) -> Result<(), String> {
    let memories: Vec<&Memory> = program.memories.iter().map(|(_, memory)| memory).collect();
    let threads: Vec<usize> = (0..program.threads as usize).collect();
    let mut machine = Machine { program, env: vec![Vec::new(); threads.len()], held: BTreeMap::new() };
    for (&(number, position), &value) in contents.iter() {
        let width = memories[number].dtype.bytes();
        let places = (position * width..).map(|byte| Place::Memory { number, byte });
        machine.held.extend(places.zip(bytes_of(value, width)));
    }
    machine.body(&program.body, &threads)?;
    // Elements that the program did not write are returned unchanged.
    for place in machine.held.keys() {
        if let Place::Memory { number, byte } = *place {
            let position = byte.div_euclid(memories[number].dtype.bytes());
            contents.insert((number, position), machine.element(number, memories[number], position)?);
        }
    }
    Ok(())
}

fn bytes_of(value: i64, width: i64) -> impl Iterator<Item = Byte> {
    (0..width as u8).map(move |part| (value, part))
}

struct Machine<'a> {
    program: &'a Program,
    /// The named values, per thread.
    env: Vec<Vec<(Var, i64)>>,
    held: BTreeMap<Place, Byte>,
}

impl Machine<'_> {
    /// The value of the element, if its bytes are those of a single value in order.
    fn element(&self, number: usize, memory: &Memory, position: i64) -> Result<i64, String> {
        let width = memory.dtype.bytes();
        let places = (position * width..(position + 1) * width).map(|byte| Place::Memory { number, byte });
        let bytes: Vec<Byte> = places.filter_map(|place| self.held.get(&place).copied()).collect();
        let whole = bytes.first().filter(|(value, _)| bytes.iter().copied().eq(bytes_of(*value, width)));
        whole.map(|(value, _)| *value).ok_or_else(|| format!("`{}[{position}]` holds {bytes:?}", memory.name))
    }

    fn eval(&self, thread: usize, expr: &Expr) -> Result<i64, String> {
        let value = |var: &Var| match HwIndex::of(var) {
            Some(HwIndex::Lane) => Some(thread as i64 % 32),
            Some(HwIndex::Warp) => Some(thread as i64 / 32),
            Some(HwIndex::Tid) => Some(thread as i64),
            Some(HwIndex::Block(_)) => Some(0),
            None => self.env[thread].iter().rev().find(|(known, _)| known == var).map(|(_, value)| *value),
        };
        expr.eval(&value).map_err(|e| e.to_string())
    }

    fn holds(&self, thread: usize, cond: &Cond) -> Result<bool, String> {
        Ok(match cond {
            Cond::Less(a, b) => self.eval(thread, a)? < self.eval(thread, b)?,
            Cond::Equal(a, b) => self.eval(thread, a)? == self.eval(thread, b)?,
        })
    }

    fn registers(&self, thread: usize, regs: &Regs) -> Result<Vec<Place>, String> {
        let (array, width) = (regs.array.index(), self.program.registers[regs.array].dtype.bytes());
        let first = self.eval(thread, &regs.first)? * width;
        let elements = (0..regs.count).map(|at| first + at * regs.step * width);
        Ok(elements.flat_map(|at| (at..at + width).map(|byte| Place::Register { thread, array, byte })).collect())
    }

    /// The bytes of memory starting at element `index`, as many as `regs` holds.
    fn memory(&self, thread: usize, handle: Handle<Memory>, index: &Expr, regs: &Regs) -> Result<Vec<Place>, String> {
        let memory = &self.program.memories[handle];
        let number = self.program.owner(handle).index();
        let first = self.eval(thread, index)? * memory.dtype.bytes();
        let bytes = regs.count * self.program.registers[regs.array].dtype.bytes();
        Ok((first..first + bytes).map(|byte| Place::Memory { number, byte }).collect())
    }

    fn read(&self, thread: usize, places: &[Place]) -> Result<Vec<Byte>, String> {
        let unwritten = |place: &Place| format!("thread {thread} reads unwritten {place:?}");
        places.iter().map(|place| self.held.get(place).copied().ok_or_else(|| unwritten(place))).collect()
    }

    fn body(&mut self, body: &[Stmt], active: &[usize]) -> Result<(), String> {
        body.iter().try_for_each(|stmt| self.stmt(stmt, active))
    }

    /// All threads execute a statement before the next one starts: barriers can only add to this order.
    fn stmt(&mut self, stmt: &Stmt, active: &[usize]) -> Result<(), String> {
        match stmt {
            Stmt::Op { body, .. } => self.body(body, active),
            Stmt::Declare(_) => Ok(()),
            Stmt::IfValue { .. }
            | Stmt::Assign { .. }
            | Stmt::AssignPair { .. }
            | Stmt::LetValue { .. }
            | Stmt::Role { .. }
            | Stmt::Elect { .. }
            | Stmt::TensorCopy(_)
            | Stmt::Advance { .. }
            | Stmt::WarpgroupMma(_)
            | Stmt::TensorMma(_)
            | Stmt::TensorMove(_)
            | Stmt::Mma(_) => Err("elements are opaque here and cannot be computed with".to_string()),
            Stmt::For { counter, body, .. } => {
                let (begin, end) = (self.eval(0, &counter.begin)?, self.eval(0, &counter.end)?);
                (begin..end).step_by(counter.step as usize).try_for_each(|value| {
                    self.env.iter_mut().for_each(|env| env.push((counter.var.clone(), value)));
                    self.body(body, active)
                })
            }
            Stmt::If { cond, body } => {
                let holding = |&at: &usize| self.holds(at, cond).map(|holds| holds.then_some(at)).transpose();
                let inside = active.iter().filter_map(holding).collect::<Result<Vec<_>, String>>()?;
                self.body(body, &inside)
            }
            Stmt::Unless { conds, body } => {
                let mut outside = Vec::new();
                for &at in active {
                    let holding = conds.iter().map(|cond| self.holds(at, cond)).collect::<Result<Vec<_>, String>>()?;
                    outside.extend(holding.contains(&false).then_some(at));
                }
                self.body(body, &outside)
            }
            Stmt::Let { var, value } => active.iter().try_for_each(|&at| {
                let value = self.eval(at, value)?;
                self.env[at].push((var.clone(), value));
                Ok(())
            }),
            Stmt::Lookup { vars, table, index } => active.iter().try_for_each(|&at| {
                let first = self.eval(at, index)? as usize;
                let entries = self.program.memories[*table].values.iter().skip(first).copied();
                self.env[at].extend(vars.iter().cloned().zip(entries));
                Ok(())
            }),
            Stmt::Load { to, memory, index } => self.assign(active, |machine, at| {
                Ok((machine.registers(at, to)?, machine.read(at, &machine.memory(at, *memory, index, to)?)?))
            }),
            Stmt::Store { memory, index, from } => self.assign(active, |machine, at| {
                Ok((machine.memory(at, *memory, index, from)?, machine.read(at, &machine.registers(at, from)?)?))
            }),
            Stmt::Set { to, value } => self.assign(active, |machine, at| {
                let value = match value {
                    Scalar::Int(v) => *v,
                    Scalar::Float(v) => *v as i64,
                };
                let width = machine.program.registers[to.array].dtype.bytes();
                let bytes = (0..to.count).flat_map(|_| bytes_of(value, width)).collect();
                Ok((machine.registers(at, to)?, bytes))
            }),
            Stmt::Move { to, from } => self.assign(active, |machine, at| {
                Ok((machine.registers(at, to)?, machine.read(at, &machine.registers(at, from)?)?))
            }),
            Stmt::Inst(call) => self.call(call, active),
        }
    }

    fn call(&mut self, call: &Call, active: &[usize]) -> Result<(), String> {
        let Call { inst, to, from, arguments, .. } = call;
        if matches!(inst, Inst::SyncWarp | Inst::SyncThreads) {
            return Ok(());
        }
        self.assign(active, |machine, at| {
            let bytes = match (inst, from.as_slice(), arguments.as_slice()) {
                (Inst::BytePermute, [a, b], [selector]) => machine.permuted(at, a, b, selector),
                (Inst::ShuffleXor, [register], [mask]) => machine.shuffled(at, register, mask, active),
                _ => Err(format!("`{}` has operands that it does not accept", inst.info().name)),
            };
            let to = to.as_ref().ok_or_else(|| format!("`{}` has no result", inst.info().name))?;
            Ok((machine.registers(at, to)?, bytes?))
        })
    }

    /// Writes the bytes that `effect` returns for each active thread. Lanes may overwrite what they exchange, so all
    /// lanes read before any lane writes.
    fn assign<F>(&mut self, active: &[usize], effect: F) -> Result<(), String>
    where
        F: Fn(&Self, usize) -> Result<(Vec<Place>, Vec<Byte>), String>,
    {
        let effects = active.iter().map(|&at| effect(self, at)).collect::<Result<Vec<_>, String>>()?;
        for (places, bytes) in effects {
            self.held.extend(places.into_iter().zip(bytes));
        }
        Ok(())
    }

    fn permuted(&self, thread: usize, a: &Regs, b: &Regs, selector: &Expr) -> Result<Vec<Byte>, String> {
        let bytes = self.read(thread, &[self.registers(thread, a)?, self.registers(thread, b)?].concat())?;
        let selector = self.eval(thread, selector)?;
        let byte = |at: usize| {
            let digit = (selector >> (4 * at)) & 15;
            bytes.get(digit as usize).copied().ok_or_else(|| format!("digit {at} of {selector:#x} replicates a sign"))
        };
        (0..4).map(byte).collect()
    }

    fn shuffled(&self, thread: usize, of: &Regs, mask: &Expr, active: &[usize]) -> Result<Vec<Byte>, String> {
        let not_there = || format!("lane {} shuffles with an inactive lane", thread % 32);
        let mask = self.eval(thread, mask)?;
        let partner = (0..32).contains(&mask).then_some(thread ^ mask as usize);
        let partner = partner.filter(|partner| active.contains(partner)).ok_or_else(not_there)?;
        let lanes = active.iter().filter(|other| **other / 32 == thread / 32).count();
        if lanes != 32 {
            return Err(format!("a shuffle on {lanes} lanes of warp {}", thread / 32));
        }
        self.read(partner, &self.registers(partner, of)?).map_err(|_| not_there())
    }
}

#[cfg(test)]
mod tests {
    use tilewright::diag::Span;
    use tilewright::ir::thread::{MemorySpace, RegArray};
    use tilewright::ir::{Arena, Target};
    use tilewright::layout::DType::{self, B8, B16, B32};

    use super::*;

    /// Every thread loads two words of `a`, the first `lanes` lanes of each warp recompute the first word, and all
    /// threads store it to `b`. Element `i` of `a` is `100 + i`. Returns the contents of `b`.
    fn run(dtype: DType, threads: i64, lanes: i64, inst: Inst, argument: i64) -> Result<Vec<i64>, String> {
        let (mut memories, mut registers) = (Arena::new(), Arena::new());
        let [a, b] = [("a", true), ("b", false)].map(|(name, read_only)| {
            let space = MemorySpace::Global { read_only, may_alias: false };
            memories.push(Memory::new(name, dtype, 512, (space, 16), Span::here()))
        });
        let array = registers.push(RegArray { name: "r".to_string(), dtype: B32, len: 2, vector: 1 });
        let word = |at: i64| Regs { array, first: Expr::constant(at), count: 1, step: 1 };
        let elements = 4 / dtype.bytes();
        let tid = Expr::var(&Var::new("tid", 0, threads - 1));
        let load = |at: i64| Stmt::Load { to: word(at), memory: a, index: (&tid * 2 + at) * elements };
        let from = (0..inst.info().registers.len() as i64).map(word).collect();
        let (to, arguments) = (Some(word(0)), vec![Expr::constant(argument)]);
        let compute = Stmt::from(Call { to, from, arguments, ..Call::plain(inst) });
        let cond = Cond::Less(Expr::var(&Var::new("lane", 0, 31)), Expr::constant(lanes));
        let store = Stmt::Store { memory: b, index: &tid * elements, from: word(0) };
        let body = vec![Stmt::Declare(array), load(0), load(1), Stmt::If { cond, body: vec![compute] }, store];
        let (name, notes, plans) = ("k".to_string(), Arena::new(), Vec::new());
        let target = Target::Sm100a;
        let (sizes, scalars, grid) = (Vec::new(), Vec::new(), [1, 1, 1].map(Expr::constant));
        let empty = Program::new(&name, target, threads);
        let program = Program { sizes, scalars, grid, memories, registers, notes, body, plans, ..empty };
        let mut contents: Contents = (0..2 * threads * elements).map(|at| ((a.index(), at), 100 + at)).collect();
        execute(&program, &mut contents)?;
        Ok(contents.range((b.index(), 0i64)..).map(|(_, value)| *value).collect())
    }

    #[test]
    fn byte_permute_takes_the_bytes_that_the_digits_name() {
        assert_eq!(run(B8, 1, 32, Inst::BytePermute, 0x2715), Ok(vec![105, 101, 107, 102]));
    }

    #[test]
    fn byte_permute_does_not_repeat_signs() {
        assert_eq!(run(B8, 1, 32, Inst::BytePermute, 0x8210), Err("digit 3 of 0x8210 replicates a sign".to_string()));
    }

    #[test]
    fn bytes_of_different_elements_are_no_element() {
        assert_eq!(run(B16, 1, 32, Inst::BytePermute, 0x3120), Err("`b[0]` holds [(100, 0), (101, 0)]".to_string()));
    }

    #[test]
    fn shuffle_xor_exchanges_the_registers_of_lanes_inside_warps() {
        for mask in 0..32 {
            let expected: Vec<i64> = (0..64).map(|thread| 100 + 2 * (thread ^ mask)).collect();
            assert_eq!(run(B32, 64, 32, Inst::ShuffleXor, mask), Ok(expected));
        }
    }

    #[test]
    fn a_shuffle_needs_all_lanes_of_a_warp() {
        let not_there = "lane 0 shuffles with an inactive lane";
        assert_eq!(run(B32, 32, 16, Inst::ShuffleXor, 16), Err(not_there.to_string()));
        assert_eq!(run(B32, 32, 16, Inst::ShuffleXor, 1), Err("a shuffle on 16 lanes of warp 0".to_string()));
    }
}
