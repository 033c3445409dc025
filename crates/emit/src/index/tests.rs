mod c;

use proptest::prelude::*;
use tilewright_expr::Var;

use super::*;

fn v(name: &str, lo: i64, hi: i64) -> Expr {
    Expr::var(&Var::new(name, lo, hi))
}

#[test]
fn shifts_and_masks_stand_for_powers_of_two() {
    let lane = v("lane", 0, 31);
    assert_eq!(c_index(&(&lane / 8 % 4)), "lane >> 3 & 3");
    assert_eq!(c_index(&((1 ^ v("x", 0, 3)) * 32 + lane)), "(1 ^ x)*32 + lane");
}

#[test]
fn lines_are_counted_before_they_are_multiplied_by_a_pitch() {
    let (warp, lane, t) = (v("warp", 0, 3), v("lane", 0, 31), v("t", 0, 9));
    let text = |lines: i64| c_index(&(&warp % 2 * (lines * 144) + &lane % 16 * 144 + &t * 5 + 7));
    assert_eq!(text(32), "((warp & 1)*32 + (lane & 15))*144 + t*5 + 7");
    assert_eq!(text(8), "(warp & 1)*1152 + (lane & 15)*144 + t*5 + 7", "the lanes have more lines than that");
    assert_eq!(text(24), "(warp & 1)*3456 + (lane & 15)*144 + t*5 + 7", "no mask");
    assert_eq!(c_index(&(&warp * 256 + &lane % 16 * 16)), "warp*256 + (lane & 15)*16", "no pitch");
    // The number that made it wide is gone.
    let widened = (&lane % (1 << 33) + &t * 4096) * 3;
    assert_eq!((c_index(&widened).as_str(), needs_64_bits(&widened)), ("(t*4096 + lane)*3", false));
}

#[test]
fn other_divisors_are_written_out() {
    let t = v("t", 0, 99);
    assert_eq!(c_index(&(&t / 12 * 7 + &t % 12)), "t/12*7 + t%12");
}

#[test]
fn floor_division_of_what_may_be_negative() {
    let t = v("t", -9, 9);
    assert_eq!(c_index(&(&t % 3)), "(t%3 + 3)%3");
    assert_eq!(c_index(&(&t / 3)), "(t - (t%3 + 3)%3)/3");
    assert_eq!(c_index(&(&t / 4)), "t >> 2");
}

#[test]
fn steps_of_floor_division_that_exceed_32_bits_are_64_bits_wide() {
    let (t, n) = (v("t", -9, 9), v("n", 1, i64::from(i32::MAX)));
    assert_eq!(c_index(&(&t % &n)), "((long long)t%n + n)%n");
    let (near, three) = (v("near", i64::from(i32::MIN) + 1, 0), Expr::constant(3));
    assert_eq!(c_index(&(&near / &three)), "((long long)near - ((long long)near%3 + 3)%3)/3");
    assert_eq!(c_index(&(&t / &v("m", 1, 1 << 30))), "(t - (t%m + m)%m)/m");
}

#[test]
fn what_is_subtracted_stands_at_the_end() {
    let (i, t) = (v("i", 0, 3), v("t", 0, 9));
    assert_eq!(c_index(&(&i * -4 + 15)), "15 - i*4");
    assert_eq!(c_index(&(&i * -4 + &t * 2 - &t % 3 + 7)), "t*2 + 7 - i*4 - t%3");
    assert_eq!(c_index(&(&t - &i - 2)), "t - i - 2");
    assert_eq!(c_index(&(&i * -4)), "-(i*4)");
    assert_eq!(c_index(&((&i * -4) / 3)), "(-(i*4) - (-(i*4)%3 + 3)%3)/3");
}

