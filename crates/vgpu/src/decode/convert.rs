//! `cvt` (PTX ISA, section 9.7.9.21).

use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::float::is_f32;
use crate::decode::memory::number_type;
use crate::decode::mods::Mods;
use crate::decode::operand::expect_count;
use crate::float::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, Format, Packed};
use crate::isa::{DType, Kind, Round};
use crate::op::{Convert, ConvertAtRandom, ConvertPair, Op, PairSource, ScalarOp};
use crate::ptx::ast::Operand;

impl Decoder<'_> {
    pub(crate) fn convert(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        if mods.take("rs") {
            return self.convert_at_random(mods, operands);
        }
        let integral = mods.find(Round::parse_integral);
        let round = mods.find(Round::parse);
        let (ftz, sat, relu) = (mods.take("ftz"), mods.take("sat"), mods.take("relu"));
        if mods.take("tf32") {
            return self.convert_tf32(mods, operands, round, relu);
        }
        if let Some(to) = mods.find(packed) {
            let source = self.pair_source(mods, operands, to)?;
            let finite = mods.take("satfinite");
            if to.is_small_float() && !finite {
                return Err("a conversion to a float of 4, 6 or 8 bits needs `.satfinite`".to_string());
            }
            if to == Packed::Power && (relu || !matches!(round, Some(Round::Zero | Round::Up))) {
                return Err("a conversion to `.ue8m0x2` has `.rz` or `.rp`, and no `.relu`".to_string());
            }
            let d = self.dest(&operands[0])?;
            let round = round.unwrap_or(Round::Nearest);
            let pair = ConvertPair { d, source, to, round, sat, relu, finite };
            return Ok(Op::Scalar(ScalarOp::ConvertPair(Box::new(pair))));
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

    /// The source of a conversion to a pair: operands `d, a, b` with f32 sources, or `d, a` with another
    /// pair.
    fn pair_source(&mut self, mods: &mut Mods<'_>, operands: &[Operand], to: Packed) -> Decoded<PairSource> {
        if let Some(from) = mods.find(packed) {
            if !is_packed_conversion(from, to) {
                return Err("a packed conversion between these types is not supported".to_string());
            }
            expect_count(operands, 2)?;
            let bits = DType::new(Kind::Bits, 2 * from.stride());
            return Ok(PairSource::Packed(self.source(&operands[1], bits)?, from));
        }
        let from = mods.dtype()?;
        if !is_f32(from) {
            return Err("a packed conversion between these types is not supported".to_string());
        }
        expect_count(operands, 3)?;
        Ok(PairSource::Singles(self.source(&operands[1], from)?, self.source(&operands[2], from)?))
    }

    /// `cvt.rs`, of two f32 to halves or of four to smaller floats.
    fn convert_at_random(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let (relu, finite) = (mods.take("relu"), mods.take("satfinite"));
        let from_four = mods.find(four);
        let to = match (from_four, mods.find(packed)) {
            (Some(format), None) if finite => format,
            (Some(_), None) => return Err("a conversion to a float of 4, 6 or 8 bits needs `.satfinite`".to_string()),
            (None, Some(Packed::Float(format))) if format.bits() == 16 => format,
            _ => return Err("a conversion with `.rs` to this type is not supported".to_string()),
        };
        if !is_f32(mods.dtype()?) {
            return Err("a conversion with `.rs` is from f32".to_string());
        }
        let (sources, random) = match operands {
            [_, Operand::Vector(items), random] if from_four.is_some() && items.len() == 4 => {
                (items.as_slice(), random)
            }
            [_, _, _, random] if from_four.is_none() => (&operands[1..3], random),
            _ => return Err("`.rs` has two sources, or a vector of four, and the random bits".to_string()),
        };
        // The first one becomes the highest element.
        let sources = sources.iter().rev().map(|source| self.source(source, DType::B32)).collect::<Decoded<_>>()?;
        let random = self.source(random, DType::B32)?;
        let d = self.dest(&operands[0])?;
        let convert = ConvertAtRandom { d, sources, to, random, relu, finite };
        Ok(Op::Scalar(ScalarOp::ConvertAtRandom(Box::new(convert))))
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

/// The element type of a pair.
fn packed(word: &str) -> Option<Packed> {
    Some(match word {
        "f16x2" => Packed::Float(F16),
        "bf16x2" => Packed::Float(BF16),
        "e4m3x2" => Packed::Float(E4M3),
        "e5m2x2" => Packed::Float(E5M2),
        "e2m3x2" => Packed::Float(E2M3),
        "e3m2x2" => Packed::Float(E3M2),
        "e2m1x2" => Packed::Float(E2M1),
        "ue8m0x2" => Packed::Power,
        _ => return None,
    })
}

/// The element type of four elements.
fn four(word: &str) -> Option<Format> {
    Some(match word {
        "e4m3x4" => E4M3,
        "e5m2x4" => E5M2,
        "e2m3x4" => E2M3,
        "e3m2x4" => E3M2,
        "e2m1x4" => E2M1,
        _ => return None,
    })
}

/// Whether there is a conversion from pairs to pairs of these types.
fn is_packed_conversion(from: Packed, to: Packed) -> bool {
    const HALF: Packed = Packed::Float(F16);
    const BFLOAT: Packed = Packed::Float(BF16);
    match (from, to) {
        (BFLOAT, Packed::Power) | (Packed::Power, BFLOAT) => true,
        (HALF | BFLOAT, _) => to.is_small_float(),
        (_, HALF) => from.is_small_float(),
        _ => false,
    }
}

/// The largest finite value of a 16-bit floating-point type.
fn largest(dtype: DType) -> f64 {
    if dtype.kind == Kind::Bfloat { BF16.largest() } else { F16.largest() }
}
