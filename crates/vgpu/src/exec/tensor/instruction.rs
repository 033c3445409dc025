//! Instruction descriptors (PTX ISA, section "Instruction descriptor" of `tcgen05.mma`): types, shape and directions.

use crate::exec::product::{Element, Major, Multiplier, Scale, Shape, Sum};
use crate::float::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16};
use crate::op::ProductKind;

/// Who multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// One CTA.
    One,
    /// One CTA, with `.ws`.
    Stationary,
    /// A pair of CTAs.
    Pair,
}

impl Shape {
    /// Reads a descriptor. Errors: what the kind does not have.
    pub(crate) fn read(word: u32, kind: ProductKind, group: Group) -> Result<Shape, String> {
        let field = |first: u32, bits: u32| word >> first & ((1 << bits) - 1);
        if field(0, 3) != 0 {
            return Err("it has the bits of a sparse product".to_string());
        }
        let (is_scaled, is_four_bit) = match kind {
            ProductKind::Scaled { is_four_bit, .. } => (true, is_four_bit),
            ProductKind::F16 | ProductKind::Tf32 | ProductKind::F8f6f4 | ProductKind::I8 => (false, false),
        };
        let reserved: &[(u32, u32)] = if is_scaled { &[(3, 1), (6, 1), (24, 3)] } else { &[(6, 1), (23, 1), (29, 1)] };
        if let Some((first, _)) = reserved.iter().find(|(first, bits)| field(*first, *bits) != 0) {
            return Err(format!("it has reserved bits from bit {first} on"));
        }
        let multiplier = |first: u32, negate: u32, major: u32, id: u32| {
            let code = field(first, 3);
            let element =
                element(kind, code).ok_or_else(|| format!("there is no element type with the code {code}"))?;
            let major = if field(major, 1) == 1 { Major::Mn } else { Major::K };
            let is_negated = field(negate, 1) == 1;
            check_multiplier(kind, element, major, is_negated)?;
            Ok::<Multiplier, String>(Multiplier {
                element,
                is_negated,
                major,
                scale_byte: if is_scaled { field(id, 2) } else { 0 },
            })
        };
        let (a, b) = (multiplier(7, 13, 15, 29)?, multiplier(10, 14, 16, 4)?);
        let k = match kind {
            ProductKind::F16 => 16,
            ProductKind::Tf32 => 8,
            _ if is_four_bit => 64,
            _ => 32,
        };
        if is_scaled && field(31, 1) == 1 {
            return Err("K = 96 is not supported on this target".to_string());
        }
        let (m, n) = (field(24, 5) as usize * 16, field(17, 6) as usize * 8);
        check_shape(kind, group, m, n)?;
        let per_cta = n / if group == Group::Pair { 2 } else { 1 };
        if b.major == Major::Mn && b.element.in_unit() == 16 && !per_cta.is_multiple_of(16) {
            return Err(format!("N = {n}, and a B of 8 bits that is N-major has N in steps of 16 for each CTA"));
        }
        let sum = if is_scaled { Sum::F32 } else { sum(kind, field(4, 2), field(3, 1) == 1)? };
        let scale = if field(23, 1) == 1 { Scale::Ue8m0 } else { Scale::Ue4m3 };
        check_scale(kind, scale, a.scale_byte, b.scale_byte)?;
        Ok(Shape { m, n, k, a, b, sum, scale })
    }
}

fn element(kind: ProductKind, code: u32) -> Option<Element> {
    let narrow = |code: u32| match code {
        0 => Some(Element::Float(E4M3)),
        1 => Some(Element::Float(E5M2)),
        3 => Some(Element::Padded(E2M3)),
        4 => Some(Element::Padded(E3M2)),
        5 => Some(Element::Padded(E2M1)),
        _ => None,
    };
    match (kind, code) {
        (ProductKind::F16, 0) => Some(Element::Float(F16)),
        (ProductKind::F16, 1) => Some(Element::Float(BF16)),
        (ProductKind::Tf32, 2) => Some(Element::Tf32),
        (ProductKind::I8, 0 | 1) => Some(Element::Integer { signed: code == 1 }),
        (ProductKind::Scaled { is_four_bit: true, .. }, 1) => Some(Element::Float(E2M1)),
        (ProductKind::F8f6f4 | ProductKind::Scaled { is_four_bit: false, .. }, code) => narrow(code),
        _ => None,
    }
}

fn check_multiplier(kind: ProductKind, element: Element, major: Major, is_negated: bool) -> Result<(), String> {
    let is_narrow =
        matches!(element, Element::Padded(_)) || matches!(kind, ProductKind::Scaled { is_four_bit: true, .. });
    if major == Major::Mn && is_narrow {
        return Err("multiplicands of 4 or 6 bits are K-major".to_string());
    }
    if is_negated && kind == ProductKind::I8 {
        return Err("integers are not negated".to_string());
    }
    Ok(())
}

