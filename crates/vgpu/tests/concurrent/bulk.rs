//! Bulk copies and tensor copies: what they move, and which waits and fences are missing.

use std::collections::BTreeSet;

use tilewright_vgpu::{
    Arg, BufferId, Fault, FaultKind, Lint, MapAccess, MapElement, MapSwizzle, Memory, Options, Report, RunError,
    TensorMap, run,
};

use crate::harness::{Outcome, agreed, fault_of, launch, module, words_of};

/// What a kernel runs on: a tensor in the buffer `a`, whose map is the parameter `map`.
pub(crate) struct Case {
    /// `a` holds the bytes 0, 1, 2, ... as 16-bit words.
    pub(crate) words: u16,
    pub(crate) map: TensorMap,
}

impl Case {
    /// A tensor of `rows` times 64 elements of 16 bits, copied in boxes of 8 rows.
    pub(crate) fn rows(rows: u16, swizzle: MapSwizzle) -> Case {
        let inner = swizzle.span().unwrap_or(128) / 2;
        Case {
            words: rows * 64,
            map: TensorMap {
                address: 0,
                element: MapElement::Bf16,
                fills_nan: false,
                dims: vec![64, u64::from(rows)],
                strides: vec![128],
                access: MapAccess::Tiled(vec![inner, 8]),
                element_strides: vec![1, 1],
                swizzle,
            },
        }
    }

    /// Runs `body` by one CTA of 64 threads. `%rd1` and `%rd2` are the buffers `a` and `b`, the latter of 4096 bytes, `%rd3`
    /// the map; `tile` has 4096 bytes; `%p1` is true for thread 0, which has initialized `bar` for one arrival.
    pub(crate) fn execute(&self, body: &str, seed: u64) -> Outcome<u16> {
        let options = Options { seed, max_instructions_per_thread: 20_000, ..Options::default() };
        let (result, words) = self.run(body, &options);
        (result.map(|_| ()), words)
    }

    fn report(&self, body: &str, options: &Options) -> Result<Report, RunError> {
        self.run(body, options).0
    }

    /// Also the words of `a`, and then those of `b`.
    fn run(&self, body: &str, options: &Options) -> (Result<Report, RunError>, Vec<u16>) {
        let text = format!(
            ".version 8.8\n.target sm_100a\n.address_size 64\n\
             .visible .entry k(.param .u64 a, .param .u64 b, .param .align 64 .b8 map[128])\n{{\n.reg .pred %p<8>;\n\
             .reg .b16 %h<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n.shared .align 1024 .b8 tile[4096];\n\
             .shared .align 8 .b8 bar[8];\n.shared .align 8 .b8 bar2[8];\nld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nmov.b64 %rd3, map;\n\
             cvta.param.u64 %rd3, %rd3;\nmov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n\
             @%p1 mbarrier.init.shared.b64 [bar], 1;\nbar.sync 0;\n{body}\n}}\n"
        );
        let mut memory = Memory::new();
        let a = memory.allocate("a", (0..self.words).flat_map(u16::to_le_bytes).collect());
        let b = memory.allocate("b", vec![0; 4096]);
        let map = TensorMap { address: memory.address(a).expect("a buffer"), ..self.map.clone() };
        map.check().unwrap_or_else(|error| panic!("{error:?}"));
        let mut launch = launch(64, &[a, b]);
        launch.args.push(Arg::Bytes(map.encode().to_vec()));
        let result = run(&module(&text), &launch, &mut memory, options);
        let words = |buffer: BufferId| {
            let bytes = memory.bytes(buffer);
            let words = bytes.chunks_exact(2);
            words.map(|word| u16::from_le_bytes([word[0], word[1]])).collect::<Vec<u16>>()
        };
        (result, [words(a), words(b)].concat())
    }

    /// The words of `b` at the end.
    pub(crate) fn words(&self, body: &str) -> Vec<u16> {
        agreed(|seed| self.execute(body, seed)).split_off(usize::from(self.words))
    }

