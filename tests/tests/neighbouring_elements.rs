//! Accesses of one iteration to neighbouring elements, as `x[2*i]` and `x[2*i + 1]`: they move as vectors.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::ir::plan::AccessCost;
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, computes, tensor};

fn number(at: i64) -> f64 {
    (at * 7 % 23 - 11) as f64
}

fn compiled(kernel: &Kernel) -> Artifact {
    compile(kernel.clone(), &Options::new(Target::Sm90a)).expect("it compiles")
}

fn accesses(kernel: &Kernel) -> Vec<AccessCost> {
    compiled(kernel).plans()[0].facts().expect("a plan").accesses.clone()
}

/// Products of complex numbers, whose parts are neighbours.
fn products(dtype: DType, count: i64) -> Kernel {
    kernel("products", |k| {
        let [a, b] = ["a", "b"].map(|name| k.input(name, dtype, [count, 2]));
        let z = k.output("z", dtype, [count, 2]);
        k.threads(64);
        k.parallel([count], |k, [i]| {
            let [ar, br] = [a, b].map(|of| of.at((i, 0)).cast(F32));
            let [ai, bi] = [a, b].map(|of| of.at((i, 1)).cast(F32));
            k.store(z, (i, 0), (ar * br - ai * bi).cast(dtype));
            k.store(z, (i, 1), (ar * bi + ai * br).cast(dtype));
        });
    })
}

#[test]
fn complex_numbers_move_in_vectors() {
    for dtype in [F32, F16] {
        for count in [256, 1000, 100, 3, 1] {
            let kernel = products(dtype, count);
            let shape = [count, 2];
            let small = |at: i64| (at * 5 % 7 - 3) as f64;
            let (a, b) = (tensor(dtype, &shape, number), tensor(dtype, &shape, small));
            let z = tensor(dtype, &shape, |at| {
                let (real, imaginary) = (at / 2 * 2, at / 2 * 2 + 1);
                match at % 2 {
                    0 => number(real) * small(real) - number(imaginary) * small(imaginary),
                    _ => number(real) * small(imaginary) + number(imaginary) * small(real),
                }
            });
            computes(&kernel, &[a, b], &[z]);
        }
        for access in accesses(&products(dtype, 1024)) {
            assert!(access.width == 16 && access.passes == access.ideal, "{access}");
        }
    }
}

#[test]
fn three_colours_of_a_point_move_in_vectors() {
    let grey = |points: i64| {
        kernel("grey", |k| {
            let (x, y) = (k.input("x", F32, [points, 3]), k.output("y", F32, [points]));
            k.threads(32);
            k.parallel([points], |k, [i]| {
                let [red, green, blue] = [0, 1, 2].map(|colour| x.at((i, colour)));
                k.store(y, (i,), red + green * 2.0 + blue * 4.0);
            });
        })
    };
    for points in [512, 96, 50, 1] {
        let y = tensor(F32, &[points], |at| number(at * 3) + number(at * 3 + 1) * 2.0 + number(at * 3 + 2) * 4.0);
        computes(&grey(points), &[tensor(F32, &[points, 3], number)], &[y]);
    }
    for access in accesses(&grey(512)) {
        assert_eq!(access.width, 16, "{access}");
    }
}

#[test]
fn planes_are_joined_and_separated_in_vectors() {
    let joined = kernel("joined", |k| {
        let (x, y) = (k.input("x", F16, [4, 512]), k.output("y", F16, [512, 4]));
        k.threads(64);
        k.parallel([512], |k, [i]| {
            for plane in 0..4 {
                k.store(y, (i, plane), x.at((plane, i)));
            }
        });
    });
    let y = tensor(F16, &[512, 4], |at| number(at % 4 * 512 + at / 4));
    computes(&joined, &[tensor(F16, &[4, 512], number)], &[y]);
    for access in accesses(&joined) {
        assert!(access.width >= 8, "{access}");
    }
}

