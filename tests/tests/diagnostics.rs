//! Diagnostics for mistakes: kernels with one mistake each; the whole rendered text is compared.

mod atomics;
mod elements;
mod inference;
mod layouts;
mod roles;
mod scans;
mod tuples;
mod warps;

use insta::{assert_snapshot, with_settings};
use tilewright::compile::{LowerOptions, Options, compile};
use tilewright::diag::Diagnostic;
use tilewright::layout::{ComposeLayout, LayoutError};
use tilewright::prelude::*;
use tilewright::viz::{Style, render_all};
use tilewright_tests::toolchain::{package, workspace};

fn assert_rendered(name: &str, diagnostics: &[Diagnostic]) {
    let source = |file: &str| std::fs::read_to_string(workspace().join(file)).ok();
    let text = render_all(diagnostics, &source, Style::Plain);
    let folder = package().join("snapshots/diagnostics");
    with_settings!({ snapshot_path => folder, prepend_module_to_snapshot => false, omit_expression => true }, {
        assert_snapshot!(name, text);
    });
}

/// Compiles a kernel that must not compile, and compares the diagnostics.
fn assert_mistake(name: &str, kernel: Kernel) {
    let found = compile(kernel, &Options::new(Target::Sm100a)).expect_err("the kernel is a mistake");
    assert_rendered(name, &found);
}

#[test]
fn notation() {
    let texts = [
        "S[(8,2):(4@)]",
        "S[(8,2):(4,)]",
        "S[(0,4):(4,1)]",
        "S[8:1] + S[4:2]",
        "S[8:1] * 2",
        "S[8 1]",
        "S[99999999999999999999:1]",
        "swizzle(M=3,B=3) o S[64:1]",
    ];
    let found: Vec<Diagnostic> =
        texts.iter().map(|text| text.parse::<Layout>().expect_err("no layout").diagnostic()).collect();
    assert_rendered("notation", &found);
}

#[test]
fn questions_to_layouts() {
    let layout = |text: &str| text.parse::<TileLayout>().expect("a layout");
    let straddling = 5..10;
    let empty = 3..3;
    let errors = [
        layout("S[8:1]").apply(8).expect_err("outside"),
        layout("S[(4,2):(2,1)]").apply_digits(&[1]).expect_err("rank"),
        layout("S[8:1]").apply_in(&[0, 0], &[3, 3]).expect_err("size"),
        layout("S[(2,3,4):(50,9,1)]").group(&[4, 6]).expect_err("no group"),
        layout("S[8:1]").slice(&[8], std::slice::from_ref(&empty)).expect_err("empty"),
        layout("S[(2,2,3):(1000,100,8)]").slice(&[12], std::slice::from_ref(&straddling)).expect_err("carries"),
        S([0], [1]).build().expect_err("no extent"),
        S([1 << 40, 1 << 40], [1i64, 1 << 40]).build().expect_err("too big"),
        SwizzleLayout::new(3, 3, 2, true).expect_err("S below B"),
        ComposeLayout::new(SwizzleLayout::new(3, 3, 3, true).expect("a swizzle"), layout("S[64:1@laneid]"))
            .expect_err("lanes"),
        LayoutError::TooLarge { points: 1 << 23 },
    ];
    assert_rendered("questions_to_layouts", &errors.iter().map(|e| e.diagnostic()).collect::<Vec<_>>());
}

#[test]
fn the_kernel_itself() {
    assert_mistake("kernel_name", kernel("my kernel", |_| {}));
    assert_mistake("kernel_threads", kernel("k", |k| k.threads(2000)));
    let half_a_warp = kernel("k", |k| {
        k.threads(48);
        let a = k.input("a", F32, [4, 32]);
        let b = k.output("b", F32, [4, 32]);
        k.warp().copy(b, a);
    });
    assert_mistake("an_op_of_warps_that_are_not_whole", half_a_warp);
    assert_mistake(
        "kernel_grid",
        kernel("k", |k| {
            k.grid([0, 70_000, 1]);
        }),
    );
    assert_mistake(
        "kernel_grid_rank",
        kernel("k", |k| {
            k.grid([1, 1, 1, 1]);
        }),
    );
}