    /// The words of `a` at the end.
    pub(crate) fn words_of_a(&self, body: &str) -> Vec<u16> {
        let mut all = agreed(|seed| self.execute(body, seed));
        all.truncate(usize::from(self.words));
        all
    }

    pub(crate) fn fault(&self, body: &str) -> Fault {
        fault_of(self.execute(body, 0))
    }
}

/// Thread 0 loads a box at coordinates, and all threads wait for it and write the words of `tile` to `b` in order.
pub(crate) fn load_box(coordinates: &str, bytes: u32) -> String {
    let rank = coordinates.split(',').count();
    format!(
        "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes};\n\
         @%p1 cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd3, {{{coordinates}}}], [bar];\n\
         WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\n\
         setp.ge.u32 %p3, %r1, {};\n@%p3 ret;\n{WRITE_TILE}",
        bytes / 16
    )
}

/// All threads write the words of `tile` to `b` in order, 16 bytes at a time, up to 1024 bytes.
pub(crate) const WRITE_TILE: &str = "shl.b32 %r2, %r1, 4;\nmov.u32 %r3, tile;\nadd.u32 %r3, %r3, %r2;\n\
    ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];\ncvt.u64.u32 %rd4, %r2;\nadd.u64 %rd4, %rd4, %rd2;\n\
    st.global.v4.u32 [%rd4], {%r4, %r5, %r6, %r7};\nret;";

/// The word that stands at a place of `tile` after the box at row 8 is loaded, by the definition of the swizzle: in a row
/// of `span` bytes, the chunk of 16 bytes is exchanged by the number of the 128-byte line.
fn expected(place: usize, span: usize) -> u16 {
    let (byte, rows) = (2 * place, span / 16);
    let line = byte / 128;
    let chunk = byte / 16 % rows;
    let source = (byte / span * span) / 16 + (chunk ^ (line % rows * usize::from(rows > 1)));
    let unswizzled = source * 16 + byte % 16;
    let (row, column) = (unswizzled / span, unswizzled % span / 2);
    ((8 + row) * 64 + column) as u16
}

/// As on an H200: rows of 32 bytes are 128 bytes apart, and what is between them stays as it was.
#[test]
fn rows_shorter_than_the_span_of_the_swizzle_keep_their_distance() {
    let mut case = Case::rows(16, MapSwizzle::B128);
    case.map.access = MapAccess::Tiled(vec![16, 8]);
    // The threads whose chunk of 16 bytes is not one of the first two of its row, before the swizzle, write nothing.
    let body = load_box("0, 8", 256).replace(
        "setp.ge.u32 %p3, %r1, 16;",
        "shr.u32 %r2, %r1, 3;\nxor.b32 %r2, %r2, %r1;\nand.b32 %r2, %r2, 7;\nsetp.ge.u32 %p3, %r2, 2;",
    );
    let found = case.words(&body);
    for row in 0..8 {
        for column in 0..16 {
            let place = row * 64 + ((column / 8) ^ row) * 8 + column % 8;
            assert_eq!(usize::from(found[place]), (8 + row) * 64 + column);
        }
    }
}

#[test]
fn a_box_is_loaded_with_every_swizzle() {
    let plain = Case::rows(16, MapSwizzle::None).words(&load_box("0, 8", 1024));
    assert_eq!(plain[..512], (512..1024).collect::<Vec<u16>>());
    for (swizzle, span) in [(MapSwizzle::B128, 128), (MapSwizzle::B64, 64), (MapSwizzle::B32, 32)] {
        let found = Case::rows(16, swizzle).words(&load_box("0, 8", 8 * span as u32));
        assert_eq!(found[..4 * span], (0..4 * span).map(|place| expected(place, span)).collect::<Vec<u16>>());
    }
}

