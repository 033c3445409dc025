use tilewright::prelude::*;

pub(super) fn engine_stores() -> Kernel {
    kernel("engine_stores", |k| {
        let [m, n, depth] = ["m", "n", "k"].map(|name| k.size(name).multiple_of(8));
        let (a, b) = (k.input("a", BF16, (m, depth)), k.input("b", BF16, (n, depth)));
        let c = k.output("c", BF16, (m, n));
        let [column, row] = k.grid([n.ceil_div(128), m.ceil_div(128)]);
        let (rows, columns) = (at(row * 128, 128), at(column * 128, 128));
        k.threads(32 + 32 + 128);
        let factors = k.ring("factors", 4, |r| (r.shared("left", BF16, [128, 64]), r.shared("right", BF16, [128, 64])));
        let acc = k.ring("acc", 1, |r| r.tensor("sums", F32, [128, 128]));
        let out = k.shared("out", BF16, [128, 128]);
        k.role("load", 1, |k| {
            k.serial("t", ..depth.ceil_div(64), |k, t| {
                factors.produce(k, |k, (left, right)| {
                    k.copy(left, a.sub((rows, at(t * 64, 64))));
                    k.copy(right, b.sub((columns, at(t * 64, 64))));
                });
            });
        });
        k.role("multiply", 1, |k| {
            acc.produce(k, |k, sums| {
                k.fill(sums, 0);
                k.serial("t", ..depth.ceil_div(64), |k, _| {
                    factors.consume(k, |k, (left, right)| {
                        k.gemm_async(sums, left, right).with(Gemm { transpose_b: true, ..Gemm::PLAIN });
                    });
                });
            });
        });
        k.role("store", 4, |k| {
            acc.consume(k, |k, sums| {
                k.unroll("p", 0..4, |k, p| {
                    let held = k.fragment("held", F32, [128, 32]);
                    k.copy(held, sums.sub((.., at(p * 32, 32))));
                    k.parallel([128, 32], |k, [i, j]| k.store(out, (i, p * 32 + j), held.at((i, j)).cast(BF16)));
                });
            });
            k.copy_async(c.sub((rows, columns)), out);
        });
    })
}