#[test]
fn buffers() {
    assert_mistake(
        "buffer_name",
        kernel("k", |k| {
            k.input("lane", F32, [8]);
        }),
    );
    assert_mistake(
        "buffer_of_nvrtc",
        kernel("k", |k| {
            k.input("__cuda_x", F32, [8]);
        }),
    );
    assert_mistake(
        "buffer_name_taken",
        kernel("k", |k| {
            k.input("a", F32, [8]);
            k.output("a", F32, [8]);
        }),
    );
    assert_mistake(
        "buffer_layout",
        kernel("k", |k| {
            k.input("a", F32, S([4, 0], [1, 4]));
        }),
    );
    assert_mistake(
        "buffer_axis",
        kernel("k", |k| {
            k.shared("t", F32, S([32, 2], [1 * LANEID, 1 * M]));
        }),
    );
    assert_mistake(
        "fragment_axis",
        kernel("k", |k| {
            k.fragment("t", F32, "S[(4,2):(1@bx,1)]".parse::<TileLayout>().expect("a layout"));
        }),
    );
    assert_mistake(
        "buffer_below_zero",
        kernel("k", |k| {
            k.input("a", F32, S([8], [-1]));
        }),
    );
    assert_mistake(
        "buffer_shares_places",
        kernel("k", |k| {
            k.output("b", F32, S([4, 4], [3, 1]));
        }),
    );
    assert_mistake(
        "view_too_large",
        kernel("k", |k| {
            let t = k.shared("t", F32, [32]);
            k.view("v", t, [33]);
        }),
    );
    assert_mistake(
        "shared_too_large",
        kernel("k", |k| {
            k.shared("small", F32, [64]);
            k.shared("large", F32, [60_000]);
        }),
    );
}

#[test]
fn fragments_and_replicas() {
    assert_mistake(
        "view_of_a_fragment",
        kernel("k", |k| {
            let held = k.fragment("held", F32, S([32, 2], [1 * LANEID, 1 * M]));
            k.view("again", held, S([32, 2], [1 * LANEID, 1 * M]));
        }),
    );
    assert_mistake(
        "transposed_view_of_a_fragment",
        kernel("k", |k| {
            let held = k.fragment("held", F32, [32, 2]);
            k.transposed("turned", held, [1, 0]);
        }),
    );
    assert_mistake(
        "transposed_view_as_a_shape",
        kernel("k", |k| {
            let a = k.input("a", F32, [16, 32]);
            let turned = k.transposed("turned", a, [1, 0]);
            k.view("flat", turned, [512]);
        }),
    );
    assert_mistake(
        "order_that_is_no_permutation",
        kernel("k", |k| {
            let a = k.input("a", F32, [4, 8, 16]);
            k.transposed("turned", a, [2, 1]);
        }),
    );
    assert_mistake(
        "parameter_as_another_dtype",
        kernel("k", |k| {
            let a = k.input("a", F32, [32]);
            k.view_as("words", a, U32, [32]);
        }),
    );
    assert_mistake(
        "replicas_in_memory",
        kernel("k", |k| {
            k.shared("t", F32, S([32], [1]) + R([2], [32]));
        }),
    );
    assert_mistake(
        "threads_that_are_not_there",
        kernel("k", |k| {
            k.fragment("held", F32, S([64, 2], [1 * LANEID, 1 * M]));
            k.fragment("more", F32, S([64, 2], [1 * TX, 1 * M]));
        }),
    );
}

#[test]
fn a_shape_that_is_not_the_layouts() {
    let mut kernel = kernel("k", |k| {
        k.input("a", F32, [8]);
    });
    let (handle, _) = kernel.buffers.iter().next().expect("a buffer");
    kernel.buffers[handle].shape = vec![9];
    assert_mistake("buffer_shape", kernel);
}

