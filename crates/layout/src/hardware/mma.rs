use super::element::MmaType;
use super::mma_operand::{MatrixOrder, MmaOperand, MmaShape};
use super::quad_pairs::quad_pair_iters;
use super::{iter, refused};
use crate::axis::{LANEID, REG};
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::tile::TileLayout;

const NAME: &str = "mma_fragment";

/// The types that one shape multiplies, and those in which it may accumulate their products.
struct MmaTypeRule {
    shape: MmaShape,
    /// Legal types of A and B.
    multiplicands: &'static [MmaType],
    /// Legal types of C and D.
    accumulators: &'static [MmaType],
}

const fn rule(shape: MmaShape, multiplicands: &'static [MmaType], accumulators: &'static [MmaType]) -> MmaTypeRule {
    MmaTypeRule { shape, multiplicands, accumulators }
}

const BYTES: &[MmaType] = &[MmaType::U8, MmaType::S8];
const NIBBLES: &[MmaType] = &[MmaType::U4, MmaType::S4];
const FP8: &[MmaType] = &[MmaType::E4m3, MmaType::E5m2];
const FP6_AND_FP4: &[MmaType] = &[MmaType::E3m2, MmaType::E2m3, MmaType::E2m1];
const HALVES: &[MmaType] = &[MmaType::F16, MmaType::F32];
const SINGLE: &[MmaType] = &[MmaType::F32];
const INTEGER: &[MmaType] = &[MmaType::S32];

const RULES: &[MmaTypeRule] = &[
    rule(MmaShape::M8N8K4, &[MmaType::F16], HALVES),
    rule(MmaShape::M16N8K8, &[MmaType::F16], HALVES),
    rule(MmaShape::M16N8K16, &[MmaType::F16], HALVES),
    rule(MmaShape::M16N8K8, &[MmaType::Bf16], SINGLE),
    rule(MmaShape::M16N8K16, &[MmaType::Bf16], SINGLE),
    rule(MmaShape::M16N8K4, &[MmaType::Tf32], SINGLE),
    rule(MmaShape::M16N8K8, &[MmaType::Tf32], SINGLE),
    rule(MmaShape::M8N8K4, &[MmaType::F64], &[MmaType::F64]),
    rule(MmaShape::M16N8K4, &[MmaType::F64], &[MmaType::F64]),
    rule(MmaShape::M16N8K8, &[MmaType::F64], &[MmaType::F64]),
    rule(MmaShape::M16N8K16, &[MmaType::F64], &[MmaType::F64]),
    rule(MmaShape::M16N8K16, FP8, HALVES),
    rule(MmaShape::M16N8K32, FP8, HALVES),
    rule(MmaShape::M16N8K32, FP6_AND_FP4, HALVES),
    rule(MmaShape::M16N8K64, &[MmaType::E2m1], SINGLE),
    rule(MmaShape::M8N8K16, BYTES, INTEGER),
    rule(MmaShape::M16N8K16, BYTES, INTEGER),
    rule(MmaShape::M16N8K32, BYTES, INTEGER),
    rule(MmaShape::M8N8K32, NIBBLES, INTEGER),
    rule(MmaShape::M16N8K32, NIBBLES, INTEGER),
    rule(MmaShape::M16N8K64, NIBBLES, INTEGER),
    rule(MmaShape::M8N8K128, &[MmaType::B1], INTEGER),
    rule(MmaShape::M16N8K128, &[MmaType::B1], INTEGER),
    rule(MmaShape::M16N8K256, &[MmaType::B1], INTEGER),
];

/// The element types that `operand` of an MMA of this shape may have.
fn legal_types(shape: MmaShape, operand: MmaOperand) -> Vec<MmaType> {
    let mut types = Vec::new();
    for rule in RULES.iter().filter(|rule| rule.shape == shape) {
        let listed = match operand {
            MmaOperand::A | MmaOperand::B => rule.multiplicands,
            MmaOperand::C | MmaOperand::D => rule.accumulators,
        };
        for element in listed.iter().copied() {
            if !types.contains(&element) {
                types.push(element);
            }
        }
    }
    types
}

