//! Launch files: a kernel launch, its buffers and what they must hold at the end, as JSON.

mod dtype;
mod npy;
mod schema;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub use dtype::{Element, ElementType};
pub use npy::Array;

use crate::launch::{Arg, Launch, Options};
use crate::memory::{BufferId, Memory};
use crate::module::Module;
use crate::tensor_map::{Im2col, MapAccess, TENSOR_MAP_BYTES, TensorMap};

/// Something that is wrong with a launch file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLaunchFile {
    /// Where it is in the file, such as `args[2].buffer`; empty for the whole file.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for BadLaunchFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

impl std::error::Error for BadLaunchFile {}

type Read<T> = Result<T, BadLaunchFile>;

fn bad<T>(path: impl Into<String>, message: impl Into<String>) -> Read<T> {
    Err(BadLaunchFile { path: path.into(), message: message.into() })
}

/// What a buffer must hold at the end.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The name of the buffer.
    pub buffer: String,
    /// How its bytes are read.
    pub dtype: ElementType,
    /// The expected elements.
    pub array: Array,
    /// The tolerance relative to the expected element.
    pub rtol: f64,
    /// The absolute tolerance.
    pub atol: f64,
}

/// An element that differs from what was expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The name of the buffer.
    pub buffer: String,
    /// Its index; the last entry of a type with two elements in a byte counts elements.
    pub index: Vec<usize>,
    /// The expected element.
    pub expected: Element,
    /// The element in the buffer.
    pub got: Element,
    /// Number of elements that differ.
    pub differing: usize,
    /// Number of all elements.
    pub all: usize,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { buffer, index, expected, got, differing, all } = self;
        let index: Vec<String> = index.iter().map(usize::to_string).collect();
        write!(
            f,
            "`{buffer}`[{}] is {got}; expected: {expected}; elements that differ: {differing} of {all}",
            index.join(", ")
        )
    }
}

/// A tensor map in a buffer.
#[derive(Clone, Debug)]
pub struct PlacedMap {
    /// The buffer.
    pub buffer: BufferId,
    /// Offset of the map from its start in bytes.
    pub byte_offset: u64,
    /// What it describes.
    pub map: TensorMap,
}

/// A launch file, read and checked against a module.
#[derive(Clone, Debug)]
pub struct LaunchFile {
    /// The launches, in order.
    pub launches: Vec<Launch>,
    /// The memory before the first launch.
    pub memory: Memory,
    /// The buffers by name, in the order of the file.
    pub buffers: Vec<(String, BufferId)>,
    /// The tensor maps in `memory`.
    pub maps: Vec<PlacedMap>,
    /// What the buffers must hold after the last launch.
    pub expectations: Vec<Expectation>,
    /// The files with arrays that it names.
    pub arrays: Vec<PathBuf>,
    /// [`Options::sms`].
    pub sms: Option<u32>,
    /// [`Options::ctas_per_sm`].
    pub ctas_per_sm: Option<u32>,
}

