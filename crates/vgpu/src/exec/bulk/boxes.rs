//! Which bytes a tensor copy moves: the rows of a box, of four single rows, or of pixels (PTX ISA, sections 5.5.3 to 5.5.7).

use crate::op::TensorMode;
use crate::tensor_map::{Chunk, GRANULE, Im2col, MapAccess, MapSwizzle, TensorMap};

/// Bytes that all swizzles but those that flip keep together.
const UNIT: u64 = 16;

/// Where the bytes of a part come from, or go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outside {
    /// An address in global memory.
    At(u64),
    /// They are outside the tensor.
    Fill,
    /// They are between elements.
    Padding,
    /// They are the response of an engine.
    Response,
}

/// Adjacent bytes in both memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) shared: u64,
    pub(super) outside: Outside,
    pub(super) len: u64,
    /// They are a whole span of this swizzle, which keeps units together, and permuted within it in shared memory.
    pub(super) permuted: Option<MapSwizzle>,
}

/// The rows that a copy moves.
struct Rows {
    /// For each, the address of the first element of the tensor's row; `None` if it is outside the tensor.
    addresses: Vec<Option<u64>>,
    /// The first element of the tensor's row that is copied.
    first: i64,
}

/// The parts of a copy to or from `shared`.
///
/// # Errors
/// What is illegal about the coordinates.
pub(super) fn parts_of(
    map: &TensorMap,
    mode: &TensorMode,
    shared: u64,
    at: &[i64],
    offsets: &[i64],
) -> Result<Vec<Part>, String> {
    let rows = match (&map.access, mode) {
        (MapAccess::Tiled(sides), TensorMode::Tile) => {
            must_have_coordinates(at, map.rank())?;
            rows_of_box(map, sides, at)
        }
        (MapAccess::Tiled(sides), TensorMode::Rows) => {
            if map.rank() != 2 || sides[1] != 1 {
                let text = "`tile::gather4` and `tile::scatter4` use a map of two dimensions whose box has one row";
                let (rank, rows) = (map.rank(), sides.get(1).copied().unwrap_or(1));
                return Err(format!("{text}; this one has {rank} dimensions and {rows} rows"));
            }
            must_have_coordinates(at, 5)?;
            let addresses = at[1..].iter().map(|row| address(map, &[*row])).collect();
            Rows { addresses, first: at[0] }
        }
        (MapAccess::Im2col(pixels), TensorMode::Im2col) => {
            must_have_coordinates(at, map.rank())?;
            rows_of_pixels(map, pixels, at, offsets)?
        }
        (MapAccess::Tiled(_), TensorMode::Im2col) => {
            return Err("an `im2col` copy with a map of boxes (tiled)".to_string());
        }
        (MapAccess::Im2col(_), _) => return Err("a copy of boxes (tiled) with an `im2col` map".to_string()),
    };
    let unit = map.element.start_unit();
    if rows.first.rem_euclid(unit) != 0 {
        return Err(format!("the first coordinate of such a map is a multiple of {unit}; this one is {}", rows.first));
    }
    let mut parts = Vec::new();
    for (number, row) in rows.addresses.iter().enumerate() {
        let start = shared + number as u64 * map.row_pitch();
        add_row(map, start, (*row, rows.first), &mut parts);
    }
    Ok(parts)
}

fn must_have_coordinates(at: &[i64], want: usize) -> Result<(), String> {
    if at.len() == want {
        return Ok(());
    }
    Err(format!("a copy of {} dimensions with a map of {want}", at.len()))
}

/// The address of the tensor's row at these coordinates, all but the first; `None` if it is outside.
fn address(map: &TensorMap, at: &[i64]) -> Option<u64> {
    let mut address = map.address;
    for ((index, size), stride) in at.iter().zip(&map.dims[1..]).zip(&map.strides) {
        if !(0..*size as i64).contains(index) {
            return None;
        }
        address = address.wrapping_add((*index as u64).wrapping_mul(*stride));
    }
    Some(address)
}

fn rows_of_box(map: &TensorMap, sides: &[u64], at: &[i64]) -> Rows {
    let count: u64 = (1..map.rank()).map(|dim| map.copied(sides, dim)).product();
    let row = |row: u64| {
        let mut rest = row;
        let mut index = Vec::with_capacity(map.rank());
        for (dim, start) in at.iter().enumerate().skip(1) {
            let step = rest % map.copied(sides, dim);
            rest /= map.copied(sides, dim);
            index.push(start + (step * map.element_strides[dim]) as i64);
        }
        address(map, &index)
    };
    Rows { addresses: (0..count).map(row).collect(), first: at[0] }
}

