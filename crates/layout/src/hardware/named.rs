use super::block_scaled::{BlockScaledMma, scale_smem_layout, scale_tmem_layout};
use super::catalogue::Family;
use super::datapath::{Datapath, tmem_datapath_layout};
use super::element::MmaType;
use super::ldmatrix::{MatrixOp, MatrixShape, matrix_fragment, matrix_fragment_shape};
use super::mma::{mma_element_bits, mma_fragment, mma_fragment_shape};
use super::mma_operand::{MmaOperand, MmaShape};
use super::operand::{TmemMma, TmemOperand, tmem_mma_operand_layout};
use super::parts::NameParser;
use super::scale::{ScaleFactors, sf_smem_layout, sf_tmem_layout};
use super::shared::{SwizzleMode, mma_shared_layout};
use super::tcgen05::{Tcgen05Shape, tcgen05_atom_layout};
use super::warpgroup::wg_local_layout;
use super::wgmma::{WgmmaOperand, wgmma_fragment, wgmma_fragment_shape};
use super::within_columns;
use crate::error::LayoutError;
use crate::layout::Layout;
use crate::tile::TileLayout;

/// A hardware layout looked up by name, with its description, shape and element width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLayout {
    /// The name that was looked up.
    pub name: String,
    /// A one-line description.
    pub about: String,
    /// The tensor that it places, row-major.
    pub shape: Vec<i64>,
    /// Bits of one element; 32 if the name does not specify them.
    pub bits: i64,
    /// The layout.
    pub layout: Layout,
}

/// What a family builds from the rest of a name.
struct BuiltLayout {
    /// A one-line description.
    about: String,
    /// The shape of the tensor that the layout places.
    shape: Vec<i64>,
    /// Bits of one element.
    bits: i64,
    layout: Layout,
}

type Result<T> = std::result::Result<T, LayoutError>;

/// The hardware layout of a name such as `mma:m16n8k16:a:f16` or `shared:128B:f16:64x64`; [`super::catalogue()`]
/// lists the families. Errors quote the part that is wrong and list what is legal there, the nearest first.
pub fn named(text: &str) -> Result<NamedLayout> {
    let mut parts = NameParser::new(text);
    let family: Family = parts.choice()?;
    let built = match family {
        Family::Tmem => tmem(&mut parts),
        Family::TmemOperand => tmem_operand(&mut parts),
        Family::Tcgen05 => tcgen05(&mut parts),
        Family::Wg => warpgroup(&mut parts),
        Family::Mma => mma(&mut parts),
        Family::Wgmma => wgmma(&mut parts),
        Family::Ldmatrix => matrices(&mut parts, MatrixOp::Load),
        Family::Stmatrix => matrices(&mut parts, MatrixOp::Store),
        Family::Shared => shared(&mut parts),
        Family::SfTmem => scale_factors(&mut parts, "tensor", sf_tmem_layout),
        Family::SfSmem => scale_factors(&mut parts, "shared", sf_smem_layout),
        Family::ScaleTmem => block_scaled(&mut parts, "tensor", scale_tmem_layout),
        Family::ScaleSmem => block_scaled(&mut parts, "shared", scale_smem_layout),
    }?;
    parts.end()?;
    let BuiltLayout { about, shape, bits, layout } = built;
    Ok(NamedLayout { name: text.to_string(), about, shape, bits, layout })
}

fn built(about: String, shape: impl Into<Vec<i64>>, bits: i64, layout: impl Into<Layout>) -> BuiltLayout {
    BuiltLayout { about, shape: shape.into(), bits, layout: layout.into() }
}

fn tmem(parts: &mut NameParser) -> Result<BuiltLayout> {
    let datapath: Datapath = parts.choice()?;
    let (rows, cols) = parts.rows_and_columns()?;
    let sub_slab = parts.optional_number("sub slab")?.unwrap_or(0);
    let layout = tmem_datapath_layout(datapath, rows, cols, sub_slab)?;
    let about = format!("accumulator of tcgen05.mma in tensor memory, datapath {datapath}");
    Ok(built(about, [rows, cols], 32, layout))
}

fn tmem_operand(parts: &mut NameParser) -> Result<BuiltLayout> {
    let operand: TmemOperand = parts.choice()?;
    let shape = parts.sizes()?;
    let mma = TmemMma { m: parts.number("M of the MMA")?, cta_group: parts.choice()?, ws: parts.flag("ws")? };
    let layout = within_columns("tmem_mma_operand_layout", tmem_mma_operand_layout(operand, &shape, mma)?, 32)?;
    let about = format!("operand {operand} of tcgen05.mma with M = {} in {}, in tensor memory", mma.m, mma.cta_group);
    Ok(built(about, shape, 32, layout))
}

