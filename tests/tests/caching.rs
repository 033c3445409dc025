//! Tensors whose accesses are cached as the user says: streamed, or in L2 only.

use tilewright::compile::{Options, Stage, compile};
use tilewright::ir::Caching;
use tilewright::layout::DType;
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};
use tilewright_tests::toolchain::built_or_skipped;

const DTYPES: [DType; 12] = [F64, F32, F16, BF16, E4M3, I8, I16, I32, I64, U8, U32, B32];

fn cached(tensor: Buffer, caching: Caching) -> Buffer {
    match caching {
        Caching::Streamed => tensor.streamed(),
        Caching::InL2 => tensor.in_l2(),
    }
}

/// Copies rows of `n` elements, both sides of which are cached in one way.
fn copied(dtype: DType, caching: Caching, unit: i64) -> Kernel {
    kernel("copied", |k| {
        let (m, n) = (k.size("m"), k.size("n").multiple_of(unit));
        let x = cached(k.input("x", dtype, (m, n)), caching);
        let y = cached(k.output("y", dtype, (m, n)), caching);
        let [bx, by] = k.grid([m.into(), n.ceil_div(256)]);
        k.threads(64);
        let held = k.fragment("held", dtype, [256]);
        k.copy(held, x.sub((bx, at(by * 256, 256))));
        k.copy(y.sub((bx, at(by * 256, 256))), held);
    })
}

#[test]
fn all_accesses_have_the_hint() {
    for caching in [Caching::Streamed, Caching::InL2] {
        let [load, store] = caching.functions();
        for dtype in DTYPES {
            for unit in [1, 16] {
                let kernel = copied(dtype, caching, unit);
                let artifact = compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("it compiles");
                let body = artifact.cuda().split("__global__").nth(1).expect("a kernel").to_string();
                let code: Vec<&str> = body.lines().map(str::trim).filter(|line| !line.starts_with("//")).collect();
                let lines = |of: &str| code.iter().filter(|line| line.contains(of)).count();
                assert!(lines(load) > 0 && lines(store) > 0, "{body}");
                assert_eq!((lines("x["), lines("y[")), (lines("__ld"), lines("__st")), "{dtype}\n{body}");
                let numbers = |at: i64| (at % 7) as f64;
                for (m, n) in [(1, unit), (3, 272 / unit * unit)] {
                    let of = tensor(dtype, &[m, n], |at| if dtype == B32 { 0.0 } else { numbers(at) });
                    check(
                        &kernel,
                        &[("m", m), ("n", n)],
                        std::slice::from_ref(&of),
                        std::slice::from_ref(&of),
                        Tolerance::EXACT,
                    );
                }
            }
        }
    }
}

/// NVRTC keeps it.
#[test]
fn the_hint_is_in_the_ptx() {
    for (caching, [load, store]) in
        [(Caching::Streamed, ["ld.global.cs", "st.global.cs"]), (Caching::InL2, ["ld.global.cg", "st.global.cg"])]
    {
        let kernel = copied(F32, caching, 16);
        let artifact = compile(kernel, &Options::new(Target::Sm100a)).expect("it compiles");
        let Some(built) = built_or_skipped(&artifact, "copied") else { return };
        assert!(built.ptx.contains(load) && built.ptx.contains(store), "{}", built.ptx);
    }
}

/// Where no tensor has a hint, a thread moves 32 bytes at once.
#[test]
fn vectors_with_a_hint_have_at_most_16_bytes() {
    let plan = |hinted: bool| {
        let kernel = kernel("wide", |k| {
            let [x, y] = [k.input("x", F32, [4096]), k.output("y", F32, [4096])];
            k.threads(128);
            k.copy(if hinted { y.streamed() } else { y }, if hinted { x.streamed() } else { x });
        });
        compile(kernel, &Options::new(Target::Sm100a)).expect("it compiles").stage(Stage::Plan).to_string()
    };
    assert!(plan(false).contains("32 B at a time"), "{}", plan(false));
    assert!(plan(true).contains("* vectorized: ") && plan(true).contains("16 B at a time"), "{}", plan(true));
    assert!(!plan(true).contains("32 B"), "{}", plan(true));
}

/// Of a tensor that the kernel writes, too, only stores have the hint: CUDA's functions for loads are in no order with others.
#[test]
fn what_the_kernel_writes_is_loaded_as_always() {
    let kernel = kernel("updated", |k| {
        let y = k.inout("y", F32, [64]).in_l2();
        k.threads(64);
        k.serial("t", 0..4, |k, _| {
            k.parallel([64], |k, [i]| k.store(y, (i,), y.at((i,)) * 2.0 + 1.0));
        });
    });
    let artifact = compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("it compiles");
    assert!(artifact.cuda().contains("__stcg(&") && !artifact.cuda().contains("__ldcg"), "{}", artifact.cuda());
    let y = tensor(F32, &[64], |at| (at * 16 + 15) as f64);
    check(&kernel, &[], &[tensor(F32, &[64], |at| at as f64)], &[y], Tolerance::EXACT);
}

/// A hint is one of the memory, by whatever name.
#[test]
fn a_view_has_the_hint_of_its_tensor() {
    for of_view in [false, true] {
        let kernel = kernel("viewed", |k| {
            let (x, y) = (k.input("x", F32, [4, 64]), k.output("y", F32, [64, 4]));
            k.threads(64);
            let turned = k.transposed("turned", x, [1, 0]);
            let _ = if of_view { turned.streamed() } else { x.streamed() };
            k.copy(y, turned);
        });
        let artifact = compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("it compiles");
        assert!(artifact.cuda().contains("__ldcs(&"), "{}", artifact.cuda());
        let [x, y] = [tensor(F32, &[4, 64], |at| at as f64), tensor(F32, &[64, 4], |at| (at % 4 * 64 + at / 4) as f64)];
        check(&kernel, &[], &[x], &[y], Tolerance::EXACT);
    }
}

/// Atomic operations and the copy engine are not concerned.
#[test]
fn other_instructions_are_as_they_were() {
    let kernel = kernel("others", |k| {
        let x = k.input("x", F32, [128]).streamed();
        let y = k.accumulator("y", F32, [128]).streamed();
        k.threads(64);
        let [tile, own] = [k.shared("tile", F32, [128]), k.fragment("own", F32, [128])];
        k.copy_async(tile, x).variant("bulk");
        k.copy(own, tile);
        k.atomic_add(y, own);
    });
    let x = tensor(F32, &[128], |at| at as f64);
    check(&kernel, &[], std::slice::from_ref(&x), std::slice::from_ref(&x), Tolerance::EXACT);
}
