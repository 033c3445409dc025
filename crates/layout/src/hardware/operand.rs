use super::choice::choices;
use super::datapath::{Datapath, tmem_datapath_layout};
use super::refused;
use crate::axis::{TCOL, TLANE};
use crate::error::{LayoutError, tuple};
use crate::spec::{R, S};
use crate::tile::TileLayout;

const NAME: &str = "tmem_mma_operand_layout";

choices! {
    /// How many CTAs work on one `tcgen05` instruction.
    pub CtaGroup, "cta_group";
    /// `.cta_group::1`.
    One = "cta1",
    /// `.cta_group::2`: the CTAs of a pair, each with half of the rows.
    Two = "cta2",
}

impl CtaGroup {
    /// 1 or 2.
    pub fn ctas(self) -> i64 {
        match self {
            CtaGroup::One => 1,
            CtaGroup::Two => 2,
        }
    }
}

choices! {
    /// An operand of `tcgen05.mma` that lives in tensor memory.
    pub TmemOperand, "operand in tensor memory";
    /// The left multiplicand.
    A = "a",
    /// The accumulator.
    D = "d",
}

/// What of a `tcgen05.mma` decides where its operands live in tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TmemMma {
    /// M of the instruction, over all CTAs of the group.
    pub m: i64,
    /// The group.
    pub cta_group: CtaGroup,
    /// Whether it is `tcgen05.mma.ws`.
    pub ws: bool,
}

impl TmemMma {
    /// The datapath of a dense MMA (PTX ISA, section "tcgen05 Data Path Layout Organization").
    /// Error: an M that the group does not have, or that has no operand layout here.
    pub fn datapath(self) -> Result<Datapath, LayoutError> {
        match (self.cta_group, self.m, self.ws) {
            (CtaGroup::One, 128, false) => Ok(Datapath::D),
            (CtaGroup::One, 64, false) => Ok(Datapath::F),
            (CtaGroup::One, 64, true) => Ok(Datapath::E),
            (CtaGroup::Two, 256, false) => Ok(Datapath::A),
            (CtaGroup::Two, 128, false) => Ok(Datapath::B),
            (group, m, ws) => {
                let ws = if ws { " with .ws" } else { "" };
                let problem = format!("M = {m} in {group}{ws}");
                Err(refused(NAME, problem, "M = 64 or 128 in cta1, 128 or 256 in cta2; .ws only with M = 64 in cta1"))
            }
        }
    }
}

/// An operand of a dense `tcgen05.mma` on `TLane` and `TCol`, for one CTA of the group.
///
/// An accumulator is (m, N) as its datapath has it. Where the datapath folds the columns (B and E), (2, m, n) and (m,
/// 2, n) name the two halves by an index, and (m, s, 2, n) folds each of `s` runs of columns by itself. A is (m, K);
/// with datapath B it lies in both halves of the lanes, and (2, m, K) gives each half its own. Source: PTX ISA,
/// section "tcgen05 Data Path Layout Organization". Errors: an MMA without such a datapath, another shape.
pub fn tmem_mma_operand_layout(operand: TmemOperand, shape: &[i64], mma: TmemMma) -> Result<TileLayout, LayoutError> {
    let datapath = mma.datapath()?;
    let rows = datapath.rows();
    let folds = datapath.column_parts() == 2;
    let spec = match (operand, shape) {
        (TmemOperand::D, &[m, n]) if m == rows => return tmem_datapath_layout(datapath, m, n, 0),
        (_, &[2, m, n]) if m == rows && folds => S([2, m, n], [64 * TLANE, 1 * TLANE, 1 * TCOL]),
        (TmemOperand::D, &[m, 2, n]) if m == rows && folds => S([m, 2, n], [1 * TLANE, 64 * TLANE, 1 * TCOL]),
        (TmemOperand::D, &[m, s, 2, n]) if m == rows && folds => {
            S([m, s, 2, n], [1 * TLANE, n * TCOL, 64 * TLANE, 1 * TCOL])
        }
        (TmemOperand::A, &[m, k]) if m == rows && datapath == Datapath::B => {
            S([m, k], [1 * TLANE, 1 * TCOL]) + R([2], [64 * TLANE])
        }
        (TmemOperand::A, &[m, k]) if m == rows && datapath != Datapath::E => S([m, k], [1 * TLANE, 1 * TCOL]),
        _ => {
            let problem = format!("operand {operand} of shape {} in datapath {datapath}", tuple(shape));
            return Err(refused(NAME, problem, legal_shapes(operand, datapath)));
        }
    };
    Ok(spec.build()?.canonicalize())
}

fn legal_shapes(operand: TmemOperand, datapath: Datapath) -> String {
    let rows = datapath.rows();
    match (operand, datapath) {
        (TmemOperand::D, Datapath::B | Datapath::E) => {
            format!("({rows},N) with an even N, (2,{rows},n), ({rows},2,n) or ({rows},s,2,n)")
        }
        (TmemOperand::D, _) => format!("({rows},N)"),
        (TmemOperand::A, Datapath::B) => format!("({rows},K), which is stored twice, or (2,{rows},K)"),
        (TmemOperand::A, Datapath::E) => format!("(2,{rows},K), both halves of the lanes by name"),
        (TmemOperand::A, _) => format!("({rows},K)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(operand: TmemOperand, shape: &[i64], m: i64, cta_group: CtaGroup, ws: bool) -> String {
        tmem_mma_operand_layout(operand, shape, TmemMma { m, cta_group, ws }).unwrap().to_string()
    }

    #[test]
    fn an_accumulator_over_two_ctas_with_64_rows_each_folds_its_columns() {
        let flat = text(TmemOperand::D, &[64, 64], 128, CtaGroup::Two, false);
        assert_eq!(flat, "S[(64,2,32):(1@TLane,64@TLane,1@TCol)]");
        let runs = text(TmemOperand::D, &[64, 3, 2, 16], 128, CtaGroup::Two, false);
        assert_eq!(runs, "S[(64,3,2,16):(1@TLane,16@TCol,64@TLane,1@TCol)]");
    }

    #[test]
    fn the_left_operand_of_such_an_mma_is_stored_twice() {
        let a = text(TmemOperand::A, &[64, 32], 128, CtaGroup::Two, false);
        assert_eq!(a, "S[(64,32):(1@TLane,1@TCol)] + R[2:64@TLane]");
        let by_half = text(TmemOperand::A, &[2, 64, 32], 64, CtaGroup::One, true);
        assert_eq!(by_half, "S[(128,32):(1@TLane,1@TCol)]");
    }

    #[test]
    fn an_mma_or_a_shape_that_there_is_not_is_refused() {
        let refusal = |operand, shape: &[i64], m, cta_group, ws| {
            tmem_mma_operand_layout(operand, shape, TmemMma { m, cta_group, ws }).unwrap_err().code()
        };
        let refusals = [
            refusal(TmemOperand::D, &[128, 64], 32, CtaGroup::One, false),
            refusal(TmemOperand::D, &[128, 64], 128, CtaGroup::One, true),
            refusal(TmemOperand::D, &[2, 2, 2], 128, CtaGroup::One, false),
            refusal(TmemOperand::D, &[64, 64], 128, CtaGroup::One, false),
            refusal(TmemOperand::A, &[64, 32], 64, CtaGroup::One, true),
        ];
        assert_eq!(refusals, ["L0113"; 5]);
    }
}
