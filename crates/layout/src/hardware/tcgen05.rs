use super::choice::choices;
use super::{iter, refused};
use crate::axis::{LANEID, M, TID_IN_WG, WID_IN_WG};
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::tile::TileLayout;

const NAME: &str = "tcgen05_atom_layout";

choices! {
    /// A shape of `tcgen05.ld` and `tcgen05.st`: lanes of tensor memory x bits of each (PTX ISA, section "tcgen05 Data
    /// Movement Shape").
    pub Tcgen05Shape, "tcgen05.ld shape";
    /// 32 lanes, one register of each thread.
    S32x32b = "32x32b",
    /// 16 lanes of 64 bits.
    S16x64b = "16x64b",
    /// 16 lanes of 128 bits.
    S16x128b = "16x128b",
    /// 16 lanes of 256 bits.
    S16x256b = "16x256b",
    /// 16 lanes of 32 bits, twice; in these layouts the second half follows the columns of the first.
    S16x32bx2 = "16x32bx2",
}

impl Tcgen05Shape {
    /// Columns of 32 bits that `.x1` moves.
    pub fn columns(self) -> i64 {
        match self {
            Tcgen05Shape::S32x32b => 1,
            Tcgen05Shape::S16x64b | Tcgen05Shape::S16x32bx2 => 2,
            Tcgen05Shape::S16x128b => 4,
            Tcgen05Shape::S16x256b => 8,
        }
    }

    /// The greatest `.num`, which fills 128 registers. Smaller ones are powers of two.
    pub fn max_num(self) -> i64 {
        match self {
            Tcgen05Shape::S32x32b | Tcgen05Shape::S16x64b | Tcgen05Shape::S16x32bx2 => 128,
            Tcgen05Shape::S16x128b => 64,
            Tcgen05Shape::S16x256b => 32,
        }
    }
}

/// The register tile of a warpgroup that `tcgen05.ld` fills and `tcgen05.st` empties, `rows` x `cols` elements of
/// `bits`.
///
/// 32x32b moves 128 rows, row r by thread r; with 64 rows of 32 bits it matches datapath B or E, whose right half of
/// the columns is 64 lanes further. The shapes of 16 lanes move 64 rows, 16 per warp, or 128 rows with two
/// instructions, the second of which moves the upper 16 lanes to the upper registers. 16-bit elements are stored two
/// per 32-bit column, as in `.b32` moves without `.pack::16b`. The axes are `tid_in_wg`, or `laneid` and `wid_in_wg`,
/// and `m`. Source: PTX ISA, sections "tcgen05 Data Movement Shape" and "tcgen05.ld". Errors: other rows or bits,
/// columns that are not a power-of-two `.num` of the shape.
pub fn tcgen05_atom_layout(shape: Tcgen05Shape, rows: i64, cols: i64, bits: i64) -> Result<TileLayout, LayoutError> {
    let pack = match bits {
        32 => 1,
        16 => 2,
        _ => return Err(refused(NAME, format!("elements of {bits} bits"), "16 or 32 bits")),
    };
    if rows != 64 && rows != 128 {
        return Err(refused(NAME, format!("rows = {rows}"), "64 or 128 rows"));
    }
    let folded = shape == Tcgen05Shape::S32x32b && rows == 64;
    if folded && pack == 2 {
        return Err(refused(NAME, format!("64 rows of {bits} bits as {shape}"), "64 rows of 32 bits, or 128 rows"));
    }
    let unit = shape.columns() * pack * if folded { 2 } else { 1 };
    let num = checked_num(shape, cols, unit)?;
    let reg = |extent: i64, stride: i64| iter(extent, stride * pack, M);
    let lane = |extent: i64, stride: i64| iter(extent, stride, LANEID);
    let sixteen = |registers: i64, map: &[Iter]| slabs(rows, registers * pack, pack, map);
    let shard = match shape {
        Tcgen05Shape::S32x32b if folded => vec![iter(64, 1, TID_IN_WG), iter(2, 64, TID_IN_WG), iter(num, 1, M)],
        Tcgen05Shape::S32x32b => vec![iter(rows, 1, TID_IN_WG), iter(cols, 1, M)],
        Tcgen05Shape::S16x64b => sixteen(num, &[lane(2, 1), lane(8, 4), reg(num, 1), lane(2, 2)]),
        Tcgen05Shape::S16x128b => sixteen(2 * num, &[reg(2, 1), lane(8, 4), reg(num, 2), lane(4, 1)]),
        Tcgen05Shape::S16x256b => sixteen(4 * num, &[reg(2, 2), lane(8, 4), reg(num, 4), lane(4, 1), reg(2, 1)]),
        Tcgen05Shape::S16x32bx2 => sixteen(num, &[lane(16, 1), lane(2, 16), reg(num, 1)]),
    };
    TileLayout::new(shard, Vec::new(), [])
}

