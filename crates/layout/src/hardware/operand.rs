use super::choice::choices;
use super::datapath::{Datapath, tmem_datapath_layout};
use super::{refused, within_columns};
use crate::axis::{TCOL, TLANE};
use crate::error::{LayoutError, tuple};
use crate::spec::{R, S};
use crate::tile::TileLayout;

const NAME: &str = "tmem_mma_operand_layout";

choices! {
    /// How many CTAs execute one `tcgen05` instruction together.
    pub CtaGroup, "cta_group";
    /// `.cta_group::1`.
    One = "cta1",
    /// `.cta_group::2`: the CTAs of a pair, each with half of the rows.
    Two = "cta2",
}

impl CtaGroup {
    /// Number of CTAs of the group: 1 or 2.
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

/// The properties of a `tcgen05.mma` that decide where its operands live in tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TmemMma {
    /// M of the instruction, over all CTAs of the group.
    pub m: i64,
    /// The CTA group that executes it.
    pub cta_group: CtaGroup,
    /// Whether it is `tcgen05.mma.ws`.
    pub ws: bool,
}

impl TmemMma {
    /// The datapath of a dense MMA (PTX ISA, section "tcgen05 Data Path Layout Organization").
    /// Error: an M that the group does not support.
    pub fn datapath(self) -> Result<Datapath, LayoutError> {
        match (self.cta_group, self.m, self.ws) {
            (CtaGroup::One, 128, _) => Ok(Datapath::D),
            (CtaGroup::One, 64, false) => Ok(Datapath::F),
            (CtaGroup::One, 64, true) => Ok(Datapath::E),
            (CtaGroup::One, 32, true) => Ok(Datapath::G),
            (CtaGroup::Two, 256, false) => Ok(Datapath::A),
            (CtaGroup::Two, 128, false) => Ok(Datapath::B),
            _ => {
                let legal = "M = 64 or 128 in cta1, 128 or 256 in cta2; with .ws M = 32, 64 or 128 in cta1";
                Err(refused(NAME, self.text(), legal))
            }
        }
    }

    /// Its name in errors.
    fn text(self) -> String {
        format!("M = {} in {}{}", self.m, self.cta_group, if self.ws { " with .ws" } else { "" })
    }
}

/// An operand of a dense `tcgen05.mma` on `TLane` and `TCol`, for one CTA of the group.
///
/// An accumulator is (m, N), placed by its datapath. If the datapath splits the columns into `p` parts (2 in B and E, 4
/// in G), (p, m, n) and (m, p, n) index the parts explicitly, and (m, s, p, n) splits each of `s` runs of columns
/// separately. A is (m, K); with datapath B it is stored in both halves of the lanes, and (2, m, K) gives each half its
/// own elements. With `.ws`, A is known only for M = 64, as (2, m, K). Source: PTX ISA, section "tcgen05 Data Path
/// Layout Organization".
///
/// Unverified: A with M = 64 in one CTA without `.ws`. Here its rows are on lanes 0 to 63 in order, as in TVM 0.27;
/// CUTLASS (`tmem_frg_1sm`, non-interleaved) puts them on the lanes of datapath F, 16 of each warp's 32, and the ISA
/// requires A and D to have the same lane alignment there. Which of the two the hardware reads has not been measured.
///
/// Errors: an MMA without a datapath, any other shape, more columns than tensor memory has.
pub fn tmem_mma_operand_layout(operand: TmemOperand, shape: &[i64], mma: TmemMma) -> Result<TileLayout, LayoutError> {
    let datapath = mma.datapath()?;
    if operand == TmemOperand::A && mma.ws && datapath != Datapath::E {
        let legal = "A with .ws and M = 64, as (2,64,K); for other M, no reference specifies the lanes of A";
        return Err(refused(NAME, format!("operand {operand} of {}", mma.text()), legal));
    }
    let (rows, parts) = (datapath.rows(), datapath.column_parts());
    let part = |p: i64, m: i64| parts > 1 && p == parts && m == rows;
    let spec = match (operand, shape) {
        (TmemOperand::D, &[m, n]) if m == rows => return tmem_datapath_layout(datapath, m, n, 0),
        (_, &[p, m, n]) if part(p, m) => S([p, m, n], [rows * TLANE, 1 * TLANE, 1 * TCOL]),
        (TmemOperand::D, &[m, p, n]) if part(p, m) => S([m, p, n], [1 * TLANE, rows * TLANE, 1 * TCOL]),
        (TmemOperand::D, &[m, s, p, n]) if part(p, m) => S([m, s, p, n], [1 * TLANE, n * TCOL, rows * TLANE, 1 * TCOL]),
        (TmemOperand::A, &[m, k]) if m == rows && datapath == Datapath::B => {
            S([m, k], [1 * TLANE, 1 * TCOL]) + R([2], [64 * TLANE])
        }
        (TmemOperand::A, &[m, k]) if m == rows && datapath != Datapath::E => S([m, k], [1 * TLANE, 1 * TCOL]),
        _ => {
            let problem = format!("operand {operand} of shape {} in datapath {datapath}", tuple(shape));
            return Err(refused(NAME, problem, legal_shapes(operand, datapath)));
        }
    };
    within_columns(NAME, spec.build()?.canonicalize(), narrowest(operand))
}

