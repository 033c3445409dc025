//! Compares layouts with those of the hardware and of TileLang's golden programs.

use tilewright_layout::Layout;
use tilewright_layout::hardware::{MmaOperand, mma_fragment};

use super::*;

fn gemm(transpose_a: bool, transpose_b: bool, policy: WarpPolicy) -> Gemm {
    Gemm { transpose_a, transpose_b, policy, ..Gemm::PLAIN }
}

fn halves(shape: [i64; 3], warps: i64, attributes: Gemm) -> Product {
    Product::new(shape, [DType::F16, DType::F32], warps, attributes).unwrap()
}

/// The thread and slot of every element; each element must have exactly one.
fn places(map: &Map) -> Vec<(i64, i64)> {
    let mut places = vec![None; map.elements()];
    for (thread, slot, element) in map.entries() {
        assert_eq!(places[element].replace((thread as i64, slot as i64)), None, "element {element} is there twice");
    }
    places.into_iter().map(Option::unwrap).collect()
}

#[test]
fn one_atom_is_as_the_hardware_has_it() {
    for inst in MmaInst::ALL.iter().copied() {
        let info = inst.info();
        let (m, n, k) = info.shape.mnk();
        let product = Product::shared_by([1, 1], inst, [m, n, k], gemm(false, false, WarpPolicy::Square)).unwrap();
        let accumulator = match info.sum {
            DType::F16 => "f16",
            DType::I32 => "s32",
            other => other.name(),
        };
        let accumulator = accumulator.parse().unwrap();
        let operands = [(Matrix::C, MmaOperand::C, accumulator), (Matrix::A, MmaOperand::A, info.element)];
        for (matrix, operand, element) in operands.into_iter().chain([(Matrix::B, MmaOperand::B, info.element)]) {
            let layout = Layout::from(mma_fragment(info.shape, operand, element, None).unwrap());
            let hardware = Map::of_layout(&layout, 32).unwrap();
            assert_eq!(product.map(matrix), hardware, "{} of {}", matrix.name(), info.name);
            let held = info.elements_per_lane()[Matrix::ALL.iter().position(|one| *one == matrix).unwrap()];
            assert_eq!(product.part(matrix).elements_per_lane(), held);
        }
    }
}

#[test]
fn sums_of_the_golden_square_product_are_where_tilelang_has_them() {
    // gemm_sm_80_64x64x32_t128_float16, and with a bias and row sums.
    let product = halves([64, 64, 32], 4, gemm(false, false, WarpPolicy::Square));
    for (element, place) in places(&product.map(Matrix::C)).into_iter().enumerate() {
        let (i, j) = (element as i64 / 64, element as i64 % 64);
        let thread = j / 32 * 64 + i / 32 * 32 + i % 8 * 4 + j % 8 / 2;
        let slot = i % 32 / 16 * 16 + j % 32 / 8 * 4 + i % 16 / 8 * 2 + j % 2;
        assert_eq!(place, (thread, slot), "({i}, {j})");
    }
}

#[test]
fn sums_of_the_golden_product_with_b_transposed_are_where_tilelang_has_them() {
    // gemm_transpose_b_sm_80.
    let product = halves([32, 32, 64], 2, gemm(false, true, WarpPolicy::Square));
    for (element, place) in places(&product.map(Matrix::C)).into_iter().enumerate() {
        let (i, j) = (element as i64 / 32, element as i64 % 32);
        let thread = j / 16 * 32 + i % 8 * 4 + j % 8 / 2;
        let slot = i / 16 * 8 + j % 16 / 8 * 4 + i % 16 / 8 * 2 + j % 2;
        assert_eq!(place, (thread, slot), "({i}, {j})");
    }
}

#[test]
fn sums_can_be_the_left_multiplicand_of_the_next_product() {
    // gemm_flash_attention_sm_80.
    let scores = halves([64, 64, 64], 4, gemm(false, true, WarpPolicy::FullRow));
    let output = halves([64, 64, 64], 4, gemm(false, false, WarpPolicy::FullRow));
    assert_eq!(scores.map(Matrix::C), output.map(Matrix::A));
    for (element, place) in places(&output.map(Matrix::A)).into_iter().enumerate() {
        let (i, j) = (element as i64 / 64, element as i64 % 64);
        assert_eq!(place, (i / 16 * 32 + i % 8 * 4 + j % 8 / 2, j / 8 * 4 + i % 16 / 8 * 2 + j % 2), "({i}, {j})");
    }
    // Two atoms across.
    let scores = halves([128, 32, 64], 4, gemm(false, true, WarpPolicy::FullRow));
    let output = halves([128, 64, 32], 4, gemm(false, false, WarpPolicy::FullRow));
    assert_eq!(scores.map(Matrix::C), output.map(Matrix::A));
}