#[test]
fn an_order_in_which_sums_overflow_is_not_taken() {
    let (far, near) = (v("far", 0, i64::from(i32::MAX)), v("near", i64::from(i32::MAX) - 9, i64::from(i32::MAX)));
    assert_eq!(c_index(&(far + &near * -1 + 9)), "far - near + 9");
    assert_eq!(c_index(&(v("i", 0, 2) * -(1 << 30))), "i*(-1073741824)");
}

#[test]
fn large_indices_are_64_bits_wide() {
    assert_eq!(c_index(&(v("bx", 0, 1 << 20) * 4096 + 3)), "(long long)bx*4096 + 3");
}

#[test]
fn parts_of_large_indices_are_32_bits_wide() {
    let (n, bx, t) = (v("n", 1, 1 << 20), v("bx", 0, 1 << 14), v("t", 0, 127));
    let (row, col) = (&bx * 64 + &t / 64, &bx * 64 + &t % 64);
    assert_eq!(c_index(&(&row * &n + &col * 1)), "(long long)(bx*64 + (t >> 6))*n + (bx*64 + (t & 63))");
    assert_eq!(c_index(&(&row * &n + &t * -1)), "(long long)(bx*64 + (t >> 6))*n - t");
    assert_eq!(c_index(&(&col * 1 + &n * &n * -1)), "(long long)bx*64 + (t & 63) - (long long)n*n");
    assert_eq!(c_index(&(&t % 31 * n.clone() * n.clone() + &t % 31 * 32)), "(long long)(t%31)*n*n + t%31*32");
    assert_eq!(c_index(&((&n * &n + &t * 1) / 31 * 5)), "((long long)n*n + t)/31*5");
}

/// Variables of every size that indices have.
fn variables() -> Vec<Var> {
    let ranges = [(0, 31), (-5, 9), (1, 1 << 14), (0, (1 << 20) - 1), (1, i64::from(i32::MAX)), (-(1 << 30), 1 << 30)];
    let named = ranges.iter().enumerate().map(|(at, (lo, hi))| Var::new(format!("v{at}"), *lo, *hi));
    named.collect()
}

/// Expressions over these variables whose values, and those of their parts, are less than 2^60.
fn exprs() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        (0..variables().len()).prop_map(|at| Expr::var(&variables()[at])),
        prop_oneof![-70i64..70, Just(4096), Just(-65536), Just(1 << 33)].prop_map(Expr::constant),
    ];
    let fits = |expr: &Expr| expr.range().lo > -(1 << 60) && expr.range().hi < 1 << 60;
    leaf.prop_recursive(5, 24, 2, move |inner| {
        (0..6, inner.clone(), inner, 1i64..70).prop_map(move |(op, a, b, number)| {
            let made = match op {
                0 | 1 => &a + &b,
                2 => &a * &b,
                3 => &a * number,
                4 if b.range().lo > 0 => &a / &b,
                4 => &a / number,
                _ if b.range().lo > 0 => &a % &b,
                _ => &a % number,
            };
            if fits(&made) { made } else { a }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_text_has_the_value_of_the_expression_in_c(expr in exprs(), picks in proptest::collection::vec(0u64..=1000, 6)) {
        let value = |var: &Var| {
            let place = variables().iter().position(|known| known == var)?;
            let (range, pick) = (var.range(), picks[place] as i64);
            // Both ends are likely.
            let inside = || range.lo + ((range.hi - range.lo) as i128 * pick as i128 / 1000) as i64;
            Some(if pick < 200 { range.lo } else if pick > 800 { range.hi } else { inside() })
        };
        let text = c_index(&expr);
        let of_name = |name: &str| variables().iter().find(|var| var.name() == name).and_then(&value);
        let found = c::evaluate(&text, &of_name);
        let expected = expr.eval(&value).map_err(|error| error.to_string());
        prop_assert_eq!(found.clone().map(|(number, _)| number), expected, "{}", text);
        // The number -2147483648 is a `long` without need.
        prop_assert!(!needs_64_bits(&expr) || found.is_ok_and(|(_, is_long)| is_long), "{}", text);
    }
}