/// `.num`, from the columns and the number of columns that one repetition moves.
fn checked_num(shape: Tcgen05Shape, cols: i64, unit: i64) -> Result<i64, LayoutError> {
    let num = cols / unit;
    if cols < 1 || cols % unit != 0 || num.count_ones() != 1 || num > shape.max_num() {
        let legal = format!("{unit} times a power of two up to {}", shape.max_num());
        return Err(refused(NAME, format!("columns = {cols} as {shape}"), legal));
    }
    Ok(num)
}

/// 16 rows of each of four warps, placed by `map`; with 128 rows, the other 16 of each warp are in the next `elements`
/// elements of each thread.
fn slabs(rows: i64, elements: i64, pack: i64, map: &[Iter]) -> Vec<Iter> {
    let mut shard = vec![iter(4, 1, WID_IN_WG)];
    if rows == 128 {
        shard.push(iter(2, elements, M));
    }
    shard.extend_from_slice(map);
    if pack > 1 {
        shard.push(iter(pack, 1, M));
    }
    shard
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::check::assert_formula;

    /// Lane and 32-bit column of the tensor memory of one warp that `register` of `lane` holds after `.x<num>`.
    fn place(shape: Tcgen05Shape, num: i64, lane: i64, register: i64) -> (i64, i64) {
        let (quad, fourth) = (lane / 4, lane % 4);
        match shape {
            Tcgen05Shape::S32x32b => (lane, register),
            Tcgen05Shape::S16x64b => (quad + 8 * (lane & 1), 2 * register + ((lane >> 1) & 1)),
            Tcgen05Shape::S16x128b => (quad + 8 * (register & 1), 4 * (register >> 1) + fourth),
            Tcgen05Shape::S16x256b => {
                (quad + 8 * ((register >> 1) & 1), 8 * (register >> 2) + 2 * fourth + (register & 1))
            }
            Tcgen05Shape::S16x32bx2 => (lane % 16, num * (lane / 16) + register),
        }
    }

    #[test]
    fn every_shape_gives_each_register_its_lane_and_column() {
        for shape in Tcgen05Shape::ALL.iter().copied() {
            for num in [1, 4, shape.max_num() / 4] {
                let (rows, cols) = (if shape == Tcgen05Shape::S32x32b { 128 } else { 64 }, num * shape.columns());
                let layout = tcgen05_atom_layout(shape, rows, cols, 32).unwrap();
                assert_formula(&layout, &[rows, cols], 128, |thread, register| {
                    let (row, col) = place(shape, num, thread % 32, register);
                    vec![thread / 32 * (rows / 4) + row, col]
                });
            }
        }
    }

    #[test]
    fn half_precision_lies_two_to_a_column() {
        for shape in Tcgen05Shape::ALL.iter().copied() {
            let (rows, cols) = (if shape == Tcgen05Shape::S32x32b { 128 } else { 64 }, 8 * shape.columns());
            let layout = tcgen05_atom_layout(shape, rows, cols, 16).unwrap();
            assert_formula(&layout, &[rows, cols], 128, |thread, element| {
                let (row, col) = place(shape, 4, thread % 32, element / 2);
                vec![thread / 32 * (rows / 4) + row, 2 * col + element % 2]
            });
        }
    }

    #[test]
    fn the_upper_16_lanes_of_128_rows_are_in_the_upper_registers() {
        for shape in Tcgen05Shape::ALL.iter().copied().filter(|shape| *shape != Tcgen05Shape::S32x32b) {
            let cols = 4 * shape.columns();
            let half = 16 * cols / 32;
            let layout = tcgen05_atom_layout(shape, 128, cols, 32).unwrap();
            assert_formula(&layout, &[128, cols], 128, |thread, register| {
                let (row, col) = place(shape, 4, thread % 32, register % half);
                vec![thread / 32 * 32 + register / half * 16 + row, col]
            });
        }
    }

    #[test]
    fn sixty_four_rows_of_32x32b_are_the_image_of_datapath_b() {
        let layout = tcgen05_atom_layout(Tcgen05Shape::S32x32b, 64, 16, 32).unwrap();
        assert_formula(&layout, &[64, 16], 128, |thread, register| vec![thread % 64, thread / 64 * 8 + register]);
    }

    #[test]
    fn what_the_instruction_does_not_have_is_refused() {
        let refusals = [
            (Tcgen05Shape::S32x32b, 64, 1, 32),
            (Tcgen05Shape::S32x32b, 64, 6, 32),
            (Tcgen05Shape::S32x32b, 64, 8, 16),
            (Tcgen05Shape::S32x32b, 128, 1, 16),
            (Tcgen05Shape::S16x64b, 64, 0, 32),
            (Tcgen05Shape::S16x64b, 64, 6, 32),
            (Tcgen05Shape::S16x64b, 64, 8, 8),
            (Tcgen05Shape::S16x64b, 32, 8, 32),
            (Tcgen05Shape::S16x256b, 64, 512, 32),
        ];
        for (shape, rows, cols, bits) in refusals {
            assert_eq!(tcgen05_atom_layout(shape, rows, cols, bits).unwrap_err().code(), "L0113", "{shape} {cols}");
        }
    }
}