#[test]
fn operands() {
    assert_mistake(
        "writes_an_input",
        kernel("k", |k| {
            let a = k.input("a", F32, [8]);
            let b = k.output("b", F32, [8]);
            k.copy(a, b);
        }),
    );
    assert_mistake(
        "wrong_rank",
        kernel("k", |k| {
            let a = k.input("a", F32, [8, 8]);
            let b = k.output("b", F32, [8]);
            k.copy(b, a.sub((0,)));
        }),
    );
    assert_mistake(
        "outside",
        kernel("k", |k| {
            let a = k.input("a", F32, [8]);
            let b = k.output("b", F32, [8]);
            k.copy(b.sub((0..4,)), a.sub((6..10,)));
        }),
    );
    assert_mistake(
        "dtypes_and_extents",
        kernel("k", |k| {
            let a = k.input("a", F32, [8]);
            let b = k.output("b", F16, [4, 4]);
            k.copy(b, a);
        }),
    );
    assert_mistake(
        "inside_one_storage",
        kernel("k", |k| {
            let t = k.shared("t", F32, [4, 8]);
            let v = k.view("v", t, S([4, 8], [1, 4]));
            k.copy(v, t);
        }),
    );
    assert_mistake(
        "a_product_of_itself",
        kernel("k", |k| {
            let a = k.input("a", F16, [32, 32]);
            let t = k.shared("t", F16, [32, 32]);
            k.copy(t, a);
            k.gemm(t, t, a).with(Gemm { clear: true, ..Gemm::PLAIN });
        }),
    );
    assert_mistake(
        "value_of_another_type",
        kernel("k", |k| {
            let b = k.output("b", U8, [8]);
            k.fill(b, 300);
        }),
    );
}

#[test]
fn a_loop_variable_outside_its_loop() {
    let kernel = kernel("k", |k| {
        let a = k.input("a", F32, [4, 8]);
        let b = k.output("b", F32, [4, 8]);
        let mut kept = None;
        k.serial("i", 0..4, |_, i| kept = Some(i));
        let i = kept.expect("the loop ran its body");
        k.copy(b.sub((&i, ..)), a.sub((&i, ..)));
    });
    assert_mistake("loop_variable_outside", kernel);
}

#[test]
fn loops() {
    let (start, end) = (5, 2);
    assert_mistake("reversed_loop", kernel("k", |k| k.serial("i", start..end, |_, _| {})));
    assert_mistake(
        "reversed_loop_of_an_iteration",
        kernel("k", |k| {
            k.parallel([32], |k, _| k.serial("t", start..end, |_, _| {}));
        }),
    );
    assert_mistake("endless_loop", kernel("k", |k| k.serial("i", 0..3_000_000_000, |_, _| {})));
    assert_mistake("endless_unroll", kernel("k", |k| k.unroll("i", 0..1 << 20, |_, _| {})));
    assert_mistake(
        "unrolled_up_to_a_size",
        kernel("k", |k| {
            let n = k.size("n");
            k.unroll("i", ..n, |_, _| {});
        }),
    );
    assert_mistake("step_of_nothing", kernel("k", |k| k.serial("i", (0..8).step(0), |_, _| {})));
    assert_mistake(
        "loop_up_to_a_warp",
        kernel("k", |k| {
            k.threads(64);
            let warp = k.warp_id();
            k.serial("i", ..warp + 1, |_, _| {});
        }),
    );
    let end = i64::MIN;
    assert_mistake("inverted_loop", kernel("k", |k| k.serial("i", 0..end, |_, _| {})));
    assert_mistake(
        "loop_name_taken",
        kernel("k", |k| {
            k.input("a", F32, [8]);
            k.serial("a", 0..2, |_, _| {});
        }),
    );
}

