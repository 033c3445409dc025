//! User-specified layouts of fragments: which threads hold elements, and which may move them.

use super::*;

/// A fragment with a user-specified layout on 64 threads, copied in and out by an op.
fn moved_through(layout: &str, warp: Option<i64>) -> &'static str {
    verdict(64, |k| {
        let (a, b) = (k.input("a", F32, [16]), k.output("b", F32, [16]));
        let f = k.fragment("f", F32, ([16i64], layout.parse::<TileLayout>().expect("a layout")));
        match warp {
            Some(warp) => k.warp_at(warp).copy(f, a),
            None => k.copy(f, a),
        };
        k.copy(b, f);
    })
}

#[test]
fn a_fragment_names_every_thread_axis() {
    assert_eq!(moved_through("S[16:1@reg]", None), "K0247");
    assert_eq!(moved_through("S[(4,4):(1@laneid,1@reg)]", None), "K0247");
    assert_eq!(moved_through("S[(4,4):(1@laneid,1@reg)] + R[2:1@warpid]", None), "accepted");
    assert_eq!(moved_through("S[(4,4):(1@laneid,1@reg)] + R[1:1@warpid]", None), "accepted");
}

#[test]
fn one_warp_moves_what_it_holds_alone() {
    assert_eq!(moved_through("S[(4,4):(1@laneid,1@reg)] + 1@warpid", Some(1)), "accepted");
    assert_eq!(moved_through("S[(4,4):(1@laneid,1@reg)] + 1@warpid", Some(0)), "K0249");
    assert_eq!(moved_through("S[(2,8):(1@warpid,1@laneid)]", Some(0)), "K0249");
}

#[test]
fn an_op_of_the_cta_has_one_tile() {
    let of_warps = verdict(64, |k| {
        let (a, b) = (k.input("a", F32, [2, 32]), k.output("b", F32, [2, 32]));
        let warp = k.warp_id();
        k.copy(b.sub((&warp, ..)), a.sub((&warp, ..)));
    });
    assert_eq!(of_warps, "K0248");
}

#[test]
fn every_warp_fills_its_own_row() {
    for layout in [
        "S[(4,31,1):(1@warpid,1@laneid,1@reg)]",
        "S[(4,31):(1@warpid,1@laneid)]",
        "S[(4,1,31):(1@warpid,1@laneid,1@reg)]",
    ] {
        let kernel = kernel("filled", |k| {
            let (x, y) = (k.input("x", I16, [4, 31]), k.output("y", I16, [4, 31]));
            k.threads(128);
            let warp = k.warp_id();
            let row = k.fragment("row", I16, ([4, 31], layout.parse::<TileLayout>().expect("a layout")));
            k.fill(row, 6);
            k.warp().fill(row.sub((warp, ..)), 9);
            k.parallel([4, 31], |k, [i, j]| k.store(y, (i, j), x.at((i, j)) + row.at((i, j))));
        });
        assert_eq!(check(&kernel, &mut Rng::new(1, 0), Rules::ALL), Ok(Ended::Right), "{layout}");
    }
}

#[test]
fn every_warp_has_a_row_of_its_own() {
    let kernel = kernel("rows", |k| {
        let (a, b) = (k.input("a", F32, [4, 64]), k.output("b", F32, [4, 64]));
        k.threads(128);
        let warp = k.warp_id();
        let row = k.fragment("row", F32, ([4, 64], S([4, 32, 2], [1 * WARPID, 1 * LANEID, 1 * M])));
        k.warp().copy(row.sub((&warp, ..)), a.sub((&warp, ..)));
        k.parallel([4, 64], |k, [i, j]| {
            k.store(row, (&i, &j), row.at((&i, &j)) * 2.0);
        });
        k.warp().copy(b.sub((&warp, ..)), row.sub((&warp, ..)));
    });
    assert_eq!(check(&kernel, &mut Rng::new(1, 0), Rules::ALL), Ok(Ended::Right));
}

/// Every kind of reduction over the rows of a fragment of which some threads hold no elements.
fn reductions(dtype: DType, variant: Option<&str>, element: fn(&Expr, &Expr) -> Value) -> Kernel {
    kernel("reductions", |k| {
        k.threads(96);
        let v = k.fragment("v", dtype, [5, 12]);
        k.parallel([5, 12], |k, [i, j]| {
            k.store(v, (&i, &j), element(&i, &j));
        });
        for kind in ReduceKind::ALL.iter().filter(|kind| !(kind.is_bitwise() && dtype.is_float())) {
            let y = k.output(&format!("{}_of_all", kind.name()), dtype, [5]);
            let result = k.fragment(&format!("{}_of_v", kind.name()), dtype, [5]);
            k.reduce(*kind, result, v, 1).variant_opt(variant);
            k.copy(y, result);
        }
    })
}

/// Rows of the least integer, of NaN alone and with numbers, and of values that only fit in u64: every layout gives the
/// specified result.
#[test]
fn reductions_are_those_of_their_elements() {
    type Element = fn(&Expr, &Expr) -> Value;
    let least: Element = |i, j| Value::from(j).lt(i * 3).select(5, -128);
    let nan: Element = |i, j| Value::from(j).lt(i * 3 - 2).select(-1.5, f64::NAN);
    let high: Element = |i, j| (Value::from(i) * -12 - j - 1).wrapping_cast(U64);
    for (dtype, element) in [(I8, least), (I32, least), (U64, high), (F16, nan), (F32, nan), (F64, nan)] {
        for variant in [None, Some("across_warps"), Some("single_owners")] {
            let kernel = reductions(dtype, variant, element);
            let seen = check(&kernel, &mut Rng::new(1, 0), Rules::ALL);
            assert_eq!(seen, Ok(Ended::Right), "{dtype}, {variant:?}");
        }
    }
}