impl LaunchFile {
    /// Reads a launch file for kernels of `module`. The paths in it are relative to `folder`. The buffers may have
    /// `most_bytes` together.
    ///
    /// # Errors
    /// The first thing that is wrong, with its path in the file.
    pub fn parse(text: &str, folder: &Path, module: &Module, most_bytes: u64) -> Read<LaunchFile> {
        if !text.trim_start().starts_with('{') {
            return bad("", "expected an object");
        }
        let mut json = serde_json::Deserializer::from_str(text);
        let file: schema::File = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            BadLaunchFile {
                path: if matches!(path.as_str(), "." | "?") { String::new() } else { path },
                message: in_words_of_json(&error.inner().to_string()),
            }
        })?;
        json.end().map_err(|error| BadLaunchFile { path: String::new(), message: error.to_string() })?;
        let mut reader = Reader {
            folder,
            module,
            memory: Memory::new(),
            buffers: Vec::new(),
            maps: Vec::new(),
            arrays: Vec::new(),
            left: most_bytes,
        };
        for (name, source) in &file.buffers {
            reader.buffer(name, source)?;
        }
        for (at, initial) in file.initial.iter().enumerate() {
            reader.place_map(&format!("initial[{at}].tensor_map_at"), &initial.tensor_map_at)?;
        }
        let launches = reader.launches(&file)?;
        let expectations = file.expect.iter().enumerate().map(|(at, expect)| reader.expectation(at, expect));
        let expectations = expectations.collect::<Read<Vec<Expectation>>>()?;
        let (arrays, sms, ctas_per_sm) = (reader.arrays, file.sms, file.ctas_per_sm);
        for (name, count) in [("sms", sms), ("ctas_per_sm", ctas_per_sm)] {
            if count == Some(0) {
                return bad(name, "expected a positive number");
            }
        }
        Ok(LaunchFile {
            launches,
            memory: reader.memory,
            buffers: reader.buffers,
            maps: reader.maps,
            expectations,
            arrays,
            sms,
            ctas_per_sm,
        })
    }

    /// The options of a run of these launches: `options` with what the file says.
    pub fn options(&self, options: Options) -> Options {
        let observed = (!self.expectations.is_empty()).then(|| {
            let named = |expectation: &Expectation| self.buffer(&expectation.buffer);
            self.expectations.iter().filter_map(named).collect()
        });
        Options {
            sms: self.sms.or(options.sms),
            ctas_per_sm: self.ctas_per_sm.or(options.ctas_per_sm),
            observed,
            ..options
        }
    }

    /// The buffer with this name.
    pub fn buffer(&self, name: &str) -> Option<BufferId> {
        self.buffers.iter().find(|(known, _)| known == name).map(|(_, id)| *id)
    }

    /// The first element of `memory` that differs from what is expected, in the order of the file. Elements that were
    /// never written are not compared: see [`LaunchFile::unwritten`].
    pub fn difference(&self, memory: &Memory) -> Option<Difference> {
        self.expectations.iter().find_map(|expectation| {
            let bytes = memory.bytes(self.buffer(&expectation.buffer)?);
            expectation.difference(&bytes)
        })
    }

    /// The first byte that is expected and was never written: its buffer and offset.
    pub fn unwritten(&self, memory: &Memory) -> Option<(String, usize)> {
        self.expectations.iter().find_map(|expectation| {
            let id = self.buffer(&expectation.buffer)?;
            let offset = (0..expectation.array.bytes.len()).find(|offset| !memory.is_written(id, *offset))?;
            Some((expectation.buffer.clone(), offset))
        })
    }
}

impl Expectation {
    /// The first element that differs from what is expected, if these are the bytes of the buffer.
    pub fn difference(&self, bytes: &[u8]) -> Option<Difference> {
        let size = self.dtype.bytes();
        let entries = bytes.chunks_exact(size).zip(self.array.bytes.chunks_exact(size)).enumerate();
        let (mut first, mut differing, mut all) = (None, 0, 0);
        for (entry, (got, want)) in entries {
            let elements = |bytes: &[u8]| self.dtype.elements(little_endian(bytes));
            let pairs = elements(got).into_iter().zip(elements(want));
            for (part, (got, expected)) in pairs.enumerate() {
                all += 1;
                if !got.is_close(expected, self.rtol, self.atol) {
                    differing += 1;
                    first.get_or_insert((entry, part, got, expected));
                }
            }
        }
        first.map(|(entry, part, got, expected)| {
            let index = self.index(entry, part);
            Difference { buffer: self.buffer.clone(), index, expected, got, differing, all }
        })
    }

    /// The index of an element in the expected array.
    fn index(&self, entry: usize, part: usize) -> Vec<usize> {
        let mut rest = entry;
        let mut index: Vec<usize> = Vec::new();
        for size in self.array.shape.iter().rev() {
            index.push(rest % size);
            rest /= size;
        }
        index.reverse();
        if self.dtype == ElementType::E2m1x2
            && let Some(last) = index.last_mut()
        {
            *last = 2 * *last + part;
        }
        index
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Bytes of a `.npy` file that are not data.
const MOST_HEADER_BYTES: u64 = 1 << 16;

/// What is known while a file is read.
struct Reader<'a> {
    folder: &'a Path,
    module: &'a Module,
    memory: Memory,
    buffers: Vec<(String, BufferId)>,
    maps: Vec<PlacedMap>,
    /// The files that were read.
    arrays: Vec<PathBuf>,
    /// Bytes that further buffers may have.
    left: u64,
}

impl Reader<'_> {
    fn buffer(&mut self, name: &str, source: &schema::Source) -> Read<()> {
        let id = match (&source.npy, &source.zeros, &source.poison) {
            (Some(file), None, None) => {
                let path = format!("buffers.{name}.npy");
                let array = self.array(&path, file)?;
                self.take(&path, array.bytes.len() as u64)?;
                self.memory.allocate(name, array.bytes)
            }
            (None, Some(extent), None) => {
                let bytes = self.bytes(&format!("buffers.{name}.zeros"), extent)?;
                self.memory.allocate_zeros(name, bytes)
            }
            (None, None, Some(extent)) => {
                let bytes = self.bytes(&format!("buffers.{name}.poison"), extent)?;
                self.memory.allocate_poison(name, bytes)
            }
            _ => return bad(format!("buffers.{name}"), "a buffer has one of `npy`, `zeros` and `poison`"),
        };
        self.buffers.push((name.to_string(), id));
        Ok(())
    }

