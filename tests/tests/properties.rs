//! Compares lowering with brute force on random layouts, and the compiler's bank model with the virtual GPU's.

use proptest::prelude::*;
use tilewright::ir::{Program, thread, tile};
use tilewright::layout::access::{AccessKind, WarpAccess};
use tilewright::layout::axis::M;
use tilewright::layout::{Iter, TileLayout};
use tilewright::lower::{Options, lower};
use tilewright::prelude::*;
use tilewright::vgpu::{self, Arg, Launch, Memory, Module};
use tilewright_tests::thread_machine::{Contents, execute};

/// Verifies a kernel, lowers it, and verifies the result.
fn lowered(kernel: Kernel, variant: Option<&str>) -> Result<Program, String> {
    let said = |found: Vec<tilewright::diag::Diagnostic>| {
        found.iter().map(|d| format!("{d} {:?}", d.notes)).collect::<String>()
    };
    let kernel = tile::verify(kernel, Target::Sm100a).map_err(said)?;
    let options = Options { variant: variant.map(str::to_string) };
    let program = lower(&kernel, Target::Sm100a, &options).map_err(said)?;
    thread::verify(program).map(|verified| verified.program().clone()).map_err(said)
}

/// Runs a kernel that reads parameter 0 and writes parameter 1, and checks every element.
fn check_moves(program: &Program, from: &TileLayout, to: &TileLayout) -> Result<(), String> {
    let (sources, targets) = (from.positions(&M), to.positions(&M));
    let mut contents: Contents =
        (0..).zip(&sources).map(|(element, position)| ((0, *position), 1000 + element)).collect();
    execute(program, &mut contents)?;
    for (element, position) in (0..).zip(targets) {
        let got = contents.get(&(1, position)).copied();
        if got != Some(1000 + element) {
            return Err(format!("element {element}: {got:?}"));
        }
    }
    Ok(())
}

/// A tile of this shape whose dimensions are in random order in memory, with some padding.
fn strided(shape: Vec<i64>) -> impl Strategy<Value = TileLayout> {
    let order = Just((0..shape.len()).collect::<Vec<_>>()).prop_shuffle();
    let padding = prop::collection::vec(prop_oneof![3 => Just(0i64), 1 => 1i64..4], shape.len());
    (order, padding).prop_map(move |(order, padding)| {
        let mut strides = vec![0; shape.len()];
        let mut next = 1;
        for (dimension, pad) in order.into_iter().zip(padding) {
            strides[dimension] = next;
            next = next * shape[dimension] + pad;
        }
        let shard = shape.iter().zip(strides).map(|(extent, stride)| Iter::memory(*extent, stride)).collect();
        TileLayout::new(shard, Vec::new(), []).expect("small numbers")
    })
}

/// Two layouts of the same shape.
fn pair(shapes: &'static [&'static [i64]]) -> impl Strategy<Value = (TileLayout, TileLayout)> {
    prop::sample::select(shapes).prop_flat_map(|shape| (strided(shape.to_vec()), strided(shape.to_vec())))
}

