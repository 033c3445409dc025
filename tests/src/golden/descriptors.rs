//! Cases about hardware descriptors: words against the known ones; and for tiles in shared memory, descriptors and
//! tensor maps derived from the layout, read by decoders that are written here from the PTX ISA and know nothing of the
//! library's forms.

use std::collections::BTreeMap;

use serde_json::Value;
use tilewright::layout::axis::M;
use tilewright::layout::descriptor::{
    DenseInstruction, InstructionShape, InstructionTypes, Major, ScaledInstruction, SwizzlePattern, Tcgen05Descriptor,
    TensorMap, block_scaled, dense, tcgen05_descriptor, tensor_map, wgmma_descriptor,
};
use tilewright::layout::hardware::{CtaGroup, MmaType};
use tilewright::layout::{Layout, LayoutError, TileLayout};

use super::table::parsed_layout;
use super::{integers, same};

type Checked = Result<(), String>;

/// `instr_desc_dense`: kind and word from types and sizes, or the fact that there is none.
pub(crate) fn instr_desc_dense(case: &Value) -> Checked {
    let given = &case["in"];
    match dense(shape(given)?, types(given)?, [flag(given, "trans_a"), flag(given, "trans_b")]) {
        Err(error) => refused(case, &error),
        Ok((kind, mut descriptor)) => {
            descriptor.saturate = flag(given, "sat_d");
            descriptor.negate_a = flag(given, "neg_a");
            descriptor.negate_b = flag(given, "neg_b");
            let word = descriptor.encode();
            same("read back", DenseInstruction::decode(word), Ok(descriptor))?;
            accepted(case, kind.name(), word)
        }
    }
}

/// `instr_desc_block_scaled`: likewise, with scale factors.
pub(crate) fn instr_desc_block_scaled(case: &Value) -> Checked {
    let given = &case["in"];
    let scale = match given["sf"].as_str() {
        Some("float8_e8m0fnu") => MmaType::Ue8m0,
        Some("float8_e4m3fn") => MmaType::Ue4m3,
        _ => return Err(format!("no type of scale factors: {}", given["sf"])),
    };
    match block_scaled(shape(given)?, types(given)?, scale, [flag(given, "trans_a"), flag(given, "trans_b")]) {
        Err(error) => refused(case, &error),
        Ok((kind, descriptor)) => {
            let word = descriptor.encode();
            same("read back", ScaledInstruction::decode(word), Ok(descriptor))?;
            accepted(case, kind.name(), word)
        }
    }
}

/// `smem_desc_base`: the word of a shared-memory descriptor, from its fields.
pub(crate) fn smem_desc_base(case: &Value) -> Checked {
    let field = |name: &str| -> Result<u16, String> {
        let value = case["in"][name].as_u64().ok_or_else(|| format!("no {name}"))?;
        u16::try_from(value).map_err(|e| format!("{name}: {e}"))
    };
    let swizzle = match field("swizzle")? {
        0 => SwizzlePattern::None,
        1 => SwizzlePattern::B32,
        2 => SwizzlePattern::B64,
        3 => SwizzlePattern::B128,
        4 => SwizzlePattern::B128Atom32,
        other => return Err(format!("no swizzle: {other}")),
    };
    let descriptor = Tcgen05Descriptor {
        start_address: 0,
        leading_byte_offset: field("ldo")?,
        stride_byte_offset: field("sdo")?,
        base_offset: 0,
        leading_is_address: false,
        swizzle,
    };
    let word = descriptor.encode();
    same("read back", Tcgen05Descriptor::decode(word), Ok(descriptor))?;
    same("word", Some(format!("{word:016x}").as_str()), case["out"]["desc_hex"].as_str())
}

fn accepted(case: &Value, kind: &str, word: u32) -> Checked {
    if case.get("reject").is_some() {
        return Err(format!("must be refused, but is {kind} {word:#010x}"));
    }
    same("kind", Some(kind), case["out"]["kind"].as_str())?;
    same("word", Some(u64::from(word)), case["out"]["desc"].as_u64())
}

fn refused(case: &Value, error: &LayoutError) -> Checked {
    if case.get("reject").is_none() {
        return Err(error.to_string());
    }
    same("code", error.code(), "L0113")
}

