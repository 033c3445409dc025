//! Products of warpgroups: `wgmma` reads the factors from shared memory by itself, and adds to sums in registers.
//!
//! Each warpgroup has every `n`-th block of 64 rows, where there are `n` of them, and one instruction computes a block: its
//! descriptors say where the factors are (`layout::descriptor`). The sums are where those of `mma.sync` are whose rows are dealt
//! out to the warps in turn ([`Product::rows_in_turn`]).

use tilewright_diag::{Diagnostic, counted, counted_as};
use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_ir::plan::{MemoryKind, Reason};
use tilewright_ir::product::{Matrix, Product};
use tilewright_ir::thread::{
    Call, Inst, LeftMatrix, RegArray, Regs, SharedMatrix, Stmt, WGMMA_COLUMNS, WGMMA_ROWS, WarpgroupMma, WgmmaInst,
};
use tilewright_ir::tile::{Gemm, Kernel, Op, Space, Tile, WARPS_OF_A_WARPGROUP};
use tilewright_ir::{Handle, HwIndex, Target};
use tilewright_layout::axis::M;
use tilewright_layout::descriptor::{Major, SwizzlePattern, WgmmaDescriptor, wgmma_descriptor};
use tilewright_layout::{ComposeLayout, DType, Layout, LayoutError};

use super::{Source, fragment, ragged, reason};
use crate::builder::{Builder, regs};
use crate::operand::{MemoryTile, Operand, other_operands};
use crate::refusal::Refusal;
use crate::variant::{Schedule, Variant, VariantList};

/// What the variant decides on.
pub(crate) struct Context {
    target: Target,
    product: Result<Product, Reason>,
    gemm: Gemm,
    /// The first warp and the number of warps that execute the op.
    warps: [i64; 2],
    sums: Result<Source, Reason>,
    /// A, then B.
    factors: [Result<Factor, Reason>; 2],
    dtypes: [DType; 2],
}

/// Where a factor is.
#[derive(Clone)]
enum Factor {
    Registers(Source),
    Shared(Box<MemoryTile>),
}

/// A product, with its factors as the instructions read them.
pub(crate) struct WarpgroupSchedule {
    inst: WgmmaInst,
    product: Product,
    sums: Source,
    a: Left,
    b: Described,
}

enum Left {
    Registers(Source),
    Shared(Described),
}

/// A tile in shared memory that descriptors describe.
#[derive(Clone)]
struct Described {
    tile: MemoryTile,
    descriptor: WgmmaDescriptor,
    /// Bytes that each step along K adds.
    advance: Vec<i64>,
    /// Bytes from one block of rows to the next.
    apart: i64,
    is_transposed: bool,
    /// Bytes of which the memory begins at a multiple.
    alignment: i64,
}

pub(crate) static WARPGROUP: VariantList<Context, WarpgroupSchedule> = VariantList {
    context: Context::new,
    floor: |_| None,
    variants: &[Variant { name: "wgmma", accept: |c| Ok(vec![accept(c)?]) }],
};

