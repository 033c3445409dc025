//! Integer instructions, bit by bit.

use crate::harness::{Random, halves, joined, map};

/// Random words and words with few or many bits.
fn words(seed: u64, count: usize) -> Vec<u32> {
    let mut random = Random(seed);
    let mut word = |at: usize| match at % 4 {
        0 => random.next(),
        1 => random.next() >> (random.next() % 32),
        2 => !0 << (random.next() % 32),
        _ => random.next() % 40,
    };
    (0..count).map(&mut word).collect()
}

/// A position or length; the ISA bounds it by 255, and an H200 does so only in forms of 32 bits.
fn number(operand: u32, bits: u32) -> u64 {
    u64::from(if bits == 32 { operand & 0xff } else { operand })
}

/// `bfe` by the loop of the ISA.
fn extract(a: u64, position: u32, length: u32, bits: u32, signed: bool) -> u64 {
    let (position, length, bits) = (number(position, bits), number(length, bits), u64::from(bits));
    let bit = |at: u64| a >> at & 1;
    let sign = if signed && length > 0 { bit((position + length - 1).min(bits - 1)) } else { 0 };
    let chosen = |at: u64| if at < length && position + at < bits { bit(position + at) } else { sign };
    (0..bits).map(|at| chosen(at) << at).sum()
}

/// `bfi` by the loop of the ISA.
fn insert(a: u64, b: u64, position: u32, length: u32, bits: u32) -> u64 {
    let (position, length, bits) = (number(position, bits), number(length, bits), u64::from(bits));
    let inside = |at: u64| at >= position && at - position < length;
    (0..bits).map(|at| if inside(at) { (a >> (at - position) & 1) << at } else { (b >> at & 1) << at }).sum()
}

#[test]
fn fields_are_extracted_and_inserted() {
    let (a, b, c, d) = (words(20, 512), words(21, 512), words(22, 512), words(23, 512));
    let found: [Vec<u32>; 9] = map(
        "bfe.u32 %o0, %i0, %i2, %i3;\nbfe.s32 %o1, %i0, %i2, %i3;\nbfi.b32 %o2, %i0, %i1, %i2, %i3;\n\
         mov.b64 %d1, {%i0, %i1};\nmov.b64 %d2, {%i1, %i2};\nbfe.u64 %d3, %d1, %i2, %i3;\nmov.b64 {%o3, %o4}, %d3;\n\
         bfe.s64 %d3, %d1, %i2, %i3;\nmov.b64 {%o5, %o6}, %d3;\nbfi.b64 %d3, %d1, %d2, %i2, %i3;\n\
         mov.b64 {%o7, %o8}, %d3;",
        &[&a, &b, &c, &d],
    );
    for at in 0..a.len() {
        let (low, next, position, length) = (u64::from(a[at]), u64::from(b[at]), c[at], d[at]);
        let (first, second) = (next << 32 | low, u64::from(position) << 32 | next);
        let wide = |form: usize| u64::from(found[form + 1][at]) << 32 | u64::from(found[form][at]);
        assert_eq!(u64::from(found[0][at]), extract(low, position, length, 32, false));
        assert_eq!(u64::from(found[1][at]), extract(low, position, length, 32, true));
        assert_eq!(u64::from(found[2][at]), insert(low, next, position, length, 32));
        assert_eq!(wide(3), extract(first, position, length, 64, false));
        assert_eq!(wide(5), extract(first, position, length, 64, true));
        assert_eq!(wide(7), insert(first, second, position, length, 64));
    }
}

#[test]
fn extremes_may_stop_at_zero() {
    let (a, b) = (words(39, 256), words(40, 256));
    let [least, greatest, packed] =
        map("min.s32.relu %o0, %i0, %i1;\nmax.relu.s32 %o1, %i0, %i1;\nmax.relu.s16x2 %o2, %i0, %i1;", &[&a, &b]);
    for (at, (x, y)) in a.iter().zip(&b).enumerate() {
        let (first, second) = (*x as i32, *y as i32);
        assert_eq!(least[at] as i32, first.min(second).max(0));
        assert_eq!(greatest[at] as i32, first.max(second).max(0));
        let half = |shift: u32| ((x >> shift) as i16).max((y >> shift) as i16).max(0) as u16;
        assert_eq!(packed[at], u32::from(half(16)) << 16 | u32::from(half(0)));
    }
}

