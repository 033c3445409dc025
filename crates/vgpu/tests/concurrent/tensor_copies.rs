//! Tensor copies of rows, of pixels and of packed elements, and reductions.

use tilewright_vgpu::{FaultKind, Im2col, MapAccess, MapElement, MapSwizzle, TensorMap};

use crate::bulk::{Case, WRITE_TILE, load_box};

/// Thread 0 loads into `tile` by `copy`, and all threads wait for it and write 1024 bytes of it to `b`.
fn load_by(copy: &str, bytes: u32) -> String {
    format!(
        "@!%p1 bra WAIT;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes};\n{copy}\nWAIT:\n\
         mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\n{WRITE_TILE}"
    )
}

/// Thread 0 loads a box of 1024 bytes at the origin and stores it by `copy`.
fn store_by(copy: &str) -> String {
    format!(
        "@!%p1 ret;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;\nmov.b32 %r2, 1024;\n\
         cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], %r2, [bar];\n\
         WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\n{copy}\n\
         cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;"
    )
}

/// Rows of 64 elements of 16 bits, a row at a time.
fn single_rows() -> Case {
    let mut case = Case::rows(16, MapSwizzle::B128);
    case.map.access = MapAccess::Tiled(vec![64, 1]);
    case
}

#[test]
fn four_rows_are_gathered() {
    let copy = "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes \
                [tile], [%rd3, {0, 3, 15, 16, 0}], [bar];";
    let mut case = single_rows();
    let body = load_by(copy, 512).replace(WRITE_TILE, &format!("setp.ge.u32 %p3, %r1, 32;\n@%p3 ret;\n{WRITE_TILE}"));
    let found = case.words(&body);
    let rows = [Some(3), Some(15), None, Some(0)];
    for (number, row) in rows.into_iter().enumerate() {
        for chunk in 0..8 {
            let place = number * 64 + (chunk ^ number) * 8;
            let want = row.map_or(0, |row: u16| row * 64 + chunk as u16 * 8);
            assert_eq!(found[place], want, "row {number}, chunk {chunk}");
        }
    }
    case.map.access = MapAccess::Tiled(vec![64, 2]);
    let fault = case.fault(&body);
    let said = "`tile::gather4` and `tile::scatter4` use a map of two dimensions whose box has one row; \
                this one has 2 dimensions and 2 rows";
    assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::BadDescriptor, said));
}

#[test]
fn four_rows_are_scattered() {
    let copy = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd3, {0, 9, 2, 20, 5}], [tile];";
    let mut case = single_rows();
    case.map.swizzle = MapSwizzle::None;
    let found = case.words_of_a(&store_by(copy));
    let mut want: Vec<u16> = (0..1024).collect();
    for (number, row) in [(0u16, 9usize), (1, 2), (3, 5)] {
        (0..64).for_each(|column| want[row * 64 + column] = number * 64 + column as u16);
    }
    assert_eq!(found, want);
}

/// Images of 4 x 3 pixels of 8 channels, and the filter's bases from -1 on, up to the extent.
fn images(count: u64) -> Case {
    let pixels = Im2col { lower: vec![-1, -1], upper: vec![0, 0], channels: 8, pixels: 64 };
    let map = TensorMap {
        dims: vec![8, 4, 3, count],
        strides: vec![16, 64, 192],
        access: MapAccess::Im2col(pixels),
        element_strides: vec![1; 4],
        swizzle: MapSwizzle::None,
        ..Case::rows(16, MapSwizzle::None).map
    };
    Case { words: 96 * count as u16, map }
}

#[test]
fn pixels_are_loaded_in_the_order_of_the_bases() {
    let copy = |offsets: &str| {
        format!(
            "mov.b16 %h1, 1;\nmov.b16 %h2, 2;\ncp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes \
             [tile], [%rd3, {{0, 2, -1, 0}}], [bar], {offsets};"
        )
    };
    let mut case = images(2);
    for (strides, offsets, (dx, dy)) in [([1, 1], "{%h1, %h2}", (1, 2)), ([2, 1], "{%h2, %h1}", (2, 1))] {
        case.map.element_strides = vec![1, strides[0], strides[1], 1];
        let found = case.words(&load_by(&copy(offsets), 1024));
        let (mut x, mut y, mut n) = (2i64, -1i64, 0i64);
        for pixel in 0..64 {
            let (column, row) = (x + dx, y + dy);
            let inside = (0..4).contains(&column) && (0..3).contains(&row) && n < 2;
            let want = if inside { (n * 96 + row * 32 + column * 8) as u16 } else { 0 };
            assert_eq!(found[pixel * 8], want, "pixel {pixel} of {strides:?}");
            x += strides[0] as i64;
            if x >= 4 {
                (x, y) = (-1, y + strides[1] as i64);
            }
            if y >= 3 {
                (y, n) = (-1, n + 1);
            }
        }
    }
    let fault = case.fault(&load_by(&copy("{%h1, %h2}").replace("{0, 2, -1", "{0, 4, -1"), 1024));
    let said = "coordinate 1 is 4; the bases of the filter are -1 to 3";
    assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::BadDescriptor, said));
    let fault = case.fault(&load_box("0, 0, 0, 0", 1024));
    assert_eq!(fault.message, "a copy of boxes (tiled) with an `im2col` map");
}