/// Bits that one element takes in a register: floats of 4 and 6 bits in m16n8k32 take a byte each (PTX ISA,
/// `.kind::f8f6f4` and `.kind::mxf8f6f4`).
pub fn mma_element_bits(shape: MmaShape, element: MmaType) -> i64 {
    let padded = matches!(element, MmaType::E2m1 | MmaType::E2m3 | MmaType::E3m2) && shape == MmaShape::M16N8K32;
    if padded { 8 } else { element.bits() }
}

/// The shape of the tensor that the fragment of an operand holds: (M, K), (K, N) or (M, N). m8n8k4 with half-precision
/// multiplicands executes four MMAs at once and has the MMA as a first dimension of 4.
pub fn mma_fragment_shape(shape: MmaShape, operand: MmaOperand, element: MmaType) -> Vec<i64> {
    let (m, n, k) = shape.mnk();
    let matrix = match operand {
        MmaOperand::A => [m, k],
        MmaOperand::B => [k, n],
        MmaOperand::C | MmaOperand::D => [m, n],
    };
    let mut tensor = if in_quad_pairs(shape, element) { vec![4] } else { Vec::new() };
    tensor.extend(matrix);
    tensor
}

fn in_quad_pairs(shape: MmaShape, element: MmaType) -> bool {
    shape == MmaShape::M8N8K4 && element != MmaType::F64
}

/// What each lane and register holds of an operand of `mma.sync`, on `laneid` and `reg`.
///
/// The tensor is that of [`mma_fragment_shape`]. `order` is that of the matrix, `None` for the usual one (A by rows,
/// B by columns); only m8n8k4 of f16 has a choice. Source: PTX ISA, section "Matrix multiply-accumulate operation
/// using mma instruction", subsections "Matrix Fragments for mma.m8n8k4" to "Matrix Fragments for mma.m16n8k256".
/// Errors: an element type that the shape does not support for this operand, an order that it does not support.
pub fn mma_fragment(
    shape: MmaShape,
    operand: MmaOperand,
    element: MmaType,
    order: Option<MatrixOrder>,
) -> Result<TileLayout, LayoutError> {
    let types = legal_types(shape, operand);
    if !types.contains(&element) {
        let names: Vec<&str> = types.iter().map(|legal| legal.name()).collect();
        return Err(refused(NAME, format!("operand {operand} of {shape} in {element}"), names.join(", ")));
    }
    let quad_pairs = in_quad_pairs(shape, element);
    let order = checked_order(operand, order, quad_pairs)?;
    let (m, _, k) = shape.mnk();
    let run = (32 / mma_element_bits(shape, element)).max(1);
    let shard = match operand {
        _ if quad_pairs => quad_pair_iters(operand, order, element == MmaType::F32),
        MmaOperand::A => quad_iters(m, k, run),
        MmaOperand::B => transposed_quad_iters(k, run),
        MmaOperand::C | MmaOperand::D => quad_iters(m, 8, 2),
    };
    Ok(TileLayout::new(shard, Vec::new(), [])?.canonicalize())
}

fn checked_order(
    operand: MmaOperand,
    order: Option<MatrixOrder>,
    quad_pairs: bool,
) -> Result<MatrixOrder, LayoutError> {
    let (usual, multiplicand) = match operand {
        MmaOperand::A => (MatrixOrder::Row, true),
        MmaOperand::B => (MatrixOrder::Col, true),
        MmaOperand::C | MmaOperand::D => (MatrixOrder::Row, false),
    };
    match order {
        None => Ok(usual),
        Some(order) if order == usual || quad_pairs && multiplicand => Ok(order),
        Some(order) => Err(refused(
            NAME,
            format!("operand {operand} in order `{order}`"),
            format!("{usual}; either order only for a and b of m8n8k4 in f16"),
        )),
    }
}

