use super::*;

fn var(name: &str, most: i64) -> Expr {
    Expr::var(&Var::new(name, 0, most))
}

#[test]
fn the_distance_of_rows_is_taken_out_of_a_product() {
    let (i, t, cols) = (Var::new("i", 0, 15), var("t", 99), var("cols", 1 << 20));
    let index = cols.clone() * (t.clone() * 512 + Expr::var(&i) * 32) + t.clone() + Expr::var(&i) * 4;
    let (rest, stride) = moved(&index, &i).expect("it is linear");
    assert_eq!(rest, normalize(&(cols.clone() * (t.clone() * 512) + t)));
    assert_eq!(stride, normalize(&(cols * 32 + 4)));
}

#[test]
fn a_distance_that_the_loop_defines_has_no_name_before_it() {
    let (cols, j) = (Var::new("cols", 0, 1 << 20), Var::new("j", 0, 9));
    let stride = Expr::var(&cols) * Expr::var(&j);
    let has_name = |inside: &[&Var]| has_name(&stride, &inside.iter().map(|var| (*var).clone()).collect());
    assert_eq!([has_name(&[]), has_name(&[&j])], [true, false]);
    assert!(!super::has_name(&Expr::constant(4), &BTreeSet::new()));
}

#[test]
fn an_index_that_is_not_linear_has_no_distance() {
    let (i, cols) = (Var::new("i", 0, 15), var("cols", 1 << 20));
    assert_eq!(moved(&(cols.clone() * (Expr::var(&i) / 3)), &i), None);
    assert_eq!(moved(&(cols * Expr::var(&i) * Expr::var(&i)), &i), None);
}