#[test]
fn neighbours_of_other_iterations_are_loaded_apart() {
    let sums = |step: i64| {
        kernel("sums", |k| {
            let (x, y) = (k.input("x", F32, [4 * 128 + 4]), k.output("y", F32, [128]));
            k.threads(32);
            k.parallel([128], |k, [i]| {
                let parts = (0..4).map(|part| x.at((i * step + part,)));
                k.store(y, (i,), parts.reduce(|sum, part| sum + part).expect("four parts"));
            });
        })
    };
    for step in [1, 2, 3, 4] {
        let y = tensor(F32, &[128], |at| (0..4).map(|part| number(at * step + part)).sum());
        computes(&sums(step), &[tensor(F32, &[4 * 128 + 4], number)], &[y]);
    }
    let widths = |step: i64| accesses(&sums(step)).iter().map(|access| access.width).collect::<Vec<_>>();
    assert_eq!(widths(4), [16, 16]);
    // The second pair begins 8 bytes behind the first.
    assert_eq!(widths(2), [16, 8, 16]);
}

/// A pair is inside or outside as a whole if sizes are even.
#[test]
fn pairs_at_the_edge_of_a_tensor_are_guarded() {
    let swapped = |multiple: i64| {
        kernel("swapped", |k| {
            let n = k.size("n").multiple_of(multiple).max(1 << 20);
            let (x, y) = (k.input("x", F32, (n,)), k.output("y", F32, (n,)));
            let [c] = k.grid([n.ceil_div(256)]);
            k.threads(64);
            k.parallel([128], |k, [i]| {
                let [even, odd] = [0, 1].map(|part| c * 256 + i * 2 + part);
                k.store(y, (even,), x.at((odd,)));
                k.store(y, (odd,), x.at((even,)));
            });
        })
    };
    for (multiple, n) in [(1, 301), (1, 7), (2, 302), (2, 2), (4, 516), (4, 256)] {
        let y = tensor(F32, &[n], |at| if at ^ 1 < n { number(at ^ 1) } else { 0.0 });
        check(&swapped(multiple), &[("n", n)], &[tensor(F32, &[n], number)], &[y], Tolerance::EXACT);
    }
    for (multiple, width) in [(1, 4), (2, 8), (4, 16)] {
        assert!(accesses(&swapped(multiple)).iter().all(|access| access.width == width), "{multiple}");
    }
}

#[test]
fn pairs_of_shared_tiles_move_in_vectors() {
    let turned = kernel("turned", |k| {
        let (x, y) = (k.input("x", F32, [32, 64]), k.output("y", F32, [32, 64]));
        k.threads(64);
        let layout: Layout = "swizzle(M=2,B=3,S=3) o S[(32,64):(64,1)]".parse().expect("a layout");
        let tile = k.shared("tile", F32, ([32, 64], layout));
        k.copy(tile, x);
        k.parallel([32, 32], |k, [r, i]| {
            k.store(y, (r, i * 2), tile.at((r, i * 2 + 1)));
            k.store(y, (r, i * 2 + 1), tile.at((r, i * 2)));
        });
    });
    let y = tensor(F32, &[32, 64], |at| number(at ^ 1));
    computes(&turned, &[tensor(F32, &[32, 64], number)], &[y]);
}

