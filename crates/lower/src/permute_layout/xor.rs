//! `warp_xor_swizzle`: the documented scheme. Element `lane + j*32` with `j = r ^ ((lane >> shift) & mask)`: register
//! indices stay constant, and the XOR is in the address.

use tilewright_diag::counted;
use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::Stmt;
use tilewright_layout::access::{AccessKind, WarpAccess};
use tilewright_layout::axis::M;
use tilewright_layout::{PlacedTile, TileLayout};

use super::context::{Context, staged};
use super::joint::Joint;
use super::linear::BitMap;
use super::listed::{LinearAddress, LinearTerm};
use super::reasons::unknown_strides;
use crate::builder::{Builder, regs};
use crate::operand::MemoryTile;

/// An index of more operations than this is written as bit flips of the first address, not as the scheme is
/// documented.
const MOST_OPERATIONS: usize = 8;

/// The number of operations in an expression.
fn operations(expr: &Expr) -> usize {
    expr.operands().map_or(0, |(a, b)| 1 + operations(a) + operations(b))
}

/// The operand's positions, if they flip fixed bits for each bit of an element's index.
fn linear(operand: &MemoryTile, layout: &TileLayout) -> Option<LinearTerm> {
    let plain = operand.placed.pitches.is_empty() && operand.placed.swizzle.is_none();
    let map = BitMap::of(&layout.positions(&M)).filter(|_| plain)?;
    Some(LinearTerm { first: operand.placed.start.clone(), map, stride: Expr::constant(1), edge: None })
}

/// The most elements of one lane that the scheme stages.
const MOST_PER_LANE: i64 = 32;

/// The result of [`choose_xor`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XorChoice {
    /// Elements per lane.
    pub per_lane: i64,
    /// How many bits are XORed: the fewest for which both phases are free of bank conflicts; `None` if there are none.
    pub k: Option<u32>,
    /// For each k from 0 on, whether reading is free of bank conflicts.
    pub src_free: Vec<bool>,
    /// For each k from 0 on, whether writing is free of bank conflicts.
    pub dst_free: Vec<bool>,
}

impl XorChoice {
    /// `lane >> shift & mask` is XORed into the iteration index.
    pub fn shift(&self) -> Option<u32> {
        self.k.map(|k| 5 - k)
    }

    /// See [`XorChoice::shift`].
    pub fn mask(&self) -> Option<i64> {
        self.k.map(|k| (1 << k) - 1)
    }
}

/// Finds the XOR for a tile whose elements are `bytes` wide and lie at these positions (in elements) for a flat index.
/// `phases`: possible distances of the tile's first byte from a 4-byte boundary.
///
/// `per_lane` must be a power of two up to 32.
pub fn choose_xor(per_lane: i64, bytes: i64, src: &[i64], dst: &[i64], phases: &[i64]) -> XorChoice {
    let (src, dst) = (&from_zero(src, bytes), &from_zero(dst, bytes));
    let bits = per_lane.trailing_zeros();
    let mut choice = XorChoice { per_lane, k: None, src_free: Vec::new(), dst_free: Vec::new() };
    for k in 0..=bits {
        let free = |positions: &[i64], kind| {
            phases.iter().all(|phase| (0..per_lane).all(|r| register_is_free(positions, bytes, *phase, r, k, kind)))
        };
        let (src_free, dst_free) = (free(src, AccessKind::Load), free(dst, AccessKind::Store));
        choice.src_free.push(src_free);
        choice.dst_free.push(dst_free);
        if src_free && dst_free && choice.k.is_none() {
            choice.k = Some(k);
        }
    }
    choice
}

/// The positions moved up by whole rows of banks until none is negative; banks and merging stay as they are.
fn from_zero(positions: &[i64], bytes: i64) -> Vec<i64> {
    let row = 128 / bytes.max(1);
    let lowest = positions.iter().copied().min().unwrap_or(0).min(0).div_euclid(row) * row;
    positions.iter().map(|position| position - lowest).collect()
}

/// Whether register `r` of all lanes is accessed without a bank conflict.
fn register_is_free(positions: &[i64], bytes: i64, phase: i64, r: i64, k: u32, kind: AccessKind) -> bool {
    let mask = (1i64 << k) - 1;
    let access = WarpAccess::of(bytes as u64, kind, |lane| {
        let lane = lane as i64;
        let j = r ^ ((lane >> (5 - k)) & mask);
        positions.get((lane + j * 32) as usize).map(|position| (position * bytes + phase) as u64)
    });
    access.is_conflict_free()
}

/// The scheme for one pair of tiles.
#[derive(Clone, Debug)]
pub struct XorPlan {
    /// Both tiles in the same iters.
    pub joint: Joint,
    /// The XOR.
    pub choice: XorChoice,
}

/// Why there is no scheme: something about the operands, or that no XOR serves both phases.
#[derive(Clone, Debug)]
pub enum XorRefusal {
    /// Reasons found before the search for an XOR.
    Gate(Vec<Reason>),
    /// No XOR makes both phases free of bank conflicts.
    NoXor {
        /// Both tiles in the same iters.
        joint: Joint,
        /// What was tried.
        choice: XorChoice,
    },
}