fn shape(given: &Value) -> Result<InstructionShape, String> {
    let number = |name: &str| given[name].as_i64().ok_or_else(|| format!("no {name}"));
    let cta_group = match number("cta_group")? {
        1 => CtaGroup::One,
        2 => CtaGroup::Two,
        other => return Err(format!("no CTA group: {other}")),
    };
    Ok(InstructionShape { cta_group, m: number("M")?, n: number("N")?, k: number("K")? })
}

fn types(given: &Value) -> Result<InstructionTypes, String> {
    Ok(InstructionTypes { d: element(&given["d"])?, a: element(&given["a"])?, b: element(&given["b"])? })
}

fn element(name: &Value) -> Result<MmaType, String> {
    match name.as_str().unwrap_or("") {
        "float32" => Ok(MmaType::F32),
        "float16" => Ok(MmaType::F16),
        "bfloat16" => Ok(MmaType::Bf16),
        "tf32" => Ok(MmaType::Tf32),
        "float8_e4m3fn" => Ok(MmaType::E4m3),
        "float8_e5m2" => Ok(MmaType::E5m2),
        "float4_e2m1fn" => Ok(MmaType::E2m1),
        "int8" => Ok(MmaType::S8),
        "uint8" => Ok(MmaType::U8),
        "int32" => Ok(MmaType::S32),
        other => Err(format!("no element type: {other}")),
    }
}

fn flag(given: &Value, name: &str) -> bool {
    given[name].as_bool().unwrap_or(false)
}

/// For an `mma_shared_layout` case: the descriptors of both engines, stage by stage, and the tensor map of the whole
/// tile address exactly the bytes that `apply` gives; or the tile has no whole K-step, or no whole chunk in a row.
pub(crate) fn derived(case: &Value) -> Checked {
    let shape = integers(&case["in"]["shape"])?;
    let bits = element(&case["in"]["dtype"])?.bits();
    let layout = parsed_layout(&case["out"]["result"]["text"])?;
    let [outer @ .., rows, columns] = &shape[..] else { return Err(format!("no tile: {shape:?}")) };
    let (rows, columns, stages) = (*rows, *columns, outer.iter().product::<i64>());
    let bytes = bytes_of(&layout, bits)?;
    for (stage, bytes) in (0..stages).zip(bytes.chunks((rows * columns) as usize)) {
        let region = [stage..stage + 1, 0..rows, 0..columns];
        let tile = layout.slice(&[stages, rows, columns], &region).map_err(|e| e.to_string())?;
        operand(&tile, Tile { rows, columns, bits, bytes })?;
    }
    copied(&layout, &shape, bits, &bytes)
}

/// The byte at which every element begins, by `apply`.
fn bytes_of(layout: &Layout, bits: i64) -> Result<Vec<i64>, String> {
    let begin = |flat: i64| -> Result<i64, String> {
        let places = layout.apply(flat).map_err(|e| e.to_string())?;
        same(&format!("places of element {flat}"), places.len(), 1)?;
        Ok(places[0].get(&M).copied().unwrap_or(0) * bits / 8)
    };
    (0..layout.size()).map(begin).collect()
}

/// One operand tile: the byte at which every element begins, row by row.
#[derive(Clone, Copy)]
struct Tile<'a> {
    rows: i64,
    columns: i64,
    bits: i64,
    bytes: &'a [i64],
}

fn operand(layout: &Layout, tile: Tile<'_>) -> Checked {
    let shape = [tile.rows, tile.columns];
    match tcgen05_descriptor(layout, shape, tile.bits, Major::K) {
        Err(error) => excused(&error, tile.columns * tile.bits % 256 != 0)?,
        Ok(found) => tile.check(&Engine::tcgen05(found.descriptor.encode())?, &found.advance)?,
    }
    match wgmma_descriptor(layout, shape, tile.bits, Major::K) {
        Err(error) => excused(&error, tile.columns * tile.bits % 256 != 0),
        Ok(found) => tile.check(&Engine::wgmma(found.descriptor.encode())?, &found.advance),
    }
}