impl Context {
    fn new(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<Context, Diagnostic> {
        let (Some(gemm), [c, a, b]) = (op.kind.product(), &op.operands[..]) else {
            return Err(other_operands(kernel, op));
        };
        let factor = |tile: &Tile| match kernel.buffers[tile.buffer].space {
            Space::Fragment => Ok::<_, Diagnostic>(fragment(builder, kernel, tile).map(Factor::Registers)),
            Space::Shared | Space::Global(_) => Ok(in_shared(Operand::resolve(builder, kernel, op, tile)?)),
        };
        let first = builder.role.map_or(0, |role| builder.program.roles[role].first);
        let sums = match kernel.buffers[c.buffer].space {
            Space::Fragment => fragment(builder, kernel, c),
            Space::Shared | Space::Global(_) => Err(reason("`c` is in memory".to_string(), "a fragment")),
        };
        Ok(Context {
            target: builder.program.target,
            product: Product::of(kernel, op),
            gemm,
            warps: [first, kernel.warps()],
            sums,
            factors: [factor(a)?, factor(b)?],
            dtypes: [a, c].map(|tile| kernel.buffers[tile.buffer].dtype),
        })
    }
}

/// A factor in memory, if that is shared memory.
fn in_shared(operand: Operand) -> Result<Factor, Reason> {
    match operand {
        Operand::Memory(tile) if !tile.is_inside() => Err(ragged(&tile.title)),
        Operand::Memory(tile) if tile.memory_kind == MemoryKind::Shared => {
            Ok(Factor::Shared(Box::new(tile)))
        }
        Operand::Memory(tile) => {
            Err(reason(format!("`{}` is in global memory", tile.title), "tiles in shared memory"))
        }
        Operand::Fragment(tile) => Err(reason(format!("`{}` is in registers", tile.title), "tiles in shared memory")),
    }
}

fn accept(context: &Context) -> Result<WarpgroupSchedule, Vec<Reason>> {
    let info = |inst: &WgmmaInst| inst.info();
    if !WgmmaInst::ALL.iter().all(|inst| info(inst).targets().contains(&context.target)) {
        let text = format!("{} has no `wgmma`", context.target);
        return Err(vec![reason(text, "sm_90a")]);
    }
    let product = context.product.clone().map_err(|reason| vec![reason])?;
    let mut reasons: Vec<Reason> = against_warps(context.warps).into_iter().collect();
    let of_dtypes = |inst: &&WgmmaInst| [info(inst).multiplicand, info(inst).sum] == context.dtypes;
    let Some(inst) = WgmmaInst::ALL.iter().find(of_dtypes).copied() else {
        reasons.push(no_types(context.dtypes));
        return Err(reasons);
    };
    let [m, n, k] = product.shape;
    let rows = WGMMA_ROWS * context.warps[1] / WARPS_OF_A_WARPGROUP;
    if m % rows.max(1) != 0 {
        let text = format!("{m} rows are not whole blocks of {WGMMA_ROWS} for each warpgroup");
        reasons.push(reason(text, &format!("multiples of {rows} rows")));
    }
    if columns_of(inst, n).is_none() {
        let accepted = format!("multiples of 8 (of 16 for integers) up to {WGMMA_COLUMNS}, or multiples of {WGMMA_ROWS}");
        reasons.push(reason(format!("{n} columns"), &accepted));
    }
    if k % info(&inst).k != 0 {
        reasons.push(reason(format!("K is {k}"), &format!("multiples of {}", info(&inst).k)));
    }
    if !reasons.is_empty() {
        return Err(reasons);
    }
    let sums = context.sums.clone().and_then(|sums| match sums.against(&product, Matrix::C) {
        Some(against) => Err(against),
        None => Ok(sums),
    });
    let [a, b] = &context.factors;
    let a = a.clone().and_then(|a| match a {
        Factor::Registers(source) => match source.against(&product, Matrix::A) {
            Some(against) => Err(against),
            None => Ok(Left::Registers(source)),
        },
        Factor::Shared(tile) => Described::of(&tile, [m, k], context.gemm.transpose_a, "a").map(Left::Shared),
    });
    let b = b.clone().and_then(|b| match b {
        Factor::Registers(_) => Err(reason("`b` is in registers".to_string(), "a tile in shared memory")),
        Factor::Shared(tile) => Described::of(&tile, [n, k], !context.gemm.transpose_b, "b"),
    });
    match (sums, a, b) {
        (Ok(sums), Ok(a), Ok(b)) => Ok(WarpgroupSchedule { inst, product, sums, a, b }),
        (sums, a, b) => Err([sums.err(), a.err(), b.err()].into_iter().flatten().collect()),
    }
}

/// Why these warps are not whole warpgroups, if they are not.
fn against_warps([first, warps]: [i64; 2]) -> Option<Reason> {
    let is_whole = first % WARPS_OF_A_WARPGROUP == 0 && warps % WARPS_OF_A_WARPGROUP == 0;
    let text = || format!("{} from warp {first} on are not whole warpgroups", counted(warps, "warp"));
    (!is_whole).then(|| reason(text(), "multiples of 4 warps, from a multiple of 4 on"))
}

fn no_types([multiplicand, sum]: [DType; 2]) -> Reason {
    let all: Vec<String> = WgmmaInst::ALL
        .iter()
        .map(|inst| format!("{} accumulated in {}", inst.info().multiplicand, inst.info().sum))
        .collect();
    let text = match multiplicand {
        DType::F32 => "`wgmma` drops the low bits of f32, where `gemm` rounds to tf32".to_string(),
        _ => format!("`wgmma` does not multiply {multiplicand} and accumulate in {sum}"),
    };
    reason(text, &all.join(", "))
}

/// The columns of one instruction, if the sums have `n`: all of them, or as many blocks of 64 as possible, the same in each.
fn columns_of(inst: WgmmaInst, n: i64) -> Option<i64> {
    let is_possible = |columns: &i64| inst.info().has_columns(*columns) && (*columns == n || columns % WGMMA_ROWS == 0);
    (1..=n / 8).filter(|parts| n % parts == 0).map(|parts| n / parts).find(is_possible)
}

impl Described {
    /// The descriptors of a tile of rows of M or N, with K along them unless it is stored the other way round.
    fn of(tile: &MemoryTile, [rows, k]: [i64; 2], is_turned: bool, name: &str) -> Result<Described, Reason> {
        let refused = |error: LayoutError| {
            let (problem, accepted) = match error {
                LayoutError::Descriptor { problem, legal, .. } => (problem, legal),
                other => (other.to_string(), "the layouts of `mma_shared_layout`".to_string()),
            };
            reason(format!("no descriptor matches `{}`, which is `{name}`: {problem}", tile.title), &accepted)
        };
        let stored = if is_turned { [k, rows] } else { [rows, k] };
        let iters = tile.iters()?.clone();
        let whole = match tile.placed.swizzle {
            None => Layout::Tile(iters),
            Some(swizzle) => Layout::Compose(ComposeLayout::new(swizzle, iters).map_err(refused)?),
        };
        let upright = if is_turned { whole.reorder(&stored, &[1, 0]).map_err(refused)? } else { whole };
        let bits = tile.dtype.bytes() * 8;
        let pattern = SwizzlePattern::of(&upright, bits);
        let repeat = pattern.map_or(16, |pattern| pattern.repeat().max(16));
        if (tile.placed.start.multiple() * tile.dtype.bytes()) % repeat != 0 {
            let text = format!("`{}` does not begin at a multiple of {repeat} B", tile.title);
            return Err(reason(text, "tiles that begin where the pattern of the swizzle does"));
        }
        let of = |major| wgmma_descriptor(&upright, [rows, k], bits, major);
        let (operand, is_transposed) = match (of(Major::K), of(Major::MN)) {
            (Ok(operand), _) => (operand, false),
            (Err(_), Ok(operand)) => (operand, true),
            (Err(along_k), Err(along_mn)) => return Err(refused(if is_turned { along_mn } else { along_k })),
        };
        let apart = blocks_apart(&upright, [rows, k], tile.dtype.bytes()).ok_or_else(|| {
            let text = format!("the blocks of {WGMMA_ROWS} rows of `{}` are not evenly spaced", tile.title);
            reason(text, "the layouts of `mma_shared_layout`")
        })?;
        let (descriptor, advance) = (operand.descriptor, operand.advance);
        Ok(Described { tile: tile.clone(), descriptor, advance, apart, is_transposed, alignment: repeat })
    }

