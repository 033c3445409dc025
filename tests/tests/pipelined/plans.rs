//! What the plan of a pipelined loop says, and the reasons why one runs serially.

use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};

use super::{number, plan, product};

#[test]
fn the_plan_of_a_loop_tells_stages_bytes_and_the_barrier() {
    assert_eq!(
        plan(&product(Stages::of(3))),
        "  __syncthreads: all threads see the barriers of the stages
  full mbarriers: the copies of an iteration have arrived
  empty mbarriers: all warps have finished with the stage that is copied to next
* tma: cost 44; 3 stages of `left`, `right`: 4096 B each; copies run 2 iterations ahead; one thread issues 2 boxes
      22 instructions, 0 registers
  cp_async: cost 138; 3 stages of `left`, `right`: 4096 B each; copies run 2 iterations ahead
      69 instructions, 0 registers"
    );
    assert_eq!(
        plan(&product(Stages::of(3).variant("cp_async"))),
        "  __syncthreads: all threads see the copies of all threads, and have finished with the stage that is copied to next
  tma: cost 44; 3 stages of `left`, `right`: 4096 B each; copies run 2 iterations ahead; one thread issues 2 boxes
      22 instructions, 0 registers
* cp_async: cost 138, forced; 3 stages of `left`, `right`: 4096 B each; copies run 2 iterations ahead
      69 instructions, 0 registers"
    );
}

/// A loop that does not run ahead, with the reason.
fn serial(body: impl FnOnce(&mut KernelBuilder, [Buffer; 2], Buffer, Buffer)) -> String {
    let kernel = kernel("serial", |k| {
        let x = k.input("x", F32, [8, 64]);
        let y = k.output("y", F32, [8, 64]);
        k.threads(64);
        let tile = k.shared("tile", F32, [64]);
        let sum = k.fragment("sum", F32, [64]);
        body(k, [x, y], tile, sum);
        k.copy(y.sub((0, ..)), sum);
    });
    plan(&kernel)
}

fn refused(reason: &str, accepted: &str) -> String {
    format!(
        "  cp_async: not possible
      {reason}; accepted: {accepted}
* serial: cost 0; nothing runs ahead
      0 instructions, 0 registers"
    )
}

#[test]
fn a_loop_that_does_not_run_ahead_says_why() {
    let use_tile = |k: &mut KernelBuilder, tile: Buffer, sum: Buffer| {
        k.parallel([64], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) + tile.at((63 - &i,))));
    };
    let nothing = serial(|k, [x, _], _, sum| {
        k.fill(sum, 0.0);
        k.pipelined("t", 0..8, 2, |k, t| {
            k.parallel([64], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) + x.at((&t, &i))));
        });
    });
    let text = "no statement of the loop copies a tile of a tensor to shared memory";
    assert_eq!(nothing, refused(text, "copies directly in the loop"));
    let one = serial(|k, [x, _], tile, sum| {
        k.fill(sum, 0.0);
        k.pipelined("t", 0..8, 1, |k, t| {
            k.copy(tile, x.sub((t, ..)));
            use_tile(k, tile, sum);
        });
    });
    assert_eq!(one, refused("the loop has 1 stage", "2 stages or more"));
    let outside = serial(|k, [x, _], tile, sum| {
        k.fill(sum, 0.0);
        k.pipelined("t", 0..8, 2, |k, t| {
            k.copy(tile, x.sub((t, ..)));
            use_tile(k, tile, sum);
        });
        use_tile(k, tile, sum);
    });
    assert_eq!(outside, refused("`tile` is used outside of the loop", "buffers that only the loop uses"));
    let before = serial(|k, [x, _], tile, sum| {
        k.fill(sum, 0.0);
        k.fill(tile, 0.0);
        k.pipelined("t", 0..8, 2, |k, t| {
            use_tile(k, tile, sum);
            k.copy(tile, x.sub((t, ..)));
        });
    });
    assert_eq!(before, refused("`tile` is used outside of the loop", "buffers that only the loop uses"));
    let gathered = serial(|k, [x, _], tile, sum| {
        let rows = k.input("rows", I32, [8]);
        k.fill(sum, 0.0);
        k.pipelined("t", 0..8, 2, |k, t| {
            k.parallel([64], |k, [i]| k.store(tile, (&i,), x.at((rows.at((&t,)).max(0).min(7), &i))));
            use_tile(k, tile, sum);
        });
    });
    assert_eq!(
        gathered,
        "  cp_async: not possible
      `parallel i`: an address depends on data; accepted: indices that are expressions
      `parallel i`: an address or a condition depends on data or on a table; accepted: tiles at indices that are expressions
* serial: cost 0; nothing runs ahead
      0 instructions, 0 registers"
    );
    let again = serial(|k, [x, _], tile, sum| {
        k.fill(sum, 0.0);
        k.pipelined("t", 0..8, 2, |k, t| {
            k.copy(tile, x.sub((t, ..)));
            k.parallel([64], |k, [i]| k.store(tile, (&i,), tile.at((&i,)) * 2.0));
            use_tile(k, tile, sum);
        });
    });
    let text = "other statements of the loop write `tile` too";
    assert_eq!(again, refused(text, "buffers that only copies write"));
    let twice = serial(|k, [x, _], tile, sum| {
        let half = k.view("half", tile, S([32], [2]));
        k.fill(sum, 0.0);
        k.pipelined("t", 0..8, 2, |k, t| {
            k.copy(tile, x.sub((&t, ..)));
            k.copy(half, x.sub((7 - &t, at(0, 32))));
            use_tile(k, tile, sum);
        });
    });
    assert_eq!(twice, refused("an iteration fills some elements of `tile` twice", "copies to different elements"));
    let of_warp = serial(|k, [x, _], tile, sum| {
        k.fill(sum, 0.0);
        k.pipelined("t", 0..8, 2, |k, t| {
            k.warp_at(1).copy(tile, x.sub((t, ..)));
            use_tile(k, tile, sum);
        });
    });
    let text = "`copy(tile, x[t])` is not in CTA scope";
    assert_eq!(of_warp, refused(text, "copies by all threads of the CTA"));
    let branch = serial(|k, [x, _], tile, sum| {
        k.fill(sum, 0.0);
        k.pipelined("t", 0..8, 2, |k, t| {
            k.if_(Value::from(&t).lt(9), |k| k.copy(tile, x.sub((&t, ..))).name("first"));
            use_tile(k, tile, sum);
        });
    });
    let text = "a shared buffer is filled inside of a branch, an inner loop or `each_thread`";
    assert_eq!(branch, refused(text, "copies directly in the loop"));
    let asked = serial(|k, [x, _], tile, sum| {
        k.fill(sum, 0.0);
        k.pipelined("t", 0..8, 2, |k, t| {
            k.copy(tile, x.sub((t, ..))).variant("elementwise");
            use_tile(k, tile, sum);
        });
    });
    assert_eq!(asked, refused("`copy(tile, x[t])` has the variant that is asked for", "copies without `.variant`"));
}

