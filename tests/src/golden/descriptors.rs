//! Cases for hardware descriptors: words are compared with the known ones. For tiles in shared memory, descriptors and
//! tensor maps derived from the layout are read by decoders that are written here from the PTX ISA, independently of
//! the library.

use std::collections::BTreeMap;

use serde_json::Value;
use tilewright::layout::axis::M;
use tilewright::layout::descriptor::{
    BlockScaledInstructionDescriptor, InstructionDescriptor, InstructionShape, InstructionTypes, Major, ScaleFormat,
    SwizzlePattern, Tcgen05Descriptor, TensorMap, block_scaled, dense, tcgen05_descriptor, tensor_map,
    wgmma_descriptor,
};
use tilewright::layout::hardware::{CtaGroup, MmaType, ScaleVec, SwizzleMode};
use tilewright::layout::{ComposeLayout, Layout, LayoutError, TileLayout};

use super::table::parsed_layout;
use super::{integers, same};

type Checked = Result<(), String>;

/// `instr_desc_dense`: kind and word from types and sizes, or the refusal if there is none.
pub(crate) fn instr_desc_dense(case: &Value) -> Checked {
    let given = &case["in"];
    match dense(shape(given)?, types(given)?, [flag(given, "trans_a"), flag(given, "trans_b")]) {
        Err(error) => refused(case, &error),
        Ok((kind, mut descriptor)) => {
            descriptor.saturate = flag(given, "sat_d");
            descriptor.negate_a = flag(given, "neg_a");
            descriptor.negate_b = flag(given, "neg_b");
            let word = descriptor.encode();
            same("read back", InstructionDescriptor::decode(word), Ok(descriptor))?;
            accepted(case, kind.name(), word)
        }
    }
}