/// An error must be about a tile that no descriptor can have.
fn excused(error: &LayoutError, impossible: bool) -> Checked {
    if impossible { same("code", error.code(), "L0114") } else { Err(error.to_string()) }
}

/// What a matrix engine reads out of a descriptor.
struct Engine {
    start: i64,
    leading: i64,
    stride: i64,
    /// Bytes of one row: 16 without a swizzle.
    row: i64,
}

impl Engine {
    /// PTX ISA, "Shared memory descriptor" of tcgen05: swizzle in bits 61 to 63, the constant 1 in bits 46 to 48.
    fn tcgen05(word: u64) -> Result<Engine, String> {
        same("bits 46 to 60", (word >> 46) & 0x7fff, 1)?;
        let row = match word >> 61 {
            0 => 16,
            2 => 128,
            4 => 64,
            6 => 32,
            other => return Err(format!("no K-major swizzle: {other}")),
        };
        Ok(Engine::new(word, row))
    }

    /// PTX ISA, "Matrix descriptor format" of wgmma: swizzle in bits 62 and 63.
    fn wgmma(word: u64) -> Result<Engine, String> {
        same("bits 46 to 61", (word >> 46) & 0xffff, 0)?;
        let row = match word >> 62 {
            0 => 16,
            1 => 128,
            2 => 64,
            _ => 32,
        };
        Ok(Engine::new(word, row))
    }

    fn new(word: u64, row: i64) -> Engine {
        let address = |at: u32| ((word >> at) & 0x3fff) as i64 * 16;
        Engine { start: address(0), leading: address(16), stride: address(32), row }
    }

    /// Where byte `byte` (of 32) of row `row` of a K-step is. A core matrix has 8 rows of 16 bytes; K-major, the next
    /// one along K is a leading offset away, or behind in the same swizzled row, the next 8 rows a stride offset.
    fn address(&self, advance: i64, row: i64, byte: i64) -> i64 {
        let next = if self.row == 16 { self.leading } else { 16 };
        let core = self.start + advance + row / 8 * self.stride + byte / 16 * next;
        swizzled(core + row % 8 * self.row + byte % 16, self.row)
    }
}

/// PTX ISA, "Swizzling modes": the number of a 16-byte chunk in its row is XORed with the number of the 128-byte line.
fn swizzled(address: i64, row: i64) -> i64 {
    let line = address / 128 % (row / 16);
    address ^ (line * 16)
}

impl Tile<'_> {
    fn check(&self, engine: &Engine, advance: &[i64]) -> Checked {
        let step = 256 / self.bits;
        same("elements of K in all steps", advance.len() as i64 * step, self.columns)?;
        for (flat, begin) in (0i64..).zip(self.bytes) {
            let (row, k) = (flat / self.columns, flat % self.columns);
            for byte in 0..self.bits / 8 {
                let read = engine.address(advance[(k / step) as usize], row, k % step * self.bits / 8 + byte);
                if read != begin + byte {
                    let place = begin + byte;
                    return Err(format!("byte {byte} of element (row {row}, k {k}) is at {place}, but read at {read}"));
                }
            }
        }
        Ok(())
    }
}

/// The tensor map of a tile of a row-major tensor twice as large, for its first tile and for its last.
fn copied(layout: &Layout, shape: &[i64], bits: i64, bytes: &[i64]) -> Checked {
    let tensor: Vec<i64> = shape.iter().map(|extent| 2 * extent).collect();
    let global = TileLayout::row_major(&tensor).map_err(|e| e.to_string())?;
    let columns = shape.last().copied().unwrap_or(0);
    let map = match tensor_map(&global, &tensor, shape, layout, bits) {
        Err(error) => return excused(&error, columns * bits % 128 != 0),
        Ok(map) => map,
    };
    same("boxes", map.boxes.len(), 1)?;
    check_limits(&map)?;
    for origin in [vec![0; shape.len()], shape.to_vec()] {
        let coordinate = map.coordinate(&origin).map_err(|e| e.to_string())?;
        let moved = moved(&map, &coordinate)?;
        let mut wanted = BTreeMap::new();
        for (flat, begin) in (0i64..).zip(bytes) {
            let element = position(flat, shape, &origin, &tensor);
            wanted.extend((0..bits / 8).map(|byte| (begin + byte, element * bits / 8 + byte)));
        }
        let wrong = wanted.iter().find(|(place, from)| moved.get(place) != Some(from));
        same("place in shared memory that another byte of the tensor goes to", wrong, None)?;
        same("bytes moved", moved.len(), wanted.len())?;
        check_model(&map, &coordinate, &moved)?;
    }
    Ok(())
}