    fn array(&mut self, path: &str, file: &str) -> Read<Array> {
        let file = self.folder.join(file);
        let about = std::fs::metadata(&file).or_else(|error| bad(path, format!("{}: {error}", file.display())))?;
        if !about.is_file() {
            return bad(path, format!("{}: not a regular file", file.display()));
        }
        if about.len() > self.left.saturating_add(MOST_HEADER_BYTES) {
            let (size, left) = (about.len(), self.left);
            return bad(path, format!("{}: {size} B, and {left} B of the memory limit are left", file.display()));
        }
        let bytes = std::fs::read(&file).or_else(|error| bad(path, format!("{}: {error}", file.display())))?;
        let array = Array::parse(&bytes).or_else(|error| bad(path, format!("{}: {error}", file.display())));
        self.arrays.push(file);
        array
    }

    fn bytes(&mut self, path: &str, extent: &schema::Extent) -> Read<usize> {
        let size = extent.dtype.bytes();
        let bytes = extent.shape.iter().try_fold(size, |product, size| product.checked_mul(*size));
        let Some(bytes) = bytes else {
            return bad(format!("{path}.shape"), "the buffer is larger than the address space");
        };
        self.take(&format!("{path}.shape"), bytes as u64)?;
        Ok(bytes)
    }

    fn take(&mut self, path: &str, bytes: u64) -> Read<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => bad(path, format!("the buffer has {bytes} B, and {} B of the memory limit are left", self.left)),
        }
    }

    fn launches(&self, file: &schema::File) -> Read<Vec<Launch>> {
        let single = [file.kernel.is_some(), file.grid.is_some(), file.block.is_some(), file.args.is_some()];
        if let Some(launches) = &file.launches {
            if single.contains(&true) || file.cluster.is_some() || file.dynamic_shared_bytes.is_some() {
                return bad("launches", "a file has either `launches`, or `kernel`, `grid`, `block` and `args`");
            }
            if launches.first().is_some_and(|first| first.overlaps_previous) {
                return bad("launches[0].overlaps_previous", "there is no launch before the first one");
            }
            let each = launches.iter().enumerate();
            return each.map(|(at, launch)| self.launch(&format!("launches[{at}]."), launch)).collect();
        }
        let missing = |name: &str| BadLaunchFile { path: String::new(), message: format!("missing field `{name}`") };
        let launch = schema::Launch {
            kernel: file.kernel.clone().ok_or_else(|| missing("kernel"))?,
            grid: file.grid.ok_or_else(|| missing("grid"))?,
            block: file.block.ok_or_else(|| missing("block"))?,
            cluster: file.cluster,
            dynamic_shared_bytes: file.dynamic_shared_bytes.unwrap_or(0),
            args: Vec::new(),
            overlaps_previous: false,
        };
        let args = file.args.as_deref().unwrap_or(&[]);
        Ok(vec![self.launch_with("", &launch, args)?])
    }

    fn launch(&self, path: &str, launch: &schema::Launch) -> Read<Launch> {
        self.launch_with(path, launch, &launch.args)
    }

    fn launch_with(&self, path: &str, launch: &schema::Launch, args: &[schema::Arg]) -> Read<Launch> {
        let at = |name: &str| format!("{path}{name}");
        let Some(kernel) = self.module.kernel(&launch.kernel) else {
            let known: Vec<String> = self.module.kernels().map(|kernel| format!("`{}`", kernel.name)).collect();
            let known = match known.is_empty() {
                true => "the PTX has none".to_string(),
                false => format!("the kernels are: {}", known.join(", ")),
            };
            return bad(at("kernel"), format!("there is no kernel `{}`; {known}", launch.kernel));
        };
        let cluster = launch.cluster.or(kernel.required_cluster).unwrap_or([1; 3]);
        for (name, extent) in [("grid", launch.grid), ("block", launch.block), ("cluster", cluster)] {
            if let Some(axis) = extent.iter().position(|size| *size == 0) {
                return bad(format!("{}[{axis}]", at(name)), "expected a positive number");
            }
        }
        if args.len() != kernel.params.len() {
            let (have, want) = (args.len(), kernel.params.len());
            return bad(at("args"), format!("`{}` has {want} parameters; here are {have} arguments", kernel.name));
        }
        let mut converted = Vec::new();
        for (number, (arg, param)) in args.iter().zip(&kernel.params).enumerate() {
            converted.push(self.arg(&format!("{path}args[{number}]"), arg, param.size)?);
        }
        Ok(Launch {
            kernel: launch.kernel.clone(),
            grid: launch.grid,
            block: launch.block,
            cluster,
            overlaps_previous: launch.overlaps_previous,
            dynamic_shared_bytes: launch.dynamic_shared_bytes,
            args: converted,
        })
    }

    fn arg(&self, path: &str, arg: &schema::Arg, size: u32) -> Read<Arg> {
        let mut given: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        macro_rules! numbers {
            ($($name:ident)*) => {
                $(given.extend(arg.$name.map(|value| (stringify!($name), value.to_le_bytes().to_vec())));)*
            };
        }
        numbers!(i8 u8 i16 u16 i32 u32 i64 u64 f32 f64);
        if let Some(text) = &arg.bytes {
            given.insert("bytes", hex(text).or_else(|message| bad(format!("{path}.bytes"), message))?);
        }
        let count = given.len() + usize::from(arg.buffer.is_some()) + usize::from(arg.tensor_map.is_some());
        if count != 1 {
            return bad(
                path,
                format!(
                    "an argument has one of `buffer`, `tensor_map`, `bytes` or a number such as `i32`; this has {count}"
                ),
            );
        }
        let size = size as usize;
        if let Some(name) = &arg.buffer {
            let buffer = self.named(format!("{path}.buffer"), name)?;
            if size != 8 {
                return bad(path, format!("an address has 8 B; the parameter has {size}"));
            }
            let byte_offset = arg.byte_offset.unwrap_or(0);
            let bytes = self.memory.len(buffer);
            if byte_offset > bytes as u64 {
                let message = format!("the offset {byte_offset} is past the end of `{name}`, which has {bytes} B");
                return bad(format!("{path}.byte_offset"), message);
            }
            return Ok(Arg::Buffer { buffer, byte_offset });
        }
        if arg.byte_offset.is_some() {
            return bad(format!("{path}.byte_offset"), "an offset stands beside `buffer` only");
        }
        let fits = |name: &str, bytes: usize| {
            let message = format!("the value has {bytes} B; the parameter has {size}");
            if bytes == size { Ok(()) } else { bad(format!("{path}.{name}"), message) }
        };
        if let Some(map) = &arg.tensor_map {
            fits("tensor_map", TENSOR_MAP_BYTES)?;
            return self.tensor_map(&format!("{path}.tensor_map"), map).map(Arg::TensorMap);
        }
        match given.pop_first() {
            Some((name, bytes)) => fits(name, bytes.len()).map(|()| Arg::Bytes(bytes)),
            None => bad(path, "the argument is empty"),
        }
    }

    /// The buffer with a name; `path` is where the file names it.
    fn named(&self, path: String, name: &str) -> Read<BufferId> {
        if let Some((_, id)) = self.buffers.iter().find(|(known, _)| known == name) {
            return Ok(*id);
        }
        let known: Vec<String> = self.buffers.iter().map(|(known, _)| format!("`{known}`")).collect();
        let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
        bad(path, format!("there is no buffer `{name}`; the buffers are: {known}"))
    }

    /// Writes a tensor map into a buffer.
    fn place_map(&mut self, path: &str, at: &schema::MapAt) -> Read<()> {
        let id = self.named(format!("{path}.buffer"), &at.buffer)?;
        let map = self.tensor_map(&format!("{path}.tensor_map"), &at.tensor_map)?;
        let have = self.memory.len(id);
        if !at.byte_offset.is_multiple_of(64) {
            return bad(format!("{path}.byte_offset"), "the address of a tensor map is a multiple of 64 bytes");
        }
        match self.memory.write(id, at.byte_offset, &map.encode()) {
            true => {
                self.maps.push(PlacedMap { buffer: id, byte_offset: at.byte_offset, map });
                Ok(())
            }
            false => {
                bad(format!("{path}.byte_offset"), format!("the buffer `{}` has {have} B; a map has 128", at.buffer))
            }
        }
    }

    fn tensor_map(&self, path: &str, map: &schema::Map) -> Read<TensorMap> {
        let id = self.named(format!("{path}.buffer"), &map.buffer)?;
        let schema::Interleave::None = map.interleave;
        let access = match (&map.box_dims, &map.im2col) {
            (Some(sides), None) => MapAccess::Tiled(sides.clone()),
            (None, Some(schema::Pixels { lower, upper, channels, pixels })) => MapAccess::Im2col(Im2col {
                lower: lower.clone(),
                upper: upper.clone(),
                channels: *channels,
                pixels: *pixels,
            }),
            (None, None) => return bad(path, "a tensor map has either `box` or `im2col`; this one has neither"),
            (Some(_), Some(_)) => return bad(path, "a tensor map has either `box` or `im2col`; this one has both"),
        };
        let described = TensorMap {
            address: self.memory.address(id).unwrap_or(0).wrapping_add(map.byte_offset),
            element: map.dtype.element(),
            fills_nan: map.oob_fill == schema::Fill::Nan,
            dims: map.dims.clone(),
            strides: map.strides_bytes.clone(),
            access,
            element_strides: map.element_strides.clone(),
            swizzle: map.swizzle,
        };
        if let Err((field, at, message)) = described.check() {
            let at = at.map_or(String::new(), |at| format!("[{at}]"));
            return bad(format!("{path}.{field}{at}"), message);
        }
        let rows = described.dims.iter().skip(1).zip(&described.strides);
        let last_row = rows.map(|(extent, stride)| u128::from(extent - 1) * u128::from(*stride)).sum::<u128>();
        let row = u128::from(described.row_of_tensor());
        let (end, have) = (u128::from(map.byte_offset) + last_row + row, self.memory.len(id));
        if end > have as u128 {
            let message = format!("the tensor ends {end} B after the start of `{}`, which has {have} B", map.buffer);
            return bad(format!("{path}.dims"), message);
        }
        Ok(described)
    }

    fn expectation(&mut self, at: usize, expect: &schema::Expect) -> Read<Expectation> {
        let path = |name: &str| format!("expect[{at}].{name}");
        let id = self.named(path("buffer"), &expect.buffer)?;
        let array = self.array(&path("npy"), &expect.npy)?;
        let (have, want) = (array.bytes.len(), self.memory.len(id));
        if !expect.dtype.is_stored_as(array.dtype) {
            let (stored, wanted) = (array.dtype.name(), expect.dtype.name());
            return bad(
                path("dtype"),
                format!("the file has elements of {stored}, which are not the bits of {wanted}"),
            );
        }
        if have != want {
            return bad(path("npy"), format!("the array has {have} B, and the buffer `{}` has {want}", expect.buffer));
        }
        for (name, tolerance) in [("rtol", expect.rtol), ("atol", expect.atol)] {
            if !(tolerance >= 0.0 && tolerance.is_finite()) {
                return bad(path(name), "expected a number that is not negative");
            }
        }
        let (buffer, dtype, rtol, atol) = (expect.buffer.clone(), expect.dtype, expect.rtol, expect.atol);
        Ok(Expectation { buffer, dtype, array, rtol, atol })
    }
}