    /// The tile, as an instruction reads it that begins so many bytes after the first.
    fn matrix(&self, builder: &Builder, offset: Expr) -> SharedMatrix {
        let bytes = self.tile.dtype.bytes();
        let start = WgmmaDescriptor { start_address: 0, ..self.descriptor };
        let first = i64::from(self.descriptor.start_address) * 16 / bytes;
        let stage = builder.program.memories[self.tile.memory].stage_elements();
        SharedMatrix {
            memory: self.tile.memory,
            first: self.tile.placed.start.clone(),
            bytes: self.tile.placed.span_on(&M).min(stage) * bytes,
            offset: normalize(&(offset + first)),
            descriptor: start.encode(),
            is_transposed: self.is_transposed,
        }
    }

    /// Elements from the first of the tile to the part of a step along K, in a row of blocks.
    fn offset(&self, step: usize, block: &Expr) -> Expr {
        let bytes = self.tile.dtype.bytes();
        normalize(&(block * (self.apart / bytes) + self.advance[step] / bytes))
    }
}

/// Bytes from one block of 64 rows to the next, before the swizzle; 0 if there is one. `None` if they are not evenly spaced.
fn blocks_apart(layout: &Layout, [rows, k]: [i64; 2], bytes: i64) -> Option<i64> {
    let tile = layout.tile().ok()?;
    let place = |block: i64| tile.position(block * WGMMA_ROWS * k, &M);
    let blocks = (rows + WGMMA_ROWS - 1) / WGMMA_ROWS;
    if blocks == 1 {
        return Some(0);
    }
    let apart = place(1) - place(0);
    (0..blocks).all(|block| place(block) - place(0) == block * apart).then_some(apart * bytes)
}

impl Schedule<Context> for WarpgroupSchedule {
    fn summary(&self, context: &Context) -> String {
        let [m, n, k] = self.product.shape;
        let groups = context.warps[1] / WARPS_OF_A_WARPGROUP;
        let columns = columns_of(self.inst, n).unwrap_or(n);
        let instructions = m / WGMMA_ROWS / groups * (n / columns) * (k / self.inst.info().k);
        let swizzle = |described: &Described| {
            let pattern = SwizzlePattern::from(described.descriptor.swizzle).name();
            let turned = if described.is_transposed { "MN-major" } else { "K-major" };
            format!("{turned} with {pattern}")
        };
        let a = match &self.a {
            Left::Registers(_) => "in registers".to_string(),
            Left::Shared(described) => swizzle(described),
        };
        format!(
            "{}, each {} of m64n{columns}k{}; `a` {a}, `b` {}",
            counted(groups, "warpgroup"),
            counted_as(instructions, "instruction", "instructions"),
            self.inst.info().k,
            swizzle(&self.b),
        )
    }

