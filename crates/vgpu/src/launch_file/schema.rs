//! The JSON of a launch file.

use indexmap::IndexMap;
use serde::Deserialize;

use super::dtype::ElementType;

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
    #[serde(default)]
    pub(super) buffers: IndexMap<String, Source>,
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
    /// A programmatic dependent launch; here it begins when the one before has ended, as it may.
    #[serde(default)]
    pub(super) overlaps_previous: bool,
}

/// What a buffer holds at first.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Source {
    Npy(String),
    Zeros(Extent),
    Poison(Extent),
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