/// `rows` x `cols` on a warp: row `r` of each 8 on the four lanes `4r..4r+4`, each with `run` neighbours of a row.
/// Registers count the neighbours first, then the groups of 8 rows, then the repetitions along the row.
pub(super) fn quad_iters(rows: i64, cols: i64, run: i64) -> Vec<Iter> {
    let halves = rows / 8;
    vec![
        iter(halves, run, REG),
        iter(8, 4, LANEID),
        iter(cols / (4 * run), run * halves, REG),
        iter(4, 1, LANEID),
        iter(run, 1, REG),
    ]
}

/// Like [`quad_iters`] of 8 rows, with rows and columns exchanged: (`cols`, 8).
fn transposed_quad_iters(cols: i64, run: i64) -> Vec<Iter> {
    vec![iter(cols / (4 * run), run, REG), iter(4, 1, LANEID), iter(run, 1, REG), iter(8, 4, LANEID)]
}

#[cfg(test)]
mod tests {
    // The formulas of the PTX ISA, subsections "Matrix Fragments for mma...", with its names: `g` is groupID, `t` is
    // threadID_in_group, `i` counts the elements of a lane.

    use super::*;
    use crate::hardware::check::assert_formula;

    fn assert_isa(
        shape: MmaShape,
        operand: MmaOperand,
        types: &[MmaType],
        formula: impl Fn(i64, i64, i64) -> [i64; 2],
    ) {
        for element in types.iter().copied() {
            let layout = mma_fragment(shape, operand, element, None).unwrap();
            let tensor = mma_fragment_shape(shape, operand, element);
            assert_formula(&layout, &tensor, 32, |lane, i| formula(lane >> 2, lane % 4, i).to_vec());
        }
    }

    fn lower_if(condition: bool, g: i64) -> i64 {
        if condition { g } else { g + 8 }
    }

    #[test]
    fn accumulators_of_8_rows_are_as_in_the_isa() {
        for shape in [MmaShape::M8N8K16, MmaShape::M8N8K32, MmaShape::M8N8K128] {
            assert_isa(shape, MmaOperand::C, INTEGER, |g, t, i| [g, t * 2 + i]);
        }
        assert_isa(MmaShape::M8N8K4, MmaOperand::D, &[MmaType::F64], |g, t, i| [g, t * 2 + i]);
    }

    #[test]
    fn accumulators_of_16_rows_are_as_in_the_isa() {
        let wide = MmaShape::ALL.iter().copied().filter(|shape| shape.mnk().0 == 16);
        for shape in wide {
            let types = legal_types(shape, MmaOperand::D);
            assert_isa(shape, MmaOperand::D, &types, |g, t, i| [lower_if(i < 2, g), t * 2 + (i & 1)]);
        }
    }

    #[test]
    fn m8n8k4_of_double_precision_is_as_in_the_isa() {
        assert_isa(MmaShape::M8N8K4, MmaOperand::A, &[MmaType::F64], |g, t, _| [g, t]);
        assert_isa(MmaShape::M8N8K4, MmaOperand::B, &[MmaType::F64], |g, t, _| [t, g]);
    }

    #[test]
    fn m16n8k4_is_as_in_the_isa() {
        let types = [MmaType::Tf32, MmaType::F64];
        assert_isa(MmaShape::M16N8K4, MmaOperand::A, &types, |g, t, i| [lower_if(i == 0, g), t]);
        assert_isa(MmaShape::M16N8K4, MmaOperand::B, &types, |g, t, _| [t, g]);
    }

    #[test]
    fn m16n8k8_of_16_bits_is_as_in_the_isa() {
        let types = [MmaType::F16, MmaType::Bf16];
        assert_isa(MmaShape::M16N8K8, MmaOperand::A, &types, |g, t, i| [lower_if(i < 2, g), t * 2 + (i & 1)]);
        assert_isa(MmaShape::M16N8K8, MmaOperand::B, &types, |g, t, i| [t * 2 + i, g]);
    }