#[test]
fn bits_are_counted_found_and_reversed() {
    let (a, b) = (words(24, 256), words(25, 256));
    let found: [Vec<u32>; 8] = map(
        "clz.b32 %o0, %i0;\npopc.b32 %o1, %i0;\nbrev.b32 %o2, %i0;\nmov.b64 %d1, {%i0, %i1};\nclz.b64 %o3, %d1;\n\
         popc.b64 %o4, %d1;\nbrev.b64 %d2, %d1;\nmov.b64 {%o5, _}, %d2;\nbfind.s32 %o6, %i0;\n\
         bfind.shiftamt.u32 %o7, %i0;",
        &[&a, &b],
    );
    for at in 0..a.len() {
        let (x, wide) = (a[at], u64::from(b[at]) << 32 | u64::from(a[at]));
        let significant = if (x as i32) < 0 { !x } else { x };
        let want = [
            x.leading_zeros(),
            x.count_ones(),
            x.reverse_bits(),
            wide.leading_zeros(),
            wide.count_ones(),
            wide.reverse_bits() as u32,
            significant.checked_ilog2().unwrap_or(u32::MAX),
            if x == 0 { u32::MAX } else { x.leading_zeros() },
        ];
        assert_eq!(found.each_ref().map(|output| output[at]), want, "{x:#x}");
    }
}

#[test]
fn the_nth_set_bit_is_found() {
    let (masks, bases) = (words(26, 512), words(27, 512).iter().map(|word| word % 32).collect::<Vec<u32>>());
    let offsets: Vec<u32> = words(28, 512).iter().map(|word| (word % 13).wrapping_sub(6)).collect();
    let [found] = map("fns.b32 %o0, %i0, %i1, %i2;", &[&masks, &bases, &offsets]);
    for at in 0..masks.len() {
        let (mask, base, offset) = (masks[at], bases[at] as i32, offsets[at] as i32);
        // The loop of the ISA.
        let set = |place: i32| mask >> place & 1 == 1;
        let mut want = -1;
        if offset == 0 {
            want = if set(base) { base } else { -1 };
        } else {
            let (mut place, mut count) = (base, offset.abs() - 1);
            while (0..32).contains(&place) {
                if set(place) && count == 0 {
                    want = place;
                    break;
                }
                count -= i32::from(set(place));
                place += offset.signum();
            }
        }
        assert_eq!(found[at] as i32, want, "{mask:#x} {base} {offset}");
    }
}

#[test]
fn tables_and_bytes_choose() {
    let (a, b, c) = (words(29, 256), words(30, 256), words(31, 256));
    for table in [0x80u32, 0xfe, 0x96, 0xca, 0xe8, 0x1b] {
        let body = format!("lop3.b32 %o0, %i0, %i1, %i2, {table};\nprmt.b32 %o1, %i0, %i1, %i2;");
        let [logic, bytes] = map(&body, &[&a, &b, &c]);
        for at in 0..a.len() {
            let row = |bit: u32| (a[at] >> bit & 1) << 2 | (b[at] >> bit & 1) << 1 | c[at] >> bit & 1;
            let want: u32 = (0..32).map(|bit| (table >> row(bit) & 1) << bit).sum();
            assert_eq!(logic[at], want, "{table:#x}");
            let source = [a[at].to_le_bytes(), b[at].to_le_bytes()].concat();
            let byte = |at_byte: u32| {
                let selector = c[at] >> (4 * at_byte) & 15;
                let value = source[selector as usize & 7];
                if selector < 8 { value } else { (value as i8 >> 7) as u8 }
            };
            assert_eq!(bytes[at], u32::from_le_bytes([0, 1, 2, 3].map(byte)));
        }
    }
}