const WARP_TILES: &[&[i64]] = &[&[4, 32], &[8, 32], &[32, 4], &[16, 16], &[2, 2, 32], &[8, 4, 4], &[64], &[2, 64]];
const ANY_TILES: &[&[i64]] = &[&[7, 13], &[3, 5, 4], &[33], &[4, 32], &[12, 10], &[1, 9, 1], &[100]];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// With every variant, each element arrives, even if both operands share storage.
    #[test]
    fn permute_layout_moves_every_element((from, to) in pair(WARP_TILES), dtype in prop::sample::select(vec![B8, B16, B32, B64, B128])) {
        let kernel = kernel("k", |k| {
            let a = k.input("a", dtype, from.clone());
            let b = k.output("b", dtype, to.clone());
            k.threads(32);
            k.warp().permute_layout(b, a);
        });
        let program = lowered(kernel, None);
        // Both variants may refuse; then the pair does not count.
        prop_assume!(program.is_ok());
        check_moves(&program.unwrap_or_else(|e| panic!("{e}")), &from, &to).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn permute_layout_in_place_moves_every_element((from, to) in pair(WARP_TILES)) {
        let through = |layout: &TileLayout| TileLayout::new(layout.shard().to_vec(), Vec::new(), []).expect("a layout");
        let kernel = kernel("k", |k| {
            let a = k.input("a", B32, from.clone());
            let b = k.output("b", B32, to.clone());
            k.threads(32);
            let room = from.span_on(&M).max(to.span_on(&M));
            let store = k.shared("store", B32, [room]);
            let before = k.view("before", store, through(&from));
            let after = k.view("after", store, through(&to));
            k.warp().copy(before, a);
            k.warp().permute_layout(after, before);
            k.warp().copy(b, after);
        });
        let program = lowered(kernel, None);
        prop_assume!(program.is_ok());
        check_moves(&program.unwrap_or_else(|e| panic!("{e}")), &from, &to).map_err(TestCaseError::fail)?;
    }

    /// `copy` accepts every pair of layouts, by a warp and by a CTA.
    #[test]
    fn copy_moves_every_element((from, to) in pair(ANY_TILES), threads in prop::sample::select(vec![32i64, 64, 128]), elementwise: bool) {
        let kernel = kernel("k", |k| {
            let a = k.input("a", B16, from.clone());
            let b = k.output("b", B16, to.clone());
            k.threads(threads);
            k.copy(b, a);
        });
        let variant = elementwise.then_some("elementwise");
        let program = lowered(kernel, variant).map_err(TestCaseError::fail)?;
        check_moves(&program, &from, &to).map_err(TestCaseError::fail)?;
    }

    /// A round trip through a fragment, with random distributions over the lanes of 32 elements per register.
    #[test]
    fn copies_through_fragments_move_every_element((from, to) in pair(&[&[4, 32], &[8, 4, 4], &[2, 64]]), split in 0u32..6, reversed: bool) {
        // 128 elements: `split` bits of the lane vary slowest, the other bits fastest, and registers in between.
        let (outer, inner) = (1i64 << split, 32i64 >> split);
        let (slow, fast) = if reversed { (1, outer) } else { (inner, 1) };
        let fragment = S([outer, 4, inner], [slow * LANEID, 1 * M, fast * LANEID]).build().expect("a fragment");
        let shape: Vec<i64> = from.shard().iter().map(|iter| iter.extent).collect();
        prop_assume!(fragment.group(&shape).is_ok());
        let kernel = kernel("k", |k| {
            let a = k.input("a", B32, from.clone());
            let b = k.output("b", B32, to.clone());
            k.threads(32);
            let held = k.fragment("held", B32, Shaped(shape.clone(), fragment.clone()));
            k.warp().copy(held, a);
            k.warp().copy(b, held);
        });
        let program = lowered(kernel, None).map_err(TestCaseError::fail)?;
        check_moves(&program, &from, &to).map_err(TestCaseError::fail)?;
    }

    /// The compiler's model of shared-memory passes agrees with the virtual GPU's, which is independent of it.
    #[test]
    fn both_bank_models_agree(access in access(), is_load: bool) {
        let (addresses, width) = access;
        let kind = if is_load { AccessKind::Load } else { AccessKind::Store };
        let ours = WarpAccess { addresses, width, kind };
        let (wavefronts, ideal) = counted(&addresses, width, is_load);
        prop_assert_eq!(u64::from(ours.wavefronts()), wavefronts);
        prop_assert_eq!(u64::from(ours.ideal_wavefronts()), ideal);
    }
}

struct Shaped(Vec<i64>, TileLayout);

impl tilewright::dsl::IntoLayout for Shaped {
    fn into_layout(self) -> Result<(Vec<i64>, Layout), tilewright::layout::LayoutError> {
        Ok((self.0, Layout::Tile(self.1)))
    }
}