/// Rows of an odd number of elements: a pair is aligned in every other row only.
#[test]
fn pairs_that_are_not_aligned_are_computed() {
    let halved = kernel("halved", |k| {
        let (x, y) = (k.input("x", F32, [16, 33]), k.output("y", F32, [16, 16]));
        k.threads(32);
        k.parallel([16, 16], |k, [r, i]| k.store(y, (r, i), x.at((r, i * 2)) - x.at((r, i * 2 + 1))));
    });
    let place = |at: i64| at / 16 * 33 + at % 16 * 2;
    let y = tensor(F32, &[16, 16], |at| number(place(at)) - number(place(at) + 1));
    computes(&halved, &[tensor(F32, &[16, 33], number)], &[y]);
}
/// A rotary embedding of pairs straight through global memory, without fragments.
#[test]
fn pairs_of_heads_are_rotated_in_vectors() {
    let (tokens, heads, dim) = (4, 8, 128);
    let rope = kernel("rope", |k| {
        let x = k.input("x", F16, [tokens, heads, dim]);
        let [cos, sin] = ["cos", "sin"].map(|name| k.input(name, F32, [tokens, dim / 2]));
        let y = k.output("y", F16, [tokens, heads, dim]);
        let [t] = k.grid([tokens]);
        k.threads(128);
        k.parallel([heads, dim / 2], |k, [h, i]| {
            let [a, b] = [0, 1].map(|part| x.at((t, h, i * 2 + part)).cast(F32));
            let [c, s] = [cos, sin].map(|of| of.at((t, i)));
            k.store(y, (t, h, i * 2), (a * c - b * s).cast(F16));
            k.store(y, (t, h, i * 2 + 1), (b * c + a * s).cast(F16));
        });
    });
    let angle = |at: i64| at / (heads * dim) * (dim / 2) + at % dim / 2;
    let [cosine, sine] = [5, 3].map(|step| move |at: i64| (at * step % 7 - 3) as f64);
    let y = tensor(F16, &[tokens, heads, dim], |at| match at % 2 {
        0 => number(at) * cosine(angle(at)) - number(at + 1) * sine(angle(at)),
        _ => number(at) * cosine(angle(at)) + number(at - 1) * sine(angle(at)),
    });
    let angles = [tokens, dim / 2];
    let given = [tensor(F16, &[tokens, heads, dim], number), tensor(F32, &angles, cosine), tensor(F32, &angles, sine)];
    computes(&rope, &given, &[y]);
    for access in accesses(&rope) {
        assert!(access.width == 16 && access.passes == access.ideal, "{access}");
    }
}

#[test]
fn pairs_in_an_inner_loop_move_in_vectors() {
    let swapped = kernel("swapped", |k| {
        let (x, y) = (k.input("x", F32, [64, 8]), k.output("y", F32, [64, 8]));
        k.threads(32);
        k.parallel([64], |k, [i]| {
            k.serial("pair", 0..4, |k, pair| {
                k.store(y, (&i, pair * 2), x.at((&i, pair * 2 + 1)));
                k.store(y, (&i, pair * 2 + 1), x.at((&i, pair * 2)));
            });
        });
    });
    computes(&swapped, &[tensor(F32, &[64, 8], number)], &[tensor(F32, &[64, 8], |at| number(at ^ 1))]);
    for access in accesses(&swapped) {
        assert_eq!(access.width, 16, "{access}");
    }
}

/// A tensor of which 4 elements are together inside or outside: on sm_100a, which moves 32 bytes at once, threads have 4 neighbours each,
/// not 8 with a gap between what two threads move at once.
#[test]
fn vectors_are_not_wider_than_an_edge_allows() {
    for (multiple, width) in [(1, 4), (2, 8), (4, 16), (8, 32)] {
        let copied = kernel("copied", |k| {
            let n = k.size("n").multiple_of(multiple);
            let (x, y) = (k.input("x", F32, (n,)), k.output("y", F32, (n,)));
            let [cta] = k.grid([n.ceil_div(1024)]);
            k.threads(128);
            let held = k.fragment("held", F32, [1024]);
            k.copy(held, x.sub((at(cta * 1024, 1024),)));
            k.parallel([1024], |k, [i]| k.store(y, (cta * 1024 + i,), held.at((i,)) + 1.0));
        });
        let artifact = compile(copied.clone(), &Options::new(Target::Sm100a)).expect("it compiles");
        for plan in artifact.plans() {
            for access in &plan.facts().expect("a plan").accesses {
                assert!(access.width == width && access.passes == access.ideal, "{multiple}: {access}");
            }
        }
        let y = tensor(F32, &[1000], |at| number(at) + 1.0);
        check(&copied, &[("n", 1000)], &[tensor(F32, &[1000], number)], &[y], Tolerance::EXACT);
    }
}