/// Bits of the narrowest elements of an operand: those of D have a column each, those of A may be packed (PTX ISA,
/// section "Packing formats of elements in Tensor and Shared memory").
fn narrowest(operand: TmemOperand) -> i64 {
    match operand {
        TmemOperand::A => 4,
        TmemOperand::D => 32,
    }
}

fn legal_shapes(operand: TmemOperand, datapath: Datapath) -> String {
    let (rows, parts) = (datapath.rows(), datapath.column_parts());
    match (operand, datapath) {
        (TmemOperand::D, Datapath::B | Datapath::E | Datapath::G) => {
            format!("({rows},N) in {parts} parts, ({parts},{rows},n), ({rows},{parts},n) or ({rows},s,{parts},n)")
        }
        (TmemOperand::D, _) => format!("({rows},N)"),
        (TmemOperand::A, Datapath::B) => format!("({rows},K), which is stored twice, or (2,{rows},K)"),
        (TmemOperand::A, Datapath::E) => format!("(2,{rows},K), with an index for the two halves of the lanes"),
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
    fn weight_stationary_mmas_have_32_64_or_128_rows() {
        let accumulator = |shape: &[i64], m| text(TmemOperand::D, shape, m, CtaGroup::One, true);
        assert_eq!(accumulator(&[32, 64], 32), "S[(32,4,16):(1@TLane,32@TLane,1@TCol)]");
        assert_eq!(accumulator(&[4, 32, 16], 32), "S[(128,16):(1@TLane,1@TCol)]");
        assert_eq!(accumulator(&[64, 64], 64), "S[(64,2,32):(1@TLane,64@TLane,1@TCol)]");
        assert_eq!(accumulator(&[128, 64], 128), "S[(128,64):(1@TLane,1@TCol)]");
    }

    #[test]
    fn a_weight_stationary_left_operand_is_refused_with_its_own_reason() {
        for m in [32, 128] {
            let mma = TmemMma { m, cta_group: CtaGroup::One, ws: true };
            let said = tmem_mma_operand_layout(TmemOperand::A, &[m, 32], mma).unwrap_err().to_string();
            assert_eq!(said, format!("no such tmem_mma_operand_layout: operand a of M = {m} in cta1 with .ws"));
        }
    }

    #[test]
    fn an_mma_or_a_shape_that_there_is_not_is_refused() {
        let refusal = |operand, shape: &[i64], m, cta_group, ws| {
            tmem_mma_operand_layout(operand, shape, TmemMma { m, cta_group, ws }).unwrap_err().code()
        };
        let refusals = [
            refusal(TmemOperand::D, &[128, 64], 32, CtaGroup::One, false),
            refusal(TmemOperand::D, &[128, 64], 128, CtaGroup::Two, true),
            refusal(TmemOperand::D, &[2, 2, 2], 128, CtaGroup::One, false),
            refusal(TmemOperand::D, &[64, 64], 128, CtaGroup::One, false),
            refusal(TmemOperand::D, &[2, 32, 64], 32, CtaGroup::One, true),
            refusal(TmemOperand::D, &[64, 2, 513], 128, CtaGroup::Two, false),
            refusal(TmemOperand::A, &[64, 32], 64, CtaGroup::One, true),
        ];
        assert_eq!(refusals, ["L0113"; 7]);
    }
}