/// The bases of the filter follow each other in steps of the element strides, from the one at the coordinates on, through
/// the first dimension of space, then the next one, then the images. The offsets select a pixel of the filter.
fn rows_of_pixels(map: &TensorMap, pixels: &Im2col, at: &[i64], offsets: &[i64]) -> Result<Rows, String> {
    let space = map.rank() - 2;
    let most = [0xffff, 0xff, 0x1f][map.rank() - 3];
    if let Some(offset) = offsets.iter().find(|offset| **offset > most) {
        return Err(format!("an `im2col` offset is 0 to {most} in {} dimensions; this one is {offset}", map.rank()));
    }
    let end = |dim: usize| map.dims[dim + 1] as i64 + pixels.upper[dim];
    let mut base = at[1..].to_vec();
    for (dim, base) in base.iter().enumerate().take(space) {
        let bases = pixels.lower[dim]..end(dim);
        if !bases.contains(base) {
            let text = format!("coordinate {} is {base}", dim + 1);
            return Err(format!("{text}; the bases of the filter are {} to {}", bases.start, bases.end - 1));
        }
    }
    let mut addresses = Vec::new();
    for _ in 0..pixels.pixels {
        let mut pixel = base.clone();
        pixel.iter_mut().zip(offsets).for_each(|(position, offset)| *position += offset);
        addresses.push(address(map, &pixel));
        let mut dim = 0;
        while dim < space {
            base[dim] += map.element_strides[dim + 1] as i64;
            if base[dim] < end(dim) {
                break;
            }
            base[dim] = pixels.lower[dim];
            dim += 1;
        }
        if dim == space {
            base[space] += 1;
        }
    }
    Ok(Rows { addresses, first: at[0] })
}

/// Adds a row that is at `start` in shared memory, before the swizzle.
fn add_row(map: &TensorMap, start: u64, (row, first): (Option<u64>, i64), parts: &mut Vec<Part>) {
    let Chunk { elements, bytes, shared } = map.element.chunk();
    let chunks = map.row() / elements;
    let size = map.dims[0] as i64;
    // The chunks of the row that are inside the tensor.
    let inside = |element: i64| ((element - first).clamp(0, map.row() as i64) as u64).div_ceil(elements);
    let (low, high) = if row.is_some() { (inside(0), inside(size)) } else { (chunks, chunks) };
    let at = |chunk: u64| {
        let offset = (first.div_euclid(elements as i64) + chunk as i64).wrapping_mul(bytes as i64);
        row.filter(|_| (low..high).contains(&chunk))
            .map_or(Outside::Fill, |row| Outside::At(row.wrapping_add(offset as u64)))
    };
    if map.element.is_padded() {
        for chunk in 0..chunks {
            let to = map.swizzle.apply(start + chunk * shared);
            parts.push(Part { shared: to, outside: at(chunk), len: bytes, permuted: None });
            let padding = shared - bytes;
            parts.push(Part { shared: to + bytes, outside: Outside::Padding, len: padding, permuted: None });
        }
        return;
    }
    for (from, to) in [(0, low), (low, high), (high, chunks)] {
        add_run(map.swizzle, start + from * bytes, at(from), (to.saturating_sub(from)) * bytes, parts);
    }
}

/// Adds bytes that are adjacent before the swizzle.
fn add_run(swizzle: MapSwizzle, start: u64, outside: Outside, len: u64, parts: &mut Vec<Part>) {
    let mut done = 0;
    while done < len {
        let place = start + done;
        let (step, permuted) = match swizzle.span() {
            None => (len, None),
            Some(_) if swizzle == MapSwizzle::B128Atom32Flip8 => (GRANULE - place % GRANULE, None),
            Some(span) if place.is_multiple_of(span) && len - done >= span => (span, Some(swizzle)),
            Some(_) => (UNIT - place % UNIT, None),
        };
        let step = step.min(len - done);
        let shared = if permuted.is_some() { place } else { swizzle.apply(place) };
        let outside = match outside {
            Outside::At(address) => Outside::At(address.wrapping_add(done)),
            Outside::Fill | Outside::Padding | Outside::Response => outside,
        };
        parts.push(Part { shared, outside, len: step, permuted });
        done += step;
    }
}