/// The shapes (PTX ISA, section 9.7.16.2.1).
fn check_shape(kind: ProductKind, group: Group, m: usize, n: usize) -> Result<(), String> {
    let is_step = |step: usize| n.is_multiple_of(step) && (step..=256).contains(&n);
    let is_legal = match (group, kind, m) {
        (Group::Stationary, _, 32 | 64 | 128) => matches!(n, 64 | 128 | 256),
        (Group::One, ProductKind::I8, 64 | 128) => is_step(16) || n == 8 || n == 24,
        (Group::One, ProductKind::F16 | ProductKind::Tf32 | ProductKind::F8f6f4, 64) => is_step(8),
        (Group::One, _, 128) => is_step(8),
        (Group::Pair, ProductKind::I8, 128 | 256) => is_step(32),
        (Group::Pair, _, 128 | 256) => is_step(16),
        _ => false,
    };
    if is_legal {
        return Ok(());
    }
    let legal = match (group, kind) {
        (Group::Stationary, _) => "one CTA has M = 32, 64 or 128 and N = 64, 128 or 256",
        (Group::One, ProductKind::Scaled { .. }) => "one CTA has M = 128 and N = 8, 16, .. 256",
        (Group::One, ProductKind::I8) => "one CTA has M = 64 or 128 and N = 8, 16, 24, 32, 48, .. 256",
        (Group::One, _) => "one CTA has M = 64 or 128 and N = 8, 16, .. 256",
        (Group::Pair, ProductKind::I8) => "a pair of CTAs has M = 128 or 256 and N = 32, 64, .. 256",
        (Group::Pair, _) => "a pair of CTAs has M = 128 or 256 and N = 16, 32, .. 256",
    };
    Err(format!("M = {m} and N = {n}; {legal}"))
}

fn sum(kind: ProductKind, code: u32, saturates: bool) -> Result<Sum, String> {
    let sum = match (kind, code) {
        (ProductKind::F16 | ProductKind::F8f6f4, 0) => Some(Sum::F16),
        (ProductKind::F16 | ProductKind::F8f6f4 | ProductKind::Tf32, 1) => Some(Sum::F32),
        (ProductKind::I8, 2) => Some(Sum::S32 { saturates }),
        _ => None,
    };
    match sum {
        Some(sum) if !saturates || kind == ProductKind::I8 => Ok(sum),
        Some(_) => Err("only sums of integers saturate".to_string()),
        None => Err(format!("the kind has no accumulators with the code {code}")),
    }
}

fn check_scale(kind: ProductKind, scale: Scale, a: u32, b: u32) -> Result<(), String> {
    let ProductKind::Scaled { is_four_bit, block } = kind else { return Ok(()) };
    let step = match (is_four_bit, block) {
        (false, _) => 1,
        (true, 32) => 2,
        _ => 4,
    };
    if scale == Scale::Ue4m3 && (!is_four_bit || block == 32) {
        return Err("scale factors of blocks of 32 are `.ue8m0`".to_string());
    }
    if !a.is_multiple_of(step) || !b.is_multiple_of(step) {
        return Err(format!("scale factors begin at a multiple of {step} bytes in a word, not at {a} and {b}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(m: u32, n: u32, sum: u32, a: u32, b: u32) -> u32 {
        (sum << 4) | (a << 7) | (b << 10) | ((n / 8) << 17) | ((m / 16) << 24)
    }

    #[test]
    fn fields_are_where_the_isa_has_them() {
        let shape = Shape::read(word(128, 256, 1, 1, 0) | 1 << 16 | 1 << 13, ProductKind::F16, Group::One).unwrap();
        assert_eq!((shape.m, shape.n, shape.k, shape.sum), (128, 256, 16, Sum::F32));
        assert_eq!((shape.a.element, shape.a.major, shape.a.is_negated), (Element::Float(BF16), Major::K, true));
        assert_eq!((shape.b.element, shape.b.major, shape.b.is_negated), (Element::Float(F16), Major::Mn, false));
    }

    #[test]
    fn scale_factors_have_a_byte_and_a_format() {
        let kind = ProductKind::Scaled { is_four_bit: false, block: 32 };
        let shape = Shape::read(word(128, 64, 0, 0, 5) | 1 << 23 | 3 << 29 | 2 << 4, kind, Group::One).unwrap();
        assert_eq!((shape.a.scale_byte, shape.b.scale_byte, shape.scale), (3, 2, Scale::Ue8m0));
        let kind = ProductKind::Scaled { is_four_bit: true, block: 32 };
        let odd = Shape::read(word(128, 64, 0, 1, 1) | 1 << 23 | 1 << 29, kind, Group::One).unwrap_err();
        assert_eq!(odd, "scale factors begin at a multiple of 2 bytes in a word, not at 1 and 0");
    }

    #[test]
    fn what_the_kind_does_not_have_is_refused() {
        let refusal = |word: u32, kind: ProductKind| Shape::read(word, kind, Group::One).unwrap_err();
        let wide = refusal(word(48, 16, 1, 0, 0), ProductKind::F16);
        assert_eq!(wide, "M = 48 and N = 16; one CTA has M = 64 or 128 and N = 8, 16, .. 256");
        assert!(refusal(word(128, 40, 2, 0, 0), ProductKind::I8).starts_with("M = 128 and N = 40"));
        assert_eq!(refusal(word(128, 32, 0, 2, 2), ProductKind::Tf32), "the kind has no accumulators with the code 0");
        assert_eq!(refusal(word(128, 32, 1, 3, 0), ProductKind::F16), "there is no element type with the code 3");
        assert_eq!(
            refusal(word(128, 32, 1, 5, 0) | 1 << 15, ProductKind::F8f6f4),
            "multiplicands of 4 or 6 bits are K-major"
        );
        assert_eq!(refusal(4, ProductKind::F16), "it has the bits of a sparse product");
        assert!(Shape::read(word(32, 64, 1, 0, 0), ProductKind::F16, Group::Stationary).is_ok());
    }
}