#[test]
fn pixels_are_stored_without_offsets() {
    let mut case = images(10);
    case.map.access = MapAccess::Im2col(Im2col { lower: vec![0, 0], upper: vec![0, 0], channels: 8, pixels: 16 });
    let copy = "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%rd3, {0, 3, 1, 8}], [tile];";
    let found = case.words_of_a(&store_by(copy));
    // The last pixel of row 1 of image 8, its row 2, and the eleven next ones of image 9.
    let mut want: Vec<u16> = (0..960).collect();
    (0..16 * 8).for_each(|word| want[8 * 96 + (4 + 3) * 8 + word] = word as u16);
    assert_eq!(found, want);
}

#[test]
fn packed_elements_are_padded() {
    for (element, bits, kept) in [(MapElement::B6x16P32, 6, 6), (MapElement::B4x16P64, 4, 4), (MapElement::B4x16, 4, 8)]
    {
        let mut case = Case::rows(16, MapSwizzle::None);
        case.map.element = element;
        case.map.dims = vec![256, 8];
        case.map.strides = vec![192];
        case.map.access = MapAccess::Tiled(vec![128, 4]);
        let bytes = 4 * 128 * bits / 8;
        let row = if kept == 8 { 64 } else { 128 };
        let first_words = format!("shl.b32 %r2, %r1, 4;\nsetp.ge.u32 %p3, %r2, {};\n@%p3 ret;\n", row * 4);
        let only_data = match kept {
            6 => WRITE_TILE.replace("v4.u32", "v2.u32").replace(", %r6, %r7", ""),
            4 => WRITE_TILE.replace("v4.u32", "v2.u32").replace(", %r6, %r7", ""),
            _ => WRITE_TILE.to_string(),
        };
        let copy = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd3, {128, 1}], [bar];";
        let body = load_by(copy, bytes).replace(WRITE_TILE, &format!("{first_words}{only_data}"));
        let found = case.words(&body);
        // The bytes of `a` are those of its words, and element 128 of row 1 is at byte 192 + 128 * bits / 8.
        let byte = |at: u32| if at.is_multiple_of(2) { (at / 2) as u8 } else { (at / 512) as u8 };
        for (row_number, chunk, at) in
            (0..4).flat_map(|row| (0..8).flat_map(move |chunk| (0..8).map(move |at| (row, chunk, at))))
        {
            let source = 192 * (row_number + 1) + 128 * bits / 8 + chunk * 2 * bits + at;
            let place = row_number * row + chunk * if kept == 8 { 8 } else { 16 } + at;
            let word = found[place as usize / 2];
            let got = word.to_le_bytes()[place as usize % 2];
            assert_eq!(got, byte(source), "{element:?}, row {row_number}, chunk {chunk}, byte {at}");
        }
        if kept < 8 {
            // The padding is undefined.
            let fault = case.fault(&load_by(copy, bytes).replace(WRITE_TILE, &format!("{first_words}{WRITE_TILE}")));
            assert_eq!(fault.kind, FaultKind::UninitializedRead, "{element:?}");
        }
    }
}

#[test]
fn tensors_are_reduced() {
    let mut case = Case::rows(16, MapSwizzle::None);
    case.map.element = MapElement::U32;
    case.map.dims = vec![32, 16];
    case.map.access = MapAccess::Tiled(vec![32, 8]);
    let found = case.words_of_a(&store_by(
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd3, {0, 12}], [tile];",
    ));
    let want = |at: usize| if at < 768 { at as u16 } else { (2 * at - 768) as u16 };
    assert_eq!(found, (0..1024).map(want).collect::<Vec<u16>>());
    case.map.element = MapElement::F32;
    let fault = case.fault(&store_by(
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.tile.bulk_group [%rd3, {0, 12}], [tile];",
    ));
    assert_eq!(fault.message, "there is no reduction `xor` of elements of F32");
}

#[test]
fn bytes_are_stored_by_a_mask() {
    let copy = "mov.b16 %h1, 0x8001;\nmov.b32 %r3, 64;\n\
                cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd2], [tile+64], %r3, %h1;";
    let found = Case::rows(16, MapSwizzle::None).words(&store_by(copy));
    let want = |at: usize| match at % 8 {
        0 => (at as u16 + 32) & 0xff,
        7 => (at as u16 + 32) & 0xff00,
        _ => 0,
    };
    assert_eq!(found[..32], (0..32).map(want).collect::<Vec<u16>>());
}
