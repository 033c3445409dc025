use super::choice::choices;
use super::element::MmaType;
use super::mma::quad_iters;
use super::{iter, refused};
use crate::axis::WID_IN_WG;
use crate::error::LayoutError;
use crate::tile::TileLayout;

const NAME: &str = "wgmma_fragment";

choices! {
    /// An operand of `wgmma.mma_async` that may be in registers.
    pub WgmmaOperand, "wgmma operand in registers";
    /// The left multiplicand, (64, K).
    A = "a",
    /// The accumulator, (64, N).
    D = "d",
}

/// The multiplicand and accumulator types of `wgmma` for one K.
struct WgmmaTypeRule {
    /// K of one instruction.
    k: i64,
    /// Legal types of A.
    multiplicands: &'static [MmaType],
    /// Legal types of D.
    accumulators: &'static [MmaType],
}

const RULES: &[WgmmaTypeRule] = &[
    WgmmaTypeRule { k: 8, multiplicands: &[MmaType::Tf32], accumulators: &[MmaType::F32] },
    WgmmaTypeRule { k: 16, multiplicands: &[MmaType::F16, MmaType::Bf16], accumulators: &[MmaType::F32, MmaType::F16] },
    WgmmaTypeRule {
        k: 32,
        multiplicands: &[MmaType::E4m3, MmaType::E5m2, MmaType::U8, MmaType::S8],
        accumulators: &[MmaType::F32, MmaType::F16, MmaType::S32],
    },
    WgmmaTypeRule { k: 256, multiplicands: &[MmaType::B1], accumulators: &[MmaType::S32] },
];

/// The tensor that the fragment holds: (64, K) or (64, N).
pub fn wgmma_fragment_shape(n: i64, k: i64, operand: WgmmaOperand) -> [i64; 2] {
    match operand {
        WgmmaOperand::A => [64, k],
        WgmmaOperand::D => [64, n],
    }
}

/// What each thread of a warpgroup holds of an operand of `wgmma.mma_async` m64nNkK, on `wid_in_wg`, `laneid` and
/// `reg`.
///
/// Warp `w` holds rows `16w..16w+16`, each as a fragment of `mma` m16. Source: PTX ISA, section "Asynchronous
/// Warpgroup Level Matrix Multiply-Accumulate Instructions", subsections "Matrix Shape" and "Register Fragments".
/// Errors: an N, a K or an element type that does not exist; with integers, N is 8, 24 or a multiple of 16.
pub fn wgmma_fragment(n: i64, k: i64, operand: WgmmaOperand, element: MmaType) -> Result<TileLayout, LayoutError> {
    check(n, k, operand, element)?;
    let [_, cols] = wgmma_fragment_shape(n, k, operand);
    let run = match operand {
        WgmmaOperand::A => 32 / element.bits(),
        WgmmaOperand::D => 2,
    };
    let mut shard = vec![iter(4, 1, WID_IN_WG)];
    shard.extend(quad_iters(16, cols, run));
    Ok(TileLayout::new(shard, Vec::new(), [])?.canonicalize())
}

fn check(n: i64, k: i64, operand: WgmmaOperand, element: MmaType) -> Result<(), LayoutError> {
    let Some(rule) = RULES.iter().find(|rule| rule.k == k) else {
        return Err(refused(NAME, format!("K = {k}"), "8 (tf32), 16 (16 bits), 32 (8 bits) or 256 (b1)"));
    };
    let types = match operand {
        WgmmaOperand::A => rule.multiplicands,
        WgmmaOperand::D => rule.accumulators,
    };
    if !types.contains(&element) {
        let names: Vec<&str> = types.iter().map(|legal| legal.name()).collect();
        return Err(refused(NAME, format!("operand {operand} of K = {k} in {element}"), names.join(", ")));
    }
    let steps_of_16 = element.is_integer();
    if !(8..=256).contains(&n) || n % 8 != 0 || steps_of_16 && n > 24 && n % 16 != 0 {
        let legal = if steps_of_16 { "8, 16, 24, 32, then multiples of 16 to 256" } else { "multiples of 8 up to 256" };
        return Err(refused(NAME, format!("N = {n} in {element}"), legal));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::check::assert_formula;

    #[test]
    fn accumulators_are_as_in_the_isa_for_every_n() {
        for n in (8..=256).step_by(8) {
            let layout = wgmma_fragment(n, 16, WgmmaOperand::D, MmaType::F32).unwrap();
            assert_formula(&layout, &[64, n], 128, |thread, i| {
                let (warp, group, in_group) = (thread / 32, thread % 32 / 4, thread % 4);
                let row = warp * 16 + group + if i % 4 < 2 { 0 } else { 8 };
                vec![row, i / 4 * 8 + in_group * 2 + i % 2]
            });
        }
    }

    #[test]
    fn left_operands_are_as_in_the_isa_for_every_width() {
        let widths = [(8, MmaType::Tf32, 1), (16, MmaType::Bf16, 2), (32, MmaType::E5m2, 4), (256, MmaType::B1, 32)];
        for (k, element, of_register) in widths {
            let layout = wgmma_fragment(64, k, WgmmaOperand::A, element).unwrap();
            assert_formula(&layout, &[64, k], 128, |thread, i| {
                let (warp, group, in_group) = (thread / 32, thread % 32 / 4, thread % 4);
                let (register, within) = (i / of_register, i % of_register);
                let row = warp * 16 + group + if register == 0 || register == 2 { 0 } else { 8 };
                let col = in_group * of_register + within + if register < 2 { 0 } else { k / 2 };
                vec![row, col]
            });
        }
    }

    #[test]
    fn what_wgmma_does_not_have_is_refused() {
        let refusals = [
            (64, 12, WgmmaOperand::A, MmaType::F16),
            (64, 16, WgmmaOperand::A, MmaType::Tf32),
            (264, 16, WgmmaOperand::D, MmaType::F32),
            (12, 16, WgmmaOperand::D, MmaType::F32),
            (40, 32, WgmmaOperand::D, MmaType::S32),
        ];
        for (n, k, operand, element) in refusals {
            assert_eq!(wgmma_fragment(n, k, operand, element).unwrap_err().code(), "L0113", "n {n} k {k}");
        }
    }
}