#[test]
fn a_tensor_that_the_kernel_writes_is_not_loaded_ahead() {
    let kernel = kernel("in_place", |k| {
        let x = k.inout("x", F32, [8, 64]);
        k.threads(64);
        let tile = k.shared("tile", F32, [64]);
        k.pipelined("t", 0..7, 3, |k, t| {
            k.copy(tile, x.sub((&t, ..)));
            k.parallel([64], |k, [i]| k.store(x, (&t + 1, &i), tile.at((63 - &i,)) + 1.0));
        });
    });
    let text = "the kernel writes `x`, which `copy(tile, x[t])` loads";
    assert_eq!(plan(&kernel), refused(text, "tensors that are only read"));
}

#[test]
fn there_are_at_most_as_many_stages_as_iterations() {
    let of = |iterations: i64| {
        serial(|k, [x, _], tile, sum| {
            k.fill(sum, 0.0);
            k.pipelined("t", 0..iterations, 4, |k, t| {
                k.copy(tile, x.sub((t, ..)));
                k.parallel([64], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) + tile.at((63 - &i,))));
            });
        })
    };
    assert_eq!(of(1), refused("the loop has at most 1 iteration", "2 iterations or more"));
    let three = "3 stages of `tile`, as many as iterations: 256 B each; copies run 2 iterations ahead";
    assert!(of(3).contains(three), "{}", of(3));
}

#[test]
fn there_are_as_many_stages_as_fit() {
    let of = |stages: i64| {
        kernel("large", |k| {
            let x = k.input("x", F32, [8, 16384]);
            let y = k.output("y", F32, [256]);
            k.threads(256);
            let tile = k.shared("tile", F32, [16384]);
            let sum = k.fragment("sum", F32, [256]);
            k.fill(sum, 0.0);
            k.pipelined("t", 0..8, stages, |k, t| {
                k.copy(tile, x.sub((t, ..)));
                k.parallel([256], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) + tile.at((255 - &i,))));
            });
            k.copy(y, sum);
        })
    };
    let text = plan(&of(5));
    let expected =
        "3 stages of `tile`, since 5 do not fit into shared memory: 65536 B each; copies run 2 iterations ahead";
    assert!(text.contains(expected), "{text}");
    let x = tensor(F32, &[8, 16384], number);
    let y = tensor(F32, &[256], |i| (0..8).map(|t| number(t * 16384 + 255 - i)).sum());
    check(&of(5), &[], &[x], &[y], Tolerance::EXACT);
}