#[test]
fn elements_outside_the_tensor_are_zero() {
    let case = Case::rows(12, MapSwizzle::None);
    let found = case.words(&load_box("-8, 7", 1024));
    let want = |place: usize| {
        let (row, column) = (7 + place / 64, (place % 64) as i32 - 8);
        if row < 12 && column >= 0 { (row * 64) as u16 + column as u16 } else { 0 }
    };
    assert_eq!(found[..512], (0..512).map(want).collect::<Vec<u16>>());
}

#[test]
fn a_box_begins_at_a_multiple_of_16_bytes_in_its_row() {
    let case = Case::rows(12, MapSwizzle::None);
    let unaligned = case.fault(&load_box("4, 7", 1024));
    let said = "the first coordinate of such a map is a multiple of 8; this one is 4";
    assert_eq!((unaligned.kind, unaligned.message.as_str()), (FaultKind::BadDescriptor, said));
}

#[test]
fn a_store_does_not_begin_before_the_first_element_of_a_row() {
    let store = "@!%p1 ret;\ncp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {-8, 8}], [tile];\n\
                 cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;";
    let fault = Case::rows(16, MapSwizzle::None).fault(store);
    let said = "the first coordinate of a store is -8; it is not negative";
    assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::BadDescriptor, said));
}

#[test]
fn a_box_is_stored_from_shared_memory() {
    // Rows 0 to 7 are loaded and stored to rows 8 to 15.
    let body = |fence: &str, wait: &str| {
        format!(
            "@!%p1 ret;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;\n\
             cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd3, {{0, 0}}], [bar];\n\
             WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\n\
             mov.u16 %h1, 7;\nst.shared.u16 [tile], %h1;\n{fence}\n\
             cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {{0, 8}}], [tile];\n\
             cp.async.bulk.commit_group;\n{wait}\nret;"
        )
    };
    let case = Case::rows(16, MapSwizzle::B128);
    let (fence, wait) = ("fence.proxy.async.shared::cta;", "cp.async.bulk.wait_group.read 0;");
    let found = case.words_of_a(&body(fence, wait));
    assert_eq!((found[512], found[513..].to_vec()), (7, (1..512).collect::<Vec<u16>>()));
    let missing = case.fault(&body("", wait));
    assert_eq!(missing.kind, FaultKind::MissingFence);
    assert!(missing.message.contains("`fence.proxy.async` is missing"), "{}", missing.message);
    let unwaited = case.fault(&body(fence, ""));
    assert_eq!(
        (unwaited.kind, unwaited.message.as_str()),
        (
            FaultKind::BarrierMisuse,
            "the CTA exits while a bulk copy still reads its shared memory; its thread has not waited for its group"
        )
    );
    let reused = case.fault(&body(fence, &format!("st.shared.u16 [tile], %h1;\n{wait}")));
    assert_eq!(reused.kind, FaultKind::Race);
    let read_back =
        |wait: &str| body(fence, &format!("{wait}\nld.global.u16 %h2, [%rd1+1024];\nst.global.u16 [%rd2], %h2;"));
    assert_eq!(case.fault(&read_back(wait)).kind, FaultKind::Race);
    assert!(case.execute(&read_back("cp.async.bulk.wait_group 0;"), 0).0.is_ok());
}

#[test]
fn without_the_wait_or_enough_bytes_a_load_is_found() {
    let case = Case::rows(16, MapSwizzle::None);
    let load = load_box("0, 0", 1024);
    let unwaited =
        load.replace("WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\n", "bar.sync 0;\n");
    assert_eq!(case.fault(&unwaited).kind, FaultKind::Race);
    let too_many = case.fault(&load_box("0, 0", 2048));
    assert_eq!(too_many.kind, FaultKind::Deadlock);
    assert!(too_many.waiting[0].what.ends_with("which lacks 1024 bytes"), "{too_many}");
    let too_few = case.fault(&load_box("0, 0", 512));
    assert_eq!(too_few.kind, FaultKind::Deadlock);
    // The box overwrites bytes that threads wrote.
    let written = format!("mov.u16 %h1, 1;\n@%p1 st.shared.u16 [tile], %h1;\n{{}}\n{load}");
    assert_eq!(case.fault(&written.replace("{}", "")).kind, FaultKind::MissingFence);
    assert_eq!(case.words(&written.replace("{}", "fence.proxy.async;"))[..4], [0, 1, 2, 3]);
}

