//! Applies a function to the registers of each lane.

use crate::lanes::{FULL, Lanes, lanes};
use crate::op::Reg;
use crate::vectorized::{Loop, vectorized};

/// Lanes whose values are in vector registers at once.
const CHUNK: usize = 8;

/// Some of the lanes of a register.
#[inline(always)]
fn chunk(regs: &[Lanes], reg: Reg, at: usize) -> [u64; CHUNK] {
    regs[reg as usize].as_chunks().0[at]
}

#[inline(always)]
fn chunk_mut(regs: &mut [Lanes], reg: Reg, at: usize) -> &mut [u64; CHUNK] {
    &mut regs[reg as usize].as_chunks_mut().0[at]
}

/// `d = f(sources)` in all lanes.
struct Map<'a, const N: usize, F> {
    regs: &'a mut [Lanes],
    d: Reg,
    sources: [Reg; N],
    f: F,
}

impl<const N: usize, F: Fn([u64; N]) -> u64> Loop for Map<'_, N, F> {
    #[inline(always)]
    fn run(self) {
        for at in 0..32 / CHUNK {
            // Values are read before the result is written, which may be one of them.
            let values = self.sources.map(|reg| chunk(self.regs, reg, at));
            let out = chunk_mut(self.regs, self.d, at);
            for lane in 0..CHUNK {
                out[lane] = (self.f)(values.map(|values| values[lane]));
            }
        }
    }
}

/// `d = f(sources)` in the lanes of `exec`.
fn map<const N: usize>(regs: &mut [Lanes], exec: u32, d: Reg, sources: [Reg; N], f: impl Fn([u64; N]) -> u64) {
    if exec == FULL {
        return vectorized(Map { regs, d, sources, f });
    }
    for lane in lanes(exec) {
        regs[d as usize][lane] = f(sources.map(|reg| regs[reg as usize][lane]));
    }
}

/// `d = f(a)` in the lanes of `exec`.
pub(crate) fn map1(regs: &mut [Lanes], exec: u32, d: Reg, a: Reg, f: impl Fn(u64) -> u64) {
    map(regs, exec, d, [a], |[a]| f(a));
}

/// `d = f(a, b)` in the lanes of `exec`.
pub(crate) fn map2(regs: &mut [Lanes], exec: u32, d: Reg, sources: [Reg; 2], f: impl Fn(u64, u64) -> u64) {
    map(regs, exec, d, sources, |[a, b]| f(a, b));
}

/// `d = f(a, b, c)` in the lanes of `exec`.
pub(crate) fn map3(regs: &mut [Lanes], exec: u32, d: Reg, sources: [Reg; 3], f: impl Fn(u64, u64, u64) -> u64) {
    map(regs, exec, d, sources, |[a, b, c]| f(a, b, c));
}

/// `part = f(a, index)` for each part and its index, in all lanes.
struct Split<'a, F> {
    regs: &'a mut [Lanes],
    a: Reg,
    parts: &'a [Option<Reg>],
    f: F,
}

impl<F: Fn(u64, usize) -> u64> Loop for Split<'_, F> {
    #[inline(always)]
    fn run(self) {
        for at in 0..32 / CHUNK {
            let values = chunk(self.regs, self.a, at);
            for (index, part) in self.parts.iter().enumerate() {
                if let Some(part) = part {
                    *chunk_mut(self.regs, *part, at) = values.map(|value| (self.f)(value, index));
                }
            }
        }
    }
}

/// `part = f(a, index)` for each part and its index, in the lanes of `exec`.
pub(crate) fn split(regs: &mut [Lanes], exec: u32, a: Reg, parts: &[Option<Reg>], f: impl Fn(u64, usize) -> u64) {
    if exec == FULL {
        return vectorized(Split { regs, a, parts, f });
    }
    for lane in lanes(exec) {
        let value = regs[a as usize][lane];
        for (index, part) in parts.iter().enumerate() {
            if let Some(part) = part {
                regs[*part as usize][lane] = f(value, index);
            }
        }
    }
}