    fn build(&self, context: &Context, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        let [m, n, k] = self.product.shape;
        let groups = context.warps[1] / WARPS_OF_A_WARPGROUP;
        let columns = columns_of(self.inst, n).unwrap_or(n);
        let warp = HwIndex::Warp.var(builder.program.threads, &builder.program.grid);
        let group = if groups == 1 { Expr::constant(0) } else { Expr::var(&warp) / WARPS_OF_A_WARPGROUP };
        let Source::Registers(sums, _) = &self.sums else { return Err(Refusal::from("the sums are in memory")) };
        let left = if let Left::Shared(described) = &self.a { Some(described) } else { None };
        for described in left.into_iter().chain([&self.b]) {
            let owner = builder.program.owner(described.tile.memory);
            builder.align(owner, described.alignment);
        }
        let mut body = vec![Stmt::from(Call::plain(Inst::WarpgroupFence))];
        for step in 0..k / self.inst.info().k {
            for block in 0..m / WGMMA_ROWS / groups {
                for part in 0..n / columns {
                    let row = normalize(&(Expr::constant(block * groups) + group.clone()));
                    let a = match &self.a {
                        Left::Shared(described) => {
                            LeftMatrix::Shared(described.matrix(builder, described.offset(step as usize, &row)))
                        }
                        Left::Registers(Source::Registers(array, _)) => {
                            LeftMatrix::Registers(self.left(*array, [block, step]))
                        }
                        Left::Registers(Source::Memory(..)) => return Err(Refusal::from("`a` is in memory")),
                    };
                    let held = columns / 2;
                    body.push(Stmt::from(WarpgroupMma {
                        inst: self.inst,
                        n: columns,
                        sums: regs(*sums, (block * (n / columns) + part) * held, held),
                        a,
                        b: self.b.matrix(builder, self.b.offset(step as usize, &Expr::constant(part * columns / WGMMA_ROWS))),
                        accumulates: step > 0 || !context.gemm.clear,
                    }));
                }
            }
        }
        body.push(Stmt::from(Call::plain(Inst::WarpgroupCommit)));
        body.push(Stmt::from(Call { arguments: vec![Expr::constant(0)], ..Call::plain(Inst::WarpgroupWait) }));
        Ok(body)
    }
}

impl WarpgroupSchedule {
    /// The registers of A of a block of rows, in a step along K.
    fn left(&self, array: Handle<RegArray>, atom: [i64; 2]) -> Regs {
        let part = self.product.part(Matrix::A);
        regs(array, part.slot(atom), part.elements_per_lane())
    }
}
