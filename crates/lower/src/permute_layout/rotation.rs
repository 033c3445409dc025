//! Lanes that take their elements in rotated order, `lane + 32*((step + c*(lane/d)) % steps)`, for tiles that are not
//! linear over bits, such as those whose extents are not powers of two.

use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::Stmt;
use tilewright_layout::TileLayout;
use tilewright_layout::axis::M;

use super::context::{Context, staged};
use super::joint::Joint;
use crate::builder::{Builder, regs};
use crate::refusal::Refusal;
use crate::traversal::Traversal;

/// A rotation without bank conflicts.
pub(crate) struct RotationPlan {
    src: TileLayout,
    dst: TileLayout,
    steps: i64,
    /// How many steps each group of lanes is ahead of the one before.
    ahead: i64,
    /// Lanes of a group.
    group: i64,
}

/// Rotations are tried for up to this many steps.
const MOST_STEPS: i64 = 64;

impl RotationPlan {
    /// The first rotation that is free of bank conflicts on both sides, over the tile in the order of either side's
    /// addresses.
    pub(crate) fn find(context: &Context) -> Result<Option<RotationPlan>, Refusal> {
        let Some(joint) = Joint::of_context(context, &mut Vec::new()) else { return Ok(None) };
        let elements = joint.src.size();
        let steps = elements / 32;
        if elements % 32 != 0
            || steps > MOST_STEPS
            || context.src.placed.swizzle.or(context.dst.placed.swizzle).is_some()
        {
            return Ok(None);
        }
        let bytes = context.src.dtype.bytes();
        for (main, other, by_dst) in [(&joint.dst, &joint.src, true), (&joint.src, &joint.dst, false)] {
            let placed = if by_dst { &context.dst.placed } else { &context.src.placed };
            let order = Traversal::along(placed, main, other, by_dst)?;
            let (src, dst) = (order.src(), order.dst());
            let sides = [Banks::new(src, bytes), Banks::new(dst, bytes)];
            if let Some((ahead, group)) = first_free(&sides, steps) {
                return Ok(Some(RotationPlan { src: src.clone(), dst: dst.clone(), steps, ahead, group }));
            }
        }
        Ok(None)
    }

    pub(crate) fn summary(&self) -> String {
        match self.ahead {
            0 => "addresses in order".to_string(),
            ahead if self.group == 1 => format!("addresses rotated by {ahead} every lane"),
            ahead => format!("addresses rotated by {ahead} every {} lanes", self.group),
        }
    }

    pub(crate) fn build(&self, context: &Context, builder: &mut Builder) -> Vec<Stmt> {
        let lane = Expr::var(&context.lane);
        let mut body = Vec::new();
        let array = builder.staging(context.src.dtype, self.steps, &mut body);
        let turn = &lane / self.group * self.ahead;
        let turn = builder.simplifier.simplify(&turn);
        let step = Var::new("#step", 0, self.steps - 1);
        let flat = &lane + &((Expr::var(&step) + turn) % self.steps * 32);
        let from = context.src.index_of(builder, &self.src, &flat);
        let to = context.dst.index_of(builder, &self.dst, &flat);
        let reads = (0..self.steps).map(|s| Stmt::Load {
            to: regs(array, s, 1),
            memory: context.src.memory,
            index: from.with(&step, s),
        });
        let writes = (0..self.steps).map(|s| Stmt::Store {
            memory: context.dst.memory,
            index: to.with(&step, s),
            from: regs(array, s, 1),
        });
        staged(context, body, reads.collect(), writes.collect())
    }
}

/// The smallest rotation, and among those the widest groups, for which every step of both sides is free of bank
/// conflicts.
fn first_free(sides: &[Banks; 2], steps: i64) -> Option<(i64, i64)> {
    let groups = || (1..=16).rev();
    let rotations =
        std::iter::once((0, 32)).chain((1..steps).flat_map(|ahead| groups().map(move |group| (ahead, group))));
    rotations.into_iter().find(|(ahead, group)| {
        (0..steps).all(|step| {
            let element = |lane: i64| (lane + 32 * ((step + ahead * (lane / group)) % steps)) as usize;
            sides.iter().all(|side| side.is_free(element))
        })
    })
}

/// The words of one side.
struct Banks {
    /// The first word of every element.
    words: Vec<i64>,
    /// Words of an element.
    width: i64,
    /// Lanes that are served together.
    group: i64,
}

impl Banks {
    fn new(layout: &TileLayout, bytes: i64) -> Banks {
        let width = (bytes / 4).max(1);
        let words = layout.positions(&M).iter().map(|position| (position * bytes).div_euclid(4)).collect();
        Banks { words, width, group: 32 / width }
    }

    /// True when no two lanes that are served together meet in a bank, unless in the same word.
    fn is_free(&self, element: impl Fn(i64) -> usize) -> bool {
        let mut seen = [None; 32];
        (0..32).all(|lane| {
            if lane % self.group == 0 {
                seen = [None; 32];
            }
            let word = self.words[element(lane)];
            let bank = (word / self.width).rem_euclid(self.group) as usize;
            *seen[bank].get_or_insert(word) == word
        })
    }
}