#[test]
fn linear_copies_go_both_ways() {
    let body = |bytes: u32| {
        format!(
            "@!%p1 ret;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes};\nmov.u32 %r2, {bytes};\n\
             cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], %r2, [bar];\n\
             WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\n\
             cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], %r2;\ncp.async.bulk.commit_group;\n\
             cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2+1024], [tile], %r2;\n\
             cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;"
        )
    };
    let case = Case::rows(16, MapSwizzle::None);
    let found = case.words(&body(512));
    assert_eq!(found[..256], (0..256).collect::<Vec<u16>>());
    assert_eq!(found[256..260], [0; 4]);
    assert_eq!(found[512..768], (0..256).collect::<Vec<u16>>());
    let odd = case.fault(&body(520));
    assert_eq!(
        (odd.kind, odd.message.as_str()),
        (FaultKind::Misaligned, "the size of a bulk copy is not a multiple of 16 bytes: 520")
    );
    assert_eq!(case.fault(&body(4096)).kind, FaultKind::OutOfBounds);
}

#[test]
fn a_copy_with_a_wrong_map_is_found() {
    let case = Case::rows(16, MapSwizzle::None);
    let three = load_box("0, 0, 0", 1024);
    assert_eq!(case.fault(&three).message, "a copy of 3 dimensions with a map of 2");
    let no_map = load_box("0, 0", 1024).replace("%rd3, {", "%rd1, {");
    let fault = case.fault(&no_map);
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (FaultKind::BadDescriptor, "the bytes at this address are not a tensor map")
    );
    let unaligned = load_box("0, 0", 1024).replace("bytes [tile]", "bytes [tile+64]");
    assert_eq!(case.fault(&unaligned).kind, FaultKind::Misaligned);
}

#[test]
fn tensors_of_more_dimensions_and_strides() {
    // 4 x 8 x 16 elements; every second row of a box of 2 x 8 x 16 from plane 1 on.
    let map = TensorMap {
        address: 0,
        element: MapElement::Bf16,
        fills_nan: false,
        dims: vec![16, 8, 4],
        strides: vec![32, 256],
        access: MapAccess::Tiled(vec![16, 8, 2]),
        element_strides: vec![1, 2, 1],
        swizzle: MapSwizzle::None,
    };
    let case = Case { words: 512, map };
    let body = load_box("0, 1, 1", 2 * 4 * 32);
    let found = case.words(&body);
    let want = |place: usize| {
        let (plane, row, column) = (1 + place / 64, 1 + 2 * (place / 16 % 4), place % 16);
        if row < 8 { (plane * 128 + row * 16 + column) as u16 } else { 0 }
    };
    assert_eq!(found[..128], (0..128).map(want).collect::<Vec<u16>>());
}

/// Thread 0 writes 16 bytes of `tile` by `write` and stores them to `b` after `fence`.
fn stored(write: &str, fence: &str) -> String {
    format!(
        "@!%p1 ret;\nmov.u32 %r2, 5;\nst.shared.v4.u32 [tile], {{%r2, %r2, %r2, %r2}};\n{write}\n{fence}\n\
         cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 16;\ncp.async.bulk.commit_group;\n\
         cp.async.bulk.wait_group 0;\nret;"
    )
}

