//! Copies between tiles in memory: the threads walk over the tile together, with accesses as wide as both sides allow.

use tilewright_diag::counted;
use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Cond, Stmt};
use tilewright_ir::tile::vectors::WIDEST;
use tilewright_layout::{TileLayout, refine_together};

use super::context::Context;
use super::staged::Staged;
use super::team::{Team, spread_steps};
use crate::builder::Builder;
use crate::conditions::{MANY_GUARDED, either, in_step, never_hold, partial, under, with};
use crate::operand::{MemoryTile, all_inside};
use crate::refusal::Against;
use crate::traversal::{Traversal, widest};

/// Bytes that one thread stages at once: enough loads in flight to hide latency, few enough registers for occupancy.
const STAGED_BYTES: i64 = 128;
/// The most steps of a batch, which are unrolled; more steps become a loop over batches.
const MOST_STEPS: i64 = 16;

/// A copy between two tiles in memory.
pub(crate) struct MemorySchedule {
    dst: MemoryTile,
    src: MemoryTile,
    traversal: Traversal,
    /// Elements of one access to the destination, and to the source.
    widths: [i64; 2],
    /// Where the elements of a step, in the order of the destination, are in the order of the source, if that is another
    /// order.
    order: Option<Vec<usize>>,
}

/// Walks over the tile in the address order of either side, with accesses as wide as both sides allow (or 16 bytes of
/// the 32 that they allow, so that more threads have some), or each as wide as its side allows. Where another order in
/// registers makes narrow accesses wide and all threads have some, only that: it takes a fraction of the accesses.
pub(crate) fn accept_vectorized(context: &Context) -> Result<Vec<MemorySchedule>, Against> {
    let (dst, src) = context.both_in_memory()?;
    let (to, from) = iters_of(dst, src)?;
    let joint = refine_together(&[to, from]).map_err(|_| {
        vec![Reason {
            text: format!("the iters of {to} and {from} do not nest"),
            accepted: "layouts whose iters end at common multiples".to_string(),
        }]
    })?;
    let bytes = dst.dtype.bytes();
    let mut schedules = Vec::new();
    for by_dst in [true, false] {
        let (main, other) = if by_dst { (&joint[0], &joint[1]) } else { (&joint[1], &joint[0]) };
        let placed = if by_dst { &dst.placed } else { &src.placed };
        let traversal = Traversal::along(placed, main, other, by_dst)?;
        let allowed = [dst, src].map(|side| {
            let layout = if std::ptr::eq(side, dst) { traversal.dst() } else { traversal.src() };
            widest(bytes, side.widest, |width| traversal.allows(side, layout, width))
        });
        let common = allowed[0].min(allowed[1]);
        let reordered = (common * bytes < WIDEST).then(|| reordered_in_steps(&traversal, [dst, src], by_dst, common));
        schedules.extend(reordered.flatten());
        let half_of_32_bytes = if common * bytes > WIDEST { common / 2 } else { common };
        let mut choices = vec![[common; 2], [half_of_32_bytes; 2], allowed];
        choices.dedup();
        let divides = |widths: &[i64; 2]| traversal.dst().size() % widths[0].max(widths[1]) == 0;
        schedules.extend(choices.into_iter().filter(divides).map(|widths| MemorySchedule {
            dst: dst.clone(),
            src: src.clone(),
            traversal: traversal.clone(),
            widths,
            order: None,
        }));
    }
    let is_wide = |schedule: &MemorySchedule| {
        let vectors = schedule.traversal.dst().size() / schedule.step();
        schedule.order.is_some() && vectors >= context.team.threads
    };
    if schedules.iter().any(is_wide) {
        schedules.retain(is_wide);
    }
    Ok(schedules)
}

