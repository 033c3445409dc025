use tilewright::prelude::*;

pub(super) fn naive() -> Kernel {
    kernel("naive", |k| {
        let [m, n, depth] = ["m", "n", "k"].map(|name| k.size(name).multiple_of(8).max(1 << 19));
        let (a, b) = (k.input("a", BF16, (m, depth)), k.input("b", BF16, (n, depth)));
        let c = k.output("c", BF16, (m, n));
        let [column, row] = k.grid([n.ceil_div(16), m.ceil_div(16)]);
        let (rows, columns) = (at(row * 16, 16), at(column * 16, 16));
        k.threads(256);
        let sums = k.fragment("sums", F32, [16, 16]);
        k.fill(sums, 0);
        k.serial("t", ..depth, |k, t| {
            k.parallel([16, 16], |k, [i, j]| {
                let (left, right) = (a.at((row * 16 + i, t)), b.at((column * 16 + j, t)));
                k.store(sums, (i, j), sums.at((i, j)) + left.cast(F32) * right.cast(F32));
            });
        });
        let rounded = k.fragment("rounded", BF16, [16, 16]);
        k.map(rounded, |[i, j]| sums.at((i, j)).cast(BF16));
        k.copy(c.sub((rows, columns)), rounded);
    })
}
