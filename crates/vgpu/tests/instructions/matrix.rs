//! `ldmatrix`, `stmatrix`, `movmatrix`.

use tilewright_vgpu::{AccessKind, FaultKind, Space};

use crate::harness::{Random, execute, fault, map, refusals};

/// Writes halves 0, 1, 2, ... to the tile: row `r` of 8 at byte `16 * r`, by lane `r`. `%r12` becomes the address of
/// row `lane ^ 1`.
const FILL: &str = "mov.u32 %r10, tile;
shl.b32 %r11, %r1, 4;
add.u32 %r11, %r11, %r10;
shl.b32 %r13, %r1, 3;
mad.lo.u32 %r14, %r13, 65537, 65536;
add.u32 %r15, %r14, 131074;
add.u32 %r16, %r15, 131074;
add.u32 %r17, %r16, 131074;
st.shared.v4.b32 [%r11], {%r14, %r15, %r16, %r17};
bar.warp.sync -1;
xor.b32 %r12, %r1, 1;
shl.b32 %r12, %r12, 4;
add.u32 %r12, %r12, %r10;
";

/// The element of a matrix whose rows are given by lanes that point to row `lane ^ 1`.
fn element(matrix: u32, row: u32, column: u32) -> u32 {
    ((matrix * 8 + row) ^ 1) * 8 + column
}

fn fragment(matrix: u32, transposed: bool) -> Vec<u32> {
    let word = |lane: u32| {
        let (line, at) = (lane / 4, lane % 4 * 2);
        let pair =
            [at, at + 1].map(|at| if transposed { element(matrix, at, line) } else { element(matrix, line, at) });
        pair[1] << 16 | pair[0]
    };
    (0..32).map(word).collect()
}

#[test]
fn ldmatrix_spreads_rows_or_columns() {
    for (form, transposed) in [("x4", false), ("x4.trans", true)] {
        let list = "{%o0, %o1, %o2, %o3}";
        let body = format!("{FILL}ldmatrix.sync.aligned.m8n8.{form}.shared.b16 {list}, [%r12];");
        let found: [Vec<u32>; 4] = map(&body, &[]);
        assert_eq!(found, [0, 1, 2, 3].map(|matrix| fragment(matrix, transposed)));
    }
}

#[test]
fn lanes_that_give_no_row_may_hold_anything() {
    let garbage = |first: u32| format!("{FILL}setp.ge.u32 %p1, %r1, {first};\n@%p1 mov.u32 %r12, 3;\n");
    let one = garbage(8) + "ldmatrix.sync.aligned.x1.trans.m8n8.shared::cta.b16 {%o0}, [%r12];";
    let [found] = map(&one, &[]);
    assert_eq!(found, fragment(0, true));
    let two = garbage(16) + "ldmatrix.sync.aligned.x2.m8n8.shared.b16 {%o0, %o1}, [%r12];";
    let found: [Vec<u32>; 2] = map(&two, &[]);
    assert_eq!(found, [fragment(0, false), fragment(1, false)]);
}

#[test]
fn ldmatrix_takes_generic_addresses_of_shared_memory() {
    let body = format!(
        "{FILL}cvt.u64.u32 %rd5, %r12;\ncvta.shared.u64 %rd6, %rd5;\n\
         ldmatrix.sync.aligned.m8n8.x1.b16 {{%o0}}, [%rd6];"
    );
    let [found] = map(&body, &[]);
    assert_eq!(found, fragment(0, false));
    let global = fault("ldmatrix.sync.aligned.m8n8.x1.b16 {%r20}, [%rd1];", 32);
    assert_eq!((global.kind, global.lanes), (FaultKind::IllegalInstruction, 0xff));
}