#[test]
fn a_buffer_of_another_kernel() {
    let mut stranger = None;
    let _ = kernel("first", |k| stranger = Some(k.output("x", F32, [8])));
    let stranger = stranger.expect("a buffer");
    let kernel = kernel("second", |k| {
        let a = k.input("a", F32, [8]);
        k.copy(stranger, a);
    });
    assert_mistake("buffer_of_another_kernel", kernel);
}

/// Rows of the op table that no builder method can break.
#[test]
fn ops_against_their_row() {
    let broken = |change: fn(&mut tilewright::ir::tile::Op)| {
        let mut kernel = kernel("k", |k| {
            let a = k.input("a", F32, [4, 32]);
            let b = k.output("b", F32, S([4, 32], [1, 4]));
            k.warp().permute_layout(b, a);
        });
        let (op, _) = kernel.ops.iter().next().expect("an op");
        change(&mut kernel.ops[op]);
        kernel
    };
    assert_mistake("op_arity", broken(|op| op.operands.truncate(1)));
    assert_mistake("op_scope", broken(|op| op.scope = tilewright::layout::axis::Scope::Cta));
}

#[test]
fn shared_memory_of_a_conversion() {
    let kernel = kernel("k", |k| {
        let a = k.input("a", F32, [16384]);
        let b = k.output("b", F32, [16384]);
        let c = k.output("c", F32, [49152]);
        k.threads(256);
        let first = k.fragment("first", F32, S([256, 64], [1 * TX, 1 * REG]));
        let second = k.fragment("second", F32, S([64, 256], [1 * REG, 1 * TX]));
        let tile = k.shared("tile", F32, [49152]);
        k.fill(tile, 0.0);
        k.parallel([256, 64], |k, [i, j]| k.store(first, (i, j), a.at((i * 64 + j,))));
        let turned = k.view("turned", second, [256, 64]);
        k.convert_layout(turned, first);
        k.parallel([64, 256], |k, [i, j]| k.store(b, (i * 256 + j,), second.at((i, j))));
        k.copy(c, tile);
    });
    assert_mistake("shared_memory_of_a_conversion", kernel);
}

#[test]
fn variants() {
    let transpose = |rows: i64, dtype: DType, variant: Option<&'static str>| {
        kernel("k", move |k| {
            let a = k.input("a", dtype, [rows, 32]);
            let b = k.output("b", dtype, S([rows, 32], [1, rows]));
            k.warp().permute_layout(b, a).variant_opt(variant);
        })
    };
    assert_mistake("unknown_variant", transpose(4, F32, Some("warp_xor")));
    assert_mistake("forced_variant_refuses", transpose(3, F32, Some("warp_xor_swizzle")));
    let repeated = kernel("k", |k| {
        let a = k.input("a", F32, S([3, 32], [0, 1]));
        let b = k.output("b", F32, S([3, 32], [32, 1]));
        k.warp().permute_layout(b, a);
    });
    assert_mistake("no_variant_accepts", repeated);
    let large = kernel("k", |k| {
        let tile = k.shared("tile", F32, [120, 120]);
        let columns = k.view("columns", tile, S([120, 120], [1, 120]));
        k.warp().permute_layout(columns, tile);
    });
    assert_mistake("tile_beyond_the_registers", large);
    let fragment = kernel("k", |k| {
        let b = k.output("b", F32, [32, 4]);
        let held = k.fragment("held", F32, S([32, 4], [1 * LANEID, 1 * M]));
        k.fill(held, 0);
        k.warp().permute_layout(b, held);
    });
    assert_mistake("permute_of_a_fragment", fragment);
    let options = Options { target: Target::Sm100a, lower: LowerOptions { variant: Some("fastest".to_string()) } };
    let found = compile(transpose(4, F32, None), &options).expect_err("no such variant");
    assert_rendered("variant_option_unknown", &found);
    let options = Options { target: Target::Sm100a, lower: LowerOptions { variant: Some("vectorized".to_string()) } };
    let found = compile(transpose(4, F32, None), &options).expect_err("no op takes it");
    assert_rendered("variant_option_for_nothing", &found);
    let huge = kernel("k", |k| {
        let a = k.input("a", F32, [1 << 12, 1 << 12]);
        let b = k.output("b", F32, [1 << 12, 1 << 12]);
        k.copy(b, a);
    });
    assert_mistake("tile_too_large", huge);
}