fn tcgen05(parts: &mut NameParser) -> Result<BuiltLayout> {
    let shape: Tcgen05Shape = parts.choice()?;
    let (rows, cols) = parts.rows_and_columns()?;
    let element: MmaType = parts.choice()?;
    let layout = tcgen05_atom_layout(shape, rows, cols, element.bits())?;
    let about = format!("registers of a warpgroup after tcgen05.ld.{shape} of {element}");
    Ok(built(about, [rows, cols], element.bits(), layout))
}

fn warpgroup(parts: &mut NameParser) -> Result<BuiltLayout> {
    let (rows, cols) = parts.rows_and_columns()?;
    let layout = wg_local_layout(cols, rows)?;
    Ok(built("registers of a warpgroup, one row in each thread".to_string(), [rows, cols], 32, layout))
}

fn mma(parts: &mut NameParser) -> Result<BuiltLayout> {
    let shape: MmaShape = parts.choice()?;
    let operand: MmaOperand = parts.choice()?;
    let element: MmaType = parts.choice()?;
    let order = parts.optional()?;
    let layout = mma_fragment(shape, operand, element, order)?;
    let about = format!("operand {operand} of mma.sync {shape} in {element}");
    Ok(built(about, mma_fragment_shape(shape, operand, element), mma_element_bits(shape, element), layout))
}

fn wgmma(parts: &mut NameParser) -> Result<BuiltLayout> {
    let (n, k) = parts.wgmma_shape()?;
    let operand: WgmmaOperand = parts.choice()?;
    let element: MmaType = parts.choice()?;
    let layout = wgmma_fragment(n, k, operand, element)?;
    let about = format!("operand {operand} of wgmma m64n{n}k{k} in {element}, in registers");
    Ok(built(about, wgmma_fragment_shape(n, k, operand), element.bits(), layout))
}

fn matrices(parts: &mut NameParser, op: MatrixOp) -> Result<BuiltLayout> {
    let shape = if parts.next_is::<MatrixShape>() { parts.choice()? } else { MatrixShape::M8N8 };
    let count = parts.count()?;
    let trans = parts.flag("trans")?;
    let layout = matrix_fragment(op, shape, count, trans)?;
    let transposed = if trans { ", transposed" } else { "" };
    let about = format!("registers of {op} {shape}.x{count}{transposed}; a row is a row in memory");
    Ok(built(about, matrix_fragment_shape(shape, count), shape.bits(), layout))
}

fn shared(parts: &mut NameParser) -> Result<BuiltLayout> {
    let mode: SwizzleMode = parts.choice()?;
    let element: MmaType = parts.choice()?;
    let shape = parts.sizes()?;
    let layout = mma_shared_layout(element.bits(), mode, &shape)?;
    let about = format!("shared memory tile of {element} for wgmma and tcgen05.mma, swizzle {mode}");
    Ok(built(about, shape, element.bits(), layout))
}

fn scale_factors(
    parts: &mut NameParser,
    memory: &str,
    layout: impl Fn(&ScaleFactors) -> Result<TileLayout>,
) -> Result<BuiltLayout> {
    let (rows, k) = parts.rows_and_columns()?;
    let per_mma = parts.number("number of factors for one MMA")?;
    let reuse = parts.optional_number("number of MMAs that share factors")?.unwrap_or(1);
    let factors = ScaleFactors { rows, k, per_mma, reuse, stages: None };
    let layout = layout(&factors)?;
    let about = format!("scale factors in {memory} memory, {per_mma} per row for each MMA");
    Ok(built(about, factors.shape(), 8, layout))
}

