//! Indices that a CTA cannot load, and tensors that cannot end where a view says.

use super::*;

fn with_tensors(body: impl FnOnce(&mut KernelBuilder<'_>, [Buffer; 2], Buffer, Size)) -> Kernel {
    kernel("k", |k| {
        let n = k.size("n");
        let (x, y) = (k.input("x", F32, (n, 32)), k.output("y", F32, (n, 32)));
        let begins = k.input("begins", I32, (n,));
        body(k, [x, y], begins, n);
    })
}

fn assert_wrong(name: &str, body: impl FnOnce(&mut KernelBuilder<'_>, [Buffer; 2], Buffer, Size)) {
    assert_mistake(name, with_tensors(body));
}

#[test]
fn indices_that_cannot_be_loaded() {
    assert_wrong("an_index_that_is_no_integer", |k, [x, y], _, n| {
        let row = k.index("row", x.at((0, 0)), n - 1);
        k.copy(y.sub((row, ..)), x.sub((row, ..)));
    });
    assert_wrong("an_index_of_what_the_kernel_writes", |k, [x, y], _, n| {
        let count = k.inout("count", I32, [1]);
        let row = k.index("row", count.at((0,)), n - 1);
        k.copy(y.sub((row, ..)), x.sub((row, ..)));
    });
    assert_wrong("an_index_of_a_loop", |k, [x, y], begins, n| {
        k.serial("t", 0..4, |k, t| {
            let row = k.index("row", begins.at((t,)), n - 1);
            k.copy(y.sub((row, ..)), x.sub((row, ..)));
        });
    });
    assert_wrong("an_index_that_differs_between_warps", |k, [x, y], begins, n| {
        k.threads(64);
        let warp = k.warp_id();
        let row = k.index("row", begins.at((warp,)), n - 1);
        k.copy(y.sub((row, ..)), x.sub((row, ..)));
    });
    assert_wrong("an_index_below_zero", |k, [x, y], begins, n| {
        let row = k.index("row", begins.at((0,)), n - 2);
        k.copy(y.sub((row, ..)), x.sub((row, ..)));
    });
    assert_wrong("an_index_with_the_name_of_a_tensor", |k, [x, y], begins, n| {
        let row = k.index("x", begins.at((0,)), n - 1);
        k.copy(y.sub((row, ..)), x.sub((row, ..)));
    });
}

#[test]
fn tensors_that_cannot_end_there() {
    assert_mistake(
        "a_tensor_of_a_loaded_extent",
        with_tensors(|k, [_, y], begins, n| {
            let end = k.index("end", begins.at((0,)), n);
            let z = k.input("z", F32, (end, 32));
            k.copy(y.sub((0, ..)), z.sub((0, ..)));
        }),
    );
    assert_mistake(
        "a_view_that_may_be_larger",
        with_tensors(|k, [x, y], begins, n| {
            let end = k.index("end", begins.at((0,)), n + 1);
            let own = k.truncated("own", x, 0, end);
            k.copy(y.sub((0, ..)), own.sub((0, ..)));
        }),
    );
    assert_mistake(
        "a_dimension_to_truncate_that_is_not_there",
        with_tensors(|k, [x, y], _, _| {
            let own = k.truncated("own", x, 2, 4);
            k.copy(y.sub((0, ..)), own.sub((0, ..)));
        }),
    );
    assert_mistake(
        "a_fragment_to_truncate",
        with_tensors(|k, [x, y], _, _| {
            let v = k.fragment("v", F32, [32]);
            let own = k.truncated("own", v, 0, 4);
            k.copy(y.sub((0, ..)), own);
            k.copy(v, x.sub((0, ..)));
        }),
    );
    assert_mistake(
        "a_grid_of_a_loaded_index",
        with_tensors(|k, [x, y], begins, n| {
            let end = k.index("end", begins.at((0,)), n);
            let [row] = k.grid([end]);
            k.copy(y.sub((row, ..)), x.sub((row, ..)));
        }),
    );
}