/// Addresses of lanes in shared memory: strided, broadcast, paired or random, with some lanes inactive.
fn access() -> impl Strategy<Value = ([Option<u64>; 32], u64)> {
    let width = prop::sample::select(vec![1u64, 2, 4, 8, 16]);
    let pattern = prop_oneof![
        (0u64..40).prop_map(|stride| (0..32).map(|lane| lane * stride).collect::<Vec<u64>>()),
        (1u64..9, 0u32..4).prop_map(|(stride, shift)| (0..32).map(|lane| (lane >> shift) * stride).collect()),
        (1u64..9).prop_map(|stride| (0..32u64).map(|lane| (lane & !2) * stride).collect()),
        prop::collection::vec(0u64..64, 32),
    ];
    (pattern, width, prop_oneof![3 => Just(u32::MAX), 1 => any::<u32>()]).prop_map(|(units, width, mask)| {
        let lane = |l: usize| (mask >> l & 1 == 1).then(|| units[l] * width % 4096);
        (std::array::from_fn(lane), width)
    })
}

/// The wavefronts and the ideal counted by the virtual GPU, for a kernel whose lanes load their addresses from a table.
fn counted(addresses: &[Option<u64>; 32], width: u64, is_load: bool) -> (u64, u64) {
    let (form, value) = match width {
        1 => ("b8", "%v1"),
        2 => ("b16", "%v1"),
        4 => ("b32", "%v2"),
        8 => ("b64", "%v3"),
        _ => ("v2.b64", "{%v3, %v4}"),
    };
    let access =
        if is_load { format!("ld.shared.{form} {value}, [%a];") } else { format!("st.shared.{form} [%a], {value};") };
    let text = format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k(.param .u64 table) {{\n\
         .reg .b16 %v1; .reg .b32 %v2, %t, %a, %z, %n; .reg .b64 %v3, %v4, %p, %q; .reg .pred %on, %more;\n\
         .shared .align 1024 .b8 room[8192];\n\
         mov.u32 %t, %tid.x; mov.b32 %z, 0; mov.b16 %v1, 0; mov.b32 %v2, 0; mov.b64 %v3, 0; mov.b64 %v4, 0;\n\
         mov.b32 %n, room; shl.b32 %a, %t, 8; add.s32 %n, %n, %a; add.s32 %a, %n, 256;\n\
         fill: st.shared.b32 [%n], %z; add.s32 %n, %n, 4; setp.lt.u32 %more, %n, %a; @%more bra fill;\n\
         bar.sync 0;\n\
         ld.param.u64 %p, [table]; mul.wide.u32 %q, %t, 4; add.s64 %p, %p, %q; ld.global.b32 %a, [%p];\n\
         setp.ne.s32 %on, %a, -1; mov.b32 %n, room; add.s32 %a, %a, %n;\n\
         @%on {access}\nret;\n}}\n"
    );
    let line = (1..).zip(text.lines()).find(|(_, line)| line.starts_with("@%on ")).map_or(0, |(line, _)| line);
    let module = Module::parse(&text).expect("the PTX parses");
    let mut memory = Memory::new();
    let table = addresses.iter().flat_map(|a| a.map_or(u32::MAX, |a| a as u32).to_le_bytes()).collect();
    let buffer = memory.allocate("table", table);
    let launch = Launch {
        kernel: "k".to_string(),
        grid: [1, 1, 1],
        block: [32, 1, 1],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: 0,
        args: vec![Arg::Buffer { buffer, byte_offset: 0 }],
    };
    let report = vgpu::run(&module, &launch, &mut memory, &vgpu::Options::default()).expect("it runs");
    let counts = report.accesses.iter().find(|access| access.ptx_line == line);
    counts.map_or((0, 0), |c| (c.wavefronts, c.ideal_wavefronts))
}