#[test]
fn multiplicands_are_copied_to_the_warps_that_share_their_lines() {
    for (transpose_a, transpose_b) in [(false, false), (true, true)] {
        let product = halves([64, 96, 48], 8, gemm(transpose_a, transpose_b, WarpPolicy::Square));
        assert_eq!(product.warps, [2, 4]);
        for (matrix, copies) in [(Matrix::C, 1), (Matrix::A, 4), (Matrix::B, 2)] {
            let (map, owners) = (product.map(matrix), product.map(matrix).owners());
            assert_eq!(map.slots() as i64, product.part(matrix).slots());
            assert_eq!(map.entries().count(), map.threads() * map.slots(), "every slot is full");
            assert!((0..map.elements()).all(|element| owners.of(element).len() == copies), "{}", matrix.name());
        }
    }
}

#[test]
fn transposed_operands_are_the_same_with_rows_and_columns_exchanged() {
    let plain = halves([32, 16, 32], 2, gemm(false, false, WarpPolicy::FullRow));
    let turned = halves([32, 16, 32], 2, gemm(true, true, WarpPolicy::FullRow));
    for (matrix, rows, columns) in [(Matrix::A, 32, 32), (Matrix::B, 32, 16)] {
        let (plain, turned) = (plain.map(matrix), turned.map(matrix));
        for (thread, slot, element) in plain.entries() {
            let exchanged = element % columns * rows + element / columns;
            assert_eq!(turned.at(thread, slot), Some(exchanged));
        }
    }
}

#[test]
fn policies_lay_out_the_warps() {
    let warps = |shape: [i64; 3], warps: i64, policy: WarpPolicy| {
        let product = Product::new(shape, [DType::F16, DType::F32], warps, gemm(false, false, policy));
        product.map(|product| product.warps).ok()
    };
    use WarpPolicy::{FullCol, FullRow, Square};
    assert_eq!(warps([64, 64, 16], 4, Square), Some([2, 2]));
    assert_eq!(warps([32, 32, 16], 2, Square), Some([1, 2]));
    assert_eq!(warps([128, 128, 16], 8, Square), Some([2, 4]));
    assert_eq!(warps([64, 64, 16], 4, FullRow), Some([4, 1]));
    assert_eq!(warps([64, 64, 16], 4, FullCol), Some([1, 4]));
    // As many along the rows as there are atoms.
    assert_eq!(warps([32, 64, 16], 4, FullRow), Some([2, 2]));
    assert_eq!(warps([64, 16, 16], 4, FullCol), Some([2, 2]));
    assert_eq!(warps([16, 8, 16], 2, Square), None);
    assert_eq!(warps([64, 64, 16], 3, FullRow), None);
}

#[test]
fn the_deepest_instruction_that_divides_is_taken() {
    let inst = |shape: [i64; 3], dtypes: [DType; 2]| {
        Product::new(shape, dtypes, 1, gemm(false, false, WarpPolicy::Square)).map(|product| product.inst).ok()
    };
    assert_eq!(inst([16, 8, 32], [DType::F16, DType::F32]), Some(MmaInst::F16K16F32));
    assert_eq!(inst([16, 8, 24], [DType::F16, DType::F16]), Some(MmaInst::F16K8F16));
    assert_eq!(inst([16, 8, 12], [DType::F32, DType::F32]), Some(MmaInst::Tf32K4F32));
    assert_eq!(inst([8, 8, 4], [DType::F64, DType::F64]), Some(MmaInst::F64K4F64));
    assert_eq!(inst([16, 8, 12], [DType::F16, DType::F32]), None);
    assert_eq!(inst([24, 8, 16], [DType::F16, DType::F32]), None);
    assert_eq!(inst([16, 8, 16], [DType::F32, DType::F16]), None);
}

#[test]
fn what_cannot_be_done_is_said_in_terms_of_the_product() {
    let why = |shape: [i64; 3], dtypes: [DType; 2], warps: i64| {
        Product::new(shape, dtypes, warps, gemm(false, false, WarpPolicy::Square)).unwrap_err().text
    };
    assert_eq!(why([16, 8, 16], [DType::F32, DType::F16], 1), "`mma.sync` does not multiply f32 and accumulate in f16");
    assert_eq!(why([16, 8, 12], [DType::F16, DType::F32], 1), "K = 12 is not a multiple of 8, as m16n8k8 needs");
    let both = "M = 24 is not a multiple of 16, and K = 12 is not a multiple of 8, as m16n8k8 needs";
    assert_eq!(why([24, 8, 12], [DType::F16, DType::F32], 1), both);
    assert_eq!(
        why([64, 64, 16], [DType::F16, DType::F32], 3),
        "3 warps cannot split 4 x 8 instruction tiles of 16 x 8"
    );
}

#[test]
fn numbers_of_threads_that_can_split_a_product_are_named() {
    let accepted = |shape: [i64; 3], warps: i64| {
        let refused = Product::new(shape, [DType::F16, DType::F32], warps, gemm(false, false, WarpPolicy::Square));
        let accepted = refused.unwrap_err().accepted;
        accepted.split_once(": ").map_or(String::new(), |(_, threads)| threads.to_string())
    };
    assert_eq!(accepted([80, 40, 16], 4), "32 or 160 threads, or a larger tile such as 128 x 40");
    assert_eq!(accepted([16, 8, 16], 4), "32 threads, or a larger tile such as 64 x 8");
}
