//! Conversions without shared memory: every element is in a register of the thread, or comes from a lane of its warp.

use std::collections::BTreeMap;

use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::Scalar;
use tilewright_ir::thread::{Call, Inst, RegArray, Stmt, Value};
use tilewright_layout::DType;
use tilewright_layout::access::LANES;
use tilewright_layout::conversion::{Picks, ShuffleMode, ShuffleStep, Shuffles};

use super::make::Make;
use crate::builder::regs;
use crate::threads::number;

impl Make<'_> {
    /// Every slot of the destination becomes what the thread picks: a slot of the source, or a word that it received.
    pub(super) fn picked(&mut self, picks: &Picks, received: Option<Handle<RegArray>>) {
        for slot in 0..picks.registers {
            for (pick, set) in self.groups(|thread| picks.at(thread, slot)) {
                let value = match (pick.checked_sub(picks.own), received) {
                    (Some(step), Some(received)) => self.unpacked(Value::reg(received, step as i64)),
                    _ => self.context.source.in_slot(pick),
                };
                let body = vec![self.written(slot, value)];
                let context = self.context;
                self.by(&set, |thread| context.may_write(thread, slot), body);
            }
        }
    }

    /// Words travel inside warps, then every thread picks what it wants.
    pub(super) fn shuffled(&mut self, shuffles: &Shuffles) {
        let (word, steps) = (self.word(), shuffles.steps.len() as i64);
        let sent = self.builder.registers("sent", word, 1, 1, &mut self.out);
        let received = self.builder.registers("received", word, steps, 1, &mut self.out);
        for (number, step) in shuffles.steps.iter().enumerate() {
            self.send(step, sent);
            self.receive(step, sent, regs(received, number as i64, 1));
        }
        self.picked(&shuffles.picks, Some(received));
    }

    /// Every lane puts the word that another wants into `sent`; what the others have there does not matter.
    fn send(&mut self, step: &ShuffleStep, sent: Handle<RegArray>) {
        let groups = self.groups(|thread| step.warp(thread / LANES)?.word[thread % LANES]);
        for (at, (slot, set)) in groups.into_iter().enumerate() {
            let value = self.packed(self.context.source.in_slot(slot));
            self.by(&set, |_| at == 0, vec![Stmt::Assign { to: regs(sent, 0, 1), value }]);
        }
    }

    fn receive(&mut self, step: &ShuffleStep, sent: Handle<RegArray>, to: tilewright_ir::thread::Regs) {
        let (inst, argument) = match step.mode {
            ShuffleMode::Butterfly { mask } => (Inst::ShuffleXor, Expr::constant(mask as i64)),
            ShuffleMode::Broadcast { lane } => (Inst::Shuffle, Expr::constant(lane as i64)),
            ShuffleMode::Indexed => {
                let source = |thread: usize| step.warp(thread / LANES)?.source[thread % LANES];
                let sources: Vec<Option<i64>> =
                    (0..self.context.threads).map(|thread| source(thread).map(|lane| lane as i64)).collect();
                (Inst::Shuffle, number(&sources, 1, &self.context.thread, self.builder, &mut self.out))
            }
        };
        let (from, arguments) = (vec![regs(sent, 0, 1)], vec![argument]);
        self.out.push(Stmt::from(Call { to: Some(to), from, arguments, ..Call::plain(inst) }));
    }

    /// The threads by the number that each has.
    fn groups(&self, of: impl Fn(usize) -> Option<usize>) -> BTreeMap<usize, Vec<bool>> {
        let threads = self.context.threads;
        let mut groups: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
        for thread in 0..threads {
            if let Some(number) = of(thread) {
                groups.entry(number).or_insert_with(|| vec![false; threads])[thread] = true;
            }
        }
        groups
    }

    /// The dtype of the registers that travel: a shuffle moves 32 or 64 bits.
    fn word(&self) -> DType {
        if self.context.dtype.bytes() < 4 { DType::B32 } else { self.context.dtype }
    }

    /// An element as such a register.
    fn packed(&self, element: Value) -> Value {
        if self.word() == self.context.dtype {
            return element;
        }
        let zero = Value::Const(DType::B32, Scalar::Int(0));
        Value::With(Box::new(zero), 0, Box::new(element))
    }

    /// The element in such a register.
    fn unpacked(&self, word: Value) -> Value {
        if self.word() == self.context.dtype {
            return word;
        }
        Value::Part(self.context.dtype, Box::new(word), 0)
    }
}