/// A tile must not start inside an iter.
#[test]
fn tiles_that_cannot_be_placed() {
    let inside = kernel("k", |k| {
        let a = k.input("a", F32, ([64], S([8, 8], [100, 1])));
        let b = k.output("b", F32, [32, 4]);
        k.serial("i", 0..32, |k, i| {
            k.copy(b.sub((&i, ..)), a.sub((at(i, 4),)));
        });
    });
    assert_mistake("a_tile_inside_an_iter", inside);
}

/// Several mistakes are reported together, in the order in which they were made.
#[test]
fn several_mistakes_are_told_together() {
    let kernel = kernel("k", |k| {
        let a = k.input("a", F32, [8]);
        let b = k.output("b", F16, [8]);
        let c = k.output("c", F32, [9]);
        k.copy(b, a);
        k.copy(c, a);
    });
    assert_mistake("several_mistakes", kernel);
}

#[test]
fn operations_on_layouts() {
    use tilewright::layout::axis::GPUID_X;
    use tilewright::layout::descriptor::tensor_map;
    use tilewright::layout::hardware::named;
    use tilewright::layout::mesh::Mesh;
    use tilewright::layout::{Iter, RELATIONS, TableLayout};

    let layout = |text: &str| text.parse::<TileLayout>().expect("a layout");
    let mesh = Mesh::new([(GPUID_X, 2)]).expect("two devices");
    let errors = [
        layout("S[(3,4):(4,1)]").permute_dims(&[1, 1]).expect_err("no permutation"),
        layout("S[(4,3):(4,1)]").pack(2).expect_err("three elements"),
        layout("S[8:4@laneid]").pack(2).expect_err("lanes"),
        layout("S[(8,64):(64,1)]").tile_to(&[8, 64], &[16, 100]).expect_err("100"),
        layout("S[(2,2):(3,2)]").complement(&M, 12).expect_err("strides that do not nest"),
        layout("S[8:1]").compose(&layout("S[9:1]")).expect_err("nine elements"),
        layout("S[(2,4):(0,1)]").left_inverse().expect_err("shared places"),
        layout("S[(2,2):(1@m,4)]").right_inverse(&[(M, 8)]).expect_err("holes"),
        layout("S[(8,4):(1@laneid,1@wgid)]").scope().expect_err("a gap"),
        layout("S[48:1@tx]").split_axis(&RELATIONS[0]).expect_err("a warp and a half"),
        TableLayout::from_text("tilewright table 1\naxes m\n0\nx\n").expect_err("no number"),
        TableLayout::new(&[vec![]]).expect_err("no place"),
        Layout::Table(TableLayout::of_positions(&M, &[0, 2, 1]).expect("a table")).tile().expect_err("no iters"),
        named("tmem:H:128x256").expect_err("no datapath H"),
        named("mma:m16n8k16:e:f16").expect_err("no operand e"),
        tensor_map(&layout("S[(64,66):(66,1)]"), &[64, 66], &[64, 64], &layout("S[(64,64):(64,1)]").into(), 16)
            .expect_err("rows of 132 bytes"),
        TileLayout::new(vec![Iter::memory(2, 1); 300], Vec::new(), []).expect_err("300 iters"),
        mesh.check(&layout("S[(4,8):(1@gpuid_x,1@m)]")).expect_err("four devices"),
    ];
    assert_rendered("operations_on_layouts", &errors.iter().map(|e| e.diagnostic()).collect::<Vec<_>>());
}