/// The bytes of a whole span in the other order: the swizzle is its own inverse. `start` is where the span begins.
pub(super) fn permute<T: Copy>(swizzle: MapSwizzle, start: u64, values: &[T]) -> Vec<T> {
    let (units, _) = values.as_chunks::<{ UNIT as usize }>();
    let mut found = Vec::with_capacity(values.len());
    for at in 0..units.len() as u64 {
        let from = swizzle.apply(start + at * UNIT) - start;
        found.extend_from_slice(&units[(from / UNIT) as usize]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor_map::MapElement;

    /// Example 2 of the PTX ISA, section 5.5.4.1, with four channels.
    #[test]
    fn pixels_wrap_at_the_ends_of_the_bases() {
        let pixels = Im2col { lower: vec![0, 0], upper: vec![-2, -2], channels: 8, pixels: 64 };
        let map = TensorMap {
            address: 0,
            element: MapElement::Bf16,
            fills_nan: false,
            dims: vec![64, 9, 14, 64],
            strides: vec![128, 1152, 16128],
            access: MapAccess::Im2col(pixels),
            element_strides: vec![1; 4],
            swizzle: MapSwizzle::None,
        };
        let at = |pixel: u64| {
            let parts = parts_of(&map, &TensorMode::Im2col, 1024, &[0, 4, 7, 7], &[2, 2]).unwrap();
            assert_eq!(parts.len(), 64);
            parts[pixel as usize].outside
        };
        let address = |w: u64, h: u64, n: u64| Outside::At(w * 128 + h * 1152 + n * 16128);
        // Bases 4, 5 and 6 of the row, and then those of the next row from 0 on; four more rows, then the next image.
        assert_eq!(at(0), address(4 + 2, 7 + 2, 7));
        assert_eq!(at(2), address(6 + 2, 7 + 2, 7));
        assert_eq!(at(3), address(2, 8 + 2, 7));
        assert_eq!(at(3 + 7 * 4), address(2, 2, 8));
        let outside = parts_of(&map, &TensorMode::Im2col, 1024, &[0, 7, 7, 7], &[2, 2]);
        assert_eq!(outside, Err("coordinate 1 is 7; the bases of the filter are 0 to 6".to_string()));
    }

    #[test]
    fn a_whole_span_is_one_part() {
        let map = TensorMap {
            address: 4096,
            element: MapElement::F32,
            fills_nan: false,
            dims: vec![40, 4],
            strides: vec![256],
            access: MapAccess::Tiled(vec![32, 2]),
            element_strides: vec![1, 1],
            swizzle: MapSwizzle::B128,
        };
        let found = parts_of(&map, &TensorMode::Tile, 1024, &[0, 3], &[]).unwrap();
        let whole =
            |shared: u64, outside: Outside| Part { shared, outside, len: 128, permuted: Some(MapSwizzle::B128) };
        assert_eq!(found, [whole(1024, Outside::At(4096 + 768)), whole(1152, Outside::Fill)]);
        // Eight elements are inside: two chunks, and six outside.
        let found = parts_of(&map, &TensorMode::Tile, 1152, &[32, 0], &[]).unwrap();
        let places: Vec<u64> = found.iter().take(8).map(|part| part.shared).collect();
        assert_eq!(places, [1, 0, 3, 2, 5, 4, 7, 6].map(|unit| 1152 + unit * 16));
        assert_eq!((found[1].outside, found[2].outside), (Outside::At(4096 + 144), Outside::Fill));
    }

    #[test]
    fn every_byte_of_a_span_is_where_the_swizzle_says() {
        for swizzle in MapSwizzle::ALL {
            for (start, len) in [(1024, 512), (1024 + 128, 128), (1024 + 40, 300)] {
                let mut parts = Vec::new();
                add_run(swizzle, start, Outside::At(0), len, &mut parts);
                let mut shared = vec![None; 2048];
                for part in parts {
                    let Outside::At(from) = part.outside else { panic!("{part:?}") };
                    let bytes: Vec<u64> = (from..from + part.len).collect();
                    let bytes = part.permuted.map_or(bytes.clone(), |swizzle| permute(swizzle, part.shared, &bytes));
                    (part.shared..).zip(bytes).for_each(|(at, byte)| shared[at as usize - 1024] = Some(byte));
                }
                let wrong = (0..len).find(|at| shared[swizzle.apply(start + at) as usize - 1024] != Some(*at));
                assert_eq!(wrong, None, "{swizzle:?} {start}");
            }
        }
    }

    #[test]
    fn padding_follows_the_elements() {
        let map = TensorMap {
            address: 0,
            element: MapElement::B6x16P32,
            fills_nan: false,
            dims: vec![128, 1],
            strides: vec![96],
            access: MapAccess::Tiled(vec![128, 1]),
            element_strides: vec![1, 1],
            swizzle: MapSwizzle::None,
        };
        let found = parts_of(&map, &TensorMode::Tile, 0, &[0, 0], &[]).unwrap();
        let part = |shared: u64, outside: Outside, len: u64| Part { shared, outside, len, permuted: None };
        assert_eq!(found.len(), 16);
        assert_eq!(found[2..4], [part(16, Outside::At(12), 12), part(28, Outside::Padding, 4)]);
        assert!(parts_of(&map, &TensorMode::Tile, 0, &[8, 0], &[]).is_err());
    }
}
