//! Copies between a fragment and memory, and between two fragments with the same owners.

use tilewright_diag::counted;
use tilewright_expr::Expr;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Cond, Stmt};
use tilewright_layout::axis::{M, REG};
use tilewright_layout::{TileLayout, refine_together};

use super::context::Context;
use crate::builder::{Builder, regs};
use crate::conditions::under;
use crate::fragment::{Owned, owned};
use crate::operand::{FragmentTile, MemoryTile, Operand, hangs_over};
use crate::refusal::{Against, Refusal};
use crate::traversal::{Traversal, widest};

/// Fragment to memory or memory to fragment: every thread moves its own elements.
pub(crate) struct FragmentSchedule {
    fragment: FragmentTile,
    memory: MemoryTile,
    /// The layout of the fragment, in the same iters as `positions`.
    registers: TileLayout,
    /// The layout of the tile in memory.
    positions: TileLayout,
    owned: Owned,
    /// Whether the fragment is stored; otherwise it is loaded.
    to_memory: bool,
    /// Elements of one access.
    width: i64,
}

pub(crate) fn accept_fragment(context: &Context) -> Result<FragmentSchedule, Against> {
    let (fragment, memory, to_memory) = match (&context.dst, &context.src) {
        (Operand::Memory(memory), Operand::Fragment(fragment)) => (fragment, memory, true),
        (Operand::Fragment(fragment), Operand::Memory(memory)) => (fragment, memory, false),
        (Operand::Memory(_), Operand::Memory(_)) | (Operand::Fragment(_), Operand::Fragment(_)) => {
            return Err(Against::Reasons(vec![Reason {
                text: "the operands are both in memory or both in registers".to_string(),
                accepted: "one operand in registers and one in memory".to_string(),
            }]));
        }
    };
    let places = memory.iters().map_err(|reason| vec![reason])?;
    if !memory.is_inside() {
        return Err(Against::Reasons(vec![hangs_over(&memory.title)]));
    }
    let joint = refine_together(&[&fragment.layout, places]).map_err(|_| {
        vec![Reason {
            text: format!("the iters of {} and {places} do not nest", fragment.layout),
            accepted: "layouts whose iters end at common multiples".to_string(),
        }]
    })?;
    // Registers in order, so that adjacent registers can be adjacent in memory.
    let by_register = Traversal::by_axis(&joint[0], &joint[1], &REG)?;
    let owned = owned(by_register.dst(), fragment.is_of_warps, &context.indices)?;
    let width = widest_held(&by_register, fragment, memory);
    Ok(FragmentSchedule {
        fragment: fragment.clone(),
        memory: memory.clone(),
        registers: by_register.dst().clone(),
        positions: by_register.src().clone(),
        owned,
        to_memory,
        width,
    })
}

/// The most elements that are adjacent both in registers and in memory and fill an access width of the hardware.
fn widest_held(traversal: &Traversal, fragment: &FragmentTile, memory: &MemoryTile) -> i64 {
    let bytes = fragment.dtype.bytes();
    let registers_adjacent = |width: i64| {
        let mut rest = width;
        for iter in traversal.dst().shard().iter().rev() {
            if rest == 1 {
                break;
            }
            let next = if iter.extent % rest == 0 { rest } else { iter.extent };
            if iter.axis != REG || iter.stride != width / rest || rest % next != 0 {
                return false;
            }
            rest /= next;
        }
        rest == 1
    };
    // A vector of registers must begin at a multiple of its width to be aligned.
    let aligned = |width: i64| {
        let moving = traversal.dst().shard().iter().filter(|iter| iter.axis == REG);
        let mut steps = moving.map(|iter| iter.stride).chain([traversal.dst().offset_on(&REG)]);
        steps.all(|step| step % width == 0 || step.abs() < width && step > 0 && width % step == 0)
            && traversal.dst().offset_on(&REG) % width == 0
    };
    widest(bytes, memory.widest, |w| {
        registers_adjacent(w) && aligned(w) && traversal.allows(memory, traversal.src(), w)
    })
}

impl FragmentSchedule {
    pub(crate) fn summary(&self) -> String {
        let bytes = self.width * self.fragment.dtype.bytes();
        let per_thread = self.registers.size_on(&REG);
        format!("{per_thread} per thread, {bytes} B at a time")
    }

    pub(crate) fn build(&self, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        let body = thread_registers(&self.registers)
            .into_iter()
            .step_by(self.width as usize)
            .map(|held| self.access(builder, &held))
            .collect::<Result<Vec<Stmt>, Refusal>>()?;
        let mut conditions = self.owned.holds.clone();
        if self.to_memory {
            conditions.extend(self.owned.first_copy.clone());
        }
        let conditions: Vec<Cond> = conditions.into_iter().map(|cond| simplified(builder, cond)).collect();
        Ok(under(&conditions, body))
    }

