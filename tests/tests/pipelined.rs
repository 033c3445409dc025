//! Pipelined loops: copies to shared memory run ahead, and the result is that of the serial loop.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::ir::tile::Gemm;
use tilewright::prelude::*;
use tilewright::runtime::{Built, Device, HostTensor, Tolerance, compare_all, run_watched};
use tilewright::vgpu;
use tilewright_tests::mutants::{MutationReport, ending, mutants};
use tilewright_tests::pages::{check, tensor};
use tilewright_tests::toolchain::built_or_skipped;

fn compiled(kernel: &Kernel) -> Artifact {
    compile(kernel.clone(), &Options::new(Target::Sm100a)).unwrap_or_else(|found| panic!("{found:?}"))
}

/// A number for each element, exact in every float dtype, as are sums of their products.
fn number(at: i64) -> f64 {
    (at * 7 % 13) as f64 - 6.0
}

/// Writes a loop over the tiles of a tensor around the statements for one tile, given its first element.
type Loops = fn(&mut KernelBuilder, Size, i64, &mut dyn FnMut(&mut KernelBuilder, Expr));

/// `y[i]` is the sum of element `63 - i` of all tiles of `x`: another warp copies it.
fn turned_sum(stages: i64, loops: Loops) -> Kernel {
    kernel("turned_sum", |k| {
        let n = k.size("n");
        let x = k.input("x", F32, (n,));
        let y = k.output("y", F32, [64]);
        k.threads(64);
        let tile = k.shared("tile", F32, [64]);
        let sum = k.fragment("sum", F32, [64]);
        k.fill(sum, 0.0);
        loops(k, n, stages, &mut |k, first| {
            k.copy(tile, x.sub((at(first, 64),)));
            k.parallel([64], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) + tile.at((63 - &i,))));
        });
        k.copy(y, sum);
    })
}

/// The tiles that are whole, one after the other.
fn by_number(k: &mut KernelBuilder, n: Size, stages: i64, body: &mut dyn FnMut(&mut KernelBuilder, Expr)) {
    k.pipelined("t", ..n / 64, stages, |k, t| body(k, t * 64));
}

fn turned_sum_of(tiles: i64) -> HostTensor {
    tensor(F32, &[64], |i| (0..tiles).map(|tile| number(tile * 64 + 63 - i)).sum::<f64>() + 0.0)
}

/// Whether a kernel gives these results in a schedule of the virtual GPU.
fn is_right(
    (artifact, built): (&Artifact, &Built),
    inputs: &[HostTensor],
    expected: &[HostTensor],
    seed: u64,
) -> Result<bool, String> {
    let options = vgpu::Options { seed, ..vgpu::Options::default() };
    let run = run_watched(artifact, built, inputs, &Device::Virtual, &options, &mut |_| ())
        .map_err(|failure| failure.to_string())?;
    let compared = compare_all(&run.outputs, expected, Tolerance::EXACT).map_err(|why| why.to_string())?;
    Ok(compared.iter().all(|comparison| comparison.mismatch.is_none()))
}

#[test]
fn every_number_of_stages_gives_the_result_of_the_serial_loop() {
    for stages in 1..=6 {
        let kernel = turned_sum(stages, by_number);
        let artifact = compiled(&kernel);
        let Some(built) = built_or_skipped(&artifact, "pipelined loops") else { return };
        for tiles in 0..=9 {
            let n = tiles * 64 + 5;
            let bound = artifact.clone().for_sizes(&[("n", n)]).expect("a size");
            let (x, y) = (tensor(F32, &[n], number), turned_sum_of(tiles));
            for seed in 0..20 {
                let found = is_right((&bound, &built), std::slice::from_ref(&x), std::slice::from_ref(&y), seed);
                assert_eq!(
                    found,
                    Ok(true),
                    "{stages} stages, {tiles} tiles, schedule {seed}\n{}\n{}",
                    artifact.cuda(),
                    artifact.stage(tilewright::compile::Stage::Plan)
                );
            }
        }
    }
}