#[test]
fn tables() {
    use tilewright::layout::{Coord, TableLayout};
    let table = |positions: &[i64]| TableLayout::of_positions(&M, positions).expect("a table");
    let at = |position: i64| Coord::from([(M, position)]);
    let copies = TableLayout::new(&[vec![at(0)], vec![at(1), at(2)]]).expect("a table");
    assert_mistake(
        "table_fragment",
        kernel("k", |k| {
            let y = k.output("y", F32, [32]);
            let places = TableLayout::of_positions(&LANEID, &(0..32).rev().collect::<Vec<i64>>()).expect("a table");
            let f = k.fragment("f", F32, places);
            k.fill(f, 0);
            k.copy(y, f).variant("fragment");
        }),
    );
    assert_mistake(
        "table_shares_places",
        kernel("k", |k| {
            k.output("b", F32, ([2, 2], table(&[0, 1, 2, 0])));
        }),
    );
    assert_mistake(
        "table_below_zero",
        kernel("k", |k| {
            k.input("a", F32, table(&[1, 0, -1]));
        }),
    );
    assert_mistake(
        "table_replicas",
        kernel("k", |k| {
            k.shared("t", F32, copies);
        }),
    );
}

#[test]
fn sizes() {
    let sized = |most: i64| {
        kernel("k", move |k| {
            let n = k.size("n").multiple_of(4).max(most);
            let a = k.input("a", F32, (&n, 64));
            let b = k.output("b", F32, (&n, 64));
            let [x] = k.grid([n.ceil_div(24)]);
            k.warp().permute_layout(b.sub((at(&x * 24, 24), 0..32)), a.sub((at(&x * 24, 24), 0..32)));
        })
    };
    assert_mistake("size_too_large", sized(1 << 31));
    assert_mistake("tile_over_an_edge", sized(1 << 20));
    assert_mistake(
        "size_of_shared_memory",
        kernel("k", |k| {
            let n = k.size("n");
            k.shared("t", F32, (&n, 64));
        }),
    );
    let copy = kernel("k", |k| {
        let n = k.size("n").multiple_of(4).max(4096);
        let a = k.input("a", F32, (&n,));
        let b = k.output("b", F32, (&n,));
        let [x] = k.grid([n.ceil_div(32)]);
        k.copy(b.sub((at(&x * 32, 32),)), a.sub((at(&x * 32, 32),)));
    });
    let artifact = compile(copy, &Options::new(Target::Sm100a)).expect("the kernel compiles");
    let bound = |sizes: &[(&str, i64)]| artifact.clone().for_sizes(sizes).expect_err("sizes that do not fit");
    let twice = bound(&[("n", 64), ("n", 32)]);
    let found: Vec<_> = [bound(&[("n", 4098)]), bound(&[("n", 0)]), bound(&[("m", 8)]), twice].concat();
    assert_rendered("sizes_at_launch", &found);
}

#[test]
fn a_view_that_fits_the_largest_sizes_only() {
    let copy = kernel("k", |k| {
        let m = k.size("m").max(128);
        let n = k.size("n").max(128);
        let a = k.input("a", F32, (&m, &n));
        let v = k.view("v", a, ([Expr::from(&m), Expr::from(&n)], [Expr::from(128), Expr::from(1)]));
        let b = k.output("b", F32, [32, 32]);
        k.copy(b, v.sub((0..32, 0..32)));
    });
    let artifact = compile(copy, &Options::new(Target::Sm100a)).expect("the kernel compiles");
    assert_rendered("view_at_launch", &artifact.for_sizes(&[("m", 64), ("n", 64)]).expect_err("a view too far"));
}

#[test]
fn elements_that_share_a_register() {
    assert_mistake(
        "fragment_shares_places",
        kernel("k", |k| {
            k.fragment("f", F32, S([4, 2], [1 * LANEID, 1 * LANEID]));
        }),
    );
}

// Here, because the snapshots contain line numbers of the code above.
mod handles;

// After the tests above, because their line numbers are in snapshots.
mod clusters;
mod data;
mod loaded;
mod reads;
mod refused;
mod rings;
mod runs;
mod tensor_memory;