/// `instr_desc_block_scaled`: likewise, with scale factors.
pub(crate) fn instr_desc_block_scaled(case: &Value) -> Checked {
    let given = &case["in"];
    let one_byte = given["K"].as_i64() == Some(32);
    let scale = match given["sf"].as_str() {
        Some("float8_e8m0fnu") if one_byte => ScaleFormat { element: MmaType::Ue8m0, vec: ScaleVec::X1 },
        Some("float8_e8m0fnu") => ScaleFormat { element: MmaType::Ue8m0, vec: ScaleVec::X2 },
        Some("float8_e4m3fn") => ScaleFormat { element: MmaType::Ue4m3, vec: ScaleVec::X4 },
        _ => return Err(format!("unknown type of scale factors: {}", given["sf"])),
    };
    match block_scaled(shape(given)?, types(given)?, scale, [flag(given, "trans_a"), flag(given, "trans_b")]) {
        Err(error) => refused(case, &error),
        Ok((kind, descriptor)) => {
            let word = descriptor.encode();
            same("read back", BlockScaledInstructionDescriptor::decode(word), Ok(descriptor))?;
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

/// For an `mma_shared_layout` case: the descriptors of both engines, for each stage of the tile and of its transpose,
/// and the tensor maps of all stages together address exactly the bytes given by `apply`; or no descriptor can. Tiles
/// that are not recorded are derived from the recorded ones: the same bytes as 4-bit elements, and 32-bit elements with
/// the 128-byte swizzle of 32-byte chunks.
pub(crate) fn derived(case: &Value) -> Checked {
    let shape = integers(&case["in"]["shape"])?;
    let bits = element(&case["in"]["dtype"])?.bits();
    let layout = parsed_layout(&case["out"]["result"]["text"])?;
    let recorded = Buffer { begins: begins(&layout, bits)?, layout, shape, bits };
    recorded.check()?;
    if bits == 8 {
        recorded.halved()?.check()?;
    }
    match recorded.in_larger_chunks()? {
        Some(buffer) => buffer.check(),
        None => Ok(()),
    }
}

/// The bit at which each element begins, computed by `apply`.
fn begins(layout: &Layout, bits: i64) -> Result<Vec<i64>, String> {
    let begin = |flat: i64| -> Result<i64, String> {
        let places = layout.apply(flat).map_err(|e| e.to_string())?;
        same(&format!("number of places of element {flat}"), places.len(), 1)?;
        Ok(places[0].get(&M).copied().unwrap_or(0) * bits)
    };
    (0..layout.size()).map(begin).collect()
}

/// Tiles in shared memory, one per stage, and the bit at which each element begins.
struct Buffer {
    layout: Layout,
    shape: Vec<i64>,
    bits: i64,
    begins: Vec<i64>,
}

impl Buffer {
    /// The same bytes, each split into two elements, the lower half first.
    fn halved(&self) -> Result<Buffer, String> {
        let layout = match &self.layout {
            Layout::Compose(compose) => compose.unpack(2).map(Layout::from),
            other => other.tile().and_then(|tile| tile.unpack(2)).map(Layout::from),
        };
        let mut shape = self.shape.clone();
        if let Some(columns) = shape.last_mut() {
            *columns *= 2;
        }
        let bits = self.bits / 2;
        let begins = self.begins.iter().flat_map(|begin| [*begin, begin + bits]).collect();
        Ok(Buffer { layout: layout.map_err(|e| e.to_string())?, shape, bits, begins })
    }

    /// 32-bit elements with the 128-byte swizzle of 32-byte instead of 16-byte chunks.
    fn in_larger_chunks(&self) -> Result<Option<Buffer>, String> {
        let Layout::Compose(compose) = &self.layout else { return Ok(None) };
        if self.bits != 32 || SwizzleMode::B128.swizzle(32) != Ok(compose.swizzle()) {
            return Ok(None);
        }
        let swizzle = SwizzlePattern::B128Atom32
            .swizzle(32)
            .map_err(|error| error.to_string())?
            .ok_or("no swizzle of 32-byte chunks")?;
        let layout = Layout::from(ComposeLayout::new(swizzle, compose.tile().clone()).map_err(|e| e.to_string())?);
        Ok(Some(Buffer { begins: begins(&layout, 32)?, layout, shape: self.shape.clone(), bits: 32 }))
    }

    fn check(&self) -> Checked {
        let [outer @ .., rows, columns] = &self.shape[..] else { return Err(format!("not a tile: {:?}", self.shape)) };
        let (rows, columns, stages) = (*rows, *columns, outer.iter().product::<i64>());
        for (stage, begins) in (0..stages).zip(self.begins.chunks((rows * columns) as usize)) {
            let region = [stage..stage + 1, 0..rows, 0..columns];
            let layout = self.layout.slice(&[stages, rows, columns], &region).map_err(|e| e.to_string())?;
            let large_chunks = SwizzlePattern::of(&layout, self.bits) == Some(SwizzlePattern::B128Atom32);
            let tile = Tile { rows, columns, bits: self.bits, large_chunks, begins };
            tile.described(&layout, Major::K)?;
            tile.described(&transposed(&layout, rows, columns)?, Major::MN)?;
        }
        self.copied(0)?;
        self.copied(128 / self.bits)
    }
}

/// The transposed tile.
fn transposed(layout: &Layout, rows: i64, columns: i64) -> Result<Layout, String> {
    let swap = || -> Result<Layout, LayoutError> {
        let grouped = layout.tile()?.group(&[rows, columns])?;
        let tile = grouped.layout.permute_groups(&grouped.separators, &[1, 0])?;
        match layout {
            Layout::Compose(compose) => ComposeLayout::new(compose.swizzle(), tile).map(Layout::from),
            Layout::Tile(_) | Layout::Table(_) => Ok(Layout::from(tile)),
        }
    };
    swap().map_err(|e| e.to_string())
}

/// One recorded tile: the bit at which each element begins, row by row. An engine reads it K-major, or MN-major with
/// its columns as the rows of M or N.
struct Tile<'a> {
    rows: i64,
    columns: i64,
    bits: i64,
    /// Whether the swizzle permutes chunks of 32 bytes.
    large_chunks: bool,
    begins: &'a [i64],
}

impl Tile<'_> {
    /// The descriptors of both engines for `layout`, which is the tile in `major` order.
    fn described(&self, layout: &Layout, major: Major) -> Checked {
        let shape = match major {
            Major::K => [self.rows, self.columns],
            Major::MN => [self.columns, self.rows],
        };
        let [tcgen05, wgmma] = self.readable(major);
        if let Some(found) = expected(tcgen05_descriptor(layout, shape, self.bits, major), tcgen05)? {
            self.check(&Engine::tcgen05(found.descriptor.encode())?, major, &found.advance)?;
        }
        if let Some(found) = expected(wgmma_descriptor(layout, shape, self.bits, major), wgmma)? {
            self.check(&Engine::wgmma(found.descriptor.encode())?, major, &found.advance)?;
        }
        Ok(())
    }

    /// Whether tcgen05 and wgmma can read it: they read whole steps of 32 bytes of K and rows of whole chunks. PTX ISA,
    /// "Valid Combinations of Type-Size, Major-ness and Swizzling", "Shared Memory Layout and Swizzling" (chunks of 32
    /// bytes are MN-major) and "wgmma.mma_async" (only 16-bit elements can be transposed, and none have 4 bits).
    fn readable(&self, major: Major) -> [bool; 2] {
        let row = self.columns * self.bits;
        let steps = match major {
            Major::K => row % 256 == 0,
            Major::MN => row % 128 == 0 && self.rows * self.bits % 256 == 0,
        };
        let legal = match (major, self.large_chunks) {
            (Major::K, true) => [false, false],
            (Major::K, false) => [true, self.bits >= 8],
            (Major::MN, true) => [self.bits == 32, false],
            (Major::MN, false) => [self.bits == 8 || self.bits == 16, self.bits == 16],
        };
        legal.map(|legal| legal && steps)
    }

    /// Checks that the engine reads every bit of every element at the element's position.
    fn check(&self, engine: &Engine, major: Major, advance: &[i64]) -> Checked {
        let step = 256 / self.bits;
        let extent = if major == Major::K { self.columns } else { self.rows };
        same("elements of K in all steps", advance.len() as i64 * step, extent)?;
        for (flat, begin) in (0i64..).zip(self.begins) {
            let (row, column) = (flat / self.columns, flat % self.columns);
            let (k, along, index) = match major {
                Major::K => (column, column % step, row),
                Major::MN => (row, column, row % step),
            };
            for bit in (0..self.bits).step_by(8) {
                let at = along * self.bits + bit;
                let read = engine.address(major, advance[(k / step) as usize], at / 8, index) * 8 + at % 8;
                if read != begin + bit {
                    return Err(format!("{major:?}-major, bit {bit} of ({row}, {column}) is read at bit {read}"));
                }
            }
        }
        Ok(())
    }
}

/// The derived descriptor, if one is possible; otherwise the error must say that no descriptor describes the tile.
fn expected<T>(found: Result<T, LayoutError>, possible: bool) -> Result<Option<T>, String> {
    match found {
        Err(error) if possible => Err(error.to_string()),
        Err(error) => same("code", error.code(), "L0114").map(|()| None),
        Ok(_) if !possible => Err("derived, although no engine can read the tile this way".to_string()),
        Ok(found) => Ok(Some(found)),
    }
}

/// The fields that a matrix engine reads from a descriptor.
struct Engine {
    start: i64,
    leading: i64,
    stride: i64,
    swizzle: Swizzle,
}

impl Engine {
    /// PTX ISA, "Shared memory descriptor" of tcgen05: swizzle in bits 61 to 63, the constant 1 in bits 46 to 48.
    fn tcgen05(word: u64) -> Result<Engine, String> {
        same("bits 46 to 60", (word >> 46) & 0x7fff, 1)?;
        let (row, chunk) = match word >> 61 {
            0 => (16, 16),
            1 => (128, 32),
            2 => (128, 16),
            4 => (64, 16),
            6 => (32, 16),
            other => return Err(format!("no swizzle: {other}")),
        };
        Ok(Engine::new(word, Swizzle { row, chunk }))
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
        Ok(Engine::new(word, Swizzle { row, chunk: 16 }))
    }

    fn new(word: u64, swizzle: Swizzle) -> Engine {
        let address = |at: u32| ((word >> at) & 0x3fff) as i64 * 16;
        Engine { start: address(0), leading: address(16), stride: address(32), swizzle }
    }

    /// The address at which the engine reads byte `byte`, along memory, of row `index` (K-major) or column `index` of K
    /// (MN-major) of a K-step.
    ///
    /// PTX ISA, "Leading Dimension Byte Offset" and "Stride Dimension Byte Offset": rows of the swizzle, or of 16
    /// bytes, follow each other in groups of 8 (of 4 with chunks of 32 bytes). K-major: the leading offset is the step
    /// along K and the stride offset the step to the next group. MN-major: the leading offset is the step along MN and
    /// the stride offset the step to the next group; without a swizzle, their roles are exchanged.
    fn address(&self, major: Major, advance: i64, byte: i64, index: i64) -> i64 {
        let Swizzle { row, chunk } = self.swizzle;
        let group = if chunk == 32 { 4 } else { 8 };
        let (along, groups) = match (major, row) {
            (Major::MN, 16) => (self.stride, self.leading),
            (Major::K | Major::MN, _) => (self.leading, self.stride),
        };
        let packed = index % group * row + byte % row;
        self.swizzle.apply(self.start + advance + byte / row * along + index / group * groups + packed)
    }
}

/// PTX ISA, "Swizzling modes": the index of a chunk in its row is XORed with the index of the 128-byte line.
#[derive(Clone, Copy)]
struct Swizzle {
    /// Bytes of a row: 16 without a swizzle.
    row: i64,
    /// Bytes per chunk, which the swizzle keeps together.
    chunk: i64,
}

impl Swizzle {
    fn apply(self, address: i64) -> i64 {
        let line = address / 128 % (self.row / self.chunk);
        address ^ (line * self.chunk)
    }

    /// The swizzle of a tensor map, by its value in `CUtensorMapSwizzle`.
    fn of(map: &TensorMap) -> Result<Swizzle, String> {
        let (row, chunk) = match map.swizzle.tensor_map_code() {
            0 => (16, 16),
            1 => (32, 16),
            2 => (64, 16),
            3 => (128, 16),
            4 => (128, 32),
            other => return Err(format!("no swizzle: {other}")),
        };
        Ok(Swizzle { row, chunk })
    }
}

impl Buffer {
    /// Checks the tensor map of the buffer as a tile of a row-major tensor, for the first tile and for the second one
    /// in every dimension. The tensor is twice as large, with `more` additional elements in each row, so that its rows
    /// may not be a multiple of the swizzle's width; each block of a wider tile is then a separate box.
    fn copied(&self, more: i64) -> Checked {
        let (shape, bits) = (&self.shape, self.bits);
        let columns = shape.last().copied().unwrap_or(0);
        let mut tensor: Vec<i64> = shape.iter().map(|extent| 2 * extent).collect();
        if let Some(last) = tensor.last_mut() {
            *last += more;
        }
        let global = TileLayout::row_major(&tensor).map_err(|e| e.to_string())?;
        let map = tensor_map(&global, &tensor, shape, &self.layout, bits);
        let Some(map) = expected(map, columns * bits % 128 == 0)? else { return Ok(()) };
        let block = Swizzle::of(&map)?.row * 8 / bits;
        let one = columns == block || (2 * columns + more) % block == 0;
        let boxes = if one { 1 } else { shape.iter().product::<i64>() / shape[shape.len() - 2] / block };
        same("boxes", map.boxes.len() as i64, boxes)?;
        check_limits(&map)?;
        for origin in [vec![0; shape.len()], shape.clone()] {
            let coordinate = map.coordinate(&origin).map_err(|e| e.to_string())?;
            let moved = moved(&map, &coordinate)?;
            let mut wanted = BTreeMap::new();
            for (flat, begin) in (0i64..).zip(&self.begins).filter(|(_, begin)| **begin % 8 == 0) {
                let from = position(flat, shape, &origin, &tensor) * bits / 8;
                wanted.extend((0..bits.max(8) / 8).map(|byte| (begin / 8 + byte, from + byte)));
            }
            let wrong = wanted.iter().find(|(place, from)| moved.get(place) != Some(from));
            same("place in shared memory that receives a different byte of the tensor", wrong, None)?;
            same("bytes moved", moved.len(), wanted.len())?;
            check_model(&map, &coordinate, &moved)?;
        }
        Ok(())
    }
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

/// The requirements of `cuTensorMapEncodeTiled`.
fn check_limits(map: &TensorMap) -> Checked {
    let (rank, inner, row) = (map.dims.len(), map.box_dims[0] * map.bits / 8, Swizzle::of(map)?.row);
    same("one stride for each dimension except the first", map.strides.len() + 1, rank)?;
    same("one side of the box for each dimension", map.box_dims.len(), rank)?;
    same("steps of one element", map.element_strides.iter().all(|step| *step == 1), true)?;
    same("at most 5 dimensions", rank <= 5, true)?;
    same("extents up to 2^31", map.dims.iter().all(|extent| (1..=1 << 31).contains(extent)), true)?;
    same("sides of 1 to 256", map.box_dims.iter().all(|side| (1..=256).contains(side)), true)?;
    same("strides divisible by 16", map.strides.iter().all(|s| s % 16 == 0 && (1..1 << 40).contains(s)), true)?;
    same("rows divisible by 16", inner % 16, 0)?;
    same("boxes divisible by 128", map.boxes.iter().all(|copy| copy.shared % 128 == 0), true)?;
    same("rows no longer than the swizzle", row == 16 || inner <= row, true)
}

/// The bytes that the copies of the tile at `coordinate` move, as a map from the position in shared memory to the
/// position in the tensor. A copy visits its box, the first dimension fastest, and counts the bytes it writes; the
/// resulting address is then swizzled.
fn moved(map: &TensorMap, coordinate: &[i64]) -> Result<BTreeMap<i64, i64>, String> {
    let mut bytes = BTreeMap::new();
    let swizzle = Swizzle::of(map)?;
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
                let twice = bytes.insert(swizzle.apply(to), map.start + from + byte);
                same("bytes written twice", twice, None)?;
                to += 1;
            }
        }
    }
    Ok(bytes)
}

/// Checks that the library's model of the copies agrees.
fn check_model(map: &TensorMap, coordinate: &[i64], moved: &BTreeMap<i64, i64>) -> Checked {
    for copy in &map.boxes {
        let at: Vec<i64> = coordinate.iter().zip(&copy.offset).map(|(c, o)| c + o).collect();
        for element in map.box_addresses(&at, copy.shared).map_err(|e| e.to_string())? {
            let byte = |position: i64| position * map.bits / 8;
            let (place, from) = (byte(element.shared), element.global.map(byte));
            if from != moved.get(&place).copied() {
                return Err(format!("the library's model copies {from:?} to byte {place}"));
            }
        }
    }
    Ok(())
}
