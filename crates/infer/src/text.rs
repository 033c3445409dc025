//! What was inferred, as text: the stage `layouts`.

use tilewright_diag::counted;
use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Kernel, Space};
use tilewright_layout::Layout;
use tilewright_layout::map::Map;

use crate::cost::Cost;
use crate::granules::{lanes_of, layout_of};
use crate::inferred::{Component, Inferred, MemoryAccess, Placed};
use crate::known::Reason;
use crate::node::Origin;
use crate::price::registers;

/// The maximum number of threads that are listed one by one.
const LISTED: usize = 4;

impl Inferred {
    /// Every fragment, loop and op with its layout and the reason for it, and the total cost. The kernel is the one
    /// that [`lay_out`](crate::lay_out) returned.
    pub fn text(&self, kernel: &Kernel) -> String {
        let mut blocks: Vec<String> = Vec::new();
        for (handle, placed) in &self.fragments {
            blocks.push(self.of_fragment(kernel, *handle, placed));
        }
        for ((origin, map), reason) in self.loops.iter().zip(&self.loop_reasons) {
            if is_shown(kernel, *origin) {
                blocks.push(self.of_loop(kernel, *origin, map, reason));
            }
        }
        if blocks.is_empty() {
            return "there are no fragments and no parallel loops\n".to_string();
        }
        blocks.push(format!("cost {}\n", self.cost_of_shown(kernel)));
        blocks.join("\n")
    }

    fn of_fragment(&self, kernel: &Kernel, handle: Handle<Buffer>, placed: &Placed) -> String {
        let buffer = &kernel.buffers[handle];
        let taken = registers(placed.map.slots(), placed.bytes);
        let mut lines = vec![
            format!("fragment {}: {} = {}", buffer.name, buffer.type_text(), layout_text(buffer, placed)),
            format!("  {} of each thread, {} of each element", counted(taken, "register"), copies(&placed.map)),
        ];
        lines.extend(threads_with_some(&placed.map).map(|threads| format!("  on {threads}")));
        lines.extend(placed.note.as_ref().map(|note| format!("  {note}")));
        lines.push(format!("  because: {}", placed.reason));
        if let Some(parent) = placed.reason.parent {
            lines.push(format!("  from: {}", kernel.buffers[parent].name));
            lines.extend(self.fixed_by(kernel, handle).map(|line| format!("  {line}")));
        }
        lines.join("\n") + "\n"
    }

    fn of_loop(&self, kernel: &Kernel, origin: Origin, map: &Map, reason: &Reason) -> String {
        let layout = map.to_layout().map_or_else(String::new, |layout| format!(" = {layout}"));
        let mut lines = vec![
            format!("{}{layout}  // {}", reason.op, reason.span),
            format!("  {}, {} of each iteration", counted(map.slots() as u64, "step"), copies(map)),
        ];
        lines.extend(guard(map).map(|guard| format!("  guard: {guard}")));
        lines.push(format!("  because: {} ({} pass)", reason.rule, reason.pass.name()));
        lines.extend(reason.parent.map(|parent| format!("  from: {}", kernel.buffers[parent].name)));
        let accesses = self.accesses.iter().filter(|access| access.origin == origin);
        lines.extend(accesses.map(|access| format!("  {}", access_text(kernel, access))));
        lines.join("\n") + "\n"
    }

    /// The cost of the components that contain a fragment, loop or op that is shown.
    fn cost_of_shown(&self, kernel: &Kernel) -> Cost {
        let has_shown = |component: &&Component| {
            !component.fragments.is_empty() || component.ops.iter().any(|origin| is_shown(kernel, *origin))
        };
        let mut cost = Cost::default();
        self.components.iter().filter(has_shown).for_each(|component| cost += component.cost);
        cost
    }
}

/// Whether the steps of an op are shown: those of parallel loops and of ops with fragments are.
fn is_shown(kernel: &Kernel, origin: Origin) -> bool {
    let is_fragment = |handle: Handle<Buffer>| kernel.buffers[handle].space == Space::Fragment;
    match origin {
        Origin::Parallel(_) => true,
        Origin::Op(op) => kernel.ops[op].operands.iter().any(|tile| is_fragment(tile.buffer)),
    }
}