#[test]
fn products_have_low_high_and_wide_forms() {
    let (a, b, c) = (words(32, 256), words(33, 256), words(34, 256));
    let found: [Vec<u32>; 8] = map(
        "mul.lo.s32 %o0, %i0, %i1;\nmul.hi.s32 %o1, %i0, %i1;\nmul.hi.u32 %o2, %i0, %i1;\n\
         mad.lo.u32 %o3, %i0, %i1, %i2;\nmad.hi.s32 %o4, %i0, %i1, %i2;\nmul.wide.s16 %o5, %i0, %i1;\n\
         mul24.lo.u32 %o6, %i0, %i1;\nsad.s32 %o7, %i0, %i1, %i2;",
        &[&a, &b, &c],
    );
    let wide =
        |form: &str, x: &[u32], y: &[u32]| joined(&map(&format!("{form}\nmov.b64 {{%o0, %o1}}, %d1;"), &[x, y, &c]));
    let signed_wide = wide("mul.wide.s32 %d1, %i0, %i1;", &a, &b);
    let sum = wide("mov.b64 %d2, {%i2, %i0};\nmad.wide.u32 %d1, %i0, %i1, %d2;", &a, &b);
    for at in 0..a.len() {
        let (x, y, z) = (a[at], b[at], c[at]);
        let signed = i64::from(x as i32) * i64::from(y as i32);
        let unsigned = u64::from(x) * u64::from(y);
        let want = [
            x.wrapping_mul(y),
            (signed >> 32) as u32,
            (unsigned >> 32) as u32,
            x.wrapping_mul(y).wrapping_add(z),
            ((signed >> 32) as u32).wrapping_add(z),
            (i32::from(x as i16) * i32::from(y as i16)) as u32,
            (x & 0xff_ffff).wrapping_mul(y & 0xff_ffff),
            z.wrapping_add((x as i32).abs_diff(y as i32)),
        ];
        assert_eq!(found.each_ref().map(|output| output[at]), want, "{x:#x} {y:#x} {z:#x}");
        assert_eq!(signed_wide[at], signed as u64);
        assert_eq!(sum[at], unsigned.wrapping_add(u64::from(x) << 32 | u64::from(z)));
    }
}

#[test]
fn wide_products_of_64_bits() {
    let mut random = Random(35);
    let mut wide = || (0..64).map(|_| u64::from(random.next()) << 32 | u64::from(random.next())).collect::<Vec<u64>>();
    let (a, b) = (wide(), wide());
    let ((a_low, a_high), (b_low, b_high)) = (halves(&a), halves(&b));
    let [low, high, signed_low, signed_high] = map(
        "mov.b64 %d1, {%i0, %i1};\nmov.b64 %d2, {%i2, %i3};\nmul.lo.u64 %d3, %d1, %d2;\nmov.b64 {%o0, _}, %d3;\n\
         mul.hi.u64 %d3, %d1, %d2;\nmov.b64 {_, %o1}, %d3;\nmad.hi.s64 %d3, %d1, %d2, %d1;\n\
         mov.b64 {%o2, %o3}, %d3;",
        &[&a_low, &a_high, &b_low, &b_high],
    );
    for at in 0..a.len() {
        let product = u128::from(a[at]) * u128::from(b[at]);
        assert_eq!((low[at], high[at]), (product as u32, (product >> 96) as u32));
        let upper = ((i128::from(a[at] as i64) * i128::from(b[at] as i64)) >> 64) as u64;
        let want = upper.wrapping_add(a[at]);
        assert_eq!((signed_low[at], signed_high[at]), (want as u32, (want >> 32) as u32));
    }
}

#[test]
fn dot_products_take_bytes_with_or_without_sign() {
    let (a, b, c) = (words(36, 256), words(37, 256), words(38, 256));
    let byte = |word: u32, at: u32, signed: bool| {
        let byte = (word >> (8 * at)) as u8;
        if signed { i32::from(byte as i8) } else { i32::from(byte) }
    };
    let half = |word: u32, at: u32, signed: bool| {
        let half = (word >> (16 * at)) as u16;
        if signed { i32::from(half as i16) } else { i32::from(half) }
    };
    for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
        let name = |signed: bool| if signed { "s32" } else { "u32" };
        let types = format!("{}.{}", name(first), name(second));
        let body = format!(
            "dp4a.{types} %o0, %i0, %i1, %i2;\ndp2a.lo.{types} %o1, %i0, %i1, %i2;\n\
             dp2a.hi.{types} %o2, %i0, %i1, %i2;"
        );
        let [four, low, high] = map(&body, &[&a, &b, &c]);
        for at in 0..a.len() {
            let (x, y, z) = (a[at], b[at], c[at] as i32);
            let sum = |products: [i32; 4]| products.iter().fold(z, |sum, product| sum.wrapping_add(*product)) as u32;
            let two =
                |skip: u32| [0, 1, 2, 3].map(|i| if i < 2 { half(x, i, first) * byte(y, skip + i, second) } else { 0 });
            assert_eq!(four[at], sum([0, 1, 2, 3].map(|i| byte(x, i, first) * byte(y, i, second))), "{types}");
            assert_eq!((low[at], high[at]), (sum(two(0)), sum(two(2))), "{types}");
        }
    }
}