#[test]
fn a_proxy_fence_is_for_its_memory_and_for_every_write() {
    let case = Case::rows(16, MapSwizzle::None);
    for fence in ["fence.proxy.async;", "fence.proxy.async.shared::cta;"] {
        assert_eq!(case.words(&stored("", fence))[..2], [5, 0]);
    }
    assert_eq!(case.fault(&stored("", "fence.proxy.async.global;")).kind, FaultKind::MissingFence);
    let after = |write: &str| stored(&format!("fence.proxy.async;\n{write}"), "");
    assert_eq!(case.fault(&after("red.shared.add.u32 [tile], %r2;")).kind, FaultKind::MissingFence);
    assert_eq!(case.fault(&after("st.volatile.shared.u32 [tile+4], %r2;")).kind, FaultKind::MissingFence);
}

#[test]
fn a_reduction_is_late_like_other_copies() {
    let body = |wait: &str| {
        format!(
            "@!%p1 ret;\nmov.u32 %r2, 5;\nst.shared.v4.u32 [tile], {{%r2, %r2, %r2, %r2}};\nfence.proxy.async;\n\
             cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [tile], 16;\ncp.async.bulk.commit_group;\n\
             {wait}\nld.global.u32 %r3, [%rd2];\nst.global.u32 [%rd2+64], %r3;\ncp.async.bulk.wait_group 0;\nret;"
        )
    };
    let case = Case::rows(16, MapSwizzle::None);
    assert_eq!(case.words(&body("cp.async.bulk.wait_group 0;"))[32], 5);
    for seed in 0..10 {
        for wait in ["", "cp.async.bulk.wait_group.read 0;"] {
            let (result, _) = case.execute(&body(wait), seed);
            assert!(matches!(result, Err(RunError::Fault(fault)) if fault.kind == FaultKind::Race), "{seed} {wait}");
        }
    }
}

/// Runs `body` by several CTAs of 64 threads, the first of which has `%p1`; `%rd1` is a buffer of zeros, and `s` has 64 ones.
fn execute_by_ctas(body: &str, ctas: u32, seed: u64) -> Outcome {
    let text = format!(
        ".version 8.8 .target sm_100a .address_size 64\n.visible .entry k(.param .u64 a)\n{{\n.reg .pred %p<4>;\n\
         .reg .b32 %r<16>;\n.reg .b64 %rd<4>;\n.shared .align 128 .b8 s[512];\n.shared .align 8 .b64 bar;\n\
         ld.param.u64 %rd1, [a];\nmov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\nmov.u32 %r2, s;\nshl.b32 %r3, %r1, 2;\n\
         add.u32 %r2, %r2, %r3;\nst.shared.u32 [%r2], 1;\nfence.proxy.async;\nbar.sync 0;\n@!%p1 ret;\n{body}\nret;\n}}\n"
    );
    let mut memory = Memory::new();
    let a = memory.allocate("a", vec![0; 256]);
    let mut launch = launch(64, &[a]);
    launch.grid = [ctas, 1, 1];
    let options = Options { seed, ..Options::default() };
    let result = run(&module(&text), &launch, &mut memory, &options).map(|_| ());
    (result, words_of(&memory, a))
}

#[test]
fn several_ctas_reduce_into_the_same_bytes() {
    let reduce = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [s], 256;";
    let body = |copy: &str| format!("{copy}\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;");
    assert_eq!(agreed(|seed| execute_by_ctas(&body(reduce), 5, seed)), [5; 64]);
    // An ordinary copy is not atomic.
    let mixed = format!(
        "mov.u32 %r4, %ctaid.x;\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 {reduce}\n\
         @!%p2 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 256;"
    );
    assert_eq!(fault_of(execute_by_ctas(&body(&mixed), 2, 0)).kind, FaultKind::Race);
}

