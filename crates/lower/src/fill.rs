//! `fill`: sets every element to one constant.

use tilewright_diag::{Diagnostic, counted};
use tilewright_expr::{Expr, Var};
use tilewright_ir::Scalar;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Cond, Stmt};
use tilewright_ir::tile::vectors::WIDEST;
use tilewright_ir::tile::{Kernel, Op, OpKind};
use tilewright_layout::TileLayout;

use crate::builder::{Builder, regs};
use crate::conditions::{in_step, under};
use crate::copy::{Team, spread_steps, thread_registers};
use crate::fragment::{ThreadIndices, owned};
use crate::operand::{FragmentTile, MemoryTile, Operand, other_operands};
use crate::refusal::{Against, Refusal};
use crate::traversal::{Traversal, widest};
use crate::variant::{Schedule, Variant, VariantList};

/// What the variants of `fill` decide on.
pub(crate) struct Context {
    pub(crate) dst: Operand,
    pub(crate) value: Scalar,
    pub(crate) team: Team,
    pub(crate) indices: ThreadIndices,
}

pub(crate) enum FillSchedule {
    Memory {
        tile: MemoryTile,
        layout: TileLayout,
        width: i64,
    },
    /// The registers, and the conditions under which a thread holds elements.
    Fragment {
        tile: FragmentTile,
        holds: Vec<Cond>,
    },
}

pub(crate) static VARIANTS: VariantList<Context, FillSchedule> = VariantList {
    context: Context::new,
    floor: |_| None,
    variants: &[
        Variant { name: "vectorized", accept: |c| Ok(vec![accept_memory(c)?]) },
        Variant { name: "registers", accept: |c| Ok(vec![accept_fragment(c)?]) },
    ],
};

impl Context {
    /// Resolves the operand of a `fill`, and its constant. Error: the operand has no address.
    fn new(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<Context, Diagnostic> {
        let (OpKind::Fill(value), [dst]) = (op.kind, &op.operands[..]) else { return Err(other_operands(kernel, op)) };
        let dst = Operand::resolve(builder, kernel, op, dst)?;
        Ok(Context { dst, value, team: Team::of(kernel, op), indices: ThreadIndices::in_cta(kernel) })
    }
}

fn accept_memory(context: &Context) -> Result<FillSchedule, Against> {
    let Operand::Memory(tile) = &context.dst else {
        return Err(Against::Reasons(vec![Reason {
            text: format!("`{}` is in registers", context.dst.title()),
            accepted: "a tile in global or shared memory".to_string(),
        }]));
    };
    let iters = tile.iters().map_err(|reason| vec![reason])?;
    let traversal = Traversal::along(&tile.placed, iters, iters, true)?;
    let bytes = tile.dtype.bytes();
    let fits = |w| traversal.allows(tile, traversal.dst(), w);
    let width = widest(bytes, WIDEST, fits);
    Ok(FillSchedule::Memory { tile: tile.clone(), layout: traversal.dst().clone(), width })
}

fn accept_fragment(context: &Context) -> Result<FillSchedule, Vec<Reason>> {
    match &context.dst {
        Operand::Fragment(tile) => {
            let holds = owned(&tile.layout, tile.is_of_warps, &context.indices)?.holds;
            Ok(FillSchedule::Fragment { tile: tile.clone(), holds })
        }
        Operand::Memory(tile) => {
            Err(vec![Reason { text: format!("`{}` is in memory", tile.title), accepted: "a fragment".to_string() }])
        }
    }
}

impl Schedule<Context> for FillSchedule {
    fn summary(&self, context: &Context) -> String {
        match self {
            FillSchedule::Memory { tile, width, .. } => {
                let threads = counted(context.team.threads, "thread");
                format!("{threads}, {} B at a time", width * tile.dtype.bytes())
            }
            FillSchedule::Fragment { tile, .. } => counted(thread_registers(&tile.layout).len(), "register"),
        }
    }

    fn build(&self, context: &Context, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        Ok(match self {
            FillSchedule::Memory { tile, layout, width } => fill_memory(context, builder, tile, layout, *width),
            FillSchedule::Fragment { tile, holds } => {
                let mut held: Vec<i64> = thread_registers(&tile.layout).into_iter().map(|held| held.register).collect();
                held.sort_unstable();
                held.dedup();
                let runs = held.chunk_by(|register, next| *next == register + 1);
                let set =
                    |run: &[i64]| Stmt::Set { to: regs(tile.array, run[0], run.len() as i64), value: context.value };
                under(holds, runs.map(set).collect())
            }
        })
    }
}

fn fill_memory(
    context: &Context,
    builder: &mut Builder,
    tile: &MemoryTile,
    layout: &TileLayout,
    width: i64,
) -> Vec<Stmt> {
    let team = &context.team;
    let vectors = layout.size() / width;
    let mut body = Vec::new();
    let array = builder.staging(tile.dtype, width, &mut body);
    body.push(Stmt::Set { to: regs(array, 0, width), value: context.value });
    let thread = Expr::var(&team.index);
    body.extend(spread_steps(builder, team, vectors, 16, |builder, base, count| {
        let step = Var::new("#step", 0, (count - 1).max(0));
        let vector = &thread + &((base + &Expr::var(&step)) * team.threads);
        let flat = vector * width;
        let index = tile.index_of(builder, layout, &flat);
        let inside = tile.inside(builder, layout, &flat);
        let store =
            |s: i64| Stmt::Store { memory: tile.memory, index: index.with(&step, s), from: regs(array, 0, width) };
        (0..count)
            .flat_map(|s| {
                let rest = Expr::constant(vectors) - (base + s) * team.threads;
                under(&in_step(&inside, &step, s, &thread, &rest), vec![store(s)])
            })
            .collect()
    }));
    body
}