    #[test]
    fn m16n8k8_of_32_and_64_bits_is_as_in_the_isa() {
        let types = [MmaType::Tf32, MmaType::F64];
        let a = |g: i64, t: i64, i: i64| [lower_if(i == 0 || i == 2, g), if i < 2 { t } else { t + 4 }];
        assert_isa(MmaShape::M16N8K8, MmaOperand::A, &types, a);
        assert_isa(MmaShape::M16N8K8, MmaOperand::B, &types, |g, t, i| [if i == 0 { t } else { t + 4 }, g]);
    }

    #[test]
    fn m16n8k16_of_16_bits_is_as_in_the_isa() {
        let types = [MmaType::F16, MmaType::Bf16];
        let a = |g: i64, t: i64, i: i64| {
            let low = (0..2).contains(&i) || (4..6).contains(&i);
            [lower_if(low, g), if i < 4 { t * 2 + (i & 1) } else { t * 2 + (i & 1) + 8 }]
        };
        assert_isa(MmaShape::M16N8K16, MmaOperand::A, &types, a);
        let b = |g: i64, t: i64, i: i64| [if i < 2 { t * 2 + (i & 1) } else { t * 2 + (i & 1) + 8 }, g];
        assert_isa(MmaShape::M16N8K16, MmaOperand::B, &types, b);
    }

    #[test]
    fn m16n8k16_of_double_precision_is_as_in_the_isa() {
        let a = |g: i64, t: i64, i: i64| [lower_if(i % 2 == 0, g), if i % 2 == 0 { i * 2 + t } else { i * 2 - 2 + t }];
        assert_isa(MmaShape::M16N8K16, MmaOperand::A, &[MmaType::F64], a);
        assert_isa(MmaShape::M16N8K16, MmaOperand::B, &[MmaType::F64], |g, t, i| [t + i * 4, g]);
    }

    #[test]
    fn m8n8k16_of_8_bits_is_as_in_the_isa() {
        assert_isa(MmaShape::M8N8K16, MmaOperand::A, BYTES, |g, t, i| [g, t * 4 + i]);
        assert_isa(MmaShape::M8N8K16, MmaOperand::B, BYTES, |g, t, i| [t * 4 + i, g]);
    }

    #[test]
    fn m16n8k16_of_8_bits_is_as_in_the_isa() {
        let types = [BYTES, FP8].concat();
        assert_isa(MmaShape::M16N8K16, MmaOperand::A, &types, |g, t, i| [lower_if(i < 4, g), t * 4 + (i & 3)]);
        assert_isa(MmaShape::M16N8K16, MmaOperand::B, &types, |g, t, i| [t * 4 + i, g]);
    }

    #[test]
    fn m16n8k32_of_8_bits_and_of_padded_small_floats_is_as_in_the_isa() {
        let types = [BYTES, FP8, FP6_AND_FP4].concat();
        let a = |g: i64, t: i64, i: i64| {
            let low = (0..4).contains(&i) || (8..12).contains(&i);
            [lower_if(low, g), if i < 8 { t * 4 + (i & 3) } else { t * 4 + (i & 3) + 16 }]
        };
        assert_isa(MmaShape::M16N8K32, MmaOperand::A, &types, a);
        let b = |g: i64, t: i64, i: i64| [if i < 4 { t * 4 + (i & 3) } else { t * 4 + (i & 3) + 16 }, g];
        assert_isa(MmaShape::M16N8K32, MmaOperand::B, &types, b);
    }

    #[test]
    fn m8n8k32_is_as_in_the_isa() {
        assert_isa(MmaShape::M8N8K32, MmaOperand::A, NIBBLES, |g, t, i| [g, t * 8 + i]);
        assert_isa(MmaShape::M8N8K32, MmaOperand::B, NIBBLES, |g, t, i| [t * 8 + i, g]);
    }

