//! Kernels for which the time or the memory of the compiler once had no bound: they compile, or are refused at once.
//! Nothing is timed here; a return of the growth would show as a test that does not end.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::layout::TableLayout;
use tilewright::prelude::*;

fn compiled(kernel: Kernel) -> Result<Artifact, &'static str> {
    compile(kernel, &Options::new(Target::Sm100a)).map_err(|found| found[0].code)
}

/// Fragments whose extents have no common divisor, whose loops alternate in order, tied by one vector.
fn odd_fragments(threads: i64) -> Kernel {
    const EXTENTS: [i64; 9] = [37, 41, 43, 47, 53, 59, 61, 67, 71];
    kernel("odd", |k| {
        let (x, y) = (k.input("x", F32, [31]), k.output("y", F32, [31]));
        let inputs = EXTENTS.map(|extent| k.input(&format!("x{extent}"), F32, [extent, 31]));
        k.threads(threads);
        let v = k.fragment("v", F32, [31]);
        k.copy(v, x);
        for (input, extent) in inputs.into_iter().zip(EXTENTS) {
            let f = k.fragment(&format!("f{extent}"), F32, [extent, 31]);
            k.copy(f, input);
            if extent % 4 == 1 {
                k.parallel([extent, 31], |k, [i, j]| k.store(f, (i, j), f.at((i, j)) + v.at((j,))));
            } else {
                k.parallel([31, extent], |k, [j, i]| k.store(f, (i, j), f.at((i, j)) + v.at((j,))));
            }
            k.reduce(Sum, v, f, 0).accumulate();
        }
        k.copy(y, v);
    })
}

#[test]
fn odd_fragments_that_a_vector_ties() {
    for threads in [128, 1024] {
        assert!(compiled(odd_fragments(threads)).is_ok(), "{threads} threads");
    }
}

#[test]
fn sixteen_fragments_that_are_read_at_strides() {
    let built = kernel("strided", |k| {
        let (x, y) = (k.input("x", F32, [4096]), k.output("y", F32, [4096]));
        k.threads(128);
        let mut last = k.fragment("f0", F32, [4096]);
        k.copy(last, x);
        for at in 1..16 {
            let next = k.fragment(&format!("f{at}"), F32, [4096]);
            let before = last;
            k.parallel([4096], |k, [i]| k.store(next, (i,), before.at(((i * (2 * at + 1) + at) % 4096,))));
            last = next;
        }
        k.copy(y, last);
    });
    assert!(compiled(built).is_ok());
}

/// The same with an offset that is known at run time only: every thread needs all elements.
fn shifted_fragments(count: usize) -> Kernel {
    kernel("shifted", |k| {
        let (x, y) = (k.input("x", F32, [4096]), k.output("y", F32, [4096]));
        k.threads(128);
        let fragments: Vec<Buffer> = (0..count).map(|at| k.fragment(&format!("f{at}"), F32, [4096])).collect();
        k.copy(fragments[0], x);
        k.serial("t", 0..64, |k, t| {
            for at in 1..count {
                let (before, stride) = (fragments[at - 1], 2 * at as i64 + 1);
                k.parallel([4096], |k, [i]| k.store(fragments[at], (i,), before.at(((i * stride + t) % 4096,))));
            }
        });
        k.copy(y, fragments[count - 1]);
    })
}

#[test]
fn fragments_that_are_read_at_shifts_known_at_run_time_are_refused() {
    for (count, code) in [(2, "K0263"), (3, "K0263"), (16, "I0713")] {
        assert_eq!(compiled(shifted_fragments(count)).err(), Some(code), "{count}");
    }
}

