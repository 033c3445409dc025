//! The bits of values, whole and in parts. They are cut and joined as unsigned integers.

use tilewright_diag::Diagnostic;
use tilewright_ir::thread::Value;
use tilewright_layout::DType;

use super::Values;
use super::text::{Printed, Text};
use crate::defect::unprintable;
use crate::dtype::c_type;
use crate::index::Level;
use crate::registers::PARTS;

impl Values<'_> {
    /// The bits of a value as another dtype of the same size.
    pub(super) fn bits(&mut self, to: DType, of: &Value) -> Printed {
        let from = self.dtype(of)?;
        let held = self.print(of)?;
        Ok(bits_as(to, from, held))
    }

    /// The `at`th part of a value that is as wide as `to`.
    pub(super) fn part(&mut self, to: DType, of: &Value, at: i64) -> Printed {
        let from = self.dtype(of)?;
        if to.bytes() >= from.bytes() {
            return self.bits(to, of);
        }
        let held = self.print(of)?;
        if from == DType::B128 {
            return part_of_words(to, &held.at(Level::Postfix), at);
        }
        // The lowest bits of a signed integer are those of the unsigned one.
        let bits = if at == 0 && from.is_integer() { held } else { unsigned(from, held) };
        Ok(cut(to, bits, 8 * to.bytes() * at))
    }

    /// A value with its `at`th part replaced.
    pub(super) fn with_part(&mut self, of: &Value, at: i64, part: &Value) -> Printed {
        let (whole, narrow) = (self.dtype(of)?, self.dtype(part)?);
        if narrow.bytes() >= whole.bytes() {
            return self.bits(whole, part);
        }
        let held = self.print(of)?;
        let new = self.print(part)?;
        let new = unsigned(narrow, new);
        if whole == DType::B128 {
            return with_words(&held.at(Level::Postfix), at, narrow.bytes(), new);
        }
        let bits = joined(whole.bytes(), unsigned(whole, held), 8 * narrow.bytes() * at, narrow.bytes(), new);
        Ok(read_as(whole, bits))
    }
}

/// A value of dtype `from` as the value of dtype `to` with the same bits.
fn bits_as(to: DType, from: DType, held: Text) -> Text {
    if from == to {
        return held;
    }
    // CUDA has these for signed integers too.
    if from == DType::F32 && to == DType::I32 {
        return Text::call("__float_as_int", &held.text);
    }
    if from == DType::I32 && to == DType::F32 {
        return Text::call("__int_as_float", &held.text);
    }
    if from == DType::F64 && to == DType::I64 {
        return Text::call("__double_as_longlong", &held.text);
    }
    if from == DType::I64 && to == DType::F64 {
        return Text::call("__longlong_as_double", &held.text);
    }
    read_as(to, unsigned(from, held))
}

/// The unsigned type of this size.
fn unsigned_type(bytes: i64) -> &'static str {
    match bytes {
        1 => "unsigned char",
        2 => "unsigned short",
        4 => "unsigned int",
        _ => "unsigned long long",
    }
}

/// A value of dtype `from` as an unsigned integer of its size.
fn unsigned(from: DType, held: Text) -> Text {
    match from {
        DType::F32 => Text::call("__float_as_uint", &held.text),
        DType::F64 => Text::cast("unsigned long long", Text::call("__double_as_longlong", &held.text)),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => Text::cast(unsigned_type(from.bytes()), held),
        DType::F16 | DType::BF16 | DType::E4M3 | DType::E5M2 | DType::U8 | DType::U16 | DType::U32 | DType::U64 => held,
        DType::B8 | DType::B16 | DType::B32 | DType::B64 | DType::B128 => held,
    }
}