/// What `serde` says in terms of Rust, in terms of JSON.
fn in_words_of_json(message: &str) -> String {
    let mut message = message.to_string();
    for kind in ["usize", "u64", "u32", "u16", "u8"] {
        message = message.replace(&format!("expected {kind}"), "expected an integer that is not negative");
    }
    for kind in ["i64", "i32", "i16", "i8"] {
        message = message.replace(&format!("expected {kind}"), "expected an integer");
    }
    if let Some((before, after)) = message.split_once("expected struct ") {
        let end = after.find(' ').unwrap_or(after.len());
        message = format!("{before}expected an object{}", &after[end..]);
    }
    message
        .replace("expected f32", "expected a number")
        .replace("expected f64", "expected a number")
        .replace("a sequence", "an array")
        .replace(": sequence", ": an array")
        .replace(": map", ": an object")
        .replace("a map", "an object")
        .replace("unknown variant", "unknown name")
}

fn hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    match digits {
        Some(digits) if digits.len().is_multiple_of(2) => {
            Ok(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
        }
        Some(digits) => Err(format!("two hexadecimal digits are a byte; here are {}", digits.len())),
        None => {
            let wrong = text.chars().find(|digit| !digit.is_ascii_hexdigit()).unwrap_or_default();
            Err(format!("`{wrong}` is not a hexadecimal digit"))
        }
    }
}

#[cfg(test)]
mod tests;
