//! The JSON of a launch file.

use std::fmt;
use std::marker::PhantomData;

use indexmap::IndexMap;
use indexmap::map::Entry;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::dtype::ElementType;
use crate::tensor_map::{MapElement, MapSwizzle};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) kernel: Option<String>,
    pub(super) grid: Option<[u32; 3]>,
    pub(super) block: Option<[u32; 3]>,
    pub(super) cluster: Option<[u32; 3]>,
    pub(super) dynamic_shared_bytes: Option<u32>,
    pub(super) args: Option<Vec<Arg>>,
    pub(super) launches: Option<Vec<Launch>>,
    #[serde(default, deserialize_with = "distinct")]
    pub(super) buffers: IndexMap<String, Source>,
    #[serde(default)]
    pub(super) initial: Vec<Initial>,
    #[serde(default)]
    pub(super) expect: Vec<Expect>,
    pub(super) sms: Option<u32>,
    pub(super) ctas_per_sm: Option<u32>,
}

/// One of several launches.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Launch {
    pub(super) kernel: String,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) cluster: Option<[u32; 3]>,
    #[serde(default)]
    pub(super) dynamic_shared_bytes: u32,
    #[serde(default)]
    pub(super) args: Vec<Arg>,
    /// A programmatic dependent launch.
    #[serde(default)]
    pub(super) overlaps_previous: bool,
}

/// What a buffer holds at first: exactly one of the fields is given.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Source {
    pub(super) npy: Option<String>,
    pub(super) zeros: Option<Extent>,
    pub(super) poison: Option<Extent>,
}

/// What is written into a buffer before the first launch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Initial {
    pub(super) tensor_map_at: MapAt,
}

/// A tensor map in a buffer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MapAt {
    pub(super) buffer: String,
    #[serde(default)]
    pub(super) byte_offset: u64,
    pub(super) tensor_map: Map,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Extent {
    pub(super) dtype: ElementType,
    pub(super) shape: Vec<usize>,
}

/// An argument: exactly one of its fields is given, and `byte_offset` with `buffer` only.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Arg {
    pub(super) buffer: Option<String>,
    pub(super) byte_offset: Option<u64>,
    pub(super) tensor_map: Option<Map>,
    pub(super) bytes: Option<String>,
    pub(super) i8: Option<i8>,
    pub(super) u8: Option<u8>,
    pub(super) i16: Option<i16>,
    pub(super) u16: Option<u16>,
    pub(super) i32: Option<i32>,
    pub(super) u32: Option<u32>,
    pub(super) i64: Option<i64>,
    pub(super) u64: Option<u64>,
    pub(super) f32: Option<f32>,
    pub(super) f64: Option<f64>,
}

/// A tensor map: the arguments of `cuTensorMapEncodeTiled`, with `box`, or of `cuTensorMapEncodeIm2col`, with `im2col`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Map {
    pub(super) buffer: String,
    #[serde(default)]
    pub(super) byte_offset: u64,
    pub(super) dtype: MapType,
    pub(super) dims: Vec<u64>,
    pub(super) strides_bytes: Vec<u64>,
    #[serde(rename = "box")]
    pub(super) box_dims: Option<Vec<u64>>,
    pub(super) im2col: Option<Pixels>,
    pub(super) element_strides: Vec<u64>,
    pub(super) swizzle: MapSwizzle,
    pub(super) interleave: Interleave,
    pub(super) oob_fill: Fill,
}

/// The pixels that a copy moves.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pixels {
    pub(super) lower: Vec<i64>,
    pub(super) upper: Vec<i64>,
    pub(super) channels: u64,
    pub(super) pixels: u64,
}

/// The element types of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MapType {
    U8,
    U16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
    Tf32,
    #[serde(rename = "u4x16_align8b")]
    U4x16Align8,
    #[serde(rename = "u4x16_align16b")]
    U4x16Align16,
    #[serde(rename = "u6x16_align16b")]
    U6x16Align16,
}

impl MapType {
    pub(super) fn element(self) -> MapElement {
        match self {
            MapType::U8 => MapElement::U8,
            MapType::U16 => MapElement::U16,
            MapType::U32 => MapElement::U32,
            MapType::I32 => MapElement::S32,
            MapType::U64 => MapElement::U64,
            MapType::I64 => MapElement::S64,
            MapType::F16 => MapElement::F16,
            MapType::Bf16 => MapElement::Bf16,
            MapType::F32 => MapElement::F32,
            MapType::F64 => MapElement::F64,
            MapType::Tf32 => MapElement::Tf32,
            MapType::U4x16Align8 => MapElement::B4x16,
            MapType::U4x16Align16 => MapElement::B4x16P64,
            MapType::U6x16Align16 => MapElement::B6x16P32,
        }
    }
}

/// How channels are interleaved; only tensors that are not are supported.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Interleave {
    None,
}

/// What elements outside the tensor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Fill {
    Zero,
    Nan,
}

/// What a buffer must hold at the end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    pub(super) buffer: String,
    pub(super) dtype: ElementType,
    pub(super) npy: String,
    #[serde(default)]
    pub(super) rtol: f64,
    #[serde(default)]
    pub(super) atol: f64,
}

/// Reads a map in which no key may occur twice.
fn distinct<'de, D: Deserializer<'de>, T: Deserialize<'de>>(json: D) -> Result<IndexMap<String, T>, D::Error> {
    json.deserialize_map(Distinct(PhantomData))
}

struct Distinct<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Distinct<T> {
    type Value = IndexMap<String, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut all = IndexMap::new();
        while let Some(key) = entries.next_key::<String>()? {
            match all.entry(key) {
                Entry::Occupied(first) => return Err(A::Error::custom(format!("`{}` is there twice", first.key()))),
                Entry::Vacant(place) => _ = place.insert(entries.next_value()?),
            }
        }
        Ok(all)
    }
}
