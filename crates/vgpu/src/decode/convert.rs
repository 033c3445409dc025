//! `cvt` (PTX ISA, section 9.7.9.21).

use crate::decode::float::is_f32;
use crate::decode::mods::Mods;
use crate::decode::operand::expect_count;
use crate::decode::{Decoded, Decoder};
use crate::float::{BF16, F16};
use crate::isa::{DType, Kind, Round};
use crate::op::{Convert, ConvertPair, Op};
use crate::ptx::ast::Operand;

impl Decoder<'_> {
    pub(crate) fn convert(&mut self, mods: &mut Mods, operands: &[Operand]) -> Decoded<Op> {
        let integral = mods.find(Round::parse_integral);
        let round = mods.find(Round::parse);
        let (ftz, sat, relu) = (mods.take("ftz"), mods.take("sat"), mods.take("relu"));
        // `.satfinite` changes no tf32 result that a finite f32 can give.
        if mods.take("tf32") {
            return self.convert_tf32(mods, operands, round, relu);
        }
        let to = mods.dtype()?;
        let from = mods.dtype()?;
        let limit = if to.is_half() && to.count == 1 && mods.take("satfinite") { Some(largest(to)) } else { None };
        if to.count == 2 {
            return self.convert_pair(operands, to, from, round.unwrap_or(Round::Nearest), sat, relu);
        }
        expect_count(operands, 2)?;
        if from.count != 1 || to.width() > 64 || from.width() > 64 || to.kind == Kind::Pred || from.kind == Kind::Pred {
            return Err("a conversion of these types".to_string());
        }
        let (d, declared) = self.dest_with_type(&operands[0])?;
        let a = self.source(&operands[1], from)?;
        let default = if from.is_float() && !to.is_float() { Round::Zero } else { Round::Nearest };
        let convert = Convert {
            d,
            a,
            from,
            to,
            width: declared.width().min(64),
            round: integral.or(round).unwrap_or(default),
            integral: integral.is_some(),
            ftz,
            sat,
            relu,
            limit,
        };
        Ok(Op::Convert(Box::new(convert)))
    }

    fn convert_pair(
        &mut self,
        operands: &[Operand],
        to: DType,
        from: DType,
        round: Round,
        sat: bool,
        relu: bool,
    ) -> Decoded<Op> {
        if !is_f32(from) || !to.is_half() {
            return Err("a packed conversion of these types".to_string());
        }
        expect_count(operands, 3)?;
        let d = self.dest(&operands[0])?;
        let a = self.source(&operands[1], from)?;
        let b = self.source(&operands[2], from)?;
        let format = if to.kind == Kind::Bfloat { BF16 } else { F16 };
        Ok(Op::ConvertPair(Box::new(ConvertPair { d, a, b, format, round, sat, relu })))
    }

    fn convert_tf32(&mut self, mods: &mut Mods, operands: &[Operand], round: Option<Round>, relu: bool) -> Decoded<Op> {
        expect_count(operands, 2)?;
        mods.take("satfinite");
        let from = mods.dtype()?;
        if !is_f32(from) {
            return Err("tf32 from another type than f32".to_string());
        }
        let d = self.dest(&operands[0])?;
        let a = self.source(&operands[1], from)?;
        Ok(Op::ToTf32 { d, a, round: round.unwrap_or(Round::Away), relu })
    }
}

/// The largest finite value of a 16-bit floating type.
fn largest(dtype: DType) -> f64 {
    if dtype.kind == Kind::Bfloat { f64::from(f32::from_bits(0x7f7f_0000)) } else { 65504.0 }
}