/// The layout of a fragment, as it was written or found.
pub(crate) fn layout_text(buffer: &Buffer, placed: &Placed) -> String {
    let layout: Option<Layout> =
        buffer.layout.clone().or_else(|| layout_of(&placed.map, lanes_of(placed.bytes, buffer)));
    layout.map_or_else(|| "no layout that covers all elements".to_string(), |layout| layout.to_string())
}

/// `1 copy`, `8 copies`, `1 to 8 copies`
fn copies(map: &Map) -> String {
    let owners = map.owners();
    let counts = || (0..map.elements()).map(|element| owners.of(element).len());
    match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
        (1, 1) => "1 copy".to_string(),
        (least, most) if least == most => format!("{most} copies"),
        (least, most) => format!("{least} to {most} copies"),
    }
}

/// The threads that have something, if some have nothing.
fn threads_with_some(map: &Map) -> Option<String> {
    let mut has_some = vec![false; map.threads()];
    map.entries().for_each(|(thread, ..)| has_some[thread] = true);
    let some: Vec<usize> = (0..map.threads()).filter(|thread| has_some[*thread]).collect();
    (some.len() < map.threads()).then(|| format!("{} of {}", threads_text(&some), map.threads()))
}

/// `threads 0, 16, 32, 48`, `threads 0 to 31`, `threads 0, 2, ... 62`
fn threads_text(threads: &[usize]) -> String {
    let listed = |some: &[usize]| some.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    match threads {
        [] => "no thread".to_string(),
        [only] => format!("thread {only}"),
        [first, .., last] if last - first + 1 == threads.len() => format!("threads {first} to {last}"),
        few if few.len() <= LISTED => format!("threads {}", listed(few)),
        [first, second, ..] => {
            let (step, last) = (second - first, threads[threads.len() - 1]);
            let is_even = threads.windows(2).all(|pair| pair[1] - pair[0] == step);
            if is_even {
                format!("threads {first}, {second}, ... {last}")
            } else {
                format!("{} threads", threads.len())
            }
        }
    }
}

/// The threads that take part, or the number of their steps without an iteration; `None` if all take part in all steps.
fn guard(map: &Map) -> Option<String> {
    let (places, taken) = (map.threads() * map.slots(), map.entries().count());
    let idle = || format!("no iteration in {} of {places} thread steps", places - taken);
    threads_with_some(map).or_else(|| (taken < places).then(idle))
}

/// `read x: 4 elements at once, 16 bytes: the widest vector possible`
pub(crate) fn access_text(kernel: &Kernel, access: &MemoryAccess) -> String {
    let buffer = &kernel.buffers[access.buffer];
    let verb = if access.writes { "write" } else { "read" };
    let (least, most) = access.widths;
    let up_to = if least < most { format!("{least} to ") } else { String::new() };
    let elements = counted(most as u64, "element");
    let bytes = counted(most as u64 * buffer.dtype.bytes() as u64, "byte");
    format!("{verb} {}: {up_to}{elements} at once, {bytes}: {}", buffer.name, access.limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str, threads: usize) -> Map {
        Map::of_layout(&text.parse().unwrap(), threads).unwrap()
    }

    #[test]
    fn threads_are_named_as_shortly_as_they_can_be() {
        assert_eq!(threads_text(&[0, 16, 32, 48]), "threads 0, 16, 32, 48");
        assert_eq!(threads_text(&[0, 2, 4, 6, 8]), "threads 0, 2, ... 8");
        assert_eq!(threads_text(&[4, 5, 6, 7, 8]), "threads 4 to 8");
        assert_eq!(threads_text(&[0, 1, 3, 4, 9]), "5 threads");
    }

    #[test]
    fn a_guard_is_named_where_threads_are_left_out() {
        assert_eq!(guard(&map("S[4:16@tx]", 64)).as_deref(), Some("threads 0, 16, 32, 48 of 64"));
        assert_eq!(guard(&map("S[(2,8):(1@reg,1@tx)]", 8)), None);
        let tail = Map::of_slots(4, 6, |thread, slot| Some(slot * 4 + thread).filter(|at| *at < 6), 2);
        assert_eq!(guard(&tail).as_deref(), Some("no iteration in 2 of 8 thread steps"));
    }

    #[test]
    fn copies_are_counted() {
        assert_eq!(copies(&map("S[4:1@tx] + R[2:4@tx]", 8)), "2 copies");
        let uneven = Map::of_slots(4, 2, |thread, _| Some(usize::from(thread > 0)), 1);
        assert_eq!(copies(&uneven), "1 to 3 copies");
    }
}