fn block_scaled(
    parts: &mut NameParser,
    memory: &str,
    layout: impl Fn(&BlockScaledMma, super::ScaleOperand, i64) -> Result<TileLayout>,
) -> Result<BuiltLayout> {
    let operand = parts.choice()?;
    let (m, n) = parts.rows_and_columns()?;
    let mma = BlockScaledMma { m, n, scale_vec: parts.choice()?, cta_group: parts.choice()? };
    let mmas = parts.optional_number("number of MMAs along K")?.unwrap_or(1);
    let layout = layout(&mma, operand, mmas)?;
    let k = mmas * mma.scale_vec.factors();
    let about =
        format!("scale factors of {operand} in {memory} memory, scale_vec::{} in {}", mma.scale_vec, mma.cta_group);
    Ok(built(about, [layout.size() / k, k], 8, layout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::catalogue;

    fn problem_and_first_choice(text: &str) -> (String, String) {
        match named(text) {
            Err(LayoutError::Hardware { problem, legal, .. }) => {
                (problem, legal.split(", ").next().unwrap().to_string())
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_example_of_every_family_is_a_layout_of_its_shape() {
        for example in catalogue() {
            let layout = named(example.example).unwrap();
            assert_eq!(layout.layout.size(), layout.shape.iter().product::<i64>(), "{}", example.example);
        }
    }

    #[test]
    fn a_name_is_the_layout_of_its_constructor() {
        let d = tmem_datapath_layout(Datapath::F, 64, 128, 1).unwrap();
        assert_eq!(named("tmem:F:64x128:1").unwrap().layout, Layout::from(d));
        let trans = matrix_fragment(MatrixOp::Load, MatrixShape::M8N8, 2, true).unwrap();
        assert_eq!(named("ldmatrix:x2:trans").unwrap().layout, Layout::from(trans));
        let wide = matrix_fragment(MatrixOp::Load, MatrixShape::M16N16, 2, true).unwrap();
        assert_eq!(named("ldmatrix:m16n16:x2:trans").unwrap().layout, Layout::from(wide));
    }

    #[test]
    fn bits_and_shape_come_from_the_name() {
        let seen = ["mma:m16n8k32:b:e2m1", "mma:m16n8k64:b:e2m1", "mma:m8n8k4:a:f16:col", "sf-tmem:128x4:1:4"]
            .map(|text| named(text).map(|layout| (layout.bits, layout.shape)).unwrap());
        let expected = [(8, vec![32, 8]), (4, vec![64, 8]), (16, vec![4, 8, 4]), (8, vec![128, 16])];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_wrong_part_is_quoted_with_the_nearest_choice_first() {
        let wrong = [
            ("tmen:D:128x256", "`tmen`", "tmem"),
            ("mma:n16m8k16:a:f16", "`n16m8k16`", "m16n8k16"),
            ("mma:m16n8k16:a:fp16", "`fp16`", "f16"),
            ("shared:128b:f16:64x64", "`128b`", "128B"),
            ("tcgen05:16x32bx2:64x8:bf61", "`bf61`", "bf16"),
        ];
        for (text, problem, first) in wrong {
            assert_eq!(problem_and_first_choice(text), (problem.to_string(), first.to_string()));
        }
    }

    #[test]
    fn a_missing_part_is_named() {
        let (problem, first) = problem_and_first_choice("mma:m16n8k16");
        assert_eq!((problem.as_str(), first.as_str()), ("`mma:m16n8k16` ends where the mma operand is expected", "a"));
    }

    #[test]
    fn a_part_too_many_is_quoted() {
        let (problem, legal) = problem_and_first_choice("wg:128x64:f32");
        assert_eq!((problem.as_str(), legal.as_str()), ("`f32` at the end of `wg:128x64:f32`", "nothing more"));
    }

    #[test]
    fn sizes_and_numbers_that_cannot_be_read_are_quoted() {
        for (text, quoted) in [
            ("tmem:D:128x", "the shape `128x`"),
            ("tmem:D:0x8", "the shape `0x8`"),
            ("wg:128x64x2", "a shape of rank 3 in `wg:128x64x2`"),
            ("tmem:F:64x8:up", "the sub slab `up`"),
            ("wgmma:m64n128:d:f32", "the wgmma shape `m64n128`"),
            ("ldmatrix:4", "the number of matrices `4`"),
            ("ldmatrix:x+4", "the number of matrices `x+4`"),
            ("tmem:D:+128x8", "the shape `+128x8`"),
            ("tmem:F:64x8:+1", "the sub slab `+1`"),
            ("wgmma:m64n+128k16:d:f32", "the wgmma shape `m64n+128k16`"),
            ("shared:none:f16:1x1x1x1x1x1x1x8x8", "a shape of 9 dimensions"),
            ("ldmatrix:x4:transposed", "`transposed` at the end of `ldmatrix:x4:transposed`"),
        ] {
            assert_eq!(problem_and_first_choice(text).0, quoted);
        }
    }

    #[test]
    fn a_layout_that_tensor_memory_cannot_hold_has_no_name() {
        for text in ["tmem:D:128x513", "tmem-operand:d:32x2052:32:cta1:ws", "sf-tmem:32x2052:4"] {
            assert_eq!(problem_and_first_choice(text).0, "513 columns of 32 bits in tensor memory", "{text}");
        }
        assert!(named("tmem-operand:a:128x513:128:cta1").is_err());
        assert!(named("scale-tmem:b:128x128:4X:cta2:300").is_err());
    }

    #[test]
    fn no_name_however_odd_panics() {
        for text in ["", ":", "::::", "tmem", "tmem:", "sf-tmem:32x4:0", "shared:none:f16:9223372036854775807x2x2"] {
            assert!(named(text).is_err(), "{text}");
        }
    }
}
