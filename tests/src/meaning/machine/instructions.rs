//! Executes the instructions of the table.

use tilewright::expr::Expr;
use tilewright::ir::Handle;
use tilewright::ir::thread::{Call, Inst, Memory, Regs};
use tilewright::ir::tile::ElementOp;

use super::{Machine, Order, joined, word};
use crate::meaning::numbers;
use crate::meaning::pending::copied_bytes;

impl Machine<'_> {
    /// Executes an instruction in which threads synchronize.
    pub(super) fn call_together(&mut self, call: &Call, active: &[usize]) -> Result<(), String> {
        let Call { inst, to, from, memory, arguments, ordering: _ } = call;
        match (inst, to) {
            (Inst::ShuffleXor | Inst::Shuffle | Inst::ShuffleWithin, Some(to)) => {
                let [from] = &from[..] else { return Err("a shuffle must have one register operand".to_string()) };
                let [argument, width @ ..] = &arguments[..] else {
                    return Err("a shuffle must have a source lane".to_string());
                };
                let width = width.first().and_then(Expr::as_const).unwrap_or(32);
                let mut values = Vec::new();
                for at in active {
                    let argument = self.expr(*at, argument)?;
                    let partner = match inst {
                        Inst::ShuffleXor => at ^ argument as usize,
                        _ => at / width as usize * width as usize + argument.rem_euclid(width) as usize,
                    };
                    // An inactive lane supplies an arbitrary value, which must not affect the result.
                    let is_there = at / 32 == partner / 32 && active.contains(&partner);
                    let mut bytes = self.get(if is_there { partner } else { *at }, from)?;
                    if !is_there {
                        bytes.fill(Some(0xa5));
                    }
                    values.push(bytes);
                }
                active.iter().zip(values).try_for_each(|(at, bytes)| self.put(*at, to, &bytes))
            }
            (Inst::SyncWarp | Inst::SyncThreads | Inst::SyncWarps, _) => Ok(()),
            _ => {
                let (Some((count, is_transposed)), [(memory, index)], [from]) =
                    (stored_matrices(*inst), &memory[..], &from[..])
                else {
                    return Err("a statement that this machine does not know".to_string());
                };
                self.store_matrices((count, is_transposed), (*memory, index), from, active)
            }
        }
    }

    /// Stores matrices of 8 rows of 16 bytes. Lane `8*m + r` gives the address of row `r` of matrix `m`; word `m` of lane `l`
    /// is word `l % 4` of row `l / 4`, or the transposed half-words.
    fn store_matrices(
        &mut self,
        (count, is_transposed): (usize, bool),
        (memory, index): (Handle<Memory>, &Expr),
        from: &Regs,
        active: &[usize],
    ) -> Result<(), String> {
        for warp in active.chunk_by(|one, next| one / 32 == next / 32) {
            let [first, ..] = warp else { continue };
            if warp.len() != 32 {
                return Err(format!("{} lanes of a warp store matrices", warp.len()));
            }
            let words: Vec<Vec<Option<u8>>> = warp.iter().map(|at| self.get(*at, from)).collect::<Result<_, _>>()?;
            let elements = 16 / self.program.registers[from.array].dtype.bytes();
            let row_of = Regs { count: elements, ..from.clone() };
            for lane in 0..8 * count {
                let (matrix, row) = (lane / 8, lane % 8);
                let (number, place) = self.memory(first + lane, memory, index, &row_of)?;
                let half = |half: usize| match is_transposed {
                    false => &words[row * 4 + half / 2][matrix * 4 + half % 2 * 2..][..2],
                    true => &words[half * 4 + row / 2][matrix * 4 + row % 2 * 2..][..2],
                };
                let bytes: Vec<Option<u8>> = (0..8).flat_map(half).copied().collect();
                if let Some(held) = self.memories.get_mut(&number) {
                    held[place].copy_from_slice(&bytes);
                }
            }
        }
        Ok(())
    }

    /// Executes an instruction of one thread.
    pub(super) fn call(&mut self, call: &Call, at: usize) -> Result<(), String> {
        let Call { inst, to, from, memory, arguments, ordering: _ } = call;
        if let (Some(op), [(memory, index)]) = (atomic_operation(*inst), &memory[..]) {
            return (0..).zip(from).try_for_each(|(next, from)| {
                let dtype = self.program.memories[*memory].dtype;
                let value = joined(&self.read(at, from)?);
                let combined = |held| numbers::apply(op, dtype, &[held, value]);
                self.change(at, (*memory, &(index + next)), (from, to.as_ref()), &combined)
            });
        }
        match (inst, to, &memory[..], &from[..]) {
            (Inst::AtomicExchange, to, [(memory, index)], [from]) => {
                let value = joined(&self.read(at, from)?);
                self.change(at, (*memory, index), (from, to.as_ref()), &|_| Ok(value))
            }
            (Inst::AtomicCompareExchange, to, [(memory, index)], [expected, from]) => {
                let [expected, value] = [joined(&self.read(at, expected)?), joined(&self.read(at, from)?)];
                let replaced = |held| Ok(if held == expected { value } else { held });
                self.change(at, (*memory, index), (from, to.as_ref()), &replaced)
            }
            (Inst::CopyAsync4 | Inst::CopyAsync8 | Inst::CopyAsync16, None, [to, from], []) => {
                let bytes = copied_bytes(*inst);
                let [(number, to), (tensor, from)] = [self.bytes(at, to, bytes)?, self.bytes(at, from, bytes)?];
                let copy = (number, to, self.memories[&tensor][from].to_vec());
                match self.order {
                    Order::Forwards => self.arrive(copy),
                    Order::Backwards => self.threads[at].copies.start(copy),
                }
                Ok(())
            }
            (Inst::ZeroFill4 | Inst::ZeroFill8 | Inst::ZeroFill16, None, [to], []) => {
                let (number, to) = self.bytes(at, to, copied_bytes(*inst))?;
                self.arrive((number, to.clone(), vec![Some(0); to.len()]));
                Ok(())
            }
            (Inst::CopyAsyncCommit, None, [], []) => {
                self.threads[at].copies.commit();
                Ok(())
            }
            (Inst::CopyAsyncWait, None, [], []) => {
                let [pending] = &arguments[..] else { return Err("a wait must have a number of groups".to_string()) };
                let pending = self.expr(at, pending)? as usize;
                let arrived = self.threads[at].copies.wait(pending);
                arrived.into_iter().for_each(|copy| self.arrive(copy));
                Ok(())
            }
            (Inst::BulkCommit, None, [], []) => {
                self.threads[at].stores.commit();
                Ok(())
            }
            (Inst::BulkWait | Inst::BulkWaitRead, None, [], []) => {
                let [pending] = &arguments[..] else { return Err("a wait must have a number of groups".to_string()) };
                let pending = self.expr(at, pending)? as usize;
                let stores = &mut self.threads[at].stores;
                match inst {
                    Inst::BulkWait => stores.wait(pending, self.memories)?,
                    _ => stores.wait_read(pending, self.memories),
                }
                Ok(())
            }
            // All accesses of memory are of one kind here.
            (Inst::BarrierInitFence | Inst::ProxyFence | Inst::ProxyFenceShared, None, [], []) => Ok(()),
            (Inst::BarrierInit, None, [barrier], []) => {
                let [needed] = &arguments[..] else {
                    return Err("a barrier must have a number of arrivals".to_string());
                };
                self.barriers.begin(self.barrier(at, barrier)?, self.expr(at, needed)?)
            }
            (Inst::BarrierInvalidate, None, [barrier], []) => self.barriers.end(self.barrier(at, barrier)?),
            (Inst::BarrierArrive, None, [barrier], []) => self.barriers.arrive(self.barrier(at, barrier)?, 0),
            (Inst::BarrierExpect, None, [barrier], []) => {
                let [bytes] = &arguments[..] else { return Err("an announcement must have a number".to_string()) };
                self.barriers.arrive(self.barrier(at, barrier)?, self.expr(at, bytes)?)
            }
            (Inst::BytePermute, Some(to), _, from) => {
                let bytes = self.permuted(at, from, arguments)?;
                self.write(at, to, &bytes)
            }
            _ => Err("a statement that this machine does not know".to_string()),
        }
    }

    /// Changes an element of memory, as wide as a register, and keeps the old one.
    fn change(
        &mut self,
        at: usize,
        (memory, index): (Handle<Memory>, &Expr),
        (from, old): (&Regs, Option<&Regs>),
        change: &dyn Fn(u64) -> Result<u64, String>,
    ) -> Result<(), String> {
        let (number, bytes) = self.memory(at, memory, index, from)?;
        let held = word(&self.memories[&number][bytes.clone()]).ok_or("an atomic change of an unwritten element")?;
        if let Some(old) = old {
            let kept = self.memories[&number][bytes.clone()].to_vec();
            self.put(at, old, &kept)?;
        }
        let result = change(held)?;
        if let Some(memory) = self.memories.get_mut(&number) {
            let parts = memory[bytes].iter_mut().enumerate();
            parts.for_each(|(part, byte)| *byte = Some((result >> (8 * part)) as u8));
        }
        Ok(())
    }

    fn permuted(&self, at: usize, from: &[Regs], arguments: &[Expr]) -> Result<Vec<u8>, String> {
        let ([a, b], [selector]) = (from, arguments) else {
            return Err("a byte permutation must have two words".to_string());
        };
        let bytes = [self.read(at, a)?, self.read(at, b)?].concat();
        let selector = self.expr(at, selector)?;
        Ok((0..4).map(|digit| bytes[(selector >> (4 * digit) & 7) as usize]).collect())
    }
}

/// How many matrices an instruction stores, and whether it transposes them.
fn stored_matrices(inst: Inst) -> Option<(usize, bool)> {
    match inst {
        Inst::StoreMatrixX4 => Some((4, false)),
        Inst::StoreMatrixX2 => Some((2, false)),
        Inst::StoreMatrixX1 => Some((1, false)),
        Inst::StoreMatrixTransX4 => Some((4, true)),
        Inst::StoreMatrixTransX2 => Some((2, true)),
        Inst::StoreMatrixTransX1 => Some((1, true)),
        _ => None,
    }
}

/// How an atomic instruction combines an element with a register.
fn atomic_operation(inst: Inst) -> Option<ElementOp> {
    match inst {
        inst if inst.atomic() == Some(Inst::AtomicAdd) => Some(ElementOp::Add),
        Inst::AtomicMin => Some(ElementOp::Min),
        Inst::AtomicMax => Some(ElementOp::Max),
        Inst::AtomicAnd => Some(ElementOp::And),
        Inst::AtomicOr => Some(ElementOp::Or),
        Inst::AtomicXor => Some(ElementOp::Xor),
        _ => None,
    }
}