#[test]
fn loops_may_begin_anywhere_and_have_a_step() {
    let ranges: [(&str, Loops); 3] = [
        ("step", |k, n, stages, body| k.pipelined("t", (..n / 64 * 64).step(64), stages, |k, t| body(k, t))),
        ("begin", |k, n, stages, body| {
            k.pipelined("t", Expr::from(3)..n / 64 + 3, stages, |k, t| body(k, (t - 3) * 64))
        }),
        ("begin and step", |k, n, stages, body| {
            k.pipelined("t", (Expr::from(5)..n / 64 * 64 + 5).step(64), stages, |k, t| body(k, t - 5));
        }),
    ];
    for (name, range) in ranges {
        for stages in [2, 3, 4] {
            let kernel = turned_sum(stages, range);
            assert!(compiled(&kernel).cuda().contains("cp_async_wait"), "{name}");
            for tiles in [0, 1, 2, 7] {
                let n = tiles * 64 + 63;
                check(&kernel, &[("n", n)], &[tensor(F32, &[n], number)], &[turned_sum_of(tiles)], Tolerance::EXACT);
            }
        }
    }
}

#[test]
fn a_loop_in_a_loop_fills_its_buffers_again() {
    let kernel = kernel("rows", |k| {
        let (rows, cols) = (k.size("rows"), k.size("cols"));
        let x = k.input("x", F32, (rows, cols));
        let y = k.output("y", F32, [64]);
        k.threads(64);
        let tile = k.shared("tile", F32, [64]);
        let sum = k.fragment("sum", F32, [64]);
        k.fill(sum, 0.0);
        k.serial("row", ..rows, |k, row| {
            k.pipelined("t", ..cols.ceil_div(64), 3, |k, t| {
                k.copy(tile, x.sub((&row, at(t * 64, 64))));
                k.parallel([64], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) + tile.at((63 - &i,))));
            });
        });
        k.copy(y, sum);
    });
    for (rows, cols) in [(1, 1), (3, 64), (4, 65), (2, 300), (5, 127)] {
        let element = |i: i64| {
            let places = (0..rows).flat_map(|row| (0..8).map(move |tile| (row, tile * 64 + 63 - i)));
            places.filter(|(_, col)| *col < cols).map(|(row, col)| number(row * cols + col)).sum::<f64>() + 0.0
        };
        let (x, y) = (tensor(F32, &[rows, cols], number), tensor(F32, &[64], element));
        check(&kernel, &[("rows", rows), ("cols", cols)], &[x], &[y], Tolerance::EXACT);
    }
}

/// `c = a*b`, with copies as ops.
fn product(stages: i64) -> Kernel {
    kernel("product", |k| {
        let (m, n, depth) = (k.size("m"), k.size("n").multiple_of(8), k.size("depth").multiple_of(8));
        let a = k.input("a", F16, (m, depth));
        let b = k.input("b", F16, (depth, n));
        let c = k.output("c", F32, (m, n));
        let [column, row] = k.grid([n.ceil_div(32), m.ceil_div(32)]);
        k.threads(64);
        let left = k.shared("left", F16, [32, 32]);
        let right = k.shared("right", F16, [32, 32]);
        let sums = k.fragment("sums", F32, [32, 32]);
        k.fill(sums, 0.0);
        k.pipelined("t", ..depth.ceil_div(32), stages, |k, t| {
            k.copy(left, a.sub((at(row * 32, 32), at(&t * 32, 32))));
            k.copy(right, b.sub((at(&t * 32, 32), at(column * 32, 32))));
            k.gemm(sums, left, right).with(Gemm::PLAIN);
        });
        k.copy(c.sub((at(row * 32, 32), at(column * 32, 32))), sums);
    })
}

fn product_of(m: i64, n: i64, depth: i64) -> ([HostTensor; 2], HostTensor) {
    let b = |at: i64| number(at + 4);
    let element = |at: i64| (0..depth).map(|d| number(at / n * depth + d) * b(d * n + at % n)).sum();
    ([tensor(F16, &[m, depth], number), tensor(F16, &[depth, n], b)], tensor(F32, &[m, n], element))
}

#[test]
fn a_product_streams_ragged_matrices() {
    for (m, n, depth) in [(1, 8, 8), (32, 32, 32), (33, 40, 104), (70, 8, 200)] {
        let (inputs, c) = product_of(m, n, depth);
        check(&product(3), &[("m", m), ("n", n), ("depth", depth)], &inputs, &[c], Tolerance::EXACT);
    }
}