#[test]
fn ninety_seven_fragments() {
    let built = kernel("many", |k| {
        let (x, y) = (k.input("x", F32, [1024]), k.output("y", F32, [1024]));
        k.threads(128);
        let fragments: Vec<Buffer> = (0..97).map(|at| k.fragment(&format!("f{at}"), F32, [1024])).collect();
        for fragment in &fragments {
            k.copy(*fragment, x);
        }
        k.parallel([1024], |k, [i]| {
            let sum = fragments.iter().skip(1).fold(fragments[0].at((i,)), |sum, next| sum + next.at((i,)));
            k.store(y, (i,), sum)
        });
    });
    assert!(compiled(built).is_ok());
}

#[test]
fn large_parallel_loops() {
    for side in [1024, 2048] {
        let built = kernel("large", |k| {
            let (x, y) = (k.input("x", F32, [side, side]), k.output("y", F32, [side, side]));
            k.threads(256);
            k.parallel([side, side], |k, [i, j]| k.store(y, (i, j), x.at((i, j)) * 2.0));
        });
        assert!(compiled(built).is_ok(), "{side}");
    }
}

/// Without a grid, one thread has thousands of steps under conditions.
#[test]
fn large_parallel_loops_over_sizes_known_at_launch() {
    let built = |extent: i64, threads: i64| {
        compiled(kernel("masked", |k| {
            let n = k.size("n");
            let (x, y) = (k.input("x", F32, (n,)), k.output("y", F32, (n,)));
            k.threads(threads);
            k.parallel([extent], |k, [i]| k.store(y, (i,), x.at((i,))));
        }))
    };
    assert!(built(1 << 22, 1024).is_ok());
    assert_eq!(built(1 << 20, 32).err(), Some("K0263"));
}

/// Every step of a thread has an index of its own, which does not depend on the variables of the loop.
#[test]
fn a_large_loop_over_indices_from_data() {
    let built = kernel("gather", |k| {
        let (x, at) = (k.input("x", F32, [4096]), k.input("at", I32, [1 << 20]));
        let y = k.output("y", F32, [1 << 20]);
        k.threads(128);
        k.parallel([1 << 20], |k, [i]| k.store(y, (i,), x.at((at.at((i,)),))));
    });
    assert!(compiled(built).is_ok());
}

#[test]
fn loops_of_too_many_iterations_together_are_refused() {
    let built = kernel("many", |k| {
        let (x, y) = (k.input("x", F32, [2048, 2048]), k.output("y", F32, [20, 2048, 2048]));
        k.threads(256);
        for n in 0..20 {
            k.parallel([2048, 2048], |k, [i, j]| k.store(y, (n, i, j), x.at((i, j))));
        }
    });
    assert_eq!(compiled(built).err(), Some("K0234"));
}

#[test]
fn the_largest_fragment() {
    let held = |rows: i64| {
        kernel("held", |k| {
            let (x, y) = (k.input("x", U8, [rows, 1024]), k.output("y", U8, [rows]));
            k.threads(1024);
            let held = k.fragment("held", U8, [rows, 1024]);
            let most = k.fragment("most", U8, [rows]);
            k.copy(held, x);
            k.reduce(Max, most, held, 1);
            k.copy(y, most);
        })
    };
    assert!(compiled(held(256)).is_ok());
    assert_eq!(compiled(held(257)).err(), Some("K0205"));
}

#[test]
fn a_table_of_2_to_the_20() {
    const ELEMENTS: i64 = 1 << 20;
    let places: Vec<i64> = (0..ELEMENTS).map(|i| i * 7919 % ELEMENTS).collect();
    let table = TableLayout::of_positions(&M, &places).expect("a table");
    let built = kernel("table", |k| {
        let (x, y) = (k.input("x", B8, [ELEMENTS]), k.output("y", B8, table));
        k.threads(128);
        k.parallel([ELEMENTS], |k, [i]| k.store(y, (i,), x.at((i,))));
    });
    let artifact = compiled(built).expect("it compiles");
    // All steps look up the same table.
    assert_eq!(artifact.cuda().matches("const int position_of").count(), 1);
}

