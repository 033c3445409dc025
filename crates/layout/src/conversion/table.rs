//! A fragment as a flat table: the element that each register of each thread holds.

use crate::ENUMERATION_LIMIT;
use crate::access::LANES;
use crate::algebra::copies_on;
use crate::axis::{M, REG, Scope, TX};
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::map::Map;
use crate::tile::TileLayout;

/// No element.
pub(crate) const NONE: i32 = -1;
/// Threads that a CTA can have (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
const THREADS: i64 = 1024;

/// Which element each register of each thread of a CTA holds, for whole warps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentTable {
    threads: usize,
    registers: usize,
    /// The element at `thread * registers + register`, [`NONE`] for none.
    elements: Vec<i32>,
}

/// A thread and one of its registers.
type ThreadRegister = (i64, i64);

/// The error for a conversion that is not possible.
pub(crate) fn refuse(problem: String, legal: impl Into<String>) -> LayoutError {
    LayoutError::Hardware { name: "conversion", problem, legal: legal.into() }
}

impl FragmentTable {
    /// The table of a fragment: thread axes expressed as one thread index (`laneid` 1, `warpid` and `wid_in_wg` 32,
    /// `wgid` 128, `tid_in_wg` and `tx` 1), registers on `reg` or `m`. Errors: as [`super::find_conversion`].
    pub fn of(fragment: &TileLayout) -> Result<FragmentTable, LayoutError> {
        check_axes(fragment)?;
        check_points(fragment)?;
        let folded = fragment.in_scope(Scope::Cta)?.renamed(&M, &REG)?;
        let places: Vec<ThreadRegister> = folded.positions(&TX).into_iter().zip(folded.positions(&REG)).collect();
        let (threads, registers) = (copies_on(folded.replica(), &TX)?, copies_on(folded.replica(), &REG)?);
        let copies: Vec<ThreadRegister> =
            threads.iter().flat_map(|t| registers.iter().map(move |r| (*t, *r))).collect();
        let (threads, registers) = extents(&places, &copies)?;
        let mut table = FragmentTable::empty(threads, registers);
        for (element, &(thread, register)) in places.iter().enumerate() {
            for (t, r) in &copies {
                table.put((thread + t) as usize, (register + r) as usize, element as i32)?;
            }
        }
        Ok(table)
    }

    /// The table of a map whose slots are registers of one element. Errors: more than one element in a register, or more
    /// places than may be enumerated.
    pub fn of_map(map: &Map) -> Result<FragmentTable, LayoutError> {
        let threads = map.threads().next_multiple_of(LANES);
        let points = (threads * map.slots()) as i64;
        if points > ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points });
        }
        let mut table = FragmentTable::empty(threads, map.slots());
        for (thread, slot, element) in map.entries() {
            table.put(thread, slot, element as i32)?;
        }
        Ok(table)
    }

    pub(crate) fn empty(threads: usize, registers: usize) -> FragmentTable {
        FragmentTable { threads, registers, elements: vec![NONE; threads * registers] }
    }

    /// The number of threads: a multiple of 32.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Registers of a thread, in elements.
    pub fn registers(&self) -> usize {
        self.registers
    }

    /// The element in each register, at `thread * registers + register`; -1 for none.
    pub fn elements(&self) -> &[i32] {
        &self.elements
    }

    /// The element in a register, if it holds one.
    pub fn get(&self, thread: usize, register: usize) -> Option<i64> {
        Some(i64::from(self.at(thread, register))).filter(|element| *element >= 0)
    }

    /// True when every register that holds an element in `wanted` holds the same one here.
    pub fn holds(&self, wanted: &FragmentTable) -> bool {
        let registers = wanted.registers;
        let right = |(place, element): (usize, &i32)| {
            *element == NONE || self.at(place / registers, place % registers) == *element
        };
        wanted.elements.iter().enumerate().all(right)
    }

    /// The element in a register, [`NONE`] where there is none or no such register.
    pub(crate) fn at(&self, thread: usize, register: usize) -> i32 {
        if register >= self.registers {
            return NONE;
        }
        self.elements.get(thread * self.registers + register).copied().unwrap_or(NONE)
    }

    /// The same table with more threads, which hold nothing.
    pub(crate) fn with_threads(mut self, threads: usize) -> FragmentTable {
        self.elements.resize(threads * self.registers, NONE);
        FragmentTable { threads, ..self }
    }

    /// Writes a register; does nothing outside the table.
    pub(crate) fn set(&mut self, thread: usize, register: usize, element: i32) {
        if register < self.registers
            && let Some(held) = self.elements.get_mut(thread * self.registers + register)
        {
            *held = element;
        }
    }

    /// Writes a register of the table that must not hold another element.
    fn put(&mut self, thread: usize, register: usize, element: i32) -> Result<(), LayoutError> {
        let held = self.at(thread, register);
        if held != NONE && held != element {
            let problem = format!("register {register} of thread {thread} holds the elements {held} and {element}");
            return Err(refuse(problem, "at most one element in each register"));
        }
        self.elements[thread * self.registers + register] = element;
        Ok(())
    }
}