/// An unsigned integer as the value of dtype `to` with the same bits.
fn read_as(to: DType, bits: Text) -> Text {
    match to {
        DType::F32 => Text::call("__uint_as_float", &bits.text),
        DType::F64 => Text::call("__longlong_as_double", &bits.text),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => Text::cast(c_type(to), bits),
        DType::F16 | DType::BF16 | DType::E4M3 | DType::E5M2 | DType::U8 | DType::U16 | DType::U32 | DType::U64 => bits,
        DType::B8 | DType::B16 | DType::B32 | DType::B64 | DType::B128 => bits,
    }
}

/// The bits from bit `shift` on, as dtype `to`.
fn cut(to: DType, bits: Text, shift: i64) -> Text {
    let shifted =
        if shift == 0 { bits } else { Text::new(format!("{} >> {shift}", bits.at(Level::Product)), Level::Shift) };
    match to {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => Text::cast(c_type(to), shifted),
        DType::F64
        | DType::F32
        | DType::F16
        | DType::BF16
        | DType::E4M3
        | DType::E5M2
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => read_as(to, Text::cast(unsigned_type(to.bytes()), shifted)),
        DType::B8 | DType::B16 | DType::B32 | DType::B64 | DType::B128 => {
            Text::cast(unsigned_type(to.bytes()), shifted)
        }
    }
}

/// An integer of `bytes` with `width` bytes from bit `shift` on replaced by `new`.
fn joined(bytes: i64, bits: Text, shift: i64, width: i64, new: Text) -> Text {
    let ones = |bytes: i64| if bytes >= 8 { u64::MAX } else { (1u64 << (8 * bytes)) - 1 };
    let kept = ones(bytes) & !(ones(width) << shift);
    let mask = match bytes {
        2 => format!("{kept:#06x}"),
        4 => format!("{kept:#010x}u"),
        _ => format!("{kept:#018x}ull"),
    };
    let placed = Text::cast(unsigned_type(bytes.max(4)), new).text;
    let placed = if shift == 0 { placed } else { format!("{placed} << {shift}") };
    let whole = Text::new(format!("({} & {mask}) | {placed}", bits.at(Level::Product)), Level::Or);
    if bytes < 4 { Text::cast(unsigned_type(bytes), whole) } else { whole }
}

/// The `at`th word of a `uint4`.
fn word(vector: &str, at: i64) -> Printed {
    let part = usize::try_from(at).ok().and_then(|at| PARTS.get(at));
    let part = part.ok_or_else(|| unprintable(format!("16 bytes have no word {at}")))?;
    Ok(Text::new(format!("{vector}.{part}"), Level::Postfix))
}

/// A part of a `uint4`.
fn part_of_words(to: DType, vector: &str, at: i64) -> Printed {
    let bytes = to.bytes();
    Ok(match bytes {
        8 => {
            let (low, high) = (word(vector, 2 * at)?, word(vector, 2 * at + 1)?);
            let text = format!("(unsigned long long){} << 32 | {}", high.text, low.text);
            read_as(to, Text::new(text, Level::Or))
        }
        4 => read_as(to, word(vector, at)?),
        _ => cut(to, word(vector, at * bytes / 4)?, 8 * (at * bytes % 4)),
    })
}

/// A `uint4` with its `at`th part, which has `bytes`, replaced by `new`.
fn with_words(vector: &str, at: i64, bytes: i64, new: Text) -> Printed {
    let first = at * bytes / 4;
    let replaced = match bytes {
        8 => vec![cut(DType::U32, new.clone(), 0), cut(DType::U32, new, 32)],
        4 => vec![new],
        _ => vec![joined(4, word(vector, first)?, 8 * (at * bytes % 4), bytes, new)],
    };
    // Whether the last of the words that are replaced is there.
    word(vector, first + replaced.len() as i64 - 1)?;
    let words = (0..4).map(|at| {
        let new = usize::try_from(at - first).ok().and_then(|at| replaced.get(at));
        Ok(match new {
            Some(new) => new.text.clone(),
            None => word(vector, at)?.text,
        })
    });
    let words: Result<Vec<String>, Diagnostic> = words.collect();
    Ok(Text::call("make_uint4", &words?.join(", ")))
}