/// The copy with the elements of a step in another order in registers, if that makes accesses wider than `common`: one
/// side is walked in the widest vectors that it allows, and the elements of each are neighbours on the other side as well.
fn reordered_in_steps(
    traversal: &Traversal,
    [dst, src]: [&MemoryTile; 2],
    by_dst: bool,
    common: i64,
) -> Option<MemorySchedule> {
    let (main, other) = if by_dst { (dst, src) } else { (src, dst) };
    let allowed = |traversal: &Traversal, side: &MemoryTile, is_dst: bool| {
        let layout = if is_dst { traversal.dst() } else { traversal.src() };
        widest(side.dtype.bytes(), side.widest, |width| traversal.allows(side, layout, width))
    };
    let step = allowed(traversal, main, by_dst);
    let (traversal, mut order) = traversal.reordered_in_steps(&other.placed, step, by_dst)?;
    let inner = allowed(&traversal, other, !by_dst).min(step);
    if by_dst {
        order = inverse(&order);
    }
    let widths = if by_dst { [step, inner] } else { [inner, step] };
    let (dst, src) = (dst.clone(), src.clone());
    (inner > common).then_some(MemorySchedule { dst, src, traversal, widths, order: Some(order) })
}

/// The inverse of a permutation.
fn inverse(order: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, place)| inverse[*place] = at);
    inverse
}

/// Copies element by element, in the order of the tile: correct for all layouts.
pub(crate) fn accept_elementwise(context: &Context) -> Result<MemorySchedule, Vec<Reason>> {
    let (dst, src) = context.both_in_memory()?;
    let (to, from) = iters_of(dst, src)?;
    let traversal = Traversal::as_written(to, from);
    Ok(MemorySchedule { dst: dst.clone(), src: src.clone(), traversal, widths: [1, 1], order: None })
}

fn iters_of<'a>(dst: &'a MemoryTile, src: &'a MemoryTile) -> Result<(&'a TileLayout, &'a TileLayout), Vec<Reason>> {
    match (dst.iters(), src.iters()) {
        (Ok(to), Ok(from)) => Ok((to, from)),
        (to, from) => Err(to.err().into_iter().chain(from.err()).collect()),
    }
}

impl MemorySchedule {
    pub(crate) fn summary(&self, context: &Context) -> String {
        let bytes = self.step() * self.dst.dtype.bytes();
        format!("{}, {bytes} B at a time", counted(context.team.threads, "thread"))
    }

    /// Elements that a thread moves in one step.
    fn step(&self) -> i64 {
        self.widths[0].max(self.widths[1])
    }

    pub(crate) fn build(&self, context: &Context, builder: &mut Builder) -> Vec<Stmt> {
        let conditions = all_inside(&[&self.src, &self.dst]);
        let has_many = self.traversal.dst().size() / self.step() >= MANY_GUARDED * context.team.threads;
        if conditions.is_empty() || !has_many || never_hold(&conditions) {
            return self.copied(context, builder, true);
        }
        let inside = self.copied(context, builder, false);
        either(&conditions, inside, self.copied(context, builder, true))
    }

    /// The accesses of all elements, with or without guards at the edges of a tensor.
    fn copied(&self, context: &Context, builder: &mut Builder, is_guarded: bool) -> Vec<Stmt> {
        let step = self.step();
        let vectors = self.traversal.dst().size() / step;
        let batch = (STAGED_BYTES / (step * self.dst.dtype.bytes())).clamp(1, MOST_STEPS);
        let held = batch.min((vectors + context.team.threads - 1) / context.team.threads);
        let mut body = Vec::new();
        let by_step = builder.are_apart(self.src.memory, self.dst.memory);
        let order = self.order.as_deref();
        let staged = Staged::new(builder, self.dst.dtype, (self.widths, held), order, by_step, &mut body);
        let sides =
            [(&self.src, self.traversal.src(), self.widths[1]), (&self.dst, self.traversal.dst(), self.widths[0])];
        let steps = spread_steps(builder, &context.team, vectors, batch, |builder, base, steps| {
            let [load, store] = sides.map(|(operand, layout, width)| SideAccesses {
                operand,
                layout,
                width,
                step,
                team: &context.team,
                vectors,
                staged: &staged,
                is_guarded,
            });
            let one_by_one = self.widths[0] == self.widths[1] && order.is_none();
            let leaves_out_zeros = one_by_one && context.zeros_are_unread;
            let of_load = Aim::Load { stored: one_by_one.then_some(&store), zeros: !leaves_out_zeros };
            let [zeros, loads] = load.steps(builder, (base, steps), of_load);
            let [_, stores] = store.steps(builder, (base, steps), Aim::Store(leaves_out_zeros.then_some(&load)));
            if staged.is_by_step() {
                return (0..steps as usize)
                    .flat_map(|at| [&zeros, &loads, &stores].map(|of| of[at].clone()))
                    .flatten()
                    .collect();
            }
            let thread = Expr::var(&context.team.index);
            let moves = (0..steps).map(|at| {
                let rest = Expr::constant(vectors) - (base + at) * context.team.threads;
                under(partial(&thread, &rest).as_slice(), staged.moves(at))
            });
            zeros.into_iter().chain(loads).chain(moves).chain(stores).flatten().collect()
        });
        body.extend(steps);
        body
    }
}