fn check_axes(fragment: &TileLayout) -> Result<(), LayoutError> {
    let moving = |iter: &&Iter| iter.extent > 1 && iter.stride != 0;
    let iters = fragment.shard().iter().chain(fragment.replica()).filter(moving);
    let mut axes = iters.map(|iter| &iter.axis).chain(fragment.offset().keys());
    match axes.find(|axis| !axis.is_thread() && **axis != REG && **axis != M) {
        None => Ok(()),
        Some(axis) => Err(refuse(
            format!("`{axis}` is not an axis of a register fragment"),
            "`laneid`, `warpid`, `wid_in_wg`, `wgid`, `tid_in_wg`, `tx`, and `reg` or `m`",
        )),
    }
}

fn check_points(fragment: &TileLayout) -> Result<(), LayoutError> {
    let copies = fragment.replica().iter().fold(1i64, |n, iter| n.saturating_mul(iter.extent));
    let points = fragment.size().saturating_mul(copies);
    if points > crate::ENUMERATION_LIMIT { Err(LayoutError::TooLarge { points }) } else { Ok(()) }
}

/// The least and the greatest position, replicas included.
fn reach(places: &[ThreadRegister], copies: &[ThreadRegister], of: fn(&ThreadRegister) -> i64) -> (i64, i64) {
    let least = |list: &[ThreadRegister]| list.iter().map(of).min().unwrap_or(0);
    let most = |list: &[ThreadRegister]| list.iter().map(of).max().unwrap_or(0);
    (least(places) + least(copies), most(places) + most(copies))
}

/// The numbers of threads, in whole warps, and of registers that contain all places.
fn extents(places: &[ThreadRegister], copies: &[ThreadRegister]) -> Result<(usize, usize), LayoutError> {
    let (first, last) = reach(places, copies, |place| place.0);
    if first < 0 || last >= THREADS {
        return Err(refuse(
            format!("a fragment on threads {first} to {last}"),
            format!("threads 0 to {}", THREADS - 1),
        ));
    }
    let (lowest, highest) = reach(places, copies, |place| place.1);
    if lowest < 0 {
        return Err(refuse(format!("a fragment on registers {lowest} to {highest}"), "registers numbered from 0"));
    }
    let threads = (last as usize / LANES + 1) * LANES;
    let points = (threads as i64).saturating_mul(highest + 1);
    if points > crate::ENUMERATION_LIMIT {
        return Err(LayoutError::TooLarge { points });
    }
    Ok((threads, highest as usize + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> FragmentTable {
        FragmentTable::of(&text.parse().unwrap()).unwrap()
    }

    #[test]
    fn all_thread_axes_are_one_index() {
        let table = table("S[(2,4,32,2):(1@wgid,1@wid_in_wg,1@laneid,1@reg)]");
        assert_eq!((table.threads(), table.registers(), table.get(128 + 32 + 5, 1)), (256, 2, Some(331)));
    }

    #[test]
    fn replicas_are_the_same_element_on_other_threads() {
        let table = table("S[(4,2):(1@laneid,1)] + R[2:4@laneid] + 1@m");
        let held: Vec<_> = [0, 4, 3, 7, 8].iter().map(|thread| table.get(*thread, 2)).collect();
        assert_eq!(held, [Some(1), Some(1), Some(7), Some(7), None]);
        assert_eq!((table.threads(), table.registers(), table.get(0, 0)), (32, 3, None));
    }

    #[test]
    fn a_table_holds_another_that_asks_for_less() {
        let (all, half) = (table("S[32:1@laneid] + R[2:1@reg]"), table("S[32:1@laneid]"));
        assert_eq!((all.holds(&half), half.holds(&all)), (true, false));
    }
}