#[test]
fn sums_with_undefined_bits_are_undefined() {
    let sum = |source: &str, use_of_it: &str| {
        format!(
            "mbarrier.init.shared.b64 [bar], 1;\nld.shared.u32 %r4, [s+300];\n{source}\nfence.proxy.async;\n\
             mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n\
             cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [s], [s+128], 16, [bar];\n\
             WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\nld.shared.u32 %r5, [s];\n\
             {use_of_it}\nst.global.u32 [%rd1], %r5;"
        )
    };
    let execute = |source: &str, use_of_it: &str| execute_by_ctas(&sum(source, use_of_it), 1, 0);
    let found = |source: &str, use_of_it: &str| fault_of(execute(source, use_of_it)).kind;
    assert_eq!(execute("", "").1[0], 2);
    // What is added to, or what is added; also by a carry, but not below the lowest undefined bit.
    assert_eq!(found("st.shared.u32 [s], %r4;", ""), FaultKind::UninitializedRead);
    assert_eq!(found("st.shared.u32 [s+128], %r4;", ""), FaultKind::UninitializedRead);
    let low = "and.b32 %r4, %r4, 0xff;\nst.shared.u32 [s+128], %r4;";
    assert_eq!(found(low, "shr.u32 %r5, %r5, 8;"), FaultKind::UninitializedRead);
    let high = "and.b32 %r4, %r4, 0xff00;\nst.shared.u32 [s+128], %r4;";
    let (result, words) = execute(high, "and.b32 %r5, %r5, 0xff;");
    assert!(result.is_ok() && words[0] == 1, "{result:?} {words:?}");
}

#[test]
fn an_engine_is_no_thread() {
    let body = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 256;\ncp.async.bulk.commit_group;\n\
                cp.async.bulk.wait_group 0;\nst.global.u32 [%rd1+8], 7;";
    let text = format!(
        ".version 8.8\n.target sm_100a\n.visible .entry k(.param .u64 a)\n{{\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n\
         .shared .align 128 .b8 s[256];\nld.param.u64 %rd1, [a];\nst.shared.u32 [s], 1;\nfence.proxy.async;\n{body}\nret;\n}}\n"
    );
    let mut memory = Memory::new();
    let a = memory.allocate("a", vec![0; 256]);
    let options = Options { observed: Some(BTreeSet::new()), ..Options::default() };
    run(&module(&text), &launch(1, &[a]), &mut memory, &options).unwrap_or_else(|error| panic!("{error}"));
    let writer = |at: usize| memory.last_writer(a, at).map(|writer| (writer.thread, writer.ptx_line));
    assert_eq!((writer(0), writer(8)), (Some((None, 11)), Some((Some(0), 14))));
}

#[test]
fn a_copy_does_not_overwrite_an_mbarrier() {
    let body = "@!%p1 ret;\nfence.proxy.async;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\nmov.u32 %r2, bar;\n\
                and.b32 %r2, %r2, -16;\n\
                cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 16, [bar];\nret;";
    let fault = Case::rows(16, MapSwizzle::None).fault(body);
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (FaultKind::BarrierMisuse, "the mbarrier at `bar` + 0: a copy overwrites it")
    );
}

#[test]
fn an_unfenced_overwrite_of_what_was_read_is_noted_on_request() {
    // Thread 0 reads the tile that a copy filled, and has it filled again.
    let load = "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n\
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 16, [bar];";
    let wait = |label: &str, parity: u32| {
        format!("{label}:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], {parity};\n@!%p2 bra {label};\n")
    };
    let body = |fence: &str| {
        let (first, second) = (wait("FIRST", 0), wait("SECOND", 1));
        format!(
            "@!%p1 ret;\n{load}\n{first}ld.shared.u32 %r2, [tile];\nst.global.u32 [%rd2], %r2;\n{fence}\n{load}\n{second}ret;"
        )
    };
    let notes = |body: &str, lint: bool| {
        let case = Case::rows(16, MapSwizzle::None);
        let lints = lint.then_some(Lint::WarProxy).into_iter().collect();
        let options = Options { lints, ..Options::default() };
        let report = case.report(body, &options).unwrap_or_else(|error| panic!("{error}"));
        report.notes.iter().map(|note| note.name).collect::<Vec<&str>>()
    };
    assert_eq!(notes(&body(""), true), ["war_proxy"]);
    assert!(notes(&body(""), false).is_empty());
    assert!(notes(&body("fence.proxy.async;"), true).is_empty());
}