#[test]
fn rows_of_a_matrix_have_rules() {
    let odd = fault("mov.u32 %r10, tile;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r10+8];", 32);
    assert_eq!((odd.kind, odd.lanes), (FaultKind::Misaligned, 1));
    let load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r10];\n\
                setp.eq.u32 %p2, %r20, 0;\n@%p2 trap;";
    let unwritten = fault(&format!("mov.u32 %r10, tile;\n{load}"), 32);
    assert_eq!(unwritten.kind, FaultKind::UninitializedRead);
    let race = fault(
        &format!(
            "mov.u32 %r10, tile;\nsetp.eq.u32 %p1, %r1, 9;\n\
             @%p1 st.shared.v4.b32 [tile], {{%r1, %r1, %r1, %r1}};\n{load}"
        ),
        32,
    );
    assert_eq!(race.kind, FaultKind::Race);
    let part = fault("setp.lt.u32 %p1, %r1, 8;\n@%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [tile];", 32);
    assert_eq!((part.kind, part.lanes), (FaultKind::DivergentAligned, 0xff));
}

#[test]
fn a_matrix_is_one_wavefront_if_its_rows_are_in_different_banks() {
    for (pitch, waves) in [(16, 4), (144, 4), (128, 32), (32, 8)] {
        let rows = format!("mov.u32 %r10, tile;\nmad.lo.u32 %r11, %r1, {pitch}, %r10;\n");
        let store = "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r11], {%r1, %r1, %r1, %r1};\nbar.warp.sync -1;\n";
        let load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r11];";
        let done = execute(&(rows + store + load), &[], 0, 32).unwrap_or_else(|error| panic!("{error}"));
        let shared = done.report.accesses.iter().filter(|access| access.space == Space::Shared);
        let counts: Vec<(AccessKind, u64, u64, u64)> =
            shared.map(|access| (access.kind, access.wavefronts, access.ideal_wavefronts, access.bytes)).collect();
        assert_eq!(counts, [(AccessKind::Store, waves, 4, 512), (AccessKind::Load, waves, 4, 512)], "{pitch}");
    }
}

#[test]
fn stmatrix_is_the_inverse_of_ldmatrix() {
    let mut random = Random(5);
    let words: Vec<Vec<u32>> = (0..4).map(|_| random.words(32)).collect();
    let inputs: Vec<&[u32]> = words.iter().map(Vec::as_slice).collect();
    for trans in ["", ".trans"] {
        let body = format!(
            "mov.u32 %r10, tile;\nmad.lo.u32 %r11, %r1, 16, %r10;\n\
             stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [%r11], {{%i0, %i1, %i2, %i3}};\nbar.warp.sync -1;\n\
             ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%o0, %o1, %o2, %o3}}, [%r11];\n\
             ld.shared.u16 %o4, [tile+2];"
        );
        let found: [Vec<u32>; 5] = map(&body, &inputs);
        assert_eq!(found[..4], words[..]);
        // The second element of the first row: of lane 0, or of lane 4 if lanes hold columns.
        let second = if trans.is_empty() { words[0][0] >> 16 } else { words[0][4] & 0xffff };
        assert_eq!(found[4], [second; 32]);
    }
}

#[test]
fn movmatrix_transposes() {
    let words = Random(6).words(32);
    let [found] = map("movmatrix.sync.aligned.m8n8.trans.b16 %o0, %i0;", &[&words]);
    let half = |words: &[u32], row: usize, column: usize| words[row * 4 + column / 2] >> (column % 2 * 16) & 0xffff;
    for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
        assert_eq!(half(&found, row, column), half(&words, column, row));
    }
}

#[test]
fn other_forms_are_refused_by_name() {
    let forms = [
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3];", "only the shape m8n8 is supported"),
        ("ldmatrix.sync.aligned.m8n8.shared.b16 {%r1}, [%r3];", "the number of matrices is missing"),
        ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r3];", "1-register vector, expected 2"),
        ("stmatrix.sync.aligned.m8n8.x1.global.b16 [%rd1], {%r1};", "a matrix must be in shared memory"),
        ("movmatrix.sync.aligned.m8n8.b16 %r1, %r2;", "the form without `.trans` is not supported"),
    ];
    for (text, reason) in forms {
        let found = refusals(text);
        assert!(found.len() == 1 && found[0].ends_with(&format!(": {reason}")), "{found:?}");
    }
}