    fn access(&self, builder: &mut Builder, held: &ThreadRegister) -> Result<Stmt, Refusal> {
        let placed = &self.memory.placed;
        let mut relative = placed.first_of_pitches() + self.positions.offset_on(&M);
        let places = self.registers.shard().iter().zip(self.positions.shard());
        for ((holder, iter), (thread, number)) in places.zip(self.owned.digits.iter().zip(&held.digits)) {
            let digit = if holder.axis == REG {
                Expr::constant(*number)
            } else {
                thread.clone().ok_or_else(|| format!("no index of the thread gives its digit on `{}`", holder.axis))?
            };
            relative = relative + digit * iter.stride * placed.stride_of(&iter.axis);
        }
        let index = builder.simplifier.simplify(&placed.position_expr(relative));
        let part = regs(self.fragment.array, held.register, self.width);
        Ok(match self.to_memory {
            true => Stmt::Store { memory: self.memory.memory, index, from: part },
            false => Stmt::Load { to: part, memory: self.memory.memory, index },
        })
    }
}

fn simplified(builder: &mut Builder, cond: Cond) -> Cond {
    match cond {
        Cond::Less(a, b) => Cond::Less(builder.simplifier.simplify(&a), builder.simplifier.simplify(&b)),
        Cond::Equal(a, b) => Cond::Equal(builder.simplifier.simplify(&a), builder.simplifier.simplify(&b)),
    }
}

/// One register of every thread: its index, and the digits of the `reg` iters that lead to it.
pub(crate) struct ThreadRegister {
    pub(crate) register: i64,
    /// The digit of every iter; 0 for iters that are not on `reg`.
    digits: Vec<i64>,
}

/// The registers of a thread, in the order of the iters.
pub(crate) fn thread_registers(layout: &TileLayout) -> Vec<ThreadRegister> {
    let mut held = vec![ThreadRegister { register: layout.offset_on(&REG), digits: Vec::new() }];
    for iter in layout.shard() {
        let extent = if iter.axis == REG { iter.extent } else { 1 };
        held = held
            .iter()
            .flat_map(|h| {
                (0..extent).map(|digit| {
                    let moved = if iter.axis == REG { digit * iter.stride } else { 0 };
                    let digits = h.digits.iter().copied().chain([digit]).collect();
                    ThreadRegister { register: h.register + moved, digits }
                })
            })
            .collect();
    }
    held
}

/// The thread part of a layout: iters, replicas and offsets that are not on `reg`.
fn owners(layout: &TileLayout) -> impl PartialEq {
    let shard: Vec<_> = layout.shard().iter().map(|iter| (iter.axis != REG).then(|| iter.clone())).collect();
    let offset: Vec<_> =
        layout.offset().iter().filter(|(axis, _)| **axis != REG).map(|(a, v)| (a.clone(), *v)).collect();
    (shard, layout.replica().to_vec(), offset)
}

/// Fragment to fragment where every thread already holds what it needs.
pub(crate) struct RegisterSchedule {
    moves: Vec<Stmt>,
    /// Conditions under which a thread holds elements.
    holds: Vec<Cond>,
}

pub(crate) fn accept_registers(context: &Context) -> Result<RegisterSchedule, Vec<Reason>> {
    let (Operand::Fragment(dst), Operand::Fragment(src)) = (&context.dst, &context.src) else {
        return Err(vec![Reason {
            text: "an operand is in memory".to_string(),
            accepted: "both operands in registers".to_string(),
        }]);
    };
    match refine_together(&[&dst.layout, &src.layout]) {
        Ok(joint) if owners(&joint[0]) == owners(&joint[1]) && dst.is_of_warps == src.is_of_warps => {
            let pairs = thread_registers(&joint[0]).into_iter().zip(thread_registers(&joint[1]));
            let moves = pairs
                .map(|(to, from)| Stmt::Move {
                    to: regs(dst.array, to.register, 1),
                    from: regs(src.array, from.register, 1),
                })
                .collect();
            let holds = owned(&dst.layout, dst.is_of_warps, &context.indices)?.holds;
            Ok(RegisterSchedule { moves, holds })
        }
        _ => Err(vec![Reason {
            text: format!("different threads hold the elements of `{}` and `{}`", dst.title, src.title),
            accepted: "fragments in which every thread holds the same elements".to_string(),
        }]),
    }
}

impl RegisterSchedule {
    pub(crate) fn summary(&self) -> String {
        counted(self.moves.len(), "register move")
    }

    pub(crate) fn build(&self) -> Vec<Stmt> {
        under(&self.holds, self.moves.clone())
    }
}
