use tilewright::prelude::*;

pub(super) fn ahead() -> Kernel {
    kernel("ahead", |k| {
        let [m, n, depth] = ["m", "n", "k"].map(|name| k.size(name).multiple_of(8));
        let (a, b) = (k.input("a", BF16, (m, depth)), k.input("b", BF16, (n, depth)));
        let c = k.output("c", BF16, (m, n));
        let [column, row] = k.grid([n.ceil_div(128), m.ceil_div(128)]);
        let (rows, columns) = (at(row * 128, 128), at(column * 128, 128));
        k.threads(256);
        let (left, right) = (k.shared("left", BF16, [128, 64]), k.shared("right", BF16, [128, 64]));
        let sums = k.fragment("sums", F32, [128, 128]);
        k.fill(sums, 0);
        k.pipelined("t", ..depth.ceil_div(64), 4, |k, t| {
            k.copy(left, a.sub((rows, at(t * 64, 64))));
            k.copy(right, b.sub((columns, at(t * 64, 64))));
            k.gemm(sums, left, right).with(Gemm { transpose_b: true, ..Gemm::PLAIN });
        });
        let rounded = k.fragment("rounded", BF16, [128, 128]);
        k.map(rounded, |[i, j]| sums.at((i, j)).cast(BF16));
        k.copy(c.sub((rows, columns)), rounded);
    })
}