/// Where element `flat` of the tile at `origin` is in the row-major tensor.
fn position(flat: i64, shape: &[i64], origin: &[i64], tensor: &[i64]) -> i64 {
    let (mut rest, mut stride, mut position) = (flat, 1, 0);
    for dimension in (0..shape.len()).rev() {
        position += (origin[dimension] + rest % shape[dimension]) * stride;
        rest /= shape[dimension];
        stride *= tensor[dimension];
    }
    position
}

/// What `cuTensorMapEncodeTiled` takes.
fn check_limits(map: &TensorMap) -> Checked {
    let (rank, inner, row) = (map.dims.len(), map.box_dims[0] * map.bits / 8, row_of(map)?);
    same("one stride for each dimension but the first", map.strides.len() + 1, rank)?;
    same("one side of the box for each dimension", map.box_dims.len(), rank)?;
    same("at most 5 dimensions", rank <= 5, true)?;
    same("sides of 1 to 256", map.box_dims.iter().all(|side| (1..=256).contains(side)), true)?;
    same("strides in 16 bytes", map.strides.iter().all(|s| s % 16 == 0 && (1..1 << 40).contains(s)), true)?;
    same("rows in 16 bytes", inner % 16, 0)?;
    same("rows no longer than the swizzle", row == 16 || inner <= row, true)
}

/// Bytes within which the map's swizzle moves chunks; 16 without one.
fn row_of(map: &TensorMap) -> Result<i64, String> {
    let rows = [16, 32, 64, 128];
    rows.get(map.swizzle.tensor_map_code() as usize).copied().ok_or_else(|| "a swizzle of 32-byte chunks".to_string())
}

/// The bytes that the copies of the tile at `coordinate` move: by place in shared memory, the place in the tensor. A
/// copy walks its box, the first dimension fastest, and counts the bytes it writes; the address is then swizzled.
fn moved(map: &TensorMap, coordinate: &[i64]) -> Result<BTreeMap<i64, i64>, String> {
    let mut bytes = BTreeMap::new();
    for copy in &map.boxes {
        let rows: i64 = map.box_dims[1..].iter().product();
        let mut to = copy.shared;
        for row in 0..rows {
            let first = coordinate[0] + copy.offset[0];
            same("inside the tensor", first >= 0 && first + map.box_dims[0] <= map.dims[0], true)?;
            let mut from = first * map.bits / 8;
            let mut rest = row;
            for (dimension, stride) in (1usize..).zip(&map.strides) {
                let index = coordinate[dimension] + copy.offset[dimension] + rest % map.box_dims[dimension];
                same("inside the tensor", (0..map.dims[dimension]).contains(&index), true)?;
                from += index * stride;
                rest /= map.box_dims[dimension];
            }
            for byte in 0..map.box_dims[0] * map.bits / 8 {
                let twice = bytes.insert(swizzled(to, row_of(map)?), map.start + from + byte);
                same("bytes written twice", twice, None)?;
                to += 1;
            }
        }
    }
    Ok(bytes)
}

/// The library's own model of the copies says the same.
fn check_model(map: &TensorMap, coordinate: &[i64], moved: &BTreeMap<i64, i64>) -> Checked {
    for copy in &map.boxes {
        let at: Vec<i64> = coordinate.iter().zip(&copy.offset).map(|(c, o)| c + o).collect();
        for element in map.box_addresses(&at, copy.shared).map_err(|e| e.to_string())? {
            let byte = |position: i64| position * map.bits / 8;
            let (place, from) = (byte(element.shared), element.global.map(byte));
            if from != moved.get(&place).copied() {
                return Err(format!("the library's model brings {from:?} to byte {place}"));
            }
        }
    }
    Ok(())
}