    #[test]
    fn m16n8k32_of_4_bit_integers_is_as_in_the_isa() {
        assert_isa(MmaShape::M16N8K32, MmaOperand::A, NIBBLES, |g, t, i| [lower_if(i < 8, g), t * 8 + (i & 7)]);
        assert_isa(MmaShape::M16N8K32, MmaOperand::B, NIBBLES, |g, t, i| [t * 8 + i, g]);
    }

    #[test]
    fn m16n8k64_is_as_in_the_isa() {
        let types = [NIBBLES, &[MmaType::E2m1][..]].concat();
        let a = |g: i64, t: i64, i: i64| {
            let low = (0..8).contains(&i) || (16..24).contains(&i);
            [lower_if(low, g), if i < 16 { t * 8 + (i & 7) } else { t * 8 + (i & 7) + 32 }]
        };
        assert_isa(MmaShape::M16N8K64, MmaOperand::A, &types, a);
        let b = |g: i64, t: i64, i: i64| [if i < 8 { t * 8 + (i & 7) } else { t * 8 + (i & 7) + 32 }, g];
        assert_isa(MmaShape::M16N8K64, MmaOperand::B, &types, b);
    }

    #[test]
    fn m8n8k128_is_as_in_the_isa() {
        assert_isa(MmaShape::M8N8K128, MmaOperand::A, &[MmaType::B1], |g, t, i| [g, t * 32 + i]);
        assert_isa(MmaShape::M8N8K128, MmaOperand::B, &[MmaType::B1], |g, t, i| [t * 32 + i, g]);
    }

    #[test]
    fn m16n8k128_is_as_in_the_isa() {
        assert_isa(MmaShape::M16N8K128, MmaOperand::A, &[MmaType::B1], |g, t, i| {
            [lower_if(i < 32, g), t * 32 + (i & 31)]
        });
        assert_isa(MmaShape::M16N8K128, MmaOperand::B, &[MmaType::B1], |g, t, i| [t * 32 + i, g]);
    }

    #[test]
    fn m16n8k256_is_as_in_the_isa() {
        let a = |g: i64, t: i64, i: i64| {
            let low = (0..32).contains(&i) || (64..96).contains(&i);
            [lower_if(low, g), if i < 64 { t * 32 + (i & 31) } else { t * 32 + (i & 31) + 128 }]
        };
        assert_isa(MmaShape::M16N8K256, MmaOperand::A, &[MmaType::B1], a);
        let b = |g: i64, t: i64, i: i64| [if i < 32 { t * 32 + (i & 31) } else { t * 32 + (i & 31) + 128 }, g];
        assert_isa(MmaShape::M16N8K256, MmaOperand::B, &[MmaType::B1], b);
    }

    #[test]
    fn every_type_of_every_shape_has_a_fragment_for_each_operand() {
        let mut fragments = 0;
        for (shape, operand) in MmaShape::ALL.iter().flat_map(|s| MmaOperand::ALL.iter().map(move |o| (*s, *o))) {
            for element in legal_types(shape, operand) {
                let layout = mma_fragment(shape, operand, element, None).unwrap();
                assert_eq!(layout.is_injective(), Ok(true), "{shape} {operand} {element}");
                fragments += 1;
            }
        }
        assert_eq!(fragments, 2 * 34 + 2 * 22);
    }

    #[test]
    fn a_type_or_an_order_that_the_shape_does_not_have_is_refused() {
        let refusal = |shape, operand, element, order| mma_fragment(shape, operand, element, order).unwrap_err().code();
        let col = Some(MatrixOrder::Col);
        let refusals = [
            refusal(MmaShape::M16N8K8, MmaOperand::A, MmaType::S8, None),
            refusal(MmaShape::M16N8K16, MmaOperand::C, MmaType::Bf16, None),
            refusal(MmaShape::M16N8K16, MmaOperand::A, MmaType::F16, col),
            refusal(MmaShape::M8N8K4, MmaOperand::A, MmaType::F64, col),
            refusal(MmaShape::M8N8K4, MmaOperand::C, MmaType::F16, col),
        ];
        assert_eq!(refusals, ["L0113"; 5]);
    }
}