#[test]
fn copies_between_shared_tiles() {
    let built = kernel("copies", |k| {
        let tiles = ["left", "right"].map(|name| k.shared(name, F32, [128, 64]));
        k.threads(128);
        k.fill(tiles[0], 0.0);
        for at in 0..200 {
            k.copy(tiles[(at + 1) % 2], tiles[at % 2]);
        }
    });
    assert!(compiled(built).is_ok());
}

#[test]
fn a_million_unrolled_steps_are_refused() {
    let built = kernel("unrolled", |k| {
        let y = k.output("y", F32, [32]);
        let s = k.shared("s", F32, [32]);
        k.fill(s, 0.0);
        k.unroll("a", 0..1000, |k, _| {
            k.unroll("b", 0..1000, |k, _| k.parallel([32], |k, [i]| k.store(s, (i,), s.at((i,)) + 1.0)));
        });
        k.copy(y, s);
    });
    assert_eq!(compiled(built).err(), Some("K0263"));
}

/// Serial loops in one another, `depth` of them with four iterations each.
fn nested(k: &mut KernelBuilder, depth: usize, body: &mut dyn FnMut(&mut KernelBuilder)) {
    match depth {
        0 => body(k),
        _ => k.serial(&format!("s{depth}"), 0..4, |k, _| nested(k, depth - 1, body)),
    }
}

#[test]
fn a_tile_of_which_the_layout_is_chosen_in_deep_loops() {
    let deep = kernel("deep", |k| {
        let (x, y) = (k.input("x", F32, [64, 32]), k.output("y", F32, [32, 64]));
        k.threads(64);
        let tile = k.shared("tile", F32, [64, 32]);
        let columns = k.transposed("columns", tile, [1, 0]);
        nested(k, 12, &mut |k| {
            k.copy(tile, x);
            k.copy(y, columns);
        });
    });
    assert!(compiled(deep).is_ok());
}

#[test]
fn short_loops_in_one_another_that_are_written_out_are_refused() {
    fn inside(k: &mut Elements, depth: usize, at: Expr, body: &mut dyn FnMut(&mut Elements, Expr)) {
        match depth {
            0 => body(k, at),
            _ => k.serial(&format!("s{depth}"), 0..4, |k, s| inside(k, depth - 1, at + s, body)),
        }
    }
    let deep = kernel("deep", |k| {
        let (x, y) = (k.input("x", I32, [32, 32]), k.output("y", I32, [32]));
        k.threads(64);
        let f = k.fragment("f", I32, [32]);
        k.fill(f, 0);
        k.parallel([32], |k, [i]| {
            let mut body = |k: &mut Elements, at: Expr| {
                k.store(f, (i,), f.at((i,)) + x.at((at % 32, i)));
            };
            inside(k, 12, Expr::from(0), &mut body);
        });
        k.copy(y, f);
    });
    assert_eq!(compiled(deep).err(), Some("K0263"));
}

/// Padding would leave no room for what a conversion stages.
#[test]
fn a_tile_is_dense_where_padding_and_scratch_exceed_shared_memory() {
    let full = kernel("full", |k| {
        let (x, y) = (k.input("x", F16, [1504, 64]), k.output("y", F16, [64, 1504]));
        let (w, z) = (k.input("w", F32, [64, 64]), k.output("z", F32, [64, 64]));
        k.threads(128);
        k.allow_conversions();
        let tile = k.shared("tile", F16, [1504, 64]);
        let columns = k.transposed("columns", tile, [1, 0]);
        k.copy(tile, x);
        k.copy(y, columns);
        let a = k.fragment("a", F32, ([64, 64], S([64, 2, 32], [1 * TX, 64 * TX, 1 * REG])));
        let b = k.fragment("b", F32, ([64, 64], S([2, 32, 64], [64 * TX, 1 * REG, 1 * TX])));
        k.copy(a, w);
        k.parallel([64, 64], |k, [i, j]| k.store(b, (i, j), a.at((i, j))));
        k.copy(z, b);
    });
    assert!(compiled(full).is_ok());
}