/// Applies the documented conditions and choice to two tiles, given with their names, whose elements are `bytes` wide.
pub fn plan_xor(dst: (&str, &PlacedTile), src: (&str, &PlacedTile), bytes: i64) -> Result<XorPlan, XorRefusal> {
    let mut reasons = Vec::new();
    let joint = Joint::of(dst, src, &mut reasons);
    for (title, placed) in [dst, src] {
        if !placed.pitches.is_empty() {
            reasons.push(unknown_strides(title));
        }
    }
    let elements = src.1.size();
    let per_lane = elements / 32;
    if elements % 32 != 0 {
        let verb = if elements == 1 { "does" } else { "do" };
        reasons.push(Reason {
            text: format!("{} {verb} not divide among 32 lanes", counted(elements, "element")),
            accepted: "a multiple of 32 elements".to_string(),
        });
    } else if per_lane > MOST_PER_LANE || per_lane & (per_lane - 1) != 0 {
        reasons.push(Reason {
            text: format!("{} per lane", counted(per_lane, "element")),
            accepted: "1, 2, 4, 8, 16 or 32 elements per lane".to_string(),
        });
    }
    let Some(joint) = joint.filter(|_| reasons.is_empty()) else { return Err(XorRefusal::Gate(reasons)) };
    let phases = phases([dst.1, src.1], bytes);
    let choice = choose_xor(per_lane, bytes, &joint.src.positions(&M), &joint.dst.positions(&M), &phases);
    if choice.k.is_none() { Err(XorRefusal::NoXor { joint, choice }) } else { Ok(XorPlan { joint, choice }) }
}

/// Possible distances of a tile's first byte from a word boundary, over both operands.
fn phases(operands: [&PlacedTile; 2], bytes: i64) -> Vec<i64> {
    let on_a_word = operands.iter().all(|placed| placed.start.multiple() * bytes % 4 == 0);
    if on_a_word { vec![0] } else { (0..4).step_by(bytes.max(1) as usize).collect() }
}

pub(crate) fn accept(context: &Context) -> Result<XorPlan, Vec<Reason>> {
    let (dst, src) = (&context.dst, &context.src);
    plan_xor((&dst.title, &dst.placed), (&src.title, &src.placed), src.dtype.bytes()).map_err(|refusal| match refusal {
        XorRefusal::Gate(reasons) => reasons,
        XorRefusal::NoXor { choice, .. } => vec![Reason {
            text: format!(
                "no XOR of 0 to {} bits makes both phases free of bank conflicts",
                choice.per_lane.trailing_zeros()
            ),
            accepted: "layouts for which some XOR of the iteration index spreads the lanes over the banks".to_string(),
        }],
    })
}

impl XorPlan {
    pub(crate) fn summary(&self) -> String {
        let (shift, mask) = (self.choice.shift().unwrap_or(5), self.choice.mask().unwrap_or(0));
        let k = self.choice.k.unwrap_or(0);
        format!("{} per lane, k = {k} (shift {shift}, mask {mask})", self.choice.per_lane)
    }

    pub(crate) fn build(&self, context: &Context, builder: &mut Builder) -> Vec<Stmt> {
        let (per_lane, shift, mask) =
            (self.choice.per_lane, self.choice.shift().unwrap_or(5), self.choice.mask().unwrap_or(0));
        let lane = Expr::var(&context.lane);
        let mut body = Vec::new();
        let array = builder.staging(context.src.dtype, per_lane, &mut body);
        let turn = &lane / (1i64 << shift) % (mask + 1);
        let r = Var::new("#register", 0, per_lane - 1);
        let flat = |turn: Expr| &lane + &((Expr::var(&r) ^ turn) * 32);
        let sides = [(&context.src, &self.joint.src, "from"), (&context.dst, &self.joint.dst, "to")];
        let sides = sides.map(|(operand, layout, name)| {
            let index = operand.index_of(builder, layout, &flat(turn.clone()));
            let linear = if operations(&index) > MOST_OPERATIONS { linear(operand, layout) } else { None };
            match linear {
                Some(part) => self.flipped(builder, (name, &lane), part, &mut body),
                None => {
                    let turn = builder.name("x", turn.clone(), &mut body);
                    let index = operand.index_of(builder, layout, &flat(turn));
                    (0..per_lane).map(|i| index.with(&r, i)).collect()
                }
            }
        });
        let access = |side: usize| sides[side].iter().cloned().zip(0..);
        let reads = access(0)
            .map(|(index, i)| Stmt::Load { to: regs(array, i, 1), memory: context.src.memory, index })
            .collect();
        let writes = access(1)
            .map(|(index, i)| Stmt::Store { memory: context.dst.memory, index, from: regs(array, i, 1) })
            .collect();
        staged(context, body, reads, writes)
    }

    /// The positions of a lane's elements, as bit flips of the first one's position.
    fn flipped(&self, builder: &mut Builder, name: (&str, &Expr), part: LinearTerm, body: &mut Vec<Stmt>) -> Vec<Expr> {
        let k = self.choice.k.unwrap_or(0) as usize;
        // Bit `b` of the lane is bit `b` of the element; the upper `k` also turn the iteration index.
        let turned = |bit: usize| if bit + k >= 5 { 1 << (bit + k) } else { 0 };
        let lanes: Vec<i64> = (0..5).map(|bit| (1 << bit) | turned(bit)).collect();
        let parts = [part];
        let address = LinearAddress::new(builder, name, &parts, &lanes, body);
        (0..self.choice.per_lane).map(|i| address.at(i * 32)).collect()
    }
}
