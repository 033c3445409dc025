//! Copies to tensors that several threads start: of roles, or of one thread while others go on.

use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::stores::calls;
use super::{check_all_in_schedules, compiled, number};

/// One role computes tiles, and another one stores them.
#[test]
fn a_role_stores_what_another_one_computes() {
    let kernel = kernel("roles", |k| {
        let rows = k.size("rows");
        let y = k.output("y", F32, (rows, 128));
        k.threads(96);
        let tile = k.shared("tile", F32, [128]);
        k.serial("t", ..rows, |k, t| {
            k.role("math", 2, |k| {
                k.parallel([128], |k, [i]| k.store(tile, (&i,), (127 - &i + t).cast(F32)));
            });
            k.role("store", 1, |k| k.copy_async(y.sub((&t, ..)), tile));
        });
    });
    let cuda = compiled(&kernel).cuda().to_string();
    assert!(cuda.contains("bulk_store(&y[t*128], &tile[0], 512);"), "{cuda}");
    for rows in [1, 2, 5] {
        let y = tensor(F32, &[rows, 128], |at| (127 - at % 128 + at / 128) as f64);
        check_all_in_schedules(&kernel, &[("rows", rows)], &[], &[y]);
    }
}

/// Each role stores its own tile: a barrier of its warps is enough.
#[test]
fn roles_store_their_own_tiles() {
    let kernel = kernel("own", |k| {
        let y = k.output("y", F32, [2, 256]);
        k.threads(96);
        let tiles = ["one", "other"].map(|name| k.shared(name, F32, [256]));
        for (warps, tile) in [2, 1].into_iter().zip(tiles) {
            k.role(if warps == 2 { "two" } else { "single" }, warps, |k| {
                k.parallel([256], |k, [i]| k.store(tile, (&i,), (255 - &i + warps).cast(F32)));
                k.copy_async(y.sub((2 - warps, ..)), tile);
            });
        }
    });
    let all = calls(&kernel);
    assert!(!all.contains(&"__syncthreads".to_string()), "{all:?}");
    assert!(all.contains(&"sync_warps<1, 64>".to_string()) && all.contains(&"__syncwarp".to_string()), "{all:?}");
    let y = tensor(F32, &[2, 256], |at| (255 - at % 256 + 2 - at / 256) as f64);
    check_all_in_schedules(&kernel, &[], &[], &[y]);
}

/// Three tiles that are written before all copies, so that one fence serves them, and what a tensor holds at the end.
fn with_three_tiles(threads: i64, body: impl FnOnce(&mut KernelBuilder, [Buffer; 3], [Buffer; 2])) -> Kernel {
    kernel("three", |k| {
        let tensors = ["y", "z"].map(|name| k.inout(name, F32, [2, 128]));
        let out = k.output("out", F32, [2, 128]);
        k.threads(threads);
        let tiles = ["a", "b", "c"].map(|name| k.shared(name, F32, [128]));
        for (value, tile) in (1..).zip(tiles) {
            k.fill(tile, f64::from(value));
        }
        body(k, tiles, tensors);
        k.parallel([2, 128], |k, [i, j]| k.store(out, (&i, &j), tensors[0].at((&i, 127 - &j))));
    })
}

fn check_three_tiles(kernel: &Kernel, [y, z]: [[f64; 2]; 2]) {
    let rows = |of: [f64; 2]| tensor(F32, &[2, 128], move |at| of[at as usize / 128]);
    let before = tensor(F32, &[2, 128], |_| 0.0);
    check_all_in_schedules(kernel, &[], &[before.clone(), before], &[rows(y), rows(z), rows(y)]);
}

/// The thread that stores has waited for its copy; the others have not, and read another tensor later.
#[test]
fn a_wait_of_one_thread_is_not_one_of_all() {
    let kernel = with_three_tiles(64, |k, [a, b, c], [y, z]| {
        k.copy_async(y.sub((0, ..)), a);
        k.copy_async(z.sub((0, ..)), b);
        k.copy_async(z.sub((0, ..)), c);
    });
    let waits: Vec<String> = calls(&kernel).into_iter().filter(|call| call.starts_with("bulk_wait<")).collect();
    assert_eq!(waits, ["bulk_wait<0>", "bulk_wait<2>"]);
    check_three_tiles(&kernel, [[1.0, 0.0], [3.0, 0.0]]);
}