/// A launch of a kernel: its sizes, its inputs and what it computes.
type Launched = (Vec<(&'static str, i64)>, Vec<HostTensor>, HostTensor);

/// Drops or changes each wait, commit and barrier, one at a time; counts what 20 schedules of any of the launches find.
fn mutated(kernel: &Kernel, launches: &[Launched]) -> Option<MutationReport> {
    let artifact = compiled(kernel);
    let built = built_or_skipped(&artifact, "mutants of pipelined loops")?;
    let bound: Vec<Artifact> =
        launches.iter().map(|(sizes, ..)| artifact.clone().for_sizes(sizes).expect("sizes")).collect();
    let mut report = MutationReport::default();
    for mutant in mutants(&built.ptx) {
        let mut changed = built.clone();
        changed.ptx = mutant.text.clone();
        let attempt = |_: &vgpu::Module, seed: u64| {
            Ok(bound.iter().zip(launches).all(|(artifact, (_, inputs, expected))| {
                is_right((artifact, &changed), inputs, std::slice::from_ref(expected), seed) == Ok(true)
            }))
        };
        report.add(&mutant, &ending(&mutant, 20, &attempt));
    }
    Some(report)
}

/// NVRTC writes two iterations of a loop out and puts an odd last one after the loop. Its commit closes a group of nothing, so
/// nobody misses that.
#[test]
fn every_wait_commit_and_barrier_is_needed() {
    let sum = |tiles: i64| (vec![("n", 64 * tiles)], vec![tensor(F32, &[64 * tiles], number)], turned_sum_of(tiles));
    let of_product = |depth: i64| {
        let (inputs, c) = product_of(33, 40, depth);
        (vec![("m", 33), ("n", 40), ("depth", depth)], inputs.to_vec(), c)
    };
    for stages in [2, 3, 4] {
        let cases =
            [(turned_sum(stages, by_number), [sum(7), sum(8)]), (product(stages), [of_product(200), of_product(232)])];
        for (kernel, launches) in cases {
            let Some(report) = mutated(&kernel, &launches) else { return };
            let is_last_commit = |(operator, ..): &(&str, usize, String)| *operator == "drop commit";
            let found = report.survivors.len() <= 1 && report.survivors.iter().all(is_last_commit);
            assert!(report.mutants() >= 5 && found, "{stages} stages, {}: {report:#?}", kernel.name);
        }
    }
}

/// The plan of a loop.
fn plan(kernel: &Kernel) -> String {
    let artifact = compiled(kernel);
    let plan = artifact.plans().iter().find(|plan| plan.title.starts_with("pipelined")).expect("a plan");
    plan.to_string().lines().skip(1).collect::<Vec<&str>>().join("\n")
}

#[test]
fn the_plan_of_a_loop_tells_stages_bytes_and_the_barrier() {
    assert_eq!(
        plan(&product(3)),
        "  __syncthreads: all threads see the copies of all threads, and have finished with the stage that is copied to next
* cp_async: cost 10; 3 stages of `left`, `right`: 4096 B each; copies run 2 iterations ahead
      5 instructions, 0 registers"
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

/// The result of a loop in which `fill` fills a tile of 64 from row `t` of `x`, and the tile is read backwards; for 64 threads.
fn turned_rows(dtype: DType, threads: i64, fill: impl FnOnce(&mut KernelBuilder, Buffer, Buffer, Expr)) -> Kernel {
    kernel("turned_rows", |k| {
        let x = k.input("x", dtype, [6, 64]);
        let y = k.output("y", dtype, [6, 64]);
        k.threads(threads);
        let tile = k.shared("tile", dtype, [64]);
        k.pipelined("t", 0..6, 3, |k, t| {
            fill(k, tile, x, t);
            k.parallel([64], |k, [i]| k.store(y, (&t, &i), tile.at((63 - &i,))));
        });
    })
}

fn check_turned_rows(kernel: &Kernel, dtype: DType, from: impl Fn(i64, i64) -> f64) {
    let x = tensor(dtype, &[6, 64], number);
    check(kernel, &[], &[x], &[tensor(dtype, &[6, 64], |at| from(at / 64, 63 - at % 64))], Tolerance::EXACT);
}

/// Asynchronous copies to the same bytes would be in no order.
#[test]
fn the_last_of_two_copies_to_the_same_elements_counts() {
    let twice = turned_rows(I32, 96, |k, tile, x, t| {
        k.copy(tile, x.sub((5 - &t, ..)));
        k.copy(tile, x.sub((&t, ..)));
    });
    check_turned_rows(&twice, I32, |t, i| number(t * 64 + i));
    let part = turned_rows(I32, 96, |k, tile, x, t| {
        k.copy(tile, x.sub((&t, ..)));
        k.copy(tile.sub((at(48, 16),)), x.sub((5 - &t, at(0, 16))));
    });
    check_turned_rows(&part, I32, |t, i| if i < 48 { number(t * 64 + i) } else { number((5 - t) * 64 + i - 48) });
    let any = turned_rows(I32, 64, |k, tile, x, t| {
        k.parallel([128], |k, [i]| k.store(tile, (&i / 2,), x.at((&t, &i / 2))).any_wins());
    });
    check_turned_rows(&any, I32, |t, i| number(t * 64 + i));
}

/// The cheapest loads and stores take elements one by one, so that no thread idles; asynchronous copies cannot.
#[test]
fn a_copy_of_few_narrow_elements_is_asynchronous() {
    for dtype in [U16, U8, F32] {
        for threads in [33, 64, 256] {
            let kernel = turned_rows(dtype, threads, |k, tile, x, t| {
                k.copy(tile, x.sub((t, ..)));
            });
            assert!(plan(&kernel).contains("* cp_async"), "{dtype}, {threads} threads: {}", plan(&kernel));
        }
    }
    let kernel = turned_rows(I32, 33, |k, tile, x, t| {
        k.copy(tile, x.sub((t, ..)));
    });
    check_turned_rows(&kernel, I32, |t, i| number(t * 64 + i));
}

#[test]
fn rows_that_are_known_at_launch_are_copied_by_some_of_the_threads() {
    for threads in [32, 33, 256] {
        let kernel = kernel("ragged", |k| {
            let m = k.size("m").max(8);
            let x = k.input("x", F32, (m, 96));
            let y = k.output("y", F32, [8]);
            k.threads(threads);
            let tile = k.shared("tile", F32, [8, 16]);
            let sum = k.fragment("sum", F32, [8]);
            k.fill(sum, 0.0);
            k.pipelined("t", 0..6, 2, |k, t| {
                k.copy(tile, x.sub((at(0, 8), at(t * 16, 16))));
                k.parallel([8], |k, [i]| {
                    let all = (0..16).map(|j| tile.at((7 - &i, j))).fold(sum.at((&i,)), |sum, element| sum + element);
                    k.store(sum, (&i,), all)
                });
            });
            k.copy(y, sum);
        });
        assert!(plan(&kernel).contains("* cp_async"), "{threads} threads: {}", plan(&kernel));
        for m in [1, 5, 8] {
            let row = |row: i64| if row < m { (0..96).map(|j| number(row * 96 + j)).sum::<f64>() + 0.0 } else { 0.0 };
            let (x, y) = (tensor(F32, &[m, 96], number), tensor(F32, &[8], |i| row(7 - i)));
            check(&kernel, &[("m", m)], &[x], &[y], Tolerance::EXACT);
        }
    }
}

/// The copies of an unrolled loop share the stages.
#[test]
fn a_pipelined_loop_in_an_unrolled_one_has_its_stages_once() {
    let kernel = kernel("unrolled", |k| {
        let x = k.input("x", I32, [6, 64]);
        let y = k.output("y", I32, [4, 6, 64]);
        k.threads(96);
        let tile = k.shared("tile", I32, [64]);
        k.unroll("u", 0..4, |k, u| {
            k.pipelined("t", 0..6, 3, |k, t| {
                k.copy(tile, x.sub((&t, ..)));
                k.parallel([64], |k, [i]| k.store(y, (&u, &t, &i), tile.at((63 - &i,)) + u));
            });
        });
    });
    let artifact = compiled(&kernel);
    let plans: Vec<&str> = artifact
        .plans()
        .iter()
        .filter_map(|plan| Some(plan.facts()?.summary.as_str()))
        .filter(|text| text.contains("stages"))
        .collect();
    assert_eq!(plans, ["3 stages of `tile`: 256 B each; copies run 2 iterations ahead"; 4]);
    let x = tensor(I32, &[6, 64], number);
    let y = tensor(I32, &[4, 6, 64], |at| number(at / 64 % 6 * 64 + 63 - at % 64) + (at / 384) as f64);
    check(&kernel, &[], &[x], &[y], Tolerance::EXACT);
}

/// `y[i]` is the sum of twice element `63 - i` of all tiles of bytes.
fn scaled_sum(stages: i64) -> Kernel {
    kernel("scaled_sum", |k| {
        let n = k.size("n");
        let x = k.input("x", I8, (n,));
        let y = k.output("y", F32, [64]);
        k.threads(64);
        let tile = k.shared("tile", F32, [64]);
        let sum = k.fragment("sum", F32, [64]);
        k.fill(sum, 0.0);
        k.pipelined("t", ..n.ceil_div(64), stages, |k, t| {
            k.parallel([64], |k, [i]| k.store(tile, (i,), x.at((t * 64 + i,)).cast(F32) * 2.0));
            k.parallel([64], |k, [i]| k.store(sum, (i,), sum.at((i,)) + tile.at((63 - i,))));
        });
        k.copy(y, sum);
    })
}

fn scaled_sum_of(n: i64) -> HostTensor {
    let element = |at: i64| if at < n { 2.0 * number(at) } else { 0.0 };
    tensor(F32, &[64], |i| (0..n / 64 + 1).map(|tile| element(tile * 64 + 63 - i)).sum())
}

#[test]
fn what_is_computed_on_the_way_runs_ahead_through_registers() {
    let expected = "* through_registers: cost 10; 2 stages of `tile`, since registers hold one iteration: 256 B each; copies run 1 \
                    iteration ahead, through registers";
    assert!(plan(&scaled_sum(3)).contains(expected), "{}", plan(&scaled_sum(3)));
    for stages in [2, 3] {
        let artifact = compiled(&scaled_sum(stages));
        let Some(built) = built_or_skipped(&artifact, "pipelined loops through registers") else { return };
        for n in [1, 63, 64, 65, 128, 129, 500] {
            let bound = artifact.clone().for_sizes(&[("n", n)]).expect("a size");
            let (x, y) = (tensor(I8, &[n], number), scaled_sum_of(n));
            for seed in 0..20 {
                let found = is_right((&bound, &built), std::slice::from_ref(&x), std::slice::from_ref(&y), seed);
                assert_eq!(found, Ok(true), "{stages} stages, n = {n}, schedule {seed}\n{}", artifact.cuda());
            }
        }
    }
    let launches = [448, 500].map(|n| (vec![("n", n)], vec![tensor(I8, &[n], number)], scaled_sum_of(n)));
    let Some(report) = mutated(&scaled_sum(2), &launches) else { return };
    assert!(report.mutants() >= 1 && report.survivors.is_empty(), "{report:#?}");
}

/// One factor is copied, the other is converted.
#[test]
fn some_copies_are_asynchronous_and_others_go_through_registers() {
    let kernel = kernel("mixed", |k| {
        let depth = k.size("depth").multiple_of(8);
        let a = k.input("a", F16, (32, depth));
        let b = k.input("b", F32, (depth, 32));
        let c = k.output("c", F32, [32, 32]);
        k.threads(64);
        let left = k.shared("left", F16, [32, 32]);
        let right = k.shared("right", F16, [32, 32]);
        let sums = k.fragment("sums", F32, [32, 32]);
        k.fill(sums, 0.0);
        k.pipelined("t", ..depth.ceil_div(32), 3, |k, t| {
            k.copy(left, a.sub((.., at(t * 32, 32))));
            k.parallel([32, 32], |k, [i, j]| k.store(right, (i, j), b.at((t * 32 + i, j)).cast(F16)));
            k.gemm(sums, left, right);
        });
        k.copy(c, sums);
    });
    let text = plan(&kernel);
    let expected =
        "3 stages of `left`, `right`: 4096 B each; copies run 2 iterations ahead, those to `right` through registers";
    assert!(text.contains(expected), "{text}");
    for depth in [8, 32, 40, 200] {
        let element = |at: i64| (0..depth).map(|d| number(at / 32 * depth + d) * number(d * 32 + at % 32)).sum();
        let inputs = [tensor(F16, &[32, depth], number), tensor(F32, &[depth, 32], number)];
        check(&kernel, &[("depth", depth)], &inputs, &[tensor(F32, &[32, 32], element)], Tolerance::EXACT);
    }
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