/// What the accesses of a side do. Where those of the other side are given, both access the same elements, one by one,
/// and none that the other side leaves out.
enum Aim<'a> {
    /// They load what the other side stores. Whether zeros are stored for elements outside of the tensor.
    Load { stored: Option<&'a SideAccesses<'a>>, zeros: bool },
    /// They store what the other side loads.
    Store(Option<&'a SideAccesses<'a>>),
}

/// The accesses of a team to one side of a copy.
struct SideAccesses<'a> {
    /// The side that is accessed.
    operand: &'a MemoryTile,
    layout: &'a TileLayout,
    /// Elements of one access.
    width: i64,
    /// Elements that a thread moves in one step.
    step: i64,
    team: &'a Team,
    /// Number of steps of all threads.
    vectors: i64,
    /// Staging registers.
    staged: &'a Staged,
    /// Whether elements outside of the tensor are left out.
    is_guarded: bool,
}

impl SideAccesses<'_> {
    /// The statements of each of `count` steps from `base` on; the last is guarded if the tile ends inside it. What is
    /// loaded and may be outside of the tensor is set to zero by statements of their own.
    fn steps(&self, builder: &mut Builder, (base, count): (&Expr, i64), aim: Aim<'_>) -> [Vec<Vec<Stmt>>; 2] {
        let thread = Expr::var(&self.team.index);
        let (step, part) = (Var::new("#step", 0, (count - 1).max(0)), Var::new("#part", 0, self.step / self.width - 1));
        let vector = &thread + &((base + &Expr::var(&step)) * self.team.threads);
        let flat = vector * self.step + Expr::var(&part) * self.width;
        let index = self.operand.index_of(builder, self.layout, &flat);
        let inside = self.inside(builder, &flat);
        let parts = 0..self.step / self.width;
        let has_zeros = !inside.is_empty() && matches!(aim, Aim::Load { zeros: true, .. });
        let (Aim::Load { stored: other, .. } | Aim::Store(other)) = aim;
        let needed = other.map(|side| side.inside(builder, &flat)).unwrap_or_default();
        let others = needed.into_iter().filter(|cond| !inside.contains(cond));
        let conditions: Vec<Cond> = others.chain(inside.iter().cloned()).collect();
        let zero = |s, p| Stmt::Set { to: self.staged.loaded(s, p, self.width), value: 0.into() };
        let zeros = |s| parts.clone().filter(|_| has_zeros).map(|p| zero(s, p)).collect();
        // What is written for each step has a number for the part already.
        let of_part = |p| (index.with(&part, p), conditions.iter().map(|cond| with(cond, &part, p)).collect());
        let of_parts: Vec<(Expr, Vec<Cond>)> = parts.clone().map(of_part).collect();
        let access = |s, (p, index): (i64, &Expr)| {
            let (index, memory) = (index.with(&step, s), self.operand.memory);
            match aim {
                Aim::Store(_) => Stmt::Store { memory, index, from: self.staged.stored(s, p, self.width) },
                Aim::Load { .. } => Stmt::Load { to: self.staged.loaded(s, p, self.width), memory, index },
            }
        };
        let accesses = |s| {
            let rest = Expr::constant(self.vectors) - (base + s) * self.team.threads;
            let guarded = |(p, (index, conditions)): (i64, &(Expr, Vec<Cond>))| {
                under(&in_step(conditions, &step, s, &thread, &rest), vec![access(s, (p, index))])
            };
            parts.clone().zip(&of_parts).flat_map(guarded).collect()
        };
        [(0..count).map(zeros).collect(), (0..count).map(accesses).collect()]
    }

    /// The conditions under which the element at `flat` is inside of the tensor.
    fn inside(&self, builder: &mut Builder, flat: &Expr) -> Vec<Cond> {
        if self.is_guarded { self.operand.inside(builder, self.layout, flat) } else { Vec::new() }
    }
}
