//! `cvt` (PTX ISA, section 9.7.9.21).

use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::float::is_f32;
use crate::decode::memory::number_type;
use crate::decode::mods::Mods;
use crate::decode::operand::expect_count;
use crate::float::{BF16, E4M3, E5M2, F16, Format};
use crate::isa::{DType, Kind, Round};
use crate::op::{Convert, ConvertPair, Op, PairSource, ScalarOp};
use crate::ptx::ast::Operand;

impl Decoder<'_> {
    pub(crate) fn convert(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let integral = mods.find(Round::parse_integral);
        let round = mods.find(Round::parse);
        let (ftz, sat, relu) = (mods.take("ftz"), mods.take("sat"), mods.take("relu"));
        if mods.take("tf32") {
            return self.convert_tf32(mods, operands, round, relu);
        }
        if let Some(format) = mods.find(packed_format) {
            let source = self.pair_source(mods, operands, format)?;
            let finite = mods.take("satfinite");
            if is_eight_bits(format) && !finite {
                return Err("a conversion to an 8-bit float needs `.satfinite`".to_string());
            }
            let d = self.dest(&operands[0])?;
            let round = round.unwrap_or(Round::Nearest);
            return Ok(Op::Scalar(ScalarOp::ConvertPair(Box::new(ConvertPair {
                d,
                source,
                format,
                round,
                sat,
                relu,
                finite,
            }))));
        }
        let to = mods.dtype()?;
        let from = mods.dtype()?;
        let limit = if to.is_half() && mods.take("satfinite") { Some(largest(to)) } else { None };
        expect_count(operands, 2)?;
        let scalar = |dtype: DType| dtype.count == 1 && dtype.bits <= 64 && dtype.kind != Kind::Pred;
        if !scalar(from) || !scalar(to) {
            return Err("a conversion between these types is not supported".to_string());
        }
        let (d, declared) = self.dest_with_type(&operands[0])?;
        let a = self.source(&operands[1], from)?;
        let default = if from.is_float() && !to.is_float() { Round::Zero } else { Round::Nearest };
        let convert = Convert {
            d,
            a,
            from: number_type(from)?,
            to: number_type(to)?,
            width: declared.width().min(64),
            round: integral.or(round).unwrap_or(default),
            integral: integral.is_some(),
            ftz,
            sat,
            relu,
            limit,
        };
        Ok(Op::Scalar(ScalarOp::Convert(Box::new(convert))))
    }

    /// The source of a conversion to a pair of `format`: operands `d, a, b` with f32 sources, or `d, a` with another
    /// pair.
    fn pair_source(&mut self, mods: &mut Mods<'_>, operands: &[Operand], format: Format) -> Decoded<PairSource> {
        if let Some(from) = mods.find(packed_format) {
            let widens = format == F16 && is_eight_bits(from);
            let narrows_to_eight = is_eight_bits(format) && !is_eight_bits(from);
            if !widens && !narrows_to_eight {
                return Err("a packed conversion between these types is not supported".to_string());
            }
            expect_count(operands, 2)?;
            let bits = DType::new(Kind::Bits, 2 * from.bits());
            return Ok(PairSource::Packed(self.source(&operands[1], bits)?, from));
        }
        let from = mods.dtype()?;
        if !is_f32(from) {
            return Err("a packed conversion between these types is not supported".to_string());
        }
        expect_count(operands, 3)?;
        Ok(PairSource::Singles(self.source(&operands[1], from)?, self.source(&operands[2], from)?))
    }

    fn convert_tf32(
        &mut self,
        mods: &mut Mods<'_>,
        operands: &[Operand],
        round: Option<Round>,
        relu: bool,
    ) -> Decoded<Op> {
        expect_count(operands, 2)?;
        let finite = mods.take("satfinite");
        let from = mods.dtype()?;
        if !is_f32(from) {
            return Err("a conversion to tf32 is supported from f32 only".to_string());
        }
        let d = self.dest(&operands[0])?;
        let a = self.source(&operands[1], from)?;
        Ok(Op::Scalar(ScalarOp::ToTf32 { d, a, round: round.unwrap_or(Round::Away), relu, finite }))
    }
}

/// The element format of a packed floating-point type.
fn packed_format(word: &str) -> Option<Format> {
    match word {
        "f16x2" => Some(F16),
        "bf16x2" => Some(BF16),
        "e4m3x2" => Some(E4M3),
        "e5m2x2" => Some(E5M2),
        _ => None,
    }
}

fn is_eight_bits(format: Format) -> bool {
    format.bits() == 8
}

/// The largest finite value of a 16-bit floating-point type.
fn largest(dtype: DType) -> f64 {
    if dtype.kind == Kind::Bfloat { BF16.largest() } else { F16.largest() }
}