#[test]
fn a_wait_of_a_role_is_not_one_of_all() {
    let kernel = with_three_tiles(64, |k, [a, b, c], [y, z]| {
        k.role("one", 1, |k| k.copy_async(y.sub((0, ..)), a));
        k.role("other", 1, |k| {
            k.copy_async(z.sub((0, ..)), b);
            k.copy_async(z.sub((0, ..)), c);
        });
    });
    check_three_tiles(&kernel, [[1.0, 0.0], [3.0, 0.0]]);
}

/// Copies of two threads, of which one has a later group and the other has none.
#[test]
fn copies_of_several_threads_are_all_waited_for() {
    for turned in [false, true] {
        let kernel = with_three_tiles(64, |k, [a, b, c], [y, z]| {
            let first = |k: &mut KernelBuilder| {
                k.role("one", 1, |k| k.copy_async(y.sub((0, ..)), a));
            };
            let rest = |k: &mut KernelBuilder| {
                k.role("other", 1, |k| {
                    k.copy_async(y.sub((1, ..)), b);
                    k.copy_async(z.sub((0, ..)), c);
                });
            };
            if turned {
                rest(k);
                first(k);
            } else {
                first(k);
                rest(k);
            }
        });
        check_three_tiles(&kernel, [[1.0, 2.0], [3.0, 0.0]]);
    }
}

/// The last copy is over the elements of two others, of which its thread has started one.
#[test]
fn a_copy_over_those_of_several_threads_waits_for_all() {
    let kernel = kernel("over", |k| {
        let z = k.output("z", F32, [2, 128]);
        k.threads(64);
        let [a, b] = ["a", "b"].map(|name| k.shared(name, F32, [128]));
        let both = k.shared("both", F32, [2, 128]);
        k.fill(a, 1.0);
        k.fill(b, 2.0);
        k.parallel([2, 128], |k, [i, j]| k.store(both, (&i, &j), (1 - &i + 127 - j).cast(F32)));
        k.role("one", 1, |k| k.copy_async(z.sub((0, ..)), a));
        k.role("other", 1, |k| {
            k.copy_async(z.sub((1, ..)), b);
            k.copy_async(z, both);
        });
    });
    assert!(calls(&kernel).windows(2).any(|pair| pair == ["bulk_wait<0>", "__syncthreads"]), "{:?}", calls(&kernel));
    let z = tensor(F32, &[2, 128], |at| (1 - at / 128 + 127 - at % 128) as f64);
    check_all_in_schedules(&kernel, &[], &[], &[z]);
}

/// Each role waits for its own copies, so the loops of two roles run at the same time.
#[test]
fn roles_wait_for_their_own_copies_alone() {
    let kernel = kernel("loops", |k| {
        let rows = k.size("rows");
        let y = k.output("y", F32, (2, rows, 128));
        k.threads(96);
        for (at_role, (name, warps)) in (0..).zip([("two", 2), ("single", 1)]) {
            let tile = k.shared(&format!("of_{name}"), F32, [128]);
            k.serial("t", ..rows, |k, t| {
                k.role(name, warps, |k| {
                    k.parallel([128], |k, [i]| k.store(tile, (&i,), (127 - &i + t + at_role).cast(F32)));
                    k.copy_async(y.sub((at_role, t, ..)), tile);
                });
            });
        }
    });
    assert!(!calls(&kernel).contains(&"__syncthreads".to_string()), "{:?}", calls(&kernel));
    for rows in [1, 2, 5] {
        let y = |at: i64| (127 - at % 128 + at / 128 % rows + at / (128 * rows)) as f64;
        check_all_in_schedules(&kernel, &[("rows", rows)], &[], &[tensor(F32, &[2, rows, 128], y)]);
    }
}

/// A role that has waited for its copy does not wait again, and the other threads still do.
#[test]
fn a_role_waits_once() {
    let kernel = kernel("once", |k| {
        let x = k.input("x", F32, [128]);
        let y = k.output("y", F32, [3, 128]);
        k.threads(96);
        let tile = k.shared("tile", F32, [128]);
        k.role("two", 2, |k| {
            k.copy_async(tile, x);
            for row in 0..2 {
                k.parallel([128], |k, [i]| k.store(y, (row, &i), tile.at((127 - &i,)) + row as f64));
            }
        });
        k.parallel([128], |k, [i]| k.store(y, (2, &i), tile.at((127 - &i,))));
    });
    let cuda = compiled(&kernel).cuda().to_string();
    let waits = cuda.lines().filter(|line| line.trim_start().starts_with("cp_async_wait<")).count();
    assert_eq!(waits, 2, "{cuda}");
    let y = tensor(F32, &[3, 128], |at| number(127 - at % 128) + f64::from(at / 128 == 1));
    check_all_in_schedules(&kernel, &[], &[tensor(F32, &[128], number)], &[y]);
}
