//! Products of warpgroups: `wgmma` reads the factors from shared memory by itself, and adds to sums in registers.
//!
//! Each warpgroup has every `n`-th block of 64 rows, where there are `n` of them, and one instruction computes a block: its
//! descriptors say where the factors are (`layout::descriptor`). The sums are where those of `mma.sync` are whose rows are dealt
//! out to the warps in turn ([`Product::rows_in_turn`]).

use tilewright_diag::{Diagnostic, counted};
use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_ir::plan::Reason;
use tilewright_ir::product::{Matrix, Product};
use tilewright_ir::thread::{
    Call, Inst, LeftMatrix, RegArray, Regs, Stmt, WGMMA_COLUMNS, WGMMA_ROWS, WarpgroupMma, WgmmaInst,
};
use tilewright_ir::tile::{Gemm, Kernel, Op, Space, Tile, WARPS_OF_A_WARPGROUP};
use tilewright_ir::{Handle, HwIndex, Target};
use tilewright_layout::DType;

use super::described::{BLOCK_ROWS, Described, MatrixUnit, columns_of_an_instruction, in_shared};
use super::{Source, fragment, reason};
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
            Space::Shared | Space::Global(_) | Space::Tensor => {
                let tile = in_shared(Operand::resolve(builder, kernel, op, tile)?);
                Ok(tile.map(|tile| Factor::Shared(Box::new(tile))))
            }
        };
        let first = builder.role.map_or(0, |role| builder.program.roles[role].first);
        let sums = match kernel.buffers[c.buffer].space {
            Space::Fragment => fragment(builder, kernel, c),
            Space::Shared | Space::Global(_) | Space::Tensor => {
                Err(reason("`c` is in memory".to_string(), "a fragment"))
            }
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
        let accepted =
            format!("multiples of 8 (of 16 for integers) up to {WGMMA_COLUMNS}, or multiples of {BLOCK_ROWS}");
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
    let ([a, b], [is_a_turned, is_b_turned]) = (&context.factors, context.gemm.is_mn_major());
    let a = a.clone().and_then(|a| match a {
        Factor::Registers(source) => match source.against(&product, Matrix::A) {
            Some(against) => Err(against),
            None => Ok(Left::Registers(source)),
        },
        Factor::Shared(tile) => Described::of(MatrixUnit::Wgmma, &tile, [m, k], (is_a_turned, "a")).map(Left::Shared),
    });
    let b = b.clone().and_then(|b| match b {
        Factor::Registers(_) => Err(reason("`b` is in registers".to_string(), "a tile in shared memory")),
        Factor::Shared(tile) => Described::of(MatrixUnit::Wgmma, &tile, [n, k], (is_b_turned, "b")),
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
    reason(format!("`wgmma` does not multiply {multiplicand} and accumulate in {sum}"), &all.join(", "))
}

/// The columns of one instruction, if the sums have `n`.
fn columns_of(inst: WgmmaInst, n: i64) -> Option<i64> {
    columns_of_an_instruction(n, |columns| inst.info().has_columns(columns))
}

impl Schedule<Context> for WarpgroupSchedule {
    fn summary(&self, context: &Context) -> String {
        let [m, n, k] = self.product.shape;
        let groups = context.warps[1] / WARPS_OF_A_WARPGROUP;
        let columns = columns_of(self.inst, n).unwrap_or(n);
        let instructions = m / WGMMA_ROWS / groups * (n / columns) * (k / self.inst.info().k);
        let a = match &self.a {
            Left::Registers(_) => "in registers".to_string(),
            Left::Shared(described) => described.summary(),
        };
        format!(
            "{}, each {} of m64n{columns}k{}; `a` {a}, `b` {}",
            counted(groups, "warpgroup"),
            counted(instructions, "instruction"),
            self.inst.info().k,
            self.b.summary(),
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
        left.into_iter().chain([&self.b]).for_each(|described| described.align(builder));
        // What threads have computed is in the registers before the fence, and sums are read behind the wait.
        let left = if let Left::Registers(Source::Registers(array, _)) = &self.a { Some(*array) } else { None };
        let added = (!context.gemm.clear).then_some(*sums);
        let mut body: Vec<Stmt> = left.into_iter().chain(added).map(|array| settled(builder, array)).collect();
        body.push(Stmt::from(Call::plain(Inst::WarpgroupFence)));
        for step in 0..k / self.inst.info().k {
            for block in 0..m / WGMMA_ROWS / groups {
                for part in 0..n / columns {
                    let row = normalize(&(Expr::constant(block * groups) + group.clone()));
                    let a = match &self.a {
                        Left::Shared(described) => LeftMatrix::Shared(described.matrix(builder, step, &row)),
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
                        b: self.b.matrix(builder, step, &Expr::constant(part * columns / BLOCK_ROWS)),
                        accumulates: step > 0 || !context.gemm.clear,
                    }));
                }
            }
        }
        body.push(Stmt::from(Call::plain(Inst::WarpgroupCommit)));
        body.push(Stmt::from(Call { arguments: vec![Expr::constant(0)], ..Call::plain(Inst::WarpgroupWait) }));
        body.push(settled(builder, *sums));
        Ok(body)
    }
}

/// All registers of an array have their values there, as the CUDA compiler sees it.
fn settled(builder: &Builder, array: Handle<RegArray>) -> Stmt {
    let RegArray { len, dtype, .. } = &builder.program.registers[array];
    let from = vec![regs(array, 0, 4 / dtype.bytes())];
    Stmt::from(Call { from, arguments: vec![Expr::constant(*len)], ..Call::plain(Inst::WarpgroupSettle) })
}

impl WarpgroupSchedule {
    /// The registers of A of a block of rows, in a step along K.
    fn left(&self, array: Handle<RegArray>, atom: [i64; 2]) -> Regs {
        let part = self.product.part(Matrix::A);
        regs(array, part.slot(atom), part.elements_per_lane())
    }
}
