use tilewright::prelude::*;

fn two_layouts() -> Kernel {
    kernel("two_layouts", |k| {
        let b = k.output("b", F32, [4]);
        k.threads(64);
        let fragment = k.fragment("fragment", F32, S([4, 16], [16 * TX, 1 * TX]));
        let column = k.fragment("column", F32, S([4], [1 * TX]));
        k.fill(fragment, 0);
        k.parallel([4], |k, [row]| {
            k.store(column, (&row,), fragment.at((&row, 0)));
        });
        k.copy(b, column);
    })
}
